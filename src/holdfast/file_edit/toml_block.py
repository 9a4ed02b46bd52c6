"""Add and remove a marked block of lines at the end of a TOML file."""

from __future__ import annotations

from holdfast.file_edit import markdown_block

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    IsOwn = Callable[[Any], bool]


def put(text: str, lines: str) -> str:
    """Return the text with these lines at its end; raise ValueError if either is not TOML."""
    _parse_toml(text)
    new = markdown_block.put(text, lines, markdown_block.TOML_BEGIN, markdown_block.TOML_END, _is_toml)
    _parse_toml(new)
    return new


def remove(text: str, lines: str, is_own: IsOwn) -> str:
    """Return the text without these lines, even if a program rewrote the file without the marks."""
    without = markdown_block.remove(text, markdown_block.TOML_BEGIN, markdown_block.TOML_END, _is_toml)
    if without != text:
        return without
    try:
        document, entries = _parse_toml(text), _parse_toml(lines)
    except ValueError:
        return text  # another program's error; Holdfast's lines cannot be found in it
    return _remove_entries(text, entries, is_own) if _has_entries(document, entries, is_own) else text


def _has_entries(document: Any, entries: dict[str, Any], is_own: IsOwn) -> bool:
    """Return whether a document has one of these keys, or an item of Holdfast's in one of these arrays."""
    for name, value in entries.items():
        existing = document.get(name) if isinstance(document, dict) else None
        if isinstance(value, list):
            if isinstance(existing, list) and any(is_own(item) for item in existing):
                return True
        elif isinstance(value, dict) and isinstance(existing, dict) and any(key in existing for key in value):
            return True
    return False


def _remove_entries(text: str, entries: dict[str, Any], is_own: IsOwn) -> str:
    """Return the text without entries of these names; tomlkit keeps the rest as it was."""
    import tomlkit

    document: Any = tomlkit.parse(text)
    for name, value in entries.items():
        if isinstance(value, list):
            existing = document.get(name, [])
            for number in reversed(range(len(existing))):
                if is_own(existing[number].unwrap()):
                    del existing[number]
        else:
            for key in value:
                document.get(name, {}).pop(key, None)
        if name in document and not document[name]:
            del document[name]
    return tomlkit.dumps(document)


def _is_toml(lines: str) -> bool:
    """Return whether these lines are TOML on their own; the marks may also be part of a multi-line string."""
    try:
        return bool(_parse_toml(lines))
    except ValueError:
        return False


def _parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML; raise ValueError if it is invalid or nested too deeply."""
    import tomllib

    try:
        return tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except RecursionError:
        raise ValueError("nested too deep") from None
