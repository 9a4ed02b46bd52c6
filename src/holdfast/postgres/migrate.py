"""Migrations: numbered SQL files, each applied once, in one transaction, by the first of several processes."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256

import psycopg

from holdfast.base.record import Record
from holdfast.errors import Busy, ConfigError
from holdfast.postgres.address import parameters
from holdfast.postgres.errors import translate
from holdfast.postgres.pipeline import Result
from holdfast.postgres.sql import SQL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.postgres.pipeline import Connection as Pipelined
    from holdfast.postgres.settings import PostgresSettings

    Connection = psycopg.Connection[Any]

FOLDER = os.path.join(os.path.dirname(__file__), "migrations")
_LOCK = 0x686F6C6466617374  # "holdfast": the advisory lock of the process that migrates
_WAIT_SECONDS = 300
_VECTORS = "vectors"  # the step that is applied when pgvector was installed after the tables were made


class Step(Record):
    """One migration of this version."""

    number: int
    name: str
    digest: str
    sql: str


def steps() -> list[Step]:
    """Return all migrations in order."""
    found = []
    for name in sorted([name for name in os.listdir(FOLDER) if name.endswith(".sql") and name[:4].isdigit()]):
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            text = file.read()
        found.append(Step(number=int(name[:4]), name=name[:-4], digest=sha256(text.encode()).hexdigest(), sql=text))
    return found


def migrate(url: str, progress: Callable[[str], None] | None = None) -> list[str]:
    """Apply the missing migrations to the database at this address; return their names."""
    applied = []
    try:
        with psycopg.connect(**parameters(url)) as connection:
            for step in steps():
                if _apply(connection, step):
                    applied.append(step.name)
                    if progress is not None:
                        progress(step.name)
            if _make_vectors(connection):
                applied.append(_VECTORS)
                if progress is not None:
                    progress(_VECTORS)
    except psycopg.errors.InsufficientPrivilege as error:
        if _nothing_to_do(url):
            return applied
        raise ConfigError(
            f"this login may not migrate the database ({error.diag.message_primary})",
            "Run `holdfast migrate --store URL` as the owner of the schema holdfast",
        ) from error
    except psycopg.errors.LockNotAvailable as error:
        raise Busy("another process has been migrating for too long", "Wait for it and try again") from error
    except psycopg.errors.RaiseException as error:  # raised by our own migrations
        said = error.diag
        raise ConfigError(f"the database cannot be migrated: {said.message_primary}", said.message_hint or "") from error
    except psycopg.Error as error:
        raise translate(error) from error
    return applied


def _apply(connection: Connection, step: Step) -> bool:
    """Apply a migration in one transaction, with the lock; return whether it was missing."""
    with connection.transaction():
        connection.execute(SQL["patience"], {"wait": f"{_WAIT_SECONDS}s"})
        connection.execute(SQL["turn"], {"number": _LOCK})
        connection.execute(SQL["make_schema"])
        connection.execute(SQL["make_migrations"])
        connection.execute(SQL["search_here"])
        there = connection.execute(SQL["applied"], {"number": step.number}).fetchone()
        if there is not None:
            if there[0] != step.digest:
                raise ConfigError(
                    f"migration {step.name} was applied to this database in another form",
                    "Use the Holdfast that made it, or a database of its own",
                )
            return False
        connection.execute(step.sql.encode())
        with open(os.path.join(FOLDER, "closing.sql"), encoding="utf-8") as file:
            connection.execute(file.read().encode())
        row = {"number": step.number, "name": step.name, "digest": step.digest}
        connection.execute(SQL["add_applied"], row)
        return True


def _make_vectors(connection: Connection) -> bool:
    """Make the vector columns if pgvector was installed after the tables were made; return whether that happened."""
    if connection.execute(SQL["pgvector"]).fetchone()[4]:  # type: ignore[index]
        return False
    with connection.transaction():
        connection.execute(SQL["patience"], {"wait": f"{_WAIT_SECONDS}s"})
        connection.execute(SQL["turn"], {"number": _LOCK})
        there = connection.execute(SQL["pgvector"]).fetchone()
        made = connection.execute(SQL["make_vectors"]).fetchone()
        return bool(made and made[0] and there and not there[4])


def _nothing_to_do(url: str) -> bool:
    """Return whether the database is up to date, as far as a login without rights can see."""
    try:
        with psycopg.connect(**parameters(url)) as connection:
            there, state = connection.execute(SQL["version"]).fetchone(), connection.execute(SQL["pgvector"]).fetchone()
    except psycopg.Error:
        return False
    return bool(there and there[0] == newest() and state and (state[4] or not state[3]))


def newest() -> int:
    """Return the number of the last migration of this version."""
    return steps()[-1].number


def version(connection: Pipelined) -> tuple[int, bool]:
    """Return the number of the last applied migration (0: none), and whether this login could make vector columns now."""
    result = Result()
    try:
        connection.run([(SQL["version"], (), result)])
        return int(result.rows[0][0] or 0), bool(result.rows[0][1])
    except (psycopg.errors.InvalidSchemaName, psycopg.errors.UndefinedFunction):
        return 0, False
    except psycopg.errors.InsufficientPrivilege:
        raise ConfigError(
            "the login of store.url may not use the schema holdfast",
            "Let its owner run: GRANT holdfast_app TO the login",
        ) from None


def ready(store: PostgresSettings, connection: Pipelined) -> None:
    """Check the schema's version; migrate an older one, or one without vectors, if the login may."""
    there, vectors_are_due = version(connection)
    if there > newest():
        raise ConfigError("the database was migrated by a newer Holdfast", "Upgrade this one")
    if there < newest():
        migrate(store.url)
    elif vectors_are_due:
        with suppress(ConfigError, Busy):  # without vectors, search is by keyword, and says so
            migrate(store.url)
