"""Isolation through every interface: callers that must see a note see it in every way, and no other caller sees it.

Real repositories, real processes. To add an interface, add a class below: how a caller stores something through it (if
possible), and all its ways to read; each test then runs with it too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from dataclasses import dataclass, field

import pytest
from tiers import tiered

from holdfast import Memory
from holdfast.api import resident

KEY = "tide"
WORD = "harbour"
SUBJECT = "Harbour"


@dataclass(frozen=True)
class Caller:
    """A caller: its folder, client, session and agent."""

    folder: str
    client: str = ""
    session: str | None = None
    agent: str | None = None

    def memory(self, home):
        return Memory(home, cwd=self.folder, session=self.session, agent=self.agent, client=self.client or None)

    def env(self, home):
        names = {"HOLDFAST_HOME": str(home), "HOLDFAST_SESSION": self.session, "HOLDFAST_AGENT": self.agent}
        return {**os.environ, **{name: value for name, value in names.items() if value}}


@dataclass(frozen=True)
class Thing:
    """What was stored: the text that no other caller may see, and every place that contains it."""

    scope: str
    text: str = field(default_factory=lambda: uuid.uuid4().hex)
    folder: str = ""

    @property
    def note(self):
        return f"{WORD} {self.text}"


def keep(home, caller, scope):
    """Store a note, a file, a fact and a turn with the library."""
    thing = Thing(scope)
    with caller.memory(home) as memory:
        path = memory.store(thing.note, key=KEY, scope=scope).note.path
        memory.files.create("page.md", f"# Page\n\n{thing.note}\n", scope=scope)
        memory.fact(SUBJECT, "state", thing.text, scope=scope)
        memory.log([{"role": "user", "text": thing.note}], session="said", client="test", scope=scope)
    return Thing(scope, thing.text, path.removesuffix(f"/notes/{KEY}.md"))


# --- the interfaces ---------------------------------------------------------------------------------------------------

STORE_IN_PYTHON = """
import sys
from holdfast import Memory
Memory(client=sys.argv[1]).store(sys.argv[2], key="tide", scope=sys.argv[3])
"""
IN_PYTHON = """
import json, os, pathlib, sys
from holdfast import HoldfastError, Memory
asked = json.loads(sys.argv[1])
def rendered(memory):
    path = pathlib.Path(asked["home"], "..", "rendered", str(os.getpid()))
    memory.render(path)
    text = path.read_text() if path.exists() else ""
    memory.render(path, remove=True)
    return text
ways = {
    "recall": lambda m: m.recall("harbour", limit=100), "recent": lambda m: m.recall(mode="recent", limit=100),
    "turns": lambda m: m.recall("harbour", kind="turn"), "get": lambda m: m.get("tide"), "list": lambda m: m.list(),
    "history": lambda m: m.history("tide"), "facts": lambda m: m.facts("Harbour"), "graph": lambda m: m.facts(history=True),
    "search": lambda m: m.search("harbour"), "brief": lambda m: m.brief(),
    "read": lambda m: m.read(asked["folder"] + "/notes/tide.md"), "file": lambda m: m.read(asked["folder"] + "/files/page.md"),
    "view": lambda m: m.files.view("page.md", scope=asked["scope"]),
    "expand": lambda m: m.expand(asked["folder"] + "/transcripts/test/said.jsonl:2-2"),
    "render": rendered,
}
said = {}
with Memory(asked["home"], **asked["who"]) as memory:
    for name, way in ways.items():
        try:
            said[name] = repr(way(memory))
        except HoldfastError as error:
            said[name] = str(error)
print(json.dumps(said))
"""


class Python:
    """The library, in a process of its own."""

    def __init__(self, home, elsewhere):
        self.home, self.elsewhere = home, elsewhere

    def close(self):
        pass

    def keep(self, caller, scope):
        thing = Thing(scope)
        words = [sys.executable, "-c", STORE_IN_PYTHON, caller.client, thing.note, scope]
        done = run(words, caller.folder, caller.env(self.home))
        assert done.returncode == 0, done.stderr
        return thing

    def looks(self, caller, thing):
        who = {"cwd": caller.folder, "session": caller.session, "agent": caller.agent}
        asked = {"home": str(self.home), "who": who, "folder": thing.folder, "scope": thing.scope}
        done = run([sys.executable, "-c", IN_PYTHON, json.dumps(asked)], self.elsewhere, os.environ)
        said = json.loads(done.stdout)
        if thing.scope in ("session", "agent"):  # everyone in the project reads the file: their notes are in none
            assert thing.text not in said.pop("render")
        return said


class CommandLine:
    """The command, run in the folder."""

    def __init__(self, home, elsewhere):
        self.home = home

    def close(self):
        pass

    def _run(self, caller, *words):
        done = run([sys.executable, "-m", "holdfast", *words], caller.folder, caller.env(self.home))
        assert done.returncode in (0, 1, 3), done.stderr
        return done.stdout + done.stderr

    def keep(self, caller, scope):
        thing = Thing(scope)
        self._run(caller, "store", thing.note, "--key", KEY, "--scope", scope, "--client", caller.client)
        return thing

    def looks(self, caller, thing):
        ways = {
            "recall": ["recall", WORD, "--limit", "100"],
            "get": ["get", KEY, "--history"],
            "facts": ["facts", SUBJECT],
            "brief": ["brief"],
            "read": ["read", f"{thing.folder}/notes/{KEY}.md"],
            "view": ["file", "view", "page.md", "--scope", thing.scope],
        }
        return {name: self._run(caller, *words) for name, words in ways.items()}


class Hook:
    """What a client's hook shows the model when a session starts, and with a prompt."""

    client, start, prompt = "claude-code", "SessionStart", "UserPromptSubmit"

    def __init__(self, home, elsewhere):
        self.home, self.elsewhere = home, elsewhere

    def close(self):
        pass

    def looks(self, caller, thing):
        question = {"prompt": f"what about the {WORD} {KEY}"}
        ways = {"start": (self.start, {"source": "startup"}), "prompt": (self.prompt, question)}
        said = {}
        for name, (event, more) in ways.items():
            # a new session for each, because notes are shown to a session once
            session = caller.session or f"{name}-{uuid.uuid4().hex}"
            heard = {"hook_event_name": event, "cwd": caller.folder, "session_id": session, **more}
            if name == "prompt" and caller.session:
                self._forget_what_was_told()
            env = {name: value for name, value in caller.env(self.home).items() if name != "HOLDFAST_SESSION"}
            words = [sys.executable, "-m", "holdfast", "hook", self.client, event]
            done = run(words, self.elsewhere, env, json.dumps(heard))
            assert done.returncode == 0
            said[name] = done.stdout
        assert not (self.home / "run" / "hooks.log").exists(), (self.home / "run" / "hooks.log").read_text()
        return said

    def _forget_what_was_told(self):
        for path in self.home.glob("ledger.db*"):
            path.unlink()


class HookWithParts(Hook):
    """The same for a client that can add text only with a prompt."""

    client = "kimi"

    def looks(self, caller, thing):
        return {"prompt": super().looks(caller, thing)["prompt"]}


class Mcp:
    """The server on stdio; the subclasses differ in how it learns the project."""

    def __init__(self, home, elsewhere):
        self.home, self.elsewhere = home, elsewhere
        self.servers = {}

    def close(self):
        for server in self.servers.values():
            server.close()

    def keep(self, caller, scope):
        thing = Thing(scope)
        said = self._tool(caller, "memory_store", text=thing.note, key=KEY, scope=scope)
        assert not said.get("isError"), said
        return thing

    def looks(self, caller, thing):
        calls = {
            "recall": ("memory_recall", {"query": WORD, "limit": 100}),
            "recent": ("memory_recall", {"mode": "recent", "limit": 100}),
            "search": ("memory_search", {"query": WORD}),
            "get": ("memory_get", {"key": KEY}),
            "read": ("memory_get", {"path": f"{thing.folder}/notes/{KEY}.md"}),
            "file": ("memory_get", {"path": f"{thing.folder}/files/page.md"}),
            "history": ("memory_history", {"key": KEY}),
            "turn": ("memory_history", {"turn": f"{thing.folder}/transcripts/test/said.jsonl:2-2"}),
            "facts": ("memory_fact", {"subject": SUBJECT}),
            "view": ("memory_file", {"command": "view", "path": "page.md", "scope": thing.scope}),
        }
        said = {name: json.dumps(self._tool(caller, tool, **given)) for name, (tool, given) in calls.items()}
        return {**said, **self._resources(caller, thing)}

    def _resources(self, caller, thing):
        server = self._server(caller)
        uris = {"briefing": "holdfast://briefing", "note": f"holdfast://notes/{thing.scope}/{KEY}"}
        return {name: json.dumps(server.ask("resources/read", {"uri": uri})) for name, uri in uris.items()}

    def _tool(self, caller, tool, **given):
        said = self._server(caller).ask("tools/call", {"name": tool, "arguments": self._given(caller, given)})
        return said.get("result", said)

    def _server(self, caller):
        if caller not in self.servers:
            self.servers[caller] = Server(self, caller)
        return self.servers[caller]

    def env(self, caller):
        return caller.env(self.home)

    def roots(self, caller):
        return None

    def _given(self, caller, given):
        return given


class McpByRoots(Mcp):
    def roots(self, caller):
        return [{"uri": f"file://{caller.folder}"}]


class McpByEnvironment(Mcp):
    def env(self, caller):
        return {**caller.env(self.home), "HOLDFAST_PROJECT_DIR": caller.folder}


class McpByArgument(Mcp):
    """One server for all folders of a session and agent: only the argument distinguishes them."""

    def _given(self, caller, given):
        return {**given, "folder": caller.folder}

    def _server(self, caller):
        return super()._server(Caller("", caller.client, caller.session, caller.agent))

    def _resources(self, caller, thing):
        return {}  # which take no argument


class Server:
    """A server in a process of its own, used line by line. It runs in a folder that is not a project."""

    def __init__(self, door, caller):
        words = [sys.executable, "-m", "holdfast", "mcp", *(["--client", caller.client] if caller.client else [])]
        self.roots = door.roots(caller)
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            cwd=door.elsewhere, env=door.env(caller),
        )  # fmt: skip
        self.number = 0
        about = {"clientInfo": {"name": "test", "version": "1"}, "protocolVersion": "2025-06-18"}
        self.ask("initialize", {**about, "capabilities": {"roots": {}} if self.roots is not None else {}})
        self._send({"method": "notifications/initialized"})

    def ask(self, method, params):
        self.number += 1
        self._send({"id": self.number, "method": method, "params": params})
        while True:
            line = self.process.stdout.readline()
            assert line, "the server ended"
            said = json.loads(line)
            if said.get("method") == "roots/list":
                self._send({"id": said["id"], "result": {"roots": self.roots}})
            elif said.get("id") == self.number and "method" not in said:
                return said

    def _send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


class Resident:
    """The resident process: used by the command without options, and directly over its socket."""

    def __init__(self, home, elsewhere):
        self.home = home
        words = [sys.executable, "-m", "holdfast", "resident", "--home", str(home)]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=elsewhere)
        assert "answering" in self.process.stderr.readline()

    def close(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(30)
        self.process.stderr.close()

    def looks(self, caller, thing):
        with caller.memory(self.home) as memory:
            who = {"project": memory.project, "session": caller.session, "agent": caller.agent}
        asked = [{"query": WORD, "limit": 100}, {"query": "", "mode": "recent"}, {"query": WORD, "kind": "turn"}]
        said = {str(one): repr(resident.recall(str(self.home), who, dict(one))) for one in asked}
        words = [sys.executable, "-m", "holdfast", "recall", WORD, "--json"]
        return {**said, "command": run(words, caller.folder, caller.env(self.home)).stdout}


DOORS = [Python, CommandLine, McpByRoots, McpByEnvironment, McpByArgument, Hook, HookWithParts, Resident]
FAST = [Python, CommandLine, McpByRoots, Hook]
WRITING = [door for door in DOORS if hasattr(door, "keep")]
OF_ONE_KIND = [door for door in DOORS if door not in (McpByEnvironment, HookWithParts)]  # these differ only in the project


def run(words, folder, env, stdin=""):
    return subprocess.run(words, cwd=folder, env=dict(env), input=stdin, capture_output=True, text=True, timeout=120)


# --- repositories and folders -----------------------------------------------------------------------------------------


def git(*words, cwd):
    who = {f"GIT_{role}_{what}": "a@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    words = ["git", "-c", "init.defaultBranch=main", *words]
    subprocess.run(words, cwd=cwd, env=env, check=True, capture_output=True, timeout=60)


@dataclass(frozen=True)
class World:
    clone: str  # of team/one
    worktree: str  # of that clone
    other_clone: str  # of the same remote, reached another way
    below: str  # a folder inside the clone
    other: str  # a repository of another remote, of the same name
    bare: str  # a repository without a remote
    inner: str  # another repository inside the clone
    plain: str  # not a repository
    elsewhere: str  # where servers run


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Repositories and folders; no test changes them."""
    root = tmp_path_factory.mktemp("world")
    paths = {name: root / name / "one" for name in World.__dataclass_fields__}
    for name in ("clone", "other", "bare"):
        paths[name].mkdir(parents=True)
        git("init", cwd=paths[name])
        git("commit", "--allow-empty", "-m", "first", cwd=paths[name])
    git("remote", "add", "origin", "https://example.com/team/one.git", cwd=paths["clone"])
    git("remote", "add", "origin", "https://example.com/other-team/one.git", cwd=paths["other"])
    git("worktree", "add", str(paths["worktree"]), "-b", "side", cwd=paths["clone"])
    git("clone", str(paths["clone"]), str(paths["other_clone"]), cwd=root)
    git("remote", "set-url", "origin", "git@example.com:team/one.git", cwd=paths["other_clone"])
    paths["below"] = paths["clone"] / "src" / "deep"
    paths["inner"] = paths["clone"] / "vendor" / "inner"
    for name in ("below", "inner", "plain", "elsewhere"):
        paths[name].mkdir(parents=True)
    git("init", cwd=paths["inner"])
    git("remote", "add", "origin", "https://example.com/vendor/inner.git", cwd=paths["inner"])
    return World(**{name: str(path) for name, path in paths.items()})


@pytest.fixture
def opened(home, world):
    """Open interfaces; they are closed after the test."""
    doors = []

    def open_(door):
        home.mkdir(0o700, exist_ok=True)
        doors.append(door(home, world.elsewhere))
        return doors[-1]

    yield open_
    for door in doors:
        door.close()


@pytest.fixture(params=tiered(DOORS, FAST), ids=lambda door: door.__name__)
def door(request, opened):
    return opened(request.param)


@pytest.fixture(params=tiered(OF_ONE_KIND, FAST), ids=lambda door: door.__name__)
def kind_of_door(request, opened):
    return opened(request.param)


def assert_sees(door, caller, thing):
    said = door.looks(caller, thing)
    assert [way for way, text in said.items() if thing.text not in text] == [], said


def assert_blind(door, caller, thing):
    said = door.looks(caller, thing)
    assert {way: text for way, text in said.items() if thing.text in text} == {}


# --- which callers see what -------------------------------------------------------------------------------------------


@pytest.mark.promise("N8")
@pytest.mark.parametrize("writes", tiered(WRITING, fast=[Python, McpByRoots]), ids=lambda door: door.__name__)
def test_two_clients_in_one_project_see_each_others_notes(opened, writes, world, home):
    """What one program keeps, each of the others finds; through whatever door either came."""
    one = Caller(world.clone, "one", session="s-one")
    thing = opened(writes).keep(one, "project")
    two = Caller(world.clone, "two", session="s-two")
    for reads in (Python, McpByRoots, Hook):
        said = opened(reads).looks(two, thing)
        assert any(thing.text in text for text in said.values()), (reads, said)
    with two.memory(home) as memory:
        assert (memory.get(KEY).source.client, memory.get(KEY).text) == ("one", thing.note)


@pytest.mark.promise("P2", "N8")
def test_a_worktree_another_clone_and_a_folder_below_share_one_memory(door, world, home):
    thing = keep(home, Caller(world.clone), "project")
    for folder in (world.worktree, world.other_clone, world.below):
        assert_sees(door, Caller(folder), thing)


@pytest.mark.promise("P1", "N8")
def test_two_projects_never_see_each_others(door, world, home):
    """Not one of the same name, nor one without a remote, nor a repository inside another or around it."""
    thing, inner = keep(home, Caller(world.clone), "project"), keep(home, Caller(world.inner), "project")
    assert_sees(door, Caller(world.clone), thing)
    assert_blind(door, Caller(world.clone), inner)
    for stranger in (world.other, world.bare, world.inner):
        assert_blind(door, Caller(stranger), thing)


@pytest.mark.promise("P1", "N8")
def test_a_plain_folder_keeps_its_own_to_itself(door, world, home):
    thing = keep(home, Caller(world.plain), "project")
    assert_sees(door, Caller(world.plain), thing)
    assert_blind(door, Caller(world.bare), thing)


@pytest.mark.promise("N8")
@pytest.mark.parametrize(("kind", "other_kind"), [("session", "agent"), ("agent", "session")])
def test_what_belongs_to_a_session_or_an_agent_stays_there(kind_of_door, world, home, kind, other_kind):
    thing = keep(home, Caller(world.clone, **{kind: "mine"}), kind)
    assert_sees(kind_of_door, Caller(world.other, **{kind: "mine"}), thing)  # wherever that session or agent works
    assert_blind(kind_of_door, Caller(world.clone, **{kind: "another"}), thing)
    assert_blind(kind_of_door, Caller(world.clone, **{other_kind: "mine"}), thing)  # nor for one without, of that name


@pytest.mark.promise("N1", "N8")
def test_what_is_global_is_seen_by_all(kind_of_door, world, home):
    thing = keep(home, Caller(world.clone), "global")
    assert_sees(kind_of_door, Caller(world.other, session="s", agent="a"), thing)


# --- which callers can do what ----------------------------------------------------------------------------------------


@pytest.mark.promise("N8")
@pytest.mark.parametrize("writes", tiered(WRITING, fast=[Python, McpByRoots]), ids=lambda door: door.__name__)
def test_a_write_lands_with_its_own_caller_and_changes_nobody_elses_note_of_that_key(opened, writes, world, home):
    mine = Caller(world.clone, "one", session="s1", agent="a1")
    theirs = Caller(world.other, "two", session="s2", agent="a2")
    door = opened(writes)
    kept = [(caller, scope, door.keep(caller, scope)) for scope in ("project", "session", "agent") for caller in (mine, theirs)]
    for caller, scope, thing in kept:
        with caller.memory(home) as memory:
            assert [version.text for version in memory.history(KEY, scope=scope)] == [thing.note]


@pytest.mark.promise("N8")
@pytest.mark.parametrize("scope", tiered(["project", "session", "agent"], fast=["project"]))
def test_what_one_cannot_see_one_cannot_forget_either(opened, world, home, scope, truth):
    keep(home, Caller(world.clone, session="s1", agent="a1"), scope)
    before = truth()
    stranger = Caller(world.other, session="s2", agent="a2")
    command = opened(CommandLine)
    for words in (["forget", KEY], ["purge", KEY, "--yes"], ["clear", "--yes"], ["file", "delete", "page.md"]):
        command._run(stranger, *words, "--scope", scope)
    server = opened(McpByRoots)
    server._tool(stranger, "memory_forget", key=KEY)
    server._tool(stranger, "memory_file", command="delete", path="page.md", scope=scope)
    with stranger.memory(home) as memory:
        assert not memory.forget(KEY).deleted
        assert memory.clear(scope) == 0
    assert {path: data for path, data in truth().items() if path in before} == before


@pytest.mark.promise("N1", "N8")
def test_a_server_that_knows_of_no_project_shows_none_and_refuses_to_write_into_one(opened, world, home):
    """It stands in a folder that is nobody's project, and its client tells nothing."""
    thing = keep(home, Caller(world.elsewhere), "project")
    assert_blind(opened(Mcp), Caller(world.elsewhere), thing)
    said = opened(Mcp)._tool(Caller(world.elsewhere), "memory_store", text="words", key="new")
    assert said["isError"]
    assert "folder" in json.dumps(said)


@pytest.mark.promise("N8")
def test_one_server_asked_for_two_folders_in_turn_never_mixes_them_up(opened, world, home):
    door = opened(McpByArgument)
    things = {folder: keep(home, Caller(folder), "project") for folder in (world.clone, world.other)}
    for _ in range(2):
        for folder, thing in things.items():
            assert_sees(door, Caller(folder), thing)
            (other,) = [one for place, one in things.items() if place != folder]
            assert_blind(door, Caller(folder), other)
    assert len(door.servers) == 1
