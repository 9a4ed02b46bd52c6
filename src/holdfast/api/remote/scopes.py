"""Which scope is meant where a request must name one and the caller does not."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from holdfast.context.caller import Context
from holdfast.errors import Denied, HoldfastError, NotFound, Template, UsageError, command

T = TypeVar("T")
_SECONDS = 60.0  # that a scope which was denied is left alone


class RemoteScopes:
    """The scopes of one caller, nearest first; what its role denies is found out once and left alone for a while."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._denied: dict[str, float] = {}

    def kinds(self, scope: str | None) -> list[str]:
        """The one that is named, or all that the caller has."""
        if scope is not None:
            return [self._context.scope(scope).kind]
        every = dict.fromkeys([place.kind for place in self._context.visible_scopes(None)])
        return [kind for kind in every if time.monotonic() >= self._denied.get(kind, 0.0)] or list(every)

    def nearest(self, scope: str | None, ask: Callable[[str], T]) -> T:
        """The answer of the first scope that has one."""
        failed: HoldfastError | None = None
        for kind in self.kinds(scope):
            try:
                return ask(kind)
            except (NotFound, Denied) as error:
                if scope is not None:
                    raise
                self._note(kind, error)
                failed = error if failed is None or isinstance(error, NotFound) else failed
        raise failed or NotFound("there is no such note", Template(command("list"), " shows what there is"))

    def holding(self, key: str, scope: str | None, has: Callable[[str], object]) -> str | None:
        """The one scope that holds a key; with several, the caller must say which is meant."""
        if scope is not None:
            return self.kinds(scope)[0]
        found, denied = [], 0
        every = self.kinds(None)
        for kind in every:
            try:
                has(kind)
                found.append(kind)
            except NotFound:
                pass
            except Denied as error:
                denied += 1
                self._note(kind, error)
                if denied == len(every):
                    raise
        return self.one(key, found)

    @staticmethod
    def one(key: str, found: list[str]) -> str | None:
        kinds = list(dict.fromkeys(found))
        if len(kinds) > 1:
            raise UsageError(f"{key!r} is in several scopes: {', '.join(kinds)}", "Say which one with scope")
        return kinds[0] if kinds else None

    def _note(self, kind: str, error: HoldfastError) -> None:
        if isinstance(error, Denied):
            self._denied[kind] = time.monotonic() + _SECONDS
