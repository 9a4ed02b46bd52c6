"""Which names this server goes by, and which pages may ask: others are refused, so that no web page reaches it by a name of
its own (DNS rebinding)."""

from __future__ import annotations

from holdfast.server.problem import Problem

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_MAY_SEND = "authorization, content-type, idempotency-key, if-match, if-none-match, x-holdfast-project, x-holdfast-session"
_NAMES = "Ask by a name of its own; whoever runs it gives it others with --allow-host NAME"
_PAGES = "Whoever runs this gateway lets pages ask with --allow-origin ORIGIN"
_MAY_READ = "etag, retry-after, x-request-id, idempotency-replayed"


class Hosts:
    """Loopback's names, and those that somebody named."""

    def __init__(self, hosts: tuple[str, ...] = (), origins: tuple[str, ...] = ()) -> None:
        self._hosts = {*LOOPBACK, *[host.lower() for host in hosts]}
        self._origins = {origin.lower().rstrip("/") for origin in origins}

    def check(self, headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
        """One Host of ours, no Origin but ours, and none of our own headers twice. What a browser must be told so that a page
        may read the answer, if its origin was named."""
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 or not self._is_host(hosts[0].decode("latin-1")):
            raise Problem("wrong_host", "this server does not go by that name", _NAMES)
        names = [name for name, _ in headers if name.startswith(b"x-holdfast-")]
        if len(names) != len(set(names)):
            raise Problem("invalid_request", "a header that says whose memory is meant comes twice", "Send it once")
        pages = [value.decode("latin-1") for name, value in headers if name == b"origin"]
        if len(pages) > 1 or not all(self._is_named(page) or _is_own(page, hosts[0].decode("latin-1")) for page in pages):
            raise Problem("wrong_origin", "pages of that origin may not ask", _PAGES)
        if not pages or not self._is_named(pages[0]):
            return {}
        return {"access-control-allow-origin": pages[0], "access-control-expose-headers": _MAY_READ, "vary": "Origin"}

    def _is_host(self, value: str) -> bool:
        value = value.lower()
        if value in self._hosts:
            return True
        name, colon, port = value.rpartition(":")
        return bool(colon) and name in self._hosts and port.isascii() and port.isdecimal() and len(port) <= 5

    def _is_named(self, page: str) -> bool:
        return page.lower() in self._origins


def _is_own(page: str, host: str) -> bool:
    """Whether this very server shows the page: the same name and port that the request was sent to."""
    scheme, separator, rest = page.lower().partition("://")
    return bool(separator) and scheme in ("http", "https") and rest == host.lower()


def preflight(methods: tuple[str, ...]) -> dict[str, str]:
    """What a browser asks before a page may: what it may send. Nothing is read for it."""
    return {"access-control-allow-methods": ", ".join(methods), "access-control-allow-headers": _MAY_SEND,
            "access-control-max-age": "600"}  # fmt: skip
