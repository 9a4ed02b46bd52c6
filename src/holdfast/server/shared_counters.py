"""Numbers of all worker processes in memory that they share: each process writes its own part, any of them reads all parts.

The parent maps the memory before it starts the workers. It has no name and no file, and goes when the last process ends. A
worker that dies leaves its part as it is, and its successor continues there: no count is lost, and none is added twice.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator

_PART_BYTES = 512 * 1024  # of one process; a page that is not used takes no memory
_HEAD = 8  # bytes: the length of the entries that follow
_WORD = 8  # bytes of a number; keys are padded to a multiple of it


class SharedCounters:
    """One part for each worker, and one for the parent."""

    def __init__(self, workers: int = 1) -> None:
        self._memory = memoryview(mmap.mmap(-1, (workers + 1) * _PART_BYTES))
        self._count = workers + 1

    def of_worker(self, number: int) -> Part:
        """Return the part of a worker, with what its predecessors counted."""
        return Part(self._memory[number * _PART_BYTES : (number + 1) * _PART_BYTES])

    def of_parent(self) -> Part:
        return self.of_worker(self._count - 1)

    def sums(self) -> dict[str, list[float]]:
        """Return the numbers under each key, summed over all processes."""
        found: dict[str, list[float]] = {}
        for number in range(self._count):
            for key, values in self.of_worker(number).entries():
                before = found.get(key)
                found[key] = values if before is None else [one + other for one, other in zip(before, values, strict=True)]
        return found


class Part:
    """The numbers of one process: entries of a key and one or more numbers, which are only ever added at the end.

    An entry is the length of its key in bytes, how many numbers it has, the key, and the numbers. The head is written
    last, so that a reader never sees half of an entry. A number is written with one store of eight bytes."""

    def __init__(self, memory: memoryview) -> None:
        self._memory = memory
        self._integers: memoryview[int] = memory.cast("q")
        self._numbers: memoryview[float] = memory.cast("d")
        self._places = {key: place for key, place, _ in self._read()}

    def entries(self) -> Iterator[tuple[str, list[float]]]:
        """Yield each key with its numbers as they are now."""
        for key, place, size in self._read():
            yield key, [self._numbers[number] for number in range(place, place + size)]

    def add(self, key: str, amount: float = 1.0, position: int = 0, size: int = 1) -> None:
        """Add to one of the `size` numbers under a key. The caller holds a lock: one thread at a time."""
        place = self._places.get(key)
        if place is None:
            place = self._create(key, size)
        if place >= 0:
            self._numbers[place + position] += amount

    def set(self, key: str, value: float) -> None:
        """Replace the number under a key. The caller holds a lock."""
        self.add(key, 0.0)
        place = self._places[key]
        if place >= 0:
            self._numbers[place] = value

    def _create(self, key: str, size: int) -> int:
        """Return the place of a new entry; -1 if this part is full, which the bounded labels of our metrics never reach."""
        name = key.encode()
        padded = -(-len(name) // _WORD) * _WORD
        used = self._integers[0]
        start, end = _HEAD + used, _HEAD + used + 2 * _WORD + padded + size * _WORD
        if end > len(self._memory):
            self._places[key] = -1
            return -1
        self._integers[start // _WORD], self._integers[start // _WORD + 1] = len(name), size
        self._memory[start + 2 * _WORD : start + 2 * _WORD + len(name)] = name
        self._integers[0] = end - _HEAD
        self._places[key] = place = (end - size * _WORD) // _WORD
        return place

    def _read(self) -> Iterator[tuple[str, int, int]]:
        """Yield each key, the place of its first number, and how many numbers it has."""
        start, end = _HEAD, _HEAD + self._integers[0]
        while start < end:
            length, size = self._integers[start // _WORD], self._integers[start // _WORD + 1]
            first = start + 2 * _WORD + -(-length // _WORD) * _WORD
            yield bytes(self._memory[start + 2 * _WORD : start + 2 * _WORD + length]).decode(), first // _WORD, size
            start = first + size * _WORD
