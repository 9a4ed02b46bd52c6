"""Setting a fact: the note of its subject gets a dated line, and the line it replaces is struck through."""

from __future__ import annotations

from holdfast.base import dates
from holdfast.base.markdown import find_title
from holdfast.context.caller import path_usage_id
from holdfast.errors import HoldfastError
from holdfast.formats import facts
from holdfast.index.results import ARCHIVED
from holdfast.models import Fact, FactSet, Hit
from holdfast.safety import validate
from holdfast.search.fact_matches import answering, names_of
from holdfast.verbs import projects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.context.caller import Context
    from holdfast.formats.versions import Draft
    from holdfast.index.sqlite import SearchFilter
    from holdfast.models import Note, Scope


def fact(
    context: Context, subject: str, label: str, value: str, on: object, many: bool, scope: Scope, origin: str | None,
    made_from: object = None, redact: bool = False,
) -> FactSet:  # fmt: skip
    """The steps of `Memory.fact`."""
    subject, label, value, rules = validate.fact(subject, label, value, redact, reads_back=facts.reads_back)
    day = dates.day_or_moment(on, "on") if on is not None else dates.now()[:10]
    key = _key(context, subject, scope)
    place = projects.place_to_write(context, scope, key)
    edits: list[facts.FactEdit] = []

    def edited(note: Note | None) -> Draft:
        edits[:] = [facts.set_fact(note.text if note else f"# {subject}\n", label, value, day, many)]
        return context.make_draft(
            edits[0].text, key, origin=origin, made_from=made_from, amends=True, before=note.text if note else ""
        )

    stored = context.write(place, key, edited, also=(value, f"{label}: {value}", f"{subject} {label} {value}"))
    edit, note = edits[0], stored.note
    every = facts.parse_facts(note.text, find_title(note.text, key), place, note.path, note.lines[0])
    retired = [one for one in every if any(_same(one, old) for old in edit.retired)]
    stated = next(one for one in every if one.line == note.lines[0] + edit.line)
    return FactSet(edit.action, _settled(context, stated), tuple(retired), note, rules)


def _settled(context: Context, stated: Fact) -> Fact:
    """The fact that was just written, with what other files state of the same, if they can be read now."""
    folders = context.visible_folders(None)
    try:
        context.refresh(folders)
        found = context.query(lambda: context.index.facts(folders, [facts.fold(stated.subject)], stated.label, None))
    except HoldfastError:
        return stated
    same = [one for one in found if (one.path, one.line, one.value) == (stated.path, stated.line, stated.value)]
    return same[0] if same else stated


def facts_of(
    context: Context, subject: str | None, label: str | None, as_of: object, scope: str | None, history: bool,
    last: Fact | None = None, most: int = -1,
) -> list[Fact]:  # fmt: skip
    """The steps of `Memory.facts`: by any of the subject's names. So many behind `last`."""
    moment = dates.as_of(as_of, "as_of") if as_of is not None else dates.now()
    for name in (subject, label):
        if name is not None:
            validate.one_line(name, "subject or label")
    if not context.config.enabled:
        return []
    folders = context.visible_folders(scope)
    context.refresh(folders, archived=True)
    names = context.query(lambda: names_of(context.index, folders, [subject])) if subject is not None else None
    moment_or_all = None if history else moment
    return context.query(lambda: context.index.facts(folders, names, label, moment_or_all, last, most, archived=True))


def recalled(context: Context, query: str, asked: SearchFilter, at: str, limit: int, explain: bool) -> list[Hit]:
    """The facts that held at a moment and answer a question, best first, as hits with a score of up to 1; those of archived
    notes score less: `Memory.recall`."""
    found = context.query(lambda: answering(context.index, query, asked, at, limit))
    found = sorted([(one, _score(one.fact, rate)) for one, rate in found], key=lambda pair: -pair[1])
    context.count_uses([one.note_id or path_usage_id(one.fact.scope.folder, one.part, one.name) for one, _ in found])
    return [
        Hit(
            kind="fact",
            scope=one.fact.scope,
            key=one.key,
            type=None,
            tags=one.tags,
            text=facts.format_statement(
                one.fact.subject, one.fact.label, one.fact.value, one.fact.valid_from, one.fact.valid_to
            ),
            score=score,
            citation=f"{one.fact.path}:{one.fact.line}-{one.fact.line}",
            valid_from=one.fact.valid_from,
            valid_to=one.fact.valid_to,
            updated=one.updated,
            source=one.source if one.part == "notes" else None,
            why=_why(one.fact, score) if explain else None,
            quarantined=one.fact.quarantined,
            archived=one.fact.archived,
        )
        for one, score in found
    ]


def _score(fact: Fact, rate: float) -> float:
    return rate * ARCHIVED if fact.archived else rate


def _why(fact: Fact, score: float) -> dict[str, list[float]]:
    """How the score of a fact came about."""
    if not fact.archived:
        return {"fact": [round(score, 3)] * 2}
    rate = score / ARCHIVED
    return {"fact": [round(rate, 3)] * 2, "archived": [1.0, round(score - rate, 3)]}


def _key(context: Context, subject: str, scope: Scope) -> str:
    """The note that states facts about this subject already, whatever its key; else the one named after it."""
    key = facts.subject_key(subject)
    folders = context.visible_folders(scope.kind)
    if any(context.store.stamp(folder, "notes", f"{key}.md") for folder in folders):
        return key
    context.refresh(folders, archived=True)
    names = sorted(
        context.query(lambda: names_of(context.index, folders, [subject])), key=lambda name: name != facts.fold(subject)
    )
    return next((there for name in names for folder in folders if (there := _stating(context, folder, name))), key)


def _stating(context: Context, folder: str, subject: str) -> str | None:
    return context.query(lambda: context.index.stating(folder, subject))


def _same(fact: Fact, line: facts.FactLine) -> bool:
    return (fact.label, fact.value, fact.valid_from) == (line.label, line.value, line.valid_from)
