"""Check whether a database can store vectors, and say what to run if it cannot."""

from __future__ import annotations

import psycopg

from holdfast.postgres.address import parameters
from holdfast.postgres.errors import translate
from holdfast.postgres.sql import SQL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.postgres.database import Database

    State = tuple[str | None, str | None, str | None, bool, bool]

_MIGRATE = "run `holdfast migrate` as the owner of the schema holdfast"
_CREATE = "a superuser run `CREATE EXTENSION vector SCHEMA public` in this database, then"


def lacking(database: Database) -> tuple[str, str]:
    """Return what is missing and how to fix it, as the caller's login sees it; two empty strings if nothing is."""
    return _told(database.query(SQL["pgvector"], ())[0])


def lacking_at(url: str) -> tuple[str, str]:
    """Return the same for the database at an address."""
    try:
        with psycopg.connect(**parameters(url)) as connection:
            row = connection.execute(SQL["pgvector"]).fetchone()
    except psycopg.Error as error:
        raise translate(error) from error
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
