"""The real programs, from npm: our own install sets each one up in a private home, and it calls a model on loopback.

The tests check the bytes of the requests: the briefing contains a note that was stored before, `memory_recall` returns another
note that no briefing has space for, and a fact that was stated twice has only its current value.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from real_clients import HOLDFAST, VERSIONS, SandboxedClient, client_params, find_program, program_environment

from holdfast import clients
from holdfast.clients import install
from holdfast_prove.checks import check_run, find_messages
from holdfast_prove.run import run_client

pytestmark = pytest.mark.timeout(1200)  # the first run downloads
SMOKE = "gemini"  # the client that `make test` runs too: its package is the smallest
ROLES = {  # where the briefing appears
    "claude-code": "system", "codex": "developer", "gemini": "user", "copilot": "user", "opencode": "system", "kimi": "user",
    "qwen": "system",
}  # fmt: skip


def tiered_clients(*names):
    """Return the clients; all but one run in the battery tier only."""
    return [
        one if one.id == SMOKE else pytest.param(*one.values, marks=[*one.marks, pytest.mark.battery], id=one.id)
        for one in client_params(*names)
    ]


@pytest.fixture
def prepared(tmp_path):
    return lambda name: SandboxedClient(name, tmp_path)


# --- whole sessions -------------------------------------------------------------------------------------------------------


@pytest.mark.promise("B1")
@pytest.mark.parametrize("name", tiered_clients(*VERSIONS))
def test_a_session_sees_the_briefing_whole_and_recalls_a_note(name, tmp_path):
    client = clients.load(name)
    environ, root = program_environment(), str(tmp_path)
    run = run_client(client, str(find_program(name)), command=(HOLDFAST,), environ=environ, root=root, seconds=240)
    proof = check_run(client, run)
    results = "\n".join(f"{check.ok} {check.name}: {check.seen}" for check in proof.checks)
    assert proof.ok, f"{results}\n{run.output}"
    requests = [request for request in run.requests if request.parsed]
    assert any(run.briefing_word.encode() in request.body for request in requests)
    assert [message.role for message in find_messages(run, run.briefing_word)] == [ROLES[name]]
    without = [request for request in requests if request.parsed.tool_result("memory_recall") is None]
    assert not any(run.recall_word.encode() in request.body for request in without)
    assert run.recall_word in requests[-1].parsed.tool_result("memory_recall")
    assert any(b"share of traffic: 10 %" in request.body for request in requests)
    assert not any(re.search(rb"share of traffic: 5 %|(?<![\d.,])5 %~~", request.body) for request in requests)
    titles = [request for request in requests if request.parsed.messages[0].text.startswith("You are a title generator")]
    assert bool(titles) == (name == "opencode")
    assert not any(b"holdfast-memory" in request.body or run.briefing_word.encode() in request.body for request in titles)


@pytest.mark.parametrize("name", client_params(*VERSIONS))
def test_what_was_proven_is_the_version_that_is_pinned_here(name):
    assert clients.load(name).proven == VERSIONS[name]


# --- what the programs themselves report about an install, and after an uninstall ------------------------------------------


def uninstalled(prepared):
    install.uninstall(prepared.client, prepared.place)
    return prepared


@pytest.mark.battery
@pytest.mark.parametrize("name", client_params("claude-code"))
def test_claude_code_takes_the_plugin_in_strict_mode_and_connects_to_its_server(prepared, name):
    claude = prepared(name)
    claude.run("plugin", "validate", claude.write_plugin(), "--strict", "--json")
    assert "plugin:holdfast:holdfast" in (listed := claude.run("mcp", "list"))
    assert "✔ Connected" in listed
    assert "holdfast" not in uninstalled(claude).run("mcp", "list")


@pytest.mark.battery
@pytest.mark.parametrize("name", client_params("codex"))
def test_codex_lists_the_server_and_takes_the_plugin(prepared, name):
    codex = prepared(name)
    assert [(one["name"], one["enabled"]) for one in servers(codex)] == [("holdfast", True)]
    assert servers(uninstalled(codex)) == []
    codex.run("plugin", "marketplace", "add", codex.write_plugin())
    codex.run("plugin", "add", "holdfast@holdfast")


def servers(codex):
    listed = codex.run("mcp", "list", "--json")
    return json.loads(listed[listed.index("\n[") : listed.rindex("]") + 1]) if "\n[" in listed else json.loads(listed)


@pytest.mark.battery
@pytest.mark.parametrize("name", client_params("gemini"))
def test_gemini_takes_the_extension_and_connects_to_its_server(prepared, name):
    gemini = prepared(name)
    trusting = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
    assert "successfully validated" in gemini.run("extensions", "validate", gemini.write_plugin())
    assert "holdfast" in (listed := gemini.run("mcp", "list", env=trusting))
    assert "Connected" in listed
    assert "holdfast" not in uninstalled(gemini).run("mcp", "list", env=trusting)


@pytest.mark.battery
@pytest.mark.parametrize("name", client_params("copilot"))
def test_copilot_takes_the_plugin_and_lists_the_server(prepared, name):
    copilot = prepared(name)
    assert "holdfast" in copilot.run("mcp", "list")
    assert "holdfast" not in uninstalled(copilot).run("mcp", "list")
    assert "holdfast (v" in copilot.run("--plugin-dir", copilot.write_plugin(), "plugin", "list")


@pytest.mark.battery
@pytest.mark.parametrize("name", client_params("opencode", "qwen"))
def test_the_server_is_connected_to(prepared, name):
    installed = prepared(name)
    listed = installed.run("mcp", "list")
    assert "✓" in listed
    assert "connected" in listed.lower()
    assert "holdfast" not in uninstalled(installed).run("mcp", "list")


@pytest.mark.battery
@pytest.mark.parametrize("name", client_params("kimi"))
def test_kimi_finds_its_config_valid(prepared, name):
    kimi = prepared(name)
    assert "All checked config files are valid" in kimi.run("doctor")
    uninstalled(kimi)
    assert not [path for path in Path(kimi.sandbox.home, ".kimi-code").rglob("*.toml") if "holdfast" in path.read_text()]
