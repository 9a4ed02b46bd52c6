"""Install and uninstall: plan the changes of each file, then write all files or none.

The home keeps, under `installed/`, what each file was before. A file that is still as the install left it gets back exactly
those bytes; from a file that was changed since, only our part is removed.
"""

from __future__ import annotations

import os

from holdfast.base.record import Record
from holdfast.clients import edits
from holdfast.clients.base import Change
from holdfast.errors import HoldfastError, UsageError
from holdfast.file_edit import file
from holdfast.file_edit.file import FileSnapshot
from holdfast.home import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.clients.base import Client, InstallTarget

_FOLDER = "installed"


class Step(Record):
    """The change of one file: its content now and afterwards (None: no file)."""

    found: FileSnapshot
    new: bytes | None
    before: bytes | None = None  # what an uninstall restores
    parts: tuple[Change, ...] = ()  # our changes in it
    kept: str = ""  # where to keep a copy of one of Holdfast's files that was changed since the install
    whole: bool = False  # whether we write the file as a whole

    @property
    def path(self) -> str:
        return self.found.path

    @property
    def changes(self) -> bool:
        return self.new != self.found.bytes

    @property
    def action(self) -> str:
        action = "remove" if self.new is None else "create" if self.found.bytes is None else "change"
        return action if self.changes else "keep"

    @property
    def is_ours(self) -> bool:
        """Whether the file holds nothing of the user's: it is new, or an install wrote it."""
        return not self.kept and (self.whole or self.found.bytes is None or self.new is None)

    def as_dict(self) -> dict[str, Any]:
        return {"path": self.path, "action": self.action, "diff": diff(self), "kept": self.kept}


class InstallRecord(Record):
    """The changes that an install made to one file, so that they can be undone."""

    after: str  # the digest of what we left
    before: bytes | None
    folders: tuple[str, ...] = ()
    parts: tuple[Change, ...] = ()


def install(client: Client, target: InstallTarget, seconds: float = 30) -> list[Step]:
    """Plan and apply an install without asking; return the steps."""
    steps = plan_install(client, target, client.changes(target))
    apply(client, target, steps, seconds)
    return steps


def uninstall(client: Client, target: InstallTarget, seconds: float = 30, everywhere: bool = False) -> list[Step]:
    """Plan and apply an uninstall without asking; return the steps."""
    steps = plan_uninstall(client, target, everywhere)
    revert(client, target, steps, seconds, everywhere)
    return steps


def plan_install(client: Client, target: InstallTarget, changes: list[Change]) -> list[Step]:
    """Return the steps of an install, one per file, in the order of the changes."""
    record, steps = load_record(target, client.name), []
    for path, file_changes in _group_by_file(changes):
        snapshot, previous = file.read(path), record.get(path)
        new = edits.apply_changes(client, target, snapshot, file_changes, previous is not None)
        as_left = previous is not None and snapshot.bytes is not None and previous.after == _digest(snapshot.bytes)
        original = previous.before if previous else None
        before = (
            original
            if as_left
            else edits.remove_changes(client, target, snapshot, file_changes, before=original, installed=previous is not None)
        )
        parts = [
            *file_changes,
            *[change for change in (previous.parts if previous else ()) if not _has_same_location(change, file_changes)],
        ]
        user_modified = (
            snapshot.bytes is not None
            and new != snapshot.bytes
            and _is_user_modified(target, path, file_changes, previous, as_left)
        )
        whole_file = any(change.kind == "file" for change in file_changes)
        steps.append(
            Step(
                snapshot,
                new,
                before=before,
                parts=tuple(parts),
                kept=_unused_copy_path(path) if user_modified else "",
                whole=whole_file,
            )
        )
    return [step for step in steps if step.changes or step.path not in record]


def plan_uninstall(client: Client, target: InstallTarget, everywhere: bool = False) -> list[Step]:
    """Return the steps of an uninstall.

    If the client is installed per project, only the current project's part is removed unless `everywhere` is set; the plugin is
    removed with the last one. The gateway's skill is removed even without a gateway: an earlier install may have written it."""
    from holdfast.clients.parts import plugin_files

    target = target.replace(gateway=True)
    record, steps = load_record(target, client.name), []
    by_file = dict(_group_by_file([*client.changes(target), *client.auto_memory(target, "")], traces=True))
    if not _select_remaining(client, target, record, everywhere):
        by_file = {**dict(_group_by_file(plugin_files(client, target))), **by_file}
    for path in dict.fromkeys([*by_file, *_list_paths_to_remove(client, target, record, everywhere)]):
        snapshot, previous = file.read(path), record.get(path)
        if snapshot.bytes is None:
            continue
        if previous is not None and previous.after == _digest(snapshot.bytes):
            steps.append(Step(snapshot, previous.before))
            continue
        file_changes = by_file.get(path, [])
        file_changes += [
            change for change in (previous.parts if previous else ()) if not _has_same_location(change, file_changes)
        ]
        if previous is not None and _is_user_modified(target, path, file_changes, previous, False):
            steps.append(Step(snapshot, previous.before, kept=_unused_copy_path(path)))
        else:
            new = edits.remove_changes(
                client,
                target,
                snapshot,
                file_changes,
                before=previous.before if previous else None,
                installed=previous is not None,
            )
            steps.append(Step(snapshot, new))
    return [step for step in steps if step.changes]


def _list_paths_to_remove(
    client: Client, target: InstallTarget, record: dict[str, InstallRecord], everywhere: bool
) -> list[str]:
    """Return the paths of the record that an uninstall covers."""
    current = {change.path for change in client.changes(target)}
    return [path for path in record if everywhere or not client.per_project or path in current]


def _select_remaining(
    client: Client, target: InstallTarget, record: dict[str, InstallRecord], everywhere: bool
) -> dict[str, InstallRecord]:
    """Return the part of the record that an uninstall leaves."""
    removed = _list_paths_to_remove(client, target, record, everywhere)
    return {path: entry for path, entry in record.items() if path not in removed}


def _is_user_modified(
    target: InstallTarget, path: str, changes: list[Change], previous: InstallRecord | None, unchanged: bool
) -> bool:
    """Return whether a file that was written as a whole was changed since, so that a copy of it must be kept."""
    whole_file = any(change.kind == "file" for change in changes)
    return whole_file and previous is not None and not unchanged and not edits.is_within(path, target.memory)


def _unused_copy_path(path: str) -> str:
    """Return a path beside the file, `NAME.kept` or `NAME.kept-2` and so on, that is not in use."""
    names = (f"{path}.kept" if number == 1 else f"{path}.kept-{number}" for number in range(1, 1000))
    return next(name for name in names if not os.path.lexists(name))


def apply(client: Client, target: InstallTarget, steps: list[Step], seconds: float) -> None:
    """Write all steps or none. Everything that can be checked in advance is checked before the first file is written."""
    with Lock(target.memory, file.LOCK, seconds):
        record = load_record(target, client.name)
        for step in steps:
            file.check_writable(step.found)
        entries = {
            step.path: InstallRecord(_digest(step.new or b""), step.before, _created_folders(record, step.path), step.parts)
            for step in steps
        }
        _save_record(target, client.name, {**record, **entries})  # first, so that an interrupted install can be undone
        try:
            created = _write_files(steps)
        except BaseException:
            _save_record(target, client.name, record)
            raise
        for step in steps:
            entries[step.path] = entries[step.path].replace(
                folders=(*_created_folders(record, step.path), *created.get(step.path, ()))
            )
        _save_record(target, client.name, {**record, **entries})


def revert(client: Client, target: InstallTarget, steps: list[Step], seconds: float, everywhere: bool = False) -> None:
    """Write the steps of an uninstall, and delete the record and the folders that the install created."""
    if not steps and client.name not in list_installed(target):
        return
    with Lock(target.memory, file.LOCK, seconds):
        record = load_record(target, client.name)
        for step in steps:
            file.check_writable(step.found)
        _write_files(steps)
        remaining = _select_remaining(client, target, record, everywhere)
        created = {folder for path, entry in record.items() if path not in remaining for folder in entry.folders}
        file.remove_folders(
            [os.path.join(target.memory, "plugins"), *_plugin_folders(client, target), *sorted(created, key=len)]
        )
        if remaining:
            _save_record(target, client.name, remaining)
        else:
            _delete_record(target, client.name)


def _plugin_folders(client: Client, target: InstallTarget) -> list[str]:
    from holdfast.clients.parts import plugin_folder

    return [folder for folder, _, _ in os.walk(plugin_folder(client, target))]


def _write_files(steps: list[Step]) -> dict[str, list[str]]:
    """Write each file as a whole, and return the folders created for it; if one fails, restore those before it."""
    created: dict[str, list[str]] = {}
    done: list[Step] = []
    copies: list[Step] = []
    try:
        for step in steps:
            if step.kept and step.found.bytes is not None:
                file.create(step.kept, step.found.bytes)
                copies.append(step)
            created[step.path] = file.replace(step.found, step.new)
            done.append(step)
    except BaseException:
        for step in reversed(done):
            try:
                file.replace(step.found.replace(bytes=step.new), step.found.bytes)
                file.remove_folders(created[step.path])
            except HoldfastError:
                pass  # another program changed it in the meantime: keep that change
        for step in copies:
            file.replace(FileSnapshot(step.kept, step.kept, step.found.bytes), None)
        raise
    return created


def write_plugin(client: Client, target: InstallTarget) -> str:
    """Write the client's plugin into Holdfast's home, and return its folder; no file of the user is touched."""
    from holdfast.clients.parts import plugin_files, plugin_folder
    from holdfast.home import check_owner

    files = plugin_files(client, target)
    if not files:
        raise UsageError(f"{client.title} does not support plugins", f"Run `holdfast install {client.name}` instead")
    check_owner(target.memory, create=True)
    for change in files:
        file.replace(file.read(change.path), change.value.encode(), private=True)
    return plugin_folder(client, target)


# --- differences ---------------------------------------------------------------------------------------------------------


def diff(step: Step) -> str:
    """Return the change as a unified diff."""
    from difflib import unified_diff

    old, new = (_split_lines(content) for content in (step.found.bytes, step.new))
    names = ["/dev/null" if content is None else step.path for content in (step.found.bytes, step.new)]
    lines = unified_diff(old, new, names[0], names[1])
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _split_lines(content: bytes | None) -> list[str]:
    text = (content or b"").decode("utf-8", "replace")
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


# --- the record of what is installed -------------------------------------------------------------------------------------


def list_installed(target: InstallTarget) -> list[str]:
    """Return the names of the installed clients."""
    try:
        return sorted([name[:-5] for name in os.listdir(os.path.join(target.memory, _FOLDER)) if name.endswith(".json")])
    except OSError:
        return []


def load_record(target: InstallTarget, name: str) -> dict[str, InstallRecord]:
    """Return what the last install of a client did, by path; empty if the record cannot be read."""
    import base64
    import json

    content = file.read(_record_path(target, name)).bytes
    try:
        files = json.loads(content)["files"] if content else {}
        return {
            path: InstallRecord(
                entry["after"], None if entry["before"] is None else base64.b64decode(entry["before"]), tuple(entry["folders"]),
                tuple(Change(path, how, value, tuple(keys)) for how, keys, value in entry["parts"]),
            )
            for path, entry in files.items()
        }  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}  # our changes can be recognised without it


def _save_record(target: InstallTarget, name: str, record: dict[str, InstallRecord]) -> None:
    import base64
    import json

    files = {
        path: {
            "after": entry.after, "before": None if entry.before is None else base64.b64encode(entry.before).decode(),
            "folders": list(entry.folders),
            "parts": [[part.kind, list(part.keys), "" if part.kind == "file" else part.value] for part in entry.parts],
        }
        for path, entry in record.items()
    }  # fmt: skip
    text = json.dumps({"version": 1, "files": files}, indent=1) if files else None
    file.replace(
        file.read(_record_path(target, name)), text.encode() if text else None, private=True
    )  # the files' previous contents may hold secrets


def _delete_record(target: InstallTarget, name: str) -> None:
    file.replace(file.read(_record_path(target, name)), None)
    file.remove_folders([os.path.join(target.memory, _FOLDER)])


def _record_path(target: InstallTarget, name: str) -> str:
    return os.path.join(target.memory, _FOLDER, f"{name}.json")


def _created_folders(record: dict[str, InstallRecord], path: str) -> tuple[str, ...]:
    return record[path].folders if path in record else ()


def _group_by_file(changes: list[Change], traces: bool = False) -> list[tuple[str, list[Change]]]:
    files: dict[str, list[Change]] = {}
    for change in changes:
        if traces or change.kind != "trace":
            files.setdefault(change.path, []).append(change)
    return list(files.items())


def _has_same_location(change: Change, others: list[Change]) -> bool:
    return any((other.kind, other.keys) == (change.kind, change.keys) for other in others)


def _digest(content: bytes) -> str:
    from hashlib import blake2b

    return blake2b(content, digest_size=16).hexdigest()
