"""Dated lines in notes and files that look like facts and cannot be read as such, for `holdfast doctor` (T2)."""

from __future__ import annotations

import os

from holdfast.errors import HoldfastError
from holdfast.formats import facts, note_file
from holdfast.models import Problem
from holdfast.verbs.doctor.fixes import told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.context.caller import Context
    from holdfast.verbs.doctor.fixes import Fix

_FILES_SHOWN = 20
_LINES_SHOWN = 3  # of one file


def problems(context: Context, mending: Fix, scopes: tuple[str, ...]) -> list[Problem]:
    """One problem for each file with such lines: the first lines, how many there are, and what is expected."""
    found: list[Problem] = []
    more = 0
    for scope, part, name, text, first in _texts(context, scopes):
        lines = facts.find_unreadable(text)
        if lines and len(found) < _FILES_SHOWN:
            path = told(f"{scope}/{part}/{name}")
            fix = mending.edited(os.path.join(context.config.home, "shelf", scope, part, name))
            found.append(Problem("fact", _message(path, lines, first), fix, f"{path}:{lines[0].line + first}"))
        elif lines:
            more += 1
    if more:
        files = "1 more file has" if more == 1 else f"{more} more files have"
        found.append(Problem("fact", f"{files} dated lines that cannot be read as facts.", mending.holdfast("doctor")))
    return found


def _message(path: str, lines: list[facts.UnreadableLine], first: int) -> str:
    each = "; ".join([f"line {one.line + first}: {one.problem}" for one in lines[:_LINES_SHOWN]])
    more = f"; and {len(lines) - _LINES_SHOWN} more" if len(lines) > _LINES_SHOWN else ""
    what = "1 dated line" if len(lines) == 1 else f"{len(lines)} dated lines"
    return f"{path} has {what} that cannot be read as a fact ({each}{more}). {facts.EXPECTED}."


def _texts(context: Context, scopes: tuple[str, ...]) -> Iterator[tuple[str, str, str, str, int]]:
    """Scope, part, name, current text and the number of its first line, of each note and each file of a tree."""
    for scope in scopes:
        for entry in context.store.entries(scope, "notes"):
            if entry.regular and entry.name.endswith(".md") and (whole := _read(context, scope, "notes", entry.name)):
                text, (first, _) = note_file.read_current_text(whole)
                yield scope, "notes", entry.name, text, first
        for entry in context.store.tree(scope, 0).census():
            if entry.regular and (whole := _read(context, scope, "files", entry.name)):
                yield scope, "files", entry.name, note_file.replace_invalid(whole), 1


def _read(context: Context, scope: str, part: str, name: str) -> str:
    """The text of a file that has a date in brackets; empty for others and for what cannot be read, which is told elsewhere."""
    try:
        if part == "notes":
            content = context.store.read_name(scope, part, name)
        else:
            content = context.store.tree(scope, 0).read(tuple(name.split("/")))
    except HoldfastError:
        return ""
    if content is None or b"[" not in content.data or not any(b"[%d" % digit in content.data for digit in range(10)):
        return ""
    return content.data.decode("utf-8", "surrogateescape")
