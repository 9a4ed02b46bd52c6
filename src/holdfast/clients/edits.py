"""Changes put into the bytes of a file, and taken out of them again."""

from __future__ import annotations

import os

from holdfast.errors import Refused
from holdfast.file_edit import json_entries, markdown_block, toml_block
from holdfast.file_edit.jsonc import InvalidJson, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.clients.base import Change, Client, InstallTarget
    from holdfast.file_edit.file import FileSnapshot

_CORRECT = "Correct it and run it again; nothing was changed"
_UNTOUCHED = "Correct it and run it again, or paste what --print shows; nothing was changed"


def apply_changes(client: Client, place: InstallTarget, found: FileSnapshot, changes: list[Change], known: bool) -> bytes:
    """The file with these changes. A file that is to be all ours must not be somebody else's."""
    text, mine = _text(found), ours(client, place)
    for change in changes:
        if change.how == "file":
            strange = found.bytes is not None and text != change.value and not known and not is_within(found.path, place.memory)
            if strange:
                raise Refused(f"{found.path} is there already, and is not ours", "Move it away, and run it again")
            text = change.value
        else:
            text = _put(text, change, mine, found.path)
    if any(change.how in ("entry", "item", "default") for change in changes):
        _must_be_readable(text, found.path, client)
    return text.encode()


def remove_changes(
    client: Client, place: InstallTarget, found: FileSnapshot, changes: list[Change], before: bytes | None, known: bool
) -> bytes | None:
    """The file without these changes; None if nothing but ours was ever in it. `known` is whether an install of ours was
    there: otherwise a file that is to be all ours is only ours if it says what we would say."""
    whole = next((change for change in changes if change.how == "file"), None)
    if found.bytes is None or (whole and (known or is_within(found.path, place.memory))):
        return before
    if whole:
        return None if found.bytes == whole.value.encode() else found.bytes
    text, old = _text(found), (before or b"").decode("utf-8", "replace")
    mine = ours(client, place)
    for change in sorted(changes, key=lambda one: one.how == "default"):  # what only holds the rest together goes last
        try:
            text = _take(text, change, mine, old, place)
        except InvalidJson as error:
            raise Refused(f"{found.path} is not valid JSON: {error}", _CORRECT) from None
    made_by_us = before is None and text.strip("\ufeff \t\r\n") in ("", "{}") and text != _text(found)
    return None if made_by_us else text.encode()


def render_for_paste(client: Client, place: InstallTarget, changes: list[Change]) -> list[tuple[str, str]]:
    """The same for people who paste: each file as it would be if it held nothing else."""
    texts: dict[str, str] = {}
    for change in changes:
        if change.how == "file":
            texts[change.path] = change.value
        elif change.how != "trace":
            texts[change.path] = _put(texts.get(change.path, ""), change, ours(client, place), change.path)
    return [*texts.items(), *client.to_paste(place).items()]


def ours(client: Client, place: InstallTarget) -> Callable[[Any], bool]:
    """Tells our items from others: somewhere in them our command is run for this client, or its plugin is named."""
    mark, folder = f" hook {client.name} ", os.path.join(place.memory, "plugins", client.name)

    def look(value: Any) -> bool:
        if isinstance(value, str):
            return value == folder or ("holdfast" in value and mark in f"{value} ")
        if isinstance(value, dict):
            return any(look(one) for one in value.values())
        return isinstance(value, list) and any(look(one) for one in value)

    return look


def _must_be_readable(text: str, path: str, client: Client) -> None:
    """What we would write is read once more: a client must never be left with settings that it cannot read."""
    import json

    try:
        parse(text)
        if client.strict:
            json.loads(text.removeprefix("\ufeff"))
    except InvalidJson as error:
        raise Refused(f"{path} with our entries in it would not be valid JSON: {error}", _UNTOUCHED) from None
    except ValueError as error:
        what = f"{path} has comments or trailing commas, and {client.title} refuses all of such a file: {error}"
        raise Refused(what, "Make it plain JSON and run it again; nothing was changed") from None


def is_within(path: str, folder: str) -> bool:
    return bool(folder) and os.path.abspath(path).startswith(os.path.join(os.path.abspath(folder), ""))


def _put(text: str, change: Change, mine: Callable[[Any], bool], path: str) -> str:
    try:
        if change.how == "entry":
            return json_entries.put(text, change.keys, change.value)
        if change.how == "default":
            return json_entries.put_if_missing(text, change.keys, change.value)
        if change.how == "item":
            return json_entries.add_item(text, change.keys, change.value, mine)
        if change.how == "toml":
            return toml_block.put(text, change.value)
        return markdown_block.put(text, change.value, markdown_block.ABOUT_BEGIN, markdown_block.ABOUT_END)
    except InvalidJson as error:
        raise Refused(f"{path} is not valid JSON: {error}", _UNTOUCHED) from None
    except json_entries.WrongType as error:
        raise Refused(f"{path}: {error}", _UNTOUCHED) from None
    except ValueError as error:  # of TOML
        raise Refused(f"{path} with our lines in it would not be valid TOML: {error}", _UNTOUCHED) from None


def _take(text: str, change: Change, mine: Callable[[Any], bool], old: str, place: InstallTarget) -> str:
    if change.how == "toml":
        return toml_block.remove(text, change.value, mine)
    if change.how == "block":
        return markdown_block.remove(text, markdown_block.ABOUT_BEGIN, markdown_block.ABOUT_END)
    if change.how == "default":
        document = parse(text)
        alone = document is not None and document.value == {change.keys[-1]: change.value}
        return json_entries.remove(text, change.keys) if alone or (old and not json_entries.exists(old, change.keys)) else text
    if change.how == "trace":
        return json_entries.remove(text, change.keys) if _mentions(text, change.keys, place.memory) else text
    less = json_entries.remove_item(text, change.keys, mine) if change.how == "item" else _take_entry(text, change, old, place)
    return text if less == text else _without_holders(less, change, old)


def _without_holders(text: str, change: Change, old: str) -> str:
    """What was made to hold it goes when it is empty."""
    deepest = len(change.keys) if change.how == "item" else len(change.keys) - 1
    for length in range(deepest, 0, -1):
        keys = change.keys[:length]
        if json_entries.is_empty(text, keys):
            text = (
                json_entries.restore_empty(text, keys, old)
                if json_entries.exists(old, keys)
                else json_entries.remove(text, keys)
            )
    return text


def _take_entry(text: str, change: Change, old: str, place: InstallTarget) -> str:
    """Out it goes; an entry that stood there before us comes back as it was. One that does not bear our name is ours only as
    long as it leads to us."""
    if "holdfast" not in change.keys[-1] and not _mentions(text, change.keys, place.memory):
        return text
    if not json_entries.exists(old, change.keys):
        return json_entries.remove(text, change.keys)
    return (
        json_entries.put(text, change.keys, json_entries.get(old, change.keys))
        if json_entries.exists(text, change.keys)
        else text
    )


def _mentions(text: str, keys: tuple[str, ...], folder: str) -> bool:
    import json

    return json_entries.exists(text, keys) and json.dumps(folder)[1:-1] in json.dumps(json_entries.get(text, keys))


def _text(found: FileSnapshot) -> str:
    try:
        return (found.bytes or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"{found.path} is not UTF-8 (byte {error.start})", _UNTOUCHED) from None
