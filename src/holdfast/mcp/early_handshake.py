"""Answer the first messages on stdio while the SDK is imported, which takes longer than a client should wait.

Requests that need no memory get the answer that the SDK would give (a test compares them). One answer differs: a client that
asks whether the server works without a handshake gets the answer no, because the server can ask for roots only after one. All
other messages are left for the SDK.
"""

from __future__ import annotations

import json
import os
import select
import threading
from collections.abc import Callable
from typing import Any

from holdfast import __version__
from holdfast.mcp.guidance import TITLE, instructions
from holdfast.mcp.prompts import PROMPTS, TEMPLATES
from holdfast.mcp.tools import TOOLS

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # of the protocol, with a handshake
SERVER = {"name": "holdfast", "title": TITLE, "version": __version__}
CAPABILITIES: dict[str, dict[str, bool]] = {
    "prompts": {"listChanged": False},
    "resources": {"subscribe": False, "listChanged": False},
    "tools": {"listChanged": False},
}
SDK_METHODS = ("tools/call", "resources/list", "resources/read", "prompts/get")  # that only the SDK can answer
_METHOD_NOT_FOUND = -32601
_MAX_LINE_BYTES = 1024 * 1024  # a longer line is left for the SDK


class StdioConnection:
    """The client's stdin and stdout. File descriptors 0 and 1 are replaced, so that stray prints go to stderr."""

    def __init__(self) -> None:
        self.input, self.output = os.dup(0), os.dup(1)
        for there, here in ((os.open(os.devnull, os.O_RDONLY), 0), (os.dup(2), 1)):
            os.dup2(there, here)
            os.close(there)
        self.buffered = b""  # read already, for the SDK
        self.initialize_id: int | str | None = None  # the id of an `initialize` that was answered here
        self.ended = False
        self._send_lock = threading.Lock()
        self.is_loading = False  # whether the import still runs after the client has left

    def answer_handshake(self, load: Callable[[], object]) -> bool:
        """Answer messages while `load` runs, which starts with the handshake. Return whether the SDK has anything to do."""
        loading, kept = _Loader(load), b""
        while line := self._next_line(loading):
            message = parse_message(line)
            answer = self._answer(message) if message else None
            if message is None or (answer is None and "id" in message):
                break
            self.buffered = self.buffered[len(line) :]
            if answer is None or message["method"] == "initialize":
                kept += line  # the SDK needs it too
            if answer is not None:
                self.send_message({"jsonrpc": "2.0", "id": message["id"], **answer})
            if message["method"] == "initialize":
                self.initialize_id = message["id"]
                loading.start()
        if self.ended and not self.buffered:
            self.is_loading = loading.is_running
            return False
        self.buffered = kept + self.buffered
        loading.finish()
        return True

    def _next_line(self, loading: _Loader) -> bytes:
        """Return the next line without removing it; empty once the SDK is loaded, or at the end."""
        while not loading.is_done and not self.ended and b"\n" not in self.buffered and len(self.buffered) < _MAX_LINE_BYTES:
            if self.input in select.select([self.input, loading.done], [], [])[0]:
                more = os.read(self.input, 65536)
                self.buffered += more
                self.ended = not more
        return b"" if loading.is_done else self.buffered[: self.buffered.find(b"\n") + 1]

    def _answer(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to a message; None if the SDK must answer, or if it needs none."""
        method, params = message["method"], message.get("params") or {}
        if "id" not in message or method in SDK_METHODS:
            return None
        if method == "initialize":
            if self.initialize_id is not None or not _is_complete(params):
                return None
            return {"result": initialize_result(params["protocolVersion"])}
        if method == "ping":
            return {"result": {}}
        if method not in STATIC_RESULTS:
            return {"error": {"code": _METHOD_NOT_FOUND, "message": "Method not found", "data": method}}
        return {"result": STATIC_RESULTS[method]()} if self.initialize_id is not None else None

    def send_message(self, message: dict[str, Any]) -> None:
        self.send(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def send(self, data: bytes) -> None:
        """Write whole lines, one thread at a time. After the client has left, nothing is written or read any more."""
        with self._send_lock:
            try:
                while data:
                    data = data[os.write(self.output, data) :]
            except OSError:
                self.ended, self.buffered = True, b""


class _Loader:
    """Slow work in a thread; `done` is a file descriptor to select on."""

    def __init__(self, load: Callable[[], object]) -> None:
        self._load = load
        self._thread: threading.Thread | None = None
        self._failed: Exception | None = None
        self.done, self._tell = os.pipe()
        self.is_done = False

    @property
    def is_running(self) -> bool:
        return self._thread is not None and not self.is_done

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)  # it does not keep the process alive
        self._thread.start()

    def finish(self) -> None:
        """Wait for the work, and raise its error."""
        if self._thread is None:
            self._run()
        else:
            self._thread.join()
        if self._failed is not None:
            raise self._failed

    def _run(self) -> None:
        try:
            self._load()
        except Exception as error:
            self._failed = error
        self.is_done = True
        os.write(self._tell, b".")


def initialize_result(asked: str) -> dict[str, Any]:
    """Return the result of `initialize`."""
    version = asked if asked in VERSIONS else VERSIONS[-1]
    result = {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": SERVER}
    return {**result, "instructions": instructions()}


STATIC_RESULTS: dict[str, Callable[[], dict[str, Any]]] = {
    "tools/list": lambda: {"tools": [tool.as_shown() for tool in TOOLS]},
    "prompts/list": lambda: {"prompts": PROMPTS},
    "resources/templates/list": lambda: {"resourceTemplates": TEMPLATES},
}


def parse_message(line: bytes) -> dict[str, Any] | None:
    """Return a request or a notification; None for anything else, which the SDK answers."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        return None
    id = message.get("id", 0)
    return message if isinstance(id, int | str) and not isinstance(id, bool) else None


def _is_complete(params: Any) -> bool:
    """Return whether the parameters are complete; if not, the SDK says what is missing."""
    if not isinstance(params, dict) or not isinstance(params.get("capabilities"), dict):
        return False
    info = params.get("clientInfo")
    named = isinstance(info, dict) and isinstance(info.get("name"), str) and isinstance(info.get("version"), str)
    return named and isinstance(params.get("protocolVersion"), str)
