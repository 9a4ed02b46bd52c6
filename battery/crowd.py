"""Many processes in one home at once: none may fail, and nothing any of them wrote may be missing."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from pathlib import Path

from battery import oracle
from battery.lab import Lab
from battery.report import Report
from battery.verbs import caller

_SECONDS = 1200  # after which a crowd counts as stuck
Child = subprocess.Popen[str]


def run(lab: Lab, report: Report, *, writers: int = 16, openers: int = 32, share: float = 1.0) -> None:
    """All four crowds; `share` makes each member's work smaller."""
    stores, edits, loose, rounds = (max(2, round(count * share)) for count in (1000, 200, 50, 50))
    with report.row(f"crowd: {writers} x {stores} stores") as row:
        row.tried(store(lab, writers, stores), "python -m battery crowd")
    with report.row(f"crowd: {writers} x {edits} careful edits of one note") as row:
        row.tried(edit(lab, writers, edits, careful=True), "python -m battery crowd")
    with report.row(f"crowd: {writers} x {loose} edits of one note") as row:
        row.tried(edit(lab, writers, loose, careful=False), "python -m battery crowd")
    with report.row(f"crowd: {openers} processes open an empty home") as row:
        for problems in open_at_once(lab, openers, rounds):
            row.tried(problems, "python -m battery crowd", rounds)


def store(lab: Lab, writers: int, count: int) -> list[str]:
    """Everybody stores new notes; the home is not there when they begin. The index must have every row at once: a
    writer that found it locked and left the row to the next reader would show here."""
    home = lab.home("crowd")
    said = _together([lab.start("crowd-store", str(home), str(one), str(count)) for one in range(writers)])
    wrong = _complaints(said)
    expected = writers * count
    rows, state = oracle.index_rows(home), oracle.read(home)
    if rows != expected:
        wrong.append(f"{rows} index rows, {expected} expected")
    wrong += _missing(state, {f"w{one}-n{number}" for one in range(writers) for number in range(count)})
    wrong += oracle.torn(state)[:5] + _sound(home)
    lab.away(home)
    return wrong


def edit(lab: Lab, writers: int, count: int, careful: bool) -> list[str]:
    """Everybody edits one note. Applied edits are all in its history, in some order; the others ended in a Conflict."""
    home = lab.home("crowd")
    with caller(home) as memory:
        memory.store("zqedit the text before the crowd", key="shared")
    how = "careful" if careful else "just-so"
    said = _together([lab.start("crowd-edit", str(home), str(one), str(count), how) for one in range(writers)])
    wrong = _complaints(said)
    lines = [line for one in said for line in one]
    applied = [line.split(" ", 2)[2] for line in lines if line.startswith("applied updated ")]
    conflicts = lines.count("conflict")
    if len(applied) + conflicts != writers * count:
        wrong.append(f"{len(applied)} applied and {conflicts} conflicts of {writers * count} attempts")
    if conflicts and not careful:
        wrong.append(f"{conflicts} conflicts, though nobody named a version")
    texts = oracle.texts_of(oracle.read(home)["projects/demo/notes/shared.md"])
    if Counter(texts) != Counter([*applied, "zqedit the text before the crowd"]):
        wrong.append(f"{len(texts)} versions in the file, {len(applied)} applied and one before")
    wrong += _sound(home)
    lab.away(home)
    return wrong


def open_at_once(lab: Lab, openers: int, rounds: int) -> list[list[str]]:
    """Everybody opens a home that is not there and stores one note, in a process that has just begun; then again."""
    children = [lab.start("crowd-open", "", str(one)) for one in range(openers)]
    found = []
    try:
        for _ in range(rounds):
            home = lab.home("crowd")
            said = _round(children, home)
            wrong = [line for line in said if line != "opened"]
            rows, state = oracle.index_rows(home), oracle.read(home)
            if rows != openers:
                wrong.append(f"{rows} index rows, {openers} expected")
            found.append(wrong + _missing(state, {f"opener-{one}" for one in range(openers)}) + _sound(home))
            lab.away(home)
    finally:
        for child in children:
            child.communicate("\n", timeout=60)
    return found


def _round(children: list[Child], home: Path) -> list[str]:
    """Name the home and the moment to all, and hear each of them once."""
    for child in children:
        _line(child)
    moment = time.monotonic() + 0.05
    for child in children:
        assert child.stdin is not None
        child.stdin.write(f"{moment} {home}\n")
        child.stdin.flush()
    return [_line(child) for child in children]


def _line(child: Child) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def _together(children: list[Child]) -> list[list[str]]:
    """Let all begin at one moment, and hear them out."""
    for child in children:
        _line(child)
    moment = time.monotonic() + 0.2
    for child in children:
        assert child.stdin is not None
        child.stdin.write(f"{moment} go\n")
        child.stdin.flush()
    try:
        return [child.communicate(timeout=_SECONDS)[0].splitlines() for child in children]
    finally:
        for child in children:
            child.kill()


def _complaints(said: list[list[str]]) -> list[str]:
    """Anything but success or a named conflict; and who did not come to the end."""
    fine = ("applied updated ", "conflict", "done")
    wrong = [line for one in said for line in one if not line.startswith(fine)]
    unfinished = sum(one[-1:] != ["done"] for one in said)
    most = [f"{len(wrong)} errors, such as: {wrong[0]}"] if wrong else []
    return most + ([f"{unfinished} writers did not come to the end"] if unfinished else [])


def _missing(state: oracle.State, keys: set[str]) -> list[str]:
    here = {oracle.key_of(item) for item in state if oracle.part_of(item) == "notes"}
    if here == keys:
        return []
    return [f"{len(here)} notes on the shelf, {len(keys)} expected, missing {sorted(keys - here)[:3]}"]


def _sound(home: Path) -> list[str]:
    """Doctor finds nothing, nothing is left over, and index.md names every note once somebody has asked."""
    with caller(home) as memory:
        problems = [f"check: {one.code}: {one.message}" for one in memory.check() if one.code != "disk"]
        return problems + oracle.left_over(home) + oracle.listings(home, oracle.read(home), memory)
