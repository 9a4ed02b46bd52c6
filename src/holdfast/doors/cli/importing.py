"""import: many notes from lines of JSON; and how a file of such lines is read."""

from __future__ import annotations

import os

from holdfast.doors.cli.call import Interrupted, stdin
from holdfast.errors import NotFound, Refused, TooLarge, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

    from holdfast.doors.cli.call import Call
    from holdfast.doors.cli.screen import Screen
    from holdfast.note import Progress, Stored

_FIX = "Give the path of a file with one JSON object a line, or - for stdin"
_ESCAPED = 6  # bytes that one byte of a text may take in JSON
_EXPORTED = ("key", "text", "type", "tags", "valid_from", "valid_to", "pinned", "source")
_VERSIONS = 32  # full texts that a line which `export` wrote may have
_BESIDE = 64 * 1024  # for all the other fields of a line


def import_(call: Call) -> int:
    far = _Far()
    try:
        stored = _stored(call, far)
    except KeyboardInterrupt as error:
        raise far.interrupted(error) from None
    counts = {action: sum(one.action == action for one in stored) for action in ("created", "updated", "unchanged")}
    counts["redacted"] = sum([bool(one.redacted) for one in stored])
    imported = {**counts, "notes": [{"action": one.action, "key": one.note.key} for one in stored]}
    return call.answer(imported, _tell_imported)


def _stored(call: Call, far: _Far) -> list[Stored]:
    """Every line read, then all of them through the gate, then all of them kept."""
    from holdfast.doors.cli.progress import Bar
    from holdfast.note import Progress

    config = call.memory.config
    read = objects(call["file"], _VERSIONS * line_bytes(config.note_bytes), "nothing was imported")
    rows = list(read) if config.enabled else []  # switched off, nothing is waited for
    origin = call["origin"] or "import"
    notes = [_trusted(note, origin, call["file"]) for row in rows for note in _texts(row)]
    progress = Progress() if call.screen.json else Bar()
    progress.start("importing", len(notes))
    try:
        return call.memory.store_many(
            far.counted(notes, progress), origin=origin, redact=bool(call["redact"]), **call.given("scope")
        )
    finally:
        progress.end()


class _Far:
    """How far an import came: nothing is kept before all of it has been read and looked at."""

    def __init__(self) -> None:
        self._keeping = 0  # how many, once all of them are through the gate

    def counted(self, notes: list[dict[str, Any]], progress: Progress) -> Iterator[dict[str, Any]]:
        for note in notes:
            yield note
            progress.step()
        self._keeping = len(notes)

    def interrupted(self, error: KeyboardInterrupt) -> Interrupted:
        """What is known of it after Ctrl-C; a gateway said of some that they are kept."""
        if not self._keeping:
            return Interrupted("interrupted; nothing was imported", "Run it again", 0)
        kept: int | None = getattr(error, "kept", None)
        sure = "" if kept is None else f"{kept:,} of them are surely kept, of the others "
        known = "all of them are kept" if kept == self._keeping else f"{sure}none, some or all may be kept"
        said = f"interrupted while {self._keeping:,} notes were imported: {known}"
        return Interrupted(said, "Run it again: what is kept already stays as it is, and the rest is added", kept)


def line_bytes(text_bytes: int) -> int:
    """How long a line may be whose text may have so many bytes."""
    return _ESCAPED * text_bytes + _BESIDE


def objects(path: str, most: int, otherwise: str) -> Iterator[dict[str, Any]]:
    """The JSON object of each line, as they are read; `otherwise` says what becomes of the rest if one is none."""
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


def _read(lines: BinaryIO, most: int, otherwise: str) -> Iterator[dict[str, Any]]:
    """Of a line that is too long, no more than tells so."""
    import json

    for number, line in enumerate(iter(lambda: lines.readline(most + 1), b""), 1):
        if len(line) > most:
            raise TooLarge(f"line {number} has more than {most:,} bytes", f"One object a line; {otherwise}")
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            what = getattr(error, "msg", error)  # JSON's own count of lines would only mislead
            raise Refused(f"line {number} is not JSON: {what}", f"One object a line; {otherwise}") from None
        if not isinstance(row, dict):
            raise Refused(f"line {number} is not a JSON object", f'Write {{"text": "..."}}; {otherwise}')
        yield row


def _texts(row: dict[str, Any]) -> list[dict[str, Any]]:
    """A note as `store_many` takes it; of a line that `holdfast export` wrote, what it says now."""
    if "versions" not in row:
        return [row]
    return [{name: row[name] for name in _EXPORTED if row.get(name) is not None}]


def _trusted(note: dict[str, Any], origin: str, path: str) -> dict[str, Any]:
    """A line may say that it is worth less than its file, never that it is worth more."""
    from holdfast.note import ORIGINS, lowest

    source = note.pop("source", None) if isinstance(note.get("source"), dict) else None
    said = note.get("origin") or (lowest_of(source) if source else origin)
    if said in ORIGINS:
        said = lowest(origin, said)
    if path == "-":
        return {**note, "origin": said}
    made = note.get("made_from") or []
    if not isinstance(made, str | list):
        return {**note, "origin": said}  # which is refused
    made = [made] if isinstance(made, str) else made
    return {**note, "origin": said, "made_from": [*made, os.path.abspath(path)]}


def lowest_of(source: dict[str, Any]) -> str:
    """How far an exported source could be trusted; what we do not know, least."""
    from holdfast.note import ORIGINS, lowest

    said = [source.get("origin", "web"), *([source["trust"]] if source.get("trust") else [])]
    return lowest(*[one if one in ORIGINS else "web" for one in said])


def _tell_imported(screen: Screen, imported: dict[str, Any]) -> None:
    said = ", ".join(f"{imported[action]:,} {action}" for action in ("created", "updated", "unchanged"))
    screen.say(f"imported {len(imported['notes']):,} notes: {said}")
    if imported["redacted"]:
        screen.aside(f"in {imported['redacted']:,} of them a secret was left out", "yellow")
