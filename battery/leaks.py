"""Leaks: whatever somebody keeps in a scope of theirs is asked for through every verb of every door, by them and by others.
Who must see it sees it, and nobody else sees a word of it."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from battery.lab import Lab
from battery.report import Report, repeat

SCOPES = ("global", "project", "session", "agent")
WORD = "harbour"
_CONFIG = '[brief]\ntotal_chars = 9000\nscope_chars = 2000\n[search]\nembedder = "none"\n'


class Asker(NamedTuple):
    """Who asks, and what it has in common with the owner."""

    name: str
    project: str
    session: str
    agent: str

    def sees(self, scope: str, owner: Asker) -> bool:
        return scope == "global" or getattr(self, scope) == getattr(owner, scope)


class Kept(NamedTuple):
    """What the owner keeps in one scope: the word that nobody else may see, and where it stands."""

    scope: str
    canary: str
    folder: str
    id: str


OWNER = Asker("own", "one", "s1", "a1")
ASKERS = (OWNER, Asker("other project", "two", "s1", "a1"), Asker("other session", "one", "s2", "a1"),
          Asker("other agent", "one", "s1", "a2"), Asker("stranger", "two", "s2", "a2"))  # fmt: skip

Look = Callable[[Kept], dict[str, str]]


def run(lab: Lab, report: Report, share: float, seed: int) -> None:
    """Every verb of every door, for every scope and asker; a quick run looks through fewer doors that start a process."""
    home = lab.home("leaks")
    home.mkdir(parents=True, mode=0o700)
    (home / "config.toml").write_text(_CONFIG)
    kept = [_kept(home, scope, random.Random(f"{seed}{scope}")) for scope in SCOPES]
    foreign = tries = 0
    with report.row("leaks: every verb, door, scope and asker") as row:
        for asker in ASKERS:
            for door, verb, scope, problems in _tried(lab, home, asker, kept, share):
                tries += 1
                foreign += any("foreign" in one for one in problems)
                row.tried([f"{asker.name}: {door} {verb} of {scope}: {one}" for one in problems], repeat("leaks", share, seed))
        row.figure(f"{foreign} foreign notes in {tries} looks")
    lab.away(home)


def _kept(home: Path, scope: str, chance: random.Random) -> Kept:
    """A note with an older version, a file, a fact and a turn, in one scope of the owner's."""
    canary = f"zq{chance.randrange(16**12):012x}"
    with _memory(home, OWNER) as memory:
        memory.store(f"{WORD} before {canary}", key=f"tide-{scope}", scope=scope)
        note = memory.store(f"{WORD} {canary}", key=f"tide-{scope}", scope=scope, made_from=[f"https://{canary}.example/"]).note
        memory.approve(note.key, scope=scope)  # so that briefings tell it to who may hear it
        memory.files.create(f"{scope}.md", f"# Page\n\n{WORD} {canary}\n", scope=scope)
        memory.fact(f"Subject {scope}", "state", canary, scope=scope)
        memory.log([{"role": "user", "text": f"{WORD} {canary}"}], session=f"said-{scope}", client="c", scope=scope)
        memory.store(f"{WORD} binned {canary}", key=f"gone-{scope}", scope=scope)
        memory.forget(f"gone-{scope}", scope=scope)
        memory.store(f"words of {scope} that are purged", key=f"purged-{canary}", scope=scope)
        memory.purge(f"purged-{canary}", scope=scope)  # its receipt names the key
    return Kept(scope, canary, note.path.partition("/notes/")[0], note.id)


def _memory(home: Path, asker: Asker) -> Any:
    from holdfast import Memory

    return Memory(home, project=asker.project, session=asker.session, agent=asker.agent, origin="user", cwd=home)


def _tried(
    lab: Lab, home: Path, asker: Asker, kept: list[Kept], share: float
) -> Iterator[tuple[str, str, str, list[str]]]:
    """Each look with what was wrong: a foreign word seen, or a door that shows its owner nothing at all."""
    with _doors(lab, home, asker) as doors:
        for door, look in doors.items():
            if not share and door in ("command line", "hook"):
                continue
            some = kept if share >= 1 or door in ("library", "mcp") else [kept[1]]
            for thing in some:
                said = look(thing)
                may = asker.sees(thing.scope, OWNER)
                blind = may and not any(thing.canary in text for text in said.values())
                for verb, text in said.items():
                    leaked = not may and thing.canary in text
                    yield door, verb, thing.scope, ["a foreign note"] if leaked else []
                yield door, "anything", thing.scope, ["its owner sees nothing"] if blind else []


@contextmanager
def _doors(lab: Lab, home: Path, asker: Asker) -> Iterator[dict[str, Look]]:
    with _memory(home, asker) as memory, _server(lab, home, asker) as ask:
        yield {
            "library": lambda thing: _library(memory, thing),
            "mcp": lambda thing: _mcp(ask, thing),
            "command line": lambda thing: _commands(lab, home, asker, thing),
            "hook": lambda thing: _hook(lab, home, asker, thing),
        }


def _library(memory: Any, thing: Kept) -> dict[str, str]:
    key, scope, folder = f"tide-{thing.scope}", thing.scope, thing.folder
    url = f"https://{thing.canary}.example/"
    ways: dict[str, Callable[[], object]] = {
        "recall": lambda: memory.recall(WORD, limit=100, mode="keyword"), "recall in": lambda: memory.recall(WORD, scope=scope),
        "recent": lambda: memory.recall(mode="recent", limit=100), "as of": lambda: memory.recall(WORD, as_of="2999-01-01"),
        "turns": lambda: memory.recall(WORD, kind="turn", mode="keyword"), "get": lambda: memory.get(key),
        "get in": lambda: memory.get(key, scope=scope), "list": memory.list, "list by source": lambda: memory.list(source=url),
        "history": lambda: memory.history(key), "facts": lambda: memory.facts(history=True),
        "fact": lambda: memory.facts(f"Subject {scope}"), "graph": lambda: memory.graph(f"Subject {scope}"),
        "search": lambda: memory.search(WORD, limit=100), "read": lambda: memory.read(f"{folder}/notes/{key}.md"),
        "read file": lambda: memory.read(f"{folder}/files/{scope}.md"),
        "view": lambda: memory.files.view(f"{scope}.md", scope=scope),
        "expand": lambda: memory.expand(f"{folder}/transcripts/c/said-{scope}.jsonl:2-2"), "trash": memory.trash,
        "brief": lambda: memory.brief(remember=False), "explain": lambda: memory.brief(explain=True),
        "prompt": lambda: memory.brief(prompt=f"{WORD} tide {scope}", again=True, remember=False), "boot": memory.boot,
        "review": memory.review, "trace": lambda: memory.trace(key), "export": lambda: list(memory.export()),
        "sweep": lambda: memory.forget_source("client:none", dry_run=True), "status": memory.status,
        "sweep note": lambda: memory.forget_source(f"note:{thing.id}", dry_run=True).forgotten,
        "receipts": lambda: _receipts(memory),
        "made from": lambda: memory.store("words", key="mine", scope="session", made_from=[f"note:{thing.id}"]),
    }  # fmt: skip
    said = {name: _answered(way) for name, way in ways.items()}
    said["sweep note"] = said["sweep note"].replace("Touched(", thing.canary)  # a key alone would be a leak
    said["made from"] = thing.canary if "note:" in said["made from"] and "Stored(" in said["made from"] else ""
    return said


def _receipts(memory: Any) -> object:
    """As an agent sees them: a person sees all."""
    from holdfast import Memory

    who = {"project": memory.project, "session": memory.session, "agent": memory.agent}
    with Memory(memory.home, cwd=memory.home, **who) as agent:
        return agent.receipts()


def _answered(way: Callable[[], object]) -> str:
    from holdfast import HoldfastError

    try:
        return repr(way())
    except HoldfastError as error:
        return str(error)


def _mcp(ask: Callable[[str, dict[str, Any]], str], thing: Kept) -> dict[str, str]:
    key, scope, folder = f"tide-{thing.scope}", thing.scope, thing.folder
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "recall": ("memory_recall", {"query": WORD, "limit": 100, "mode": "keyword"}),
        "recent": ("memory_recall", {"mode": "recent", "limit": 100}), "search": ("memory_search", {"query": WORD}),
        "get": ("memory_get", {"key": key}), "get in": ("memory_get", {"key": key, "scope": scope}),
        "read": ("memory_get", {"path": f"{folder}/notes/{key}.md"}),
        "file": ("memory_get", {"path": f"{folder}/files/{scope}.md"}),
        "history": ("memory_history", {"key": key}), "fact": ("memory_fact", {"subject": f"Subject {scope}"}),
        "turn": ("memory_history", {"turn": f"{folder}/transcripts/c/said-{scope}.jsonl:2-2"}),
        "view": ("memory_file", {"command": "view", "path": f"{scope}.md", "scope": scope}),
    }  # fmt: skip
    said = {name: ask("tools/call", {"name": tool, "arguments": given}) for name, (tool, given) in calls.items()}
    said["resources"] = ask("resources/list", {})
    said["briefing"] = ask("resources/read", {"uri": "holdfast://briefing"})
    said["note"] = ask("resources/read", {"uri": f"holdfast://notes/{scope}/{key}"})
    return said


def _commands(lab: Lab, home: Path, asker: Asker, thing: Kept) -> dict[str, str]:
    key, scope, folder = f"tide-{thing.scope}", thing.scope, thing.folder
    ways = (
        ["recall", WORD, "--limit", "100"], ["get", key, "--history"], ["list"], ["list", "--trash"], ["facts", "--history"],
        ["search", WORD], ["read", f"{folder}/notes/{key}.md"], ["file", "view", f"{scope}.md", "--scope", scope], ["brief"],
        ["expand", f"{folder}/transcripts/c/said-{scope}.jsonl:2-2"], ["trace", key], ["review"], ["export"], ["status"],
    )  # fmt: skip
    return {" ".join(words[:1]): _process(lab, home, asker, words) for words in ways}


def _hook(lab: Lab, home: Path, asker: Asker, thing: Kept) -> dict[str, str]:
    heard = {"session_id": asker.session, "cwd": str(home)}
    start = _process(lab, home, asker, ["hook", "claude-code", "SessionStart"], json.dumps({**heard, "source": "startup"}))
    prompt = json.dumps({**heard, "prompt": f"what about the {WORD} tide {thing.scope}"})
    return {"start": start, "prompt": _process(lab, home, asker, ["hook", "claude-code", "UserPromptSubmit"], prompt)}


def _process(lab: Lab, home: Path, asker: Asker, words: list[str], stdin: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", *words], input=stdin, capture_output=True, text=True, timeout=120, cwd=home,
        env=_environment(lab, home, asker),
    )  # fmt: skip
    return done.stdout + done.stderr


def _environment(lab: Lab, home: Path, asker: Asker) -> dict[str, str]:
    who = {"HOLDFAST_PROJECT": asker.project, "HOLDFAST_SESSION": asker.session, "HOLDFAST_AGENT": asker.agent}
    return {**lab.environment(), **who, "HOLDFAST_HOME": str(home), "PYTHONPATH": str(lab.library)}


@contextmanager
def _server(lab: Lab, home: Path, asker: Asker) -> Iterator[Callable[[str, dict[str, Any]], str]]:
    """A server in a process of its own, spoken to line by line."""
    server = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, cwd=home, env=_environment(lab, home, asker),
    )  # fmt: skip
    assert server.stdin and server.stdout
    count = 0

    def send(message: dict[str, Any]) -> None:
        assert server.stdin
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        server.stdin.flush()

    def ask(method: str, params: dict[str, Any]) -> str:
        nonlocal count
        assert server.stdout
        count += 1
        send({"id": count, "method": method, "params": params})
        while line := server.stdout.readline():
            if json.loads(line).get("id") == count:
                return line
        raise AssertionError("the server ended")

    about = {"clientInfo": {"name": "battery", "version": "1"}, "protocolVersion": "2025-06-18", "capabilities": {}}
    ask("initialize", about)
    send({"method": "notifications/initialized"})
    try:
        yield ask
    finally:
        server.stdin.close()
        server.wait(30)
        server.stdout.close()


def sample(lab: Lab, seed: int = 1) -> list[str]:
    """What a test tries: the doors that need no process for each look; everything that was wrong."""
    report = Report(quiet=True)
    run(lab, report, 0, seed)
    return [failure for row in report.rows for failure in row.failures]
