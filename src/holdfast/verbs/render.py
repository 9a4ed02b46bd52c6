"""Render a project's briefing into a file that a client reads: a marked block of Holdfast, the rest of the file untouched.

The home keeps a registry of the files that hold a block, so that a forgotten note disappears from them at once.
"""

from __future__ import annotations

import os

from holdfast.base.record import Record
from holdfast.errors import Conflict, Damaged, HoldfastError, Refused
from holdfast.file_edit import file, markdown_block
from holdfast.home import Lock
from holdfast.models import SCOPES, Problem, Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.config import Config
    from holdfast.context.caller import Context

    Registered = dict[str, object]  # the entry of a file in the registry: its project, and what we created for it

_REGISTRY = "rendered.json"
_ATTEMPTS = 5


class Rendered(Record):
    """The result for one file: written, unchanged, or removed (the block was taken out)."""

    path: str
    action: str
    project: str
    chars: int = 0


def render(context: Context, path: str, *, remove: bool = False) -> Rendered:
    """Write the briefing of the caller's project into the file's block; take the block out if it is empty or to `remove`."""
    return _render(context, os.path.abspath(path), context.project_ids()[0], remove=remove)


def _render(context: Context, path: str, project: str, *, remove: bool) -> Rendered:
    """Compose the text under the lock: a note purged in the meantime cannot come back with a text composed before."""
    config = context.config
    with Lock(config.home, file.LOCK, config.lock_seconds):
        registry = _load_registry(config.home)
        text = "" if remove else _briefing_of_project(context, project)
        entry, action = _write_block(path, text, registry.get(path, {}))
        registry.pop(path, None)
        if text:
            registry[path] = {**entry, "project": project}
        _save_registry(config.home, registry)
    return Rendered(path, action, project, len(text))


def _briefing_of_project(context: Context, project: str) -> str:
    """Return the briefing that everybody in a project may read: nothing of one session or one agent."""
    from holdfast.context.caller import Context
    from holdfast.verbs.brief import select

    config = context.config.replace(project=None, session=None, agent=None, allowed_scopes=SCOPES)
    reader = Context(
        config, project=project, session=None, agent=None, client=config.client, origin="agent", cwd=None, progress=Progress()
    )
    try:
        return select.brief(reader, remember=False).text
    finally:
        reader.close()


def has_rendered_files(home: str) -> bool:
    """Return whether any file holds a block; called after every forget, so it only checks for the registry."""
    return os.path.exists(os.path.join(home, _REGISTRY))


def list_rendered_files(home: str) -> list[str]:
    """Return the paths of the files that hold a block; none if the registry cannot be read."""
    try:
        return list(_load_registry(home)) if has_rendered_files(home) else []
    except HoldfastError:
        return []


def render_all(context: Context) -> tuple[list[str], list[str]]:
    """Render every registered file again; return the changed paths, and those where forgotten text may remain, with why."""
    config = context.config
    if not has_rendered_files(config.home):
        return [], []
    written, failed = [], []
    try:
        registry = _load_registry(config.home)
    except HoldfastError as error:
        return [], [f"files that show a briefing: {error.message}"]
    for path, entry in registry.items():
        project = str(entry.get("project", ""))
        try:
            exists = os.path.exists(path)
            if not exists:
                failed.append(f"{path}, which was moved or deleted; copies of it keep the old block")
            rendered = _render(context, path, project, remove=not exists)
            if rendered.action != "unchanged":
                written.append(path)
            if not rendered.chars and exists and os.path.exists(path):
                _register(config, path, entry)  # empty for now: a note stored later may be shown there again
        except HoldfastError:
            failed.append(f"{path}, which cannot be written to")
    return written, failed


def problems(home: str) -> list[Problem]:
    """Return the rendered files that could keep a forgotten note, each with what to do."""
    if not has_rendered_files(home):
        return []
    try:
        registry = _load_registry(home)
    except HoldfastError as error:
        return [Problem("rendered", error.message, error.fix, os.path.join(home, _REGISTRY))]
    found = []
    for path in registry:
        try:
            content = file.read(path)
            if content.bytes is not None:
                file.check_writable(content)
        except HoldfastError as error:
            found.append(Problem("rendered", f"forgotten text may remain in {path}: {error.message}", error.fix, path))
    return found


def _write_block(path: str, text: str, entry: Registered) -> tuple[Registered, str]:
    """Write the block, retrying when another program changed the file in between; the registry entry and the action."""
    for _ in range(_ATTEMPTS):
        found = file.read(path)
        new: str | None = markdown_block.put(_decode(found), text)
        if not text and not new and (entry.get("made") or found.bytes is None):
            new = None  # the file was empty before our block: delete it
        content = None if new is None else new.encode()
        if content == found.bytes:
            return entry, "unchanged"
        file.check_writable(found)
        try:
            folders = file.replace(found, content)
        except Conflict:
            continue
        if content is None:
            created = entry.get("folders")
            file.remove_folders([str(folder) for folder in created] if isinstance(created, list) else [])
        kept: Registered = {"made": True, "folders": folders} if found.bytes is None else entry
        return kept, "written" if text else "removed"
    raise Conflict(f"another program keeps changing {path}", "Try again later")


def _decode(found: file.FileSnapshot) -> str:
    try:
        return (found.bytes or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"{found.path} is not UTF-8 (byte {error.start})", "Choose another file") from None


# --- the registry of rendered files -----------------------------------------------------------------------------------


def _register(config: Config, path: str, entry: Registered) -> None:
    with Lock(config.home, file.LOCK, config.lock_seconds):
        _save_registry(config.home, {**_load_registry(config.home), path: entry})


def _load_registry(home: str) -> dict[str, Registered]:
    import json

    found = file.read(os.path.join(home, _REGISTRY))
    try:
        registry = json.loads(found.bytes) if found.bytes else {}
    except ValueError:
        registry = None
    if not isinstance(registry, dict) or not all(isinstance(entry, dict) for entry in registry.values()):
        fix = f"mv {found.path} {found.path}.damaged, then run `holdfast render` again for each file"
        raise Damaged(f"{found.path} (the list of files with a briefing) cannot be read", fix)
    return registry


def _save_registry(home: str, registry: dict[str, Registered]) -> None:
    import json

    found = file.read(os.path.join(home, _REGISTRY))
    file.replace(found, json.dumps(registry, indent=1).encode() if registry else None, private=True)
