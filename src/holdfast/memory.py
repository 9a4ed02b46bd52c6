"""Memory: the verbs. Each is the list of its steps; the rooms below do them."""

from __future__ import annotations

import os

from holdfast import config as configuration
from holdfast import dates
from holdfast.desk import Desk, typed_errors, usage_id
from holdfast.errors import Conflict, NotFound, UsageError
from holdfast.index.sqlite import Asked, note_of_row
from holdfast.note import MODES, PARTS, SORTS, TYPES, Answer, Cleared, Forgotten, Note, Progress, stamp, tags_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from builtins import list as List  # `list` is a verb here
    from collections.abc import Iterable, Mapping
    from types import TracebackType
    from typing import Any, Self

    from holdfast.briefing import Brief
    from holdfast.browsing import Piece, Snippet
    from holdfast.checkup import Reindexed, Status
    from holdfast.desk import Tags, When
    from holdfast.embedding import Left
    from holdfast.files import Files
    from holdfast.graph import Edge, Graph
    from holdfast.leaf import Draft
    from holdfast.note import Binned, Fact, FactSet, Logged, Problem, Receipt, Scope, Stored, Turn, Version
    from holdfast.rendering import Rendered
    from holdfast.scaffold import Scaffolded
    from holdfast.scaffold.boot import Boot


@typed_errors
class Memory:
    """One caller's memory in one home: its session, its project, its agent, and what is global."""

    def __init__(
        self,
        home: str | os.PathLike[str] | None = None,
        *,
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
        self._desk = Desk(
            self.config, project or self.config.project, session or self.config.session, agent or self.config.agent,
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
    ) -> Stored:
        """Keep a text. On a key that exists it becomes the current version and the old one stays in the history.
        `expected` is the `version` of the note you saw: if it is another by now, `Conflict`, and nothing is written."""
        desk = self._desk
        desk.must_be_enabled()
        draft = desk.draft(text, key, type, tags, valid_from, valid_to, pinned, origin, expected)
        place = desk.place_of(desk.scope(scope), draft.key)
        return desk.write(place, draft.key, lambda _: draft)

    def store_many(
        self, notes: Iterable[Mapping[str, Any]], *, scope: str = "project", origin: str | None = None
    ) -> List[Stored]:
        """Keep many at once, with one flush for all: every one is kept, or none and the error names the bad one.
        Each is a mapping with `text` and, if you like, the other words that `store` takes."""
        desk = self._desk
        desk.must_be_enabled()
        place = desk.scope(scope)
        drafts: dict[str, Draft] = {}
        given: List[str] = []
        for number, note in enumerate(notes, 1):
            draft = desk.draft_of(note, number, origin)
            if drafts.setdefault(draft.key, draft) != draft:
                raise UsageError(f"note {number}: the key {draft.key!r} comes twice with different texts")
            given.append(draft.key)
        places: dict[Scope, List[Draft]] = {}
        for draft in drafts.values():
            places.setdefault(desk.place_of(place, draft.key), []).append(draft)
        stored = {one.note.key: one for there, some in places.items() for one in desk.write_many(there, some)}
        return [stored[key] for key in given]

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
    ) -> FactSet:
        """Write `label: value` about a subject, as of a day. The value before it is struck through and dated."""
        from holdfast import stating

        self._desk.must_be_enabled()
        return stating.fact(self._desk, subject, label, value, on, many, self._desk.scope(scope), origin)

    def log(
        self,
        turns: Iterable[Mapping[str, Any]],
        *,
        session: str | None = None,
        client: str | None = None,
        scope: str = "project",
    ) -> Logged:
        """Keep what was said in a session, word for word. Each turn is a mapping with `text` (or `content`), a `role` or a
        `speaker`, and if you like a `time` and an `id`; one that is kept already is not added again."""
        from holdfast import history

        return history.log(self._desk, turns, session, client, scope)

    def import_history(
        self, path: str | os.PathLike[str], *, client: str | None = None, scope: str = "project"
    ) -> List[Logged]:
        """Keep the turns of another program's transcript, or of all in a folder; what is kept already is not added again."""
        from holdfast import history

        return history.import_history(self._desk, path, client, scope, self._desk.progress)

    def forget(self, key: str, *, scope: str | None = None) -> Forgotten:
        """Put a note in the trash: gone from every answer at once, restorable for 30 days."""
        from holdfast import guard

        self._desk.must_be_enabled()
        places = self._desk.places_of(guard.key_of_note(key), scope)
        moved = [place for place in places if self._desk.bin(place, [key], "trash")]
        if not moved:
            return Forgotten(False, key)
        beyond = self._render_anew()[1]
        until = dates.stamp(dates.clock() + self.config.trash_days * 86400)
        return Forgotten(True, key, moved[0], until, tuple(beyond))

    def restore(self, key: str, *, scope: str | None = None, under: str | None = None) -> Note:
        """Bring back the note that was last forgotten or archived under this key, with its whole history; `under`
        another key, if the old one has been taken since."""
        from holdfast import guard
        from holdfast.shelf.folder import Changed

        desk = self._desk
        desk.must_be_enabled()
        name = guard.key(under if under is not None else key, "bring it back under one: `holdfast restore NAME --as KEY`")
        for place in desk.places(scope):
            binned = desk.shelf.binned(place, key)
            if not binned:
                continue
            try:
                desk.shelf.unbin(place, binned[0], name)
            except Changed:
                fix = f"Bring it back under another: `holdfast restore {key} --as OTHER`"
                raise Conflict(f"another note has the key {name!r} by now", fix) from None
            desk.brought_back(place, name, touched=binned[0].part == "archive")
            return self.get(name, scope=place.kind)
        raise NotFound(f"nothing forgotten or archived under {key!r}", "`holdfast list --trash` shows what can be restored")

    def trash(self, *, scope: str | None = None) -> List[Binned]:
        """What can be restored, newest first."""
        places = self._desk.places(scope) if self.config.enabled else []
        return [one for place in places for one in self._desk.shelf.binned(place)]

    def purge(self, key: str, *, scope: str | None = None) -> Receipt:
        """Remove a note for good: file, history, trash, archive, index, usage. Answers when that has been checked."""
        from holdfast import erasing, guard

        self._desk.must_be_enabled()
        receipt = erasing.purge(self._desk, self._desk.places_of(guard.key_of_note(key), scope, binned=True), key)
        written, failed = self._render_anew()
        checks = [*receipt.checks, *[f"rendered anew: {path}" for path in written]]
        beyond = [*receipt.beyond_reach, *[f"the block in {one}" for one in failed]]
        return receipt.replace(checks=tuple(checks), beyond_reach=tuple(beyond))

    def clear(self, scope: str) -> Cleared:
        """Forget every note of a scope; how many there were. Its `beyond_reach` says which files may still show them."""
        desk = self._desk
        desk.must_be_enabled()
        count = 0
        for place in desk.places(scope if isinstance(scope, str) else ""):
            names = [entry.name for entry in desk.shelf.census(place.folder, "notes")]
            count += len(desk.bin(place, [name[:-3] for name in names if name.endswith(".md")], "trash"))
        cleared = Cleared(count)
        cleared.beyond_reach = tuple(self._render_anew()[1])
        return cleared

    def retain(self, *, dry_run: bool = False) -> List[Note]:
        """Archive what has not been updated for its scope's time, and empty trash that is too old to restore."""
        from holdfast import retention

        self._desk.must_be_enabled()
        archived = retention.run(self._desk, dry_run)
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
        (`known_at`); of one `kind` (note, file, turn), of several with a comma between, or of all. A question that names a
        time ("last week") means it as of `now`. The answer says which mode really ran, and why if it is less than was asked
        for; with `explain` each hit says why it is where it is."""
        from holdfast import rank

        desk = self._desk
        asked, ran = self._asked(query, scope, kind, type, tags, limit, as_of, known_at, mode, sort)
        present = dates.moment(now, "now") if now is not None else None
        if not self.config.enabled:
            return Answer((), ran, True, "memory is disabled", True)
        reason, why = desk.look(asked.scopes), {}
        if ran == "recent":
            found = desk.ask(lambda: desk.index.recent(asked, limit * 4))
        else:
            sought = desk.ask(lambda: desk.sought(query, asked, limit, present, ran, explain))
            found, ran, why, reason = sought.found, sought.mode, sought.why, reason or sought.reason
        usage = desk.usage(found) if sort == "usage" else {}
        ranked = rank.order(found, asked.scopes, "recency" if ran == "recent" else sort, usage, usage_id)
        hits = desk.hits(ranked, limit, why)
        return Answer(tuple(hits), ran, bool(reason), reason)

    def get(self, key: str, *, scope: str | None = None, as_of: When = None, known_at: When = None) -> Note:
        """The note under a key, in the nearest scope that has one; or the version of it that held at a time."""
        from holdfast import leaf

        known = dates.as_of(known_at, "known_at") if known_at is not None else None
        moment = dates.as_of(as_of, "as_of") if as_of is not None else known
        place, there = self._desk.note(key, scope)
        return leaf.note_at(place, key, there, moment, known) if moment else leaf.note_of(place, key, there)

    def list(
        self, *, scope: str | None = None, type: str | None = None, tags: Tags = None, limit: int | None = None
    ) -> List[Note]:
        """The notes this caller may see, newest first, pinned ones before."""
        desk = self._desk
        wanted = _one_of(type, TYPES, "type") if type else None
        most = _limit(limit, 10**9) if limit is not None else -1
        if not self.config.enabled:
            return []
        folders = desk.folders(scope)
        desk.look(folders)
        return [note_of_row(row) for row in desk.ask(lambda: desk.index.notes(folders, wanted, tags_of(tags), most=most))]

    def history(self, key: str, *, scope: str | None = None) -> List[Version]:
        """Every version of a note, newest first."""
        from holdfast import leaf

        return leaf.versions_of(self._desk.note(key, scope)[1])

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
        from holdfast import guard

        desk = self._desk
        moment = dates.as_of(as_of, "as_of") if as_of is not None else stamp(dates.clock())
        for name in (subject, label):
            if name is not None:
                guard.one_line(name, "subject or label")
        if not self.config.enabled:
            return []
        folders = desk.folders(scope)
        desk.look(folders)
        moment_of = None if history else moment
        if subject is None:
            return desk.ask(lambda: desk.index.facts(folders, None, label, moment_of))
        from holdfast.stated import names_of

        names = desk.ask(lambda: names_of(desk.index, folders, [subject]))
        found = [desk.ask(lambda name=name: desk.index.facts(folders, name, label, moment_of)) for name in sorted(names)]  # type: ignore[misc]
        return list(dict.fromkeys([one for some in found for one in some]))

    def brief(
        self, *, prompt: str | None = None, again: bool = False, cap: int | None = None, explain: bool = False,
        mode: str = "keyword", remember: bool = True,
    ) -> Brief:  # fmt: skip
        """What an agent is told when it starts: nearest scope first, in the budget, the same bytes for the same notes. With
        a `prompt`, only the notes that bear on it and that this session was not shown yet; `again` also those it was. No
        more than `cap` characters; `explain` says of each note why it is in or out, and is not counted as shown; neither is
        what is not to `remember`."""
        from holdfast import telling

        how = _one_of(mode, ("keyword", "hybrid"), "mode")
        return telling.brief(self._desk, prompt, again, cap, explain, how, remember=remember)

    def render(self, path: str | os.PathLike[str], *, remove: bool = False) -> Rendered:
        """Put the briefing into a file that a client reads: into a block of ours, the rest of the file untouched. With
        nothing to tell, or to `remove` it, the block is taken out. What is forgotten is gone from there at once. Everybody
        who works in the project reads it: notes of one session or one agent are not in it."""
        from holdfast import rendering

        self._desk.must_be_enabled()
        project = self.project
        return rendering.render(self.config, os.fspath(path), "" if remove else self._told_of(project), project)

    def boot(
        self, *, scope: str | None = None, cap: int | None = None, scaffolds: str | Iterable[str] | None = None
    ) -> Boot:
        """What an agent that keeps continuity reads when it starts: heartbeat, messages, live state, open loops, identity,
        goals. `scaffolds` are made first where they are missing: those a client declares, and those of the settings."""
        from holdfast.scaffold import boot

        return boot.boot(self._desk, scope, cap, scaffolds)

    def expand(self, of: str, *, before: int = 3, after: int = 3, session: str | None = None) -> List[Turn]:
        """What was said around a turn, which is named by its citation or its id."""
        from holdfast import history

        return history.expand(self._desk, of, before, after, session)

    def graph(self, entity: str, *, depth: int = 1, as_of: When = None, scope: str | None = None) -> Graph:
        """What is known about an entity and its neighbours: facts with [[links]], now or as of a day."""
        from holdfast import graph

        return graph.graph(self.facts(as_of=as_of, scope=scope), entity, depth)

    def path(self, start: str, end: str, *, as_of: When = None, scope: str | None = None) -> List[Edge]:
        """The shortest way from one entity to another, now or as of a day; empty if there is none."""
        from holdfast import graph

        return graph.path(self.facts(as_of=as_of, scope=scope), start, end)

    def embed(self) -> Left:
        """Give every passage its vectors now, instead of a few with each recall; by role of a model, how many still lack
        them. Its `failed` says why a model could not be used."""
        desk = self._desk
        desk.must_be_enabled()
        desk.look(tuple(desk.shelf.scopes()))
        return desk.ask(lambda: desk.seeker().embedding.catch_up(desk.progress, everything=True))

    def search(self, query: str, *, limit: int = 10) -> List[Snippet]:
        """Pieces of notes and files that match: path, lines, score, snippet."""
        from holdfast.browsing import SEARCHED, snippet

        return [snippet(hit) for hit in self.recall(query, limit=limit, mode="keyword", kind=SEARCHED).hits]

    def read(self, path: str, start: int = 1, lines: int | None = None) -> Piece:
        """A piece of a file by the path that `search` and citations show; a missing one is empty text, not `exists`."""
        from holdfast.browsing import read_piece

        return read_piece(self.home, path, start, lines, self._desk.folders(None) if self.config.enabled else ())

    @property
    def files(self) -> Files:
        """The agent's own tree, by the six verbs of the memory tool."""
        from holdfast.files import Files

        return Files(self._desk)

    def scaffold(self, name: str, *, scope: str | None = None) -> Scaffolded:
        """Put a tree of template files where they are missing: the agent's tree, without an agent the project's. What stands
        there is never touched."""
        from holdfast import scaffold

        self._desk.must_be_enabled()
        return scaffold.make(self._desk, name, scaffold.place_of(self._desk, scope))

    # --- looking after it ----------------------------------------------------------------------------------------

    def status(self) -> Status:
        """Where memory for this folder lives, how much there is, and what would be briefed. Switched off, only where."""
        from holdfast import checkup, telling

        return checkup.status(self._desk, telling.brief(self._desk, remember=False))

    def check(self) -> List[Problem]:
        """What is wrong with the home, and the command that mends each thing. Switched off, it opens no database."""
        from holdfast import checkup, rendering

        return [*checkup.check(self._desk), *rendering.problems(self.config.home)]

    def reindex(self) -> Reindexed:
        """Throw the catalogue away and build it from the shelf."""
        from holdfast import checkup

        self._desk.must_be_enabled()
        return checkup.reindex(self._desk)

    def mark(self) -> str:
        """Give this folder a marker, so that its memory moves with it; the project's id."""
        self._desk.must_be_enabled()
        return self._desk.mark()

    @property
    def home(self) -> str:
        """The folder all of it lives in."""
        return self.config.home

    @property
    def project(self) -> str:
        """The id of the project this caller works in."""
        return self._desk.project_ids()[0]

    @property
    def session(self) -> str | None:
        return self._desk.session

    @property
    def agent(self) -> str | None:
        return self._desk.agent

    def close(self) -> None:
        """Let go of files; everything stored is on disk already."""
        self._desk.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _render_anew(self) -> tuple[List[str], List[str]]:
        """Files that show a briefing must not show what is gone."""
        from holdfast import rendering

        if not rendering.anywhere(self.config.home):
            return [], []
        return rendering.render_anew(self.config, self._told_of)

    def _told_of(self, project: str) -> str:
        """What a file that belongs to a project shows: nothing of one session's or one agent's."""
        from holdfast import telling

        others = self.config.replace(project=None, session=None, agent=None)
        with Memory(config=others, project=project, client=self.config.client) as memory:
            return telling.brief(memory._desk, remember=False).text

    def _asked(
        self, query: object, scope: str | None, kind: str | None, type: str | None, tags: Tags, limit: object, as_of: When,
        known_at: When, mode: str, sort: str,
    ) -> tuple[Asked, str]:  # fmt: skip
        """The question, checked before any work, and the mode that will run."""
        _one_of(mode, MODES, "mode")
        _one_of(sort, SORTS, "sort")
        _limit(limit, 100)
        if not isinstance(query, str) or (mode != "recent" and not query.strip()):
            raise UsageError("an empty query", "Say what to look for, or ask with mode 'recent'")
        known = dates.as_of(known_at, "known_at") if known_at is not None else None
        moment = dates.as_of(as_of, "as_of") if as_of is not None else known
        wanted = _one_of(type, TYPES, "type") if type else None
        folders = self._desk.folders(scope) if self.config.enabled else ()
        kinds = kind.split(",") if isinstance(kind, str) and kind else [kind] if kind else []
        part = " ".join([PARTS[_one_of(one, tuple(PARTS), "kind")] for one in kinds]) or None
        asked = Asked(folders, part, wanted, tags_of(tags), moment, known, stamp(dates.clock()))
        return asked, mode


def _one_of(value: object, allowed: tuple[str, ...], what: str) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise UsageError(f"unknown {what} {value!r}", f"One of: {', '.join(allowed)}")
    return value


def _limit(value: object, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise UsageError(f"limit must be 1 to {most}, not {value!r}", f"Ask for 1 to {most}")
    return value
