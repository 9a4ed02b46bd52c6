"""Recall: filter, refresh the index, search, order, read the current text, count the uses, and answer."""

from __future__ import annotations

from holdfast.base import dates
from holdfast.base.platform_keys import is_derived
from holdfast.context import usage
from holdfast.errors import HoldfastError, Template, UsageError, field
from holdfast.formats import note_file, versions
from holdfast.index.filters import SearchFilter
from holdfast.index.results import FoundPassage, SearchResult, keyword_result, passage_location, rank_archived_lower
from holdfast.index.tokenizer import POSTINGS
from holdfast.models import EVERY_PART, MODES, PARTS, SORTS, TYPES, Answer, Hit, Scope, parse_tags
from holdfast.safety import validate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Protocol

    from holdfast.base.ids import FileId
    from holdfast.config import Config
    from holdfast.context.caller import Context, Tags, When
    from holdfast.formats.versions import ParsedNote
    from holdfast.index.results import Superseding
    from holdfast.store.interface import FileContent, Store

    Explanations = dict[int, dict[str, list[float]]]  # by passage: the share of each part of its score

    class Searcher(Protocol):
        """The caller of a recall: the context of a home, or the caller of a gateway, which alone knows the folders."""

        config: Config

        def all_folders(self) -> tuple[str, ...]: ...

        def visible_folders(self, kind: str | None) -> tuple[str, ...]: ...


_FACTS = PARTS["fact"]
_NO_PART = "none"  # a part that no store has: files and turns are never archived
_MAX_LIMIT = 100
_SHORT_QUERY = 3  # words; a search for so few words is not a general request


def recall(
    context: Context,
    query: str,
    *,
    scope: str | None,
    type: str | None,
    tags: Tags,
    limit: int,
    as_of: When,
    known_at: When,
    mode: str,
    sort: str,
    kind: str | None,
    now: When,
    explain: bool,
    archived: bool | None = None,
) -> Answer:
    """Answer a question from the memory that this caller may read; see `Memory.recall`."""
    search_filter = make_filter(
        context, query, scope=scope, kind=kind, type=type, tags=tags, limit=limit, as_of=as_of, known_at=known_at,
        mode=mode, sort=sort, archived=archived,
    )  # fmt: skip
    present = dates.parse_moment(now, "now") if now is not None else None
    if not context.config.enabled:
        return Answer((), mode, True, "memory is disabled", True)
    reason = context.refresh(search_filter.scopes, archived=True)
    result = _find(context, query, search_filter, limit=limit, now=present, mode=mode, explain=explain)
    reason = reason or result.reason
    near = search_filter.scopes if scope != "all" else ()  # with all projects, none comes before the others
    hits = _order_and_read(context, result, search_filter, near, limit=limit, sort=sort)
    if mode != "recent" and _asks_for_facts(search_filter):
        from holdfast.verbs import facts

        at = search_filter.as_of or present or search_filter.now
        stated = facts.find_hits(context, query, search_filter, at=at, limit=limit, explain=explain)
        hits = _merge_facts(hits, stated, sort)[:limit]
    return Answer(tuple(hits), result.mode, bool(reason), reason)


# --- filter -----------------------------------------------------------------------------------------------------------


def make_filter(
    caller: Searcher,
    query: object,
    *,
    scope: str | None = None,
    kind: str | None = None,
    type: str | None = None,
    tags: Tags = None,
    limit: object = 10,
    as_of: When = None,
    known_at: When = None,
    mode: str = "hybrid",
    sort: str = "relevance",
    archived: bool | None = None,
) -> SearchFilter:
    """Validate a question, and return what a passage must be to answer it."""
    validate.check_choice(mode, MODES, "mode")
    validate.check_choice(sort, SORTS, "sort")
    check_limit(limit, _MAX_LIMIT)
    if not isinstance(query, str):
        raise UsageError(f"a query must be a string, not {query.__class__.__name__}", "Add a query")
    if mode != "recent" and not query.strip():
        raise UsageError("the query is empty", "Add a query, or use mode 'recent'")
    known = dates.parse_as_of(known_at, "known_at") if known_at is not None else None
    moment = dates.parse_as_of(as_of, "as_of") if as_of is not None else known
    wanted_type = validate.check_choice(type, TYPES, "type") if type else None
    folders: tuple[str, ...] = ()
    if caller.config.enabled:
        folders = caller.all_folders() if scope == "all" else caller.visible_folders(scope)
    kinds = kind.split(",") if isinstance(kind, str) and kind else [kind] if kind else []
    if mode == "recent" and kinds == ["fact"]:
        raise UsageError("facts cannot be recalled by mode 'recent'", "Add a query, or list them with `facts`")
    part = " ".join([PARTS[validate.check_choice(one, tuple(PARTS), "kind")] for one in kinds]) or EVERY_PART
    if archived is not None:
        part = " ".join([one for one in part.split() if (one == "archive") == archived]) or _NO_PART
    return SearchFilter(
        scopes=folders,
        part=part,
        type=wanted_type,
        tags=parse_tags(tags),
        as_of=moment,
        known_at=known,
        now=dates.now(),
    )


def check_limit(value: object, most: int) -> int:
    """Return a limit; raise `UsageError` if it is not a whole number from 1 to `most`."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise UsageError(Template(field("limit"), f" must be 1 to {most}, not {value!r}"), f"Use 1 to {most}")
    return value


def _asks_for_facts(search_filter: SearchFilter) -> bool:
    """Return whether facts are among the answers: where they are named, and with `as_of` among everything else."""
    if search_filter.part == EVERY_PART:
        return bool(search_filter.as_of)
    return _FACTS in (search_filter.part or "")


# --- search -----------------------------------------------------------------------------------------------------------


def _find(
    context: Context, query: str, search_filter: SearchFilter, *, limit: int, now: str | None, mode: str, explain: bool
) -> SearchResult:
    """Find the passages that answer; facts alone are found by `facts.find_hits`."""
    if search_filter.part == _FACTS:
        reason = "facts are found by words: keyword search ran" if mode != "keyword" else ""
        return SearchResult([], "keyword", reason)
    if mode == "recent":
        return SearchResult(context.query(lambda: context.index.find_recent(search_filter, limit * 4)), mode)
    return context.query(lambda: search(context, query, search_filter, limit=limit, now=now, mode=mode, explain=explain))


def search(
    context: Context, query: str, search_filter: SearchFilter, *, limit: int, now: str | None, mode: str, explain: bool
) -> SearchResult:
    """Return the passages that a keyword or hybrid search finds, best first, and which of them are weak."""
    if mode == "keyword" or search_filter.as_of:
        reason = "older versions have no vectors: keyword search ran" if mode != "keyword" else ""
        with context.index.cache_query(search_filter), context.index.read_transaction():
            result = keyword_result(context.index.search(query, search_filter, limit), explain, reason)
            if search_filter.as_of:
                return result  # the words of older versions are not weighed
            return result.replace(weak=_find_weak(context, query, search_filter, result.found))
    result = context.hybrid_search().search(
        query, search_filter, limit=limit, now=now, mode=mode, explain=explain, progress=context.progress
    )
    if result.threshold is None:
        return result.replace(weak=_find_weak(context, query, search_filter, result.found))
    weak = [passage for passage in result.found if result.first_score(passage) < result.threshold]
    if weak and len(query.split()) <= _SHORT_QUERY:
        return result.replace(weak=_find_weak(context, query, search_filter, weak))
    return result.replace(weak=frozenset([passage.passage for passage in weak]))


def _find_weak(context: Context, query: str, search_filter: SearchFilter, found: list[FoundPassage]) -> frozenset[int]:
    """Return which of these passages share too little of the question's wording to be an answer."""
    if not found:
        return frozenset()
    from holdfast.search import abstention

    wording = abstention.Wording(query)
    shared = weigh_shared_words(context, query, search_filter, [passage.passage for passage in found])
    weak = [one.passage for one in found if not wording.is_strong(shared.get(one.passage, 0.0), one.key)]
    return frozenset(weak)


def weigh_shared_words(context: Context, query: str, search_filter: SearchFilter, passages: Iterable[int]) -> dict[int, float]:
    """Return, by passage, the weight of the question's words that are in it."""
    from holdfast.search import abstention

    index = context.index
    terms, common = index.resolve_terms(query, search_filter)
    known = {term: word for term, word in terms.items() if term in common}
    weights = abstention.word_weights(query, known, common, index.count_passages(search_filter))
    ids = list(passages)
    return abstention.shared_weights(ids, known, weights, lambda some: index.find_postings(some, search_filter, POSTINGS, ids))


# --- hits -------------------------------------------------------------------------------------------------------------


def _find_successors(context: Context, search_filter: SearchFilter, found: list[FoundPassage]) -> dict[int, list[Superseding]]:
    """Return, for each of these notes that is superseded, the notes that superseded it; none for a question about the past.

    Most homes have no relations, which one look at the index shows.
    """
    docs = [passage.doc for passage in found if passage.kind == "note"]
    if search_filter.as_of or not docs or not context.query(context.index.has_relations):
        return {}
    from holdfast.context import superseded

    return context.query(lambda: superseded.find_successors(context.index, docs, search_filter.scopes, search_filter.now))


def _rank_current_first(
    context: Context, search_filter: SearchFilter, ranked: list[FoundPassage], successors: dict[int, list[Superseding]]
) -> list[FoundPassage]:
    """Put current notes before those that they superseded; add a current note that was not found if it passes the filter."""
    from holdfast.context.superseded import choose_current, rank_current_first

    found = {passage.passage for passage in ranked}
    parts = (search_filter.part or "notes").split()
    missing = {
        row.passage: 0.0 for row in choose_current(successors).values() if row.passage not in found and row.part in parts
    }
    added = context.query(lambda: context.index.find_passages(missing, search_filter))
    return rank_current_first(ranked, successors, {passage.passage: passage for passage in added})


def _choose_current(successors: dict[int, list[Superseding]]) -> dict[int, Superseding]:
    if not successors:
        return {}
    from holdfast.context.superseded import choose_current

    return choose_current(successors)


def _order_and_read(
    context: Context, result: SearchResult, search_filter: SearchFilter, scopes: tuple[str, ...], *, limit: int, sort: str
) -> list[Hit]:
    """Order the passages, and read the current text of the best."""
    from holdfast.search import order

    found, explanations = rank_archived_lower(result.found, result.why)
    counts = usage.get_usage(context.ledger, found) if sort == "usage" else {}
    sort = "recency" if result.mode == "recent" else sort
    ranked = order.order(found, scopes, sort, counts, usage.passage_usage_id)
    successors = _find_successors(context, search_filter, ranked)
    if successors and sort == "relevance":
        ranked = _rank_current_first(context, search_filter, ranked, successors)
    superseded = _choose_current(successors)
    return _read_hits(context, ranked, limit, explanations, result.weak, superseded)


def _read_hits(
    context: Context, ranked: list[FoundPassage], limit: int, explanations: Explanations, weak: frozenset[int],
    superseded: Mapping[int, Superseding],
) -> list[Hit]:  # fmt: skip
    """Return the best passages with their current text; the next one replaces a passage that was deleted meanwhile."""
    hits: list[Hit] = []
    used: list[str] = []
    files: dict[int, tuple[str, str, FileId]] = {}  # scope, path and id of files, by the position of their hits
    contents = context.store.read_batch([passage_location(passage) for passage in ranked[:limit]])
    for found in ranked:
        if len(hits) == limit:
            break
        content = contents.get(passage_location(found)) or _read_content(context.store, found)
        hit = _read_hit(context, found, content)
        if hit is None:
            continue
        if hit.kind == "file" and content is not None:
            files[len(hits)] = found.scope, found.name, content.file_id
        current = superseded[found.doc].key if found.doc in superseded else None
        why = explanations.get(found.passage)
        hits.append(hit.replace(weak=found.passage in weak, why=why, superseded_by=current))
        if found.passage not in weak:  # a passage that probably does not answer was not used
            used.append(usage.passage_usage_id(found))
    usage.count_uses(context.ledger, used)
    if files:
        from holdfast.context import file_sources

        file_sources.add_to_hits(context.ledger, hits, files)
    return hits


def _read_content(store: Store, found: FoundPassage) -> FileContent | None:
    """Return the note or file of a passage as it is now; None if it cannot be read, and for a turn."""
    try:
        if found.part in ("notes", "archive"):
            return store.read_file(found.scope, found.part, found.name)
        return None if found.turn else store.tree(found.scope, 0).read(tuple(found.name.split("/")))
    except HoldfastError:
        return None


def _read_hit(context: Context, found: FoundPassage, content: FileContent | None) -> Hit | None:
    if found.turn:
        from holdfast.verbs.read import hit_of_turn

        try:
            return hit_of_turn(context.store, found, content)
        except HoldfastError:
            return None
    if content is None:
        return None
    if found.part not in ("notes", "archive"):
        from holdfast.verbs.read import hit_of_file

        return hit_of_file(found, content)
    path = f"{found.scope}/{found.part}/{found.name}"
    if found.past:
        note = versions.parse_note(content.data, content.modified)
        text, lines = versions.read_past_text(note, found.seq)
        if note.header.older and found.seq < note.header.older.versions:
            text, lines, path = _read_from_history(context, found, note)
        quarantined = found.source.trusted in context.config.quarantine
    else:
        text, lines = note_file.read_current_text(content.text())
        quarantined = found.quarantined
    if lines == (0, 0):
        return None
    return Hit(
        kind="past" if found.past else "note",
        scope=Scope.of_folder(found.scope),
        key=found.key,
        type=found.type,
        tags=found.tags,
        text=text,
        score=round_score(found.score),
        citation=f"{path}:{lines[0]}-{lines[1]}",
        valid_from=found.valid_from,
        valid_to=found.valid_to,
        updated=found.recorded,
        source=found.source,
        quarantined=quarantined,
        name=_read_platform_key(found.key, content) if is_derived(found.key) else None,
        archived=found.archived,
    )


def _read_from_history(context: Context, found: FoundPassage, note: ParsedNote) -> tuple[str, tuple[int, int], str]:
    """Return the text, lines and path of a version that is in a history file; ("", (0, 0), "") if none has it."""
    from holdfast.store import note_history

    try:
        place = note_history.read_older_version(context.store, found.scope, note, found.seq + 1)
    except HoldfastError:
        place = None
    if place is None:
        return "", (0, 0), ""
    return note_file.replace_invalid(place.version.text), place.lines, f"{found.scope}/{note_history.PART}/{place.file}"


def _read_platform_key(key: str, content: FileContent) -> str | None:
    return versions.platform_key(key, note_file.parse_header(note_file.parse(content.text())))


def round_score(score: float) -> float:
    """Return a score with four significant digits."""
    return float(f"{score:.4g}")


def _merge_facts(hits: list[Hit], facts: list[Hit], sort: str) -> list[Hit]:
    """Return both in one order. A fact that answers in full scores as much as the best of the others."""
    best = max([hit.score for hit in hits], default=1.0) or 1.0
    facts = [fact.replace(score=round_score(best * fact.score)) for fact in facts]
    if sort == "usage":
        return hits + facts
    if sort == "recency":
        return sorted(facts + hits, key=lambda hit: hit.updated, reverse=True)
    return sorted(facts + hits, key=lambda hit: -hit.score)
