"""Keeps the catalogue true to the shelf: looks at the folders a call touches, reads what changed, and nothing else.

One folder, one number: the catalogue holds the XOR of its files' stamps, and the shelf can compute the same. Equal
numbers mean that nothing happened. A process that stays asks the kernel instead (`watch`) from its second call on.
"""

from __future__ import annotations

import os
from _thread import RLock
from _weakref import ref

from holdfast.base.ids import FileId, file_fingerprint
from holdfast.errors import Busy, DiskTrouble, HoldfastError
from holdfast.formats.versions import ParsedNote, list_versions, parse_note
from holdfast.index.entries import IndexEntry, file_entry, note_entry, unreadable_entry
from holdfast.index.sqlite import IndexReset, SqliteIndex
from holdfast.models import Progress, Scope
from holdfast.store.atomic import is_utf8
from holdfast.store.files import Entry, FileStore, entry_at, key_of_trashed
from holdfast.store.listing import Listing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import TypeVar

    from holdfast.context.transcript_entries import PurgedTurns
    from holdfast.index.sqlite import Known
    from holdfast.store.atomic import FileContent, Watch

    T = TypeVar("T")
    PurgedAs = Callable[[str, Callable[[], list[str]]], str]  # the path of a note, and what it says

PARTS = ("notes", "files", "transcripts")
ARCHIVE = "archive"  # looked at only by calls that search archived notes too: a briefing never does
_NOTES = ("notes", ARCHIVE)  # parts whose files are notes
CAME_BACK = "purged, came back: receipt "  # what a file is known as that says what was purged
_BATCH = 500
_LIGHT = 64 * 1024  # bytes of a file that may be read together with the others of its batch
_TRIES = 5  # to write index.md from one index: it is opened again after a fork
_MANY = 200  # from here on one process does the work, and the others wait for it


class Sync:
    """The bridge between one shelf and its catalogue."""

    def __init__(
        self, store: FileStore, index: SqliteIndex, progress: Progress, lock_seconds: float,
        purged_as: PurgedAs = lambda _path, _texts: "", purged_turns: PurgedTurns | None = None,
    ) -> None:  # fmt: skip
        self._purged_as, self._purged_turns = purged_as, purged_turns  # of what was purged and stands on the shelf again
        self._store, self._index = store, index
        self._progress, self._lock_seconds = progress, lock_seconds
        self._watch: Watch | None = None
        self._calls = 0
        self._clean: set[tuple[str, str]] = set()
        self._ready: set[str] = set()
        self._changed: set[str] = set()  # scopes whose notes were read again, and whose index.md was not written since
        self._without: set[str] = set()  # scopes with no index.md that cannot have one, or have no notes
        self._listing = Listing(store, index)
        self._generation = 0
        self.scopes: tuple[str, ...] = ()  # those looked at last
        self.archived = False  # whether any call asked for archived notes
        self._lock = RLock()  # who hears of a change reads it before another thread answers
        _syncs.add(ref(self, _syncs.discard))

    def refresh(self, scopes: tuple[str, ...], archived: bool = False) -> str:
        """Bring the catalogue up to date for these scopes, with `archived` also for their archived notes. Empty, or why it may
        say less than the shelf holds."""
        with self._lock:
            self.archived = self.archived or archived
            return self._refresh(scopes, (*PARTS, ARCHIVE) if archived else PARTS)

    def run_query(self, question: Callable[[], T]) -> T:
        """The answer, from wherever the last look found it to be true."""
        return question()

    def use_primary(self) -> AbstractContextManager[object]:
        """Whatever is asked within is asked where everything is written: who verifies must not be told what was."""
        from contextlib import nullcontext

        return nullcontext()

    def is_outdated(self) -> bool:
        """Whether the catalogue is another file than the one that was last brought up to date."""
        return bool(self.scopes) and self._generation != self._index.generation()

    def _refresh(self, scopes: tuple[str, ...], parts: tuple[str, ...]) -> str:
        self.scopes, self._calls = scopes, self._calls + 1
        generation = self._index.generation()
        if self._generation != generation:
            self.reset()
        self._read_events()
        reason = self._index.in_memory and f"the index is kept in memory: {self._index.in_memory}"
        known = self._index.known(scopes)
        for scope in scopes:
            for part in parts:
                if (scope, part) not in self._clean:
                    reason = self._refresh_folder(scope, part, known.get((scope, part))) or reason
            _, some = known.get((scope, "notes"), (0, 0))
            place = Scope.of_folder(scope)
            if scope in self._changed or (some and scope not in self._without and not self._store.has_listing(place)):
                self.listing(place)
        self._generation = generation  # not before: until then another thread would take half of it for all
        return reason

    def prepare_scope(self, scope: str) -> None:
        """Before the first write to a scope: a catalogue that never saw it looks at it now, not after, so that what we
        write ourselves is never read back."""
        if scope in self._ready:
            return
        try:
            if not self.is_indexed(scope):
                self._refresh_folder(scope, "notes", None)
            self._ready.add(scope)
        except (IndexReset, Busy, DiskTrouble):
            self.reset()

    def is_indexed(self, scope: str) -> bool:
        """Whether this scope's notes were ever looked at."""
        return self._index.folder(scope, "notes") is not None

    def reset(self) -> None:
        """Trust nothing: the catalogue was lost."""
        self._clean.clear()
        self._ready.clear()

    def reset_after_fork(self) -> None:
        """In a child: a thread that looked just now did not come along, and what it knew is half."""
        if not self._lock.acquire(blocking=False):
            self._lock = RLock()
            self.reset()
        else:
            self._lock.release()

    def index_file(self, scope: str, name: str, written: FileContent) -> None:
        """Catalogue a file we just wrote."""
        doc = file_entry(scope, name, written.data, written.stamp, written.modified)
        self._index.put([(doc, None)], self._still_there(scope, "files", [doc]))

    def index_notes(self, scope: str, written: list[tuple[str, ParsedNote, FileId, FileId | None]]) -> None:
        """Catalogue notes we just wrote, from what we wrote; each with the stamp of the file it replaced."""
        docs = [
            (note_entry(scope, name, parsed, stamp, newest_only=replaced is not None), replaced)
            for name, parsed, stamp, replaced in written
        ]
        self._index.put(docs, self._still_there(scope, "notes", [doc for doc, _ in docs]))

    def remove_files(self, scope: str, part: str, names: list[str]) -> int:
        """Take files out of the catalogue that we just took off the shelf."""
        stamps = self._stamps(scope, part, names)
        return self._index.drop(scope, part, names, lambda name: stamps(name) is None)

    def listing(self, place: Scope) -> bool:
        """Write index.md of a scope and return whether that worked. It is derived from the notes, so its failure fails no call,
        and the next change of the scope writes it again."""
        folder = place.folder
        self._changed.discard(folder)
        self._without.add(folder)
        for _ in range(_TRIES):
            try:
                if self._listing.write(place):
                    self._without.discard(folder)
                return True
            except IndexReset:
                self.reset()
            except (HoldfastError, OSError):
                self.reset()
                return False
        return False

    def refresh_folder(self, scope: str, part: str) -> None:
        """Look at one folder whatever the watch says."""
        self._clean.discard((scope, part))
        self._refresh_folder(scope, part, self._index.known((scope,)).get((scope, part)))

    def close(self) -> None:
        with self._lock:  # not while another thread listens
            if self._watch is not None:
                self._watch.close()
                self._watch = None

    # --- looking -------------------------------------------------------------------------------------------------

    def _refresh_folder(self, scope: str, part: str, known: Known | None) -> str:
        if not (known and known[1]) and not self._store.has(scope, part):
            return ""  # nothing there, nothing known
        watching = self._watched(scope, part)
        changed = known is None or known[1] != self._fingerprint(scope, part)
        if changed and (reason := self._reconcile(scope, part)):
            return reason
        if watching:
            self._clean.add((scope, part))
        return ""

    def _fingerprint(self, scope: str, part: str) -> int:
        if not self._store.has(scope, part):
            return 0
        if part in _NOTES:
            return self._store.fingerprint(scope, part)
        total = 0
        for entry in self._census(scope, part):
            total ^= file_fingerprint(entry.stamp, entry.name)
        return total

    def _reconcile(self, scope: str, part: str) -> str:
        """Read what is new or changed, drop what is gone."""
        changed, gone = self._difference(scope, part)
        if len(changed) <= _MANY or self._index.in_memory:  # that one is nobody else's
            self._apply(scope, part, changed, gone)
            return ""
        lock = self._store.named_lock("catalogue")
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
        if part == "notes":
            self._changed.add(scope)
        if gone:
            self.remove_files(scope, part, gone)
        if not changed:
            return
        self._progress.start(f"indexing {scope}/{part}", len(changed))
        try:
            if part == "transcripts":
                self._index_transcripts(scope, changed)
                return
            for start in range(0, len(changed), _BATCH):
                batch = changed[start : start + _BATCH]
                contents = self._store.read_ahead([(scope, part, one.name) for one in batch if one.stamp[2] <= _LIGHT])
                found = [self._describe(scope, part, entry, contents.get((scope, part, entry.name))) for entry in batch]
                docs = [doc for doc in found if doc]
                self._index.put([(doc, None) for doc in docs], self._still_there(scope, part, docs))
                self._progress.step(len(batch))
        finally:
            self._progress.end()

    def _describe(self, scope: str, part: str, entry: Entry, content: FileContent | None = None) -> IndexEntry | None:
        """What a changed file says now, unless it was read already; None if it went away meanwhile."""
        key = key_of_trashed(entry.name) if part == ARCHIVE else ""
        if part == ARCHIVE and not (key and entry.regular):
            return unreadable_entry(scope, part, entry.name, entry.stamp, "")  # nothing that retention put there
        if part == "notes" and not entry.name.endswith(".md"):
            return unreadable_entry(scope, part, entry.name, entry.stamp, "not a markdown file")
        if not entry.regular:
            return unreadable_entry(scope, part, entry.name, entry.stamp, "a link or special file; never followed")
        try:
            if part in _NOTES:
                content = content or self._store.read_name(scope, part, entry.name)
            else:
                content = content or self._store.tree(scope).read(tuple(entry.name.split("/")))
        except HoldfastError as error:
            return unreadable_entry(scope, part, entry.name, entry.stamp, error.message)
        if content is None:
            return None
        if part in _NOTES:
            parsed = parse_note(content.data, content.modified)
            path = f"{scope}/notes/{key or entry.name[:-3]}"
            if came_back := self._purged_as(path, lambda: [version.text for version in list_versions(parsed)]):
                return unreadable_entry(scope, part, entry.name, content.stamp, CAME_BACK + came_back)
            return note_entry(scope, entry.name, parsed, content.stamp, archived_as=key)
        if b"\0" in content.data:
            return unreadable_entry(scope, part, entry.name, content.stamp, "")
        if came_back := self._purged_as("", lambda: [content.text()]):
            return unreadable_entry(scope, part, entry.name, content.stamp, CAME_BACK + came_back)
        return file_entry(scope, entry.name, content.data, content.stamp, content.modified)

    def _index_transcripts(self, scope: str, changed: list[Entry]) -> None:
        from holdfast.context.transcript_entries import index_transcript

        for entry in changed:
            index_transcript(
                self._index, scope, self._store.transcript_files(scope).transcript_file(entry.name), entry, self._purged_turns
            )
            self._progress.step()

    def _still_there(self, scope: str, part: str, docs: list[IndexEntry]) -> Callable[[IndexEntry], bool]:
        """Whether a file is still the one described."""
        stamps = self._stamps(scope, part, [one.name for one in docs])
        return lambda doc: stamps(doc.name) == doc.stamp

    def _stamps(self, scope: str, part: str, names: list[str]) -> Callable[[str], FileId | None]:
        """What the shelf says of these files now: looked up once, when the catalogue asks within its transaction."""
        known: dict[str, FileId | None] = {}

        def stamp(name: str) -> FileId | None:
            if not known:
                known.update(self._stamped(scope, part, names))
            return known[name]

        return stamp

    def _stamped(self, scope: str, part: str, names: list[str]) -> dict[str, FileId | None]:
        if part in _NOTES:
            return self._store.stamps(scope, part, names)
        return {name: self._stamp(scope, part, name) for name in names}

    def _stamp(self, scope: str, part: str, name: str) -> FileId | None:
        if part in _NOTES:
            return self._store.stamp(scope, part, name)
        if part == "transcripts":
            return self._store.transcript_files(scope).transcript_file(name).stamp()
        return self._store.tree(scope).stamp(tuple(name.split("/")))

    def _census(self, scope: str, part: str) -> list[Entry]:
        if part == "transcripts":
            return list(self._store.transcript_files(scope).census())
        return list(self._store.entries(scope, part) if part in _NOTES else self._store.tree(scope).census())

    # --- listening -----------------------------------------------------------------------------------------------

    def _read_events(self) -> None:
        """Hear what changed; from the second call on, since a single command would pay and never profit."""
        if self._calls < 2:
            return
        if self._watch is not None and self._watch.pid != os.getpid():
            self.close()  # a fork's events would be its parent's
            self._clean.clear()
        if self._watch is None:
            self._watch = self._store.watch()
            return
        for path, names in self._watch.changes().items():
            scope, part, below = self._place(path)
            if names is None or part != "notes" or len(names) > _MANY:
                self._clean.discard((scope, part))
            elif (scope, part) in self._clean:
                self._apply_events(scope, part, [below + name for name in names])
        for scope, part in list(self._clean):  # which other threads may empty
            if not self._watch.watched(self._path(scope, part)):
                self._clean.discard((scope, part))

    def _apply_events(self, scope: str, part: str, names: list[str]) -> None:
        """Look at these files only; one whose name is no text is nobody's note."""
        for name in filter(is_utf8, names):
            stamp = self._stamp(scope, part, name)
            if stamp is None:
                if self.remove_files(scope, part, [name]):
                    self._changed.add(scope)
            elif stamp != self._index.stamp(scope, part, name):
                entry = entry_at(self._path(scope, part), name)
                doc = self._describe(scope, part, entry) if entry else None
                if doc:
                    self._index.put([(doc, None)], self._still_there(scope, part, [doc]))
                    self._changed.add(scope)

    def _watched(self, scope: str, part: str) -> bool:
        if self._watch is None:
            return False
        if part in _NOTES:
            return self._watch.add(self._path(scope, part))
        folders = self._store.transcript_files(scope).folders() if part == "transcripts" else self._store.tree(scope).folders()
        return bool(folders) and all(self._watch.add(path) for path in folders)

    def _path(self, scope: str, part: str) -> str:
        return os.path.join(self._store.home, "shelf", scope, part)

    def _place(self, path: str) -> tuple[str, str, str]:
        """The scope and part that a watched folder belongs to, and its place below them."""
        inside = os.path.relpath(path, os.path.join(self._store.home, "shelf")).split("/")
        depth = 1 if inside[0] == "global" else 2
        below = "/".join(inside[depth + 1 :])
        return "/".join(inside[:depth]), inside[depth], below + "/" if below else ""


_syncs: set[ref[Sync]] = set()


def _in_the_child() -> None:
    for sync in [one for reference in list(_syncs) if (one := reference())]:
        sync.reset_after_fork()


os.register_at_fork(after_in_child=_in_the_child)
