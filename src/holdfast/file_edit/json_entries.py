"""Add and remove entries of a JSON text without touching the rest of the text."""

from __future__ import annotations

from holdfast.file_edit.jsonc import Node, parse, skip_blanks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    IsOwn = Callable[[Any], bool]


class WrongType(Exception):
    """A value is not the object or array that it must be."""


def put(text: str, keys: tuple[str, ...], value: Any) -> str:
    """Return the text with this entry; an entry with the same value keeps its form."""
    root = parse(text)
    if root is None:
        newline = _detect_style(text)[0]
        gap = newline if text.removeprefix("\ufeff") and not text.endswith("\n") else ""  # a comment must end first
        return text + gap + _render_indented(_nest_value(keys, value), "  ", newline, "") + newline
    node, missing = _find_node(root, keys)
    if not missing:
        return text if node.value == value else _replace(text, node, value)
    if not isinstance(node.value, dict):
        raise WrongType(f"{'.'.join(keys[: len(keys) - len(missing)]) or 'the document'} is no object")
    return _insert(text, node, missing[0], _nest_value(missing[1:], value))


def put_if_missing(text: str, keys: tuple[str, ...], value: Any) -> str:
    """Return the text with this entry, unless there is one already."""
    root = parse(text)
    return put(text, keys, value) if root is None or _find_node(root, keys)[1] else text


def add_item(text: str, keys: tuple[str, ...], value: Any, is_own: IsOwn) -> str:
    """Return the text with this item in an array, instead of Holdfast's previous item."""
    root = parse(text)
    array, missing = _find_node(root, keys) if root else (None, keys)
    if array is None or missing:
        return put(text, keys, [value])
    if not isinstance(array.value, list):
        raise WrongType(f"{'.'.join(keys)} is no array")
    own_item = next((part for part in array.parts if is_own(part.value)), None)
    if own_item is None:
        return _insert(text, array, None, value)
    shared = _find_own_part(own_item, is_own)
    if shared and len(shared[0].parts) > 1:  # another program added to our item: only our part of it is replaced
        own_item, value = shared[1], _extract_own_part(value, is_own)
    return text if own_item.value == value else _replace(text, own_item, value)


def remove(text: str, keys: tuple[str, ...]) -> str:
    """Return the text without this entry."""
    root = parse(text)
    if root is None or not keys:
        return text
    node, missing = _find_node(root, keys[:-1])
    member = None if missing else node.member(keys[-1])
    return text if member is None else remove(_remove_part(text, node, member), keys)


def remove_item(text: str, keys: tuple[str, ...], is_own: IsOwn) -> str:
    """Return the text without Holdfast's items in an array; of a shared item, only Holdfast's part is removed."""
    root = parse(text)
    array, missing = _find_node(root, keys) if root else (None, keys)
    if array is None or missing or not isinstance(array.value, list):
        return text
    own_item = next((part for part in array.parts if is_own(part.value)), None)
    if own_item is None:
        return text
    shared = _find_own_part(own_item, is_own)
    if shared is not None and len(shared[0].parts) > 1:
        return remove_item(_remove_part(text, *shared), keys, is_own)
    return remove_item(_remove_part(text, array, own_item), keys, is_own)


def exists(text: str, keys: tuple[str, ...]) -> bool:
    """Return whether there is an entry."""
    root = parse(text)
    return root is not None and not _find_node(root, keys)[1]


def get(text: str, keys: tuple[str, ...]) -> Any:
    """Return the value of an entry; None if there is none."""
    root = parse(text)
    node, missing = _find_node(root, keys) if root else (None, keys)
    return None if node is None or missing else node.value


def restore_empty(text: str, keys: tuple[str, ...], old: str) -> str:
    """Return the text with the blanks that an empty object or array had in the old text."""
    root, old_root = parse(text), parse(old)
    if root is None or old_root is None or not is_empty(old, keys):
        return text
    node, old_node = _find_node(root, keys)[0], _find_node(old_root, keys)[0]
    return text[: node.value_start] + old[old_node.value_start : old_node.end] + text[node.end :]


def is_empty(text: str, keys: tuple[str, ...]) -> bool:
    """Return whether the entry is an empty object or array."""
    root = parse(text)
    if root is None:
        return False
    node, missing = _find_node(root, keys)
    return not missing and node.value in ({}, [])


# --- finding -------------------------------------------------------------------------------------------------------------


def _find_node(root: Node, keys: tuple[str, ...]) -> tuple[Node, tuple[str, ...]]:
    """Return the deepest existing node on the path, and the remaining keys."""
    node = root
    for depth, key in enumerate(keys):
        member = node.member(key)
        if member is None:
            return node, keys[depth:]
        node = member
    return node, ()


def _find_own_part(item: Node, is_own: IsOwn) -> tuple[Node, Node] | None:
    """Return the array in an item that contains Holdfast's part, and that part."""
    for part in item.parts:
        if isinstance(part.value, list):
            own_part = next((inner for inner in part.parts if is_own(inner.value)), None)
            if own_part is not None:
                return part, own_part
    return None


def _extract_own_part(value: Any, is_own: IsOwn) -> Any:
    """Return the part of Holdfast's item that is in the array within it."""
    lists = [field for field in value.values() if isinstance(field, list)] if isinstance(value, dict) else []
    return next((item for items in lists for item in items if is_own(item)), value)


def _nest_value(keys: tuple[str, ...], value: Any) -> Any:
    """Return the value inside one object per key."""
    for key in reversed(keys):
        value = {key: value}
    return value


# --- text ----------------------------------------------------------------------------------------------------------------


def _insert(text: str, holder: Node, key: str | None, value: Any) -> str:
    """Return the text with a new last entry of an object or array."""
    newline, unit = _detect_style(text)
    opening = holder.value_start
    first = holder.parts[0].start if holder.parts else holder.end - 1
    spread = not holder.parts or "\n" in text[opening:first]
    outer = _find_indent(text, opening)
    inner = _find_indent(text, first) if holder.parts and spread else outer + unit
    name = "" if key is None else f"{_render_compact(key)}: "
    if not spread:
        position = holder.parts[-1].end
        return text[:position] + ", " + name + _render_compact(value) + text[position:]
    entry = name + _render_indented(value, unit, newline, inner)
    if not holder.parts:
        return _insert_first(text, holder, entry, newline=newline, inner=inner, outer=outer)
    last = holder.parts[-1].end
    comma = skip_blanks(text, last)
    after = comma + 1 if text.startswith(",", comma) else last
    line_end = _skip_line_comment(text, after)
    if after != last:
        return text[:line_end] + newline + inner + entry + "," + text[line_end:]
    return text[:last] + "," + text[last:line_end] + newline + inner + entry + text[line_end:]


def _insert_first(text: str, holder: Node, entry: str, *, newline: str, inner: str, outer: str) -> str:
    """Return the text with the first entry of an empty object or array."""
    start, end = holder.value_start + 1, holder.end - 1
    if not text[start:end].strip():
        return text[:start] + newline + inner + entry + newline + outer + text[end:]
    kept = text[start:end].rstrip(" \t")
    gap = "" if kept.endswith("\n") else newline
    return text[:start] + kept + gap + inner + entry + newline + outer + text[end:]


def _remove_part(text: str, holder: Node, part: Node) -> str:
    """Return the text without an entry, the blanks before it and one comma."""
    number = next(index for index, sibling in enumerate(holder.parts) if sibling is part)
    comma = skip_blanks(text, part.end)
    followed = text.startswith(",", comma)
    end = comma + 1 if followed else part.end
    start = len(text[: part.start].rstrip(" \t\r\n"))
    if "//" in text[text.rfind("\n", 0, start) + 1 : start] and "\n" not in text[end:][:2]:
        start = part.start  # the blanks end a comment that would otherwise include the text after it
    if number == 0:
        if len(holder.parts) > 1:
            return text[: part.start] + text[end:].lstrip(" \t\r\n")
        nothing_else = start == holder.value_start + 1 and not text[end : holder.end - 1].strip()
        return text[:start] + text[holder.end - 1 :] if nothing_else else text[:start] + text[end:]
    if followed:
        return text[:start] + text[end:]
    before = skip_blanks(text, holder.parts[number - 1].end)  # the comma between it and the previous entry
    return text[:before] + text[before + 1 : start] + text[end:]


def _replace(text: str, node: Node, value: Any) -> str:
    """Return the text with another value of a node, on one line or several as before."""
    newline, unit = _detect_style(text)
    spread = "\n" in text[node.value_start : node.end] or not isinstance(value, dict | list)
    new = _render_indented(value, unit, newline, _find_indent(text, node.start)) if spread else _render_compact(value)
    return text[: node.value_start] + new + text[node.end :]


def _skip_line_comment(text: str, position: int) -> int:
    """Return the position after a comment on the same line, or the same position."""
    line = text[position:].split("\n", 1)[0]
    rest = line.strip()
    if rest.startswith("//"):
        return position + len(line.rstrip("\r"))
    if rest.startswith("/*") and "*/" in rest:
        return position + line.index("*/") + 2
    return position


def _find_indent(text: str, position: int) -> str:
    """Return the indentation of the line at a position."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _detect_style(text: str) -> tuple[str, str]:
    """Return the line ending and the indentation of a text."""
    newline = "\r\n" if "\r\n" in text else "\n"
    for line in text.split("\n")[1:]:
        blanks = line[: len(line) - len(line.lstrip(" \t"))]
        if blanks and line.strip().startswith(('"', "{", "[", "]", "}")):
            return newline, "\t" if blanks[0] == "\t" else blanks
    return newline, "  "


def _render_indented(value: Any, unit: str, newline: str, indent: str) -> str:
    import json

    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", newline + indent)


def _render_compact(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)
