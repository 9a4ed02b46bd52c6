"""Parse and render the file of a note: frontmatter, text and history.

Parsing keeps every byte; writing changes only Holdfast's own parts.

    ---
    id: 01K9Z6V0M4Q2ABCD          fields, one line each as Holdfast writes them; anything else that people add is kept
    type: feedback
    name: "Deploy Steps"          the key that a platform stored it under, if that is not a note key
    ---
    Always use pytest.            the current text

    <!-- holdfast:history -->     older versions, newest first
    ## 2026-04-16T10:30:00Z to 2026-05-02T09:00:00Z
    <!-- holdfast:version {origin: agent} -->
    Use unittest.

A note with many versions keeps the newest ones in its file. Its field `older` says how many more there are, and which file
below `history/` has the last of them (see `history_file`).

A line of text that looks like one of these markers gets a backslash in the file and loses it when read, so no text can forge
history. `render(parse(text)) == text` for every text.
"""

from __future__ import annotations

from holdfast.base.dates import DAY, parse_moment
from holdfast.base.lazy_re import pattern
from holdfast.base.record import Record
from holdfast.errors import UsageError
from holdfast.formats import frontmatter
from holdfast.models import ORIGINS, TYPES, Source, Version, parse_tags

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable
    from typing import Any, TypeVar

    from holdfast.formats.frontmatter import Fields
    from holdfast.formats.relations import StatedRelation

    T = TypeVar("T")

HISTORY = "<!-- holdfast:history -->"
_DATE = rf"{DAY}(?:T\d\d:\d\d:\d\dZ)?"
_HISTORY = pattern(r"(?m)^<!-- holdfast:history -->[ \t]*(?:\r?\n|\Z)")
_SECTION = pattern(rf"(?ma)^## ({_DATE}) to ({_DATE})[ \t]*\r?(?:\n|\Z)(?:<!-- holdfast:version (\{{.*\}}) -->\r?(?:\n|\Z))?")
_MARKER = pattern(rf"(?ma)^(?=\\*(?:<!-- holdfast:|## {_DATE} to {DAY}))")
_ESCAPED_MARKER = pattern(rf"(?ma)^\\(?=\\*(?:<!-- holdfast:|## {_DATE} to {DAY}))")
_VALID_TIMESTAMP = pattern(r"(?a)(?!0000)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ\Z")
_WORD = pattern(r"[\w.-]{1,64}\Z")
_SOURCE_FIELDS = ("origin", "agent", "client", "session")


class NoteFile(Record):
    """A file in pieces that join to its exact text."""

    opening: str
    fields: Fields
    closing: str
    body: str
    past: str


class Older(Record):
    """The versions of a note that are in history files, not in its own file."""

    versions: int
    bytes: int  # of these versions in all history files
    file: str  # name of the history file with the last of them; it names the file before it


class NoteHeader(Record):
    """The fields of the frontmatter that can be read; `problems` names the others."""

    id: str = ""
    type: str = "project"
    tags: tuple[str, ...] = ()
    created: str = ""
    updated: str = ""
    source: Source = Source()
    valid_from: str = ""
    valid_to: str | None = None
    pinned: bool = False
    restored: str = ""  # when it came back from the archive; retention counts from then
    problems: tuple[str, ...] = ()
    name: str = ""  # the platform key that it was stored under; whether it fits the file's key is not checked here
    approved: tuple[str, str] | None = None  # when a person approved it, and the digest of the text they read
    older: Older | None = None
    relations: tuple[StatedRelation, ...] = ()

    @property
    def trust(self) -> str:
        return self.source.trust or ""


# --- reading --------------------------------------------------------------------------------------------------------------


def parse(text: str) -> NoteFile:
    """Separate a file into its pieces; anything that is not frontmatter or history is text."""
    found = frontmatter.split(text)
    return NoteFile(found.opening, frontmatter.split_fields(found.inside), found.closing, *_split_history(found.rest))


def render(file: NoteFile) -> str:
    """Return the exact text of the file."""
    return f"{render_frontmatter(file)}{file.body}{file.past}"


def render_frontmatter(file: NoteFile) -> str:
    """Return the exact text before the current text."""
    return f"{file.opening}{''.join([raw for _, raw in file.fields])}{file.closing}"


def current_text(file: NoteFile) -> str:
    """Return the current text, without the newline that ends it and the blank line before history."""
    return _unescape(_strip_end(file.body, _detect_newline(file), bool(file.past)))


def read_current_text(text: str) -> tuple[str, tuple[int, int]]:
    """Return the current text of a file and its first and last line number, without reading the fields."""
    found = frontmatter.split(text)
    file = NoteFile(found.opening, (("", found.inside),), found.closing, *_split_history(found.rest))
    body, first = current_text(file), 1 + render_frontmatter(file).count("\n")
    return replace_invalid(body), (first, first + body.count("\n"))


def replace_invalid(text: str) -> str:
    """Return the text with a replacement character for each byte of the file that is not UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def parse_header(file: NoteFile) -> NoteHeader:
    """Read the fields; a value that cannot be read counts as absent and is named in `problems`."""
    values: dict[str, Any] = {}
    problems: list[str] = []
    for name, raw in file.fields:
        parse_field = _PARSERS.get(name)
        if parse_field is None or name in values:
            continue
        try:
            values[name] = parse_field(frontmatter.parse_value(name, raw))
        except ValueError as error:
            problems.append(f"{name}: {error}")
    if trust := values.pop("trust", None):
        values["source"] = values.get("source", Source()).replace(trust=trust)
    return NoteHeader(**values, problems=tuple(problems))


def past_versions(file: NoteFile, limit: int | None = None) -> list[Version]:
    """Return the older versions, newest first, at most `limit` of them."""
    versions: list[Version] = []
    sections = _SECTION.finditer(file.past)
    section = next(sections, None)
    newline = _detect_newline(file)
    while section and (limit is None or len(versions) < limit):
        following = next(sections, None)
        raw = file.past[section.end() : following.start() if following else len(file.past)]
        versions.append(_parse_version(section, _unescape(_strip_end(raw, newline, following is not None))))
        section = following
    return versions


def count_past_versions(file: NoteFile) -> int:
    """Return the number of older versions."""
    return len(_SECTION.findall(file.past)) if file.past else 0


def past_sections(file: NoteFile) -> list[str]:
    """Return the older versions as they are in the file, newest first; each ends with one newline."""
    if _detect_newline(file) != "\n":
        return [render_section(version, "\n") for version in past_versions(file)]
    starts = [section.start() for section in _SECTION.finditer(file.past)]
    sections = []
    for start, end in zip(starts, [*starts[1:], len(file.past)], strict=False):  # no start: no version
        raw = file.past[start:end]
        sections.append(raw[:-1] if end < len(file.past) and raw.endswith("\n\n") else _end_line(raw, "\n"))
    return sections


def past_version_lines(file: NoteFile) -> list[tuple[int, int]]:
    """Return the first and last line number of each older version, in the order of `past_versions`."""
    base = render(file.replace(past="")).count("\n") + 1
    lines = []
    for section, version in zip(_SECTION.finditer(file.past), past_versions(file), strict=True):
        first = base + file.past.count("\n", 0, section.end())
        lines.append((first, first + version.text.count("\n")))
    return lines


def _split_history(rest: str) -> tuple[str, str]:
    """Separate the current text from the history after it."""
    marker = _HISTORY.search(rest) if HISTORY in rest else None
    cut = marker.start() if marker else len(rest)
    return rest[:cut], rest[cut:]


def _detect_newline(file: NoteFile) -> str:
    """Return the line ending of the file: that of its first line, or without frontmatter that of its last line."""
    return "\r\n" if (file.opening or file.body).endswith("\r\n") else "\n"


def _strip_end(raw: str, newline: str, has_blank_line: bool) -> str:
    """Remove the newline that ends a text, and the blank line after it if there is one."""
    if has_blank_line and raw.endswith(newline * 2):
        return raw[: -2 * len(newline)]
    return raw.removesuffix(newline if raw.endswith(newline) else "\n")


def _escape(text: str) -> str:
    return _MARKER.sub(r"\\", text) if "holdfast:" in text or "## " in text else text


def _unescape(text: str) -> str:
    return _ESCAPED_MARKER.sub("", text) if "\\" in text else text


# --- writing --------------------------------------------------------------------------------------------------------------


def create(header: NoteHeader, text: str) -> NoteFile:
    """Return the file of a new note."""
    return NoteFile("---\n", _update_fields(header, (), "\n"), "---\n", _escape(text) + "\n", "")


def replace_header(file: NoteFile, header: NoteHeader) -> NoteFile:
    """Return the file with another header."""
    newline = _detect_newline(file)
    opening, closing = file.opening or f"---{newline}", _end_line(file.closing or "---", newline)
    return file.replace(opening=opening, fields=_update_fields(header, file.fields, newline), closing=closing)


def add_version(file: NoteFile, old: Version, header: NoteHeader, text: str) -> NoteFile:
    """Return the file with `text` as its current version and `old` first in its history; line endings stay."""
    newline = _detect_newline(file)
    section = render_section(old, newline)
    first = _SECTION.search(file.past)
    if first:
        past = f"{file.past[: first.start()]}{section}{newline}{file.past[first.start() :]}"
    else:
        past = _end_line(file.past or HISTORY, newline) + section
    opening, closing = file.opening or f"---{newline}", _end_line(file.closing or "---", newline)
    return NoteFile(opening, _update_fields(header, file.fields, newline), closing, _escape(text) + newline * 2, past)


def render_section(version: Version, newline: str) -> str:
    """Return an older version as a file has it: heading, metadata and text."""
    heading = f"## {version.valid_from} to {version.closed}"
    return f"{heading}{newline}{_format_metadata(version)}{newline}{_escape(version.text)}{newline}"


def keep_newest(file: NoteFile, count: int) -> NoteFile:
    """Return the file with only its newest `count` older versions; `count` is at least 1."""
    starts = [section.start() for section in _SECTION.finditer(file.past)]
    if len(starts) <= count:
        return file
    newline, kept = _detect_newline(file), file.past[: starts[count]]
    return file.replace(past=kept.removesuffix(newline) if kept.endswith(newline * 2) else kept)


def _end_line(line: str, newline: str) -> str:
    return line if line.endswith("\n") else line + newline


def _update_fields(header: NoteHeader, fields: Fields, newline: str) -> Fields:
    """Return the fields with Holdfast's values in their places; fields of others and unchanged values keep their text."""
    values = {
        "id": header.id,
        "type": header.type,
        "name": frontmatter.format_value(header.name) if header.name else "",
        "tags": frontmatter.format_value(header.tags) if header.tags else "",
        "created": header.created,
        "updated": header.updated,
        "source": frontmatter.format_value(_list_source_fields(header.source)),
        "trust": header.trust,
        "approved": _format_approval(header.approved),
        "valid_from": header.valid_from if header.valid_from != header.updated else "",
        "valid_to": header.valid_to or "",
        "pinned": "true" if header.pinned else "",
        "restored": header.restored,
        "older": _format_older(header.older),
        "relations": _format_relations(header.relations),
    }
    kept: list[tuple[str, str]] = []
    for name, raw in fields:
        if name not in _PARSERS:
            kept.append((name, raw))
        elif name not in values:  # a duplicate: the first one counts
            kept.append(("", frontmatter.to_comment(raw)))
        else:
            value = values.pop(name)
            meaning = header.source.replace(trust=None) if name == "source" else getattr(header, name)
            kept.extend(_update_field(name, raw, value, meaning=meaning, newline=newline))
    return (*kept, *[(name, f"{name}: {value}{newline}") for name, value in values.items() if value])


def _update_field(name: str, raw: str, value: str, *, meaning: object, newline: str) -> list[tuple[str, str]]:
    """Return a field with its new value; comments and a value that could not be read stay as comments below it."""
    if value and raw == f"{name}: {value}{newline}" and name != "source":  # a source may have parts that are not read
        return [(name, raw)]
    try:
        old_value = frontmatter.parse_value(name, raw)
        old_meaning: Any = _PARSERS[name](old_value)
    except ValueError:
        comments = frontmatter.to_comment(raw)
    else:
        if old_meaning == meaning:
            return [(name, raw)]
        if name == "source" and not _is_fully_read(old_meaning, old_value):
            comments = frontmatter.to_comment(raw)
        else:
            comments = frontmatter.keep_comments(raw)
    return [(name, f"{name}: {value}{newline}{comments}")] if value else [("", comments)] if comments else []


def _is_fully_read(source: Source, value: dict[str, object]) -> bool:
    fields = _list_source_fields(source).items()
    return value == {name: list(item) if isinstance(item, tuple) else item for name, item in fields}


def _list_source_fields(source: Source) -> dict[str, object]:
    """Return the parts of a source that are set."""
    fields: dict[str, object] = {name: value for name in _SOURCE_FIELDS if (value := getattr(source, name))}
    return {**fields, "from": source.made_from} if source.made_from else fields


def _format_approval(approved: tuple[str, str] | None) -> str:
    return frontmatter.format_value({"time": approved[0], "text": approved[1]}) if approved else ""


def _format_older(older: Older | None) -> str:
    if older is None:
        return ""
    return frontmatter.format_value({"versions": str(older.versions), "bytes": str(older.bytes), "file": older.file})


def _format_relations(relations: tuple[StatedRelation, ...]) -> str:
    if not relations:
        return ""
    from holdfast.formats.relations import format_relations

    return format_relations(relations)


def _format_metadata(version: Version) -> str:
    """Return the line below the heading of an older version: everything that the heading does not say."""
    metadata: dict[str, object] = {}
    if version.recorded != version.valid_from:
        metadata["recorded"] = version.recorded
    if version.valid_to:
        metadata["valid_to"] = version.valid_to
    if version.type != "project":
        metadata["type"] = version.type
    if version.tags:
        metadata["tags"] = version.tags
    metadata |= _list_source_fields(version.source)
    if version.source.trust:
        metadata["trust"] = version.source.trust
    return f"<!-- holdfast:version {frontmatter.format_value(metadata)} -->"


# --- values of fields -----------------------------------------------------------------------------------------------------


def _parse_version(section: re.Match[str], text: str) -> Version:
    start, end, raw = section.groups()
    try:
        metadata = frontmatter.parse_value("version", f"version: {raw}\n") if raw else {}
    except ValueError:
        metadata = {}
    valid_from = _to_timestamp(start)
    return Version(
        text=text,
        type=_get_valid(metadata, "type", _parse_type, "project"),
        tags=_get_valid(metadata, "tags", _parse_tag_list, ()),
        source=_parse_source(metadata).replace(trust=_parse_trust(metadata["trust"]) if metadata.get("trust") else None),
        recorded=_get_valid(metadata, "recorded", _parse_timestamp, valid_from),
        valid_from=valid_from,
        valid_to=_get_valid(metadata, "valid_to", _parse_timestamp, None),
        closed=_to_timestamp(end),
    )


def _get_valid(metadata: dict[str, Any], name: str, parse_field: Callable[[Any], T], default: T) -> T:
    """Return a value of a version's metadata, or the default if it is missing or invalid."""
    try:
        return parse_field(metadata[name]) if name in metadata else default
    except ValueError:
        return default


def _to_timestamp(date: str) -> str:
    """Return a timestamp as it is, and a day as its first second."""
    return date if len(date) != 10 else date + "T00:00:00Z"


def _parse_source(value: Any) -> Source:
    if not isinstance(value, dict):
        raise ValueError("must be {origin: ...}")
    texts = [text if isinstance(text := value.get(name), str) and text.isprintable() else None for name in _SOURCE_FIELDS]
    origin, agent, client, session = texts
    if (origin := ORIGINS[0] if origin is None else origin) not in ORIGINS:
        origin = "web"  # an unknown origin gets the least trust
    given = value.get("from", ())
    names = [given] if isinstance(given, str) else given
    made_from = [name for name in names if isinstance(name, str) and name.isprintable()]
    return Source(origin, agent, client, session, tuple([name for name in made_from if name]))


def _parse_trust(value: Any) -> str:
    return value if isinstance(value, str) and value in ORIGINS else "web"  # an unknown origin gets the least trust


def _parse_approval(value: Any) -> tuple[str, str]:
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        raise ValueError("must be {time: ..., text: ...}")
    return _parse_timestamp(value.get("time")), _parse_word(value["text"])


def _parse_older(value: Any) -> Older:
    from holdfast.formats.history_file import is_history_name

    if isinstance(value, dict) and is_history_name(file := value.get("file")):
        versions, size = value.get("versions", ""), value.get("bytes", "0")
        if _is_count(versions) and _is_count(size) and int(versions):
            return Older(int(versions), int(size), file)
    raise ValueError("must be {versions: ..., bytes: ..., file: ...}")


def _parse_relations(value: Any) -> tuple[StatedRelation, ...]:
    from holdfast.formats.relations import parse_relations  # most notes have none

    return parse_relations(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 16


def _parse_type(value: Any) -> str:
    if value not in TYPES:
        raise ValueError(f"one of {', '.join(TYPES)}")
    return str(value)


def _parse_timestamp(value: Any) -> str:
    if isinstance(value, str) and _VALID_TIMESTAMP.match(value):
        return value
    try:
        return parse_moment(value, "frontmatter")
    except UsageError:
        raise ValueError("not a date") from None


def _parse_word(value: Any) -> str:
    if not isinstance(value, str) or not _WORD.match(value):
        raise ValueError("must be one word")
    return value


def _parse_name(value: Any) -> str:
    """Return any one line of text; people may use the field for something else, so other values are ignored."""
    return value if isinstance(value, str) and value.isprintable() else ""


def _parse_tag_list(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        return parse_tags(replace_invalid(value) if isinstance(value, str) else [replace_invalid(item) for item in value])
    raise ValueError("must be a list")


def _parse_flag(value: Any) -> bool:
    if value not in ("true", "false"):
        raise ValueError("true or false")
    return bool(value == "true")


_PARSERS = {
    "id": _parse_word,
    "type": _parse_type,
    "name": _parse_name,
    "tags": _parse_tag_list,
    "created": _parse_timestamp,
    "updated": _parse_timestamp,
    "source": _parse_source,
    "trust": _parse_trust,
    "approved": _parse_approval,
    "valid_from": _parse_timestamp,
    "valid_to": _parse_timestamp,
    "pinned": _parse_flag,
    "restored": _parse_timestamp,
    "older": _parse_older,
    "relations": _parse_relations,
}
