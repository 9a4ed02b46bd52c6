"""The token of the first operator in a file: a Secret that is mounted, or a file that the first start writes.

So the token is never printed where stdout is kept as a log. Any number of processes may start at once with the same file.
"""

from __future__ import annotations

import os
import secrets

from holdfast.access import tokens
from holdfast.base.record import Record
from holdfast.errors import ConfigError, Unauthenticated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.access.gate import AccessGate

FILE = "operator-token"  # in the home, where no other file is named
_MAX_BYTES = 1024
_FORM = "`hf_`, 8 of a-z and 0-9, `_`, and 43 of A-Z, a-z, 0-9, `_` and `-`"


class OperatorToken(Record):
    """What became of the file: whether this call wrote it, and whether its token lets the operator in."""

    path: str
    written: bool
    valid: bool


def ensure_operator(gate: AccessGate, path: str) -> OperatorToken:
    """Create the first operator with the token in the file; if there is no file and no agent, write a new token there.

    Raises ConfigError if the file cannot be read or written, or holds something else or the token of another tenant."""
    token, written = _read(path), False
    if token is not None:
        _reject_token_of_other_tenant(gate, token, path)
    if token is None:
        if gate.has_agents():
            return OperatorToken(path, written=False, valid=False)
        token, written = _create(path)
    if not gate.first_token(token) and written and not _is_valid(gate, token):
        os.unlink(path)  # another process created the operator with a token of its own
        return OperatorToken(path, written=False, valid=False)
    return OperatorToken(path, written=written, valid=_is_valid(gate, token))


def _read(path: str) -> str | None:
    """Return the token in the file; None if there is no file."""
    try:
        with open(path, "rb") as file:
            text = file.read(_MAX_BYTES).decode("ascii", "replace").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"cannot read the operator's token from {path}: {error.strerror}", "Make it readable") from None
    try:
        tokens.parse_token_id(text)
    except Unauthenticated:
        raise ConfigError(f"{path} does not hold a token", f"A token is {_FORM}; remove the file for a new one") from None
    return text


def _reject_token_of_other_tenant(gate: AccessGate, token: str, path: str) -> None:
    """Raise ConfigError if the database has this token for another tenant: a request with it would reach that tenant."""
    id = tokens.parse_token_id(token)
    stored = gate.ledger.agents.find_tokens([id]).get(id)
    if gate.config.store and stored is not None and stored.tenant != gate.config.tenant:
        raise ConfigError(
            f"the token in {path} is that of another tenant of this database", "Use a different token for each tenant"
        )


def _create(path: str) -> tuple[str, bool]:
    """Write a new token to a file of mode 0600; return the token and whether this process was the first to write one."""
    token = tokens.make_token().token
    temporary = f"{path}.{secrets.token_hex(8)}"
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, token.encode() + b"\n")
            os.fsync(fd)
            os.link(temporary, path)  # complete from the moment it is there
        finally:
            os.close(fd)
            os.unlink(temporary)
    except FileExistsError:
        return _read(path) or token, False
    except OSError as error:
        fix = f"Make its folder writable for this user, or put a token there: {_FORM}"
        raise ConfigError(f"cannot write the operator's token to {path}: {error.strerror}", fix) from None
    return token, True


def _is_valid(gate: AccessGate, token: str) -> bool:
    try:
        gate.identify(token)
    except Unauthenticated:
        return False
    return True
