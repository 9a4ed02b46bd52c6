"""A model server on loopback that calls one tool of Holdfast once, receives its result, and ends the conversation.

It keeps every request byte for byte, to check what reached the model. As a proxy it refuses every connection, so that the
client reaches no other host.
"""

from __future__ import annotations

import json
import re
import threading
import zlib
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from holdfast_prove.model_apis import MODEL, ModelRequest, Reply, ToolName, encode_events, find_api

TOOL = "memory_recall"
FINAL_TEXT = "The proof is done."
MAX_BODY_BYTES = 64 * 1024 * 1024
_SEARCH_TOOLS = ("toolsearch", "tool_search")  # clients that defer tools offer one of these to find them
_CALL_TOOL = ToolName("", "tool_call")  # and this one to call a deferred tool
_MODELS = {
    "object": "list", "has_more": False,
    "data": [{"id": MODEL, "object": "model", "type": "model", "display_name": MODEL, "created": 0, "owned_by": "holdfast"}],
    "models": [],
}  # fmt: skip


@dataclass(frozen=True)
class ReceivedRequest:
    """One request as it came, and parsed if it is for the model."""

    method: str
    path: str
    body: bytes
    parsed: ModelRequest | None = None


class ModelServer:
    """Serve on a free port of loopback inside a `with` block."""

    def __init__(self, query: str, tool: str = TOOL, arguments: dict[str, Any] | None = None) -> None:
        self.tool = tool
        self.arguments = {"query": query} if arguments is None else arguments
        self.requests: list[ReceivedRequest] = []
        self.refused_hosts: list[str] = []  # that the client tried to reach through the proxy
        self._server = _Server(("127.0.0.1", 0), _make_handler(self))
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
        """Return the base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def model_requests(self) -> list[ModelRequest]:
        """Return the requests for the model in their order."""
        return [request.parsed for request in self.requests if request.parsed]

    def choose_reply(self, request: ModelRequest) -> Reply:
        """Search for the tool if the client defers it, call it once, then end."""
        if request.tool_result(self.tool) is not None:
            return Reply(text=FINAL_TEXT)
        if offered := request.find_tool(self.tool):
            return Reply(tool=self.tool, offered=offered, arguments=self.arguments)
        search = next((tool.name for tool in request.tools if tool.name.lower().endswith(_SEARCH_TOOLS)), "")
        if not search:
            return Reply(text=FINAL_TEXT)
        found = request.tool_result(search)
        if found is None:
            arguments = {"query": self.tool, "max_results": 5}
            return Reply(tool=search, offered=ToolName("", search), arguments=arguments)
        deferred = re.search(rf"[\w-]*{re.escape(self.tool)}\b", found)
        if deferred and _CALL_TOOL in request.tools:
            arguments = {"name": deferred[0], "arguments": self.arguments}
            return Reply(tool=self.tool, offered=_CALL_TOOL, arguments=arguments)
        return Reply(text=FINAL_TEXT)

    def respond(self, method: str, path: str, body: bytes) -> tuple[str, bytes]:
        """Keep a request and return the content type and the body of its response."""
        bare_path = path.partition("?")[0].rstrip("/")
        api = find_api(bare_path)
        if api is None or method != "POST":
            self.requests.append(ReceivedRequest(method, path, body))
            return "application/json", json.dumps(_respond_to_metadata(bare_path)).encode()
        request = api.parse_request(bare_path, _parse_json_object(body))
        self.requests.append(ReceivedRequest(method, path, body, request))
        reply = self.choose_reply(request)
        if request.stream:
            return "text/event-stream", encode_events(api.make_events(reply))
        return "application/json", json.dumps(api.make_response(reply)).encode()


def _parse_json_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body, or an empty one if it is not an object."""
    try:
        data = json.loads(body or b"{}")
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _respond_to_metadata(path: str) -> dict[str, Any]:
    """Return the list of models, a count of tokens, or an empty object for any other request."""
    if path.endswith("/models"):
        return _MODELS
    if path.endswith(("/count_tokens", ":countTokens")):
        return {"input_tokens": 1, "totalTokens": 1}
    return {}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that close the connection early."""


def _make_handler(model: ModelServer) -> type[BaseHTTPRequestHandler]:
    """Return the class that handles the HTTP requests of this server."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _handle(self) -> None:
            content_type, content = model.respond(self.command, self.path, self._read_body())
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_POST = do_HEAD = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = _handle

        def do_CONNECT(self) -> None:
            model.refused_hosts.append(self.path)
            self.send_error(403, "this proxy allows no connection to other hosts")

        def _read_body(self) -> bytes:
            if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
                body = self._read_chunks()
            else:
                size = self.headers.get("Content-Length", "0")
                body = self.rfile.read(min(int(size), MAX_BODY_BYTES)) if size.isdigit() else b""
            return _decompress(body, self.headers.get("Content-Encoding", ""))

        def _read_chunks(self) -> bytes:
            body = b""
            while (size := _parse_hex(self.rfile.readline(100).partition(b";")[0])) and len(body) + size <= MAX_BODY_BYTES:
                body += self.rfile.read(size)
                self.rfile.readline(100)
            self.rfile.readline(100)
            return body

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    return Handler


def _parse_hex(text: bytes) -> int:
    """Return a hexadecimal number; 0 if it is invalid or negative."""
    try:
        return max(int(text, 16), 0)
    except ValueError:
        return 0


def _decompress(body: bytes, encoding: str) -> bytes:
    """Return the body without gzip or deflate compression; unchanged if it has none or is invalid."""
    if encoding.strip().lower() not in ("gzip", "deflate"):
        return body
    try:
        return zlib.decompressobj(47).decompress(body, MAX_BODY_BYTES)  # 47: detect gzip or zlib by the header
    except zlib.error:
        return body
