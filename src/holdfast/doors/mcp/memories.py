"""The memories that are open: one a caller, kept for its next call, closed when others need the room and nobody uses it."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast import config
from holdfast.config import Config
from holdfast.doors.mcp.caller import Caller
from holdfast.memory import Memory

_OPEN = 16


class Memories:
    """Lends the memory that a caller means."""

    def __init__(self, home: str | None) -> None:
        self._home = home
        self._guard = threading.Lock()
        self._open: OrderedDict[tuple[Config, Caller], Memory] = OrderedDict()
        self._used: dict[tuple[Config, Caller], int] = {}
        self._nobodys = f"none-{os.urandom(8).hex()}"  # an id that nobody's notes can stand under

    def config(self) -> Config:
        """The settings as they are now: a person may switch memory off while we run."""
        return config.load(self._home)

    @contextmanager
    def lend(self, caller: Caller) -> Iterator[Memory]:
        """The caller's memory for one call."""
        which = (self.config(), caller.replace(found_by=""))
        with self._guard:
            memory = self._open.pop(which, None) or self._opened(*which)
            self._open[which] = memory
            self._used[which] = self._used.get(which, 0) + 1
        try:
            yield memory
        finally:
            self._give_back(which)

    def close(self) -> None:
        """Let go of all; calls that still run end in their own time."""
        with self._guard:
            for which in [which for which in self._open if not self._used.get(which)]:
                self._open.pop(which).close()

    def _opened(self, settings: Config, caller: Caller) -> Memory:
        project = self._nobodys if caller.is_lost else caller.project
        if caller.folder:
            settings = settings.replace(project=None)  # whoever names a folder means that one
        return Memory(
            config=settings, project=project, session=caller.session, agent=caller.agent, client=caller.client,
            cwd=caller.folder,
        )  # fmt: skip

    def _give_back(self, which: tuple[Config, Caller]) -> None:
        with self._guard:
            self._used[which] -= 1
            idle = [one for one in self._open if not self._used.get(one)]
            for one in idle[: max(len(self._open) - _OPEN, 0)]:
                self._used.pop(one, None)
                self._open.pop(one).close()
