"""A memory that PostgreSQL holds: its rooms, and how its catalogue is kept true to them.

Nothing tells of changes here. Each call compares one number a folder, the shelf's and the catalogue's, which is one small
question for all of its scopes: whatever another process has stored is found by the next question.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import local

from holdfast.context import sync
from holdfast.index.entries import note_entry
from holdfast.models import Problem
from holdfast.postgres import Database, settings_of, statements, wrong
from holdfast.postgres.index import PostgresIndex
from holdfast.postgres.ledger import PostgresLedger
from holdfast.postgres.store import PostgresStore
from holdfast.store.files import Entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeVar

    from holdfast.base.ids import FileId
    from holdfast.config import Config
    from holdfast.formats.versions import ParsedNote
    from holdfast.index.sqlite import Known
    from holdfast.models import Scope
    from holdfast.store.atomic import FileContent

    T = TypeVar("T")


SQL = statements(__file__)


def rooms(
    config: Config, agent: str | None, all_agents: bool
) -> tuple[PostgresStore, PostgresIndex, PostgresLedger, type[PostgresSync]]:
    """The rooms of the store that the settings name, as this caller sees them; nothing is opened yet."""
    settings = settings_of(config, agent, all_agents)
    store = PostgresStore(settings, config.home, config.lock_seconds)
    index = PostgresIndex(settings, config.lock_seconds, config.quarantine)
    index.standing = SQL["standing"]
    return store, index, PostgresLedger(settings, config.lock_seconds), PostgresSync


def problems(config: Config, index: Any) -> list[Problem]:
    """What is wrong with the store besides what it holds: no search by meaning, or a replica that is none."""
    said = without_vectors(config, index)
    what, fix = wrong(settings_of(config, None, all_agents=True))
    found = [Problem("vectors", f"search by meaning is off: {said[0]}", said[1])] if said[0] else []
    return found + ([Problem("replica", what, fix)] if what else [])


def without_vectors(config: Config, index: Any) -> tuple[str, str]:
    """Why no vectors are kept though some are wanted, and what mends that."""
    lacking: tuple[str, str] = index.vectors.lacking() if config.embedder.strip().lower() != "none" else ("", "")
    return lacking


class PostgresSync(sync.Sync):
    """The bridge between the two, without a watch and without a file."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        store: Any = self._store
        self._bridge = Database(store.settings, SQL, self._lock_seconds)
        self._now = local()  # of each thread: what a replica must have to be asked, and whether one was

    def refresh(self, scopes: tuple[str, ...], archived: bool = False) -> str:
        self.scopes, self._generation = scopes, self._index.generation()
        self.archived = self.archived or archived
        self._changed_here()
        parts = [*sync.PARTS, sync.ARCHIVE] if archived else list(sync.PARTS)
        rows = self._bridge.rows("look", scopes=list(scopes), parts=parts)
        wrong = [(scope, part) for scope, part, mix, known in rows if mix != known]
        reasons = [self._mend(*place) for place in sorted(wrong)]
        if not wrong and self._bridge.settings.read_url:
            self._now.there = {(scope, part): mix for scope, part, mix, _ in rows}
        return next(filter(None, reasons), "")

    def _mend(self, scope: str, part: str) -> str:
        """Mostly another writer is between its two steps: what changed last is all that differs, and is read here. Only where
        it is not all, everything is compared."""
        changed, gone, total = [], [], 0
        rows = self._bridge.rows("suspects", scope=scope, part=part)
        for _, name, stamp, when, size, mix, known, known_when, known_mix in rows:
            if (stamp, when) == (known, known_when):
                continue
            total ^= mix ^ known_mix
            if stamp is None:
                gone.append(name)
            else:
                changed.append(Entry(name, (stamp, when, size), regular=True))
        if not rows or total != rows[0][0]:
            return self._reconcile(scope, part)
        self._apply(scope, part, changed, gone)
        return ""

    def run_query(self, question: Callable[[], T]) -> T:
        """Of a replica, if it has all that the primary had at the last look. That is asked in the same transaction as the
        question: behind one address may be several, and one of them answers both."""
        there = getattr(self._now, "there", None)
        self._now.replica = False
        if there is not None and not getattr(self._now, "of_primary", False):
            with self._index.reading(replica=True):
                known = self._index.known(tuple(dict.fromkeys([scope for scope, _ in there])))
                if all(_number(known.get(place)) == mix for place, mix in there.items()):
                    self._now.replica = True
                    return question()
        return question()

    @contextmanager
    def use_primary(self) -> Iterator[None]:
        before = getattr(self._now, "of_primary", False)
        self._now.of_primary = True
        try:
            yield
        finally:
            self._now.of_primary = before

    def _changed_here(self) -> None:
        """Until the next look no replica is asked: none has what this thread just changed."""
        self._now.there, self._now.replica = None, False

    def index_file(self, scope: str, name: str, written: FileContent) -> None:
        self._changed_here()
        super().index_file(scope, name, written)

    def remove_files(self, scope: str, part: str, names: list[str]) -> int:
        self._changed_here()
        return super().remove_files(scope, part, names)

    def refresh_folder(self, scope: str, part: str) -> None:
        self._changed_here()
        super().refresh_folder(scope, part)

    def _apply(self, scope: str, part: str, changed: list[Entry], gone: list[str]) -> None:
        self._changed_here()
        super()._apply(scope, part, changed, gone)

    def index_notes(self, scope: str, written: list[tuple[str, ParsedNote, FileId, FileId | None]]) -> None:
        """Whether they still stand there the catalogue sees for itself."""
        self._changed_here()
        docs = [
            (note_entry(scope, name, parsed, stamp, newest_only=replaced is not None), replaced)
            for name, parsed, stamp, replaced in written
        ]
        self._index.put(docs, lambda _: True)

    def _stamped(self, scope: str, part: str, names: list[str]) -> dict[str, FileId | None]:
        """All of them with one question."""
        if part != "transcripts":
            return self._store.stamps(scope, part, names)
        here = {entry.name: entry.stamp for entry in self._store.transcript_files(scope).census()} if len(names) > 1 else {}
        return {name: here.get(name) for name in names} if here else super()._stamped(scope, part, names)

    def reset(self) -> None:
        super().reset()
        if hasattr(self, "_now"):
            self._changed_here()

    def listing(self, place: Scope) -> bool:
        """There is no folder in which anybody would look for an index.md."""
        return True

    def _refresh_folder(self, scope: str, part: str, known: Known | None) -> str:
        if _number(known) == self._store.fingerprint(scope, part):
            return ""
        return self._mend(scope, part)


def _number(known: Known | None) -> int | None:
    return known[1] if known else None
