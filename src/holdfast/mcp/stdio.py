"""The server on stdin and stdout: one client, until it hangs up or we are told to stop."""

from __future__ import annotations

import asyncio
import io
import json
import os
import select
import signal
import threading
from typing import IO, Any, cast

import anyio
import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

from holdfast.mcp.early_handshake import Wire, parsed

_LINE_BYTES = 16 * 1024 * 1024  # as over HTTP: a file may have 10 MiB, and JSON may spell it longer
_PARTING_SECONDS = 30.0  # for calls under way when the client has said its last word


def serve(server: Server[Any], wire: Wire) -> None:
    """Answer until the client closes its end, or SIGTERM or Ctrl-C closes ours; calls that run are finished first."""
    anyio.run(_serve, server, wire)


async def _serve(server: Server[Any], wire: Wire) -> None:
    open_calls = _Open()
    lines = _Input(wire, open_calls)
    loop = asyncio.get_running_loop()
    for sign in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(sign, lines.stop)
    there, here = cast(IO[str], lines), cast(IO[str], _Output(wire, open_calls, lines))
    async with stdio_server(anyio.wrap_file(there), anyio.wrap_file(here)) as (read, write):
        await server.run(read, write, server.create_initialization_options())


class _Open:
    """The requests that have no answer yet."""

    def __init__(self) -> None:
        self._ids: set[int | str] = set()
        self._changed = threading.Condition()

    def heard(self, said: dict[str, Any]) -> None:
        if "id" in said:
            with self._changed:
                self._ids.add(said["id"])
        elif said["method"] == "notifications/cancelled" and isinstance(said.get("params"), dict):
            self.answered(said["params"].get("requestId"))  # it gets none any more

    def answered(self, id: object) -> None:
        if isinstance(id, int | str):
            with self._changed:
                self._ids.discard(id)
                self._changed.notify_all()

    def wait(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._ids, _PARTING_SECONDS)

    def clear(self) -> None:
        with self._changed:
            self._ids.clear()
            self._changed.notify_all()


class _Input(io.TextIOBase):
    """What the client says, line by line; it ends when we stop, or when the client has and its calls are answered."""

    def __init__(self, wire: Wire, calls: _Open) -> None:
        self._wire, self._calls = wire, calls
        self._data, self._searched, self._too_long = bytearray(wire.ahead), 0, False
        self._stop, self._stopping = os.pipe()

    def stop(self) -> None:
        """End it from elsewhere."""
        self._calls.clear()
        os.write(self._stopping, b".")

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        while (end := self._data.find(b"\n", self._searched)) < 0:
            if len(self._data) > _LINE_BYTES:  # what comes of it is dropped until it ends
                self._data, self._too_long = bytearray(), True
            self._searched = len(self._data)
            if not self._more():
                self._calls.wait()
                return ""
        line, self._data, self._searched = bytes(self._data[: end + 1]), self._data[end + 1 :], 0
        if self._too_long or len(line) > _LINE_BYTES:
            self._too_long = False
            return self._refused(None, f"more than {_LINE_BYTES} bytes in one message")
        text, said = line.decode("utf-8", "replace"), parsed(line)
        if said is None:
            return self._unheard(line) or text
        if not _is_sound(text):
            return self._refused(said["id"], "not a message of the protocol, or not Unicode") if "id" in said else "\n"
        self._calls.heard(said)
        return text

    def _unheard(self, line: bytes) -> str:
        """Answer what is neither a request nor a notification; nothing to what may be an answer to us, or is blank."""
        try:
            said = json.loads(line) if line.strip() else {"result": None}
        except (ValueError, RecursionError):
            return self._refused(None, "not JSON", types.PARSE_ERROR)
        if not isinstance(said, dict) or "method" in said or not ("result" in said or "error" in said):
            id = said.get("id") if isinstance(said, dict) else None
            known = isinstance(id, int | str) and not isinstance(id, bool)
            return self._refused(id if known else None, "not a message of the protocol")
        return ""

    def _refused(self, id: object, why: str, code: int = types.INVALID_REQUEST) -> str:
        """What the SDK cannot read it does not answer, and the client would wait: so we do. An empty line is left."""
        said = "Parse error" if code == types.PARSE_ERROR else "Invalid request"
        self._wire.say({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": f"{said}: {why}"}})
        return "\n"

    def _more(self) -> bool:
        ready, _, _ = select.select([self._wire.input, self._stop], [], [])
        more = b"" if self._stop in ready else os.read(self._wire.input, 1024 * 1024)
        self._data += more
        return bool(more)


class _Output(io.TextIOBase):
    """What we say: all but the SDK's own answer to an `initialize` that the greeting has answered."""

    def __init__(self, wire: Wire, calls: _Open, lines: _Input) -> None:
        self._wire, self._calls, self._lines = wire, calls, lines

    def write(self, text: str, /) -> int:
        wire, said = self._wire, json.loads(text)
        answers = said.get("id") if "method" not in said else None
        if answers is not None and answers == wire.greeted:
            wire.greeted = None
        else:
            wire.send(text.encode("utf-8", "replace"))
        self._calls.answered(answers)
        if wire.ended:
            self._lines.stop()
        return len(text)

    def flush(self) -> None:
        pass


def _is_sound(text: str) -> bool:
    """Whether the SDK can read it."""
    try:
        types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        return False
    return True
