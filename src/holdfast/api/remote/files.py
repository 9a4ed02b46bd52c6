"""The agent's own tree on a gateway, by the six verbs of the memory tool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.context.caller import Context
from holdfast.safety import validate
from holdfast.verbs.files import Files

Request = Callable[..., Any]


class RemoteFiles(Files):
    """`view`, `create`, `str_replace`, `insert`, `delete`, `rename` under `/memories`, over HTTP."""

    def __init__(self, context: Context, request: Request) -> None:
        super().__init__(context)
        self._request = request

    def view(self, path: str, lines: tuple[int, int] | None = None, *, scope: str = "project") -> str:
        more = {} if lines is None else {"view_range": list(lines)}
        text: str = self._do("view", scope, {"path": path, **more}, repeatable=True)["text"]
        return text

    def create(self, path: str, text: str | bytes, *, scope: str = "project", redact: bool = False) -> str:
        done = self._do("create", scope, {"path": path, "file_text": self._fit(validate.decode_text(text), redact)})
        return str(done.get("action", "created"))  # an older gateway does not say

    def str_replace(self, path: str, old: str, new: str, *, scope: str = "project", redact: bool = False) -> None:
        self._do("str_replace", scope, {"path": path, "old_str": self._words(old), "new_str": self._fit(new, redact)})

    def insert(self, path: str, line: int, text: str, *, scope: str = "project", redact: bool = False) -> None:
        self._do("insert", scope, {"path": path, "insert_line": line, "insert_text": self._fit(text, redact)})

    def delete(self, path: str, *, scope: str = "project") -> None:
        self._do("delete", scope, {"path": path})

    def rename(self, old: str, new: str, *, scope: str = "project") -> None:
        self._do("rename", scope, {"old_path": old, "new_path": new})

    def _do(self, verb: str, scope: str, given: dict[str, Any], repeatable: bool = False) -> Any:
        for name in ("path", "old_path", "new_path"):
            if name in given:
                validate.path(given[name])
        self._context.require_enabled()
        body = {**given, "scope": self._context.scope(scope).kind}
        return self._request("POST", f"/v1/files/{verb}", body, repeatable=repeatable, keyed=not repeatable)

    def _fit(self, text: object, redact: bool) -> str:
        """Nothing that looks like a secret leaves this machine."""
        words = self._words(text)
        if redact:
            return validate.without_secrets(words)
        validate.reject_secrets(words, "a file")
        return words
