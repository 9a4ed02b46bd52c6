"""A cache with a limit: the value that was not used for the longest time is discarded first."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class LruCache:
    """At most `size` values by key. Callers hold a lock."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: dict[Any, Any] = {}  # the one used last is at the end

    def get(self, key: object) -> Any:
        """Return the value of a key, or None."""
        value = self._values.pop(key, None)
        if value is not None:
            self._values[key] = value
        return value

    def put(self, key: object, value: object) -> None:
        """Add or replace a value; discard another one if there are too many."""
        self._values.pop(key, None)
        self._values[key] = value
        if len(self._values) > self._size:
            del self._values[next(iter(self._values))]

    def clear(self) -> None:
        """Discard all values."""
        self._values.clear()
