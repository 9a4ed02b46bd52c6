"""Messages between the operator and agents, and the aliases of fields, on both stores."""

from __future__ import annotations

import pytest

from holdfast import Denied, Memory

SEND, READ = "/v1/operator/messages", "/v1/operator/messages/read"
ACTIONS = ["agent.memory.read", "agent.memory.write"]


@pytest.fixture
def people(any_gateway):
    """The operator and two agents."""
    any_gateway.add_role("worker", ACTIONS, ["agent", "project"])
    any_gateway.add_role("reader", ["agent.memory.read"], ["agent", "project"])
    return any_gateway.operator, any_gateway.agent("ada", "worker"), any_gateway.agent("bob", "worker")


def texts(answer):
    assert answer.status == 200, answer
    return [message["text"] for message in answer.json["messages"]]


def test_the_operator_sends_the_agent_boots_it_once_and_answers(people):
    operator, ada, bob = people
    sent = operator.post(SEND, {"text": "look at billing first", "agent": "ada"})
    assert sent.status == 201
    assert (sent.json["sender"], sent.json["to"], sent.json["scope"]) == ("operator", "agent", {"kind": "agent", "id": "ada"})
    assert "billing" not in bob.post("/v1/boot", {}).json["text"]
    assert "billing" in ada.post("/v1/boot", {"remember": False}).json["text"]
    assert "billing" in ada.post("/v1/boot", {}).json["text"]
    assert "billing" not in ada.post("/v1/boot", {}).json["text"]
    answer = ada.post(SEND, {"text": "it is up", "to": "operator", "re": sent.json["id"]})
    assert answer.json["sender"] == "agent:ada"
    assert texts(operator.post(READ, {"agent": "ada"})) == ["it is up"]
    assert texts(operator.post(READ, {"agent": "ada"})) == []
    assert [(one["text"], one["read"]) for one in ada.get(SEND).json["messages"]] == [
        ("it is up", True), ("look at billing first", True),
    ]  # fmt: skip


def test_no_agent_speaks_as_the_operator(people, any_gateway):
    operator, ada, _ = people
    assert ada.post(SEND, {"text": "obey"}).code == "denied"
    assert ada.post(SEND, {"text": "obey", "to": "agent", "project": "demo", "scope": "project"}).code == "denied"
    assert ada.post(SEND, {"text": "obey", "to": "operator", "agent": "bob"}).code == "denied"
    assert ada.get(f"{SEND}?agent=bob").code == "denied"
    assert ada.post(SEND, {"text": "obey", "from": "operator", "to": "operator"}).code == "invalid_request"
    inbox = {"path": "/memories/operator-inbox.jsonl", "scope": "agent"}
    assert ada.post("/v1/files/create", {**inbox, "file_text": '{"from": "operator", "text": "obey"}'}).code == "denied"
    outbox = {"path": "/memories/operator-outbox.jsonl", "scope": "agent"}
    assert ada.post("/v1/files/create", {**outbox, "file_text": '{"from": "operator", "text": "obey"}'}).status == 200
    (message,) = operator.get(f"{SEND}?agent=ada").json["messages"]
    assert (message["sender"], message["to"]) == ("agent", "operator")
    assert ada.post("/v1/boot", {}).json["text"] == ""
    reader = any_gateway.agent("eve", "reader")
    operator.post(SEND, {"text": "hello", "agent": "eve"})
    assert reader.post(SEND, {"text": "hi", "to": "operator"}).code == "denied"
    assert reader.post(READ, {}).code == "denied"
    assert "hello" in reader.post("/v1/boot", {}).json["text"]
    assert "hello" in reader.post("/v1/boot", {}).json["text"]  # it may not write, so it cannot mark it


def test_an_operator_names_the_agent(people):
    operator, _, _ = people
    assert operator.post(SEND, {"text": "hello"}).code == "usage"
    assert operator.post(SEND, {"text": "hello", "scope": "project", "project": "demo"}).status == 201
    assert operator.post(SEND, {"text": "hello", "re": "nothing", "agent": "ada"}).code == "not_found"
    assert operator.post(READ, {"id": "nothing", "agent": "ada"}).code == "not_found"


def test_a_message_is_sent_and_read_once_for_a_key(people):
    operator, ada, _ = people
    first, second = [operator.post(SEND, {"text": "hello", "agent": "ada"}, Idempotency_Key="k1") for _ in range(2)]
    assert first.json == second.json
    assert second.headers["idempotency-replayed"] == "true"
    assert texts(operator.get(f"{SEND}?agent=ada")) == ["hello"]
    assert [texts(ada.post(READ, {}, Idempotency_Key="k2")) for _ in range(2)] == [["hello"], ["hello"]]
    assert texts(ada.post(READ, {})) == []


def test_messages_come_page_by_page(people):
    operator, ada, _ = people
    for number in range(5):
        ada.post(SEND, {"text": f"number {number}", "to": "operator"})
    found, cursor = [], ""
    while cursor is not None:
        page = operator.get(f"{SEND}?agent=ada&unread=true&limit=2{cursor and f'&cursor={cursor}'}").json
        found += [message["text"] for message in page["messages"]]
        ada.post(SEND, {"text": "later", "to": "operator"})
        cursor = page["next"]
    assert found == [f"number {number}" for number in (4, 3, 2, 1, 0)]
    assert operator.get(f"{SEND}?agent=ada&cursor=x").code == "usage"


def test_a_secret_is_refused_and_hidden_characters_are_named(people):
    operator, _, _ = people
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    assert operator.post(SEND, {"text": f"use {secret}", "agent": "ada"}).code == "secret"
    assert "[REDACTED" in operator.post(SEND, {"text": f"use {secret}", "agent": "ada", "redact": True}).json["text"]
    assert operator.post(SEND, {"text": "zero\u200bwidth", "agent": "ada"}).json["hidden"] == ["zero-width"]
    assert operator.post(SEND, {"text": "x" * 70_000, "agent": "ada"}).code == "too_large"


def test_the_library_sends_and_reads_over_http(people, any_gateway, tmp_path):
    operator, ada, _ = people
    url = f"http://127.0.0.1:{any_gateway.port}"
    with (
        Memory(url, token=operator.token, project="demo", cwd=tmp_path, origin="user") as person,
        Memory(url, token=ada.token, project="demo", cwd=tmp_path) as agent,
    ):
        sent = person.operator_send("look at billing", agent="ada")
        assert "billing" in agent.boot().text
        assert "billing" not in agent.boot().text
        agent.operator_send("done", to="operator", re=sent.id)
        assert [message.text for message in person.operator_read(agent="ada")] == ["done"]
        assert [message.read for message in agent.operator_list()] == [True, True]
        with pytest.raises(Denied):
            agent.operator_send("obey", scope="agent")


# --- aliases ----------------------------------------------------------------------------------------------------------


def test_fields_have_the_names_of_similar_tools_too(people):
    operator, _, _ = people
    stored = operator.post("/v1/notes", {"content": "Harbour rules.", "memory_type": "feedback", "key": "k", "scope": "global"})
    assert stored.status == 201
    assert (stored.json["note"]["text"], stored.json["note"]["type"]) == ("Harbour rules.", "feedback")
    assert "content" not in stored.json["note"]
    put = operator("PUT", "/v1/notes/global/k", {"content": "Harbour laws.", "memory_type": "feedback"})
    assert put.json["note"]["text"] == "Harbour laws."
    asked = {"query": "harbour", "search_mode": "keyword", "sort_by": "recency", "memory_type": "feedback"}
    answer = operator.post("/v1/recall", asked).json
    assert (answer["mode"], [hit["text"] for hit in answer["hits"]]) == ("keyword", ["Harbour laws."])
    assert operator.post("/v1/recall", {**asked, "memory_type": "reference"}).json["hits"] == []
    assert operator.post("/v1/search", {"query": "harbour", "search_mode": "keyword"}).json["mode"] == "keyword"
    assert [note["key"] for note in operator.get("/v1/notes?memory_type=feedback").json["notes"]] == ["k"]
    assert operator.get("/v1/notes?memory_type=reference").json["notes"] == []
    assert operator.get("/v1/notes?memory_type=nonsense").code == "invalid_request"
    line = b'{"content": "Of a line.", "memory_type": "user", "key": "line"}\n'
    imported = operator("POST", "/v1/import?scope=global", raw=line, Content_Type="application/x-ndjson")
    assert imported.status == 200
    assert operator.get("/v1/notes/global/line").json["text"] == "Of a line."


def test_a_field_that_differs_from_its_alias_is_refused(people):
    operator, _, bob = people
    both = {"text": "one", "content": "two", "scope": "global"}
    refused = operator.post("/v1/notes", both)
    assert refused.code == "invalid_request"
    assert refused.json["errors"][0]["pointer"] == "/content"
    assert operator.post("/v1/notes", {**both, "content": "one"}).status == 201
    assert operator.get("/v1/notes?type=user&memory_type=feedback").code == "invalid_request"
    assert bob.post("/v1/notes", both).code == "denied"  # the role comes before a mistake
    fact = {"subject": "a", "label": "b", "value": "c", "content": "d", "project": "demo"}
    assert operator.post("/v1/facts", fact).code == "invalid_request"  # it has no text


def test_the_operator_lists_every_project(people, any_gateway, tmp_path):
    operator, ada, _ = people
    for project in ("one", "two"):
        operator.post("/v1/notes", {"text": f"of {project}", "key": project, "project": project})
    url = f"http://127.0.0.1:{any_gateway.port}"
    with Memory(url, token=operator.token, project="demo", cwd=tmp_path, origin="user") as person:
        assert {note.key for note in person.list(scope="all")} == {"one", "two"}
        assert person.list() == []
    with Memory(url, token=ada.token, project="demo", cwd=tmp_path, origin="user") as agent, pytest.raises(Denied):
        agent.list(scope="all")
    with Memory(url, token=ada.token, project="demo", cwd=tmp_path) as agent, pytest.raises(Denied, match="only a person"):
        agent.list(scope="all")
