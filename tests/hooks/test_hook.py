"""Hooks as clients run them: a process of their own that reads JSON and prints what the model should know."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from holdfast import Memory, clients, config
from holdfast import hooks as doors_hook
from holdfast.base import failure_log
from holdfast.clients.base import EVENTS, HookInput

NESTED = ("claude-code", "codex", "gemini", "qwen")  # clients that accept hookSpecificOutput
OPEN = "<holdfast-memory id="


def context_text(printed):
    """Return the text that reaches the model of a client that accepts hookSpecificOutput."""
    return json.loads(printed)["hookSpecificOutput"]["additionalContext"] if printed and printed != "{}" else ""


def configure(home, text):
    home.mkdir(exist_ok=True, mode=0o700)
    (home / "config.toml").write_text(text)


# --- start ------------------------------------------------------------------------------------------------------------


@pytest.mark.promise("B2")
@pytest.mark.parametrize("source", ["startup", "clear", "compact"])
def test_a_new_context_is_briefed(hook, note, source):
    note("We deploy on Tuesdays.", "deploys")
    assert "We deploy on Tuesdays." in context_text(hook("claude-code", "SessionStart", source=source))


@pytest.mark.promise("B2")
def test_a_session_that_is_resumed_is_not_briefed_again(hook, note):
    note("We deploy on Tuesdays.", "deploys")
    hook("claude-code", "SessionStart", source="startup")
    assert hook("claude-code", "SessionStart", source="resume") == ""
    assert hook("gemini", "SessionStart", source="resume") == "{}"


@pytest.mark.promise("B4")
def test_the_same_notes_give_the_same_bytes_in_the_same_session(hook, note):
    for number in range(12):
        note(f"Note {number} about harbours: ünïcödé, 港.", f"k{number}")
    first = hook("claude-code", "SessionStart", source="startup")
    assert hook("claude-code", "SessionStart", source="startup") == first
    assert hook("codex", "SessionStart", source="startup") == first


@pytest.mark.parametrize("client", NESTED)
def test_a_nested_answer_has_its_two_fields_and_no_other(hook, note, client):
    note("We deploy on Tuesdays.", "deploys")
    said = json.loads(hook(client, "SessionStart"))
    assert set(said) == {"hookSpecificOutput"}
    assert set(said["hookSpecificOutput"]) == {"hookEventName", "additionalContext"}
    assert said["hookSpecificOutput"]["hookEventName"] == "SessionStart"


def test_one_client_takes_a_flat_answer_and_another_bare_text(hook, note):
    note("We deploy on Tuesdays.", "deploys")
    flat = json.loads(hook("copilot", "sessionStart", source="new"))
    assert set(flat) == {"additionalContext"} and "Tuesdays" in flat["additionalContext"]
    assert hook("kiro", "agentSpawn").startswith(OPEN)


@pytest.mark.promise("B1")
@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_a_start_briefing_fits_what_the_client_lets_through(hook, note, home, client):
    configure(home, "[brief]\ntotal_chars = 9000\n")
    for number in range(150):
        note("many words " * 30, f"k{number}")
    text = context_text(hook(client, "SessionStart"))
    cap = clients.load(client).cap
    assert cap - 300 < len(text) <= cap <= 9000


@pytest.mark.promise("B2")
def test_a_client_that_hears_nothing_at_its_start_is_briefed_with_its_first_prompt(hook, note):
    note("We deploy on Tuesdays.", "deploys")
    assert hook("kimi", "SessionStart", source="startup") == ""
    parts = [{"type": "text", "text": "rename the variable x"}]
    first = hook("kimi", "UserPromptSubmit", prompt=parts)
    assert first.startswith(OPEN) and "Tuesdays" in first
    assert hook("kimi", "UserPromptSubmit", prompt=[{"type": "text", "text": "and the variable y"}]) == ""
    hook("kimi", "PreCompact")  # its context no longer contains what was shown before
    assert "Tuesdays" in hook("kimi", "UserPromptSubmit", prompt=[{"type": "text", "text": "and z"}])


# --- prompt -----------------------------------------------------------------------------------------------------------


@pytest.mark.promise("B2")
def test_a_prompt_brings_what_bears_on_it_once(hook, begun):
    text = context_text(hook("claude-code", "UserPromptSubmit", prompt="When do we deploy next, is Friday fine?"))
    assert "never on Fridays" in text and "pytest" not in text and "Ada" not in text
    assert len(text) <= 1500
    assert hook("claude-code", "UserPromptSubmit", prompt="Then deploy on Friday?") == ""


@pytest.mark.promise("B2")
def test_what_the_start_showed_is_not_shown_again(hook, begun):
    assert hook("claude-code", "UserPromptSubmit", prompt="What is the lighthouse keeper called?") == ""


@pytest.mark.promise("B4")
def test_a_note_that_changed_is_told_again_as_an_addition(hook, begun, note):
    hook("claude-code", "UserPromptSubmit", prompt="when do we deploy?")
    note("We deploy on Wednesdays now.", "deploys")
    assert "Wednesdays" in context_text(hook("claude-code", "UserPromptSubmit", prompt="so when do we deploy?"))
    assert hook("claude-code", "UserPromptSubmit", prompt="and when do we deploy next?") == ""


@pytest.mark.promise("B2")
def test_another_session_and_a_new_context_have_seen_nothing(hook, begun):
    ask = {"prompt": "when do we deploy?"}
    hook("claude-code", "UserPromptSubmit", **ask)
    assert "Tuesdays" in context_text(hook("claude-code", "UserPromptSubmit", session_id="s2", **ask))
    hook("claude-code", "SessionStart", source="compact")
    assert hook("claude-code", "UserPromptSubmit", **ask) == ""  # the new briefing contains it
    keeper = {"prompt": "the lighthouse keeper, who is it?"}
    assert "Ada" in context_text(hook("claude-code", "UserPromptSubmit", session_id="s2", **keeper))


@pytest.mark.parametrize("prompt", ["", "  \n", "/compact", "/deploy on friday", None, 7, [], [{"type": "image"}], {"a": 1}])
def test_no_prompt_and_commands_to_the_client_bring_nothing(hook, begun, prompt):
    assert hook("claude-code", "UserPromptSubmit", prompt=prompt) == ""


def test_a_path_at_the_start_is_no_command(hook, begun):
    assert "Tuesdays" in context_text(hook("claude-code", "UserPromptSubmit", prompt="/srv/app: when do we deploy it?"))


@pytest.mark.parametrize("prompt", ["fix the typo in the readme", "continue", "yes please", "what is 17 * 23"])
def test_a_prompt_that_nothing_bears_on_brings_nothing(hook, begun, prompt):
    assert hook("claude-code", "UserPromptSubmit", prompt=prompt) == ""
    assert hook("gemini", "BeforeAgent", prompt=prompt) == "{}"


def test_our_own_block_in_a_prompt_is_not_taken_for_the_persons_words(hook, begun, memory):
    block = '<hook_context><holdfast-memory id="0123456789ab">\n- [project] x (2026-01-01, user): when do we deploy\n</holdfast-memory id="0123456789ab"></hook_context>'  # noqa: E501
    assert hook("gemini", "BeforeAgent", prompt=f"{block}\nwrite a haiku") == "{}"


def test_no_room_for_prompts_means_silence(hook, begun, home):
    configure(home, "[hooks]\nprompt_chars = 0\n")
    assert hook("claude-code", "UserPromptSubmit", prompt="when do we deploy?") == ""


def test_two_hooks_that_hear_the_same_prompt_tell_it_once(home, folder, begun):
    """As when a plugin and the user's own settings both have our hook."""
    data = json.dumps({"session_id": "s1", "cwd": str(folder), "prompt": "when do we deploy?"}).encode()
    command = [sys.executable, "-m", "holdfast", "hook", "claude-code", "UserPromptSubmit"]
    both = [
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, env={**os.environ, "HOLDFAST_HOME": str(home)}
        )
        for _ in range(4)
    ]
    for one in both:
        one.stdin.write(data)
        one.stdin.close()
    said = [one.stdout.read() for one in both]
    for one in both:
        one.stdout.close()
        assert one.wait(60) == 0
    assert len([text for text in said if b"Tuesdays" in text]) == 1


# --- projects and scopes ----------------------------------------------------------------------------------------------


def test_the_project_is_the_folder_that_the_client_names(hook, note, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    note("The other project's harbour.", "harbour", where=other)
    note("This project's lighthouse.", "lighthouse")
    here = context_text(hook("claude-code", "SessionStart"))
    there = context_text(hook("claude-code", "SessionStart", cwd=str(other)))
    assert "lighthouse" in here and "harbour" not in here
    assert "harbour" in there and "lighthouse" not in there
    prompted = hook("claude-code", "UserPromptSubmit", prompt="the other project's harbour", session_id="s3")
    assert "harbour" not in context_text(prompted)


def test_a_sessions_notes_are_told_to_it_alone(hook, home, folder):
    with Memory(home, cwd=folder, session="s1") as memory:
        memory.store("Only for this session.", key="mine", scope="session")
    assert "Only for this session." in context_text(hook("claude-code", "SessionStart"))
    assert hook("claude-code", "SessionStart", session_id="s2") == ""


def test_two_clients_in_one_folder_are_told_the_same(hook, note):
    note("We deploy on Tuesdays.", "deploys")
    assert context_text(hook("claude-code", "SessionStart")) == context_text(hook("gemini", "SessionStart", session_id="g"))


@pytest.mark.parametrize("session", ["x" * 400, "../../etc", "söme/thing", "a\x00b", 7, None, "", ["s"]])
def test_any_session_id_will_do(hook, begun, home, session):
    assert "Tuesdays" in context_text(hook("claude-code", "UserPromptSubmit", session_id=session, prompt="when do we deploy?"))
    assert not (home / "run" / "hooks.log").exists()


# --- the reminder -----------------------------------------------------------------------------------------------------


def has_reminder(printed):
    return "A reminder from Holdfast" in context_text(printed)


def test_every_few_prompts_there_is_a_reminder(hook, begun, home):
    configure(home, "[hooks]\nreminder = 3\n")
    said = [has_reminder(hook("claude-code", "UserPromptSubmit", prompt=f"do thing {number}")) for number in range(7)]
    assert said == [False, False, True, False, False, True, False]


def test_it_comes_every_fifteen_prompts_unless_set_otherwise(open_memory):
    memory = open_memory(session="s")
    assert memory.config.reminder == 15


def test_no_prompt_is_reminded_of_twice(hook, begun, home):
    configure(home, "[hooks]\nreminder = 2\n")
    hook("claude-code", "UserPromptSubmit", prompt="one")
    assert has_reminder(hook("claude-code", "UserPromptSubmit", prompt="two"))
    assert not has_reminder(hook("claude-code", "UserPromptSubmit", prompt="two"))


def test_switched_off_there_is_none(hook, begun, home):
    configure(home, "[hooks]\nreminder = 0\n")
    assert not any(has_reminder(hook("claude-code", "UserPromptSubmit", prompt=f"thing {number}")) for number in range(3))


def test_a_stop_is_never_answered_so_that_it_cannot_start_another(hook, begun, home):
    configure(home, "[hooks]\nreminder = 1\n")
    for again in (False, True):
        assert hook("claude-code", "Stop", stop_hook_active=again, last_assistant_message="done") == ""
    assert hook("gemini", "AfterAgent", prompt="x", prompt_response="y") == "{}"


@pytest.mark.parametrize("client", [name for name in clients.names() if "prompt" in clients.load(name).injects])
def test_all_that_is_said_with_a_prompt_is_within_the_clients_cap(note, home, folder, monkeypatch, capsys, client):
    configure(home, "[hooks]\nreminder = 1\nprompt_chars = 9000\n")
    for number in range(12):
        note(f"We deploy thing {number} on Tuesdays. " + "x " * 2000, f"k{number}")
    known = clients.load(client)
    for cap in (known.cap, 1400, 900, 500):
        monkeypatch.setattr(type(known), "cap", cap)
        heard = HookInput("prompt", f"s{cap}", str(folder), prompt="when do we deploy thing 3?")
        said = doors_hook._run_steps(known, heard, config.load(str(home)))
        assert "A reminder from Holdfast" in said and len(said) <= cap


def test_the_reminder_is_taken_out_of_what_is_kept():
    from holdfast.formats.transcript import strip_own_output
    from holdfast.verbs.brief.render import compose_reminder

    assert strip_own_output(f"before\n{compose_reminder()}after") == "before\nafter"


# --- events -----------------------------------------------------------------------------------------------------------


@pytest.mark.promise("B6")
@pytest.mark.parametrize("event", ["Bogus", "", "start; rm -rf /", "PreToolUse", pytest.param("x" * 5000, id="long")])
def test_an_event_that_we_do_not_know_is_nothing_but_a_line_in_the_log(hook, note, home, event):
    note("We deploy on Tuesdays.", "deploys")
    assert hook("claude-code", event) == ""
    (mishap,) = failure_log.read(str(home))
    assert (mishap.client, mishap.event) == ("claude-code", event[:60])


@pytest.mark.parametrize("client", clients.names())
@pytest.mark.parametrize("event", EVENTS)
def test_every_client_understands_our_own_names_of_events(hook, note, client, event):
    note("We deploy on Tuesdays.", "deploys")
    said = hook(client, event, prompt="when do we deploy?", source="startup")
    assert said == "" or said.startswith(OPEN) or isinstance(json.loads(said), dict)
    if event not in ("start", "prompt"):
        assert "Tuesdays" not in said
