"""Migrations: numbered SQL, each applied once, in one transaction, by whoever comes first of many that start at once."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256

import psycopg

from holdfast.errors import Busy, ConfigError
from holdfast.note import Record
from holdfast.postgres.line import Answer
from holdfast.postgres.named import SQL
from holdfast.postgres.pool import parameters
from holdfast.postgres.trouble import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.postgres.line import Line
    from holdfast.postgres.store import Store

    Connection = psycopg.Connection[Any]

FOLDER = os.path.join(os.path.dirname(__file__), "migrations")
_LOCK = 0x686F6C6466617374  # "holdfast": whoever has it migrates
_WAIT_SECONDS = 300
_VECTORS = "vectors"  # what is applied when pgvector came after the tables


class Step(Record):
    """One migration, as this Holdfast has it."""

    number: int
    name: str
    digest: str
    sql: str


def steps() -> list[Step]:
    """All of them, in order."""
    found = []
    for name in sorted([name for name in os.listdir(FOLDER) if name.endswith(".sql") and name[:4].isdigit()]):
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            text = file.read()
        found.append(Step(number=int(name[:4]), name=name[:-4], digest=sha256(text.encode()).hexdigest(), sql=text))
    return found


def migrate(url: str, progress: Callable[[str], None] | None = None) -> list[str]:
    """Bring the database at this address up to this Holdfast; the names of the steps that were missing."""
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
    except psycopg.errors.RaiseException as error:  # our own migrations say what is wrong
        said = error.diag
        raise ConfigError(f"the database cannot be migrated: {said.message_primary}", said.message_hint or "") from error
    except psycopg.Error as error:
        raise ours(error) from error
    return applied


def _apply(connection: Connection, step: Step) -> bool:
    """Whether it was missing. Everything that follows happens with the lock, in one transaction."""
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
    """Whether vectors can be kept from now on, and could not before: pgvector came after the tables."""
    if connection.execute(SQL["pgvector"]).fetchone()[4]:  # type: ignore[index]
        return False
    with connection.transaction():
        connection.execute(SQL["patience"], {"wait": f"{_WAIT_SECONDS}s"})
        connection.execute(SQL["turn"], {"number": _LOCK})
        there = connection.execute(SQL["pgvector"]).fetchone()
        made = connection.execute(SQL["make_vectors"]).fetchone()
        return bool(made and made[0] and there and not there[4])


def _nothing_to_do(url: str) -> bool:
    """Whether the database is up to date, as a login that may not change it can see."""
    try:
        with psycopg.connect(**parameters(url)) as connection:
            there, state = connection.execute(SQL["version"]).fetchone(), connection.execute(SQL["pgvector"]).fetchone()
    except psycopg.Error:
        return False
    return bool(there and there[0] == newest() and state and (state[4] or not state[3]))


def newest() -> int:
    """The number of the last one that this Holdfast has."""
    return steps()[-1].number


def version(line: Line) -> tuple[int, bool]:
    """The number of the last migration, 0 where there was none; and whether this login could let vectors be kept now."""
    answer = Answer()
    try:
        line.ask([(SQL["version"], (), answer)])
        return int(answer.rows[0][0] or 0), bool(answer.rows[0][1])
    except (psycopg.errors.InvalidSchemaName, psycopg.errors.UndefinedFunction):
        return 0, False
    except psycopg.errors.InsufficientPrivilege:
        raise ConfigError(
            "the login of store.url may not use the schema holdfast",
            "Let its owner run: GRANT holdfast_app TO the login",
        ) from None


def ready(store: Store, line: Line) -> None:
    """See that the schema is this Holdfast's; an older one is migrated where the login may, and so is one without vectors
    where pgvector came since."""
    there, vectors_are_due = version(line)
    if there > newest():
        raise ConfigError("the database was migrated by a newer Holdfast", "Upgrade this one")
    if there < newest():
        migrate(store.url)
    elif vectors_are_due:
        with suppress(ConfigError, Busy):  # without them words are searched, and that is told
            migrate(store.url)
