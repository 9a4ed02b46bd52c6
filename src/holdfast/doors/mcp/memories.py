"""The memories that are open: one a caller, kept for its next call."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast import config
from holdfast.config import Config
from holdfast.doors.mcp.caller import Caller
from holdfast.lending import Lending
from holdfast.memory import Memory

_OPEN = 16


class Memories:
    """Lends the memory that a caller means."""

    def __init__(self, home: str | None, surroundings: bool = True) -> None:
        self._home, self._surroundings = home, surroundings
        self._lending = Lending(_OPEN)
        self._nobodys = f"none-{os.urandom(8).hex()}"  # an id that nobody's notes can stand under

    def config(self) -> Config:
        """The settings as they are now: a person may switch memory off while we run. Whose memory it is they tell only
        where the client started us, and so our environment is the client's."""
        settings = config.load(self._home)
        return settings if self._surroundings else settings.replace(project=None, session=None, agent=None, client=None)

    @contextmanager
    def lend(self, caller: Caller) -> Iterator[Memory]:
        """The caller's memory for one call."""
        settings, who = self.config(), caller.replace(found_by="")
        with self._lending.lend((settings, who), lambda: self._opened(settings, who)) as memory:
            yield memory

    def close(self) -> None:
        """Let go of all; calls that still run end in their own time."""
        self._lending.let_go()

    def _opened(self, settings: Config, caller: Caller) -> Memory:
        project = self._nobodys if caller.is_lost else caller.project
        if caller.folder:
            settings = settings.replace(project=None)  # whoever names a folder means that one
        return Memory(
            config=settings, project=project, session=caller.session, agent=caller.agent, client=caller.client,
            cwd=caller.folder,
        )  # fmt: skip
