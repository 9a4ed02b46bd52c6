"""A note as it stands in its file: frontmatter, text, history. Reading keeps every byte; writing changes only what is ours.

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

import re

from holdfast.dates import DAY, STAMP
from holdfast.note import ORIGINS, TYPES, Record, Source, Version, tags_of
from holdfast.pattern import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HISTORY = "<!-- holdfast:history -->"
_WHEN = rf"{DAY}(?:T\d\d:\d\d:\d\dZ)?"
_FENCE = pattern(r"(\ufeff?---[ \t]*\r?\n)((?:.*\n)*?)(---[ \t]*(?:\r?\n|\Z))")
_FIELD = pattern(r"([A-Za-z_][A-Za-z0-9_-]*)[ \t]*:")
_HISTORY = pattern(r"^<!-- holdfast:history -->[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_SECTION = pattern(rf"^## ({_WHEN}) to ({_WHEN})[ \t]*\r?(?:\n|\Z)(?:<!-- holdfast:version (\{{.*\}}) -->\r?(?:\n|\Z))?", re.MULTILINE)
_MARKER = pattern(rf"^(?=\\*(?:<!-- holdfast:|## {_WHEN} to {DAY}))", re.MULTILINE)
_ESCAPED = pattern(rf"^\\(?=\\*(?:<!-- holdfast:|## {_WHEN} to {DAY}))", re.MULTILINE)
_PLAIN = pattern(r"[\w./+](?:[\w./@+ -]*[\w./@+-])?\Z")
_ITEM = pattern(r'\s*("(?:[^"\\]|\\.)*"|[^\s"\'\[\]{},:#&*!|>%@`][^"\'\[\]{},:#]*?)\s*(?:,|\Z)')
_PAIR = pattern(r'\s*([a-z_]+): ("(?:[^"\\]|\\.)*"|\[[^\[\]]*\]|[^\s"\'\[\]{},][^"\'\[\]{},]*?)\s*(?:,|\Z)')
_SIMPLE = pattern(r"[^\s\"'\[\]{}#&*!|>%@`,?-][^\"'\[\]{}#\n\r]*\Z")
_STAMP = pattern(STAMP + r"\Z")


class Page(Record):
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
    problems: tuple[str, ...] = ()


def parse(text: str) -> Page:
    """Never fails: what is not frontmatter or history is text."""
    opening = closing = ""
    fields: tuple[tuple[str, str], ...] = ()
    rest = text
    if text.startswith(("---", "\ufeff---")) and (fence := _FENCE.match(text)):
        opening, inside, closing = fence.groups()
        fields = _fields(inside)
        rest = text[fence.end() :]
    mark = _HISTORY.search(rest) if HISTORY in rest else None
    cut = mark.start() if mark else len(rest)
    return Page(opening, fields, closing, rest[:cut], rest[cut:])


def render(page: Page) -> str:
    """The exact text of the file."""
    return f"{page.opening}{''.join([raw for _, raw in page.fields])}{page.closing}{page.body}{page.past}"


def text_of(page: Page) -> str:
    """The current text, without the newline we end it with and the blank line before history."""
    body = page.body
    end = "\n\n" if page.past else "\n"
    body = body.removesuffix(end) if body.endswith(end) else body.removesuffix("\n")
    return _unescaped(body)


def first_line(page: Page) -> int:
    """The line of the file on which the current text starts."""
    return 1 + page.opening.count("\n") + sum([raw.count("\n") for _, raw in page.fields]) + page.closing.count("\n")


def lines_of(page: Page) -> tuple[int, int]:
    """Where the current text stands in the file."""
    first = first_line(page)
    return first, first + text_of(page).count("\n")


def text_and_lines(text: str) -> tuple[str, tuple[int, int]]:
    """The current text of a file and where it stands, without reading the rest."""
    leaf = parse(text)
    body, first = text_of(leaf), first_line(leaf)
    return clean(body), (first, first + body.count("\n"))


def clean(text: str) -> str:
    """Bytes that are not UTF-8 are kept in the file and shown as a mark."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def head_of(page: Page) -> Head:
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
    return Head(**values, problems=tuple(problems))


def past_of(page: Page, most: int | None = None) -> list[Version]:
    """The older versions (or the `most` newest of them), newest first; each ends where its heading says."""
    versions: list[Version] = []
    marks = _SECTION.finditer(page.past)
    mark = next(marks, None)
    while mark and (most is None or len(versions) < most):
        after = next(marks, None)
        raw = page.past[mark.end() : after.start() if after else len(page.past)]
        ending = "\n\n" if after else "\n"
        text = raw.removesuffix(ending) if raw.endswith(ending) else raw.removesuffix("\n")
        versions.append(_version(mark, _unescaped(text)))
        mark = after
    return versions


def past_count(page: Page) -> int:
    """How many older versions there are."""
    return len(_SECTION.findall(page.past)) if page.past else 0


def past_lines(page: Page) -> list[tuple[int, int]]:
    """Where the text of each older version stands in the file, in the order of `past_of`."""
    base = render(page.replace(past="")).count("\n") + 1
    places = []
    for mark, version in zip(_SECTION.finditer(page.past), past_of(page), strict=True):
        first = base + page.past.count("\n", 0, mark.end())
        places.append((first, first + version.text.count("\n")))
    return places


def new(head: Head, text: str) -> Page:
    """A note nobody has written before."""
    return Page("---\n", _written(head, ()), "---\n", _escaped(text) + "\n", "")


def succeed(page: Page, old: Version, head: Head, text: str) -> Page:
    """The page with `text` as its current version and `old` first in its history."""
    meta = _meta(old)
    section = f"## {old.valid_from} to {old.closed}\n{meta}{_escaped(old.text)}\n"
    mark = _HISTORY.match(page.past)
    if mark:
        past = f"{HISTORY}\n{section}\n{page.past[mark.end() :]}"
    else:
        past = f"{HISTORY}\n{section}"
    return Page(page.opening or "---\n", _written(head, page.fields), page.closing or "---\n", _escaped(text) + "\n\n", past)


def _written(head: Head, fields: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Our fields as `head` says, in their places; everybody else's as they are."""
    source = {name: value for name in Source._fields if (value := getattr(head.source, name))}
    ours = {
        "id": head.id,
        "type": head.type,
        "tags": _flow(head.tags) if head.tags else "",
        "created": head.created,
        "updated": head.updated,
        "source": _flow(source),
        "valid_from": head.valid_from if head.valid_from != head.updated else "",
        "valid_to": head.valid_to or "",
        "pinned": "true" if head.pinned else "",
    }
    if not fields:
        return tuple([(name, f"{name}: {value}\n") for name, value in ours.items() if value])
    kept: list[tuple[str, str]] = []
    for name, raw in fields:
        if name not in ours:
            kept.append((name, raw))
            continue
        value, beside = ours.pop(name), _beside(name, raw)
        kept.extend([(name, f"{name}: {value}\n{beside}")] if value else [("", beside)] if beside else [])
    kept.extend((name, f"{name}: {value}\n") for name, value in ours.items() if value)
    return tuple(kept)


def _beside(name: str, raw: str) -> str:
    """What outlives a field's new value: a person's comments below it, and a value we could not read, as a comment."""
    try:
        _READERS[name](_value(name, raw))
    except ValueError:
        return "".join([f"# {line}\n" for line in raw.split("\n")[:-1]])
    lines = raw.split("\n")[1:-1]
    return "".join([f"{line}\n" for line in lines if not line.strip() or line.lstrip().startswith("#")])


def _fields(inside: str) -> tuple[tuple[str, str], ...]:
    fields: list[list[str]] = []
    for line in inside.split("\n")[:-1]:
        match = _FIELD.match(line)
        if match:
            fields.append([match.group(1), line + "\n"])
        elif fields:
            fields[-1][1] += line + "\n"
        else:
            fields.append(["", line + "\n"])
    return tuple([(name, raw) for name, raw in fields])


def _value(name: str, raw: str) -> Any:
    """A field's value: quickly when it is written as we write, through YAML when a person wrote more."""
    text = raw[raw.index(":") + 1 :].strip()
    if _SIMPLE.match(text) and ": " not in text and not text.endswith(":"):
        return text
    if text.startswith("[") and (items := _items(text)) is not None:
        return items
    if text.startswith("{") and (pairs := _pairs(text)) is not None:
        return pairs
    import yaml

    if len(raw) > 16 * 1024:
        raise ValueError("too long")
    try:
        return yaml.load(raw, Loader=yaml.BaseLoader)[name]  # BaseLoader: text, lists and maps only
    except (yaml.YAMLError, KeyError, TypeError, ValueError, RecursionError):
        raise ValueError("not valid YAML") from None


def _items(text: str) -> list[str] | None:
    inside = text[1:-1]
    if not text.endswith("]"):
        return None
    items, place = [], 0
    while place < len(inside):
        match = _ITEM.match(inside, place)
        if not match:
            return None
        items.append(_unquoted(match.group(1)))
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
        value = match.group(2)
        pairs[match.group(1)] = _items(value) if value.startswith("[") else _unquoted(value)
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

    return json.dumps(text, ensure_ascii=False).replace("<", "\\u003c").replace(">", "\\u003e")


def _unquoted(text: str) -> str:
    if not text.startswith('"'):
        return text
    import json

    return str(json.loads(text))


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
    meta.update({name: value for name in Source._fields if (value := getattr(version.source, name))})
    return f"<!-- holdfast:version {_flow(meta)} -->\n"


def _version(mark: re.Match[str], text: str) -> Version:
    start, end, raw = mark.groups()
    meta = (_pairs(raw) if raw else None) or {}
    valid_from = _moment(start)
    return Version(
        text=text,
        type=str(meta["type"]) if meta.get("type") in TYPES else "project",
        tags=tags_of(meta.get("tags")),
        source=_source(meta),
        recorded=_moment(meta.get("recorded") or valid_from),
        valid_from=valid_from,
        valid_to=meta.get("valid_to"),
        closed=_moment(end),
    )


def _moment(text: str) -> str:
    return text if len(text) != 10 else text + "T00:00:00Z"


def _escaped(text: str) -> str:
    return _MARKER.sub(r"\\", text) if "holdfast:" in text or "## " in text else text


def _unescaped(text: str) -> str:
    return _ESCAPED.sub("", text) if "\\" in text else text


def _source(value: Any) -> Source:
    if not isinstance(value, dict):
        raise ValueError("must be {origin: ...}")
    given = {name: item for name in Source._fields if isinstance(item := value.get(name), str) and item.isprintable()}
    if given.get("origin", "user") not in ORIGINS:
        given["origin"] = "web"  # an origin we do not know is trusted least
    return Source(**given)


def _a_type(value: Any) -> str:
    if value not in TYPES:
        raise ValueError(f"one of {', '.join(TYPES)}")
    return str(value)


def _a_stamp(value: Any) -> str:
    from holdfast.dates import moment
    from holdfast.errors import UsageError

    if isinstance(value, str) and _STAMP.match(value):
        return value
    try:
        return moment(value, "frontmatter")
    except UsageError:
        raise ValueError("not a date") from None


def _a_word(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be one word")
    return value


def _some_tags(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        return tags_of(value)
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
    "valid_from": _a_stamp,
    "valid_to": _a_stamp,
    "pinned": _a_flag,
}
