"""Open memories, kept between calls: one per caller, never closed while a call uses it; or backends that callers share."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from holdfast.api.memory import Memory, memory_of
from holdfast.context.caller import Backend, Context

_IDLE_BACKENDS = 4  # that stay open for the next calls: a new one compares every folder with the index once


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

    def list_open(self) -> list[Memory]:
        """Return the memories that are open now."""
        with self._lock:
            return [cached.memory for cached in self._cached.values()]

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


class _PooledBackend:
    """A backend and the memories that callers had on it."""

    def __init__(self, backend: Backend, generation: int) -> None:
        self.backend, self.generation = backend, generation
        self.memories: dict[Hashable, Memory] = {}


class BackendPool:
    """Open backends of one home that callers use in turn, each alone: as many as there are concurrent calls.

    All callers of a home read the same files and the same index, so that any number of agents needs only a few.
    """

    def __init__(self, open_backend: Callable[[], Backend], max_memories: int) -> None:
        self._open_backend, self._max_memories = open_backend, max_memories
        self._lock = threading.Lock()
        self._free: list[_PooledBackend] = []
        self._generation = 0  # backends of an earlier generation are closed when their call ends

    @contextmanager
    def lend(self, key: Hashable, make_context: Callable[[Backend], Context]) -> Iterator[Memory]:
        """Yield the memory of a key for one call."""
        with self._lock:
            pooled = self._free.pop() if self._free else None  # the last one used: its caches are warm
            generation = self._generation
        pooled = pooled or _PooledBackend(self._open_backend(), generation)
        try:
            memories = pooled.memories
            if key not in memories:
                if len(memories) >= self._max_memories:
                    memories.clear()
                memories[key] = memory_of(make_context(pooled.backend))
            yield memories[key]
        finally:
            with self._lock:
                keep = pooled.generation == self._generation and len(self._free) < _IDLE_BACKENDS
                if keep:
                    self._free.append(pooled)
            if not keep:
                pooled.backend.close()

    def clear(self) -> None:
        """Close all backends; those in use are closed when their call ends."""
        with self._lock:
            free, self._free = self._free, []
            self._generation += 1
        for pooled in free:
            pooled.backend.close()
