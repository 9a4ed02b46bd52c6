"""Template trees for an agent's own files: real markdown, put into a scope's tree where it is missing and nowhere else (F6).

A tree here is a folder beside this file: to add one, add its folder. `.keep` stands for a folder that begins empty.
"""

from __future__ import annotations

import os

from holdfast.base.record import Record
from holdfast.errors import UsageError
from holdfast.models import Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.context.caller import Context

_HERE = os.path.dirname(os.path.abspath(__file__))
_KEEP = ".keep"


class Scaffolded(Record):
    """What a scaffold made, and what was there already and stays as it is; folders end in /."""

    name: str
    scope: Scope
    created: tuple[str, ...]
    kept: tuple[str, ...]


def names() -> list[str]:
    """Every scaffold we know."""
    return sorted([entry.name for entry in os.scandir(_HERE) if entry.is_dir() and entry.name[0].isalpha()])


def declared(*lists: str | Iterable[str] | None) -> tuple[str, ...]:
    """The scaffolds that a client or an agent declares, as lists or comma texts, each once; an unknown one is an error."""
    words = [word for one in lists if one for word in (one.split(",") if isinstance(one, str) else one)]
    return tuple(dict.fromkeys([_known(word.strip()) for word in words if word.strip()]))


def place_of(context: Context, kind: str | None) -> Scope:
    """Whose tree it is: the one that was named, else the agent's if it has a name, else the project's."""
    return context.scope(kind if kind is not None else "agent" if context.agent else "project")


def make(context: Context, name: str, place: Scope) -> Scaffolded:
    """Put what is missing into the scope's tree. What stands there stays, whoever put it there and however late."""
    tree = context.store.tree(place.folder)
    made: dict[str, bool] = {}
    for path, file in _templates(os.path.join(_HERE, _known(name))):
        parts = tuple(path.removesuffix("/").split("/"))
        made[path] = tree.plant_folder(parts) if path.endswith("/") else tree.plant(parts, _read(file))
    if any(made.values()):
        context.update_index(lambda: context.sync.refresh_folder(place.folder, "files"))
    created = tuple([path for path, new in made.items() if new])
    return Scaffolded(name, place, created, tuple([path for path, new in made.items() if not new]))


def _known(name: object) -> str:
    known = names()
    if not isinstance(name, str) or name not in known:
        raise UsageError(f"there is no scaffold {str(name)[:60]!r}", f"One of: {', '.join(known)}")
    return name


def _templates(folder: str, prefix: str = "") -> Iterator[tuple[str, str]]:
    """The path in the tree and the template of each file; a folder that begins empty ends in / and has none."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _templates(entry.path, f"{prefix}{entry.name}/")
        elif entry.name == _KEEP:
            yield prefix, ""
        else:
            yield prefix + entry.name, entry.path


def _read(file: str) -> bytes:
    with open(file, "rb") as template:
        return template.read()
