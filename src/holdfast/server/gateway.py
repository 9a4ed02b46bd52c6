"""What all requests share: the settings as they are now, the porter, the ledger, and memories that stay open between calls."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from holdfast import config
from holdfast import home as home_folder
from holdfast.access import AccessGate, Caller
from holdfast.access.gate import Missed
from holdfast.api.memory import Memory
from holdfast.api.memory_cache import MemoryCache
from holdfast.base.record import Record
from holdfast.config import Config
from holdfast.context.ledgers import Ledgers
from holdfast.errors import HoldfastError, NoScope
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.server.metrics import Metrics
from holdfast.server.retention import Tending

CLIENT = "http"
_OPEN = 64  # memories that are kept open
_GLANCE_SECONDS = 1.0  # that who only asks whether we are ready waits


class Target(Record):
    """For which project and session a request speaks; the token says for which agent, unless who manages them names one."""

    project: str | None = None
    session: str | None = None
    agent: str | None = None

    def must_name(self, scope: str | None) -> None:
        """A project that nobody named is not guessed."""
        if scope == "project" and not self.project:
            fix = "Send X-Holdfast-Project, or use the scope agent"
            raise NoScope("no project is named, and nothing falls into another scope", fix)


class Gateway:
    """One home, for many agents."""

    def __init__(self, home: str | None = None, given: Mapping[str, Any] | None = None) -> None:
        self.home = config.find_home(home)
        self.given = dict(given or {})  # settings that the command line says, over those of the home
        self._guard = threading.Lock()
        self._lending = MemoryCache(_OPEN)
        self._nobodys = f"none-{os.urandom(8).hex()}"  # an id that nobody's notes can stand under
        self._stamp = config.config_file_id(self.home)
        self._begin()
        self.metrics = Metrics()
        self._checked = -1.0
        self._tending = Tending()

    def config(self) -> Config:
        """The settings as they are now: a person may switch memory off while we run. Whose memory it is they do not say."""
        if config.config_file_id(self.home) != self._stamp:
            with self._guard:
                stamp = config.config_file_id(self.home)  # another thread may have read the new settings by now
                if stamp != self._stamp:
                    before = self._rooms()
                    self._begin(self._gate.missed)
                    self._stamp = stamp
                    for room in before:
                        room.close()  # whoever is in the middle of a decision opens it again
                    self._lending.let_go()  # those in use go by what they were opened with, to the end of their call
        return self._config

    @property
    def settings(self) -> Config:
        """As they were when somebody last looked."""
        return self._config

    @property
    def gate(self) -> AccessGate:
        self.config()
        return self._gate

    def config_of(self, caller: Caller) -> Config:
        """The same for the caller's tenant: the token says which."""
        now = self.config()
        return now.replace(tenant=caller.tenant) if now.store else now

    def ledger_of(self, caller: Caller) -> SqliteLedger:
        """The caller's tenant's ledger, and of what agents have done there what is the caller's."""
        return self._ledgers.of(caller.tenant, None if caller.is_person else caller.agent)

    @contextmanager
    def lend(
        self, caller: Caller, whose: Target, sees: tuple[str, ...], settings: Config | None = None, read_only: bool = False
    ) -> Iterator[Memory]:
        """The caller's memory for one request, in the scopes that its role has a part in. For a role that may only read,
        reading an archived note does not bring it back."""
        if settings is None:
            which, given = self._seen_by(caller, sees, read_only)
        else:
            which = given = settings.replace(allowed_scopes=sees)
        agent, origin = whose.agent or caller.agent, "user" if caller.is_person else "agent"
        key = (which, agent, origin, whose.project, whose.session)
        self._tending.begin(given)
        with self._lending.lend(key, lambda: self._opened(given, agent, origin, whose)) as memory:
            yield memory

    def _seen_by(self, caller: Caller, sees: tuple[str, ...], read_only: bool) -> tuple[object, Config]:
        """The settings for who sees that much, and what stands for them: so they need not be compared for every request."""
        known = self._known
        if (caller.tenant, sees, read_only) not in known:
            seen = self.config_of(caller).replace(allowed_scopes=sees, read_only=read_only)
            known[caller.tenant, sees, read_only] = object(), seen
        return known[caller.tenant, sees, read_only]

    def check(self) -> None:
        """Raise if nobody could be let in now; looked at once a second at most, since everybody may ask."""
        if time.monotonic() - self._checked > 1:
            self._glance.of(self.config().tenant).agents.presented([""])
            self._checked = time.monotonic()

    def close(self) -> None:
        """Let go of all; calls that still run end in their own time."""
        self._lending.let_go()
        self._tending.end()
        for room in self._rooms():
            room.close()

    def _begin(self, missed: Missed | None = None) -> None:
        """By the settings as they are now."""
        self._config = config.load(self.home).replace(
            project=None, session=None, agent=None, client=None, batch_writes=True, **self.given
        )
        self._known: dict[tuple[str, tuple[str, ...], bool], tuple[object, Config]] = {}
        self._gate, self._ledgers = AccessGate(self._config, missed=missed), Ledgers(self._config)
        self._glance = Ledgers(self._config, _GLANCE_SECONDS)
        if self._config.store:  # memory is elsewhere, but decisions that could not be written down are logged here
            with suppress(HoldfastError):
                home_folder.must_be_ours(self.home, create=True)

    def _rooms(self) -> tuple[AccessGate, Ledgers, Ledgers]:
        return self._gate, self._ledgers, self._glance

    def _opened(self, settings: Config, agent: str, origin: str, whose: Target) -> Memory:
        return Memory(
            config=settings, agent=agent, project=whose.project or self._nobodys, session=whose.session, client=CLIENT,
            origin=origin,
        )  # fmt: skip
