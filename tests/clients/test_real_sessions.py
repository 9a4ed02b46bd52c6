"""Several sessions of real programs in one home: when a briefing comes, who sees whose notes, and what one session leaves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from real_clients import PROMPT, Prepared, session_of, told

from holdfast_prove import run
from holdfast_prove.sandbox import write

pytestmark = [pytest.mark.battery, pytest.mark.timeout(1200), pytest.mark.xdist_group("programs-True")]

BLOCK = "<holdfast-memory id="
STORE = "mcp__plugin_holdfast_holdfast__memory_store"


@pytest.mark.promise("B2")
def test_a_briefing_comes_at_the_start_and_after_compaction_and_not_on_resume(tmp_path):
    claude = Prepared("claude-code", tmp_path)
    asks, said = claude.talk()
    assert told(asks, BLOCK) == 1
    session = session_of(said)
    asks, _ = claude.talk("--resume", session, prompt="And now?")
    assert told(asks, BLOCK) == 1  # the one from before, and no other
    claude.talk("--resume", session, prompt="/compact")
    asks, _ = claude.talk("--resume", session, prompt="And after that?")
    assert told(asks, BLOCK) == 1
    assert "What is the code word" not in "".join(one.text for one in asks[0].said if one.role == "user")  # it was compacted


@pytest.mark.promise("N8")
def test_what_one_client_stores_the_next_one_is_told_in_the_same_project_and_in_no_other(tmp_path):
    claude = Prepared("claude-code", tmp_path)
    note = {"text": "The pier is painted in octarine.", "key": "pier"}
    asks, _ = claude.talk(STORE, tool="memory_store", arguments=note)
    assert "Created **pier**" in asks[-1].answer_of("memory_store")
    codex = Prepared("codex", tmp_path, beside=claude)
    asks, _ = codex.talk(tool="memory_recall", arguments={"query": "which colour has the pier"})
    assert "octarine" in asks[-1].answer_of("memory_recall")
    elsewhere = tmp_path / "elsewhere"
    for name, text in {"HEAD": "ref: refs/heads/main\n", "objects/x": "", "refs/x": "", "config": ""}.items():
        write(str(elsewhere / ".git" / name), text)
    asks, _ = codex.talk(tool="memory_recall", arguments={"query": "which colour has the pier"}, cwd=elsewhere)
    assert asks[-1].answer_of("memory_recall")
    assert "octarine" not in "".join(one.text for ask in asks for one in ask.said)
    assert told(asks, "briefed") == 0


@pytest.mark.parametrize("name", ["claude-code", "copilot"])
def test_a_plugin_for_one_session_leaves_nothing_for_the_next(tmp_path, name):
    client = Prepared(name, tmp_path, install=False)
    # one of the two starts the server in the plugin's own folder, so that only the model can say where it works
    asks, _ = client.talk("--plugin-dir", client.plugin, arguments={"query": run.QUERY, "folder": client.stage.project})
    assert told(asks, BLOCK) == 1
    assert "buried" in asks[-1].answer_of("memory_recall")
    asks, _ = client.talk()
    assert told(asks, BLOCK) == 0
    assert asks[-1].offered("memory_recall") is None


@pytest.mark.promise("H3")
@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini"])
def test_what_is_captured_holds_nothing_that_we_put_in(tmp_path, name):
    client = Prepared(name, tmp_path)
    with open(os.path.join(client.stage.memory, "config.toml"), "a", encoding="utf-8") as settings:
        settings.write("\n[hooks]\ncapture = true\n")
    client.talk()
    kept = [path.read_text() for path in Path(client.stage.memory).rglob("transcripts/*/*.jsonl")]
    assert len(kept) == 1
    assert PROMPT in kept[0]
    assert "holdfast-memory id" not in kept[0]
    assert "Code word of the harbour: briefed" not in kept[0]
    assert "keeper is called buried" not in kept[0]  # which the model recalled
