"""Read notes and files: a note by its key, lines by a path, what a hit shows of a file, and the overview pages of a tree."""

from __future__ import annotations

from holdfast.base import dates
from holdfast.base.ids import KEY_PATTERN
from holdfast.base.record import Record
from holdfast.context import usage
from holdfast.errors import Disabled, HoldfastError, NotFound, Template, UsageError, command
from holdfast.formats import frontmatter, history_file, versions
from holdfast.formats.history_file import is_history_name
from holdfast.formats.note_file import replace_invalid
from holdfast.models import TYPES, Hit, Scope, Source, TextRecord, parse_tags
from holdfast.safety import validate
from holdfast.store import note_history
from holdfast.store.layout import parse_trashed_key
from holdfast.verbs.recall import check_limit, round_score

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from holdfast.context.caller import Context, Tags, When
    from holdfast.formats.versions import ParsedNote
    from holdfast.index.results import FoundPassage
    from holdfast.models import Answer, Note, TrashedNote, Version
    from holdfast.store.interface import FileContent, Store

    _Read = tuple[FileContent | None, Source | None]  # a file, and who wrote it

WIKI_INDEX = "memory/index.md"  # the index page of the wiki scaffold
WIKI_LINKS = (  # the lines of its template
    "- [Memories](memories/): one page for each subject",
    "- [Data](data/): tables, lists and samples",
    "- [How this wiki is kept](system/definition.md): read it before you write here",
)
_OVERVIEWS = ("MEMORY.md", "index.md", WIKI_INDEX)
TOLD = (  # files of a tree that agents are shown without asking: in a briefing, and when they boot
    *_OVERVIEWS, "HEARTBEAT.md", "operator-inbox.jsonl", "memory/RUNTIME_REALITY.md", "memory/OPEN_LOOPS.md",
    "memory/CORE_MEMORY.md", "memory/GOALS.md",
)  # fmt: skip
_SNIPPET = 300  # characters
_ROWS_AROUND = 400  # lines before and after a piece, which show whether the piece holds part of a secret
_SUGGESTIONS = 5000  # notes that a key may have been meant for
SEARCHED = "note,file"  # the kinds that `search` finds; only `recall` finds turns


class Snippet(TextRecord):
    """The location of a search result, and an excerpt."""

    _text_fields, _name_fields = ("snippet",), ("path",)
    path: str
    lines: tuple[int, int]
    score: float
    snippet: str
    quarantined: bool = False
    archived: bool = False
    weak: bool = False  # it shares something with the question, but probably does not answer it


class Snippets(list[Snippet]):
    """The results of a search: a list that also says which mode ran and whether the answer is degraded."""

    def __init__(
        self, results: Iterable[Snippet] = (), mode: str = "hybrid", degraded: bool = False, reason: str = "",
        disabled: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(results)
        self.mode, self.degraded, self.reason, self.disabled = mode, degraded, reason, disabled

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as `--json` prints it and HTTP answers it."""
        how = {"mode": self.mode, "degraded": self.degraded, "reason": self.reason, "disabled": self.disabled}
        return {"results": [one.as_dict() for one in self], **how}


class Piece(TextRecord):
    """Some lines of a file; if there is no file, the text is empty and `exists` is false."""

    _name_fields = ("path",)
    path: str
    start: int
    text: str
    exists: bool = True
    source: Source | None = None  # who wrote the file, or the current version of the note; None where that is not known


def hit_of_file(found: FoundPassage, content: FileContent) -> Hit:
    """Return the current lines of a file that matched, with the writer from the ledger."""
    first, last = found.lines
    text = replace_invalid(content.data.decode("utf-8", "surrogateescape"))
    entry, rows = frontmatter.parse_file_header(found.name, text), text.split("\n")
    return Hit(
        kind="file",
        scope=Scope.of_folder(found.scope),
        key=found.key,
        type=found.type,
        tags=(),
        text=piece_of(rows, first, last),
        score=round_score(found.score),
        citation=f"{found.scope}/files/{found.name}:{first}-{last}",
        valid_from=None,
        valid_to=None,
        updated=found.recorded,
        source=None,
        name=_without_secret(entry.name),
        description=_without_secret(entry.description),
    )


def _without_secret(text: str) -> str | None:
    """Return a text without secrets; None for an empty text."""
    return validate.redact_or_withhold(text)[0] if text else None


def piece_of(rows: list[str], first: int, last: int) -> str:
    """Return some lines of a text, with the lines around them attached for the check for secrets."""
    before, after = rows[max(0, first - 1 - _ROWS_AROUND) : first - 1], rows[last : last + _ROWS_AROUND]
    return validate.make_excerpt(
        "\n".join(rows[first - 1 : last]), "\n".join([*before, ""]), "\n".join(["", *after]) if after else ""
    )


def hit_of_turn(store: Store, found: FoundPassage, content: FileContent | None = None) -> Hit | None:
    """Return a turn as it is in its transcript; `content` is its line, if that was read already."""
    from holdfast.formats import transcript
    from holdfast.store.interface import Position

    transcript_file = store.transcripts(found.scope, 0).open(found.name)
    first = found.lines[0]
    lines = transcript_file.read_lines(Position(found.offset or 0, first - 1), chunk=4096)
    for data in [content.data] if content else (line.data for line in lines):
        turn = transcript.parse_line(data)
        if turn is None or turn.id != found.turn:
            return None
        return Hit(
            kind="turn",
            scope=Scope.of_folder(found.scope),
            key=turn.id or "",
            type=None,
            tags=(),
            text=turn.text,
            score=round_score(found.score),
            citation=f"{transcript_file.path}:{first}-{first}",
            valid_from=None,
            valid_to=None,
            updated=found.recorded,
            source=found.source,
            session=found.key,
            speaker=found.speaker,
        )
    return None


def snippets(answer: Answer) -> Snippets:
    """Return the hits of a recall as `search` shows them."""
    return Snippets([snippet(hit) for hit in answer.hits], answer.mode, answer.degraded, answer.reason, answer.disabled)


def snippet(hit: Hit) -> Snippet:
    """Return a hit as `memory_search` shows it."""
    path, _, lines = hit.citation.rpartition(":")
    first, _, last = lines.partition("-")
    text = validate.make_excerpt(hit.text[:_SNIPPET], *_beside(hit.text))
    return Snippet(
        path=path,
        lines=(int(first), int(last)),
        score=hit.score,
        snippet=text,
        quarantined=hit.quarantined,
        archived=hit.archived,
        weak=hit.weak,
    )


def _beside(text: str) -> tuple[str, str]:
    """Return the text before and after a snippet."""
    before, after = (text.before, text.after) if isinstance(text, validate.Excerpt) else ("", "")
    return before, text[_SNIPPET:] + after


# --- notes by key -----------------------------------------------------------------------------------------------------


class LocatedNote(Record):
    """A note, its scope, and where it is archived; `archived` is None for a note that is not."""

    scope: Scope
    parsed: ParsedNote
    archived: TrashedNote | None


def find_note(context: Context, key: str, kind: str | None) -> LocatedNote:
    """Return the note of the nearest visible scope with this key; an archived one if no scope has another.

    Raises `NotFound` with a suggestion, and `Purged` if its text was purged and came back.
    """
    validate.check_existing_key(key)
    if not context.config.enabled:
        raise NotFound(Disabled().text, Disabled().hint)
    scopes = context.visible_scopes(kind)
    for scope, content in context.store.find_notes(scopes, key):
        return LocatedNote(scope, _parse_unpurged(context, scope, key, content), None)
    for scope in scopes:
        archived = context.store.find_archived([(scope, key)]).get((scope, key))
        found = context.store.read_file(scope.folder, archived.part, archived.name) if archived else None
        if found is not None:
            return LocatedNote(scope, _parse_unpurged(context, scope, key, found), archived)
    for scope, content in context.store.find_notes(scopes, key):  # another process may have just moved it back
        return LocatedNote(scope, _parse_unpurged(context, scope, key, content), None)
    raise _explain_missing(context, key)


def _parse_unpurged(context: Context, scope: Scope, key: str, content: FileContent) -> ParsedNote:
    parsed = versions.parse_note(content.data, content.modified)
    if context.purge_filter.any_purged():
        texts = [version.text for version in versions.list_versions(parsed)]
        context.purge_filter.refuse_returned(f"{scope.folder}/notes/{key}", texts)
    return parsed


def _explain_missing(context: Context, key: str) -> NotFound:
    """Return the error for a note that does not exist: where it went, or which note was probably meant."""
    import difflib

    scopes = context.visible_scopes(None)
    for trashed in [note for scope in scopes for note in context.store.list_trash(scope, key)]:
        since = f"it was moved to the {trashed.part} on {trashed.time[:10]}"
        return NotFound(f"no note {key!r}: {since}", Template(command("restore {}", key), " restores it"))
    folders = tuple([scope.folder for scope in scopes])
    context.refresh(folders)
    notes = context.query(lambda: context.index.list_notes(folders, most=_SUGGESTIONS))
    near = difflib.get_close_matches(key, [note.key for note in notes], 1)
    listed = Template(command("list"), " shows the notes there are")
    return NotFound(f"no note {key!r}", f"Did you mean {near[0]!r}?" if near else listed)


def get(context: Context, key: str, kind: str | None, as_of: When, known_at: When) -> Note:
    """Return the note with a key, or the version of it that held at a time; reading counts as use."""
    known = dates.parse_as_of(known_at, "known_at") if known_at is not None else None
    moment = dates.parse_as_of(as_of, "as_of") if as_of is not None else known
    found = find_note(context, key, kind)
    quarantine = context.config.quarantine
    if moment:
        older = note_history.older_versions(context.store, found.scope.folder, found.parsed)
        note = versions.to_note_at(
            found.scope, key, found.parsed, as_of=moment, known_at=known, quarantine=quarantine, older=older
        )
        context.purge_filter.refuse_returned(f"{found.scope.folder}/notes/{key}", [note.text])
    else:
        note = versions.to_note(found.scope, key, found.parsed, quarantine)
    unarchived = record_use(context, found.scope, key, found.parsed.header.id, found.archived)
    if found.archived is None:
        return note
    if unarchived or note.path.startswith(f"{found.scope.folder}/{note_history.PART}/"):
        return note.replace(archived=True)
    return note.replace(archived=True, path=f"{found.scope.folder}/{found.archived.part}/{found.archived.name}")


def list_versions(context: Context, key: str, kind: str | None) -> list[Version]:
    """Return every version of a note, newest first; reading counts as use."""
    found = find_note(context, key, kind)
    every = note_history.list_versions(context.store, found.scope.folder, found.parsed)
    if found.parsed.header.older and context.purge_filter.any_purged():
        context.purge_filter.refuse_returned(f"{found.scope.folder}/notes/{key}", [version.text for version in every])
    record_use(context, found.scope, key, found.parsed.header.id, found.archived)
    return every


def record_use(context: Context, scope: Scope, key: str, id: str, archived: TrashedNote | None = None) -> bool:
    """Count that a note was read, and unarchive it if this caller may write; return whether it was unarchived."""
    usage.count_uses(context.ledger, [usage.note_usage_id(scope, key, id)])
    if archived is None or context.config.read_only:
        return False
    from holdfast.verbs import archive

    return archive.unarchive_note(context, scope, archived)


def list_notes(
    context: Context, *, kind: str | None, type: str | None, tags: Tags, limit: int | None, source: str | None, archived: bool
) -> list[Note]:
    """Return the visible notes, pinned ones first, then the newest; with `archived` the archived notes instead."""
    wanted = validate.check_choice(type, TYPES, "type") if type else None
    most = check_limit(limit, 10**9) if limit is not None else -1
    if not context.config.enabled:
        return []
    folders = context.all_folders("list every project", "list --all") if kind == "all" else context.visible_folders(kind)
    context.refresh(folders, archived)
    if archived and source is not None:
        raise UsageError("archived notes cannot be listed by source", "Leave out one of archived and source")
    if source is not None:
        from holdfast.verbs import forget_source

        paths = forget_source.find_paths(context, source, folders)
        every = context.query(lambda: context.index.list_notes(folders, wanted, parse_tags(tags)))
        return [note for note in every if note.path in paths][: limit or len(every)]
    return context.query(lambda: context.index.list_notes(folders, wanted, parse_tags(tags), most=most, archived=archived))


# --- lines by path ----------------------------------------------------------------------------------------------------


def read_piece(context: Context, path: str, start: int, lines: int | None) -> Piece:
    """Return some lines of a note or file in a visible scope, by the path that a citation shows; a note counts as used.

    A note that was archived or unarchived since it was cited is found where it is now.
    """
    if not isinstance(start, int) or not isinstance(lines, int | None) or start < 1 or (lines is not None and lines < 1):
        raise UsageError(f"start {start!r} and lines {lines!r} must be whole numbers from 1", "Count lines from 1")
    names, nothing = validate.check_path(path), Piece(path, start, "", exists=False)
    visible = context.visible_folders(None) if context.config.enabled else ()
    if not visible:
        return nothing
    depth = 1 if names[:1] == ("global",) else 2
    folder, part, below = "/".join(names[:depth]), "".join(names[depth : depth + 1]), names[depth + 1 :]
    if folder not in visible or part not in ("notes", "archive", "files", note_history.PART) or not below:
        if folder.split("/")[0] in ("global", "projects", "agents", "sessions") and len(names) > 1:
            return nothing
        folder, part, below = next((one for one in visible if one.startswith("projects/")), "global"), "files", names
    read_part = {"files": _read_file, note_history.PART: _read_history}.get(part)
    content, source = read_part(context, folder, below) if read_part else _read_note(context, folder, part, below)
    if content is None:
        return nothing
    rows = replace_invalid(content.data.decode("utf-8", "surrogateescape")).split("\n")
    text = piece_of(rows, start, len(rows) if lines is None else start - 1 + lines)
    return Piece(path, start, text, source=source)


def _read_file(context: Context, folder: str, below: tuple[str, ...]) -> _Read:
    tree = context.store.tree(folder, 0)
    content = None if tree.is_folder(below) else tree.read_part("files", below)
    if content is None:
        return None, None
    context.purge_filter.refuse_returned(folder, [content.data.decode("utf-8", "replace")])
    from holdfast.context import file_sources
    from holdfast.ledger.file_sources import FileVersion

    return content, file_sources.find(context.ledger, FileVersion(folder, "/".join(below), content.file_id))


def _read_history(context: Context, folder: str, below: tuple[str, ...]) -> _Read:
    """Return a history file, which an as-of answer cites; nothing if its note was forgotten."""
    name, scope = below[-1], Scope.of_folder(folder)
    content = context.store.read_file(folder, note_history.PART, name) if len(below) == 1 and is_history_name(name) else None
    if content is None:
        return None, None
    key = history_file.parse(content.data, name).note
    if KEY_PATTERN.match(key) and note_history.is_forgotten(context.store, scope, name, key):
        return None, None
    if context.purge_filter.any_purged():
        places = history_file.older_versions(content.data, name)
        texts = [replace_invalid(place.version.text) for place in places]
        context.purge_filter.refuse_returned(f"{folder}/notes/{key}", texts)
    return content, None  # its versions say who wrote them


def _read_note(context: Context, folder: str, part: str, below: tuple[str, ...]) -> _Read:
    scope = Scope.of_folder(folder)
    key, archived, content = _find_note_file(context.store, scope, part, below)
    if content is None:
        return None, None
    parsed = _parse_unpurged(context, scope, key, content)
    record_use(context, scope, key, parsed.header.id, archived)
    return content, parsed.header.source


def _find_note_file(
    store: Store, scope: Scope, part: str, below: tuple[str, ...]
) -> tuple[str, TrashedNote | None, FileContent | None]:
    """Return the key of the note that a path means, its place in the archive if it can be unarchived, and its file."""
    tree, name = store.tree(scope.folder, 0), below[-1]
    key = parse_trashed_key(name) if part == "archive" else name.removesuffix(".md")
    if not key:
        return "", None, None
    last = store.find_archived([(scope, key)]).get((scope, key)) if len(below) == 1 else None
    content = tree.read_part(part, below)
    if part == "notes":
        if content is not None or last is None:
            return key, None, content
        return key, last, store.read_file(scope.folder, last.part, last.name)
    if content is None:
        return key, None, store.read_note(scope, key)
    return key, last if last and last.name == name else None, content


# --- overview pages ---------------------------------------------------------------------------------------------------


class Overview(Record):
    """A page that lists what the tree of a scope holds: its path, its whole text, and how many lines that has."""

    path: str
    text: str
    lines: int


def overviews(store: Store, scope: Scope, most: int = len(_OVERVIEWS)) -> list[Overview]:
    """Return the overview pages of the tree in the order MEMORY.md, index.md, memory/index.md.

    A page that is missing, blank, unreadable or an untouched template is left out.
    """
    if not store.has_folder(scope.folder, "files"):
        return []
    tree, found = store.tree(scope.folder, 0), list[Overview]()
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
    """Return whether a wiki index has only headings, comments and lines of the shipped template."""
    rows = [row.strip() for row in _without_comments(text).split("\n")]
    return all(not row or row.startswith("#") or row in WIKI_LINKS for row in rows)


def _without_comments(text: str) -> str:
    """Return the text without HTML comments. Plain string search: the cold path does not load `re`."""
    while (start := text.find("<!--")) >= 0:
        end = text.find("-->", start)
        text = text[:start] + (text[end + 3 :] if end >= 0 else "")
    return text
