"""The settings of a PostgreSQL store, and the connection parameters that its address means."""

from __future__ import annotations

import psycopg
from psycopg.conninfo import conninfo_to_dict

from holdfast.base.ids import is_name
from holdfast.base.record import Record
from holdfast.config import hide_password, is_store
from holdfast.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.config import Config

ALL_AGENTS = "*"  # the agent that sees the scopes of all agents
CONNECT_SECONDS = 5  # per host, where the address does not say


class PostgresSettings(Record):
    """The address of a store, and the tenant and agent that use it."""

    url: str
    read_url: str = ""
    tenant: str = "default"
    agent: str = ""
    connections: int = 10
    statement_seconds: float = 30

    def __repr__(self) -> str:
        """Return the fields without passwords."""
        shown = self.replace(url=hide_password(self.url), read_url=hide_password(self.read_url))
        return repr(shown) if shown != self else super().__repr__()


def make_settings(config: Config, agent: str | None, all_agents: bool) -> PostgresSettings:
    """Return the store that the settings name, for this caller."""
    if config.store_read and not config.store:
        raise ConfigError(
            "store.read_url is set, but store.url is not",
            "Set store.url (HOLDFAST_STORE), or remove store.read_url (HOLDFAST_STORE_READ)",
        )
    if not is_store(config.store):
        raise ConfigError("store.url is not a PostgreSQL address", "Write it as postgresql://user@host:5432/database")
    if not is_name(config.tenant):
        raise ConfigError(f"store.tenant cannot be {config.tenant!r}", "Use letters, digits, dots, dashes and underscores")
    return PostgresSettings(
        url=config.store or "",
        read_url=config.store_read or "",
        tenant=config.tenant,
        agent=ALL_AGENTS if all_agents else agent or "",
        connections=config.store_connections,
        statement_seconds=config.store_seconds,
    )


# --- the address ----------------------------------------------------------------------------------------------------


def connection_parameters(url: str, primary: bool = True) -> dict[str, Any]:
    """Return the parameters to connect with: those of the URL, and defaults that detect a dead server soon."""
    try:
        parameters = conninfo_to_dict(url)
        [int(port) for port in str(parameters.get("port") or 5432).split(",") if port]
    except (psycopg.Error, ValueError):
        name = "store.url" if primary else "store.read_url"
        raise ConfigError(f"{name} is not a valid address", "Write it as postgresql://user@host:5432/database") from None
    if primary and "," in str(parameters.get("host", "")):
        parameters.setdefault("target_session_attrs", "read-write")  # of several hosts, the one that accepts writes
    defaults: dict[str, Any] = {"application_name": "holdfast", "connect_timeout": CONNECT_SECONDS, "tcp_user_timeout": 20_000}
    defaults |= {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
    always = {"client_encoding": "utf8", "autocommit": True, "prepare_threshold": None}
    return {**defaults, **{name: value for name, value in parameters.items() if value is not None}, **always}


def host_count(parameters: dict[str, Any]) -> int:
    """Return how many hosts the parameters name."""
    return str(parameters.get("host", "")).count(",") + 1


def connect_timeout(url: str) -> int:
    """Return the connect_timeout of the URL in seconds; 0 where it has none, or one that is not a number."""
    try:
        return max(int(str(conninfo_to_dict(url).get("connect_timeout", 0))), 0)
    except (psycopg.Error, ValueError):
        return 0


def with_timeout(parameters: dict[str, Any], seconds: int) -> dict[str, Any]:
    """Return the parameters with a connect_timeout of at most this many seconds per host."""
    try:
        usual = int(str(parameters["connect_timeout"]))
    except ValueError:
        return parameters  # the client library reports it
    return {**parameters, "connect_timeout": min(seconds, usual) if usual > 0 else seconds}


def same_server(parameters: dict[str, Any], connection: psycopg.Connection[Any]) -> dict[str, Any]:
    """Return the parameters to reach the very server that this connection leads to."""
    info = connection.info
    address = {**parameters, "host": info.host, "port": info.port}
    if "hostaddr" in address:
        address["hostaddr"] = info.hostaddr
    return address
