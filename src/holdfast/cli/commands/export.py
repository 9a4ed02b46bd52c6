"""export: notes with all their versions, as lines of JSON that `import` reads; secrets are left out, and what no import could
take is named."""

from __future__ import annotations

import os
import sys

from holdfast.cli.output import one_line, plural, visible
from holdfast.errors import HoldfastError, UsageError, from_os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TextIO

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_SHOWN = 10  # notes that are left out and named to a person


def export(call: Invocation) -> int:
    rows = call.memory.export(**call.given("scope"))
    if call.screen.json and not call["output"]:
        code = call.answer(list(rows), lambda *_: None)
        _warn(rows.left_out.as_dict())  # a list has no place for it
        return code
    counts = _written(rows, call["output"])
    left_out = rows.left_out.as_dict()
    if call["output"]:
        code = call.answer({"path": call["output"], **counts, "left_out": left_out}, _tell_counts)
    else:
        sys.stdout.flush()
        _tell_counts(call.screen, counts)
        code = 0
    if not call.screen.json:
        _warn(left_out)
    return code


def _written(rows: Iterator[dict[str, Any]], path: str | None) -> dict[str, Any]:
    """To a file that only its owner may read, whoever could read the one before it, or to stdout; how many, and how many lack a
    secret now. What was there stands until all is written."""
    if not path:
        return _lines(rows, sys.stdout)
    out, goal = _opened(path)
    try:
        with out:
            counts = _lines(rows, out)
        if out.name != goal:
            os.replace(out.name, goal)
    except BaseException as error:
        if out.name != goal:
            os.unlink(out.name)
        if isinstance(error, OSError):
            raise _failed(path, error) from None
        raise
    return counts


def _opened(path: str) -> tuple[TextIO, str]:
    """The file to write, and the name it is to have: its own for a pipe or a device, which nothing can take the place of."""
    try:
        goal = os.path.realpath(path)
        if os.path.lexists(goal) and not os.path.isfile(goal):
            return open(goal, "w", encoding="utf-8"), goal
        beside = f"{goal}.{os.getpid()}.part"
        return open(beside, "w", encoding="utf-8", opener=lambda name, _: os.open(name, _FLAGS, 0o600)), goal
    except (OSError, ValueError) as error:
        raise _failed(path, error, begun=False) from None


def _failed(path: str, error: OSError | ValueError, begun: bool = True) -> HoldfastError:
    """A name that cannot be written to is the caller's; a disk that is full or fails on the way is not."""
    trouble = from_os(error, f"cannot write {path}") if isinstance(error, OSError) else None
    if trouble and not isinstance(error, BrokenPipeError) and (begun or getattr(trouble, "full", False)):
        return trouble
    return UsageError(f"cannot write {path}: {getattr(error, 'strerror', error)}", "Name another file")


def _lines(rows: Iterator[dict[str, Any]], out: TextIO) -> dict[str, Any]:
    """Each as one line."""
    import json

    notes = redacted = 0
    for row in rows:
        out.write(json.dumps(row) + "\n")  # ASCII: whatever stands in a note, a line is a line
        notes += 1
        redacted += bool(row["redacted"])
    return {"notes": notes, "redacted": redacted}


def _tell_counts(screen: Output, counts: dict[str, Any]) -> None:
    where = f" to {counts['path']}" if "path" in counts else ""
    left_out = f"; in {counts['redacted']:,} of them a secret was left out" if counts["redacted"] else ""
    screen.aside(f"exported {plural(counts['notes'], 'note')}{where}{left_out}")


def _warn(left_out: dict[str, Any]) -> None:
    """Of notes that an import could not take, and which are not in the export: to stderr, wherever the lines go."""
    if not left_out["count"]:
        return
    sys.stdout.flush()
    said = [f"left out {plural(left_out['count'], 'note')} that no import could take; mend the file, or keep a copy of it:"]
    said += [f"  {one['scope']} {one_line(one['name'])}: {one_line(one['why'])}" for one in left_out["notes"][:_SHOWN]]
    said += [f"  and {left_out['count'] - _SHOWN:,} more"] if left_out["count"] > _SHOWN else []
    sys.stderr.write("\n".join([visible(line) for line in said]) + "\n")
