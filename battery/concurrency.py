"""Part `concurrency`: many processes use one home at once; none may fail, and no acknowledged write may be missing."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from pathlib import Path

from battery import invariants
from battery.child_programs import open_memory
from battery.report import Report
from battery.workspace import Workspace

_TIMEOUT = 1200  # seconds
_REPEAT = "python -m battery concurrency"
_FIRST_TEXT = "zqedit the text before the crowd"
Child = subprocess.Popen[str]


def run(workspace: Workspace, report: Report, *, writers: int = 16, openers: int = 32, share: float = 1.0) -> None:
    """Run all four tests; a `share` below 1 gives each process less to do."""
    stores, edits, unversioned, rounds = (max(2, round(count * share)) for count in (1000, 200, 50, 50))
    with report.start_row(f"concurrency: {writers} x {stores} stores") as row:
        row.add(store_notes(workspace, writers, stores), _REPEAT)
    with report.start_row(f"concurrency: {writers} x {edits} edits of one note, each with its version") as row:
        row.add(edit_note(workspace, writers, edits, versioned=True), _REPEAT)
    with report.start_row(f"concurrency: {writers} x {unversioned} edits of one note") as row:
        row.add(edit_note(workspace, writers, unversioned, versioned=False), _REPEAT)
    with report.start_row(f"concurrency: {openers} processes open an empty home") as row:
        for problems in open_homes(workspace, openers, rounds):
            row.add(problems, _REPEAT, rounds)


def store_notes(workspace: Workspace, writers: int, count: int) -> list[str]:
    """Let all writers store new notes in a home that does not exist yet, and return what is wrong.

    The index must have every row at once: a writer that found it locked and left its row to the next reader would fail here.
    """
    home = workspace.new_home("concurrency")
    children = [workspace.start_child("store-notes", str(home), str(writer), str(count)) for writer in range(writers)]
    problems = _find_errors(_run_together(children))
    expected = writers * count
    rows, state = invariants.count_indexed_notes(home), invariants.read_store(home)
    if rows != expected:
        problems.append(f"{rows} index rows, {expected} expected")
    problems += _check_keys(state, {f"w{writer}-n{number}" for writer in range(writers) for number in range(count)})
    problems += invariants.find_torn(state)[:5] + _check_home(home)
    workspace.remove_home(home)
    return problems


def edit_note(workspace: Workspace, writers: int, count: int, versioned: bool) -> list[str]:
    """Let all writers edit one note: each edit must be in its history or have ended in a conflict."""
    home = workspace.new_home("concurrency")
    with open_memory(home) as memory:
        memory.store(_FIRST_TEXT, key="shared")
    mode = "versioned" if versioned else "unversioned"
    outputs = _run_together(
        [workspace.start_child("edit-note", str(home), str(writer), str(count), mode) for writer in range(writers)]
    )
    problems = _find_errors(outputs)
    lines = [line for output in outputs for line in output]
    applied = [line.split(" ", 2)[2] for line in lines if line.startswith("applied updated ")]
    conflicts = lines.count("conflict")
    if len(applied) + conflicts != writers * count:
        problems.append(f"{len(applied)} applied and {conflicts} conflicts of {writers * count} attempts")
    if conflicts and not versioned:
        problems.append(f"{conflicts} conflicts, though no edit named a version")
    item = "projects/demo/notes/shared.md"
    texts = invariants.read_all_texts(home, item, invariants.read_store(home)[item])
    if Counter(texts) != Counter([*applied, _FIRST_TEXT]):
        problems.append(f"{len(texts)} versions in the file, {len(applied)} applied and one before")
    problems += _check_home(home)
    workspace.remove_home(home)
    return problems


def open_homes(workspace: Workspace, openers: int, rounds: int) -> list[list[str]]:
    """In each round, let new processes open a home that does not exist and store one note; return the problems of each."""
    children = [workspace.start_child("open-homes", str(opener)) for opener in range(openers)]
    results = []
    try:
        for _ in range(rounds):
            home = workspace.new_home("concurrency")
            problems = [line for line in _run_round(children, home) if line != "opened"]
            rows, state = invariants.count_indexed_notes(home), invariants.read_store(home)
            if rows != openers:
                problems.append(f"{rows} index rows, {openers} expected")
            problems += _check_keys(state, {f"opener-{opener}" for opener in range(openers)}) + _check_home(home)
            results.append(problems)
            workspace.remove_home(home)
    finally:
        for child in children:
            child.communicate("\n", timeout=60)
    return results


def _run_round(children: list[Child], home: Path) -> list[str]:
    """Let all children open a home at the same time and return the line that each prints."""
    _start_together(children, str(home), delay=0.05)
    return [_read_line(child) for child in children]


def _run_together(children: list[Child]) -> list[list[str]]:
    """Let all children start at the same time and return what each printed until its end."""
    _start_together(children, "go", delay=0.2)
    try:
        return [child.communicate(timeout=_TIMEOUT)[0].splitlines() for child in children]
    finally:
        for child in children:
            child.kill()


def _start_together(children: list[Child], line: str, delay: float) -> None:
    """Wait until all children are ready, then send each a line and the time in `delay` seconds at which to start."""
    for child in children:
        _read_line(child)
    start = time.monotonic() + delay
    for child in children:
        assert child.stdin is not None
        child.stdin.write(f"{start} {line}\n")
        child.stdin.flush()


def _read_line(child: Child) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def _find_errors(outputs: list[list[str]]) -> list[str]:
    """Return the lines that are neither a success nor a conflict, and how many writers did not finish."""
    expected = ("applied updated ", "conflict", "done")
    errors = [line for output in outputs for line in output if not line.startswith(expected)]
    unfinished = sum(output[-1:] != ["done"] for output in outputs)
    first = [f"{len(errors)} errors, such as: {errors[0]}"] if errors else []
    return first + ([f"{unfinished} writers did not finish"] if unfinished else [])


def _check_keys(state: invariants.State, keys: set[str]) -> list[str]:
    here = {invariants.key_of(item) for item in state if invariants.part_of(item) == "notes"}
    if here == keys:
        return []
    return [f"{len(here)} notes in the store, {len(keys)} expected, missing {sorted(keys - here)[:3]}"]


def _check_home(home: Path) -> list[str]:
    """Check that doctor finds nothing, no temp file is left and index.md names every note after the next call."""
    with open_memory(home) as memory:
        problems = [f"check: {one.code}: {one.message}" for one in memory.check() if one.code != "disk"]
        return problems + invariants.find_leftovers(home) + invariants.check_listings(home, invariants.read_store(home))
