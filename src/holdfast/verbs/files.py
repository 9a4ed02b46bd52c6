"""The agent's own tree, by the six verbs of the memory tool."""

from __future__ import annotations

from holdfast.context.caller import typed_errors
from holdfast.errors import Conflict, InvalidPath, InvalidText, NotFound, Refused, Template, UsageError, field
from holdfast.models import Scope
from holdfast.safety import hidden_chars, validate
from holdfast.store.atomic import FILE_BYTES
from holdfast.verbs.read import TOLD, piece_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.context.caller import Context
    from holdfast.store.tree import Tree


@typed_errors
class Files:
    """`view`, `create`, `str_replace`, `insert`, `delete`, `rename` under `/memories`."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def view(self, path: str, lines: tuple[int, int] | None = None, *, scope: str = "project") -> str:
        """A file's text (or those lines of it), or the names in a folder."""
        parts, tree, _ = self._at(path, scope, writing=False)
        if tree.is_folder(parts):
            return "\n".join(tree.names(parts) or [])
        text = self._text(tree, parts, path)
        self._context.refuse_returned("", [text])
        if lines is None:
            return text
        first, last = lines
        rows = text.split("\n")
        whole = isinstance(first, int) and isinstance(last, int)
        if not whole or not 1 <= first <= len(rows) or (last != -1 and last < first):
            raise UsageError(f"lines {first} to {last} of {len(rows)}", "Count from 1; -1 means the end")
        return piece_of(rows, first, len(rows) if last == -1 else last)

    def create(self, path: str, text: str | bytes, *, scope: str = "project", redact: bool = False) -> str:
        """Write a file, new or in the place of the old one, and return "created" or "updated". A secret is refused, unless it
        is to `redact`."""
        text = validate.decode_text(text)
        parts, tree, place = self._at(path, scope, writing=True)
        if not parts or tree.is_folder(parts):
            raise InvalidPath(f"{path} is a folder", "Name a file")
        seen = tree.stamp(parts)
        self._write(tree, place, parts, validate.redact(text)[0] if redact else text, seen)
        return "created" if seen is None else "updated"

    def str_replace(self, path: str, old: str, new: str, *, scope: str = "project", redact: bool = False) -> None:
        """Replace a text that stands exactly once in the file: as it is, or as it is shown where something in it is hidden."""
        old, new = self._words(old), self._words(new)
        parts, tree, place = self._at(path, scope, writing=True)
        seen = tree.stamp(parts) if parts else None
        text = self._text(tree, parts, path)
        count = text.count(old) if old else 0
        if count == 0 and "⟦" in old:  # whoever saw the file saw marks
            old, new, count = hidden_chars.resolve_marks(text, old, new)
        if count != 1:
            raise Conflict(f"the text to replace stands {count} times in {path}", "Give a piece that stands there once")
        after = text.replace(old, new)
        self._write(tree, place, parts, validate.redact(after)[0] if redact else after, seen, text)

    def insert(self, path: str, line: int, text: str, *, scope: str = "project", redact: bool = False) -> None:
        """Insert text after a line; 0 is the start."""
        parts, tree, place = self._at(path, scope, writing=True)
        seen = tree.stamp(parts) if parts else None
        before = self._text(tree, parts, path)
        rows = before.split("\n")
        if not isinstance(line, int) or not 0 <= line <= len(rows):
            raise UsageError(f"line {line} of {len(rows)}", "Use 0 for the start, up to the number of lines")
        rows[line:line] = self._words(text).removesuffix("\n").split("\n")
        after = "\n".join(rows)
        self._write(tree, place, parts, validate.redact(after)[0] if redact else after, seen, before)

    def delete(self, path: str, *, scope: str = "project") -> None:
        """Remove a file, or a folder with all in it."""
        parts, tree, place = self._at(path, scope, writing=True)
        if not parts:
            raise InvalidPath("the whole tree", "Name a file or a folder in it")
        tree.delete(parts)
        self._context.update_index(lambda: self._context.sync.refresh_folder(place.folder, "files"))

    def rename(self, old: str, new: str, *, scope: str = "project") -> None:
        """Move a file or folder; never over another."""
        parts, tree, place = self._at(old, scope, writing=True)
        target = validate.path(new)
        self._may_be_told(target)
        validate.reject_secrets(new, "a path", fix="Give it another name")
        if not parts or not target:
            raise InvalidPath("the whole tree", "Name a file or a folder in it")
        tree.rename(parts, target)
        self._context.update_index(lambda: self._context.sync.refresh_folder(place.folder, "files"))

    def _at(self, path: str, scope: str, writing: bool) -> tuple[tuple[str, ...], Tree, Scope]:
        if writing or not self._context.config.enabled:
            self._context.require_enabled()
            self._context.check_caller_names()
            validate.reject_secrets(str(path), "a path", fix="Give it another name")
        place, parts = self._context.scope(scope), validate.path(path)
        if writing:
            self._may_be_told(parts)
        return parts, self._context.store.tree(place.folder), place

    def _may_be_told(self, parts: tuple[str, ...]) -> None:
        """A file has no provenance of its own: who is in quarantine may not write one that agents are told of unasked."""
        path = "/".join(parts)
        if self._context.origin in self._context.config.quarantine and any(f"{one}/".startswith(f"{path}/") for one in TOLD):
            what = f"{path} is told to agents, and what came from {self._context.origin} is not"
            raise Refused(what, "Write it to another file, or let a person do it")

    def _words(self, text: object) -> str:
        if not isinstance(text, str):
            raise UsageError(Template(field("text"), f" must be a string, not {type(text).__name__}"), "Give it as text")
        return text

    def _text(self, tree: Tree, parts: tuple[str, ...], path: str) -> str:
        content = tree.read(parts) if parts else None
        if content is None:
            raise NotFound(f"no file {path}", "`view /memories` lists what there is")
        try:
            return content.data.decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidText(f"{path} is not UTF-8 text", "Convert it to UTF-8 first") from None

    def _write(
        self, tree: Tree, place: Scope, parts: tuple[str, ...], text: str, seen: tuple[int, int, int] | None, before: str = ""
    ) -> None:
        data = validate.encode_text(text if not text.strip() else validate.text(text, FILE_BYTES, "a file", before))
        written = tree.write(parts, data, seen, lambda: self._context.refuse_purged([("", text)]))
        self._context.update_index(lambda: self._context.sync.index_file(place.folder, "/".join(parts), written))
