"""The log: one line a request, as JSON where a program reads it; never a body, a token, a key or a text."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import IO, TYPE_CHECKING, Any

from holdfast.base import dates

if TYPE_CHECKING:
    from holdfast.server.request import Request


_written = json.JSONEncoder().encode


class Logs:
    """Writes to a stream; to nobody if there is none."""

    def __init__(self, stream: IO[str] | None, as_json: bool = True) -> None:
        self._stream, self.as_json = stream, as_json
        self._lines: list[str] = []  # of requests that were answered at once: they are written together

    def request(self, request: Request, status: int, sent: int, seconds: float) -> None:
        if self._stream is None:
            return
        caller = request.caller
        told: dict[str, Any] = {
            "event": "request", "request_id": request.id, "method": request.scope["method"], "route": request.route or None,
            "status": status, "ms": round(seconds * 1000, 1), "bytes": sent, "agent": caller.agent if caller else None,
            "role": caller.role if caller else None, "tenant": request.tenant or None, "outcome": request.outcome or None,
        }  # fmt: skip
        if not self._lines:
            asyncio.get_running_loop().call_soon(self._write)
        level, trouble = ("error", {"trouble": request.trouble}) if request.trouble else ("info", {})
        self._lines.append(self._line(level, {**told, **trouble}))

    def say(self, level: str, **told: Any) -> None:
        """One line, at once, from any thread."""
        self._put(self._line(level, told))

    def _line(self, level: str, told: dict[str, Any]) -> str:
        known = {name: value for name, value in told.items() if value is not None}
        if self.as_json:
            return _written({"time": dates.now(), "level": level, **known}) + "\n"
        return f"{dates.now()[11:19]} {' '.join([str(value) for value in known.values()])}\n"

    def _write(self) -> None:
        """All lines of requests there are; in the thread that answers them, as they came."""
        lines, self._lines = self._lines, []
        self._put("".join(lines))

    def _put(self, text: str) -> None:
        """A stream that is gone is no reason to fail."""
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._stream = None


class Servers(logging.Handler):
    """What the server below us and the libraries have to say, in the same form. Only the kind of an error, and of others than
    the server and ourselves no words at all, since those may be anybody's."""

    def __init__(self, logs: Logs) -> None:
        super().__init__()
        self._logs = logs

    def emit(self, record: logging.LogRecord) -> None:
        kind = record.exc_info[0] if record.exc_info else None
        known = record.name.startswith(("uvicorn", "holdfast"))
        words = {"message": record.getMessage()[:200]} if known else {"logger": record.name}
        told = {"trouble": kind.__name__} if kind else words
        self._logs.say(record.levelname.lower(), event="server", **told)
