"""VACUUM: what is deleted in PostgreSQL stays in its files until then."""

from __future__ import annotations

import psycopg
from psycopg.sql import SQL, Identifier

from holdfast.postgres.pool import pool_of
from holdfast.postgres.trouble import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.postgres.store import Store

_WARNING = "01000"  # with which a table is passed over that the login may not vacuum


def vacuum(store: Store, tables: Sequence[str]) -> str:
    """Take the dead rows out of these tables of ours; why it could not be done, if it could not."""
    heard: list[str] = []
    try:
        with psycopg.connect(**pool_of(store).parameters) as connection:
            connection.add_notice_handler(lambda notice: heard.append(notice.sqlstate or ""))
            for table in tables:
                connection.execute(SQL("VACUUM {}").format(Identifier("holdfast", table)))
    except psycopg.Error as error:
        return str(ours(error))
    return "the login of store.url may not vacuum these tables" if _WARNING in heard or "42501" in heard else ""
