"""Which host names this server answers to, and which web pages may call it: others are refused, so that no page reaches it
under a name of its own (DNS rebinding)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.responses import Response

from holdfast.server.logs import RequestRecord
from holdfast.server.problem import Problem, fixed_headers

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

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
_HOST_FIX = "Ask by a name of its own; whoever runs it gives it others with --allow-host NAME"
_ORIGIN_FIX = "Whoever runs this gateway lets pages ask with --allow-origin ORIGIN"


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
            raise Problem("wrong_host", "this server does not go by that name", _HOST_FIX)
        names = [name for name in headers if name.startswith("x-holdfast-")]
        if len(names) != len(set(names)):
            raise Problem("invalid_request", "a header that says whose memory is meant comes twice", "Send it once")
        if len(origins) > 1 or not all(self._is_allowed(origin) or _is_same(origin, hosts[0]) for origin in origins):
            raise Problem("wrong_origin", "pages of that origin may not ask", _ORIGIN_FIX)
        if not origins or not self._is_allowed(origins[0]):
            return {}
        return {
            "access-control-allow-origin": origins[0], "access-control-expose-headers": _RESPONSE_HEADERS, "vary": "Origin",
        }  # fmt: skip

    def _is_own_host(self, value: str) -> bool:
        value = value.lower()
        if value in self._hosts:
            return True
        name, colon, port = value.rpartition(":")
        return bool(colon) and name in self._hosts and port.isascii() and port.isdecimal() and len(port) <= 5

    def _is_allowed(self, origin: str) -> bool:
        return origin.lower() in self._origins


def _is_same(origin: str, host: str) -> bool:
    """Return whether this server itself serves the page: the same name and port that the request was sent to."""
    scheme, separator, rest = origin.lower().partition("://")
    return bool(separator) and scheme in ("http", "https") and rest == host.lower()
