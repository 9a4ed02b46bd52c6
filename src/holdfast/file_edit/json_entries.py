"""Add and remove entries of a JSON text without touching the rest of the text."""

from __future__ import annotations

from holdfast.file_edit.jsonc import Node, parse, skip_blanks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Ours = Callable[[Any], bool]


class WrongType(Exception):
    """A value is not the object or array that it must be."""


def put(text: str, keys: tuple[str, ...], value: Any) -> str:
    """Return the text with this entry; an entry with the same value keeps its form."""
    root = parse(text)
    if root is None:
        newline = _style(text)[0]
        gap = newline if text.removeprefix("\ufeff") and not text.endswith("\n") else ""  # a comment must end first
        return text + gap + _rendered(_nest(keys, value), "  ", newline, "") + newline
    holder, left = _descend(root, keys)
    if not left:
        return text if holder.value == value else _replaced(text, holder, value)
    if not isinstance(holder.value, dict):
        raise WrongType(f"{'.'.join(keys[: len(keys) - len(left)]) or 'the document'} is no object")
    return _inserted(text, holder, left[0], _nest(left[1:], value))


def put_if_missing(text: str, keys: tuple[str, ...], value: Any) -> str:
    """Return the text with this entry, unless there is one already."""
    root = parse(text)
    return put(text, keys, value) if root is None or _descend(root, keys)[1] else text


def add_item(text: str, keys: tuple[str, ...], value: Any, is_own: Ours) -> str:
    """Return the text with this item in an array, instead of Holdfast's previous item."""
    root = parse(text)
    array, left = _descend(root, keys) if root else (None, keys)
    if array is None or left:
        return put(text, keys, [value])
    if not isinstance(array.value, list):
        raise WrongType(f"{'.'.join(keys)} is no array")
    mine = next((part for part in array.parts if is_own(part.value)), None)
    if mine is None:
        return _inserted(text, array, None, value)
    inner = _inner(mine, is_own)
    if inner and len(inner[0].parts) > 1:  # somebody put more into our group: only our part of it is renewed
        mine, value = inner[1], _inside(value, is_own)
    return text if mine.value == value else _replaced(text, mine, value)


def remove(text: str, keys: tuple[str, ...]) -> str:
    """Return the text without this entry."""
    root = parse(text)
    if root is None or not keys:
        return text
    holder, left = _descend(root, keys[:-1])
    member = None if left else holder.member(keys[-1])
    return text if member is None else remove(_without(text, holder, member), keys)


def remove_item(text: str, keys: tuple[str, ...], is_own: Ours) -> str:
    """Return the text without Holdfast's items in an array; of a shared item, only Holdfast's part is removed."""
    root = parse(text)
    array, left = _descend(root, keys) if root else (None, keys)
    if array is None or left or not isinstance(array.value, list):
        return text
    mine = next((part for part in array.parts if is_own(part.value)), None)
    if mine is None:
        return text
    inner = _inner(mine, is_own)
    if inner is not None and len(inner[0].parts) > 1:
        return remove_item(_without(text, *inner), keys, is_own)
    return remove_item(_without(text, array, mine), keys, is_own)


def exists(text: str, keys: tuple[str, ...]) -> bool:
    """Return whether there is an entry."""
    root = parse(text)
    return root is not None and not _descend(root, keys)[1]


def get(text: str, keys: tuple[str, ...]) -> Any:
    """Return the value of an entry; None if there is none."""
    root = parse(text)
    node, left = _descend(root, keys) if root else (None, keys)
    return None if node is None or left else node.value


def restore_empty(text: str, keys: tuple[str, ...], old: str) -> str:
    """Return the text with the blanks that an empty object or array had in the old text."""
    root, before = parse(text), parse(old)
    if root is None or before is None or not is_empty(old, keys):
        return text
    node, was = _descend(root, keys)[0], _descend(before, keys)[0]
    return text[: node.value_start] + old[was.value_start : was.end] + text[node.end :]


def is_empty(text: str, keys: tuple[str, ...]) -> bool:
    """Return whether the entry is an empty object or array."""
    root = parse(text)
    if root is None:
        return False
    node, left = _descend(root, keys)
    return not left and node.value in ({}, [])


# --- finding -------------------------------------------------------------------------------------------------------------


def _descend(root: Node, keys: tuple[str, ...]) -> tuple[Node, tuple[str, ...]]:
    """Return the deepest existing node on the path, and the remaining keys."""
    node = root
    for number, key in enumerate(keys):
        below = node.member(key)
        if below is None:
            return node, keys[number:]
        node = below
    return node, ()


def _inner(item: Node, ours: Ours) -> tuple[Node, Node] | None:
    """Return the array in an item that contains Holdfast's part, and that part."""
    for part in item.parts:
        if isinstance(part.value, list):
            mine = next((one for one in part.parts if ours(one.value)), None)
            if mine is not None:
                return part, mine
    return None


def _inside(value: Any, ours: Ours) -> Any:
    """Return the part of Holdfast's item that is in the array within it."""
    lists = [one for one in value.values() if isinstance(one, list)] if isinstance(value, dict) else []
    return next((one for items in lists for one in items if ours(one)), value)


def _nest(keys: tuple[str, ...], value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


# --- text ----------------------------------------------------------------------------------------------------------------


def _inserted(text: str, holder: Node, key: str | None, value: Any) -> str:
    """Return the text with a new last entry of an object or array."""
    newline, unit = _style(text)
    opening = holder.value_start
    first = holder.parts[0].start if holder.parts else holder.end - 1
    spread = not holder.parts or "\n" in text[opening:first]
    outer = _indent(text, opening)
    inner = _indent(text, first) if holder.parts and spread else outer + unit
    name = "" if key is None else f"{_string(key)}: "
    if not spread:
        at = holder.parts[-1].end
        return text[:at] + ", " + name + _compact(value) + text[at:]
    entry = name + _rendered(value, unit, newline, inner)
    if not holder.parts:
        return _first(text, holder, entry, newline, inner, outer)
    last = holder.parts[-1].end
    comma = skip_blanks(text, last)
    after = comma + 1 if text.startswith(",", comma) else last
    place = _line_end(text, after)
    if after != last:
        return text[:place] + newline + inner + entry + "," + text[place:]
    return text[:last] + "," + text[last:place] + newline + inner + entry + text[place:]


def _first(text: str, holder: Node, entry: str, newline: str, inner: str, outer: str) -> str:
    """Return the text with the first entry of an empty object or array."""
    start, end = holder.value_start + 1, holder.end - 1
    if not text[start:end].strip():
        return text[:start] + newline + inner + entry + newline + outer + text[end:]
    kept = text[start:end].rstrip(" \t")
    gap = "" if kept.endswith("\n") else newline
    return text[:start] + kept + gap + inner + entry + newline + outer + text[end:]


def _without(text: str, holder: Node, part: Node) -> str:
    """Return the text without an entry, the blanks before it and one comma."""
    number = next(index for index, one in enumerate(holder.parts) if one is part)
    comma = skip_blanks(text, part.end)
    followed = text.startswith(",", comma)
    end = comma + 1 if followed else part.end
    start = len(text[: part.start].rstrip(" \t\r\n"))
    if "//" in text[text.rfind("\n", 0, start) + 1 : start] and "\n" not in text[end:][:2]:
        start = part.start  # the blanks end a comment that would swallow what follows
    if number == 0:
        if len(holder.parts) > 1:
            return text[: part.start] + text[end:].lstrip(" \t\r\n")
        nothing_else = start == holder.value_start + 1 and not text[end : holder.end - 1].strip()
        return text[:start] + text[holder.end - 1 :] if nothing_else else text[:start] + text[end:]
    if followed:
        return text[:start] + text[end:]
    before = skip_blanks(text, holder.parts[number - 1].end)  # the comma that was put for this entry
    return text[:before] + text[before + 1 : start] + text[end:]


def _replaced(text: str, node: Node, value: Any) -> str:
    newline, unit = _style(text)
    spread = "\n" in text[node.value_start : node.end] or not isinstance(value, dict | list)
    new = _rendered(value, unit, newline, _indent(text, node.start)) if spread else _compact(value)
    return text[: node.value_start] + new + text[node.end :]


def _line_end(text: str, at: int) -> int:
    """Return the position after a comment on the same line, or the same position."""
    line = text[at:].split("\n", 1)[0]
    rest = line.strip()
    if rest.startswith("//"):
        return at + len(line.rstrip("\r"))
    if rest.startswith("/*") and "*/" in rest:
        return at + line.index("*/") + 2
    return at


def _indent(text: str, at: int) -> str:
    """Return the indentation of the line at a position."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _style(text: str) -> tuple[str, str]:
    """Return the line ending and the indentation of a text."""
    newline = "\r\n" if "\r\n" in text else "\n"
    for line in text.split("\n")[1:]:
        blanks = line[: len(line) - len(line.lstrip(" \t"))]
        if blanks and line.strip().startswith(('"', "{", "[", "]", "}")):
            return newline, "\t" if blanks[0] == "\t" else blanks
    return newline, "  "


def _rendered(value: Any, unit: str, newline: str, indent: str) -> str:
    import json

    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", newline + indent)


def _compact(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)


def _string(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False)
