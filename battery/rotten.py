"""A rotten home: spoiled index files and malformed notes. Nothing may crash, no byte of the truth may change, every damage is
reported or mended, and the healthy notes are found all the while.

`python -m battery.rotten KIND TEMPLATE SEED FROM TO` is the child that tries some cases, a line of JSON before and after each:
where it dies, the last line names the case.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

from battery import oracle, spoil
from battery.lab import Lab
from battery.report import Report, repeat

CASES = 1000  # of each kind
CPU_SECONDS = 20.0  # that one case may take: some have ten megabytes
_BATCH = 20  # malformed notes in one home at a time: doctor lists fifty one by one
_STEP = 40  # cases of one child
_SECONDS = 900
_ROOM = "shelf/projects/demo/notes"
_TOKENS = [f"zq{letters}sound" for letters in ("ada", "bex", "cir", "dov", "eph", "fug", "gim", "hok", "ilk", "jum", "kyn",
    "lor")]
_REBUILT = "a rebuild was announced"
Ended = dict[str, Any]  # case, what, problems, reported


def run(lab: Lab, report: Report, share: float, seed: int, *, jobs: int = 2) -> None:
    """Both kinds; at a share of less than 1, fewer of each."""
    template = lab.home("rotten")
    furnish(template)
    cases = max(_BATCH, round(CASES * share))
    for kind, name in (("index", "spoiled index files"), ("note", "malformed notes")):
        with report.row(f"rotten: {cases:,} {name}") as row:
            ended = list(tried(lab, kind, template, seed, cases, jobs))
            for one in ended:
                problems = [f"case {one['case']}, {one['what']}: {problem}" for problem in one["problems"]]
                row.tried(problems, repeat("rotten", share, seed), cases)
            reported = sum(one["reported"] for one in ended)
            changed = sum("the truth changed" in problem for one in ended for problem in one["problems"])
            quiet = "without effect" if kind == "index" else "read whole"
            row.figure(f"{changed} truths changed, {reported:,} reported, {len(ended) - reported:,} {quiet}")
    lab.away(template)


def tried(lab: Lab, kind: str, template: Path, seed: int, cases: int, jobs: int = 2) -> Iterator[Ended]:
    """All cases, in children that may die of it."""
    parts = [(start, min(start + _STEP, cases)) for start in range(0, cases, _STEP)]
    with ThreadPoolExecutor(jobs) as pool:
        for some in pool.map(lambda part: _in_child(lab, kind, template, seed, *part), parts):
            yield from some


def _in_child(lab: Lab, kind: str, template: Path, seed: int, first: int, last: int) -> list[Ended]:
    home = lab.home(f"rotten-{kind}")
    environment = lab.whole_environment()
    environment["PYTHONPATH"] += os.pathsep + str(Path(__file__).resolve().parents[1])
    child = [sys.executable, "-m", "battery.rotten", kind, str(template), str(home), str(seed), str(first), str(last)]
    done = subprocess.run(child, capture_output=True, text=True, check=False, env=environment, cwd="/", timeout=_SECONDS)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    ended: list[Ended] = [line for line in lines if isinstance(line, dict)]
    if done.returncode != 0 or not lines or lines[-1] != "done":
        begun = next((line for line in reversed(lines) if isinstance(line, list)), [first, "before the first case"])
        why = f"CRASHED with {done.returncode}: {done.stderr[-600:]}"
        ended.append({"case": begun[0], "what": begun[1], "problems": [why], "reported": False})
    lab.away(home)
    return ended


def furnish(home: Path) -> None:
    """Healthy notes, files and a session."""
    from battery.verbs import caller

    with caller(home) as memory:
        for number, token in enumerate(_TOKENS):
            memory.store(f"{token} is a note\n\n- [2026-03-{number + 1:02}] status: {token}", key=f"sound-{number}")
        memory.store(f"{_TOKENS[0]} in its next version", key="sound-0")
        memory.files.create("plan.md", "# Plan\nzqplan first this\n")
        memory.log([{"role": "user", "text": "zqsaid in a session"}], session="s1", client="chat")


def pristine(home: Path) -> tuple[spoil.Files, spoil.Files]:
    """The files of the index: with a log that holds the last write, and alone, when that has been emptied."""
    from battery.verbs import caller

    _asked(home)  # a copy has other inodes: everything is read once more
    _empty_log(home)  # one that holds every page would make up for any damage of the file
    with caller(home) as memory:
        memory.store(f"{_TOKENS[1]} once more", key="sound-1")
        _asked(home)
        with_log = {name: (home / name).read_bytes() for name in spoil.FILES if (home / name).exists()}
    _empty_log(home)
    return with_log, {"index.db": (home / "index.db").read_bytes()}


def _empty_log(home: Path) -> None:
    import apsw

    db = apsw.Connection(str(home / "index.db"))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.close()


def _foreign(home: Path) -> bytes:
    """Somebody else's database."""
    import apsw

    path = home.parent / "foreign.db"
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE songs (title TEXT); INSERT INTO songs VALUES ('somebody else''s')")
    other.close()
    return path.read_bytes()


# --- the child --------------------------------------------------------------------------------------------------------


def main(kind: str, template: str, home: str, seed: str, first: str, last: str) -> None:
    place = Path(home)
    shutil.copytree(template, place, symlinks=True)
    cases = range(int(first), int(last))
    for case, what, ended in (_indexes if kind == "index" else _notes)(place, seed, cases):
        _say([case, what])
        _say({"case": case, "what": what, **ended()})
    _say("done")


def _say(line: object) -> None:
    print(json.dumps(line), flush=True)


Case = tuple[int, str, Callable[[], dict[str, Any]]]


def _indexes(home: Path, seed: str, cases: range) -> Iterator[Case]:
    both, foreign = pristine(home), _foreign(home)
    says = oracle.rows(home)
    for case in cases:
        what, files = spoil.index(both[case // 2 % 2], foreign, f"{seed}-{case}")
        yield case, what, lambda files=files, case=case: spoiled(home, files, says,
            doctor_first=case % 2 == 0)  # type: ignore[misc]


def spoiled(home: Path, files: spoil.Files, says: dict[str, Any], *, doctor_first: bool) -> dict[str, Any]:
    """One damage: looked over by doctor, and asked; or asked before, which must do no harm."""
    for old in home.glob("index.db*"):
        old.unlink()
    for name, data in files.items():
        (home / name).write_bytes(data)
    before, start = truth(home), time.process_time()
    first = [] if doctor_first else _asked(home)
    problems, reported = _doctor(home)
    wrong = [one for one in first if not one.startswith(("missed", _REBUILT))] + problems
    aside = any(".not-ours" in path.name for path in home.glob("index.db*"))
    told = bool(reported) or aside or any(one in (_REBUILT, "missed, and says so") for one in first)
    if "missed in silence" in first and not told:
        wrong.append("it missed notes, and nothing was reported")
    if not told and oracle.rows(home) != says:
        wrong.append("the index says something else than before, and nothing was reported")
    wrong += [f"afterwards: {one}" for one in _asked(home) if one != _REBUILT]
    for old in home.glob("index.db.not-ours*"):
        old.unlink()
    wrong += _changed(before, truth(home)) + _late(start)
    return {"problems": wrong, "reported": told}


def _asked(home: Path) -> list[str]:
    """Every sound note is found with its own text, now; or it is said that the answer is degraded."""
    from battery.verbs import caller

    wrong = []
    heard = _Heard()
    try:
        with caller(home, progress=heard) as memory:
            for number, token in enumerate(_TOKENS):
                answer = memory.recall(token, mode="keyword")
                keys = {hit.key for hit in answer}
                wrong += [f"a text that is not there: {hit.text[:80]!r}" for hit in answer if token not in hit.text]
                if f"sound-{number}" not in keys:
                    wrong.append("missed, and says so" if answer.degraded else "missed in silence")
            texts = [note.text for note in memory.list()]
            if sum(_is_sound(text) for text in texts) < len(_TOKENS):
                wrong.append("missed in silence")
            memory.brief()
            memory.facts()
    except Exception as error:  # noqa: BLE001 - whatever it raises is what is looked for
        wrong.append(_traced(error))
    return list(dict.fromkeys([*wrong, *([_REBUILT] if heard.said else [])]))


def _is_sound(text: str) -> bool:
    return any(token in text for token in _TOKENS)


class _Heard:
    """Who watches the progress of a call: it is told where the index is built anew."""

    said = ""

    def start(self, what: str, total: int) -> None:
        if what.startswith("indexing"):
            self.said = what

    def step(self, count: int = 1) -> None:
        pass

    def end(self) -> None:
        pass


def _doctor(home: Path) -> tuple[list[str], list[str]]:
    """What is wrong with doctor itself, and what doctor reports; a rebuild on the way is told like any other."""
    from battery.verbs import caller

    heard = _Heard()
    try:
        with caller(home, progress=heard) as memory:
            found = [f"{one.code} {one.path} {one.message}" for one in memory.check() if one.code != "disk"]
        return [], [*found, *([_REBUILT] if heard.said else [])]
    except Exception as error:  # noqa: BLE001 - whatever it raises is what is looked for
        return [f"doctor: {_traced(error)}"], []


def _notes(home: Path, seed: str, cases: range) -> Iterator[Case]:
    """Some at a time in one home; the first of them carries what is wrong with all."""
    every = list(cases)
    for start in range(0, len(every), _BATCH):
        batch = every[start : start + _BATCH]
        spoiled = {f"rot-{case}": spoil.note(f"{seed}-{case}", token_of(case)) for case in batch}
        for key, (_, data) in spoiled.items():
            (home / _ROOM / f"{key}.md").write_bytes(data)
        whole: dict[str, Any] = {}
        for case in batch:
            what = spoiled[f"rot-{case}"][0]
            yield case, what, lambda case=case, whole=whole: _malformed(home, case, whole)  # type: ignore[misc]
        for key in spoiled:
            (home / _ROOM / f"{key}.md").unlink(missing_ok=True)


def _malformed(home: Path, case: int, whole: dict[str, Any]) -> dict[str, Any]:
    """One note: read by every way there is, named by doctor or found whole, forgotten and brought back byte for byte."""
    start = time.process_time()
    wrong: list[str] = []
    if not whole:
        whole["truth"] = truth(home)
        wrong += [f"among them: {one}" for one in _asked(home) if one != _REBUILT]
        problems, whole["reported"] = _doctor(home)
        wrong += problems
    key = f"rot-{case}"
    named = any(f"{key}.md" in line for line in whole["reported"])
    wrong += _read_in_every_way(home, key, token_of(case), named)
    wrong += _changed(whole["truth"], truth(home)) + _late(start)
    return {"problems": wrong, "reported": named}


def _read_in_every_way(home: Path, key: str, token: str, named: bool) -> list[str]:
    from battery.verbs import caller
    from holdfast import HoldfastError

    wrong: list[str] = []
    with caller(home) as memory:

        def attempt(verb: Callable[[], object]) -> object:
            try:
                return verb()
            except HoldfastError as error:
                return error
            except Exception as error:  # noqa: BLE001 - whatever it raises is what is looked for
                wrong.append(_traced(error))
                return error

        note = attempt(lambda: memory.get(key))
        for verb in (lambda: memory.history(key), lambda: memory.read(f"projects/demo/notes/{key}.md"), memory.brief):
            attempt(verb)
        attempt(lambda: memory.get(key, as_of="2026-04-20"))
        hits = attempt(lambda: [hit.key for hit in memory.recall(token, mode="keyword")])
        readable = not isinstance(note, Exception)
        there = token in getattr(note, "text", "")
        timeless = getattr(note, "valid_from", None) is None and getattr(note, "valid_to", None) is None
        if there and timeless and isinstance(hits, list) and key not in hits:
            wrong.append(f"recall finds {hits} though get shows it")
        if not readable and not named:
            wrong.append(f"it cannot be read and doctor does not name it: {note}")
        attempt(lambda: memory.forget(key))
        attempt(lambda: memory.restore(key))
    return wrong


def token_of(case: int) -> str:
    """A word that stands in one note only: letters, since digits would be words of their own."""
    return "zq" + "".join(chr(ord("a") + int(digit)) for digit in f"{case:05}") + "rot"


def truth(home: Path) -> dict[str, str]:
    """A digest of every file of the shelf that is not made from others."""
    store = home / "shelf"
    found = {}
    for path in sorted(store.rglob("*")):
        inside = path.relative_to(store).parts
        made = inside[-1] == "index.md" and "files" not in inside
        if path.is_file() and not made:
            found["/".join(inside)] = sha256(path.read_bytes()).hexdigest()
    return found


def _changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return [f"the truth changed: {sorted(names)[:4]}"] if names else []


def _late(start: float) -> list[str]:
    spent = time.process_time() - start
    return [f"it took {spent:.1f} s of work"] if spent > CPU_SECONDS else []


def _traced(error: BaseException) -> str:
    import traceback

    lines = "".join(traceback.format_exception(error)).splitlines()
    return f"{type(error).__name__}: {str(error)[:200]} | {' | '.join(line.strip()[:160] for line in lines[-5:])}"


if __name__ == "__main__":
    main(*sys.argv[1:])
