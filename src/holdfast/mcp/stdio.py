"""MCP over stdin and stdout: one client, until it disconnects or the process is stopped."""

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

from holdfast.mcp.early_handshake import StdioConnection, parse_message

_LINE_BYTES = 16 * 1024 * 1024  # as over HTTP
_SHUTDOWN_SECONDS = 30.0  # for running calls after the client has closed its end


def serve(server: Server[Any], connection: StdioConnection) -> None:
    """Serve until the client disconnects, or until SIGTERM or Ctrl-C; running calls are finished first."""
    anyio.run(_serve, server, connection)


async def _serve(server: Server[Any], connection: StdioConnection) -> None:
    pending = _PendingRequests()
    lines = _Input(connection, pending)
    loop = asyncio.get_running_loop()
    for sign in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(sign, lines.stop)
    there, here = cast(IO[str], lines), cast(IO[str], _Output(connection, pending, lines))
    async with stdio_server(anyio.wrap_file(there), anyio.wrap_file(here)) as (read, write):
        await server.run(read, write, server.create_initialization_options())


class _PendingRequests:
    """The ids of requests without an answer yet."""

    def __init__(self) -> None:
        self._ids: set[int | str] = set()
        self._changed = threading.Condition()

    def add(self, message: dict[str, Any]) -> None:
        if "id" in message:
            with self._changed:
                self._ids.add(message["id"])
        elif message["method"] == "notifications/cancelled" and isinstance(message.get("params"), dict):
            self.remove(message["params"].get("requestId"))  # it will get no answer

    def remove(self, id: object) -> None:
        if isinstance(id, int | str):
            with self._changed:
                self._ids.discard(id)
                self._changed.notify_all()

    def wait(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._ids, _SHUTDOWN_SECONDS)

    def clear(self) -> None:
        with self._changed:
            self._ids.clear()
            self._changed.notify_all()


class _Input(io.TextIOBase):
    """The client's messages, line by line, until `stop`, or until the client has closed its end and its calls are answered."""

    def __init__(self, connection: StdioConnection, calls: _PendingRequests) -> None:
        self._connection, self._pending = connection, calls
        self._data, self._searched, self._too_long = bytearray(connection.buffered), 0, False
        self._stop, self._stopping = os.pipe()

    def stop(self) -> None:
        """End the input, from another thread or a signal handler."""
        self._pending.clear()
        os.write(self._stopping, b".")

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        while (end := self._data.find(b"\n", self._searched)) < 0:
            if len(self._data) > _LINE_BYTES:  # the rest of the line is dropped
                self._data, self._too_long = bytearray(), True
            self._searched = len(self._data)
            if not self._read_more():
                self._pending.wait()
                return ""
        line, self._data, self._searched = bytes(self._data[: end + 1]), self._data[end + 1 :], 0
        if self._too_long or len(line) > _LINE_BYTES:
            self._too_long = False
            return self._reject(None, f"more than {_LINE_BYTES} bytes in one message")
        text, message = line.decode("utf-8", "replace"), parse_message(line)
        if message is None:
            return self._answer_invalid(line) or text
        if not _is_valid(text):
            return self._reject(message["id"], "not a message of the protocol, or not Unicode") if "id" in message else "\n"
        self._pending.add(message)
        return text

    def _answer_invalid(self, line: bytes) -> str:
        """Answer a line that is neither a request nor a notification; leave answers of the client and blank lines alone."""
        try:
            message = json.loads(line) if line.strip() else {"result": None}
        except (ValueError, RecursionError):
            return self._reject(None, "not JSON", types.PARSE_ERROR)
        if not isinstance(message, dict) or "method" in message or not ("result" in message or "error" in message):
            id = message.get("id") if isinstance(message, dict) else None
            known = isinstance(id, int | str) and not isinstance(id, bool)
            return self._reject(id if known else None, "not a message of the protocol")
        return ""

    def _reject(self, id: object, why: str, code: int = types.INVALID_REQUEST) -> str:
        """Answer a line that the SDK cannot read: the SDK would not answer, and the client would wait. Return an empty line."""
        kind = "Parse error" if code == types.PARSE_ERROR else "Invalid request"
        self._connection.send_message({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": f"{kind}: {why}"}})
        return "\n"

    def _read_more(self) -> bool:
        ready, _, _ = select.select([self._connection.input, self._stop], [], [])
        more = b"" if self._stop in ready else os.read(self._connection.input, 1024 * 1024)
        self._data += more
        return bool(more)


class _Output(io.TextIOBase):
    """The server's messages, without the SDK's answer to an `initialize` that was answered already."""

    def __init__(self, connection: StdioConnection, calls: _PendingRequests, lines: _Input) -> None:
        self._connection, self._pending, self._lines = connection, calls, lines

    def write(self, text: str, /) -> int:
        connection, message = self._connection, json.loads(text)
        answers = message.get("id") if "method" not in message else None
        if answers is not None and answers == connection.initialize_id:
            connection.initialize_id = None
        else:
            connection.send(text.encode("utf-8", "replace"))
        self._pending.remove(answers)
        if connection.ended:
            self._lines.stop()
        return len(text)

    def flush(self) -> None:
        pass


def _is_valid(text: str) -> bool:
    """Return whether the SDK can read a line."""
    try:
        types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        return False
    return True
