"""Checks for `doctor`: whether the database can store vectors, whether store.read_url is a replica of store.url, and whether
row-level security binds the login.

Each returns what is wrong and how to fix it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import psycopg

from holdfast.errors import HoldfastError
from holdfast.postgres.errors import READ_URL, URL, translate
from holdfast.postgres.settings import connection_parameters
from holdfast.postgres.sql import SQL

if TYPE_CHECKING:
    from holdfast.postgres.database import Database
    from holdfast.postgres.settings import PostgresSettings

_MIGRATE = "run `holdfast migrate` as the owner of the schema holdfast"
_CREATE = "a superuser run `CREATE EXTENSION vector SCHEMA public` in this database, then"


class VectorSupport(NamedTuple):
    """The state of pgvector in a database."""

    offered: str | None  # the version that the server could install
    created: str | None  # the version that is installed in this database
    schema: str | None  # in which it is installed
    usable: bool  # whether its type for vectors exists
    has_columns: bool  # whether our tables have the columns


class ServerIdentity(NamedTuple):
    """The identity of a server and database."""

    system: str
    database: str
    is_standby: bool
    started: str


class Login(NamedTuple):
    """The role that this process logs in as, and what exempts it from row-level security."""

    name: str
    is_superuser: bool
    bypasses_security: bool


def login_problem(settings: PostgresSettings) -> tuple[str, str]:
    """Return why row-level security does not bind the login, and how to fix it; two empty strings if it does."""
    try:
        with psycopg.connect(**connection_parameters(settings.url)) as connection:
            row = connection.execute(SQL["login"]).fetchone()
    except psycopg.Error as error:
        raise translate(error) from error
    login = Login(*row) if row is not None else Login("", False, False)
    if not login.is_superuser and not login.bypasses_security:
        return "", ""
    why = "is a superuser" if login.is_superuser else "has BYPASSRLS"
    problem = f"the login {login.name} of store.url {why}: row-level security does not apply to it"
    fix = "Ask an administrator to create an ordinary login with docs/deploy/postgres-roles.sql, and use it in store.url"
    return problem, fix


def vector_problem(database: Database) -> tuple[str, str]:
    """Return what is missing and how to fix it, as the caller's login sees it; two empty strings if nothing is."""
    return describe_vector_problem(VectorSupport(*database.query(SQL["pgvector"], ())[0]))


def vector_problem_at(url: str) -> tuple[str, str]:
    """Return what is missing in the database at an address, and how to fix it."""
    try:
        with psycopg.connect(**connection_parameters(url)) as connection:
            row = connection.execute(SQL["pgvector"]).fetchone()
    except psycopg.Error as error:
        raise translate(error) from error
    assert row is not None
    return describe_vector_problem(VectorSupport(*row))


def describe_vector_problem(support: VectorSupport) -> tuple[str, str]:
    """Return why vectors cannot be stored and how to fix it; two empty strings if they can."""
    if support.has_columns and support.created:
        return "", ""
    if support.created and support.usable:
        return "pgvector is in this database, but the tables were made without it", _MIGRATE.capitalize()
    if support.created and support.schema != "public":
        problem = f"pgvector is in the schema {support.schema} of this database, not in public"
        return problem, f"Let a superuser run `ALTER EXTENSION vector SET SCHEMA public` in this database, then {_MIGRATE}"
    if support.created:
        problem = f"pgvector {support.created} in this database is older than 0.7"
        return (
            problem,
            f"Install a newer one on the server, let a superuser run `ALTER EXTENSION vector UPDATE`, then {_MIGRATE}",
        )
    if support.offered:
        return "pgvector is on the PostgreSQL server, but not created in this database", f"Let {_CREATE} {_MIGRATE}"
    return "pgvector is not installed on the PostgreSQL server", f"Install 0.7 or later there, let {_CREATE} {_MIGRATE}"


def replica_problem(settings: PostgresSettings) -> tuple[str, str]:
    """Return what is wrong with the replica and how to fix it; two empty strings if nothing is, or there is no replica."""
    if not settings.read_url:
        return "", ""
    try:
        replica = _read_identity(settings.read_url, primary=False)
    except HoldfastError as error:
        return f"the read replica cannot be reached: {error.message}", error.fix
    try:
        primary = _read_identity(settings.url, primary=True)
    except HoldfastError as error:
        return f"cannot check whether store.read_url is a replica of store.url: {error.message}", error.fix
    if replica is None or primary is None:
        return "", ""  # the login may not ask the server for its identity
    if (replica.system, replica.database) != (primary.system, primary.database):
        return "store.read_url is another database, not a replica of store.url", "Correct or remove store.read_url"
    if not replica.is_standby and replica.started != primary.started:
        return (
            "store.read_url is a server that no longer follows a primary",
            "Make it a standby of the primary, or remove store.read_url",
        )
    return "", ""


def _read_identity(url: str, primary: bool) -> ServerIdentity | None:
    """Return the identity of the server at an address; None if the login may not ask for it."""
    try:
        with psycopg.connect(**connection_parameters(url, primary)) as connection:
            row = connection.execute(SQL["identity"]).fetchone()
    except psycopg.errors.InsufficientPrivilege:
        return None
    except psycopg.Error as error:
        raise translate(error, URL if primary else READ_URL) from error
    return ServerIdentity(*row) if row is not None else None
