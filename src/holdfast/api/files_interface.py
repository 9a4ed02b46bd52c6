"""FilesInterface: the six commands of the memory tool, as `Files` has them on a home and `RemoteFiles` over HTTP."""

from __future__ import annotations

from typing import Protocol


class FilesInterface(Protocol):
    """`view`, `create`, `str_replace`, `insert`, `delete`, `rename` under `/memories`."""

    def view(self, path: str, lines: tuple[int, int] | None = None, *, scope: str = "project") -> str:
        """Return the text of a file, or lines of it, or the names in a folder."""

    def create(self, path: str, text: str | bytes, *, scope: str = "project", redact: bool = False) -> str:
        """Write a file, new or over the old one, and return "created" or "updated". A secret is rejected unless it is to be
        masked (`redact`)."""

    def str_replace(self, path: str, old: str, new: str, *, scope: str = "project", redact: bool = False) -> None:
        """Replace a text that occurs exactly once in the file."""

    def insert(self, path: str, line: int, text: str, *, scope: str = "project", redact: bool = False) -> None:
        """Insert lines after a line; 0 is the start of the file."""

    def delete(self, path: str, *, scope: str = "project") -> None:
        """Delete a file or a folder."""

    def rename(self, old: str, new: str, *, scope: str = "project") -> None:
        """Rename or move a file or a folder."""
