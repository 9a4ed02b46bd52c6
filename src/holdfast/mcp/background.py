"""What a process that stays does beside its calls: retention once (N11), and recalls of commands and hooks that come and go."""

from __future__ import annotations

import logging
import sys
import threading
from typing import Any

from holdfast import home
from holdfast.api.memory import Memory
from holdfast.api.resident import Resident
from holdfast.errors import HoldfastError
from holdfast.mcp.handlers import sound
from holdfast.mcp.memories import Memories
from holdfast.verbs.archive import describe_archived

_PARTING_SECONDS = 2.0
_log = logging.getLogger("holdfast.verbs.retention")
_log.setLevel(logging.INFO)


class Alongside:
    """Starts once there is a home to look after; never in the way of a call, never a reason to fail."""

    def __init__(self, memories: Memories) -> None:
        self._memories = memories
        self._begun = False
        self._staying: Resident | None = None
        self._threads: list[threading.Thread] = []

    def begin(self) -> None:
        """In threads that end with the process."""
        if self._begun:
            return
        try:
            settings = self._memories.config()
        except HoldfastError:
            return  # the first call says what is wrong with them
        if settings.enabled and not settings.url and (settings.store or home.exists(settings.home)):
            self._begun = True  # a gateway that is asked over HTTP looks after its own
            for work in (self._retain,) if settings.store else (self._retain, self._stay):
                self._threads.append(threading.Thread(target=self._quietly, args=(work,), daemon=True))
                self._threads[-1].start()

    def end(self) -> None:
        """Stop listening; what is under way may finish, but nobody waits long for it."""
        if self._staying is not None:
            self._staying.stop()
        for thread in self._threads:
            thread.join(_PARTING_SECONDS)

    def _retain(self) -> None:
        with Memory(config=self._memories.config(), project="retention", origin="user") as memory:
            archived = memory.retain()
        for line in describe_archived([note.scope.kind for note in archived], memory.config):
            _say(line)

    def _stay(self) -> None:
        """Answer for others, if nobody does yet; Busy means that somebody does."""
        self._staying = Resident(self._memories.config().home, self._opened)
        self._staying.serve()

    def _opened(self, **whose: Any) -> Memory:
        """The memory of somebody else, by the settings as they are then; of ours only the home counts."""
        settings = self._memories.config().replace(project=None, session=None, agent=None, client=None)
        return Memory(config=settings, **whose)

    def _quietly(self, work: Any) -> None:
        try:
            work()
        except HoldfastError:
            pass  # `holdfast doctor` shows what is wrong with a home
        except Exception as error:
            sys.stderr.write(sound(f"holdfast mcp: {type(error).__name__}: {error}\n"))


def _say(line: str) -> None:
    """To the log of the gateway, where that runs us; else to stderr, which clients keep as the log of an MCP server."""
    if logging.getLogger().handlers:
        _log.info("%s", line)
    else:
        sys.stderr.write(sound(f"holdfast mcp: {line}\n"))
