"""Memory: the verbs on a home. Each verb checks that it may run and calls the module in `holdfast.verbs` that does it."""

from __future__ import annotations

import os

from holdfast import config as configuration
from holdfast.api.interface import MemoryInterface, copy_docstrings
from holdfast.base import dates
from holdfast.context.caller import Context, convert_errors, typed_errors
from holdfast.errors import UsageError, default_words
from holdfast.models import SEARCH_MODES, Cleared, Forgotten, Progress, Stored
from holdfast.safety import validate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from builtins import list as List  # `list` is a verb here
    from collections.abc import Iterable, Mapping
    from concurrent.futures import Future
    from types import TracebackType
    from typing import Any, NoReturn, Self

    from holdfast.context.caller import Tags, When
    from holdfast.errors import Wording
    from holdfast.models import (
        Answer,
        Fact,
        FactSet,
        Logged,
        Note,
        Problem,
        Receipt,
        Related,
        Relation,
        Scope,
        TrashedNote,
        Turn,
        Version,
    )
    from holdfast.search.vectorize import WaitingCounts
    from holdfast.verbs.brief.render import Brief
    from holdfast.verbs.export import Export
    from holdfast.verbs.files import Files
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

_DAY_SECONDS = 86400


@typed_errors
@copy_docstrings
class Memory(MemoryInterface):
    """One caller's memory in one home: its session, its project, its agent, and the global notes.

    `Memory("https://...", token=...)` returns a `RemoteMemory`, which uses a gateway and is an instance of `Memory` too.
    """

    def __new__(cls, home: object = None, *args: object, token: str | None = None, **options: Any) -> Self:
        """Return a memory on a folder or on PostgreSQL; for any other address, a `RemoteMemory`."""
        if isinstance(home, str) and "://" in home and not configuration.is_store(home):
            from holdfast.api.remote import RemoteMemory

            if cls is not Memory:
                raise UsageError(
                    "a subclass of Memory cannot take the URL of a gateway", "Derive it from holdfast.api.remote.RemoteMemory"
                )
            return RemoteMemory(home, *args, token=token, **options)  # type: ignore[return-value]  # a virtual subclass
        if token is not None:
            raise UsageError("token is only for the URL of a gateway", "Give the URL of a gateway, or leave the token out")
        return object.__new__(cls)

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
        words: Wording = default_words,  # how texts for models name commands; an interface may have its own
    ) -> None:
        self.config = config or configuration.load(home)
        project = self.config.project if project is None else project  # an empty one is an error, not none
        self._context = Context(
            self.config,
            project=project,
            session=session or self.config.session,
            agent=agent or self.config.agent,
            client=client or self.config.client,
            origin=origin,
            cwd=os.fspath(cwd) if cwd is not None else None,
            progress=progress or Progress(),
            words=words,
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
        pending = begin_store(
            self, text, key=key, scope=scope, type=type, tags=tags, valid_from=valid_from, valid_to=valid_to,
            pinned=pinned, origin=origin, expected=expected, made_from=made_from, again=again, redact=redact,
            allow_secret=allow_secret,
        )  # fmt: skip
        return pending if isinstance(pending, Stored) else pending.result()

    def store_many(
        self, notes: Iterable[Mapping[str, Any]], *, scope: str | None = None, origin: str | None = None, redact: bool = False
    ) -> List[Stored]:
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
        from holdfast.verbs import facts

        self._context.require_enabled()
        return facts.set_fact(
            self._context, subject, label, value, on=on, many=many, scope=self._context.scope(scope), origin=origin,
            made_from=made_from, redact=redact,
        )  # fmt: skip

    def log(
        self, turns: Iterable[Mapping[str, Any]], *, session: str | None = None, client: str | None = None,
        scope: str = "project", redact: bool = False,
    ) -> Logged:  # fmt: skip
        from holdfast.verbs import history

        return history.log(self._context, turns, session=session, client=client, scope=scope, redact=redact)

    def import_history(
        self, path: str | os.PathLike[str], *, client: str | None = None, scope: str = "project"
    ) -> List[Logged]:
        from holdfast.verbs import history

        return history.import_history(self._context, path, client=client, scope=scope, progress=self._context.progress)

    def forget(self, key: str, *, scope: str | None = None, expected: str | None = None) -> Forgotten:
        from holdfast.verbs import forget

        self._context.require_enabled()
        return self._forgotten(key, forget.forget_key(self._context, key, scope, expected))

    def restore(self, key: str, *, scope: str | None = None, under: str | None = None) -> Note:
        from holdfast.verbs import forget

        self._context.require_enabled()
        name, restored_to = forget.restore(self._context, key, scope, under)
        return self.get(name, scope=restored_to.kind)

    def forget_session(self, session: str, *, client: str | None = None) -> Forgotten:
        from holdfast.verbs import forget

        self._context.require_enabled()
        return forget.forget_session(self._context, *validate.check_session(session, client, required=True))

    def restore_session(self, session: str, *, client: str | None = None) -> Logged:
        from holdfast.verbs import forget

        self._context.require_enabled()
        return forget.restore_session(self._context, *validate.check_session(session, client, required=True))

    def trash(self, *, scope: str | None = None) -> List[TrashedNote]:
        from holdfast.verbs import forget

        return forget.list_trash(self._context, scope)

    def purge(
        self, key: str | None = None, *, scope: str | None = None, transcripts: bool = False, session: str | None = None,
        client: str | None = None, text: str | bytes | None = None, files: bool = False,
    ) -> Receipt:  # fmt: skip
        from holdfast.verbs import purge

        self._context.require_enabled()
        session, client = validate.check_session(session, client)
        return purge.purge(
            self._context, key=key, scope=scope, transcripts=transcripts, session=session, client=client, text=text, files=files
        )  # fmt: skip

    def receipts(self, id: str | None = None) -> List[Receipt]:
        from holdfast.verbs.purge import receipts

        return receipts.list_receipts(self._context, validate.check_string(id, "id of a receipt"))

    def clear(self, scope: str) -> Cleared:
        from holdfast.verbs import forget

        self._context.require_enabled()
        cleared = Cleared(forget.clear(self._context, scope))
        cleared.beyond_reach = self._update_rendered_files()
        return cleared

    def retain(self, *, dry_run: bool = False) -> List[Note]:
        from holdfast.verbs import purge, retention

        self._context.require_enabled()
        archived = retention.run(self._context, dry_run)
        if not dry_run:
            purge.finish(self._context)
        if archived and not dry_run:
            self._update_rendered_files()
        return archived

    # --- provenance ----------------------------------------------------------------------------------------------

    def forget_source(self, source: str, *, revert: bool = False, dry_run: bool = False, everywhere: bool = False) -> Swept:
        from holdfast.verbs import forget_source

        self._context.require_enabled()
        swept = forget_source.forget_by_source(self._context, source, revert=revert, dry_run=dry_run, everywhere=everywhere)
        return swept if dry_run else swept.replace(beyond_reach=self._update_rendered_files())

    def review(self, *, scope: str | None = None, everywhere: bool = False) -> List[Note]:
        from holdfast.verbs import review

        return review.list_quarantined(self._context, scope, everywhere) if self.config.enabled else []

    def approve(self, key: str, *, scope: str | Scope | None = None, expected: str | None = None) -> Note:
        from holdfast.verbs import review

        self._context.require_enabled()
        return review.approve(self._context, key, scope, expected)

    def reject(self, key: str, *, scope: str | Scope | None = None, expected: str | None = None) -> Forgotten:
        from holdfast.verbs import review

        self._context.require_enabled()
        return self._forgotten(key, review.reject(self._context, key, scope, expected))

    def quarantine(self, key: str, *, scope: str | Scope | None = None, expected: str | None = None) -> Note:
        from holdfast.verbs import review

        self._context.require_enabled()
        note = review.put_in_quarantine(self._context, key, scope, expected)
        self._update_rendered_files()
        return note

    # --- relations -----------------------------------------------------------------------------------------------

    def relate(self, key: str, kind: str, target: str, *, scope: str | None = None, target_scope: str | None = None) -> Related:
        from holdfast.verbs import relations

        self._context.require_enabled()
        return self._related(relations.relate(self._context, key, kind, target, scope=scope, target_scope=target_scope))

    def unrelate(
        self, key: str, kind: str, target: str, *, scope: str | None = None, target_scope: str | None = None
    ) -> Related:
        from holdfast.verbs import relations

        self._context.require_enabled()
        return self._related(relations.unrelate(self._context, key, kind, target, scope=scope, target_scope=target_scope))

    def relations(
        self, key: str | None = None, *, scope: str | Scope | None = None, status: str | None = None, everywhere: bool = False
    ) -> List[Relation]:
        from holdfast.verbs import relations

        return relations.list_relations(self._context, key, scope=scope, status=status, everywhere=everywhere)

    def accept_relation(
        self, key: str, kind: str, target: str, *, scope: str | Scope | None = None, target_scope: str | Scope | None = None
    ) -> Related:
        return self._decide_relation(key, kind, target, accept=True, scope=scope, target_scope=target_scope)

    def reject_relation(
        self, key: str, kind: str, target: str, *, scope: str | Scope | None = None, target_scope: str | Scope | None = None
    ) -> Related:
        return self._decide_relation(key, kind, target, accept=False, scope=scope, target_scope=target_scope)

    def _decide_relation(
        self, key: str, kind: str, target: str, *, accept: bool, scope: str | Scope | None, target_scope: str | Scope | None
    ) -> Related:
        from holdfast.verbs import relations

        self._context.require_enabled()
        return self._related(
            relations.decide(self._context, key, kind, target, accept=accept, scope=scope, target_scope=target_scope)
        )

    def _related(self, related: Related) -> Related:
        """Update the files that show a briefing if another note is current now."""
        if related.action != "unchanged" and related.relation.kind == "supersedes":
            self._update_rendered_files()
        return related

    def trace(self, key: str, *, scope: str | None = None) -> Trace:
        from holdfast.verbs import trace

        return trace.trace(self._context, key, scope)

    # --- reading -------------------------------------------------------------------------------------------------

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
        from holdfast.verbs import recall

        return recall.recall(
            self._context, query, scope=scope, type=type, tags=tags, limit=limit, as_of=as_of, known_at=known_at, mode=mode,
            sort=sort, kind=kind, now=now, explain=explain, archived=archived,
        )  # fmt: skip

    def get(self, key: str, *, scope: str | None = None, as_of: When = None, known_at: When = None) -> Note:
        from holdfast.verbs import read

        return read.get(self._context, key, scope, as_of, known_at)

    def list(
        self, *, scope: str | None = None, type: str | None = None, tags: Tags = None, limit: int | None = None,
        source: str | None = None, archived: bool = False,
    ) -> List[Note]:  # fmt: skip
        from holdfast.verbs import read

        return read.list_notes(self._context, kind=scope, type=type, tags=tags, limit=limit, source=source, archived=archived)

    def history(self, key: str, *, scope: str | None = None) -> List[Version]:
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
        from holdfast.verbs import facts

        return facts.list_facts(self._context, subject=subject, label=label, as_of=as_of, scope=scope, history=history)

    def brief(
        self, *, prompt: str | None = None, again: bool = False, cap: int | None = None, explain: bool = False,
        mode: str = "keyword", remember: bool = True,
    ) -> Brief:  # fmt: skip
        from holdfast.verbs.brief import select

        validate.check_choice(mode, ("keyword", "hybrid"), "mode")
        return select.brief(self._context, prompt, again=again, cap=cap, explain=explain, mode=mode, remember=remember)

    def render(self, path: str | os.PathLike[str], *, remove: bool = False) -> Rendered:
        from holdfast.verbs import render

        self._context.require_enabled()
        return render.render(self._context, os.fspath(path), remove=remove)

    def boot(
        self, *, scope: str | None = None, cap: int | None = None, scaffolds: str | Iterable[str] | None = None,
        remember: bool = True,
    ) -> Boot:  # fmt: skip
        from holdfast.verbs.scaffold import boot

        return boot.boot(self._context, scope, cap, scaffolds, remember)

    def operator_send(
        self, text: str | bytes, *, to: str = "agent", re: str | None = None, agent: str | None = None,
        scope: str | None = None, redact: bool = False,
    ) -> Message:  # fmt: skip
        from holdfast.verbs import operator_messages

        return operator_messages.send(self._context, text, to=to, re=re, agent=agent, scope=scope, redact=redact)

    def operator_list(self, *, agent: str | None = None, scope: str | None = None, unread: bool = False) -> List[Message]:
        from holdfast.verbs import operator_messages

        return operator_messages.list_messages(self._context, agent=agent, scope=scope, unread=unread)

    def operator_read(self, id: str | None = None, *, agent: str | None = None, scope: str | None = None) -> List[Message]:
        from holdfast.verbs import operator_messages

        return operator_messages.read(self._context, id, agent=agent, scope=scope)

    def expand(self, of: str, *, before: int = 3, after: int = 3, session: str | None = None) -> List[Turn]:
        from holdfast.verbs import history

        return history.expand(self._context, of, before=before, after=after, session=session)

    def export(self, *, scope: str | None = None) -> Export:
        from holdfast.verbs import export

        return export.export(self._context, scope)

    def graph(self, entity: str, *, depth: int = 1, as_of: When = None, scope: str | None = None) -> Graph:
        from holdfast.verbs import graph

        return graph.build_graph(graph.list_links(self._context, as_of, scope), entity, depth)

    def path(self, start: str, end: str, *, as_of: When = None, scope: str | None = None) -> List[Edge]:
        from holdfast.verbs import graph

        return graph.find_path(graph.list_links(self._context, as_of, scope), start, end)

    def search(self, query: str, *, limit: int = 10, mode: str = "hybrid") -> Snippets:
        from holdfast.verbs import read

        validate.check_choice(mode, SEARCH_MODES, "mode")
        return read.snippets(self.recall(query, limit=limit, mode=mode, kind=read.SEARCHED))

    def read(self, path: str, start: int = 1, lines: int | None = None) -> Piece:
        from holdfast.verbs import read

        return read.read_piece(self._context, path, start, lines)

    @property
    def files(self) -> Files:
        from holdfast.verbs.files import Files

        return Files(self._context)

    def scaffold(self, name: str, *, scope: str | None = None) -> Scaffolded:
        from holdfast.verbs import scaffold

        self._context.require_enabled()
        return scaffold.create(self._context, name, scaffold.choose_scope(self._context, scope))

    # --- maintenance ---------------------------------------------------------------------------------------------

    def status(self, *, whole: bool = True) -> Status:
        from holdfast.verbs import status
        from holdfast.verbs.brief import select

        return status.status(self._context, select.brief(self._context, remember=False), whole)

    def check(self) -> List[Problem]:
        from holdfast.verbs.doctor import checks

        return checks.find_problems(self._context)

    def reindex(self) -> Reindexed:
        from holdfast.verbs import status

        self._context.require_enabled()
        return status.reindex(self._context)

    def embed(self) -> WaitingCounts:
        context = self._context
        context.require_enabled()
        context.refresh(tuple(context.store.list_scopes()), archived=True)
        return context.query(lambda: context.hybrid_search().vectorizer.catch_up(context.progress, everything=True))

    def projects(self) -> List[KnownProject]:
        from holdfast.verbs import projects

        self._context.require_person("list the projects of this home", "project list")
        return projects.list_projects(self._context)

    def adopt(self, old: str, new: str | None = None) -> Adopted:
        from holdfast.verbs import projects

        self._context.require_enabled()
        return projects.adopt(self._context, old, new)

    def mark(self) -> str:
        from holdfast.verbs import projects

        self._context.require_enabled()
        return projects.write_marker(self._context)

    @property
    def home(self) -> str:
        return self.config.home

    @property
    def project(self) -> str:
        return self._context.project_ids()[0]

    @property
    def session(self) -> str | None:
        return self._context.session

    @property
    def agent(self) -> str | None:
        return self._context.agent

    @property
    def origin(self) -> str:
        return self._context.origin

    def close(self) -> None:
        self._context.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Memory cannot be pickled; give other processes the home, and let each open its own")

    def _forgotten(self, key: str, places: List[Scope]) -> Forgotten:
        """Return the answer about a note that was moved to the trash of these scopes."""
        if not places:
            return Forgotten(False, key)
        until = dates.format_timestamp(dates.clock() + self.config.trash_days * _DAY_SECONDS)
        return Forgotten(True, key, places[0], until, self._update_rendered_files())

    def _update_rendered_files(self) -> tuple[str, ...]:
        """Render the briefing again into every file that has one; return the files that may still show what was forgotten."""
        from holdfast.verbs import render

        return tuple(render.render_all(self._context)[1])


@convert_errors
def begin_store(
    memory: Memory, text: str | bytes, *, scope: str = "project", again: bool = False, **options: Any
) -> Stored | Future[Stored]:
    """Store a note as `Memory.store` does, with its options. Where the memory has a write queue, the note is only queued:
    its future result is returned."""
    from holdfast.verbs import write

    context = memory._context
    context.require_enabled()
    draft = write.make_draft(context, text, **options)
    return write.begin_store(context, draft, context.scope(scope), allow_purged=again)


def memory_of(context: Context) -> Memory:
    """Return the memory of a context that is open already."""
    memory = object.__new__(Memory)
    memory.config, memory._context = context.config, context
    return memory


def context_of(memory: Memory) -> Context:
    """Return the context of a memory on a home, for interfaces that run a verb which is not a method of `Memory`."""
    return memory._context
