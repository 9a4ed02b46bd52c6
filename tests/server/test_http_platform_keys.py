"""`/gateway/memory` takes the keys that platforms use, and no two of them ever meet."""

from __future__ import annotations

import json
import unicodedata
from urllib.parse import quote

import pytest

from holdfast import Memory
from holdfast.api.memory import context_of
from holdfast.base.platform_keys import to_note_key
from holdfast.models import Scope

KEYS = (
    "build_cmd", "BuildCmd", "buildcmd", "build-cmd", "BUILD_CMD", "repo:acme/shop", "Deploy Steps", "日本語 メモ", "ключ", "⚠️",
    "a.b", "../../x", "x" * 200, 'say "hi": #1', "<b>tag</b>", "- dash", "true", "null", "12", "{a: b}", "back\\slash",
)  # fmt: skip


@pytest.fixture
def bot(gateway):
    return gateway.agent("bot")


def pairs(client, key=None):
    answer = client.get("/gateway/memory" + (f"?key={quote(key, safe='')}" if key is not None else ""))
    assert answer.status == 200, answer
    return {one["key"]: one["value"] for one in answer.json["memory"]}


def stored(client, key, value):
    answer = client.post("/gateway/memory", {"key": key, "value": value})
    assert answer.status == 200, answer
    return answer.json


def edit_note(home, key, change):
    """Change the bytes of a note of the agent `bot` behind the gateway's back, as an editor would."""
    with Memory(home, agent="bot", origin="user") as memory:
        store, scope = context_of(memory).store, Scope("agent", "bot")
        (content,) = store.read_notes([(scope, key)])
        store.write_note(scope, key, change(content.data), content.file_id)


def test_every_key_keeps_its_own_value_and_comes_back_as_it_was_given(bot):
    for number, key in enumerate(KEYS):
        assert stored(bot, key, f"Value {number}.")["action"] == "created"
    expected = {unicodedata.normalize("NFC", key): f"Value {number}." for number, key in enumerate(KEYS)}
    assert pairs(bot) == expected
    for key, value in expected.items():
        assert pairs(bot, key) == {key: value}


def test_the_same_pair_again_changes_nothing_and_another_value_is_the_next_version(bot):
    first = stored(bot, "BuildCmd", "make")
    assert stored(bot, "BuildCmd", "make")["action"] == "unchanged"
    assert stored(bot, "BuildCmd", "make all")["action"] == "updated"
    versions = bot.get(f"/v1/notes/agent/{first['note']}/history").json["versions"]
    assert [version["text"] for version in versions] == ["make all", "make"]
    assert pairs(bot) == {"BuildCmd": "make all"}


def test_a_note_key_is_the_key_of_its_note_through_every_door(bot):
    assert stored(bot, "testing", "Use pytest.")["note"] == "testing"
    assert bot.get("/v1/notes/agent/testing").json["name"] is None
    bot.post("/v1/notes", {"key": "style", "text": "Short lines.", "scope": "agent"})
    assert pairs(bot) == {"testing": "Use pytest.", "style": "Short lines."}


def test_other_doors_show_both_the_note_key_and_the_platform_key(bot):
    note = stored(bot, "Deploy Steps", "Push the tag, then wait.")["note"]
    (listed,) = bot.get("/v1/notes?scope=agent").json["notes"]
    (hit,) = bot.post("/v1/recall", {"query": "deploy steps", "scope": "agent"}).json["hits"]
    for shown in (listed, hit, bot.get(f"/v1/notes/agent/{note}").json):
        assert (shown["key"], shown["name"]) == (note, "Deploy Steps")
    answer = bot.post("/v1/notes", {"key": "Deploy Steps", "text": "x", "scope": "agent"})
    assert answer.status == 422  # a key that breaks the rule for notes is rejected by the other doors


def test_two_spellings_of_one_character_are_one_key(bot):
    composed, decomposed = unicodedata.normalize("NFC", "Café"), unicodedata.normalize("NFD", "Café")
    stored(bot, decomposed, "Opens at six.")
    assert stored(bot, composed, "Opens at six.")["action"] == "unchanged"
    assert pairs(bot) == pairs(bot, decomposed) == {composed: "Opens at six."}


def test_a_key_that_equals_the_note_key_of_another_is_a_key_of_its_own(bot):
    derived = stored(bot, "BuildCmd", "make")["note"]
    second = stored(bot, derived, "not make")
    assert (second["action"], second["key"]) == ("created", derived) and second["note"] != derived
    assert pairs(bot) == {"BuildCmd": "make", derived: "not make"}
    assert pairs(bot, derived) == {derived: "not make"} and pairs(bot, "BuildCmd") == {"BuildCmd": "make"}


def test_a_note_that_has_a_derived_key_of_its_own_is_read_and_changed_by_it(bot):
    derived = to_note_key("BuildCmd")
    bot.post("/v1/notes", {"key": derived, "text": "By hand.", "scope": "agent"})
    assert pairs(bot) == pairs(bot, derived) == {derived: "By hand."}
    assert stored(bot, derived, "Changed.")["action"] == "updated"
    assert stored(bot, "BuildCmd", "make")["action"] == "updated"  # only this key has that note key: it gets its name
    assert pairs(bot) == {"BuildCmd": "make"}


@pytest.mark.parametrize("name", ["buildcmd", "testing", '"Build\\u0043md2"', "[a, list]", '"not closed', ""])
def test_a_name_that_was_edited_by_hand_is_not_believed(bot, home, name):
    stored(bot, "testing", "Use pytest.")
    note = stored(bot, "BuildCmd", "make")["note"]
    edit_note(home, note, lambda data: data.replace(b"name: BuildCmd\n", f"name: {name}\n".encode() if name else b""))
    assert pairs(bot) == {note: "make", "testing": "Use pytest."}
    assert pairs(bot, "BuildCmd") == {"BuildCmd": "make"}  # the note key alone says whose it is
    assert pairs(bot, note) == {note: "make"}
    stored(bot, "BuildCmd", "make all")
    assert pairs(bot) == {"BuildCmd": "make all", "testing": "Use pytest."}


def test_fields_that_people_add_stay_in_the_file(bot, home):
    note = stored(bot, "BuildCmd", "make")["note"]
    edit_note(home, note, lambda data: data.replace(b"---\nmake", b"owner: Ada  # asks daily\n---\nmake"))
    stored(bot, "BuildCmd", "make all")
    kept = []
    edit_note(home, note, lambda data: kept.append(data) or data)
    assert b"owner: Ada  # asks daily\n" in kept[0] and b"\nname: BuildCmd\n" in kept[0]


def test_a_name_that_a_person_gave_a_note_is_theirs(bot, home):
    stored(bot, "testing", "Use pytest.")
    edit_note(home, "testing", lambda data: data.replace(b"---\nUse", b"name: How we test\n---\nUse"))
    assert pairs(bot) == {"testing": "Use pytest."}
    stored(bot, "testing", "Use pytest 9.")
    kept = []
    edit_note(home, "testing", lambda data: kept.append(data) or data)
    assert b"\nname: How we test\n" in kept[0]


@pytest.mark.parametrize("key", ["", "x" * 201, " a", "a ", "a\nb", "a\u202eb", "a\u200bb", "a\x00b", "a\u00a0b", "a\ud800b"])
def test_a_bad_key_is_rejected_and_nothing_is_stored(bot, key):
    answer = bot.post("/gateway/memory", {"key": key, "value": "x"})
    assert answer.status == 422 and answer.code in ("invalid_key", "invalid_request", "invalid_text")
    assert pairs(bot) == {}
    if key.isprintable():
        assert bot.get(f"/gateway/memory?key={quote(key)}").status == 422


def test_a_key_that_looks_like_a_secret_is_rejected_without_its_value(bot):
    secret = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
    answer = bot.post("/gateway/memory", {"key": secret, "value": "x"})
    assert (answer.status, answer.code) == (422, "secret") and secret.encode() not in answer.data


def test_a_key_that_mixes_scripts_is_marked(bot):
    assert stored(bot, "buіld", "x")["hidden"] == ["mixed-script"]  # with a Cyrillic letter
    assert pairs(bot, "build") == {}


def test_a_request_sent_twice_is_answered_the_same(bot):
    body = {"key": unicodedata.normalize("NFD", "Café"), "value": "Opens at six."}
    first = bot.post("/gateway/memory", body, Idempotency_Key="once")
    again = bot.post("/gateway/memory", body, Idempotency_Key="once")
    assert first.json == again.json and again.headers["idempotency-replayed"] == "true"


def test_a_note_with_a_platform_key_is_forgotten_and_restored_with_it(bot):
    note = stored(bot, "BuildCmd", "make")["note"]
    assert bot("DELETE", f"/v1/notes/agent/{note}").json["deleted"] is True
    assert pairs(bot) == pairs(bot, "BuildCmd") == {}
    assert bot.post(f"/v1/notes/agent/{note}/restore").json["name"] == "BuildCmd"
    assert pairs(bot) == {"BuildCmd": "make"}


def test_an_export_brings_the_platform_key_to_another_agent(gateway, bot):
    stored(bot, "BuildCmd", "make")
    stored(bot, "testing", "Use pytest.")
    gateway.add_role("carrier", ["agent.memory.read", "agent.memory.write", "memory.export"])
    carrier = gateway.agent("carrier", "carrier")
    stored(carrier, "Deploy Steps", "Push.")
    lines = carrier.get("/v1/export?scope=agent").lines
    assert [(line["key"], line["name"]) for line in lines] == [(to_note_key("Deploy Steps"), "Deploy Steps")]
    data = "".join([json.dumps(line) + "\n" for line in lines]).encode()
    bot("POST", "/v1/import?own=true", raw=data, Content_Type="application/x-ndjson")
    assert pairs(bot) == {"BuildCmd": "make", "testing": "Use pytest.", "Deploy Steps": "Push."}
