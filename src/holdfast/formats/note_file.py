"""A note as it stands in its file: frontmatter, text, history. Reading keeps every byte; writing changes what is ours.

    ---
    id: 01K9Z6V0M4Q2ABCD          fields: one line each as we write them; whatever else a person put there is kept
    type: feedback
    ---
    Always use pytest.            the text

    <!-- holdfast:history -->     older versions, newest first
    ## 2026-04-16T10:30:00Z to 2026-05-02T09:00:00Z
    <!-- holdfast:version {origin: agent} -->
    Use unittest.

A line of stored text that looks like one of our own markers gets a backslash in the file and loses it when read, so no
text can forge history. `render(parse(text)) == text` for every text.
"""

from __future__ import annotations

from holdfast.base.dates import DAY, STAMP, moment
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

    T = TypeVar("T")

HISTORY = "<!-- holdfast:history -->"
_WHEN = rf"{DAY}(?:T\d\d:\d\d:\d\dZ)?"
_FENCE = pattern(r"(\ufeff?---[ \t]*\r?\n)((?:.*\n)*?)(---[ \t]*(?:\r?\n|\Z))")
_FIELD = pattern(r"([A-Za-z_][A-Za-z0-9_-]*)[ \t]*:|[^\s#:-].*?:(?:\s|\Z)")
_HISTORY = pattern(r"(?m)^<!-- holdfast:history -->[ \t]*(?:\r?\n|\Z)")
_SECTION = pattern(rf"(?ma)^## ({_WHEN}) to ({_WHEN})[ \t]*\r?(?:\n|\Z)(?:<!-- holdfast:version (\{{.*\}}) -->\r?(?:\n|\Z))?")
_MARKER = pattern(rf"(?ma)^(?=\\*(?:<!-- holdfast:|## {_WHEN} to {DAY}))")
_ESCAPED = pattern(rf"(?ma)^\\(?=\\*(?:<!-- holdfast:|## {_WHEN} to {DAY}))")
_QUOTED = r'"(?:[^"\\]|\\.)*+"'
_CHAR = r"(?:[^\s\"'\[\]{},#:]|:(?![\s,]|\Z))"
_WORDS = rf"(?![&*!|>%@`?-]){_CHAR}++(?:[ \t]++{_CHAR}++)*+"
_PLAIN = pattern(r"[\w./+](?:[\w./@+ -]*[\w./@+-])?\Z")
_ITEM = pattern(rf"\s*+({_QUOTED}|{_WORDS})\s*+(?:,|\Z)")
_PAIR = pattern(rf"\s*+([a-z_]++): ({_QUOTED}|\[(?:{_QUOTED}|[^\"\[\]])*+\]|{_WORDS})\s*+(?:,|\Z)")
_SIMPLE = pattern(r"[^\s\"'\[\]{}#&*!|>%@`,?-][^\"'\[\]{}#\n\r]*\Z")
_STAMP = pattern(rf"(?a){STAMP}\Z")
_REAL = pattern(r"(?a)(?!0000)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ\Z")
_ID = pattern(r"[\w.-]{1,64}\Z")
_ODD = pattern("[<>\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_WHO = ("origin", "agent", "client", "session")


class NoteFile(Record):
    """A file in pieces that join to its exact text."""

    opening: str
    fields: tuple[tuple[str, str], ...]
    closing: str
    body: str
    past: str


class Head(Record):
    """What the frontmatter says, as far as we understand it; `problems` says what we do not."""

    id: str = ""
    type: str = "project"
    tags: tuple[str, ...] = ()
    created: str = ""
    updated: str = ""
    source: Source = Source()
    valid_from: str = ""
    valid_to: str | None = None
    pinned: bool = False
    restored: str = ""  # from the archive: its time starts again
    problems: tuple[str, ...] = ()
    approved: tuple[str, str] | None = None  # when a person did, and the digest of the text they saw

    @property
    def trust(self) -> str:
        return self.source.trust or ""


def parse(text: str) -> NoteFile:
    """Never fails: what is not frontmatter or history is text."""
    opening, inside, closing, rest = _fence(text)
    return NoteFile(opening, _fields(inside), closing, *_history_apart(rest))


def _history_apart(rest: str) -> tuple[str, str]:
    """The current text, and what stands behind it."""
    mark = _HISTORY.search(rest) if HISTORY in rest else None
    cut = mark.start() if mark else len(rest)
    return rest[:cut], rest[cut:]


def _fence(text: str) -> tuple[str, str, str, str]:
    """The frontmatter's opening line, fields and closing line, and the text after them; at once if it is as we write it."""
    if not text.startswith(("---", "\ufeff---")):
        return "", "", "", text
    end = text.find("\n---", 3) + 1
    if end and text.startswith("---\n") and text[end + 3 : end + 4] == "\n":
        return "---\n", text[4:end], "---\n", text[end + 4 :]
    fence = _FENCE.match(text)
    return (fence[1], fence[2], fence[3], text[fence.end() :]) if fence else ("", "", "", text)


def render(page: NoteFile) -> str:
    """The exact text of the file."""
    return f"{above(page)}{page.body}{page.past}"


def above(page: NoteFile) -> str:
    """The frontmatter: on the line behind it the current text starts."""
    return f"{page.opening}{''.join([raw for _, raw in page.fields])}{page.closing}"


def text_of(page: NoteFile) -> str:
    """The current text, without the newline we end it with and the blank line before history."""
    return _unescaped(_ended(page.body, _newline(page), bool(page.past)))


def text_and_lines(text: str) -> tuple[str, tuple[int, int]]:
    """The current text of a file and where it stands, without reading the rest."""
    opening, inside, closing, rest = _fence(text)
    parsed = NoteFile(opening, (("", inside),), closing, *_history_apart(rest))
    body, first = text_of(parsed), 1 + above(parsed).count("\n")
    return clean(body), (first, first + body.count("\n"))


def clean(text: str) -> str:
    """Bytes that are not UTF-8 are kept in the file and shown as a mark."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def head_of(page: NoteFile) -> Head:
    """What the fields say. A value we cannot read counts as absent and is named in `problems`."""
    values: dict[str, Any] = {}
    problems: list[str] = []
    for name, raw in page.fields:
        reader = _READERS.get(name)
        if reader is None or name in values:
            continue
        try:
            values[name] = reader(_value(name, raw))
        except ValueError as error:
            problems.append(f"{name}: {error}")
    if trust := values.pop("trust", None):
        values["source"] = values.get("source", Source()).replace(trust=trust)
    return Head(**values, problems=tuple(problems))


def past_of(page: NoteFile, most: int | None = None) -> list[Version]:
    """The older versions (or the `most` newest of them), newest first; each ends where its heading says."""
    versions: list[Version] = []
    marks = _SECTION.finditer(page.past)
    mark = next(marks, None)
    newline = _newline(page)
    while mark and (most is None or len(versions) < most):
        after = next(marks, None)
        raw = page.past[mark.end() : after.start() if after else len(page.past)]
        versions.append(_version(mark, _unescaped(_ended(raw, newline, after is not None))))
        mark = after
    return versions


def past_count(page: NoteFile) -> int:
    """How many older versions there are."""
    return len(_SECTION.findall(page.past)) if page.past else 0


def past_lines(page: NoteFile) -> list[tuple[int, int]]:
    """Where the text of each older version stands in the file, in the order of `past_of`."""
    base = render(page.replace(past="")).count("\n") + 1
    places = []
    for mark, version in zip(_SECTION.finditer(page.past), past_of(page), strict=True):
        first = base + page.past.count("\n", 0, mark.end())
        places.append((first, first + version.text.count("\n")))
    return places


def with_head(page: NoteFile, head: Head) -> NoteFile:
    """The same page under another head."""
    newline = _newline(page)
    opening, closing = page.opening or f"---{newline}", _whole(page.closing or "---", newline)
    return page.replace(opening=opening, fields=_written(head, page.fields, newline), closing=closing)


def new(head: Head, text: str) -> NoteFile:
    """A note nobody has written before."""
    return NoteFile("---\n", _written(head, (), "\n"), "---\n", _escaped(text) + "\n", "")


def succeed(page: NoteFile, old: Version, head: Head, text: str) -> NoteFile:
    """The page with `text` as its current version and `old` first in its history; lines end as they did."""
    newline = _newline(page)
    section = f"## {old.valid_from} to {old.closed}{newline}{_meta(old)}{newline}{_escaped(old.text)}{newline}"
    first = _SECTION.search(page.past)
    if first:
        past = f"{page.past[: first.start()]}{section}{newline}{page.past[first.start() :]}"
    else:
        past = _whole(page.past or HISTORY, newline) + section
    opening, closing = page.opening or f"---{newline}", _whole(page.closing or "---", newline)
    return NoteFile(opening, _written(head, page.fields, newline), closing, _escaped(text) + newline * 2, past)


def _newline(page: NoteFile) -> str:
    """How lines end in this file: as the first one does; without frontmatter, as the last one does."""
    return "\r\n" if (page.opening or page.body).endswith("\r\n") else "\n"


def _ended(raw: str, newline: str, blank: bool) -> str:
    """A text without the newline that ends it and the blank line that follows, as far as they are there."""
    if blank and raw.endswith(newline * 2):
        return raw[: -2 * len(newline)]
    return raw.removesuffix(newline if raw.endswith(newline) else "\n")


def _whole(line: str, newline: str) -> str:
    return line if line.endswith("\n") else line + newline


def _written(head: Head, fields: tuple[tuple[str, str], ...], newline: str) -> tuple[tuple[str, str], ...]:
    """Our fields as `head` says, in their places; everybody else's as they are, and ours where they say so already."""
    ours = {
        "id": head.id,
        "type": head.type,
        "tags": _flow(head.tags) if head.tags else "",
        "created": head.created,
        "updated": head.updated,
        "source": _flow(_who(head.source)),
        "trust": head.trust,
        "approved": _flow(dict(zip(("time", "text"), head.approved, strict=True))) if head.approved else "",
        "valid_from": head.valid_from if head.valid_from != head.updated else "",
        "valid_to": head.valid_to or "",
        "pinned": "true" if head.pinned else "",
        "restored": head.restored,
    }
    kept: list[tuple[str, str]] = []
    for name, raw in fields:
        if name not in _READERS:
            kept.append((name, raw))
        elif name not in ours:  # said twice: the first one counts
            kept.append(("", frontmatter.comment(raw)))
        else:
            value = ours.pop(name)
            meant = head.source.replace(trust=None) if name == "source" else getattr(head, name)
            kept.extend(_field(name, raw, value, meant, newline))
    return (*kept, *[(name, f"{name}: {value}{newline}") for name, value in ours.items() if value])


def _who(source: Source) -> dict[str, object]:
    """Who said it and what it was made from, as far as there is anything to say."""
    said: dict[str, object] = {name: value for name in _WHO if (value := getattr(source, name))}
    return {**said, "from": source.made_from} if source.made_from else said


def _field(name: str, raw: str, value: str, meant: object, newline: str) -> list[tuple[str, str]]:
    """A field with its new value; below it what outlives the old: a person's comments, and what we could not read."""
    if value and raw == f"{name}: {value}{newline}" and name != "source":  # of a source we may read less than we write
        return [(name, raw)]
    try:
        was = _value(name, raw)
        read: Any = _READERS[name](was)
    except ValueError:
        beside = frontmatter.comment(raw)
    else:
        if read == meant:
            return [(name, raw)]
        beside = frontmatter.comment(raw) if name == "source" and not _all_read(read, was) else _beside(raw)
    return [(name, f"{name}: {value}{newline}{beside}")] if value else [("", beside)] if beside else []


def _all_read(source: Source, value: dict[str, object]) -> bool:
    return value == {name: list(said) if isinstance(said, tuple) else said for name, said in _who(source).items()}


def _beside(raw: str) -> str:
    """What a person said beside a value; mostly nothing."""
    return frontmatter.comments(raw) if "#" in raw or raw.count("\n") > 1 else ""


def _fields(inside: str) -> tuple[tuple[str, str], ...]:
    fields: list[tuple[str, list[str]]] = []
    for line in inside.split("\n")[:-1]:
        name = line.partition(":")[0]
        if name.isidentifier() and name.isascii() and name != line:
            fields.append((name, []))
        elif (match := _FIELD.match(line)) or not fields:
            fields.append((match[1] or "" if match else "", []))
        fields[-1][1].append(line + "\n")
    return tuple([(name, "".join(lines)) for name, lines in fields])


def _value(name: str, raw: str) -> Any:
    """A field's value: quickly when it is written as we write, through YAML when a person wrote more."""
    raw = raw if raw.count("\n") == 1 else frontmatter.above_comments(raw)
    text = raw[raw.index(":") + 1 :].strip()
    if _SIMPLE.match(text) and ": " not in text and not text.endswith(":"):
        return text
    if text.startswith("[") and (items := _items(text)) is not None:
        return items
    if text.startswith("{") and (pairs := _pairs(text)) is not None:
        return pairs
    return frontmatter.value(name, raw)


def plain_value(name: str, raw: str) -> str | None:
    """Return the value of a field that is plain words on one line; None for any other YAML."""
    text = raw.removeprefix(f"{name}:")
    if not name or text == raw or raw.count("\n") != 1 or not text.startswith((" ", "\t", "\n", "\r")):
        return None
    text = text.strip()
    return text if not text or (_SIMPLE.match(text) and ": " not in text and not text.endswith(":")) else None


def _items(text: str) -> list[str] | None:
    inside = text[1:-1]
    if not text.endswith("]"):
        return None
    items, place = [], 0
    while place < len(inside):
        match = _ITEM.match(inside, place)
        if not match:
            return None
        item = _unquoted(match.group(1))
        if item is None:
            return None
        items.append(item)
        place = match.end()
    return items


def _pairs(text: str) -> dict[str, Any] | None:
    inside = text[1:-1]
    if not text.endswith("}"):
        return None
    pairs: dict[str, Any] = {}
    place = 0
    while place < len(inside):
        match = _PAIR.match(inside, place)
        if not match:
            return None
        value = _items(match.group(2)) if match.group(2).startswith("[") else _unquoted(match.group(2))
        if value is None:
            return None
        pairs[match.group(1)] = value
        place = match.end()
    return pairs


def _flow(value: object) -> str:
    """A value as YAML on one line; anything but plain words is quoted."""
    if isinstance(value, dict):
        return "{" + ", ".join([f"{name}: {_flow(item)}" for name, item in value.items()]) + "}"
    if isinstance(value, tuple):
        return "[" + ", ".join([_flow(item) for item in value]) + "]"
    text = str(value)
    if _PLAIN.match(text) or _STAMP.match(text):
        return text
    import json

    return _ODD.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))


def _unquoted(text: str) -> str | None:
    if not text.startswith('"'):
        return text
    import json

    try:
        return str(json.loads(text))
    except ValueError:  # YAML knows more escapes
        return None


def _meta(version: Version) -> str:
    """What of a version its heading does not say."""
    meta: dict[str, object] = {}
    if version.recorded != version.valid_from:
        meta["recorded"] = version.recorded
    if version.valid_to:
        meta["valid_to"] = version.valid_to
    if version.type != "project":
        meta["type"] = version.type
    if version.tags:
        meta["tags"] = version.tags
    meta |= _who(version.source)
    if version.source.trust:
        meta["trust"] = version.source.trust
    return f"<!-- holdfast:version {_flow(meta)} -->"


def _version(mark: re.Match[str], text: str) -> Version:
    start, end, raw = mark.groups()
    try:
        meta = _value("version", f"version: {raw}\n") if raw else {}
    except ValueError:
        meta = {}
    valid_from = _moment(start)
    return Version(
        text=text,
        type=_said(meta, "type", _a_type, "project"),
        tags=_said(meta, "tags", _some_tags, ()),
        source=_source(meta).replace(trust=_a_trust(meta["trust"]) if meta.get("trust") else None),
        recorded=_said(meta, "recorded", _a_stamp, valid_from),
        valid_from=valid_from,
        valid_to=_said(meta, "valid_to", _a_stamp, None),
        closed=_moment(end),
    )


def _said(meta: dict[str, Any], name: str, reader: Callable[[Any], T], otherwise: T) -> T:
    """What a version's line says, unless somebody made it unreadable."""
    try:
        return reader(meta[name]) if name in meta else otherwise
    except ValueError:
        return otherwise


def _moment(text: str) -> str:
    return text if len(text) != 10 else text + "T00:00:00Z"


def _escaped(text: str) -> str:
    return _MARKER.sub(r"\\", text) if "holdfast:" in text or "## " in text else text


def _unescaped(text: str) -> str:
    return _ESCAPED.sub("", text) if "\\" in text else text


def _source(value: Any) -> Source:
    if not isinstance(value, dict):
        raise ValueError("must be {origin: ...}")
    given = [said if isinstance(said := value.get(name), str) and said.isprintable() else None for name in _WHO]
    origin, agent, client, session = given
    if (origin := ORIGINS[0] if origin is None else origin) not in ORIGINS:
        origin = "web"  # an origin we do not know is trusted least
    came = value.get("from", ())
    made_from = [one for one in ([came] if isinstance(came, str) else came) if isinstance(one, str) and one.isprintable()]
    return Source(origin, agent, client, session, tuple([one for one in made_from if one]))


def _a_trust(value: Any) -> str:
    return value if isinstance(value, str) and value in ORIGINS else "web"  # the same


def _approval(value: Any) -> tuple[str, str]:
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        raise ValueError("must be {time: ..., text: ...}")
    return _a_stamp(value.get("time")), _a_word(value["text"])


def _a_type(value: Any) -> str:
    if value not in TYPES:
        raise ValueError(f"one of {', '.join(TYPES)}")
    return str(value)


def _a_stamp(value: Any) -> str:
    if isinstance(value, str) and _REAL.match(value):
        return value
    try:
        return moment(value, "frontmatter")
    except UsageError:
        raise ValueError("not a date") from None


def _a_word(value: Any) -> str:
    if not isinstance(value, str) or not _ID.match(value):
        raise ValueError("must be one word")
    return value


def _some_tags(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        return parse_tags(clean(value) if isinstance(value, str) else [clean(item) for item in value])
    raise ValueError("must be a list")


def _a_flag(value: Any) -> bool:
    if value not in ("true", "false"):
        raise ValueError("true or false")
    return bool(value == "true")


_READERS = {
    "id": _a_word,
    "type": _a_type,
    "tags": _some_tags,
    "created": _a_stamp,
    "updated": _a_stamp,
    "source": _source,
    "trust": _a_trust,
    "approved": _approval,
    "valid_from": _a_stamp,
    "valid_to": _a_stamp,
    "pinned": _a_flag,
    "restored": _a_stamp,
}
