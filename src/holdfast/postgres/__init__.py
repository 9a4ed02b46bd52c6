"""The ground that memory stands on where it is kept in PostgreSQL: connections, transactions, locks and migrations.

The only room that knows the driver. Every transaction says for itself who asks (tenant and agent), as which role and for
how long; nothing is ever set for a whole session, so that a pooler in transaction mode may stand between.
"""

try:
    import psycopg as _driver  # noqa: F401
except ImportError:
    from holdfast.errors import ConfigError

    raise ConfigError("PostgreSQL's driver is not installed", "pip install 'holdfast[postgres]'") from None

from holdfast.postgres.alone import Alone
from holdfast.postgres.database import Database
from holdfast.postgres.migrating import migrate, newest, ready
from holdfast.postgres.named import statements
from holdfast.postgres.pgvector import lacking, lacking_at
from holdfast.postgres.replica import wrong
from holdfast.postgres.session import Session
from holdfast.postgres.store import Store, store_of
from holdfast.postgres.trouble import Again

__all__ = [
    "Again", "Alone", "Database", "Session", "Store", "lacking", "lacking_at", "migrate", "newest", "ready", "statements",
    "store_of", "wrong",
]  # fmt: skip
