"""Write index.md of a scope: one line for each of its newest notes, for people and for clients that load a file."""

from __future__ import annotations

from holdfast.index.sqlite import IndexReset, SqliteIndex
from holdfast.models import Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.index.results import ListedFile, ListedNote
    from holdfast.store.files import FileStore

MOST = 500  # notes that index.md lists; a scope with more has their number below the list
_EXCERPT = 120  # characters of a text that its line shows,
_READ = 200  # from so many at its beginning
_QUARANTINED = "not shown here before a person approved it: `holdfast review`"  # some clients load index.md as it is
_HEAD = "<!-- Made by holdfast from the notes beside it; changes here are overwritten. -->\n"
_CLOSED_FACTS = ("- ~~[", "* ~~[", "+ ~~[", "~~[")


class Listing:
    """Writes the index.md files of one home from its index."""

    def __init__(self, store: FileStore, index: SqliteIndex) -> None:
        self._store, self._index = store, index
        self._lines: dict[str, dict[ListedFile, str]] = {}  # of each scope, as written last: most stay the same

    def write(self, place: Scope) -> bool:
        """Write index.md of a scope and return whether the scope has one.

        Call it after each change of the index. Only one process at a time reads the index and replaces the file, so the last
        one to write has seen the changes of all. Raise `Lost` where the index was replaced meanwhile or has yet to be filled.
        """
        with self._store.named_lock("index.md+" + place.folder.replace("/", "+")):
            generation = self._index.generation()
            total = self._index.count_listed(place.folder)
            if total is None and self._store.has(place.folder, "notes"):
                raise IndexReset("the index has not read these notes yet")
            lines = self._read(place.folder)
            if self._index.generation() != generation:
                raise IndexReset("the index was replaced")
            if not lines and not self._store.has_listing(place):
                return False
            self._store.write_listing(place, render(str(place), total or 0, lines))
            return True

    def _read(self, folder: str) -> list[str]:
        """Return the lines of the newest notes, ordered by key."""
        before = self._lines.get(folder, {})
        files = sorted(self._index.newest_listed(folder, MOST))
        lines = [before.get(file, "") for file in files]
        exposed = set()
        if "" in lines:
            new = {file[1]: number for number, file in enumerate(files) if not lines[number]}
            for note in self._index.listed_notes(list(new)):
                lines[new[note.id]] = render_line(note)
                if note.exposed:
                    exposed.add(files[new[note.id]])
        self._lines[folder] = dict(zip(files, lines, strict=True))
        for file in exposed:  # a secret is not kept in memory
            del self._lines[folder][file]
        return lines


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
        from holdfast.safety.validate import without_secrets

        text = without_secrets(text)  # without the secret that it seems to hold
    excerpt = _QUARANTINED if note.quarantined else _excerpt(text, len(text) if note.exposed else _READ)
    name = _plain(note.key)
    mark = ", in quarantine" if note.quarantined else ""
    return f"- [{name}](notes/{name}.md) ({note.type}, {note.date}{mark}): {excerpt}\n"


def _excerpt(text: str, most: int) -> str:
    """Return the beginning of a text on one line, from its first characters (`most`), without facts that are closed."""
    if "~~[" in text:
        text = "\n".join([row for row in text.split("\n") if not row.lstrip().startswith(_CLOSED_FACTS)])
    flat = " ".join(_plain(text[:most]).split())
    return flat if len(flat) <= _EXCERPT else flat[: _EXCERPT - 3].rstrip() + "..."


def _plain(text: str) -> str:
    """Return a text as a briefing shows it; most texts need no change, and then nothing is imported."""
    if text.isascii() and text.replace("\n", "").isprintable() and not ("<" in text or "```" in text or "~~~" in text):
        return text
    from holdfast.verbs.brief.render import safe

    return safe(text).replace("\n", " ")
