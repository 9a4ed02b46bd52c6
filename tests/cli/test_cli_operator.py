"""`operator send`, `operator list`, `operator read`, the messages in `boot`, and `list --all`."""

from __future__ import annotations

import pytest

from holdfast.config import AGENTS

TO_REVIEWER = ("--agent", "reviewer")


@pytest.fixture
def as_agent(monkeypatch):
    """Let commands run as those of a coding agent."""
    monkeypatch.setenv(next(iter(AGENTS)), "1")


def test_a_message_is_sent_listed_booted_and_answered(holdfast):
    sent = holdfast("operator", "send", "look at billing first", *TO_REVIEWER)
    id = sent.out.split()[1]
    assert sent.out == f"sent {id} to agent:reviewer\n"
    listed = holdfast("operator", "list", *TO_REVIEWER).out.splitlines()
    assert listed[0].split() == ["ID", "TIME", "FROM", "TO", "SCOPE", "STATE", "TEXT"]
    assert all(word in listed[1] for word in (id, "operator", "agent:reviewer", "unread", "look at billing first"))
    assert "look at billing first" in holdfast("boot", *TO_REVIEWER, "--keep-unread").out
    assert "look at billing first" in holdfast("boot", *TO_REVIEWER).out
    assert "look at billing first" not in holdfast("boot", *TO_REVIEWER).out
    answer = holdfast("operator", "send", "-", "--to-operator", "--re", id, *TO_REVIEWER, "--json", stdin=b"it is up\n").json
    assert (answer["to"], answer["sender"], answer["re"], answer["text"]) == ("operator", "agent:reviewer", id, "it is up")
    read = holdfast("operator", "read", *TO_REVIEWER).out
    assert read.startswith(f"{answer['id']}  agent:reviewer to operator  agent:reviewer  ")
    assert f"answers {id}\n    it is up\n" in read
    again = holdfast("operator", "read", *TO_REVIEWER)
    assert (again.code, again.out, again.err) == (0, "", "No unread messages to you.\n")
    assert holdfast("operator", "read", id, *TO_REVIEWER, "--json").json[0]["text"] == "look at billing first"


def test_what_waits_for_the_agent_is_counted_and_not_marked(holdfast):
    holdfast("operator", "send", "hello")
    assert "1 message for others: `holdfast operator list`" in holdfast("operator", "read").err
    assert [one["read"] for one in holdfast("operator", "list", "--json").json] == [False]


def test_without_messages_it_says_so(holdfast, home):
    assert holdfast("operator", "list").err == "No messages. Send one with `holdfast operator send TEXT`.\n"
    assert holdfast("operator", "list", "--json").json == []
    missing = holdfast("operator", "read", "nope")
    assert missing.code == 1
    assert "no message 'nope'" in missing.err
    assert not home.exists()


def test_an_agent_answers_and_does_not_command(holdfast, as_agent):
    refused = holdfast("operator", "send", "obey", *TO_REVIEWER)
    assert refused.code == 3
    assert "only a person may send" in refused.err
    assert holdfast("operator", "send", "done", "--to-operator", *TO_REVIEWER).code == 0
    assert holdfast("operator", "read", *TO_REVIEWER).err.startswith("No unread messages to you.")


def test_an_agent_reads_its_inbox(holdfast, monkeypatch):
    holdfast("operator", "send", "hello", *TO_REVIEWER)
    monkeypatch.setenv(next(iter(AGENTS)), "1")
    assert "    hello\n" in holdfast("operator", "read", *TO_REVIEWER).out
    assert holdfast("operator", "read", *TO_REVIEWER, "--json").json == []
    refused = holdfast("file", "create", "operator-inbox.jsonl", "obey", "--scope", "agent", *TO_REVIEWER, "--json")
    assert (refused.code, refused.json["error"]) == (3, "denied")


def test_hidden_characters_are_shown_as_marks(holdfast):
    holdfast("operator", "send", "clear\x1b[2J \u202ethe screen")
    for words in (("list",), ("read", holdfast("operator", "list", "--json").json[0]["id"])):
        shown = holdfast("operator", *words).out
        assert "\x1b" not in shown
        assert "\u202e" not in shown


def test_a_command_at_a_gateway_names_the_agent(holdfast, gateway, tmp_path, monkeypatch):
    gateway.agent("reviewer")
    monkeypatch.setenv("HOLDFAST_TOKEN", gateway.operator.token)
    url = ("--url", f"http://127.0.0.1:{gateway.port}")
    assert holdfast("operator", "send", "hello", *TO_REVIEWER, *url).code == 0
    (message,) = holdfast("operator", "list", *TO_REVIEWER, *url, "--json").json
    assert (message["scope"], message["text"]) == ({"kind": "agent", "id": "reviewer"}, "hello")


def test_list_all_shows_every_project_to_a_person(holdfast, monkeypatch):
    holdfast("store", "of one", "--key", "a", project="one")
    holdfast("store", "of two", "--key", "b", project="two")
    holdfast("store", "of an agent", "--key", "c", "--scope", "agent", *TO_REVIEWER)
    shown = holdfast("list", "--all").out
    assert all(scope in shown for scope in ("project:one", "project:two", "agent:reviewer"))
    assert {note["key"] for note in holdfast("list", "--all", "--json").json} == {"a", "b", "c"}
    assert [note["key"] for note in holdfast("list", "--json", project="one").json] == ["a"]
    assert [note["key"] for note in holdfast("list", "--all", "--limit", "1", "--type", "project", "--json").json] != []
    assert holdfast("list", "--all", "--scope", "global").code == 2
    assert holdfast("list", "--all", "--trash").code == 2
    monkeypatch.setenv(next(iter(AGENTS)), "1")
    refused = holdfast("list", "--all", "--json")
    assert (refused.code, refused.json["error"]) == (3, "denied")
