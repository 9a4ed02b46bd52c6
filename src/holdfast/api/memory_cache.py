"""Open memories, kept between calls: one per caller, never closed while a call uses it."""

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
    """A cache of at most `size` open memories; beyond that, the least recently used ones are closed."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._cached: OrderedDict[Hashable, _CachedMemory] = OrderedDict()

    @contextmanager
    def lend(self, key: Hashable, open_memory: Callable[[], Memory]) -> Iterator[Memory]:
        """Yield the memory of a key for one call; open it if it is not cached."""
        with self._lock:
            cached = self._cached.pop(key, None) or _CachedMemory(open_memory())
            self._cached[key] = cached
            cached.uses += 1
        try:
            yield cached.memory
        finally:
            with self._lock:
                cached.uses -= 1
                self._give_back(key, cached)

    def clear(self) -> None:
        """Empty the cache; memories in use are closed when their call ends."""
        with self._lock:
            dropped, self._cached = self._cached, OrderedDict()
            for cached in dropped.values():
                if not cached.uses:
                    cached.memory.close()

    def _give_back(self, key: Hashable, cached: _CachedMemory) -> None:
        if not cached.uses and self._cached.get(key) is not cached:
            cached.memory.close()
        idle = [name for name, other in self._cached.items() if not other.uses]
        for name in idle[: max(len(self._cached) - self._size, 0)]:
            self._cached.pop(name).memory.close()
