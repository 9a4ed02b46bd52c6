"""Scaffolds: template trees for an agent's own files, copied into a scope's tree where files are missing.

Each scaffold is a folder beside this file. `.keep` marks a folder that is created empty.
"""

from __future__ import annotations

import os

from holdfast.base.record import Record
from holdfast.context import file_sources
from holdfast.errors import UsageError
from holdfast.models import Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.context.caller import Context

_TEMPLATES = os.path.dirname(os.path.abspath(__file__))
_KEEP = ".keep"


class Scaffolded(Record):
    """The files and folders that a scaffold created, and those that existed already; folders end in /."""

    name: str
    scope: Scope
    created: tuple[str, ...]
    kept: tuple[str, ...]


def list_scaffolds() -> list[str]:
    """Return the names of all scaffolds."""
    return sorted([entry.name for entry in os.scandir(_TEMPLATES) if entry.is_dir() and entry.name[0].isalpha()])


def parse_names(*lists: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the names in these lists or comma-separated strings, each once; raise UsageError for an unknown one."""
    words = [word for names in lists if names for word in (names.split(",") if isinstance(names, str) else names)]
    return tuple(dict.fromkeys([_check_name(word.strip()) for word in words if word.strip()]))


def choose_scope(context: Context, kind: str | None) -> Scope:
    """Return the scope of that kind; by default the agent's if it has a name, else the project's."""
    return context.scope(kind if kind is not None else "agent" if context.agent else "project")


def create(context: Context, name: str, scope: Scope) -> Scaffolded:
    """Create the missing files and folders of a scaffold in the scope's tree; never change one that exists."""
    tree = context.store.tree(scope.folder)
    created: dict[str, bool] = {}
    for path, template in _list_templates(os.path.join(_TEMPLATES, _check_name(name))):
        parts = tuple(path.removesuffix("/").split("/"))
        created[path] = tree.create_folder(parts) if path.endswith("/") else tree.create_file(parts, _read(template))
    new = [path for path, is_new in created.items() if is_new and not path.endswith("/")]
    ids = {path: tree.file_id(tuple(path.split("/"))) for path in new}
    file_sources.record_written(context, scope.folder, {path: file_id for path, file_id in ids.items() if file_id})
    if any(created.values()):
        context.update_index(lambda: context.sync.refresh_folder(scope.folder, "files"))
    return Scaffolded(
        name=name,
        scope=scope,
        created=tuple([path for path, is_new in created.items() if is_new]),
        kept=tuple([path for path, is_new in created.items() if not is_new]),
    )


def _check_name(name: object) -> str:
    known = list_scaffolds()
    if not isinstance(name, str) or name not in known:
        raise UsageError(f"unknown scaffold {str(name)[:60]!r}", f"Use one of: {', '.join(known)}")
    return name


def _list_templates(folder: str, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path in the tree and the template of each file; a folder that begins empty ends in / and has none."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _list_templates(entry.path, f"{prefix}{entry.name}/")
        elif entry.name == _KEEP:
            yield prefix, ""
        else:
            yield prefix + entry.name, entry.path


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
