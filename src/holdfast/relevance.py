"""Which notes bear on a prompt, by words or by meaning. The limits were measured: docs/adr/0016-what-a-prompt-brings.md."""

from __future__ import annotations

from math import log

from holdfast import dates, words
from holdfast.index.sqlite import Asked, note_of_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.desk import Desk
    from holdfast.note import Answer, Note

SHARE = 0.25  # of what the words of a prompt weigh that a note must have,
WORDS = 2  # in so many of them, or in one that is part of its name;
NEAR = 0.3  # what a note must score where meaning is weighed too
LONG = 8  # words of a prompt that count at most, the rarest: a long one is about more than one thing
_CANDIDATES = 12  # that are looked at: a hook has no time for more
_PROMPT_CHARS = 8000


def fitting(desk: Desk, prompt: str, mode: str) -> list[Note]:
    """The notes that bear on a prompt, as far as this caller may see, the most fitting first."""
    folders = desk.folders(None)
    desk.look(folders)
    asked, text = Asked(folders, "notes", now=dates.now()), prompt[:_PROMPT_CHARS]
    return desk.ask(lambda: _by_meaning(desk, text, asked) if mode == "hybrid" else _by_words(desk, text, asked))


def of_answer(desk: Desk, answer: Answer) -> list[Note]:
    """The same from what somebody else's hybrid recall found."""
    near = [hit for hit in answer.hits if hit.kind == "note" and hit.score >= NEAR]
    rows = [desk.ask(lambda hit=hit: desk.index.note_named(hit.scope.folder, f"{hit.key}.md")) for hit in near]  # type: ignore[misc]
    return [note for row in rows if row and not (note := note_of_row(row)).quarantined]


def _by_words(desk: Desk, prompt: str, asked: Asked) -> list[Note]:
    terms, common = desk.index.looked_for(prompt, asked)
    scores = desk.index.matches(words.rarest(terms, common), asked, _CANDIDATES)
    if not scores:
        return []
    rows = desk.index.notes_of(list(scores))
    if any(note_of_row(row[:-2]).quarantined for row in rows):  # which must not crowd out what may be told
        rows = desk.index.notes_of(list(desk.index.matches(words.rarest(terms, common), asked, _CANDIDATES * 16)))
    total = sum([folder[1] for folder in desk.index.folders_of(asked)])
    weights = {term: log(1 + total / max(common.get(term, 0), 0.5)) for term in terms}
    place = {scope: number for number, scope in enumerate(asked.scopes)}
    found = []
    for *row, _, names in rows:
        note = note_of_row(tuple(row))
        part = share(terms, weights, names, note.text)
        over = note.valid_to and note.valid_to <= asked.now
        if part >= SHARE and note.scope.folder in place and not over and not note.quarantined:
            found.append((-round(part, 6), place[note.scope.folder], note.key, note))
    return [one[-1] for one in sorted(found, key=lambda one: one[:-1])]


def _by_meaning(desk: Desk, prompt: str, asked: Asked) -> list[Note]:
    held = desk.index.count(asked.scopes, asked.now, 1)
    sought = desk.sought(prompt, asked, min(_CANDIDATES + held, 100), None, "hybrid", False)
    if sought.mode != "hybrid":
        return _by_words(desk, prompt, asked)
    near = [one.passage for one in sought.found if one.score >= NEAR]
    found = {row[-2]: note_of_row(row[:-2]) for row in desk.index.notes_of(near)}
    notes = {passage: note for passage, note in found.items() if not note.quarantined}
    return [notes[id] for id in near if id in notes]


def share(terms: Mapping[str, str], weights: Mapping[str, float], names: str, text: str) -> float:
    """What share of a prompt's words a note has, by their weight: rare ones weigh more. One word alone counts only where the
    note is named after it."""
    called = set(words.kept(names))
    there = called.union(words.kept(text))
    has = [term for term in terms if term in there]
    if len({terms[term] for term in has}) < WORDS and not any(term in called for term in has):
        return 0.0
    whole = sum(sorted(weights.values())[-LONG:])
    return min(sum([weights[term] for term in has]) / whole, 1.0) if whole else 0.0
