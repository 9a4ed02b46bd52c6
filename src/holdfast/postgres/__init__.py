"""PostgreSQL: connections, transactions, locks and migrations. The only package that imports the driver.

Every transaction sets the tenant, the agent, the role and the time limits for itself. Nothing is set for a whole session, so
that a pooler in transaction mode may be used.
"""

try:
    import psycopg_pool as _driver  # noqa: F401
except ImportError:
    from holdfast.errors import ConfigError

    raise ConfigError("PostgreSQL's driver is not installed", "pip install 'holdfast[postgres]'") from None

from holdfast.postgres.database import Database
from holdfast.postgres.errors import RetryLater
from holdfast.postgres.lock import Lock
from holdfast.postgres.migrate import migrate, newest, ready
from holdfast.postgres.pgvector import lacking, lacking_at
from holdfast.postgres.replica import wrong
from holdfast.postgres.session import Session
from holdfast.postgres.settings import PostgresSettings, settings_of
from holdfast.postgres.sql import statements

__all__ = [
    "Database",
    "Lock",
    "PostgresSettings",
    "RetryLater",
    "Session",
    "lacking",
    "lacking_at",
    "migrate",
    "newest",
    "ready",
    "settings_of",
    "statements",
    "wrong",
]  # fmt: skip
