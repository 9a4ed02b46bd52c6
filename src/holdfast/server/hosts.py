"""Which host names this server answers to, which web pages may call it, and what a request target may look like.

Others are refused, so that no page reaches the server under a name of its own (DNS rebinding), and so that a path means the
same to this server and to a proxy in front of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from starlette.datastructures import Headers
from starlette.responses import Response

from holdfast.server.logs import RequestRecord
from holdfast.server.problem import Problem, fixed_headers

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

TARGET = "holdfast.target"  # the key of the request target in an ASGI scope, as bytes and as it was sent, where that is known
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_METHODS = "GET, POST, PUT, DELETE"
_REQUEST_HEADERS = (
    "authorization, content-type, idempotency-key, if-match, if-none-match, x-holdfast-project, x-holdfast-session"
)
_RESPONSE_HEADERS = "etag, retry-after, x-request-id, idempotency-replayed"
_PREFLIGHT = {
    **fixed_headers("text/plain"),
    "access-control-allow-methods": _METHODS,
    "access-control-allow-headers": _REQUEST_HEADERS,
    "access-control-max-age": "600",
}
_HOST_FIX = "Use a name of the server. Its operator adds names with --allow-host NAME"
_TARGET_FIX = "Write `/`, letters and digits of a path as they are; encode only characters that a path may not have"
_ABSOLUTE = re.compile(rb"https?://([^/?#]*)(.*)", re.IGNORECASE | re.DOTALL)
_ENCODED = re.compile(rb"%([0-9A-Fa-f]{2})?")
_ORIGIN_FIX = "The operator allows origins with --allow-origin ORIGIN"


class HostMiddleware:
    """Check Host and Origin of every request before anything else, and answer CORS preflights of allowed origins.

    Starlette's own middleware answers in plain text and lets requests of other origins through.
    """

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...], origins: tuple[str, ...]) -> None:
        self._app = app
        self._hosts = {*LOOPBACK, *[host.lower() for host in hosts]}
        self._origins = {origin.lower().rstrip("/") for origin in origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, record = Headers(scope=scope), scope["holdfast.record"]
        assert isinstance(record, RequestRecord)
        record.cors_headers = self._check(headers)
        scope = self._check_target(scope)
        if scope["method"] == "OPTIONS" and record.cors_headers and headers.get("access-control-request-method"):
            await Response(status_code=204, headers=_PREFLIGHT)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _check(self, headers: Headers) -> dict[str, str]:
        """Return the CORS headers of the answer; none unless the request comes from a page of an allowed origin.

        Raises unless the request has exactly one allowed Host, no Origin or an allowed one, and none of our own headers twice.
        """
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self._is_own_host(hosts[0]):
            raise Problem("wrong_host", "this server does not have that host name", _HOST_FIX)
        names = [name for name in headers if name.startswith("x-holdfast-")]
        if len(names) != len(set(names)):
            raise Problem("invalid_request", "a header that says whose memory is meant is given twice", "Send it once")
        if len(origins) > 1 or not all(self._is_allowed(origin) or _is_same(origin, hosts[0]) for origin in origins):
            raise Problem("wrong_origin", "requests from pages of that origin are not allowed", _ORIGIN_FIX)
        if not origins or not self._is_allowed(origins[0]):
            return {}
        return {
            "access-control-allow-origin": origins[0], "access-control-expose-headers": _RESPONSE_HEADERS, "vary": "Origin",
        }  # fmt: skip

    def _check_target(self, scope: Scope) -> Scope:
        """Return the scope with a plain path. Raises if the target names another host, or if its path is encoded so that it
        could pass for another."""
        target = scope.get(TARGET) or scope.get("raw_path")
        if target is None:  # a server that does not tell it
            return scope
        absolute = _ABSOLUTE.match(target)
        if absolute and not self._is_own_host(absolute[1].decode("latin-1")):
            raise Problem("wrong_host", "this server does not have the host name in the request target", _HOST_FIX)
        path = (absolute[2] if absolute else target).partition(b"?")[0] or b"/"
        text = _decode_path(path)
        if not path.startswith(b"/") or text is None:
            raise Problem("bad_target", "the path of the request has encoded characters that it does not need", _TARGET_FIX)
        return {**scope, "path": text, "raw_path": path} if absolute else scope

    def _is_own_host(self, value: str) -> bool:
        value = value.lower()
        if value in self._hosts:
            return True
        name, colon, port = value.rpartition(":")
        return bool(colon) and name in self._hosts and port.isascii() and port.isdecimal() and len(port) <= 5

    def _is_allowed(self, origin: str) -> bool:
        return origin.lower() in self._origins


def _decode_path(path: bytes) -> str | None:
    """Return the decoded path; None if a character is encoded that must not be: a slash, a backslash, a control character, or
    one that needs no encoding, by which a path could pass a proxy that compares it with a list."""
    for encoded in _ENCODED.finditer(path):
        character = chr(int(encoded[1], 16)) if encoded[1] else ""
        is_plain = character.isascii() and (character.isalnum() or character in "-._~")
        if not character or is_plain or character in "/\\" or character < " " or character == "\x7f":
            return None
    try:
        return unquote_to_bytes(path).decode()
    except UnicodeDecodeError:
        return None


def _is_same(origin: str, host: str) -> bool:
    """Return whether this server itself serves the page: the same name and port that the request was sent to."""
    scheme, separator, rest = origin.lower().partition("://")
    return bool(separator) and scheme in ("http", "https") and rest == host.lower()
