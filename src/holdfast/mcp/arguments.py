"""Arguments against a tool's own schema, before any work: what is unknown, missing or of another kind is said by name."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from holdfast.errors import UsageError

_KINDS: dict[str, type] = {"string": str, "integer": int, "boolean": bool, "array": list}
_ONE = {"string": "a string", "integer": "a whole number", "boolean": "true or false", "array": "a list"}


def checked(schema: dict[str, Any], given: object) -> dict[str, Any]:
    """The arguments, if the schema allows them; null means not given."""
    if not isinstance(given, dict):
        raise UsageError("the arguments are not an object", f"Known: {', '.join(schema['properties'])}")
    arguments = {name: value for name, value in given.items() if value is not None}
    for name, value in arguments.items():
        if name not in schema["properties"]:
            raise _unknown(str(name), list(schema["properties"]))
        _check(name, schema["properties"][name], value)
    missing = [name for name in schema.get("required", ()) if name not in arguments]
    if missing:
        fix = _said(schema["properties"][missing[0]]) or f"Give {' and '.join(missing)}"
        raise UsageError(f"missing: {', '.join(missing)}", fix)
    return arguments


def _unknown(name: str, known: list[str]) -> UsageError:
    near = get_close_matches(name, known, 1)
    shown = ascii(name[:80])
    return UsageError(f"unknown argument {shown}", f"Did you mean {near[0]}?" if near else f"Known: {', '.join(known)}")


def _check(name: str, schema: dict[str, Any], value: object) -> None:
    kind = schema["type"]
    if kind == "array" and isinstance(value, str) and schema["items"]["type"] == "string":
        return  # a comma string is as good
    if not isinstance(value, _KINDS[kind]) or (kind != "boolean" and isinstance(value, bool)):
        raise UsageError(f"{name} must be {_ONE[kind]}, not {type(value).__name__}", _said(schema) or f"Give {_ONE[kind]}")
    if isinstance(value, list):
        for one in value:
            _check(f"each of {name}", schema["items"], one)
    elif "enum" in schema and value not in schema["enum"]:
        raise UsageError(f"unknown {name} {str(value)[:80]!a}", f"One of: {', '.join(schema['enum'])}")
    elif isinstance(value, int) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        raise UsageError(f"{name} {value} is out of range", f"{schema['minimum']} to {schema.get('maximum', 'any number')}")


def _said(schema: dict[str, Any]) -> str:
    return str(schema.get("description", "")).rstrip(".")
