"""import: many notes from lines of JSON."""

from __future__ import annotations

import os
import sys

from holdfast.errors import NotFound, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from holdfast.doors.cli.call import Call
    from holdfast.doors.cli.screen import Screen
    from holdfast.note import Progress


def import_(call: Call) -> int:
    from holdfast.doors.cli.progress import Bar
    from holdfast.note import Progress

    notes = list(_notes(_lines(call["file"])))
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


def _lines(path: str) -> Iterable[bytes]:
    if path == "-":
        return sys.stdin.buffer
    if not os.path.exists(path):
        raise NotFound(f"no file {path}", "Give the path of a file with one JSON object a line, or - for stdin")
    with open(path, "rb") as file:
        return file.readlines()


def _notes(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    import json

    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            note = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Refused(f"line {number} is not JSON: {error}", "One object a line; nothing was imported") from None
        if not isinstance(note, dict):
            raise Refused(f"line {number} is not a JSON object", 'Write {"text": "..."}; nothing was imported')
        yield note


def _counted(notes: list[dict[str, Any]], progress: Progress) -> Iterator[dict[str, Any]]:
    for note in notes:
        yield note
        progress.step()


def _tell_imported(screen: Screen, imported: dict[str, Any]) -> None:
    said = ", ".join(f"{imported[action]:,} {action}" for action in ("created", "updated", "unchanged"))
    screen.say(f"imported {len(imported['notes']):,} notes: {said}")
