"""A request's body and query, read within limits: bytes, nesting, time; and only once it is known who asks."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from holdfast.base import json_lines
from holdfast.errors import TooLarge
from holdfast.server.problem import Problem
from holdfast.server.schema import Schema

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]

DEPTH = 32
VALUES = 200_000  # that a body may have: what each takes in memory is many times what it takes in bytes
_SECONDS, _BODY_SECONDS = 30.0, 300.0  # between two pieces of a body, and for all of it
_FIELDS = 64
_NO_BRACKETS = bytes([sign for sign in range(256) if sign not in b"[]{}"])


class Gone(Exception):
    """Whoever asked has hung up."""


def must_be_small(data: bytes, depth: int = DEPTH, values: int = VALUES) -> None:
    """Refuse JSON that is nested too deeply or has too many values, before it is parsed: bytes alone say little about what
    that takes. Only what stands outside of texts counts, and all that goes by the length is done in C."""
    if data.count(b"[") + data.count(b"{") <= depth and data.count(b",") <= values:
        return
    bare = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    if bare.count(b'"') > 2 * values:
        raise _too_many(values)
    outside = b"".join(bare.split(b'"')[::2])
    if outside.count(b"[") + outside.count(b"{") + outside.count(b",") > values:
        raise _too_many(values)
    deep = 0
    for sign in outside.translate(None, _NO_BRACKETS):
        deep += 1 if sign in b"[{" else -1
        if deep > depth:
            raise Problem("too_deep", f"nested more than {depth} levels", "Send flatter JSON")
        if deep < 0:
            return  # no JSON, as whoever parses it will say


def _too_many(values: int) -> TooLarge:
    return TooLarge(f"a body may have {values:,} values", "Send less at a time; /v1/import takes many notes")


async def pieces(receive: Receive, most: int, seconds: float = float("inf")) -> AsyncIterator[bytes]:
    """The body as it comes, no more than so many bytes of it, and none that come after so many seconds in all."""
    size, end = 0, time.monotonic() + seconds
    while True:
        try:
            async with asyncio.timeout(min(_SECONDS, end - time.monotonic())):
                message = await receive()
        except TimeoutError:
            raise Problem("too_slow", "the body did not come in time", "Send it faster") from None
        if message["type"] == "http.disconnect":
            raise Gone
        piece: bytes = message.get("body", b"")
        size += len(piece)
        if size > most:
            raise TooLarge(f"a body may have {most:,} bytes", "Send less at a time; /v1/import takes many notes")
        if piece:
            yield piece
        if not message.get("more_body", False):
            return


async def body(receive: Receive, most: int) -> bytes:
    """The whole body of a JSON request, as it came."""
    return b"".join([piece async for piece in pieces(receive, most, _BODY_SECONDS)])


def declared(headers: dict[bytes, bytes], most: int) -> None:
    """Refuse a body that says itself that it is too large, before any of it is read."""
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or int(length[:20]) > most:
        raise TooLarge(f"a body may have {most:,} bytes", "Send less at a time; /v1/import takes many notes")


def parsed(data: bytes) -> Any:
    """The JSON of a body. In a thread: it may be long."""
    must_be_small(data)
    try:
        text = data.decode("utf-8-sig")  # some programs write a byte order mark before it
        return _DECODER.decode(text)
    except json_lines.DuplicateField as error:
        raise _twice("body", error.field) from None
    except (ValueError, RecursionError) as error:
        what = getattr(error, "msg", "") or "not UTF-8, or a number that JSON does not know"
        raise Problem("not_json", f"the body is not JSON: {what}", "Send one JSON object as UTF-8") from None


def _twice(where: str, name: str) -> Problem:
    detail = [{"pointer": f"/{name[:80]}", "detail": "comes twice"}]
    return Problem("invalid_request", f"a field of the {where} comes twice", "Give it once", errors=detail)


def asked(query: bytes, known: dict[str, Schema]) -> dict[str, Any]:
    """The query's fields, each as its schema says: numbers and flags are read from their text, lists may come repeated."""
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, max_num_fields=_FIELDS, errors="strict")
    except ValueError:
        raise Problem("invalid_request", "the query cannot be read", "Send at most 64 fields as UTF-8") from None
    found: dict[str, Any] = {}
    for name, value in pairs:
        schema = known.get(name, {})
        if schema.get("type") == "array":
            found.setdefault(name, []).append(value)
        elif name in found:
            raise _twice("query", name)
        else:
            found[name] = _typed(schema.get("type"), value)
    return found


def _typed(kind: object, value: str) -> Any:
    """What is not of its kind stays text, and the schema says so."""
    if kind == "integer" and len(value) <= 12 and re.fullmatch(r"-?[0-9]+", value):
        return int(value)
    return {"true": True, "false": False}.get(value, value) if kind == "boolean" else value


def _number(text: str) -> int | float:
    """To JSON Schema 3.0 is a whole number."""
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _no_constant(name: str) -> None:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_number, object_pairs_hook=json_lines.unique_fields)
