"""What an agent is shown, and what a session was shown already (B1, B2, B4).

At the start: standing notes, current facts, the overviews of its files, and its most useful notes. With a prompt: the notes
and turns that bear on it and that the session has not been shown whole.
"""

from __future__ import annotations

from holdfast.base import dates
from holdfast.context.caller import path_usage_id
from holdfast.errors import Busy, HoldfastError
from holdfast.index.sqlite import note_of_row
from holdfast.safety import validate
from holdfast.verbs.brief import render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.context.caller import Context
    from holdfast.models import Fact, Note, Scope
    from holdfast.verbs.brief.relevance import Match
    from holdfast.verbs.brief.render import Brief, Composed, Part, Told, Why

STANDING = ("user", "feedback")  # types of notes that are shown first and whole
_NEWEST = 200  # notes of a scope that a start briefing chooses from
_MOST_STANDING = 100
_FACTS = 1000  # facts that a start briefing chooses from
_OVERVIEW = 64 * 1024  # characters of an overview: no briefing shows more
_TRUSTED = 0  # only those that are not in quarantine
_USE = 3  # places by which a note moves up for each doubling of its uses and revisions,
_BRANCH = 30  # and where it is named after the branch
_MOST_DOUBLINGS = 4
_PLACE_CHARS = 20  # characters of its text for which a note moves down one place
_EXCERPT = 400  # characters of the turns around one that answers;
_LONGEST_TURN = 1000  # one that is longer by itself may have so many
_AROUND = 1, 3  # turns before and after it
_STATEMENTS = 8  # facts of one subject that a prompt brings
_FILE_FACTS, _ANSWERS = 3, 0.6  # facts of files that a prompt brings, and how well each must answer (0 to 1)


def brief(
    context: Context, prompt: str | None = None, again: bool = False, cap: int | None = None, explain: bool = False,
    mode: str = "keyword", matches: list[Match] | None = None, remember: bool = True, first: bool = False,
    anew: bool = True,
) -> Brief:  # fmt: skip
    """Compose what `Memory.brief` returns, and record it as shown unless it only explains or must not `remember`.

    `first`: the first context of a session, whose first prompt may arrive before its start; its notes are not shown twice.
    `anew`: a new context begins. If false, the start goes with a prompt and leaves out what that prompt brings.
    `matches`: what another process found for the prompt.
    """
    remember = remember and not explain
    if not context.config.enabled:
        return render.Brief("", disabled=True)
    if prompt is not None:
        return _at_prompt(context, prompt, again, cap, explain, mode, matches, remember)
    return _at_start(context, cap, explain, remember, first, anew)


def _most(cap: int | None) -> int:
    return render.MOST_CHARS if cap is None else min(cap, render.MOST_CHARS)


def _capped(made: Composed, cap: int | None) -> Composed:
    """A client cuts or drops what is beyond its cap: where not even the least fits, nothing is said, nor counted as shown."""
    if cap is None or len(made.brief.text) <= cap:
        return made
    count = made.brief.left_out + len(made.whole) + len(made.titles)
    return render.Composed(render.Brief("", left_out=count))


# --- at the start -----------------------------------------------------------------------------------------------------


def _at_start(context: Context, cap: int | None, explain: bool, remember: bool, first: bool, anew: bool) -> Brief:
    config, now = context.config, dates.now()
    places = context.visible_scopes(None)
    folders = tuple([place.folder for place in places])
    context.refresh(folders)
    known, stated, stale = context.query(
        lambda: (
            _notes_of(context, places, now),
            context.index.newest_facts(folders, now, _FACTS),
            context.index.stale_lines(folders, now),
        )
    )
    statements = {(fact.path, fact.line): _statement(fact) for fact in stated}
    branch = _branch_words(context)
    facts_only: list[Told] = []
    parts = []
    for place, (notes, count, unsafe) in zip(places, known, strict=True):
        left: list[Told] = []
        only: list[Told] = []
        empty = 0
        for note in _by_use(context, notes, branch):
            told = _told(note, now, stale, unsafe)
            if _is_empty(note, told):
                empty += 1
            else:
                (only if _is_facts_only(note, statements, now) else left).append(told)
        facts_only += only
        parts.append(render.Part(place.kind, tuple(left), count - len(only) - empty, _overviews(context, place, now, stale)))
    facts = render.Facts(tuple(statements.values()), len(stated), len(stated) == _FACTS)
    budget = render.Budget(config.brief_entries, config.brief_scope_chars, min(config.brief_total_chars, _most(cap)))
    made = _capped(render.at_start(parts, facts, budget), cap)
    if remember:
        claimed = _remember(context, _shown(made, facts_only, statements), anew, first)
        if others := {one.id for one in made.whole} - claimed:
            made = _capped(render.at_start([_without(part, others) for part in parts], facts, budget), cap)
            _remember(context, [one for one in made.whole if one.id not in claimed])  # there was room for more
    names = [render.name_of(one) for one in _shown(made, facts_only, statements)]
    brief = made.brief.replace(shown=tuple(names)) if made.brief.text else made.brief
    if explain:
        notes = [note for place in places for note in _notes(context, place)]
        shown = {one.id for one in _shown(made, facts_only, statements)}
        return brief.replace(why=_why_at_start(notes, made, shown, now))
    return brief


def _notes_of(context: Context, places: list[Scope], now: str) -> list[tuple[list[Note], int, frozenset[str]]]:
    """Of each place its standing notes and its newest, how many it has, and the paths of those that seem to hold a secret."""
    found = []
    for place in places:
        folder = (place.folder,)
        newest = [note_of_row(row) for row in context.index.notes(folder, most=_NEWEST, now=now, only=_TRUSTED)]
        count = len(newest)
        if count == _NEWEST:
            count = context.index.count(folder, now, _TRUSTED)
            for type in STANDING:
                rows = context.index.notes(folder, type=type, most=_MOST_STANDING, now=now, only=_TRUSTED)
                newest += [note_of_row(row) for row in rows]
            newest = list({note.path: note for note in newest}.values())
        found.append((newest, count, context.index.exposed(folder) if newest else frozenset()))
    return found


def _by_use(context: Context, notes: list[Note], branch: set[str]) -> list[Note]:
    """The notes, most useful first: newer ones, those that are recalled or revised often, those that name the branch, and
    short ones, of which more fit."""
    if len(notes) < 2:
        return notes
    try:
        uses = context.ledger.usage([_id(note) for note in notes])
    except HoldfastError:
        uses = {}

    def place(numbered: tuple[int, Note]) -> int:
        number, note = numbered
        used, revised = uses.get(_id(note), 0), note.versions - 1
        doublings = min((used // 2).bit_length() + revised.bit_length(), _MOST_DOUBLINGS)  # coarse, so that bytes seldom change
        named = branch and not branch.isdisjoint([*note.key.split("-"), *[tag.casefold() for tag in note.tags]])
        return number - _USE * doublings - _BRANCH * bool(named) + len(note.text) // _PLACE_CHARS

    return [note for _, note in sorted(enumerate(notes), key=place)]


def _branch_words(context: Context) -> set[str]:
    """The words of the branch that is checked out where the caller works; long ones only."""
    from holdfast.project.git import current_branch

    name = current_branch(context.working_folder).lower()
    for mark in "/_.":
        name = name.replace(mark, "-")
    return {word for word in name.split("-") if len(word) > 3 and word not in ("main", "master", "feature", "bugfix", "hotfix")}


def _statement(fact: Fact) -> str:
    from holdfast.formats.facts import format_statement

    return validate.without_secrets(format_statement(fact.subject, fact.label, fact.value, fact.valid_from[:10]))


def _is_facts_only(note: Note, statements: Mapping[tuple[str, int], str], now: str) -> bool:
    """Whether a note says nothing but facts, and all that have not ended are stated on their own. A standing note is shown
    as it is."""
    if note.type in STANDING or note.pinned or not any(path == note.path for path, _ in statements):
        return False
    from holdfast.formats.facts import find_lines

    dated = {one.line: one for one in find_lines(note.text)}
    rows = note.text.split("\n")
    if not all(number in dated for number, row in enumerate(rows) if row.strip() and not row.startswith("# ")):
        return False
    open_lines = [number for number, one in dated.items() if one.valid_to is None or one.valid_to > now]
    return all((note.path, note.lines[0] + number) in statements for number in open_lines)


def _is_empty(note: Note, told: Told) -> bool:
    """Whether nothing but headings is left of a note, since all its facts ended or are stated anew elsewhere."""
    return told.text != note.text and all(not row.strip() or row.startswith("#") for row in told.text.split("\n"))


def _shown(made: Composed, facts_only: list[Told], statements: Mapping[tuple[str, int], str]) -> list[Told]:
    """The notes that count as shown: those that are whole, and those whose facts are all stated."""
    stated = set(made.statements)
    missing = {path for (path, _), statement in statements.items() if statement not in stated}
    return [*made.whole, *[one for one in facts_only if one.path not in missing]]


def _without(part: Part, others: set[str]) -> Part:
    """What is left to be said where another hook says these."""
    left = tuple([one for one in part.notes if one.id not in others])
    return part.replace(notes=left, total=part.total - len(part.notes) + len(left))


def _overviews(context: Context, place: Scope, now: str, stale: set[str]) -> tuple[tuple[str, str], ...]:
    """The pages that stand for a place's files: their paths and texts, without facts that no longer hold; none that brings
    back what was purged."""
    from holdfast.verbs.read import overviews

    pages = [page for page in overviews(context.store, place) if not _may_be_purged(context, page.text)]
    current = [(page.path, _current(page.text, f"{place.folder}/{page.path}", 1, now, stale)) for page in pages]
    return tuple([(path, validate.without_secrets(text[:_OVERVIEW]) + text[_OVERVIEW:]) for path, text in current])


def _may_be_purged(context: Context, text: str) -> bool:
    """Whether this was purged, or nobody can tell now."""
    try:
        return bool(context.purged_as("", lambda: [text]))
    except Busy:
        return True


def _notes(context: Context, place: Scope) -> list[Note]:
    return [note_of_row(row) for row in context.query(lambda: context.index.notes((place.folder,)))]


def _told(note: Note, now: str, stale: set[str], unsafe: frozenset[str]) -> Told:
    """A note as it is shown: without facts that ended or that another file states anew (`stale`, as `path:line`), and without
    secrets. One that is only going to be true says from when."""
    date = f"from {note.valid_from[:10]}" if note.valid_from > now else note.updated[:10]
    source = note.source
    said = source.origin if source.trusted == source.origin else f"{source.origin} from {source.trusted}"
    standing = note.type in STANDING or note.pinned
    text = _current(note.text, note.path, note.lines[0], now, stale)
    text = validate.without_secrets(text) if note.path in unsafe else text  # last: it may change how many lines there are
    return render.Told(note.scope.kind, _key(note), date, said, text, _id(note), note.version, standing, path=note.path)


def _current(text: str, path: str, first_line: int, now: str, stale: set[str]) -> str:
    """A text without the lines of facts that no longer hold."""
    if stale:
        rows = text.split("\n")
        kept = [row for number, row in enumerate(rows, first_line) if f"{path}:{number}" not in stale]
        text = "\n".join(kept) if len(kept) < len(rows) else text
    if "[" not in text or ("~~" not in text and "supersede" not in text.casefold()):
        return text  # most have no such lines: a hook has no time to load regular expressions
    from holdfast.formats.facts import drop_ended_facts

    return drop_ended_facts(text, now)


def _id(note: Note) -> str:
    return note.id or path_usage_id(note.scope.folder, "notes", note.path.rpartition("/")[2])


def _key(note: Note) -> str:
    """The key; a name that a person gave a file may be anything, also a secret."""
    letters = note.key.replace("-", "")
    ours = letters.isascii() and letters.isalnum() and letters == letters.lower()  # KEY would load all of `re`
    return note.key if ours else validate.redact_or_withhold(note.key)[0]


def _why_at_start(notes: list[Note], made: Composed, stated: set[str], now: str) -> tuple[Why, ...]:
    """For every note of the places, also for those that are over; `stated` are those whose facts are all shown."""
    whole, titles = {one.id for one in made.whole}, {one.id for one in made.titles}
    reasons: list[Why] = []
    for note in notes:
        id, shown = _id(note), False
        if note.valid_to and note.valid_to <= now:
            why = f"over since {note.valid_to[:10]}"
        elif note.quarantined:
            why = _held(note)
        elif id in whole:
            shown, why = True, _whole_because(note, now)
        elif id in stated:
            shown, why = True, "its facts are shown as statements"
        elif id in titles:
            why = "listed by title: no room for the whole note; a prompt about it brings it"
        else:
            why = "no room: neither shown nor listed; a prompt about it brings it"
        reasons.append(render.Why(f"{note.scope.kind}/{_key(note)}", shown, why))
    return tuple(reasons)


def _held(note: Note) -> str:
    return f"in quarantine: it came from {note.source.trusted}, and nobody approved it yet (`holdfast review`)"


def _whole_because(note: Note, now: str) -> str:
    why = "pinned" if note.pinned else f"a {note.type} note" if note.type in STANDING else "among the most useful notes"
    later = f"; not true before {note.valid_from[:10]}, and says so" if note.valid_from > now else ""
    return f"shown whole: {why}, updated {note.updated[:10]}{later}"


# --- with a prompt ----------------------------------------------------------------------------------------------------


def _at_prompt(
    context: Context,
    prompt: str,
    again: bool,
    cap: int | None,
    explain: bool,
    mode: str,
    matches: list[Match] | None,
    remember: bool,
) -> Brief:
    from holdfast.verbs.brief import relevance

    most = min(context.config.prompt_chars, _most(cap))
    if not prompt.strip() or most <= 0:
        return render.Brief("")
    if matches is None:
        matches = relevance.matches(context, prompt, mode)
    now, known = dates.now(), {} if again else _told_before(context)
    found, fresh = _found(context, matches, prompt, now, known)
    fresh += [one for one in _facts_of_files(context, prompt, now) if one.id not in known]
    more = len(matches) - len(found)
    made = _capped(render.with_prompt(fresh, more, most), cap)
    shown = [one for one in made.whole if not one.partial]
    claimed = _remember(context, shown) if remember else {one.id for one in shown}
    if not again and len(claimed) < len(shown):  # another hook of this session heard of the same prompt
        made = _capped(render.with_prompt([one for one in fresh if one.id in claimed], more, most), cap)
    if explain:
        return made.brief.replace(why=_why_at_prompt(context, found, fresh, made, now))
    return made.brief


def _found(
    context: Context, matches: list[Match], prompt: str, now: str, known: dict[str, str]
) -> tuple[list[Told | None], list[Told]]:
    """The matches as they are shown, as many as it takes for those that may be shown now: these come second."""
    from holdfast.verbs.brief.relevance import NOTES

    found: list[Told | None] = []
    fresh: list[Told] = []
    for match in matches:
        one = _of_match(context, match, prompt, now)
        found.append(one)
        if one is not None and known.get(one.id) != one.version:
            fresh.append(one)
        if len(fresh) == NOTES:
            break
    return found, fresh


def _facts_of_files(context: Context, prompt: str, now: str) -> list[Told]:
    """Current facts that stand in files of the tree and answer a prompt; those of notes come with the notes."""
    if not context.query(context.index.has_facts):
        return []
    from holdfast.index.sqlite import SearchFilter
    from holdfast.search.fact_matches import answering
    from holdfast.verbs.brief.relevance import PROMPT_CHARS

    asked = SearchFilter(context.visible_folders(None), now=now)
    found = context.query(lambda: answering(context.index, prompt[:PROMPT_CHARS], asked, now, _FILE_FACTS))
    return [
        render.Told(
            one.fact.scope.kind, f"files/{one.name}", one.fact.valid_from[:10], "file", _statement(one.fact),
            f"{one.fact.path}:{one.fact.line}:{one.fact.value}"[:200],
        )
        for one, rate in found
        if one.part == "files" and rate >= _ANSWERS and not one.fact.quarantined
    ]  # fmt: skip


def _of_match(context: Context, match: Match, prompt: str, now: str) -> Told | None:
    """A match as it is shown; None if it is gone or may not be shown."""
    from holdfast.verbs.brief import relevance

    if match.kind == "turn":
        return _excerpt(context, match)
    note = relevance.note_at(context, match)
    if note is None:
        return None
    unsafe = context.query(lambda: context.index.exposed((match.scope,)))
    if "[" in note.text:
        return _with_statements(context, note, prompt, now, unsafe)
    return _told(note, now, set(), unsafe)


def _with_statements(context: Context, note: Note, prompt: str, now: str, unsafe: frozenset[str]) -> Told | None:
    """A note that may state facts. One of nothing else is shown as what holds of its subject, wherever that is stated: first
    the facts that share words with the prompt."""
    from holdfast.base.markdown import find_title
    from holdfast.formats import facts
    from holdfast.index import tokenizer

    subject = find_title(note.text, note.key)
    dated = facts.find_lines(note.text)
    if not dated:
        return _told(note, now, set(), unsafe)
    known = context.query(lambda: context.index.facts(context.visible_folders(None), {facts.fold(subject)}, None, now))
    held = [fact for fact in known if not fact.quarantined]
    lines = {fact.line - note.lines[0] for fact in held if fact.path == note.path}
    ended = [one for one in dated if one.line not in lines and one.valid_from <= now]
    told = _told(note, now, {f"{note.path}:{note.lines[0] + one.line}" for one in ended}, unsafe)
    places = {(fact.path, fact.line): _statement(fact) for fact in held}
    if not _is_empty(note, told) and not _is_facts_only(note, places, now):
        return told
    asked = set(tokenizer.asked(prompt))
    held.sort(key=lambda fact: -len(asked.intersection(tokenizer.kept(f"{fact.label} {fact.value}"))))
    text = "\n".join([places[fact.path, fact.line] for fact in held[:_STATEMENTS]])
    more = len(held) - _STATEMENTS
    text += f"\n{more} more facts: `holdfast facts`" if more > 0 else ""
    return told.replace(text=text, partial=more > 0) if held else None


def _excerpt(context: Context, match: Match) -> Told | None:
    """The turns around one that answers, each whole: the one that matched, then those after and before it while they fit."""
    from holdfast.safety.trust import ROLES
    from holdfast.verbs.history import expand

    try:
        turns = expand(context, match.citation, *_AROUND, None)
    except HoldfastError:
        return None
    at = next((place for place, turn in enumerate(turns) if turn.citation == match.citation), None)
    if at is None:
        return None
    room, taken = max(_EXCERPT, min(len(turns[at].text), _LONGEST_TURN)), {}
    for place in [at, *range(at + 1, len(turns)), *range(at - 1, -1, -1)]:
        if place != at and (turns[place].role in ("tool", "system") or ROLES[turns[place].role] in context.config.quarantine):
            continue
        text = validate.without_secrets(turns[place].text).strip()
        small_talk = len(text.split()) < 4 and place != at
        if not small_talk and len(text) <= room:
            taken[place] = f"{turns[place].speaker or turns[place].role}: {text}"
            room -= len(text)
    if at not in taken:
        return None
    turn = turns[at]
    text = "\n".join([taken[place] for place in sorted(taken)])
    kind = match.scope.partition("/")[0].removesuffix("s")
    when, id = (turn.time or "undated")[:10], turn.id or match.citation
    return render.Told(kind, f"session {turn.session}"[:60], when, "said", text, id)


def _why_at_prompt(context: Context, found: list[Told | None], fresh: list[Told], made: Composed, now: str) -> tuple[Why, ...]:
    matched, new = {one.id for one in found if one}, {one.id for one in fresh}
    whole, titles = {one.id for one in made.whole}, {one.id for one in made.titles}
    reasons = []
    for note in [note for place in context.visible_scopes(None) for note in _notes(context, place)]:
        id = _id(note)
        if id in whole:
            why = "bears on the prompt"
        elif id in titles:
            why = "bears on the prompt; too long to be shown whole, so listed by title"
        elif id in new:
            why = "bears on the prompt, but there is no room: it may come with a later one"
        elif id in matched:
            why = "shown to this session already"
        elif note.valid_to and note.valid_to <= now:
            why = f"over since {note.valid_to[:10]}"
        elif note.quarantined:
            why = _held(note)
        else:
            why = "does not bear on the prompt"
        reasons.append(render.Why(f"{note.scope.kind}/{_key(note)}", id in whole, why))
    return tuple(reasons)


# --- what was told to whom --------------------------------------------------------------------------------------------


def _told_before(context: Context) -> dict[str, str]:
    return context.ledger.shown(context.session) if context.session else {}


def _remember(context: Context, told: list[Told], anew: bool = False, first: bool = False) -> set[str]:
    """Note what is about to be shown; those that nobody showed before. Where that cannot be noted, all of them: better
    shown twice than never."""
    every = {one.id for one in told}
    if not context.store.exists():
        return every
    if not context.session:
        if every:
            context.record_shown(sorted(every))
        return every
    try:
        shown = [(one.id, one.version) for one in told]
        return set(context.ledger.record_shown(context.session, shown, int(dates.clock()), anew, context.client or "", first))
    except HoldfastError:
        return every


def heard_prompt(context: Context, prompt: str) -> int:
    """Count a prompt of this session: how many it has had with this one, 0 if this one was counted already or nobody can."""
    from holdfast.base.ids import digest

    if not context.session or not context.config.enabled or not context.store.exists():
        return 0
    try:
        return context.ledger.prompted(context.session, digest(prompt.encode("utf-8", "replace")), int(dates.clock()))
    except HoldfastError:
        return 0


def begin_anew(context: Context, first: bool = False) -> None:
    """A context that nothing was told to yet, of a client that can only be told with a prompt."""
    if context.session and context.config.enabled and context.store.exists():
        context.ledger.begin(context.session, int(dates.clock()), first)
