"""Tokens: `hf_`, eight public characters, `_`, and 43 secret ones.

The secret is 256 random bits, which cannot be guessed from a digest however fast that is. So a plain SHA-256 is enough, and
cheap enough for every request.
"""

from __future__ import annotations

import hmac
import secrets
from hashlib import sha256

from holdfast.base.lazy_re import pattern
from holdfast.base.record import Record
from holdfast.errors import Template, Unauthenticated, command
from holdfast.ledger.agents import TokenDigest

_TOKEN = pattern(r"hf_([0-9a-z]{8})_[A-Za-z0-9_-]{43}\Z")
_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"


class RejectedToken(Unauthenticated):
    """A token that is not accepted, and why: it is missing, invalid, expired or revoked.

    `id` is the public part of one that looks like ours. The agent and the tenant are known if the token was valid once."""

    def __init__(self, problem: str, reason: str, *, id: str = "", agent: str = "", tenant: str = "") -> None:
        fix = Template("Send `Authorization: Bearer TOKEN`; an operator makes one with ", command("agent add"))
        if reason in ("revoked", "expired"):
            rotate, add = command("agent rotate {}", "NAME"), command("agent add")
            fix = Template(
                "Use the agent's new token; an operator makes one with ", rotate, ", or with ", add, " if it was revoked"
            )
        super().__init__(problem, fix)
        self.reason, self.id, self.agent, self.tenant = reason, id, agent, tenant


class NewToken(Record):
    """A new token, which is shown once, and the form in which it is stored."""

    token: str
    stored: TokenDigest

    def __repr__(self) -> str:
        """Return the public part only."""
        return f"NewToken({self.stored.id})"


def make_token() -> NewToken:
    """Return a new random token."""
    id = "".join([secrets.choice(_LETTERS) for _ in range(8)])
    token = f"hf_{id}_{secrets.token_urlsafe(32)}"
    return NewToken(token, TokenDigest(id, digest(token)))


def parse_token(token: str) -> NewToken:
    """Return a token that was made elsewhere, in the form in which it is stored; raises Unauthenticated."""
    return NewToken(token, TokenDigest(parse_token_id(token), digest(token)))


def digest(token: str) -> bytes:
    """Return the digest that is stored instead of a token."""
    return sha256(token.encode("ascii")).digest()


def parse_token_id(token: object) -> str:
    """Return the public part of a token; raises Unauthenticated if it does not look like one."""
    match = _TOKEN.match(token) if isinstance(token, str) else None
    if match is None:
        raise RejectedToken("the request has no token, or the value is not a token", "invalid")
    return str(match[1])


def matches(token: str, stored: bytes) -> bool:
    """Return whether a token has this digest, in constant time."""
    return hmac.compare_digest(digest(token), stored)
