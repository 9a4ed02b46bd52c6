"""Add and remove a marked block of lines at the end of a TOML file."""

from __future__ import annotations

from holdfast.file_edit import markdown_block

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Ours = Callable[[Any], bool]


def put(text: str, lines: str) -> str:
    """Return the text with these lines at its end; raise ValueError if either is not TOML."""
    _loads(text)
    new = markdown_block.put(text, lines, markdown_block.TOML_BEGIN, markdown_block.TOML_END, _is_toml)
    _loads(new)
    return new


def remove(text: str, lines: str, is_own: Ours) -> str:
    """Return the text without these lines, even if a program rewrote the file without the marks."""
    without = markdown_block.remove(text, markdown_block.TOML_BEGIN, markdown_block.TOML_END, _is_toml)
    if without != text:
        return without
    try:
        document, told = _loads(text), _loads(lines)
    except ValueError:
        return text  # not ours to mend, and nothing of ours can be told apart in it
    return _taken(text, told, is_own) if _present(document, told, is_own) else text


def _present(document: Any, told: dict[str, Any], ours: Ours) -> bool:
    for name, value in told.items():
        there = document.get(name) if isinstance(document, dict) else None
        if isinstance(value, list):
            if isinstance(there, list) and any(ours(one) for one in there):
                return True
        elif isinstance(value, dict) and isinstance(there, dict) and any(one in there for one in value):
            return True
    return False


def _taken(text: str, told: dict[str, Any], ours: Ours) -> str:
    """Return the text without entries of these names; tomlkit keeps the rest as it was."""
    import tomlkit

    document: Any = tomlkit.parse(text)
    for name, value in told.items():
        if isinstance(value, list):
            there = document.get(name, [])
            for number in reversed(range(len(there))):
                if ours(there[number].unwrap()):
                    del there[number]
        else:
            for one in value:
                document.get(name, {}).pop(one, None)
        if name in document and not document[name]:
            del document[name]
    return tomlkit.dumps(document)


def _is_toml(lines: str) -> bool:
    """Return whether these lines are TOML on their own; the marks may also be part of a multi-line string."""
    try:
        return bool(_loads(lines))
    except ValueError:
        return False


def _loads(text: str) -> dict[str, Any]:
    """Parse TOML; raise ValueError if it is invalid or nested too deeply."""
    import tomllib

    try:
        return tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except RecursionError:
        raise ValueError("nested too deep") from None
