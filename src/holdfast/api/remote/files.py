"""RemoteFiles: the agent's own files on a gateway, with the six commands of the memory tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.api.files_interface import FilesInterface
from holdfast.safety import validate

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.api.remote.caller import RemoteCaller

    Request = Callable[..., Any]


class RemoteFiles(FilesInterface):
    """`view`, `create`, `str_replace`, `insert`, `delete`, `rename` under `/memories`, over HTTP."""

    def __init__(self, caller: RemoteCaller, request: Request) -> None:
        self._caller = caller
        self._request = request

    def view(self, path: str, lines: tuple[int, int] | None = None, *, scope: str = "project") -> str:
        view_range = {} if lines is None else {"view_range": list(lines)}
        text: str = self._run("view", scope, {"path": path, **view_range}, repeatable=True)["text"]
        return text

    def create(self, path: str, text: str | bytes, *, scope: str = "project", redact: bool = False) -> str:
        fields = {"path": path, "file_text": _check_text(validate.decode_text(text), redact)}
        answer = self._run("create", scope, fields)
        return str(answer.get("action", "created"))  # an older gateway does not say

    def str_replace(self, path: str, old: str, new: str, *, scope: str = "project", redact: bool = False) -> None:
        fields = {"path": path, "old_str": validate.require_text(old), "new_str": _check_text(new, redact)}
        self._run("str_replace", scope, fields)

    def insert(self, path: str, line: int, text: str, *, scope: str = "project", redact: bool = False) -> None:
        self._run("insert", scope, {"path": path, "insert_line": line, "insert_text": _check_text(text, redact)})

    def delete(self, path: str, *, scope: str = "project") -> None:
        self._run("delete", scope, {"path": path})

    def rename(self, old: str, new: str, *, scope: str = "project") -> None:
        self._run("rename", scope, {"old_path": old, "new_path": new})

    def _run(self, command: str, scope: str, fields: dict[str, Any], repeatable: bool = False) -> Any:
        for name in ("path", "old_path", "new_path"):
            if name in fields:
                validate.check_path(fields[name])
        self._caller.require_enabled()
        body = {**fields, "scope": self._caller.scope(scope).kind}
        return self._request("POST", f"/v1/files/{command}", body, repeatable=repeatable, keyed=not repeatable)


def _check_text(text: object, redact: bool) -> str:
    """Return a text without secrets, or raise `SecretFound`: no secret leaves this machine."""
    checked = validate.require_text(text)
    if redact:
        return validate.hide_secrets(checked)
    validate.reject_secrets(checked, "a file")
    return checked
