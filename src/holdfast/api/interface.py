"""MemoryInterface: every verb once, with its signature. `Memory` implements it on a home, `RemoteMemory` over HTTP.

This module is imported by every cold command, so it uses `abc` (which Python has loaded already) and not `typing`.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from builtins import list as List  # `list` is a verb here
    from collections.abc import Iterable, Mapping
    from types import TracebackType
    from typing import Any, Self, TypeVar

    from holdfast.api.files_interface import FilesInterface
    from holdfast.config import Config
    from holdfast.context.caller import Tags, When
    from holdfast.models import (
        Answer,
        Cleared,
        Fact,
        FactSet,
        Forgotten,
        Logged,
        Note,
        Problem,
        Receipt,
        Related,
        Relation,
        Scope,
        Stored,
        TrashedNote,
        Turn,
        Version,
    )
    from holdfast.search.vectorize import WaitingCounts
    from holdfast.verbs.brief.render import Brief
    from holdfast.verbs.export import Export
    from holdfast.verbs.forget_source import Swept
    from holdfast.verbs.graph import Edge, Graph
    from holdfast.verbs.operator_messages import Message
    from holdfast.verbs.projects import Adopted, KnownProject
    from holdfast.verbs.read import Piece, Snippets
    from holdfast.verbs.render import Rendered
    from holdfast.verbs.scaffold import Scaffolded
    from holdfast.verbs.scaffold.boot import Boot
    from holdfast.verbs.status import Reindexed, Status
    from holdfast.verbs.trace import Trace

    C = TypeVar("C", bound=type)


class MemoryInterface(metaclass=ABCMeta):
    """The memory of one caller: its session, its project, its agent, and the global notes."""

    config: Config

    # --- writing -------------------------------------------------------------------------------------------------

    @abstractmethod
    def store(
        self,
        text: str | bytes,
        *,
        key: str | None = None,
        scope: str = "project",
        type: str | None = None,
        tags: Tags = None,
        valid_from: When = None,
        valid_to: When = None,
        pinned: bool | None = None,
        origin: str | None = None,
        expected: str | None = None,
        made_from: str | Iterable[str] | None = None,
        again: bool = False,
        redact: bool = False,
        allow_secret: str | None = None,
    ) -> Stored:
        """Store a text as a note. If the key exists, the text becomes the current version and the old one stays in the history.

        `expected` is the `version` you read: if the note has changed since, raise `Conflict` and write nothing. `made_from`
        names the sources (an address, a path, `note:KEY`): the note is trusted no more than they are. A text that was purged
        is rejected unless a person stores it `again`. A text with a secret is rejected unless the secret is to be masked
        (`redact`) or a person gives the reason to keep it (`allow_secret`).
        """

    @abstractmethod
    def store_many(
        self, notes: Iterable[Mapping[str, Any]], *, scope: str | None = None, origin: str | None = None, redact: bool = False
    ) -> List[Stored]:
        """Store many notes with one flush to disk: all of them, or none and the error names the first bad one.

        Each note is a mapping with `text` and optionally the other arguments of `store`. All go to `scope`; without it each
        goes to its own, by default the project. After an interrupt, a disk error or `Busy` some may be stored: call it again.
        """

    @abstractmethod
    def fact(
        self,
        subject: str,
        label: str,
        value: str,
        *,
        on: When = None,
        many: bool = False,
        scope: str = "project",
        origin: str | None = None,
        made_from: str | Iterable[str] | None = None,
        redact: bool = False,
    ) -> FactSet:
        """Write `label: value` about a subject, true from a day on. The previous value is struck through and dated, unless
        the label has `many` values."""

    @abstractmethod
    def log(
        self, turns: Iterable[Mapping[str, Any]], *, session: str | None = None, client: str | None = None,
        scope: str = "project", redact: bool = False,
    ) -> Logged:  # fmt: skip
        """Store the turns of a session word for word.

        Each turn is a mapping with `text` (or `content`), a `role` or a `speaker`, and optionally a `time` and an `id`. A turn
        that is stored already is not added again.
        """

    @abstractmethod
    def import_history(
        self, path: str | os.PathLike[str], *, client: str | None = None, scope: str = "project"
    ) -> List[Logged]:
        """Store the turns of another program's transcript, or of every transcript in a folder; known turns are not repeated."""

    @abstractmethod
    def forget(self, key: str, *, scope: str | None = None, expected: str | None = None) -> Forgotten:
        """Move a note to the trash: no answer has it any more, and it can be restored for 30 days. With `expected`, only if
        that is its current version."""

    @abstractmethod
    def restore(self, key: str, *, scope: str | None = None, under: str | None = None) -> Note:
        """Restore the note that was last forgotten or archived under this key, with its history; `under` another key if the
        old one is in use."""

    @abstractmethod
    def forget_session(self, session: str, *, client: str | None = None) -> Forgotten:
        """Move the transcript of a session to the trash: no answer has it any more, and it can be restored for 30 days."""

    @abstractmethod
    def restore_session(self, session: str, *, client: str | None = None) -> Logged:
        """Restore the transcript of a session that was forgotten."""

    @abstractmethod
    def trash(self, *, scope: str | None = None) -> List[TrashedNote]:
        """Return the notes that can be restored, newest first."""

    @abstractmethod
    def purge(
        self, key: str | None = None, *, scope: str | None = None, transcripts: bool = False, session: str | None = None,
        client: str | None = None, text: str | bytes | None = None, files: bool = False,
    ) -> Receipt:  # fmt: skip
        """Permanently delete a note (with `transcripts` also the turns that contain it), a `session`, or a `text` everywhere
        (with `files` also in the agents' files).

        Return after every byte has been verified. The purged text is rejected from then on, unless a person stores it `again`.
        """

    @abstractmethod
    def receipts(self, id: str | None = None) -> List[Receipt]:
        """Return the receipts of purges, newest first: what was deleted and how that was verified, without the deleted text."""

    @abstractmethod
    def clear(self, scope: str) -> Cleared:
        """Forget every note of a scope and return how many there were. `beyond_reach` names files that may still show them."""

    @abstractmethod
    def retain(self, *, dry_run: bool = False) -> List[Note]:
        """Archive the notes that were not updated or used for their scope's time, bring back archived notes that were recalled
        since, and empty trash that is too old to restore. Return the archived notes."""

    # --- provenance ----------------------------------------------------------------------------------------------

    @abstractmethod
    def forget_source(self, source: str, *, revert: bool = False, dry_run: bool = False, everywhere: bool = False) -> Swept:
        """Forget everything that came from a source, including notes derived from it.

        A source is an address or its beginning, a path, `session:ID`, `client:NAME`, `agent:NAME`, `origin:web` or `note:KEY`.
        With `revert`, a note with an older text from another source gets that text back. Only a person may use `everywhere`,
        which means every scope of the home.
        """

    @abstractmethod
    def review(self, *, scope: str | None = None, everywhere: bool = False) -> List[Note]:
        """Return the notes in quarantine: not shown to agents until a person approves them. Only a person may use
        `everywhere`, which means the notes of every agent, project and session."""

    @abstractmethod
    def approve(self, key: str, *, scope: str | Scope | None = None, expected: str | None = None) -> Note:
        """Release a note from quarantine. Only a person may: `Memory(origin="user")`.

        For a note of another caller, pass the whole scope, as `review` returns it: `approve(note.key, scope=note.scope)`.
        """

    @abstractmethod
    def reject(self, key: str, *, scope: str | Scope | None = None, expected: str | None = None) -> Forgotten:
        """Forget a note that is in quarantine, and record that a person decided so."""

    @abstractmethod
    def quarantine(self, key: str, *, scope: str | Scope | None = None, expected: str | None = None) -> Note:
        """Put a note in quarantine, for example after it was approved by mistake. Only a person may."""

    @abstractmethod
    def relate(self, key: str, kind: str, target: str, *, scope: str | None = None, target_scope: str | None = None) -> Related:
        """State that a note `relates_to`, `contradicts` or `supersedes` another one; the result has the status.

        A superseded note is not current: `recall` ranks it below the note that superseded it, and briefings leave it out. What
        an agent states of a note that is trusted more than the agent is `proposed` until a person decides. What a person
        rejected stays rejected. The other note is in the same scope, or global.
        """

    @abstractmethod
    def unrelate(
        self, key: str, kind: str, target: str, *, scope: str | None = None, target_scope: str | None = None
    ) -> Related:
        """Remove a relation that a note states. An agent cannot remove one that a person stated or rejected."""

    @abstractmethod
    def relations(
        self, key: str | None = None, *, scope: str | Scope | None = None, status: str | None = None, everywhere: bool = False
    ) -> List[Relation]:
        """Return the relations of a note in both directions, and as `derived_from` what it was made from; without a key the
        relations of all visible notes. `status`: proposed, accepted or rejected. Only a person may use `everywhere`, which
        means the notes of every agent, project and session."""

    @abstractmethod
    def accept_relation(
        self, key: str, kind: str, target: str, *, scope: str | Scope | None = None, target_scope: str | Scope | None = None
    ) -> Related:
        """Accept a relation that an agent proposed. Only a person may."""

    @abstractmethod
    def reject_relation(
        self, key: str, kind: str, target: str, *, scope: str | Scope | None = None, target_scope: str | Scope | None = None
    ) -> Related:
        """Reject a relation, so that it is never proposed again. Only a person may."""

    @abstractmethod
    def trace(self, key: str, *, scope: str | None = None) -> Trace:
        """Return the sources of a note, where it was shown, the notes derived from it, and the decisions of people about it."""

    # --- reading -------------------------------------------------------------------------------------------------

    @abstractmethod
    def recall(
        self,
        query: str = "",
        *,
        scope: str | None = None,
        type: str | None = None,
        tags: Tags = None,
        limit: int = 10,
        as_of: When = None,
        known_at: When = None,
        mode: str = "hybrid",
        sort: str = "relevance",
        kind: str | None = None,
        now: When = None,
        explain: bool = False,
        archived: bool | None = None,
    ) -> Answer:
        """Search notes, facts, sessions and files in the scopes that this caller can read.

        `as_of` asks what was true then, and adds the facts of that time to the hits; `known_at` asks what was recorded by then.
        `kind` is note, file, turn, fact, or several with commas. The scope `all` means every scope of the home; only a person
        may search it: `Memory(origin="user")`. A time in the query ("last week") is relative to `now`. Archived notes are
        marked and ranked lower; a hit that probably does not answer is marked `weak`. The answer says which mode ran, and the
        reason if that is less than was asked for. With `explain` each hit says why it has its rank. `archived` selects only
        archived notes, or with False none of them.
        """

    @abstractmethod
    def get(self, key: str, *, scope: str | None = None, as_of: When = None, known_at: When = None) -> Note:
        """Return the note of a key from the nearest scope that has one, or the version that was true at a time.

        Reading counts as use. An archived note is marked, and moves back to the notes if this caller may write.
        """

    @abstractmethod
    def list(
        self, *, scope: str | None = None, type: str | None = None, tags: Tags = None, limit: int | None = None,
        source: str | None = None, archived: bool = False,
    ) -> List[Note]:  # fmt: skip
        """Return the notes that this caller may read: pinned notes first, then the newest. `source` keeps those that came from
        it, including notes derived from it. `archived` returns the archived notes instead. The scope `all` means every scope
        of the home; only a person may list it: `Memory(origin="user")`."""

    @abstractmethod
    def history(self, key: str, *, scope: str | None = None) -> List[Version]:
        """Return every version of a note, newest first."""

    @abstractmethod
    def facts(
        self,
        subject: str | None = None,
        *,
        label: str | None = None,
        as_of: When = None,
        scope: str | None = None,
        history: bool = False,
    ) -> List[Fact]:
        """Return the facts about a subject, now or as of a day; with `history` also the closed ones."""

    @abstractmethod
    def brief(
        self, *, prompt: str | None = None, again: bool = False, cap: int | None = None, explain: bool = False,
        mode: str = "keyword", remember: bool = True,
    ) -> Brief:  # fmt: skip
        """Return what an agent is shown when it starts: the nearest scope first, within the budget, the same bytes for the same
        notes.

        With a `prompt`: only the notes that match it and that this session was not shown yet; `again` includes those it was
        shown. `cap` limits the characters. With `explain` each note says why it is in or out. Without `remember`, and with
        `explain`, nothing is recorded as shown.
        """

    @abstractmethod
    def render(self, path: str | os.PathLike[str], *, remove: bool = False) -> Rendered:
        """Write the briefing into a block of a file that a client reads; the rest of the file stays as it is.

        With an empty briefing, or with `remove`, the block is deleted. Forgotten notes disappear from the file at once. Notes
        of one session or one agent are left out, because everyone in the project reads the file.
        """

    @abstractmethod
    def boot(
        self, *, scope: str | None = None, cap: int | None = None, scaffolds: str | Iterable[str] | None = None,
        remember: bool = True,
    ) -> Boot:  # fmt: skip
        """Return what an agent with continuity reads when it starts: heartbeat, messages, live state, open loops, identity and
        goals. Missing files of the `scaffolds` (a client's and those of the settings) are created first. Messages of the
        operator that are shown whole are marked as read, but not without `remember`."""

    @abstractmethod
    def operator_send(
        self, text: str | bytes, *, to: str = "agent", re: str | None = None, agent: str | None = None,
        scope: str | None = None, redact: bool = False,
    ) -> Message:  # fmt: skip
        """Send a message to an agent as its operator, or from an agent `to` its "operator".

        Only a person may send to an agent: `Memory(origin="user")`. `re` is the id of the message that this one answers. The
        message goes to the scope of the answered message, of the `agent` or of the caller's agent, else to the project.
        """

    @abstractmethod
    def operator_list(self, *, agent: str | None = None, scope: str | None = None, unread: bool = False) -> List[Message]:
        """Return the messages between the operator and the agents of the scopes that this caller may read, newest first. Only
        a person may name an `agent` other than its own."""

    @abstractmethod
    def operator_read(self, id: str | None = None, *, agent: str | None = None, scope: str | None = None) -> List[Message]:
        """Return the unread messages to this caller (to a person: what agents sent to the operator), or the message with an
        id, and mark those that are to this caller as read."""

    @abstractmethod
    def expand(self, of: str, *, before: int = 3, after: int = 3, session: str | None = None) -> List[Turn]:
        """Return the turns around a turn, which is given by its citation or its ID."""

    @abstractmethod
    def export(self, *, scope: str | None = None) -> Export:
        """Yield every note with all its versions as plain data. Secrets are replaced by the names of their rules (`redacted`);
        at the end `left_out` names the notes that could not be exported."""

    @abstractmethod
    def graph(self, entity: str, *, depth: int = 1, as_of: When = None, scope: str | None = None) -> Graph:
        """Return an entity and its neighbours: the facts with [[links]], now or as of a day."""

    @abstractmethod
    def path(self, start: str, end: str, *, as_of: When = None, scope: str | None = None) -> List[Edge]:
        """Return the shortest path from one entity to another, now or as of a day; empty if there is none."""

    @abstractmethod
    def search(self, query: str, *, limit: int = 10, mode: str = "hybrid") -> Snippets:
        """Return matching parts of notes and files, by words and by meaning: path, lines, score, snippet. The list also says
        which `mode` ran, and if it is `degraded` the `reason`."""

    @abstractmethod
    def read(self, path: str, start: int = 1, lines: int | None = None) -> Piece:
        """Return lines of a file by the path that `search` and citations show; a missing file has no text and not `exists`.
        Reading a note counts as use."""

    @property
    @abstractmethod
    def files(self) -> FilesInterface:
        """The agent's own files, with the six commands of the memory tool."""

    @abstractmethod
    def scaffold(self, name: str, *, scope: str | None = None) -> Scaffolded:
        """Create the missing files of a template tree, for the agent or without one for the project. Existing files are never
        changed."""

    # --- maintenance ---------------------------------------------------------------------------------------------

    @abstractmethod
    def status(self, *, whole: bool = True) -> Status:
        """Return where the memory of this folder is, how much there is and what would be briefed: of the `whole` home, or only
        of the scopes that this caller may read. If memory is disabled, only where it is."""

    @abstractmethod
    def check(self) -> List[Problem]:
        """Return the problems of the home, each with the command that fixes it. With memory disabled, open no database."""

    @abstractmethod
    def reindex(self) -> Reindexed:
        """Delete the index and rebuild it from the notes."""

    @abstractmethod
    def embed(self) -> WaitingCounts:
        """Compute every missing vector now instead of a few with each recall. Return, per model role, how many are still
        missing; `failed` says why a model could not be used."""

    @abstractmethod
    def projects(self) -> List[KnownProject]:
        """Return the projects that have memory in this home: how much, their last folder, and whether that still exists.
        Only a person may: `Memory(origin="user")`."""

    @abstractmethod
    def adopt(self, old: str, new: str | None = None) -> Adopted:
        """Make the memory of the project `old` readable from `new`, by default this caller's project. Only a person may:
        `Memory(origin="user")`. The notes are not moved."""

    @abstractmethod
    def mark(self) -> str:
        """Write a marker into this folder, so that its memory moves with it. Return the project's id."""

    @property
    @abstractmethod
    def home(self) -> str:
        """The folder of the home, or the address of the gateway."""

    @property
    @abstractmethod
    def project(self) -> str:
        """The id of this caller's project."""

    @property
    @abstractmethod
    def session(self) -> str | None:
        """The id of this caller's session, if it has one."""

    @property
    @abstractmethod
    def agent(self) -> str | None:
        """The name of this caller's agent; None if it has none, or if only the gateway knows it."""

    @property
    @abstractmethod
    def origin(self) -> str:
        """The origin of this caller's texts: user, agent, tool, import or web."""

    @abstractmethod
    def close(self) -> None:
        """Close files and connections. Everything stored is durable already."""

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


def copy_docstrings(implementation: C) -> C:
    """Give the verbs of an implementation the docstrings of the interface."""
    for name, verb in vars(MemoryInterface).items():
        own = vars(implementation).get(name)
        if own is not None and not name.startswith("_") and not own.__doc__:
            own.__doc__ = verb.__doc__
    return implementation
