"""A receipt as the ledger keeps it: JSON that somebody or a disk may have damaged. Then it is one that says so."""

from __future__ import annotations

from holdfast.base import dates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DAMAGED = "damaged"  # the state of such a one
_ALWAYS: dict[str, type] = {  # what whoever reads one asks for
    "id": str, "key": str, "time": str, "what": str, "state": str, "deleted": bool, "index_rows": int, "usage_rows": int,
    "removed": list, "checks": list, "beyond_reach": list, "pending": list,
}  # fmt: skip
_KINDS: dict[str, type] = {
    **_ALWAYS, "turns": int, "also_said_by": list, "told": list, "taken_back": str, "kind": str, "again": str, "digests": int,
    "made_with": str,
}  # fmt: skip


def read(id: str, data: str | bytes, time: int) -> dict[str, Any]:
    """What stands in its row, or, of what is no receipt any more, that there was one."""
    import json

    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        told = None
    nothing: dict[str, Any] = {name: kind() for name, kind in _ALWAYS.items()}
    whole = isinstance(told, dict) and told.get("id") == id and "state" in told and _is_whole(told)
    return {**nothing, "scope": None, **(told if whole else _damaged(id, time))}


def _is_whole(told: dict[str, Any]) -> bool:
    wrong = [name for name, kind in _KINDS.items() if name in told and type(told[name]) is not kind]
    lists = [value for name, value in told.items() if isinstance(value, list) and name != "left"]
    if wrong or not all(_are_texts(lines) for lines in lists):
        return False
    return _is_scope(told.get("scope")) and _are_pairs(told.get("left", []))


def _is_scope(scope: Any) -> bool:
    if scope is None:
        return True
    return isinstance(scope, dict) and {"kind"} <= scope.keys() <= {"kind", "id"} and _are_texts(list(scope.values()))


def _are_pairs(left: Any) -> bool:
    return isinstance(left, list) and all(isinstance(pair, list) and len(pair) == 2 and _are_texts(pair) for pair in left)


def _are_texts(values: list[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _damaged(id: str, time: int) -> dict[str, Any]:
    try:
        when = dates.timestamp(time)
    except (OverflowError, ValueError, OSError):
        when = ""
    what = "something that its damaged receipt does not tell any more"
    return {"id": id, "time": when, "what": what, "state": DAMAGED, "deleted": True}
