"""The first words on stdio, before the SDK is there: loading it takes longer than a client should wait for `initialize`.

While it loads, what needs no memory is answered from here, as the SDK would answer it (a test compares them). One answer is
our own: a client that asks whether we speak the protocol without a handshake is told no, because only after a handshake
can it be asked for its roots. Whatever else comes is left for the SDK.
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

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # those that begin with a handshake
SERVER = {"name": "holdfast", "title": TITLE, "version": __version__}
CAPABILITIES: dict[str, dict[str, bool]] = {
    "prompts": {"listChanged": False},
    "resources": {"subscribe": False, "listChanged": False},
    "tools": {"listChanged": False},
}
SERVED = ("tools/call", "resources/list", "resources/read", "prompts/get")  # what only the SDK can answer
_METHOD_NOT_FOUND = -32601
_BYTES = 1024 * 1024  # a longer line is the SDK's to read


class Wire:
    """The client's end of stdin and stdout, out of reach of whoever else might print: what they print goes to stderr."""

    def __init__(self) -> None:
        self.input, self.output = os.dup(0), os.dup(1)
        for there, here in ((os.open(os.devnull, os.O_RDONLY), 0), (os.dup(2), 1)):
            os.dup2(there, here)
            os.close(there)
        self.ahead = b""  # read already, and for the SDK to hear
        self.greeted: int | str | None = None  # the id of an `initialize` that has its answer
        self.ended = False
        self._speaking = threading.Lock()
        self.loads = False  # whether a thread still loads what nobody waits for any more

    def greet(self, load: Callable[[], object]) -> bool:
        """Answer while `load` runs, which begins with the handshake; whether there is anything left to do."""
        loading, kept = _Loading(load), b""
        while line := self._line(loading):
            said = parsed(line)
            answer = self._answer(said) if said else None
            if said is None or (answer is None and "id" in said):
                break
            self.ahead = self.ahead[len(line) :]
            if answer is None or said["method"] == "initialize":
                kept += line  # what the SDK must have heard
            if answer is not None:
                self.say({"jsonrpc": "2.0", "id": said["id"], **answer})
            if said["method"] == "initialize":
                self.greeted = said["id"]
                loading.start()
        if self.ended and not self.ahead:
            self.loads = loading.is_running
            return False
        self.ahead = kept + self.ahead
        loading.finish()
        return True

    def _line(self, loading: _Loading) -> bytes:
        """The next line, which stays where it is; nothing once the SDK is there, or at the end."""
        while not loading.is_done and not self.ended and b"\n" not in self.ahead and len(self.ahead) < _BYTES:
            if self.input in select.select([self.input, loading.done], [], [])[0]:
                more = os.read(self.input, 65536)
                self.ahead += more
                self.ended = not more
        return b"" if loading.is_done else self.ahead[: self.ahead.find(b"\n") + 1]

    def _answer(self, said: dict[str, Any]) -> dict[str, Any] | None:
        """What to say to it; None where that is not ours to say, or nothing is to be said."""
        method, params = said["method"], said.get("params") or {}
        if "id" not in said or method in SERVED:
            return None
        if method == "initialize":
            return {"result": initialized(params["protocolVersion"])} if self.greeted is None and _is_whole(params) else None
        if method == "ping":
            return {"result": {}}
        if method not in STATIC:
            return {"error": {"code": _METHOD_NOT_FOUND, "message": "Method not found", "data": method}}
        return {"result": STATIC[method]()} if self.greeted is not None else None

    def say(self, message: dict[str, Any]) -> None:
        self.send(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def send(self, data: bytes) -> None:
        """Whole lines only, whoever else may speak. Once the client has left there is nobody to tell, and no more to hear."""
        with self._speaking:
            try:
                while data:
                    data = data[os.write(self.output, data) :]
            except OSError:
                self.ended, self.ahead = True, b""


class _Loading:
    """Something slow, done in a thread; `done` can be selected on."""

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
        self._thread = threading.Thread(target=self._run, daemon=True)  # a client that has left does not wait for it
        self._thread.start()

    def finish(self) -> None:
        """Wait for it; what went wrong is raised here."""
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


def initialized(asked: str) -> dict[str, Any]:
    """The answer to `initialize`."""
    version = asked if asked in VERSIONS else VERSIONS[-1]
    said = {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": SERVER}
    return {**said, "instructions": instructions()}


STATIC: dict[str, Callable[[], dict[str, Any]]] = {
    "tools/list": lambda: {"tools": [tool.as_shown() for tool in TOOLS]},
    "prompts/list": lambda: {"prompts": PROMPTS},
    "resources/templates/list": lambda: {"resourceTemplates": TEMPLATES},
}


def parsed(line: bytes) -> dict[str, Any] | None:
    """A request or a notification; what is neither, the SDK answers."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or said.get("jsonrpc") != "2.0" or not isinstance(said.get("method"), str):
        return None
    id = said.get("id", 0)
    return said if isinstance(id, int | str) and not isinstance(id, bool) else None


def _is_whole(params: Any) -> bool:
    """Whether it has all that the protocol asks for; the SDK says best what is missing."""
    if not isinstance(params, dict) or not isinstance(params.get("capabilities"), dict):
        return False
    info = params.get("clientInfo")
    named = isinstance(info, dict) and isinstance(info.get("name"), str) and isinstance(info.get("version"), str)
    return named and isinstance(params.get("protocolVersion"), str)
