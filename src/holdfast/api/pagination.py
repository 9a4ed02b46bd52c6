"""Long lists a page at a time: notes, quarantined notes, versions, trash, facts and receipts.

Each function returns the rows of a page and the cursor of the next page, which is None at the end.
"""

from __future__ import annotations

from holdfast.api.memory import context_of
from holdfast.errors import NotFound, UsageError
from holdfast.models import Fact, Note, Receipt, Relation, Scope, Source, TrashedNote, Version, parse_tags
from holdfast.safety import validate
from holdfast.verbs import facts as fact_verbs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from holdfast.api.memory import Memory
    from holdfast.context.caller import Tags
    from holdfast.verbs.operator_messages import Message
    from holdfast.verbs.sessions import SessionSummary

    T = TypeVar("T")

_BATCH = 200  # notes that `iterate_notes` reads at a time
_QUARANTINED = 1  # the index's filter for notes in quarantine
_FIX = "Start again without a cursor"


def list_page(
    memory: Memory, limit: int, cursor: str = "", *, scope: str | None = None, type: str | None = None, tags: Tags = None,
    source: str | None = None, archived: bool = False, everywhere: bool = False,
) -> tuple[list[Note], str | None]:  # fmt: skip
    """Return a page of `Memory.list`; with `everywhere`, which is for a person only, of the notes of all scopes."""
    wanted = validate.check_note_type(type) if type else None
    folders = _folders(memory, scope, everywhere)
    last = _last_note(cursor, folders)
    if source is not None:  # the derived notes are found note by note: all of them are known, or none
        notes = memory.list(scope=scope, type=type, tags=tags, source=source, archived=archived)
        return _cut_page([note for note in notes if last is None or _is_after(note, last)], limit, _note_cursor)
    return _note_page(memory, limit, folders, last, type=wanted, tags=parse_tags(tags), archived=archived)


def review_page(
    memory: Memory, limit: int, cursor: str = "", *, scope: str | None = None, everywhere: bool = False
) -> tuple[list[Note], str | None, int]:
    """Return a page of `Memory.review`, the next cursor, and how many notes there are in all."""
    from holdfast.verbs import review

    if not memory.config.enabled:
        return [], None, 0
    context = context_of(memory)
    folders = review.all_folders(context, scope) if everywhere else context.visible_folders(scope)
    notes, following = _note_page(memory, limit, folders, _last_note(cursor, folders), only=_QUARANTINED)
    return notes, following, context.query(lambda: context.index.count_notes(folders, only=_QUARANTINED))


def _folders(memory: Memory, scope: str | None, everywhere: bool) -> tuple[str, ...]:
    """Return the folders that a list is about: those that the caller sees, or with `everywhere` all that there are."""
    from holdfast.verbs import review

    if not memory.config.enabled:
        return ()
    context = context_of(memory)
    return review.all_folders(context, scope) if everywhere else context.visible_folders(scope)


def _note_page(
    memory: Memory, limit: int, folders: tuple[str, ...], last: Note | None, *, type: str | None = None,
    tags: tuple[str, ...] = (), only: int | None = None, archived: bool = False,
) -> tuple[list[Note], str | None]:  # fmt: skip
    """Return a page of the notes of some folders, after the last note of the previous page."""
    if not memory.config.enabled:
        return [], None
    context = context_of(memory)
    context.refresh(folders, archived)

    def notes() -> list[Note]:
        if last is None:
            return context.index.list_notes(folders, type, tags, most=limit + 1, only=only, archived=archived)
        return context.index.list_notes_after(last, folders, type=type, tags=tags, most=limit + 1, only=only, archived=archived)

    return _cut_page(context.query(notes), limit, _note_cursor)


def iterate_notes(memory: Memory, scope: str | None = None) -> Iterator[Note]:
    """Yield every note that the caller may read, by scope and key, with at most one batch in memory."""
    if not memory.config.enabled:
        return
    context = context_of(memory)
    folders = context.visible_folders(scope)
    context.refresh(folders)
    for folder in folders:
        after = ""
        while True:
            notes = context.query(lambda: context.index.list_notes_by_key(folder, after, _BATCH))  # noqa: B023
            yield from notes
            if len(notes) < _BATCH:
                break
            after = notes[-1].path.rpartition("/")[2]


def history_page(
    memory: Memory, key: str, limit: int, cursor: str = "", *, scope: str | None
) -> tuple[list[Version], str | None]:
    """Return a page of `Memory.history`. The cursor counts the older versions that are left, so new versions change nothing."""
    if cursor and not _is_number(cursor):
        raise UsageError("the cursor is not valid", _FIX)
    history = memory.history(key, scope=scope)
    left = min(int(cursor), len(history)) if cursor else len(history)
    return history[len(history) - left :][:limit], str(left - limit) if left > limit else None


def trash_page(
    memory: Memory, limit: int, cursor: str = "", *, scope: str | None = None, part: str | None = None,
    everywhere: bool = False,
) -> tuple[list[TrashedNote], str | None]:  # fmt: skip
    """Return a page of `Memory.trash`: only of `part` trash or archive, and with `everywhere` of all scopes."""
    last = _decode_cursor(cursor, 4) if cursor else None
    scopes = [Scope.of_folder(folder) for folder in _folders(memory, scope, everywhere)]
    folders = [one.folder for one in scopes]
    if last is not None and scopes and last[0] not in folders:
        raise UsageError("the cursor is not valid", _FIX)
    found: list[TrashedNote] = []
    for one in scopes[folders.index(last[0]) if last and scopes else 0 :]:
        trash = sorted(context_of(memory).store.list_trash(one), key=_trash_order, reverse=True)
        wanted = [note for note in trash if part in (None, note.part)]
        found += [note for note in wanted if last is None or one.folder != last[0] or _trash_order(note) < tuple(last[1:])]
        if len(found) > limit:
            break
    return _cut_page(found, limit, lambda note: _encode_cursor(note.scope.folder, *_trash_order(note)))


def facts_page(
    memory: Memory, limit: int, cursor: str = "", *, subject: str | None = None, label: str | None = None,
    as_of: object = None, scope: str | None = None, history: bool = False,
) -> tuple[list[Fact], str | None]:  # fmt: skip
    """Return a page of `Memory.facts`."""
    context = context_of(memory)
    last = _fact_of_cursor(cursor) if cursor else None
    folders = fact_verbs.find_folders(context, scope) if last and memory.config.enabled else ()
    if last and folders and not last.path.startswith(tuple([f"{folder}/" for folder in folders])):
        raise UsageError("the cursor belongs to another list", _FIX)
    found = fact_verbs.list_facts(
        context, subject=subject, label=label, as_of=as_of, scope=scope, history=history, last=last, most=limit + 1
    )
    return _cut_page(found, limit, _fact_cursor)


def subjects_page(
    memory: Memory, limit: int, cursor: str = "", *, contains: str = "", scope: str | None = None
) -> tuple[list[fact_verbs.FactSubject], str | None]:
    """Return a page of the subjects that facts are stated about, by name."""
    (last,) = _decode_cursor(cursor, 1) if cursor else [""]
    if cursor and not last:
        raise UsageError("the cursor is not valid", _FIX)
    found = fact_verbs.list_subjects(context_of(memory), contains=contains, scope=scope, after=last, most=limit + 1)
    return _cut_page(found, limit, lambda one: _encode_cursor(one.subject))


def relations_page(
    memory: Memory, limit: int, cursor: str = "", *, key: str | None = None, scope: str | None = None,
    status: str | None = None, everywhere: bool = False,
) -> tuple[list[Relation], str | None]:  # fmt: skip
    """Return a page of `Memory.relations`, the oldest first. The cursor is where the last relation is in that order."""
    after = tuple(_decode_cursor(cursor, 6)) if cursor else ()
    every = memory.relations(key, scope=scope, status=status, everywhere=everywhere)
    rest = sorted([one for one in every if _relation_order(one) > after], key=_relation_order)
    return _cut_page(rest, limit, lambda one: _encode_cursor(*_relation_order(one)))


def _relation_order(one: Relation) -> tuple[str, ...]:
    return one.time, one.kind, one.scope.folder, one.key, one.target_scope.folder, one.target


def receipts_page(memory: Memory, limit: int, cursor: str = "") -> tuple[list[Receipt], str | None]:
    """Return a page of `Memory.receipts`. The cursor is the id of the last receipt; receipts are never deleted."""
    from holdfast.verbs.purge.receipts import list_receipts_after

    try:
        if cursor:
            memory.receipts(cursor)
    except NotFound:
        raise UsageError("the cursor is not valid", _FIX) from None
    found = list_receipts_after(context_of(memory), cursor or None, limit + 1)
    return _cut_page(found, limit, lambda receipt: receipt.id)


def sessions_page(
    memory: Memory, limit: int, cursor: str = "", *, match: str = "", everywhere: bool = False
) -> tuple[list[SessionSummary], str | None]:
    """Return a page of the kept transcripts, the last changed first."""
    from holdfast.verbs import review, sessions

    if not memory.config.enabled:
        return [], None
    context, after = context_of(memory), None
    if cursor:
        changed, name = _decode_cursor(cursor, 2)
        if not (changed.isascii() and changed.isdecimal() and len(changed) <= 20):
            raise UsageError("the cursor is not valid", _FIX)
        after = int(changed), name
    folders = review.all_folders(context) if everywhere else context.visible_folders(None)
    found = sessions.list_sessions(context, folders, match=match, after=after, most=limit + 1)
    page, following = _cut_page(found, limit, lambda one: _encode_cursor(str(one[0]), sessions.order_name(one[1])))
    return [one for _, one in page], following


def message_page(
    memory: Memory, limit: int, cursor: str = "", *, scope: str | None = None, unread: bool = False
) -> tuple[list[Message], str | None]:
    """Return a page of `Memory.operator_list`. The cursor counts the older messages that are left, so new ones and those that
    were read meanwhile change nothing."""
    if cursor and not _is_number(cursor):
        raise UsageError("the cursor is not valid", _FIX)
    every = memory.operator_list(scope=scope)
    left = min(int(cursor), len(every)) if cursor else len(every)
    rest = [(number, one) for number, one in enumerate(every[len(every) - left :], 1) if not (unread and one.read)]
    page, following = _cut_page(rest, limit, lambda row: str(left - row[0]))
    return [one for _, one in page], following


def _cut_page(found: list[T], limit: int, cursor_of: Callable[[T], str]) -> tuple[list[T], str | None]:
    """Return the first `limit` rows, and the cursor of the next page if there are more."""
    return found[:limit], cursor_of(found[limit - 1]) if len(found) > limit else None


# --- order and cursors -----------------------------------------------------------------------------------------------


def _trash_order(note: TrashedNote) -> tuple[str, str, str]:
    """Order by the number in the name first: the clock may go back."""
    return note.name.rpartition("-")[2], note.time, f"{note.part}/{note.name}"


def _is_after(note: Note, last: Note) -> bool:
    """Return whether a note comes after another in the index's order: pinned first, then newest, then by scope and key."""
    here, there = (note.pinned, note.updated, note.id), (last.pinned, last.updated, last.id)
    return here < there or (here == there and (note.scope.folder, note.key) > (last.scope.folder, last.key))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 15


def _note_cursor(note: Note) -> str:
    return _encode_cursor(str(int(note.pinned)), note.updated, note.id, note.scope.folder, note.key)


def _note_of_cursor(cursor: str) -> Note:
    """Return a note with the fields that the order needs; raise `UsageError` if it is not a cursor."""
    pinned, updated, id, folder, key = _decode_cursor(cursor, 5)
    try:
        scope = Scope.of_folder(folder)
    except (ValueError, KeyError):
        raise UsageError("the cursor is not valid", _FIX) from None
    return Note(
        scope=scope, key=key, id=id, text="", type="", tags=(), created="", updated=updated, source=Source(), valid_from="",
        valid_to=None, pinned=pinned == "1", path="", lines=(0, 0), version="", versions=1,
    )  # fmt: skip


def _last_note(cursor: str, folders: tuple[str, ...]) -> Note | None:
    """Return the last note of the previous page; raise `UsageError` if it is not of one of the folders."""
    last = _note_of_cursor(cursor) if cursor else None
    if last and folders and last.scope.folder not in folders:
        raise UsageError("the cursor belongs to another list", _FIX)
    return last


def _fact_cursor(fact: Fact) -> str:
    return _encode_cursor(fact.subject, fact.label, fact.valid_from, str(fact.line), fact.path)


def _fact_of_cursor(cursor: str) -> Fact:
    """Return a fact with the fields that the order needs; raise `UsageError` if it is not a cursor."""
    subject, label, start, line, path = _decode_cursor(cursor, 5)
    if not _is_number(line):
        raise UsageError("the cursor is not valid", _FIX)
    return Fact(subject, label, "", start, path=path, line=int(line))


def _encode_cursor(*parts: str) -> str:
    from base64 import urlsafe_b64encode

    return urlsafe_b64encode("\n".join(parts).encode()).decode().rstrip("=")


def _decode_cursor(cursor: str, count: int) -> list[str]:
    from base64 import urlsafe_b64decode

    try:
        text = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4)).decode()
    except ValueError:  # also for bytes that are not UTF-8
        raise UsageError("the cursor is not valid", _FIX) from None
    parts = text.split("\n")
    if len(parts) != count:
        raise UsageError("the cursor is not valid", _FIX)
    return parts
