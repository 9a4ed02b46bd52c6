"""Choose the backend that the settings name: files and SQLite in a home, or PostgreSQL."""

from __future__ import annotations

from holdfast.base.record import Record
from holdfast.context.sync import ListingWriter
from holdfast.index.sqlite import SqliteIndex
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.store.changes import FileChanges
from holdfast.store.files import FileStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.config import Config
    from holdfast.index.interface import Index
    from holdfast.ledger.interface import Ledger
    from holdfast.store.changes import ChangeDetector
    from holdfast.store.interface import Store


class Backend(Record):
    """Store, index and ledger of one memory; opening them touches nothing until they are used."""

    store: Store
    index: Index
    ledger: Ledger
    changes: ChangeDetector
    listing: ListingWriter | None  # writes index.md; None where the scopes are not folders


def open_backend(config: Config, *, agent: str | None, all_agents: bool) -> Backend:
    """Return the backend that the settings name, as an agent sees it, or with `all_agents` as a person does."""
    if config.store or config.store_read:
        from holdfast.postgres import backend

        postgres = backend.open_backend(config, agent=agent, all_agents=all_agents)
        return Backend(postgres.store, postgres.index, postgres.ledger, postgres.changes, None)
    store = FileStore(config.home, config.lock_seconds)
    index = SqliteIndex(config.home, config.lock_seconds, config.quarantine)
    ledger = SqliteLedger(config.home, config.lock_seconds)
    return Backend(store, index, ledger, FileChanges(store, index), ListingWriter(store, index))
