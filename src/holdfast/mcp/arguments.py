"""Check the arguments of a call against the tool's schema: an error names the unknown, missing or invalid argument."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from holdfast.errors import UsageError

_TYPES: dict[str, type] = {"string": str, "integer": int, "boolean": bool, "array": list}
_TYPE_NAMES = {"string": "a string", "integer": "a whole number", "boolean": "true or false", "array": "a list"}


def check_arguments(schema: dict[str, Any], given: object) -> dict[str, Any]:
    """Return the arguments without nulls; raise `UsageError` if the schema does not allow them."""
    if not isinstance(given, dict):
        raise UsageError("the arguments are not an object", f"Known: {', '.join(schema['properties'])}")
    arguments = {name: value for name, value in given.items() if value is not None}
    for name, value in arguments.items():
        if name not in schema["properties"]:
            raise _unknown_argument(str(name), list(schema["properties"]))
        _check_value(name, schema["properties"][name], value)
    missing = [name for name in schema.get("required", ()) if name not in arguments]
    if missing:
        fix = _description(schema["properties"][missing[0]]) or f"Give {' and '.join(missing)}"
        raise UsageError(f"missing: {', '.join(missing)}", fix)
    return arguments


def _unknown_argument(name: str, known: list[str]) -> UsageError:
    near = get_close_matches(name, known, 1)
    shown = ascii(name[:80])
    return UsageError(f"unknown argument {shown}", f"Did you mean {near[0]}?" if near else f"Known: {', '.join(known)}")


def _check_value(name: str, schema: dict[str, Any], value: object) -> None:
    kind = schema["type"]
    if kind == "array" and isinstance(value, str) and schema["items"]["type"] == "string":
        return  # a string with commas is accepted too
    if not isinstance(value, _TYPES[kind]) or (kind != "boolean" and isinstance(value, bool)):
        raise UsageError(
            f"{name} must be {_TYPE_NAMES[kind]}, not {type(value).__name__}",
            _description(schema) or f"Give {_TYPE_NAMES[kind]}",
        )
    if isinstance(value, list):
        for item in value:
            _check_value(f"each of {name}", schema["items"], item)
    elif "enum" in schema and value not in schema["enum"]:
        raise UsageError(f"unknown {name} {str(value)[:80]!a}", f"One of: {', '.join(schema['enum'])}")
    elif isinstance(value, int) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        raise UsageError(f"{name} {value} is out of range", f"{schema['minimum']} to {schema.get('maximum', 'any number')}")


def _description(schema: dict[str, Any]) -> str:
    return str(schema.get("description", "")).rstrip(".")
