"""Every verb of Memory has a route, or a reason why it has none; and every write accepts an idempotency key."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from holdfast import Memory, UsageError
from holdfast.api.remote import RemoteMemory
from holdfast.api.remote.memory import NOT_OFFERED
from holdfast.mcp.background import BackgroundWork
from holdfast.server.route import READ
from holdfast.server.routes import ROUTES
from holdfast.verbs import archive
from holdfast.verbs.files import Files

ROOT = Path(__file__).resolve().parents[2]
WRITES = [route for route in ROUTES if route.action and route.method != "GET" and route.action != READ]
LINES = "application/x-ndjson"
COUNT = itertools.count()  # purged text cannot be stored again: each time other words


def verbs(memory=Memory):
    """Return the verbs of a caller: the methods of Memory, and those of its files."""
    named = [name for name in dir(memory) if not name.startswith("_") and callable(getattr(memory, name)) and name != "close"]
    return {*named, *[f"files.{name}" for name in dir(Files) if not name.startswith("_")]}


def unrouted(memory, routes):
    """Return the verbs that have neither a route nor a reason."""
    return verbs(memory) - {verb for route in routes for verb in route.verbs} - set(NOT_OFFERED)


# --- the two lists --------------------------------------------------------------------------------------------------------


def test_every_verb_has_a_route_or_a_reason():
    assert unrouted(Memory, ROUTES) == set()


def test_no_route_and_no_reason_names_a_verb_that_there_is_not_and_none_has_both():
    routed = {verb for route in ROUTES for verb in route.verbs}
    assert routed <= verbs() and set(NOT_OFFERED) <= verbs() and not routed & set(NOT_OFFERED)


def test_a_new_verb_would_be_missed():
    class Newer(Memory):
        def dream(self): ...

    assert unrouted(Newer, ROUTES) == {"dream"}
    assert unrouted(Memory, [route for route in ROUTES if "clear" not in route.verbs]) == {"clear"}


def test_the_page_says_why_a_verb_has_no_route():
    page = (ROOT / "docs" / "gateway.md").read_text()
    for name, why in NOT_OFFERED.items():
        assert re.search(rf"- `{name}`: {re.escape(why)}", page), name


def test_the_client_has_every_verb_and_refuses_each_that_has_no_route():
    assert {name for name in verbs() if "." not in name} <= set(vars(RemoteMemory))
    refused = {"render": ("CLAUDE.md",), "projects": (), "adopt": ("old",), "mark": ()}
    assert set(refused) == set(NOT_OFFERED)
    memory = Memory("http://127.0.0.1:1", token="hf_x", project="demo")
    for name, given in refused.items():
        with pytest.raises(UsageError, match="not offered over HTTP"):
            getattr(memory, name)(*given)


# --- every write once -----------------------------------------------------------------------------------------------------


def test_every_write_takes_a_key():
    assert [route.name for route in WRITES if route.replay is None] == []
    assert len(WRITES) > 25


@pytest.fixture
def free(home):
    """A gateway without rate limits, and an operator with data of every kind."""
    from http_gateway import run_gateway

    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[serve]\nrate = 0\n")
    with run_gateway(home) as one:
        yield one


def furnish(ask):
    """Prepare what a write needs to have something to do, again for each."""
    for key in ("k", "gone"):
        ask("PUT", f"/v1/notes/agent/{key}", {"text": f"Words of {key}, {next(COUNT)}.", "origin": "web"})
    ask("DELETE", "/v1/notes/agent/gone")
    ask("PUT", "/v1/notes/agent/old-deploys", {"text": "We deployed on Fridays."})
    ask("POST", "/v1/notes/agent/k/relations", {"kind": "supersedes", "target": "old-deploys"})
    ask("POST", "/v1/files/create", {"path": "/memories/plan.md", "file_text": "Plan\n", "scope": "agent"})
    ask("POST", "/v1/history", {"turns": [{"text": "Said."}], "session": "7f3a", "scope": "agent"})
    ask("POST", "/agents", {"name": "other", "role": "secretary"})
    ask("POST", "/agents/other/grants", {"kind": "project", "pattern": "demo"})
    return ask("GET", "/v1/notes/agent/k").json["version"]


def request_of(route, version, number):
    """Return a request that succeeds: the example of the route, about existing data."""
    name = "lock.seconds" if route.path.startswith("/v1/settings") else "other"
    path = route.path.replace("{scope}", "agent").replace("{name}", name)
    path = path.replace("{key}", "gone" if path.endswith("/restore") else "k")
    body = None if route.reads is None else {**route.example}
    if body and "version" in body:
        body["version"] = version
    if route.path == "/agents":
        body["name"] = f"new-{number}"
    if route.name == "DELETE /agents/{name}/grants":
        path += "?kind=project&pattern=demo"
    if route.name == "DELETE /v1/notes/{scope}/{key}/relations":
        path += "?kind=supersedes&target=old-deploys"
    if route.path == "/v1/purge":
        body = {"session": "7f3a"}
    return path, body


@pytest.mark.parametrize(
    "route", [one for one in WRITES if not one.path.startswith(("/github", "/v1/history/restore"))], ids=lambda one: one.name
)
def test_a_write_sent_twice_with_one_key_is_done_once_and_answered_as_the_first_time(free, route):
    ask = free.operator
    path, body = request_of(route, furnish(ask), 1)
    sent = {"Idempotency_Key": "one", "X_Holdfast_Project": "demo", "X_Holdfast_Session": "s1"}
    if body is not None:
        sent["Content_Type"] = route.reads
    first = ask(route.method, path, body, **sent)
    assert first.status in (200, 201), first
    alone = route.path == "/agents/{name}" or path.endswith("/restore")  # an answer with a note needs the note
    between = None if alone else furnish(ask)  # so that a second time would change something again
    before = state(ask) if between else None
    again = ask(route.method, path, body, **sent)
    if route.path in ("/agents", "/agents/{name}/token"):
        assert again.code == "conflict" and "token" in again.json["detail"]  # a token is shown once
        assert again.headers["idempotency-replayed"] == "true" and again.json["replayed"] is True
    else:
        assert again.status == first.status and again.headers["idempotency-replayed"] == "true", again
        assert shown(again) == shown(first)
    assert before is None or state(ask) == before
    other = ask(route.method, path, body, **{**sent, "X_Holdfast_Project": "another"})
    assert other.code == "reused_key"


def shown(said):
    """Return an answer without values that are rebuilt from current data; of lines, the last."""
    told = said.lines[-1] if said.headers["content-type"] == LINES else said.json
    varies = ("updated", "updated_at", "version", "versions", "quarantined", "role_context", "source", "valid_from", "lines",
              "id", "note", "text")  # fmt: skip
    return {name: value for name, value in told.items() if name not in varies}


def state(ask):
    """Return everything that a write could have changed."""
    notes = {(one["key"], one["version"]) for one in ask.get("/v1/notes?scope=agent&limit=500").json["notes"]}
    files = ask("POST", "/v1/files/view", {"path": "/memories", "scope": "agent"}).data
    plan = ask("POST", "/v1/files/view", {"path": "/memories/plan.md", "scope": "agent"}).data
    said = len(ask.post("/v1/recall", {"query": "Said", "kind": "turn", "mode": "keyword"}).json["hits"])
    agents = [(one["name"], len(one["tokens"]), one["state"], one["grants"]) for one in ask.get("/agents").json["agents"]]
    return notes, files, plan, said, agents, len(ask.get("/v1/receipts").json["receipts"])


def test_a_session_brought_back_is_told_the_same_again(free):
    furnish(free.operator)
    free.operator.post("/v1/history/forget", {"session": "7f3a"})
    first, again = [free.operator.post("/v1/history/restore", {"session": "7f3a"}, Idempotency_Key="b") for _ in range(2)]
    assert first.json == again.json and again.headers["idempotency-replayed"] == "true"
    assert free.operator.post("/v1/history/restore", {"session": "7f3a"}).code == "not_found"


def test_what_is_kept_for_a_repeated_answer_has_no_words_in_it(free):
    ask = free.operator
    ask("PUT", "/v1/notes/agent/k", {"text": "Unheard-of words.", "tags": ["unheard-of"], "origin": "web"})
    version = ask.get("/v1/notes/agent/k").json["version"]
    ask.post("/v1/review/agent/k/approve", {"version": version}, Idempotency_Key="1")
    ask("DELETE", "/v1/notes/agent/k", Idempotency_Key="2")
    ask.post("/v1/notes/agent/k/restore", {}, Idempotency_Key="3")
    file = {"path": "/memories/unheard-of.md", "file_text": "Unheard-of", "scope": "agent"}
    ask.post("/v1/files/create", file, Idempotency_Key="4")
    ask.post("/v1/retain", {}, Idempotency_Key="5")
    row = lines({"text": "Unheard-of, too.", "key": "i"})
    ask("POST", "/v1/import?scope=agent", raw=row, Content_Type=LINES, Idempotency_Key="6")
    ask.post("/dispatch", {"task": "x"}, Idempotency_Key="7")
    ask.post("/v1/clear", {"scope": "agent"}, Idempotency_Key="8")
    free.app.state.pipeline.gateway.close()
    kept = b"".join((free.home / name).read_bytes() for name in ("ledger.db", "ledger.db-wal") if (free.home / name).exists())
    assert b"nheard-of" not in kept


# --- lines ----------------------------------------------------------------------------------------------------------------


def lines(*rows):
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_an_import_with_a_key_is_done_once_whatever_came_after(free):
    ask, data = free.operator, lines({"text": "First.", "key": "a"})
    sent = {"raw": data, "Content_Type": LINES, "Idempotency_Key": "one"}
    first = ask("POST", "/v1/import?scope=agent", **sent)
    ask("PUT", "/v1/notes/agent/a", {"text": "Later."})
    again = ask("POST", "/v1/import?scope=agent", **sent)
    assert again.lines == [first.lines[-1]] and again.headers["idempotency-replayed"] == "true"
    assert ask.get("/v1/notes/agent/a").json["text"] == "Later."
    other = ask("POST", "/v1/import?scope=agent", **{**sent, "raw": lines({"text": "Another.", "key": "a"})})
    assert (other.status, other.code) == (422, "reused_key")
    bad = {"raw": data + b"{nonsense\n", "Content_Type": LINES, "Idempotency_Key": "two"}
    assert [ask("POST", "/v1/import?scope=agent", **bad).status for _ in range(2)] == [422, 422]  # it may be tried again


def test_imported_notes_keep_the_scope_of_their_lines_unless_the_request_names_one(free):
    ask = free.operator
    rows = lines(
        {"text": "The agent's.", "key": "a", "scope": "agent:somebody"}, {"text": "All's.", "key": "g", "scope": "global"},
        {"text": "The project's.", "key": "p", "scope": "project:elsewhere"}, {"text": "Nobody's.", "key": "n"},
        {"text": "The session's.", "key": "s", "scope": "session"},
    )  # fmt: skip
    whose = {"X_Holdfast_Project": "demo", "X_Holdfast_Session": "s1"}
    said = ask("POST", "/v1/import", raw=rows, Content_Type=LINES, **whose)
    assert said.lines[-1]["done"] == {"line": 5, "created": 5, "updated": 0, "unchanged": 0}
    found = {one["key"]: one["scope"] for one in ask.get("/v1/notes", **whose).json["notes"]}
    expected = {"a": ("agent", "operator"), "g": ("global", ""), "p": ("project", "demo"), "n": ("project", "demo"),
                "s": ("session", "s1")}  # fmt: skip
    assert {key: (one["kind"], one["id"] or "") for key, one in found.items()} == expected
    out = ask.get("/v1/export", **whose)
    assert ask("POST", "/v1/import", raw=out.data, Content_Type=LINES, **whose).lines[-1]["done"]["unchanged"] == 5
    ask("POST", "/v1/import?scope=agent", raw=rows, Content_Type=LINES, **whose)
    assert len(ask.get("/v1/notes?scope=agent", **whose).json["notes"]) == 5


def test_a_line_reaches_no_scope_that_the_role_does_not(free):
    agent = free.agent("a")
    mine = lines({"text": "Mine.", "key": "a", "scope": "agent"})
    assert agent("POST", "/v1/import", raw=mine, Content_Type=LINES).status == 200
    for row in ({"text": "x", "key": "x", "scope": "global"}, {"text": "x", "key": "x"}):
        said = agent("POST", "/v1/import", raw=lines({"text": "y", "scope": "agent"}, row), Content_Type=LINES,
                     X_Holdfast_Project="demo")  # fmt: skip
        assert (said.status, said.code) == (403, "denied")
    denied = free.gate.ledger.audit.list(limit=100, agent="a", outcome="denied")[0]
    assert [row.metadata["scope"] for row in denied] == ["project", "global"]
    assert [note["key"] for note in agent.get("/v1/notes").json["notes"]] == ["a"]
    said = free.operator("POST", "/v1/import", raw=lines({"text": "x", "key": "x"}), Content_Type=LINES)
    assert said.code == "no_scope"
    for wrong in ("nowhere", "", 5, {"kind": "agent"}):
        row = lines({"text": "x", "scope": wrong})
        said = agent("POST", "/v1/import", raw=row, Content_Type=LINES, X_Holdfast_Project="demo")
        assert said.status in (403, 422), wrong


def test_a_bad_note_is_named_by_its_line(free):
    rows = lines({"text": "a", "scope": "global"}, {"text": "b", "scope": "agent"}, {"text": "", "scope": "agent"})
    said = free.operator("POST", "/v1/import", raw=rows, Content_Type=LINES)
    assert said.status == 422 and "line 3" in said.json["detail"]


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ({"text": "x", "scope": "global"}, "denied"), ({"text": "x"}, "denied"), ({"text": "x", "scope": "nowhere"}, "refused"),
        ({"text": "x", "scope": 5}, "refused"),
        ({"text": "x", "key": "old", "scope": "agent", "expected": "0" * 32}, "conflict"),
        ({"text": "A line of the purged.", "scope": "agent"}, "purged"),
        ({"text": "x", "tags": ["A line of the purged."], "scope": "agent"}, "purged"),
    ],
)  # fmt: skip
def test_whatever_speaks_against_a_line_it_is_named(free, row, code):
    agent = free.agent("a")
    for key, said in (("old", "Old."), ("gone", "A line of the purged.")):
        assert agent("PUT", f"/v1/notes/agent/{key}", {"text": said}).status == 201
    with Memory(free.home, agent="a") as memory:
        receipt = memory.purge("gone", scope="agent").id
    good = [{"text": f"Good {number}.", "scope": "agent"} for number in range(600)]
    first = agent("POST", "/v1/import", raw=lines(*good[:2], row, good[3]), Content_Type=LINES, X_Holdfast_Project="demo")
    assert first.code == code and first.json["detail"].startswith("line 3"), first
    later = agent("POST", "/v1/import", raw=lines(*good, row), Content_Type=LINES, X_Holdfast_Project="demo").lines[-1]
    assert later["problem"]["code"] == code and later["problem"]["detail"].startswith("line 601"), later
    assert receipt not in f"{first.data}{later}"  # not every agent may know the owner


def test_a_line_for_the_project_is_named_where_no_project_is(free):
    said = free.operator("POST", "/v1/import", raw=lines({"text": "a", "scope": "global"}, {"text": "b"}), Content_Type=LINES)
    assert said.code == "no_scope" and said.json["detail"].startswith("line 2: the request names no project"), said


def test_a_line_that_is_too_long_is_named(free):
    said = free.operator(
        "POST", "/v1/import?scope=agent", raw=b'{"text": "a"}\n\n{"text": "' + b"x" * 15_000_000, Content_Type=LINES
    )
    assert said.status == 413 and said.json["detail"].startswith("line 3: it has more than"), said


@pytest.mark.parametrize(
    ("row", "own", "role", "origin"),
    [
        ({}, False, "operator", "import"), ({}, True, "operator", "user"), ({}, True, "code-review-engineer", "agent"),
        ({"origin": "agent"}, False, "operator", "import"), ({"origin": "web"}, True, "operator", "web"),
        ({"origin": "agent"}, True, "operator", "agent"), ({"origin": "user"}, True, "operator", "user"),
        ({"origin": "user"}, False, "operator", None), ({"origin": "user"}, True, "code-review-engineer", None),
        ({"source": {"origin": "user"}}, False, "operator", "import"), ({"source": {"origin": "web"}}, True, "operator", "web"),
        ({"source": {"origin": "user", "trust": "web"}}, True, "operator", "web"), ({"source": {}}, True, "operator", "web"),
        ({"source": {"origin": "user"}}, True, "code-review-engineer", "agent"),
    ],
)  # fmt: skip
def test_an_imported_line_is_trusted_as_an_import_and_own_words_as_their_speaker(free, row, own, role, origin):
    ask = free.agent("a", role)
    path = "/v1/import?scope=agent" + ("&own=true" if own else "")
    said = ask("POST", path, raw=lines({"text": "Words.", "key": "k", **row}), Content_Type=LINES)
    assert said.status == (422 if origin is None else 200), said
    if origin is not None:
        assert ask.get("/v1/notes/agent/k").json["source"]["origin"] == origin


# --- page by page ---------------------------------------------------------------------------------------------------------


def test_what_is_in_quarantine_comes_page_by_page_each_note_once(free):
    with Memory(free.home, agent="operator", project="demo", origin="user") as memory:
        web = [{"text": f"Web {n}.", "key": f"w{n}", "origin": "web", "pinned": n % 7 == 0} for n in range(23)]
        memory.store_many(web, scope="agent")
        memory.store_many([{"text": f"Mine {n}.", "key": f"m{n}"} for n in range(23)], scope="agent")
        expected = [note.key for note in memory.review(scope="agent")]
    assert len(expected) == 23
    for limit in (1, 10, 22, 23, 24):
        seen, cursor = [], ""
        while cursor is not None:
            page = free.operator.get(f"/v1/review?limit={limit}" + (f"&cursor={cursor}" if cursor else "")).json
            assert len(page["notes"]) <= limit and page["waiting"] == 23
            seen += [note["key"] for note in page["notes"]]
            cursor = page["next"]
        assert seen == expected, limit
    assert free.operator.get("/v1/review?cursor=x").status == 422
    assert free.operator.get("/v1/review?scope=global").json == {"notes": [], "next": None, "waiting": 0}


# --- transcripts ----------------------------------------------------------------------------------------------------------

UPLOAD = "/v1/history/import?scope=agent"
CLAUDE = [
    {"type": "user", "uuid": "u1", "sessionId": "5e55", "timestamp": "2026-03-01T10:00:00Z", "cwd": "/nowhere/at/all",
     "message": {"role": "user", "content": "How do we deploy?"}},
    {"type": "assistant", "uuid": "u2", "sessionId": "5e55", "timestamp": "2026-03-01T10:00:05Z",
     "message": {"role": "assistant", "content": [{"type": "text", "text": "On Tuesdays."}]}},
]  # fmt: skip


def test_a_transcript_is_sent_as_it_is_and_kept_once(free):
    agent = free.agent("a")
    sent = {"raw": lines(*CLAUDE), "Content_Type": LINES}
    first, again = [agent("POST", UPLOAD, **sent).json["sessions"] for _ in range(2)]
    assert [(one["session"], one["client"], one["added"], one["known"]) for one in first] == [("5e55", "claude-code", 2, 0)]
    assert [(one["added"], one["known"]) for one in again] == [(0, 2)]
    assert agent.post("/v1/recall", {"query": "Tuesdays", "kind": "turn", "mode": "keyword"}).json["hits"]
    one = json.dumps({"messages": [{"role": "user", "content": "In one document."}]}).encode()
    said = agent("POST", f"{UPLOAD}&name=talk.json", raw=one, Content_Type="application/json").json["sessions"]
    assert said[0]["session"].startswith("talk") and said[0]["added"] == 1


def test_a_session_that_nothing_names_is_kept_once_all_the_same(free):
    agent, data = free.agent("a"), lines({"role": "user", "content": "Said somewhere."})
    said = [agent("POST", UPLOAD, raw=data, Content_Type=LINES).json["sessions"][0] for _ in range(2)]
    assert said[0]["session"] == said[1]["session"] and (said[0]["added"], said[1]["added"]) == (1, 0)


def test_a_transcript_that_is_none_or_not_theirs_leaves_nothing_behind(free):
    agent = free.agent("a")
    for wrong in (b"", b"nonsense", b"[1, 2", b'{"a": 1}\n', b"\xff\xfe"):
        assert agent("POST", UPLOAD, raw=wrong, Content_Type=LINES).status == 422, wrong
    assert agent("POST", "/v1/history/import?scope=global", raw=lines(*CLAUDE), Content_Type=LINES).code == "denied"
    assert agent("POST", f"{UPLOAD}&name=a/b", raw=lines(*CLAUDE), Content_Type=LINES).code == "invalid_request"
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    said = agent("POST", UPLOAD, raw=lines({"role": "user", "content": f"It is {secret}."}), Content_Type=LINES)
    assert said.json["sessions"][0]["redacted"] == 1
    found = [path for path in free.home.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert found == [] and not list((free.home / "run").glob("tmp*"))


# --- the whole home -------------------------------------------------------------------------------------------------------


def test_the_home_is_the_operators_to_look_after(free):
    agent = free.agent("a")
    for method, path in (("GET", "/v1/check"), ("POST", "/v1/reindex"), ("POST", "/v1/embed"), ("POST", "/v1/retain")):
        assert agent(method, path, None if method == "GET" else {}).code == "denied"
        assert free.operator(method, path, None if method == "GET" else {}).status == 200
    (free.home / "shelf" / "stray").mkdir(parents=True)
    said = free.operator.get("/v1/check")
    assert [one["code"] for one in said.json["problems"]] == ["stray"] and str(free.home).encode() not in said.data


def test_the_check_tells_of_roles_agents_and_the_audit_with_fixes_that_work_as_printed(free, tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_HOME", str(free.home))
    free.add_role("broken", ["done.read"])
    free.add_role("gone", ["done.read"])
    free.agent("first", "broken")
    free.agent("second", "gone")
    assert free.operator.get("/v1/check").json == {"problems": []}
    good = (free.home / "roles" / "broken.yaml").read_text()
    (free.home / "roles" / "broken.yaml").write_text("name: broken\npowers: []\n")
    (free.home / "roles" / "gone.yaml").unlink()
    intruder = apsw.Connection(f"{free.home}/ledger.db")
    intruder.execute("UPDATE audit SET agent = 'nobody' WHERE number = 2").fetchall()
    said = free.operator.get("/v1/check")
    role, agent, chain = said.json["problems"]
    assert str(free.home).encode() not in said.data
    assert role["code"] == "role" and "broken.yaml:2" in role["message"] and role["path"] == "HOME/roles/broken.yaml"
    assert agent["code"] == "agent" and "second" in agent["message"] and agent["fix"] == "holdfast agent revoke second"
    assert chain["code"] == "audit_chain" and "row 2 or the row before it was changed" in chain["message"]
    with Memory(f"http://127.0.0.1:{free.port}", token=free.operator.token, project="demo") as memory:
        assert [one.as_dict() for one in memory.check()] == said.json["problems"]
    (tmp_path / "mended.yaml").write_text(good)
    monkeypatch.setenv("EDITOR", f"cp {tmp_path}/mended.yaml")  # as a person would write it
    pasted = [role["fix"].replace("HOME/", "$HOLDFAST_HOME/"), agent["fix"], chain["fix"]]
    ran = [subprocess.run(["sh", "-c", one], capture_output=True, text=True, timeout=60, env=on_path()) for one in pasted]
    assert [one.returncode for one in ran] == [0, 0, 1] and "row 2 or the row before it was changed" in ran[2].stdout, ran
    assert [one["code"] for one in free.operator.get("/v1/check").json["problems"]] == ["audit_chain"]
    intruder.execute("UPDATE audit SET agent = '(local)' WHERE number = 2").fetchall()
    intruder.close()
    assert free.operator.get("/v1/check").json == {"problems": []}


def on_path():
    """Return the environment of a person who has our command."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@pytest.fixture
def no_retention_at_start(monkeypatch):
    """Keep a gateway from archiving notes when it starts; ask for it before the gateway."""
    monkeypatch.setattr(BackgroundWork, "_retain", lambda self: None)


def test_what_expired_is_told_without_the_words_of_others(no_retention_at_start, free):
    free.add_role("keeper", ["home.care"], ["agent"])
    (free.home / "config.toml").write_text("[serve]\nrate = 0\n[retention]\nproject_days = 1\n")
    with Memory(free.home, project="demo", agent="x") as memory:
        stored = memory.store("Harbour words.", key="old", tags="harbour")
        note = free.home / "shelf" / stored.note.path  # not read: that would count as a use
        note.write_text(re.sub(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", "2020-01-01T00:00:00Z", note.read_text()))
        memory.reindex()
    said = free.agent("k", "keeper").post("/v1/retain", {"dry_run": True})
    assert [one["key"] for one in said.json["archived"]] == ["old"] and b"arbour" not in said.data.replace(b"harbour-", b"")
    assert free.operator.post("/v1/retain", {"dry_run": True}).json["archived"][0]["text"] == "Harbour words."


def test_who_may_only_read_does_not_bring_an_archived_note_back(free):
    free.add_role("reader", ["agent.memory.read"], ["project"])
    free.add_role("writer", ["agent.memory.read", "agent.memory.write"], ["project"])
    with Memory(free.home, project="demo") as memory:
        place = memory.store("The harbour is closed.", key="k").note.scope
        archive.move_notes(memory._context, place, ["k"], "archive")
    reader, writer = free.agent("r", "reader"), free.agent("w", "writer")
    asked = "/v1/notes/project/k?project=demo"
    for client, archived in ((reader, True), (reader, True), (writer, True), (reader, False)):
        note = client.get(asked).json
        assert (note["text"], note["archived"]) == ("The harbour is closed.", archived)


def test_archived_notes_are_listed_and_found_over_http(free):
    with Memory(free.home, project="demo") as memory:
        place = memory.store("The harbour is closed.", key="k").note.scope
        archive.move_notes(memory._context, place, ["k"], "archive")
    listed = "/v1/notes?scope=project&project=demo"
    assert free.operator.get(listed).json["notes"] == []
    assert [note["archived"] for note in free.operator.get(f"{listed}&archived=true").json["notes"]] == [True]
    (hit,) = free.operator.post("/v1/recall", {"query": "harbour", "project": "demo", "mode": "keyword"}).json["hits"]
    assert hit["archived"] and hit["citation"].startswith("projects/demo/archive/k--")
    assert free.operator.get("/v1/status?project=demo").json["archived"] == [
        "1 note archived: not updated or used for 90 days (project)"
    ]


def test_who_may_only_read_has_no_files_made_at_a_start(free):
    free.add_role("reader", ["agent.memory.read"], ["agent"])
    reader, writer = free.agent("r", "reader"), free.agent("w")
    assert reader.post("/v1/boot", {"scaffolds": ["continuity"]}).code == "denied"
    assert reader.post("/v1/boot", {}).json["text"] == ""
    assert "Heartbeat" in writer.post("/v1/boot", {"scaffolds": ["continuity"]}).json["text"]
    assert not (free.home / "shelf" / "agents" / "r").exists()
