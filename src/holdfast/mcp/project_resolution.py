"""Who calls, and for which project: found out from the client, never from our own working directory alone.

In this order: the call's own argument, the setting, what the client sends along with the call, its roots, the variables it
starts its servers with, and last the folder we were started in, if that is a repository or has a marker and is not a
plugin's. Where nothing tells, there is no project: what is global works, and what needs a project is refused with what to do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from holdfast import clients, config
from holdfast.base.ids import is_name
from holdfast.base.record import Record
from holdfast.errors import HoldfastError, UsageError
from holdfast.models import SCOPES
from holdfast.project import resolve

if TYPE_CHECKING:
    from holdfast.clients.base import Client

FIX = "Pass `folder` with the absolute path of the project's directory, or use scope global"
FIX_AFAR = "Pass `project` with the project's id, or use another scope"  # a folder means nothing to a gateway
AFAR = "argument or header"  # how a gateway finds it
_NAME_CHARS = 60


class Caller(Record):
    """Whose memory is meant. With neither `project` nor `folder` there is no project."""

    found_by: str
    project: str | None = None
    folder: str | None = None
    session: str | None = None
    agent: str | None = None
    client: str | None = None
    sees: tuple[str, ...] = SCOPES
    tenant: str | None = None  # as a gateway's token says
    read_only: bool = False  # likewise

    @property
    def is_lost(self) -> bool:
        return self.project is None and self.folder is None

    @property
    def fix(self) -> str:
        """How one that is lost says which project it means."""
        return FIX_AFAR if self.found_by == AFAR else FIX

    def program(self) -> Client | None:
        """What we know of the client, if we know it."""
        return program(self.client)


class Started(Record):
    """What the command that started us says: for every caller, unless a call says otherwise. Over HTTP the process was not
    started by the client, so its surroundings tell nothing."""

    home: str | None = None
    project: str | None = None
    session: str | None = None
    agent: str | None = None
    client: str | None = None
    surroundings: bool = True
    url: str | None = None  # of a gateway that is asked in place of the home, and
    token: str | None = None  # what lets us in there
    settings: tuple[tuple[str, Any], ...] = ()  # that the command line says, over those of the home


def client_name(started: Started, told: str | None) -> str | None:
    """The client's name: as it was installed, else as it calls itself, in plain characters."""
    if started.client or not told:
        return started.client
    plain = "".join([char if char.isalnum() or char in "._-" else "-" for char in told.lower() if char.isascii()])
    return plain.strip("-._")[:_NAME_CHARS] or None


def program(client: str | None) -> Client | None:
    """The client of that name, if it is one that we know."""
    try:
        return clients.load(client) if client else None
    except HoldfastError:
        return None


def named(arguments: dict[str, Any]) -> tuple[str, str | None, str | None]:
    """What the call itself names, taken out of its arguments: found by, project, folder."""
    project, folder = arguments.pop("project", None), arguments.pop("folder", None)
    if project is not None and folder is not None:
        raise UsageError("project and folder contradict each other", "Give one of them")
    if folder is not None and (not os.path.isabs(folder) or "\0" in folder or not os.path.isdir(folder)):
        raise UsageError(f"no folder {folder[:200]!a}", "Give the absolute path of the project's directory")
    return "argument", project, folder


def sent_along(meta: object) -> tuple[str, str]:
    """The folder and the session that a client sends with a call: in whatever part of `_meta` it has them."""
    for part in meta.values() if isinstance(meta, Mapping) else ():
        said = _opened(part)
        folder, session = next(iter(_paths(said.get("workspaces"))), ""), said.get("session_id")
        if folder or session:
            return folder, session if isinstance(session, str) else ""
    return "", ""


def of_roots(uris: Iterable[str]) -> str:
    """The first of the client's roots that is a folder here."""
    for uri in uris:
        try:
            parts = urlsplit(uri)
        except ValueError:
            continue
        path = unquote(parts.path)
        if parts.scheme == "file" and parts.netloc in ("", "localhost") and is_folder(path):
            return path
    return ""


def of_surroundings(client: str | None) -> tuple[str, str]:
    """The folder and the session that the client's variables name."""
    environ = config.environment()
    known = program(client)
    folders = ("HOLDFAST_PROJECT_DIR", *(known.folder_env if known else ()))
    sessions = known.session_env if known else ()
    folder = next((environ[name] for name in folders if is_folder(environ.get(name, ""))), "")
    return folder, next((environ[name] for name in sessions if environ.get(name)), "")


def of_working_folder() -> str:
    """The folder we were started in, if it says by itself that it is a project, and not merely where a plugin stands."""
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:
        return ""
    environ = config.environment()
    plugins = [value for name, value in environ.items() if name.endswith("PLUGIN_ROOT") and os.path.isabs(value)]
    if any(_is_in(here, os.path.realpath(plugin)) for plugin in plugins):
        return ""
    seen = resolve.find_candidates(here)
    return here if seen.place or seen.remote or seen.marker else ""


def session_id(*candidates: str | None) -> str | None:
    """The first that may name a session."""
    return next((one for one in candidates if one and is_name(one)), None)


def is_folder(path: object) -> bool:
    """Whether this is a folder's absolute path; a client may leave a variable unexpanded."""
    return isinstance(path, str) and os.path.isabs(path) and "\0" not in path and os.path.isdir(path)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _opened(part: object) -> Mapping[str, Any]:
    """A part of `_meta`; some clients send it as JSON within JSON."""
    if isinstance(part, str) and part.startswith("{"):
        try:
            part = json.loads(part)
        except ValueError:
            return {}
    return part if isinstance(part, Mapping) else {}


def _paths(workspaces: object) -> list[str]:
    """Folders by path: the keys of an object, or a list of paths or of objects that have one."""
    if isinstance(workspaces, Mapping):
        given: list[Any] = list(workspaces)
    else:
        rows = workspaces if isinstance(workspaces, list) else []
        given = [row.get("path") or row.get("root") if isinstance(row, Mapping) else row for row in rows]
    return [path for path in given if is_folder(path)]
