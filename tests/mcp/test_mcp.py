"""The MCP server on stdio, with hand-written messages: the handshake, unknown and broken input, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket

import anyio
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp_raw import INITIALIZE, RawMcpClient
from mcp_result import Result
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from holdfast import __version__
from holdfast.api import resident
from holdfast.mcp import early_handshake
from holdfast.mcp.project_resolution import LaunchOptions
from holdfast.mcp.server import build_server
from holdfast.mcp.tools import TOOLS


@pytest.fixture
def start(home, tmp_path):
    """Start servers on the test's home, in a folder that is not a project; they are ended after the test."""
    started = []

    def start_(*words, cwd=tmp_path / "nowhere", **env):
        started.append(RawMcpClient(home, *words, cwd=cwd, **env))
        return started[-1]

    yield start_
    for server in started:
        server.close()


@pytest.fixture
def server(start):
    """A server after its handshake."""
    server = start()
    server.initialize()
    return server


# --- the handshake ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", early_handshake.VERSIONS)
def test_the_handshake_speaks_the_version_that_was_asked_for(start, version):
    server = start()
    said = server.initialize(protocolVersion=version)
    assert said["protocolVersion"] == version
    assert server.close() == 0  # also while it still imports the modules that answer calls
    assert said["serverInfo"]["name"] == "holdfast" and said["serverInfo"]["version"] == __version__
    assert set(said["capabilities"]) == {"tools", "resources", "prompts"}


def test_a_version_that_nobody_knows_gets_the_newest_with_a_handshake(start):
    assert start().initialize(protocolVersion="1999-01-01")["protocolVersion"] == early_handshake.VERSIONS[-1]


@pytest.mark.promise("D3")
def test_the_server_teaches_when_to_recall_what_to_keep_and_what_not(start):
    taught = start().initialize()["instructions"]
    assert len(taught) < 2000  # some clients cut longer ones
    for word in ("Recall", "Store", "Do not store", "global", "session", "agent", "feedback", "reference", "secrets", "folder"):
        assert word in taught
    shown = {tool.name: tool.description for tool in TOOLS}
    assert "Do not store:" in shown["memory_store"] and "Example" in shown["memory_store"]
    assert "start of a task" in shown["memory_recall"] and all(40 < len(text) < 1000 for text in shown.values())


def test_a_client_that_probes_for_a_handshakeless_protocol_is_told_no_at_once_and_can_go_on(start):
    server = start()
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    assert server.ask("server/discover", {"_meta": meta})["error"]["code"] == -32601
    assert server.initialize()["protocolVersion"] == "2025-11-25"
    assert server.call("memory_recall", query="anything").keys == []


@pytest.mark.parametrize("later", [False, True])
def test_an_unknown_method_is_answered_before_and_after_the_handshake(start, later):
    server = start()
    if later:
        server.initialize()
        server.call("memory_recall", query="anything")  # from here on the SDK answers
    assert server.ask("no/such/method")["error"]["code"] == -32601
    assert server.ask("completion/complete", {"ref": {"type": "ref/prompt", "name": "boot"}, "argument": {
        "name": "a", "value": "b"}})["error"]["code"] == -32601  # fmt: skip
    assert server.ask("ping")["result"] == {}


def test_a_request_before_the_handshake_is_refused_and_the_handshake_still_works(start):
    server = start()
    assert "error" in server.ask("tools/list")
    assert server.initialize()["serverInfo"]["name"] == "holdfast"


def test_an_initialize_that_lacks_something_is_an_error_and_a_whole_one_still_works(start):
    server = start()
    assert server.ask("initialize", {"protocolVersion": "2025-11-25"})["error"]["code"] == -32602
    assert server.initialize()["serverInfo"]["name"] == "holdfast"


def test_everything_may_come_in_one_breath(start):
    server = start()
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "memory_recall", "arguments": {"query": "x"}}},
        {"jsonrpc": "2.0", "id": 4, "method": "ping"},
    ]
    server.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    said = {}
    while len(said) < 4:
        answer = server.read()
        assert answer["id"] not in said, "answered twice"
        said[answer["id"]] = answer["result"]
    assert set(said) == {1, 2, 3, 4} and len(said[2]["tools"]) == 8


def test_the_greeting_answers_as_the_sdk_does(home):
    """The first answers come from us, before the SDK is loaded. They must be the ones it would give."""

    async def compare():
        async with Client(build_server(LaunchOptions(str(home))), mode="legacy") as client:
            session = client.session
            opened = session.initialize_result.model_dump(by_alias=True, exclude_none=True, mode="json")
            listed = {
                "tools/list": await session.list_tools(),
                "prompts/list": await session.list_prompts(),
                "resources/templates/list": await session.list_resource_templates(),
            }
        return opened, {name: said.model_dump(by_alias=True, exclude_none=True, mode="json") for name, said in listed.items()}

    opened, listed = anyio.run(compare)
    ours = early_handshake.initialize_result("2025-11-25")
    assert {name: opened[name] for name in ours} == ours
    assert early_handshake.VERSIONS == HANDSHAKE_PROTOCOL_VERSIONS
    assert set(listed) == set(early_handshake.STATIC_RESULTS)
    for method, said in listed.items():
        mine = early_handshake.STATIC_RESULTS[method]()
        assert {name: said[name] for name in mine} == mine, method


def test_the_methods_that_only_the_sdk_answers_are_all_that_it_answers_besides(home):
    server = build_server(LaunchOptions(str(home)))
    methods = [method for method in types.methods.SPEC_CLIENT_METHODS if server.get_request_handler(method)]
    assert set(methods) - {"ping", "server/discover"} == set(early_handshake.SDK_METHODS) | set(early_handshake.STATIC_RESULTS)


def test_a_client_of_the_newest_protocol_that_does_not_probe_is_served_without_a_handshake(start):
    server = start()
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "modern", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    server.call("memory_store", meta, text="No handshake.", key="modern", scope="global")
    assert "agent modern" in server.call("memory_get", meta, key="modern")


# --- what is broken -----------------------------------------------------------------------------------------------------


CALL = b'{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": %s}\n'
LACKING = b'{"jsonrpc":"2.0","id":77}\n'
NONSENSE = [
    LACKING, b"not json\n", b"\n", b"[]\n", b"null\n", b'{"jsonrpc": "2.0"}\n', b"\xff\xfe\n", b"[" * 100_000 + b"\n",
    b'{"jsonrpc":"2.0","id":null,"method":1}\n', CALL % b"[]", CALL % b'{"name": 5}',
    CALL % b'{"name": "memory_recall", "arguments": {"query": "\\ud800"}}',
]  # fmt: skip


@pytest.mark.parametrize("greeted", [True, False])
def test_nonsense_on_the_wire_neither_hangs_nor_ends_it(start, greeted):
    server = start()
    if greeted:
        server.initialize()
        server.call("memory_recall", query="x")
    for number, line in enumerate(NONSENSE):
        server.write(line)
        alive = f"alive-{number}"
        server.send({"jsonrpc": "2.0", "id": alive, "method": "ping"})
        said = {answer["id"]: answer for answer in [server.read() for _ in range(2 if line.strip() else 1)]}
        assert said[alive] == {"jsonrpc": "2.0", "id": alive, "result": {}}
        assert b'"id": 9' not in line or "error" in said[9]  # a client that waits for an answer gets one
        assert line != b"not json\n" or said[None]["error"]["code"] == -32700
        assert line != LACKING or said[77]["error"]["code"] == -32600
    assert server.close() == 0


REFUSED = [
    ({}, "missing: text"),
    ({"text": 5}, "text must be a string, not int"),
    ({"text": ["a"]}, "text must be a string, not list"),
    ({"text": {"a": 1}}, "text must be a string, not dict"),
    ({"text": "a", "scop": "global"}, "unknown argument 'scop'. Did you mean scope?"),
    ({"text": "a", "zzz": 1}, "unknown argument 'zzz'. Use: text"),
    ({"text": "a", "scope": "everywhere"}, "unknown scope 'everywhere'. Use one of: session, project, agent, global"),
    ({"text": "a", "origin": "user"}, "unknown origin 'user'"),
    ({"text": "a", "pinned": "yes"}, "pinned must be true or false, not str"),
    ({"text": "a", "tags": [1]}, "each item of tags must be a string, not int"),
    ({"text": "", "scope": "global"}, "empty content"),
    ({"text": "a\0b", "scope": "global"}, "a NUL byte"),
    ({"text": "x" * 70_000, "scope": "global"}, "a note can have at most 65,536 bytes"),
    ({"text": "a", "key": "../../etc", "scope": "global"}, "not a valid key"),
    ({"text": "a", "key": "a\0", "scope": "global"}, "not a valid key"),
    ({"text": "a", "scope": "session"}, "no session is known"),
    ({"text": "a", "scope": "agent"}, "no agent is known"),
    ({"text": "a", "valid_from": "yesterdayish", "scope": "global"}, "valid_from"),
    ({"text": "a", "folder": "relative/path"}, "no folder"),
    ({"text": "a", "folder": "/no/such/folder"}, "no folder"),
    ({"text": "a", "folder": "/\0"}, "no folder"),
    ({"text": "a", "project": "a/b"}, "project"),
    ({"text": "a", "project": "x" * 200}, "project"),
    ({"text": "a", "project": "p", "folder": "/"}, "cannot be combined"),
]


@pytest.mark.promise("S1")
def test_what_the_gate_refuses_comes_back_as_an_error_that_says_what_to_do(server, truth):
    for arguments, says in REFUSED:
        told = server.refused("memory_store", **arguments)
        assert says in told and len(told) > len(says) and "Traceback" not in told
    assert truth() == {}


def test_a_huge_message_is_read_and_refused(server):
    assert "bytes" in server.refused("memory_store", text="x" * 5_000_000, scope="global")
    assert server.ask("ping")["result"] == {}


def test_a_message_without_end_is_dropped_and_refused(server):
    for piece in (b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "x": "', *[b"x" * 1024 * 1024] * 17, b'"}\n'):
        server.write(piece)
    said = server.read()
    assert said["id"] is None and "16777216 bytes" in said["error"]["message"]
    assert server.ask("ping")["result"] == {}


def test_arguments_that_are_null_count_as_not_given(server):
    stored = server.call("memory_store", text="A note.", key=None, scope="global", tags=None)
    assert stored.startswith("Created ")


def test_a_tool_prompt_or_resource_that_is_not_there_is_said(server):
    assert "memory_recall" in server.ask("tools/call", {"name": "memory_nope", "arguments": {}})["error"]["message"]
    assert server.ask("prompts/get", {"name": "nope"})["error"]["code"] == -32602
    for uri in ("holdfast://nope", "holdfast://notes/global/nope", "holdfast://notes/everywhere/x", "file:///etc/passwd",
                "holdfast://notes/global/../../config"):  # fmt: skip
        assert server.ask("resources/read", {"uri": uri})["error"]["code"] == -32002


def test_bytes_on_the_shelf_that_are_no_utf8_do_not_break_the_answer(server, home):
    server.call("memory_store", text="harbour", key="good", scope="global")
    (home / "shelf" / "global" / "notes" / "broken.md").write_bytes(b"harbour \xff\xfe words\n")
    assert set(server.call("memory_recall", query="harbour").keys) == {"good", "broken"}
    assert "harbour" in server.ask("resources/read", {"uri": "holdfast://notes/global/broken"})["result"]["contents"][0]["text"]


@pytest.mark.promise("N12")
def test_switched_off_writes_are_refused_and_reads_say_so_also_while_it_runs(server, home, truth):
    server.call("memory_store", text="Before.", key="before", scope="global")
    before = truth()
    (home / "config.toml").write_text("[memory]\nenabled = false\n")
    assert "memory is disabled" in server.refused("memory_store", text="After.", scope="global")
    assert "Memory is disabled" in server.call("memory_recall", query="before")
    assert truth() == before
    (home / "config.toml").write_text("")
    assert server.call("memory_recall", query="before").keys == ["before"]


def test_settings_that_cannot_be_followed_are_told_to_the_agent_and_can_be_mended(start, home):
    home.mkdir()
    (home / "config.toml").write_text("[memory\n")
    server = start()
    server.initialize()
    assert "config.toml" in server.refused("memory_recall", query="x")
    (home / "config.toml").unlink()
    assert server.call("memory_recall", query="x").keys == []


# --- concurrent calls, and the end --------------------------------------------------------------------------------------


@pytest.mark.promise("promise-2")
def test_servers_on_one_home_see_each_others_notes_at_once(start):
    one, two = start(), start()
    one.initialize(), two.initialize()
    for number in range(5):
        one.call("memory_store", text=f"From the first: harbour {number}.", key=f"one-{number}", scope="global")
        two.call("memory_store", text=f"From the second: harbour {number}.", key=f"two-{number}", scope="global")
    for server in (one, two):
        keys = server.call("memory_recall", query="harbour", limit=20).named
        assert set(keys) == {f"{name}-{number}" for name in ("one", "two") for number in range(5)}


def test_calls_run_beside_each_other(server):
    """All are sent before any answer is read; every one is answered, in whatever order."""
    for number in range(60):
        given = {"text": f"Note {number}.", "key": f"n{number}", "scope": "global"}
        params = {"name": "memory_store", "arguments": given}
        server.send({"jsonrpc": "2.0", "id": f"n{number}", "method": "tools/call", "params": params})
    answers = [server.read() for _ in range(60)]
    assert {answer["id"] for answer in answers} == {f"n{number}" for number in range(60)}
    assert {Result.parse(answer["result"]).partition(" ")[0] for answer in answers} == {"Created"}


def test_the_end_of_stdin_ends_it_cleanly_when_all_that_was_asked_is_answered(start, truth):
    server = start()
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    for number in range(20):
        params = {"name": "memory_store", "arguments": {"text": f"Word {number}.", "key": f"w-{number}", "scope": "global"}}
        lines.append({"jsonrpc": "2.0", "id": f"w-{number}", "method": "tools/call", "params": params})
    server.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    server.process.stdin.close()
    answered = [json.loads(line)["id"] for line in server.process.stdout]
    assert answered[0] == 1 and sorted(answered[1:]) == sorted(f"w-{number}" for number in range(20))
    assert server.close() == 0
    assert "".join(server.stderr_lines) == "" and len([name for name in truth() if "/notes/w-" in name]) == 20


def test_a_call_that_was_cancelled_holds_up_nothing_at_the_end(server):
    server.call("memory_recall", query="x")
    params = {"name": "memory_recall", "arguments": {"query": "y"}}
    server.send({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params})
    server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}})
    server.process.stdin.close()
    assert server.process.wait(60) == 0


def test_a_client_that_leaves_before_a_word_ends_it_too(start):
    assert start().close() == 0


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("early", [True, False])
def test_a_signal_ends_it_cleanly(server, home, sign, early):
    if not early:
        server.call("memory_store", text="A note.", key="k", scope="global")
    server.process.send_signal(sign)
    assert server.process.wait(60) == 0
    server.close()
    assert "Traceback" not in "".join(server.stderr_lines)


@pytest.mark.parametrize("early", [True, False])
def test_a_client_that_stops_reading_ends_it_without_a_traceback(server, early):
    if not early:
        server.call("memory_recall", query="x")
    server.process.stdout.close()
    server.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert server.process.wait(60) == 0
    server._stderr_reader.join(60)
    assert "Traceback" not in "".join(server.stderr_lines)


def test_stdout_is_the_protocols_alone_and_a_failure_nobody_foresaw_is_one_line_for_the_agent(start, home, tmp_path):
    """What anything else prints in the process goes to stderr, and so does a traceback."""
    (tmp_path / "sitecustomize.py").write_text("import holdfast.api.memory\n_recall = holdfast.api.memory.Memory.recall\n"
        "def recall(self, *args, **named):\n    print('stray'); import os; os.write(1, b'stray bytes\\n')\n"
        "    1 / (args[0] != 'boom')\n"
        "    return _recall(self, *args, **named)\nholdfast.api.memory.Memory.recall = recall\n")  # fmt: skip
    server = start(PYTHONPATH=str(tmp_path))
    server.initialize()
    assert server.call("memory_recall", query="x").keys == []
    told = server.refused("memory_recall", query="boom")
    assert "ZeroDivisionError" in told and "holdfast doctor" in told and "\n" not in told
    server.close()
    assert "stray bytes" in "".join(server.stderr_lines) and "Traceback" in "".join(server.stderr_lines)


# --- background work ----------------------------------------------------------------------------------------------------


def test_while_it_runs_it_answers_other_commands_and_leaves_nothing_behind(start, home, open_memory):
    open_memory().store("harbour words", key="k", scope="global")
    server = start()
    server.initialize()
    server.call("memory_recall", query="harbour")
    path = home / "run" / resident.SOCKET_NAME
    _until(lambda: path.exists() and resident.recall(str(home), {"project": "demo"}, {"query": "harbour"}))
    second = start()  # it finds the lock taken, and works all the same
    second.initialize()
    assert second.call("memory_recall", query="harbour").keys == ["k"]
    assert server.close() == 0
    assert not path.exists()


@pytest.mark.promise("N11")
def test_what_has_expired_is_archived_in_the_background_when_it_starts(start, home, open_memory, clock, note_file):
    memory = open_memory()
    clock.set("2020-01-01T00:00:00Z")
    memory.store("An old plan.", key="old")
    server = start()
    server.initialize()
    server.call("memory_recall", query="nothing of the kind")  # finding it would count as a use
    _until(lambda: not note_file("old").exists())
    assert [one.key for one in memory.trash()] == ["old"]


def test_starting_and_asking_makes_no_home(start, home):
    server = start()
    server.initialize()
    server.call("memory_recall", query="x")
    server.ask("resources/list")
    assert server.close() == 0
    assert not home.exists()


def _until(happened, seconds=30):
    """Wait for another process, without guessing how long it takes."""
    waiting, _ = socket.socketpair()
    with waiting, _:
        for _unused in range(int(seconds / 0.05)):
            if happened():
                return
            waiting.settimeout(0.05)
            try:
                waiting.recv(1)
            except TimeoutError:
                pass
    raise AssertionError("it did not happen in time")


def test_the_test_folder_is_no_project(tmp_path):
    """Otherwise the tests above would prove less than they say."""
    assert not any(os.path.exists(folder / ".git") for folder in [tmp_path, *tmp_path.parents])
