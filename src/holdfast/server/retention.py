"""Archive expired notes of every tenant that sends requests, once per process. A home on disk does this beside MCP."""

from __future__ import annotations

import logging
import threading
from collections import deque

from holdfast.api.memory import Memory
from holdfast.base import totals
from holdfast.config import Config
from holdfast.models import SCOPES
from holdfast.verbs.archive import describe_archived

_CLOSE_SECONDS = 2.0
_log = logging.getLogger("holdfast.retention")
_log.setLevel(logging.INFO)  # the server logs warnings of other loggers only


class TenantRetention:
    """Archive one tenant after the other in a thread, so that no request waits for it or fails because of it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: set[str] = set()
        self._queue: deque[Config] = deque()
        self._thread: threading.Thread | None = None  # while there is something to do
        self._closed = False

    def begin(self, settings: Config) -> None:
        """Queue the tenant of these settings, unless it was done in this process."""
        if not settings.store or not settings.enabled or settings.tenant in self._seen:
            return
        with self._lock:
            if settings.tenant in self._seen or self._closed:
                return
            self._seen.add(settings.tenant)
            self._queue.append(settings.replace(allowed_scopes=SCOPES))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Wait shortly for the tenant under way; the next process does the others."""
        with self._lock:
            self._closed = True
            self._queue.clear()
            thread = self._thread
        if thread is not None:
            thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        while (settings := self._next()) is not None:
            self._archive(settings)

    def _next(self) -> Config | None:
        with self._lock:
            if self._queue:
                return self._queue.popleft()
            self._thread = None
            return None

    def _archive(self, settings: Config) -> None:
        try:
            with Memory(config=settings, project="retention", origin="user") as memory:
                archived = memory.retain()
            for line in describe_archived([note.scope.kind for note in archived], settings):
                _log.info("tenant %s: %s", settings.tenant, line)
        except Exception as error:  # the other tenants must have their turn, whatever it is
            totals.add("holdfast_background_failures_total", work="retention")
            _log.warning("tenant %s: retention failed: %s", settings.tenant, getattr(error, "code", type(error).__name__))
            with self._lock:
                self._seen.discard(settings.tenant)  # the tenant's next request tries again
