"""Background work of a server process: retention once at the start, and the resident process for commands and hooks."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holdfast import home
from holdfast.api.memory import Memory
from holdfast.api.resident import Resident
from holdfast.base import totals
from holdfast.errors import HoldfastError
from holdfast.safety.model_text import show_hidden
from holdfast.verbs.archive import describe_archived

if TYPE_CHECKING:
    from holdfast.mcp.calls import Memories

_SHUTDOWN_SECONDS = 2.0
_log = logging.getLogger("holdfast.retention")
_log.setLevel(logging.INFO)


class BackgroundWork:
    """Threads that start once there is a home. They never block a call, and their failure never ends the process."""

    def __init__(self, memories: Memories) -> None:
        self._memories = memories
        self._is_started = False
        self._resident: Resident | None = None
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the threads if there is a home and they do not run yet."""
        if self._is_started:
            return
        try:
            settings = self._memories.config()
        except HoldfastError:
            return  # the first call reports the error in the settings
        if settings.enabled and not settings.url and (settings.store or home.exists(settings.home)):
            self._is_started = True  # a gateway does this work itself
            for work in (self._retain,) if settings.store else (self._retain, self._serve_resident):
                self._threads.append(threading.Thread(target=self._run, args=(work,), daemon=True))
                self._threads[-1].start()

    def stop(self) -> None:
        """Stop the resident process and wait briefly for work that runs."""
        if self._resident is not None:
            self._resident.stop()
        for thread in self._threads:
            thread.join(_SHUTDOWN_SECONDS)

    def _retain(self) -> None:
        try:
            self._archive()
        except Exception as error:
            totals.add("holdfast_background_failures_total", work="retention")
            if logging.getLogger().handlers:  # of a gateway; a client is told by `holdfast doctor`
                _log.warning("retention failed: %s", getattr(error, "code", type(error).__name__))
            raise

    def _archive(self) -> None:
        with Memory(config=self._memories.config(), project="retention", origin="user") as memory:
            archived = memory.retain()
        for line in describe_archived([note.scope.kind for note in archived], memory.config):
            _log_line(line)

    def _serve_resident(self) -> None:
        """Answer commands and hooks, unless another process does: then it raises `Busy`."""
        self._resident = Resident(self._memories.config().home, self._open_memory)
        self._resident.serve()

    def _open_memory(self, **caller: Any) -> Memory:
        """Return the memory of another caller with the current settings; it shares only the home with this process."""
        settings = self._memories.config().replace(project=None, session=None, agent=None, client=None)
        return Memory(config=settings, **caller)

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except HoldfastError:
            pass  # `holdfast doctor` shows what is wrong with a home
        except Exception as error:
            sys.stderr.write(show_hidden(f"holdfast mcp: {type(error).__name__}: {error}\n"))


def _log_line(line: str) -> None:
    """Write to the gateway's log if there is one, else to stderr, which clients keep as the log of an MCP server."""
    if logging.getLogger().handlers:
        _log.info("%s", line)
    else:
        sys.stderr.write(show_hidden(f"holdfast mcp: {line}\n"))
