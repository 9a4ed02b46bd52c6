"""Memory: the verbs. Each is the list of its steps; the rooms below do them."""

from __future__ import annotations

import os

from holdfast import config as configuration
from holdfast.api.provenance import Provenance
from holdfast.context.caller import Context, typed_errors
from holdfast.models import SEARCH_MODES, Cleared, Progress
from holdfast.safety import validate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from builtins import list as List  # `list` is a verb here
    from collections.abc import Iterable, Mapping
    from types import TracebackType
    from typing import Any, Self

    from holdfast.context.caller import Tags, When
    from holdfast.models import (
        Answer,
        Fact,
        FactSet,
        Forgotten,
        Logged,
        Note,
        Problem,
        Receipt,
        Stored,
        TrashedNote,
        Turn,
        Version,
    )
    from holdfast.search.vectorize import WaitingCounts
    from holdfast.verbs.brief.render import Brief
    from holdfast.verbs.export import Export
    from holdfast.verbs.files import Files
    from holdfast.verbs.graph import Edge, Graph
    from holdfast.verbs.projects import Adopted, KnownProject
    from holdfast.verbs.read import Piece, Snippets
    from holdfast.verbs.render import Rendered
    from holdfast.verbs.scaffold import Scaffolded
    from holdfast.verbs.scaffold.boot import Boot
    from holdfast.verbs.status import Reindexed, Status


@typed_errors
class Memory(Provenance):
    """One caller's memory in one home: its session, its project, its agent, and what is global."""

    def __init__(
        self,
        home: str | os.PathLike[str] | None = None,
        *,
        token: str | None = None,  # of a gateway, where the home is its address
        project: str | None = None,
        session: str | None = None,
        agent: str | None = None,
        client: str | None = None,
        origin: str = "agent",
        cwd: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
        config: configuration.Config | None = None,
    ) -> None:
        self.config = config or configuration.load(home)
        whose = self.config.project if project is None else project  # an empty one is an error, not none
        self._context = Context(
            self.config,
            project=whose,
            session=session or self.config.session,
            agent=agent or self.config.agent,
            client=client or self.config.client,
            origin=origin,
            cwd=os.fspath(cwd) if cwd is not None else None,
            progress=progress or Progress(),
        )

    # --- writing -------------------------------------------------------------------------------------------------

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
        """Keep a text. On a key that exists it becomes the current version and the old one stays in the history.
        `expected` is the `version` of the note you saw: if it is another by now, `Conflict`, and nothing is written.
        `made_from` is what it came from (an address, a path, `note:KEY`): it is trusted no more than that. What was purged is
        refused, unless a person wants it `again`; a secret, unless it is to `redact` or a person says why to `allow_secret`."""
        from holdfast.verbs import write

        context = self._context
        context.require_enabled()
        draft = write.make_draft(
            context, text, key=key, type=type, tags=tags, valid_from=valid_from, valid_to=valid_to, pinned=pinned,
            origin=origin, expected=expected, made_from=made_from, redact=redact, allow_secret=allow_secret,
        )  # fmt: skip
        return write.store(context, draft, context.scope(scope), allow_purged=again)

    def store_many(
        self, notes: Iterable[Mapping[str, Any]], *, scope: str | None = None, origin: str | None = None, redact: bool = False
    ) -> List[Stored]:
        """Keep many at once, flushed together: every one is kept, or none and the error names the first bad one. Each is a
        mapping with `text` and, if you like, the other words that `store` takes; all go to `scope`, or else each to its own and
        to the project. Interrupted, or where a disk fails or a scope is busy, some may be kept: call it again."""
        from holdfast.verbs import write

        self._context.require_enabled()
        return write.store_many(self._context, notes, scope, origin, redact)

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
        """Write `label: value` about a subject, as of a day. The value before it is struck through and dated."""
        from holdfast.verbs import facts

        context = self._context
        context.require_enabled()
        return facts.set_fact(
            context, subject, label, value, on=on, many=many, scope=context.scope(scope), origin=origin,
            made_from=made_from, redact=redact,
        )  # fmt: skip

    def log(
        self, turns: Iterable[Mapping[str, Any]], *, session: str | None = None, client: str | None = None,
        scope: str = "project", redact: bool = False,
    ) -> Logged:  # fmt: skip
        """Keep what was said in a session, word for word. Each turn is a mapping with `text` (or `content`), a `role` or a
        `speaker`, and if you like a `time` and an `id`; one that is kept already is not added again."""
        from holdfast.verbs import history

        return history.log(self._context, turns, session=session, client=client, scope=scope, redact=redact)

    def import_history(
        self, path: str | os.PathLike[str], *, client: str | None = None, scope: str = "project"
    ) -> List[Logged]:
        """Keep the turns of another program's transcript, or of all in a folder; what is kept already is not added again."""
        from holdfast.verbs import history

        return history.import_history(self._context, path, client=client, scope=scope, progress=self._context.progress)

    def forget(self, key: str, *, scope: str | None = None, expected: str | None = None) -> Forgotten:
        """Put a note in the trash: gone from every answer at once, restorable for 30 days; only the version `expected`."""
        from holdfast.verbs import forget

        self._context.require_enabled()
        return self._forgotten(key, forget.forget_key(self._context, key, scope, expected))

    def restore(self, key: str, *, scope: str | None = None, under: str | None = None) -> Note:
        """Bring back the note that was last forgotten or archived under this key, with its whole history; `under`
        another key, if the old one has been taken since."""
        from holdfast.verbs import forget

        self._context.require_enabled()
        name, restored_to = forget.restore(self._context, key, scope, under)
        return self.get(name, scope=restored_to.kind)

    def forget_session(self, session: str, *, client: str | None = None) -> Forgotten:
        """Put the transcript of a session in the trash: gone from every answer at once, restorable for 30 days."""
        from holdfast.verbs import forget

        self._context.require_enabled()
        return forget.forget_session(self._context, *validate.session(session, client, needed=True))

    def restore_session(self, session: str, *, client: str | None = None) -> Logged:
        """Bring back the transcript of a session that was forgotten."""
        from holdfast.verbs import forget

        self._context.require_enabled()
        return forget.restore_session(self._context, *validate.session(session, client, needed=True))

    def trash(self, *, scope: str | None = None) -> List[TrashedNote]:
        """What can be restored, newest first."""
        from holdfast.verbs import forget

        return forget.list_trash(self._context, scope)

    def purge(
        self, key: str | None = None, *, scope: str | None = None, transcripts: bool = False, session: str | None = None,
        client: str | None = None, text: str | bytes | None = None, files: bool = False,
    ) -> Receipt:  # fmt: skip
        """Remove for good a note, with `transcripts` also the turns that say it; or a whole `session`; or a `text` wherever it
        stands, in `files` too. Answers when every byte has been read back; it cannot come back unless a person says so."""
        from holdfast.verbs import purge

        self._context.require_enabled()
        session, client = validate.session(session, client)
        return purge.purge(
            self._context, key=key, scope=scope, transcripts=transcripts, session=session, client=client, text=text, files=files
        )

    def receipts(self, id: str | None = None) -> List[Receipt]:
        """What was purged, newest first: what went, how that was checked, and not a word of it."""
        from holdfast.verbs.purge import receipts

        return receipts.list_receipts(self._context, validate.string(id, "id of a receipt"))

    def clear(self, scope: str) -> Cleared:
        """Forget every note of a scope; how many there were. Its `beyond_reach` says which files may still show them."""
        from holdfast.verbs import forget

        self._context.require_enabled()
        cleared = Cleared(forget.clear(self._context, scope))
        cleared.beyond_reach = tuple(self._render_anew()[1])
        return cleared

    def retain(self, *, dry_run: bool = False) -> List[Note]:
        """Archive what has not been updated or used for its scope's time, bring back archived notes that were recalled since,
        and empty trash that is too old to restore."""
        from holdfast.verbs import purge, retention

        self._context.require_enabled()
        archived = retention.run(self._context, dry_run)
        if not dry_run:
            purge.finish(self._context)
        if archived and not dry_run:
            self._render_anew()
        return archived

    # --- asking --------------------------------------------------------------------------------------------------

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
    ) -> Answer:
        """What is known about something, as far as this caller may see: now, or as it was (`as_of`), or as it was known
        (`known_at`); of one `kind` (note, file, turn, fact), of several with a comma between, or of all. The scope `all` is
        every scope of the home, which only a person may search: `Memory(origin="user")`. With `as_of` the facts that held
        then are among the hits, each as one statement with its dates. A question that names a time ("last week") means it as
        of `now`. Archived notes are found too, marked and ranked lower. A hit that probably does not answer is marked
        `weak`. The answer says which mode really ran, and why if it is less than was asked for; with
        `explain` each hit says why it is where it is."""
        from holdfast.verbs import recall

        return recall.recall(
            self._context, query, scope=scope, type=type, tags=tags, limit=limit, as_of=as_of, known_at=known_at, mode=mode,
            sort=sort, kind=kind, now=now, explain=explain,
        )  # fmt: skip

    def get(self, key: str, *, scope: str | None = None, as_of: When = None, known_at: When = None) -> Note:
        """The note under a key, in the nearest scope that has one; or the version of it that held at a time. Reading counts as
        use. An archived note is marked, and comes back among the notes if this caller may write."""
        from holdfast.verbs import read

        return read.get(self._context, key, scope, as_of, known_at)

    def list(
        self, *, scope: str | None = None, type: str | None = None, tags: Tags = None, limit: int | None = None,
        source: str | None = None, archived: bool = False,
    ) -> List[Note]:  # fmt: skip
        """The notes this caller may see, newest first, pinned ones before; only those that came from a `source`, be it by way
        of other notes. With `archived` the archived notes instead."""
        from holdfast.verbs import read

        return read.list_notes(self._context, kind=scope, type=type, tags=tags, limit=limit, source=source, archived=archived)

    def history(self, key: str, *, scope: str | None = None) -> List[Version]:
        """Every version of a note, newest first."""
        from holdfast.verbs import read

        return read.list_versions(self._context, key, scope)

    def facts(
        self,
        subject: str | None = None,
        *,
        label: str | None = None,
        as_of: When = None,
        scope: str | None = None,
        history: bool = False,
    ) -> List[Fact]:
        """What is stated about a subject, now or as of a day; with `history` everything that ever was."""
        from holdfast.verbs import facts

        return facts.list_facts(self._context, subject=subject, label=label, as_of=as_of, scope=scope, history=history)

    def brief(
        self, *, prompt: str | None = None, again: bool = False, cap: int | None = None, explain: bool = False,
        mode: str = "keyword", remember: bool = True,
    ) -> Brief:  # fmt: skip
        """What an agent is told when it starts: nearest scope first, in the budget, the same bytes for the same notes. With
        a `prompt`, only the notes that bear on it and that this session was not shown yet; `again` also those it was. No
        more than `cap` characters; `explain` says of each note why it is in or out, and is not counted as shown; neither is
        what is not to `remember`."""
        from holdfast.verbs.brief import select

        how = validate.choice(mode, ("keyword", "hybrid"), "mode")
        return select.brief(self._context, prompt, again=again, cap=cap, explain=explain, mode=how, remember=remember)

    def render(self, path: str | os.PathLike[str], *, remove: bool = False) -> Rendered:
        """Put the briefing into a file that a client reads: into a block of ours, the rest of the file untouched. With
        nothing to tell, or to `remove` it, the block is taken out. What is forgotten is gone from there at once. Everybody
        who works in the project reads it: notes of one session or one agent are not in it."""
        from holdfast.verbs import render

        self._context.require_enabled()
        return render.render(self._context, os.fspath(path), remove=remove)

    def boot(self, *, scope: str | None = None, cap: int | None = None, scaffolds: str | Iterable[str] | None = None) -> Boot:
        """What an agent that keeps continuity reads when it starts: heartbeat, messages, live state, open loops, identity,
        goals. `scaffolds` are made first where they are missing: those a client declares, and those of the settings."""
        from holdfast.verbs.scaffold import boot

        return boot.boot(self._context, scope, cap, scaffolds)

    def expand(self, of: str, *, before: int = 3, after: int = 3, session: str | None = None) -> List[Turn]:
        """What was said around a turn, which is named by its citation or its id."""
        from holdfast.verbs import history

        return history.expand(self._context, of, before=before, after=after, session=session)

    def export(self, *, scope: str | None = None) -> Export:
        """Every note, with all its versions, as plain data; of secrets only the rules (`redacted`). At the end: `left_out`."""
        from holdfast.verbs import export

        return export.export(self._context, scope)

    def graph(self, entity: str, *, depth: int = 1, as_of: When = None, scope: str | None = None) -> Graph:
        """What is known about an entity and its neighbours: facts with [[links]], now or as of a day."""
        from holdfast.verbs import graph

        return graph.build_graph(self.facts(as_of=as_of, scope=scope), entity, depth)

    def path(self, start: str, end: str, *, as_of: When = None, scope: str | None = None) -> List[Edge]:
        """The shortest way from one entity to another, now or as of a day; empty if there is none."""
        from holdfast.verbs import graph

        return graph.find_path(self.facts(as_of=as_of, scope=scope), start, end)

    def embed(self) -> WaitingCounts:
        """Give every passage its vectors now, instead of a few with each recall; by role of a model, how many still lack
        them. Its `failed` says why a model could not be used."""
        context = self._context
        context.require_enabled()
        context.refresh(tuple(context.store.scopes()), archived=True)
        return context.query(lambda: context.hybrid_search().vectorizer.catch_up(context.progress, everything=True))

    def search(self, query: str, *, limit: int = 10, mode: str = "hybrid") -> Snippets:
        """Pieces of notes and files that match, by words and by meaning: path, lines, score, snippet. The list also says
        which `mode` ran, and whether it is `degraded` and the `reason`."""
        from holdfast.verbs.read import SEARCHED, snippets

        how = validate.choice(mode, SEARCH_MODES, "mode")
        return snippets(self.recall(query, limit=limit, mode=how, kind=SEARCHED))

    def read(self, path: str, start: int = 1, lines: int | None = None) -> Piece:
        """A piece of a file by the path that `search` and citations show; a missing one is empty text, not `exists`. Reading a
        note counts as use, as with `get`."""
        from holdfast.verbs import read

        return read.read_piece(self._context, path, start, lines)

    @property
    def files(self) -> Files:
        """The agent's own tree, by the six verbs of the memory tool."""
        from holdfast.verbs.files import Files

        return Files(self._context)

    def scaffold(self, name: str, *, scope: str | None = None) -> Scaffolded:
        """Put a tree of template files where they are missing: the agent's tree, without an agent the project's. What stands
        there is never touched."""
        from holdfast.verbs import scaffold

        self._context.require_enabled()
        return scaffold.create(self._context, name, scaffold.choose_scope(self._context, scope))

    # --- looking after it ----------------------------------------------------------------------------------------

    def status(self, *, whole: bool = True) -> Status:
        """Where memory for this folder lives, how much there is, and what would be briefed; of the `whole` home, or of no more
        than the scopes that this caller may see. Switched off, only where."""
        from holdfast.verbs import status
        from holdfast.verbs.brief import select

        return status.status(self._context, select.brief(self._context, remember=False), whole)

    def check(self) -> List[Problem]:
        """What is wrong with the home, and the command that mends each thing. Switched off, it opens no database."""
        from holdfast.verbs.doctor import checks

        return checks.find_problems(self._context)

    def reindex(self) -> Reindexed:
        """Throw the catalogue away and build it from the shelf."""
        from holdfast.verbs import status

        self._context.require_enabled()
        return status.reindex(self._context)

    def projects(self) -> List[KnownProject]:
        """The projects that have memory in this home: how much, where they were last seen, and whether that folder is gone.
        Only a person may ask: `Memory(origin="user")`."""
        from holdfast.verbs import projects

        self._context.require_person("list the projects of this home", "project list")
        return projects.list_projects(self._context)

    def adopt(self, old: str, new: str | None = None) -> Adopted:
        """Let the memory of the project `old` be found from `new`, or from this caller's own project. Only a person may:
        `Memory(origin="user")`. The notes stay where they are."""
        from holdfast.verbs import projects

        self._context.require_enabled()
        return projects.adopt(self._context, old, new)

    def mark(self) -> str:
        """Give this folder a marker, so that its memory moves with it; the project's id."""
        from holdfast.verbs import projects

        self._context.require_enabled()
        return projects.write_marker(self._context)

    @property
    def home(self) -> str:
        """The folder all of it lives in."""
        return self.config.home

    @property
    def project(self) -> str:
        """The id of the project this caller works in."""
        return self._context.project_ids()[0]

    @property
    def session(self) -> str | None:
        return self._context.session

    @property
    def agent(self) -> str | None:
        return self._context.agent

    def close(self) -> None:
        """Let go of files; everything stored is on disk already."""
        self._context.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _render_anew(self) -> tuple[List[str], List[str]]:
        """Files that show a briefing must not show what is gone."""
        from holdfast.verbs import render

        return render.render_all(self._context)
