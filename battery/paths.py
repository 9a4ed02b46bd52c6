"""Hostile paths through every door, with somebody outside who watches: not one file outside the home may be opened."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from battery import corpus, opens, strace
from battery.lab import Lab
from battery.outside import CANARY, Outside
from battery.report import Report, repeat

SECONDS = 1500  # after which a door counts as stuck
_DOORS = Path(__file__).with_name("doors.py")
_FILES, _NOTES = "shelf/projects/demo/files", "shelf/projects/demo/notes"
Found = list[tuple[str, int, str]]  # verb, number of the path, what is wrong


def run(lab: Lab, report: Report, share: float, seed: int) -> None:
    """All doors. A share of less than 1 takes that much of the corpus, by the seed."""
    why_not = strace.why_not()
    if why_not:
        report.not_tried("paths: opens, seen from outside with strace", why_not)
    for door in ("library", "cli", "mcp", "hook", "imports"):
        with report.row(f"paths: {door}") as row:
            paths, found, seen, wrong = through(lab, door, share, seed, watched=not why_not)
            again = repeat("paths", share, seed)
            for verb, number, problem in found:
                row.tried([f"{verb} {paths[number]!r:.120}: {problem}"] if problem else [], again, len(found))
            for problem in wrong:
                row.failed([problem], again)
            outside = len([one for one in wrong if "outside" in one])
            row.figure(f"{len(paths)} paths, {outside} opens outside" + (f" of {seen:,} watched" if seen else ", not watched"))


def through(lab: Lab, door: str, share: float, seed: int, *, watched: bool) -> tuple[list[str], Found, int, list[str]]:
    """One door: the paths, how each try ended, how many opened files were watched, and what was touched outside."""
    with furnished(lab) as (home, outside):
        paths = chosen(outside, home, share, seed)
        if door == "imports":  # a person may name a folder; here it would be the whole machine's
            paths = [path for path in paths if _is_file_or_nothing(home, path)]
        log = home.parent / "trace"
        carry = _by_mcp if door == "mcp" else _by_child
        found = carry(lab, door, home, paths, log if watched else None)
        wrong = outside.problems() if door not in ("imports", "hook") else []  # there a file may be named to be read
        wrong += _log_of_hooks(home) if door == "hook" else []
        seen = opens.opens_in(log) if watched else 0
        if watched:
            wrong += opens.judged(log, _allowed(lab, door, home, outside))
            wrong += [] if seen else ["nothing was watched: not one file was opened"]
        return paths, found, seen, wrong


@contextmanager
def furnished(lab: Lab) -> Iterator[tuple[Path, Outside]]:
    """A home with a few notes, whose tree is full of traps; and what they lead to."""
    from battery.verbs import caller

    home = Path(os.path.realpath(lab.home("paths")))
    with caller(home) as memory:
        memory.store("zqkeep a note to keep", key="keep")
        memory.store("zqkeep for everybody", key="keep", scope="global")
        memory.files.create("folder/x.md", "zq in a folder\n")
    with Outside(home.parent) as outside:
        corpus.plant(str(home / _FILES), str(home / _NOTES), str(outside.root))
        outside.problems()  # planting a second name is no touch
        yield home, outside
    lab.away(home)


def chosen(outside: Outside, home: Path, share: float, seed: int) -> list[str]:
    """The corpus, some of it put together anew by the seed; of that the share that was asked for."""
    climb = os.path.relpath(outside.secret, home / _FILES)
    every = corpus.corpus(str(outside.secret), climb)
    chance = random.Random(seed)
    short = [path for path in every if len(path) < 200]
    every += ["".join(chance.choice(short) for _ in range(2)) for _ in range(40)]
    every += ["/".join(chance.choice(short) for _ in range(3)) for _ in range(40)]
    every = list(dict.fromkeys(every))
    return every if share >= 1 else chance.sample(every, max(12, round(len(every) * share / 2)))


def _is_file_or_nothing(home: Path, path: str) -> bool:
    try:
        return path != "-" and ((home / path).is_file() or not (home / path).exists())
    except (OSError, ValueError):
        return True


def _allowed(lab: Lab, door: str, home: Path, outside: Outside) -> opens.Allowed:
    named = (str(outside.root), "/etc/passwd", "/etc/shadow", "/dev", "/proc", "/sys") if door in ("imports", "hook") else ()
    return opens.Allowed(str(home), (str(lab.library), str(_DOORS.parent), *named), ())


def _environment(lab: Lab, home: Path) -> dict[str, str]:
    return {**lab.whole_environment(), "HOME": str(home), "HOLDFAST_HOME": str(home)}


def _by_child(lab: Lab, door: str, home: Path, paths: list[str], log: Path | None) -> Found:
    """A child that does it all in one process."""
    child = [sys.executable, str(_DOORS), door, str(home)]
    done = subprocess.run(
        opens.command(log, child) if log else child, input=json.dumps(paths), capture_output=True, text=True, check=False,
        env=_environment(lab, home), cwd=home, timeout=SECONDS,
    )  # fmt: skip
    found = [tuple(json.loads(line)) for line in done.stdout.splitlines()]
    if not found or found[-1][0] != "done":
        return [*found, ("the end", 0, f"it did not come to the end: {done.stderr[-800:]}")]
    return found[:-1]


def _by_mcp(lab: Lab, door: str, home: Path, paths: list[str], log: Path | None) -> Found:
    """A real server, spoken to by hand."""
    with Server(lab, home, log) as server:
        return [
            (verb, number, server.tried(make(path)))
            for verb, make in asked_by_mcp().items()
            for number, path in enumerate(paths)
        ]


def asked_by_mcp() -> dict[str, Callable[[str], tuple[str, Any]]]:
    """Each tool that takes a path, a key or an id, and the resources."""

    def tool(name: str, **given: Any) -> Callable[[str], tuple[str, Any]]:
        def make(path: str) -> tuple[str, Any]:
            words = {field: path if value == "{}" else value for field, value in given.items()}
            return "tools/call", {"name": name, "arguments": words}

        return make

    return {
        "view": tool("memory_file", command="view", path="{}"),
        "get by path": tool("memory_get", path="{}"),
        "get by key": tool("memory_get", key="{}"),
        "versions": tool("memory_history", key="{}"),
        "turns": tool("memory_history", turn="{}"),
        "recall": tool("memory_recall", query="{}", mode="keyword"),
        "search": tool("memory_search", query="{}"),
        "in a project": tool("memory_recall", query="zq", mode="keyword", project="{}"),
        "in a folder": tool("memory_recall", query="zq", mode="keyword", folder="{}"),
        "resource": lambda path: ("resources/read", {"uri": f"holdfast://notes/project/{path}"}),
        "resource, whole": lambda path: ("resources/read", {"uri": path}),
        "fact": tool("memory_fact", subject="{}", label="is", value="zq"),
        "store": tool("memory_store", text="zq a text", key="{}"),
        "create": tool("memory_file", command="create", path="{}", file_text="zq text\n"),
        "str_replace": tool("memory_file", command="str_replace", path="{}", old_str="zq", new_str="qz"),
        "insert": tool("memory_file", command="insert", path="{}", insert_line=0, insert_text="zq"),
        "rename to": tool("memory_file", command="rename", old_path="folder/x.md", new_path="{}"),
        "rename from": tool("memory_file", command="rename", old_path="{}", new_path="moved.md"),
        "forget": tool("memory_forget", key="{}"),
        "delete": tool("memory_file", command="delete", path="{}"),
    }


class Server:
    """`holdfast mcp` and the two ends of its pipe."""

    def __init__(self, lab: Lab, home: Path, log: Path | None) -> None:
        child = [sys.executable, "-m", "holdfast", "mcp", "--home", str(home), "--project", "demo"]
        self._heard = (home.parent / "stderr").open("w+")
        self._process = subprocess.Popen(
            opens.command(log, child) if log else child, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._heard,
            env=_environment(lab, home), cwd=home,
        )  # fmt: skip
        self._number = 0

    def __enter__(self) -> Server:
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "battery", "version": "1"}}
        self.ask("initialize", about)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def tried(self, question: tuple[str, Any]) -> str:
        """What is wrong with the answer: none, or one that tells what stands outside."""
        said = self.ask(*question)
        if "result" not in said and "error" not in said:
            return f"no answer: {str(said)[:200]}"
        shown = json.dumps(said, ensure_ascii=False)
        if "Run it again with --debug" in shown or "Traceback" in shown or "Internal error" in shown:
            return shown[:400]
        return "it told what stands outside" if CANARY in shown and CANARY not in json.dumps(question) else ""

    def ask(self, method: str, params: object) -> dict[str, Any]:
        self._number += 1
        try:
            self._write({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
            assert self._process.stdout is not None
            while line := self._process.stdout.readline():
                said: dict[str, Any] = json.loads(line)
                if said.get("id") == self._number and "method" not in said:
                    return said
        except BrokenPipeError:
            pass
        self._heard.seek(0)
        return {"gone": self._process.poll(), "stderr": self._heard.read()[-500:]}

    def _write(self, message: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.close()
            self._process.wait(30)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._heard.close()


def _log_of_hooks(home: Path) -> list[str]:
    """What hooks swallowed must be trouble of a kind we know."""
    from holdfast.base import failure_log

    return [f"hook: {one.event}: {one.message}" for one in failure_log.read(str(home)) if "report this" in one.fix]
