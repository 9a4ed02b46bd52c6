"""What a ledger lost of what was purged: without a word from it, purged texts would come back and nobody would know."""

from __future__ import annotations

from holdfast.ledger.receipts import DAMAGED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.ledger.purges import Purges

MAY_RETURN = "what was purged may be stored again"
UNKNOWN = f"the file ledger.purged says that something was purged here, and the ledger knows of no purge: {MAY_RETURN}"


def losses(purges: Purges) -> list[str]:
    """Each thing that is missing, told with what follows from it."""
    receipts, counts = purges.receipts(), purges.counts()
    if not receipts and not counts:
        return [UNKNOWN] if purges.any() else []
    return [*_key(purges, receipts), *_digests(receipts, counts), *_receipts(receipts, counts)]


def damaged(purges: Purges) -> list[str]:
    """The ids of receipts that cannot be read, unless the same was purged again or taken back."""
    return [
        str(one["id"])
        for one in purges.receipts()
        if one["state"] == DAMAGED and not one.get("again") and not one.get("taken_back")
    ]


def _key(purges: Purges, receipts: list[dict[str, Any]]) -> list[str]:
    mark = purges.mark_of_key()
    if not mark:
        return [f"the key of its digests is gone or damaged: {MAY_RETURN}"]
    other = [one for one in receipts if one.get("digests") and one.get("made_with", mark) != mark]
    return [f"the key of {_purges(other)} was lost, and there is another now: {MAY_RETURN}"] if other else []


def _digests(receipts: list[dict[str, Any]], counts: dict[str, int]) -> list[str]:
    """A receipt of before they were counted is known to have had some."""
    uncounted = [one for one in receipts if "digests" not in one and one["state"] != DAMAGED and not one.get("taken_back")]
    short = [one for one in receipts if one.get("digests", 0) > counts.get(one["id"], 0)]
    short += [one for one in uncounted if one["deleted"]] if not counts else []
    return [f"digests of {_purges(short)} are gone: {MAY_RETURN}"] if short else []


def _receipts(receipts: list[dict[str, Any]], counts: dict[str, int]) -> list[str]:
    gone = counts.keys() - {one["id"] for one in receipts}
    return [f"receipts of {_purges(gone)} are gone; what they are about is still refused"] if gone else []


def _purges(some: Any) -> str:
    return "1 purge" if len(some) == 1 else f"{len(some)} purges"
