"""The messages of an operator in operator-inbox.jsonl: which are unread, each as one line."""

from __future__ import annotations

from holdfast.base.ids import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TEXT = ("text", "body", "content", "message")
_TIME = ("time", "ts", "at", "created")
_FROM = ("from", "sender", "author")
_ANSWERS = ("re", "reply_to", "in_reply_to")
_MAX_CHARS = 500  # of one message
_DONE = ("read", "done", "closed", "handled", "answered")  # as a status; the first also as a mark of its own


def list_unread(inbox: str, outbox: str = "") -> list[str]:
    """Return the messages that are neither marked as read nor answered, newest first. A line that is not JSON is a message."""
    answered = _answered_ids(outbox) if inbox.strip() else set()
    messages = [
        _format_message(line, number, answered) for number, line in enumerate(inbox.split("\n"), 1) if line.strip("\r \t\0")
    ]
    return [line for line in reversed(messages) if line]


def _format_message(line: str, number: int, answered: set[str]) -> str:
    """Return a message as one line; "" if it was read or answered."""
    message = _parse_json(line)
    if not isinstance(message, dict):
        return f"- line {number}: {_shorten(message if isinstance(message, str) else line)}"
    id = _first_field(message, ("id",)) or digest(line.strip().encode("utf-8", "replace"))[:8]
    if id in answered or _is_read(message):
        return ""
    about = ", ".join([word for word in (_first_field(message, _TIME), _first_field(message, _FROM) or "operator") if word])
    return f"- {_join_lines(id)[:60]} ({_join_lines(about)[:80]}): {_shorten(_first_field(message, _TEXT) or line)}"


def _is_read(message: dict[str, Any]) -> bool:
    return bool(message.get("read") or message.get("read_at")) or str(message.get("status")).lower() in _DONE


def _answered_ids(outbox: str) -> set[str]:
    """Return the ids of the messages that the answers name."""
    found = [message for line in outbox.split("\n") if isinstance(message := _parse_json(line), dict)]
    return {id for message in found if (id := _first_field(message, _ANSWERS))}


def _parse_json(line: str) -> Any:
    """Return the value of a line of JSON; None if it is not JSON."""
    if not line.strip():
        return None
    import json

    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _first_field(message: dict[str, Any], names: tuple[str, ...]) -> str:
    """Return the first of these fields that is a non-empty string or a number, as a string."""
    values = (message.get(name) for name in names)
    plain = (str(value).strip() for value in values if isinstance(value, str | int | float) and not isinstance(value, bool))
    return next((value for value in plain if value), "")


def _shorten(text: str) -> str:
    flat = _join_lines(text)
    return flat if len(flat) <= _MAX_CHARS else flat[:_MAX_CHARS].rstrip() + " […]"


def _join_lines(text: str) -> str:
    return " / ".join([line for row in text.split("\n") if (line := row.strip(" \t\r"))])
