"""Answers of a gateway as the records they were made from. What a newer one tells besides is left out."""

from __future__ import annotations

import re
import sys
from typing import Any, TypeVar

from holdfast import models
from holdfast.base.record import Record
from holdfast.errors import Trouble
from holdfast.verbs import forget_source, graph, read, status
from holdfast.verbs.brief import render

R = TypeVar("R", bound=Record)
_ROOMS = (models, graph, render, read, status, forget_source)
_KNOWN: dict[type[Record], dict[str, tuple[type[Record] | None, bool]]] = {}
_NAME = re.compile(r"[A-Z]\w+")


def made(kind: type[R], said: Any) -> R:
    """One record of this kind."""
    if not isinstance(said, dict):
        raise Trouble(f"the gateway answered no {kind.__name__}", "Ask a gateway of this version")
    shapes = _KNOWN.get(kind) or _KNOWN.setdefault(kind, _shapes(kind))
    try:
        return kind(**{name: _value(shapes[name], said[name]) for name in kind._fields if name in said})
    except TypeError as error:
        raise Trouble(f"the gateway's answer cannot be read: {error}", "Ask a gateway of this version") from None


def many(kind: type[R], said: Any, name: str) -> list[R]:
    """The records under a name of the answer."""
    rows = said.get(name) if isinstance(said, dict) else None
    if not isinstance(rows, list):
        raise Trouble(f"the gateway answered no {name}", "Ask a gateway of this version")
    return [made(kind, row) for row in rows]


def _value(shape: tuple[type[Record] | None, bool], said: Any) -> Any:
    kind, several = shape
    if several and isinstance(said, list):
        return tuple([made(kind, one) for one in said] if kind else said)
    return made(kind, said) if kind and isinstance(said, dict) else said


def _shapes(kind: type[Record]) -> dict[str, tuple[type[Record] | None, bool]]:
    """Of each field the record in it, if any, and whether there are several: as its annotation says."""
    hints: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        hints |= {name: str(hint) for name, hint in one.__dict__.get("__annotations__", {}).items()}
    return {name: (_record_in(hints[name], kind), hints[name].startswith("tuple[")) for name in kind._fields}


def _record_in(hint: str, kind: type[Record]) -> type[Record] | None:
    rooms = (sys.modules[kind.__module__], *_ROOMS)  # its own first: two rooms have a Told, and two a Part
    for name in _NAME.findall(hint):
        for room in rooms:
            found = getattr(room, name, None)
            if isinstance(found, type) and issubclass(found, Record):
                return found
    return None
