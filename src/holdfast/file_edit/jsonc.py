"""JSON as people keep it, with comments, trailing commas, bare names and single quotes: where each value stands in the text."""

from __future__ import annotations

from holdfast.base.lazy_re import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DEEPEST = 100
_SCALAR = pattern(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_STRING = pattern(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SINGLE = pattern(r"'((?:[^'\\\x00-\x1f]|\\.)*)'")
_NAME = pattern(r"[A-Za-z_$][\w$]*")
_TRIVIA = pattern(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*(?s:.*?)\*/)*")


class Unreadable(Exception):
    """The text is not JSON; says what is wrong, on which line and in which column."""

    def __init__(self, text: str, at: int, what: str) -> None:
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        super().__init__(f"line {line}, column {column}: {what}")


class Node:
    """A value and where it stands. Members of an object have a name and start where that does."""

    __slots__ = ("end", "key", "parts", "start", "value", "value_start")

    def __init__(self, start: int, end: int, value: Any, parts: list[Node], key: str = "", value_start: int = -1) -> None:
        self.start, self.end, self.value, self.parts, self.key = start, end, value, parts, key
        self.value_start = start if value_start < 0 else value_start

    def member(self, key: str) -> Node | None:
        """The member of that name; of several the last, which is the one that programs take."""
        return next((part for part in reversed(self.parts) if part.key == key), None) if isinstance(self.value, dict) else None


def parse(text: str) -> Node | None:
    """The document; None if there is nothing but blanks and comments in it."""
    at = trivia(text, 0)
    if at == len(text):
        return None
    node = _value(text, at, 0)
    end = trivia(text, node.end)
    if end != len(text):
        raise Unreadable(text, end, "something stands after the end")
    return node


def trivia(text: str, at: int) -> int:
    """Where the blanks and comments end that start here."""
    match = _TRIVIA.match(text, at)
    assert match
    if text.startswith("/*", match.end()):
        raise Unreadable(text, match.end(), "a comment does not end")
    return match.end()


def _value(text: str, at: int, depth: int) -> Node:
    if depth > _DEEPEST:
        raise Unreadable(text, at, "too deep")
    if text.startswith(("{", "["), at):
        return _container(text, at, depth)
    if text.startswith(('"', "'"), at):
        return _string(text, at)
    match = _SCALAR.match(text, at)
    if not match:
        raise Unreadable(text, at, f"{text[at : at + 1]!r} is no value" if at < len(text) else "it ends too soon")
    import json

    try:
        return Node(at, match.end(), json.loads(match.group()), [])
    except ValueError:
        raise Unreadable(text, at, "a number is too long") from None


def _string(text: str, at: int) -> Node:
    import json

    match = (_SINGLE if text[at] == "'" else _STRING).match(text, at)
    if not match:
        raise Unreadable(text, at, "a text does not end")
    plain = match.group()
    if text[at] == "'":
        plain = '"' + match.group(1).replace("\\'", "'").replace('"', '\\"') + '"'
    try:
        return Node(at, match.end(), json.loads(plain), [])
    except ValueError:
        raise Unreadable(text, at, "a text has an escape that means nothing") from None


def _container(text: str, start: int, depth: int) -> Node:
    is_object = text[start] == "{"
    closing, parts, at = "}" if is_object else "]", [], trivia(text, start + 1)
    while not text.startswith(closing, at):
        part = _member(text, at, depth) if is_object else _value(text, at, depth + 1)
        parts.append(part)
        at = trivia(text, part.end)
        if text.startswith(",", at):
            at = trivia(text, at + 1)
        elif not text.startswith(closing, at):
            raise Unreadable(text, at, f"',' or '{closing}' is missing")
    value: Any = {part.key: part.value for part in parts} if is_object else [part.value for part in parts]
    return Node(start, at + 1, value, parts)


def _member(text: str, at: int, depth: int) -> Node:
    bare = _NAME.match(text, at)
    if not bare and not text.startswith(('"', "'"), at):
        raise Unreadable(text, at, "a name is missing")
    name = Node(at, bare.end(), bare.group(), []) if bare else _string(text, at)
    colon = trivia(text, name.end)
    if not text.startswith(":", colon):
        raise Unreadable(text, colon, "':' is missing")
    value = _value(text, trivia(text, colon + 1), depth + 1)
    return Node(at, value.end, value.value, value.parts, name.value, value.start)
