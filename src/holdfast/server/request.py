"""A request as it comes: its id, what its head says, and what is known of it by now."""

from __future__ import annotations

import re
from random import getrandbits
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.access import Caller
    from holdfast.server.body import Message

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Request:
    """The head of a request; whoever answers it notes down here what the log and the counts tell."""

    def __init__(self, scope: Message) -> None:
        self.scope = scope
        self.method: str = "GET" if scope["method"] == "HEAD" else scope["method"]
        self.path: str = scope["path"]
        self.query: bytes = scope["query_string"]
        self.raw: list[tuple[bytes, bytes]] = scope["headers"]  # names are in small letters
        self.headers: dict[bytes, bytes] = dict(self.raw)
        self.id = self._id()
        self.route = ""
        self.allows: dict[str, str] = {}  # what a browser is told with the answer
        self.caller: Caller | None = None
        self.tenant = ""  # where there may be several
        self.outcome = ""
        self.trouble: list[str] = []

    def header(self, name: str) -> str:
        return self.headers.get(name.encode(), b"").decode("latin-1").strip()

    def _id(self) -> str:
        """The one it came with, if that can stand in a log; else a new one."""
        given = self.header("x-request-id")
        return given if _ID.fullmatch(given) else f"{getrandbits(64):016x}"  # no secret, and no two are the same
