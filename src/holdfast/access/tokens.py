"""Tokens: `hf_`, eight characters that anybody may see, `_`, and 43 that are secret.

The secret is 256 bits of chance: nobody guesses it from a digest, however fast the digest is, so SHA-256 is enough and
every request can afford it.
"""

from __future__ import annotations

import hmac
import secrets
from hashlib import sha256

from holdfast.base.lazy_re import pattern
from holdfast.base.record import Record
from holdfast.errors import Template, Unauthenticated, command
from holdfast.ledger.agents import Minted

_FORM = pattern(r"hf_([0-9a-z]{8})_[A-Za-z0-9_-]{43}\Z")
_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"


class NewToken(Record):
    """A new token: what is shown once, and what is kept of it."""

    token: str
    kept: Minted

    def __repr__(self) -> str:
        return f"Made({self.kept.id})"


def make() -> NewToken:
    id = "".join([secrets.choice(_LETTERS) for _ in range(8)])
    token = f"hf_{id}_{secrets.token_urlsafe(32)}"
    return NewToken(token, Minted(id, digest(token)))


def digest(token: str) -> bytes:
    return sha256(token.encode("ascii")).digest()


def id_of(token: object) -> str:
    """The public part of something that looks like a token."""
    form = _FORM.match(token) if isinstance(token, str) else None
    if form is None:
        raise invalid("no token, or nothing that looks like one")
    return str(form[1])


def matches(token: str, kept: bytes) -> bool:
    """Compared in the same time wherever they differ."""
    return hmac.compare_digest(digest(token), kept)


def invalid(what: str) -> Unauthenticated:
    fix = Template("Send `Authorization: Bearer TOKEN`; an operator makes one with ", command("agent add"))
    return Unauthenticated(what, fix)
