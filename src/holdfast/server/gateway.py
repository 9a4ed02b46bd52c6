"""Shared state of all requests: current settings, the access gate, ledgers, and memories that stay open between requests."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from holdfast import config
from holdfast import home as home_folder
from holdfast.access import AccessGate, Caller, Role
from holdfast.access.quota import find_quota
from holdfast.api.memory import Memory, context_of, memory_of
from holdfast.api.memory_cache import BackendPool, MemoryCache
from holdfast.base import totals
from holdfast.base.record import Record
from holdfast.config import Config
from holdfast.context.caller import Backend, Context, open_backend
from holdfast.context.ledgers import Ledgers
from holdfast.errors import HoldfastError, NoScope, no_space
from holdfast.ledger.interface import Ledger
from holdfast.models import SCOPES, Progress
from holdfast.server.audit_shipper import AuditShipper
from holdfast.server.health import Health, check_disk
from holdfast.server.metrics import Metrics
from holdfast.server.problem import in_request
from holdfast.server.retention import TenantRetention
from holdfast.server.shared_counters import SharedCounters
from holdfast.server.traffic import Traffic
from holdfast.verbs.batching import WriteQueue

if TYPE_CHECKING:
    from holdfast.errors import Wording

CLIENT = "http"
_OPEN_MEMORIES = 256  # of callers, each with its project and session
_WRITER_LOCK_SECONDS = 2.0  # for a scope that another process holds: stores to other scopes wait meanwhile
_POSTGRES_WRITERS = 3  # threads of a tenant that write batches of stores: one waits for its commit meanwhile
_READINESS_SECONDS = 1.0  # how long a readiness check waits for a lock
_FULL_SECONDS = 15.0  # after PostgreSQL refused a write for lack of space: only the next write shows whether it has space again


class Target(Record):
    """The project and session that a request is about, and the agent where it is not the caller's own."""

    project: str | None = None
    session: str | None = None
    agent: str | None = None

    def must_name(self, scope: str | None) -> None:
        """Raise `NoScope` for the scope `project` without a project: none is guessed."""
        if scope == "project" and not self.project:
            fix = "Send X-Holdfast-Project, or use the scope agent"
            raise NoScope("the request names no project", fix)


class Gateway:
    """One home or store, for many agents."""

    def __init__(
        self, home: str | None = None, given: Mapping[str, Any] | None = None, *, shared: SharedCounters | None = None,
        worker: int = 0,
    ) -> None:  # fmt: skip
        self.home = config.find_home(home)
        self.given = dict(given or {})  # settings of the command line; they override those of the home
        self.worker = worker  # its number among the processes that share the counters
        self.metrics = Metrics(shared, worker)
        self.metrics.skip(totals.read())  # of the parent process
        self.traffic = Traffic(self.metrics.sum_requests)
        self._lock = threading.Lock()
        self._memories = MemoryCache(_OPEN_MEMORIES)
        self._backends = BackendPool(self._open_backend, _OPEN_MEMORIES)
        self._write_queues: dict[str, WriteQueue] = {}  # by tenant
        self._no_project = f"none-{os.urandom(8).hex()}"  # an id under which there are no notes
        self._retention = TenantRetention()
        self.health = Health(database=self._check_database, disk=self._check_disk)
        self._refused_at: float | None = None  # when the database last refused a write for lack of space
        self.audit_shipper: AuditShipper | None = None  # while the app runs
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
                    self._close_memories()  # requests under way keep theirs, with the settings it was opened with
                    for one in before:  # after the memories, which write to these ledgers
                        one.close()  # a decision under way opens it again
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
        """Return the settings for the caller's tenant. The GitHub token in them is for the gateway's own tenant only."""
        now = self.config()
        if not now.store or caller.tenant == now.tenant:
            return now
        return now.replace(tenant=caller.tenant, github_token=None)

    def is_own_tenant(self, caller: Caller) -> bool:
        """Return whether the caller belongs to the gateway's own tenant, whose people may read what the process counts."""
        return self.config_of(caller) == self.config()

    def ledger_of(self, caller: Caller) -> Ledger:
        """Return the ledger of the caller's tenant; an agent sees only its own done records."""
        return self._ledgers.of(caller.tenant, None if caller.is_person else caller.agent)

    @contextmanager
    def open_memory(
        self, caller: Caller, role: Role, target: Target, scopes: tuple[str, ...], *, read_only: bool = False,
        words: Wording = in_request,
    ) -> Iterator[Memory]:  # fmt: skip
        """Open the caller's memory for one request, in these scopes. If `read_only`, archived notes stay in the archive.

        Its texts for models name commands in these `words`."""
        cache_key, settings = self._settings_for(caller, role, scopes, read_only)
        agent = target.agent or (caller.agent if caller.has_memory else None)
        origin = "user" if caller.is_person else "agent"
        self._retention.begin(settings)
        queue = self._write_queue_of(settings)

        def make_context(backend: Backend | None = None) -> Context:
            return Context(
                settings, project=target.project or self._no_project, session=target.session, agent=agent, client=CLIENT,
                origin=origin, cwd=None, progress=Progress(), words=words, backend=backend, write_queue=queue,
            )  # fmt: skip

        key = (cache_key, agent, origin, target.project, target.session, words)
        if settings.store or settings.store_read:
            lent = self._memories.lend(key, lambda: memory_of(_defer_uses(make_context())))
        else:
            lent = self._backends.lend(key, make_context)
        with lent as memory:
            yield memory

    def _settings_for(self, caller: Caller, role: Role, scopes: tuple[str, ...], read_only: bool) -> tuple[object, Config]:
        """Return a caller's settings and an object that represents them, which is faster to hash than all settings."""
        quota = find_quota(caller, role, self._config)
        known, key = self._known_settings, (caller.tenant, scopes, read_only, quota.notes, quota.bytes)
        if key not in known:
            known[key] = (
                object(),
                self.config_of(caller).replace(
                    allowed_scopes=scopes, read_only=read_only, most_notes=quota.notes, most_bytes=quota.bytes
                ),
            )
        return known[key]

    # --- health and metrics -------------------------------------------------------------------------------------------

    @property
    def readiness_ledger(self) -> Ledger:
        """Return the ledger of the gateway's own tenant, for calls that must not wait long."""
        return self._readiness_ledgers.of(self.config().tenant)

    def _check_database(self) -> None:
        """Raise if no caller could be authenticated now, or if PostgreSQL accepts no writes."""
        self.readiness_ledger.check_ready()

    def _check_disk(self) -> None:
        """Raise if memory cannot be written: the home's disk is full, or PostgreSQL's was just now."""
        if not self.config().store:
            check_disk(self.home)
        elif self._refused_at is not None and time.monotonic() - self._refused_at < _FULL_SECONDS:
            raise no_space("the database has run out of space")

    def record_disk_trouble(self) -> None:
        """Record that a request failed because the disk is full."""
        self._refused_at = time.monotonic()

    @contextmanager
    def open_whole_memory(self) -> Iterator[Memory]:
        """Open the memory of the gateway's own tenant in all scopes, to count what is in it."""
        settings = self.config().replace(allowed_scopes=SCOPES, lock_seconds=1)
        with self._memories.lend(
            "whole", lambda: Memory(config=settings, project=self._no_project, origin="user", client=CLIENT)
        ) as memory:
            yield memory

    def close(self) -> None:
        """Close everything; requests under way finish first."""
        self._close_memories()
        self._retention.close()
        for one in self._closables():
            one.close()

    def _write_queue_of(self, settings: Config) -> WriteQueue:
        """Return the queue of a tenant's stores; on PostgreSQL its transactions may write for every agent of the tenant."""
        tenant = settings.tenant if settings.store else ""
        if tenant not in self._write_queues:
            with self._lock:
                if tenant not in self._write_queues:
                    own = settings.replace(
                        allowed_scopes=SCOPES, read_only=False, lock_seconds=min(settings.lock_seconds, _WRITER_LOCK_SECONDS)
                    )
                    contexts = [
                        Context(
                            own, project=self._no_project, session=None, agent=None, client=CLIENT, origin="user", cwd=None,
                            progress=Progress(), backend=None if settings.store else self._open_backend(),
                        )
                        for _ in range(_POSTGRES_WRITERS if settings.store else 1)
                    ]  # fmt: skip
                    self._write_queues[tenant] = WriteQueue(*contexts)
        return self._write_queues[tenant]

    def write_deferred(self) -> None:
        """Write the uses of notes and the index.md files since the last call; requests do not wait for that."""
        for queue in list(self._write_queues.values()):
            queue.write_listings()
        on_postgres = [context_of(memory).ledger for memory in self._memories.list_open()]
        for ledger in on_postgres if self._config.store else [self.gate.ledger]:
            ledger.usage.write_deferred()

    def count_waiting_stores(self) -> int:
        """Return the number of notes in the write queues."""
        return sum([len(queue) for queue in list(self._write_queues.values())])

    def _open_backend(self) -> Backend:
        return open_backend(self._config, agent=None, all_agents=False, progress=Progress(), ledger=self._gate.ledger)

    def _close_memories(self) -> None:
        self._memories.clear()
        self._backends.clear()
        queues, self._write_queues = self._write_queues, {}
        for queue in queues.values():
            queue.close()

    def _load_settings(self, old_gate: AccessGate | None = None) -> None:
        self._config = config.load(self.home).replace(
            project=None, session=None, agent=None, client=None, by_token=True, **self.given
        )
        self._known_settings: dict[tuple[object, ...], tuple[object, Config]] = {}
        self._gate, self._ledgers = AccessGate(self._config), Ledgers(self._config)
        if old_gate is not None:
            self._gate.missed, self._gate.failed_authentications = old_gate.missed, old_gate.failed_authentications
        self._readiness_ledgers = Ledgers(self._config, _READINESS_SECONDS)
        if not self._config.store:
            self._gate.ledger.usage.defer()
        if self._config.store:  # memory is elsewhere, but decisions that could not be recorded are logged in the home
            with suppress(HoldfastError):
                home_folder.check_owner(self.home, create=True)

    def _closables(self) -> tuple[AccessGate, Ledgers, Ledgers]:
        return self._gate, self._ledgers, self._readiness_ledgers


def _defer_uses(context: Context) -> Context:
    context.ledger.usage.defer()
    return context
