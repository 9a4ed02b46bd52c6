"""Records of which notes were used, which were shown to which session, and what people decided about them."""

from __future__ import annotations

from holdfast.base.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from builtins import list as List  # `list` is a method here
    from collections.abc import Iterable, Sequence

    from holdfast.ledger.interface import LedgerDatabase, Transaction

_MINUTE = 60
_DAY = 86400
_SHOWN_SECONDS = 30 * _DAY  # how long a session's shown notes are kept
_HISTORY_SECONDS = 400 * _DAY  # how long the sessions that a note was shown to are kept
_LATE_SECONDS = 10  # how late a client may report the start of a session, after its first prompt
_MAX_CACHED = 10_000
_IDS_PER_QUERY = 5_000


class Usage:
    """Counts and times of the uses of notes."""

    def __init__(self, database: LedgerDatabase) -> None:
        self._database = database
        self._counted: dict[str, int] = {}
        self._is_deferred = False
        self._unwritten: dict[str, int] = {}  # when notes were used, if uses are deferred

    def defer(self) -> None:
        """Write uses only with `write_deferred`, which a server calls every second: one transaction for many requests."""
        self._is_deferred = True

    def record_use(self, ids: Iterable[str], now: int) -> None:
        """Count one more use of each note, at most one a minute. Within that minute the database is not used again."""
        with self._database.lock:
            due = [id for id in dict.fromkeys(ids) if abs(now - self._counted.get(id, -_MINUTE)) >= _MINUTE]
            if not due:
                return
            if self._is_deferred:
                if len(self._unwritten) < _MAX_CACHED:  # else the ledger has not been writable for long
                    self._unwritten.update((id, now) for id in due)
                self._remember(due, now)
                return
            rows = [{"id": id, "now": now} for id in sorted(due)]  # sorted, so that two writers cannot deadlock
            counted = self._database.write(lambda transaction: transaction.run_many("count", rows), durable=False)
            self._remember([str(id) for (id,) in counted], now)

    def _remember(self, ids: List[str], now: int) -> None:
        if len(self._counted) + len(ids) > _MAX_CACHED:
            self._counted.clear()
        self._counted.update((id, now) for id in ids)

    def write_deferred(self) -> None:
        """Write the uses that are not written yet; they stay if that fails."""
        with self._database.lock:
            if not self._unwritten:
                return
            rows = [{"id": id, "now": time} for id, time in sorted(self._unwritten.items())]
            self._database.write(lambda transaction: transaction.run_many("count", rows), durable=False)
            self._unwritten.clear()

    def get_counts(self, ids: Iterable[str]) -> dict[str, int]:
        """Return how often each note was used; those never used are left out."""
        self.write_deferred()
        wanted = list(dict.fromkeys(ids))
        return dict(self._database.read_or_empty("uses", ids=json_list(wanted))) if wanted else {}

    def record_shown(self, ids: Iterable[str], now: int) -> None:
        """Record that notes were shown to a caller without a session: a use for retention, not counted as a recall."""
        rows = [{"id": id, "time": now - _MINUTE} for id in sorted(set(ids))]  # a recall within this minute still counts
        if rows:
            self._database.write(lambda transaction: transaction.run_many("show", rows), durable=False)

    def last_used(self, ids: Sequence[str]) -> dict[str, int]:
        """Return when each note was last recalled, read or shown, in seconds since 1970; those never used are left out.

        Raises where the ledger cannot be read: retention must not take every note for unused."""
        self.write_deferred()
        found: dict[str, int] = {}
        for start in range(0, len(ids), _IDS_PER_QUERY):
            found.update(self._database.read("last_used", ids=json_list(ids[start : start + _IDS_PER_QUERY])))
        return found

    def count_shown_by_day(self, since: int, ids: Sequence[str] | None) -> dict[int, int]:
        """Return how many versions of notes were first shown to a session, by day since 1970; of these notes, or of all."""
        return dict(self._database.read_or_empty("shown_by_day", since=since, ids=_json_or_none(ids)))

    def count_used_by_day(self, since: int, ids: Sequence[str] | None) -> dict[int, int]:
        """Return how many notes were used last on each day since 1970: of these notes, or of all. Files count too."""
        self.write_deferred()
        return dict(self._database.read_or_empty("used_by_day", since=since, ids=_json_or_none(ids)))

    def list_shown_lately(self, since: int, ids: Sequence[str] | None, most: int) -> List[tuple[str, int, int]]:
        """Return the notes that sessions were shown last: id, when, and to how many sessions and in how many versions."""
        return self._database.read_or_empty("shown_lately", since=since, ids=_json_or_none(ids), most=most)

    def list_used_lately(self, since: int, ids: Sequence[str] | None, most: int) -> List[tuple[str, int, int]]:
        """Return the notes that were used last: id, when, and how often in all."""
        self.write_deferred()
        return self._database.read_or_empty("used_lately", since=since, ids=_json_or_none(ids), most=most)

    def forget(self, ids: Sequence[str]) -> int:
        """Delete all records of these notes: uses, sessions they were shown to, decisions; return how many had been used."""
        rows = [{"id": id} for id in ids]

        def delete_rows(transaction: Transaction) -> int:
            counted = len(transaction.run_many("forget", rows))
            for statement in ("forget_shown", "forget_history", "forget_decisions"):
                transaction.run_many(statement, rows)
            return counted

        with self._database.lock:
            self.write_deferred()  # so that they are counted among what is deleted
            for id in ids:
                self._counted.pop(id, None)
            mentions = [count for id in ids for (count,) in self._database.read_or_empty("mentions", id=id)]
            if not any(mentions) and not self.get_counts(ids):
                return 0
            return self._database.write(delete_rows, checkpoint=True)


class ShownTo(Record):
    """A session that a version of a note was shown to, and when first, in seconds since 1970."""

    version: str
    session: str
    client: str
    time: int


class Sessions:
    """The notes that each session of a client was shown since its context began, and its number of prompts."""

    def __init__(self, database: LedgerDatabase) -> None:
        self._database = database

    def list_shown(self, session: str) -> dict[str, str]:
        """Return the notes that a session was shown since its context began, each with the version of it."""
        return dict(self._database.read_or_empty("shown", session=session))

    def record_shown(
        self, session: str, notes: Iterable[tuple[str, str]], now: int, *, new_context: bool = False, client: str = "",
        first: bool = False,
    ) -> List[str]:  # fmt: skip
        """Record versions of notes as shown; return the notes that no other process had recorded meanwhile.

        With `new_context`, what was shown before no longer counts. The first prompt of a session's `first` context may arrive
        before the start of the session: what was shown with it belongs to that context too."""
        shared = {"session": session, "client": client, "time": now}
        rows = [{**shared, "note": note, "version": version} for note, version in sorted(notes)]  # see `count`

        def insert_rows(transaction: Transaction) -> List[str]:
            if new_context:
                self._begin_context(transaction, session, now, first)
            transaction.run_many("add_history", rows)
            return [str(note) for (note,) in transaction.run_many("show_note", rows)]

        return self._database.write(insert_rows, durable=False)

    def begin(self, session: str, now: int, first: bool = False) -> None:
        """Start a session over: it has been shown nothing and had no prompt; see `record_shown` for the first start."""

        def reset_session(transaction: Transaction) -> None:
            since = self._begin_context(transaction, session, now, first)
            transaction.run("forget_prompts", session=session, since=since, now=now)

        self._database.write(reset_session, durable=False)

    def _begin_context(self, transaction: Transaction, session: str, now: int, first: bool) -> int:
        """Forget what was shown; return since when a session's only prompt belongs to the context that begins.

        The first start of a session is kept as a note without an id, so that a second start is not taken for a late one."""
        before = now - _SHOWN_SECONDS
        is_late = first and not transaction.run("has_begun", session=session)
        since = now - _LATE_SECONDS if is_late else now + 1
        transaction.run("begin_context", session=session, before=before, since=since, now=now)
        transaction.run("forget_old_prompts", before=before)
        transaction.run("forget_old_history", before=now - _HISTORY_SECONDS)
        if is_late:
            transaction.run("show_note", session=session, note="", version="", time=now)
        return since

    def count_prompt(self, session: str, digest: str, now: int) -> int:
        """Return how many prompts a session has had, this one included; 0 if this one was counted already."""
        values = {"session": session, "last": digest, "time": now}
        counted = self._database.write(lambda transaction: transaction.run("count_prompt", **values), durable=False)
        return int(counted[0][0]) if counted else 0

    def list_history(self, note: str) -> List[ShownTo]:
        """Return the sessions that a note was shown to, newest first."""
        rows = self._database.read_or_empty("history", note=note)
        return [ShownTo(version=version, session=session, client=client, time=time) for version, session, client, time in rows]

    def count_shown(self, ids: Sequence[str]) -> tuple[int, List[str]]:
        """Return how often these notes were shown, and to which sessions."""
        rows = self._database.read_or_empty("shown_to", ids=json_list(ids))
        count, sessions = rows[0] if rows else (0, "")
        return (int(count), str(sessions or "").split(",")) if count else (0, [])


class PersonDecision(Record):
    """A person's decision about a note: names and ids, never a text. The time is in seconds since 1970."""

    action: str
    detail: dict[str, str]
    time: int


class Decisions:
    """Decisions of people about notes."""

    def __init__(self, database: LedgerDatabase) -> None:
        self._database = database

    def record(self, action: str, subject: str, detail: dict[str, str], time: int) -> None:
        """Keep a decision about the note with this id."""
        import json

        values = {"action": action, "subject": subject, "detail": json.dumps(detail, ensure_ascii=False), "time": time}
        self._database.write(lambda transaction: transaction.run("decide", **values), checkpoint=True)

    def list(self, subject: str) -> List[PersonDecision]:
        """Return the decisions about a note, newest first."""
        import json

        rows = self._database.read_or_empty("decisions", subject=subject)
        return [PersonDecision(action=action, detail=json.loads(detail), time=time) for action, detail, time in rows]


def _json_or_none(ids: Sequence[str] | None) -> str | None:
    return None if ids is None else json_list(ids)


def json_list(ids: Sequence[str]) -> str:
    """Return texts as a JSON array; without the json package where they are plain, because it costs a cold recall 2 ms."""
    return f"[{','.join([_json_string(id) for id in ids])}]"


def _json_string(text: str) -> str:
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    import json

    return json.dumps(text)
