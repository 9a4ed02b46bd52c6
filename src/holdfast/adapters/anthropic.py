"""Anthropic SDK: the memory tool `memory_20250818` on the files of a scope.

The model's `/memories` is the file tree of the scope. Answers and errors have the texts of the tool's documentation, which the
model was trained on.
"""

from __future__ import annotations

from holdfast.adapters import require

require("anthropic")

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.types.beta import (
    BetaCacheControlEphemeralParam,
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from holdfast import Conflict, HoldfastError, Memory, NotFound
from holdfast.adapters.tools import check_memory

CLIENT = "anthropic"  # recorded as the program that wrote
ROOT = "/memories"
_MAX_LINES = 999_999
_NUMBER_WIDTH = 6
_LEVELS = 2  # of folders that a view shows
_ATTEMPTS = 20  # of an edit while other processes change the file
_SNIPPET_LINES = 2  # before and after a change
_UNITS = ("B", "K", "M", "G")


class HoldfastMemoryTool(BetaAbstractMemoryTool):
    """The memory tool for `client.beta.messages.tool_runner`.

    Without a `memory`, open the home and the project of the current folder. With `redact`, the names of rules replace secrets;
    otherwise a text with a secret is rejected, and the model is told so.
    """

    def __init__(
        self, memory: Memory | None = None, *, scope: str = "project", redact: bool = False,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:  # fmt: skip
        super().__init__(cache_control=cache_control)
        self.memory = check_memory(memory, CLIENT)
        self._commands = _Commands(self.memory, scope, redact)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        return self._commands.view(command)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        return self._commands.create(command)

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        return self._commands.str_replace(command)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        return self._commands.insert(command)

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        return self._commands.delete(command)

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        return self._commands.rename(command)

    def clear_all_memory(self) -> str:
        """Delete every file of the scope."""
        return self._commands.clear()


class AsyncHoldfastMemoryTool(BetaAsyncAbstractMemoryTool):
    """The memory tool for `AsyncAnthropic`: each command runs in a worker thread."""

    def __init__(
        self, memory: Memory | None = None, *, scope: str = "project", redact: bool = False,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:  # fmt: skip
        super().__init__(cache_control=cache_control)
        self.memory = check_memory(memory, CLIENT)
        self._commands = _Commands(self.memory, scope, redact)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        return await asyncio.to_thread(self._commands.view, command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        return await asyncio.to_thread(self._commands.create, command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        return await asyncio.to_thread(self._commands.str_replace, command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        return await asyncio.to_thread(self._commands.insert, command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        return await asyncio.to_thread(self._commands.delete, command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        return await asyncio.to_thread(self._commands.rename, command)

    async def clear_all_memory(self) -> str:
        """Delete every file of the scope."""
        return await asyncio.to_thread(self._commands.clear)


class _Commands:
    """The six commands. An error is raised as `ToolError`, whose text the model receives."""

    def __init__(self, memory: Memory, scope: str, redact: bool) -> None:
        self._files, self._scope, self._redact = memory.files, scope, redact

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        path = _path(command)
        missing = ToolError(f"The path {path} does not exist. Please provide a valid path.")
        try:
            kind = self._kind(path)
            if kind == "folder":
                return self._render_folder(path)
            if kind == "file":
                return _render_file(path, self._files.view(path, scope=self._scope), command.view_range)
        except NotFound:
            raise missing from None
        except HoldfastError as error:
            raise _tool_error(error) from error
        raise missing

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Write the text to a new file and rename it, which fails if another process created the path meanwhile."""
        path, text = _path(command), _field(command, "file_text")
        exists = ToolError(f"Error: File {path} already exists")
        try:
            if self._kind(path) is not None:
                raise exists
            new = f"{path.rpartition('/')[0]}/new-{uuid4().hex}"
            self._files.create(new, text, scope=self._scope, redact=self._redact)
            try:
                self._files.rename(new, path, scope=self._scope)
            except HoldfastError:
                self._files.delete(new, scope=self._scope)
                raise
        except Conflict:
            raise exists from None
        except HoldfastError as error:
            raise _tool_error(error) from error
        return f"File created successfully at: {path}"

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        path, old, new = _path(command), _field(command, "old_str"), _field(command, "new_str", "")
        missing = ToolError(f"Error: The path {path} does not exist. Please provide a valid path.")
        for _ in range(_ATTEMPTS):
            before = self._read_file(path, missing)
            try:
                self._files.str_replace(path, old, new, scope=self._scope, redact=self._redact)
            except Conflict as error:
                _reject_unless_unique(path, before, old)
                conflict = error  # it was unique: another process changed the file meanwhile
                continue
            except NotFound:
                raise missing from None
            except HoldfastError as error:
                raise _tool_error(error) from error
            return _render_change(before, self._read_file(path, missing))
        raise _tool_error(conflict)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        path, line, text = _path(command), getattr(command, "insert_line", None), _field(command, "insert_text")
        missing = ToolError(f"Error: The path {path} does not exist")
        for _ in range(_ATTEMPTS):
            count = _count_lines(self._read_file(path, missing))
            if not isinstance(line, int) or not 0 <= line <= count:
                expected = f"It should be within the range of lines of the file: [0, {count}]"
                raise ToolError(f"Error: Invalid `insert_line` parameter: {line}. {expected}")
            try:
                self._files.insert(path, line, text, scope=self._scope, redact=self._redact)
            except Conflict as error:
                conflict = error
                continue
            except NotFound:
                raise missing from None
            except HoldfastError as error:
                raise _tool_error(error) from error
            return f"The file {path} has been edited."
        raise _tool_error(conflict)

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        path = _path(command)
        try:
            self._files.delete(path, scope=self._scope)
        except NotFound:
            raise ToolError(f"Error: The path {path} does not exist") from None
        except HoldfastError as error:
            raise _tool_error(error) from error
        return f"Successfully deleted {path}"

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        old, new = _path(command, "old_path"), _path(command, "new_path")
        try:
            self._files.rename(old, new, scope=self._scope)
        except NotFound:
            raise ToolError(f"Error: The path {old} does not exist") from None
        except Conflict:
            raise ToolError(f"Error: The destination {new} already exists") from None
        except HoldfastError as error:
            raise _tool_error(error) from error
        return f"Successfully renamed {old} to {new}"

    def clear(self) -> str:
        for name in self._list_names(ROOT):
            try:
                self._files.delete(f"{ROOT}/{name}", scope=self._scope)
            except NotFound:
                continue
            except HoldfastError as error:
                raise _tool_error(error) from error
        return "All memory cleared"

    def _kind(self, path: str) -> str | None:
        """Return "file", "folder", or None if there is nothing at the path."""
        folder, _, name = path.rpartition("/")
        if not folder:
            return "folder"  # the root
        try:
            names = self._list_names(folder)
        except NotFound:
            return None
        return "folder" if f"{name}/" in names else "file" if name in names else None

    def _list_names(self, folder: str) -> list[str]:
        """Return the names in a folder; those of folders end with a slash."""
        return [name for name in self._files.view(folder, scope=self._scope).split("\n") if name]

    def _read_file(self, path: str, missing: ToolError) -> str:
        try:
            if self._kind(path) == "file":
                return self._files.view(path, scope=self._scope)
        except NotFound:
            pass
        except HoldfastError as error:
            raise _tool_error(error) from error
        raise missing

    def _render_folder(self, path: str) -> str:
        rows = [(path, 0), *self._measure(path)]
        total = sum(size for name, size in rows if name.rstrip("/").count("/") == path.count("/") + 1)
        rows[0] = (path, total)
        header = (
            f"Here're the files and directories up to {_LEVELS} levels deep in {path}, excluding hidden items and node_modules:"
        )
        shown = [(name, size) for name, size in rows if name.rstrip("/").count("/") <= path.count("/") + _LEVELS]
        return "\n".join([header, *[f"{_format_size(size)}\t{name}" for name, size in shown]])

    def _measure(self, folder: str) -> Iterator[tuple[str, int]]:
        """Yield the paths in a folder with their sizes in bytes; the size of a folder is that of its files."""
        for name in self._list_names(folder):
            path = f"{folder}/{name}"
            if name == "node_modules/":
                continue
            if name.endswith("/"):
                inside = list(self._measure(path.rstrip("/")))
                yield path, sum(size for inner, size in inside if not inner.endswith("/"))
                yield from inside
            else:
                yield path, self._measure_file(path)

    def _measure_file(self, path: str) -> int:
        try:
            return len(self._files.view(path, scope=self._scope).encode("utf-8", "surrogatepass"))
        except HoldfastError:  # not text, or deleted since it was listed
            return 0


def _path(command: Any, name: str = "path") -> str:
    """Return a path of a command without a slash at its end."""
    path = _field(command, name)
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise ToolError(f"Error: The path {path} does not start with {ROOT}")
    path = path.rstrip("/")
    if "//" in path:
        raise ToolError(f"Error: The path {path} has an empty part")
    return path


def _field(command: Any, name: str, default: str | None = None) -> str:
    """Return a field of a command. The SDK does not check what the model sends."""
    value = getattr(command, name, default)
    if not isinstance(value, str):
        raise ToolError(f"Error: `{name}` must be a string")
    return value


def _tool_error(error: HoldfastError) -> ToolError:
    return ToolError(f"Error: {error}")


def _reject_unless_unique(path: str, text: str, old: str) -> None:
    """Raise the documented error unless the text has `old` exactly once."""
    positions = list(_find_all(text, old)) if old else []
    if not positions:
        raise ToolError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    if len(positions) > 1:
        lines = ", ".join(str(text.count("\n", 0, position) + 1) for position in positions)
        found = f"Multiple occurrences of old_str `{old}` in lines: {lines}. Please ensure it is unique"
        raise ToolError(f"No replacement was performed. {found}")


def _find_all(text: str, part: str) -> Iterator[int]:
    position = text.find(part)
    while position >= 0:
        yield position
        position = text.find(part, position + len(part))


def _count_lines(text: str) -> int:
    return len(text.removesuffix("\n").split("\n")) if text else 0


def _render_file(path: str, text: str, view_range: Any) -> str:
    lines = text.split("\n")
    if len(lines) > _MAX_LINES:
        raise ToolError(f"File {path} exceeds maximum line limit of 999,999 lines.")
    first, last = 1, len(lines)
    if view_range is not None:
        try:
            first, last = (int(one) for one in view_range)
        except (TypeError, ValueError):
            raise ToolError(f"Error: Invalid `view_range` parameter: {view_range}. It should be two line numbers") from None
        last = len(lines) if last == -1 else min(last, len(lines))
        if not 1 <= first <= last:
            expected = f"It should be within the range of lines of the file: [1, {len(lines)}]"
            raise ToolError(f"Error: Invalid `view_range` parameter: {view_range}. {expected}")
    return f"Here's the content of {path} with line numbers:\n{_number_lines(lines, first, last)}"


def _render_change(before: str, after: str) -> str:
    """Return the lines around the first difference."""
    old, new = before.split("\n"), after.split("\n")
    changed = next(
        (number for number, pair in enumerate(zip(old, new, strict=False), 1) if pair[0] != pair[1]), min(len(old), len(new))
    )
    snippet = _number_lines(new, max(1, changed - _SNIPPET_LINES), min(len(new), changed + _SNIPPET_LINES))
    return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"


def _number_lines(lines: list[str], first: int, last: int) -> str:
    return "\n".join(f"{number:>{_NUMBER_WIDTH}}\t{lines[number - 1]}" for number in range(first, last + 1))


def _format_size(size: float) -> str:
    """Return a size as `du -h` shows it: 0B, 512B, 1.5K, 2M."""
    unit = 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f}".removesuffix(".0") + _UNITS[unit]
