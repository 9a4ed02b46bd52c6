"""What is done to tables now and then: VACUUM, since what is deleted in PostgreSQL stays in its files until then, and ANALYZE,
since who brought much at once is not to wait for the server to notice."""

from __future__ import annotations

import psycopg
from psycopg.sql import SQL, Identifier

from holdfast.postgres.pool import pool_of
from holdfast.postgres.trouble import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import LiteralString

    from holdfast.postgres.store import Store

_WARNING = "01000"  # with which a table is passed over that the login may not tend


def vacuum(store: Store, tables: Sequence[str]) -> str:
    """Take the dead rows out of these tables of ours; why it could not be done, if it could not."""
    return _tended(store, "VACUUM {}", tables)


def analyze(store: Store, tables: Sequence[str]) -> str:
    """Let the server count what is in these tables of ours, so that it plans well; why it could not be done. A table that
    somebody is at is passed over: the server sees to it by itself."""
    return _tended(store, "ANALYZE (SKIP_LOCKED) {}", tables)


def _tended(store: Store, command: LiteralString, tables: Sequence[str]) -> str:
    heard: list[str] = []
    try:
        with psycopg.connect(**pool_of(store).parameters) as connection:
            connection.add_notice_handler(lambda notice: heard.append(notice.sqlstate or ""))
            for table in tables:
                connection.execute(SQL(command).format(Identifier("holdfast", table)))
    except psycopg.Error as error:
        return str(ours(error))
    return "the login of store.url may not do that to these tables" if _WARNING in heard or "42501" in heard else ""
