"""Several sessions of real programs in one home: when a briefing is sent, which notes each sees, and what a session stores."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from real_clients import PROMPT, SandboxedClient, count_in_last_request, parse_session_id

from holdfast_prove import run
from holdfast_prove.sandbox import write_private_file

pytestmark = [pytest.mark.battery, pytest.mark.timeout(1200), pytest.mark.xdist_group("programs-True")]

BLOCK = "<holdfast-memory id="
STORE = "mcp__plugin_holdfast_holdfast__memory_store"


@pytest.mark.promise("B2")
def test_a_briefing_comes_at_the_start_and_after_compaction_and_not_on_resume(tmp_path):
    claude = SandboxedClient("claude-code", tmp_path)
    requests, output = claude.run_session()
    assert count_in_last_request(requests, BLOCK) == 1
    session = parse_session_id(output)
    requests, _ = claude.run_session("--resume", session, prompt="And now?")
    assert count_in_last_request(requests, BLOCK) == 1  # the previous one, and no other
    claude.run_session("--resume", session, prompt="/compact")
    requests, _ = claude.run_session("--resume", session, prompt="And after that?")
    assert count_in_last_request(requests, BLOCK) == 1
    assert "What is the code word" not in "".join(
        message.text for message in requests[0].messages if message.role == "user"
    )  # it was compacted


@pytest.mark.promise("N8")
def test_what_one_client_stores_the_next_one_is_told_in_the_same_project_and_in_no_other(tmp_path):
    claude = SandboxedClient("claude-code", tmp_path)
    note = {"text": "The pier is painted in octarine.", "key": "pier"}
    requests, _ = claude.run_session(STORE, tool="memory_store", arguments=note)
    assert "Created **pier**" in requests[-1].tool_result("memory_store")
    codex = SandboxedClient("codex", tmp_path, share_home_with=claude)
    requests, _ = codex.run_session(tool="memory_recall", arguments={"query": "which colour has the pier"})
    assert "octarine" in requests[-1].tool_result("memory_recall")
    elsewhere = tmp_path / "elsewhere"
    for name, text in {"HEAD": "ref: refs/heads/main\n", "objects/x": "", "refs/x": "", "config": ""}.items():
        write_private_file(str(elsewhere / ".git" / name), text)
    requests, _ = codex.run_session(tool="memory_recall", arguments={"query": "which colour has the pier"}, cwd=elsewhere)
    assert requests[-1].tool_result("memory_recall")
    assert "octarine" not in "".join(message.text for request in requests for message in request.messages)
    assert count_in_last_request(requests, "briefed") == 0


@pytest.mark.parametrize("name", ["claude-code", "copilot"])
def test_a_plugin_for_one_session_leaves_nothing_for_the_next(tmp_path, name):
    client = SandboxedClient(name, tmp_path, install=False)
    # one of the two starts the server in the plugin's own folder, so that only the model can name the working folder
    requests, _ = client.run_session(
        "--plugin-dir", client.write_plugin(), arguments={"query": run.QUERY, "folder": client.sandbox.project}
    )
    assert count_in_last_request(requests, BLOCK) == 1
    assert "buried" in requests[-1].tool_result("memory_recall")
    requests, _ = client.run_session()
    assert count_in_last_request(requests, BLOCK) == 0
    assert requests[-1].find_tool("memory_recall") is None


@pytest.mark.promise("H3")
@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini"])
def test_what_is_captured_holds_nothing_that_we_put_in(tmp_path, name):
    client = SandboxedClient(name, tmp_path)
    with open(os.path.join(client.sandbox.memory, "config.toml"), "a", encoding="utf-8") as settings:
        settings.write("\n[hooks]\ncapture = true\n")
    client.run_session()
    kept = [path.read_text() for path in Path(client.sandbox.memory).rglob("transcripts/*/*.jsonl")]
    assert len(kept) == 1
    assert PROMPT in kept[0]
    assert "holdfast-memory id" not in kept[0]
    assert "Code word of the harbour: briefed" not in kept[0]
    assert "keeper is called buried" not in kept[0]  # which the model recalled
