"""The ledger in one SQLite file: which ids are one project, where markers were seen, what was used how often, and what
was shown to which session.

A file that is damaged or not ours is set aside, never deleted: it was truth. Reads make nothing; what cannot be read
answers empty.
"""

from __future__ import annotations

import os
import time

from holdfast import sqlite
from holdfast.errors import DOCTOR, Busy, Damaged, DiskTrouble, Template, Trouble
from holdfast.home import Lock
from holdfast.sqlite import Database, DatabaseReset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, TypeVar

    import apsw

    from holdfast.ledger.agents import Agents
    from holdfast.ledger.audit import Audit
    from holdfast.ledger.done import Done, Reviews
    from holdfast.ledger.idempotency import IdempotencyKeys
    from holdfast.ledger.purges import Purges

    T = TypeVar("T")

_READ = sqlite.statements(__file__)
_STEPS = ("from_version_1", "from_version_2", "from_version_3")  # what an older one is given, a new one has
SQL = {**_READ, "schema": "".join([_READ[name] for name in ("schema", *_STEPS)])}
_APPLICATION, _VERSION = 1215260236, 1 + len(_STEPS)
_STANDINS = ("as_version_2", "as_version_3", "as_version_4")  # for an older one that cannot be written
_TOLD_SECONDS = 30 * 86400  # how long it is remembered what a session was told
_BRIEFED_SECONDS = 400 * 86400  # and to whom a note was told
_MINUTE = 60
ADOPTED = "adopted:"  # before the id of a project that a person joined to another; no id has a colon
_AT_ONCE = 5_000  # ids that one statement is asked about
_WENT_WITH_IT = (
    "with it went receipts and what must not come back, approvals, agents and tokens, the audit, what was done, links and "
    "counts: that file still has what can be read of them"
)
_MEMO_MOST = 10_000
_MOMENT = 10  # seconds by which a client may be late to tell of a start


class SqliteLedger:
    """Durable records that are not prose. Making one touches nothing; the file is opened when needed."""

    _sql = SQL

    def __init__(self, home: str, lock_seconds: float = 30) -> None:
        self._home = home
        self._path = os.path.join(home, "ledger.db")
        self._file = _File(home, "ledger.db", SQL, _APPLICATION, _VERSION, lock_seconds)
        self._counted: dict[str, int] = {}
        self._unreadable: str | None = None
        self._audit: Audit | None = None
        self._purges: Purges | None = None

    def close(self) -> None:
        if self._audit is not None:
            self._audit.added(0)
        self._file.close()

    def named_lock(self, name: str, seconds: float) -> AbstractContextManager[object]:
        """One at a time, between processes."""
        return Lock(self._home, name, seconds)

    # --- whose memory it is: what marker.Registry asks for ----------------------------------------------------------

    def canonical(self, alias: str) -> str | None:
        """The project that goes by this other id."""
        rows = self._rows("canonical", {"alias": alias})
        return str(rows[0][0]) if rows else None

    def link(self, alias: str, project: str, instead: str | None = None) -> None:
        """Let an id lead to a project. The first writer wins, unless the link still says `instead`."""

        def work(db: apsw.Connection) -> None:
            beyond = db.execute(self._sql["canonical"], {"alias": project}).fetchall()
            target = beyond[0][0] if beyond else project
            if target != alias:
                db.execute(self._sql["link"], {"alias": alias, "project": target, "instead": instead})
                db.execute(self._sql["lead_on"], {"alias": alias})

        self._write(work, durable=True)

    def adopted(self, project: str) -> list[str]:
        """The projects that a person joined to this one."""
        return [str(row[0]).removeprefix(ADOPTED) for row in self._rows("adopted", {"project": project})]

    def adopt(self, old: str, new: str) -> None:
        """Let an id, and all that lead to it, lead to another project from now on, whose notes include those of `old`."""

        def work(db: apsw.Connection) -> None:
            for alias in (old, f"{ADOPTED}{old}"):
                db.execute(self._sql["relink"], {"alias": alias, "project": new}).fetchall()
            db.execute(self._sql["lead_on"], {"alias": old})

        self._write(work, durable=True)

    def links(self) -> dict[str, str]:
        """Every older id, and the project it leads to."""
        return {str(alias): str(project) for alias, project in self._rows("links", {})}

    def places(self) -> list[tuple[str, str, str]]:
        """Where markers, repositories and folders of projects were last seen: id, nonce, path."""
        return [(str(id), str(nonce), os.fsdecode(bytes(path))) for id, nonce, path in self._rows("places", {})]

    def place(self, id: str) -> tuple[str, str] | None:
        """The nonce and the path of a marker or a checkout, as last seen."""
        rows = self._rows("place", {"id": id})
        return (str(rows[0][0]), os.fsdecode(rows[0][1])) if rows else None

    def put_place(self, id: str, nonce: str, path: str) -> None:
        row = {"id": id, "nonce": nonce, "path": os.fsencode(path)}
        self._write(lambda db: db.execute(self._sql["put_place"], row), durable=True)

    # --- usage ------------------------------------------------------------------------------------------------------

    def count(self, ids: Iterable[str], now: int) -> None:
        """One more use of each, at most once a minute. Within the minute the file is not touched again."""
        with self._file.lock:
            due = [id for id in dict.fromkeys(ids) if abs(now - self._counted.get(id, -_MINUTE)) >= _MINUTE]
            if not due:
                return
            counted = self._write(lambda db: self._one_more(db, due, now), durable=False)
            if len(self._counted) + len(counted) > _MEMO_MOST:
                self._counted.clear()
            self._counted.update((str(row[0]), now) for row in counted)

    def _one_more(self, db: apsw.Connection, ids: list[str], now: int) -> list[Any]:
        return db.executemany(self._sql["count"], [{"id": id, "now": now} for id in ids]).fetchall()

    def usage(self, ids: Iterable[str]) -> dict[str, int]:
        """How often each was used; those never used are left out."""
        return {id: uses for one in ids for id, uses in self._rows("uses", {"id": one})}

    def show(self, ids: Iterable[str], now: int) -> None:
        """Remember that these notes were shown to a caller without a session: a use for retention, not counted as a recall."""
        rows = [{"id": id, "time": now - _MINUTE} for id in sorted(set(ids))]  # a recall within this minute still counts
        if rows:
            self._write(lambda db: db.executemany(self._sql["show"], rows).fetchall(), durable=False)

    def last_used(self, ids: Sequence[str]) -> dict[str, int]:
        """When each of these notes was last recalled, read or shown, in seconds since 1970; those never used are left out. A
        ledger that cannot be read is an error: retention must not take every note for unused."""
        import json

        found: dict[str, int] = {}
        for start in range(0, len(ids), _AT_ONCE):
            found.update(self._strict_rows("last_used", {"ids": json.dumps(list(ids[start : start + _AT_ONCE]))}))
        return found

    def forget(self, ids: Sequence[str]) -> int:
        """Remove the usage of these ids, whom they were told to and what was decided about them; how many had been used."""
        with self._file.lock:
            for id in ids:
                self._counted.pop(id, None)
            if not self.usage(ids) and not any(row[0] for id in ids for row in self._rows("told_to", {"id": id})):
                return 0

            def work(db: apsw.Connection) -> int:
                before = db.total_changes()
                db.executemany(self._sql["forget"], [{"id": id} for id in ids]).fetchall()
                counted = db.total_changes() - before
                for statement in ("untell", "unbrief", "undecide"):
                    db.executemany(self._sql[statement], [{"id": id} for id in ids]).fetchall()
                return counted

            return self._write(work, durable=True)

    @property
    def purges(self) -> Purges:
        """What was purged, and must not come back."""
        if self._purges is None:
            from holdfast.ledger.purges import Purges

            self._purges = Purges(self._home, self._sql, self._strict_rows, self._write)
        return self._purges

    def briefed_to(self, ids: Sequence[str]) -> tuple[int, list[str]]:
        """How often these notes were told to anybody, and to which sessions."""
        import json

        rows = self._rows("briefed_to", {"ids": json.dumps(list(ids))})
        return (int(rows[0][0]), str(rows[0][2] or "").split(",")) if rows and rows[0][0] else (0, [])

    def scrub(self, seconds: float | None = None) -> None:
        """Leave no byte of what was forgotten: its rows are zeros already, now the write-ahead log goes."""
        if os.path.lexists(self._path):
            self._file.scrub(seconds)

    @property
    def problem(self) -> str | None:
        """What a person should know: a ledger that was set aside, or one that cannot be read."""
        try:
            aside = sorted([name for name in os.listdir(self._home) if _is_aside(name)])
        except OSError:
            aside = []
        if aside:
            return f"a damaged ledger was set aside as {', '.join(aside)}; {_WENT_WITH_IT}"
        return self._unreadable

    # --- what was shown to whom -------------------------------------------------------------------------------------

    def shown(self, session: str) -> dict[str, str]:
        """The notes that a session was shown since its context began, each with the version of it."""
        return dict(self._rows("told", {"session": session}))

    def record_shown(
        self, session: str, notes: Iterable[tuple[str, str]], now: int, anew: bool = False, client: str = "",
        first: bool = False,
    ) -> list[str]:  # fmt: skip
        """Remember versions of notes as shown; those that nobody else had shown meanwhile. `anew` is a new context: what
        was shown before counts no more, but whom anything was told to is known for as long as anybody may ask. Of the `first`
        context of a session the first prompt may be heard before its start: that was shown to it too."""
        who = {"session": session, "client": client, "time": now}
        rows = [{**who, "note": note, "version": version} for note, version in sorted(notes)]  # in everybody's order

        def work(db: apsw.Connection) -> list[str]:
            if anew:
                self._new_context(db, session, now, first)
            db.executemany(self._sql["add_briefed"], rows).fetchall()
            return [str(row[0]) for row in db.executemany(self._sql["tell"], rows).fetchall()]

        return self._write(work, durable=False)

    def briefed(self, note: str) -> list[tuple[str, str, str, int]]:
        """To whom a note was told, the last first: version, session, client, when."""
        return self._rows("briefed", {"note": note})

    def _new_context(self, db: apsw.Connection, session: str, now: int, first: bool) -> int:
        """Forget what was shown; from when on the session's only prompt belongs to the context that begins. The first start of
        a session is remembered like a note without a name: another is no late one."""
        before, start = now - _TOLD_SECONDS, {"session": session, "note": "", "version": "", "time": now}
        late = first and not db.execute(self._sql["begun"], {"session": session}).fetchall()
        fresh = now - _MOMENT if late else now + 1
        db.execute(self._sql["new_context"], {"session": session, "before": before, "fresh": fresh, "now": now}).fetchall()
        db.execute(self._sql["old_prompts"], {"before": before}).fetchall()
        db.execute(self._sql["old_briefed"], {"before": now - _BRIEFED_SECONDS}).fetchall()
        if late:
            db.execute(self._sql["tell"], start).fetchall()
        return fresh

    def begin(self, session: str, now: int, first: bool = False) -> None:
        """A session starts over: nothing was shown to it, and it had no prompt; but for what `tell` says of the first."""

        def work(db: apsw.Connection) -> None:
            fresh = self._new_context(db, session, now, first)
            db.execute(self._sql["no_prompts"], {"session": session, "fresh": fresh, "now": now}).fetchall()

        self._write(work, durable=False)

    def prompted(self, session: str, digest: str, now: int) -> int:
        """How many prompts a session has had with this one; 0 if this one was counted already."""
        row = {"session": session, "last": digest, "time": now}
        counted: list[Any] = self._write(lambda db: db.execute(self._sql["prompted"], row).fetchall(), durable=False)
        return int(counted[0][0]) if counted else 0

    # --- the gateway's records: rooms of their own, in the same file ---------------------------------------------------

    @property
    def agents(self) -> Agents:
        """Who may come in, and with which tokens."""
        from holdfast.ledger.agents import Agents

        return Agents(self._file, self._path, self.audit)

    @property
    def audit(self) -> Audit:
        """Every decision; one for all threads, because they write together."""
        if self._audit is None:
            from holdfast.ledger.audit import Audit

            with self._file.lock:
                self._audit = self._audit or Audit(self._file, self._path)
        return self._audit

    @property
    def done(self) -> Done:
        """What agents have done and need not do again."""
        from holdfast.ledger.done import Done

        return Done(self._file, self._path)

    @property
    def reviews(self) -> Reviews:
        """Which pull requests were reviewed, and which one somebody is at."""
        from holdfast.ledger.done import Reviews

        return Reviews(self._file, self._path)

    @property
    def idempotency_keys(self) -> IdempotencyKeys:
        """Requests that may come twice and are done once."""
        from holdfast.ledger.idempotency import IdempotencyKeys

        return IdempotencyKeys(self._file, self._path)

    # --- what people decided ----------------------------------------------------------------------------------------

    def decide(self, action: str, subject: str, detail: dict[str, str], time: int) -> None:
        """Keep what a person decided about a note: names and ids, never a text."""
        import json

        row = {"action": action, "subject": subject, "detail": json.dumps(detail, ensure_ascii=False), "time": time}
        self._write(lambda db: db.execute(self._sql["decide"], row).fetchall(), durable=True)

    def decisions(self, subject: str) -> list[tuple[str, dict[str, str], int]]:
        """What was decided about a note, the last first: action, detail, when."""
        import json

        return [(action, json.loads(detail), time) for action, detail, time in self._rows("decisions", {"subject": subject})]

    # --- running statements -----------------------------------------------------------------------------------------

    def _rows(self, statement: str, values: dict[str, Any]) -> list[Any]:
        """All rows; none where there is no ledger or it cannot be read here."""
        try:
            rows = self._strict_rows(statement, values)
        except (Busy, Damaged, DiskTrouble) as error:
            self._unreadable = error.message
            return []
        self._unreadable = None
        return rows

    def _strict_rows(self, statement: str, values: dict[str, Any]) -> list[Any]:
        """The same, but what cannot be read is an error: what was purged must not pass because nobody could look."""
        if not os.path.lexists(self._path):
            return []
        try:
            rows = self._file.rows(statement, **values)
            if self._file.reason and not self._file.opened().filename:  # what stands in for it in memory knows nothing
                usual = Template("Let this user read and write ledger.db: ", DOCTOR, " says how")
                raise DiskTrouble(self._file.reason, self._file.fix or usual)
            return rows
        except DatabaseReset:
            return []

    def _write(self, work: Callable[[apsw.Connection], T], durable: bool) -> T:
        """Do it in one transaction; durable means on the disk, and in the main file, before this returns."""
        for attempt in (1, 2):
            try:
                with self._file.transaction(durable) as db:
                    answer = work(db)
                if durable:
                    self._file.rows("move_to_main_file")
                return answer
            except DatabaseReset as error:
                if attempt == 2:
                    raise Trouble(f"the ledger is damaged again and again: {error}", "Check the disk") from None
        raise AssertionError("unreachable")


class _File(Database):
    """Truth: what is damaged is set aside, and what a newer Holdfast wrote is left alone."""

    truth = True
    _makes = False  # whether we hold the file's lock already

    def take_away(self, path: str) -> None:
        if os.path.lexists(path):
            sqlite.set_aside(path, f"{path}.damaged-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")

    def _is_ours(self, db: apsw.Connection) -> bool:
        """A ledger of an earlier version is brought up to this one where it stands; one that cannot be written tells all
        that it knows."""
        version = db.pragma("user_version")
        if db.pragma("application_id") == self._application and isinstance(version, int) and 1 <= version < _VERSION:
            if db.readonly("main"):
                for name in _STANDINS[version - 1 :]:
                    db.execute(self._sql[name]).fetchall()
                return True
            if self._makes:
                self._bring_up(db)
            else:
                with Lock(self._home, os.path.basename(self._path), self._seconds):
                    self._bring_up(db)
        return super()._is_ours(db)

    def _make(self) -> apsw.Connection:
        self._makes = True
        try:
            return super()._make()
        finally:
            self._makes = False

    def _bring_up(self, db: apsw.Connection) -> None:
        db.execute("BEGIN IMMEDIATE")
        try:
            version = db.pragma("user_version")  # somebody else may have done it meanwhile
            for name in _STEPS[version - 1 :]:
                db.execute(self._sql[name]).fetchall()
            db.execute(f"PRAGMA user_version={_VERSION:d}").fetchall()
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    def newer(self, version: int) -> None:
        raise Trouble("ledger.db was written by a newer Holdfast", "Upgrade this one")


def _is_aside(name: str) -> bool:
    return name.startswith("ledger.db.damaged-") and not name.endswith(("-wal", "-shm"))
