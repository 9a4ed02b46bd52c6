"""`export`: write notes with all their versions as lines of JSON that `import` reads.

Secrets are left out, and so are notes that no import could take; those are named.
"""

from __future__ import annotations

import os
import sys

from holdfast.cli.output import format_count, join_lines, mark_hidden
from holdfast.errors import HoldfastError, UsageError, from_os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TextIO

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation

_OPEN_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_MAX_LEFT_OUT = 10  # notes left out that a message names


def export(call: Invocation) -> int:
    """`holdfast export`."""
    rows = call.memory.export(**call.pick("scope"))
    if call.output.json and not call["output"]:
        code = call.answer(list(rows), lambda *_: None)
        _warn_left_out(rows.left_out.as_dict())  # a JSON list has no place for it
        return code
    counts = _write_rows(rows, call["output"])
    left_out = rows.left_out.as_dict()
    if call["output"]:
        code = call.answer({"path": call["output"], **counts, "left_out": left_out}, _print_counts)
    else:
        sys.stdout.flush()
        _print_counts(call.output, counts)
        code = 0
    if not call.output.json:
        _warn_left_out(left_out)
    return code


def _write_rows(rows: Iterator[dict[str, Any]], path: str | None) -> dict[str, Any]:
    """Write the rows to stdout or to a file that only its owner can read, and return the counts.

    An existing file is replaced when all rows are written.
    """
    if not path:
        return _write_lines(rows, sys.stdout)
    file, target = _open_file(path)
    try:
        with file:
            counts = _write_lines(rows, file)
        if file.name != target:
            os.replace(file.name, target)
    except BaseException as error:
        if file.name != target:
            os.unlink(file.name)
        if isinstance(error, OSError):
            raise _write_failed(path, error) from None
        raise
    return counts


def _open_file(path: str) -> tuple[TextIO, str]:
    """Open a temporary file beside the target, or the target itself if it is a pipe or a device; return also the target."""
    try:
        target = os.path.realpath(path)
        if os.path.lexists(target) and not os.path.isfile(target):
            return open(target, "w", encoding="utf-8"), target
        temp = f"{target}.{os.getpid()}.part"
        return open(temp, "w", encoding="utf-8", opener=lambda name, _: os.open(name, _OPEN_FLAGS, 0o600)), target
    except (OSError, ValueError) as error:
        raise _write_failed(path, error, started=False) from None


def _write_failed(path: str, error: OSError | ValueError, started: bool = True) -> HoldfastError:
    """Return UsageError for a path that cannot be opened, disk trouble for a disk that is full or fails while writing."""
    trouble = from_os(error, f"cannot write {path}") if isinstance(error, OSError) else None
    if trouble and not isinstance(error, BrokenPipeError) and (started or getattr(trouble, "full", False)):
        return trouble
    return UsageError(f"cannot write {path}: {getattr(error, 'strerror', error)}", "Write to another file")


def _write_lines(rows: Iterator[dict[str, Any]], file: TextIO) -> dict[str, Any]:
    """Write one line of JSON per row; return how many notes there are and how many had a secret removed."""
    import json

    notes = redacted = 0
    for row in rows:
        file.write(json.dumps(row) + "\n")  # ASCII, so that no character in a note can break a line
        notes += 1
        redacted += bool(row["redacted"])
    return {"notes": notes, "redacted": redacted}


def _print_counts(output: Output, counts: dict[str, Any]) -> None:
    path = f" to {counts['path']}" if "path" in counts else ""
    redacted = f"; secrets were removed from {counts['redacted']:,} of them" if counts["redacted"] else ""
    output.print_message(f"exported {format_count(counts['notes'], 'note')}{path}{redacted}")


def _warn_left_out(left_out: dict[str, Any]) -> None:
    """Name on stderr the notes that are not in the export because no import could take them."""
    if not left_out["count"]:
        return
    sys.stdout.flush()
    count = format_count(left_out["count"], "note")
    lines = [f"left out {count} that `holdfast import` would reject; fix the file or back it up:"]
    for note in left_out["notes"][:_MAX_LEFT_OUT]:
        lines.append(f"  {note['scope']} {join_lines(note['name'])}: {join_lines(note['why'])}")
    if left_out["count"] > _MAX_LEFT_OUT:
        lines.append(f"  and {left_out['count'] - _MAX_LEFT_OUT:,} more")
    sys.stderr.write("\n".join([mark_hidden(line) for line in lines]) + "\n")
