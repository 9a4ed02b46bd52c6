"""VACUUM, since deleted rows stay in PostgreSQL's files until then, and ANALYZE after many rows were added."""

from __future__ import annotations

import psycopg
from psycopg.sql import SQL, Identifier

from holdfast.postgres.errors import translate
from holdfast.postgres.pool import pool_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import LiteralString

    from holdfast.postgres.settings import PostgresSettings

_WARNING = "01000"  # of a server that skips a table because the login may not do this


def vacuum(store: PostgresSettings, tables: Sequence[str]) -> str:
    """Remove dead rows from these tables; return why that was not possible, or ""."""
    return _run(store, "VACUUM {}", tables)


def analyze(store: PostgresSettings, tables: Sequence[str]) -> str:
    """Update the planner's statistics of these tables; return why that was not possible, or "". Locked tables are skipped."""
    return _run(store, "ANALYZE (SKIP_LOCKED) {}", tables)


def _run(store: PostgresSettings, command: LiteralString, tables: Sequence[str]) -> str:
    warnings: list[str] = []
    try:
        with psycopg.connect(**pool_of(store).parameters) as connection:
            connection.add_notice_handler(lambda notice: warnings.append(notice.sqlstate or ""))
            for table in tables:
                connection.execute(SQL(command).format(Identifier("holdfast", table)))
    except psycopg.Error as error:
        return str(translate(error))
    return "the login of store.url may not do that to these tables" if _WARNING in warnings or "42501" in warnings else ""
