"""HTTP requests to a gateway, and its problems as errors. A request is repeated only if it cannot be processed twice."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import IncompleteRead
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from holdfast import errors
from holdfast.base import http_client
from holdfast.base.http_client import HttpClient, RequestFailed, ResponseTooLarge, StreamedResponse, Timeout
from holdfast.errors import (
    ConfigError,
    Conflict,
    Contended,
    Denied,
    HoldfastError,
    InvalidKey,
    InvalidPath,
    InvalidText,
    Template,
    TooLarge,
    TooMany,
    Trouble,
    Unauthenticated,
    Unreached,
    UsageError,
    command,
)

T = TypeVar("T")
MAX_BYTES = 256 * 1024 * 1024  # of one answer
_TIMEOUT = Timeout(connect=10.0, read=120.0)  # the first semantic search may wait until the models are loaded
_IDLE_CONNECTIONS = 16
_PAUSES = (0.05, 0.25, 1.0)  # seconds before each retry
_NDJSON = "application/x-ndjson"
_HINTS = {"X-Holdfast-Hints": "parts"}  # errors as data: hints are shown in the words of this interface
_URL_HINT = "Write it like https://memory.example.com or http://127.0.0.1:8710"
_HINT = "Check that `holdfast serve` runs there, and try again"

_ERRORS_BY_CODE: dict[str, type[HoldfastError]] = {
    kind.code: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, HoldfastError)
}
_ERRORS_BY_HTTP_CODE: dict[str, type[HoldfastError]] = {  # codes that only HTTP has
    "precondition": Conflict, "reused_key": Conflict, "too_deep": TooLarge, "too_slow": Trouble, "wrong_origin": Denied,
    "wrong_host": ConfigError, "upstream": Unreached, "unforeseen": Trouble, "not_json": UsageError, "wrong_type": UsageError,
    "invalid_request": UsageError, "no_route": UsageError, "wrong_method": UsageError,
}  # fmt: skip
_ERRORS_BY_FIELD: dict[str, type[HoldfastError]] = {  # the error that a home raises for an invalid field
    "key": InvalidKey, "under": InvalidKey, "project": InvalidKey, "session": InvalidKey, "text": InvalidText,
    "path": InvalidPath, "old_path": InvalidPath, "new_path": InvalidPath,
}  # fmt: skip
_NO_ROUTE_HINT = "Update the gateway, or run this on the machine of its home"


class GatewayClient:
    """The connection of one caller to one gateway."""

    def __init__(self, url: str, token: str | None) -> None:
        parts = http_client.parse_url(url, "the gateway", _URL_HINT)
        self._base_path = parts.path.rstrip("/")
        self.url = f"{parts.scheme}://{parts.netloc}{self._base_path}"
        self.has_token = bool(token)
        self._headers = {"Accept": "application/json", "User-Agent": "holdfast", **_HINTS, **_authorization(token)}
        self._http = HttpClient(parts, _TIMEOUT, max_bytes=MAX_BYTES, idle_connections=_IDLE_CONNECTIONS)

    def request(
        self, method: str, path: str, body: Any = None, *, query: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None, repeatable: bool = False, keyed: bool = False, if_match: str | None = None,
    ) -> Any:  # fmt: skip
        """Return the JSON of the answer; a body of bytes is sent as JSON lines.

        A request that failed after it was sent is repeated if it is a GET, if it is `repeatable`, or if it is `keyed`: then
        every attempt has the same idempotency key. `if_match` is the version that the request is about.
        """
        sent = {**self._headers, **(headers or {})}
        if if_match is not None:
            sent["If-Match"] = f'"{if_match}"'
        if keyed:
            sent |= _idempotency_key()
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else encode(body)
            sent["Content-Type"] = _NDJSON if isinstance(body, bytes) else "application/json"
        target = self._target(path, query)
        return _with_retries(lambda: self._json(method, target, data, sent), repeatable or keyed or method == "GET")

    def request_lines(
        self, method: str, path: str, data: bytes, *, query: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> list[Any]:  # fmt: skip
        """Send JSON lines under one idempotency key and return all lines of the answer."""
        sent = {**(headers or {}), **_idempotency_key()}

        def attempt() -> list[Any]:
            with self.stream_lines(method, path, data, query=query, headers=sent) as lines:
                return list(lines)

        return _with_retries(attempt, True)

    @contextmanager
    def stream_lines(
        self, method: str, path: str, data: bytes | None = None, *, query: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Iterator[Iterator[Any]]:  # fmt: skip
        """Yield the JSON lines of the answer while they arrive."""
        sent = {**self._headers, **(headers or {}), "Accept": _NDJSON}
        if data is not None:
            sent["Content-Type"] = _NDJSON
        target = self._target(path, query)

        def attempt() -> StreamedResponse:
            with self._reachable():
                return self._http.stream(method, target, data, sent)

        with _with_retries(attempt, True) if method == "GET" else attempt() as response:
            if response.status != 200:
                with self._reachable():
                    body = response.read()
                _json_or_error(response.status, response.headers, body)
            yield self._parsed(response)

    def close(self) -> None:
        """Close idle connections; a later request opens a new one."""
        self._http.close()

    def _target(self, path: str, query: dict[str, Any] | None) -> str:
        given = {name: _query_value(value) for name, value in (query or {}).items() if value is not None}
        return self._base_path + path + (f"?{urlencode(given, doseq=True, quote_via=quote)}" if given else "")

    def _json(self, method: str, target: str, data: bytes | None, headers: dict[str, str]) -> Any:
        """Send one request and return the JSON of its answer."""
        with self._reachable():
            response = self._http.request(method, target, data, headers)
        return _json_or_error(response.status, response.headers, response.data)

    def _parsed(self, response: StreamedResponse) -> Iterator[Any]:
        with self._reachable():
            for line in response.lines():
                try:
                    if not line.endswith(b"\n"):
                        raise IncompleteRead(line)
                    value = json.loads(line)
                except (IncompleteRead, ValueError) as error:
                    raise RequestFailed(error, sent=True) from None
                yield value

    @contextmanager
    def _reachable(self) -> Iterator[None]:
        """Turn a failed request into the error that the user sees."""
        try:
            yield
        except ResponseTooLarge:
            raise Trouble(f"the answer of the gateway has more than {MAX_BYTES:,} bytes", "Request less at a time") from None
        except RequestFailed as error:
            if error.certificate_problem:
                message = f"the TLS certificate of {self.url} was rejected: {error.certificate_problem}"
                raise Unreached(message, "Fix the certificate of the gateway", sent=False) from None
            raise Unreached(f"the gateway at {self.url} did not answer: {error.reason}", _HINT, sent=error.sent) from None


def _idempotency_key() -> dict[str, str]:
    return {"Idempotency-Key": os.urandom(16).hex()}


def _with_retries(attempt: Callable[[], T], repeatable: bool) -> T:
    """Retry where the gateway was not reached; if the request was sent and no answer came, only if it is `repeatable`."""
    for number, pause in enumerate((*_PAUSES, 0.0)):
        try:
            return attempt()
        except Unreached as error:
            if pause == 0.0 or (error.sent and not repeatable):
                raise
        except Contended as error:
            if type(error) is not Contended or number == 0 or pause == 0.0:  # else our first attempt is still running
                raise
        time.sleep(pause)
    raise AssertionError("the last attempt returns or raises")


def encode(body: Any) -> bytes:
    """Return JSON; an unpaired surrogate is escaped, so that the gateway validates the text that was given here."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(body, separators=(",", ":")).encode("ascii")


def _json_or_error(status: int, headers: dict[str, str], data: bytes) -> Any:
    """Return the JSON of a successful answer; raise the error that another answer describes."""
    try:
        value = json.loads(data) if data else None
    except (ValueError, RecursionError):
        value = None
    if 200 <= status < 300 and value is not None:  # a truncated answer is an error
        return value
    raise error_from_problem(status, headers, value)


def _query_value(value: Any) -> Any:
    return ("true" if value else "false") if isinstance(value, bool) else value


def _authorization(token: str | None) -> dict[str, str]:
    token = (token or "").strip()
    if not token.isascii() or not token.isprintable():
        fix = Template("Use the token that ", command("agent add"), " printed")
        raise Unauthenticated("the token contains invalid characters", fix)
    return {"Authorization": f"Bearer {token}"} if token else {}


# --- errors ----------------------------------------------------------------------------------------------------------


def error_from_problem(status: int, headers: dict[str, str], problem: Any) -> HoldfastError:
    """Return the error that a gateway's answer describes: the class that the same verb raises on a home."""
    if not isinstance(problem, dict) or not isinstance(problem.get("code"), str):
        fix = "Check the URL: another server or a proxy answered"
        return Unreached(f"the answer ({status}) is not from a gateway", fix)
    code, message = problem["code"], _text(problem.get("detail")) or _text(problem.get("title")) or problem["code"]
    if code in ("no_route", "wrong_method"):
        return UsageError("this gateway does not support that request", _NO_ROUTE_HINT)
    kind, data = _error_class(code, problem), problem.get("parts")
    parts: dict[str, Any] = data if isinstance(data, dict) else {}
    text, hint = _parse_template(parts.get("detail")) or message, _parse_template(parts.get("fix")) or _text(problem.get("fix"))
    error = TooMany(text, hint, _parse_seconds(headers.get("retry-after"))) if kind is TooMany else kind(text, hint)
    line, before = problem.get("line"), parts.get("done_before")
    if isinstance(line, int) and line > 0 and parts:  # else the message says it already
        error.about("line", line)
    if isinstance(before, int):
        error.done_before = before
    return error


def _error_class(code: str, problem: dict[str, Any]) -> type[HoldfastError]:
    """Return the class of an error; for one field that breaks the schema, the class that the field has on a home."""
    if code == "invalid_request" and isinstance(problem.get("errors"), list) and len(problem["errors"]) == 1:
        invalid = problem["errors"][0]
        unknown = isinstance(invalid, dict) and invalid.get("code") == "unknown"
        field = str(invalid.get("pointer", "")).strip("/").partition("/")[0] if isinstance(invalid, dict) else ""
        return UsageError if unknown else _ERRORS_BY_FIELD.get(field, UsageError)
    return _ERRORS_BY_CODE.get(code) or _ERRORS_BY_HTTP_CODE.get(code) or Trouble


def _parse_template(given: Any) -> Template | None:
    """Return a message that a gateway sent as data, if it is one."""
    try:
        return Template.from_list(given)
    except (KeyError, TypeError):
        return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _parse_seconds(value: str | None) -> float:
    try:
        return max(0.0, float(value or 1))
    except ValueError:
        return 1.0
