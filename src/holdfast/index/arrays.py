"""Arrays that grow. numpy is imported by searches only, so import this module inside of functions elsewhere."""

from __future__ import annotations

import numpy as np

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray


def extend(rows: NDArray[Any], length: int) -> NDArray[Any]:
    """Return the rows, followed by zeros, which take no memory until they are written."""
    longer = np.zeros((length, *rows.shape[1:]), rows.dtype)
    longer[: len(rows)] = rows
    return longer


class GrowingArray:
    """An array that grows at its end."""

    def __init__(self, dtype: type, columns: tuple[int, ...] = ()) -> None:
        self._rows: NDArray[Any] = np.zeros((1024, *columns), dtype)
        self.size = 0

    def add(self, rows: Any) -> int:
        """Add rows at the end; return the position of the first."""
        start, end = self.size, self.size + len(rows)
        if end > len(self._rows):
            self._rows = extend(self._rows, max(end, 2 * len(self._rows)))
        self._rows[start:end] = rows
        self.size = end
        return start

    def set(self, position: int, row: Any) -> None:
        """Replace a row."""
        self._rows[position] = row

    def take(self, positions: NDArray[Any]) -> NDArray[Any]:
        """Return the rows at these positions."""
        rows: NDArray[Any] = self._rows.take(positions, axis=0)
        return rows
