"""Records from a gateway's JSON. Fields that only a newer gateway sends are left out."""

from __future__ import annotations

import re
import sys
from typing import Any, NamedTuple, TypeVar

from holdfast import models
from holdfast.base.record import Record, field_names
from holdfast.errors import Trouble
from holdfast.verbs import forget_source, graph, read, status
from holdfast.verbs.brief import render

R = TypeVar("R", bound=Record)
_MODULES = (models, graph, render, read, status, forget_source)  # that define the records in annotations
_CLASS_NAME = re.compile(r"[A-Z]\w+")
_HINT = "Use a gateway of the same version"


class _FieldType(NamedTuple):
    """The record in a field, if it has one, and whether the field is a tuple."""

    record: type[Record] | None
    is_tuple: bool


_FIELD_TYPES: dict[type[Record], dict[str, _FieldType]] = {}


def parse_record(kind: type[R], data: Any) -> R:
    """Return a record of a kind from its JSON object; raise `Trouble` if it is not one."""
    if not isinstance(data, dict):
        raise Trouble(f"the answer of the gateway contains no {kind.__name__}", _HINT)
    if kind not in _FIELD_TYPES:
        _FIELD_TYPES[kind] = _find_field_types(kind)
    types = _FIELD_TYPES[kind]
    try:
        return kind(**{name: _parse_value(types[name], data[name]) for name in field_names(kind) if name in data})
    except TypeError as error:
        raise Trouble(f"the gateway's answer cannot be read: {error}", _HINT) from None


def parse_records(kind: type[R], data: Any, name: str) -> list[R]:
    """Return the records in the array `name` of an answer; raise `Trouble` if there is none."""
    rows = data.get(name) if isinstance(data, dict) else None
    if not isinstance(rows, list):
        raise Trouble(f"the answer of the gateway contains no {name}", _HINT)
    return [parse_record(kind, row) for row in rows]


def _parse_value(type_: _FieldType, value: Any) -> Any:
    record = type_.record
    if type_.is_tuple and isinstance(value, list):
        return tuple([parse_record(record, item) for item in value] if record else value)
    return parse_record(record, value) if record and isinstance(value, dict) else value


def _find_field_types(kind: type[Record]) -> dict[str, _FieldType]:
    annotations: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        annotations |= {name: str(text) for name, text in base.__dict__.get("__annotations__", {}).items()}
    return {
        name: _FieldType(_find_record(annotations[name], kind), annotations[name].startswith("tuple["))
        for name in field_names(kind)
    }


def _find_record(annotation: str, kind: type[Record]) -> type[Record] | None:
    """Return the record that an annotation names. The module of `kind` comes first: some names are used twice."""
    for name in _CLASS_NAME.findall(annotation):
        for module in (sys.modules[kind.__module__], *_MODULES):
            found = getattr(module, name, None)
            if isinstance(found, type) and issubclass(found, Record):
                return found
    return None
