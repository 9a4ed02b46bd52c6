"""Requests to a gateway, on connections that are kept open; none is done twice by trying again."""

from __future__ import annotations

import http.client
import json
import os
import select
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from holdfast import outgoing
from holdfast.errors import Contended, HoldfastError, Template, Trouble, Unauthenticated, Unreached, command
from holdfast.remote.refusals import error_of

T = TypeVar("T")
MOST_BYTES = 256 * 1024 * 1024  # of one answer
_CONNECT_SECONDS, _ANSWER_SECONDS = 10.0, 120.0  # the first answer by meaning may wait for models to be loaded
_LIKE = "Write it like https://memory.example.com or http://127.0.0.1:8710"
_IDLE = 16  # connections that are kept for the next request
_PAUSES = (0.05, 0.25, 1.0)  # before each further attempt
_LINES = "application/x-ndjson"
_HINTS = {"X-Holdfast-Hints": "parts"}  # errors as data, to show them in the words of this side
_FIX = "Check that `holdfast serve` runs there, and try again"


class Wire:
    """One gateway, as one caller speaks to it."""

    def __init__(self, url: str, token: str | None) -> None:
        self._at = outgoing.address(url, "the gateway", _LIKE)
        self._head = {"Accept": "application/json", "User-Agent": "holdfast", **_HINTS, **_authorization(token)}
        self._guard = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._process = os.getpid()
        self._closed = 0  # how often
        self._checks = ssl.create_default_context() if self._at.scheme == "https" else None  # reading its roots takes a while
        self.named = bool(token)

    @property
    def url(self) -> str:
        return f"{self._at.scheme}://{self._at.netloc}{self._at.path.rstrip('/')}"

    def ask(
        self, method: str, path: str, body: Any = None, *, query: dict[str, Any] | None = None,
        whose: dict[str, str] | None = None, safe: bool = False, once: bool = False, seen: str | None = None,
    ) -> Any:  # fmt: skip
        """The JSON that is answered; a body of bytes is lines of JSON. What is `safe` to send again is; so is what is done
        `once`, under one idempotency key. `seen` is the version that it is about."""
        head = dict(whose or {})
        if seen is not None:
            head["If-Match"] = f'"{seen}"'
        if once:
            head |= _key()
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else encoded(body)
            head["Content-Type"] = _LINES if isinstance(body, bytes) else "application/json"
        target = self._target(path, query)
        return _tried(lambda: _told(*self._exchange(method, target, data, head)), safe or once or method == "GET")

    def lines_once(
        self, method: str, path: str, data: bytes, *, query: dict[str, Any] | None = None, whose: dict[str, str] | None = None
    ) -> list[Any]:
        """Lines sent and all that is answered, under one idempotency key."""
        head = {**(whose or {}), **_key()}

        def work() -> list[Any]:
            with self.lines(method, path, data, query=query, whose=head) as rows:
                return list(rows)

        return _tried(work, True)

    @contextmanager
    def lines(
        self, method: str, path: str, data: bytes | None = None, *, query: dict[str, Any] | None = None,
        whose: dict[str, str] | None = None,
    ) -> Iterator[Iterator[Any]]:  # fmt: skip
        """What is answered line by line, on a connection of its own; a problem among the lines is raised."""
        connection = self._opened()
        head = {**self._head, **(whose or {}), "Accept": _LINES}
        if data is not None:
            head["Content-Type"] = _LINES
        try:
            response = self._sent(connection, method, self._target(path, query), data, head)
            if response.status != 200:
                _told(response.status, _headers(response), self._read(response))
            yield self._rows(response)
        finally:
            connection.close()

    def close(self) -> None:
        """Those that nobody uses now, and the others when they are given back."""
        with self._guard:
            idle, self._idle, self._closed = self._idle, [], self._closed + 1
        for connection in idle:
            connection.close()

    def _target(self, path: str, query: dict[str, Any] | None) -> str:
        given = {name: _spelled(value) for name, value in (query or {}).items() if value is not None}
        return self._at.path.rstrip("/") + path + (f"?{urlencode(given, doseq=True, quote_via=quote)}" if given else "")

    def _exchange(
        self, method: str, target: str, data: bytes | None, head: dict[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        """One request, and its answer."""
        closed = self._closed
        connection = self._taken()
        try:
            response = self._sent(connection, method, target, data, {**self._head, **head})
            answered = self._read(response)
        except BaseException:
            connection.close()
            raise
        self._give_back(connection, closed)
        return response.status, _headers(response), answered

    def _sent(
        self, connection: http.client.HTTPConnection, method: str, target: str, data: bytes | None, head: dict[str, str]
    ) -> http.client.HTTPResponse:
        try:
            connection.request(method, target, data, head)
            return connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise self._unreached(error, sent=True) from None

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        try:
            data = response.read(MOST_BYTES + 1)
            if len(data) <= MOST_BYTES:
                return data
        except (OSError, http.client.HTTPException) as error:
            raise self._unreached(error, sent=True) from None
        raise Trouble(f"the gateway answered more than {MOST_BYTES:,} bytes", "Ask for less at a time")

    def _rows(self, response: http.client.HTTPResponse) -> Iterator[Any]:
        try:
            while line := response.readline():
                if not line.endswith(b"\n"):
                    raise http.client.IncompleteRead(line)
                yield json.loads(line)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._unreached(error, sent=True) from None

    def _taken(self) -> http.client.HTTPConnection:
        """A connection for this thread alone, still open at both ends; a child of this process has none of its parent's."""
        with self._guard:
            if self._process != os.getpid():
                self._idle, self._process = [], os.getpid()
            idle = list(self._idle)
            self._idle.clear()
        usable = [one for one in idle if _is_quiet(one)]
        for one in idle:
            if one not in usable:
                one.close()
        taken = usable.pop() if usable else self._opened()
        with self._guard:
            self._idle += usable
        return taken

    def _give_back(self, connection: http.client.HTTPConnection, closed: int) -> None:
        with self._guard:
            keep = connection.sock is not None and closed == self._closed and len(self._idle) < _IDLE
            if keep:
                self._idle.append(connection)
        if not keep:
            connection.close()

    def _opened(self) -> http.client.HTTPConnection:
        host, port = self._at.hostname or "", self._at.port
        connection: http.client.HTTPConnection
        if self._checks is not None:
            connection = http.client.HTTPSConnection(host, port, timeout=_CONNECT_SECONDS, context=self._checks)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=_CONNECT_SECONDS)
        try:
            connection.connect()  # straight there: no variable of the environment puts a proxy in between
        except (OSError, http.client.HTTPException) as error:
            raise self._unreached(error, sent=False) from None
        connection.sock.settimeout(_ANSWER_SECONDS)
        return connection

    def _unreached(self, error: Exception, sent: bool) -> HoldfastError:
        why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        if isinstance(error, ssl.SSLCertVerificationError):
            return Unreached(f"{self.url} cannot show who it is: {error.verify_message}", "Mend its certificate", sent=False)
        return Unreached(f"the gateway at {self.url} did not answer: {why}", _FIX, sent=sent)


def _key() -> dict[str, str]:
    return {"Idempotency-Key": os.urandom(16).hex()}


def _tried(work: Callable[[], T], repeat: bool) -> T:
    """Once more where nobody was reached; where it was sent and no answer came, only what may be sent again."""
    for number, pause in enumerate((*_PAUSES, 0.0)):
        try:
            return work()
        except Unreached as error:
            if pause == 0.0 or (error.sent and not repeat):
                raise
        except Contended as error:
            if type(error) is not Contended or number == 0 or pause == 0.0:  # else our own first attempt is still at it
                raise
        time.sleep(pause)
    raise AssertionError("the last attempt answers or raises")


def encoded(body: Any) -> bytes:
    """JSON; half a character stays what it is, so that the gate on the other side sees what this one would."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(body, separators=(",", ":")).encode("ascii")


def _told(status: int, headers: dict[str, str], data: bytes) -> Any:
    """The answer; or what was answered instead, as the error it would be here."""
    try:
        said = json.loads(data) if data else None
    except (ValueError, RecursionError):
        said = None
    if 200 <= status < 300 and said is not None:  # an answer that was cut off is none
        return said
    raise error_of(status, headers, said)


def _headers(response: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.getheaders()}


def _is_quiet(connection: http.client.HTTPConnection) -> bool:
    """Whether nothing waits on it: between two requests only the other side's farewell could."""
    poll = select.poll()
    try:
        poll.register(connection.sock, select.POLLIN)
        return not poll.poll(0)
    except (OSError, ValueError):
        return False


def _spelled(value: Any) -> Any:
    return ("true" if value else "false") if isinstance(value, bool) else value


def _authorization(token: str | None) -> dict[str, str]:
    token = (token or "").strip()
    if not token.isascii() or not token.isprintable():
        fix = Template("Give the one that ", command("agent add"), " printed")
        raise Unauthenticated("the token has characters that no token has", fix)
    return {"Authorization": f"Bearer {token}"} if token else {}
