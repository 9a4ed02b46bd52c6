"""import: many notes from lines of JSON; and how a file of such lines is read."""

from __future__ import annotations

import os

from holdfast.base import json_lines
from holdfast.cli.output import plural
from holdfast.cli.runner import stdin
from holdfast.errors import HoldfastError, NotFound, TooLarge, UsageError
from holdfast.models import Interrupted, Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.models import Stored

_FIX = "Give the path of a file with one JSON object a line, or - for stdin"
_EXPORTED = ("key", "text", "scope", "type", "tags", "valid_from", "valid_to", "pinned", "source")
_VERSIONS = 128  # full texts that a line which `export` wrote may have


def import_(call: Invocation) -> int:
    far = _Far()
    try:
        stored = _stored(call, far)
        counts = {action: sum(one.action == action for one in stored) for action in ("created", "updated", "unchanged")}
        counts["redacted"] = sum([bool(one.redacted) for one in stored])
        notes = [{"action": one.action, "key": one.note.key, "scope": one.note.scope.kind} for one in stored]
        imported = {**counts, "notes": notes}
        return call.answer(imported, _tell_imported)
    except KeyboardInterrupt as error:
        raise far.interrupted(error) from None


def _stored(call: Invocation, far: _Far) -> list[Stored]:
    """Every line read, then all of them through the gate, then all of them kept."""
    from holdfast.cli.progress import Bar

    rows, bad = _rows(call) if call.memory.config.enabled else ([], None)  # switched off, nothing is waited for
    origin = call["origin"] or "import"
    notes = [_trusted(_as_it_is(row), origin, call["file"]) for _, row in rows]
    progress = Progress() if call.screen.json else Bar()
    progress.start("importing", len(notes))
    try:
        far.kept = call.memory.store_many(
            far.counted(notes, bad, progress), origin=origin, redact=bool(call["redact"]), **call.given("scope")
        )
        return far.kept
    except HoldfastError as error:
        if error.item == "note":
            error.about("line", rows[error.number - 1][0])
        raise
    finally:
        progress.end()


def _rows(call: Invocation) -> tuple[list[tuple[int, dict[str, Any]]], HoldfastError | None]:
    """What the lines say, each with its number, and what is wrong with the next: the gate may know of one before it."""
    rows: list[tuple[int, dict[str, Any]]] = []
    try:
        for row in objects(
            call["file"], _VERSIONS * json_lines.max_line_bytes(call.memory.config.note_bytes), "nothing was imported"
        ):
            if not json_lines.is_left_out_line(row[1]):
                rows.append(row)
    except HoldfastError as error:
        if error.item != "line":
            raise
        return rows, error
    return rows, None


class _Far:
    """How far an import came: nothing is kept before all of it has been read and looked at."""

    def __init__(self) -> None:
        self._keeping = 0  # how many, once all of them are through the gate
        self.kept: list[Stored] | None = None  # once all of them are

    def counted(self, notes: list[dict[str, Any]], bad: HoldfastError | None, progress: Progress) -> Iterator[dict[str, Any]]:
        for note in notes:
            yield note
            progress.step()
        if bad:
            raise bad
        self._keeping = len(notes)

    def interrupted(self, error: KeyboardInterrupt) -> Interrupted:
        """What is known of it after Ctrl-C; a gateway may have said of some that they are kept."""
        if not self._keeping:
            return Interrupted(0, "interrupted; nothing was imported", "Run it again")
        kept = len(self.kept) if self.kept is not None else error.stored if isinstance(error, Interrupted) else None
        sure = f"{kept:,} of them are surely kept, of the others " if kept else ""
        known = "all of them are kept" if kept == self._keeping else f"{sure}none, some or all may be kept"
        said = f"interrupted while {plural(self._keeping, 'note')} {'was' if self._keeping == 1 else 'were'} imported: {known}"
        return Interrupted(kept, said, "Run it again: what is kept already stays as it is, and the rest is added")


def objects(path: str, most: int, otherwise: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON object of each line with the line's number, as they are read; `otherwise` says what becomes of the rest if one
    is none."""
    try:
        if path == "-":
            yield from _read(stdin(), most, otherwise)
            return
        with open(path, "rb") as file:
            yield from _read(file, most, otherwise)
    except (FileNotFoundError, ValueError):  # no file can have a name with a NUL in it
        raise NotFound(f"no file {path}", _FIX) from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}", _FIX) from None


def _read(file: BinaryIO, most: int, otherwise: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Of a line that is too long, no more than tells so."""
    fix = f'One object a line, such as {{"text": "..."}}; {otherwise}'
    for number, line in enumerate(iter(lambda: file.readline(most + 1), b""), 1):
        try:
            if len(line) > most:
                raise TooLarge(f"it has more than {most:,} bytes", fix)
            row = None if json_lines.is_blank(line) else json_lines.parse_line(line, fix)
        except HoldfastError as error:
            raise error.about("line", number) from None
        if row is not None:
            yield number, row


def _as_it_is(row: dict[str, Any]) -> dict[str, Any]:
    """A note as `store_many` takes it; of a line that `holdfast export` wrote, what it says now."""
    return {name: row[name] for name in _EXPORTED if row.get(name) is not None} if "versions" in row else row


def _trusted(note: dict[str, Any], origin: str, path: str) -> dict[str, Any]:
    """A line may say that it is worth less than its file, never that it is worth more."""
    said = json_lines.line_origin(note, origin)
    if path == "-":
        return {**note, "origin": said}
    made = [] if note.get("made_from") is None else note["made_from"]
    if not isinstance(made, str | list):
        return {**note, "origin": said}  # which is refused
    made = [made] if isinstance(made, str) else made
    return {**note, "origin": said, "made_from": [*made, os.path.abspath(path)]}


def _tell_imported(screen: Output, imported: dict[str, Any]) -> None:
    said = ", ".join(f"{imported[action]:,} {action}" for action in ("created", "updated", "unchanged"))
    screen.say(f"imported {plural(len(imported['notes']), 'note')}: {said}")
    if imported["redacted"]:
        screen.aside(f"in {imported['redacted']:,} of them a secret was left out", "yellow")
