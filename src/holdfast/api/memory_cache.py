"""Memories that stay open between calls: one for each that asks, never closed while somebody uses it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from holdfast.api.memory import Memory


class _CachedMemory:
    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.uses = 0


class MemoryCache:
    """Lends memories by whose they are. Beyond `most` those are closed that were not used for longest."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._guard = threading.Lock()
        self._kept: OrderedDict[Hashable, _CachedMemory] = OrderedDict()

    @contextmanager
    def lend(self, whose: Hashable, opened: Callable[[], Memory]) -> Iterator[Memory]:
        """The memory for one call; opened if it is not there."""
        with self._guard:
            lent = self._kept.pop(whose, None) or _CachedMemory(opened())
            self._kept[whose] = lent
            lent.uses += 1
        try:
            yield lent.memory
        finally:
            with self._guard:
                lent.uses -= 1
                self._give_back(whose, lent)

    def let_go(self) -> None:
        """Keep none of them: those in use are closed when they are given back."""
        with self._guard:
            kept, self._kept = self._kept, OrderedDict()
            for lent in kept.values():
                if not lent.uses:
                    lent.memory.close()

    def _give_back(self, whose: Hashable, lent: _CachedMemory) -> None:
        if not lent.uses and self._kept.get(whose) is not lent:
            lent.memory.close()
        idle = [one for one, other in self._kept.items() if not other.uses]
        for one in idle[: max(len(self._kept) - self._most, 0)]:
            self._kept.pop(one).memory.close()
