"""Part `purge`: what is purged leaves no byte in the home and does not come back.

Canaries in every place and encoding are purged, purges race against writers, and a reader holds old pages of the index.
"""

from __future__ import annotations

import base64
import random
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from battery.child_programs import make_race_line, open_memory
from battery.report import Report, repeat_command
from battery.workspace import Workspace
from holdfast import Memory, config
from holdfast.index import tokenizer

CANARIES, RACES = 200, 500
CANARY_KINDS = ("note", "version", "fact", "file", "turn", "rendered")
RACE_KINDS = ("edit", "import", "restore", "reindex", "forget", "render", "log", "file")
_CONSONANTS = "bcdfghjklmnpqrstvwxz"
_RACES_PER_HOME = 50
_TIMEOUT = 120  # seconds for the children of a race to end
_START_DELAY = 0.01  # seconds
Needles = dict[int, list[tuple[str, bytes]]]  # by the number of the canary: encodings and bytes


@dataclass(frozen=True)
class CanaryResult:
    """The number of files and byte strings that were searched, and the problems by number of the canary."""

    files: int
    needles: int
    problems: dict[int, list[str]]


def run(workspace: Workspace, report: Report, share: float, seed: int) -> None:
    """Run all tests; a share below 1 means fewer canaries and races."""
    repeat = repeat_command("purge", share, seed)
    canaries = max(len(CANARY_KINDS), round(CANARIES * share))
    with report.start_row(f"purge: {canaries} canaries, every byte in six spellings") as row:
        result = purge_canaries(workspace, canaries, seed)
        for number in range(canaries):
            row.add(result.problems.get(number, []), repeat, canaries)
        hits = sum([len(problems) for problems in result.problems.values()])
        row.set_figure(f"{hits} hits of {result.needles:,} spellings in {result.files} files")
    races = max(len(RACE_KINDS), round(RACES * share))
    with report.start_row(f"purge: {races} races against eight ways to bring it back") as row:
        failed = 0
        for problems in run_races(workspace, races, seed):
            failed += bool(problems)
            row.add(problems, repeat, races)
        row.set_figure(f"{failed} resurrections")
    with report.start_row("purge: a reader holds old pages") as row:
        for problems in (purge_during_long_read(workspace), purge_during_short_read(workspace)):
            row.add(problems, repeat, 2)


# --- canaries ---------------------------------------------------------------------------------------------------------


def purge_canaries(workspace: Workspace, count: int, seed: int) -> CanaryResult:
    """Write unique words wherever a word can be, purge them and search all files for them.

    Each must be found before it is purged, or the search would prove nothing.
    """
    rng = random.Random(seed)
    words = ["".join(rng.choices(_CONSONANTS, k=16)) for _ in range(count)]
    home = workspace.new_home("purge")
    rendered = home.parent / "AGENTS.md"
    settings = config.load(str(home)).replace(embedder="default")
    with Memory(config=settings, project="demo", session="s1", cwd="/", origin="user") as memory:
        for number, word in enumerate(words):
            _write_canary(memory, CANARY_KINDS[number % len(CANARY_KINDS)], number, word)
        memory.render(rendered)
        memory.embed()
        needles = {number: encode_word(word) for number, word in enumerate(words)}
        for number, vectors in _read_vectors(memory, count).items():
            needles[number] += [("vector bytes", vector) for vector in vectors]
        for word in words:
            memory.recall(word, mode="keyword")
        before = find_needles(home, needles)
        receipts = [
            _purge_canary(memory, CANARY_KINDS[number % len(CANARY_KINDS)], number, word) for number, word in enumerate(words)
        ]
    problems = find_needles(home, needles)
    for number, receipt in enumerate(receipts):
        wrong = problems.setdefault(number, [])
        if not before.get(number):
            wrong.append("was not found before it was purged")
        if receipt.state != "done":
            wrong.append(f"its purge is {receipt.state}: {receipt.pending}")
        if rendered.exists() and words[number] in rendered.read_text():
            wrong.append("still rendered")
    problems = {number: wrong for number, wrong in problems.items() if wrong}
    return CanaryResult(len(_list_files(home)), sum([len(some) for some in needles.values()]), problems)


def _canary_line(word: str) -> str:
    return f"the harbour code of the day is {word}"


def _write_canary(memory: Memory, kind: str, number: int, word: str) -> None:
    key = f"canary-{number}"
    if kind == "fact":
        memory.fact(f"Canary {number}", "code", f"the code of {word}", on="2026-01-01")
    elif kind == "file":
        memory.files.create(f"{key}.md", f"# Page\n\n{_canary_line(word)}\n")
    else:
        memory.store(_canary_line(word), key=key, pinned=kind == "rendered" or None)
    if kind == "version":
        memory.store(f"quite another text, number {number}", key=key)
    elif kind == "turn":
        turns = [{"role": "user", "text": _canary_line(word)}, {"role": "user", "text": "go on"}]
        memory.log(turns, session=f"s{number}", client="c")
    elif kind == "note":
        memory.forget(key)
        memory.store(f"{_canary_line(word)}, once more", key=key)


def _purge_canary(memory: Memory, kind: str, number: int, word: str) -> Any:
    if kind == "file":
        return memory.purge(text=_canary_line(word), files=True)
    return memory.purge(f"canary-{number}", transcripts=kind == "turn")


def _read_vectors(memory: Memory, count: int) -> dict[int, list[bytes]]:
    """Return the vectors of each canary that no other text has."""
    index, found = memory._context.index, {}
    for number in range(count):
        found[number] = [
            *index.read_vectors("projects/demo", "notes", [f"canary-{number}.md"]),
            *index.read_vectors("projects/demo", "transcripts", [f"c/s{number}.jsonl"]),
        ]
    every = [vector for vectors in found.values() for vector in vectors]
    return {number: [vector for vector in vectors if every.count(vector) == 1] for number, vectors in found.items()}


def encode_word(word: str) -> list[tuple[str, bytes]]:
    """Return the bytes of a word in every encoding a file may have it in."""
    data = word.encode()
    shifted = [base64.b64encode(bytes(shift) + data)[-(-8 * shift // 6) : (shift + len(data)) * 8 // 6] for shift in range(3)]
    terms = {term for term in tokenizer.index_terms(word) if len(term) >= 12}
    return [
        ("UTF-8", data), ("UTF-16", word.encode("utf-16-le")), ("UTF-16", word.encode("utf-16-be")),
        *[("base64", text) for text in shifted], ("hex", data.hex().encode()), ("hex", data.hex().upper().encode()),
        *[("FTS term", term.encode()) for term in terms],
    ]  # fmt: skip


def _list_files(home: Path) -> list[Path]:
    return [path for path in sorted(home.rglob("*")) if path.is_file() and not path.is_symlink()]


def find_needles(home: Path, needles: Needles) -> dict[int, list[str]]:
    """Search all files of a home and return by number in which files which encoding was found."""
    found: dict[int, list[str]] = {}
    for path in _list_files(home):
        data = path.read_bytes()
        for number, encodings in needles.items():
            for encoding, needle in encodings:
                if needle in data:
                    found.setdefault(number, []).append(f"{encoding} in {path.relative_to(home)}")
    return found


# --- races ------------------------------------------------------------------------------------------------------------


def run_races(workspace: Workspace, count: int, seed: int) -> Iterator[list[str]]:
    """Let purges race against a process that writes the same again; yield the problems of each race."""
    rng = random.Random(seed)
    for start in range(0, count, _RACES_PER_HOME):
        home = workspace.new_home("races")
        rendered = home.parent / "AGENTS.md"
        with open_memory(home) as memory:
            memory.store("something that stays", key="stays")
            memory.render(rendered)
        children = [workspace.start_child("race-purge", str(home), role, str(rendered)) for role in ("purge", "race")]
        try:
            for number in range(start, min(start + _RACES_PER_HOME, count)):
                yield _run_race(home, rendered, children, RACE_KINDS[number % len(RACE_KINDS)], str(number), rng)
        finally:
            for child in children:
                child.communicate(timeout=_TIMEOUT)
            workspace.remove_home(home)


def _run_race(
    home: Path, rendered: Path, children: list[subprocess.Popen[str]], kind: str, number: str, rng: random.Random
) -> list[str]:  # fmt: skip
    key = f"race-{number}"
    with open_memory(home) as memory:
        memory.store(f"an older text of race {number}", key=key)
        memory.store(make_race_line(number), key=key, pinned=True)
        if kind == "restore":
            memory.forget(key)
        if kind == "render":
            memory.render(rendered)
    start = time.monotonic() + _START_DELAY
    for child in children:
        assert child.stdin and child.stdout
        child.stdout.readline()  # ready
        child.stdin.write(f"{start + rng.uniform(0, 0.03)} {kind} {number}\n")
        child.stdin.flush()
    purger, writer = (_read_until_done(child) for child in children)
    return [f"{kind}: {problem}" for problem in _check_race(home, rendered, kind, number, purger, writer)]


def _read_until_done(child: subprocess.Popen[str]) -> list[str]:
    lines = []
    assert child.stdout
    while (line := child.stdout.readline()) and line != "done\n":
        lines.append(line.strip())
    return lines


def _check_race(
    home: Path, rendered: Path, kind: str, number: str, purger: list[str], writer: list[str]
) -> list[str]:  # fmt: skip
    """Check what the children printed, and that the line is nowhere but in what was written under another name."""
    line, key = make_race_line(number), f"race-{number}"
    problems = [output for output in purger if output not in ("state done", "state pending")]
    problems += [] if purger else ["the purge printed nothing"]
    expected = ("did", "error purged", "error not_found", "error conflict")
    problems += [output for output in writer if not output.startswith(expected)]
    with open_memory(home, origin="user") as memory:
        memory.check()
        copies = _find_copies(memory, kind, number, line)
        if not copies:
            hits = memory.recall(f"zqrace{number} ", mode="keyword")
            problems += [f"recalled: {hit.citation}" for hit in hits if line in hit.text]
            problems += [f"its bytes are in {path}" for path in _find_line(home, line)]
            if rendered.exists() and line in rendered.read_text():
                problems.append(f"rendered: {kind}")
        problems += [f"{note.key} is back" for note in memory.trash() if note.key == key]
        problems += [f"{note.key} is back" for note in memory.list() if note.key == key and line in note.text]
        if copies:
            memory.purge(text=line, files=True)
            problems += [f"{copies[0]} could not be purged"] if _find_line(home, line) else []
    return problems


def _find_copies(memory: Memory, kind: str, number: str, line: str) -> list[str]:
    """Return what was written under another name before the purge began: that is another note and may stay."""
    if kind == "import":
        return [note.key for note in memory.list() if note.key == f"race-{number}-too" and line in note.text]
    if kind == "file":
        path = Path(memory.home) / "shelf" / "projects" / "demo" / "files" / f"race-{number}.md"
        return [str(path)] if path.exists() else []
    return []


def _find_line(home: Path, line: str) -> list[str]:
    return [str(path.relative_to(home)) for path in _list_files(home) if line.encode() in path.read_bytes()]


# --- readers ----------------------------------------------------------------------------------------------------------


def purge_during_long_read(workspace: Workspace) -> list[str]:
    """Purge while a reader holds old pages for longer than a purge waits: it must say `pending` and be finished later."""
    home, line = workspace.new_home("long-read"), make_race_line("held")
    settings = config.load(str(home)).replace(lock_seconds=0.5)
    with Memory(config=settings, project="demo", cwd="/") as memory:
        memory.store(line, key="k")
        reader = _open_reader(home)
        receipt = memory.purge("k")
        problems = [] if receipt.state == "pending" else [f"it says {receipt.state} while old pages are read"]
        problems += [f"it claims: {check}" for check in receipt.checks if "none found" in check and _find_line(home, line)]
        reader.close()
        problems += [f"not finished: {finding.message}" for finding in memory.check()]
        problems += [f"not finished: {receipt.state}" for receipt in memory.receipts() if receipt.state != "done"]
    return problems + [f"its bytes are in {path}" for path in _find_line(home, line)]


def purge_during_short_read(workspace: Workspace) -> list[str]:
    """Purge while a reader holds old pages for a moment: the purge must wait for it."""
    home, line = workspace.new_home("short-read"), make_race_line("awaited")
    with open_memory(home) as memory:
        memory.store(line, key="k")
        timer = threading.Timer(0.3, _open_reader(home).close)
        timer.start()
        receipt = memory.purge("k")
        timer.join()
    problems = [] if receipt.state == "done" else [f"it did not wait: {receipt.pending}"]
    return problems + [f"its bytes are in {path}" for path in _find_line(home, line)]


def _open_reader(home: Path) -> apsw.Connection:
    """Return a connection with an open read transaction."""
    db = apsw.Connection(str(home / "index.db"))
    db.execute("BEGIN").fetchall()
    db.execute("SELECT count(*) FROM passage").fetchall()
    return db
