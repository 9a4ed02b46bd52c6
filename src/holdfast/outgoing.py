"""Requests to a place that a person named in the settings: bounded in time and size, never redirected, each sent once."""

from __future__ import annotations

import http.client
import json
import time
from urllib.parse import SplitResult, urlsplit

from holdfast.errors import ConfigError, Unreached
from holdfast.note import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_BYTES = 8 * 1024 * 1024
_FIX = "Write it like https://host.example/path"


class Response(Record):
    """What was answered."""

    status: int
    headers: dict[str, str]
    data: bytes

    def json(self) -> Any:
        """Its JSON; nothing if it has none."""
        try:
            return json.loads(self.data)
        except (ValueError, RecursionError):
            return None


class Place:
    """An address, and what goes with every request to it."""

    def __init__(self, url: str, what: str, token: str | None = None, seconds: float = 10) -> None:
        self._at = address(url, what)
        self._what = what
        self._seconds = seconds
        self._token = for_a_header(token, f"the token for {what}")

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Response:
        """One request and its answer, whatever its status; Unreached where there was none, and `sent` says if it may have
        been heard all the same."""
        made = http.client.HTTPSConnection if self._at.scheme == "https" else http.client.HTTPConnection
        until = time.monotonic() + self._seconds
        connection = made(self._at.hostname or "", self._at.port, timeout=self._seconds)
        sent = False
        try:
            connection.connect()
            sent = True
            data = None if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
            connection.request(method, self._at.path.rstrip("/") + path, data, self._headers(headers or {}))
            response = connection.getresponse()
            answered = whole(response, until)
            return Response(response.status, {name.lower(): value for name, value in response.getheaders()}, answered)
        except (OSError, http.client.HTTPException) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            raise Unreached(f"{self._what} did not answer: {why}", "Check its address and try again", sent=sent) from None
        finally:
            connection.close()

    def _headers(self, more: dict[str, str]) -> dict[str, str]:
        said = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "holdfast", **more}
        return {**said, "Authorization": f"Bearer {self._token}"} if self._token else said


def address(url: str, what: str, fix: str = _FIX) -> SplitResult:
    """An address, taken apart. The message never shows it: somebody may have put a password into it."""
    try:
        at = urlsplit(url.strip())
        known = bool(at.hostname) and (at.port is None or at.port > 0)
    except ValueError:
        raise ConfigError(f"the address of {what} cannot be read", fix) from None
    if at.scheme not in ("http", "https") or not known or "@" in at.netloc or at.query or at.fragment:
        raise ConfigError(f"the address of {what} must be http:// or https:// and a host, without user, query or fragment", fix)
    if not url.isascii() or any(char.isspace() or not char.isprintable() for char in url.strip()):
        raise ConfigError(f"the address of {what} has characters that no address has", fix)
    return at


def for_a_header(token: str | None, what: str, fix: str = "Set it again") -> str:
    """A token that can stand in a header."""
    token = (token or "").strip()
    if not token.isascii() or not token.isprintable():
        raise ConfigError(f"{what} has characters that no token has", fix)
    return token


def whole(response: http.client.HTTPResponse, until: float, most: int = MOST_BYTES) -> bytes:
    """The whole answer; one that drips does not hold us longer than one that is silent, and one that is cut off is none."""
    data = bytearray()
    while piece := response.read1(65536):
        data += piece
        if len(data) > most:
            raise http.client.HTTPException("the answer is too long")
        if time.monotonic() > until:
            raise TimeoutError("timed out")
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return bytes(data)
