"""`import`: store many notes from lines of JSON; and the reader of such files."""

from __future__ import annotations

import os

from holdfast.base import json_lines
from holdfast.cli.output import format_count
from holdfast.cli.runner import open_stdin
from holdfast.errors import HoldfastError, NotFound, Refused, TooLarge, UsageError
from holdfast.models import ORIGINS, RELATION_KINDS, Interrupted, Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.models import Note, Stored

_FIX = "Give the path of a file with one JSON object per line, or - for stdin"
_EXPORTED_FIELDS = ("key", "name", "text", "scope", "type", "tags", "valid_from", "valid_to", "pinned", "source")
_MAX_VERSIONS = 128  # full texts in one line of an export


def import_notes(call: Invocation) -> int:
    """`holdfast import`."""
    tracker = _ImportTracker()
    try:
        stored = _store_lines(call, tracker)
        counts = {action: sum(item.action == action for item in stored) for action in ("created", "updated", "unchanged")}
        counts["redacted"] = sum([bool(item.redacted) for item in stored])
        notes = [{"action": item.action, "key": item.note.key, "scope": item.note.scope.kind} for item in stored]
        imported = {**counts, "notes": notes}
        return call.answer(imported, _print_imported)
    except KeyboardInterrupt as error:
        raise tracker.describe_interrupt(error) from None


def _store_lines(call: Invocation, tracker: _ImportTracker) -> list[Stored]:
    """Read all lines, validate all notes, then store all of them or none."""
    from holdfast.cli.progress import ProgressBar

    rows, bad_line = _read_lines(call) if call.memory.config.enabled else ([], None)  # if disabled, do not wait for stdin
    origin = call["origin"] or "import"
    notes = [_add_source(_to_note(row), origin, call["file"]) for _, row in rows]
    progress = Progress() if call.output.json else ProgressBar()
    progress.start("importing", len(notes))
    try:
        tracker.stored = call.memory.store_many(
            tracker.track(notes, bad_line, progress), origin=origin, redact=bool(call["redact"]), **call.pick("scope")
        )
        _state_relations(call, [row for _, row in rows], tracker.stored)
        return tracker.stored
    except HoldfastError as error:
        if error.item == "note":
            error.about("line", rows[error.number - 1][0])
        raise
    finally:
        progress.end()


def _state_relations(call: Invocation, rows: list[dict[str, Any]], stored: list[Stored]) -> None:
    """State the relations that an export has between two notes of the import, as the importing caller; not proposed ones."""
    notes = {(item.note.scope.kind, item.note.key): item.note for item in stored}
    for row, item in zip(rows, stored, strict=True):
        relations = row.get("relations")
        for one in relations if isinstance(relations, list) else ():
            if isinstance(one, dict) and one.get("kind") in RELATION_KINDS and one.get("status") in ("accepted", "rejected"):
                is_global = one.get("target_scope") == "global"
                target = notes.get(("global" if is_global else item.note.scope.kind, str(one.get("target"))))
                if target is not None:
                    _state_relation(call, item.note, one["kind"], target, is_rejected=one["status"] == "rejected")


def _state_relation(call: Invocation, note: Note, kind: str, target: Note, *, is_rejected: bool) -> None:
    """State a relation that the home does not have; a refusal is a message, because the notes are stored."""
    names, scopes = (note.key, kind, target.key), {"scope": note.scope.kind, "target_scope": target.scope.kind}
    try:
        if any((one.key, one.kind, one.target) == names for one in call.memory.relations(note.key, scope=note.scope.kind)):
            return  # it may have been decided otherwise here
        is_trusted_more = ORIGINS.index(target.source.origin) < ORIGINS.index(note.source.origin)
        if is_trusted_more and kind != RELATION_KINDS[0]:
            raise Refused(f"{target.key!r} is trusted more than {note.key!r}", "State it yourself")
        call.memory.relate(*names, **scopes)
        if is_rejected:
            call.memory.reject_relation(*names, **scopes)
    except HoldfastError as error:
        call.output.print_message(f"the relation `{' '.join(names)}` was not imported: {error.message}", "yellow")


def _read_lines(call: Invocation) -> tuple[list[tuple[int, dict[str, Any]]], HoldfastError | None]:
    """Read the lines with their numbers up to the first bad one, and return its error: validation may find an earlier one."""
    max_bytes = _MAX_VERSIONS * json_lines.max_line_bytes(call.memory.config.note_bytes)
    rows: list[tuple[int, dict[str, Any]]] = []
    try:
        for number, row in read_objects(call["file"], max_bytes, "nothing was imported"):
            if not json_lines.is_left_out_line(row):
                rows.append((number, row))
    except HoldfastError as error:
        if error.item != "line":
            raise
        return rows, error
    return rows, None


class _ImportTracker:
    """The progress of an import. No note is stored before all of them are read and validated."""

    def __init__(self) -> None:
        self._storing = 0  # the number of notes, once all of them are validated
        self.stored: list[Stored] | None = None  # once all of them are stored

    def track(
        self, notes: list[dict[str, Any]], bad_line: HoldfastError | None, progress: Progress
    ) -> Iterator[dict[str, Any]]:
        """Yield the notes to be validated; then raise the error of the bad line, if there is one."""
        for note in notes:
            yield note
            progress.step()
        if bad_line:
            raise bad_line
        self._storing = len(notes)

    def describe_interrupt(self, error: KeyboardInterrupt) -> Interrupted:
        """Return what is known after Ctrl-C; a gateway may have said how many notes it stored."""
        total = self._storing
        if not total:
            return Interrupted(0, "interrupted before anything was imported", "Run it again")
        stored = len(self.stored) if self.stored is not None else error.stored if isinstance(error, Interrupted) else None
        some = f"{stored:,} of them are stored; of the others, " if stored else ""
        effect = "all of them are stored" if stored == total else f"{some}none, some or all may be stored"
        message = f"interrupted while {format_count(total, 'note')} {'was' if total == 1 else 'were'} imported: {effect}"
        return Interrupted(stored, message, "Run it again: stored notes stay unchanged, and the rest is added")


def read_objects(path: str, max_bytes: int, rest_note: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the JSON object of each line of a file, or of stdin for `-`, as they are read.

    The error about a bad line or one of more than `max_bytes` bytes ends in `rest_note`: what becomes of the other lines.
    """
    try:
        if path == "-":
            yield from _parse_lines(open_stdin(), max_bytes, rest_note)
            return
        with open(path, "rb") as file:
            yield from _parse_lines(file, max_bytes, rest_note)
    except (FileNotFoundError, ValueError):  # ValueError: a path with a NUL
        raise NotFound(f"no file {path}", _FIX) from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}", _FIX) from None


def _parse_lines(file: BinaryIO, max_bytes: int, rest_note: str) -> Iterator[tuple[int, dict[str, Any]]]:
    fix = f'Write one JSON object per line, such as {{"text": "..."}}; {rest_note}'
    for number, line in enumerate(iter(lambda: file.readline(max_bytes + 1), b""), 1):
        try:
            if len(line) > max_bytes:
                raise TooLarge(f"the line has more than {max_bytes:,} bytes", fix)
            row = None if json_lines.is_blank(line) else json_lines.parse_line(line, fix)
        except HoldfastError as error:
            raise error.about("line", number) from None
        if row is not None:
            yield number, row


def _to_note(row: dict[str, Any]) -> dict[str, Any]:
    """Return a line as `store_many` takes it; of a line that `holdfast export` wrote, the current version."""
    return {name: row[name] for name in _EXPORTED_FIELDS if row.get(name) is not None} if "versions" in row else row


def _add_source(note: dict[str, Any], origin: str, path: str) -> dict[str, Any]:
    """Return the note with the file as a source and its origin, which a line can lower but not raise."""
    note = {**note, "origin": json_lines.line_origin(note, origin)}
    made_from = [] if note.get("made_from") is None else note["made_from"]
    if path == "-" or not isinstance(made_from, str | list):  # validation rejects other types
        return note
    made_from = [made_from] if isinstance(made_from, str) else made_from
    return {**note, "made_from": [*made_from, os.path.abspath(path)]}


def _print_imported(output: Output, imported: dict[str, Any]) -> None:
    counts = ", ".join(f"{imported[action]:,} {action}" for action in ("created", "updated", "unchanged"))
    output.print_line(f"imported {format_count(len(imported['notes']), 'note')}: {counts}")
    if imported["redacted"]:
        output.print_message(f"in {imported['redacted']:,} of them a secret was removed", "yellow")
