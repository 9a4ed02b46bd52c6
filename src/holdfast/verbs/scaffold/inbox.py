"""Messages an operator left in operator-inbox.jsonl: which are unread, each as one line. Reads whatever stands there. Pure."""

from __future__ import annotations

from holdfast.base.ids import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TEXT = ("text", "body", "content", "message")
_TIME = ("time", "ts", "at", "created")
_FROM = ("from", "sender", "author")
_ANSWERS = ("re", "reply_to", "in_reply_to")
_CHARS = 500  # of one message; the file has all of it
_DONE = ("read", "done", "closed", "handled", "answered")  # as a status; the first also as a mark of its own


def unread(inbox: str, outbox: str = "") -> list[str]:
    """The messages that are neither marked as read nor answered, the newest first. A line that is no JSON is a message too."""
    answered = _answered(outbox) if inbox.strip() else set()
    told = [_told(line, number, answered) for number, line in enumerate(inbox.split("\n"), 1) if line.strip("\r \t\0")]
    return [line for line in reversed(told) if line]


def _told(line: str, number: int, answered: set[str]) -> str:
    """A message as one line; nothing if it was read."""
    said = _parsed(line)
    if not isinstance(said, dict):
        return f"- line {number}: {_short(said if isinstance(said, str) else line)}"
    id = _first(said, ("id",)) or digest(line.strip().encode("utf-8", "replace"))[:8]
    if id in answered or _is_read(said):
        return ""
    about = ", ".join([word for word in (_first(said, _TIME), _first(said, _FROM) or "operator") if word])
    return f"- {_flat(id)[:60]} ({_flat(about)[:80]}): {_short(_first(said, _TEXT) or line)}"


def _is_read(said: dict[str, Any]) -> bool:
    return bool(said.get("read") or said.get("read_at")) or str(said.get("status")).lower() in _DONE


def _answered(outbox: str) -> set[str]:
    """The ids that the answers name."""
    found = [said for line in outbox.split("\n") if isinstance(said := _parsed(line), dict)]
    return {id for said in found if (id := _first(said, _ANSWERS))}


def _parsed(line: str) -> Any:
    """What a line of JSON says; None if it is none."""
    if not line.strip():
        return None
    import json

    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _first(said: dict[str, Any], names: tuple[str, ...]) -> str:
    """The first of these fields that says something plain."""
    found = (said.get(name) for name in names)
    plain = (str(one).strip() for one in found if isinstance(one, str | int | float) and not isinstance(one, bool))
    return next((one for one in plain if one), "")


def _short(text: str) -> str:
    flat = _flat(text)
    return flat if len(flat) <= _CHARS else flat[:_CHARS].rstrip() + " […]"


def _flat(text: str) -> str:
    return " / ".join([line for row in text.split("\n") if (line := row.strip(" \t\r"))])
