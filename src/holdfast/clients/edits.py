"""Apply changes to the text of a file, and remove them again."""

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

_CORRECT = "Fix the file and run it again; nothing was changed"
_UNTOUCHED = "Fix the file and run it again, or paste what --print shows; nothing was changed"


def apply_changes(
    client: Client, target: InstallTarget, snapshot: FileSnapshot, changes: list[Change], installed: bool
) -> bytes:
    """Return the file with these changes; raise Refused if another program owns a file that we would replace as a whole."""
    text, is_ours = _decode(snapshot), own_item_test(client, target)
    for change in changes:
        if change.kind == "file":
            foreign = (
                snapshot.bytes is not None
                and text != change.value
                and not installed
                and not is_within(snapshot.path, target.memory)
            )
            if foreign:
                raise Refused(f"{snapshot.path} exists already and is not Holdfast's", "Move it away and run it again")
            text = change.value
        else:
            text = _insert(text, change, is_ours, snapshot.path)
    if any(change.kind in ("entry", "item", "default") for change in changes):
        _check_readable(text, snapshot.path, client)
    return text.encode()


def remove_changes(
    client: Client,
    target: InstallTarget,
    snapshot: FileSnapshot,
    changes: list[Change],
    *,
    before: bytes | None,
    installed: bool,
) -> bytes | None:
    """Return the file without these changes; None if it never held anything else.

    `installed` says whether an install wrote the file. Otherwise a file that we would write as a whole is ours only if it has
    exactly our text."""
    whole_file = next((change for change in changes if change.kind == "file"), None)
    if snapshot.bytes is None or (whole_file and (installed or is_within(snapshot.path, target.memory))):
        return before
    if whole_file:
        return None if snapshot.bytes == whole_file.value.encode() else snapshot.bytes
    text, old_text = _decode(snapshot), (before or b"").decode("utf-8", "replace")
    is_ours = own_item_test(client, target)
    for change in sorted(
        changes, key=lambda change: change.kind == "default"
    ):  # defaults last: they are removed only when nothing else is left
        try:
            text = _remove(text, change, is_ours, old_text, target)
        except InvalidJson as error:
            raise Refused(f"{snapshot.path} is not valid JSON: {error}", _CORRECT) from None
    made_by_us = before is None and text.strip("\ufeff \t\r\n") in ("", "{}") and text != _decode(snapshot)
    return None if made_by_us else text.encode()


def render_for_paste(client: Client, target: InstallTarget, changes: list[Change]) -> list[tuple[str, str]]:
    """Return each file as it would be if it held nothing else, as pairs of path and text, for people who paste it."""
    texts: dict[str, str] = {}
    for change in changes:
        if change.kind == "file":
            texts[change.path] = change.value
        elif change.kind != "trace":
            texts[change.path] = _insert(texts.get(change.path, ""), change, own_item_test(client, target), change.path)
    return [*texts.items(), *client.to_paste(target).items()]


def own_item_test(client: Client, target: InstallTarget) -> Callable[[Any], bool]:
    """Return a test for our own items: they run our hook command for this client, or name its plugin folder."""
    hook_arguments, plugin_folder = f" hook {client.name} ", os.path.join(target.memory, "plugins", client.name)

    def is_ours(value: Any) -> bool:
        if isinstance(value, str):
            return value == plugin_folder or ("holdfast" in value and hook_arguments in f"{value} ")
        if isinstance(value, dict):
            return any(is_ours(item) for item in value.values())
        return isinstance(value, list) and any(is_ours(item) for item in value)

    return is_ours


def _check_readable(text: str, path: str, client: Client) -> None:
    """Raise Refused if the client could not read its settings after our change."""
    import json

    try:
        parse(text)
        if client.strict_json:
            json.loads(text.removeprefix("\ufeff"))
    except InvalidJson as error:
        raise Refused(f"{path} with our entries in it would not be valid JSON: {error}", _UNTOUCHED) from None
    except ValueError as error:
        problem = f"{path} has comments or trailing commas, and {client.title} rejects such a file as a whole: {error}"
        raise Refused(problem, "Remove them and run it again; nothing was changed") from None


def is_within(path: str, folder: str) -> bool:
    """Return whether a path is in a folder or below it."""
    return bool(folder) and os.path.abspath(path).startswith(os.path.join(os.path.abspath(folder), ""))


def _insert(text: str, change: Change, is_ours: Callable[[Any], bool], path: str) -> str:
    try:
        if change.kind == "entry":
            return json_entries.put(text, change.keys, change.value)
        if change.kind == "default":
            return json_entries.put_if_missing(text, change.keys, change.value)
        if change.kind == "item":
            return json_entries.add_item(text, change.keys, change.value, is_ours)
        if change.kind == "toml":
            return toml_block.put(text, change.value)
        return markdown_block.put(text, change.value, markdown_block.ABOUT_BEGIN, markdown_block.ABOUT_END)
    except InvalidJson as error:
        raise Refused(f"{path} is not valid JSON: {error}", _UNTOUCHED) from None
    except json_entries.WrongType as error:
        raise Refused(f"{path}: {error}", _UNTOUCHED) from None
    except ValueError as error:  # invalid TOML
        raise Refused(f"{path} with our lines in it would not be valid TOML: {error}", _UNTOUCHED) from None


def _remove(text: str, change: Change, is_ours: Callable[[Any], bool], old_text: str, target: InstallTarget) -> str:
    if change.kind == "toml":
        return toml_block.remove(text, change.value, is_ours)
    if change.kind == "block":
        return markdown_block.remove(text, markdown_block.ABOUT_BEGIN, markdown_block.ABOUT_END)
    if change.kind == "default":
        document = parse(text)
        only_entry = document is not None and document.value == {change.keys[-1]: change.value}
        return (
            json_entries.remove(text, change.keys)
            if only_entry or (old_text and not json_entries.exists(old_text, change.keys))
            else text
        )
    if change.kind == "trace":
        return json_entries.remove(text, change.keys) if _mentions(text, change.keys, target.memory) else text
    without = (
        json_entries.remove_item(text, change.keys, is_ours)
        if change.kind == "item"
        else _remove_entry(text, change, old_text, target)
    )
    return text if without == text else _remove_empty_parents(without, change, old_text)


def _remove_empty_parents(text: str, change: Change, old_text: str) -> str:
    """Remove the objects and arrays that the install created around a change, if they are empty now."""
    deepest = len(change.keys) if change.kind == "item" else len(change.keys) - 1
    for length in range(deepest, 0, -1):
        keys = change.keys[:length]
        if json_entries.is_empty(text, keys):
            text = (
                json_entries.restore_empty(text, keys, old_text)
                if json_entries.exists(old_text, keys)
                else json_entries.remove(text, keys)
            )
    return text


def _remove_entry(text: str, change: Change, old_text: str, target: InstallTarget) -> str:
    """Remove an entry, or restore the previous one. An entry without our name in its key is ours only if it names our home."""
    if "holdfast" not in change.keys[-1] and not _mentions(text, change.keys, target.memory):
        return text
    if not json_entries.exists(old_text, change.keys):
        return json_entries.remove(text, change.keys)
    return (
        json_entries.put(text, change.keys, json_entries.get(old_text, change.keys))
        if json_entries.exists(text, change.keys)
        else text
    )


def _mentions(text: str, keys: tuple[str, ...], folder: str) -> bool:
    import json

    return json_entries.exists(text, keys) and json.dumps(folder)[1:-1] in json.dumps(json_entries.get(text, keys))


def _decode(snapshot: FileSnapshot) -> str:
    try:
        return (snapshot.bytes or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"{snapshot.path} is not UTF-8 (byte {error.start})", _UNTOUCHED) from None
