"""PostgreSQL: connections, transactions, locks, migrations, and the implementations of Store, Index and Ledger.

No other package imports the driver.

Every transaction sets the tenant, the agent, the role and the time limits for itself. Nothing is set for a whole session, so
that a pooler in transaction mode may be used.
"""

try:
    import psycopg_pool as _driver  # noqa: F401
except ImportError:
    from holdfast.errors import ConfigError

    raise ConfigError("PostgreSQL's driver is not installed", "pip install 'holdfast[postgres]'") from None

from holdfast.postgres.checks import login_problem, replica_problem, vector_problem, vector_problem_at
from holdfast.postgres.database import Database, Session
from holdfast.postgres.errors import RetryLater
from holdfast.postgres.lock import Lock
from holdfast.postgres.migrations import migrate, newest_version
from holdfast.postgres.settings import PostgresSettings, make_settings
from holdfast.postgres.sql import statements

__all__ = [
    "Database",
    "Lock",
    "PostgresSettings",
    "RetryLater",
    "Session",
    "login_problem",
    "make_settings",
    "migrate",
    "newest_version",
    "replica_problem",
    "statements",
    "vector_problem",
    "vector_problem_at",
]  # fmt: skip
