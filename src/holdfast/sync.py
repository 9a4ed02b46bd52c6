"""Keeps the catalogue true to the shelf: looks at the folders a call touches, reads what changed, and nothing else.

One folder, one number: the catalogue holds the XOR of its files' stamps, and the shelf can compute the same. Equal
numbers mean that nothing happened. A process that stays asks the kernel instead (`watch`) from its second call on.
"""

from __future__ import annotations

import os
import time
from _thread import RLock
from _weakref import ref

from holdfast.errors import Busy, DiskTrouble, HoldfastError
from holdfast.index.changing import NEVER
from holdfast.index.sqlite import Index, Lost
from holdfast.leaf import Doc, Leaf, Stamp, file_doc, mix_of, note_doc, opened, unread_doc, versions_of
from holdfast.note import Progress, Scope
from holdfast.shelf import ahead
from holdfast.shelf.disk import is_utf8
from holdfast.shelf.folder import Entry, Shelf, binned_key, entry_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import TypeVar

    from holdfast.index.sqlite import Known
    from holdfast.late import Late
    from holdfast.sessions import PurgedTurns
    from holdfast.shelf.disk import Sheet, Watch

    T = TypeVar("T")
    PurgedAs = Callable[[str, Callable[[], list[str]]], str]  # the path of a note, and what it says
    _Row = tuple[str, str, str, str, str, int, int]  # what index.md says of a note

PARTS = ("notes", "files", "transcripts")
ARCHIVE = "archive"  # looked at only by calls that search archived notes too: a briefing never does
_NOTES = ("notes", ARCHIVE)  # parts whose files are notes
_HELD = "not shown here before a person approved it: `holdfast review`"  # some clients load index.md as it is
CAME_BACK = "purged, came back: receipt "  # what a file is known as that says what was purged
_BATCH = 500
_LIGHT = 64 * 1024  # bytes of a file that may be read together with the others of its batch
SMALL = 200  # notes up to which index.md is made anew with every change of its scope;
_LAG, _MOST_LAG = 1.0, 5.0  # in a larger one it may lag so many seconds, while others change it all the time,
_SHARE = 20  # and within these, so many times as long as making it takes
_TRIES = 5  # to make it from one catalogue
_MOST_LINES = 20_000  # of it that are remembered
_MANY = 200  # from here on one process does the work, and the others wait for it


class Sync:
    """The bridge between one shelf and its catalogue."""

    def __init__(
        self, shelf: Shelf, index: Index, progress: Progress, lock_seconds: float,
        purged_as: PurgedAs = lambda _path, _texts: "", purged_turns: PurgedTurns | None = None,
    ) -> None:  # fmt: skip
        self._purged_as, self._purged_turns = purged_as, purged_turns  # of what was purged and stands on the shelf again
        self._shelf, self._index = shelf, index
        self._progress, self._lock_seconds = progress, lock_seconds
        self._watch: Watch | None = None
        self._calls = 0
        self._clean: set[tuple[str, str]] = set()
        self._ready: set[str] = set()
        self._changed: set[str] = set()  # scopes that were read anew, and whose index.md was not asked about since
        self._missed: set[str] = set()  # scopes for which an index.md was to be made, and was not yet
        self._pauses: dict[str, float] = {}  # of large scopes: how long index.md may rest
        self._late: Late | None = None  # what is to be made when it has rested
        self._deferred: list[str] = []
        self._generation = 0
        self.scopes: tuple[str, ...] = ()  # those looked at last
        self.archived = False  # whether any call asked for archived notes
        self._lock = RLock()  # who hears of a change reads it before another thread answers
        _syncs.add(ref(self, _syncs.discard))

    def look(self, scopes: tuple[str, ...], archived: bool = False) -> str:
        """Bring the catalogue up to date for these scopes, with `archived` also for their archived notes. Empty, or why it may
        say less than the shelf holds."""
        with self._lock:
            self.archived = self.archived or archived
            return self._look(scopes, (*PARTS, ARCHIVE) if archived else PARTS)

    def changed_meanwhile(self) -> bool:
        """Whether a folder that a child is still counting turns out other than the catalogue; then it is read now. Asking
        the catalogue first and this after lets the two go on side by side."""
        deferred, self._deferred, changed = self._deferred, [], False
        for scope in deferred:
            known = self._index.folder(scope, "notes")
            if known is None or known[1] != self._fingerprint(scope, "notes"):
                changed = True
                self._reconcile(scope, "notes")
                self.listing(Scope.of_folder(scope))
        return changed

    def asked(self, question: Callable[[], T]) -> T:
        """The answer, from wherever the last look found it to be true."""
        return question()

    def of_primary(self) -> AbstractContextManager[object]:
        """Whatever is asked within is asked where everything is written: who verifies must not be told what was."""
        from contextlib import nullcontext

        return nullcontext()

    def behind(self) -> bool:
        """Whether the catalogue is another file than the one that was last brought up to date."""
        return bool(self.scopes) and self._generation != self._index.generation()

    def _look(self, scopes: tuple[str, ...], parts: tuple[str, ...]) -> str:
        self.scopes, self._calls = scopes, self._calls + 1
        generation = self._index.generation()
        if self._generation != generation:
            self.reset()
        self._listen()
        reason = self._index.in_memory and f"the index is kept in memory: {self._index.in_memory}"
        known = self._index.known(scopes)
        for scope in scopes:
            for part in parts:
                if (scope, part) not in self._clean:
                    reason = self._look_at(scope, part, known.get((scope, part))) or reason
            _, some, stale = known.get((scope, "notes"), (0, 0, 0))
            if some and self._is_unlisted(place := Scope.of_folder(scope)):
                self.listing(place, now=True)
            elif stale or scope in self._changed:
                self.listing(Scope.of_folder(scope))
        self._generation = generation  # not before: until then another thread would take half of it for all
        return reason

    def ready(self, scope: str) -> None:
        """Before the first write to a scope: a catalogue that never saw it looks at it now, not after, so that what we
        write ourselves is never read back."""
        if scope in self._ready:
            return
        try:
            if not self.catalogued(scope):
                self._look_at(scope, "notes", None)
            self._ready.add(scope)
        except (Lost, Busy, DiskTrouble):
            self.reset()

    def catalogued(self, scope: str) -> bool:
        """Whether this scope's notes were ever looked at."""
        return self._index.folder(scope, "notes") is not None

    def reset(self) -> None:
        """Trust nothing: the catalogue was lost."""
        self._clean.clear()
        self._ready.clear()

    def begin_anew(self) -> None:
        """In a child: a thread that looked just now did not come along, and what it knew is half."""
        self._late = None  # its parent makes what is late
        if not self._lock.acquire(blocking=False):
            self._lock = RLock()
            self.reset()
        else:
            self._lock.release()

    def file(self, scope: str, name: str, written: Sheet) -> None:
        """Catalogue a file we just wrote."""
        doc = file_doc(scope, name, written.data, written.stamp, written.modified)
        self._index.put([(doc, None)], self._still_there(scope, "files", [doc]))

    def notes(self, scope: str, written: list[tuple[str, Leaf, Stamp, Stamp | None]]) -> None:
        """Catalogue notes we just wrote, from what we wrote; each with the stamp of the file it replaced."""
        docs = [
            (note_doc(scope, name, leaf, stamp, newest_only=replaced is not None), replaced)
            for name, leaf, stamp, replaced in written
        ]
        self._index.put(docs, self._still_there(scope, "notes", [doc for doc, _ in docs]))

    def gone(self, scope: str, part: str, names: list[str]) -> int:
        """Take files out of the catalogue that we just took off the shelf."""
        stamps = self._stamps(scope, part, names)
        return self._index.drop(scope, part, names, lambda name: stamps(name) is None)

    def listing(self, place: Scope, now: bool = False, rested: bool = False) -> bool:
        """Refresh index.md: at once while the scope is small or it has rested, else a moment later. It is made from the notes:
        where that fails no call does, and the next change makes it again. Whether it did not."""
        folder = place.folder
        self._changed.discard(folder)
        if not now and self._late is not None and folder in self._late:
            return True
        for _ in range(_TRIES):
            try:
                pause = 0.0 if rested else self._pauses.get(folder, _LAG)
                wait = 0.0 if now else self._index.listing_due(folder, SMALL, pause)[0]
                if wait == 0:
                    self._list(place, now)
                elif wait > 0:
                    self._list_later(folder, wait)
                return True
            except Lost:
                self.reset()  # or only closed, by who forks
            except (HoldfastError, OSError):
                self.reset()
                return False
        return False

    def _list_later(self, folder: str, seconds: float) -> None:
        if self._late is None:
            from holdfast.late import Late

            self._late = Late(lambda folder: self.listing(Scope.of_folder(folder), rested=True))
        self._late.add(folder, seconds)

    def _list(self, place: Scope, now: bool) -> None:
        """Make index.md, unless another did while we waited for our turn: amend it where what it was made of tells how."""
        folder = place.folder
        with self._shelf.alone("index.md+" + folder.replace("/", "+")):
            wait, made, which = self._index.listing_due(folder, SMALL, 0.0)
            if wait < 0 and not now:
                return
            start, known, made = time.monotonic(), self._index.folder(folder, "notes"), "" if now else made
            if known is None and self._shelf.has(folder, "notes"):
                raise Lost("the catalogue does not know them yet")
            if known and made == NEVER and known[1] != self._fingerprint(folder, "notes"):
                return  # it may have read a part of them, and the file be right
            if made:
                from holdfast.amending import amend

                made = amend(self._shelf, self._index, place, made, which, _line, _plainly)
            self._index.listed(folder, known[1] if known else 0, made or self._list_all(place, which), which)
            self._pauses[folder] = min(max(_LAG, _SHARE * (time.monotonic() - start)), _MOST_LAG)

    def _list_all(self, place: Scope, which: int) -> str:
        """Make index.md from this catalogue. Of a large one: from what."""
        newest, rows = self._index.newest(), self._index.listing(place.folder)
        if not rows and not self._shelf.has_listing(place):
            return ""
        self._index.must_be(which)
        stamp = self._shelf.write_listing(place, _listing(str(place), rows))
        self._missed.discard(place.folder)
        if len(rows) <= SMALL:
            return ""
        from holdfast.amending import made_of

        return made_of([row[0] for row in rows], stamp, newest, _plainly)

    def _is_unlisted(self, place: Scope) -> bool:
        """Whether somebody took its index.md away; true once where none is made."""
        if place.folder in self._missed or self._shelf.has_listing(place):
            return False
        self._missed.add(place.folder)
        return True

    def refresh(self, scope: str, part: str) -> None:
        """Look at one folder whatever the watch says."""
        self._clean.discard((scope, part))
        self._look_at(scope, part, self._index.known((scope,)).get((scope, part)))

    def close(self) -> None:
        if self._late is not None:
            self._late.finish()
        with self._lock:  # not while another thread listens
            if self._watch is not None:
                self._watch.close()
                self._watch = None

    # --- looking -------------------------------------------------------------------------------------------------

    def _look_at(self, scope: str, part: str, known: Known | None) -> str:
        if not (known and known[1]) and not self._shelf.has(scope, part):
            return ""  # nothing there, nothing known
        if known and part == "notes" and ahead.counting(scope):
            self._deferred.append(scope)
            return ""
        watching = self._watched(scope, part)
        changed = known is None or known[1] != self._fingerprint(scope, part)
        if changed and (reason := self._reconcile(scope, part)):
            return reason
        if watching:
            self._clean.add((scope, part))
        return ""

    def _fingerprint(self, scope: str, part: str) -> int:
        if not self._shelf.has(scope, part):
            return 0
        if part in _NOTES:
            counted = ahead.fingerprint(scope) if part == "notes" else None
            return self._shelf.fingerprint(scope, part) if counted is None else counted
        total = 0
        for entry in self._census(scope, part):
            total ^= mix_of(entry.stamp, entry.name)
        return total

    def _reconcile(self, scope: str, part: str) -> str:
        """Read what is new or changed, drop what is gone."""
        changed, gone = self._difference(scope, part)
        if len(changed) <= _MANY or self._index.in_memory:  # that one is nobody else's
            self._apply(scope, part, changed, gone)
            return ""
        lock = self._shelf.alone("catalogue")
        if not lock.acquire(self._lock_seconds):
            return "the index is being rebuilt by another process"
        try:
            self._apply(scope, part, *self._difference(scope, part))
        finally:
            lock.release()
        return ""

    def _difference(self, scope: str, part: str) -> tuple[list[Entry], list[str]]:
        here = {entry.name: entry for entry in self._census(scope, part)}
        known = self._index.stamps(scope, part)
        changed = [entry for name, entry in here.items() if name not in known or known[name][0] != entry.stamp]
        return changed, [name for name in known if name not in here]

    def _apply(self, scope: str, part: str, changed: list[Entry], gone: list[str]) -> None:
        self._index.add_folder(scope, part)
        self._changed.add(scope)
        if gone:
            self.gone(scope, part, gone)
        if not changed:
            return
        self._progress.start(f"indexing {scope}/{part}", len(changed))
        try:
            if part == "transcripts":
                self._sessions(scope, changed)
                return
            for start in range(0, len(changed), _BATCH):
                batch = changed[start : start + _BATCH]
                sheets = self._shelf.read_ahead([(scope, part, one.name) for one in batch if one.stamp[2] <= _LIGHT])
                found = [self._describe(scope, part, entry, sheets.get((scope, part, entry.name))) for entry in batch]
                docs = [doc for doc in found if doc]
                self._index.put([(doc, None) for doc in docs], self._still_there(scope, part, docs))
                self._progress.step(len(batch))
        finally:
            self._progress.end()

    def _describe(self, scope: str, part: str, entry: Entry, sheet: Sheet | None = None) -> Doc | None:
        """What a changed file says now, unless it was read already; None if it went away meanwhile."""
        key = binned_key(entry.name) if part == ARCHIVE else ""
        if part == ARCHIVE and not (key and entry.regular):
            return unread_doc(scope, part, entry.name, entry.stamp, "")  # nothing that retention put there
        if part == "notes" and not entry.name.endswith(".md"):
            return unread_doc(scope, part, entry.name, entry.stamp, "not a markdown file")
        if not entry.regular:
            return unread_doc(scope, part, entry.name, entry.stamp, "a link or special file; never followed")
        try:
            if part in _NOTES:
                sheet = sheet or self._shelf.read_name(scope, part, entry.name)
            else:
                sheet = sheet or self._shelf.tree(scope).read(tuple(entry.name.split("/")))
        except HoldfastError as error:
            return unread_doc(scope, part, entry.name, entry.stamp, error.message)
        if sheet is None:
            return None
        if part in _NOTES:
            leaf = opened(sheet.data, sheet.modified)
            path = f"{scope}/notes/{key or entry.name[:-3]}"
            if came_back := self._purged_as(path, lambda: [version.text for version in versions_of(leaf)]):
                return unread_doc(scope, part, entry.name, sheet.stamp, CAME_BACK + came_back)
            return note_doc(scope, entry.name, leaf, sheet.stamp, archived_as=key)
        if b"\0" in sheet.data:
            return unread_doc(scope, part, entry.name, sheet.stamp, "")
        if came_back := self._purged_as("", lambda: [sheet.text()]):
            return unread_doc(scope, part, entry.name, sheet.stamp, CAME_BACK + came_back)
        return file_doc(scope, entry.name, sheet.data, sheet.stamp, sheet.modified)

    def _sessions(self, scope: str, changed: list[Entry]) -> None:
        from holdfast.sessions import catalogue

        for entry in changed:
            catalogue(self._index, scope, self._shelf.rolls(scope).roll(entry.name), entry, self._purged_turns)
            self._progress.step()

    def _still_there(self, scope: str, part: str, docs: list[Doc]) -> Callable[[Doc], bool]:
        """Whether a file is still the one described."""
        stamps = self._stamps(scope, part, [one.name for one in docs])
        return lambda doc: stamps(doc.name) == doc.stamp

    def _stamps(self, scope: str, part: str, names: list[str]) -> Callable[[str], Stamp | None]:
        """What the shelf says of these files now: looked up once, when the catalogue asks within its transaction."""
        known: dict[str, Stamp | None] = {}

        def stamp(name: str) -> Stamp | None:
            if not known:
                known.update(self._stamped(scope, part, names))
            return known[name]

        return stamp

    def _stamped(self, scope: str, part: str, names: list[str]) -> dict[str, Stamp | None]:
        if part in _NOTES:
            return self._shelf.stamps(scope, part, names)
        return {name: self._stamp(scope, part, name) for name in names}

    def _stamp(self, scope: str, part: str, name: str) -> Stamp | None:
        if part in _NOTES:
            return self._shelf.stamp(scope, part, name)
        if part == "transcripts":
            return self._shelf.rolls(scope).roll(name).stamp()
        return self._shelf.tree(scope).stamp(tuple(name.split("/")))

    def _census(self, scope: str, part: str) -> list[Entry]:
        if part == "transcripts":
            return list(self._shelf.rolls(scope).census())
        return list(self._shelf.census(scope, part) if part in _NOTES else self._shelf.tree(scope).census())

    # --- listening -----------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        """Hear what changed; from the second call on, since a single command would pay and never profit."""
        if self._calls < 2:
            return
        if self._watch is not None and self._watch.pid != os.getpid():
            self.close()  # a fork's events would be its parent's
            self._clean.clear()
        if self._watch is None:
            self._watch = self._shelf.watch()
            return
        for path, names in self._watch.changes().items():
            scope, part, below = self._place(path)
            if names is None or part != "notes" or len(names) > _MANY:
                self._clean.discard((scope, part))
            elif (scope, part) in self._clean:
                self._heard(scope, part, [below + name for name in names])
        for scope, part in list(self._clean):  # which other threads may empty
            if not self._watch.watched(self._path(scope, part)):
                self._clean.discard((scope, part))

    def _heard(self, scope: str, part: str, names: list[str]) -> None:
        """Look at these files only; one whose name is no text is nobody's note."""
        for name in filter(is_utf8, names):
            stamp = self._stamp(scope, part, name)
            if stamp is None:
                self.gone(scope, part, [name])
            elif stamp != self._index.stamp(scope, part, name):
                entry = entry_at(self._path(scope, part), name)
                doc = self._describe(scope, part, entry) if entry else None
                if doc:
                    self._index.put([(doc, None)], self._still_there(scope, part, [doc]))

    def _watched(self, scope: str, part: str) -> bool:
        if self._watch is None:
            return False
        if part in _NOTES:
            return self._watch.add(self._path(scope, part))
        folders = self._shelf.rolls(scope).folders() if part == "transcripts" else self._shelf.tree(scope).folders()
        return bool(folders) and all(self._watch.add(path) for path in folders)

    def _path(self, scope: str, part: str) -> str:
        return os.path.join(self._shelf.home, "shelf", scope, part)

    def _place(self, path: str) -> tuple[str, str, str]:
        """The scope and part that a watched folder belongs to, and its place below them."""
        inside = os.path.relpath(path, os.path.join(self._shelf.home, "shelf")).split("/")
        depth = 1 if inside[0] == "global" else 2
        below = "/".join(inside[depth + 1 :])
        return "/".join(inside[:depth]), inside[depth], below + "/" if below else ""


def _listing(scope: str, rows: list[_Row]) -> bytes:
    """index.md: one line a note, for people and for clients that load a file."""
    head = "<!-- Made by holdfast from the notes beside it; changes here are overwritten. -->\n"
    if len(_lines) > _MOST_LINES:
        _lines.clear()
    lines = [_lines[row] if not row[-1] else _line(row) for row in rows]  # a secret is not remembered
    return (f"{head}# {scope}: {len(rows)} note{'s' * (len(rows) != 1)}\n\n" + "".join(lines)).encode("utf-8", "replace")


def _line(row: _Row) -> str:
    key, _, type, date, text, held, exposed = row
    if exposed:
        from holdfast.guard import cleaned

        text = cleaned(text)  # without the secret that it seems to hold
    gist = _HELD if held else _gist(text)
    name = _plainly(key)
    return f"- [{name}](notes/{name}.md) ({type}, {date}{', in quarantine' if held else ''}): {gist}\n"


class _Lines(dict["_Row", str]):
    """The line of each row seen before: of a large scope nearly all are the same as a moment ago."""

    def __missing__(self, row: _Row) -> str:
        line = self[row] = _line(row)
        return line


_lines = _Lines()


def _gist(text: str) -> str:
    flat = " ".join(_plainly(text).split())
    return flat if len(flat) <= 120 else flat[:117].rstrip() + "..."


def _plainly(text: str) -> str:
    """As a briefing would show it; most is plain already, and then nobody is asked."""
    if text.isascii() and text.replace("\n", "").isprintable() and not ("<" in text or "```" in text or "~~~" in text):
        return text
    from holdfast.briefing import safe

    return safe(text).replace("\n", " ")


_syncs: set[ref[Sync]] = set()


def _in_the_child() -> None:
    for sync in [one for reference in list(_syncs) if (one := reference())]:
        sync.begin_anew()


os.register_at_fork(after_in_child=_in_the_child)
