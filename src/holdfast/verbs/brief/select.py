"""Select what an agent is shown, and record what each session was shown (promises B1, B2 and B4).

At the start: standing notes, current facts, overviews of files, and the most useful notes. With a prompt: the notes and
turns that are relevant to it and that the session has not been shown whole.
"""

from __future__ import annotations

from math import isfinite

from holdfast.base import dates
from holdfast.base.record import Record
from holdfast.context import usage
from holdfast.context.superseded import find_paths
from holdfast.errors import Busy, HoldfastError, Template, command
from holdfast.safety import validate
from holdfast.verbs.brief import render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.context.caller import Context
    from holdfast.errors import Wording
    from holdfast.index.results import Superseding
    from holdfast.models import Fact, Note, Scope
    from holdfast.verbs.brief.relevance import Match
    from holdfast.verbs.brief.render import Brief, Composed, NoteView, ScopeView, Why

STANDING = ("user", "feedback")  # types of notes that are shown first and whole
_NEWEST = 200  # notes of a scope that a start briefing chooses from, and that a dispatch reads at a time
_MAX_READ_CHARS = 32 * 1024 * 1024  # of notes that a dispatch reads to choose from
_MAX_STANDING = 100
_MAX_EXPLAINED = 1000  # notes of a scope whose place in a briefing is explained: pinned and newest first
_ARCHIVED = "archived: not briefed"
_MAX_FACTS = 1000  # facts that a start briefing chooses from
_OVERVIEW_CHARS = 64 * 1024  # of an overview: no briefing shows more
_TRUSTED, _QUARANTINED = 0, 1  # only notes that are not in quarantine, only those that are
_USE_RANKS = 3  # ranks by which a note moves up for each doubling of its uses and revisions,
_BRANCH_RANKS = 30  # and if it is named after the branch
_MAX_DOUBLINGS = 4
_CHARS_PER_RANK = 20  # characters of its text for which a note moves down one rank
_EXCERPT_CHARS = 400  # of the turns around one that answers;
_LONGEST_TURN = 1000  # one that is longer by itself may have this many
_TURNS_BEFORE, _TURNS_AFTER = 1, 3
_MAX_STATEMENTS = 8  # facts of one subject that a prompt brings
_MAX_FILE_FACTS, _MIN_FACT_SCORE = 3, 0.6  # facts of files that a prompt brings, and how well each must answer (0 to 1)


def brief(
    context: Context, prompt: str | None = None, *, again: bool = False, cap: int | None = None, explain: bool = False,
    mode: str = "keyword", matches: list[Match] | None = None, remember: bool = True, first: bool = False,
    new_context: bool = True,
) -> Brief:  # fmt: skip
    """Compose what `Memory.brief` returns, and record it as shown unless it only explains or must not `remember`.

    `first`: the first context of a session, whose first prompt may arrive before its start; its notes are not shown twice.
    `new_context`: a new context begins. If false, the start goes with a prompt and leaves out what that prompt brings.
    `matches`: what another process found for the prompt.
    """
    remember = remember and not explain
    if not context.config.enabled:
        return render.Brief("", disabled=True)
    if prompt is None:
        return _compose_start(context, cap, explain=explain, remember=remember, first=first, new_context=new_context)
    chars = min(context.config.prompt_chars, _max_chars(cap))
    if not prompt.strip() or chars <= 0:
        return render.Brief("")
    if matches is None:
        from holdfast.verbs.brief import relevance

        matches = relevance.find_matches(context, prompt, mode)
    return _compose_for_prompt(context, prompt, matches, chars=chars, cap=cap, again=again, explain=explain, remember=remember)


def _max_chars(cap: int | None) -> int:
    return render.MOST_CHARS if cap is None else min(cap, render.MOST_CHARS)


def _drop_if_over(composed: Composed, cap: int | None) -> Composed:
    """Return an empty briefing if it exceeds the cap, beyond which a client cuts or drops: nothing counts as shown then."""
    if cap is None or len(composed.brief.text) <= cap:
        return composed
    count = composed.brief.left_out + len(composed.whole) + len(composed.titles)
    return render.Composed(render.Brief("", left_out=count))


# --- at the start -----------------------------------------------------------------------------------------------------


def _compose_start(
    context: Context, cap: int | None, *, explain: bool, remember: bool, first: bool, new_context: bool
) -> Brief:
    config, now = context.config, dates.now()
    scopes = context.visible_scopes(None)
    folders = tuple([scope.folder for scope in scopes])
    context.refresh(folders)
    superseded = context.query(lambda: find_paths(context.index, folders, now))
    candidates, facts, stale = context.query(
        lambda: (
            _list_candidates(context, scopes, now, superseded),
            context.index.find_newest_facts(folders, now, _MAX_FACTS),
            context.index.find_stale_lines(folders, now),
        )
    )
    facts = [fact for fact in facts if fact.path not in superseded]
    statements = {(fact.path, fact.line): _statement(fact) for fact in facts}
    branch = _branch_words(context)
    facts_only: list[NoteView] = []
    views = []
    for scope, (notes, count, unsafe) in zip(scopes, candidates, strict=True):
        prose: list[NoteView] = []
        for note in _order_by_use(context, notes, branch):
            view = _view(note, now, stale, unsafe)
            if _is_empty(note, view):
                count -= 1
            elif _is_facts_only(note, statements, now):
                count -= 1
                facts_only.append(view)
            else:
                prose.append(view)
        views.append(render.ScopeView(scope.kind, tuple(prose), count, _overviews(context, scope, now, stale)))
    fact_view = render.FactView(tuple(statements.values()), len(facts), len(facts) == _MAX_FACTS)
    budget = render.Budget(config.brief_entries, config.brief_scope_chars, min(config.brief_total_chars, _max_chars(cap)))
    composed = _drop_if_over(render.compose_start(views, fact_view, budget, context.words), cap)
    if remember:
        claimed = _record_shown(context, _shown_notes(composed, facts_only, statements), new_context, first)
        if others := {view.id for view in composed.whole} - claimed:
            left = [_without_notes(view, others) for view in views]
            composed = _drop_if_over(render.compose_start(left, fact_view, budget, context.words), cap)
            _record_shown(context, [view for view in composed.whole if view.id not in claimed])  # there was room for more
    shown = _shown_notes(composed, facts_only, statements)
    result = composed.brief
    if result.text:
        result = result.replace(shown=tuple([render.name_of(view) for view in shown]))
    if explain:
        notes = _list_notes(context, scopes)
        stated = {view.id for view in shown}
        return result.replace(why=_explain_start(context, notes, composed, stated, now, superseded))
    return result


def _list_candidates(
    context: Context, scopes: list[Scope], now: str, superseded: Mapping[str, Superseding]
) -> list[tuple[list[Note], int, frozenset[str]]]:
    """Return for each scope its standing and newest notes that are current, how many it has, and the paths of those that seem
    to hold a secret."""
    found = []
    for scope in scopes:
        folder = (scope.folder,)
        newest = context.index.list_notes(folder, most=_NEWEST, now=now, only=_TRUSTED)
        count = len(newest)
        if count == _NEWEST:
            count = context.index.count_notes(folder, now, _TRUSTED)
            for type in STANDING:
                newest += context.index.list_notes(folder, type=type, most=_MAX_STANDING, now=now, only=_TRUSTED)
            newest = list({note.path: note for note in newest}.values())
        if superseded:
            newest, count = _drop_superseded(context, scope, newest, now, superseded), count - _count_in(scope, superseded)
        found.append((newest, count, context.index.find_exposed_notes(folder) if newest else frozenset()))
    return found


def _drop_superseded(
    context: Context, scope: Scope, notes: list[Note], now: str, superseded: Mapping[str, Superseding]
) -> list[Note]:
    """Return the notes without those that were superseded; older notes take their places."""
    if len(notes) >= _NEWEST:
        more = min(_NEWEST + _count_in(scope, superseded), 2 * _NEWEST)
        older = context.index.list_notes((scope.folder,), most=more, now=now, only=_TRUSTED)
        notes = list({note.path: note for note in [*notes, *older]}.values())
    return [note for note in notes if note.path not in superseded]


def _count_in(scope: Scope, superseded: Mapping[str, Superseding]) -> int:
    return len([path for path in superseded if path.startswith(f"{scope.folder}/notes/")])


def _order_by_use(context: Context, notes: list[Note], branch: set[str]) -> list[Note]:
    """Return the notes, most useful first: newer ones, those that are recalled or revised often, those that name the branch,
    and short ones, of which more fit."""
    if len(notes) < 2:
        return notes
    try:
        uses = context.ledger.usage.get_counts([_usage_id(note) for note in notes])
    except HoldfastError:
        uses = {}

    def rank(numbered: tuple[int, Note]) -> int:
        number, note = numbered
        used, revised = uses.get(_usage_id(note), 0), note.versions - 1
        doublings = min((used // 2).bit_length() + revised.bit_length(), _MAX_DOUBLINGS)  # coarse, so that bytes seldom change
        named = branch and not branch.isdisjoint([*note.key.split("-"), *[tag.casefold() for tag in note.tags]])
        return number - _USE_RANKS * doublings - _BRANCH_RANKS * bool(named) + len(note.text) // _CHARS_PER_RANK

    return [note for _, note in sorted(enumerate(notes), key=rank)]


def _branch_words(context: Context) -> set[str]:
    """Return the long words of the name of the git branch where the caller works."""
    from holdfast.project.git import current_branch

    name = current_branch(context.working_folder).lower()
    for mark in "/_.":
        name = name.replace(mark, "-")
    return {word for word in name.split("-") if len(word) > 3 and word not in ("main", "master", "feature", "bugfix", "hotfix")}


def _statement(fact: Fact) -> str:
    from holdfast.formats.facts import format_statement

    return validate.hide_secrets(format_statement(fact.subject, fact.label, fact.value, fact.valid_from[:10]))


def _is_facts_only(note: Note, statements: Mapping[tuple[str, int], str], now: str) -> bool:
    """Return whether a note says nothing but facts, and all that have not ended are stated separately. A standing note is
    shown as it is."""
    if note.type in STANDING or note.pinned or not any(path == note.path for path, _ in statements):
        return False
    from holdfast.formats.facts import find_fact_lines

    dated = {one.line: one for one in find_fact_lines(note.text)}
    rows = note.text.split("\n")
    if not all(number in dated for number, row in enumerate(rows) if row.strip() and not row.startswith("# ")):
        return False
    open_lines = [number for number, one in dated.items() if one.valid_to is None or one.valid_to > now]
    return all((note.path, note.lines[0] + number) in statements for number in open_lines)


def _is_empty(note: Note, view: NoteView) -> bool:
    """Return whether only headings are left of a note, since all its facts ended or another file states them again."""
    return view.text != note.text and all(not row.strip() or row.startswith("#") for row in view.text.split("\n"))


def _shown_notes(composed: Composed, facts_only: list[NoteView], statements: Mapping[tuple[str, int], str]) -> list[NoteView]:
    """Return the notes that count as shown: those that are whole, and those whose facts are all stated."""
    stated = set(composed.statements)
    missing = {path for (path, _), statement in statements.items() if statement not in stated}
    return [*composed.whole, *[view for view in facts_only if view.path not in missing]]


def _without_notes(view: ScopeView, ids: set[str]) -> ScopeView:
    """Return the view without the notes that another hook of this session shows."""
    left = tuple([note for note in view.notes if note.id not in ids])
    return view.replace(notes=left, total=view.total - len(view.notes) + len(left))


def _overviews(
    context: Context, scope: Scope, now: str, stale: set[str], most_chars: int = _OVERVIEW_CHARS
) -> tuple[tuple[str, str], ...]:
    """Return path and text of the pages that give an overview of a scope's files, without facts that no longer hold, and
    without pages that would bring back a purged text. At most `most_chars` of each may be shown."""
    from holdfast.verbs.read import overviews

    pages = [page for page in overviews(context.store, scope) if not _may_be_purged(context, scope, page.text)]
    current = [(page.path, _current(page.text, f"{scope.folder}/{page.path}", 1, now, stale)) for page in pages]
    return tuple([(path, validate.hide_secrets(text[:most_chars]) + text[most_chars:]) for path, text in current])


def _may_be_purged(context: Context, scope: Scope, text: str) -> bool:
    """Return whether this text was purged from the scope, or the ledger cannot say now."""
    try:
        return bool(context.purge_filter.find_receipt(scope.folder, [text]))
    except Busy:
        return True


def _list_notes(context: Context, scopes: list[Scope]) -> list[Note]:
    """Return the notes to explain, in each scope with the archived ones at the end."""
    context.refresh(tuple([scope.folder for scope in scopes]), archived=True)  # a briefing itself does not index them
    return [note for scope in scopes for note in _list_scope(context, scope)]


def _list_scope(context: Context, scope: Scope) -> list[Note]:
    folder, index = (scope.folder,), context.index
    current = context.query(lambda: index.list_notes(folder, most=_MAX_EXPLAINED))
    archived = context.query(lambda: index.list_notes(folder, most=_MAX_EXPLAINED - len(current), archived=True))
    return [*current, *archived]


def _view(note: Note, now: str, stale: set[str], unsafe: frozenset[str]) -> NoteView:
    """Return a note as it is shown: without secrets, and without facts that ended or that another file states again (`stale`,
    as `path:line`). A note that will become true later says from when."""
    date = f"from {note.valid_from[:10]}" if note.valid_from > now else note.updated[:10]
    source = note.source
    origin = source.origin if source.trusted == source.origin else f"{source.origin} from {source.trusted}"
    text = _current(note.text, note.path, note.lines[0], now, stale)
    text = validate.hide_secrets(text) if note.path in unsafe else text  # last: it may change how many lines there are
    return render.NoteView(
        scope=note.scope.kind, key=_shown_key(note), date=date, origin=origin, text=text, id=_usage_id(note),
        version=note.version, standing=note.type in STANDING or note.pinned, path=note.path,
    )  # fmt: skip


def _current(text: str, path: str, first_line: int, now: str, stale: set[str]) -> str:
    """Return a text without the lines of facts that no longer hold."""
    if stale:
        rows = text.split("\n")
        kept = [row for number, row in enumerate(rows, first_line) if f"{path}:{number}" not in stale]
        text = "\n".join(kept) if len(kept) < len(rows) else text
    if "[" not in text or ("~~" not in text and "supersede" not in text.casefold()):
        return text  # most have no such lines: a hook has no time to load regular expressions
    from holdfast.formats.facts import drop_ended_facts

    return drop_ended_facts(text, now)


def _usage_id(note: Note) -> str:
    return note.id or usage.path_usage_id(note.scope.folder, "notes", note.path.rpartition("/")[2])


def _shown_key(note: Note) -> str:
    """Return the key; the name of a file that a person created may be anything, also a secret."""
    return _visible_key(note.key)


def _visible_key(key: str) -> str:
    letters = key.replace("-", "")
    is_ours = letters.isascii() and letters.isalnum() and letters == letters.lower()  # KEY would load all of `re`
    return key if is_ours else validate.redact_or_withhold(key)[0]


def _explain_start(
    context: Context, notes: list[Note], composed: Composed, stated: set[str], now: str, superseded: Mapping[str, Superseding]
) -> tuple[Why, ...]:
    """Explain every note of the scopes, including ended ones; `stated` are those whose facts are all shown."""
    whole, titles = {view.id for view in composed.whole}, {view.id for view in composed.titles}
    reasons: list[Why] = []
    for note in notes:
        id, shown = _usage_id(note), False
        if note.archived:
            why = _ARCHIVED
        elif note.valid_to and note.valid_to <= now:
            why = f"ended on {note.valid_to[:10]}"
        elif note.quarantined:
            why = _explain_quarantine(note, context.words)
        elif note.path in superseded:
            why = f"superseded by {_visible_key(superseded[note.path].key)}"
        elif id in whole:
            shown, why = True, _explain_whole(note, now)
        elif id in stated:
            shown, why = True, "its facts are shown separately"
        elif id in titles:
            why = "listed by title: no room for the whole note; a prompt about it shows it"
        else:
            why = "no room to show or list it; a prompt about it shows it"
        form = "title" if id in titles and not shown else "out" if not shown else "whole" if id in whole else "facts"
        reasons.append(render.Why(f"{note.scope.kind}/{_shown_key(note)}", shown, why, form, note.pinned))
    return tuple(reasons)


def _explain_quarantine(note: Note, words: Wording) -> str:
    came = f"in quarantine: it came from {note.source.trusted} and was not approved yet ("
    return Template(came, command("review"), ")").render(words)


def _explain_whole(note: Note, now: str) -> str:
    why = "pinned" if note.pinned else f"a {note.type} note" if note.type in STANDING else "among the most useful notes"
    later = f"; not true before {note.valid_from[:10]}, and shown so" if note.valid_from > now else ""
    return f"shown whole: {why}, updated {note.updated[:10]}{later}"


# --- everything, for a dispatch -----------------------------------------------------------------------------------------


def compose_everything(context: Context, chars: int) -> Composed:
    """Compose all notes, facts of files and overviews of the caller's scopes in at most `chars` characters.

    Notes are shown as they are, facts included. What has no room is counted in the last line. Nothing counts as shown."""
    now, scopes = dates.now(), context.visible_scopes(None)
    folders = tuple([scope.folder for scope in scopes])
    context.refresh(folders)
    superseded = context.query(lambda: find_paths(context.index, folders, now))
    candidates, facts, stale = context.query(
        lambda: (
            [_read_candidates(context, scope, now, chars, superseded) for scope in scopes],
            context.index.find_newest_facts(folders, now, _MAX_FACTS),
            context.index.find_stale_lines(folders, now),
        )
    )
    views = []
    for scope, found in zip(scopes, candidates, strict=True):
        shown = [_view(note, now, stale, found.unsafe) for note in _order_by_use(context, found.notes, set())]
        pages = _overviews(context, scope, now, stale, max(chars, _OVERVIEW_CHARS))
        views.append(
            render.ScopeView(
                scope=scope.kind, notes=tuple(shown), total=found.total, overviews=pages, quarantined=found.quarantined
            )
        )
    statements = tuple([_statement(fact) for fact in facts if "/files/" in fact.path])  # those of notes are in the notes
    fact_view = render.FactView(statements, len(statements), len(facts) == _MAX_FACTS)
    return render.compose_start(views, fact_view, render.Budget(total_chars=chars, everything=True), context.words)


class _Candidates(Record):
    """The notes of a scope that a dispatch chooses from, and the numbers of all that hold now and of those in quarantine."""

    notes: list[Note]
    total: int
    quarantined: int
    unsafe: frozenset[str]  # paths of those that seem to hold a secret


def _read_candidates(
    context: Context, scope: Scope, now: str, chars: int, superseded: Mapping[str, Superseding]
) -> _Candidates:
    """Read current notes, pinned and newest first, until there are enough to fill `chars` characters twice."""
    folder, index = (scope.folder,), context.index
    page = index.list_notes(folder, most=_NEWEST, now=now, only=_TRUSTED)
    notes, read, fitting = list(page), 0, 0
    while len(page) == _NEWEST and fitting < 2 * chars and read < _MAX_READ_CHARS:
        read += sum([len(note.text) for note in page])
        fitting += sum([len(note.text) for note in page if len(note.text) <= chars])
        page = index.list_notes_after(page[-1], folder, type=None, tags=(), most=_NEWEST, only=_TRUSTED)
        notes += [note for note in page if not (note.valid_to and note.valid_to <= now)]
    for type in STANDING if len(page) == _NEWEST else ():
        notes += index.list_notes(folder, type=type, most=_MAX_STANDING, now=now, only=_TRUSTED)
    return _Candidates(
        notes=[note for path, note in {note.path: note for note in notes}.items() if path not in superseded],
        total=index.count_notes(folder, now, _TRUSTED) - _count_in(scope, superseded),
        quarantined=index.count_notes(folder, now, _QUARANTINED),
        unsafe=index.find_exposed_notes(folder) if notes else frozenset(),
    )  # fmt: skip


# --- with a prompt ----------------------------------------------------------------------------------------------------


def _compose_for_prompt(
    context: Context, prompt: str, matches: list[Match], *, chars: int, cap: int | None, again: bool, explain: bool,
    remember: bool,
) -> Brief:  # fmt: skip
    now, shown_before = dates.now(), {} if again else _shown_before(context)
    matched, new = _read_matches(context, matches, prompt, now, shown_before)
    new += [view for view in _file_facts(context, prompt, now) if view.id not in shown_before]
    more = len(matches) - len(matched)
    composed = _drop_if_over(render.compose_for_prompt(new, more, chars, context.words), cap)
    shown = [view for view in composed.whole if not view.partial]
    claimed = _record_shown(context, shown) if remember else {view.id for view in shown}
    if not again and len(claimed) < len(shown):  # another hook of this session got the same prompt
        left = [view for view in new if view.id in claimed]
        composed = _drop_if_over(render.compose_for_prompt(left, more, chars, context.words), cap)
    if explain:
        scores = {view.id: one.score for one, view in zip(matches, matched, strict=False) if view and isfinite(one.score)}
        return composed.brief.replace(why=_explain_prompt(context, prompt, scores, new, composed, now))
    return composed.brief


def _read_matches(
    context: Context, matches: list[Match], prompt: str, now: str, shown_before: dict[str, str]
) -> tuple[list[NoteView | None], list[NoteView]]:
    """Return the views of the matches read, and of those that are new to the session; stop when there are enough new ones."""
    from holdfast.verbs.brief.relevance import NOTES

    matched: list[NoteView | None] = []
    new: list[NoteView] = []
    for match in matches:
        view = _view_match(context, match, prompt, now)
        matched.append(view)
        if view is not None and shown_before.get(view.id) != view.version:
            new.append(view)
        if len(new) == NOTES:
            break
    return matched, new


def _file_facts(context: Context, prompt: str, now: str) -> list[NoteView]:
    """Return current facts from files of the tree that answer a prompt; those of notes come with the notes."""
    if not context.query(context.index.has_facts):
        return []
    from holdfast.index.filters import SearchFilter
    from holdfast.search.fact_matches import find_answers
    from holdfast.verbs.brief.relevance import PROMPT_CHARS

    wanted = SearchFilter(context.visible_folders(None), now=now)
    rated = context.query(lambda: find_answers(context.index, prompt[:PROMPT_CHARS], wanted, now, _MAX_FILE_FACTS))
    return [
        render.NoteView(
            scope=one.fact.scope.kind, key=f"files/{one.name}", date=one.fact.valid_from[:10], origin="file",
            text=_statement(one.fact), id=f"{one.fact.path}:{one.fact.line}:{one.fact.value}"[:200],
        )
        for one in [answer.found for answer in rated if answer.rating >= _MIN_FACT_SCORE]
        if one.part == "files" and not one.fact.quarantined
    ]  # fmt: skip


def _view_match(context: Context, match: Match, prompt: str, now: str) -> NoteView | None:
    """Return a match as it is shown; None if it was deleted or may not be shown."""
    from holdfast.verbs.brief import relevance

    if match.kind == "turn":
        return _excerpt(context, match)
    note = relevance.read_note(context, match)
    if note is None:
        return None
    unsafe = context.query(lambda: context.index.find_exposed_notes((match.scope,)))
    if "[" in note.text:
        return _view_with_facts(context, note, prompt, now, unsafe)
    return _view(note, now, set(), unsafe)


def _view_with_facts(context: Context, note: Note, prompt: str, now: str, unsafe: frozenset[str]) -> NoteView | None:
    """Return a note that may state facts. If it states nothing else, show what holds of its subject, wherever that is stated:
    first the facts that share words with the prompt."""
    from holdfast.base.markdown import find_title
    from holdfast.formats import facts
    from holdfast.index import tokenizer

    subject = find_title(note.text, note.key)
    dated = facts.find_fact_lines(note.text)
    if not dated:
        return _view(note, now, set(), unsafe)
    folders = context.visible_folders(None)
    known = context.query(lambda: context.index.find_facts(folders, {facts.normalize_name(subject)}, None, now))
    current = [fact for fact in known if not fact.quarantined]
    lines = {fact.line - note.lines[0] for fact in current if fact.path == note.path}
    ended = [line for line in dated if line.line not in lines and line.valid_from <= now]
    view = _view(note, now, {f"{note.path}:{note.lines[0] + line.line}" for line in ended}, unsafe)
    statements = {(fact.path, fact.line): _statement(fact) for fact in current}
    if not _is_empty(note, view) and not _is_facts_only(note, statements, now):
        return view
    words = set(tokenizer.query_terms(prompt))
    current.sort(key=lambda fact: -len(words.intersection(tokenizer.index_terms(f"{fact.label} {fact.value}"))))
    text = "\n".join([statements[fact.path, fact.line] for fact in current[:_MAX_STATEMENTS]])
    more = len(current) - _MAX_STATEMENTS
    text += Template(f"\n{more} more facts: ", command("facts")).render(context.words) if more > 0 else ""
    return view.replace(text=text, partial=more > 0) if current else None


def _excerpt(context: Context, match: Match) -> NoteView | None:
    """Return the turns around one that answers, each whole: the one that matched, then those after and before it that fit."""
    from holdfast.verbs.history import expand

    try:
        turns = expand(context, match.citation, before=_TURNS_BEFORE, after=_TURNS_AFTER)
    except HoldfastError:
        return None
    at = next((number for number, turn in enumerate(turns) if turn.citation == match.citation), None)
    if at is None:
        return None
    room, taken = max(_EXCERPT_CHARS, min(len(turns[at].text), _LONGEST_TURN)), {}
    for number in [at, *range(at + 1, len(turns)), *range(at - 1, -1, -1)]:
        turn = turns[number]
        if number != at and (turn.role in ("tool", "system") or turn.origin in context.config.quarantine):
            continue
        text = validate.hide_secrets(turn.text).strip()
        is_small_talk = len(text.split()) < 4 and number != at
        if not is_small_talk and len(text) <= room:
            taken[number] = f"{turn.spoken_by}: {text}"
            room -= len(text)
    if at not in taken:
        return None
    turn = turns[at]
    return render.NoteView(
        scope=match.scope.partition("/")[0].removesuffix("s"), key=f"session {turn.session}"[:60],
        date=(turn.time or "undated")[:10], origin="said", text="\n".join([taken[number] for number in sorted(taken)]),
        id=turn.id or match.citation,
    )  # fmt: skip


def _explain_prompt(
    context: Context, prompt: str, scores: dict[str, float], new: list[NoteView], composed: Composed, now: str
) -> tuple[Why, ...]:
    """Explain every note of the scopes; `scores` has those that match the prompt."""
    from holdfast.search.abstention import Wording as PromptWording

    now_current = context.query(lambda: find_paths(context.index, context.visible_folders(None), now))
    new_ids, wording = {view.id for view in new}, PromptWording(prompt)
    is_general = not composed.brief.text and (wording.general or wording.small_talk)
    whole, titles = {view.id for view in composed.whole}, {view.id for view in composed.titles}
    reasons = []
    for note in _list_notes(context, context.visible_scopes(None)):
        id = _usage_id(note)
        score = f" (score {scores[id]:.2g})" if id in scores else ""
        if note.archived:
            why = _ARCHIVED
        elif note.path in now_current:
            why = f"superseded by {_visible_key(now_current[note.path].key)}"
        elif id in whole:
            why = f"matches the prompt{score}"
        elif id in titles:
            why = f"matches the prompt{score}; listed by title because it is too long to show whole"
        elif id in new_ids:
            why = f"matches the prompt{score}, but there is no room; a later prompt may bring it"
        elif id in scores:
            why = f"this session was already shown it{score}"
        elif note.valid_to and note.valid_to <= now:
            why = f"ended on {note.valid_to[:10]}"
        elif note.quarantined:
            why = _explain_quarantine(note, context.words)
        elif is_general:
            why = "the prompt is a general request: nothing was added"
        else:
            why = "does not match the prompt"
        form = "whole" if id in whole else "title" if id in titles else "out"
        reasons.append(render.Why(f"{note.scope.kind}/{_shown_key(note)}", id in whole, why, form, note.pinned))
    return tuple(reasons)


# --- what each session was shown --------------------------------------------------------------------------------------


def _shown_before(context: Context) -> dict[str, str]:
    """Return the versions that this session was shown, by id of the note."""
    return context.ledger.sessions.list_shown(context.session) if context.session else {}


def _record_shown(context: Context, views: list[NoteView], new_context: bool = False, first: bool = False) -> set[str]:
    """Record what is about to be shown; return the ids that no other hook of the session has shown. If that cannot be
    recorded, return all of them: better shown twice than never."""
    ids = {view.id for view in views}
    if not context.store.exists():
        return ids
    if not context.session:
        if ids:
            usage.record_shown(context.ledger, sorted(ids))
        return ids
    try:
        shown = [(view.id, view.version) for view in views]
        new = context.ledger.sessions.record_shown(
            context.session, shown, int(dates.clock()), new_context=new_context, client=context.client or "", first=first
        )
        return set(new)
    except HoldfastError:
        return ids


def count_prompt(context: Context, prompt: str) -> int:
    """Count a prompt of this session: return how many it has had with this one, 0 if this one was counted already or cannot
    be counted."""
    from holdfast.base.ids import digest

    if not context.session or not context.config.enabled or not context.store.exists():
        return 0
    try:
        prompt_digest = digest(prompt.encode("utf-8", "replace"))
        return context.ledger.sessions.count_prompt(context.session, prompt_digest, int(dates.clock()))
    except HoldfastError:
        return 0


def reset_shown(context: Context, first: bool = False) -> None:
    """Begin a new context that nothing was shown to yet, of a client that can only be given text with a prompt."""
    if context.session and context.config.enabled and context.store.exists():
        context.ledger.sessions.begin(context.session, int(dates.clock()), first)
