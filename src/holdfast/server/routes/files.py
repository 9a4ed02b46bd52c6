"""Files: an agent's own tree, with the six commands of the memory tool."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from holdfast.base.invisible import find_kinds
from holdfast.server.idempotency import Replay
from holdfast.server.models import FilePath, Redact, ResponseModel, ScopedRequest, TreePath, WriteScope, choices
from holdfast.server.route import JSON, READ, WRITE, AuthorizedRequest, Route


class ViewFile(ScopedRequest, kw_only=True):
    path: TreePath
    view_range: Annotated[
        list[int], Meta(description="[first, last]; -1 is the end.", min_length=2, max_length=2)
    ] | UnsetType = UNSET  # fmt: skip
    scope: WriteScope = "project"


class CreateFile(ScopedRequest, kw_only=True):
    path: FilePath
    file_text: Annotated[str, Meta(description="The whole text.")]
    scope: WriteScope = "project"
    redact: Redact = False


class ReplaceInFile(ScopedRequest, kw_only=True):
    path: FilePath
    old_str: Annotated[str, Meta(description="The text that stands there once.")]
    new_str: Annotated[str, Meta(description="What to put in its place.")] = ""
    scope: WriteScope = "project"
    redact: Redact = False


class InsertIntoFile(ScopedRequest, kw_only=True):
    path: FilePath
    insert_line: Annotated[int, Meta(description="After this line; 0 is the start.", ge=0, le=10**9)]
    insert_text: Annotated[str, Meta(description="The text.")]
    scope: WriteScope = "project"
    redact: Redact = False


class DeleteFile(ScopedRequest, kw_only=True):
    path: FilePath
    scope: WriteScope = "project"


class RenameFile(ScopedRequest, kw_only=True):
    old_path: FilePath
    new_path: FilePath
    scope: WriteScope = "project"


class FileChanged(ResponseModel, kw_only=True):
    command: str
    path: str


class FileWritten(ResponseModel, kw_only=True):
    command: str
    path: str
    action: Annotated[Literal["created", "updated"], choices("What was done.", ("created", "updated"))]


class FileViewed(ResponseModel, kw_only=True):
    """A file's text. `hidden` is added if the text has hidden characters."""

    command: str
    path: str
    text: str


def view_file(request: AuthorizedRequest, params: ViewFile) -> dict[str, Any]:
    lines = (params.view_range[0], params.view_range[1]) if params.view_range else None
    text = request.memory.files.view(params.path, lines, scope=params.scope)
    hidden = {"hidden": list(found)} if (found := find_kinds(text)) else {}
    return {**FileViewed(command="view", path=params.path, text=text).as_dict(), **hidden}


def create_file(request: AuthorizedRequest, params: CreateFile) -> FileWritten:
    action = request.memory.files.create(params.path, params.file_text, scope=params.scope, redact=params.redact)
    return FileWritten(command="create", path=params.path, action="created" if action == "created" else "updated")


def replace_in_file(request: AuthorizedRequest, params: ReplaceInFile) -> FileChanged:
    request.memory.files.str_replace(params.path, params.old_str, params.new_str, scope=params.scope, redact=params.redact)
    return FileChanged(command="str_replace", path=params.path)


def insert_into_file(request: AuthorizedRequest, params: InsertIntoFile) -> FileChanged:
    request.memory.files.insert(params.path, params.insert_line, params.insert_text, scope=params.scope, redact=params.redact)
    return FileChanged(command="insert", path=params.path)


def delete_file(request: AuthorizedRequest, params: DeleteFile) -> FileChanged:
    request.memory.files.delete(params.path, scope=params.scope)
    return FileChanged(command="delete", path=params.path)


def rename_file(request: AuthorizedRequest, params: RenameFile) -> FileChanged:
    request.memory.files.rename(params.old_path, params.new_path, scope=params.scope)
    return FileChanged(command="rename", path=params.new_path)


def _replay(command: str, path: str = "path") -> Replay:
    """Rebuild the answer from the request: a path may say as much as a text, so the ledger does not keep it."""
    return Replay(
        lambda body: {name: body[name] for name in ("action",) if name in body},
        lambda request, params, kept: {"command": command, "path": getattr(params, path), **kept},
    )


_PATH = "/memories/plan.md"

ROUTES = (
    Route(
        "POST", "/v1/files/view", view_file,
        action=READ, scope="project", summary="a file's text, or the names in a folder",
        params=ViewFile, reads=JSON, example={"path": _PATH, "scope": "agent"}, answers=FileViewed,
        problems=("not_found",), verbs=("files.view",),
    ),
    Route(
        "POST", "/v1/files/create", create_file,
        action=WRITE, scope="project", summary="write a file, new or in the place of the old one",
        params=CreateFile, reads=JSON, example={"path": _PATH, "file_text": "Plan", "scope": "agent"},
        answers=FileWritten, replay=_replay("create"), verbs=("files.create",),
    ),
    Route(
        "POST", "/v1/files/str_replace", replace_in_file,
        action=WRITE, scope="project", summary="replace a text that stands exactly once in a file",
        params=ReplaceInFile, reads=JSON, example={"path": _PATH, "old_str": "Plan", "scope": "agent"},
        answers=FileChanged, replay=_replay("str_replace"), problems=("not_found",), verbs=("files.str_replace",),
    ),
    Route(
        "POST", "/v1/files/insert", insert_into_file,
        action=WRITE, scope="project", summary="insert text after a line",
        params=InsertIntoFile, reads=JSON, example={"path": _PATH, "insert_line": 0, "insert_text": "Plan", "scope": "agent"},
        answers=FileChanged, replay=_replay("insert"), problems=("not_found",), verbs=("files.insert",),
    ),
    Route(
        "POST", "/v1/files/delete", delete_file,
        action=WRITE, scope="project", summary="remove a file, or a folder with all in it",
        params=DeleteFile, reads=JSON, example={"path": _PATH, "scope": "agent"},
        answers=FileChanged, replay=_replay("delete"), problems=("not_found",), verbs=("files.delete",),
    ),
    Route(
        "POST", "/v1/files/rename", rename_file,
        action=WRITE, scope="project", summary="move a file or folder, never over another",
        params=RenameFile, reads=JSON,
        example={"old_path": _PATH, "new_path": "/memories/goals.md", "scope": "agent"},
        answers=FileChanged, replay=_replay("rename", "new_path"), problems=("not_found",), verbs=("files.rename",),
    ),
)  # fmt: skip
