"""The briefing in a file that a client reads (B5): a block of ours in somebody's text, and which files hold one.

Which they are is kept in the home, so that a note that is forgotten is gone from them at once.
"""

from __future__ import annotations

import os

from holdfast.base.record import Record
from holdfast.errors import Conflict, Damaged, HoldfastError, Refused
from holdfast.file_edit import file, markdown_block
from holdfast.home import Lock
from holdfast.models import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.config import Config

_REGISTRY = "rendered.json"
_TRIES = 5


class Rendered(Record):
    """What became of a file: written, unchanged, or the block removed."""

    path: str
    action: str
    project: str
    chars: int = 0


def render(config: Config, path: str, text_of: Callable[[str], str], project: str) -> Rendered:
    """Put the text of a project into the file's block, the rest untouched; an empty one takes the block out. It is asked for
    while nobody else renders: what is purged meanwhile cannot come back with a text that was made before."""
    path = os.path.abspath(path)
    with Lock(config.home, file.LOCK, config.lock_seconds):
        known, text = _load(config.home), text_of(project)
        made, action = _write(path, text, known.get(path, {}))
        known.pop(path, None)
        if text:
            known[path] = {**made, "project": project}
        _save(config.home, known)
    return Rendered(path, action, project, len(text))


def anywhere(home: str) -> bool:
    """Whether any file holds a block; asked after every forgetting, so it costs next to nothing."""
    return os.path.exists(os.path.join(home, _REGISTRY))


def paths(home: str) -> list[str]:
    """The files that hold a block."""
    try:
        return list(_load(home)) if anywhere(home) else []
    except HoldfastError:
        return []


def render_anew(config: Config, text_of: Callable[[str], str]) -> tuple[list[str], list[str]]:
    """Every block as it should be now: the files that were written, and where what is gone may still stand, each with why."""
    written, failed = [], []
    try:
        known = _load(config.home)
    except HoldfastError as error:
        return [], [f"files that show a briefing: {error.message}"]
    for path, kept in known.items():
        project = str(kept.get("project", ""))
        try:
            there = os.path.exists(path)
            if not there:
                failed.append(f"{path}, which is no longer there: where it was moved or copied to, the block stays as it was")
            rendered = render(config, path, text_of if there else lambda _: "", project)
            if rendered.action != "unchanged":
                written.append(path)
            if not rendered.chars and there and os.path.exists(path):
                _keep(config, path, kept)  # empty for now: what is stored later may be shown there again
        except HoldfastError:
            failed.append(f"{path}, which cannot be written")
    return written, failed


def problems(home: str) -> list[Problem]:
    """What keeps a file from losing what is forgotten (N10), with what to do."""
    if not anywhere(home):
        return []
    try:
        known = _load(home)
    except HoldfastError as error:
        return [Problem("rendered", error.message, error.fix, os.path.join(home, _REGISTRY))]
    found = []
    for path in known:
        try:
            there = file.read(path)
            if there.bytes is not None:
                file.check_writable(there)
        except HoldfastError as error:
            found.append(Problem("rendered", f"what is forgotten may still stand in {path}: {error.message}", error.fix, path))
    return found


def _keep(config: Config, path: str, kept: dict[str, object]) -> None:
    with Lock(config.home, file.LOCK, config.lock_seconds):
        _save(config.home, {**_load(config.home), path: kept})


def _write(path: str, text: str, kept: dict[str, object]) -> tuple[dict[str, object], str]:
    """Again, if somebody else wrote to the file between reading and writing."""
    for _ in range(_TRIES):
        found = file.read(path)
        old = _decoded(found)
        new: str | None = markdown_block.put(old, text)
        if not text and not new and (kept.get("made") or found.bytes is None):
            new = None  # there was no file before ours
        content = None if new is None else new.encode()
        if content == found.bytes:
            return kept, "unchanged"
        file.check_writable(found)
        try:
            folders = file.replace(found, content)
        except Conflict:
            continue
        if content is None:
            named = kept.get("folders")
            file.remove_folders([str(one) for one in named] if isinstance(named, list) else [])
        made: dict[str, object] = {"made": True, "folders": folders} if found.bytes is None else kept
        return made, "written" if text else "removed"
    raise Conflict(f"{path} keeps being changed by somebody else", "Try again when it is quiet")


def _decoded(found: file.FileSnapshot) -> str:
    try:
        return (found.bytes or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"{found.path} is not UTF-8 (byte {error.start})", "Name another file") from None


def _load(home: str) -> dict[str, dict[str, object]]:
    import json

    found = file.read(os.path.join(home, _REGISTRY))
    try:
        known = json.loads(found.bytes) if found.bytes else {}
    except ValueError:
        known = None
    if not isinstance(known, dict) or not all(isinstance(kept, dict) for kept in known.values()):
        fix = f"mv {found.path} {found.path}.damaged, then `holdfast render` each of them again"
        raise Damaged(f"{found.path}, which says what files show a briefing, cannot be read", fix)
    return known


def _save(home: str, known: dict[str, dict[str, object]]) -> None:
    import json

    found = file.read(os.path.join(home, _REGISTRY))
    file.replace(found, json.dumps(known, indent=1).encode() if known else None, private=True)
