"""The two ends of a copy: a home on disk, or a tenant in PostgreSQL."""

from __future__ import annotations

import os
from contextlib import contextmanager

from holdfast import home as home_folder
from holdfast.config import hide_password, is_store
from holdfast.errors import NotFound, UsageError
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.store.files import FileStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.config import Config
    from holdfast.ledger.interface import Ledger
    from holdfast.store.interface import Store


class Endpoint:
    """An open store and ledger, with the name that messages use."""

    def __init__(self, name: str, identity: object, store: Store, ledger: Ledger) -> None:
        self.name, self._identity = name, identity
        self.store, self.ledger = store, ledger

    def finish_copy(self) -> None:
        """Let a database server analyze its tables, so that it plans the first queries well."""
        self.store.finish_copy()

    def is_same(self, other: Endpoint) -> bool:
        return self._identity == other._identity


@contextmanager
def open_endpoint(address: str, config: Config, must_exist: bool = False) -> Iterator[Endpoint]:
    """Open the folder or database that an argument of the command line names."""
    end = _open_database(address, config) if is_store(address) else _open_folder(address, config, must_exist)
    try:
        yield end
    finally:
        end.ledger.close()


def _open_database(url: str, config: Config) -> Endpoint:
    from holdfast.postgres import ledger as ledgers
    from holdfast.postgres import make_settings
    from holdfast.postgres.store import PostgresStore

    settings = make_settings(config.replace(store=url, store_read=None), None, all_agents=True)
    store, ledger = (
        PostgresStore(settings, config.home, config.lock_seconds),
        ledgers.PostgresLedger(settings, config.lock_seconds),
    )
    return Endpoint(f"{hide_password(url)} (tenant {settings.tenant})", (url, settings.tenant), store, ledger)


def _open_folder(path: str, config: Config, must_exist: bool) -> Endpoint:
    if "://" in path:
        raise UsageError(f"cannot copy from or to {hide_password(path)}", "Give a folder or a postgresql:// URL")
    home = os.path.abspath(os.path.expanduser(path))
    if must_exist and not os.path.isdir(os.path.join(home, "shelf")) and not os.path.isfile(os.path.join(home, "ledger.db")):
        raise NotFound(f"no Holdfast home in {home}", "Give the folder that `holdfast path` prints, or a postgresql:// URL")
    home_folder.check_owner(home)
    return Endpoint(home, os.path.realpath(home), FileStore(home, config.lock_seconds), SqliteLedger(home, config.lock_seconds))
