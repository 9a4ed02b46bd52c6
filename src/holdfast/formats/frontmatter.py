"""What people leave in frontmatter beside plain values: comments, and YAML that is more than we write. Pure."""

from __future__ import annotations

from holdfast.base.lazy_re import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_QUOTED = r'"(?:[^"\\]|\\.)*+"'
_BEHIND = pattern(rf"(?:{_QUOTED}|'[^']*'|[^\"'#]|(?<![ \t])#)*+#")  # a comment behind a value


def comment(raw: str) -> str:
    """A field as a comment."""
    return "".join([f"# {line}\n" for line in raw.split("\n")[:-1]])


def comments(raw: str) -> str:
    """The comments and blank lines of a field; one behind a value keeps its line, which becomes a comment."""
    lines = raw.split("\n")[:-1]
    kept = [line if _is_comment(line) else f"# {line}" for line in lines if _is_comment(line) or _BEHIND.match(line)]
    return "".join([f"{line}\n" for line in kept])


def above_comments(raw: str) -> str:
    """Without the comment lines at its end, which may hold anything."""
    lines = raw.split("\n")
    while len(lines) > 2 and _is_comment(lines[-2]):
        del lines[-2]
    return "\n".join(lines)


def value(name: str, raw: str) -> Any:
    """What YAML says the value of a field is."""
    import yaml

    if len(raw) > 16 * 1024 or raw.count("[") + raw.count("{") > 100:  # which YAML takes seconds to refuse
        raise ValueError("too long")
    try:
        fields = yaml.load(raw, Loader=yaml.BaseLoader)  # BaseLoader: text, lists and maps only
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError):
        raise ValueError("not valid YAML") from None
    if not isinstance(fields, dict) or list(fields) != [name]:
        raise ValueError("not valid YAML")
    return fields[name]


def _is_comment(line: str) -> bool:
    bare = line.lstrip()
    return not bare or bare.startswith("#")
