"""The memories that are open: one a caller, kept for its next call."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holdfast import config
from holdfast.api.memory import Memory
from holdfast.api.memory_cache import MemoryCache
from holdfast.config import Config
from holdfast.mcp.project_resolution import Caller

_OPEN = 16


class Memories:
    """Lends the memory that a caller means."""

    def __init__(
        self, home: str | None, surroundings: bool = True, url: str | None = None, token: str | None = None,
        given: tuple[tuple[str, Any], ...] = (),
    ) -> None:  # fmt: skip
        self._home, self._surroundings = home, surroundings
        self._url, self._token, self._given = url, token, dict(given)
        self._lending = MemoryCache(_OPEN)
        self._nobodys = f"none-{os.urandom(8).hex()}"  # an id that nobody's notes can stand under

    def config(self) -> Config:
        """The settings as they are now: a person may switch memory off while we run. Whose memory it is they tell only
        where the client started us, and so our environment is the client's."""
        settings = config.load(self._home).replace(**self._given)
        if not self._surroundings:
            return settings.replace(project=None, session=None, agent=None, client=None, url=None)
        if self._url or self._token:
            return settings.replace(url=self._url or settings.url, token=self._token or settings.token)
        return settings

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
        tenant = caller.tenant or settings.tenant
        settings = settings.replace(allowed_scopes=caller.sees, tenant=tenant, read_only=caller.read_only)
        if caller.folder:
            settings = settings.replace(project=None)  # whoever names a folder means that one
        if settings.url:  # a gateway's: there the token says which agent
            return Memory(
                settings.url, config=settings, project=project, session=caller.session, client=caller.client, cwd=caller.folder
            )
        return Memory(
            config=settings, project=project, session=caller.session, agent=caller.agent, client=caller.client,
            cwd=caller.folder,
        )  # fmt: skip
