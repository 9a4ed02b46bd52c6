"""HTTP client for the services that the user named in the settings: the gateway, GitHub, the webhook, a model server.

A request goes to the one host that the client was made for. Redirects are not followed, the environment's proxies are not
used, and a request is sent once: the caller decides whether to send it again.
"""

from __future__ import annotations

import errno
import json
import os
import ssl
import time
from urllib.parse import SplitResult, urlsplit

import urllib3
from urllib3.exceptions import ClosedPoolError, ConnectTimeoutError, HTTPError, LocationValueError, NewConnectionError

from holdfast.base import tracing
from holdfast.base.record import Record
from holdfast.errors import ConfigError, Unreached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Self

_MAX_BYTES = 8 * 1024 * 1024
_BLOCK = 64 * 1024
_URL_HINT = "Write it like https://host.example/path"


class Response(Record):
    """A complete response; header names are in lower case."""

    status: int
    headers: dict[str, str]
    data: bytes

    def json(self) -> Any:
        """Return the JSON of the body, or None if the body is not JSON."""
        try:
            return json.loads(self.data)
        except (ValueError, RecursionError):
            return None


class Timeout(Record):
    """Limits in seconds: to connect, for each read or write of the socket, and for the whole exchange (None: no limit)."""

    connect: float
    read: float
    total: float | None = None


class RequestFailed(Exception):
    """No complete response was received. `sent` says whether the server may have processed the request."""

    def __init__(self, cause: Exception, sent: bool) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.sent = sent

    @property
    def reason(self) -> str:
        """Return the system's words for the failure, or the name of the error; never text that the server sent."""
        return _strerror(self.cause) or type(self.cause).__name__

    @property
    def named_reason(self) -> str:
        """Return the name of the error, with the system's words if there are any."""
        name, words = type(self.cause).__name__, _strerror(self.cause)
        return f"{name}: {words}" if words else name

    @property
    def certificate_problem(self) -> str:
        """Return why the server's certificate was rejected; empty if it was not."""
        return self.cause.verify_message if isinstance(self.cause, ssl.SSLCertVerificationError) else ""


class ResponseTooLarge(RequestFailed):
    """The response has more bytes than the client accepts."""

    def __init__(self) -> None:
        super().__init__(OSError(errno.EMSGSIZE, "the response is too large"), sent=True)


class StreamedResponse:
    """A response whose body is still arriving; use it in a `with`, which closes the connection unless all was read."""

    def __init__(self, response: urllib3.BaseHTTPResponse, max_bytes: int, deadline: float | None) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        self._response, self._max_bytes, self._deadline = response, max_bytes, deadline

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._response.close()
        self._response.release_conn()

    def read(self) -> bytes:
        """Return the whole body; raise ResponseTooLarge if it is longer than the client accepts."""
        data = bytearray()
        for block in self._read_blocks():
            data += block
            if len(data) > self._max_bytes:
                raise ResponseTooLarge
        return bytes(data)

    def lines(self) -> Iterator[bytes]:
        """Yield the body line by line, each with its line feed; the last line may lack one."""
        rest = bytearray()
        for block in self._read_blocks():
            rest += block
            if b"\n" in block:
                *lines, rest = rest.split(b"\n")
                for line in lines:
                    yield bytes(line) + b"\n"
        if rest:
            yield bytes(rest)

    def _read_blocks(self) -> Iterator[bytes]:
        """Yield the body as it arrives, so that a slow server is given up at the deadline."""
        while True:
            try:
                block = self._response.read1(_BLOCK, decode_content=False)
                if self._deadline is not None and time.monotonic() > self._deadline:
                    raise TimeoutError("timed out")
            except (HTTPError, OSError) as error:
                raise RequestFailed(_find_cause(error), sent=True) from None
            if not block:
                return
            yield block


class HttpClient:
    """Send requests to one host; safe to share between threads, and a forked child opens connections of its own."""

    def __init__(self, url: SplitResult, timeout: Timeout, *, max_bytes: int = _MAX_BYTES, idle_connections: int = 1) -> None:
        self._url, self._timeout, self._max_bytes = url, timeout, max_bytes
        self._idle_connections = idle_connections
        self._ssl = ssl.create_default_context() if url.scheme == "https" else None  # the system's trusted roots
        self._pool: tuple[int, urllib3.HTTPConnectionPool] | None = None  # with the id of the process it belongs to

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def request(self, method: str, target: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Response:
        """Send a request and return the complete response, whatever its status."""
        with self.stream(method, target, body, headers) as response:
            return Response(response.status, response.headers, response.read())

    def stream(
        self, method: str, target: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> StreamedResponse:
        """Send a request and return its response as soon as its headers are there."""
        total = self._timeout.total
        deadline = None if total is None else time.monotonic() + total
        with tracing.span(
            method, is_client=True, http__request__method=method, server__address=self._url.hostname or ""
        ) as span:  # fmt: skip
            response = self._send(method, target, body, {"User-Agent": urllib3.util.SKIP_HEADER, **(headers or {})})
            span.set_attribute("http.response.status_code", response.status)
        return StreamedResponse(response, self._max_bytes, deadline)

    def close(self) -> None:
        """Close idle connections now, and the others after their response; a later request opens a new connection."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool[1].close()

    def _send(self, method: str, target: str, body: bytes | None, headers: dict[str, str]) -> urllib3.BaseHTTPResponse:
        try:
            return self._send_on(self._get_pool(), method, target, body, headers)
        except ClosedPoolError:  # another thread closed the client before anything was sent
            return self._send_on(self._get_pool(), method, target, body, headers)

    def _send_on(
        self, pool: urllib3.HTTPConnectionPool, method: str, target: str, body: bytes | None, headers: dict[str, str]
    ) -> urllib3.BaseHTTPResponse:
        try:
            return pool.urlopen(
                method, target or "/", body, headers, retries=False, redirect=False, preload_content=False, decode_content=False
            )
        except ClosedPoolError:
            raise
        except (ConnectTimeoutError, LocationValueError) as error:
            raise RequestFailed(_find_cause(error), sent=False) from None
        except (HTTPError, OSError) as error:
            raise RequestFailed(_find_cause(error), sent=True) from None

    def _get_pool(self) -> urllib3.HTTPConnectionPool:
        """Return this process's pool; a child of a fork never uses its parent's sockets."""
        pool, process = self._pool, os.getpid()
        if pool is None or pool[0] != process:
            pool = self._pool = (process, self._make_pool())
        return pool[1]

    def _make_pool(self) -> urllib3.HTTPConnectionPool:
        host, port = self._url.hostname or "", self._url.port
        options: dict[str, Any] = {
            "timeout": urllib3.Timeout(connect=self._timeout.connect, read=self._timeout.read),
            "maxsize": self._idle_connections,
            "write_seconds": self._timeout.read,
        }
        if self._ssl is not None:
            return _HttpsPool(host, port, ssl_context=self._ssl, **options)
        return _HttpPool(host, port, **options)


class _HttpConnection(urllib3.connection.HTTPConnection):
    """A connection whose timeout for writing is not the one for connecting."""

    def __init__(self, *args: Any, write_seconds: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self._write_seconds = write_seconds

    def connect(self) -> None:
        super().connect()
        self.sock.settimeout(self._write_seconds)


class _HttpsConnection(urllib3.connection.HTTPSConnection):
    """An HTTPS connection with the same timeouts; a failed handshake is a failure to connect, because nothing was sent."""

    def __init__(self, *args: Any, write_seconds: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self._write_seconds = write_seconds

    def connect(self) -> None:
        try:
            super().connect()
        except OSError as error:
            raise NewConnectionError(self, str(error)) from error
        self.sock.settimeout(self._write_seconds)


class _HttpPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _HttpConnection


class _HttpsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _HttpsConnection


class JsonClient:
    """Send JSON to a service, each request on a connection of its own and within `seconds`."""

    def __init__(self, url: str, service: str, token: str | None = None, seconds: float = 10) -> None:
        self._url = parse_url(url, service)
        self._service = service
        self._timeout = Timeout(connect=seconds, read=seconds, total=seconds)
        self._token = check_token(token, f"the token for {service}")

    def request(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Response:
        """Send a request once and return its response, whatever its status; raise Unreached if there was none."""
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        try:
            with HttpClient(self._url, self._timeout) as client:
                return client.request(method, self._url.path.rstrip("/") + path, data, self._make_headers(headers or {}))
        except RequestFailed as error:
            message = f"{self._service} did not answer: {error.reason}"
            raise Unreached(message, "Check its URL and try again", sent=error.sent) from None

    def _make_headers(self, more: dict[str, str]) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "holdfast", **more}
        return {**headers, "Authorization": f"Bearer {self._token}"} if self._token else headers


def parse_url(url: str, service: str, hint: str = _URL_HINT) -> SplitResult:
    """Return the parts of a service's URL; the error never shows the URL, which may hold a password."""
    try:
        parts = urlsplit(url.strip())
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        raise ConfigError(f"the URL of {service} is not valid", hint) from None
    if parts.scheme not in ("http", "https") or not has_host or "@" in parts.netloc or parts.query or parts.fragment:
        message = f"the URL of {service} must be http:// or https:// and a host, without user, query or fragment"
        raise ConfigError(message, hint)
    if not url.isascii() or any(char.isspace() or not char.isprintable() for char in url.strip()):
        raise ConfigError(f"the URL of {service} contains invalid characters", hint)
    return parts


def check_token(token: str | None, name: str, hint: str = "Check the value and set it again") -> str:
    """Return a token if it may be sent in a header, or "" if there is none; raise ConfigError otherwise."""
    token = (token or "").strip()
    if not token.isascii() or not token.isprintable():
        raise ConfigError(f"{name} contains invalid characters", hint)
    return token


def _find_cause(error: Exception) -> Exception:
    """Return the error of the system or the protocol that urllib3 wrapped."""
    while isinstance(error, HTTPError):
        inner = error.__cause__ or next((arg for arg in reversed(error.args) if isinstance(arg, Exception)), None)
        if not isinstance(inner, Exception):
            break
        error = inner
    return error


def _strerror(error: Exception) -> str:
    return str(error.strerror) if isinstance(error, OSError) and error.strerror else ""
