"""Translate PostgreSQL's errors. A message names the kind of error, never a value, a statement, a user or a password."""

from __future__ import annotations

import re

import psycopg

from holdfast.errors import (
    Busy,
    ConfigError,
    Conflict,
    Damaged,
    Denied,
    DiskTrouble,
    HoldfastError,
    InvalidText,
    Template,
    Trouble,
    phrase,
)

URL, READ_URL = "store.url", "store.read_url"  # the settings that an error may name
_VARIABLES = {URL: "HOLDFAST_STORE", READ_URL: "HOLDFAST_STORE_READ"}
_AWAY = (  # shut down, crashed, starting, idle for too long, too many connections, no longer the primary
    "57P01", "57P02", "57P03", "57P05", "25P03", "25P04", "53300", "25006",
)  # fmt: skip
_CONFLICTS = {
    "40001": "another process changed it first",
    "40P01": "two transactions deadlocked",
    "26000": "a migration changed the database during the request",
}
_REFUSALS = (  # a failed login has no SQLSTATE, only a message: of a server, of a pooler before it, of the driver
    (
        r"no password supplied", "",
        "the database requires a password", "Add it to {url} or to a password file (PGPASSFILE)",
    ),
    (
        r"FATAL:.*password authentication failed|FATAL:.*SASL authentication failed", "28P01",
        "the database rejected the user or password", "Correct the user or the password in {url}",
    ),
    (
        r"FATAL:.*database .*does not exist|FATAL:.*no such database", "3D000",
        "the database does not exist on the server", "Ask an administrator to create it, or correct its name in {url}",
    ),
    (
        r"server does not support SSL", "",
        "the server does not support encryption, and {url} requires it", "Turn on `ssl` there, or correct sslmode in {url}",
    ),
    (
        r"FATAL:.*(does not exist|authentication failed|pg_hba\.conf|not permitted to log in|permission denied|no such user)",
        "28",
        "the server does not allow this user to connect from here", "Correct the user in {url}, or allow it in pg_hba.conf",
    ),
)  # fmt: skip
_INVALID_OPTION = re.compile(  # messages of the client library about an option before it connects
    r'invalid "?(\w+)"? value:|for connection option "(\w+)"|bad value for (\w+):|invalid (port) number|of (service) "'
    r"|weak (sslmode)|with \d+ (hostaddr) values|parse (network address)|root (certificate) file"
)
_NO_SCHEMA = ("3F000", "42P01", "42703", "42883")
_NO_REPLICA = (*_NO_SCHEMA, "22023", "42501", "42704")  # or not a role of Holdfast


class RetryLater(Busy):
    """Nothing was done, because the connection was lost, another process was first or a migration ran; a retry may
    succeed."""


def is_connection_lost(error: BaseException) -> bool:
    """Return whether the server went away, or no longer accepts writes: a new connection may find another one."""
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | psycopg.InternalError):
        return False
    state = error.sqlstate
    return (
        not (find_invalid_option(error) or is_login_refused(error))
        if state is None
        else state.startswith("08") or state in _AWAY
    )


def is_login_refused(error: BaseException) -> bool:
    """Return whether every host answered and refused the login: a retry would not help."""
    if not isinstance(error, psycopg.OperationalError) or error.sqlstate is not None:
        return False
    message, _, each = str(error).partition("All failures were:\n- ")
    by_host: dict[str, bool] = {}
    for line in each.split("\n- ") if each else [message]:
        host = line.partition(", hostaddr:")[0] if each else ""  # it may have several addresses, not all of them in use
        by_host[host] = by_host.get(host, False) or _find_refusal(line) is not None
    return all(by_host.values())


def find_invalid_option(error: BaseException) -> str:
    """Return the option of the address that the client library rejects, or ""."""
    if not isinstance(error, psycopg.OperationalError | psycopg.ProgrammingError) or error.sqlstate is not None:
        return ""
    found = _INVALID_OPTION.search(str(error))
    return next(filter(None, found.groups())) if found else ""


def is_replica_conflict(error: BaseException) -> bool:
    """Return whether a replica cancelled a query because it had to apply changes of its primary."""
    return getattr(error, "sqlstate", None) in ("40001", "40P01", "57P04")


def is_replica_unusable(error: BaseException) -> bool:
    """Return whether this is not a replica of this database, or it refuses the login."""
    return bool(find_invalid_option(error)) or is_login_refused(error) or getattr(error, "sqlstate", None) in _NO_REPLICA


def translate(error: BaseException, url: str = URL) -> BaseException:
    """Return an error of PostgreSQL as one of Holdfast's; anything else as it is. `url` is the setting that was used."""
    if isinstance(error, UnicodeEncodeError):
        return InvalidText("this text cannot be stored in PostgreSQL", "Remove characters that are not valid Unicode")
    if not isinstance(error, psycopg.Error):
        return error
    if option := find_invalid_option(error):
        return ConfigError(f"the value of {option} in {url} is not valid", f"Correct the {option}")
    if is_login_refused(error):
        return _find_refusal(str(error), url=url) or Trouble(
            "the database rejected the statement", "See the log of the database server"
        )
    if is_connection_lost(error):
        return RetryLater(f"the database cannot be reached ({_describe_kind(error)})", retry_or_correct(url))
    return _translate_state(error, error.sqlstate or "", url)


def retry_or_correct(url: str = URL) -> str:
    """Return the fix where no server answers: it may be down, or the address may be wrong."""
    return f"Try again in a moment, or correct {url} ({_VARIABLES[url]})"


def _find_refusal(message: str = "", state: str = "", url: str = URL) -> ConfigError | None:
    """Return why the server refuses the login, by its message or its SQLSTATE."""
    for pattern, known_state, problem, fix in _REFUSALS:
        if re.search(pattern, message) if message else known_state and state.startswith(known_state):
            return ConfigError(problem.format(url=url), fix.format(url=url))
    return None


def _describe_kind(error: psycopg.Error) -> str:
    """Return the kind of the error, or why no server answered; without host names, since agents read this."""
    if error.sqlstate:
        return f"{type(error).__name__}, {error.sqlstate}"
    reason = next(iter(str(error).splitlines()), "no answer").rpartition(": ")[2]
    return re.sub(r'\s*"[^"]*"', "", reason).strip()[:200]  # in quotes are names


def _translate_state(error: psycopg.Error, state: str, url: str) -> HoldfastError:
    kind = f"{type(error).__name__}, {state}"
    if state in _CONFLICTS:
        return RetryLater(_CONFLICTS[state], "Try again in a moment")
    if state == "55P03":
        return Busy("another transaction has locked the same rows for too long", "Try again in a moment")
    if state == "57014":
        return Busy(
            "the statement took longer than store.statement_seconds allows", "Request less, or raise store.statement_seconds"
        )
    if state.startswith("53"):
        trouble = DiskTrouble(f"the database has run out of space or memory ({kind})", "Free some and try again")
        trouble.full = state == "53100"
        return trouble
    if state.startswith(("58", "XX001", "XX002")):
        return Damaged(f"the database cannot read or write its files ({kind})", "See the log of the database server")
    if refused := _find_refusal(state=state, url=url):
        return refused
    if state in _NO_SCHEMA:
        fix = Template(phrase("migrate", "Run `holdfast migrate`"))
        return Trouble(f"the database schema does not match this version of Holdfast ({kind})", fix)
    if state == "42501":
        return Denied("the database denied permission", f"Grant holdfast_app to the login of {url}")
    if state == "23505":
        return Conflict("another process wrote the same at the same time", "Try again")
    if isinstance(error, psycopg.DataError) and state in ("", "22021", "22P05"):
        return InvalidText("this cannot be stored in PostgreSQL", "Remove NUL characters and invalid Unicode")
    return Trouble(f"the database rejected the statement ({kind})", "See the log of the database server")
