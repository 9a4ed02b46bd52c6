"""Render and write index.md of a scope: one line for each of its newest notes, for people and for clients that load a file.

The caller reads the rows from the index and passes them on, with `Listing.lock` held: only one process at a time reads rows
and replaces the file, so that the last one to write has seen the changes of all.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Protocol

    from holdfast.models import Scope
    from holdfast.store.interface import Store, StoreLock

    ListedFile = tuple[str, int, int, int]  # key, id in the index, inode and change time: another version has others

    class ListedNote(Protocol):
        """The fields of a note that a line shows; `exposed` notes seem to contain a secret."""

        @property
        def id(self) -> int: ...
        @property
        def key(self) -> str: ...
        @property
        def type(self) -> str: ...
        @property
        def date(self) -> str: ...
        @property
        def text(self) -> str: ...
        @property
        def quarantined(self) -> bool: ...
        @property
        def exposed(self) -> bool: ...


MAX_NOTES = 500  # notes that index.md lists; the number of the others follows the list
_EXCERPT = 120  # characters of a text that a line shows
_READ = 200  # characters of a text from which they are taken
_QUARANTINED = "not shown here before a person approved it: `holdfast review`"  # some clients load index.md as it is
_HEAD = "<!-- Made by holdfast from the notes beside it; changes here are overwritten. -->\n"
_CLOSED_FACTS = ("- ~~[", "* ~~[", "+ ~~[", "~~[")


class Listing:
    """Writes the index.md files of one store.

    It keeps the lines of each: most stay the same, and 500 notes take 3 ms to read and render, longer than a whole store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lines: dict[str, dict[ListedFile, str]] = {}  # by scope

    def lock(self, scope: Scope) -> StoreLock:
        """Return the lock to hold while rows are read and index.md is written."""
        return self._store.named_lock("index.md+" + scope.folder.replace("/", "+"))

    def find_new(self, scope: Scope, files: Iterable[ListedFile]) -> list[int]:
        """Return the ids of the notes whose lines are not known: `write` needs their rows."""
        known = self._lines.get(scope.folder, {})
        return [id for key, id, inode, changed in files if (key, id, inode, changed) not in known]

    def write(
        self, scope: Scope, total: int, files: Iterable[ListedFile], new_notes: Iterable[ListedNote],
        superseded: Mapping[str, str],
    ) -> bool:  # fmt: skip
        """Write index.md of a scope with `total` notes, of which `files` are listed, and return whether the scope has one.

        `superseded` has the keys of the notes that are not current, each with the key of the note that superseded it.
        """
        new, exposed = {}, set()
        for note in new_notes:
            new[note.id] = render_line(note)
            if note.exposed:
                exposed.add(note.id)
        known = self._lines.get(scope.folder, {})
        lines = {file: known.get(file) or new.get(file[1], "") for file in sorted(files)}
        self._lines[scope.folder] = {file: line for file, line in lines.items() if line and file[1] not in exposed}
        if not lines and not self._store.has_listing(scope):
            return False
        marked = [_mark_superseded(line, file[0], superseded) for file, line in lines.items()]
        self._store.write_listing(scope, render(str(scope), total, marked))
        return True


def render(scope: str, total: int, lines: Iterable[str]) -> bytes:
    """Return index.md of a scope with `total` notes, of which these lines are shown."""
    shown = list(lines)
    more = max(0, total - len(shown))
    count = len(shown) + more
    tail = f"\nand {more:,} more; `holdfast list` shows them all\n" if more else ""
    return f"{_HEAD}# {scope}: {count} note{'s' * (count != 1)}\n\n{''.join(shown)}{tail}".encode("utf-8", "replace")


def render_line(note: ListedNote) -> str:
    """Return the line of one note: its key, type, date and the beginning of its text."""
    text = note.text
    if note.exposed:
        from holdfast.safety.validate import hide_secrets

        text = hide_secrets(text)  # without the secret that it seems to contain
    excerpt = _QUARANTINED if note.quarantined else _shorten(text, len(text) if note.exposed else _READ)
    name = _escape(note.key)
    mark = ", in quarantine" if note.quarantined else ""
    return f"- [{name}](notes/{name}.md) ({note.type}, {note.date}{mark}): {excerpt}\n"


def _mark_superseded(line: str, key: str, superseded: Mapping[str, str]) -> str:
    """Return the line of a note with the note that superseded it: another note's relation does not change the note's file."""
    if key not in superseded:
        return line
    return line.replace(".md) (", f".md) (superseded by {_escape(superseded[key])}, ", 1)


def _shorten(text: str, max_chars: int) -> str:
    """Return the beginning of a text on one line, from its first `max_chars` characters, without closed facts."""
    if "~~[" in text:
        text = "\n".join([row for row in text.split("\n") if not row.lstrip().startswith(_CLOSED_FACTS)])
    flat = " ".join(_escape(text[:max_chars]).split())
    return flat if len(flat) <= _EXCERPT else flat[: _EXCERPT - 3].rstrip() + "..."


def _escape(text: str) -> str:
    """Return a text as a briefing shows it; most texts need no change, and then nothing is imported."""
    if text.isascii() and text.replace("\n", "").isprintable() and not ("<" in text or "```" in text or "~~~" in text):
        return text
    from holdfast.safety.escape import escape_text

    return escape_text(text).replace("\n", " ")
