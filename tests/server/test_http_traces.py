"""OpenTelemetry traces: spans of requests, verbs, the database and outgoing calls; without text, and off unless configured."""

from __future__ import annotations

import gzip
import http.server
import io
import json
import sys
import threading
from contextlib import contextmanager

import pytest
from http_gateway import run_gateway
from opentelemetry.exporter.otlp.proto.http import trace_exporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind
from test_http_serve import started

from holdfast import Memory
from holdfast.base import tracing
from holdfast.home import Lock
from holdfast.postgres.pool import close_pools

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SECRETS = ("Harbour", "harbour", "lighthouse", "combination")


class Webhook(http.server.BaseHTTPRequestHandler):
    """Accepts what is posted to it."""

    def do_POST(self):
        self.keep(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def keep(self, data):
        pass

    def log_message(self, *_):
        pass


class Collector(Webhook):
    """Keeps the spans that are posted to it, as an OTLP collector reads them."""

    received: list = []

    def keep(self, data):
        data = gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data
        self.received.append((self.path, ExportTraceServiceRequest.FromString(data)))


@contextmanager
def listening(handler):
    """Run an HTTP server on a free port."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join(60)
        server.server_close()


@pytest.fixture
def exporter(monkeypatch):
    exporter = InMemorySpanExporter()
    monkeypatch.setattr(trace_exporter, "OTLPSpanExporter", lambda endpoint: exporter)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector.example:4318")
    return exporter


@contextmanager
def traced(home, url=None):
    if url:
        home.mkdir(mode=0o700, exist_ok=True)
        (home / "config.toml").write_text(f"[store]\nurl = {json.dumps(url)}\n")
    with run_gateway(home) as gateway:
        yield gateway
    if url:
        close_pools(url)


@pytest.fixture(params=["embedded", "postgres"])
def url(request):
    return None if request.param == "embedded" else request.getfixturevalue("postgres_url")


def spans_of(exporter):
    """Return the finished spans; the gateway sent them when it ended."""
    return exporter.get_finished_spans()


def test_a_request_continues_the_callers_trace_and_has_its_verb_and_database_below_it(home, url, exporter):
    with traced(home, url) as gateway:
        gateway.operator.post("/gateway/memory", {"key": "combination", "value": "Harbour words."},
                              traceparent=f"00-{TRACE}-{PARENT}-01")  # fmt: skip
        gateway.operator.post("/v1/recall", {"query": "lighthouse harbour", "mode": "keyword"})
        assert gateway.anonymous.get("/gateway/memory").status == 401
    spans = spans_of(exporter)
    (stored,) = [one for one in spans if one.name == "POST /gateway/memory"]
    assert f"{stored.context.trace_id:032x}" == TRACE and f"{stored.parent.span_id:016x}" == PARENT
    assert stored.kind == SpanKind.SERVER
    expected = {"http.request.method": "POST", "http.route": "/gateway/memory", "http.response.status_code": 200,
                "holdfast.agent": "operator", "holdfast.role": "operator"}  # fmt: skip
    assert expected.items() <= dict(stored.attributes).items()
    assert stored.attributes.get("holdfast.tenant") == ("default" if url else None)
    below = {one.name for one in spans if f"{one.context.trace_id:032x}" == TRACE}
    waits = {"postgres.acquire_connection", "postgres.query"} if url else {"sqlite.begin"}
    assert {"keyvaluememory.begin_store", "write_queue.submit", *waits} <= below
    (recalled,) = [one for one in spans if one.name == "POST /v1/recall"]
    assert recalled.parent is None and recalled.context.trace_id != stored.context.trace_id
    verbs = [one for one in spans if one.name == "memory.recall"]
    assert [one.context.trace_id for one in verbs] == [recalled.context.trace_id]
    (refused,) = [one for one in spans if one.name == "GET /gateway/memory"]
    assert refused.attributes["holdfast.outcome"] == "unauthenticated" and "holdfast.agent" not in refused.attributes


def test_no_span_has_text_keys_queries_or_tokens(home, url, exporter):
    with traced(home, url) as gateway:
        operator = gateway.operator
        operator.post("/v1/notes", {"text": "Harbour words.", "key": "combination", "scope": "agent"})
        operator.get("/v1/notes/agent/combination")
        operator.post("/v1/recall", {"query": "lighthouse", "mode": "keyword"})
        operator.post("/v1/notes/agent/combination/purge")
        operator.get("/v1/notes/agent/harbour")
        operator.post("/v1/notes", {"text": "x" * 70_000, "key": "harbour", "scope": "agent"})
        token = operator.token
    written = "".join([one.to_json() for one in spans_of(exporter)])
    assert "POST /v1/notes" in written
    assert not [word for word in (*SECRETS, token, token[12:]) if word in written]


def test_an_outgoing_call_is_a_client_span(home, exporter):
    with listening(Webhook) as port:
        home.mkdir(mode=0o700)
        (home / "config.toml").write_text(f'[dispatch]\nwebhook = "http://127.0.0.1:{port}/hand-over"\n')
        with run_gateway(home) as gateway:
            said = gateway.operator.post("/dispatch", {"task": "Harbour words.", "to": "webhook"})
            assert said.status == 200, said
    spans = spans_of(exporter)
    (request,) = [one for one in spans if one.name == "POST /dispatch"]
    (call,) = [one for one in spans if one.kind == SpanKind.CLIENT and one.name == "POST"]
    assert call.context.trace_id == request.context.trace_id
    assert call.attributes["server.address"] == "127.0.0.1" and call.attributes["http.response.status_code"] == 200
    assert "Harbour" not in "".join([one.to_json() for one in spans])


def test_a_wait_for_a_lock_is_a_span_and_a_free_lock_is_none(home):
    seen = []

    class Recorder:
        def span(self, name, attributes, is_client):
            seen.append((name, attributes, is_client))
            return tracing.NoSpan()

        def bind(self, work):
            return work

    home.mkdir()
    tracing.install(Recorder())
    try:
        with Lock(str(home), "one", 1):
            assert seen == []
            assert Lock(str(home), "one", 0).acquire(0) is False
    finally:
        tracing.install(None)
    assert seen == [("lock.wait", {}, False)]


def test_without_a_collector_nothing_is_imported_or_recorded(home, tmp_path, child):
    loaded = child(
        """
        from holdfast.server.app import create_app
        from holdfast.server.gateway import Gateway
        gateway = Gateway(args[0])
        create_app(gateway)
        gateway.close()
        from holdfast.base import tracing
        answer = [tracing._tracer is None, *[name for name in sys.modules if name.startswith("opentelemetry.sdk")
                  or name == "holdfast.server.otel"]]
        """,
        home,
    )
    assert loaded == [True]


def test_a_gateway_without_the_extra_says_so_and_answers(home, exporter, monkeypatch):
    monkeypatch.setitem(sys.modules, "holdfast.server.otel", None)  # as if the package were missing
    monkeypatch.delattr("holdfast.server.otel", raising=False)
    log = io.StringIO()
    with run_gateway(home, log) as gateway:
        assert gateway.anonymous.get("/healthz").status == 200
    (line,) = [json.loads(line) for line in log.getvalue().splitlines() if "holdfast[otel]" in line]
    assert line["level"] == "warning" and spans_of(exporter) == ()


def test_an_error_is_recorded_by_its_code_alone(home, exporter):
    with traced(home) as gateway:
        assert gateway.operator.get("/v1/notes/agent/combination").status == 404
    (verb,) = [one for one in spans_of(exporter) if one.name == "memory.get"]
    assert verb.attributes["error.type"] == "not_found" and not verb.status.is_ok and verb.events == ()


def test_workers_send_their_spans_to_a_real_collector(home, tmp_path):
    with listening(Collector) as port:
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", "OTEL_SERVICE_NAME": "memory-test"}
        with started(home, tmp_path, "--workers", "2", env=env) as one:
            for _ in range(6):
                assert one.ask.get("/healthz").status == 200
            assert one.stop() == 0
    assert {path for path, _ in Collector.received} == {"/v1/traces"}
    resources = [resource for _, request in Collector.received for resource in request.resource_spans]
    names = {item.value.string_value for one in resources for item in one.resource.attributes if item.key == "service.name"}
    spans = [span.name for one in resources for scope in one.scope_spans for span in scope.spans]
    assert names == {"memory-test"} and spans.count("GET /healthz") == 6


def test_a_memory_without_a_gateway_records_nothing(home, exporter, tmp_path):
    with Memory(home, project="demo", cwd=tmp_path) as memory:
        memory.store("Harbour words.", key="k")
    assert spans_of(exporter) == ()
