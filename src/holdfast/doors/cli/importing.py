"""import: many notes from lines of JSON; and how a file of such lines is read."""

from __future__ import annotations

from holdfast.doors.cli.call import stdin
from holdfast.errors import NotFound, Refused, TooLarge, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

    from holdfast.doors.cli.call import Call
    from holdfast.doors.cli.screen import Screen
    from holdfast.note import Progress

_FIX = "Give the path of a file with one JSON object a line, or - for stdin"
_ESCAPED = 6  # bytes that one byte of a text may take in JSON
_BESIDE = 64 * 1024  # for all the other fields of a line


def import_(call: Call) -> int:
    from holdfast.doors.cli.progress import Bar
    from holdfast.note import Progress

    config = call.memory.config
    read = objects(call["file"], line_bytes(config.note_bytes), "nothing was imported")
    notes = list(read) if config.enabled else []  # switched off, nothing is waited for
    progress = Progress() if call.screen.json else Bar()
    progress.start("importing", len(notes))
    try:
        stored = call.memory.store_many(
            _counted(notes, progress), origin=call["origin"] or "import", **call.given("scope")
        )
    finally:
        progress.end()
    counts = {action: sum(one.action == action for one in stored) for action in ("created", "updated", "unchanged")}
    imported = {**counts, "notes": [{"action": one.action, "key": one.note.key} for one in stored]}
    return call.answer(imported, _tell_imported)


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
    except FileNotFoundError:
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


def _counted(notes: list[dict[str, Any]], progress: Progress) -> Iterator[dict[str, Any]]:
    for note in notes:
        yield note
        progress.step()


def _tell_imported(screen: Screen, imported: dict[str, Any]) -> None:
    said = ", ".join(f"{imported[action]:,} {action}" for action in ("created", "updated", "unchanged"))
    screen.say(f"imported {len(imported['notes']):,} notes: {said}")
