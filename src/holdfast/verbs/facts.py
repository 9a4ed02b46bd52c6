"""Facts: set one (the value it replaces is struck through and dated), list them, and find those that answer a question."""

from __future__ import annotations

from holdfast.base import dates
from holdfast.base.markdown import find_title
from holdfast.base.record import Record
from holdfast.context import usage
from holdfast.errors import HoldfastError
from holdfast.formats import facts
from holdfast.index.results import ARCHIVED
from holdfast.models import Fact, FactSet, Hit, Scope
from holdfast.safety import validate
from holdfast.search.fact_matches import expand_names, find_answers
from holdfast.verbs import write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.context.caller import Context, When
    from holdfast.formats.versions import Draft
    from holdfast.index.filters import SearchFilter
    from holdfast.index.results import FoundFact
    from holdfast.models import Note


def set_fact(
    context: Context,
    subject: str,
    label: str,
    value: str,
    *,
    on: When,
    many: bool,
    scope: Scope,
    origin: str | None,
    made_from: object,
    redact: bool,
) -> FactSet:
    """Write `label: value` into the note of a subject, as of a day; see `Memory.fact`."""
    subject, label, value, rules = validate.check_fact(subject, label, value, redact, reads_back=facts.reads_back)
    day = dates.parse_day_or_moment(on, "on") if on is not None else dates.now()[:10]
    key = _find_key(context, subject, scope)
    edits: list[facts.FactEdit] = []

    def edit_note(note: Note | None) -> Draft:
        edits[:] = [facts.set_fact(note.text if note else f"# {subject}\n", label, value, day, many)]
        before = note.text if note else ""
        return write.make_draft(context, edits[0].text, key=key, origin=origin, made_from=made_from, amends=True, before=before)

    target = write.find_target_scope(context, scope, key)
    mentions = (value, f"{label}: {value}", f"{subject} {label} {value}")
    note = write.write_note(context, target, key, edit_note, mentions).note
    edit = edits[0]
    every = facts.parse_facts(note.text, find_title(note.text, key), target, note.path, note.lines[0])
    retired = [fact for fact in every if any(_is_same(fact, line) for line in edit.retired)]
    stated = next(fact for fact in every if fact.line == note.lines[0] + edit.line)
    return FactSet(edit.action, _find_indexed(context, stated), tuple(retired), note, rules)


def _find_indexed(context: Context, stated: Fact) -> Fact:
    """Return the fact as the index has it, with what other files say of it; as it was written if the index cannot be read."""
    folders = context.visible_folders(None)
    try:
        context.refresh(folders)
        found = context.query(
            lambda: context.index.find_facts(folders, [facts.normalize_name(stated.subject)], stated.label, None)
        )
    except HoldfastError:
        return stated
    same = [fact for fact in found if (fact.path, fact.line, fact.value) == (stated.path, stated.line, stated.value)]
    return same[0] if same else stated


def list_facts(
    context: Context,
    *,
    subject: str | None,
    label: str | None,
    as_of: When,
    scope: str | None,
    history: bool,
    last: Fact | None = None,
    most: int = -1,
) -> list[Fact]:
    """Return the facts about a subject, by any of its names; at most `most` of them, after `last`."""
    moment = dates.parse_as_of(as_of, "as_of") if as_of is not None else dates.now()
    for name in (subject, label):
        if name is not None:
            validate.check_line(name, "subject or label")
    if not context.config.enabled:
        return []
    folders = find_folders(context, scope)
    context.refresh(folders, archived=True)
    names = context.query(lambda: expand_names(context.index, folders, [subject])) if subject is not None else None
    moment_or_all = None if history else moment
    return context.query(
        lambda: context.index.find_facts(folders, names, label, moment_or_all, last=last, most=most, archived=True)
    )


def find_folders(context: Context, scope: str | None) -> tuple[str, ...]:
    """Return the folders that a request about facts reads; with `all` those of the whole home, for a person only."""
    return context.all_folders() if scope == "all" else context.visible_folders(scope)


class FactSubject(Record):
    """A subject that facts are stated about."""

    subject: str
    facts: int
    current: int  # facts that hold now, as their own files say
    latest: str  # when the newest of them began
    scopes: int
    scope: Scope | None  # None if several scopes state something of it


def list_subjects(
    context: Context, *, contains: str = "", scope: str | None = None, after: str = "", most: int
) -> list[FactSubject]:
    """Return the subjects of facts by name: those that contain a text, after the name `after`."""
    if not context.config.enabled:
        return []
    folders = find_folders(context, scope)
    context.refresh(folders, archived=True)
    wanted, last, now = facts.normalize_name(contains), facts.normalize_name(after), dates.now()
    rows = context.query(lambda: context.index.list_subjects(folders, contains=wanted, after=last, now=now, most=most))
    return [
        FactSubject(
            subject=row.subject, facts=row.facts, current=row.current, latest=row.latest, scopes=row.scopes,
            scope=Scope.of_folder(row.scope) if row.scopes == 1 else None,
        )
        for row in rows
    ]  # fmt: skip


def find_hits(context: Context, query: str, search_filter: SearchFilter, *, at: str, limit: int, explain: bool) -> list[Hit]:
    """Return the facts that held at a moment and answer a question, best first, with scores up to 1.

    The facts of archived notes score less.
    """
    rated = context.query(lambda: find_answers(context.index, query, search_filter, at, limit))
    found = sorted([(one.found, _score(one.found.fact, one.rating)) for one in rated], key=lambda pair: -pair[1])
    ids = [one.note_id or usage.path_usage_id(one.fact.scope.folder, one.part, one.name) for one, _ in found]
    usage.count_uses(context.ledger, ids)
    hits = [_make_hit(one, score, explain) for one, score in found]
    files = {
        place: (one.fact.scope.folder, one.name, one.file_id) for place, (one, _) in enumerate(found) if one.part == "files"
    }
    if files:
        from holdfast.context import file_sources

        file_sources.add_to_hits(context.ledger, hits, files)
    return hits


def _make_hit(found: FoundFact, score: float, explain: bool) -> Hit:
    fact = found.fact
    return Hit(
        kind="fact",
        scope=fact.scope,
        key=found.key,
        type=None,
        tags=found.tags,
        text=facts.format_statement(fact.subject, fact.label, fact.value, fact.valid_from, fact.valid_to),
        score=score,
        citation=f"{fact.path}:{fact.line}-{fact.line}",
        valid_from=fact.valid_from,
        valid_to=fact.valid_to,
        updated=found.updated,
        source=found.source if found.part == "notes" else None,
        why=_explain(fact, score) if explain else None,
        quarantined=fact.quarantined,
        archived=fact.archived,
    )


def _score(fact: Fact, rate: float) -> float:
    return rate * ARCHIVED if fact.archived else rate


def _explain(fact: Fact, score: float) -> dict[str, list[float]]:
    """Return how the score of a fact came about."""
    if not fact.archived:
        return {"fact": [round(score, 3)] * 2}
    rate = score / ARCHIVED
    return {"fact": [round(rate, 3)] * 2, "archived": [1.0, round(score - rate, 3)]}


def _find_key(context: Context, subject: str, scope: Scope) -> str:
    """Return the key of the note that has facts about this subject; else the key made from the subject."""
    key = facts.subject_key(subject)
    folders = context.visible_folders(scope.kind)
    if any(context.store.file_id(folder, "notes", f"{key}.md") for folder in folders):
        return key
    context.refresh(folders, archived=True)
    names = context.query(lambda: expand_names(context.index, folders, [subject]))
    for name in sorted(names, key=lambda name: name != facts.normalize_name(subject)):
        for folder in folders:
            found = _find_note_stating(context, folder, name)
            if found:
                return found
    return key


def _find_note_stating(context: Context, folder: str, subject: str) -> str | None:
    return context.query(lambda: context.index.find_note_stating(folder, subject))


def _is_same(fact: Fact, line: facts.FactLine) -> bool:
    return (fact.label, fact.value, fact.valid_from) == (line.label, line.value, line.valid_from)
