"""Value types: notes, versions, facts, turns, scopes, hits, answers and receipts."""

from __future__ import annotations

from holdfast.base.record import Record
from holdfast.errors import Template, UsageError, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import ClassVar


SCOPES = ("session", "project", "agent", "global")  # in order of precedence
TYPES = ("user", "feedback", "project", "reference")
ORIGINS = ("user", "agent", "tool", "import", "web")  # in order of trust
AGENT_ORIGINS = ORIGINS[1:]  # an agent cannot claim that a person said something
MODES = ("hybrid", "keyword", "semantic", "recent")
SEARCH_MODES = MODES[:3]  # those that need a query
SORTS = ("relevance", "recency", "usage")
RECALL_OPTIONS = (  # the arguments of `Memory.recall` besides the query; each interface passes on those that were given
    "scope", "type", "tags", "limit", "as_of", "known_at", "mode", "sort", "kind", "now", "explain", "archived",
)  # fmt: skip
PARTS = {  # the parts of the store in which each kind of hit is
    "note": "notes archive", "file": "files", "turn": "transcripts", "fact": "facts",
}  # fmt: skip
RELATION_KINDS = ("relates_to", "contradicts", "supersedes")  # that a note can state
SYMMETRIC_KINDS = RELATION_KINDS[:2]  # mean the same in both directions
DERIVED_FROM = "derived_from"  # a relation that the source of a note states
MENTIONS = "mentions"  # the label of a `[[Name]]` outside facts, which has no date
RELATION_STATUSES = ("proposed", "accepted", "rejected")
EVERY_PART = "notes archive files transcripts"  # searched by a recall; None instead leaves the archive out

_FOLDERS = {"project": "projects", "agent": "agents", "session": "sessions"}
_KINDS = {folder: kind for kind, folder in _FOLDERS.items()}


class TextRecord(Record):
    """A record with text that a person or an agent wrote."""

    _computed = ("hidden",)
    _text_fields: ClassVar[tuple[str, ...]] = ("text",)
    _name_fields: ClassVar[tuple[str, ...]] = ()

    @property
    def hidden(self) -> tuple[str, ...]:
        """Return the kinds of hidden characters in the record; its text itself is unchanged."""
        texts = [getattr(self, name) or "" for name in self._text_fields]
        names: list[str] = []
        for field_name in self._name_fields:
            value: str | tuple[str, ...] = getattr(self, field_name) or ()
            names += [value] if isinstance(value, str) else value
        joined = "".join(texts + names).replace("\n", "")
        if joined.isascii() and joined.isprintable():
            return ()
        from holdfast.base import invisible

        return invisible.find_kinds("\n".join(texts), *names)


class Scope(Record):
    """The scope of a note: everywhere, or one project, agent or session."""

    kind: str
    id: str = ""

    @property
    def folder(self) -> str:
        """Return the folder of the scope in the store."""
        return "global" if self.kind == "global" else f"{_FOLDERS[self.kind]}/{self.id}"

    @classmethod
    def of_folder(cls, folder: str) -> Scope:
        """Return the scope of a folder in the store."""
        kind, _, id = folder.partition("/")
        return cls("global") if kind == "global" else cls(_KINDS[kind], id)

    def __str__(self) -> str:
        return self.kind if self.kind == "global" else f"{self.kind}:{self.id}"


class Source(Record):
    """The source of a text: its origin, the agent, client and session, and the sources it was made from."""

    origin: str = "user"
    agent: str | None = None
    client: str | None = None
    session: str | None = None
    made_from: tuple[str, ...] = ()  # addresses, paths, note:ID, session:ID, tool:NAME
    trust: str | None = None  # of the least trusted source it was made from, if that is less than its origin's

    @property
    def trusted(self) -> str:
        """Return the origin whose trust this source has."""
        return least_trusted(self.origin, self.trust) if self.trust else self.origin


class Version(TextRecord):
    """One text of a note, with two times: when it was valid, and when it was recorded.

    `valid_to` is the end that its writer gave; `closed` is the end that a later version set.
    """

    _name_fields = ("tags",)
    text: str
    type: str = "project"
    tags: tuple[str, ...] = ()
    source: Source = Source()
    recorded: str = ""
    valid_from: str = ""
    valid_to: str | None = None
    closed: str | None = None

    @property
    def until(self) -> str | None:
        """Return when the version ended; None if it is current."""
        return self.closed or self.valid_to


class Note(TextRecord):
    """A note with its current text. `version` identifies its bytes: pass it as `expected` to edit safely."""

    _name_fields = ("key", "tags", "name")
    scope: Scope
    key: str
    id: str
    text: str
    type: str
    tags: tuple[str, ...]
    created: str
    updated: str
    source: Source
    valid_from: str
    valid_to: str | None
    pinned: bool
    path: str
    lines: tuple[int, int]
    version: str
    versions: int = 1
    quarantined: bool = False  # not trusted enough for briefings, and not approved by a person
    archived: bool = False  # retention moved it to the archive; briefings leave it out
    name: str | None = None  # the key that a platform stored it under, if that is not a note key


class Fact(TextRecord):
    """A dated line of a text: a value, when it was valid, and what ended it."""

    _text_fields = ("value",)
    _name_fields = ("subject", "label", "links")
    subject: str
    label: str
    value: str
    valid_from: str
    valid_to: str | None = None
    retired_by: str | None = None
    links: tuple[str, ...] = ()
    scope: Scope = Scope("global")
    path: str = ""
    line: int = 0
    quarantined: bool = False  # its note is quarantined
    archived: bool = False  # its note is archived
    stale_in: tuple[str, ...] = ()  # other files that still state an older, different value: `path:line`, at most 10


class Relation(Record):
    """What one note says about another one: `key` `kind` `target`, such as `deploys` `supersedes` `old-deploys`."""

    kind: str  # relates_to, contradicts, supersedes, derived_from
    status: str  # proposed: waits for a person; accepted; rejected
    origin: str  # of the statement: user, agent, ...
    time: str  # when it was stated, or decided about
    scope: Scope  # of the note that states it
    key: str
    id: str
    target_scope: Scope
    target: str  # the key of the other note
    target_id: str


class Related(Record):
    """The result of a change to a relation: created, updated, removed or unchanged, and the relation."""

    action: str
    relation: Relation


class Stored(Record):
    """The result of a write: created, updated or unchanged, and the rules whose names replace secrets."""

    action: str
    note: Note
    redacted: tuple[str, ...] = ()


class FactSet(Record):
    """The result of setting a fact, and the facts that it retired."""

    action: str
    fact: Fact
    retired: tuple[Fact, ...]
    note: Note
    redacted: tuple[str, ...] = ()


class Forgotten(Record):
    """The result of forgetting a note: whether there was one, and until when it can be restored."""

    deleted: bool
    key: str
    scope: Scope | None = None
    restorable_until: str | None = None
    beyond_reach: tuple[str, ...] = ()  # files that may still show it, each with the reason


class Cleared(int):
    """The number of forgotten notes; `beyond_reach` are files that may still show them, each with the reason."""

    beyond_reach: tuple[str, ...] = ()


class Receipt(Record):
    """The result of a purge: what was deleted, how that was verified, and what could not be reached."""

    key: str
    scope: Scope | None
    deleted: bool
    removed: tuple[str, ...]
    index_rows: int
    usage_rows: int
    checks: tuple[str, ...]
    beyond_reach: tuple[str, ...]
    time: str
    id: str = ""  # of the receipt in the ledger; "" if nothing was removed
    what: str = ""  # description of what was purged, without its text
    state: str = "done"  # or pending: steps are left, which doctor finishes; or damaged: the receipt is lost
    pending: tuple[str, ...] = ()  # the steps that are left
    turns: int = 0  # removed from transcripts
    also_said_by: tuple[str, ...] = ()  # other notes with the same text, which were not to be removed
    told: tuple[str, ...] = ()  # agents and sessions that it was shown to
    taken_back: str = ""  # when a person stored the same text again on purpose


class Hit(TextRecord):
    """A passage that a recall found, with its citation and its source."""

    _name_fields = ("key", "tags", "session", "speaker", "name", "description")
    kind: str  # note, past, file, turn, fact
    scope: Scope
    key: str
    type: str | None
    tags: tuple[str, ...]
    text: str
    score: float
    citation: str
    valid_from: str | None
    valid_to: str | None
    updated: str
    source: Source | None
    session: str | None = None
    speaker: str | None = None
    why: dict[str, list[float]] | None = None
    quarantined: bool = False
    weak: bool = False  # it has words in common with the query, but probably does not answer it
    name: str | None = None  # from the frontmatter of a file; of a note, the key that a platform stored it under
    description: str | None = None  # as for `name`
    archived: bool = False
    superseded_by: str | None = None  # the key of the current note that superseded this one


class Answer(Record):
    """The hits of a recall, the mode that ran, and whether that is less than was requested."""

    hits: tuple[Hit, ...]
    mode: str
    degraded: bool = False
    reason: str = ""
    disabled: bool = False

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, position: int) -> Hit:
        return self.hits[position]

    @property
    def sessions(self) -> dict[str, tuple[Hit, ...]]:
        """Return the hits that are turns by session, the session with the best hit first."""
        found: dict[str, list[Hit]] = {}
        for hit in self.hits:
            if hit.session is not None:
                found.setdefault(hit.session, []).append(hit)
        return {session: tuple(hits) for session, hits in found.items()}


class TrashedNote(Record):
    """A note in the trash or in the archive, and when it was moved there."""

    scope: Scope
    key: str
    time: str
    part: str
    name: str


class Problem(Record):
    """A problem that `check` found, and the command that fixes it."""

    code: str
    message: str
    fix: str
    path: str = ""


class Finding(Record):
    """A problem without the text of its fix yet; `verbs.doctor.fixes.with_fixes` writes it.

    `action` says what fixes it: "edit" or "move_aside" the file `target`, "run" the command `target`, "remove" the file
    `target` after following the hint, or "advise": only follow the hint."""

    code: str
    message: str
    path: str = ""
    action: str = "advise"
    target: str = ""
    tenant: str = ""  # the tenant that the command must name
    hint: str = ""


class Turn(TextRecord):
    """One message of a session, word for word. `number` counts the lines of its file after the header.

    If an agent sent it with its token, `agent` names that agent, `role` and `speaker` are what it claims, and `origin` is how
    far the turn is trusted: never more than the agent.
    """

    _name_fields = ("speaker", "session")
    id: str
    role: str  # user, assistant, system, tool
    speaker: str | None
    time: str | None
    text: str
    session: str
    client: str
    number: int
    citation: str
    agent: str | None = None
    origin: str = "import"

    @property
    def spoken_by(self) -> str:
        """Return the speaker, for a reader; a claim of an agent is shown as a claim."""
        return describe_speaker(self.speaker or self.role, self.agent)


class Logged(Record):
    """The result of logging a session: the number of new turns, of known turns and of broken ones."""

    session: str
    client: str
    added: int
    known: int
    path: str
    broken: int = 0
    purged: int = 0  # turns that were left out because they contain purged text
    redacted: int = 0  # turns with a secret, which the name of its rule replaces


class Progress:
    """Progress of a long task; this class shows nothing, and an interface may pass a subclass that does."""

    def start(self, what: str, total: int) -> None: ...
    def step(self, count: int = 1) -> None: ...
    def end(self) -> None: ...


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a bulk write; `stored` is the number of notes that are stored for certain, None if unknown."""

    def __init__(self, stored: int | None, message: str = "interrupted", fix: str = "") -> None:
        super().__init__(message)
        self.stored, self.message, self.fix = stored, message, fix


def describe_speaker(speaker: str, agent: str | None) -> str:
    """Return the speaker of a turn; for a turn that an agent sent with its token, the agent and the speaker it claims."""
    return f"agent {agent} as {speaker}" if agent else speaker


def least_trusted(*origins: str) -> str:
    """Return the least trusted of some origins."""
    return max(origins, key=ORIGINS.index)


def parse_tags(tags: str | list[str] | tuple[str, ...] | set[str] | None) -> tuple[str, ...]:
    """Return tags from a list or a comma-separated string: trimmed, each once, in the given order."""
    if tags is None:
        return ()
    if not isinstance(tags, str | list | tuple | set | frozenset):
        raise UsageError(
            Template(field("tags"), f" must be a list or a comma string, not {type(tags).__name__}"), "Give a list of words"
        )
    if not all(isinstance(tag, str | int) and not isinstance(tag, bool) for tag in tags):
        raise UsageError("a tag must be a string", "Give a list of strings")
    parts = tags.split(",") if isinstance(tags, str) else [piece for tag in tags for piece in str(tag).split(",")]
    return tuple(dict.fromkeys(trimmed for part in parts if (trimmed := " ".join(part.split()))))
