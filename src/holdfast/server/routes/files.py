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
        list[int], Meta(description="[first, last] line; -1 means the last line of the file.", min_length=2, max_length=2)
    ] | UnsetType = UNSET  # fmt: skip
    scope: WriteScope = "project"


class CreateFile(ScopedRequest, kw_only=True):
    path: FilePath
    file_text: Annotated[str, Meta(description="The complete text of the file.")]
    scope: WriteScope = "project"
    redact: Redact = False


class ReplaceInFile(ScopedRequest, kw_only=True):
    path: FilePath
    old_str: Annotated[str, Meta(description="The text to replace. It must occur exactly once.")]
    new_str: Annotated[str, Meta(description="The replacement.")] = ""
    scope: WriteScope = "project"
    redact: Redact = False


class InsertIntoFile(ScopedRequest, kw_only=True):
    path: FilePath
    insert_line: Annotated[int, Meta(description="Insert after this line; 0 means the start of the file.", ge=0, le=10**9)]
    insert_text: Annotated[str, Meta(description="The text to insert.")]
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
    action: Annotated[Literal["created", "updated"], choices("Whether the file is new.", ("created", "updated"))]


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
        action=READ, scope="project", summary="return the text of a file, or the names in a folder",
        params=ViewFile, reads=JSON, example={"path": _PATH, "scope": "agent"}, answers=FileViewed,
        problems=("not_found",), verbs=("files.view",),
    ),
    Route(
        "POST", "/v1/files/create", create_file,
        action=WRITE, scope="project", summary="create a file, or replace it",
        params=CreateFile, reads=JSON, example={"path": _PATH, "file_text": "Plan", "scope": "agent"},
        answers=FileWritten, replay=_replay("create"), verbs=("files.create",),
    ),
    Route(
        "POST", "/v1/files/str_replace", replace_in_file,
        action=WRITE, scope="project", summary="replace a text that occurs exactly once in a file",
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
        action=WRITE, scope="project", summary="delete a file, or a folder with its contents",
        params=DeleteFile, reads=JSON, example={"path": _PATH, "scope": "agent"},
        answers=FileChanged, replay=_replay("delete"), problems=("not_found",), verbs=("files.delete",),
    ),
    Route(
        "POST", "/v1/files/rename", rename_file,
        action=WRITE, scope="project", summary="rename or move a file or folder; an existing target is never replaced",
        params=RenameFile, reads=JSON,
        example={"old_path": _PATH, "new_path": "/memories/goals.md", "scope": "agent"},
        answers=FileChanged, replay=_replay("rename", "new_path"), problems=("not_found",), verbs=("files.rename",),
    ),
)  # fmt: skip
