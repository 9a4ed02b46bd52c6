"""Part `damage`: damaged index files and malformed notes.

Nothing may crash, no byte of the store may change, every damage must be reported or repaired, and healthy notes must be
found all the time. `python -m battery.damage KIND TEMPLATE HOME SEED FIRST LAST` is the child that runs some cases; it prints
a line of JSON before and after each, so that the last line names the case that killed it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from battery import damaged_files, invariants
from battery.child_programs import open_memory
from battery.report import Report, repeat_command
from battery.workspace import Workspace

CASES = 1000  # of each kind
_MAX_CPU_SECONDS = 20.0  # for one case: some have ten megabytes
_NOTES_PER_HOME = 20  # malformed notes at a time: doctor lists only fifty one by one
_CASES_PER_CHILD = 40
_TIMEOUT = 900  # seconds for one child
_NOTES = "shelf/projects/demo/notes"
_TOKENS = [
    f"zq{letters}sound"
    for letters in ("ada", "bex", "cir", "dov", "eph", "fug", "gim", "hok", "ilk", "jum", "kyn", "lor")
]  # fmt: skip
_REBUILT = "a rebuild was announced"
_MISSED, _MISSED_DEGRADED = "missed in silence", "missed, and says so"
CaseResult = dict[str, Any]  # case, kind, problems, reported
Outcome = dict[str, Any]  # problems, reported
Case = tuple[int, str, Callable[[], Outcome]]  # its number, the kind of damage, and what runs it


def run(workspace: Workspace, report: Report, share: float, seed: int, *, jobs: int = 2) -> None:
    """Run both kinds; a share below 1 means fewer cases."""
    template = workspace.new_home("damage")
    create_notes(template)
    count = max(_NOTES_PER_HOME, round(CASES * share))
    for kind, name in (("index", "damaged index files"), ("note", "malformed notes")):
        with report.start_row(f"damage: {count:,} {name}") as row:
            results = list(run_cases(workspace, kind, template, seed, count, jobs))
            for result in results:
                problems = [f"case {result['case']}, {result['kind']}: {problem}" for problem in result["problems"]]
                row.add(problems, repeat_command("damage", share, seed), count)
            reported = sum(result["reported"] for result in results)
            changed = sum("the store changed" in problem for result in results for problem in result["problems"])
            harmless = "without effect" if kind == "index" else "read whole"
            row.set_figure(f"{changed} changes of the store, {reported:,} reported, {len(results) - reported:,} {harmless}")
    workspace.remove_home(template)


def run_cases(
    workspace: Workspace, kind: str, template: Path, seed: int, count: int, jobs: int = 2
) -> Iterator[CaseResult]:  # fmt: skip
    """Run `count` cases in children that may die."""
    ranges = [(first, min(first + _CASES_PER_CHILD, count)) for first in range(0, count, _CASES_PER_CHILD)]
    with ThreadPoolExecutor(jobs) as pool:
        for results in pool.map(lambda part: run_child(workspace, kind, template, seed, *part), ranges):
            yield from results


def run_child(workspace: Workspace, kind: str, template: Path, seed: int, first: int, last: int) -> list[CaseResult]:
    """Run the cases from `first` up to `last` in a child; a child that dies is a failure of the case it was at."""
    home = workspace.new_home(f"damage-{kind}")
    child = [sys.executable, "-m", "battery.damage", kind, str(template), str(home), str(seed), str(first), str(last)]
    environment = workspace.full_environment(with_battery=True)
    done = subprocess.run(child, capture_output=True, text=True, check=False, env=environment, cwd="/", timeout=_TIMEOUT)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    results: list[CaseResult] = [line for line in lines if isinstance(line, dict)]
    if done.returncode != 0 or not lines or lines[-1] != "done":
        case, what = next((line for line in reversed(lines) if isinstance(line, list)), [first, "before the first case"])
        problem = f"CRASHED with {done.returncode}: {done.stderr[-600:]}"
        results.append({"case": case, "kind": what, "problems": [problem], "reported": False})
    workspace.remove_home(home)
    return results


def create_notes(home: Path) -> None:
    """Create healthy notes, a file and a transcript."""
    with open_memory(home) as memory:
        for number, token in enumerate(_TOKENS):
            memory.store(f"{token} is a note\n\n- [2026-03-{number + 1:02}] status: {token}", key=f"sound-{number}")
        memory.store(f"{_TOKENS[0]} in its next version", key="sound-0")
        memory.files.create("plan.md", "# Plan\nzqplan first this\n")
        memory.log([{"role": "user", "text": "zqsaid in a session"}], session="s1", client="chat")


def read_index_files(home: Path) -> tuple[damaged_files.Files, damaged_files.Files]:
    """Return the files of the index twice: with a log that has the last write, and without a log."""
    _check_answers(home)  # a copy has other inodes, so everything is indexed again
    _truncate_log(home)  # a log with every page would repair any damage of the file
    with open_memory(home) as memory:
        memory.store(f"{_TOKENS[1]} once more", key="sound-1")
        _check_answers(home)
        with_log = {name: (home / name).read_bytes() for name in damaged_files.INDEX_FILES if (home / name).exists()}
    _truncate_log(home)
    return with_log, {"index.db": (home / "index.db").read_bytes()}


def _truncate_log(home: Path) -> None:
    import apsw

    db = apsw.Connection(str(home / "index.db"))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.close()


def _make_foreign_database(home: Path) -> bytes:
    """Return the bytes of a SQLite database of another program."""
    import apsw

    path = home.parent / "foreign.db"
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE songs (title TEXT); INSERT INTO songs VALUES ('somebody else''s')")
    db.close()
    return path.read_bytes()


# --- the child --------------------------------------------------------------------------------------------------------


def main(kind: str, template: str, home: str, seed: str, first: str, last: str) -> None:
    shutil.copytree(template, home, symlinks=True)
    make_cases = _index_cases if kind == "index" else _note_cases
    for case, what, run_case in make_cases(Path(home), seed, range(int(first), int(last))):
        _print_json([case, what])
        _print_json({"case": case, "kind": what, **run_case()})
    _print_json("done")


def _print_json(value: object) -> None:
    print(json.dumps(value), flush=True)


def _index_cases(home: Path, seed: str, cases: range) -> Iterator[Case]:
    index_files, foreign = read_index_files(home), _make_foreign_database(home)
    rows = invariants.read_index_rows(home)
    for case in cases:
        kind, files = damaged_files.damage_index(index_files[case // 2 % 2], foreign, f"{seed}-{case}")
        yield case, kind, partial(check_damaged_index, home, files, rows, doctor_first=case % 2 == 0)


def check_damaged_index(
    home: Path, files: damaged_files.Files, rows: dict[str, list[Any]], *, doctor_first: bool
) -> Outcome:  # fmt: skip
    """Replace the index files, then run doctor and ask for notes, or ask before doctor; `rows` are those of a sound index."""
    for old in home.glob("index.db*"):
        old.unlink()
    for name, data in files.items():
        (home / name).write_bytes(data)
    before, start = _digest_store(home), time.process_time()
    first = [] if doctor_first else _check_answers(home)
    problems, found = _run_doctor(home)
    problems = [problem for problem in first if problem not in (_MISSED, _MISSED_DEGRADED, _REBUILT)] + problems
    kept_aside = any(".not-ours" in path.name for path in home.glob("index.db*"))
    reported = bool(found) or kept_aside or any(problem in (_REBUILT, _MISSED_DEGRADED) for problem in first)
    if _MISSED in first and not reported:
        problems.append("it missed notes, and nothing was reported")
    if not reported and invariants.read_index_rows(home) != rows:
        problems.append("the index has other rows than before, and nothing was reported")
    problems += [f"afterwards: {problem}" for problem in _check_answers(home) if problem != _REBUILT]
    for old in home.glob("index.db.not-ours*"):
        old.unlink()
    problems += _find_changes(before, _digest_store(home)) + _check_cpu_time(start)
    return {"problems": problems, "reported": reported}


def _check_answers(home: Path) -> list[str]:
    """Check that every healthy note is found with its text, or that the answer says it is degraded."""
    problems = []
    progress = _RebuildDetector()
    try:
        with open_memory(home, progress=progress) as memory:
            for number, token in enumerate(_TOKENS):
                answer = memory.recall(token, mode="keyword")
                keys = {hit.key for hit in answer}
                problems += [f"a text that is not there: {hit.text[:80]!r}" for hit in answer if token not in hit.text]
                if f"sound-{number}" not in keys:
                    problems.append(_MISSED_DEGRADED if answer.degraded else _MISSED)
            texts = [note.text for note in memory.list()]
            if sum(_is_healthy(text) for text in texts) < len(_TOKENS):
                problems.append(_MISSED)
            memory.brief()
            memory.facts()
    except Exception as error:  # noqa: BLE001 - whatever it raises is a failure
        problems.append(_format_error(error))
    return list(dict.fromkeys([*problems, *([_REBUILT] if progress.rebuilt else [])]))


def _is_healthy(text: str) -> bool:
    return any(token in text for token in _TOKENS)


class _RebuildDetector:
    """A `Progress` that notices when the index is rebuilt."""

    rebuilt = False

    def start(self, what: str, total: int) -> None:
        if what.startswith("indexing"):
            self.rebuilt = True

    def step(self, count: int = 1) -> None:
        pass

    def end(self) -> None:
        pass


def _run_doctor(home: Path) -> tuple[list[str], list[str]]:
    """Return what is wrong with doctor itself, and what it reports, including a rebuild of the index."""
    progress = _RebuildDetector()
    try:
        with open_memory(home, progress=progress) as memory:
            found = [f"{one.code} {one.path} {one.message}" for one in memory.check() if one.code != "disk"]
        return [], [*found, *([_REBUILT] if progress.rebuilt else [])]
    except Exception as error:  # noqa: BLE001 - whatever it raises is a failure
        return [f"doctor: {_format_error(error)}"], []


def _note_cases(home: Path, seed: str, cases: range) -> Iterator[Case]:
    """Write some malformed notes at a time; the first case of each batch reports what is wrong with the whole home."""
    numbers = list(cases)
    for start in range(0, len(numbers), _NOTES_PER_HOME):
        batch = numbers[start : start + _NOTES_PER_HOME]
        notes = {case: damaged_files.make_malformed_note(f"{seed}-{case}", _make_token(case)) for case in batch}
        for case, (_, data) in notes.items():
            _note_path(home, case).write_bytes(data)
        shared: dict[str, Any] = {}
        for case, (kind, _) in notes.items():
            yield case, kind, partial(_check_malformed_note, home, case, shared)
        for case in notes:
            _note_path(home, case).unlink(missing_ok=True)


def _note_path(home: Path, case: int) -> Path:
    return home / _NOTES / f"rot-{case}.md"


def _check_malformed_note(home: Path, case: int, shared: dict[str, Any]) -> Outcome:
    """Read one note with every verb: doctor must report it or it must be readable, and forget and restore keep its bytes.

    `shared` has what the first case of a batch found out for all.
    """
    start = time.process_time()
    problems: list[str] = []
    if not shared:
        shared["digests"] = _digest_store(home)
        problems += [f"among them: {problem}" for problem in _check_answers(home) if problem != _REBUILT]
        doctor_problems, shared["reported"] = _run_doctor(home)
        problems += doctor_problems
    key = f"rot-{case}"
    reported = any(f"{key}.md" in line for line in shared["reported"])
    problems += _call_every_verb(home, key, _make_token(case), reported)
    problems += _find_changes(shared["digests"], _digest_store(home)) + _check_cpu_time(start)
    return {"problems": problems, "reported": reported}


def _call_every_verb(home: Path, key: str, token: str, reported: bool) -> list[str]:
    from holdfast import HoldfastError

    problems: list[str] = []
    with open_memory(home) as memory:

        def call(verb: Callable[[], object]) -> object:
            try:
                return verb()
            except HoldfastError as error:
                return error
            except Exception as error:  # noqa: BLE001 - whatever it raises is a failure
                problems.append(_format_error(error))
                return error

        note = call(lambda: memory.get(key))
        for verb in (lambda: memory.history(key), lambda: memory.read(f"projects/demo/notes/{key}.md"), memory.brief):
            call(verb)
        call(lambda: memory.get(key, as_of="2026-04-20"))
        keys = call(lambda: [hit.key for hit in memory.recall(token, mode="keyword")])
        has_token = token in getattr(note, "text", "")
        timeless = getattr(note, "valid_from", None) is None and getattr(note, "valid_to", None) is None
        if has_token and timeless and isinstance(keys, list) and key not in keys:
            problems.append(f"recall finds {keys} though get shows it")
        if isinstance(note, Exception) and not reported:
            problems.append(f"it cannot be read and doctor does not name it: {note}")
        call(lambda: memory.forget(key))
        call(lambda: memory.restore(key))
    return problems


def _make_token(case: int) -> str:
    """Return a word for one note only: of letters, since digits would be words of their own."""
    return "zq" + "".join(chr(ord("a") + int(digit)) for digit in f"{case:05}") + "rot"


def _digest_store(home: Path) -> dict[str, str]:
    """Return a digest of every file of the store except index.md, which is derived."""
    store = home / "shelf"
    digests = {}
    for path in sorted(store.rglob("*")):
        inside = path.relative_to(store).parts
        derived = inside[-1] == "index.md" and "files" not in inside
        if path.is_file() and not derived:
            digests["/".join(inside)] = sha256(path.read_bytes()).hexdigest()
    return digests


def _find_changes(before: dict[str, str], after: dict[str, str]) -> list[str]:
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return [f"the store changed: {sorted(names)[:4]}"] if names else []


def _check_cpu_time(start: float) -> list[str]:
    spent = time.process_time() - start
    return [f"it took {spent:.1f} s of work"] if spent > _MAX_CPU_SECONDS else []


def _format_error(error: BaseException) -> str:
    import traceback

    lines = "".join(traceback.format_exception(error)).splitlines()
    return f"{type(error).__name__}: {str(error)[:200]} | {' | '.join(line.strip()[:160] for line in lines[-5:])}"


if __name__ == "__main__":
    main(*sys.argv[1:])
