"""The two ends of a copy: a home, or a tenant of a PostgreSQL."""

from __future__ import annotations

import os
from contextlib import contextmanager

from holdfast import home as home_folder
from holdfast.config import hide_password, is_store
from holdfast.errors import NotFound, UsageError
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.postgres.ledger_copy import carrier
from holdfast.store.files import FileStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from holdfast.config import Config


class End:
    """A shelf and a ledger, and what to call them."""

    def __init__(self, name: str, what: object, store: FileStore, ledger: SqliteLedger) -> None:
        self.name, self._what = name, what
        self.store, self.ledger = store, ledger
        self.records = carrier(ledger)
        self.tenant = str(getattr(getattr(ledger, "_store", None), "tenant", ""))  # whose rows it takes; a home takes all

    def settle(self) -> None:
        """After much was brought: a server that may count it now plans the first questions well; else it does by itself."""
        if self.tenant:
            from holdfast.postgres import rows

            store: Any = self.store
            rows.analyzed(store)

    def same_as(self, other: End) -> bool:
        return self._what == other._what


@contextmanager
def opened(word: str, config: Config, must_exist: bool = False) -> Iterator[End]:
    """What a word on the command line names."""
    end = _hosted(word, config) if is_store(word) else _folder(word, config, must_exist)
    try:
        yield end
    finally:
        end.ledger.close()


def _hosted(url: str, config: Config) -> End:
    from holdfast.postgres import ledger as ledgers
    from holdfast.postgres import settings_of
    from holdfast.postgres import store as shelves

    settings = settings_of(config.replace(store=url, store_read=None), None, all_agents=True)
    store, ledger = (
        shelves.PostgresStore(settings, config.home, config.lock_seconds),
        ledgers.PostgresLedger(settings, config.lock_seconds),
    )
    return End(f"{hide_password(url)} (tenant {settings.tenant})", (url, settings.tenant), store, ledger)


def _folder(path: str, config: Config, must_exist: bool) -> End:
    if "://" in path:
        raise UsageError(f"cannot copy from or to {hide_password(path)}", "Name a folder or a postgresql:// address")
    home = os.path.abspath(os.path.expanduser(path))
    if must_exist and not os.path.isdir(os.path.join(home, "shelf")) and not os.path.isfile(os.path.join(home, "ledger.db")):
        raise NotFound(f"no memory in {home}", "Name the folder that `holdfast path` prints, or a postgresql:// address")
    home_folder.must_be_ours(home)
    return End(home, os.path.realpath(home), FileStore(home, config.lock_seconds), SqliteLedger(home, config.lock_seconds))
