"""Rows of the index by the names of their columns, and the records that searches return."""

from __future__ import annotations

from holdfast.base.ids import FileId, unsigned
from holdfast.base.record import Record
from holdfast.models import MENTIONS, Fact, Note, Relation, Scope, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    # what ranking needs of a passage, a plain tuple because a hybrid search reads hundreds: id, seq, recorded, valid_from, doc,
    # versions of the doc, turn, speaker, words, valid_to
    Outline = tuple[int, int, str, str | None, int, int, str | None, str | None, int, str | None]
    # a piece of a passage: the passage, its marks (see search/chunking.py) and its tokens, separated by spaces
    PieceRow = tuple[int, int, str]
    ListedFile = tuple[str, int, int, int]  # key, id, inode and ctime of a note's file: these differ for another version
    Explanation = dict[int, dict[str, list[float]]]  # by passage and signal: its value, and what it adds to the score

ARCHIVED = 0.5  # the share of its score that a passage of an archived note keeps


# --- rows ---------------------------------------------------------------------------------------------------------------------


class FolderState(Record):
    """An indexed folder: its id, and the combined file ids of all its files."""

    id: int
    fingerprint: int


class FolderSize(Record):
    """The number of current passages of a folder, and of the words in them."""

    id: int
    passages: int
    words: int


class FolderFiles(Record):
    """The number of indexed files of a folder, their size in bytes, and the time of the last change."""

    scope: str
    part: str
    files: int
    bytes: int
    updated: str


class Totals(Record):
    """The size of the index: the number of its notes, files, passages and facts."""

    notes: int
    files: int
    passages: int
    facts: int


class AgentUsage(Record):
    """What the notes and files of an agent add up to."""

    notes: int = 0
    bytes: int = 0  # with history files


class IndexedFile(Record):
    """The row of one indexed file that a writer compares with the file in the store."""

    id: int
    ino: int
    ctime: int
    size: int
    mix: int  # this file's share of its folder's fingerprint
    digest: str
    versions: int
    note_id: str

    @property
    def file_id(self) -> FileId:
        """The inode, ctime and size of the file that was indexed."""
        return FileId(unsigned(self.ino), self.ctime, self.size)


class NoteLocation(Record):
    """The location of a note, and how far its text can be trusted."""

    scope: str
    name: str
    trust: str


class FoundNote(Record):
    """A note by its id: where it is and what it is called."""

    scope: str
    key: str
    name: str  # the key that a platform stored it under; "" if it has none
    type: str | None


class FileProblem(Record):
    """An indexed file that is not as it should be."""

    scope: str
    part: str
    name: str
    problem: str


class NoteRow(Record):
    """The columns of {note_columns}."""

    scope: str
    part: str
    name: str
    key: str
    note_id: str
    type: str
    tags: str
    created: str
    updated: str
    source: str
    valid_from: str
    valid_to: str | None
    pinned: int
    first_line: int
    last_line: int
    digest: str
    versions: int
    platform_key: str | None
    quarantined: int
    text: str

    def to_note(self) -> Note:
        """Return the note."""
        return Note(
            scope=Scope.of_folder(self.scope), key=self.key, id=self.note_id, text=self.text, type=self.type,
            tags=decode_tags(self.tags), created=self.created, updated=self.updated, source=decode_source(self.source),
            valid_from=self.valid_from, valid_to=self.valid_to, pinned=bool(self.pinned),
            path=f"{self.scope}/{self.part}/{self.name}", lines=(self.first_line, self.last_line), version=self.digest,
            versions=self.versions, quarantined=bool(self.quarantined), archived=self.part == "archive",
            name=self.platform_key,
        )  # fmt: skip


class FactRow(Record):
    """The columns of {fact_columns}."""

    subject: str
    label: str
    value: str
    valid_from: str
    valid_to: str | None
    retired_by: str | None
    links: str
    line: int
    scope: str
    part: str
    name: str
    quarantined: int

    @property
    def path(self) -> str:
        return f"{self.scope}/{self.part}/{self.name}"

    def to_fact(self) -> Fact:
        """Return the fact as its own file states it."""
        return Fact(
            subject=self.subject, label=self.label, value=self.value, valid_from=self.valid_from, valid_to=self.valid_to,
            retired_by=self.retired_by, links=decode_links(self.links), scope=Scope.of_folder(self.scope), path=self.path,
            line=self.line, quarantined=bool(self.quarantined), archived=self.part == "archive",
        )  # fmt: skip


class StatedFactRow(FactRow):
    """A fact, and whether another file states the same label of the same subject."""

    stated_elsewhere: int


class FoundFactRow(StatedFactRow):
    """A fact with the columns of its file that a search result shows."""

    key: str
    note_id: str
    tags: str
    source: str
    updated: str
    ino: int
    ctime: int
    size: int


class StatementRow(FactRow):
    """A fact with the columns of its file that decide whether it makes lines of other files stale."""

    updated: str
    prose: int  # whether the file says more than facts


class LabelledFact(Record):
    """A fact of a certain label that holds now."""

    subject: str
    value: str
    links: tuple[str, ...]


class RelationRow(Record):
    """A relation between two notes that are both there."""

    kind: str
    status: str
    origin: str
    stated: str
    scope: str
    key: str
    note_id: str
    target_scope: str
    target: str
    target_id: str

    def to_relation(self) -> Relation:
        """Return the relation."""
        return Relation(
            kind=self.kind, status=self.status, origin=self.origin, time=self.stated, scope=Scope.of_folder(self.scope),
            key=self.key, id=self.note_id, target_scope=Scope.of_folder(self.target_scope), target=self.target,
            target_id=self.target_id,
        )  # fmt: skip


class Superseding(Record):
    """A note that is current and superseded another one."""

    superseded: int  # the other note's row
    doc: int
    note_id: str
    key: str
    scope: str
    part: str
    stated: str
    passage: int  # its current text


class MentionRow(Record):
    """The names that a note or file links outside its facts."""

    scope: str
    part: str
    name: str
    title: str
    mentions: str
    quarantined: int

    def to_facts(self) -> list[Fact]:
        """Return each link as a fact without a date."""
        return [
            Fact(
                subject=self.title, label=MENTIONS, value=f"[[{name}]]", valid_from="", links=(name,),
                scope=Scope.of_folder(self.scope), path=f"{self.scope}/{self.part}/{self.name}",
                quarantined=bool(self.quarantined), archived=self.part == "archive",
            )
            for name in decode_links(self.mentions)
        ]  # fmt: skip


class SubjectRow(Record):
    """A subject of facts, in the spelling that sorts first, with numbers over all files that state something of it."""

    subject: str
    facts: int
    current: int  # facts that hold now, as their own files say
    latest: str  # when the newest of them began
    scopes: int
    scope: str  # the folder of a scope: the only one if `scopes` is 1


class StatingPassage(Record):
    """A passage that states a fact."""

    passage: int
    subject: str
    label: str
    path: str
    line: int
    stated_elsewhere: int


class QuarantinedText(Record):
    """A text that a note in quarantine has or had, and how far that text was trusted."""

    text: str
    trust: str
    note_id: str


class PassageRow(Record):
    """The columns of {passage_columns}."""

    id: int
    seq: int
    past: int
    first_line: int
    last_line: int
    type: str | None
    tags: str
    source: str
    recorded: str
    valid_from: str | None
    doc: int
    kind: str
    name: str
    key: str
    note_id: str
    versions: int
    scope: str
    part: str
    turn: str | None
    speaker: str | None
    offset: int | None
    words: int
    quarantined: int
    valid_to: str | None

    def to_passage(self, score: float) -> FoundPassage:
        """Return the passage with its score."""
        return FoundPassage(  # by position, which is three times as fast: a search makes dozens
            self.id, self.seq, bool(self.past), (self.first_line, self.last_line), self.type, decode_tags(self.tags),
            decode_source(self.source), self.recorded, self.valid_from, self.valid_to, self.doc, self.kind, self.name, self.key,
            self.note_id, self.versions, self.scope, self.part, self.turn, self.speaker, self.offset, self.words,
            bool(self.quarantined), score,
        )  # fmt: skip


class PassageText(Record):
    """The text of a passage, the names it is found by, and its speaker."""

    id: int
    names: str
    text: str
    speaker: str | None


# --- results ------------------------------------------------------------------------------------------------------------------


class FoundPassage(Record):
    """A passage that a search found, with its score."""

    passage: int
    seq: int
    past: bool
    lines: tuple[int, int]
    type: str | None
    tags: tuple[str, ...]
    source: Source
    recorded: str
    valid_from: str | None
    valid_to: str | None
    doc: int
    kind: str
    name: str
    key: str
    note_id: str
    versions: int
    scope: str
    part: str
    turn: str | None
    speaker: str | None
    offset: int | None
    words: int
    quarantined: bool
    score: float

    @property
    def archived(self) -> bool:
        """Whether it is a passage of an archived note."""
        return self.part == "archive"


class FoundFact(Record):
    """A fact that a search found, and the note or file that states it."""

    fact: Fact
    part: str
    name: str
    key: str
    note_id: str
    tags: tuple[str, ...]
    source: Source
    updated: str
    file_id: FileId


class ListedNote(Record):
    """A note as index.md shows it."""

    id: int
    key: str
    type: str
    date: str
    text: str  # its beginning; all of it where it has facts or seems to hold a secret
    quarantined: bool
    exposed: bool


class SearchResult(Record):
    """The passages that a search found, best first, how it searched, and why the result may be incomplete."""

    found: list[FoundPassage]
    mode: str
    reason: str = ""
    why: Explanation = {}
    threshold: float | None = None  # a passage with a lower score is weak; None: the words of the question decide
    weak: frozenset[int] = frozenset()  # passages that probably do not answer
    named: frozenset[int] = frozenset()  # passages that have a rare name of the question
    first_scores: dict[int, float] = {}  # scores before passages were put in another order, by a reranker for example

    def first_score(self, passage: FoundPassage) -> float:
        """Return the score of a passage before it was put in another order: thresholds were fitted to it."""
        return self.first_scores.get(passage.passage, passage.score)

    def found_with_first_scores(self) -> list[FoundPassage]:
        """Return the passages in their order, with their first scores."""
        if not self.first_scores:
            return self.found
        return [passage.replace(score=self.first_score(passage)) for passage in self.found]


def keyword_result(found: list[FoundPassage], explain: bool, reason: str = "") -> SearchResult:
    """Return the result of a keyword search; only BM25 explains its order."""
    explanations = {passage.passage: {"bm25": [round(passage.score, 3)] * 2} for passage in found} if explain else {}
    return SearchResult(found, "keyword", reason, explanations)


def rank_archived_lower(found: list[FoundPassage], explanations: Explanation) -> tuple[list[FoundPassage], Explanation]:
    """Lower the scores of passages of archived notes, also in the explanation of the scores."""
    if not any(passage.archived for passage in found):
        return found, explanations
    change = {passage.passage: -abs(passage.score) * (1 - ARCHIVED) for passage in found if passage.archived}
    explained = {
        id: {**signals, "archived": [1.0, round(change[id], 3)]} if id in change else signals
        for id, signals in explanations.items()
    }
    return [
        passage.replace(score=passage.score + change[passage.passage]) if passage.archived else passage for passage in found
    ], explained


def passage_location(found: FoundPassage) -> tuple[str, str, str]:
    """Return the scope, part and name under which the store reads a passage; of a turn, the name with the line's offset."""
    return found.scope, found.part, f"{found.name}:{found.offset}" if found.turn else found.name


# --- columns that hold several values -----------------------------------------------------------------------------------------


def encode_tags(tags: Iterable[str]) -> str:
    """Return the tags as one column: first as written, then folded for filters, each between newlines."""
    tags = tuple(tags)
    if not tags:
        return "\n"
    return "".join([f"\n{tag}" for tag in tags]) + "\n" + "".join([f"{tag.casefold()}\n" for tag in tags])


def decode_tags(column: str) -> tuple[str, ...]:
    """Return the tags as written."""
    both = column.strip("\n").split("\n")
    return tuple(both[: len(both) // 2])


def encode_source(source: Source | None) -> str:
    """Return the source as one column, a line for each field."""
    if not source:
        return ""
    fields = [source.origin, source.agent or "", source.client or "", source.session or ""]
    return "\n".join([*fields, source.trust or "", *source.made_from] if source.trust or source.made_from else fields)


_MAX_SOURCES = 1000
_sources: dict[str, Source] = {}  # decoded before: most passages of a session share one


def decode_source(column: str) -> Source:
    """Return the source that `encode_source` encoded."""
    if not column:
        return Source("user")
    known = _sources.get(column)
    if known is not None:
        return known
    if len(_sources) > _MAX_SOURCES:
        _sources.clear()
    source = _sources[column] = _decode_source(column)
    return source


def _decode_source(column: str) -> Source:
    origin, agent, client, session, *rest = column.split("\n")
    trust, made_from = (rest[0], tuple(rest[1:])) if rest else ("", ())
    return Source(
        origin=origin,
        agent=agent or None,
        client=client or None,
        session=session or None,
        made_from=made_from,
        trust=trust or None,
    )


def relation_path(scope: str, key: str) -> str:
    """Return how the target of a relation is kept if it is named by its key: an id contains no slash."""
    return f"{scope}/{key}"


def decode_links(column: str) -> tuple[str, ...]:
    """Return the links of a fact."""
    return tuple(column.split("\n")) if column else ()
