"""Memory: the verbs. Each is the list of its steps; the rooms below do them."""

from __future__ import annotations

import os

from holdfast import config as configuration
from holdfast.api.provenance import Provenance
from holdfast.base import dates
from holdfast.base.dates import timestamp  # fmt: skip
from holdfast.context.caller import Context, typed_errors, usage_id
from holdfast.errors import Template, UsageError, field
from holdfast.index.results import rank_archived_lower
from holdfast.index.sqlite import SearchFilter, note_of_row
from holdfast.models import (
    EVERY_PART,
    MODES,
    PARTS,
    SCOPES,
    SEARCH_MODES,
    SORTS,
    TYPES,
    Answer,
    Cleared,
    Note,
    Progress,
    parse_tags,
)
from holdfast.safety import validate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from builtins import list as List  # `list` is a verb here
    from collections.abc import Iterable, Mapping
    from types import TracebackType
    from typing import Any, Self

    from holdfast.context.caller import Tags, When
    from holdfast.models import Fact, FactSet, Forgotten, Hit, Logged, Problem, Receipt, Stored, TrashedNote, Turn, Version
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

_FACTS = PARTS["fact"]


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
            self.config, whose, session or self.config.session, agent or self.config.agent,
            client or self.config.client, origin, os.fspath(cwd) if cwd is not None else None, progress or Progress(),
        )  # fmt: skip

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
        context = self._context
        context.require_enabled()
        draft = context.make_draft(
            text, key, type, tags, valid_from, valid_to, pinned, origin, expected, made_from, redact, allow_secret
        )
        place = context.scope(scope)
        if place.kind == "project" and context.project_ids()[1:]:
            from holdfast.verbs import projects

            place = projects.place_to_write(context, place, draft.key)
        if context.config.batch_writes and not again and not draft.allowed:
            from holdfast.verbs import batching

            return batching.store(context, place, draft)
        return context.write(place, draft.key, lambda _: draft, again)

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
        from holdfast.verbs import facts as fact_lines

        self._context.require_enabled()
        return fact_lines.fact(
            self._context, subject, label, value, on, many, self._context.scope(scope), origin, made_from, redact
        )

    def log(
        self, turns: Iterable[Mapping[str, Any]], *, session: str | None = None, client: str | None = None,
        scope: str = "project", redact: bool = False,
    ) -> Logged:  # fmt: skip
        """Keep what was said in a session, word for word. Each turn is a mapping with `text` (or `content`), a `role` or a
        `speaker`, and if you like a `time` and an `id`; one that is kept already is not added again."""
        from holdfast.verbs import history

        return history.log(self._context, turns, session, client, scope, redact)

    def import_history(
        self, path: str | os.PathLike[str], *, client: str | None = None, scope: str = "project"
    ) -> List[Logged]:
        """Keep the turns of another program's transcript, or of all in a folder; what is kept already is not added again."""
        from holdfast.verbs import history

        return history.import_history(self._context, path, client, scope, self._context.progress)

    def forget(self, key: str, *, scope: str | None = None, expected: str | None = None) -> Forgotten:
        """Put a note in the trash: gone from every answer at once, restorable for 30 days; only the version `expected`."""
        from holdfast.verbs import forget as back

        self._context.require_enabled()
        context = self._context
        places = context.scopes_holding(validate.existing_key(key), scope)
        places = places or context.scopes_holding(key, scope, lambda place, key: key in context.store.archived(place, [key]))
        return self._forgotten(key, back.forget(self._context, places, key, expected))

    def restore(self, key: str, *, scope: str | None = None, under: str | None = None) -> Note:
        """Bring back the note that was last forgotten or archived under this key, with its whole history; `under`
        another key, if the old one has been taken since."""
        from holdfast.verbs import forget as back

        self._context.require_enabled()
        name, place = back.restore(self._context, key, scope, under)
        return self.get(name, scope=place.kind)

    def forget_session(self, session: str, *, client: str | None = None) -> Forgotten:
        """Put the transcript of a session in the trash: gone from every answer at once, restorable for 30 days."""
        from holdfast.verbs import forget as back

        self._context.require_enabled()
        return back.forget_session(self._context, *validate.session(session, client, needed=True))

    def restore_session(self, session: str, *, client: str | None = None) -> Logged:
        """Bring back the transcript of a session that was forgotten."""
        from holdfast.verbs import forget as back

        self._context.require_enabled()
        return back.restore_session(self._context, *validate.session(session, client, needed=True))

    def trash(self, *, scope: str | None = None) -> List[TrashedNote]:
        """What can be restored, newest first."""
        places = self._context.visible_scopes(scope) if self.config.enabled else []
        return [one for place in places for one in self._context.store.list_trash(place)]

    def purge(
        self, key: str | None = None, *, scope: str | None = None, transcripts: bool = False, session: str | None = None,
        client: str | None = None, text: str | bytes | None = None, files: bool = False,
    ) -> Receipt:  # fmt: skip
        """Remove for good a note, with `transcripts` also the turns that say it; or a whole `session`; or a `text` wherever it
        stands, in `files` too. Answers when every byte has been read back; it cannot come back unless a person says so."""
        from holdfast.verbs import purge

        self._context.require_enabled()
        return purge.purge(
            self._context, key, scope, transcripts, *validate.session(session, client), text, files, self._told_of
        )

    def receipts(self, id: str | None = None) -> List[Receipt]:
        """What was purged, newest first: what went, how that was checked, and not a word of it."""
        from holdfast.verbs import purge

        return purge.receipts(self._context, validate.string(id, "id of a receipt"))

    def clear(self, scope: str) -> Cleared:
        """Forget every note of a scope; how many there were. Its `beyond_reach` says which files may still show them."""
        from holdfast.verbs import forget as back

        self._context.require_enabled()
        cleared = Cleared(back.clear(self._context, scope))
        cleared.beyond_reach = tuple(self._render_anew()[1])
        return cleared

    def retain(self, *, dry_run: bool = False) -> List[Note]:
        """Archive what has not been updated or used for its scope's time, bring back archived notes that were recalled since,
        and empty trash that is too old to restore."""
        from holdfast.verbs import purge, retention

        self._context.require_enabled()
        archived = retention.run(self._context, dry_run)
        if not dry_run:
            purge.finish(self._context, self._told_of)
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
        from holdfast.search import order

        context = self._context
        asked, ran = self._asked(query, scope, kind, type, tags, limit, as_of, known_at, mode, sort)
        present = dates.moment(now, "now") if now is not None else None
        if not self.config.enabled:
            return Answer((), ran, True, "memory is disabled", True)
        weak: frozenset[int] = frozenset()
        reason, why = context.refresh(asked.scopes, archived=True), {}
        if asked.part == _FACTS:
            found, by_meaning, ran = [], ran != "keyword", "keyword"
            reason = reason or ("facts are found by words: keyword search ran" if by_meaning else "")
        elif ran == "recent":
            found = context.query(lambda: context.index.recent(asked, limit * 4))
        else:
            result = context.query(lambda: context.search(query, asked, limit, present, ran, explain))
            found, ran, why, reason = result.found, result.mode, result.why, reason or result.reason
            weak = result.weak
        found, why = rank_archived_lower(found, why)
        usage = context.usage(found) if sort == "usage" else {}
        near = asked.scopes if scope != "all" else ()  # none of all projects comes before the others
        ranked = order.order(found, near, "recency" if ran == "recent" else sort, usage, usage_id)
        hits = context.hits(ranked, limit, why, weak)
        if ran != "recent" and (asked.as_of if asked.part == EVERY_PART else _FACTS in (asked.part or "")):
            from holdfast.verbs import facts as fact_lines

            at = asked.as_of or present or asked.now
            hits = _merged(hits, fact_lines.recalled(context, query, asked, at, limit, explain), sort)[:limit]
        return Answer(tuple(hits), ran, bool(reason), reason)

    def get(self, key: str, *, scope: str | None = None, as_of: When = None, known_at: When = None) -> Note:
        """The note under a key, in the nearest scope that has one; or the version of it that held at a time. Reading counts as
        use. An archived note is marked, and comes back among the notes if this caller may write."""
        from holdfast.formats import versions

        known = dates.as_of(known_at, "known_at") if known_at is not None else None
        moment = dates.as_of(as_of, "as_of") if as_of is not None else known
        place, there, lies = self._context.find_note(key, scope)
        held = self.config.quarantine
        if moment:
            note = versions.to_note_at(place, key, there, moment, known, held)
        else:
            note = versions.to_note(place, key, there, held)
        back = self._context.record_use(place, key, there.header.id, lies)
        if lies is None:
            return note
        return note.replace(archived=True, path=note.path if back else f"{place.folder}/{lies.part}/{lies.name}")

    def list(
        self, *, scope: str | None = None, type: str | None = None, tags: Tags = None, limit: int | None = None,
        source: str | None = None, archived: bool = False,
    ) -> List[Note]:  # fmt: skip
        """The notes this caller may see, newest first, pinned ones before; only those that came from a `source`, be it by way
        of other notes. With `archived` the archived notes instead."""
        context = self._context
        wanted = _one_of(type, TYPES, "type") if type else None
        most = _limit(limit, 10**9) if limit is not None else -1
        if not self.config.enabled:
            return []
        folders = context.visible_folders(scope)
        context.refresh(folders, archived)
        if archived:
            if source is not None:
                raise UsageError("archived notes cannot be listed by source", "Leave out one of archived and source")
            rows = context.query(lambda: context.index.notes(folders, wanted, parse_tags(tags), most=most, archived=True))
            return [note_of_row(row, archived=True) for row in rows]
        if source is not None:
            from holdfast.verbs import forget_source

            paths = forget_source.paths(context, source, folders)
            every = context.query(lambda: context.index.notes(folders, wanted, parse_tags(tags)))
            return [note for row in every if (note := note_of_row(row)).path in paths][: limit or len(every)]
        return [
            note_of_row(row) for row in context.query(lambda: context.index.notes(folders, wanted, parse_tags(tags), most=most))
        ]

    def history(self, key: str, *, scope: str | None = None) -> List[Version]:
        """Every version of a note, newest first."""
        from holdfast.formats import versions

        place, there, lies = self._context.find_note(key, scope)
        self._context.record_use(place, key, there.header.id, lies)
        return versions.list_versions(there)

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
        from holdfast.verbs import facts as fact_lines

        return fact_lines.facts_of(self._context, subject, label, as_of, scope, history)

    def brief(
        self, *, prompt: str | None = None, again: bool = False, cap: int | None = None, explain: bool = False,
        mode: str = "keyword", remember: bool = True,
    ) -> Brief:  # fmt: skip
        """What an agent is told when it starts: nearest scope first, in the budget, the same bytes for the same notes. With
        a `prompt`, only the notes that bear on it and that this session was not shown yet; `again` also those it was. No
        more than `cap` characters; `explain` says of each note why it is in or out, and is not counted as shown; neither is
        what is not to `remember`."""
        from holdfast.verbs.brief import select

        how = _one_of(mode, ("keyword", "hybrid"), "mode")
        return select.brief(self._context, prompt, again, cap, explain, how, remember=remember)

    def render(self, path: str | os.PathLike[str], *, remove: bool = False) -> Rendered:
        """Put the briefing into a file that a client reads: into a block of ours, the rest of the file untouched. With
        nothing to tell, or to `remove` it, the block is taken out. What is forgotten is gone from there at once. Everybody
        who works in the project reads it: notes of one session or one agent are not in it."""
        from holdfast.verbs import render

        self._context.require_enabled()
        text_of = (lambda _: "") if remove else self._told_of
        return render.render(self.config, os.fspath(path), text_of, self.project)

    def boot(self, *, scope: str | None = None, cap: int | None = None, scaffolds: str | Iterable[str] | None = None) -> Boot:
        """What an agent that keeps continuity reads when it starts: heartbeat, messages, live state, open loops, identity,
        goals. `scaffolds` are made first where they are missing: those a client declares, and those of the settings."""
        from holdfast.verbs.scaffold import boot

        return boot.boot(self._context, scope, cap, scaffolds)

    def expand(self, of: str, *, before: int = 3, after: int = 3, session: str | None = None) -> List[Turn]:
        """What was said around a turn, which is named by its citation or its id."""
        from holdfast.verbs import history

        return history.expand(self._context, of, before, after, session)

    def export(self, *, scope: str | None = None) -> Export:
        """Every note, with all its versions, as plain data; of secrets only the rules (`redacted`). At the end: `left_out`."""
        from holdfast.verbs import export

        return export.export(self._context, scope)

    def graph(self, entity: str, *, depth: int = 1, as_of: When = None, scope: str | None = None) -> Graph:
        """What is known about an entity and its neighbours: facts with [[links]], now or as of a day."""
        from holdfast.verbs import graph

        return graph.graph(self.facts(as_of=as_of, scope=scope), entity, depth)

    def path(self, start: str, end: str, *, as_of: When = None, scope: str | None = None) -> List[Edge]:
        """The shortest way from one entity to another, now or as of a day; empty if there is none."""
        from holdfast.verbs import graph

        return graph.path(self.facts(as_of=as_of, scope=scope), start, end)

    def embed(self) -> WaitingCounts:
        """Give every passage its vectors now, instead of a few with each recall; by role of a model, how many still lack
        them. Its `failed` says why a model could not be used."""
        context = self._context
        context.require_enabled()
        context.refresh(tuple(context.store.scopes()), archived=True)
        return context.query(lambda: context.hybrid_search().embedding.catch_up(context.progress, everything=True))

    def search(self, query: str, *, limit: int = 10, mode: str = "hybrid") -> Snippets:
        """Pieces of notes and files that match, by words and by meaning: path, lines, score, snippet. The list also says
        which `mode` ran, and whether it is `degraded` and the `reason`."""
        from holdfast.verbs.read import SEARCHED, snippets

        how = _one_of(mode, SEARCH_MODES, "mode")
        return snippets(self.recall(query, limit=limit, mode=how, kind=SEARCHED))

    def read(self, path: str, start: int = 1, lines: int | None = None) -> Piece:
        """A piece of a file by the path that `search` and citations show; a missing one is empty text, not `exists`. Reading a
        note counts as use, as with `get`."""
        from holdfast.verbs.read import read_piece

        context, on = self._context, self.config.enabled
        return read_piece(
            context.store,
            path,
            start,
            lines,
            context.visible_folders(None) if on else (),
            context.refuse_returned,
            context.record_use,
        )

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
        return scaffold.make(self._context, name, scaffold.place_of(self._context, scope))

    # --- looking after it ----------------------------------------------------------------------------------------

    def status(self, *, whole: bool = True) -> Status:
        """Where memory for this folder lives, how much there is, and what would be briefed; of the `whole` home, or of no more
        than the scopes that this caller may see. Switched off, only where."""
        from holdfast.verbs import status
        from holdfast.verbs.brief import select

        return status.status(self._context, select.brief(self._context, remember=False), whole)

    def check(self) -> List[Problem]:
        """What is wrong with the home, and the command that mends each thing. Switched off, it opens no database."""
        from holdfast.verbs import purge, render, status

        return [*status.check(self._context), *purge.problems(self._context, self._told_of), *render.problems(self.config.home)]

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
        return projects.every(self._context)

    def adopt(self, old: str, new: str | None = None) -> Adopted:
        """Let the memory of the project `old` be found from `new`, or from this caller's own project. Only a person may:
        `Memory(origin="user")`. The notes stay where they are."""
        from holdfast.verbs import projects

        self._context.require_enabled()
        return projects.adopt(self._context, old, new)

    def mark(self) -> str:
        """Give this folder a marker, so that its memory moves with it; the project's id."""
        self._context.require_enabled()
        return self._context.write_marker()

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

        return render.render_anew(self.config, self._told_of) if render.anywhere(self.config.home) else ([], [])

    def _told_of(self, project: str) -> str:
        """What a file that belongs to a project shows: nothing of one session's or one agent's."""
        from holdfast.verbs.brief import select

        others = self.config.replace(project=None, session=None, agent=None, allowed_scopes=SCOPES)
        with Memory(config=others, project=project, client=self.config.client) as memory:
            return select.brief(memory._context, remember=False).text

    def _asked(
        self, query: object, scope: str | None, kind: str | None, type: str | None, tags: Tags, limit: object, as_of: When,
        known_at: When, mode: str, sort: str,
    ) -> tuple[SearchFilter, str]:  # fmt: skip
        """The question, checked before any work, and the mode that will run."""
        _one_of(mode, MODES, "mode")
        _one_of(sort, SORTS, "sort")
        _limit(limit, 100)
        if not isinstance(query, str):
            raise UsageError(f"a query must be a string, not {query.__class__.__name__}", "Say what to look for")
        if mode != "recent" and not query.strip():
            raise UsageError("an empty query", "Say what to look for, or ask with mode 'recent'")
        known = dates.as_of(known_at, "known_at") if known_at is not None else None
        moment = dates.as_of(as_of, "as_of") if as_of is not None else known
        wanted = _one_of(type, TYPES, "type") if type else None
        look = self._context.all_folders if scope == "all" else lambda: self._context.visible_folders(scope)
        folders = look() if self.config.enabled else ()
        kinds = kind.split(",") if isinstance(kind, str) and kind else [kind] if kind else []
        if mode == "recent" and kinds == ["fact"]:
            raise UsageError("facts cannot be recalled by mode 'recent'", "Say what to look for, or list them with `facts`")
        part = " ".join([PARTS[_one_of(one, tuple(PARTS), "kind")] for one in kinds]) or EVERY_PART
        return SearchFilter(folders, part, wanted, parse_tags(tags), moment, known, timestamp(dates.clock())), mode


def _merged(hits: list[Hit], facts: list[Hit], sort: str) -> list[Hit]:
    """Both in one order. A fact that has all that is asked for scores as much as the best of the others."""
    best = max([hit.score for hit in hits], default=1.0) or 1.0
    facts = [fact.replace(score=float(f"{best * fact.score:.4g}")) for fact in facts]
    if sort == "usage":
        return hits + facts
    if sort == "recency":
        return sorted(facts + hits, key=lambda hit: hit.updated, reverse=True)
    return sorted(facts + hits, key=lambda hit: -hit.score)


def _one_of(value: object, allowed: tuple[str, ...], what: str) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise UsageError(f"unknown {what} {value!r}", f"One of: {', '.join(allowed)}")
    return value


def _limit(value: object, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise UsageError(Template(field("limit"), f" must be 1 to {most}, not {value!r}"), f"Ask for 1 to {most}")
    return value
