"""The briefing in a file that a client reads (B5): a block of ours in somebody's text, and which files hold one.

Which they are is kept in the home, so that a note that is forgotten is gone from them at once.
"""

from __future__ import annotations

import os

from holdfast.errors import Conflict, HoldfastError, Refused
from holdfast.house import Lock
from holdfast.note import Record
from holdfast.wiring import block, file

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


def render(config: Config, path: str, text: str, project: str) -> Rendered:
    """Put the text into the file's block, the rest untouched; an empty one takes the block out."""
    path = os.path.abspath(path)
    with Lock(config.home, "rendered", config.lock_seconds):
        known = _load(config.home)
        made, action = _write(path, text, known.get(path, {}))
        known.pop(path, None)
        if text:
            known[path] = {**made, "project": project}
        _save(config.home, known)
    return Rendered(path, action, project, len(text))


def anywhere(home: str) -> bool:
    """Whether any file holds a block; asked after every forgetting, so it costs next to nothing."""
    return os.path.exists(os.path.join(home, _REGISTRY))


def render_anew(config: Config, text_of: Callable[[str], str]) -> tuple[list[str], list[str]]:
    """Every block as it should be now: the files that were written, and those that could not be."""
    written, failed = [], []
    for path, kept in _load(config.home).items():
        project = str(kept.get("project", ""))
        try:
            text = text_of(project) if os.path.exists(path) else ""
            if render(config, path, text, project).action != "unchanged":
                written.append(path)
            if not text and os.path.exists(path):
                _keep(config, path, kept)  # empty for now: what is stored later may be shown there again
        except HoldfastError:
            failed.append(path)
    return written, failed


def _keep(config: Config, path: str, kept: dict[str, object]) -> None:
    with Lock(config.home, "rendered", config.lock_seconds):
        _save(config.home, {**_load(config.home), path: kept})


def _write(path: str, text: str, kept: dict[str, object]) -> tuple[dict[str, object], str]:
    """Again, if somebody else wrote to the file between reading and writing."""
    for _ in range(_TRIES):
        found = file.read(path)
        old = _decoded(found)
        new: str | None = block.put(old, text)
        if not text and not new and (kept.get("made") or found.bytes is None):
            new = None  # there was no file before ours
        content = None if new is None else new.encode()
        if content == found.bytes:
            return kept, "unchanged"
        file.check(found)
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


def _decoded(found: file.Found) -> str:
    try:
        return (found.bytes or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"{found.path} is not UTF-8 (byte {error.start})", "Name another file") from None


def _load(home: str) -> dict[str, dict[str, object]]:
    import json

    content = file.read(os.path.join(home, _REGISTRY)).bytes
    try:
        known = json.loads(content) if content else {}
    except ValueError:
        return {}
    return {path: kept for path, kept in known.items() if isinstance(kept, dict)} if isinstance(known, dict) else {}


def _save(home: str, known: dict[str, dict[str, object]]) -> None:
    import json

    found = file.read(os.path.join(home, _REGISTRY))
    file.replace(found, json.dumps(known, indent=1).encode() if known else None, private=True)
