"""Sessions in the console: a person signs in with a token or a one-time link, and the browser keeps a cookie.

A cookie is the public part of the token, a dot and 43 secret characters; `owner` stands for the token of the home's owner.
The ledger keeps its digest. The token is looked up with each request, so that a session ends with its token.
"""

from __future__ import annotations

import hmac
import secrets
from hashlib import sha256

from holdfast.access.tokens import RejectedToken
from holdfast.base import dates
from holdfast.base.lazy_re import pattern
from holdfast.base.record import Record
from holdfast.errors import Denied

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.access.gate import AccessGate
    from holdfast.access.policy import Caller

CODE_SECONDS = 60  # how long a one-time link works
_COOKIE = pattern(r"([0-9a-z]{8}|owner)\.[A-Za-z0-9_-]{43}\Z")
_OWNER = "owner"


class Session(Record):
    """A person who is signed in, and the cookie that says so."""

    caller: Caller
    cookie: str

    def __repr__(self) -> str:
        """Return the caller only."""
        return f"Session({self.caller.agent})"

    @property
    def form_token(self) -> str:
        """Return what every form of the session carries: no other site can know it (CSRF)."""
        return hmac.new(self.cookie.encode("ascii"), b"form", sha256).hexdigest()

    def accepts(self, form_token: str) -> bool:
        """Return whether a form carries the right token, in constant time."""
        return hmac.compare_digest(self.form_token.encode(), form_token.encode("utf-8", "replace"))


def sign_in(gate: AccessGate, token: str, address: str) -> Session:
    """Begin a session with a token; raise Unauthenticated, or Denied if its role allows nothing."""
    caller = gate.identify(token, address)
    if not gate.role(caller.role).allowed_actions:
        raise Denied(f"{caller.agent} has no permissions here: its role allows no action", "Sign in with another token")
    return _begin(gate, caller, caller.token, "token")


def sign_in_by_code(gate: AccessGate, code: str, address: str) -> Session:
    """Begin a session of the home's owner with the code of a one-time link; raise Unauthenticated."""
    if not gate.ledger.sign_in_codes.take(_digest(code), int(dates.clock())):
        raise RejectedToken("this link was used before, or is older than a minute", "invalid")
    return _begin(gate, gate.identify_owner(address), _OWNER, "link")


def _begin(gate: AccessGate, caller: Caller, id: str, by: str) -> Session:
    cookie = f"{id}.{secrets.token_urlsafe(32)}"
    gate.record_sign_in(caller, by)
    gate.for_caller(caller).ledger.web_sessions.add(_digest(cookie), caller.token, int(dates.clock()))
    return Session(caller, cookie)


def find_session(gate: AccessGate, cookie: str, address: str) -> Session | None:
    """Return the session of a cookie; None if there is none, or if it or its token has ended."""
    match = _COOKIE.match(cookie)
    if match is None:
        return None
    try:
        caller = gate.identify_owner(address) if match[1] == _OWNER else gate.identify_by_id(match[1])
    except RejectedToken:
        return None
    found = gate.for_caller(caller).ledger.web_sessions.find(_digest(cookie), int(dates.clock()))
    if found is None or found.token != caller.token:
        return None
    return Session(caller.replace(address=address), cookie)


def sign_out(gate: AccessGate, session: Session) -> None:
    """End a session at once, in every process."""
    gate.for_caller(session.caller).ledger.web_sessions.remove(_digest(session.cookie))


def make_code(gate: AccessGate) -> str:
    """Return a new code for a one-time link; every process that can write the ledger of the home can create one."""
    code = secrets.token_urlsafe(32)
    gate.ledger.sign_in_codes.add(_digest(code), int(dates.clock()), CODE_SECONDS)
    return code


def _digest(secret: str) -> str:
    return sha256(secret.encode("utf-8", "replace")).hexdigest()
