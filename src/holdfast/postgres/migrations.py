"""Migrations: numbered SQL files, each applied once, in one transaction, by the first of several processes."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256

import psycopg

from holdfast.base.record import Record
from holdfast.errors import Busy, ConfigError, Template, phrase
from holdfast.postgres.checks import VectorSupport
from holdfast.postgres.connection import Result
from holdfast.postgres.errors import translate
from holdfast.postgres.settings import connection_parameters
from holdfast.postgres.sql import SQL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.postgres.connection import Connection as PipelineConnection
    from holdfast.postgres.settings import PostgresSettings

    Connection = psycopg.Connection[Any]

FOLDER = os.path.join(os.path.dirname(__file__), "migrations")
_LOCK = 0x686F6C6466617374  # "holdfast": the advisory lock of the process that migrates
_WAIT_SECONDS = 300
_VIEWS = "views"  # the name of the step that is applied when the login could not make the schema holdfast_views before
_VECTORS = "vectors"  # the name of the step that is applied when pgvector was installed after the tables were made


class Migration(Record):
    """One migration of this version."""

    number: int
    name: str
    digest: str
    sql: str


def list_migrations() -> list[Migration]:
    """Return all migrations in order."""
    found = []
    for name in sorted([name for name in os.listdir(FOLDER) if name.endswith(".sql") and name[:4].isdigit()]):
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            text = file.read()
        found.append(Migration(number=int(name[:4]), name=name[:-4], digest=sha256(text.encode()).hexdigest(), sql=text))
    return found


def migrate(url: str, progress: Callable[[str], None] | None = None) -> list[str]:
    """Apply the missing migrations to the database at this address; return their names."""
    applied = []
    try:
        with psycopg.connect(**connection_parameters(url)) as connection:
            for migration in list_migrations():
                if _apply(connection, migration):
                    applied.append(migration.name)
                    if progress is not None:
                        progress(migration.name)
            if _make_vectors(connection):
                applied.append(_VECTORS)
                if progress is not None:
                    progress(_VECTORS)
            if _make_views(connection):
                applied.append(_VIEWS)
                if progress is not None:
                    progress(_VIEWS)
    except psycopg.errors.InsufficientPrivilege as error:
        if _is_up_to_date(url):
            return applied
        raise ConfigError(
            f"this login cannot migrate the database ({error.diag.message_primary})",
            Template(phrase("migrate", "Run `holdfast migrate --store URL`"), " as the owner of the schema holdfast"),
        ) from error
    except psycopg.errors.LockNotAvailable as error:
        raise Busy("another process has been migrating for too long", "Wait until it finishes and try again") from error
    except psycopg.errors.RaiseException as error:  # raised by our own migrations
        diag = error.diag
        raise ConfigError(f"the database cannot be migrated: {diag.message_primary}", diag.message_hint or "") from error
    except psycopg.Error as error:
        raise translate(error) from error
    return applied


def _apply(connection: Connection, migration: Migration) -> bool:
    """Apply a migration in one transaction, with the lock; return whether it was missing."""
    with connection.transaction():
        connection.execute(SQL["migration_settings"], {"lock_timeout": f"{_WAIT_SECONDS}s"})
        connection.execute(SQL["migration_lock"], {"number": _LOCK})
        connection.execute(SQL["make_schema"])
        connection.execute(SQL["make_migrations"])
        connection.execute(SQL["migration_search_path"])
        found = connection.execute(SQL["applied"], {"number": migration.number}).fetchone()
        if found is not None:
            (digest,) = found
            if digest != migration.digest:
                raise ConfigError(
                    f"migration {migration.name} in this database differs from the one of this version",
                    "Use the version of Holdfast that created it, or another database",
                )
            return False
        connection.execute(migration.sql.encode())
        with open(os.path.join(FOLDER, "after_migration.sql"), encoding="utf-8") as file:
            connection.execute(file.read().encode())
        row = {"number": migration.number, "name": migration.name, "digest": migration.digest}
        connection.execute(SQL["add_applied"], row)
        return True


def _make_vectors(connection: Connection) -> bool:
    """Make the vector columns if pgvector was installed after the tables were made; return whether that happened."""
    if _vector_support(connection).has_columns:
        return False
    with connection.transaction():
        connection.execute(SQL["migration_settings"], {"lock_timeout": f"{_WAIT_SECONDS}s"})
        connection.execute(SQL["migration_lock"], {"number": _LOCK})
        had_columns = _vector_support(connection).has_columns
        row = connection.execute(SQL["make_vectors"]).fetchone()
        return bool(row and row[0]) and not had_columns


def _make_views(connection: Connection) -> bool:
    """Make the views of the schema holdfast_views if a migration could not; return whether that happened."""
    with connection.transaction():
        row = connection.execute(SQL["make_platform_views"]).fetchone()
        return bool(row and row[0])


def _is_up_to_date(url: str) -> bool:
    """Return whether the database is up to date, as far as a login without rights can see."""
    try:
        with psycopg.connect(**connection_parameters(url)) as connection:
            row = connection.execute(SQL["version"]).fetchone()
            vectors = _vector_support(connection)
    except psycopg.Error:
        return False
    version = row[0] if row else None
    return version == newest_version() and (vectors.has_columns or not vectors.usable)


def _vector_support(connection: Connection) -> VectorSupport:
    row = connection.execute(SQL["pgvector"]).fetchone()
    assert row is not None
    return VectorSupport(*row)


def newest_version() -> int:
    """Return the number of the last migration of this version."""
    return list_migrations()[-1].number


def schema_version(connection: PipelineConnection) -> tuple[int, bool]:
    """Return the number of the last applied migration (0: none), and whether this login could make vector columns now."""
    result = Result()
    try:
        connection.run([(SQL["version"], (), result)])
        ((version, vectors_are_due),) = result.rows
        return int(version or 0), bool(vectors_are_due)
    except (psycopg.errors.InvalidSchemaName, psycopg.errors.UndefinedFunction):
        return 0, False
    except psycopg.errors.InsufficientPrivilege:
        raise ConfigError(
            "the login of store.url cannot use the schema holdfast",
            "Let its owner run: GRANT holdfast_app TO the login",
        ) from None


def check_schema(settings: PostgresSettings, connection: PipelineConnection) -> None:
    """Check the schema's version; migrate an older one, or one without vectors, if the login may."""
    version, vectors_are_due = schema_version(connection)
    if version > newest_version():
        raise ConfigError("the database was migrated by a newer version of Holdfast", "Upgrade Holdfast")
    if version < newest_version():
        migrate(settings.url)
    elif vectors_are_due:
        with suppress(ConfigError, Busy):  # without vectors, search is by keyword, and says so
            migrate(settings.url)
