"""export: notes with all their versions, as lines of JSON that `import` reads; secrets are left out."""

from __future__ import annotations

import os
import sys

from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TextIO

    from holdfast.doors.cli.call import Call
    from holdfast.doors.cli.screen import Screen

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def export(call: Call) -> int:
    rows = call.memory.export(**call.given("scope"))
    if call.screen.json and not call["output"]:
        return call.answer(list(rows), lambda *_: None)
    counts = _written(rows, call["output"])
    if not call["output"]:
        sys.stdout.flush()
        _tell_counts(call.screen, counts)
        return 0
    return call.answer({"path": call["output"], **counts}, _tell_counts)


def _written(rows: Iterator[dict[str, Any]], path: str | None) -> dict[str, Any]:
    """To a file that only its owner may read, whoever could read the one before it, or to stdout; how many, and how many lack a
    secret now. What was there stands until all is written."""
    if not path:
        return _lines(rows, sys.stdout)
    try:
        goal = os.path.realpath(path)
        if os.path.lexists(goal) and not os.path.isfile(goal):  # a pipe or a device, which nothing can take the place of
            with open(goal, "w", encoding="utf-8") as out:
                return _lines(rows, out)
        beside = f"{goal}.{os.getpid()}.part"
        out = os.fdopen(os.open(beside, _FLAGS, 0o600), "w", encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write {path}: {getattr(error, 'strerror', error)}", "Name another file") from None
    try:
        with out:
            counts = _lines(rows, out)
        os.replace(beside, goal)
    except BaseException:
        os.unlink(beside)
        raise
    return counts


def _lines(rows: Iterator[dict[str, Any]], out: TextIO) -> dict[str, Any]:
    """Each as one line."""
    import json

    notes = redacted = 0
    for row in rows:
        out.write(json.dumps(row) + "\n")  # ASCII: whatever stands in a note, a line is a line
        notes += 1
        redacted += bool(row["redacted"])
    return {"notes": notes, "redacted": redacted}


def _tell_counts(screen: Screen, counts: dict[str, Any]) -> None:
    where = f" to {counts['path']}" if "path" in counts else ""
    left_out = f"; in {counts['redacted']:,} of them a secret was left out" if counts["redacted"] else ""
    screen.aside(f"exported {counts['notes']:,} notes{where}{left_out}")
