"""Part `leaks`: each scope of an owner is read through every verb and interface, by the owner and by other callers.

A caller that shares the scope must see the owner's notes; no other caller may see a word of them.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from battery.mcp_client import McpServer
from battery.report import Report, repeat_command
from battery.workspace import Workspace

if TYPE_CHECKING:
    from holdfast import Memory

SCOPES = ("global", "project", "session", "agent")
WORD = "harbour"
_CONFIG = '[brief]\ntotal_chars = 9000\nscope_chars = 2000\n[search]\nembedder = "none"\n'
_SLOW_INTERFACES = ("command line", "hook")  # each query starts a process


class Caller(NamedTuple):
    """A caller by its project, session and agent."""

    name: str
    project: str
    session: str
    agent: str

    def may_see(self, scope: str, owner: Caller) -> bool:
        """Return whether this caller shares a scope with the owner."""
        return scope == "global" or getattr(self, scope) == getattr(owner, scope)


class Item(NamedTuple):
    """The data of the owner in one scope: the secret word, the folder of the scope and the id of the note."""

    scope: str
    canary: str
    folder: str
    id: str


OWNER = Caller("own", "one", "s1", "a1")
CALLERS = (
    OWNER, Caller("other project", "two", "s1", "a1"), Caller("other session", "one", "s2", "a1"),
    Caller("other agent", "one", "s1", "a2"), Caller("stranger", "two", "s2", "a2"),
)  # fmt: skip
Outputs = dict[str, str]  # by verb
Query = Callable[[Item], Outputs]


class Check(NamedTuple):
    """One verb of one interface: the scope of the item and what is wrong."""

    interface: str
    verb: str
    scope: str
    problems: list[str]


def run(workspace: Workspace, report: Report, share: float, seed: int) -> None:
    """Test every verb of every interface for every scope and caller; a share below 1 starts fewer processes, 0 none."""
    home = workspace.new_home("leaks")
    home.mkdir(parents=True, mode=0o700)
    (home / "config.toml").write_text(_CONFIG)
    items = [_store_item(home, scope, random.Random(f"{seed}{scope}")) for scope in SCOPES]
    foreign = checks = 0
    with report.start_row("leaks: every verb, interface, scope and caller") as row:
        for caller in CALLERS:
            for check in _run_queries(workspace, home, caller, items, share):
                checks += 1
                foreign += any("foreign" in problem for problem in check.problems)
                prefix = f"{caller.name}: {check.interface} {check.verb} of {check.scope}"
                row.add([f"{prefix}: {problem}" for problem in check.problems], repeat_command("leaks", share, seed))
        row.set_figure(f"{foreign} foreign notes in {checks} looks")
    workspace.remove_home(home)


def run_sample(workspace: Workspace, seed: int = 1) -> list[str]:
    """Test the interfaces that need no process for each query; return all failures."""
    report = Report(quiet=True)
    run(workspace, report, 0, seed)
    return [failure for row in report.rows for failure in row.failures]


def _store_item(home: Path, scope: str, rng: random.Random) -> Item:
    """Store a note with an older version, a file, a fact, a turn, a trashed note and a receipt in one scope of the owner."""
    canary = f"zq{rng.randrange(16**12):012x}"
    with _open_memory(home, OWNER) as memory:
        memory.store(f"{WORD} before {canary}", key=f"tide-{scope}", scope=scope)
        note = memory.store(f"{WORD} {canary}", key=f"tide-{scope}", scope=scope, made_from=[f"https://{canary}.example/"]).note
        memory.approve(note.key, scope=scope)  # so that briefings show it
        memory.files.create(f"{scope}.md", f"# Page\n\n{WORD} {canary}\n", scope=scope)
        memory.fact(f"Subject {scope}", "state", canary, scope=scope)
        memory.log([{"role": "user", "text": f"{WORD} {canary}"}], session=f"said-{scope}", client="c", scope=scope)
        memory.store(f"{WORD} binned {canary}", key=f"gone-{scope}", scope=scope)
        memory.forget(f"gone-{scope}", scope=scope)
        memory.store(f"words of {scope} that are purged", key=f"purged-{canary}", scope=scope)
        memory.purge(f"purged-{canary}", scope=scope)  # its receipt names the key
    return Item(scope, canary, note.path.partition("/notes/")[0], note.id)


def _open_memory(home: Path, caller: Caller) -> Memory:
    from holdfast import Memory

    return Memory(home, project=caller.project, session=caller.session, agent=caller.agent, origin="user", cwd=home)


def _run_queries(workspace: Workspace, home: Path, caller: Caller, items: list[Item], share: float) -> Iterator[Check]:
    """Yield a check for each query, and one for each interface: whether it shows the item to a caller that may see it."""
    with _open_interfaces(workspace, home, caller) as interfaces:
        for interface, query in interfaces.items():
            slow = interface in _SLOW_INTERFACES
            if slow and not share:
                continue
            for item in [items[1]] if slow and share < 1 else items:
                outputs = query(item)
                allowed = caller.may_see(item.scope, OWNER)
                for verb, text in outputs.items():
                    leaked = not allowed and item.canary in text
                    yield Check(interface, verb, item.scope, ["a foreign note"] if leaked else [])
                missing = allowed and not any(item.canary in text for text in outputs.values())
                yield Check(interface, "anything", item.scope, ["its owner sees nothing"] if missing else [])


@contextmanager
def _open_interfaces(workspace: Workspace, home: Path, caller: Caller) -> Iterator[dict[str, Query]]:
    environment = _environment(workspace, home, caller)
    with _open_memory(home, caller) as memory, McpServer(environment=environment, cwd=home) as server:
        yield {
            "library": lambda item: _query_library(memory, item),
            "mcp": lambda item: _query_mcp(server, item),
            "command line": lambda item: _query_command_line(workspace, home, caller, item),
            "hook": lambda item: _query_hook(workspace, home, caller, item),
        }


def _query_library(memory: Memory, item: Item) -> Outputs:
    key, scope, folder = f"tide-{item.scope}", item.scope, item.folder
    url = f"https://{item.canary}.example/"
    queries: dict[str, Callable[[], object]] = {
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
        "messages": memory.operator_list, "messages in": lambda: memory.operator_list(scope=scope),
        "review": memory.review, "trace": lambda: memory.trace(key),
        "relations": lambda: memory.relations(key), "export": lambda: list(memory.export()),
        "sweep": lambda: memory.forget_source("client:none", dry_run=True), "status": memory.status,
        "sweep note": lambda: memory.forget_source(f"note:{item.id}", dry_run=True).forgotten,
        "receipts": lambda: _read_receipts_as_agent(memory),
        "made from": lambda: memory.store("words", key="mine", scope="session", made_from=[f"note:{item.id}"]),
    }  # fmt: skip
    outputs = {name: _format_answer(query) for name, query in queries.items()}
    outputs["sweep note"] = outputs["sweep note"].replace("Touched(", item.canary)  # a key alone would be a leak
    stored = "note:" in outputs["made from"] and "Stored(" in outputs["made from"]
    outputs["made from"] = item.canary if stored else ""
    return outputs


def _read_receipts_as_agent(memory: Memory) -> object:
    """Return the receipts that an agent may see: a person sees all."""
    from holdfast import Memory

    with Memory(memory.home, cwd=memory.home, project=memory.project, session=memory.session, agent=memory.agent) as agent:
        return agent.receipts()


def _format_answer(query: Callable[[], object]) -> str:
    from holdfast import HoldfastError

    try:
        return repr(query())
    except HoldfastError as error:
        return str(error)


def _query_mcp(server: McpServer, item: Item) -> Outputs:
    key, scope, folder = f"tide-{item.scope}", item.scope, item.folder
    calls: dict[str, tuple[str, dict[str, object]]] = {
        "recall": ("memory_recall", {"query": WORD, "limit": 100, "mode": "keyword"}),
        "recent": ("memory_recall", {"mode": "recent", "limit": 100}), "search": ("memory_search", {"query": WORD}),
        "get": ("memory_get", {"key": key}), "get in": ("memory_get", {"key": key, "scope": scope}),
        "read": ("memory_get", {"path": f"{folder}/notes/{key}.md"}),
        "file": ("memory_get", {"path": f"{folder}/files/{scope}.md"}),
        "history": ("memory_history", {"key": key}), "fact": ("memory_fact", {"subject": f"Subject {scope}"}),
        "turn": ("memory_history", {"turn": f"{folder}/transcripts/c/said-{scope}.jsonl:2-2"}),
        "view": ("memory_file", {"command": "view", "path": f"{scope}.md", "scope": scope}),
    }  # fmt: skip
    outputs = {
        name: server.request("tools/call", {"name": tool, "arguments": given}) for name, (tool, given) in calls.items()
    }
    outputs["resources"] = server.request("resources/list", {})
    outputs["briefing"] = server.request("resources/read", {"uri": "holdfast://briefing"})
    outputs["note"] = server.request("resources/read", {"uri": f"holdfast://notes/{scope}/{key}"})
    for name, response in outputs.items():
        assert "result" in response or "error" in response, f"{name}: {response}"
    return {name: json.dumps(response) for name, response in outputs.items()}


def _query_command_line(workspace: Workspace, home: Path, caller: Caller, item: Item) -> Outputs:
    key, scope, folder = f"tide-{item.scope}", item.scope, item.folder
    commands = (
        ["recall", WORD, "--limit", "100"], ["get", key, "--history"], ["list"], ["list", "--trash"], ["facts", "--history"],
        ["search", WORD], ["read", f"{folder}/notes/{key}.md"], ["file", "view", f"{scope}.md", "--scope", scope], ["brief"],
        ["expand", f"{folder}/transcripts/c/said-{scope}.jsonl:2-2"], ["trace", key], ["relate", key], ["review"], ["export"],
        ["status"],
    )  # fmt: skip
    return {words[0]: _run_holdfast(workspace, home, caller, words) for words in commands}


def _query_hook(workspace: Workspace, home: Path, caller: Caller, item: Item) -> Outputs:
    fields = {"session_id": caller.session, "cwd": str(home)}
    inputs = {
        "SessionStart": {**fields, "source": "startup"},
        "UserPromptSubmit": {**fields, "prompt": f"what about the {WORD} tide {item.scope}"},
    }
    return {
        event: _run_holdfast(workspace, home, caller, ["hook", "claude-code", event], json.dumps(given))
        for event, given in inputs.items()
    }


def _run_holdfast(workspace: Workspace, home: Path, caller: Caller, words: list[str], stdin: str = "") -> str:
    """Run a command in a process of its own and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", *words], input=stdin, capture_output=True, text=True, timeout=120, cwd=home,
        env=_environment(workspace, home, caller),
    )  # fmt: skip
    return done.stdout + done.stderr


def _environment(workspace: Workspace, home: Path, caller: Caller) -> dict[str, str]:
    settings = {
        "HOLDFAST_PROJECT": caller.project, "HOLDFAST_SESSION": caller.session, "HOLDFAST_AGENT": caller.agent,
        "HOLDFAST_HOME": str(home), "PYTHONPATH": str(workspace.package_root),
    }  # fmt: skip
    return {**workspace.minimal_environment(), **settings}
