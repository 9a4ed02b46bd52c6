"""The address of a PostgreSQL store and the caller: what every transaction begins with."""

from __future__ import annotations

from holdfast.base.ids import is_name
from holdfast.base.record import Record
from holdfast.config import hide_password, is_store
from holdfast.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.config import Config

ANYBODY = "*"  # the agent that sees the scopes of all agents


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


def settings_of(config: Config, agent: str | None, all_agents: bool) -> PostgresSettings:
    """Return the store that the settings name, for this caller."""
    if config.store_read and not config.store:
        raise ConfigError(
            "store.read_url names a replica, and store.url names nothing that it could be a replica of",
            "Set store.url (HOLDFAST_STORE), or take store.read_url (HOLDFAST_STORE_READ) out",
        )
    if not is_store(config.store):
        raise ConfigError("store.url is not the address of a PostgreSQL", "Write it as postgresql://user@host:5432/database")
    if not is_name(config.tenant):
        raise ConfigError(f"store.tenant cannot be {config.tenant!r}", "Use letters, digits, dots, dashes and underscores")
    return PostgresSettings(
        url=config.store or "",
        read_url=config.store_read or "",
        tenant=config.tenant,
        agent=ANYBODY if all_agents else agent or "",
        connections=config.store_connections,
        statement_seconds=config.store_seconds,
    )
