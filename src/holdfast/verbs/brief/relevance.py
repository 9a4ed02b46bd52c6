"""Find the notes and turns relevant to a prompt, by words or by meaning.

Figures: docs/adr/0016-show-whole-notes-with-a-prompt.md
"""

from __future__ import annotations

from math import inf

from holdfast.base import dates
from holdfast.base.record import Record
from holdfast.index import tokenizer
from holdfast.index.filters import SearchFilter
from holdfast.search import abstention
from holdfast.verbs import recall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.context.caller import Context
    from holdfast.index.results import FoundPassage
    from holdfast.models import Note

NOTES = 7  # notes that one prompt brings at most; others may come with a later one
_NOTES_OF_GENERAL = 2  # the same for a prompt that looks like a general request
_GENERAL = 0.3  # threshold from which a prompt looks like one
PROMPT_CHARS = 8000
_KEYWORD_CANDIDATES = 60  # passages that a keyword search reads
_HYBRID_CANDIDATES = 40  # passages that a hybrid search reads
_SHARE = 0.35  # of the best note's score that a further note must reach,
_SURE, _RISE = 0.3, 0.5  # and how that share rises where the best note scores more than this
_SHARE_BY_WORDS = 0.45  # the same without a model
_TURN_MARGIN = 0.15  # a turn may score this much less than the best note and still be shown
_SMALL_TALK = 3  # words: a turn of so few answers no question
_MAX_TURNS, _MIN_LINES_APART = 2, 4  # turns that one prompt brings, and how far apart in their transcript


class Match(Record):
    """A note or a turn that is relevant to a prompt: its location, and its score compared with the others."""

    kind: str  # note, turn
    scope: str  # the folder
    name: str
    score: float
    line: int = 0  # of a turn

    @property
    def citation(self) -> str:
        return f"{self.scope}/transcripts/{self.name}:{self.line}-{self.line}"


def find_matches(context: Context, prompt: str, mode: str) -> list[Match]:
    """Return the notes that are relevant to a prompt and that this caller may see, best first, and the turns of past sessions
    that answer it about as well. Return nothing for a prompt that is not about stored work."""
    folders = context.visible_folders(None)
    context.refresh(folders)
    text = prompt[:PROMPT_CHARS]
    now = dates.now()
    found = context.query(lambda: (_match_by_meaning if mode == "hybrid" else _match_by_words)(context, text, folders, now))
    if not found or not context.query(lambda: context.index.has_relations()):
        return found
    return _replace_superseded(context, found, folders, now)


def _replace_superseded(context: Context, found: list[Match], folders: tuple[str, ...], now: str) -> list[Match]:
    """Return the matches with the current note in the place of each note that was superseded; each note once."""
    from holdfast.context import superseded

    current = context.query(lambda: superseded.find_paths(context.index, folders, now))
    kept: dict[tuple[str, str, int], Match] = {}
    for match in found:
        row = current.get(f"{match.scope}/notes/{match.name}") if match.kind == "note" else None
        if row is not None:
            match = match.replace(scope=row.scope, name=f"{row.key}.md")
        if row is None or row.part == "notes":  # an archived note is not briefed
            kept.setdefault((match.scope, match.name, match.line), match)
    return list(kept.values())


def read_note(context: Context, match: Match) -> Note | None:
    """Return the note of a match; None if it was deleted, has ended, or is in quarantine."""
    note = context.query(lambda: context.index.find_note(match.scope, match.name))
    return note if note and not note.quarantined and not (note.valid_to and note.valid_to <= dates.now()) else None


def _match_by_meaning(context: Context, prompt: str, folders: tuple[str, ...], now: str) -> list[Match]:
    asked = SearchFilter(folders, "notes transcripts", now=now)
    held = context.index.count_notes(folders, now, 1)  # notes in quarantine must not crowd out the others
    limit = min(_HYBRID_CANDIDATES + held, 100)
    result = recall.search(context, prompt, asked, limit=limit, now=None, mode="hybrid", explain=False)
    if result.mode != "hybrid" or result.threshold is None:
        return _match_by_words(context, prompt, folders, now)
    found = result.found_with_first_scores()  # a reranker changes the order only
    usable = [one for one in found if one.part == "notes" and not one.quarantined]
    notes = [Match("note", one.scope, one.name, one.score) for one in usable]
    if notes and _best_score(notes) < result.threshold:
        notes = []
    turns = [one for one in found if one.part == "transcripts" and one.score >= result.threshold]
    notes = notes[:_NOTES_OF_GENERAL] if result.threshold >= _GENERAL else notes
    if not notes:
        return _choose(context, notes, turns, 0.0)
    unnamed = [one.score for one in usable if one.passage not in result.named]
    top = max(unnamed, default=_best_score(notes))  # a note that only has a name of the prompt is not the measure of the others
    return _choose(context, notes, turns, (_SHARE + _RISE * min(max(top - _SURE, 0.0), 0.5)) * top)


def _match_by_words(context: Context, prompt: str, folders: tuple[str, ...], now: str) -> list[Match]:
    wording = abstention.Wording(prompt)
    if wording.small_talk:
        return []
    notes, shared = _share_words(context, prompt, SearchFilter(folders, "notes", now=now), wording)
    usable = [one for one in notes if not one.quarantined][: _NOTES_OF_GENERAL if wording.general else len(notes)]
    best = max([shared[one.passage] for one in usable], default=0.0)
    turns, shared = _share_words(context, prompt, SearchFilter(folders, "transcripts", now=now), wording)
    better = [one.replace(score=inf) for one in turns if shared[one.passage] > best]  # comes before the notes
    better = better[:1] if wording.general else better
    least = _SHARE_BY_WORDS * max([one.score for one in usable], default=0.0)
    return _choose(context, [Match("note", one.scope, one.name, one.score) for one in usable], better, least)


def _share_words(
    context: Context, prompt: str, asked: SearchFilter, wording: abstention.Wording
) -> tuple[list[FoundPassage], dict[int, float]]:
    """Return the passages that share enough of a prompt's words, best first, and the weight of the words by passage."""
    if not context.index.count_passages(asked):
        return [], {}
    terms = tokenizer.rarest_terms(*context.index.resolve_terms(prompt, asked))
    ranks = context.index.match_passages(terms, asked, _KEYWORD_CANDIDATES)
    shared = recall.weigh_shared_words(context, prompt, asked, ranks)
    found = context.index.find_passages(ranks, asked)
    return [one for one in found if wording.is_strong(shared.get(one.passage, 0.0), one.key)], shared


def _choose(context: Context, notes: list[Match], turns: list[FoundPassage], least: float) -> list[Match]:
    """Return the notes that score at least `least`, and the best turns if they score about as well as the best note."""
    top = _best_score(notes)
    kept = [one for one in notes if one.score >= least]
    best = _choose_turns(context, [turn for turn in turns if not kept or turn.score >= top - _TURN_MARGIN])
    first = 0 if best and best[0].score >= top else 1  # a turn that scores less comes second
    return [*kept[:first], *best, *kept[first:]]


def _best_score(notes: list[Match]) -> float:
    return max([note.score for note in notes], default=0.0)


def _choose_turns(context: Context, turns: list[FoundPassage]) -> list[Match]:
    """Return the best turns that may be shown, each from another part of its session."""
    best: list[Match] = []
    for turn in turns:
        own = context.session is not None and turn.source.session == context.session
        if own or turn.words <= _SMALL_TALK or turn.source.trusted in context.config.quarantine:
            continue
        match = Match("turn", turn.scope, turn.name, turn.score, turn.lines[0])
        if not any(one.name == match.name and abs(one.line - match.line) <= _MIN_LINES_APART for one in best):
            best.append(match)
        if len(best) == _MAX_TURNS:
            break
    return best
