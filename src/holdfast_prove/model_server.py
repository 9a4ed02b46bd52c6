"""A model server on loopback that knows one thing to do: call one of our tools once, read what comes back, and stop.

It keeps every request, so that what reached the model can be looked at byte for byte. Nothing that asks it gets out: as a
proxy it refuses.
"""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from holdfast.base.record import Record
from holdfast_prove import dialects
from holdfast_prove.dialects.base import MODEL, Ask, Step, stream

TOOL = "memory_recall"
GOODBYE = "The proof is done."
MOST = 64 * 1024 * 1024
_SEARCHES = ("toolsearch", "tool_search")  # how clients call the tool that finds the tools they hold back
_BRIDGE = "tool_call"  # and the one that calls a tool which stays held back
_MODELS = {
    "object": "list", "has_more": False,
    "data": [{"id": MODEL, "object": "model", "type": "model", "display_name": MODEL, "created": 0, "owned_by": "holdfast"}],
    "models": [],
}  # fmt: skip


class Request(Record):
    """What one request brought, as it came and in our words; `ask` is None for one that is not for the model itself."""

    method: str
    path: str
    body: bytes
    ask: Ask | None = None


class Model:
    """Listens on a free port of loopback until it is closed."""

    def __init__(self, query: str, tool: str = TOOL, arguments: dict[str, Any] | None = None) -> None:
        self.tool = tool
        self.arguments = {"query": query} if arguments is None else arguments
        self.requests: list[Request] = []
        self.refused: list[str] = []  # hosts that somebody wanted to reach through us
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def asks(self) -> list[Ask]:
        """The requests that were for the model, in the order in which they came."""
        return [one.ask for one in self.requests if one.ask]

    def step(self, ask: Ask) -> Step:
        """What the model does next: look for the tool where it is held back, call it once, then end."""
        if ask.answer_of(self.tool) is not None:
            return Step(text=GOODBYE)
        if place := ask.offered(self.tool):
            return Step(tool=self.tool, space=place[0], name=place[1], arguments=self.arguments)
        search = next((name for _, name in ask.tools if name.lower().endswith(_SEARCHES)), "")
        if not search:
            return Step(text=GOODBYE)
        found = ask.answer_of(search)
        if found is None:
            return Step(tool=search, name=search, arguments={"query": self.tool, "max_results": 5})
        held_back = re.search(rf"[\w-]*{re.escape(self.tool)}\b", found)
        if held_back and ("", _BRIDGE) in ask.tools:
            return Step(tool=self.tool, name=_BRIDGE, arguments={"name": held_back[0], "arguments": self.arguments})
        return Step(text=GOODBYE)

    def answer(self, method: str, path: str, body: bytes) -> tuple[str, bytes]:
        """The kind and the bytes of the answer to one request, which is kept."""
        bare = path.partition("?")[0].rstrip("/")
        dialect, data = dialects.of(bare), _parsed(body)
        if dialect is None or method != "POST":
            self.requests.append(Request(method, path, body))
            return "application/json", json.dumps(_aside(bare)).encode()
        ask = dialect.ask(bare, data)
        self.requests.append(Request(method, path, body, ask))
        step = self.step(ask)
        if ask.stream:
            return "text/event-stream", stream(dialect.events(step))
        return "application/json", json.dumps(dialect.whole(step)).encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no news."""


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        data = json.loads(body or b"{}")
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _aside(path: str) -> dict[str, Any]:
    """What is asked beside the conversation: which models there are, and how many tokens something has."""
    if path.endswith("/models"):
        return _MODELS
    if path.endswith(("/count_tokens", ":countTokens")):
        return {"input_tokens": 1, "totalTokens": 1}
    return {}


def _handler(model: Model) -> type[BaseHTTPRequestHandler]:
    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            kind, answer = model.answer(self.command, self.path, self._body())
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer)

        do_GET = do_POST = do_HEAD = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = _answer

        def do_CONNECT(self) -> None:
            model.refused.append(self.path)
            self.send_error(403, "this proxy lets nobody out")

        def _body(self) -> bytes:
            if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
                return _unzipped(self._chunks(), self.headers.get("Content-Encoding", ""))
            size = self.headers.get("Content-Length", "0")
            body = self.rfile.read(min(int(size), MOST)) if size.isdigit() else b""
            return _unzipped(body, self.headers.get("Content-Encoding", ""))

        def _chunks(self) -> bytes:
            body = b""
            while (size := _hex(self.rfile.readline(100).partition(b";")[0])) and len(body) + size <= MOST:
                body += self.rfile.read(size)
                self.rfile.readline(100)
            self.rfile.readline(100)
            return body

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: what came is kept, not printed."""

    return Answering


def _hex(text: bytes) -> int:
    try:
        return max(int(text, 16), 0)
    except ValueError:
        return 0


def _unzipped(body: bytes, how: str) -> bytes:
    import zlib

    if how.strip().lower() not in ("gzip", "deflate"):
        return body
    try:
        return zlib.decompressobj(47).decompress(body, MOST)
    except zlib.error:
        return body
