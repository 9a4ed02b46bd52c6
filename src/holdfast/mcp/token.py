"""The token for MCP over HTTP: created once per home, in a file that only its owner can read."""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from holdfast import home as home_folder
from holdfast.errors import Damaged, from_os
from holdfast.ledger.secret_file import create_secret, read_secret

NAME = "mcp.token"
_BYTES = 32  # 256 bits
_MIN_CHARS, _MAX_CHARS = 43, 200  # characters of a token

Message = MutableMapping[str, Any]
App = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]


def path(home: str) -> str:
    return os.path.join(home, "run", NAME)


def load_or_create(home: str) -> str:
    """Return the home's token; create it if there is none."""
    home_folder.check_owner(home, create=True)
    try:
        os.makedirs(os.path.dirname(path(home)), 0o700, exist_ok=True)
        if not os.path.lexists(path(home)):
            create_secret(path(home), secrets.token_urlsafe(_BYTES).encode())
        return _read(path(home))
    except OSError as error:
        raise from_os(error, f"cannot store the token in {path(home)}") from error


def _read(place: str) -> str:
    fix = f"Delete {place}; the next start creates a new token"
    token = read_secret(place, _MAX_CHARS + 1, fix)
    if not _MIN_CHARS <= len(token) <= _MAX_CHARS or not token.isascii() or not token.decode().isprintable() or b" " in token:
        raise Damaged(f"{place} contains no token", fix)
    return token.decode()


class TokenGuard:
    """An ASGI app behind the token: a request without it does not reach the app."""

    def __init__(self, app: App, token: str) -> None:
        self._app = app
        self._wanted = token.encode()

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan" or self._is_authorized(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            body = b"This server asks for its token: Authorization: Bearer TOKEN\n"
            headers = [(b"www-authenticate", b'Bearer realm="holdfast"'), (b"content-type", b"text/plain")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": body})
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _is_authorized(self, scope: Message) -> bool:
        given = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
        if len(given) != 1:
            return False
        scheme, _, token = given[0].partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._wanted)
