"""What an agent is told, and what it was told already: at the start the newest notes of each scope and the overview of its
files; with a prompt only notes that bear on it and that this session has not seen (B1, B2, B4)."""

from __future__ import annotations

from holdfast import briefing, dates, guard
from holdfast.desk import nameless_id
from holdfast.errors import Busy, HoldfastError
from holdfast.index.sqlite import note_of_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.briefing import Brief, Part, Told, Why
    from holdfast.desk import Desk
    from holdfast.note import Answer, Note, Scope

    _Made = tuple[Brief, list[tuple[Told, bool]]]

MOST_TOLD = 5  # notes that one prompt brings along
_OVERVIEW = 64 * 1024  # characters of an overview: no briefing shows more
_TRUSTED = 0  # only those that are not in quarantine


def brief(
    desk: Desk, prompt: str | None = None, again: bool = False, cap: int | None = None, explain: bool = False,
    mode: str = "keyword", found: Answer | None = None, remember: bool = True, first: bool = False,
) -> Brief:  # fmt: skip
    """The steps of `Memory.brief`. Who only looks (`explain`, or not to `remember`) was told nothing. Of a session's `first`
    context the first prompt may be heard of before the start, or at the same time: what that shows is not shown again."""
    remember = remember and not explain
    if not desk.config.enabled:
        return briefing.Brief("", disabled=True)
    if prompt is not None:
        return _at_prompt(desk, prompt, again, cap, explain, mode, found, remember)
    return _at_start(desk, cap, explain, remember, first)


def _most(cap: int | None) -> int:
    return briefing.MOST_CHARS if cap is None else min(cap, briefing.MOST_CHARS)


def _capped(made: _Made, cap: int | None) -> _Made:
    """A client cuts or drops what is beyond its cap: where not even the least fits, nothing is said, nor counted as shown."""
    brief, told = made
    if cap is None or len(brief.text) <= cap:
        return made
    return briefing.Brief("", left_out=brief.left_out + len(told)), []


# --- at the start -----------------------------------------------------------------------------------------------------


def _at_start(desk: Desk, cap: int | None, explain: bool, remember: bool, first: bool) -> Brief:
    """Whatever was shown before: a start is a new context."""
    config, now = desk.config, dates.now()
    places = desk.places(None)
    desk.look(tuple([place.folder for place in places]))
    overviews = [_overview(desk, place) for place in places]
    known = desk.ask(lambda: _newest(desk, places, config.brief_entries, now))  # all in one: others may count notes meanwhile
    parts = [
        briefing.Part(place.kind, tuple(_safely(notes, unsafe, now)), count, text, path)
        for place, (path, text), (notes, count, unsafe) in zip(places, overviews, known, strict=True)
    ]
    total = min(config.brief_total_chars, _most(cap))
    budget = briefing.Budget(config.brief_entries, config.brief_scope_chars, total)
    made, told = _capped(briefing.composed(parts, budget), cap)
    if remember:
        claimed = _remember(desk, [one for one, _ in told], anew=True, first=first)
        if others := {one.id for one, _ in told} - claimed:
            made, told = _capped(briefing.composed([_without(part, others) for part in parts], budget), cap)
            _remember(desk, [one for one, _ in told if one.id not in claimed])  # there was room for more
    if explain:
        notes = [note for place in places for note in _notes(desk, place)]
        made = made.replace(why=_why_at_start(notes, told, config.brief_entries, now))
    return made


def _without(part: Part, others: set[str]) -> Part:
    """What is left to be said where another hook says these."""
    left = tuple([one for one in part.notes if one.id not in others])
    return part.replace(notes=left, total=part.total - len(part.notes) + len(left))


def _safely(notes: list[Note], unsafe: frozenset[str], now: str) -> list[Told]:
    """Their lines, without a secret that somebody pasted in or keeps on purpose: a model is not told one (S2). The catalogue,
    which has their texts, knows which ones to look through."""
    safe = [note.replace(text=guard.cleaned(note.text)) if note.path in unsafe else note for note in notes]
    return [_told(note, now) for note in safe]  # cut only then: half a secret is not recognised


def _newest(desk: Desk, places: list[Scope], entries: int, now: str) -> list[tuple[list[Note], int, frozenset[str]]]:
    """Of each place its first notes, how many it has, and the paths of those that seem to hold a secret."""
    found = []
    for place in places:
        folder = (place.folder,)
        notes = [note_of_row(row) for row in desk.index.notes(folder, most=entries, now=now, only=_TRUSTED)]
        count = desk.index.count(folder, now, _TRUSTED) if len(notes) == entries else len(notes)
        found.append((notes, count, desk.index.exposed(folder) if notes else frozenset()))
    return found


def _overview(desk: Desk, place: Scope) -> tuple[str, str]:
    """The page that stands for a place's files: its path and text; none that brings back what was purged."""
    from holdfast.browsing import overview

    path, text = overview(desk.shelf, place)
    if not text or _may_be_purged(desk, text):
        return "", ""
    return path, guard.cleaned(text[:_OVERVIEW]) + text[_OVERVIEW:]


def _may_be_purged(desk: Desk, text: str) -> bool:
    """Whether this was purged, or nobody can tell now."""
    try:
        return bool(desk.purged_as("", lambda: [text]))
    except Busy:
        return True


def _notes(desk: Desk, place: Scope) -> list[Note]:
    return [note_of_row(row) for row in desk.ask(lambda: desk.index.notes((place.folder,)))]


def _told(note: Note, now: str) -> Told:
    """A note's line; one that is only going to be true says from when."""
    date = f"from {note.valid_from[:10]}" if note.valid_from > now else note.updated[:10]
    id = note.id or nameless_id(note.scope.folder, "notes", note.path.rpartition("/")[2])
    text = note.text[: briefing.MOST_CHARS]
    source = note.source
    said = source.origin if source.trusted == source.origin else f"{source.origin} from {source.trusted}"
    return briefing.Told(note.scope.kind, _key(note), date, said, text, id, note.version)


def _key(note: Note) -> str:
    """The key; a name that a person gave a file may be anything, also a secret."""
    letters = note.key.replace("-", "")
    ours = letters.isascii() and letters.isalnum() and letters == letters.lower()  # KEY would load all of `re`
    return note.key if ours else guard.withheld(note.key)[0]


def _why_at_start(notes: list[Note], told: list[tuple[Told, bool]], entries: int, now: str) -> tuple[Why, ...]:
    """For every note of the places, also for those that are over."""
    whole = {one.id: whole for one, whole in told}
    seen: dict[str, int] = {}
    reasons: list[Why] = []
    for note in notes:
        if note.valid_to and note.valid_to <= now:
            reasons.append(briefing.Why(f"{note.scope.kind}/{_key(note)}", False, f"over since {note.valid_to[:10]}"))
            continue
        if note.quarantined:
            reasons.append(briefing.Why(f"{note.scope.kind}/{_key(note)}", False, _held(note)))
            continue
        place = seen[note.scope.kind] = seen.get(note.scope.kind, 0) + 1
        one = _told(note, now)
        if one.id in whole:
            reasons.append(briefing.Why(briefing.name_of(one), True, _told_because(note, place, whole[one.id], now)))
        else:
            why = f"beyond the {entries} entries of its scope" if place > entries else "no room in the characters of its scope"
            reasons.append(briefing.Why(briefing.name_of(one), False, f"number {place} of its scope: {why}"))
    return tuple(reasons)


def _held(note: Note) -> str:
    return f"in quarantine: it came from {note.source.trusted}, and nobody approved it yet (`holdfast review`)"


def _told_because(note: Note, place: int, whole: bool, now: str) -> str:
    said = [f"number {place} of its scope" + (", pinned" if note.pinned else f", updated {note.updated[:10]}")]
    if note.valid_from > now:
        said.append(f"not true before {note.valid_from[:10]}, and says so")
    return "; ".join(said if whole else [*said, "shortened to its share"])


# --- with a prompt ----------------------------------------------------------------------------------------------------


def _at_prompt(
    desk: Desk, prompt: str, again: bool, cap: int | None, explain: bool, mode: str, found: Answer | None, remember: bool
) -> Brief:
    from holdfast import relevance

    most = min(desk.config.prompt_chars, _most(cap))
    if not prompt.strip() or most <= 0:
        return briefing.Brief("")
    fitting = relevance.of_answer(desk, found) if found else relevance.fitting(desk, prompt, mode)
    now, known = dates.now(), {} if again else _told_before(desk)
    unsafe = desk.ask(lambda: desk.index.exposed(desk.folders(None))) if fitting else frozenset()
    fresh = [one for one in _safely(fitting, unsafe, now) if known.get(one.id) != one.version]
    made, told = _capped(_composed(fresh, most), cap)
    claimed = _remember(desk, [one for one, _ in told]) if remember else {one.id for one, _ in told}
    if not again and len(claimed) < len(told):  # another hook of this session was told of the same prompt
        made, told = _capped(_composed([one for one in fresh if one.id in claimed], most), cap)
    if explain:
        made = made.replace(why=_why_at_prompt(desk, fitting, fresh, told, now))
    return made


def _composed(fresh: list[Told], most: int) -> tuple[Brief, list[tuple[Told, bool]]]:
    """The first few of them; the others are counted as left out."""
    parts: list[Part] = []
    for kind in dict.fromkeys([one.scope for one in fresh[:MOST_TOLD]]):
        mine = tuple([one for one in fresh[:MOST_TOLD] if one.scope == kind])
        parts.append(briefing.Part(kind, mine, len(mine) + (0 if parts else len(fresh[MOST_TOLD:]))))
    return briefing.composed(parts, briefing.Budget(MOST_TOLD, most, most))


def _why_at_prompt(
    desk: Desk, fitting: list[Note], fresh: list[Told], told: list[tuple[Told, bool]], now: str
) -> tuple[Why, ...]:
    fits = {_told(note, now).id for note in fitting}
    new, shown = {one.id for one in fresh}, {one.id: whole for one, whole in told}
    reasons = []
    for note in [note for place in desk.places(None) for note in _notes(desk, place)]:
        one = _told(note, now)
        if one.id in shown:
            why = "bears on the prompt" if shown[one.id] else "bears on the prompt; shortened to its share"
        elif one.id in new:
            why = "bears on the prompt, but there is no room: it may come with a later one"
        elif one.id in fits:
            why = "shown to this session already"
        elif note.valid_to and note.valid_to <= now:
            why = f"over since {note.valid_to[:10]}"
        elif note.quarantined:
            why = _held(note)
        else:
            why = "does not bear on the prompt"
        reasons.append(briefing.Why(briefing.name_of(one), one.id in shown, why))
    return tuple(reasons)


# --- what was told to whom --------------------------------------------------------------------------------------------


def _told_before(desk: Desk) -> dict[str, str]:
    return desk.ledger.told(desk.session) if desk.session else {}


def _remember(desk: Desk, told: list[Told], anew: bool = False, first: bool = False) -> set[str]:
    """Note what is about to be shown; those that nobody showed before. Where that cannot be noted, all of them: better
    told twice than never."""
    every = {one.id for one in told}
    if not desk.session or not desk.shelf.there():
        return every
    try:
        shown = [(one.id, one.version) for one in told]
        return set(desk.ledger.tell(desk.session, shown, int(dates.clock()), anew, desk.client or "", first))
    except HoldfastError:
        return every


def heard_prompt(desk: Desk, prompt: str) -> int:
    """Count a prompt of this session: how many it has had with this one, 0 if this one was counted already or nobody can."""
    from holdfast.note import digest

    if not desk.session or not desk.config.enabled or not desk.shelf.there():
        return 0
    try:
        return desk.ledger.prompted(desk.session, digest(prompt.encode("utf-8", "replace")), int(dates.clock()))
    except HoldfastError:
        return 0


def begin_anew(desk: Desk, first: bool = False) -> None:
    """A context that nothing was told to yet, of a client that can only be told with a prompt."""
    if desk.session and desk.config.enabled and desk.shelf.there():
        desk.ledger.begin(desk.session, int(dates.clock()), first)
