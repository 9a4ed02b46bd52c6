"""Parse and format frontmatter: the YAML between `---` lines at the start of a file.

Values in the form that Holdfast writes are read without a YAML parser; anything else goes through PyYAML. Comments that people
add stay in the file.
"""

from __future__ import annotations

from holdfast.base.dates import TIMESTAMP
from holdfast.base.lazy_re import pattern
from holdfast.base.record import Record
from holdfast.models import TYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Fields = tuple[tuple[str, str], ...]  # name and exact lines of each field; the name is "" for lines without one

_FENCE = pattern(r"(\ufeff?---[ \t]*\r?\n)((?:.*\n)*?)(---[ \t]*(?:\r?\n|\Z))")
_FIELD = pattern(r"([A-Za-z_][A-Za-z0-9_-]*)[ \t]*:|[^\s#:-].*?:(?:\s|\Z)")
_QUOTED = r'"(?:[^"\\]|\\.)*+"'
_CHAR = r"(?:[^\s\"'\[\]{},#:]|:(?![\s,]|\Z))"
_PLAIN_WORDS = rf"(?![&*!|>%@`?-]){_CHAR}++(?:[ \t]++{_CHAR}++)*+"
_ITEM = pattern(rf"\s*+({_QUOTED}|{_PLAIN_WORDS})\s*+(?:,|\Z)")
_PAIR = pattern(rf"\s*+([a-z_]++): ({_QUOTED}|\[(?:{_QUOTED}|[^\"\[\]])*+\]|{_PLAIN_WORDS})\s*+(?:,|\Z)")
_SIMPLE = pattern(r"[^\s\"'\[\]{}#&*!|>%@`,?-][^\"'\[\]{}#\n\r]*\Z")
_UNQUOTED = pattern(r"[\w./+](?:[\w./@+ -]*[\w./@+-])?\Z")
_TIMESTAMP = pattern(rf"(?a){TIMESTAMP}\Z")
_ESCAPED_CHARS = pattern("[<>\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_TRAILING_COMMENT = pattern(rf"(?:{_QUOTED}|'[^']*'|[^\"'#]|(?<![ \t])#)*+#")
_MAX_YAML_CHARS = 16 * 1024
_MAX_BRACKETS = 100  # PyYAML takes seconds to reject deeper nesting
_MAX_HEADER_CHARS = 500  # of a name or description


class Frontmatter(Record):
    """The text of a file in three exact pieces of frontmatter and the rest; all three are "" if there is no frontmatter."""

    opening: str
    inside: str
    closing: str
    rest: str


def split(text: str) -> Frontmatter:
    """Separate the frontmatter of a file from the text after it."""
    if not text.startswith(("---", "\ufeff---")):
        return Frontmatter("", "", "", text)
    end = text.find("\n---", 3) + 1
    if end and text.startswith("---\n") and text[end + 3 : end + 4] == "\n":  # as Holdfast writes it
        return Frontmatter("---\n", text[4:end], "---\n", text[end + 4 :])
    fence = _FENCE.match(text)
    return Frontmatter(fence[1], fence[2], fence[3], text[fence.end() :]) if fence else Frontmatter("", "", "", text)


def split_fields(inside: str) -> Fields:
    """Separate frontmatter into its fields, each with the lines that belong to it."""
    fields: list[tuple[str, list[str]]] = []
    for line in inside.split("\n")[:-1]:
        name = line.partition(":")[0]
        if name.isidentifier() and name.isascii() and name != line:
            fields.append((name, []))
        elif (match := _FIELD.match(line)) or not fields:
            fields.append((match[1] or "" if match else "", []))
        fields[-1][1].append(line + "\n")
    return tuple([(name, "".join(lines)) for name, lines in fields])


# --- values ---------------------------------------------------------------------------------------------------------------


def parse_value(name: str, raw: str) -> Any:
    """Return the value of a field as text, list or dict; raise ValueError if it is not valid YAML."""
    raw = raw if raw.count("\n") == 1 else _strip_trailing_comments(raw)
    text = raw[raw.index(":") + 1 :].strip()
    if _is_simple(text):
        return text
    if text.startswith("[") and (items := _parse_list(text)) is not None:
        return items
    if text.startswith("{") and (pairs := _parse_dict(text)) is not None:
        return pairs
    return _parse_yaml(name, raw)


def format_value(value: object) -> str:
    """Return a text, tuple or dict as YAML on one line, with quotes around anything but plain words."""
    if isinstance(value, dict):
        return "{" + ", ".join([f"{name}: {format_value(item)}" for name, item in value.items()]) + "}"
    if isinstance(value, tuple):
        return "[" + ", ".join([format_value(item) for item in value]) + "]"
    text = str(value)
    if _UNQUOTED.match(text) or _TIMESTAMP.match(text):
        return text
    import json

    return _ESCAPED_CHARS.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))


def _is_simple(text: str) -> bool:
    """Return whether a value is plain words on one line, which YAML reads as they are."""
    return bool(_SIMPLE.match(text)) and ": " not in text and not text.endswith(":")


def _parse_list(text: str) -> list[str] | None:
    """Return the items of `[a, "b"]`; None if only a YAML parser can read it."""
    inside = text[1:-1]
    if not text.endswith("]"):
        return None
    items, at = [], 0
    while at < len(inside):
        match = _ITEM.match(inside, at)
        item = _unquote(match.group(1)) if match else None
        if match is None or item is None:
            return None
        items.append(item)
        at = match.end()
    return items


def _parse_dict(text: str) -> dict[str, Any] | None:
    """Return the pairs of `{a: b, c: [d]}`; None if only a YAML parser can read it."""
    inside = text[1:-1]
    if not text.endswith("}"):
        return None
    pairs: dict[str, Any] = {}
    at = 0
    while at < len(inside):
        match = _PAIR.match(inside, at)
        if not match:
            return None
        raw = match.group(2)
        value = _parse_list(raw) if raw.startswith("[") else _unquote(raw)
        if value is None:
            return None
        pairs[match.group(1)] = value
        at = match.end()
    return pairs


def _unquote(text: str) -> str | None:
    if not text.startswith('"'):
        return text
    import json

    try:
        return str(json.loads(text))
    except ValueError:  # YAML has more escapes than JSON
        return None


def _parse_yaml(name: str, raw: str) -> Any:
    import yaml

    if len(raw) > _MAX_YAML_CHARS or raw.count("[") + raw.count("{") > _MAX_BRACKETS:
        raise ValueError("too long")
    try:
        fields = yaml.load(raw, Loader=yaml.BaseLoader)  # BaseLoader: text, lists and maps only
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError):
        raise ValueError("not valid YAML") from None
    if not isinstance(fields, dict) or list(fields) != [name]:
        raise ValueError("not valid YAML")
    return fields[name]


# --- comments -------------------------------------------------------------------------------------------------------------


def to_comment(raw: str) -> str:
    """Return the lines of a field as comments."""
    return "".join([f"# {line}\n" for line in raw.split("\n")[:-1]])


def keep_comments(raw: str) -> str:
    """Return the comments and blank lines of a field; a line with a comment after its value becomes a comment."""
    if "#" not in raw and raw.count("\n") < 2:
        return ""
    lines = raw.split("\n")[:-1]
    kept = [line if _is_comment(line) else f"# {line}" for line in lines if _is_comment(line) or _TRAILING_COMMENT.match(line)]
    return "".join([f"{line}\n" for line in kept])


def _strip_trailing_comments(raw: str) -> str:
    lines = raw.split("\n")
    while len(lines) > 2 and _is_comment(lines[-2]):
        del lines[-2]
    return "\n".join(lines)


def _is_comment(line: str) -> bool:
    bare = line.lstrip()
    return not bare or bare.startswith("#")


# --- headers of files in the tree -------------------------------------------------------------------------------------------


class FileHeader(Record):
    """The frontmatter of a file in the tree, and its problem if it has one."""

    name: str = ""
    description: str = ""
    type: str | None = None
    problem: str = ""


def parse_file_header(name: str, text: str) -> FileHeader:
    """Read the frontmatter of a file in the tree; a Markdown file with frontmatter should have a `name`."""
    if not name.endswith(".md") or not text.startswith("---"):
        return FileHeader()
    found = split(text)
    if not found.opening:
        return FileHeader(problem="its frontmatter is never closed")
    raw_fields = split_fields(found.inside)
    fields = _parse_simple_fields(raw_fields)
    if fields is None:
        import yaml

        try:
            document = yaml.load("".join([raw for _, raw in raw_fields])[:_MAX_YAML_CHARS], Loader=yaml.BaseLoader)
        except (yaml.YAMLError, ValueError, RecursionError):
            return FileHeader(problem="its frontmatter is not valid YAML")
        document = document if isinstance(document, dict) else {}
        fields = {key: value for key, value in document.items() if isinstance(value, str)}
        if document.get("name") and "name" not in fields:
            fields["name"] = str(document["name"])
    title, type = _to_one_line(fields.get("name", "")), fields.get("type", "").strip().lower()
    problem = "" if title else "its frontmatter has no name"
    return FileHeader(title, _to_one_line(fields.get("description", "")), type if type in TYPES else None, problem)


def _parse_simple_fields(fields: Fields) -> dict[str, str] | None:
    """Return the fields if each is plain words on one line; None if only a YAML parser can read them."""
    found: dict[str, str] = {}
    for name, raw in fields:
        text = raw.removeprefix(f"{name}:")
        if not name or name in found or text == raw or raw.count("\n") != 1 or not text.startswith((" ", "\t", "\n", "\r")):
            return None
        text = text.strip()
        if text and not _is_simple(text):
            return None
        found[name] = text
    return found


def _to_one_line(text: str) -> str:
    return " ".join(text.split())[:_MAX_HEADER_CHARS]
