"""Check the fields of a request against its model, and name every mistake by a JSON pointer."""

from __future__ import annotations

import functools
import typing
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Meta, UnsetType

from holdfast.server.models import CLIENT_PATTERN, KEY_PATTERN, MOMENT_PATTERN, NAME_PATTERN
from holdfast.server.problem import Problem

M = TypeVar("M", bound=msgspec.Struct)
_SHOWN_MISTAKES = 8
_CHECKED_ITEMS = 10_000
_KIND_NAMES: dict[type, str] = {str: "a string", int: "a whole number", bool: "true or false", list: "a list"}
_NAME = "must have only letters, digits, '.', '_' and '-', such as billing-api; at most {} characters, not starting with '.'"
_PATTERNS_IN_WORDS = {
    MOMENT_PATTERN: "must be a date such as 2026-03-27, or a timestamp such as 2026-03-27T09:30:00Z",
    KEY_PATTERN: "must have only a-z, 0-9 and '-', such as deploy-steps; at most 60 characters, not starting with '-'",
    NAME_PATTERN: _NAME.format(128),
    CLIENT_PATTERN: _NAME.format(100),
}


class Field(NamedTuple):
    """A field of a request model."""

    attribute: str
    hint: Any  # without UnsetType
    required: bool

    @property
    def kind(self) -> Any:
        """Return the Python type of its values: str, int, bool, list or a model."""
        return _split(self.hint)[0]


@functools.cache
def request_fields(model: type[msgspec.Struct]) -> dict[str, Field]:
    """Return the fields of a model by their names in requests."""
    hints = typing.get_type_hints(model, include_extras=True)
    found = {}
    for field in msgspec.structs.fields(model):
        parts = [part for part in typing.get_args(hints[field.name]) if part is not UnsetType]
        is_optional = UnsetType in typing.get_args(hints[field.name])
        found[field.encode_name] = Field(field.name, parts[0] if is_optional else hints[field.name], field.required)
    return found


def decode(model: type[M], given: dict[str, Any], order: tuple[str, ...] = ()) -> M:
    """Return the request's fields as their model; raise `invalid_request` with every mistake, fields named in `order`."""
    try:
        return msgspec.convert(given, model)
    except msgspec.ValidationError:
        mistakes = find_mistakes(model, given, order=order)
    detail = "; ".join([f"{one['pointer']} {one['detail']}" for one in mistakes[:3]])
    raise Problem("invalid_request", detail, "See /openapi.json for its fields", errors=mistakes)


def find_mistakes(
    model: type[msgspec.Struct], value: dict[str, Any], pointer: str = "", order: tuple[str, ...] = ()
) -> list[dict[str, str]]:
    """Return what is wrong with an object, at most eight mistakes. msgspec itself names only the first."""
    fields = request_fields(model)
    names = order or tuple(fields)
    found = [_mistake(f"{pointer}/{name}", "is missing") for name in names if fields[name].required and name not in value]
    for name, one in value.items():
        if name in fields:
            found += _check(fields[name].hint, one, f"{pointer}/{name}")
        else:
            unknown = _mistake(f"{pointer}/{name[:80]}", f"is unknown; known: {', '.join(names)}")
            found.append({**unknown, "code": "unknown"})
    return found[:_SHOWN_MISTAKES]


def _check(hint: Any, value: Any, pointer: str) -> list[dict[str, str]]:
    """Return the mistakes in one value: those of each item where it is a list."""
    kind, item, meta = _split(hint)
    if issubclass(kind, msgspec.Struct):
        return find_mistakes(kind, value, pointer) if isinstance(value, dict) else [_mistake(pointer, "must be an object")]
    if _fits(hint, value):
        return []
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        return [_mistake(pointer, f"must be {_KIND_NAMES[kind]}")]
    if kind is not list:
        return [_mistake(pointer, _constraint(hint, meta, value))]
    least, most = meta.min_length or 0, meta.max_length
    found: list[dict[str, str]] = []
    if not least <= len(value) <= (len(value) if most is None else most):
        found.append(_mistake(pointer, f"must have {least} to {'any' if most is None else most} items"))
    for number, one in enumerate(value[:_CHECKED_ITEMS]):
        if len(found) < _SHOWN_MISTAKES:
            found += _check(item, one, f"{pointer}/{number}")
    return found


def _fits(hint: Any, value: Any) -> bool:
    try:
        msgspec.convert(value, hint)
    except msgspec.ValidationError:
        return False
    return True


def _constraint(hint: Any, meta: Meta, value: Any) -> str:
    """Return which limit of its field a value of the right type breaks."""
    base = typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint
    if typing.get_origin(base) is Literal:
        return f"must be one of: {', '.join(typing.get_args(base))}"
    if isinstance(value, int):
        return f"must be {meta.ge} to {meta.le}"
    if len(value) < (meta.min_length or 0):
        return "must not be empty"
    if meta.max_length is not None and len(value) > meta.max_length:
        return f"may have {meta.max_length} characters"
    return _PATTERNS_IN_WORDS.get(meta.pattern or "", f"must match {meta.pattern}")


@functools.cache
def _split(hint: Any) -> tuple[Any, Any, Meta]:
    """Return the Python type, the type of a list's items and the limits that an annotation names."""
    meta = Meta()
    if typing.get_origin(hint) is Annotated:
        hint, meta = typing.get_args(hint)[:2]
    if typing.get_origin(hint) is Literal:
        return str, None, meta
    if typing.get_origin(hint) is list:
        return list, typing.get_args(hint)[0], meta
    return hint, None, meta


def _mistake(pointer: str, detail: str) -> dict[str, str]:
    return {"pointer": pointer or "/", "detail": detail}
