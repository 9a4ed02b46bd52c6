"""Read a request's body and query within limits on bytes, time, nesting and the number of values."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect

from holdfast.base import json_lines
from holdfast.errors import TooLarge
from holdfast.server.problem import Problem

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.requests import Request
    from starlette.types import Receive

    from holdfast.server.validation import Field

ARRIVED = "holdfast.arrived"  # in the scope: the server process has the whole request already
MAX_DEPTH = 32
MAX_VALUES = 200_000  # in one body: a value takes many times as much memory as it takes bytes
_CHUNK_SECONDS, _BODY_SECONDS = 30.0, 300.0  # between two chunks of a body, and for a whole JSON body
_MAX_QUERY_FIELDS = 64
_NOT_BRACKETS = bytes([byte for byte in range(256) if byte not in b"[]{}"])


async def read_chunks(receive: Receive, max_bytes: int, seconds: float = float("inf")) -> AsyncIterator[bytes]:
    """Yield the body as it arrives; raise `TooLarge` after `max_bytes`, `too_slow` after `seconds` in all."""
    size, deadline = 0, time.monotonic() + seconds
    while True:
        try:
            async with asyncio.timeout(min(_CHUNK_SECONDS, deadline - time.monotonic())):
                message = await receive()
        except TimeoutError:
            raise Problem("too_slow", "the body was not received in time", "Send it again on a faster connection") from None
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > max_bytes:
            raise _too_many_bytes(max_bytes)
        if chunk:
            yield chunk
        if not message.get("more_body", False):
            return


def has_arrived(request: Request, max_bytes: int) -> bool:
    """Return whether a body of a permitted size is in memory already, so that reading it takes no time."""
    length = request.headers.get("content-length", "")
    is_permitted = length.isascii() and length.isdigit() and int(length[:20]) <= max_bytes
    return is_permitted and ARRIVED in request.scope


async def read_body(headers: Headers, receive: Receive, max_bytes: int) -> bytes:
    """Return a whole body; refuse one that declares too many bytes before any of it is read."""
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()) or int(length[:20]) > max_bytes:
        raise _too_many_bytes(max_bytes)
    return b"".join([chunk async for chunk in read_chunks(receive, max_bytes, _BODY_SECONDS)])


def check_json_size(data: bytes, depth: int = MAX_DEPTH, values: int = MAX_VALUES) -> None:
    """Refuse JSON that is nested too deeply or has too many values, before it is parsed into objects.

    Brackets and commas inside of strings do not count. Everything that depends on the length runs in C.
    """
    if data.count(b"[") + data.count(b"{") <= depth and data.count(b",") <= values:
        return
    unescaped = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    if unescaped.count(b'"') > 2 * values:
        raise _too_many_values(values)
    outside_strings = b"".join(unescaped.split(b'"')[::2])
    if outside_strings.count(b"[") + outside_strings.count(b"{") + outside_strings.count(b",") > values:
        raise _too_many_values(values)
    level = 0
    for bracket in outside_strings.translate(None, _NOT_BRACKETS):
        level += 1 if bracket in b"[{" else -1
        if level > depth:
            raise Problem("too_deep", f"nested more than {depth} levels", "Send JSON with fewer levels")
        if level < 0:
            return  # not JSON: the parser says so


def parse_json(data: bytes) -> Any:
    """Return the JSON of a body. The standard parser is used because msgspec accepts fields that come twice."""
    check_json_size(data)
    try:
        return _DECODER.decode(data.decode("utf-8-sig"))  # some programs write a byte order mark first
    except json_lines.DuplicateField as error:
        raise _repeated_field("body", error.field) from None
    except (ValueError, RecursionError) as error:
        what = getattr(error, "msg", "") or "not UTF-8, or a number that is not valid JSON"
        raise Problem("not_json", f"the body is not JSON: {what}", "Send one JSON object as UTF-8") from None


def parse_query(query: bytes, fields: dict[str, Field]) -> dict[str, Any]:
    """Return the fields of a query: numbers and flags converted from their text, lists from repeated fields."""
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, max_num_fields=_MAX_QUERY_FIELDS, errors="strict")
    except ValueError:
        raise Problem("invalid_request", "the query cannot be read", "Send at most 64 fields as UTF-8") from None
    found: dict[str, Any] = {}
    for name, value in pairs:
        kind = fields[name].kind if name in fields else str
        if kind is list:
            found.setdefault(name, []).append(value)
        elif name in found:
            raise _repeated_field("query", name)
        else:
            found[name] = _convert_text(kind, value)
    return found


def _convert_text(kind: Any, value: str) -> Any:
    """Return a number or a flag; text that is neither stays text, and validation reports it."""
    if kind is int and len(value) <= 12 and re.fullmatch(r"-?[0-9]+", value):
        return int(value)
    return {"true": True, "false": False}.get(value, value) if kind is bool else value


def _repeated_field(where: str, name: str) -> Problem:
    mistake = [{"pointer": f"/{name[:80]}", "detail": "is given twice"}]
    return Problem("invalid_request", f"a field of the {where} is given twice", "Give it once", errors=mistake)


def _too_many_bytes(max_bytes: int) -> TooLarge:
    return TooLarge(f"the body is larger than {max_bytes:,} bytes", "Send less per request, or use /v1/import for many notes")


def _too_many_values(values: int) -> TooLarge:
    return TooLarge(f"the body has more than {values:,} values", "Send less per request, or use /v1/import for many notes")


def _number(text: str) -> int | float:
    """Return 3 for `3.0`: JSON Schema counts it as a whole number."""
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _reject_constant(name: str) -> None:
    raise ValueError(name)


_DECODER = json.JSONDecoder(
    parse_constant=_reject_constant, parse_float=_number, object_pairs_hook=json_lines.reject_duplicate_fields
)
