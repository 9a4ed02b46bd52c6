"""Shared state of all requests: current settings, the access gate, ledgers, and memories that stay open between requests."""

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
from holdfast.api.memory import Memory
from holdfast.api.memory_cache import MemoryCache
from holdfast.base.record import Record
from holdfast.config import Config
from holdfast.context.ledgers import Ledgers
from holdfast.errors import HoldfastError, NoScope
from holdfast.ledger.interface import Ledger
from holdfast.server.audit_shipper import AuditShipper, ShipCounts
from holdfast.server.metrics import Metrics
from holdfast.server.retention import TenantRetention

CLIENT = "http"
_OPEN_MEMORIES = 64
_READINESS_SECONDS = 1.0  # how long a readiness check waits for a lock, and for how long its result is kept


class Target(Record):
    """The project and session that a request is about, and the agent where it is not the caller's own."""

    project: str | None = None
    session: str | None = None
    agent: str | None = None

    def must_name(self, scope: str | None) -> None:
        """Raise `NoScope` for the scope `project` without a project: none is guessed."""
        if scope == "project" and not self.project:
            fix = "Send X-Holdfast-Project, or use the scope agent"
            raise NoScope("no project is named, and nothing falls into another scope", fix)


class Gateway:
    """One home or store, for many agents."""

    def __init__(self, home: str | None = None, given: Mapping[str, Any] | None = None) -> None:
        self.home = config.find_home(home)
        self.given = dict(given or {})  # settings of the command line; they override those of the home
        self.metrics = Metrics()
        self._lock = threading.Lock()
        self._memories = MemoryCache(_OPEN_MEMORIES)
        self._no_project = f"none-{os.urandom(8).hex()}"  # an id under which there are no notes
        self._retention = TenantRetention()
        self.audit_shipper: AuditShipper | None = None  # while the app runs
        self._ready_at = -1.0
        self._settings_file_id = config.read_config_file_id(self.home)
        self._load_settings()

    def config(self) -> Config:
        """Return the current settings, read again if their file changed: a person may disable memory while we run."""
        if config.read_config_file_id(self.home) != self._settings_file_id:
            with self._lock:
                file_id = config.read_config_file_id(self.home)
                if file_id != self._settings_file_id:  # no other thread has read them since
                    before = self._closables()
                    self._load_settings(self._gate)
                    self._settings_file_id = file_id
                    for one in before:
                        one.close()  # a decision under way opens it again
                    self._memories.clear()  # requests under way keep theirs, with the settings it was opened with
        return self._config

    @property
    def settings(self) -> Config:
        """Return the settings as last read, without access to the disk."""
        return self._config

    @property
    def gate(self) -> AccessGate:
        self.config()
        return self._gate

    def config_of(self, caller: Caller) -> Config:
        """Return the settings for the caller's tenant."""
        now = self.config()
        return now.replace(tenant=caller.tenant) if now.store else now

    def ledger_of(self, caller: Caller) -> Ledger:
        """Return the ledger of the caller's tenant; an agent sees only its own done records."""
        return self._ledgers.of(caller.tenant, None if caller.is_person else caller.agent)

    @contextmanager
    def open_memory(
        self, caller: Caller, target: Target, scopes: tuple[str, ...], *, settings: Config | None = None,
        read_only: bool = False,
    ) -> Iterator[Memory]:  # fmt: skip
        """Open the caller's memory for one request, in these scopes. If `read_only`, archived notes stay in the archive."""
        if settings is None:
            cache_key, settings = self._settings_for(caller, scopes, read_only)
        else:
            cache_key = settings = settings.replace(allowed_scopes=scopes)
        agent, origin = target.agent or caller.agent, "user" if caller.is_person else "agent"
        key = (cache_key, agent, origin, target.project, target.session)
        self._retention.begin(settings)
        with self._memories.lend(key, lambda: self._create_memory(settings, agent, origin, target)) as memory:
            yield memory

    def _settings_for(self, caller: Caller, scopes: tuple[str, ...], read_only: bool) -> tuple[object, Config]:
        """Return a caller's settings and an object that represents them, which is faster to hash than all settings."""
        known, key = self._known_settings, (caller.tenant, scopes, read_only)
        if key not in known:
            known[key] = object(), self.config_of(caller).replace(allowed_scopes=scopes, read_only=read_only)
        return known[key]

    def check_ready(self) -> None:
        """Raise if no caller could be authenticated now; checked at most once a second, because the request needs no token."""
        if time.monotonic() - self._ready_at > _READINESS_SECONDS:
            self._readiness_ledgers.of(self.config().tenant).agents.find_tokens([""])
            self._ready_at = time.monotonic()

    def close(self) -> None:
        """Close everything; requests under way finish first."""
        self._memories.clear()
        self._retention.close()
        for one in self._closables():
            one.close()

    def audit_counters(self) -> dict[str, int]:
        """Return what this process counts about its audit, by the names of the metrics."""
        shipped = self.audit_shipper.counts if self.audit_shipper is not None else ShipCounts()
        return {
            "holdfast_audit_failed_authentications_total": self._gate.failed_authentications.total,
            "holdfast_audit_shipped_total": shipped.rows,
            "holdfast_audit_ship_failures_total": shipped.failures,
            "holdfast_audit_ship_waiting": shipped.waiting,
        }

    def _load_settings(self, old_gate: AccessGate | None = None) -> None:
        self._config = config.load(self.home).replace(
            project=None, session=None, agent=None, client=None, batch_writes=True, **self.given
        )
        self._known_settings: dict[tuple[str, tuple[str, ...], bool], tuple[object, Config]] = {}
        self._gate, self._ledgers = AccessGate(self._config), Ledgers(self._config)
        if old_gate is not None:
            self._gate.missed, self._gate.failed_authentications = old_gate.missed, old_gate.failed_authentications
        self._readiness_ledgers = Ledgers(self._config, _READINESS_SECONDS)
        if self._config.store:  # memory is elsewhere, but decisions that could not be recorded are logged in the home
            with suppress(HoldfastError):
                home_folder.check_owner(self.home, create=True)

    def _closables(self) -> tuple[AccessGate, Ledgers, Ledgers]:
        return self._gate, self._ledgers, self._readiness_ledgers

    def _create_memory(self, settings: Config, agent: str, origin: str, target: Target) -> Memory:
        return Memory(
            config=settings, agent=agent, project=target.project or self._no_project, session=target.session, client=CLIENT,
            origin=origin,
        )  # fmt: skip
