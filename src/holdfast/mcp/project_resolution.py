"""Find the caller and its project, from the client and never from the working directory alone.

In this order: the argument of the call, the setting, the metadata of the call, the client's roots, the environment variables
that the client sets, and last the working directory, if it is a repository or has a marker and is not a plugin's. If none of
them names one, there is no project: global notes work, and a call that needs a project is rejected with the fix.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
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
GATEWAY_FIX = "Pass `project` with the project's id, or use another scope"  # a folder of another machine
FOUND_BY_GATEWAY = "argument or header"  # how a gateway finds it
_NAME_CHARS = 60


class Caller(Record):
    """A caller of the server. With neither `project` nor `folder` it has no project."""

    found_by: str
    project: str | None = None
    folder: str | None = None
    session: str | None = None
    agent: str | None = None
    client: str | None = None
    allowed_scopes: tuple[str, ...] = SCOPES
    tenant: str | None = None  # of the gateway's token
    read_only: bool = False  # of the role of the gateway's token
    most_notes: int = 0  # quota of the gateway's caller; 0 for any number
    most_bytes: int = 0

    @property
    def has_no_project(self) -> bool:
        return self.project is None and self.folder is None

    @property
    def fix(self) -> str:
        """The hint for a caller without a project."""
        return GATEWAY_FIX if self.found_by == FOUND_BY_GATEWAY else FIX

    def known_client(self) -> Client | None:
        """Return the caller's client, if Holdfast knows it."""
        return known_client(self.client)


class LaunchOptions(Record):
    """The options of the command that started the server: defaults for every caller. `surroundings` is false over HTTP, where
    the client did not start the process and its environment says nothing."""

    home: str | None = None
    project: str | None = None
    session: str | None = None
    agent: str | None = None
    client: str | None = None
    surroundings: bool = True
    url: str | None = None  # of a gateway that is used instead of the home
    token: str | None = None  # of that gateway
    settings: tuple[tuple[str, Any], ...] = ()  # of the command line, which override those of the home


def client_name(started: LaunchOptions, sent_name: str | None) -> str | None:
    """Return the client's name: as it was installed, else as it calls itself, in plain characters."""
    if started.client or not sent_name:
        return started.client
    plain = "".join([char if char.isalnum() or char in "._-" else "-" for char in sent_name.lower() if char.isascii()])
    return plain.strip("-._")[:_NAME_CHARS] or None


def known_client(client: str | None) -> Client | None:
    """Return the client of that name, if Holdfast knows it."""
    try:
        return clients.load(client) if client else None
    except HoldfastError:
        return None


def pop_arguments(arguments: dict[str, Any]) -> tuple[str, str | None, str | None]:
    """Remove `project` and `folder` from the arguments and return how the project was found, the project and the folder."""
    project, folder = arguments.pop("project", None), arguments.pop("folder", None)
    if project is not None and folder is not None:
        raise UsageError("project and folder cannot be combined", "Give one of them")
    if folder is not None and (not os.path.isabs(folder) or "\0" in folder or not os.path.isdir(folder)):
        raise UsageError(f"no folder {folder[:200]!a}", "Give the absolute path of the project's directory")
    return "argument", project, folder


class Hints(NamedTuple):
    """The folder and the session that a client names; empty if it does not."""

    folder: str
    session: str


def from_call_metadata(meta: object) -> Hints:
    """Return the folder and the session that a client sends in any part of `_meta`."""
    for part in meta.values() if isinstance(meta, Mapping) else ():
        fields = _parse_part(part)
        folder, session = next(iter(_workspace_folders(fields.get("workspaces"))), ""), fields.get("session_id")
        if folder or session:
            return Hints(folder, session if isinstance(session, str) else "")
    return Hints("", "")


def from_roots(uris: Iterable[str]) -> str:
    """Return the first of the client's roots that is a folder on this machine."""
    for uri in uris:
        try:
            parts = urlsplit(uri)
        except ValueError:
            continue
        path = unquote(parts.path)
        if parts.scheme == "file" and parts.netloc in ("", "localhost") and is_folder(path):
            return path
    return ""


def from_environment(client: str | None) -> Hints:
    """Return the folder and the session that the client's environment variables name."""
    environ = config.copy_environment()
    known = known_client(client)
    folders = ("HOLDFAST_PROJECT_DIR", *(known.folder_env if known else ()))
    sessions = known.session_env if known else ()
    folder = next((environ[name] for name in folders if is_folder(environ.get(name, ""))), "")
    return Hints(folder, next((environ[name] for name in sessions if environ.get(name)), ""))


def from_working_folder() -> str:
    """Return the working directory if it is a repository or has a marker, and is not the folder of a plugin."""
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:
        return ""
    environ = config.copy_environment()
    plugins = [value for name, value in environ.items() if name.endswith("PLUGIN_ROOT") and os.path.isabs(value)]
    if any(_is_inside(here, os.path.realpath(plugin)) for plugin in plugins):
        return ""
    seen = resolve.find_candidates(here)
    return here if seen.git_folder or seen.remote or seen.marker else ""


def first_session_id(*candidates: str | None) -> str | None:
    """Return the first candidate that is a valid session id."""
    return next((one for one in candidates if one and is_name(one)), None)


def is_folder(path: object) -> bool:
    """Return whether this is the absolute path of a folder; a client may leave a variable unexpanded."""
    return isinstance(path, str) and os.path.isabs(path) and "\0" not in path and os.path.isdir(path)


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _parse_part(part: object) -> Mapping[str, Any]:
    """Return a part of `_meta` as a mapping; some clients send JSON within JSON."""
    if isinstance(part, str) and part.startswith("{"):
        try:
            part = json.loads(part)
        except ValueError:
            return {}
    return part if isinstance(part, Mapping) else {}


def _workspace_folders(workspaces: object) -> list[str]:
    """Return the folders of a client's workspaces: the keys of an object, or a list of paths or of objects with a path."""
    if isinstance(workspaces, Mapping):
        given: list[Any] = list(workspaces)
    else:
        rows = workspaces if isinstance(workspaces, list) else []
        given = [row.get("path") or row.get("root") if isinstance(row, Mapping) else row for row in rows]
    return [path for path in given if is_folder(path)]
