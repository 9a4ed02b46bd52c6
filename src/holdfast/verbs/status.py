"""Status of a home: where memory lives and how much there is. Reindex: build the index again from the files."""

from __future__ import annotations

import os
import time
from functools import partial

from holdfast.base import dates
from holdfast.base.record import Record
from holdfast.config import hide_password
from holdfast.embedders import available, open_for_search
from holdfast.errors import HoldfastError
from holdfast.index.filters import SearchFilter
from holdfast.index.vectors import Model
from holdfast.models import Scope
from holdfast.search.vectorize import by_role
from holdfast.verbs import archive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.context.caller import Context
    from holdfast.verbs.brief.render import Brief


class ScopeStatus(Record):
    """The content of one scope in numbers."""

    scope: str
    visible: bool
    notes: int
    files: int
    bytes: int
    last_write: str
    sessions: int = 0
    archived: int = 0  # not updated or used for their scope's time: left out of briefings, still found by recall


class Status(Record):
    """The location of the memory for this folder, and its size."""

    home: str
    enabled: bool
    project: str | None
    session: str | None
    agent: str | None
    shelf: str  # the folder of the notes, or the address and tenant of the database
    scopes: tuple[ScopeStatus, ...]
    index_bytes: int | None  # None, here and below: not shown to this caller, or not counted
    ledger_bytes: int | None
    passages: int | None
    facts: int | None
    degraded: str
    briefing_chars: int
    briefed: tuple[str, ...]
    sessions: int | None = None
    turns: int | None = None
    embedder: str = "none"
    unusable: str = ""  # why the embedder cannot be loaded
    reranker: str = "none"
    reranker_unusable: str = ""  # why the reranker cannot be loaded
    waiting: int | None = None  # passages without vectors
    quarantined: int | None = None  # notes that this caller may see and that wait for a person's approval
    types: dict[str, int] = {}  # notes by type, in the counted scopes
    archived: tuple[str, ...] = ()  # how many notes are archived and why, a line for each kind of scope


class Reindexed(Record):
    """The result of a rebuild."""

    notes: int
    files: int
    passages: int
    facts: int
    seconds: float


def status(context: Context, brief: Brief, whole: bool = True) -> Status:
    """Implement `Memory.status`: for the whole home, or only for the scopes that the caller may see."""
    if not context.config.enabled:
        return _disabled_status(context, whole)
    visible, exists = context.visible_folders(None), context.store.exists()
    folders = tuple(dict.fromkeys([*visible, *(context.store.list_scopes() if exists and whole else ())]))
    degraded = context.refresh(folders, archived=True) or _missing_vectors(context) or _lost_purges(context)
    last_writes: dict[str, str] = {}
    for folder in context.query(context.index.count_files) if exists else ():
        written = "" if folder.part == "transcripts" else folder.updated  # a turn is dated by when it was said
        last_writes[folder.scope] = max(last_writes.get(folder.scope, ""), written)
    scopes = [_scope_status(context, scope, scope in visible, last_writes[scope]) for scope in folders if scope in last_writes]
    counted = None if whole else visible
    passages, facts = context.query(lambda: context.index.count_passages_and_facts(counted)) if exists else (0, 0)
    index_bytes, ledger_bytes = _database_sizes(context) if whole else (None, None)
    archived_kinds = [Scope.of_folder(one.scope).kind for one in scopes for _ in range(one.archived)]
    return Status(
        home=context.config.home,
        enabled=True,
        project=context.project_ids()[0],
        session=context.session,
        agent=context.agent,
        shelf=_store_name(context),
        scopes=tuple(scopes),
        index_bytes=index_bytes,
        ledger_bytes=ledger_bytes,
        passages=passages,
        facts=facts,
        degraded=degraded,
        briefing_chars=len(brief.text),
        briefed=brief.shown,
        sessions=sum([one.sessions for one in scopes]),
        turns=_count_turns(context, folders) if exists else 0,
        embedder=hide_password(context.config.embedder),
        unusable="; ".join([what for what, _ in available.find_missing_packages(context.config.embedder)]),
        reranker=hide_password(context.config.reranker),
        reranker_unusable="; ".join([what for what, _ in available.find_reranker_problems(context.config.reranker)]),
        waiting=(count_waiting(context) if exists else 0) if whole else None,
        quarantined=context.query(lambda: context.index.count_notes(visible, only=1)) if exists else 0,
        types=context.query(lambda: context.index.count_types(folders)) if exists else {},
        archived=tuple(archive.describe_archived(archived_kinds, context.config)),
    )


def _disabled_status(context: Context, whole: bool) -> Status:
    """Return where memory lives without opening a database; so the project is only known if the caller named it."""
    index_bytes, ledger_bytes = _database_sizes(context) if whole else (None, None)
    return Status(
        home=context.config.home,
        enabled=False,
        project=context.project_override,
        session=context.session,
        agent=context.agent,
        shelf=_store_name(context),
        scopes=(),
        index_bytes=index_bytes,
        ledger_bytes=ledger_bytes,
        passages=None,
        facts=None,
        degraded="",
        briefing_chars=0,
        briefed=(),
        embedder=hide_password(context.config.embedder),
        reranker=hide_password(context.config.reranker),
    )


def _missing_vectors(context: Context) -> str:
    """Return why PostgreSQL has no vectors; "" if it has, and for a home."""
    if not context.config.store:
        return ""
    from holdfast.postgres import backend

    return backend.find_vector_problem(context.config, context.index)[0]


def _lost_purges(context: Context) -> str:
    """Return what the ledger lost of earlier purges."""
    if not context.purge_filter.any_purged():
        return ""
    from holdfast.ledger.receipts import find_losses

    try:
        return "; ".join(find_losses(context.ledger.purges))
    except HoldfastError as error:
        return f"cannot read the records of purges: {error.message}"


def _store_name(context: Context) -> str:
    """Return the folder of the notes, or the address and tenant of the database."""
    if context.config.store:
        return f"{hide_password(context.config.store)} (tenant {context.config.tenant})"
    return os.path.join(context.config.home, "shelf")


def _database_sizes(context: Context) -> tuple[int | None, int | None]:
    """Return the bytes of the index and of the ledger; None for PostgreSQL."""
    home = context.config.home
    return (None, None) if context.config.store else (_database_size(home, "index.db"), _database_size(home, "ledger.db"))


def _database_size(home: str, name: str) -> int:
    total = 0
    for suffix in ("", "-wal"):
        try:
            total += os.stat(os.path.join(home, name + suffix)).st_size
        except OSError:
            pass
    return total


def _scope_status(context: Context, scope: str, visible: bool, last_write: str) -> ScopeStatus:
    """Count the regular files of a scope in the store: a link or a pipe is not a note."""
    notes = [entry for entry in context.store.entries(scope, "notes") if entry.regular and entry.name.endswith(".md")]
    files = [entry for entry in context.store.tree(scope, 0).entries() if entry.regular]
    transcripts = [entry for entry in context.store.transcripts(scope, 0).entries() if entry.regular]
    archived = [one for one in context.store.list_trash(Scope.of_folder(scope)) if one.part == "archive"]
    return ScopeStatus(
        scope=scope,
        visible=visible,
        notes=len(notes),
        files=len(files),
        bytes=sum([entry.file_id.size for entry in notes + files + transcripts]),
        last_write=max([last_write, *[dates.format_timestamp(entry.file_id.changed / 1e9) for entry in transcripts]]),
        sessions=len(transcripts),
        archived=len(archived),
    )


def _count_turns(context: Context, folders: tuple[str, ...]) -> int:
    return context.query(lambda: context.index.count_passages(SearchFilter(folders, "transcripts")))


def count_waiting(context: Context) -> int:
    """Return how many passages lack vectors of a configured model: of the model that has seen the fewest."""
    try:
        wanted = [(embedder.name, role) for role, embedder in by_role(open_for_search(context.config.embedder)).items()]
    except HoldfastError:
        return 0  # doctor reports what is wrong with the setting
    known = {(model.name, model.role): model for model in context.query(context.index.vectors.list_models)}
    models = [known.get((name, role)) or Model(0, name, 0, 0) for name, role in wanted]
    return max([context.query(partial(context.index.vectors.count_waiting, model)) for model in models], default=0)


def reindex(context: Context) -> Reindexed:
    """Build the index of all scopes again from the files."""
    start = time.monotonic()
    context.index.reset()
    context.sync.reset()
    context.sync.refresh_once(tuple(context.store.list_scopes()), archived=True)
    total = context.index.count_all()
    seconds = round(time.monotonic() - start, 3)
    return Reindexed(notes=total.notes, files=total.files, passages=total.passages, facts=total.facts, seconds=seconds)
