"""What answers and briefings show of files: the lines that matched, a piece by its path, the overview of a tree."""

from __future__ import annotations

from holdfast.base.record import Record
from holdfast.errors import HoldfastError, NotFound, Template, UsageError, command
from holdfast.formats import frontmatter, versions
from holdfast.formats.note_file import replace_invalid
from holdfast.models import Hit, Scope, TextRecord
from holdfast.safety import validate
from holdfast.store.files import key_of_trashed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from holdfast.index.results import FoundPassage
    from holdfast.models import Answer, TrashedNote
    from holdfast.store.atomic import FileContent
    from holdfast.store.files import FileStore

WIKI_INDEX = "memory/index.md"  # the index page of the wiki scaffold
WIKI_LINKS = (  # the lines of its template
    "- [Memories](memories/): one page for each subject",
    "- [Data](data/): tables, lists and samples",
    "- [How this wiki is kept](system/definition.md): read it before you write here",
)
_OVERVIEWS = ("MEMORY.md", "index.md", WIKI_INDEX)
TOLD = (  # files of a tree that agents are told of unasked: in a briefing, and when they boot
    *_OVERVIEWS, "HEARTBEAT.md", "operator-inbox.jsonl", "memory/RUNTIME_REALITY.md", "memory/OPEN_LOOPS.md",
    "memory/CORE_MEMORY.md", "memory/GOALS.md",
)  # fmt: skip
_SNIPPET = 300
_ROWS_AROUND = 400  # lines beside some that are told, which tell whether those hold part of a secret
SEARCHED = "note,file"  # what a search for pieces looks at (F2); what was said in sessions only a recall finds


class Snippet(TextRecord):
    """Where something was found, and a taste of it."""

    _text_fields, _name_fields = ("snippet",), ("path",)
    path: str
    lines: tuple[int, int]
    score: float
    snippet: str
    quarantined: bool = False
    archived: bool = False
    weak: bool = False  # it shares something with the question, but probably does not answer it


class Snippets(list[Snippet]):
    """What a search found: a list that also says which mode ran and whether that is less than was asked for."""

    def __init__(
        self, results: Iterable[Snippet] = (), mode: str = "hybrid", degraded: bool = False, reason: str = "",
        disabled: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(results)
        self.mode, self.degraded, self.reason, self.disabled = mode, degraded, reason, disabled

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as `--json` prints it and HTTP answers it."""
        how = {"mode": self.mode, "degraded": self.degraded, "reason": self.reason, "disabled": self.disabled}
        return {"results": [one.as_dict() for one in self], **how}


class Piece(TextRecord):
    """Some lines of a file; empty text where there is no file, and `exists` says so."""

    _name_fields = ("path",)
    path: str
    start: int
    text: str
    exists: bool = True


def hit_of_file(store: FileStore, found: FoundPassage, content: FileContent | None = None) -> Hit | None:
    """The lines of a file that matched, as they stand there now."""
    try:
        content = content or store.tree(found.scope, 0).read(tuple(found.name.split("/")))
    except HoldfastError:
        return None
    if content is None:
        return None
    first, last = found.lines
    text = replace_invalid(content.data.decode("utf-8", "surrogateescape"))
    entry, rows = frontmatter.parse_file_header(found.name, text), text.split("\n")
    return Hit(
        "file", Scope.of_folder(found.scope), found.key, found.type, (), piece_of(rows, first, last),
        float(f"{found.score:.4g}"), f"{found.scope}/files/{found.name}:{first}-{last}", None, None, found.recorded, None,
        name=_withheld(entry.name), description=_withheld(entry.description),
    )  # fmt: skip


def _withheld(text: str) -> str | None:
    """The words without a secret; None where there are none."""
    return validate.redact_or_withhold(text)[0] if text else None


def piece_of(rows: list[str], first: int, last: int) -> str:
    """Some lines of a text, which know what stands around them."""
    before, after = rows[max(0, first - 1 - _ROWS_AROUND) : first - 1], rows[last : last + _ROWS_AROUND]
    text = "\n".join(rows[first - 1 : last])
    return validate.excerpt(text, "\n".join([*before, ""]), "\n".join(["", *after]) if after else "")


def hit_of_turn(store: FileStore, found: FoundPassage, content: FileContent | None = None) -> Hit | None:
    """A turn, as it stands in its session's file; its line may have been read already."""
    from holdfast.formats import transcript
    from holdfast.store.transcripts import Place

    transcript_file = store.transcript_files(found.scope, 0).transcript_file(found.name)
    first = found.lines[0]
    lines = transcript_file.lines(Place(found.offset or 0, first - 1), chunk=4096)
    for data in [content.data] if content else (line.data for line in lines):
        said = transcript.parse(data)
        if said is None or said.id != found.turn:
            return None
        return Hit(
            "turn", Scope.of_folder(found.scope), said.id or "", None, (), said.text, float(f"{found.score:.4g}"),
            f"{transcript_file.path}:{first}-{first}", None, None, found.recorded, found.source, found.key, found.speaker,
        )  # fmt: skip
    return None


def turn_trust(store: FileStore, citation: str, visible: tuple[str, ...]) -> tuple[str, str] | None:
    """What a turn is kept as that something was made from, and how far whoever said it can be trusted."""
    from holdfast.formats import transcript
    from holdfast.safety.trust import ROLES

    path, _, lines = citation.rpartition(":")
    scope, _, name = path.partition("/transcripts/")
    first = lines.partition("-")[0]
    if scope not in visible or not name or not first.isdecimal():
        return None
    imported = False
    for line in store.transcript_files(scope, 0).transcript_file(name).lines():
        if line.number == 1:
            header = transcript.parse_header(line.data)
            imported = header is None or header.imported
        elif line.number == int(first):
            said = transcript.parse(line.data)
            return (f"turn:{citation}", "import" if imported else ROLES[said.role]) if said else None
    return None


def snippets(answer: Answer) -> Snippets:
    """The hits of a recall as `search` shows them."""
    return Snippets([snippet(hit) for hit in answer.hits], answer.mode, answer.degraded, answer.reason, answer.disabled)


def snippet(hit: Hit) -> Snippet:
    """A hit as `memory_search` shows it."""
    path, _, lines = hit.citation.rpartition(":")
    first, _, last = lines.partition("-")
    text = validate.excerpt(hit.text[:_SNIPPET], *_beside(hit.text))
    return Snippet(path, (int(first), int(last)), hit.score, text, hit.quarantined, hit.archived, hit.weak)


def _beside(text: str) -> tuple[str, str]:
    """What stands before and behind a taste of a text."""
    before, after = (text.before, text.after) if isinstance(text, validate.Excerpt) else ("", "")
    return before, text[_SNIPPET:] + after


def read_piece(
    store: FileStore, path: str, start: int, lines: int | None, visible: tuple[str, ...],
    may: Callable[[str, list[str]], None] = lambda _path, _texts: None,
    used: Callable[[Scope, str, str, TrashedNote | None], object] = lambda _place, _key, _id, _archived: None,
) -> Piece:  # fmt: skip
    """Some lines of a note or file in one of the visible scopes, by the path that a citation shows; `may` refuses those that
    must not be told, and `used` hears which note was read. A note that was archived, or came back, since it was cited is found
    where it is now."""
    if not isinstance(start, int) or not isinstance(lines, int | None) or start < 1 or (lines is not None and lines < 1):
        raise UsageError(f"start {start!r} and lines {lines!r} must be whole numbers from 1", "Count lines from 1")
    parts, nothing = validate.path(path), Piece(path, start, "", exists=False)
    if not visible:
        return nothing
    depth = 1 if parts[:1] == ("global",) else 2
    scope, part, below = "/".join(parts[:depth]), parts[depth : depth + 1], parts[depth + 1 :]
    if scope not in visible or part not in (("notes",), ("archive",), ("files",)) or not below:
        if scope.split("/")[0] in ("global", "projects", "agents", "sessions") and len(parts) > 1:
            return nothing
        scope, part, below = next((one for one in visible if one.startswith("projects/")), "global"), ("files",), parts
    tree = store.tree(scope, 0)
    if part == ("files",) and tree.is_folder(below):
        return nothing
    if part == ("files",):
        content = tree.beside(part[0], below)
        if content is None:
            return nothing
        may("", [content.data.decode("utf-8", "replace")])
    else:
        place = Scope.of_folder(scope)
        key, lies, content = _note_file(store, place, part[0], below)
        if content is None:
            return nothing
        there = versions.parse_note(content.data, content.modified)
        may(f"{scope}/notes/{key}", [one.text for one in versions.list_versions(there)])
        used(place, key, there.header.id, lies)
    rows = replace_invalid(content.data.decode("utf-8", "surrogateescape")).split("\n")
    return Piece(path, start, piece_of(rows, start, len(rows) if lines is None else start - 1 + lines))


def _note_file(
    store: FileStore, place: Scope, part: str, below: tuple[str, ...]
) -> tuple[str, TrashedNote | None, FileContent | None]:
    """The note that a path means: its key, which archived note it is if it is one that can come back, and its file."""
    tree, name = store.tree(place.folder, 0), below[-1]
    key = key_of_trashed(name) if part == "archive" else name.removesuffix(".md")
    if not key:
        return "", None, None
    last = store.archived(place, [key]).get(key) if len(below) == 1 else None
    if part == "notes":
        content = tree.beside(part, below)
        if content is not None or last is None:
            return key, None, content
        return key, last, store.read_name(place.folder, last.part, last.name)
    content = tree.beside(part, below)
    if content is None:
        return key, None, store.read(place, key)
    return key, last if last and last.name == name else None, content


def missing(store: FileStore, places: list[Scope], key: str, notes: Callable[[], list[tuple[Any, ...]]]) -> NotFound:
    """What to say of a note that is not there: where it went, or which of those that are was meant."""
    import difflib

    for one in [one for place in places for one in store.list_trash(place, key)]:
        since = f"it is in the {one.part} since {one.time[:10]}"
        return NotFound(f"no note {key!r}: {since}", Template(command("restore {}", key), " brings it back"))
    near = difflib.get_close_matches(key, [row[2] for row in notes()], 1)
    listed = Template(command("list"), " shows what there is")
    return NotFound(f"no note {key!r}", f"Did you mean {near[0]!r}?" if near else listed)


class Overview(Record):
    """A page that lists what the tree of a scope holds: its path, its whole text, and how many lines that has."""

    path: str
    text: str
    lines: int


def overviews(store: FileStore, place: Scope, most: int = len(_OVERVIEWS)) -> list[Overview]:
    """Return the overview pages of the tree in the order MEMORY.md, index.md, memory/index.md.

    A page that is missing, blank, unreadable or an untouched template is left out.
    """
    if not store.has(place.folder, "files"):
        return []
    tree, found = store.tree(place.folder, 0), list[Overview]()
    for name in _OVERVIEWS:
        try:
            content = tree.read(tuple(name.split("/")))
        except HoldfastError:
            continue
        text = replace_invalid(content.data.decode("utf-8", "surrogateescape")) if content is not None else ""
        if text.strip() and not (name == WIKI_INDEX and _is_template(text)):
            found.append(Overview(f"files/{name}", text, text.rstrip("\r\n").count("\n") + 1))
            if len(found) == most:
                break
    return found


def _is_template(text: str) -> bool:
    """Whether a wiki index has only headings, comments and lines of the shipped template."""
    rows = [row.strip() for row in _without_comments(text).split("\n")]
    return all(not row or row.startswith("#") or row in WIKI_LINKS for row in rows)


def _without_comments(text: str) -> str:
    """Return the text without HTML comments. Plain string search: the cold path does not load `re`."""
    while (start := text.find("<!--")) >= 0:
        end = text.find("-->", start)
        text = text[:start] + (text[end + 3 :] if end >= 0 else "")
    return text
