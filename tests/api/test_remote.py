"""`Memory("http://...", token=...)`: the same verbs, answers and errors as with a folder, on a real gateway."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
from contextlib import contextmanager

import pytest
from http_gateway import run_gateway
from mcp_raw import HOLDFAST
from mcp_result import Result
from test_http_serve import started

from holdfast import AsyncMemory, HoldfastError, Memory, errors
from holdfast.api.remote import RemoteMemory
from holdfast.api.remote.client import error_from_problem
from holdfast.api.remote.memory import NOT_OFFERED
from holdfast.base.record import Record
from holdfast.errors import ConfigError, Denied, Disabled, NotFound, TooMany, Unauthenticated, Unreached, UsageError

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"  # looks like a secret but is not one


@pytest.fixture
def gateway(tmp_path):
    home = tmp_path / "gateway"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[serve]\nrate = 0\n")
    os.chmod(home / "config.toml", 0o600)
    with run_gateway(home) as one:
        yield one


@pytest.fixture
def remote(gateway, tmp_path):
    """Open callers of the gateway, each an agent of its own unless a token is given."""
    opened = []

    def open_(token=None, role="operator", name="ada", **given):
        token = token or gateway.agent(name, role).token
        at = given.pop("port", gateway.port)
        opened.append(Memory(f"http://127.0.0.1:{at}", token=token, **{"project": "demo", "cwd": tmp_path, **given}))
        return opened[-1]

    yield open_
    for memory in opened:
        memory.close()


@pytest.fixture
def local(open_memory):
    return lambda **given: open_memory(agent="ada", client="http", **given)


# --- the same ---------------------------------------------------------------------------------------------------------

VARIES = {  # ids, times, and values that depend on the machine
    "id", "created", "updated", "recorded", "time", "version", "restorable_until", "home", "shelf", "index_bytes",
    "ledger_bytes", "last_write", "bytes", "told", "checks", "closed", "beyond_reach",
}  # fmt: skip


WITHOUT_MARK = re.compile(r'(?<=holdfast-memory id=")[0-9a-f]{12}')  # made from the content of a briefing


def same(value):
    """Return an answer without the values that differ between homes, and without who sent a turn: a gateway keeps that."""
    if isinstance(value, Record):
        return [type(value).__name__, same(value.as_dict())]
    if isinstance(value, dict):
        if value.get("kind") == "turn":
            value = {**value, "source": {**value["source"], "agent": None}}
        of_turn = {"agent", "origin"} if "speaker" in value and "role" in value else set()
        return {name: same(one) for name, one in value.items() if name not in VARIES | of_turn}
    if isinstance(value, list | tuple):
        return [same(one) for one in value]
    if isinstance(value, float):
        return round(value, 3)
    if not isinstance(value, str):
        return value
    return value[:10] if value[:2] == "20" and value[-1:] == "Z" else WITHOUT_MARK.sub("", value.replace("agent ada as ", ""))


LIFE = {  # in this order
    "store": lambda m: m.store("harbour words, the first", key="k", tags="a,b", type="feedback"),
    "store, the next version": lambda m: m.store("harbour words, the second", key="k", pinned=True),
    "store, the same": lambda m: m.store("harbour words, the second", key="k"),
    "store without a key": lambda m: m.store("A lighthouse, and Größe 日本"),
    "store bytes": lambda m: m.store(b"bytes of text", key="bytes", valid_from="2026-01-01", valid_to="2999-01-01"),
    "store, expected": lambda m: m.store("bytes two", key="bytes", expected=m.get("bytes").version),
    "store of a tool": lambda m: m.store("said a tool", key="tool", origin="tool"),
    "store from the web": lambda m: m.store("read somewhere", key="web", origin="web", made_from="https://a.example/x"),
    "store, redacted": lambda m: m.store(f"the token {TOKEN} of git", key="redacted", redact=True),
    "store in the agent's": lambda m: m.store("the agent's own", key="own", scope="agent"),
    "store in the session's": lambda m: m.store("the session's own", key="now", scope="session"),
    "store in global": lambda m: m.store("of all", key="everyones", scope="global"),
    "store_many": lambda m: m.store_many(
        [{"text": "many one"}, {"text": "many two", "key": "k2", "tags": ["x"]}], origin="agent"),
    "store_many again": lambda m: m.store_many([{"text": "many one"}, {"text": "many three", "key": "k2"}], origin="agent"),
    "store_many, more": lambda m: m.store_many([{"text": f"row {n}"} for n in range(30)], origin="agent"),
    "store_many, none": lambda m: m.store_many([]),
    "get": lambda m: m.get("k"),
    "get in a scope": lambda m: m.get("own", scope="agent"),
    "get as of": lambda m: m.get("bytes", as_of="2026-02-01").valid_from,
    "list": lambda m: sorted(note.key for note in m.list()),
    "list, some": lambda m: m.list(type="feedback", tags="a", limit=3),
    "list by source": lambda m: m.list(source="https://a.example"),
    "history": lambda m: m.history("k"),
    "recall": lambda m: m.recall("harbour", mode="keyword"),
    "recall in a scope": lambda m: m.recall("own", mode="keyword", scope="agent", limit=3),
    "recall of two kinds": lambda m: m.recall("harbour words", mode="keyword", kind="note,file"),
    "recall of one kind": lambda m: m.recall("harbour words", kind="note", tags=["a"], type="feedback"),
    "recall, recent": lambda m: [hit.key for hit in m.recall(mode="recent", scope="global")],
    "recall, before anything": lambda m: m.recall("harbour", as_of="2020-01-01"),
    "search": lambda m: m.search("harbour", limit=2),
    "fact": lambda m: m.fact("Harbour", "state", "open", on="2026-01-01"),
    "fact, the next": lambda m: m.fact("Harbour", "state", "closed", on="2026-02-01"),
    "fact, one of many": lambda m: m.fact("Harbour", "town", "[[Lisbon]]", on="2026-01-01", many=True, scope="agent"),
    "facts": lambda m: m.facts("Harbour"),
    "facts as of": lambda m: m.facts("Harbour", as_of="2026-01-15", label="state"),
    "facts, all": lambda m: m.facts(history=True),
    "graph": lambda m: m.graph("Lisbon"),
    "graph of nothing": lambda m: m.graph("nothing at all"),
    "path": lambda m: m.path("Lisbon", "Harbour"),
    "log": lambda m: m.log([{"id": "t1", "role": "user", "content": "said by the harbour"}, {"speaker": "Bo", "text": "yes"}],
                           session="s1", client="chat"),
    "log again": lambda m: m.log([{"id": "t1", "role": "user", "text": "said by the harbour"}], session="s1", client="chat"),
    "log, redacted": lambda m: m.log([{"id": "t3", "text": f"key {TOKEN}"}], session="s1", client="chat", redact=True),
    "expand": lambda m: m.expand("t1", after=1),
    "recall a turn": lambda m: m.recall("said", mode="keyword", kind="turn"),
    "read": lambda m: m.read(m.get("k").path).exists,
    "read nothing": lambda m: m.read("projects/demo/nothing.md"),
    "files": lambda m: [m.files.create("a.md", "one\ntwo\n"), m.files.insert("a.md", 1, "between"),
                        m.files.str_replace("a.md", "two", "harbour"), m.files.rename("a.md", "b/c.md"),
                        m.files.view("b/c.md"), m.files.view("b/c.md", (2, -1)), m.files.view("/memories"),
                        m.files.delete("b"), m.files.view("/memories")],
    "brief": lambda m: m.brief(),
    "brief, prompted": lambda m: m.brief(prompt="where is the harbour"),
    "brief, explained": lambda m: m.brief(cap=900, explain=True, remember=False),
    "review": lambda m: m.review(),
    "trace": lambda m: m.trace("web").versions,
    "forget": lambda m: m.forget("k2"),
    "forget nothing": lambda m: m.forget("nothing"),
    "trash": lambda m: m.trash(),
    "restore": lambda m: m.restore("k2"),
    "forget in a scope": lambda m: m.forget("own", scope="agent"),
    "restore under": lambda m: m.restore("own", under="own2"),
    "forget_source, dry": lambda m: m.forget_source("https://a.example", dry_run=True),
    "forget_source": lambda m: m.forget_source("https://a.example"),
    "export": lambda m: sorted([row["key"], row["text"], row["type"], len(row["versions"])] for row in m.export()),
    "export a scope": lambda m: [row["key"] for row in m.export(scope="global")],
    "purge": lambda m: m.purge("redacted").replace(usage_rows=0),  # a remote caller reads it first, to find its scope
    "purge nothing": lambda m: m.purge("nothing"),
    "purge a session": lambda m: m.purge(session="s1").deleted,
    "receipts": lambda m: len(m.receipts()),
    "store_many, the caller's own": lambda m: m.store_many([{"text": "own words", "key": "mine"}, {"text": "of a tool",
                                                             "key": "tools", "origin": "tool"}]),
    "store_many from a file": lambda m: m.store_many([{"text": "brought along", "key": "brought"}], origin="import"),
    "review, more than one": lambda m: sorted(note.key for note in m.review()),
    "approve": lambda m: m.approve("brought").quarantined,
    "quarantine": lambda m: m.quarantine("brought").quarantined,
    "reject": lambda m: [m.store("from the web", key="webbed", origin="web").action, m.reject("webbed").deleted],
    "one receipt": lambda m: m.receipts(m.receipts()[0].id)[0].state,
    "purge a text": lambda m: m.purge(text="harbour words, the second").deleted,
    "log to forget": lambda m: m.log([{"text": "said in a session"}], session="s2", client="chat"),
    "forget_session": lambda m: m.forget_session("s2"),
    "forget_session, gone": lambda m: m.forget_session("s2", client="chat"),
    "restore_session": lambda m: m.restore_session("s2"),
    "scaffold": lambda m: m.scaffold("continuity"),
    "scaffold in a scope": lambda m: m.scaffold("wiki", scope="project"),
    "boot": lambda m: m.boot(),
    "boot, small": lambda m: m.boot(cap=1500, scope="agent", scaffolds="wiki").left_out,
    "operator_send": lambda m: m.operator_send("look at the harbour", scope="project").replace(id="", time=""),
    "operator_send, an answer": lambda m: m.operator_send("it is open", to="operator", re=m.operator_list()[0].id,
                                                          redact=True).replace(id="", time="", re=""),
    "operator_list": lambda m: [one.replace(id="", time="", re=None) for one in m.operator_list()],
    "operator_list, unread": lambda m: [one.text for one in m.operator_list(unread=True, scope="project")],
    "operator_read": lambda m: [[one.text for one in m.operator_read()], m.operator_read()],
    "operator_read, one": lambda m: m.operator_read(m.operator_list()[0].id)[0].text,
    "boot, once more": lambda m: m.boot(remember=False).left_out,
    "list, of every scope": lambda m: sorted({str(note.scope) for note in m.list(scope="all")}),
    "retain, dry": lambda m: m.retain(dry_run=True),
    "retain": lambda m: m.retain(),
    "check": lambda m: [one.code for one in m.check()],
    "reindex": lambda m: [m.reindex().notes, m.reindex().facts],
    "embed": lambda m: [dict(left := m.embed()), left.failed],
    "clear": lambda m: [int(cleared := m.clear("session")), cleared.beyond_reach],
    "clear, empty": lambda m: m.clear("session"),
    "status": lambda m: m.status(),
}  # fmt: skip


def test_every_verb_answers_as_it_does_with_a_folder(local, remote):
    here, there = local(session="s9", origin="user"), remote(session="s9", origin="user")
    answers = {name: (same(verb(there)), same(verb(here))) for name, verb in LIFE.items()}
    assert {name: pair for name, pair in answers.items() if pair[0] != pair[1]} == {}


WRONG = {
    "no such note": lambda m: m.get("nothing"),
    "no such note in a scope": lambda m: m.get("nothing", scope="agent"),
    "no history": lambda m: m.history("nothing"),
    "a key that is none": lambda m: m.store("text", key="Not A Key"),
    "a path that is no key": lambda m: m.get("../../etc/passwd"),
    "an empty key": lambda m: m.get(""),
    "an empty text": lambda m: m.store("  "),
    "a NUL": lambda m: m.store("a\0b"),
    "no UTF-8": lambda m: m.store(b"\xff"),
    "half a character": lambda m: m.store("\ud800"),
    "too large": lambda m: m.store("x" * 70_000),
    "a secret": lambda m: m.store(f"it is {TOKEN}"),
    "a secret in a fact": lambda m: m.fact("git", "token", TOKEN),
    "a secret in a file": lambda m: m.files.create("a.md", TOKEN),
    "an unknown scope": lambda m: m.store("text", scope="nowhere"),
    "no session": lambda m: m.store("text", scope="session"),
    "an unknown type": lambda m: m.store("text", type="nonsense"),
    "an unknown origin": lambda m: m.store("text", origin="nonsense"),
    "a date that is none": lambda m: m.store("text", valid_from="soon"),
    "an end before its start": lambda m: m.store("text", valid_from="2026-02-01", valid_to="2026-01-01"),
    "a version that is old": lambda m: [m.store("one", key="c"), m.store("two", key="c", expected="0" * 32)],
    "an empty query": lambda m: m.recall(""),
    "an unknown mode": lambda m: m.recall("x", mode="psychic"),
    "an unknown kind": lambda m: m.recall("x", kind="note,dream"),
    "too many": lambda m: m.recall("x", limit=101),
    "a limit that is none": lambda m: m.list(limit=0),
    "a day that is none": lambda m: m.recall("x", as_of="yesterday"),
    "a depth below 0": lambda m: m.graph("x", depth=-1),
    "a label that is none": lambda m: m.fact("a", "b: c", "d"),
    "nothing to restore": lambda m: m.restore("nothing"),
    "a key that is taken": lambda m: [m.store("one", key="t"), m.forget("t"), m.store("two", key="t"), m.restore("t")],
    "a key in two scopes": lambda m: [m.store("x", key="z"), m.store("x", key="z", scope="global"), m.forget("z")],
    "a path out of the tree": lambda m: m.files.view("../../secret"),
    "no such file": lambda m: m.files.view("nothing.md"),
    "a text that stands nowhere": lambda m: [m.files.create("f.md", "x"), m.files.str_replace("f.md", "y", "z")],
    "a bad one of many": lambda m: m.store_many([{"text": "fine"}, {"text": ""}]),
    "a field that is none": lambda m: m.store_many([{"text": "fine", "colour": "red"}]),
    "a key twice": lambda m: m.store_many([{"text": "a", "key": "d"}, {"text": "b", "key": "d"}]),
    "a turn that is none": lambda m: m.log(["said"], session="s"),
    "a role that is none": lambda m: m.log([{"role": "ghost", "text": "boo"}], session="s"),
    "turns of no session": lambda m: m.log([{"text": "said"}]),
    "a turn that is nowhere": lambda m: m.expand("nothing"),
    "a purge of nothing named": lambda m: m.purge(),
    "a purge of two": lambda m: m.purge("k", session="s"),
}  # fmt: skip


def refused(verb, memory):
    with pytest.raises(HoldfastError) as caught:
        verb(memory)
    assert caught.value.message
    return type(caught.value).__name__


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused_is_refused_with_the_same_error(local, remote, name):
    assert refused(WRONG[name], remote()) == refused(WRONG[name], local())


def test_nothing_that_is_refused_leaves_anything_behind(remote):
    memory = remote()
    refused(lambda m: m.store_many([{"text": "fine"}, {"text": f"a {TOKEN}"}]), memory)
    assert memory.list() == []


def test_every_code_of_our_errors_comes_back_as_that_error():
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, HoldfastError):
            problem = {"code": kind.code, "detail": "what", "fix": "How"}
            back = error_from_problem(kind.http_status, {"retry-after": "7"}, problem)
            assert (type(back), back.message, back.fix) == (kind, "what", "How")
            assert not isinstance(back, TooMany) or back.retry_after == 7


def test_an_answer_that_is_no_gateways_is_told_apart():
    for status, said in ((200, None), (502, None), (404, {"error": "x"}), (302, [])):
        assert isinstance(error_from_problem(status, {}, said), Unreached)


# --- one class --------------------------------------------------------------------------------------------------------


def test_an_address_makes_the_same_object_with_the_same_signatures(remote):
    memory = remote()
    assert isinstance(memory, Memory) and type(memory) is RemoteMemory
    assert {name for name in dir(memory) if name[0] != "_"} == {name for name in dir(Memory) if name[0] != "_"} | {"config"}
    for name in dir(Memory):
        if name[0] != "_" and callable(getattr(Memory, name)):
            here, there = [inspect.signature(getattr(kind, name)).parameters for kind in (Memory, RemoteMemory)]
            assert list(here.values()) == list(there.values()), name


def test_no_verb_is_done_on_this_machine_instead(remote, tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "here"))
    memory = remote()
    memory.store("text", key="k")
    for name, given in (("render", ("AGENTS.md",)), ("mark", ())):
        with pytest.raises(UsageError, match=f"not offered over HTTP: {NOT_OFFERED[name]}"):
            getattr(memory, name)(*given)
    for act in (memory.clear, memory.forget_session, memory.scaffold):
        act({"clear": "project", "forget_session": "s", "scaffold": "wiki"}[act.__name__])
    for act in (memory.retain, memory.check, memory.reindex, memory.embed, memory.boot):
        act()
    assert not (tmp_path / "here").exists()


def test_a_folder_takes_no_token_and_a_gateway_no_agent(home):
    with pytest.raises(UsageError, match="token"):
        Memory(home, token="hf_x")
    with pytest.raises(UsageError, match="agent"):
        Memory("http://127.0.0.1:1", token="hf_x", agent="bo")


@pytest.mark.parametrize(
    "url", ["ftp://a.example", "http://", "http://user:pass@a.example", "http://a.example?x=1", "http://a:x"]
)
def test_an_address_that_is_none_is_refused_and_not_repeated(url):
    with pytest.raises(ConfigError) as caught:
        Memory(url, token="hf_x")
    assert "pass" not in str(caught.value)


def test_async_memory_asks_the_gateway_too(gateway, tmp_path):
    async def life():
        url = f"http://127.0.0.1:{gateway.port}"
        async with AsyncMemory(url, token=gateway.agent("ada", "operator").token, project="demo") as memory:
            await asyncio.gather(*[memory.store(f"harbour {n}", key=f"k{n}") for n in range(10)])
            await memory.files.create("a.md", "text")
            assert await memory.files.view("a.md") == "text"
            return len(await memory.list()), (await memory.get("k3")).text

    assert asyncio.run(life()) == (10, "harbour 3")


# --- transcripts --------------------------------------------------------------------------------------------------------

CHAT = [{"role": "user", "content": "yes", "session": "long"}, {"role": "assistant", "content": "yes", "session": "long"}]
TRANSCRIPTS = {
    "claude.jsonl": [
        {"type": "user", "uuid": "u1", "sessionId": "5e55", "timestamp": "2026-03-01T10:00:00Z", "cwd": "FOLDER",
         "message": {"role": "user", "content": "How do we deploy?"}},
        {"type": "assistant", "uuid": "u2", "sessionId": "5e55", "timestamp": "2026-03-01T10:00:05Z",
         "message": {"role": "assistant", "content": [{"type": "text", "text": "On Tuesdays."},
                                                      {"type": "tool_use", "id": "t", "name": "Bash", "input": {"x": 1}}]}},
        {"type": "user", "uuid": "u3", "sessionId": "5e55",
         "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "done"}]}},
    ],
    "long.jsonl": CHAT * 1100,  # the same words repeatedly, without ids: each is stored
    "secret.jsonl": [{"speaker": "Ada", "text": f"the token {TOKEN} of git", "id": 7, "time": 1772359200}],
    "none.json": [{"neither": "this nor that"}],
}  # fmt: skip


@pytest.fixture
def transcripts(tmp_path):
    """A folder of transcripts, one of them in a folder of its own."""
    folder, worked = tmp_path / "transcripts", tmp_path / "worked"
    (worked / ".git").mkdir(parents=True)
    (worked / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (worked / ".git" / "config").write_text('[remote "origin"]\n\turl = https://git.example/acme/shop.git\n')
    folder.mkdir()
    for name, rows in TRANSCRIPTS.items():
        said = "".join(json.dumps(row) + "\n" for row in rows).replace("FOLDER", str(worked))
        (folder / name).write_text(said + ("{broken\n" if name == "claude.jsonl" else ""))
    return folder


def turns_of(memory, logged):
    return [[same(turn) for turn in memory.expand(f"{one.path}:2", before=0, after=50)] for one in logged]


def test_transcripts_are_kept_as_with_a_folder_and_no_secret_is_sent(gateway, local, remote, transcripts):
    with between(gateway.port) as line:
        here, there = local(project="demo"), remote(port=line.at)
        for _ in range(2):
            mine, theirs = here.import_history(transcripts), there.import_history(transcripts)
            assert [same(one) for one in theirs] == [same(one) for one in mine]
            assert turns_of(there, theirs) == turns_of(here, mine)
        assert [one.added + one.known for one in theirs] == [2, 2200, 1] and theirs[0].broken == 1
        assert TOKEN.encode() not in line.sent and b"REDACTED" in line.sent
        there.close()


def test_a_session_goes_to_the_project_of_its_folder_unless_one_is_named(gateway, local, remote, transcripts, tmp_path):
    here, there = local(cwd=tmp_path, project=None), remote(project=None)
    mine, theirs = [memory.import_history(transcripts / "claude.jsonl") for memory in (here, there)]
    assert theirs[0].path == mine[0].path and "shop" in theirs[0].path
    named = remote(name="bo").import_history(transcripts / "claude.jsonl", scope="project")
    assert named[0].path.startswith("projects/demo/")


def test_what_is_no_transcript_is_refused_here_and_one_that_is_denied_there(remote, transcripts):
    memory = remote(role="code-review-engineer", name="bo")
    for path, kind in ((transcripts / "none.json", UsageError), (transcripts / "nothing.jsonl", NotFound)):
        with pytest.raises(kind):
            memory.import_history(path)
    with pytest.raises(Denied):
        memory.import_history(transcripts)
    assert [one.client for one in memory.import_history(transcripts, scope="agent", client="mine")] == ["mine"] * 3


# --- permissions --------------------------------------------------------------------------------------------------------


def test_a_wrong_token_and_none_are_unauthenticated(gateway, remote):
    with pytest.raises(Unauthenticated):
        remote(token="hf_12345678_" + "x" * 43).recall("x")
    with pytest.raises(Unauthenticated, match="HOLDFAST_TOKEN"):
        Memory(f"http://127.0.0.1:{gateway.port}", project="demo").recall("x")


def test_the_token_may_come_from_the_environment(gateway, monkeypatch):
    monkeypatch.setenv("HOLDFAST_TOKEN", gateway.agent("ada", "operator").token)
    with Memory(f"http://127.0.0.1:{gateway.port}", project="demo") as memory:
        assert memory.store("text").action == "created"


def test_a_role_says_where_it_may_look_and_what_is_not_its_own_is_passed_over(gateway, remote):
    memory = remote(role="code-review-engineer", name="bo")
    with pytest.raises(Denied):
        memory.store("text", key="k")
    memory.store("text", key="k", scope="agent")
    assert memory.get("k").scope.id == "bo"
    with pytest.raises(NotFound):
        memory.get("nothing")
    with pytest.raises(Denied):
        list(memory.export())
    rows = gateway.operator.get("/audit?outcome=denied&agent=bo&limit=100").json
    denied = [row for row in next(iter(rows.values())) if row["action"] == "agent.memory.read"]
    assert len(denied) <= 2  # and are not requested again


def test_an_agent_with_the_operators_token_does_not_speak_as_a_person(remote):
    assert remote(origin="agent").store("text", key="k").note.source.origin == "agent"
    assert remote(name="eve", origin="user").store("text", key="p").note.source.origin == "user"


def test_too_many_at_once_says_when_to_come_back(tmp_path):
    home = tmp_path / "gateway"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[serve]\nrate = 1\n")
    with (
        run_gateway(home) as slow,
        Memory(f"http://127.0.0.1:{slow.port}", token=slow.operator.token, project="demo") as memory,
    ):
        with pytest.raises(TooMany) as caught:
            for _ in range(50):
                memory.trash()
        assert caught.value.retry_after > 0


def test_switched_off_here_nothing_is_asked(gateway, monkeypatch):
    monkeypatch.setenv("HOLDFAST_ENABLED", "0")
    memory = Memory("http://127.0.0.1:1", token="hf_x", project="demo")
    assert memory.recall("x").disabled and memory.brief().disabled and memory.list() == [] and list(memory.export()) == []
    with pytest.raises(Disabled):
        memory.store("text")


# --- the wire -----------------------------------------------------------------------------------------------------------


class Between:
    """A proxy between a client and the gateway that cuts the connection where a test asks for it."""

    def __init__(self, port):
        self.port, self.seen, self.cuts, self.sent, self.opened = port, [], [], b"", 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.at = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while True:
            client, _ = self._socket.accept()
            if not self.port:
                client.close()
                return
            self.opened += 1
            threading.Thread(target=self._quietly, args=(client,), daemon=True).start()

    def _quietly(self, client):
        with client:
            try:
                self._serve(client)
            except OSError:
                pass  # one end has closed: close the other

    def _serve(self, client):
        """Forward the requests of one connection, each on a connection of its own."""
        while data := self._message(client):
            self.seen.append(data.split(b"\r\n", 1)[0].decode())
            self.sent += data
            cut = self.cuts.pop(0) if self.cuts else None
            if cut == "before":
                return
            with socket.create_connection(("127.0.0.1", self.port), 30) as server:
                server.sendall(data)
                answer = self._message(server)
            if callable(cut):
                cut()
                return
            if cut == "after":
                return
            client.sendall(answer[: len(answer) // 2] if cut == "half" else answer)
            if cut == "half":
                return

    @staticmethod
    def _message(connection):
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(65536)
            if not piece:
                return b""
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        told = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        while b"transfer-encoding: chunked" in head.lower() and not body.endswith(b"0\r\n\r\n"):
            body += connection.recv(65536)
        length = int(told[0]) if told else 0
        while len(body) < length:
            body += connection.recv(65536)
        return head + b"\r\n\r\n" + body

    def close(self):
        self.port = 0
        socket.create_connection(("127.0.0.1", self.at)).close()
        self._thread.join(60)
        self._socket.close()


@contextmanager
def between(port):
    one = Between(port)
    try:
        yield one
    finally:
        one.close()


@pytest.mark.parametrize("cut", ["before", "after", "half"])
def test_a_write_whose_answer_is_lost_is_sent_again_and_done_once(gateway, remote, cut):
    with between(gateway.port) as line:
        memory = remote(port=line.at)
        memory.store("one", key="k")
        line.cuts = [cut]
        assert memory.store("two", key="k").action == "updated"
        line.cuts = [cut]
        assert memory.fact("Harbour", "state", "open").action == "created"
        line.cuts = [cut]
        assert memory.log([{"text": "said"}], session="s").added == 1
        assert len(memory.history("k")) == 2
        memory.close()


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_an_import_that_ctrl_c_ends_says_how_many_the_gateway_has_surely_kept(gateway, tmp_path, words):
    file = tmp_path / "notes.jsonl"
    file.write_text("".join(json.dumps({"text": f"note {number}"}) + "\n" for number in range(1200)))
    with between(gateway.port) as line:
        environment = {**os.environ, "HOLDFAST_TOKEN": gateway.agent("ada", "operator").token}
        command = [*HOLDFAST, "--url", f"http://127.0.0.1:{line.at}", "--project", "demo", "import", str(file), *words]
        line.cuts = [None, None, lambda: running.send_signal(signal.SIGINT)]  # the list, the first batch, the second
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        out, err = running.communicate(timeout=120)
        assert running.returncode == 130, (out, err)
        assert [one.split("?")[0].split()[1] for one in line.seen] == ["/v1/notes", "/v1/import", "/v1/import"]
        told = json.loads(out) if words else {"message": err.decode(), "fix": err.decode(), "stored": 500}
        assert told["stored"] == 500 and "1,200 notes were imported: 500 of them are stored" in told["message"]
        assert "Run it again" in told["fix"] and (not err if words else not out) and b"Traceback" not in err
        again = subprocess.run([*command, "--json"], capture_output=True, env=environment, timeout=120)
    counts = json.loads(again.stdout)
    assert counts["unchanged"] >= 500 and counts["created"] + counts["unchanged"] == 1200


def test_a_write_that_was_done_is_not_done_over_what_came_after(gateway, remote):
    with between(gateway.port) as line:
        memory, other = remote(port=line.at), remote(name="bo")
        line.cuts = [lambda: other.store("theirs, later", key="k")]
        memory.store("mine", key="k")
        assert memory.get("k").text == "theirs, later"
        assert [one.text for one in memory.history("k")] == ["theirs, later", "mine"]
        memory.close()


WRITES = {  # in this order
    "insert": (lambda m: m.files.insert("a.md", 0, "once"), lambda m: m.files.view("a.md") == "once\none\n"),
    "str_replace": (lambda m: m.files.str_replace("a.md", "one", "a one"), lambda m: m.files.view("a.md") == "once\na one\n"),
    "rename": (lambda m: m.files.rename("a.md", "b.md"), lambda m: m.files.view("b.md")),
    "delete": (lambda m: m.files.delete("b.md"), lambda m: "b.md" not in m.files.view("/memories")),
    "forget": (lambda m: m.forget("k", scope="project").deleted, lambda m: len(m.trash()) == 1),
    "restore": (lambda m: m.restore("k", scope="project").key == "k", lambda m: m.trash() == []),
    "store_many": (lambda m: len(m.store_many([{"text": "x", "key": f"n{n}"} for n in range(21)])), lambda m: m.get("n20")),
    "scaffold": (lambda m: m.scaffold("wiki").created, lambda m: True),
    "forget_session": (lambda m: m.forget_session("s").deleted, lambda m: True),
    "restore_session": (lambda m: m.restore_session("s").added == 1, lambda m: True),
    "purge": (lambda m: m.purge("k", scope="project").deleted, lambda m: len(m.receipts()) == 1),
    "clear": (lambda m: m.clear("project") == 21, lambda m: m.list() == []),
}


def test_every_write_whose_answer_is_lost_is_done_once_and_told_as_the_first_time(gateway, remote):
    with between(gateway.port) as line:
        memory = remote(port=line.at, origin="user")
        memory.files.create("a.md", "one\n")
        memory.store("text", key="k")
        memory.log([{"text": "said"}], session="s")
        for name, (act, holds) in WRITES.items():
            asked = len(line.seen)
            line.cuts = [None, "after"] if name == "store_many" else ["after"]  # which first checks what exists
            assert act(memory) is not False, name
            line.cuts = []
            assert holds(memory) and len(line.seen) > asked + 1, name
        memory.close()


def test_what_is_no_write_with_a_key_is_not_sent_again(gateway, remote):
    with between(gateway.port) as line:
        memory = remote(port=line.at, session="s")
        line.cuts = ["after"]
        with pytest.raises(Unreached) as caught:
            memory.brief(prompt="what is told once is not told again")
        assert caught.value.sent
        memory.close()


def test_a_read_is_asked_again_until_it_is_answered(gateway, remote):
    with between(gateway.port) as line:
        memory = remote(port=line.at)
        memory.store("harbour", key="k")
        line.cuts = ["before", "half", "after"]
        assert memory.recall("harbour", mode="keyword")[0].key == "k"
        line.cuts = ["before"] * 10
        with pytest.raises(Unreached):
            memory.get("k", scope="project")
        line.cuts = []
        memory.close()


def test_one_connection_is_kept_for_many_requests(gateway, remote):
    with between(gateway.port) as line:
        memory = remote(port=line.at)
        memory.store("harbour", key="k")
        before = line.opened
        for _ in range(5):
            memory.get("k", scope="project")
        assert line.opened == before
        memory.close()
        assert memory.get("k").text == "harbour"  # closing is not final: it opens another connection
        memory.close()


def test_a_gateway_that_is_not_there_is_unreached_and_was_sent_nothing():
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    with pytest.raises(Unreached) as caught:
        Memory(f"http://127.0.0.1:{port}", token="hf_x", project="demo").store("text")
    assert not caught.value.sent and f"127.0.0.1:{port}" in str(caught.value)


def test_a_certificate_that_nobody_vouches_for_is_refused_before_the_token_is_sent(tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1", "-addext",
         "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate], check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def listen():
            for _ in range(4):
                client, _ = server.accept()
                with client:
                    try:
                        with context.wrap_socket(client, server_side=True) as inside:
                            heard.append(inside.recv(1000))
                    except OSError:
                        pass

        thread = threading.Thread(target=listen)
        thread.start()
        with pytest.raises(Unreached, match="TLS certificate"):
            Memory(f"https://127.0.0.1:{server.getsockname()[1]}", token="hf_x", project="demo").recall("x")
        thread.join(60)
    assert b"".join(heard) == b""


def test_proxies_of_the_environment_are_not_asked(gateway, remote, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert remote().store("text").action == "created"


@pytest.mark.battery
def test_a_gateway_that_is_killed_in_the_middle_is_an_error_and_nothing_is_written_twice(tmp_path):
    home = tmp_path / "gateway"
    with started(home, tmp_path) as first, between(first.port) as line:
        line.cuts = [first.process.kill]  # killed after the write, before its answer
        with Memory(f"http://127.0.0.1:{line.at}", token=first.token, project="demo", cwd=tmp_path) as memory:
            with pytest.raises(Unreached):
                memory.store("text", key="k")
            first.ended()
            with started(home, tmp_path) as second:
                line.port = second.port
                assert memory.store("text", key="k").action == "unchanged"
                assert len(memory.history("k")) == 1


# --- the command line -----------------------------------------------------------------------------------------------------


@pytest.fixture
def command(gateway, tmp_path):
    """Run `holdfast` against the gateway as a person would."""
    token = gateway.agent("ada", "operator").token
    (tmp_path / "token").write_text(token + "\n")

    def run(*words, code=0, text="", url=f"http://127.0.0.1:{gateway.port}", given=True, **env):
        env = {"HOLDFAST_HOME": str(tmp_path / "here"), "HOLDFAST_TOKEN": token, **env}
        words = ["--url", url, *words] if given else list(words)
        done = subprocess.run(
            [*HOLDFAST, *words], input=text, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **env}, timeout=60
        )
        assert done.returncode == code, (done.stdout, done.stderr)
        assert token not in done.stdout + done.stderr
        return json.loads(done.stdout) if "--json" in words else done.stdout

    return run


def test_the_commands_ask_the_gateway(command, gateway, tmp_path):
    assert command("store", "harbour words", "--key", "k", "--project", "demo", "--json")["action"] == "created"
    here = ("--project", "demo", "--json")
    assert command("recall", "harbour", *here)["hits"][0]["key"] == "k"
    assert command("recall", "harbour", "--mode", "keyword", *here)["mode"] == "keyword"
    assert command("get", "k", *here)["source"]["origin"] == "user"
    assert len(command("get", "k", "--history", *here)) == 1
    assert [note["key"] for note in command("list", *here)] == ["k"]
    assert command("fact", "Harbour", "state", "open", *here)["fact"]["value"] == "open"
    assert len(command("facts", "Harbour", *here)) == 1
    assert command("graph", "Harbour", *here)["start"] == "Harbour"
    assert command("forget", "k", *here)["deleted"]
    assert len(command("list", "--trash", *here)) == 1
    assert command("restore", "k", *here)["key"] == "k"
    assert "harbour words" in command("brief", "--project", "demo")
    assert command("status", *here)["home"] == f"http://127.0.0.1:{gateway.port}"
    assert "http://" in command("status", "--project", "demo")
    assert command("log", "-", "--session", "s", *here, text='{"role": "user", "text": "said"}\n')["added"] == 1
    assert command("import", "-", *here, text='{"text": "one"}\n{"text": "two", "key": "two"}\n')["created"] == 2
    assert len(command("export", "--project", "demo").splitlines()) == 4
    assert command("file", "create", "a.md", "text", "--project", "demo") is not None
    assert command("file", "view", "a.md", "--project", "demo").strip() == "text"
    assert command("scaffold", "continuity", *here)["created"]
    assert "Each section shows its scope" in command("boot", "--project", "demo")
    (tmp_path / "chat.jsonl").write_text('{"role": "user", "content": "said elsewhere", "session": "s7"}\n')
    assert command("import-history", "chat.jsonl", *here)[0]["added"] == 1
    assert command("forget", "--session", "s7", *here)["deleted"]
    assert command("restore", "--session", "s7", *here)["added"] == 1
    assert command("doctor", *here)["ok"] and command("reindex", *here)["notes"] > 1
    assert command("retain", "--dry-run", *here) == {"dry_run": True, "archived": []}
    assert command("embed", *here)["failed"] == {}
    assert command("clear", "--scope", "global", "--yes", *here)["forgotten"] == 0
    assert command("purge", "k", "--yes", *here)["deleted"]
    assert len(command("receipts", *here)) == 1
    assert not (tmp_path / "here" / "shelf").exists()


def test_the_address_and_the_token_may_come_from_elsewhere(command, gateway, tmp_path):
    url = f"http://127.0.0.1:{gateway.port}"
    command("store", "text", "--key", "k", "--scope", "agent", given=False, HOLDFAST_URL=url)
    assert command("get", "k", "--token-file", str(tmp_path / "token"), HOLDFAST_TOKEN="").strip() == "text"
    (tmp_path / "here").mkdir(mode=0o700)
    (tmp_path / "here" / "config.toml").write_text(f'[gateway]\nurl = "{url}"\n')
    assert command("get", "k", given=False).strip() == "text"
    assert command("config", "gateway.token", given=False).count("****") >= 1
    assert command("path", "home", given=False).strip() == str(tmp_path / "here")


@pytest.mark.parametrize(
    "words",
    [("config",), ("install",), ("serve",), ("agent", "list"), ("init",), ("path",), ("render", "AGENTS.md"), ("resident",)],
    ids=" ".join,
)  # fmt: skip
def test_what_is_about_a_machine_says_so(command, tmp_path, words):
    assert "only on this machine's home" in command(*words, "--json", code=2)["message"]
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize("words", [("render", "AGENTS.md"), ("resident",)], ids=" ".join)
def test_what_is_about_a_home_is_not_done_here_while_the_settings_name_a_gateway(command, gateway, tmp_path, words):
    told = command(*words, "--json", code=2, given=False, HOLDFAST_URL=f"http://127.0.0.1:{gateway.port}")
    assert "HOLDFAST_URL" in told["fix"]
    assert not (tmp_path / "here").exists()


def test_what_goes_wrong_has_the_same_exit_codes(command):
    assert command("get", "nothing", "--json", code=1)["error"] == "not_found"
    assert command("store", TOKEN, "--json", code=3)["error"] == "secret"
    assert command("recall", "x", "--json", code=3, HOLDFAST_TOKEN="hf_wrong")["error"] == "unauthenticated"
    assert command("recall", "x", "--json", code=5, url="http://127.0.0.1:1")["error"] == "unreached"
    assert command("get", "k", "--token-file", "nothing", "--json", code=2)["error"] == "usage"
    assert command("get", "k", "--token-file", "token", "--json", code=2, given=False)["error"] == "usage"
    assert command("store", "text", "--agent", "bo", "--json", code=2)["error"] == "usage"


def test_mcp_on_stdio_asks_the_gateway(command, gateway, tmp_path):
    told = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        _call(2, "memory_store", text="harbour words", key="k", project="demo"),
        _call(3, "memory_recall", query="harbour", project="demo"),
        _call(4, "memory_search", query="harbour", project="demo"),
        _call(5, "memory_get", key="k", project="demo"),
        _call(6, "memory_get", key="nothing", project="demo"),
        _call(7, "memory_forget", key="k", project="demo"),
    ]  # fmt: skip
    said = {}
    token = (tmp_path / "token").read_text().strip()
    with subprocess.Popen(
        [*HOLDFAST, "--url", f"http://127.0.0.1:{gateway.port}", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, cwd=tmp_path, env={**os.environ, "HOLDFAST_HOME": str(tmp_path / "here"), "HOLDFAST_TOKEN": token},
    ) as process:  # fmt: skip
        for one in told:  # each after the previous one is answered: otherwise they run at the same time
            process.stdin.write(json.dumps(one) + "\n")
            process.stdin.flush()
            if "id" in one:
                answer = json.loads(process.stdout.readline())
                said[answer["id"]] = answer["result"]
        process.stdin.close()
    told = {id: Result.parse(one) for id, one in said.items() if id in (2, 3, 4, 5, 7)}
    assert told[2].startswith("Created ") and told[3].keys == ["k"] and told[4].texts == ["harbour words"]
    assert told[5].body == "harbour words" and told[7].startswith("Forgot ")
    assert said[6]["isError"]
    assert not (tmp_path / "here").exists()


def _call(id, name, **arguments):
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
