"""What a database lacks to keep vectors, and what to run then."""

from __future__ import annotations

import psycopg

from holdfast.postgres.named import SQL
from holdfast.postgres.pool import parameters
from holdfast.postgres.trouble import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.postgres.database import Database

    State = tuple[str | None, str | None, str | None, bool, bool]

_MIGRATE = "run `holdfast migrate` as the owner of the schema holdfast"
_CREATE = "a superuser run `CREATE EXTENSION vector SCHEMA public` in this database, then"


def lacking(database: Database) -> tuple[str, str]:
    """What is missing and what mends it, as whoever asks sees it; nothing where vectors can be kept."""
    return _told(database.query(SQL["pgvector"], ())[0])


def lacking_at(url: str) -> tuple[str, str]:
    """The same of an address, whatever stands there."""
    try:
        with psycopg.connect(**parameters(url)) as connection:
            row = connection.execute(SQL["pgvector"]).fetchone()
    except psycopg.Error as error:
        raise ours(error) from error
    assert row is not None
    return _told(row)


def _told(state: State) -> tuple[str, str]:
    offered, created, schema, usable, kept = state
    if kept and created:
        return "", ""
    if created and usable:
        return "pgvector is in this database, but the tables were made without it", _MIGRATE.capitalize()
    if created and schema != "public":
        what = f"pgvector is in the schema {schema} of this database, not in public"
        return what, f"Let a superuser run `ALTER EXTENSION vector SET SCHEMA public` in this database, then {_MIGRATE}"
    if created:
        what = f"pgvector {created} in this database is older than 0.7"
        return what, f"Install a newer one on the server, let a superuser run `ALTER EXTENSION vector UPDATE`, then {_MIGRATE}"
    if offered:
        return "pgvector is on the PostgreSQL server, but not created in this database", f"Let {_CREATE} {_MIGRATE}"
    return "pgvector is not installed on the PostgreSQL server", f"Install 0.7 or later there, let {_CREATE} {_MIGRATE}"
