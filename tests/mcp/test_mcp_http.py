"""The MCP server over HTTP, and two independent checkers from npm: the conformance suite and the inspector."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import stat
import subprocess
import threading
from contextlib import asynccontextmanager, contextmanager

import npm
import pytest
import uvicorn
from mcp.client.client import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp_fixtures import add_conformance_fixtures
from mcp_raw import HOLDFAST, INITIALIZE
from mcp_result import Result
from mcp_sdk import parse_result, run
from starlette.applications import Starlette
from starlette.routing import Mount

from holdfast.mcp import http as door
from holdfast.mcp.project_resolution import LaunchOptions
from holdfast.mcp.server import build_server

CONFORMANCE = "@modelcontextprotocol/conformance", "0.1.16"
INSPECTOR = "@modelcontextprotocol/inspector", "2.12.0"
AS_WE_ARE = (  # scenarios that need no tools on the server
    "server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "server-sse-multiple-streams",
    "dns-rebinding-protection",
)  # fmt: skip


@contextmanager
def started(home, tmp_path, *words, **env):
    """`holdfast mcp --http` as a user starts it: its address, and its output."""
    process = subprocess.Popen(
        [*HOLDFAST, "mcp", "--http", "--port", "0", "--home", str(home), *words],
        stderr=subprocess.PIPE, text=True, cwd=tmp_path, env={**os.environ, **env},
    )  # fmt: skip
    said = process.stderr.readline()
    rest = threading.Thread(target=process.stderr.read)
    rest.start()
    try:
        yield re.search(r"http://\S+/mcp", said).group(), said
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
        rest.join()
        process.stderr.close()


@pytest.fixture
def served(home, tmp_path):
    with started(home, tmp_path) as (address, _):
        yield address


@pytest.fixture
def open_to_all(home, tmp_path):
    with started(home, tmp_path, "--no-token") as (address, _):
        yield address


@pytest.fixture
def bearer(served, home):
    """Return the headers of a client with the token."""
    return {"Authorization": f"Bearer {(home / 'run' / 'mcp.token').read_text().strip()}"}


@asynccontextmanager
async def reached(address, headers, mode):
    async with (
        create_mcp_http_client(headers) as connection,
        Client(streamable_http_client(address, http_client=connection), mode=mode) as client,
    ):
        yield client


@contextmanager
def answering(app):
    """An app of ours on a free port of loopback, in a thread of this process."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", timeout_graceful_shutdown=1)
    listening = config.bind_socket()
    listening.listen()
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()


def post(address, **headers):
    """Return the status of an `initialize` request."""
    place = address.removeprefix("http://").removesuffix("/mcp")
    connection = http.client.HTTPConnection(place, timeout=30)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE})
    sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection.request("POST", "/mcp", body, {**sent, **headers})
    status = connection.getresponse().status
    connection.close()
    return status


def test_an_agent_works_over_http_and_the_servers_own_folder_says_nothing(served, bearer, home, tmp_path):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)

    async def talk(mode):
        async with reached(served, bearer, mode) as client:
            stored = await client.call_tool("memory_store", {"text": f"Harbour {mode}.", "key": mode, "folder": str(tmp_path)})
            assert parse_result(stored).project["found_by"] == "argument"
            found = await client.call_tool("memory_recall", {"query": "harbour", "folder": str(tmp_path)})
            assert mode in parse_result(found).keys
            lost = await client.call_tool("memory_store", {"text": "Harbour."})
            assert lost.is_error and "folder" in lost.content[0].text

    for mode in ("legacy", "auto"):
        run(talk, mode)


@pytest.mark.promise("promise-6")
def test_only_loopback_names_and_pages_are_let_in(served, bearer):
    port = served.split(":")[2].split("/")[0]
    assert post(served, **bearer) == 200
    assert post(served, Host=f"localhost:{port}", Origin=f"http://localhost:{port}", **bearer) == 200
    assert post(served, Host="evil.example.com", **bearer) == 421
    assert post(served, Host=f"127.0.0.1.evil.example.com:{port}", **bearer) == 421
    assert post(served, Origin="https://evil.example.com", **bearer) == 403
    assert post(served, Origin="null", **bearer) == 403


@pytest.mark.promise("promise-6")
def test_only_who_has_the_token_is_let_in(served, bearer):
    token = bearer["Authorization"].removeprefix("Bearer ")
    for wrong in ({}, *[{"Authorization": one} for one in ("", "Bearer", "Bearer ", f"Basic {token}", token, "Bearer x",
                        f"Bearer {token}x", f"Bearer {token[:-1]}", f"Bearer {token} {token}", "Bearer \xff")]):  # fmt: skip
        assert post(served, **wrong) == 401, wrong
    assert post(served, Authorization=f"bearer {token}") == 200


def test_the_token_is_the_owners_alone_stays_the_same_and_is_not_said(home, tmp_path):
    file = home / "run" / "mcp.token"
    kept = []
    for _ in range(2):
        with started(home, tmp_path) as (_, said):
            kept.append(file.read_text().strip())
            assert str(file) in said and kept[-1] not in said
    assert kept[0] == kept[1] and len(kept[0]) >= 43
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [path.name for path in file.parent.iterdir() if path.name.startswith("mcp")] == ["mcp.token"]


@pytest.mark.parametrize("how", ["readable for others", "empty", "link"])
def test_a_token_that_is_no_secret_is_refused(home, tmp_path, how):
    file = home / "run" / "mcp.token"
    file.parent.mkdir(parents=True, mode=0o700)
    home.chmod(0o700)
    if how == "link":
        (tmp_path / "elsewhere").write_text("a" * 43)
        file.symlink_to(tmp_path / "elsewhere")
    else:
        file.write_text("a" * 43 if how != "empty" else "")
        file.chmod(0o644 if how != "empty" else 0o600)
    words = [*HOLDFAST, "mcp", "--http", "--port", "0", "--home", str(home)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode and str(file) in done.stderr and "Traceback" not in done.stderr


def test_without_a_token_everybody_is_let_in_and_that_is_said(home, tmp_path):
    with started(home, tmp_path, "--no-token") as (address, said):
        assert "every user of this machine can read and write this home" in said
        assert post(address) == 200
    assert not (home / "run" / "mcp.token").exists()


@pytest.mark.promise("N8")
def test_whom_the_server_was_started_for_says_nothing_about_its_clients(home, tmp_path):
    names = ("session", "agent", "client", "project")
    env = {f"HOLDFAST_{name.upper()}": f"the-servers-{name}" for name in names}
    with started(home, tmp_path, "--no-token", **env) as (address, _):

        async def talk():
            async with Client(address, mode="legacy") as client:
                for scope in ("session", "agent", "project"):
                    lost = await client.call_tool("memory_store", {"text": "Harbour.", "key": "k", "scope": scope})
                    assert lost.is_error, scope
                kept = await client.call_tool("memory_store", {"text": "Harbour.", "key": "k", "scope": "global"})
                assert "the-servers" not in kept.model_dump_json()

        run(talk)
    assert "the-servers" not in "".join(str(path) for path in (home / "shelf").rglob("*"))


def test_the_app_can_be_mounted_under_hosts_that_are_named(home):
    inner = door.app(LaunchOptions(str(home), project="demo"), hosts=("memory.example.com",), path="/")
    outer = Starlette(routes=[Mount("/mcp", inner)], lifespan=lambda _: inner.router.lifespan_context(inner))
    with answering(outer) as address:

        async def talk():
            async with Client(f"{address}/mcp/", mode="legacy") as client:
                stored = await client.call_tool("memory_store", {"text": "Harbour.", "key": "k"})
                assert parse_result(stored).project == {"id": "demo", "found_by": "setting"}

        run(talk)
        place = address.removeprefix("http://")
        for host, status in [("memory.example.com", 200), ("other.example.com", 421)]:
            connection = http.client.HTTPConnection(place, timeout=30)
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE})
            sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Host": host}
            connection.request("POST", "/mcp/", body, sent)
            assert connection.getresponse().status == status
            connection.close()


def test_a_port_that_is_taken_or_does_not_exist_is_said(served, home, tmp_path):
    port = served.split(":")[2].split("/")[0]
    for given, code, says in [(port, 4, "cannot listen"), ("99999", 2, "not 99999"), ("many", 2, "whole number")]:
        words = [*HOLDFAST, "mcp", "--http", "--port", given, "--home", str(home)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=tmp_path)
        assert done.returncode == code and says in done.stderr and "Traceback" not in done.stderr
    for words in (["--port", "1"], ["--port", "0"], ["--no-token"]):
        done = subprocess.run([*HOLDFAST, "mcp", *words], capture_output=True, text=True, timeout=60, cwd=tmp_path)
        assert done.returncode == 2 and "--http" in done.stderr


# --- independent checkers -------------------------------------------------------------------------------------------------


def conformance(address, tmp_path, *words):
    return subprocess.run(
        [*npm.find_command(*CONFORMANCE), "server", "--url", address, *words],
        capture_output=True, text=True, timeout=200, cwd=tmp_path, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.battery
def test_the_conformance_suite_passes_what_needs_nothing_but_the_server(open_to_all, tmp_path):
    for scenario in AS_WE_ARE:
        done = conformance(open_to_all, tmp_path, "--scenario", scenario)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.battery
def test_the_whole_conformance_suite_passes_on_our_server_with_the_tools_it_asks_for(home, tmp_path):
    server = add_conformance_fixtures(build_server(LaunchOptions(str(home), surroundings=False)))
    with answering(door.app_of(server)) as address:
        done = conformance(f"{address}/mcp", tmp_path)
    summary = done.stdout.partition("=== SUMMARY ===")[2]
    assert done.returncode == 0 and "✗" not in summary and summary.count("✓") >= 30, done.stdout + done.stderr


@pytest.mark.battery
def test_the_inspector_lists_calls_and_reads(home, tmp_path):
    def inspect(*words, code=0):
        done = subprocess.run(
            [*npm.find_command(*INSPECTOR, "mcp-inspector"), "--cli", *HOLDFAST, "mcp", "--home", str(home), "--method",
             *words],
            capture_output=True, text=True, timeout=200, cwd=tmp_path, stdin=subprocess.DEVNULL,
            env={**os.environ, "PATH": f"{npm.find_node().parent}:{os.environ['PATH']}"},
        )  # fmt: skip
        assert (done.returncode == 0) == (code == 0), done.stdout + done.stderr
        return json.loads(done.stdout) if code == 0 else done.stdout + done.stderr

    listed = inspect("tools/list", "--strict")["tools"]
    assert len(listed) == 8 and all(tool["description"] and tool["annotations"] for tool in listed)
    call = ("tools/call", "--tool-name")
    stored = inspect(*call, "memory_store", "--tool-arg", "text=Harbour words.", "key=k", "scope=global")
    assert Result.parse(stored).startswith("Created ")
    found = inspect(*call, "memory_recall", "--tool-arg", "query=harbour")
    assert Result.parse(found).keys == ["k"]
    assert "folder" in inspect(*call, "memory_store", "--tool-arg", "text=Nowhere.", code=1)
    resources = {one["uri"] for one in inspect("resources/list")["resources"]}
    assert resources == {"holdfast://briefing", "holdfast://notes/global/k"}
    assert "Harbour words." in json.dumps(inspect("resources/read", "--uri", "holdfast://briefing"))
    assert [one["name"] for one in inspect("prompts/list")["prompts"]] == ["save-what-matters", "boot"]
