"""What is purged leaves no byte and does not come back: canaries in every place and spelling, races, a reader in the way."""

from __future__ import annotations

import base64
import random
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import apsw

from battery.lab import Lab
from battery.report import Report, repeat
from battery.verbs import caller, secret
from holdfast import Memory, config
from holdfast.index import tokenizer

CANARIES, RACES = 200, 500
KINDS = ("note", "version", "fact", "file", "turn", "rendered")
RACED = ("edit", "import", "restore", "reindex", "forget", "render", "log", "file")
_LETTERS = "bcdfghjklmnpqrstvwxz"
_A_HOME = 50  # races in one home
_SECONDS = 120
_BEGIN = 0.01


def run(lab: Lab, report: Report, share: float, seed: int) -> None:
    """All of it; a share of less than 1 tries that much."""
    again = repeat("erase", share, seed)
    canaries = max(len(KINDS), round(CANARIES * share))
    with report.row(f"erase: {canaries} canaries, every byte in six spellings") as row:
        files, looked, found = canary(lab, canaries, seed)
        for number in range(canaries):
            row.tried(found.get(number, []), again, canaries)
        row.figure(f"{sum([len(one) for one in found.values()])} hits of {looked:,} spellings in {files} files")
    races = max(len(RACED), round(RACES * share))
    with report.row(f"erase: {races} races of a purge against eight ways to bring it back") as row:
        back = 0
        for problems in race(lab, races, seed):
            back += bool(problems)
            row.tried(problems, again, races)
        row.figure(f"{back} resurrections")
    with report.row("erase: a reader holds old pages") as row:
        for problems in (held(lab), awaited(lab)):
            row.tried(problems, again, 2)


# --- canaries ---------------------------------------------------------------------------------------------------------


def canary(lab: Lab, count: int, seed: int) -> tuple[int, int, dict[int, list[str]]]:
    """Words that stand nowhere else, put everywhere a word can stand, then purged: where each is found afterwards. First they
    must all be found, or the looking is worth nothing."""
    chance = random.Random(seed)
    secrets = ["".join(chance.choices(_LETTERS, k=16)) for _ in range(count)]
    home = lab.home("erase")
    shown = home.parent / "AGENTS.md"
    settings = config.load(str(home)).replace(embedder="default")
    with Memory(config=settings, project="demo", session="s1", cwd="/", origin="user") as memory:
        for number, word in enumerate(secrets):
            _put(memory, KINDS[number % len(KINDS)], number, word, shown)
        memory.render(shown)
        memory.embed()
        needles = {number: _spellings(word) for number, word in enumerate(secrets)}
        for number, vectors in _vectors(memory, count).items():
            needles[number] += [("vector bytes", vector) for vector in vectors]
        for word in secrets:
            memory.recall(word, mode="keyword")
        before = _scan(home, needles)
        unseen = [number for number in needles if not before.get(number)]
        states = [_take(memory, KINDS[number % len(KINDS)], number, word) for number, word in enumerate(secrets)]
    found = _scan(home, needles)
    for number in unseen:
        found.setdefault(number, []).append("was not found before it was purged")
    for number, state in enumerate(states):
        if state.state != "done":
            found.setdefault(number, []).append(f"its purge is {state.state}: {state.pending}")
        if shown.exists() and secrets[number] in shown.read_text():
            found.setdefault(number, []).append("still rendered")
    return len(_files(home)), sum([len(one) for one in needles.values()]), found


def _line(word: str) -> str:
    return f"the harbour code of the day is {word}"


def _put(memory: Memory, kind: str, number: int, word: str, shown: Path) -> None:
    key = f"canary-{number}"
    if kind == "fact":
        memory.fact(f"Canary {number}", "code", f"the code of {word}", on="2026-01-01")
    elif kind == "file":
        memory.files.create(f"{key}.md", f"# Page\n\n{_line(word)}\n")
    else:
        memory.store(_line(word), key=key, pinned=kind == "rendered" or None)
    if kind == "version":
        memory.store(f"quite another text, number {number}", key=key)
    elif kind == "turn":
        memory.log([{"role": "user", "text": _line(word)}, {"role": "user", "text": "go on"}], session=f"s{number}", client="c")
    elif kind == "note":
        memory.forget(key)
        memory.store(f"{_line(word)}, once more", key=key)


def _take(memory: Memory, kind: str, number: int, word: str) -> Any:
    if kind == "file":
        return memory.purge(text=_line(word), files=True)
    return memory.purge(f"canary-{number}", transcripts=kind == "turn")


def _vectors(memory: Memory, count: int) -> dict[int, list[bytes]]:
    """The numbers of each canary's vectors; those that another text has too say nothing."""
    index, found = memory._context.index, {}
    for number in range(count):
        some = index.read_vectors("projects/demo", "notes", [f"canary-{number}.md"])
        some += index.read_vectors("projects/demo", "transcripts", [f"c/s{number}.jsonl"])
        found[number] = some
    every = [vector for some in found.values() for vector in some]
    return {number: [one for one in some if every.count(one) == 1] for number, some in found.items()}


def _spellings(word: str) -> list[tuple[str, bytes]]:
    data = word.encode()
    shifted = [base64.b64encode(bytes(shift) + data)[-(-8 * shift // 6) : (shift + len(data)) * 8 // 6] for shift in range(3)]
    terms = {term for term in tokenizer.index_terms(word) if len(term) >= 12}
    return [
        ("UTF-8", data), ("UTF-16", word.encode("utf-16-le")), ("UTF-16", word.encode("utf-16-be")),
        *[("base64", one) for one in shifted], ("hex", data.hex().encode()), ("hex", data.hex().upper().encode()),
        *[("FTS term", term.encode()) for term in terms],
    ]  # fmt: skip


def _files(home: Path) -> list[Path]:
    return [path for path in sorted(home.rglob("*")) if path.is_file() and not path.is_symlink()]


def _scan(home: Path, needles: dict[int, list[tuple[str, bytes]]]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for path in _files(home):
        data = path.read_bytes()
        for number, some in needles.items():
            for spelling, needle in some:
                if needle in data:
                    found.setdefault(number, []).append(f"{spelling} in {path.relative_to(home)}")
    return found


# --- races ------------------------------------------------------------------------------------------------------------


def race(lab: Lab, count: int, seed: int) -> Any:
    """One purge after the other, each against somebody who could bring it back; the problems of each."""
    chance = random.Random(seed)
    for start in range(0, count, _A_HOME):
        home = lab.home("races")
        shown = home.parent / "AGENTS.md"
        with caller(home) as memory:
            memory.store("something that stays", key="stays")
            memory.render(shown)
        children = [lab.start("race", str(home), role, str(shown)) for role in ("purge", "race")]
        try:
            for number in range(start, min(start + _A_HOME, count)):
                yield _raced(home, shown, children, RACED[number % len(RACED)], str(number), chance)
        finally:
            for child in children:
                child.communicate(timeout=_SECONDS)
            lab.away(home)


def _raced(home: Path, shown: Path, children: list[Any], kind: str, number: str, chance: random.Random) -> list[str]:
    key, line = f"race-{number}", secret(number)
    with caller(home) as memory:
        memory.store(f"an older text of race {number}", key=key)
        memory.store(line, key=key, pinned=True)
        if kind == "restore":
            memory.forget(key)
        if kind == "render":
            memory.render(shown)
    moment = time.monotonic() + _BEGIN
    said = []
    for child in children:
        assert child.stdin and child.stdout
        child.stdout.readline()  # ready
        child.stdin.write(f"{moment + chance.uniform(0, 0.03)} {kind} {number}\n")
        child.stdin.flush()
    for child in children:
        said.append(_until_done(child))
    return _judged(home, shown, kind, number, said)


def _until_done(child: subprocess.Popen[str]) -> list[str]:
    lines = []
    assert child.stdout
    while (line := child.stdout.readline()) and line != "done\n":
        lines.append(line.strip())
    return lines


def _judged(home: Path, shown: Path, kind: str, number: str, said: list[list[str]]) -> list[str]:
    """Nothing that says the line stands anywhere; what the other wrote in time under another name may, and is named."""
    line, word = secret(number), f"zqrace{number} "
    purged, other = said
    wrong = [one for one in purged if one not in ("state done", "state pending")]
    wrong += [] if purged else ["the purge said nothing"]
    fair = ("did", "error purged", "error not_found", "error conflict")
    wrong += [one for one in other if not one.startswith(fair)]
    with caller(home, origin="user") as memory:
        memory.check()
        kept = _elsewhere(memory, kind, number, line)
        if not kept:
            wrong += [f"recalled: {hit.citation}" for hit in memory.recall(word, mode="keyword") if line in hit.text]
            wrong += [f"its bytes stand in {path}" for path in _holding(home, line)]
            wrong += [f"rendered: {kind}" for _ in range(shown.exists() and line in shown.read_text())]
        wrong += [f"{one.key} is back" for one in memory.trash() if one.key == f"race-{number}"]
        wrong += [f"{note.key} is back" for note in memory.list() if note.key == f"race-{number}" and line in note.text]
        for key in kept:
            memory.purge(text=line, files=True)
            wrong += [f"{key} could not be purged"] if _holding(home, line) else []
            break
    return [f"{kind}: {one}" for one in wrong]


def _elsewhere(memory: Memory, kind: str, number: str, line: str) -> list[str]:
    """What was written under another name before the purge began: that is another note, not a resurrection."""
    if kind == "import":
        return [note.key for note in memory.list() if note.key == f"race-{number}-too" and line in note.text]
    if kind == "file":
        path = Path(memory.home) / "shelf" / "projects" / "demo" / "files" / f"race-{number}.md"
        return [str(path)] if path.exists() else []
    return []


def _holding(home: Path, line: str) -> list[str]:
    return [str(path.relative_to(home)) for path in _files(home) if line.encode() in path.read_bytes()]


# --- a reader in the way ----------------------------------------------------------------------------------------------


def held(lab: Lab) -> list[str]:
    """Somebody reads old pages for longer than a purge waits: it must say `pending`, and be finished afterwards."""
    home, line = lab.home("held"), secret("held")
    settings = config.load(str(home)).replace(lock_seconds=0.5)
    with Memory(config=settings, project="demo", cwd="/") as memory:
        memory.store(line, key="k")
        reader = _reader(home)
        receipt = memory.purge("k")
        wrong = [] if receipt.state == "pending" else [f"it says {receipt.state} while old pages are read"]
        wrong += [f"it claims: {one}" for one in receipt.checks if "none found" in one and _holding(home, line)]
        reader.close()
        wrong += [f"not finished: {one.message}" for one in memory.check()]
        wrong += [f"not finished: {one.state}" for one in memory.receipts() if one.state != "done"]
    return wrong + [f"its bytes stand in {path}" for path in _holding(home, line)]


def awaited(lab: Lab) -> list[str]:
    """Somebody reads old pages for a moment: the purge waits for them."""
    home, line = lab.home("awaited"), secret("awaited")
    with caller(home) as memory:
        memory.store(line, key="k")
        reader = _reader(home)
        ends = threading.Timer(0.3, reader.close)
        ends.start()
        receipt = memory.purge("k")
        ends.join()
    wrong = [] if receipt.state == "done" else [f"it did not wait: {receipt.pending}"]
    return wrong + [f"its bytes stand in {path}" for path in _holding(home, line)]


def _reader(home: Path) -> apsw.Connection:
    db = apsw.Connection(str(home / "index.db"))
    db.execute("BEGIN").fetchall()
    db.execute("SELECT count(*) FROM passage").fetchall()
    return db
