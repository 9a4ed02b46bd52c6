"""What a gateway refuses, as the error that the same verb raises on this machine."""

from __future__ import annotations

from typing import Any

from holdfast import errors
from holdfast.errors import (
    ConfigError,
    Conflict,
    Denied,
    HoldfastError,
    InvalidKey,
    InvalidPath,
    InvalidText,
    Template,
    TooLarge,
    TooMany,
    Trouble,
    Unreached,
    UsageError,
)

_BY_CODE: dict[str, type[HoldfastError]] = {
    kind.code: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, HoldfastError)
}
_OF_HTTP: dict[str, type[HoldfastError]] = {  # codes that only HTTP has
    "precondition": Conflict, "reused_key": Conflict, "too_deep": TooLarge, "too_slow": Trouble, "wrong_origin": Denied,
    "wrong_host": ConfigError, "upstream": Unreached, "unforeseen": Trouble, "not_json": UsageError, "wrong_type": UsageError,
    "invalid_request": UsageError, "no_route": UsageError, "wrong_method": UsageError,
}  # fmt: skip
_FIELDS: dict[str, type[HoldfastError]] = {  # what a field that breaks the schema would be refused as here
    "key": InvalidKey, "under": InvalidKey, "project": InvalidKey, "session": InvalidKey, "text": InvalidText,
    "path": InvalidPath, "old_path": InvalidPath, "new_path": InvalidPath,
}  # fmt: skip
_NOT_THERE = "Ask a gateway of a newer version, or do it where its home is"


def error_of(status: int, headers: dict[str, str], said: Any) -> HoldfastError:
    """The error of an answer that is none."""
    if not isinstance(said, dict) or not isinstance(said.get("code"), str):
        fix = "Check the address: something else than a gateway answers there, or stands in between"
        return Unreached(f"the answer ({status}) is not a gateway's", fix)
    code, message = said["code"], _text(said.get("detail")) or _text(said.get("title")) or said["code"]
    if code in ("no_route", "wrong_method"):
        return UsageError("this gateway cannot do that over HTTP", _NOT_THERE)
    kind, data = _kind(code, said), said.get("parts")
    parts: dict[str, Any] = data if isinstance(data, dict) else {}
    text, hint = _template(parts.get("detail")) or message, _template(parts.get("fix")) or _text(said.get("fix"))
    error = TooMany(text, hint, _seconds(headers.get("retry-after"))) if kind is TooMany else kind(text, hint)
    line, before = said.get("line"), parts.get("done_before")
    if isinstance(line, int) and line > 0 and parts:  # else the message says it already
        error.about("line", line)
    if isinstance(before, int):
        error.done_before = before
    return error


def _kind(code: str, said: dict[str, Any]) -> type[HoldfastError]:
    if code == "invalid_request" and isinstance(said.get("errors"), list) and len(said["errors"]) == 1:
        one = said["errors"][0]
        unknown = isinstance(one, dict) and one.get("code") == "unknown"
        field = str(one.get("pointer", "")).strip("/").partition("/")[0] if isinstance(one, dict) else ""
        return UsageError if unknown else _FIELDS.get(field, UsageError)
    return _BY_CODE.get(code) or _OF_HTTP.get(code) or Trouble


def _template(given: Any) -> Template | None:
    """Return a message that a gateway sent as data, if it is one."""
    try:
        return Template.from_list(given)
    except (KeyError, TypeError):
        return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _seconds(value: str | None) -> float:
    try:
        return max(0.0, float(value or 1))
    except ValueError:
        return 1.0
