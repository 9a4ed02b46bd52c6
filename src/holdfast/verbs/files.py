"""The files of an agent's own tree: the six commands of the memory tool."""

from __future__ import annotations

from holdfast.context import file_sources
from holdfast.context.caller import typed_errors
from holdfast.errors import (
    VIEW_FILES,
    Conflict,
    Damaged,
    InvalidPath,
    InvalidText,
    NotFound,
    Refused,
    Template,
    UsageError,
)
from holdfast.ledger.file_sources import FileVersion
from holdfast.models import Scope
from holdfast.safety import hidden_chars, validate
from holdfast.store.layout import FILE_BYTES
from holdfast.verbs import operator_messages, quota
from holdfast.verbs.read import TOLD, piece_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.base.ids import FileId
    from holdfast.context.caller import Context
    from holdfast.store.interface import Tree


@typed_errors
class Files:
    """`view`, `create`, `str_replace`, `insert`, `delete`, `rename` under `/memories`."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def view(self, path: str, lines: tuple[int, int] | None = None, *, scope: str = "project") -> str:
        """Return a file's text or some of its lines, or the names in a folder."""
        parts, tree, target = self._resolve(path, scope, writing=False)
        if tree.is_folder(parts):
            return "\n".join(tree.list_names(parts) or [])
        try:
            text = self._read_text(tree, parts, path)
        except Damaged:
            if not tree.is_folder(parts):
                raise
            return "\n".join(tree.list_names(parts) or [])  # another process created the folder in this moment
        self._context.purge_filter.refuse_returned(target.folder, [text])
        if lines is None:
            return text
        first, last = lines
        rows = text.split("\n")
        are_numbers = isinstance(first, int) and isinstance(last, int)
        if not are_numbers or not 1 <= first <= len(rows) or (last != -1 and last < first):
            what = f"lines {first} to {last} do not exist: the file has {len(rows)} lines"
            raise UsageError(what, "Line numbers start at 1; -1 is the end of the file")
        return piece_of(rows, first, len(rows) if last == -1 else last)

    def create(self, path: str, text: str | bytes, *, scope: str = "project", redact: bool = False) -> str:
        """Create or replace a file, and return "created" or "updated". A secret is refused, or masked with `redact`."""
        text = validate.decode_text(text)
        parts, tree, target_scope = self._resolve(path, scope, writing=True)
        if not parts or tree.is_folder(parts):
            raise InvalidPath(f"{path} is a folder", "Give the path of a file")
        seen = tree.file_id(parts)
        self._write(tree, target_scope, parts, text=validate.redact(text)[0] if redact else text, seen=seen)
        return "created" if seen is None else "updated"

    def str_replace(self, path: str, old: str, new: str, *, scope: str = "project", redact: bool = False) -> None:
        """Replace a text that occurs exactly once in the file: as stored, or as shown where it has hidden characters."""
        old, new = validate.require_text(old), validate.require_text(new)
        parts, tree, target_scope = self._resolve(path, scope, writing=True)
        seen = tree.file_id(parts) if parts else None
        text = self._read_text(tree, parts, path)
        count = text.count(old) if old else 0
        if count == 0 and "⟦" in old:  # the file was shown with marks for hidden characters
            old, new, count = hidden_chars.resolve_marks(text, old, new)
        if count != 1:
            raise Conflict(f"the text to replace occurs {count} times in {path}", "Give a text that occurs exactly once")
        after = text.replace(old, new)
        self._write(tree, target_scope, parts, text=validate.redact(after)[0] if redact else after, seen=seen, before=text)

    def insert(self, path: str, line: int, text: str, *, scope: str = "project", redact: bool = False) -> None:
        """Insert text after a line; 0 is the start."""
        parts, tree, target_scope = self._resolve(path, scope, writing=True)
        seen = tree.file_id(parts) if parts else None
        before = self._read_text(tree, parts, path)
        rows = before.split("\n")
        if not isinstance(line, int) or not 0 <= line <= len(rows):
            what = f"line {line} does not exist: the file has {len(rows)} lines"
            raise UsageError(what, "Give a line from 0 (the start) to the number of lines")
        rows[line:line] = validate.require_text(text).removesuffix("\n").split("\n")
        after = "\n".join(rows)
        self._write(tree, target_scope, parts, text=validate.redact(after)[0] if redact else after, seen=seen, before=before)

    def delete(self, path: str, *, scope: str = "project") -> None:
        """Delete a file, or a folder with its contents."""
        parts, tree, target_scope = self._resolve(path, scope, writing=True)
        if not parts:
            raise InvalidPath("cannot delete or rename the root of the tree", "Give the path of a file or folder in it")
        files = file_sources.list_versions(tree, target_scope.folder, parts)
        tree.delete(parts)
        file_sources.record_deleted(self._context.ledger, target_scope.folder, files)
        self._context.update_index(lambda: self._context.sync.refresh_folder(target_scope.folder, "files"))

    def rename(self, old: str, new: str, *, scope: str = "project") -> None:
        """Move a file or folder; raise Conflict if the target exists."""
        parts, tree, target_scope = self._resolve(old, scope, writing=True)
        target = validate.check_path(new)
        self._check_may_write(target)
        validate.reject_secrets(new, "a path", fix="Choose another name")
        if not parts or not target:
            raise InvalidPath("cannot delete or rename the root of the tree", "Give the path of a file or folder in it")
        files = file_sources.list_versions(tree, target_scope.folder, parts)
        tree.rename(parts, target)
        file_sources.record_moved(self._context.ledger, tree, target_scope.folder, files, old=parts, new=target)
        self._context.update_index(lambda: self._context.sync.refresh_folder(target_scope.folder, "files"))

    def _resolve(self, path: str, scope: str, writing: bool) -> tuple[tuple[str, ...], Tree, Scope]:
        if writing or not self._context.config.enabled:
            self._context.require_enabled()
            self._context.check_caller_names()
            validate.reject_secrets(str(path), "a path", fix="Choose another name")
        target_scope, parts = self._context.scope(scope), validate.check_path(path)
        if writing:
            self._check_may_write(parts)
        return parts, self._context.store.tree(target_scope.folder), target_scope

    def _check_may_write(self, parts: tuple[str, ...]) -> None:
        """Raise Denied for the operator's inbox, and Refused for a file that briefings show if the caller's origin is
        quarantined: files cannot be approved."""
        operator_messages.check_writer(self._context, parts)
        path = "/".join(parts)
        is_briefed = any(f"{briefed}/".startswith(f"{path}/") for briefed in TOLD)
        if is_briefed and self._context.origin in self._context.config.quarantine:
            what = f"{path} is shown to agents, so text with the origin {self._context.origin} cannot be written to it"
            raise Refused(what, "Write to another file, or ask a person to write it")

    def _read_text(self, tree: Tree, parts: tuple[str, ...], path: str) -> str:
        content = tree.read(parts) if parts else None
        if content is None:
            raise NotFound(f"no file {path}", Template("List the files with ", VIEW_FILES))
        try:
            return content.data.decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidText(f"{path} is not UTF-8 text", "Convert it to UTF-8 first") from None

    def _write(
        self,
        tree: Tree,
        target_scope: Scope,
        parts: tuple[str, ...],
        *,
        text: str,
        seen: FileId | None,
        before: str = "",
    ) -> None:
        data = validate.encode_text(text if not text.strip() else validate.check_text(text, FILE_BYTES, "a file", before))
        quota.check(self._context, bytes=len(data) - (seen.size if seen else 0))
        folder, path = target_scope.folder, "/".join(parts)
        written = tree.write(parts, data, seen, check=lambda: self._context.purge_filter.refuse_purged([(folder, text)]))
        edited = FileVersion(folder, path, seen) if before and seen else None
        file_sources.record_written(self._context, folder, {path: written.file_id}, edited)
        self._context.update_index(lambda: self._context.sync.index_file(folder, path, written))
