"""Connection parameters from the address of a store."""

from __future__ import annotations

import psycopg
from psycopg.conninfo import conninfo_to_dict

from holdfast.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONNECT_SECONDS = 5  # per host, where the address does not say


def parameters(url: str, primary: bool = True) -> dict[str, Any]:
    """Return the parameters to connect with: those of the URL, and defaults that detect a dead server soon."""
    try:
        given = conninfo_to_dict(url)
        [int(port) for port in str(given.get("port") or 5432).split(",") if port]
    except (psycopg.Error, ValueError):
        name = "store.url" if primary else "store.read_url"
        raise ConfigError(f"{name} is not a valid address", "Write it as postgresql://user@host:5432/database") from None
    if primary and "," in str(given.get("host", "")):
        given.setdefault("target_session_attrs", "read-write")  # of several hosts, the one that accepts writes
    defaults: dict[str, Any] = {"application_name": "holdfast", "connect_timeout": CONNECT_SECONDS, "tcp_user_timeout": 20_000}
    defaults |= {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
    always = {"client_encoding": "utf8", "autocommit": True, "prepare_threshold": None}
    return {**defaults, **{name: value for name, value in given.items() if value is not None}, **always}


def host_count(given: dict[str, Any]) -> int:
    """Return how many hosts the parameters name."""
    return str(given.get("host", "")).count(",") + 1


def connect_timeout(url: str) -> int:
    """Return the connect_timeout of the URL in seconds; 0 where it has none, or one that is not a number."""
    try:
        return max(int(str(conninfo_to_dict(url).get("connect_timeout", 0))), 0)
    except (psycopg.Error, ValueError):
        return 0


def with_timeout(given: dict[str, Any], seconds: int) -> dict[str, Any]:
    """Return the parameters with a connect_timeout of at most so many seconds per host."""
    try:
        usual = int(str(given["connect_timeout"]))
    except ValueError:
        return given  # the client library reports it
    return {**given, "connect_timeout": min(seconds, usual) if usual > 0 else seconds}


def same_server(given: dict[str, Any], connection: psycopg.Connection[Any]) -> dict[str, Any]:
    """Return the parameters to reach the very server that this connection leads to."""
    info = connection.info
    address = {**given, "host": info.host, "port": info.port}
    if "hostaddr" in address:
        address["hostaddr"] = info.hostaddr
    return address
