"""The requests that a remote client sends to a gateway are exactly those of the golden file."""

from __future__ import annotations

import http.client
import inspect
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from http_gateway import run_gateway

from golden import compare
from holdfast import HoldfastError, Memory

IGNORED_HEADERS = {"host", "user-agent", "accept-encoding", "connection", "content-length", "transfer-encoding"}
MASKED_HEADERS = {"authorization", "idempotency-key"}  # their values vary
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"  # looks like a token but is not one; it is redacted before it is sent
TURNS = [{"id": "t1", "role": "user", "content": "said by the harbour"}, {"speaker": "Bo", "text": "yes"}]
CALLS = {
    "store": lambda m: m.store("harbour words, the first", key="k", tags="a,b", type="feedback"),
    "store, next": lambda m: m.store("harbour words", key="k", pinned=True, valid_from="2026-01-01", valid_to="2999-01-01"),
    "store without a key": lambda m: m.store("A lighthouse, and Größe 日本"),
    "store bytes": lambda m: m.store(b"bytes of text", key="bytes"),
    "store, expected": lambda m: m.store("bytes two", key="bytes", expected=m.get("bytes").version),
    "store, conflict": lambda m: m.store("bytes three", key="bytes", expected="0" * 32),
    "store from the web": lambda m: m.store("read it", key="web", origin="web", made_from="https://a.example/x"),
    "store again": lambda m: m.store("once more", key="again", again=True),
    "store, allowed": lambda m: m.store(f"the token {TOKEN} of git", key="allowed", allow_secret="an example"),
    "store, redacted": lambda m: m.store(f"the token {TOKEN} of git", key="redacted", redact=True),
    "store in the agent's": lambda m: m.store("the agent's own", key="own", scope="agent"),
    "store in the session's": lambda m: m.store("the session's own", key="now", scope="session"),
    "store in global": lambda m: m.store("of all", key="everyone", scope="global"),
    "store, a key that is none": lambda m: m.store("text", key="Not A Key"),
    "store_many": lambda m: m.store_many([{"text": "one"}, {"text": "two", "key": "k2", "tags": ["x"]}], origin="agent"),
    "store_many, more": lambda m: m.store_many([{"text": f"row {n}", "scope": "agent"} for n in range(25)]),
    "get": lambda m: m.get("k"),
    "get in a scope": lambda m: m.get("own", scope="agent"),
    "get as of": lambda m: m.get("k", as_of="2026-02-01", known_at="2026-02-02T10:00:00+02:00"),
    "get nothing": lambda m: m.get("nothing"),
    "list": lambda m: m.list(),
    "list, some": lambda m: m.list(scope="project", type="feedback", tags=["a", "b"], limit=3),
    "list by source": lambda m: m.list(source="https://a.example"),
    "list, archived": lambda m: m.list(archived=True),
    "history": lambda m: m.history("k"),
    "recall": lambda m: m.recall("harbour"),
    "recall, all": lambda m: m.recall("own", mode="keyword", scope="agent", type="feedback", tags=["a"], limit=3, kind="note",
                                      as_of="2026-02-01", known_at="2026-02-02", now="2026-03-01", sort="usage", explain=True),
    "recall of two kinds": lambda m: m.recall("harbour words", mode="keyword", kind="note,file"),
    "recall, recent": lambda m: m.recall(mode="recent", scope="global"),
    "search": lambda m: [m.search("harbour", limit=2), m.search("harbour", mode="keyword")],
    "fact": lambda m: m.fact("Harbour", "state", "open", on="2026-01-01"),
    "fact, one of many": lambda m: m.fact("Harbour", "town", "[[Lisbon]]", many=True, scope="agent", made_from=["note:k"]),
    "facts": lambda m: m.facts("Harbour"),
    "facts, all": lambda m: m.facts("Harbour", as_of="2026-01-15", label="state", scope="project", history=True),
    "graph": lambda m: m.graph("Lisbon", depth=2, as_of="2026-03-01", scope="agent"),
    "path": lambda m: m.path("Lisbon", "Harbour", as_of="2026-03-01"),
    "log": lambda m: m.log(TURNS, session="s1", client="chat"),
    "log, redacted": lambda m: m.log([{"id": "t3", "text": f"key {TOKEN}"}], redact=True),
    "import_history": lambda m: m.import_history("chat.jsonl"),
    "expand": lambda m: m.expand("t1", before=1, after=2, session="s1"),
    "read": lambda m: m.read("projects/demo/notes/k.md", 2, 3),
    "files": lambda m: [m.files.create("/memories/a.md", "one\ntwo\n"), m.files.insert("/memories/a.md", 1, "between"),
                        m.files.str_replace("/memories/a.md", "two", "harbour"),
                        m.files.rename("/memories/a.md", "/memories/b.md"),
                        m.files.view("/memories/b.md"), m.files.view("/memories/b.md", (2, -1)),
                        m.files.view("/memories", scope="agent"), m.files.delete("/memories/b.md")],
    "brief": lambda m: m.brief(),
    "brief, prompted": lambda m: m.brief(prompt="where is the harbour", again=True, mode="hybrid"),
    "brief, explained": lambda m: m.brief(cap=900, explain=True, remember=False),
    "review": lambda m: [m.review(), m.review(everywhere=True), m.review(scope="project")],
    "trace": lambda m: m.trace("web"),
    "approve": lambda m: m.approve("web"),
    "quarantine": lambda m: [m.quarantine("web"), m.approve("web")],
    "reject": lambda m: [m.store("from the web", key="webbed", origin="web"), m.reject("webbed", scope="project")],
    "relate": lambda m: [m.store("Old ships.", key="old-ships"), m.relate("web", "supersedes", "old-ships")],
    "relations": lambda m: [m.relations("web"), m.relations(status="proposed")],
    "reject_relation": lambda m: m.reject_relation("web", "supersedes", "old-ships"),
    "accept_relation": lambda m: m.accept_relation("web", "supersedes", "old-ships"),
    "unrelate": lambda m: m.unrelate("web", "supersedes", "old-ships"),
    "approve of a scope": lambda m: [m.store("web again", key="web2", origin="web"),
                                     m.approve("web2", scope=m.get("web2").scope)],
    "forget": lambda m: m.forget("k2"),
    "forget, expected": lambda m: m.forget("everyone", scope="global", expected="0" * 32),
    "forget nothing": lambda m: m.forget("nothing"),
    "trash": lambda m: [m.trash(), m.trash(scope="project")],
    "restore": lambda m: m.restore("k2"),
    "restore under": lambda m: [m.forget("own", scope="agent"), m.restore("own", under="own2")],
    "forget_source": lambda m: [m.forget_source("https://a.example", dry_run=True), m.forget_source("origin:web", revert=True)],
    "export": lambda m: list(m.export()),
    "export a scope": lambda m: list(m.export(scope="global")),
    "purge": lambda m: m.purge("redacted", transcripts=True),
    "purge nothing": lambda m: m.purge("nothing"),
    "purge a session": lambda m: m.purge(session="s1", client="chat"),
    "purge a text": lambda m: m.purge(text="harbour words, the first", files=True),
    "receipts": lambda m: m.receipts(m.receipts()[0].id),
    "forget_session": lambda m: [m.log([{"text": "said"}], session="s2", client="chat"), m.forget_session("s2")],
    "restore_session": lambda m: m.restore_session("s2", client="chat"),
    "scaffold": lambda m: [m.scaffold("continuity"), m.scaffold("wiki", scope="project")],
    "boot": lambda m: [m.boot(), m.boot(cap=1500, scope="agent", scaffolds="wiki")],
    "operator_send": lambda m: [m.operator_send("look at the harbour", agent="ada"),
                                m.operator_send("it is open", to="operator", scope="project", redact=True)],
    "operator_list": lambda m: [m.operator_list(), m.operator_list(agent="ada", scope="agent", unread=True)],
    "operator_read": lambda m: [m.operator_read(), m.operator_read("m7", scope="project")],
    "list, of every scope": lambda m: m.list(scope="all"),
    "retain": lambda m: [m.retain(dry_run=True), m.retain()],
    "check": lambda m: m.check(),
    "reindex": lambda m: m.reindex(),
    "embed": lambda m: m.embed(),
    "clear": lambda m: m.clear("session"),
    "status": lambda m: [m.status(), m.status(whole=False)],
    "mark": lambda m: m.mark(), "projects": lambda m: m.projects(), "adopt": lambda m: m.adopt("old"),
    "render": lambda m: m.render("CLAUDE.md"),
}  # fmt: skip


class RecordingProxy:
    """A proxy to the gateway that records requests."""

    def __init__(self, port: int) -> None:
        self.requests: list[dict] = []
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def forward(self) -> None:
                data = self.rfile.read(int(self.headers.get("content-length") or 0))
                recorder.requests.append(describe_request(self.command, self.path, self.headers.items(), data))
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                headers = {name: value for name, value in self.headers.items() if name.lower() not in IGNORED_HEADERS}
                connection.request(self.command, self.path, data or None, headers)
                response = connection.getresponse()
                content = response.read()
                connection.close()
                self.send_response(response.status)
                self.send_header("Content-Type", response.headers.get("content-type", ""))
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = forward

            def log_message(self, *_) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self.server.shutdown()
        self.server.server_close()


def describe_request(method, target, headers, data):
    shown = {name.lower(): value for name, value in headers if name.lower() not in IGNORED_HEADERS}
    shown |= dict.fromkeys(MASKED_HEADERS & set(shown), "...")
    body = data.decode("utf-8")
    if "ndjson" in shown.get("content-type", ""):
        body = [json.loads(line) for line in body.splitlines()]
    elif body:
        body = json.loads(body)
    return {"request": f"{method} {target}", "headers": shown, "body": body or None}


def mask_ids(text):
    """Replace tokens, ids and digests, which differ in each run."""
    text = re.sub(r"\b01[0-9A-HJKMNP-TV-Z]{14}\b", "ID", text.replace(TOKEN, "TOKEN"))
    return re.sub(r"\b(?!0{32})[0-9a-f]{32}\b", "DIGEST", text)


@pytest.fixture
def record_requests(home, tmp_path, monkeypatch):
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[serve]\nrate = 0\n[lock]\nseconds = 1\n")
    monkeypatch.chdir(tmp_path)
    turn = {"session": "s5", "id": "i1", "role": "user", "content": "How long?", "time": "2026-01-07T08:00:00Z"}
    (tmp_path / "chat.jsonl").write_text(json.dumps(turn) + "\n")
    with run_gateway(home) as gateway, RecordingProxy(gateway.port) as recorder:
        address = f"http://127.0.0.1:{recorder.server.server_port}"
        token = gateway.agent("ada", "operator").token
        with Memory(address, token=token, project="demo", session="s9", origin="user", cwd=tmp_path) as memory:

            def record(call):
                recorder.requests.clear()
                try:
                    call(memory)
                    outcome = "answered"
                except HoldfastError as error:
                    outcome = f"{type(error).__name__}: {error.message}"
                return {"outcome": outcome, "requests": list(recorder.requests)}

            yield record


def test_requests(record_requests):
    requests = {name: record_requests(call) for name, call in CALLS.items()}
    compare.check("wire.json", mask_ids(json.dumps(requests, ensure_ascii=False, indent=1, sort_keys=True)) + "\n")


def test_every_method_is_called():
    named = {name.partition(",")[0].partition(" ")[0] for name in CALLS}
    methods = {name for name, _ in inspect.getmembers(Memory, inspect.isfunction) if not name.startswith("_")}
    assert methods - named - {"close"} == set()
