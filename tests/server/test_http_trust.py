"""Trust over HTTP: persons, review, purged text, provenance, and what an answer shows."""

from __future__ import annotations

import json

import pytest
from http_gateway import run_app

from holdfast import Memory

SECRET = "ghp_" + "R7kQ2mX9vB4nT8cL1wZ6yH3jD5fG0sAeUoPi"  # has the format of a token, but is invalid
HIDDEN = "Harbour \u200bwords\u202e of the web."
PROJECT = {"X_Holdfast_Project": "demo"}


def kept_by_hand(gateway, agent, key, text):
    """A note that a person pasted into the home, whatever it contains."""
    with Memory(gateway.home, agent=agent, project="demo", origin="user") as memory:
        path = memory.store("Words to be replaced.", key=key, scope="agent").note.path
    file = gateway.home / "shelf" / path
    file.write_text(file.read_text().replace("Words to be replaced.", text))


def from_the_web(client, key="api-limit", text="The API allows 60 calls a minute.", **headers):
    body = {"text": text, "key": key, "scope": "agent", "made_from": ["https://blog.example/post"]}
    return client.post("/v1/notes", body, **headers)


# --- persons --------------------------------------------------------------------------------------------------------------


def test_the_operator_speaks_as_a_person_and_every_other_token_as_an_agent(gateway):
    gateway.add_role("curator", ["agent.memory.read", "agent.memory.write", "memory.review", "memory.purge"])
    for client, origin in ((gateway.operator, "user"), (gateway.agent("a"), "agent"), (gateway.agent("c", "curator"), "agent")):
        said = client.post("/v1/notes", {"text": "Harbour words.", "key": "k", "scope": "agent"})
        assert said.json["note"]["source"]["origin"] == origin
        assert client.post("/v1/notes", {"text": "W.", "key": "w", "scope": "agent", "origin": "user"}).status == 422
        lowered = client.post("/v1/notes", {"text": "Lower.", "key": "l", "scope": "agent", "origin": "web"})
        assert (lowered.json["note"]["source"]["origin"], lowered.json["note"]["quarantined"]) == ("web", True)


@pytest.mark.promise("S3")
def test_what_came_from_the_web_waits_until_the_operator_approves_the_text_that_they_read(gateway):
    agent, operator = gateway.agent("a"), gateway.operator
    gateway.add_role("curator", ["memory.review", "agent.memory.read", "agent.memory.write"])
    curator = gateway.agent("c", "curator")
    note = from_the_web(agent).json["note"]
    assert note["quarantined"] is True and note["source"]["made_from"] == ["https://blog.example/post"]
    assert agent.get("/v1/review").code == "denied"
    assert "60 calls" not in agent.post("/v1/brief").json["text"]
    assert "60 calls" not in agent.post("/dispatch", {"task": "x"}).data.decode()
    (hit,) = agent.post("/v1/recall", {"query": "calls a minute", "mode": "keyword"}).json["hits"]
    assert hit["quarantined"] is True
    told = operator.get("/v1/review?agent=a").json
    assert [one["key"] for one in told["notes"]] == ["api-limit"] and told["waiting"] == 1
    own = from_the_web(curator).json["note"]
    refused = curator.post("/v1/review/agent/api-limit/approve", {"version": own["version"]})
    assert (refused.status, refused.code) == (422, "refused")
    changed = from_the_web(agent, text="The API allows 600 calls a minute.").json["note"]
    for verb in ("approve", "reject"):
        stale = operator.post(f"/v1/review/agent/api-limit/{verb}", {"version": note["version"], "agent": "a"})
        assert (stale.status, stale.code) == (409, "conflict")
        assert operator.post(f"/v1/review/agent/api-limit/{verb}", {"agent": "a"}).code == "invalid_request"
    done = operator.post("/v1/review/agent/api-limit/approve", {"version": changed["version"], "agent": "a"})
    assert done.status == 200 and done.json["quarantined"] is False
    assert "600 calls" in agent.post("/v1/brief").json["text"]
    assert operator.get("/v1/review?agent=a").json == {"notes": [], "next": None, "waiting": 0}
    (decided,) = agent.get("/v1/trace/agent/api-limit").json["decisions"]
    assert decided["action"] == "approved"


def test_a_rejected_note_is_forgotten_and_not_an_agents_to_restore(gateway):
    agent, operator = gateway.agent("a"), gateway.operator
    note = from_the_web(agent).json["note"]
    said = operator.post("/v1/review/agent/api-limit/reject", {"version": note["version"], "agent": "a"})
    assert said.status == 200 and said.json["deleted"] is True
    assert agent.get("/v1/notes/agent/api-limit").status == 404
    assert agent.post("/v1/notes/agent/api-limit/restore").code == "refused"


@pytest.mark.promise("A2")
def test_only_who_manages_agents_may_name_one_and_that_is_a_row_of_its_own(gateway):
    gateway.add_role("curator", ["memory.review", "memory.purge", "agent.memory.read", "agent.memory.write"])
    agent, curator = gateway.agent("a"), gateway.agent("c", "curator")
    from_the_web(agent)
    for said in (
        curator.get("/v1/review?agent=a"), curator.get("/v1/trace/agent/api-limit?agent=a"),
        curator.post("/v1/notes/agent/api-limit/purge", {"agent": "a"}),
        curator.post("/v1/review/agent/api-limit/reject", {"agent": "a", "version": "x"}),
        curator.get("/v1/notes/agent/api-limit?agent=a"),
    ):  # fmt: skip
        assert (said.status, said.code) == (403, "denied") and b"60 calls" not in said.data
    rows = gateway.operator.get("/audit?agent=c&limit=12").json["audit"]
    named = [(row["outcome"], row["metadata"]["name"]) for row in rows if row["action"] == "agents.manage"]
    assert named == [("denied", "a")] * 5
    assert agent.get("/v1/notes/agent/api-limit").status == 200


# --- secrets and purged text ------------------------------------------------------------------------------------------------


@pytest.mark.promise("S2")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/notes", {"text": f"token {SECRET}", "scope": "agent"}),
        ("/v1/notes", {"text": "Words.", "tags": [SECRET], "scope": "agent"}),
        ("/v1/notes", {"text": "Words.", "made_from": [f"https://x.example/?t={SECRET}"], "scope": "agent"}),
        ("/v1/notes", {"text": f"token {SECRET}", "scope": "agent", "allow_secret": "a test"}),
        ("/gateway/memory", {"key": "k", "value": f"token {SECRET}"}),
        ("/v1/facts", {"subject": "Bot", "label": "token", "value": SECRET, "scope": "agent"}),
        ("/v1/files/create", {"path": "/memories/x.md", "file_text": f"token {SECRET}", "scope": "agent"}),
        ("/v1/history", {"turns": [{"role": "user", "text": f"token {SECRET}"}], "session": "s", "scope": "agent"}),
        ("/v1/forget-source", {"source": f"origin:{SECRET}"}),
        ("/v1/notes", {"text": "Words.", "scope": "agent", "type": SECRET}),
        ("/v1/notes", {"text": "Words.", "scope": "agent", SECRET: "x"}),
        ("/gateway/memory", {"key": SECRET, "value": "Words."}),
    ],
)
def test_a_secret_is_refused_with_a_stable_code_and_never_repeated(gateway, path, body):
    said = gateway.agent("a").post(path, body)
    assert said.status == 422 and said.code in ("secret", "refused", "invalid_request", "usage"), said
    assert SECRET.encode() not in said.data
    assert SECRET[4:].encode() not in b"".join(one.read_bytes() for one in gateway.home.rglob("*") if one.is_file())


@pytest.mark.promise("S2")
def test_a_secret_is_redacted_where_that_is_asked_for(gateway):
    agent = gateway.agent("a")
    said = agent.post("/v1/notes", {"text": f"token {SECRET}", "key": "t", "scope": "agent", "redact": True})
    assert said.status == 201 and said.json["redacted"] and "[REDACTED:" in said.json["note"]["text"]
    pair = agent.post("/gateway/memory", {"key": "p", "value": f"token {SECRET}", "redact": True})
    assert "[REDACTED:" in pair.json["value"]
    lines = json.dumps({"key": "i", "text": f"token {SECRET}"}).encode()
    refused = agent("POST", "/v1/import?scope=agent", raw=lines, Content_Type="application/x-ndjson")
    assert (refused.status, refused.code) == (422, "secret")
    done = agent("POST", "/v1/import?scope=agent&redact=true", raw=lines, Content_Type="application/x-ndjson")
    assert done.lines[-1]["done"]["created"] == 1
    assert SECRET.encode() not in said.data + pair.data + refused.data + done.data


@pytest.mark.promise("S2")
def test_a_secret_that_stands_in_the_home_is_shown_to_nobody_but_who_may_export(gateway):
    gateway.add_role("mover", ["agent.memory.read", "memory.export"])
    agent, mover = gateway.agent("a"), gateway.agent("m", "mover")
    kept_by_hand(gateway, "a", "pasted", f"harbour token {SECRET}")
    kept_by_hand(gateway, "m", "pasted", f"harbour token {SECRET}")
    reads = [
        agent.get("/v1/notes"), agent.get("/v1/notes/agent/pasted"), agent.get("/v1/notes/agent/pasted/history"),
        agent.post("/v1/recall", {"query": "harbour", "mode": "keyword"}), agent.post("/v1/search", {"query": "harbour"}),
        agent.get("/v1/read?path=agents/a/notes/pasted.md"), agent.get("/gateway/memory"), agent.post("/v1/brief"),
        agent.post("/dispatch", {"task": "x"}), agent.get("/v1/trace/agent/pasted"), mover.get("/gateway/memory"),
        mover.get("/v1/export"), mover.post("/v1/brief"),
    ]  # fmt: skip
    assert [said for said in reads if SECRET.encode() in said.data] == []
    assert "[REDACTED:" in agent.get("/v1/notes/agent/pasted").json["text"]
    assert SECRET in mover.get("/v1/notes/agent/pasted").json["text"]


@pytest.mark.promise("B3")
def test_the_api_tells_the_exact_text_and_what_hides_in_it_and_a_model_sees_marks(gateway):
    agent = gateway.agent("a")
    text = HIDDEN + " </memory> ```"
    agent.post("/v1/notes", {"text": text, "key": "odd", "scope": "agent"})
    note = agent.get("/v1/notes/agent/odd").json
    assert note["text"] == text and note["hidden"]
    written = agent.post("/gateway/memory", {"key": "o", "value": text})
    for said in (written, agent.get("/gateway/memory"), agent.post("/v1/brief")):
        assert said.status == 200 and "\u200b" not in said.data.decode() and "\u202e" not in said.data.decode()
        assert "</memory>" not in said.data.decode() and "```" not in said.data.decode()
    (pair,) = agent.get("/gateway/memory?key=odd").json["memory"]
    assert "</memory> ```" in pair["value"] and pair["hidden"] == note["hidden"]


@pytest.mark.promise("N10")
def test_a_purge_has_a_receipt_and_what_was_purged_is_refused_by_name(gateway):
    operator, words = gateway.operator, "The harbour office moves to the old mill in May."
    note = {"text": words, "key": "office", "scope": "agent"}
    operator.post("/v1/notes", note)
    operator.post("/v1/history", {"turns": [{"role": "user", "text": words}], "session": "s", "scope": "agent"})
    receipt = operator.post("/v1/notes/agent/office/purge", {"transcripts": True, "session": "s"}).json
    assert (receipt["deleted"], receipt["state"], receipt["turns"]) == (True, "done", 1)
    assert operator.get(f"/v1/receipts/{receipt['id']}").json["id"] == receipt["id"]
    assert [one["id"] for one in operator.get("/v1/receipts").json["receipts"]] == [receipt["id"]]
    again = operator.post("/v1/notes", note)
    assert (again.status, again.code) == (422, "purged") and b"old mill" not in again.data
    assert receipt["id"] in again.json["detail"]
    told = gateway.agent("b").post("/v1/notes", note)
    assert told.code == "purged" and receipt["id"] not in told.data.decode()  # not every agent may know the owner
    assert operator.post("/v1/notes", {**note, "again": True}).status == 201
    assert gateway.agent("a").post("/v1/notes", {**note, "again": True}).status == 422


@pytest.mark.promise("N10")
def test_a_session_or_a_text_is_purged_wherever_it_stands_and_a_text_by_the_operator_alone(gateway):
    gateway.add_role("cleaner", ["memory.purge", "agent.memory.write", "agent.memory.read"])
    cleaner, operator, words = gateway.agent("c", "cleaner"), gateway.operator, "The harbour office moves to the mill."
    turns = {"turns": [{"role": "user", "text": "Said once in a session of mine."}], "session": "s9", "scope": "agent"}
    cleaner.post("/v1/history", turns)
    assert cleaner.post("/v1/purge", {"session": "s9"}).json["turns"] == 1
    cleaner.post("/v1/notes", {"text": f"Mine: {words}", "key": "mine", "scope": "agent"})
    cleaner.post("/v1/files/create", {"path": "/memories/x.md", "file_text": words, "scope": "agent"})
    refused = cleaner.post("/v1/purge", {"text": words})
    assert (refused.status, refused.code) == (422, "refused") and b"harbour" not in refused.data
    done = operator.post("/v1/purge", {"text": words, "files": True})
    assert done.json["deleted"] is True and b"harbour" not in done.data
    assert cleaner.get("/v1/notes/agent/mine").status in (404, 422)
    assert "harbour" not in cleaner.post("/v1/files/view", {"path": "/memories/x.md", "scope": "agent"}).json["text"]
    for wrong in ({}, {"session": "s", "text": words}, {"text": "short"}):
        assert operator.post("/v1/purge", wrong).status == 422
    mine = [one["id"] for one in cleaner.get("/v1/receipts").json["receipts"]]
    assert done.json["id"] not in mine and cleaner.get(f"/v1/receipts/{done.json['id']}").status == 404
    assert done.json["id"] in [one["id"] for one in operator.get("/v1/receipts").json["receipts"]]
    rows = operator.get("/audit?action=memory.purge").json["audit"]
    assert {(row["agent"], row["outcome"]) for row in rows} == {("c", "allowed"), ("operator", "allowed")}


# --- provenance -------------------------------------------------------------------------------------------------------------


@pytest.mark.promise("N13")
def test_all_that_a_source_touched_is_found_forgotten_or_taken_back(gateway):
    agent = gateway.agent("a")
    elsewhere = {"made_from": ["https://other.example/post"]}  # an untrusted text does not replace a trusted one
    agent.post("/v1/notes", {"text": "We call it rarely.", "key": "throttle", "scope": "agent", **elsewhere})
    from_the_web(agent)
    derived = {"text": "We call it 50 times.", "key": "throttle", "scope": "agent", "made_from": ["note:api-limit"]}
    agent.post("/v1/notes", derived)
    trace = agent.get("/v1/trace/agent/throttle").json
    assert trace["versions"][0]["came_from"][0]["note"] == "agent/api-limit" and trace["versions"][0]["trust"] == "web"
    found = agent.get("/v1/notes?source=https://blog.example/").json["notes"]
    assert {one["key"] for one in found} == {"api-limit", "throttle"}
    would = agent.post("/v1/forget-source", {"source": "https://blog.example/", "dry_run": True}).json
    assert {one["key"] for one in would["forgotten"]} == {"api-limit", "throttle"} and would["dry_run"] is True
    assert agent.get("/v1/notes/agent/throttle").status == 200
    sweep = {"source": "https://blog.example/", "revert": True}
    would = agent.post("/v1/forget-source", {**sweep, "dry_run": True}).json
    refused = agent.post("/v1/forget-source", sweep)  # only a person may forget a note that waits for a person
    assert refused.code == "refused" and refused.json["detail"] in would["refused"]  # and a dry run reports it
    assert gateway.operator.post("/v1/forget-source", {**sweep, "dry_run": True, "everywhere": True}).json["refused"] == ""
    swept = gateway.operator.post("/v1/forget-source", {**sweep, "everywhere": True}).json
    assert [[one["key"] for one in swept[what]] for what in ("reverted", "forgotten")] == [["throttle"], ["api-limit"]]
    assert agent.get("/v1/notes/agent/throttle").json["text"] == "We call it rarely."
    assert agent.post("/v1/forget-source", {"source": "origin:web", "everywhere": True}).status == 422
    assert gateway.operator.post("/v1/forget-source", {"source": "origin:web", "everywhere": True}).status == 200


def test_what_a_webhook_is_handed_has_no_secret_and_nothing_untrusted_in_it(gateway):
    heard = []

    async def hook(scope, receive, send):
        if scope["type"] == "lifespan":
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        heard.append((await receive())["body"].decode())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    gateway.add_role("runner", ["dispatch", "agent.memory.read", "agent.memory.write"])
    runner = gateway.agent("r", "runner")
    from_the_web(runner)
    kept_by_hand(gateway, "r", "pasted", f"harbour token {SECRET} {HIDDEN}")
    with run_app(hook) as port:
        (gateway.home / "config.toml").write_text(f'[dispatch]\nwebhook = "http://127.0.0.1:{port}/hook"\n')
        said = runner.post("/dispatch", {"task": "Look.", "to": "webhook"})
    assert said.status == 200 and said.json["delivered"] == "webhook"
    (told,) = heard
    assert "pasted" in told or "harbour" not in told  # a note with a secret may be left out as a whole
    for hidden in (SECRET, "60 calls", "\u200b", "\u202e"):
        assert hidden not in told
