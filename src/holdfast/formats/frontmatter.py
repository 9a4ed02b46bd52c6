"""What people leave in frontmatter beside plain values: comments, and YAML that is more than we write. Pure."""

from __future__ import annotations

from holdfast.base.lazy_re import pattern
from holdfast.base.record import Record
from holdfast.models import TYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_QUOTED = r'"(?:[^"\\]|\\.)*+"'
_BEHIND = pattern(rf"(?:{_QUOTED}|'[^']*'|[^\"'#]|(?<![ \t])#)*+#")  # a comment behind a value
_HEADER_CHARS = 500  # of a name or description


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


class FileHeader(Record):
    """What the frontmatter of an entry file says, and what is wrong with it."""

    name: str = ""
    description: str = ""
    type: str | None = None
    problem: str = ""


def parse_file_header(name: str, text: str) -> FileHeader:
    """Read the frontmatter of a file. A Markdown file that starts one should have a `name` in it (F5)."""
    if not name.endswith(".md") or not text.startswith("---"):
        return FileHeader()
    from holdfast.formats import note_file

    content = note_file.parse(text)
    if not content.opening:
        return FileHeader(problem="its frontmatter is never closed")
    fields = _plain_fields(content.fields)
    if fields is None:
        import yaml

        try:
            said = yaml.load("".join([raw for _, raw in content.fields])[:16384], Loader=yaml.BaseLoader)
        except (yaml.YAMLError, ValueError, RecursionError):
            return FileHeader(problem="its frontmatter is not valid YAML")
        fields = {key: value for key, value in said.items() if isinstance(value, str)} if isinstance(said, dict) else {}
        if isinstance(said, dict) and said.get("name") and "name" not in fields:
            fields["name"] = str(said["name"])
    called, type = _one_line(fields.get("name", "")), fields.get("type", "").strip().lower()
    problem = "" if called else "its frontmatter has no name"
    return FileHeader(called, _one_line(fields.get("description", "")), type if type in TYPES else None, problem)


def _plain_fields(fields: tuple[tuple[str, str], ...]) -> dict[str, str] | None:
    """The fields, if each is plain words on one line, as most are; None where only a YAML parser can tell."""
    found: dict[str, str] = {}
    for key, raw in fields:
        from holdfast.formats import note_file

        value = note_file.plain_value(key, raw)
        if value is None or key in found:
            return None
        found[key] = value
    return found


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_HEADER_CHARS]
