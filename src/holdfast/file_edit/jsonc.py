"""Parse JSON with comments, trailing commas, bare names and single quotes, and keep the position of each value."""

from __future__ import annotations

from holdfast.base.lazy_re import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAX_DEPTH = 100
_SCALAR = pattern(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_STRING = pattern(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SINGLE_QUOTED = pattern(r"'((?:[^'\\\x00-\x1f]|\\.)*)'")
_NAME = pattern(r"[A-Za-z_$][\w$]*")
_TRIVIA = pattern(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*(?s:.*?)\*/)*")


class InvalidJson(Exception):
    """The text is not JSON; the message has the line and column."""

    def __init__(self, text: str, at: int, problem: str) -> None:
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        super().__init__(f"line {line}, column {column}: {problem}")


class Node:
    """A value and its position; a member of an object starts at its name."""

    __slots__ = ("end", "key", "parts", "start", "value", "value_start")

    def __init__(self, start: int, end: int, value: Any, parts: list[Node], *, key: str = "", value_start: int = -1) -> None:
        self.start, self.end, self.value, self.parts, self.key = start, end, value, parts, key
        self.value_start = start if value_start < 0 else value_start

    def member(self, key: str) -> Node | None:
        """Return the member of a name; the last one if there are several, as programs do."""
        return next((part for part in reversed(self.parts) if part.key == key), None) if isinstance(self.value, dict) else None


def parse(text: str) -> Node | None:
    """Return the document; None if the text has only blanks and comments."""
    at = skip_blanks(text, 0)
    if at == len(text):
        return None
    node = _parse_value(text, at, 0)
    end = skip_blanks(text, node.end)
    if end != len(text):
        raise InvalidJson(text, end, "something stands after the end")
    return node


def skip_blanks(text: str, at: int) -> int:
    """Return the position after the blanks and comments that start here."""
    match = _TRIVIA.match(text, at)
    assert match
    if text.startswith("/*", match.end()):
        raise InvalidJson(text, match.end(), "a comment does not end")
    return match.end()


def _parse_value(text: str, at: int, depth: int) -> Node:
    if depth > _MAX_DEPTH:
        raise InvalidJson(text, at, "too deep")
    if text.startswith(("{", "["), at):
        return _parse_container(text, at, depth)
    if text.startswith(('"', "'"), at):
        return _parse_string(text, at)
    match = _SCALAR.match(text, at)
    if not match:
        raise InvalidJson(text, at, f"{text[at : at + 1]!r} is no value" if at < len(text) else "it ends too soon")
    import json

    try:
        return Node(at, match.end(), json.loads(match.group()), [])
    except ValueError:
        raise InvalidJson(text, at, "a number is too long") from None


def _parse_string(text: str, at: int) -> Node:
    import json

    match = (_SINGLE_QUOTED if text[at] == "'" else _STRING).match(text, at)
    if not match:
        raise InvalidJson(text, at, "a text does not end")
    plain = match.group()
    if text[at] == "'":
        plain = '"' + match.group(1).replace("\\'", "'").replace('"', '\\"') + '"'
    try:
        return Node(at, match.end(), json.loads(plain), [])
    except ValueError:
        raise InvalidJson(text, at, "a text has an escape that means nothing") from None


def _parse_container(text: str, start: int, depth: int) -> Node:
    is_object = text[start] == "{"
    closing, parts, at = "}" if is_object else "]", [], skip_blanks(text, start + 1)
    while not text.startswith(closing, at):
        part = _parse_member(text, at, depth) if is_object else _parse_value(text, at, depth + 1)
        parts.append(part)
        at = skip_blanks(text, part.end)
        if text.startswith(",", at):
            at = skip_blanks(text, at + 1)
        elif not text.startswith(closing, at):
            raise InvalidJson(text, at, f"',' or '{closing}' is missing")
    value: Any = {part.key: part.value for part in parts} if is_object else [part.value for part in parts]
    return Node(start, at + 1, value, parts)


def _parse_member(text: str, at: int, depth: int) -> Node:
    bare = _NAME.match(text, at)
    if not bare and not text.startswith(('"', "'"), at):
        raise InvalidJson(text, at, "a name is missing")
    name = Node(at, bare.end(), bare.group(), []) if bare else _parse_string(text, at)
    colon = skip_blanks(text, name.end)
    if not text.startswith(":", colon):
        raise InvalidJson(text, colon, "':' is missing")
    value = _parse_value(text, skip_blanks(text, colon + 1), depth + 1)
    return Node(at, value.end, value.value, value.parts, key=name.value, value_start=value.start)
