"""The request log: one line per request, as JSON unless a person reads it; never a body, a secret, a key or a text."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from holdfast.base import dates

if TYPE_CHECKING:
    from holdfast.access import Caller

_encode = json.JSONEncoder().encode


@dataclass
class RequestRecord:
    """What is logged and counted about a request; filled in while it is answered."""

    id: str
    method: str
    route: str = ""
    address: str = ""  # of the client
    caller: Caller | None = None
    rejected_token: str = ""  # the public part of a token that was not accepted
    reason: str = ""  # why it was not
    tenant: str = ""  # where there may be several
    outcome: str = ""  # the code of a problem
    failure: list[str] = field(default_factory=list)  # the type and the frames of an unexpected error
    status: int = 0  # 0: not answered yet
    bytes_sent: int = 0
    cors_headers: dict[str, str] = field(default_factory=dict)


class Logs:
    """Write log lines to a stream, or nowhere if there is none."""

    def __init__(self, stream: IO[str] | None, as_json: bool = True, requests: bool = True) -> None:
        self._stream, self.as_json = stream, as_json
        self._logs_requests = requests  # without it, only failures are logged
        self._request_lines: list[str] = []  # of requests answered in one turn of the event loop: written together

    def log_request(self, record: RequestRecord, seconds: float) -> None:
        """Log an answered request; call it in the event loop."""
        if self._stream is None or not (self._logs_requests or record.failure):
            return
        caller = record.caller
        fields: dict[str, Any] = {
            "event": "request", "request_id": record.id, "method": record.method, "route": record.route or None,
            "status": record.status, "ms": round(seconds * 1000, 1), "bytes": record.bytes_sent,
            "agent": caller.agent if caller else None, "role": caller.role if caller else None,
            "tenant": record.tenant or None, "outcome": record.outcome or None, "reason": record.reason or None,
            "token": (caller.token if caller else record.rejected_token) or None, "address": record.address or None,
        }  # fmt: skip
        if not self._request_lines:
            asyncio.get_running_loop().call_soon(self._write_requests)
        level, failure = ("error", {"trouble": record.failure}) if record.failure else ("info", {})
        self._request_lines.append(self._line(level, {**fields, **failure}))

    def log(self, level: str, **fields: Any) -> None:
        """Write one line at once, from any thread."""
        self._write(self._line(level, fields))

    def _line(self, level: str, fields: dict[str, Any]) -> str:
        known = {name: value for name, value in fields.items() if value is not None}
        if self.as_json:
            return _encode({"time": dates.now(), "level": level, **known}) + "\n"
        return f"{dates.now()[11:19]} {' '.join([str(value) for value in known.values()])}\n"

    def _write_requests(self) -> None:
        lines, self._request_lines = self._request_lines, []
        self._write("".join(lines))

    def _write(self, text: str) -> None:
        """Write, and stop logging if the stream is closed: that is no reason to fail a request."""
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._stream = None


class LibraryLogHandler(logging.Handler):
    """Log what uvicorn and other libraries report.

    Of an error only its type, and of other libraries than uvicorn and Holdfast no message: it may quote a request.
    """

    def __init__(self, logs: Logs) -> None:
        super().__init__()
        self._logs = logs

    def emit(self, record: logging.LogRecord) -> None:
        kind = record.exc_info[0] if record.exc_info else None
        is_ours = record.name.startswith(("uvicorn", "holdfast"))
        message = {"message": record.getMessage()[:200]} if is_ours else {"logger": record.name}
        fields = {"trouble": kind.__name__} if kind else message
        self._logs.log(record.levelname.lower(), event="server", **fields)
