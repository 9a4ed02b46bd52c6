"""Review of scopes that are not the person's own: listed with their owner, and decided there, through every interface."""

from __future__ import annotations

import pytest
from test_review import at_a_terminal

from holdfast import Memory
from holdfast.cli import main
from holdfast.errors import NotFound, Refused, UsageError
from holdfast.models import Scope

PLACES = [Scope("agent", "ada"), Scope("agent", "ben"), Scope("global"), Scope("project", "demo"), Scope("project", "other"),
          Scope("session", "s1")]  # fmt: skip


@pytest.fixture
def scattered(home, tmp_path):
    """A note from the web in every kind of scope; the same key in all of them, and a unique key in one."""
    for place in PLACES:
        given = {place.kind: place.id} if place.id else {}
        with Memory(home, cwd=tmp_path, **{"project": "demo", **given}) as memory:
            memory.store(f"Of a page, for {place}.", key="page", scope=place.kind, origin="web")
            if place.id == "ben":
                memory.store("Of a page, for Ben alone.", key="bens", scope="agent", origin="web")
    return home


def told(notes):
    return sorted((str(note.scope), note.key) for note in notes)


EVERY = sorted([*[(str(place), "page") for place in PLACES], ("agent:ben", "bens")])


@pytest.mark.promise("S3")
def test_a_person_sees_and_decides_what_waits_everywhere(scattered, open_memory):
    person = open_memory(origin="user", agent="me")
    assert told(person.review()) == [("global", "page"), ("project:demo", "page")]
    assert told(person.review(everywhere=True)) == EVERY
    assert told(person.review(everywhere=True, scope="agent")) == [one for one in EVERY if one[0].startswith("agent:")]
    for number, note in enumerate(person.review(everywhere=True)):
        decide = person.approve if number % 2 else person.reject
        decide(note.key, scope=note.scope, expected=note.version)
    assert person.review(everywhere=True) == []
    ben = open_memory(agent="ben")
    kept = [note.key for note in ben.list(scope="agent")]
    assert sorted([*kept, *[one.key for one in ben.trash(scope="agent")]]) == ["bens", "page"]


@pytest.mark.promise("S3")
def test_an_agent_looks_into_no_other_scope_and_a_scope_is_no_path(scattered, open_memory):
    with pytest.raises(Refused, match="only a person"):
        open_memory(agent="me").review(everywhere=True)
    person = open_memory(origin="user", agent="me")
    for place in (Scope("agent", "nosuch"), Scope("agent", "../agents/ben"), Scope("project", "../../etc")):
        for verb in (person.approve, person.reject):
            with pytest.raises(NotFound):
                verb("page", scope=place)
    with pytest.raises(UsageError, match="scope"):
        person.review(everywhere=True, scope="nosuch")
    assert told(person.review(everywhere=True)) == EVERY


# --- the command line -------------------------------------------------------------------------------------------------


@pytest.fixture
def holdfast(home, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*words):
        capsys.readouterr()
        code = main(["--home", str(home), "--project", "mine", *words])
        return code, *capsys.readouterr()

    return run


def test_nothing_here_says_that_something_waits_elsewhere(scattered, holdfast, open_memory):
    open_memory(origin="user").reject("page", scope="global")
    code, _, said = holdfast("review")
    assert code == 0 and "No notes in quarantine here; 6 notes elsewhere: `holdfast review --everywhere`" in said
    assert holdfast("review", "--json")[1].strip() == "[]"


def test_the_command_lists_whose_each_is_and_decides_from_there(scattered, holdfast, open_memory):
    code, out, said = holdfast("review", "--everywhere")
    assert code == 0 and "agent:ben" in out and "project:other" in out and "--everywhere --approve KEY" in said
    code, _, said = holdfast("review", "--everywhere", "--approve", "page")
    assert code == 2 and "agent:ada/page" in said and "session:s1/page" in said
    assert holdfast("review", "--everywhere", "--approve", "nosuch")[0] == 1
    assert "approved page in agent:ada" in holdfast("review", "--everywhere", "--approve", "agent:ada/page")[1]
    assert "rejected bens" in holdfast("review", "--everywhere", "--reject", "bens")[1]
    assert not open_memory(agent="ada").get("page", scope="agent").quarantined
    left = told(open_memory(origin="user").review(everywhere=True))
    assert left == [one for one in EVERY if one not in (("agent:ada", "page"), ("agent:ben", "bens"))]


def test_at_a_terminal_each_is_decided_where_it_is(scattered, tmp_path, open_memory):
    code, said = at_a_terminal(scattered, tmp_path, "aaaaaaa", "review", "--everywhere")
    assert code == 0 and "[e]dit" not in said, said
    assert open_memory(origin="user").review(everywhere=True) == []


# --- the gateway ------------------------------------------------------------------------------------------------------


@pytest.mark.promise("S3")
def test_the_operator_of_a_gateway_sees_and_decides_what_waits_everywhere(scattered, gateway, tmp_path):
    found = gateway.operator.get("/v1/review?everywhere=true&limit=3").json
    assert found["waiting"] == 7 and len(found["notes"]) == 3
    rest = gateway.operator.get(f"/v1/review?everywhere=true&cursor={found['next']}").json["notes"]
    notes = [*found["notes"], *rest]
    assert sorted((str(Scope(**note["scope"])), note["key"]) for note in notes) == EVERY
    assert gateway.operator.get("/v1/review").json["waiting"] == 1  # the operator's own
    for note in notes[:2]:
        whose = {note["scope"]["kind"]: note["scope"]["id"]} if note["scope"]["id"] else {}
        path = f"/v1/review/{note['scope']['kind']}/{note['key']}/approve"
        assert gateway.operator.post(path, {"version": note["version"], **whose}).status == 200
    with Memory(f"http://127.0.0.1:{gateway.port}", token=gateway.operator.token, cwd=tmp_path) as remote:
        left = remote.review(everywhere=True)
        assert len(left) == 5
        remote.reject(left[0].key, scope=left[0].scope)
        for note in left[1:]:
            assert not remote.approve(note.key, scope=note.scope, expected=note.version).quarantined
        assert remote.review(everywhere=True) == []
        with pytest.raises(NotFound):
            remote.approve("page", scope=Scope("agent", "ada"))


def test_no_other_token_sees_what_waits_everywhere_and_nobody_asks_for_an_agent_there_is_not(scattered, gateway):
    gateway.add_role("curator", ["memory.review", "agent.memory.read"], ["agent", "global"])
    gateway.add_role("keeper", ["memory.review", "agents.manage"], ["agent", "global"])
    assert gateway.agent("c", "curator").get("/v1/review?everywhere=true").code == "denied"
    assert gateway.agent("k", "keeper").get("/v1/review?everywhere=true").code == "refused"
    assert gateway.agent("a").get("/v1/review?everywhere=true").code == "denied"
    missing = gateway.operator.get("/v1/review?agent=nosuch")
    assert (missing.status, missing.code) == (404, "not_found") and "GET /agents" in missing.json["fix"]
    assert gateway.operator.get("/v1/review?agent=a").json["waiting"] == 1  # added, but stored nothing: the global note
    assert gateway.operator.get("/v1/review?agent=ben").json["waiting"] == 3  # stored notes, but was never added
    assert gateway.operator.get("/v1/review?agent=ben&everywhere=true").code == "usage"


def test_the_command_at_a_gateway_decides_from_there_too(scattered, gateway, holdfast, tmp_path):
    token = tmp_path / "token"
    token.write_text(gateway.operator.token)
    words = ("--url", f"http://127.0.0.1:{gateway.port}", "--token-file", str(token))
    assert "approved bens in agent:ben" in holdfast(*words, "review", "--everywhere", "--approve", "bens")[1]


def test_the_command_asks_a_gateway_for_what_waits_elsewhere_only_when_told_to(gateway, holdfast, tmp_path):
    gateway.add_role("curator", ["memory.review", "agent.memory.read"], ["agent", "global", "project"])
    curator, ben = gateway.agent("c", "curator"), gateway.agent("ben")
    ben.post("/v1/notes", {"text": "Of a page, for Ben alone.", "key": "bens", "scope": "agent", "origin": "web"})
    for client in (curator, gateway.operator):
        token = tmp_path / "token"
        token.write_text(client.token)
        code, _, said = holdfast("--url", f"http://127.0.0.1:{gateway.port}", "--token-file", str(token), "review")
        assert code == 0 and "No notes in quarantine" in said and "elsewhere" not in said
        rows = gateway.operator.get(f"/audit?agent={'c' if client is curator else 'operator'}").json["audit"]
        decisions = {(row["action"], row["outcome"]) for row in rows} - {("audit.read", "allowed")}
        assert decisions == {("memory.review", "allowed"), ("agent.memory.read", "allowed")}  # notes, and proposed relations


def test_an_agent_is_not_told_what_waits_elsewhere(scattered, holdfast, monkeypatch, open_memory):
    open_memory(origin="user").reject("page", scope="global")
    monkeypatch.setenv("CLAUDECODE", "1")
    code, _, said = holdfast("review")
    assert code == 0 and "No notes in quarantine" in said and "elsewhere" not in said
