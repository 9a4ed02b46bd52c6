"""Per-caller context: resolved scopes and open store, index and ledger handles."""

from __future__ import annotations

from holdfast import errors
from holdfast.base import tracing
from holdfast.context.purge_filter import PurgeFilter
from holdfast.context.sync import ListingWriter, Sync
from holdfast.errors import Disabled, NoScope, Template, UsageError, from_os, phrase
from holdfast.index.sqlite import SqliteIndex
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.models import SCOPES, Progress, Scope, Source
from holdfast.safety import validate
from holdfast.store.changes import FileChanges
from holdfast.store.files import FileStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from typing import Any, Protocol, TypeVar

    from holdfast.config import Config
    from holdfast.errors import Wording
    from holdfast.index.interface import Index
    from holdfast.ledger.interface import Ledger
    from holdfast.search.hybrid import HybridSearch
    from holdfast.store.changes import ChangeDetector
    from holdfast.store.interface import Store

    T = TypeVar("T")

    class WriteQueue(Protocol):
        """Writes the notes of concurrent callers together (`holdfast.verbs.batching`)."""

        def submit(self, request: Any) -> Future[Any]: ...

    Tags = str | list[str] | tuple[str, ...] | set[str] | None
    When = object


_NOT_TRACED = ("__init__", "close")


class Backend:
    """Open store, index and ledger, and what keeps them consistent. Opening touches nothing until they are used.

    A server lends one backend to its callers in turn; they differ in their identity and settings, not in their files.
    """

    def __init__(
        self, config: Config, *, store: Store, index: Index, ledger: Ledger, changes: ChangeDetector,
        listing: ListingWriter | None, progress: Progress, closes_ledger: bool = True,
    ) -> None:  # fmt: skip
        self.store, self.index, self.ledger = store, index, ledger
        self._closes_ledger = closes_ledger
        self.purge_filter = PurgeFilter(ledger)
        self.sync = Sync(
            store=store, index=index, changes=changes, purge_filter=self.purge_filter, listing=listing, progress=progress,
            lock_seconds=config.lock_seconds,
        )  # fmt: skip
        self._embedder, self._embed_key = config.embedder, config.embed_key
        self._reranker, self._rerank_key = config.reranker, config.rerank_key
        self._hybrid_search: HybridSearch | None = None

    def hybrid_search(self) -> HybridSearch:
        """Return hybrid search with the models that the settings name."""
        if self._hybrid_search is None:
            from holdfast import embedders
            from holdfast.search.hybrid import HybridSearch
            from holdfast.search.rerank import Reranking

            models = embedders.open_for_search(self._embedder, self._embed_key)
            self._hybrid_search = HybridSearch(self.index, models, Reranking(self._reranker, self._rerank_key))
        return self._hybrid_search

    def close(self) -> None:
        """Close the open handles; what was stored is on disk already."""
        if self._hybrid_search is not None:
            self._hybrid_search.vectorizer.stop()
            self._hybrid_search = None
        self.sync.close()
        self.index.close()
        if self._closes_ledger:
            self.ledger.close()


def open_backend(
    config: Config, *, agent: str | None, all_agents: bool, progress: Progress, ledger: Ledger | None = None
) -> Backend:
    """Return the backend that the settings name, as an agent sees it, or with `all_agents` as a person does.

    Several backends of a home may share a `ledger`, which the caller closes: two connections that write in turn read each
    other's pages again.
    """
    if config.store or config.store_read:
        from holdfast.postgres import backend

        postgres = backend.open_backend(config, agent=agent, all_agents=all_agents)
        return Backend(
            config, store=postgres.store, index=postgres.index, ledger=postgres.ledger, changes=postgres.changes,
            listing=None, progress=progress,
        )  # fmt: skip
    store = FileStore(config.home, config.lock_seconds)
    index = SqliteIndex(config.home, config.lock_seconds, config.quarantine)
    return Backend(
        config, store=store, index=index, ledger=ledger or SqliteLedger(config.home, config.lock_seconds),
        changes=FileChanges(store, index), listing=ListingWriter(store, index), progress=progress,
        closes_ledger=ledger is None,
    )  # fmt: skip


class Context:
    """One caller of one memory: its identity, the scopes it may use, and the open store, index and ledger."""

    def __init__(
        self, config: Config, *, project: str | None, session: str | None, agent: str | None, client: str | None,
        origin: str, cwd: str | None, progress: Progress, words: Wording = errors.default_words,
        backend: Backend | None = None, write_queue: WriteQueue | None = None,
    ) -> None:  # fmt: skip
        self.config = config
        self.words = words  # how the interface of this caller names commands in texts for models
        self.session = validate.check_name(session, "session id") if session else None
        self.agent = validate.check_name(agent, "agent name") if agent else None
        self.client = validate.check_line(client, "client's name", 100) if client else None
        self.origin = validate.check_origin(origin)
        self.project_override = validate.check_name(project, "project id") if project is not None else None
        self.working_folder = cwd or "."
        self.progress = progress
        self._project: tuple[str, ...] | None = None
        self._project_recorded = self.project_override is not None  # whether the ledger knows the folder of this project
        self._names_checked = False
        self.source_cache: dict[tuple[str, tuple[str, ...]], Source] = {}  # by origin and `made_from`
        self.write_queue = write_queue  # of a server: concurrent stores share one flush
        self._use(backend or open_backend(config, agent=self.agent, all_agents=self.origin == "user", progress=progress))
        if backend is None:
            self.backend.purge_filter.related = self._other_folders_of_project

    def _use(self, backend: Backend) -> None:
        self.backend = backend
        self.store, self.index, self.ledger = backend.store, backend.index, backend.ledger
        self.sync = backend.sync
        self.purge_filter = PurgeFilter(self.ledger, self._other_folders_of_project)

    def with_backend(self, backend: Backend) -> Context:
        """Return the same caller on another backend of the same memory."""
        other = object.__new__(Context)
        other.__dict__.update(self.__dict__)
        other._use(backend)
        return other

    # --- project -----------------------------------------------------------------------------------------------------

    def project_ids(self) -> tuple[str, ...]:
        """Return the project's id, then the older ids whose notes belong to it too."""
        if self._project is None:
            from holdfast.project import resolve

            seen = resolve.find_candidates(self.working_folder, self.project_override, self.config.isolate_worktrees)
            remember = self.config.enabled and self.store.exists()
            project = resolve.resolve_project(seen, self.ledger.projects, self.has_project, remember=remember)
            self._project = (project.id, *project.aliases)
            self._project_recorded = self._project_recorded or (remember and self.has_project(project.id))
        return self._project

    def record_project(self) -> None:
        """Record the folder of a project in the ledger once the project has notes."""
        if self._project_recorded or self._project is None or not self.has_project(self._project[0]):
            return
        from holdfast.project import resolve

        self._project_recorded = True
        seen = resolve.find_candidates(self.working_folder, None, self.config.isolate_worktrees)
        resolve.resolve_project(seen, self.ledger.projects, self.has_project)

    def forget_project(self) -> None:
        """Resolve the project again with the next call, because the ledger's records of it changed."""
        self._project = None

    def has_project(self, id: str) -> bool:
        """Return whether a project has memory in this store."""
        return self.store.has_folder(f"projects/{id}")

    # --- scopes ------------------------------------------------------------------------------------------------------

    def scope(self, kind: str) -> Scope:
        """Return this caller's scope of a kind."""
        if kind not in SCOPES:
            raise UsageError(f"unknown scope {kind!r}", f"Use one of: {', '.join(SCOPES)}")
        if kind not in self.config.allowed_scopes:
            raise errors.Denied(
                f"this caller cannot use the scope {kind}", f"Use one of: {', '.join(self.config.allowed_scopes)}"
            )
        if kind == "global":
            return Scope("global")
        id = self.project_ids()[0] if kind == "project" else self.session if kind == "session" else self.agent
        if not id:
            given = f"Set --{kind}, HOLDFAST_{kind.upper()} or Memory({kind}=...)"
            what = f"no {kind} is known"
            raise NoScope(what, Template(phrase(f"{kind} of scope", given)))
        return Scope(kind, id)

    def visible_scopes(self, kind: str | None) -> list[Scope]:
        """Return the scopes that this caller may read, nearest first."""
        if kind is not None:
            first = self.scope(kind)
            return [first, *self._older_projects()] if kind == "project" else [first]
        scopes = [Scope("session", self.session)] if self.session else []
        scopes += [Scope("project", id) for id in self.project_ids()]
        scopes += [Scope("agent", self.agent)] if self.agent else []
        return [scope for scope in (*scopes, Scope("global")) if scope.kind in self.config.allowed_scopes]

    def visible_folders(self, kind: str | None) -> tuple[str, ...]:
        """Return the folders of the visible scopes."""
        return tuple([scope.folder for scope in self.visible_scopes(kind)])

    def all_folders(self, what: str = "search every project", by: str = "recall --scope all") -> tuple[str, ...]:
        """Return the folders of every scope of the home. Only a person may search or list them."""
        self.require_person(what, by)
        kinds = {folder: Scope.of_folder(folder).kind for folder in self.store.list_scopes()}
        return tuple([folder for folder, kind in kinds.items() if kind in self.config.allowed_scopes])

    def scope_with_key(self, scope: Scope, key: str) -> Scope:
        """Return the scope that has a note with this key: the given one, or an older id of its project."""
        if scope.kind != "project" or not self._older_projects() or self._has_note(scope, key):
            return scope
        return next((older for older in self._older_projects() if self._has_note(older, key)), scope)

    def scopes_with_key(self, key: str, kind: str | None, has: Callable[[Scope, str], bool] | None = None) -> list[Scope]:
        """Return the visible scopes that have this key; raise `UsageError` if they are of several kinds."""
        scopes = [scope for scope in self.visible_scopes(kind) if (has or self._has_note)(scope, key)]
        kinds = list(dict.fromkeys(scope.kind for scope in scopes))
        if len(kinds) > 1:
            raise UsageError(f"{key!r} exists in several scopes: {', '.join(kinds)}", "Name one with scope")
        return scopes

    def _other_folders_of_project(self, folder: str) -> list[str]:
        """Return the folders of the other ids of the caller's project, if this is the folder of one of its ids."""
        folders = [f"projects/{id}" for id in self._project or ()]
        return [other for other in folders if other != folder] if folder in folders else []

    def _older_projects(self) -> list[Scope]:
        return [Scope("project", id) for id in self.project_ids()[1:]]

    def _has_note(self, scope: Scope, key: str) -> bool:
        return self.store.file_id(scope.folder, "notes", f"{key}.md") is not None

    # --- checks ------------------------------------------------------------------------------------------------------

    def require_enabled(self) -> None:
        """Raise `Disabled` if memory is switched off."""
        if not self.config.enabled:
            raise Disabled

    def require_person(self, what: str, by: str) -> None:
        """Raise `Denied` for an agent: it may not use the memory of other projects."""
        if self.origin != "user":
            does = phrase(f"{by} as a person", f'`holdfast {by}` in your own terminal, or Memory(origin="user")')
            raise errors.Denied(f"only a person may {what}", Template("As a person, use ", does))

    def check_caller_names(self) -> None:
        """Reject secrets in the caller's names: they become folder names and are kept with every note."""
        if not self._names_checked:
            for name in filter(None, (self.agent, self.client, self.session, self.project_override)):
                validate.reject_secrets(name, "the name of an agent, client, session or project", fix="Give it another name")
            self._names_checked = True

    # --- index -------------------------------------------------------------------------------------------------------

    def refresh(self, folders: tuple[str, ...], archived: bool = False) -> str:
        """Update the index for these scopes; return an empty string, or why it may lack something that the store has."""
        self.store.check_owner()
        return self.sync.refresh(folders, archived)

    def query(self, question: Callable[[], T]) -> T:
        """Ask the index; if it turns out to be unusable, rebuild it from the store and ask again."""
        return self.sync.query(question)

    def update_index(self, change: Callable[[], object]) -> None:
        """Index what was just stored; if the index cannot take it now, the next refresh finds it in the store."""
        self.record_project()
        self.sync.update(change)

    def hybrid_search(self) -> HybridSearch:
        """Return hybrid search with the models that the settings name."""
        search = self.backend.hybrid_search()
        search.words = self.words
        return search

    def close(self) -> None:
        """Close the open handles; what was stored is on disk already."""
        self.backend.close()


def typed_errors(cls: type[T]) -> type[T]:
    """Let the public methods of a class raise errors of the operating system as Holdfast's own errors, and trace them."""
    for name, method in list(vars(cls).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(method, property):
            setattr(cls, name, property(convert_errors(method.fget), doc=method.__doc__))
        elif callable(method):
            setattr(cls, name, convert_errors(method, "" if name in _NOT_TRACED else f"{cls.__name__.lower()}.{name}"))
    return cls


def convert_errors(method: Any, span: str = "") -> Any:
    """Let a function raise errors of the operating system as Holdfast's own errors, in a span of this name."""

    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            if not span:
                return method(*args, **kwargs)
            with tracing.span(span):
                return method(*args, **kwargs)
        except OSError as error:
            raise from_os(error) from error

    for name in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        setattr(run, name, getattr(method, name))
    run.__dict__["__wrapped__"] = method  # like functools.wraps, which a cold command does not import
    return run
