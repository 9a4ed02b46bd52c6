"""Which notes and turns bear on a prompt, by words or by meaning. docs/adr/0016-what-a-prompt-brings.md has the figures."""

from __future__ import annotations

from math import inf

from holdfast import abstention, dates, words
from holdfast.index.sqlite import Asked, note_of_row
from holdfast.note import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.desk import Desk
    from holdfast.index.rows import Found
    from holdfast.note import Note

NOTES = 6  # notes that one prompt brings at most,
_NOTES_OF_GENERAL = 2  # and one that looks like a general request
_GENERAL = 0.3  # threshold from which a prompt looks like one
_PROMPT_CHARS = 8000
_CANDIDATES = 12  # notes that a keyword search looks at: a hook has no time for more
_SOUGHT = 40  # passages that a hybrid search looks at
_SHARE = 0.25  # of the best note's score that a further note must reach,
_SURE, _RISE = 0.3, 0.5  # and how that share rises where the best note scores more than this
_SHARE_BY_WORDS = 0.35  # the same without a model
_TURN_MARGIN = 0.1  # a turn may score this much less than the best note and still be shown
_SMALL_TALK = 3  # words: a turn of so few answers nothing


class Match(Record):
    """A note or a turn that bears on a prompt: where it stands, and how well it answers compared with the others."""

    kind: str  # note, turn
    scope: str  # the folder
    name: str
    score: float
    line: int = 0  # of a turn

    @property
    def citation(self) -> str:
        return f"{self.scope}/transcripts/{self.name}:{self.line}-{self.line}"


def matches(desk: Desk, prompt: str, mode: str) -> list[Match]:
    """Return the notes that bear on a prompt and that this caller may see, best first, and the turn that answers it better
    or as well, if there is one. Nothing for a prompt that is not about what is stored."""
    folders = desk.folders(None)
    desk.look(folders)
    text = prompt[:_PROMPT_CHARS]
    return desk.ask(lambda: (_by_meaning if mode == "hybrid" else _by_words)(desk, text, folders, dates.now()))


def note_at(desk: Desk, match: Match) -> Note | None:
    """Return the note of a match; None if it is gone, over, or in quarantine."""
    row = desk.ask(lambda: desk.index.note_named(match.scope, match.name))
    note = note_of_row(row) if row else None
    return note if note and not note.quarantined and not (note.valid_to and note.valid_to <= dates.now()) else None


def _by_meaning(desk: Desk, prompt: str, folders: tuple[str, ...], now: str) -> list[Match]:
    asked = Asked(folders, "notes transcripts", now=now)
    held = desk.index.count(folders, now, 1)  # notes in quarantine must not crowd out the others
    sought = desk.sought(prompt, asked, min(_SOUGHT + held, 100), None, "hybrid", False)
    if sought.mode != "hybrid" or sought.threshold is None:
        return _by_words(desk, prompt, folders, now)
    found = sought.found
    notes = [Match("note", one.scope, one.name, one.score) for one in found if one.part == "notes" and not one.quarantined]
    if notes and notes[0].score < sought.threshold:
        notes = []
    turns = [one for one in found if one.part == "transcripts" and one.score >= sought.threshold]
    top = notes[0].score if notes else 0.0
    notes = notes[:_NOTES_OF_GENERAL] if sought.threshold >= _GENERAL else notes
    return _chosen(desk, notes, turns, _SHARE + _RISE * min(max(top - _SURE, 0.0), 0.5))


def _by_words(desk: Desk, prompt: str, folders: tuple[str, ...], now: str) -> list[Match]:
    wording = abstention.Wording(prompt)
    if wording.small_talk:
        return []
    asked = Asked(folders, "notes", now=now)
    terms, common = desk.index.looked_for(prompt, asked)
    weights = abstention.word_weights(terms, common, desk.index.passage_count(asked))
    notes = []
    for note, rank, shared in _notes_with(desk, asked, terms, common, weights):
        if wording.is_strong(shared) and not note.quarantined and not (note.valid_to and note.valid_to <= now):
            notes.append((-rank, shared, note))
    notes = notes[:_NOTES_OF_GENERAL] if wording.general else notes
    best = max([shared for _, shared, _ in notes], default=0.0)
    found = [Match("note", note.scope.folder, note.path.rpartition("/")[2], rank) for rank, _, note in notes]
    return _chosen(desk, found, _turns_with(desk, prompt, folders, now, wording, best), _SHARE_BY_WORDS)


def _notes_with(
    desk: Desk, asked: Asked, terms: dict[str, str], common: dict[str, int], weights: dict[str, float]
) -> list[tuple[Note, float, float]]:
    """The notes that have the words, each with its rank (lowest first) and the weight of the words it shares."""
    most = _CANDIDATES
    while True:
        ranks = desk.index.matches(words.rarest(terms, common), asked, most)
        rows = desk.index.notes_of(list(ranks)) if ranks else []
        found = [(note_of_row(row[:-2]), ranks[row[-2]], f"{row[-1]} {row[-3]}") for row in rows]
        if most == _CANDIDATES and any(note.quarantined for note, _, _ in found):
            most *= 16  # notes in quarantine must not crowd out the others
            continue
        found.sort(key=lambda one: (one[1], one[0].key))
        return [(note, rank, abstention.shared_weight(terms, weights, text)) for note, rank, text in found]


def _turns_with(
    desk: Desk, prompt: str, folders: tuple[str, ...], now: str, wording: abstention.Wording, best: float
) -> list[Found]:
    """The turns that share more of a prompt's words than the best note does; they come before it."""
    asked = Asked(folders, "transcripts", now=now)
    if not desk.index.passage_count(asked):
        return []
    terms, common = desk.index.looked_for(prompt, asked)
    ranks = desk.index.matches(words.rarest(terms, common), asked, _CANDIDATES)
    weights = abstention.word_weights(terms, common, desk.index.passage_count(asked))
    texts = {row[0]: row[2] for row in desk.index.texts(list(ranks))} if ranks else {}
    shared = {id: abstention.shared_weight(terms, weights, text) for id, text in texts.items()}
    better = {id: rank for id, rank in ranks.items() if shared.get(id, 0.0) > best and wording.is_strong(shared[id])}
    return [turn.replace(score=inf) for turn in desk.index.passages(better, asked)] if better else []


def _chosen(desk: Desk, notes: list[Match], turns: list[Found], share: float) -> list[Match]:
    """The notes that reach this share of the best one's score, and the best turn if it scores about as well: it comes first or second."""
    top = notes[0].score if notes else 0.0
    kept = [one for one in notes if one.score >= share * top][:NOTES]
    for turn in turns:
        own = desk.session is not None and turn.source.session == desk.session
        if own or turn.words <= _SMALL_TALK or turn.source.trusted in desk.config.quarantine:
            continue
        match = Match("turn", turn.scope, turn.name, turn.score, turn.lines[0])
        if not kept or match.score >= top:
            return [match, *kept]
        return [*kept[:1], match, *kept[1:]] if match.score >= top - _TURN_MARGIN else kept
    return kept
