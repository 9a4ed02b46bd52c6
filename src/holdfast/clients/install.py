"""Installing and uninstalling: what would change, then all of it or nothing, then the way back.

What each file was before is kept in the home, under `installed/`. A file that is still as we left it gets back its very
bytes; from one that was changed since, only our part is taken out.
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
    """One file, as it is and as it would be; None where there is none."""

    found: FileSnapshot
    new: bytes | None
    before: bytes | None = None  # what an uninstall puts back
    parts: tuple[Change, ...] = ()  # what of it is ours
    kept: str = ""  # where a file of ours goes that somebody changed: it is theirs by now
    whole: bool = False  # whether the whole file was written by us, before and after

    @property
    def path(self) -> str:
        return self.found.path

    @property
    def changes(self) -> bool:
        return self.new != self.found.bytes

    @property
    def action(self) -> str:
        what = "remove" if self.new is None else "create" if self.found.bytes is None else "change"
        return what if self.changes else "keep"

    @property
    def is_ours(self) -> bool:
        """Whether the file holds nothing of the user's: it is new, or is one that an install wrote."""
        return not self.kept and (self.whole or self.found.bytes is None or self.new is None)

    def as_dict(self) -> dict[str, Any]:
        return {"path": self.path, "action": self.action, "diff": diff(self), "kept": self.kept}


class InstallRecord(Record):
    """What an install left behind, for the way back."""

    after: str  # the digest of what we left
    before: bytes | None
    folders: tuple[str, ...] = ()
    parts: tuple[Change, ...] = ()


def install(client: Client, place: InstallTarget, seconds: float = 30) -> list[Step]:
    """All of it at once, for whoever asks nobody."""
    steps = plan_install(client, place, client.changes(place))
    apply(client, place, steps, seconds)
    return steps


def uninstall(client: Client, place: InstallTarget, seconds: float = 30, everywhere: bool = False) -> list[Step]:
    """The way back at once."""
    steps = plan_uninstall(client, place, everywhere)
    revert(client, place, steps, seconds, everywhere)
    return steps


def plan_install(client: Client, place: InstallTarget, changes: list[Change]) -> list[Step]:
    """What an install would do, each file once, in the order of the changes."""
    record, steps = load_record(place, client.name), []
    for path, mine in _by_file(changes):
        found, kept = file.read(path), record.get(path)
        new = edits.apply_changes(client, place, found, mine, kept is not None)
        as_left = kept is not None and found.bytes is not None and kept.after == _digest(found.bytes)
        old = kept.before if kept else None
        before = old if as_left else edits.remove_changes(client, place, found, mine, old, kept is not None)
        parts = [*mine, *[one for one in (kept.parts if kept else ()) if not _same_place(one, mine)]]
        theirs = found.bytes is not None and new != found.bytes and _made_theirs(place, path, mine, kept, as_left)
        whole = any(one.how == "file" for one in mine)
        steps.append(Step(found, new, before, tuple(parts), _aside(path) if theirs else "", whole))
    return [step for step in steps if step.changes or step.path not in record]


def plan_uninstall(client: Client, place: InstallTarget, everywhere: bool = False) -> list[Step]:
    """What an uninstall would do. Of a client that is told in every project's own folder, only this project's part goes,
    unless `everywhere` is meant; the plugin that was made for it goes with the last. The gateway's skill goes whether there is
    a gateway or not: an earlier install may have written it."""
    from holdfast.clients.parts import plugin_files

    place = place.replace(gateway=True)
    record, steps = load_record(place, client.name), []
    by_file = dict(_by_file([*client.changes(place), *client.auto_memory(place, "")], traces=True))
    if not _staying(client, place, record, everywhere):
        by_file = {**dict(_by_file(plugin_files(client, place))), **by_file}
    for path in dict.fromkeys([*by_file, *_leaving(client, place, record, everywhere)]):
        found, kept = file.read(path), record.get(path)
        if found.bytes is None:
            continue
        if kept is not None and kept.after == _digest(found.bytes):
            steps.append(Step(found, kept.before))
            continue
        mine = by_file.get(path, [])
        mine += [one for one in (kept.parts if kept else ()) if not _same_place(one, mine)]
        if kept is not None and _made_theirs(place, path, mine, kept, False):
            steps.append(Step(found, kept.before, kept=_aside(path)))
        else:
            new = edits.remove_changes(client, place, found, mine, kept.before if kept else None, kept is not None)
            steps.append(Step(found, new))
    return [step for step in steps if step.changes]


def _leaving(client: Client, place: InstallTarget, record: dict[str, InstallRecord], everywhere: bool) -> list[str]:
    """The files that an install changed, as far as an uninstall means them."""
    here = {change.path for change in client.changes(place)}
    return [path for path in record if everywhere or not client.per_project or path in here]


def _staying(
    client: Client, place: InstallTarget, record: dict[str, InstallRecord], everywhere: bool
) -> dict[str, InstallRecord]:
    leaving = _leaving(client, place, record, everywhere)
    return {path: kept for path, kept in record.items() if path not in leaving}


def _made_theirs(place: InstallTarget, path: str, mine: list[Change], kept: InstallRecord | None, as_left: bool) -> bool:
    """Whether somebody changed a file that was all ours: it is theirs by now, and a copy of it stays."""
    whole = any(one.how == "file" for one in mine)
    return whole and kept is not None and not as_left and not edits.is_within(path, place.memory)


def _aside(path: str) -> str:
    """A name beside it that nobody uses yet."""
    names = (f"{path}.kept" if number == 1 else f"{path}.kept-{number}" for number in range(1, 1000))
    return next(name for name in names if not os.path.lexists(name))


def apply(client: Client, place: InstallTarget, steps: list[Step], seconds: float) -> None:
    """All of it, or nothing: what can be known to fail is found before the first file is written."""
    with Lock(place.memory, file.LOCK, seconds):
        record = load_record(place, client.name)
        for step in steps:
            file.check_writable(step.found)
        noted = {
            one.path: InstallRecord(_digest(one.new or b""), one.before, _made(record, one.path), one.parts) for one in steps
        }
        _save(place, client.name, {**record, **noted})  # first: whatever happens, the way back is known
        try:
            made = _write(steps)
        except BaseException:
            _save(place, client.name, record)
            raise
        for step in steps:
            noted[step.path] = noted[step.path].replace(folders=(*_made(record, step.path), *made.get(step.path, ())))
        _save(place, client.name, {**record, **noted})


def revert(client: Client, place: InstallTarget, steps: list[Step], seconds: float, everywhere: bool = False) -> None:
    """The way back."""
    if not steps and client.name not in list_installed(place):
        return
    with Lock(place.memory, file.LOCK, seconds):
        record = load_record(place, client.name)
        for step in steps:
            file.check_writable(step.found)
        _write(steps)
        staying = _staying(client, place, record, everywhere)
        made = {folder for path, kept in record.items() if path not in staying for folder in kept.folders}
        file.remove_folders([os.path.join(place.memory, "plugins"), *_plugin_folders(client, place), *sorted(made, key=len)])
        if staying:
            _save(place, client.name, staying)
        else:
            _forget(place, client.name)


def _plugin_folders(client: Client, place: InstallTarget) -> list[str]:
    from holdfast.clients.parts import plugin_folder

    return [folder for folder, _, _ in os.walk(plugin_folder(client, place))]


def _write(steps: list[Step]) -> dict[str, list[str]]:
    """Each file whole; if one fails, those before it are put back."""
    made: dict[str, list[str]] = {}
    done: list[Step] = []
    copies: list[Step] = []
    try:
        for step in steps:
            if step.kept and step.found.bytes is not None:
                file.create(step.kept, step.found.bytes)
                copies.append(step)
            made[step.path] = file.replace(step.found, step.new)
            done.append(step)
    except BaseException:
        for step in reversed(done):
            try:
                file.replace(step.found.replace(bytes=step.new), step.found.bytes)
                file.remove_folders(made[step.path])
            except HoldfastError:
                pass  # somebody else has changed it since: theirs is the last word
        for step in copies:
            file.replace(FileSnapshot(step.kept, step.kept, step.found.bytes), None)
        raise
    return made


def write_plugin(client: Client, place: InstallTarget) -> str:
    """The plugin in our own home, as it should be now: nothing of the user's is touched."""
    from holdfast.clients.parts import plugin_files, plugin_folder
    from holdfast.home import check_owner

    files = plugin_files(client, place)
    if not files:
        raise UsageError(f"{client.title} has no plugins", f"`holdfast install {client.name}` installs for it")
    check_owner(place.memory, create=True)
    for change in files:
        file.replace(file.read(change.path), change.value.encode(), private=True)
    return plugin_folder(client, place)


# --- what is shown -------------------------------------------------------------------------------------------------------


def diff(step: Step) -> str:
    """The change as people read changes."""
    from difflib import unified_diff

    old, new = (_shown(one) for one in (step.found.bytes, step.new))
    names = ["/dev/null" if one is None else step.path for one in (step.found.bytes, step.new)]
    lines = unified_diff(old, new, names[0], names[1])
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _shown(content: bytes | None) -> list[str]:
    text = (content or b"").decode("utf-8", "replace")
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


# --- what is kept --------------------------------------------------------------------------------------------------------


def list_installed(place: InstallTarget) -> list[str]:
    """The clients that an install has been done for."""
    try:
        return sorted([name[:-5] for name in os.listdir(os.path.join(place.memory, _FOLDER)) if name.endswith(".json")])
    except OSError:
        return []


def load_record(place: InstallTarget, name: str) -> dict[str, InstallRecord]:
    """What the last install of a client left behind, by path."""
    import base64
    import json

    content = file.read(_record(place, name)).bytes
    try:
        files = json.loads(content)["files"] if content else {}
        return {
            path: InstallRecord(
                one["after"], None if one["before"] is None else base64.b64decode(one["before"]), tuple(one["folders"]),
                tuple(Change(path, how, value, tuple(keys)) for how, keys, value in one["parts"]),
            )
            for path, one in files.items()
        }  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}  # unreadable: what is ours can still be told apart


def _save(place: InstallTarget, name: str, record: dict[str, InstallRecord]) -> None:
    import base64
    import json

    files = {
        path: {
            "after": one.after, "before": None if one.before is None else base64.b64encode(one.before).decode(),
            "folders": list(one.folders),
            "parts": [[part.how, list(part.keys), "" if part.how == "file" else part.value] for part in one.parts],
        }
        for path, one in record.items()
    }  # fmt: skip
    text = json.dumps({"version": 1, "files": files}, indent=1) if files else None
    file.replace(file.read(_record(place, name)), text.encode() if text else None, private=True)  # it may hold secrets


def _forget(place: InstallTarget, name: str) -> None:
    file.replace(file.read(_record(place, name)), None)
    file.remove_folders([os.path.join(place.memory, _FOLDER)])


def _record(place: InstallTarget, name: str) -> str:
    return os.path.join(place.memory, _FOLDER, f"{name}.json")


def _made(record: dict[str, InstallRecord], path: str) -> tuple[str, ...]:
    return record[path].folders if path in record else ()


def _by_file(changes: list[Change], traces: bool = False) -> list[tuple[str, list[Change]]]:
    files: dict[str, list[Change]] = {}
    for change in changes:
        if traces or change.how != "trace":
            files.setdefault(change.path, []).append(change)
    return list(files.items())


def _same_place(change: Change, others: list[Change]) -> bool:
    return any((one.how, one.keys) == (change.how, change.keys) for one in others)


def _digest(content: bytes) -> str:
    from hashlib import blake2b

    return blake2b(content, digest_size=16).hexdigest()
