"""What expired is archived in the memory of every tenant that asks, once a process (N11). A home is seen to beside MCP."""

from __future__ import annotations

import logging
import threading
from collections import deque

from holdfast.api.memory import Memory
from holdfast.config import Config
from holdfast.models import SCOPES
from holdfast.verbs.archive import describe_archived

_PARTING_SECONDS = 2.0
_log = logging.getLogger("holdfast.verbs.retention")
_log.setLevel(logging.INFO)  # the server's log keeps warnings of others, and this


class Tending:
    """One tenant after the other, in a thread of its own; never in the way of a request, never a reason to fail."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._seen: set[str] = set()
        self._waiting: deque[Config] = deque()
        self._thread: threading.Thread | None = None  # while there is something to do
        self._ended = False

    def begin(self, settings: Config) -> None:
        """See to the tenant of these settings, unless that was done."""
        if not settings.store or not settings.enabled or settings.tenant in self._seen:
            return
        with self._guard:
            if settings.tenant in self._seen or self._ended:
                return
            self._seen.add(settings.tenant)
            self._waiting.append(settings.replace(allowed_scopes=SCOPES))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True)
                self._thread.start()

    def end(self) -> None:
        """What is under way may finish, but nobody waits long for it; what waits is left to the next process."""
        with self._guard:
            self._ended = True
            self._waiting.clear()
            thread = self._thread
        if thread is not None:
            thread.join(_PARTING_SECONDS)

    def _work(self) -> None:
        while (settings := self._next()) is not None:
            self._tend(settings)

    def _next(self) -> Config | None:
        with self._guard:
            if self._waiting:
                return self._waiting.popleft()
            self._thread = None
            return None

    def _tend(self, settings: Config) -> None:
        try:
            with Memory(config=settings, project="retention", origin="user") as memory:
                archived = memory.retain()
            for line in describe_archived([note.scope.kind for note in archived], settings):
                _log.info("tenant %s: %s", settings.tenant, line)
        except Exception:  # whatever it is, the tenants behind this one have their turn
            with self._guard:
                self._seen.discard(settings.tenant)  # the next request of this tenant tries it again
