"""Receipts of purges in the ledger: parse one that may be damaged, and find lost records.

If a ledger loses digests of purged texts, those texts could be stored again unnoticed; `doctor` reports it.
"""

from __future__ import annotations

from holdfast.base import dates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sized
    from typing import Any

    from holdfast.ledger.purges import Purges

    Receipt = dict[str, Any]

DAMAGED = "damaged"  # the state of a receipt that cannot be read
MAY_RETURN = "purged text is no longer rejected"
UNKNOWN = f"the file ledger.purged records a purge, but the ledger has no purge: {MAY_RETURN}"
_REQUIRED: dict[str, type] = {
    "id": str, "key": str, "time": str, "what": str, "state": str, "deleted": bool, "index_rows": int, "usage_rows": int,
    "removed": list, "checks": list, "beyond_reach": list, "pending": list,
}  # fmt: skip
_TYPES: dict[str, type] = {
    **_REQUIRED, "turns": int, "also_said_by": list, "told": list, "taken_back": str, "kind": str, "again": str, "digests": int,
    "made_with": str,
}  # fmt: skip


def parse_receipt(id: str, data: str | bytes, time: int) -> Receipt:
    """Return a stored receipt; one in the state `damaged` if the stored text is not a receipt any more."""
    import json

    try:
        receipt = json.loads(data)
    except (ValueError, RecursionError):
        receipt = None
    empty: Receipt = {name: kind() for name, kind in _REQUIRED.items()}
    is_valid = isinstance(receipt, dict) and receipt.get("id") == id and "state" in receipt and _is_valid(receipt)
    return {**empty, "scope": None, **(receipt if is_valid else _damaged_receipt(id, time))}


def _is_valid(receipt: Receipt) -> bool:
    if any(name in receipt and type(receipt[name]) is not kind for name, kind in _TYPES.items()):
        return False
    lists = [value for name, value in receipt.items() if isinstance(value, list) and name != "left"]
    return all(_are_texts(lines) for lines in lists) and _is_scope(receipt.get("scope")) and _are_pairs(receipt.get("left", []))


def _is_scope(scope: Any) -> bool:
    if scope is None:
        return True
    return isinstance(scope, dict) and {"kind"} <= scope.keys() <= {"kind", "id"} and _are_texts(list(scope.values()))


def _are_pairs(left: Any) -> bool:
    return isinstance(left, list) and all(isinstance(pair, list) and len(pair) == 2 and _are_texts(pair) for pair in left)


def _are_texts(values: list[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _damaged_receipt(id: str, time: int) -> Receipt:
    try:
        timestamp = dates.format_timestamp(time)
    except (OverflowError, ValueError, OSError):
        timestamp = ""
    description = "unknown: the receipt is damaged"
    return {"id": id, "time": timestamp, "what": description, "state": DAMAGED, "deleted": True}


# --- lost records -----------------------------------------------------------------------------------------------------


def find_losses(purges: Purges) -> list[str]:
    """Return a sentence for each kind of record that the ledger has lost, with its consequence."""
    receipts, counts = purges.list_receipts(), purges.count_digests()
    if not receipts and not counts:
        return [UNKNOWN] if purges.has_purges() else []
    return [*_find_lost_key(purges, receipts), *_find_lost_digests(receipts, counts), *_find_lost_receipts(receipts, counts)]


def list_damaged_ids(purges: Purges) -> list[str]:
    """Return the ids of receipts that cannot be read, unless the same was purged again or taken back."""
    return [
        str(receipt["id"])
        for receipt in purges.list_receipts()
        if receipt["state"] == DAMAGED and not receipt.get("again") and not receipt.get("taken_back")
    ]


def _find_lost_key(purges: Purges, receipts: list[Receipt]) -> list[str]:
    key_id = purges.key_id()
    if not key_id:
        return [f"the key of its digests is missing or damaged: {MAY_RETURN}"]
    other = [receipt for receipt in receipts if receipt.get("digests") and receipt.get("made_with", key_id) != key_id]
    return [f"the key of {_format_count(other)} was lost and replaced: {MAY_RETURN}"] if other else []


def _find_lost_digests(receipts: list[Receipt], counts: dict[str, int]) -> list[str]:
    short = [receipt for receipt in receipts if receipt.get("digests", 0) > counts.get(receipt["id"], 0)]
    if not counts:  # a receipt from before digests were counted is known to have had some
        short += [
            receipt
            for receipt in receipts
            if "digests" not in receipt and receipt["state"] != DAMAGED and not receipt.get("taken_back") and receipt["deleted"]
        ]
    return [f"digests of {_format_count(short)} are missing: {MAY_RETURN}"] if short else []


def _find_lost_receipts(receipts: list[Receipt], counts: dict[str, int]) -> list[str]:
    lost = counts.keys() - {receipt["id"] for receipt in receipts}
    return [f"receipts of {_format_count(lost)} are missing; the purged text is still rejected"] if lost else []


def _format_count(purges: Sized) -> str:
    return "1 purge" if len(purges) == 1 else f"{len(purges)} purges"
