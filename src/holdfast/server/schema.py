"""What a request may say and an answer says, as JSON Schema: written by hand for requests, made from records for answers."""

from __future__ import annotations

import re
import types
import typing
from typing import Any

from holdfast import models
from holdfast.base.record import Record

Schema = dict[str, Any]
_KINDS: dict[str, Any] = {
    "string": (str,), "integer": (int,), "boolean": (bool,), "array": (list,), "object": (dict,), "number": (int, float),
}  # fmt: skip
_ONE = {
    "string": "a string", "integer": "a whole number", "boolean": "true or false", "array": "a list",
    "object": "an object", "number": "a number",
}  # fmt: skip
_PLAIN: dict[Any, Schema] = {
    str: {"type": "string"}, int: {"type": "integer"}, bool: {"type": "boolean"}, float: {"type": "number"},
    type(None): {"type": "null"},
}  # fmt: skip
_NAMES: dict[str, Any] = {**vars(models), "Any": Any, "ClassVar": typing.ClassVar}  # what only a type checker looks at
_SHOWN = 8  # mistakes that one answer names
_PATTERNS: dict[str, re.Pattern[str]] = {}


def text(description: str, *choices: str, **more: Any) -> Schema:
    return {"type": "string", "description": description, **({"enum": list(choices)} if choices else {}), **more}


def number(description: str, least: int, most: int, **more: Any) -> Schema:
    return {"type": "integer", "description": description, "minimum": least, "maximum": most, **more}


def flag(description: str) -> Schema:
    return {"type": "boolean", "description": description}


def rows(items: Schema, description: str = "", **more: Any) -> Schema:
    return {"type": "array", "items": items, **({"description": description} if description else {}), **more}


def fields(properties: dict[str, Schema], *needed: str, closed: bool = True) -> Schema:
    """An object; a request's says everything that it may have."""
    shape: Schema = {"type": "object", "properties": properties}
    if needed:
        shape["required"] = list(needed)
    return {**shape, "additionalProperties": False} if closed else shape


def answer(**properties: Schema) -> Schema:
    """An object in which each of these always stands."""
    return fields(properties, *properties, closed=False)


def page_of(items: Schema, what: str) -> Schema:
    """Some of many: those, and where the next begin."""
    following = {"type": ["string", "null"], "description": "Give it back as `cursor` for the next page; null at the end."}
    return fields({what: rows(items), "next": following}, what, "next", closed=False)


def ref(kind: type[Record]) -> Schema:
    """A record, by the name it goes by among the components."""
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def components(*kinds: type[Record]) -> dict[str, Schema]:
    """These records, and all that they are made of."""
    found: dict[str, Schema] = {}
    for kind in kinds:
        _component(kind, found)
    return found


def _component(kind: type[Record], found: dict[str, Schema]) -> None:
    if kind.__name__ in found:
        return
    found[kind.__name__] = {}
    hints = typing.get_type_hints(kind, localns=_NAMES)
    properties = {name: _of(hints[name], found) for name in kind._fields}
    more = {name: _of(typing.get_type_hints(getattr(kind, name).fget)["return"], found) for name in kind._computed}
    described = {"description": kind.__doc__.replace("\n   ", "")} if kind.__doc__ else {}
    found[kind.__name__] = {"type": "object", **described, "properties": {**properties, **more}, "required": list(kind._fields)}


def _of(hint: Any, found: dict[str, Schema]) -> Schema:
    """A field's type, as JSON holds it."""
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    if isinstance(hint, type) and issubclass(hint, Record):
        _component(hint, found)
        return ref(hint)
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        choices = [_of(one, found) for one in inside]
        plain = [one["type"] for one in choices if list(one) == ["type"]]
        return {"type": plain} if len(plain) == len(choices) else {"anyOf": choices}
    if origin in (tuple, list):
        return {"type": "array", "items": _of(inside[0], found)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of(inside[1], found)}
    return {}


# --- checking a request -----------------------------------------------------------------------------------------------


def mistakes(schema: Schema, value: object, pointer: str = "") -> list[dict[str, str]]:
    """What is wrong with a value, each with where it stands; nothing if it may pass."""
    found: list[dict[str, str]] = []
    _check(schema, value, pointer, found)
    return found[:_SHOWN]


def _check(schema: Schema, value: Any, pointer: str, found: list[dict[str, str]]) -> None:
    if "anyOf" in schema:
        if all(mistakes(one, value, pointer) for one in schema["anyOf"]):
            found.append(_wrong(pointer, "is none of what it may be"))
        return
    kind = schema["type"]
    if not isinstance(value, _KINDS[kind]) or (isinstance(value, bool) and kind != "boolean"):
        found.append(_wrong(pointer, f"must be {_ONE[kind]}"))
    elif kind == "string":
        _check_text(schema, value, pointer, found)
    elif kind == "integer":
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            found.append(_wrong(pointer, f"must be {schema['minimum']} to {schema['maximum']}"))
    elif kind == "array":
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            found.append(_wrong(pointer, f"must have {schema.get('minItems', 0)} to {schema.get('maxItems', 'any')} items"))
        for place, one in enumerate(value[:10_000]):
            if len(found) < _SHOWN:
                _check(schema["items"], one, f"{pointer}/{place}", found)
    elif kind == "object":
        _check_object(schema, value, pointer, found)


def _check_object(schema: Schema, value: dict[str, Any], pointer: str, found: list[dict[str, str]]) -> None:
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            found.append(_wrong(f"{pointer}/{name}", "is missing"))
    for name, one in value.items():
        if name in known:
            _check(known[name], one, f"{pointer}/{name}", found)
        elif schema.get("additionalProperties", True) is False:
            found.append({**_wrong(f"{pointer}/{name[:80]}", f"is unknown; known: {', '.join(known)}"), "code": "unknown"})


def _check_text(schema: Schema, value: str, pointer: str, found: list[dict[str, str]]) -> None:
    if "enum" in schema and value not in schema["enum"]:
        found.append(_wrong(pointer, f"must be one of: {', '.join(schema['enum'])}"))
    if len(value) < schema.get("minLength", 0):
        found.append(_wrong(pointer, "must not be empty"))
    if len(value) > schema.get("maxLength", len(value)):
        found.append(_wrong(pointer, f"may have {schema['maxLength']} characters"))
    if "pattern" in schema and not _pattern(schema["pattern"]).search(value):
        found.append(_wrong(pointer, f"must match {schema['pattern']}"))


def _pattern(source: str) -> re.Pattern[str]:
    if source not in _PATTERNS:
        _PATTERNS[source] = re.compile(source)
    return _PATTERNS[source]


def _wrong(pointer: str, detail: str) -> dict[str, str]:
    return {"pointer": pointer or "/", "detail": detail}
