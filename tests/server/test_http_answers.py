"""Answers of the gateway are correct: real counts, real reasons, and an ambiguous request is rejected."""

from __future__ import annotations

from base64 import urlsafe_b64encode

import pytest

from holdfast import Memory
from holdfast.base import failure_log
from holdfast.cli import main

AMOUNTS = ("passages", "facts", "sessions", "turns", "quarantined")
OF_THE_HOME = ("index_bytes", "ledger_bytes", "waiting")


def kept(client, many=2):
    """Notes, a fact, a note from the web and a session of the caller."""
    for number in range(many):
        client.post("/v1/notes", {"text": f"Harbour words {number}.", "key": f"n{number}", "scope": "agent"})
    client.post("/v1/notes", {"text": "Of a page.", "key": "w", "scope": "agent", "origin": "web"})
    client.post("/v1/facts", {"subject": "Pier", "label": "state", "value": "open", "scope": "agent"})
    said = [{"role": "user", "text": "When?"}, {"role": "assistant", "text": "On Tuesday."}]
    client.post("/v1/history", {"turns": said, "session": "s1", "scope": "agent"})


# --- counts ---------------------------------------------------------------------------------------------------------------


@pytest.mark.promise("D2")
def test_status_counts_what_the_caller_may_see_and_says_nothing_of_the_rest(gateway):
    one, other = gateway.agent("one"), gateway.agent("other")
    kept(one)
    kept(other, many=7)
    told = one.get("/v1/status").json
    assert [told[name] for name in AMOUNTS] == [2 + 1 + 1 + 2, 1, 1, 2, 1]
    assert [told[name] for name in OF_THE_HOME] == [None, None, None]
    assert [place["scope"] for place in told["scopes"]] == ["agents/one"]
    whole = gateway.operator.get("/v1/status").json
    assert [whole[name] for name in AMOUNTS] == [6 + 11, 2, 2, 4, 0] and whole["index_bytes"] > 0
    url = f"http://127.0.0.1:{gateway.port}"
    for client, passages in ((gateway.operator, 0), (one, 6)):
        with Memory(url, token=client.token) as memory:
            own = memory.status(whole=False)
            assert own.index_bytes is own.waiting is None and own.passages == passages
    assert one.get("/v1/status?whole=true").json == told
    empty = gateway.agent("new").get("/v1/status").json
    assert [empty[name] for name in AMOUNTS] == [0, 0, 0, 0, 0]


def test_what_is_not_told_is_left_out_on_a_terminal(gateway, tmp_path, capsys, monkeypatch):
    one = gateway.agent("one")
    kept(one)
    token = tmp_path / "token"
    token.write_text(one.token)
    monkeypatch.chdir(tmp_path)
    assert main(["--url", f"http://127.0.0.1:{gateway.port}", "--token-file", str(token), "status"]) == 0
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert "6 passages, 1 fact" in rows["index"] and "KiB" not in rows["index"] and "ledger" not in rows
    assert "1 session, 2 turns" in rows["history"]


def test_a_home_that_is_switched_off_counts_nothing_and_says_no_number(gateway):
    kept(gateway.operator)
    (gateway.home / "config.toml").write_text("[memory]\nenabled = false\n")
    told = gateway.operator.get("/v1/status").json
    assert [told[name] for name in AMOUNTS] == [None] * len(AMOUNTS) and told["index_bytes"] > 0
    with Memory(gateway.home, project="demo") as memory:
        assert memory.status().turns is None


# --- hints ----------------------------------------------------------------------------------------------------------------


def test_a_note_that_is_there_already_is_said_to_be(gateway):
    put = {"text": "Harbour words."}
    assert gateway.operator("PUT", "/v1/notes/agent/k", put, If_None_Match="*").status == 201
    again = gateway.operator("PUT", "/v1/notes/agent/k", {"text": "Others."}, If_None_Match="*")
    assert again.status == 412 and "the note 'k' already exists" in again.json["detail"] and again.json["fix"]
    assert (
        gateway.operator.post("/v1/notes", {**put, "key": "k", "scope": "agent", "expected": "x"})
        .json["detail"]
        .endswith("has changed since you read it")
    )


def test_a_file_that_is_not_there_or_is_there_already_says_what_to_do(gateway):
    ask = gateway.operator
    for name in ("a", "b"):
        ask.post("/v1/files/create", {"path": f"/memories/{name}.md", "file_text": name, "scope": "agent"})
    missing = ask.post("/v1/files/rename", {"old_path": "/memories/x.md", "new_path": "/memories/y.md", "scope": "agent"})
    assert (missing.status, missing.code) == (404, "not_found") and "POST /v1/files/view" in missing.json["fix"]
    taken = ask.post("/v1/files/rename", {"old_path": "/memories/a.md", "new_path": "/memories/b.md", "scope": "agent"})
    assert taken.code == "conflict" and "version" not in taken.json["title"] and taken.json["fix"]
    shown = [ask.post("/agents", {"name": "n", "role": "secretary"}, Idempotency_Key="k") for _ in range(2)][1]
    assert shown.code == "conflict" and "version" not in shown.json["title"]


def test_a_search_by_words_says_why_too(gateway):
    kept(gateway.operator)
    asked = {"query": "harbour words", "mode": "keyword", "explain": True}
    hits = gateway.operator.post("/v1/recall", asked).json["hits"]
    assert len(hits) == 2
    for hit in hits:
        value, added = hit["why"]["bm25"]
        assert value == added == pytest.approx(hit["score"], abs=0.001)
    assert [hit["why"] for hit in gateway.operator.post("/v1/recall", {**asked, "explain": False}).json["hits"]] == [None, None]


# --- ambiguous requests ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [b'{"text": "One.", "text": "Two.", "scope": "agent"}', b'{"text": "One.", "scope": "global", "scope": "agent"}',
     b'{"text": "One.", "scope": "agent", "\\u0073cope": "agent"}', b'{"text": "One.", "tags": [{"a": 1, "a": 2}]}'],
)  # fmt: skip
def test_a_field_that_comes_twice_in_a_body_is_refused(gateway, raw):
    said = gateway.operator("POST", "/v1/notes", raw=raw)
    assert (said.status, said.code) == (422, "invalid_request") and said.json["errors"][0]["detail"] == "is given twice"
    lines = gateway.operator("POST", "/v1/import?scope=agent", raw=raw + b"\n", Content_Type="application/x-ndjson")
    assert lines.code == "invalid_request" and lines.json["detail"].startswith("line 1: ")
    assert gateway.operator.get("/v1/notes").json["notes"] == []


@pytest.mark.parametrize(("path", "name"), [("/v1/notes", "notes"), ("/v1/facts", "facts"), ("/v1/review", "notes")])
def test_a_cursor_of_another_scopes_list_is_refused(gateway, path, name):
    ask = gateway.operator
    for scope in ("agent", "global"):
        for number in range(3):
            key = {"key": f"n{number}", "scope": scope}
            ask.post("/v1/notes", {"text": f"- [2026-03-27] state: {number}", **key, "origin": "web"})
    page = ask.get(f"{path}?scope=agent&limit=1").json
    assert len(page[name]) == 1
    other = ask.get(f"{path}?scope=global&limit=1&cursor={page['next']}")
    assert (other.status, other.code) == (422, "usage") and "another list" in other.json["detail"]
    assert ask.get(f"{path}?scope=agent&limit=1&cursor={page['next']}").status == 200
    foreign = gateway.agent("other").get(f"{path}?limit=1&cursor={page['next']}")
    assert foreign.status == (403 if path == "/v1/review" else 422)


@pytest.mark.parametrize("byte", [b"\xff", b"\xed\xb2\x80", b"\xed\xa0\x80"], ids=["latin", "low", "high"])
def test_a_forged_cursor_that_is_no_unicode_is_no_cursor(gateway, byte):
    ask = gateway.operator
    ask.post("/v1/notes", {"text": "- [2026-03-27] state: 1", "key": "n", "scope": "global", "origin": "web"})
    for place in range(5):
        note, fact = [b"0", b"2026", b"x", b"global", b"n"], [b"n", b"state", b"2026-03-27", b"1", b"global/notes/n.md"]
        lists = {"/v1/notes": note, "/v1/notes?source=x": note, "/v1/review": note, "/v1/facts": fact, "/v1/trash": note[1:]}
        for path, parts in lists.items():
            if place >= len(parts):
                continue
            forged = [part + byte if number == place else part for number, part in enumerate(parts)]
            packed = urlsafe_b64encode(b"\n".join(forged)).decode().rstrip("=")
            said = ask.get(f"{path}{'&' if '?' in path else '?'}limit=1&cursor={packed}")
            assert (said.status, said.code) == (422, "usage") and "the cursor is not valid" in said.json["detail"], (
                path,
                place,
                said,
            )


def test_names_of_any_script_stand_in_a_cursor(gateway):
    ask = gateway.operator
    for number, name in enumerate(("Grüße", "日本", "🦀 pier")):
        text = f"# {name}\n- [2026-03-27] état: {number}"
        ask.post("/v1/notes", {"text": text, "key": f"n{number}", "scope": "global", "origin": "web"})
    for path, list_ in (("/v1/notes", "notes"), ("/v1/review", "notes"), ("/v1/facts", "facts")):
        met, page = [], ask.get(f"{path}?limit=1").json
        while met.extend(page[list_]) or page["next"]:
            page = ask.get(f"{path}?limit=1&cursor={page['next']}").json
        assert len(met) == 3, path


# --- problems of the gateway -----------------------------------------------------------------------------------------------


def test_the_check_tells_of_roles_agents_and_the_audit_only_to_whom_they_are_open(gateway):
    gateway.add_role("gone", ["done.read"])
    gateway.agent("orphan", "gone")
    (gateway.home / "roles" / "gone.yaml").unlink()
    (gateway.home / "roles" / "broken.yaml").write_text("name: [")
    (gateway.home / "run").mkdir(mode=0o700, exist_ok=True)
    failure_log.write(
        str(gateway.home), client="orphan", event="agents.manage", message="it was locked", fix="Try again", name="audit.log"
    )
    secret = {"agents.manage": "agent", "audit.read": "audit", "roles.read": "role"}
    for number, actions in enumerate([(), *[(one,) for one in secret], tuple(secret)]):
        gateway.add_role(f"carer{number}", ["home.care", *actions])
        told = gateway.agent(f"carer{number}", f"carer{number}").get("/v1/check").json["problems"]
        assert {one["code"] for one in told} & set(secret.values()) == {secret[one] for one in actions}, actions
    assert {one["code"] for one in gateway.operator.get("/v1/check").json["problems"]} >= set(secret.values())
