"""Remove old rows of the audit, and prove afterwards that nothing else was removed.

Before rows are removed, a checkpoint is written: the number and the hash of the last of them, their times, and a signature
with a key that is not in the ledger. The chain goes on from the checkpoint's hash, so `audit_verify` still proves every row
that is left, and that the removed ones ended with that hash. A missing or forged checkpoint is found.
"""

from __future__ import annotations

import hmac
import json
from hashlib import sha256

from holdfast.base import dates
from holdfast.base.record import Record
from holdfast.errors import Damaged, Template, UsageError, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.ledger.audit import Audit

KEPT_DAYS = 7  # rows that are younger are never removed: an intruder cannot hide what it did. PostgreSQL enforces it as well
_ROWS_PER_TRANSACTION = 5000  # other writers wait for one transaction, not for all of them


class Checkpoint(Record):
    """Where the removed rows end. Times are those of the first and the last removed row, and of the checkpoint itself."""

    number: int
    hash: str
    first_time: str
    last_time: str
    made: str
    signature: str = ""

    def sign(self, key: bytes) -> Checkpoint:
        """Return the checkpoint with its signature."""
        return self.replace(signature=self._compute_signature(key))

    def is_signed_with(self, key: bytes) -> bool:
        return hmac.compare_digest(self.signature.encode("utf-8", "replace"), self._compute_signature(key).encode())

    def _compute_signature(self, key: bytes) -> str:
        fields = ["holdfast audit checkpoint", self.number, self.hash, self.first_time, self.last_time, self.made]
        return hmac.new(key, json.dumps(fields, separators=(",", ":")).encode(), sha256).hexdigest()


class Pruned(Record):
    """The result of a removal. `checkpoint` is the newest one, or None if no row was ever removed."""

    removed: int
    kept: int
    checkpoint: Checkpoint | None


def oldest_kept() -> str:
    """Return the moment since which no row is ever removed."""
    return dates.format_milliseconds(dates.clock() - KEPT_DAYS * 86400)


def check_before(before: str) -> None:
    """Raise UsageError if rows before this moment include some that are always kept."""
    if before > oldest_kept():
        fix = f"Give {oldest_kept()[:10]} or an earlier day"
        raise UsageError(f"rows of the last {KEPT_DAYS} days are always kept, and {before} is later", fix)


def check_checkpoint(audit: Audit, checkpoint: Checkpoint | None) -> str:
    """Return what is wrong with the checkpoint of an audit; "" if nothing is, or there is none."""
    if checkpoint is None:
        return ""
    key = audit.secret.find()
    if key is None:
        return f"the checkpoint at row {checkpoint.number} cannot be verified: the key that signed it is missing"
    return "" if checkpoint.is_signed_with(key) else f"the checkpoint at row {checkpoint.number} has a wrong signature"


def prune(audit: Audit, before: str, through: int | None = None) -> Pruned:
    """Remove the rows that are older than this moment (with milliseconds), and at most those up to `through`.

    The newest row always stays. What is removed is verified first: raises Damaged if it is not what was written."""
    check_before(before)
    audit.save_mark(always=True)
    removed, old = 0, audit.read_checkpoint()
    for new in _plan_checkpoints(audit, old, _find_last(audit, before, through)):
        audit.remove_through(new)
        removed, old = removed + new.number - (old.number if old else 0), new
    last = audit.read_last()
    return Pruned(removed=removed, kept=(last.count if last else 0) - (old.number if old else 0), checkpoint=old)


def has_older_rows(audit: Audit, before: str, through: int | None = None) -> bool:
    """Return whether there are rows to be removed."""
    checkpoint = audit.read_checkpoint()
    return _find_last(audit, before, through) > (checkpoint.number if checkpoint else 0)


def _find_last(audit: Audit, before: str, through: int | None) -> int:
    """Return the number of the last row to be removed; 0 or an already removed one if there is none."""
    mark, first_kept = audit.read_mark(), audit.find_first_since(before)
    bounds = [mark.count - 1 if mark else 0, first_kept - 1 if first_kept is not None else None, through]
    return min([bound for bound in bounds if bound is not None])


def _plan_checkpoints(audit: Audit, old: Checkpoint | None, last: int) -> list[Checkpoint]:
    """Verify the rows up to this one and return the checkpoints at which they are removed, one for each transaction."""
    from holdfast.ledger.audit_verify import compare_ends, iterate_verified

    if last <= (old.number if old else 0):
        return []
    wrong = compare_ends(audit)
    if wrong:
        raise _broken_error(wrong)
    key, first_time, planned, count = audit.secret.load(), old.first_time if old else "", list[Checkpoint](), 0
    for row, problem in iterate_verified(audit, last):
        if problem:
            raise _broken_error(problem)
        first_time, count = first_time or row.time, count + 1
        if count % _ROWS_PER_TRANSACTION == 0 or row.number == last:
            planned.append(
                Checkpoint(
                    number=row.number, hash=row.hash, first_time=first_time, last_time=row.time, made=dates.now_milliseconds()
                ).sign(key)
            )
    return planned


def _broken_error(problem: str) -> Damaged:
    return Damaged(f"no row was removed, because the audit is broken: {problem}", Template("Run ", command("audit verify")))
