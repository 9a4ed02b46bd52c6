"""A client or an agent that declares the continuity scaffold begins with the boot text (F7)."""

from __future__ import annotations

import json

import pytest

from holdfast import Memory


@pytest.mark.promise("F6", "F7")
def test_a_start_brings_the_start_up_where_an_agent_declares_it(hook, note, folder, home):
    note("The lighthouse keeper is called Ada.", "keeper")
    plain = hook("claude-code", "SessionStart", source="startup")
    assert "HEARTBEAT" not in plain
    assert not list(home.glob("shelf/**/HEARTBEAT.md"))
    said = hook("claude-code", "SessionStart", source="startup", env={"HOLDFAST_SCAFFOLDS": "continuity"}.items())
    text = json.loads(said)["hookSpecificOutput"]["additionalContext"]
    assert text.index("HEARTBEAT.md") < text.index("The lighthouse keeper")
    assert len(text) <= 9000
    assert list(home.glob("shelf/**/HEARTBEAT.md"))


def test_a_client_that_is_told_with_its_first_prompt_gets_it_there(hook, note):
    note("The lighthouse keeper is called Ada.", "keeper")
    env = {"HOLDFAST_SCAFFOLDS": "continuity"}.items()
    assert hook("kimi", "SessionStart", source="startup", env=env) == ""
    assert "HEARTBEAT.md" in hook("kimi", "UserPromptSubmit", prompt=[{"type": "text", "text": "hello"}], env=env)
    assert "HEARTBEAT.md" not in hook("kimi", "UserPromptSubmit", prompt=[{"type": "text", "text": "and then"}], env=env)


@pytest.mark.promise("F7")
def test_a_start_shows_a_message_of_the_operator_once(hook, folder, home):
    env = {"HOLDFAST_SCAFFOLDS": "continuity"}.items()
    hook("claude-code", "SessionStart", source="startup", env=env)
    with Memory(home, cwd=folder, origin="user") as operator:
        operator.operator_send("Look at billing first.")
    assert "Look at billing first." in hook("claude-code", "SessionStart", source="startup", env=env)
    assert "Look at billing first." not in hook("claude-code", "SessionStart", source="startup", env=env)
