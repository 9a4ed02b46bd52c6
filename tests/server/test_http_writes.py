"""Writes over HTTP: once per idempotency key, conditional on a version, in bulk; and lists page by page."""

from __future__ import annotations

import http.client
import json
import threading
import tracemalloc

import pytest

from holdfast import Memory
from holdfast.errors import DiskTrouble, Unsure
from holdfast.server.routes import bulk
from holdfast.verbs import batching

NOTE = {"text": "Harbour words.", "key": "harbour", "scope": "agent"}
LINES = "application/x-ndjson"


# --- idempotency --------------------------------------------------------------------------------------------------------


def test_a_write_with_a_key_is_done_once_and_answered_the_same(gateway):
    agent = gateway.agent("a")
    first = agent.post("/v1/notes", NOTE, Idempotency_Key="one")
    agent.post("/v1/notes", {**NOTE, "text": "Changed since."})
    again = agent.post("/v1/notes", NOTE, Idempotency_Key="one")
    assert (first.status, first.json["action"]) == (again.status, again.json["action"]) == (201, "created")
    assert "idempotency-replayed" not in first.headers and again.headers["idempotency-replayed"] == "true"
    assert agent.get("/v1/notes/agent/harbour").json["text"] == "Changed since."
    assert again.json["note"]["text"] == "Changed since."  # the current note: the ledger stores no text
    assert b"Harbour words." not in (gateway.home / "ledger.db").read_bytes()


def test_a_key_is_for_one_request_of_one_agent(gateway):
    agent, other = gateway.agent("a"), gateway.agent("b")
    agent.post("/v1/notes", NOTE, Idempotency_Key="one")
    said = agent.post("/v1/notes", {**NOTE, "text": "Another."}, Idempotency_Key="one")
    assert (said.status, said.code) == (422, "reused_key")
    assert other.post("/v1/notes", {**NOTE, "text": "Another."}, Idempotency_Key="one").status == 201
    assert agent.post("/v1/notes", NOTE, Idempotency_Key="x" * 201).code == "invalid_request"


def test_what_was_refused_may_be_tried_again_with_the_same_key(gateway):
    agent = gateway.agent("a")
    assert agent.post("/v1/notes/agent/none/restore").code == "not_found"
    wrong = {**NOTE, "valid_to": "2001-01-01"}
    assert agent.post("/v1/notes", wrong, Idempotency_Key="one").status == 422
    assert agent.post("/v1/notes", wrong, Idempotency_Key="one").status == 422  # and not "in progress"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/gateway/memory", {"key": "k", "value": "v"}),
        ("/v1/facts", {"subject": "S", "label": "l", "value": "v", "on": "2026-03-27", "scope": "agent"}),
        ("/v1/history", {"turns": [{"role": "user", "text": "Said."}], "session": "s", "scope": "agent"}),
    ],
)
def test_every_write_with_a_key_answers_the_same_again(gateway, path, body):
    agent = gateway.agent("a")
    first, again = [agent.post(path, body, Idempotency_Key="one") for _ in range(2)]
    assert first.status == again.status and first.json == again.json and again.headers["idempotency-replayed"]


def test_of_many_with_one_key_one_is_done(gateway):
    agent, said = gateway.agent("a"), []
    threads = [
        threading.Thread(target=lambda: said.append(agent.post("/v1/notes", NOTE, Idempotency_Key="one"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {one.status for one in said} <= {201, 409}
    done = [one for one in said if one.status == 201 and "idempotency-replayed" not in one.headers]
    assert len(done) == 1
    assert agent.get("/v1/notes/agent/harbour").json["versions"] == 1


# --- bulk -------------------------------------------------------------------------------------------------------------------


def test_writes_that_come_at_once_are_each_kept_answered_and_written_down(gateway):
    agents = [gateway.agent(f"a-{number}") for number in range(3)]
    secretary = gateway.agent("secretary", "secretary")
    said_by = [(agents[number % 3], f"Words of {number}.", f"n-{number}") for number in range(24)]
    asked = [(agent, {"text": text, "key": key, "scope": "agent"}) for agent, text, key in said_by]
    asked += [(agents[0], {"text": "Words.", "key": "NO KEY", "scope": "agent"}), (secretary, NOTE)]
    start, said = threading.Barrier(len(asked)), {}

    def ask(number):
        client, body = asked[number]
        start.wait()
        said[number] = client.post("/v1/notes", body)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(asked))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [said[number].status for number in range(len(asked))] == [201] * 24 + [422, 403]
    assert [said[number].json["note"]["text"] for number in range(24)] == [f"Words of {number}." for number in range(24)]
    for place, agent in enumerate(agents):
        kept = {note["key"] for note in agent.get("/v1/notes?scope=agent").json["notes"]}
        assert kept == {f"n-{number}" for number in range(24) if number % 3 == place}
    rows = gateway.operator.get("/audit?limit=500").json["audit"]
    decided = [(row["outcome"], row["agent"]) for row in rows if row["metadata"].get("route") == "POST /v1/notes"]
    assert decided.count(("denied", "secretary")) == 1
    assert [decided.count(("allowed", f"a-{number}")) for number in range(3)] == [9, 8, 8]
    assert gateway.operator.get("/audit/verify").json["ok"] is True


# --- conditional on a version ---------------------------------------------------------------------------------------------


def test_an_edit_names_the_version_it_saw_and_loses_to_a_newer_one(gateway):
    agent = gateway.agent("a")
    put = "/v1/notes/agent/harbour"
    made = agent("PUT", put, {"text": "One."}, If_None_Match="*")
    assert made.status == 201
    seen = agent.get(put).headers["etag"]
    assert seen == made.headers["etag"]
    assert agent("PUT", put, {"text": "Two."}, If_Match=seen).status == 200
    for headers in ({"If_Match": seen}, {"If_None_Match": "*"}, {"If_Match": '"nonsense"'}):
        said = agent("PUT", put, {"text": "Three."}, **headers)
        assert (said.status, said.code) == (412, "precondition")
    assert agent("DELETE", put, If_Match=seen).code == "precondition"
    assert agent.get(put).json["text"] == "Two."
    now = agent.get(put).headers["etag"]
    assert agent("DELETE", put, If_Match=now).json["deleted"] is True
    assert agent("PUT", put, {"text": "Four."}, If_Match="*").code == "precondition"
    assert agent("PUT", put, {"text": "Four."}, If_Match='""').code == "precondition"
    assert agent("PUT", put, {"text": "Four."}).json["action"] == "created"


def test_what_has_not_changed_is_not_sent_again(gateway):
    agent = gateway.agent("a")
    tag = agent.post("/v1/notes", NOTE).headers["etag"]
    said = agent.get("/v1/notes/agent/harbour", If_None_Match=f'"other", {tag}')
    assert said.status == 304 and said.data == b"" and said.headers["etag"] == tag
    assert agent.get("/v1/notes/agent/harbour", If_None_Match='"other"').status == 200


def test_a_note_can_be_read_as_it_was(gateway):
    agent = gateway.agent("a")
    agent("PUT", "/v1/notes/agent/deploys", {"text": "On Fridays.", "valid_from": "2026-01-05"})
    agent("PUT", "/v1/notes/agent/deploys", {"text": "On Tuesdays.", "valid_from": "2026-03-27"})
    assert agent.get("/v1/notes/agent/deploys?as_of=2026-02-01").json["text"] == "On Fridays."
    assert agent.get("/v1/notes/agent/deploys?as_of=2026-99-99").code == "usage"
    assert agent.get("/v1/notes/agent/deploys?as_of=nonsense").code == "invalid_request"


# --- page by page ---------------------------------------------------------------------------------------------------------


def test_pages_give_every_note_once_in_the_order_of_the_list(gateway):
    agent = gateway.agent("a")
    with Memory(gateway.home, agent="a", project="demo") as memory:
        memory.store_many(
            [{"text": f"Note {n}.", "key": f"n{n}", "pinned": n % 9 == 0, "tags": ["even"] * (1 - n % 2)} for n in range(57)],
            scope="agent",
        )
        expected = [note.key for note in memory.list(scope="agent")]
    for limit in (1, 10, 56, 57, 58, 500):
        seen, cursor = [], ""
        while cursor is not None:
            page = agent.get(f"/v1/notes?scope=agent&limit={limit}" + (f"&cursor={cursor}" if cursor else "")).json
            assert len(page["notes"]) <= limit
            seen += [note["key"] for note in page["notes"]]
            cursor = page["next"]
        assert seen == expected, limit
    first = agent.get("/v1/notes?tags=even&limit=20").json
    rest = agent.get(f"/v1/notes?tags=even&limit=20&cursor={first['next']}").json
    assert len(first["notes"]) + len(rest["notes"]) == 29 and rest["next"] is None
    for wrong in ("x", "%00", "AAAA", "e30"):
        assert agent.get(f"/v1/notes?cursor={wrong}").status == 422


# --- bulk -----------------------------------------------------------------------------------------------------------------


def rows(count, size=40):
    return b"".join(json.dumps({"key": f"n{n}", "text": f"Line {n} " + "x" * size}).encode() + b"\n" for n in range(count))


def test_many_lines_are_kept_with_progress_and_come_out_as_they_went_in(gateway):
    gateway.add_role("mover", ["agent.memory.read", "agent.memory.write", "memory.export"])
    agent, other = gateway.agent("a", "mover"), gateway.agent("b", "mover")
    said = agent("POST", "/v1/import?scope=agent", raw=rows(1200), Content_Type=LINES)
    assert said.status == 200 and said.headers["content-type"] == LINES
    assert [line["progress"]["line"] for line in said.lines[:-1]] == [500, 1000, 1200]
    assert said.lines[-1] == {"done": {"line": 1200, "created": 1200, "updated": 0, "unchanged": 0}}
    out = agent.get("/v1/export?scope=agent")
    assert {line["key"]: line["text"] for line in out.lines} == {f"n{n}": f"Line {n} " + "x" * 40 for n in range(1200)}
    assert other("POST", "/v1/import?scope=agent", raw=out.data, Content_Type=LINES).lines[-1]["done"]["created"] == 1200
    theirs = other.get("/v1/export?scope=agent").lines
    assert [(line["key"], line["text"], line["type"]) for line in theirs] == [
        (line["key"], line["text"], line["type"]) for line in out.lines
    ]
    again = other("POST", "/v1/import?scope=agent", raw=out.data, Content_Type=LINES)
    assert again.lines[-1]["done"]["unchanged"] == 1200
    assert gateway.agent("reviewer").get("/v1/export").code == "denied"


def test_a_bad_line_is_named_and_what_came_before_it_stays(gateway):
    agent = gateway.agent("a")
    said = agent("POST", "/v1/import?scope=agent", raw=rows(600) + b"{nonsense\n" + rows(1), Content_Type=LINES)
    last = said.lines[-1]
    assert last["failed"]["created"] == 500 and "line 601" in last["problem"]["detail"]
    for wrong in (b"{nonsense", b"[]", b'{"text": "x", "origin": "user"}', b'{"text": ""}', b'{"key": "k"}', b"\xff"):
        refused = agent("POST", "/v1/import?scope=agent", raw=wrong + b"\n", Content_Type=LINES)
        assert refused.status == 422, wrong
    assert agent("POST", "/v1/import?scope=agent", raw=b"\n\n", Content_Type=LINES).lines == [
        {"done": {"line": 0, "created": 0, "updated": 0, "unchanged": 0}}
    ]
    long = b'{"text": "' + b"x" * 15_000_000
    assert agent("POST", "/v1/import?scope=agent", raw=long, Content_Type=LINES).status == 413
    assert gateway.agent("typist", "secretary")("POST", "/v1/import?scope=agent", raw=rows(1), Content_Type=LINES).status == 403


def test_an_import_is_told_how_far_it_is_while_it_sends(gateway):
    agent = gateway.agent("a")
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
    connection.putrequest("POST", "/v1/import?scope=agent")
    sent = {"Authorization": f"Bearer {agent.token}", "Content-Type": LINES, "Transfer-Encoding": "chunked"}
    for name, value in sent.items():
        connection.putheader(name, value)
    connection.endheaders()

    def send(data):
        connection.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    send(rows(500))
    said = connection.getresponse()
    assert json.loads(said.readline())["progress"]["created"] == 500  # and the rest has not been sent yet
    send(rows(501)[len(rows(500)) :])
    connection.send(b"0\r\n\r\n")
    assert json.loads(said.readline())["progress"]["created"] == 501
    assert json.loads(said.readline())["done"]["line"] == 501
    connection.close()


def test_an_export_holds_few_notes_at_a_time(gateway):
    with Memory(gateway.home, agent="operator", project="demo") as memory:
        for part in range(4):
            many = [{"text": f"{part} {number} " + "x" * 1000, "key": f"p{part}n{number}"} for number in range(300)]
            memory.store_many(many, scope="agent")
    gateway.operator.get("/v1/notes?limit=1")
    tracemalloc.start()
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    connection.request("GET", "/v1/export?scope=agent", headers={"Authorization": f"Bearer {gateway.operator.token}"})
    response = connection.getresponse()
    count = sum(1 for _ in response)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    connection.close()
    assert count == 1200 and peak < 1536 * 1024, peak  # 2.4 MB in all, each text once as it is and once as a version


def test_an_export_line_is_what_an_import_takes(memory):
    note = memory.store("Words.", key="k", tags="a,b", pinned=True, valid_from="2026-01-01", valid_to="2030-01-01").note
    (line,) = memory.export()
    memory.forget("k")
    memory.store_many([bulk.parse_line(json.dumps(line).encode())])
    again = memory.get("k")
    assert (again.tags, again.pinned, again.valid_from, again.valid_to) == (note.tags, True, note.valid_from, note.valid_to)


def test_a_body_may_begin_with_a_byte_order_mark_as_lines_may(gateway):
    said = gateway.agent("a")("POST", "/v1/notes", raw=b'\xef\xbb\xbf{"text": "x", "key": "k", "scope": "agent"}')
    assert (said.status, said.json["note"]["text"]) == (201, "x")


def test_a_secret_in_a_line_is_kept_as_the_advice_says(gateway):
    text = "log in with ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    agent, row = gateway.agent("a"), json.dumps({"text": text}).encode() + b"\n"
    said = agent("POST", "/v1/import?scope=agent", raw=row, Content_Type=LINES)
    assert said.code == "secret" and "`?redact=true`" in said.json["fix"] and '{"redact"' not in said.json["fix"]
    assert agent("POST", "/v1/import?scope=agent&redact=true", raw=row, Content_Type=LINES).lines[-1]["done"]["created"] == 1
    many = agent("POST", "/v1/import?scope=agent", raw=rows(500) + row, Content_Type=LINES).lines[-1]["problem"]
    assert many["line"] == 501 and "`?redact=true`" in many["fix"]
    one = agent("POST", "/v1/notes", {"text": text, "scope": "agent"})
    assert '`{"redact": true}`' in one.json["fix"]


def test_who_names_no_session_is_told_how_over_http(gateway):
    ask = gateway.operator
    fix = "Send X-Holdfast-Session, or use another scope"
    for said in (
        ask("POST", "/v1/notes", {"text": "x", "scope": "session"}),
        ask("POST", "/v1/import", raw=b'{"text": "x", "scope": "session"}\n', Content_Type=LINES),
    ):
        assert (said.code, said.json["fix"]) == ("no_scope", fix)
    said = ask("POST", "/v1/history", {"turns": [{"role": "user", "text": "x"}], "scope": "agent"})
    assert (said.code, said.json["fix"]) == ("no_scope", "Send X-Holdfast-Session, or name it as `session`")
    assert ask("POST", "/v1/notes", {"text": "x", "scope": "session"}, X_Holdfast_Session="s1").status == 201


def test_of_several_versions_one_that_fits_is_enough(gateway):
    agent = gateway.agent("a")
    put = "/v1/notes/agent/harbour"
    seen = agent("PUT", put, {"text": "One."}).headers["etag"]
    assert agent("PUT", put, {"text": "Two."}, If_Match=f'"zzz", {seen}').status == 200
    assert agent("PUT", put, {"text": "Three."}, If_Match=f'"zzz", {seen}').code == "precondition"


@pytest.mark.promise("S2")
def test_no_project_or_session_is_named_by_a_secret_and_a_token_of_ours_is_one(gateway):
    agent = gateway.agent("a")
    secret = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    for header in ("X_Holdfast_Project", "X_Holdfast_Session"):
        note = {"text": "One.", "key": "k", "scope": header[11:].lower()}
        said = gateway.operator("POST", "/v1/notes", note, **{header: secret})
        assert said.code == "secret" and secret not in said.data.decode()
    ours = agent.token
    said = agent.post("/gateway/memory", {"key": "k", "value": f"use {ours} for it"})
    assert said.code == "secret" and ours not in said.data.decode()


# --- what is stored of a request --------------------------------------------------------------------------------------


def test_a_key_may_be_any_text_and_the_ledger_keeps_none(gateway):
    agent = gateway.agent("a")
    assert agent.post("/v1/notes", NOTE, Idempotency_Key="The combination is 1234").status == 201
    assert agent.post("/v1/notes", NOTE, Idempotency_Key="The combination is 1234").headers["idempotency-replayed"] == "true"
    assert not [path for path in gateway.home.glob("ledger.db*") if b"combination" in path.read_bytes()]


def test_a_write_that_was_done_is_answered_also_where_that_cannot_be_noted(gateway, monkeypatch):
    def full(*given, **named):
        raise DiskTrouble("the disk is full", "Make room")

    agent = gateway.agent("a")
    monkeypatch.setattr("holdfast.ledger.idempotency.IdempotencyKeys.finish", full)
    assert agent.post("/v1/notes", NOTE, Idempotency_Key="one").status == 201
    said = agent("POST", "/v1/import?scope=agent", raw=rows(1), Content_Type=LINES, Idempotency_Key="two")
    assert said.lines[-1]["done"]["created"] == 1
    monkeypatch.setattr("holdfast.ledger.idempotency.IdempotencyKeys.drop", full)
    assert agent.post("/v1/notes", {**NOTE, "valid_to": "2001-01-01"}, Idempotency_Key="three").status == 422  # not 507


@pytest.mark.parametrize("kind", ["unsure", "no standby"])
def test_a_write_that_may_be_done_is_not_done_again_at_once(gateway, monkeypatch, kind):
    """Its answer was lost, or no standby has it yet; one that is surely not done may be tried again."""
    agent, keep = gateway.agent("a"), batching.write_notes

    def failing(error):
        def kept(*given, **named):
            keep(*given, **named)
            raise error

        return kept

    doubtful = Unsure("the answer was lost") if kind == "unsure" else DiskTrouble("no standby has confirmed it")
    doubtful.may_be_done = True
    for error, then in ((doubtful, 409), (DiskTrouble("the disk is full"), 200)):
        key = {"Idempotency_Key": str(then)}
        monkeypatch.setattr(batching, "write_notes", failing(error))
        assert agent.post("/v1/notes", NOTE, **key).status == error.http_status
        monkeypatch.setattr(batching, "write_notes", keep)
        assert agent.post("/v1/notes", NOTE, **key).status == then


def test_an_import_that_may_be_done_is_not_done_again_at_once(gateway, monkeypatch):
    def lost(*given, **named):
        raise Unsure("the answer was lost")

    agent, keep = gateway.agent("a"), Memory.store_many
    told = {"raw": rows(1), "Content_Type": LINES, "Idempotency_Key": "one"}
    monkeypatch.setattr(Memory, "store_many", lost)
    assert agent("POST", "/v1/import?scope=agent", **told).status == 503
    monkeypatch.setattr(Memory, "store_many", keep)
    assert agent("POST", "/v1/import?scope=agent", **told).status == 409


def test_an_answer_that_is_told_again_has_the_rules_and_outlives_its_note(gateway):
    agent = gateway.agent("a")
    secret = {"text": "The key is AKIA" + "QWERTYUIOPASDFGH.", "key": "k", "scope": "agent", "redact": True}
    first, again = [agent.post("/v1/notes", secret, Idempotency_Key="one") for _ in range(2)]
    assert first.json["redacted"] and again.json == first.json
    agent("DELETE", "/v1/notes/agent/k")
    gone = agent.post("/v1/notes", secret, Idempotency_Key="one")
    assert gone.status == 201 and gone.headers["idempotency-replayed"] == "true"
    assert {**gone.json["note"], "text": ""} == gone.json["note"]
    for name in ("key", "id", "scope", "version", "created"):
        assert gone.json["note"][name] == first.json["note"][name]
    restored = agent.post("/v1/notes/agent/k/restore", {}, Idempotency_Key="two")
    agent("DELETE", "/v1/notes/agent/k")
    again = agent.post("/v1/notes/agent/k/restore", {}, Idempotency_Key="two")
    assert (again.status, again.json["id"]) == (restored.status, restored.json["id"])


def test_a_fact_that_is_told_again_outlives_its_note(gateway):
    agent = gateway.agent("a")
    fact = {"subject": "Ada", "label": "town", "value": "Turin", "on": "2026-03-27", "scope": "agent"}
    first = agent.post("/v1/facts", fact, Idempotency_Key="one")
    agent("DELETE", f"/v1/notes/agent/{first.json['note']['key']}")
    again = agent.post("/v1/facts", fact, Idempotency_Key="one")
    assert again.status == first.status and again.json["action"] == "created"
    for name in ("subject", "label", "value", "valid_from", "scope"):
        assert again.json["fact"][name] == first.json["fact"][name]


def test_what_was_done_holds_no_secret_and_a_purge_takes_its_words_and_not_the_deed(gateway):
    operator = gateway.operator
    said = operator.post("/done", {"kind": "triage", "subject": "AKIA" + "QWERTYUIOPASDFGH"})
    assert (said.status, said.code) == (422, "secret")
    deed = {"kind": "triage", "subject": "Call Ada about the lighthouse"}
    assert operator.post("/done", deed).json == {"recorded": True}
    operator.post("/done", {**deed, "subject": "acme/shop#7"})
    operator.post("/v1/notes", {"text": "Call Ada about the lighthouse", "key": "ada", "scope": "agent"})
    receipt = operator.post("/v1/notes/agent/ada/purge").json
    assert receipt["state"] == "done" and receipt["pending"] == [], receipt
    assert not [path for path in gateway.home.glob("ledger.db*") if b"lighthouse" in path.read_bytes()]
    assert operator.get("/done/exists?kind=triage&subject=Call+Ada+about+the+lighthouse").json == {"exists": True}
    assert operator.post("/done", deed).json == {"recorded": False}
    assert [row["subject"][:7] for row in operator.get("/done").json["done"]] == ["acme/sh", "purged:"]
    said = operator.post("/done", {"kind": "other", "subject": "Call Ada about the lighthouse"})
    assert (said.status, said.code) == (422, "purged")


def test_who_is_shut_out_while_an_import_runs_imports_no_more(gateway):
    agent = gateway.agent("a")
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
    connection.putrequest("POST", "/v1/import?scope=agent")
    sent = {"Authorization": f"Bearer {agent.token}", "Content-Type": LINES, "Transfer-Encoding": "chunked"}
    for name, value in sent.items():
        connection.putheader(name, value)
    connection.endheaders()
    every = rows(1000)
    first, second = every[: len(rows(500))], every[len(rows(500)) :]
    connection.send(f"{len(first):x}\r\n".encode() + first + b"\r\n")
    said = connection.getresponse()
    assert json.loads(said.readline())["progress"]["created"] == 500
    gateway.gate.revoke("a")
    connection.send(f"{len(second):x}\r\n".encode() + second + b"\r\n")
    last = json.loads(said.readline())
    assert last["failed"]["created"] == 500 and last["problem"]["code"] == "unauthenticated"
    connection.close()
    with Memory(gateway.home, agent="a", project="demo") as memory:
        assert len(memory.list(scope="agent")) == 500


def test_an_import_that_ends_badly_does_not_say_where_the_home_is(gateway, monkeypatch):
    def full(memory, *given, **named):
        raise DiskTrouble(f"cannot write {gateway.home}/shelf", f"Make room for {gateway.home}")

    agent, keep, batches = gateway.agent("a"), Memory.store_many, []

    def second_fails(*given, **named):
        batches.append(1)
        return keep(*given, **named) if len(batches) == 1 else full(*given, **named)

    monkeypatch.setattr(Memory, "store_many", second_fails)
    said = agent("POST", "/v1/import?scope=agent", raw=rows(600), Content_Type=LINES)
    assert "HOME/shelf" in said.lines[-1]["problem"]["detail"] and str(gateway.home) not in said.data.decode()
