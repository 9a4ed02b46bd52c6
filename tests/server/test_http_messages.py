"""What no message over HTTP and MCP says: where the home is, and commands that a remote agent cannot run. On both stores."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess

import both_gateways
import pytest
from test_http_matrix import TOOLS, asked
from test_http_parity import furnish

from holdfast import Memory
from holdfast.errors import Busy, ConfigError, Damaged, Template, Trouble, command, from_os, no_space
from holdfast.server.gateway import Gateway
from holdfast.server.routes import ROUTES

gateway = both_gateways.gateway
COMMAND = re.compile(r"`holdfast[ `]")
MCP = {"Accept": "application/json, text/event-stream", "X_Holdfast_Project": "demo", "X_Holdfast_Session": "s1"}


def call_tool(client, name, arguments):
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    return client.post("/mcp", call, **MCP)


def ask_all(clients, routes=ROUTES):
    """Send a request of every route and a call of every tool; yield each name and answer."""
    for client in clients:
        for route in routes:
            yield route.name, asked(client, route, "agent" if "scope" in route.fields else None)
        for name, arguments, _ in TOOLS:
            yield name, call_tool(client, name, {**arguments, "scope": "agent"} if "scope" in arguments else arguments)


# --- the home ---------------------------------------------------------------------------------------------------------


def tells(home, said):
    """Return whether a part of an answer has the path of the home, as it is or as JSON spells it."""
    forms = {str(home), os.path.realpath(home), json.dumps(str(home))[1:-1], str(home).replace("/", "\\/")}
    everything = said.data.decode("utf-8", "replace") + json.dumps(said.headers)
    return any(form in everything for form in forms)


def errors_in(home):
    """Return errors of every kind that may name a file of the home."""
    path = f"{home}/shelf/agents/a/notes/k.md"
    numbers = (
        errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENOTDIR, errno.EISDIR,
        errno.EMFILE, errno.EBADF, errno.ENAMETOOLONG, errno.EIO,
    )  # fmt: skip
    yield from [from_os(OSError(number, os.strerror(number), path)) for number in numbers]
    yield Damaged(f"{path} is damaged", Template(f"Look at {path}, or run ", command("doctor")))
    yield ConfigError(f"{home}/config.toml: line 3 means nothing", f"Edit {home}/config.toml")
    yield no_space("the disk is full", str(home))
    yield Busy(f"{home}/ledger.db is locked", "Try again")
    yield Trouble(f"{os.path.realpath(home)}/index.db cannot be opened", f"mv '{home}/index.db' '{home}/aside'")
    yield RuntimeError(path)
    yield OSError(errno.EIO, "Input/output error", path)
    yield UnicodeDecodeError("utf-8", path.encode(), 0, 1, path)


@pytest.mark.promise("promise-6")
def test_no_answer_tells_the_path_of_the_home_whatever_fails(gateway, monkeypatch):
    clients = [gateway.operator, gateway.agent("a")]
    seen, real = set(), Gateway.open_memory
    for error in errors_in(gateway.home):

        def fail(*given, failure=error, **named):
            raise failure

        monkeypatch.setattr(Gateway, "open_memory", fail)
        for route in [route for route in ROUTES if route.action]:
            for client in clients:
                said = asked(client, route, "agent" if "scope" in route.fields else None)
                assert not tells(gateway.home, said), (route.name, said)
                seen.add(said.status)
    monkeypatch.setattr(Gateway, "open_memory", real)
    assert {500, 503, 507} <= seen
    with Memory(f"http://127.0.0.1:{gateway.port}", token=gateway.operator.token) as remote:
        monkeypatch.setattr(Gateway, "open_memory", fail)
        with pytest.raises(Exception) as told:
            remote.list()
        assert str(gateway.home) not in str(told.value)


@pytest.mark.promise("promise-6")
def test_no_tool_tells_the_path_of_the_home_whatever_fails(gateway, monkeypatch):
    agent = gateway.agent("a")
    for error in errors_in(gateway.home):

        def fail(*given, failure=error, **named):
            raise failure

        monkeypatch.setattr("holdfast.mcp.calls.Memories.lend", fail)
        for name, arguments, _ in TOOLS:
            said = call_tool(agent, name, arguments)
            assert b"isError" in said.data and not tells(gateway.home, said), said


def damage(home):
    """Damage a home in one way after the other, as a person or a disk may; yield the name of each."""
    notes, outside = home / "shelf" / "agents" / "a" / "notes", home.parent / "outside.md"
    yield "as it is"
    (notes / "binary.md").write_bytes(b"\0\xff" * 100)
    (notes / "folder.md").mkdir()
    outside.write_text("Elsewhere.")
    (notes / "link.md").symlink_to(outside)
    (notes / "loop.md").symlink_to("loop.md")
    yield "notes that are no notes"
    (home / "shelf" / "agents" / "a" / "index.md").unlink(missing_ok=True)
    (home / "shelf" / "agents" / "a" / "index.md").mkdir()
    yield "a folder where the listing belongs"
    (home / "roles").mkdir(exist_ok=True)
    (home / "roles" / "broken.yaml").write_text("name: [")
    yield "a role that cannot be read"
    (home / "index.db").unlink()
    (home / "index.db").mkdir()
    yield "a folder where the index belongs"
    (home / "index.db").rmdir()
    notes.rename(notes.with_name("before"))
    notes.write_text("no folder")
    yield "a file where the notes belong"
    notes.unlink()
    notes.symlink_to(home.parent)
    yield "a link where the notes belong"
    notes.unlink()
    notes.with_name("before").rename(notes)
    (home / "config.toml").write_text("memory.enabled = false\n")
    yield "memory that is switched off"
    (home / "config.toml").write_text("[serve\n")
    yield "settings that cannot be read"
    (home / "config.toml").write_text("[serve]\nrate = 0\n")
    (home / "ledger.db").write_bytes(b"no database" * 1000)
    yield "a ledger that is none"


@pytest.mark.promise("promise-6")
def test_no_answer_of_a_damaged_home_tells_its_path(gateway):
    if gateway.store != "home":
        pytest.skip("only a home has files that can be damaged")
    gateway.add_role("keeper", ["agent.memory.read", "agent.memory.write", "memory.purge", "memory.review", "home.care"])
    agent = gateway.agent("a", "keeper")
    furnish(agent)
    furnish(gateway.operator)
    statuses = {}
    for what in damage(gateway.home):
        for name, said in ask_all([agent, gateway.operator]):
            assert not tells(gateway.home, said), (what, name, said)
            statuses.setdefault(what, set()).add(said.status)
    failing = [what for what, found in statuses.items() if max(found) >= 500]
    assert len(failing) >= 3, statuses  # it was damaged indeed


@pytest.mark.promise("promise-6", "N10")
def test_no_receipt_tells_the_path_of_the_home(gateway):
    if gateway.store != "home":
        pytest.skip("only a home can be in git")
    gateway.add_role("keeper", ["agent.memory.read", "agent.memory.write", "memory.purge"])
    agent, home = gateway.agent("a", "keeper"), gateway.home
    agent("PUT", "/v1/notes/agent/k", {"text": "The combination of the harbour safe."})
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    for words in ("init -q", "add shelf", "-c user.name=a -c user.email=a@b.c commit -q -m notes"):
        subprocess.run(["git", *words.split()], cwd=home, check=True, env=environment)
    with Memory(home, agent="a", project="demo") as memory:
        memory.render(home.parent / "AGENTS.md")
    said = agent.post("/v1/notes/agent/k/purge")
    assert any("git" in line for line in said.json["beyond_reach"]) and not tells(home, said), said
    for client in (agent, gateway.operator):
        listed = client.get("/v1/receipts")
        assert listed.json["receipts"] and not tells(home, listed)
        assert not tells(home, client.get(f"/v1/receipts/{said.json['id']}"))


# --- commands ---------------------------------------------------------------------------------------------------------

_FOR_THE_SHELL = ("/v1/check", "/v1/settings")  # what they say is for a shell on the machine of the gateway
TEXT_ROUTES = [route for route in ROUTES if route.path not in _FOR_THE_SHELL]


@pytest.mark.promise("A4")
def test_no_text_for_a_remote_agent_names_a_command_of_the_shell(gateway):
    gateway.add_role("keeper", ["agent.memory.read", "agent.memory.write", "memory.purge", "home.care"], ["agent", "project"])
    agent = gateway.agent("a", "keeper")
    for client in (agent, gateway.operator):
        furnish(client)
        client.post("/v1/notes", {"text": "From a page.", "key": "page", "scope": "agent", "origin": "web"})
        client.post("/v1/notes", {"text": "Always use pytest.", "key": "rule", "scope": "agent", "type": "feedback"})
        for number in range(12):
            fact = {"subject": "Harbour", "label": f"depth {number}", "value": f"{number} m", "scope": "agent"}
            assert client.post("/v1/facts", fact).status in (200, 201)
        for number in range(60):
            client.post("/gateway/memory", {"key": f"n{number}", "value": f"Note {number} of the harbour. " * 20})
        client.post("/v1/scaffold", {"name": "wiki", "scope": "agent"})
        requests = [
            ("/v1/brief", {"cap": 2000}), ("/v1/brief", {"cap": 2000, "explain": True}), ("/v1/boot", {"scope": "agent"}),
            ("/v1/brief", {"prompt": "How deep is the harbour, and what depth has it?", "explain": True}),
            ("/v1/recall", {"query": "harbour"}), ("/v1/search", {"query": "harbour"}), ("/dispatch", {"task": "x"}),
        ]  # fmt: skip
        for path, body in requests:
            said = client.post(path, body)
            assert not COMMAND.search(said.data.decode()), (path, said.data.decode())
    briefed = agent.post("/v1/brief", {"cap": 2000}).json["text"]
    assert "`POST /v1/recall`" in briefed and "`GET /v1/notes/SCOPE/KEY`" in briefed
    reasons = [one["reason"] for one in agent.post("/v1/brief", {"explain": True}).json["why"]]
    assert any("(`GET /v1/review`)" in reason for reason in reasons)
    typist = gateway.agent("typist", "secretary")
    for name, said in ask_all([agent, gateway.operator, typist, gateway.anonymous], TEXT_ROUTES):
        assert not COMMAND.search(said.data.decode("utf-8", "replace")), (name, said)
    nothing = {"key": "nothing"}
    for name, arguments in (("memory_get", nothing), ("memory_history", nothing), ("memory_history", {"turn": "nothing"})):
        said = call_tool(agent, name, {**arguments}).data.decode()
        assert "isError" in said and not COMMAND.search(said), said
    assert "memory_recall" in call_tool(agent, "memory_history", {"turn": "nothing"}).data.decode()


def test_what_whoever_runs_the_gateway_must_correct_is_named_without_a_command(gateway):
    (gateway.home / "config.toml").write_text("retention.project_days = -5\n")
    for client in (gateway.agent("a"), gateway.operator):
        said = client.get("/v1/notes")
        assert said.code == "config" and "retention.project_days" in said.json["detail"]
        assert said.json["fix"].startswith("On the server: Correct it in config.toml")


def test_holdfasts_own_client_is_told_commands(gateway):
    gateway.agent("a").post("/gateway/memory", {"key": "k", "value": "Harbour words."})
    with Memory(f"http://127.0.0.1:{gateway.port}", token=gateway.operator.token, project="demo") as memory:
        memory.store("Harbour words.", key="k", scope="agent")
        assert "memory_recall or `holdfast recall QUERY`" in memory.brief().text
