"""Check whether the server of store.read_url is a replica of store.url."""

from __future__ import annotations

import psycopg

from holdfast.errors import HoldfastError
from holdfast.postgres.address import parameters
from holdfast.postgres.errors import READ_URL, URL, translate
from holdfast.postgres.sql import SQL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.postgres.settings import PostgresSettings


def wrong(store: PostgresSettings) -> tuple[str, str]:
    """Return what is wrong with the replica and how to fix it; two empty strings if nothing is, or there is no replica."""
    if not store.read_url:
        return "", ""
    try:
        replica = _identity(store.read_url, primary=False)
    except HoldfastError as error:
        return f"the read replica cannot be asked: {error.message}", error.fix
    try:
        primary = _identity(store.url, primary=True)
    except HoldfastError as error:
        return f"whether store.read_url is a replica of store.url cannot be told: {error.message}", error.fix
    if replica is None or primary is None:
        return "", ""  # the login may not ask the server for its identity
    if replica[:2] != primary[:2]:
        return "store.read_url is another database, and no replica of store.url", "Correct store.read_url, or take it out"
    if not replica[2] and replica[3] != primary[3]:
        return "store.read_url is a server that follows no other any more", "Make it a standby of the primary, or take it out"
    return "", ""


def _identity(url: str, primary: bool) -> Any:
    try:
        with psycopg.connect(**parameters(url, primary)) as connection:
            return connection.execute(SQL["identity"]).fetchone()
    except psycopg.errors.InsufficientPrivilege:
        return None
    except psycopg.Error as error:
        raise translate(error, URL if primary else READ_URL) from error
