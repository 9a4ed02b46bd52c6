"""Format tool results for a model: one short Markdown text per call.

Only lines of Holdfast begin at the left edge. Stored text follows the colon of such a line or is indented below it, and it
cannot open a tag or a fence, so it cannot be mistaken for a line of Holdfast.
"""

from __future__ import annotations

from typing import Any

from holdfast.models import describe_speaker
from holdfast.safety.escape import escape_text, flatten
from holdfast.safety.model_text import NOTICE, escape_markup
from holdfast.safety.model_text import QUARANTINED as WHY_QUARANTINED

Answer = dict[str, Any]  # an answer of a verb, cleaned of secrets, hidden characters shown as marks

QUARANTINED = f"Quarantined: {WHY_QUARANTINED}."
DISABLED = "Memory is disabled: nothing was read."
_HIT_CHARS = 600  # of one result; memory_get shows the rest
_MOST_WEAK = 3  # hits that probably do not answer
_MOST_STALE = 5  # places with older values of facts
_ROOM_CHARS = 1200  # of all results together; each shown one gets at least
_LEAST_CHARS = 150
_MOST_HITS = 5  # results whose text is shown; the others are named
_MOST_NAMED = 6
_SNIPPET_CHARS = 160
_MOST_SNIPPETS = 6
_TURN_CHARS = 2000
_NAME_CHARS = 120
_MOST_RELATIONS = 20
_PATH_CHARS = 1000
_STOPS = (". ", "! ", "? ", ".\n", "!\n", "?\n", "。", "！", "？", "\n")
_ESCAPED = r"Escaped in this text: \u003c is <, \u0060 is a backtick, \u007e is a tilde."
_DONE = {
    "create": "Wrote", "str_replace": "Edited", "insert": "Edited", "delete": "Deleted", "rename": "Renamed it to",
}  # fmt: skip


def format_recall(answer: Answer) -> list[str]:
    """Return the hits of a recall, best first, with few weak ones. Long hits are cut and say how to read the rest; after the
    first few hits only the name is shown."""
    hits = _limit_weak(answer["hits"])
    room, lines = _ROOM_CHARS, _count_line({**answer, "hits": hits}, "hits")
    shown = hits[:_MOST_HITS]
    for place, hit in enumerate(shown, 1):
        rows, used = _shortened(hit["text"], room - _LEAST_CHARS * (len(shown) - place), _how_to_read(hit))
        room -= used
        lines += _entry(f"{place}. **{_hit_name(hit)}** ({', '.join(_hit_details(hit))}): ", rows)
    return lines + _more_line(hits[_MOST_HITS:]) + _warnings(answer, hits)


def format_search(answer: Answer) -> list[str]:
    """Return the pieces that a search found, with few weak ones: path, lines, score, snippet."""
    results = _limit_weak(answer["results"])
    lines = _count_line({**answer, "results": results}, "results")
    for place, one in enumerate(results[:_MOST_SNIPPETS], 1):
        first, last = one["lines"]
        about = [f"score {one['score']:.3g}", *_marks(one)]
        head = f"{place}. {_path(one['path'])}:{first}-{last} ({', '.join(about)}): "
        lines += _entry(head, _rows(_snippet(one["snippet"])))
    more = len(results) - _MOST_SNIPPETS
    return lines + ([f"{more} more; narrow the query to see them."] if more > 0 else []) + _warnings(answer, results)


def format_store(answer: Answer) -> list[str]:
    """Return the result of a store, with the version to pass as `expected`."""
    note = answer["note"]
    lines = [f"{answer['action'].capitalize()} **{_name(note['key'])}** ({_scope_kind(note)}), version {note['version']}."]
    return lines + _stated(answer) + _redacted(answer) + ([QUARANTINED] if note.get("quarantined") else [])


def _stated(answer: Answer) -> list[str]:
    """Return each relation that was to be stated, with its status, or why it was refused."""
    results = [
        (one["kind"], one["target"], one.get("status") or f"refused: {one['problem']}") for one in answer.get("relations", ())
    ]
    return [f"{kind} **{_name(target)}**: {_name(result)}." for kind, target, result in results]


def _relations(answer: Answer) -> list[str]:
    """Return the relations of a note that was read, in both directions."""
    return [
        f"**{_name(one['key'])}** {one['kind']} **{_name(one['target'])}**"
        + ("" if one["status"] == "accepted" else f" ({one['status']})")
        for one in answer.get("relations", ())[:_MOST_RELATIONS]
    ]


def format_get(answer: Answer) -> list[str]:
    """Return a whole note, or lines of a note or file, exactly as stored except for the escapes that are named."""
    if not answer["exists"]:
        return [f"No file {_path(answer['path'])}."]
    if "note" not in answer:
        about = [f"from line {answer['from']}", *_marks(answer)]
        return _verbatim(f"Contents of {_path(answer['path'])} ({', '.join(about)})", answer["text"])
    note = answer["note"]
    tags = [f"tags: {'; '.join([_name(tag) for tag in note['tags']])}"] if note.get("tags") else []
    about = [_scope_kind(note), f"type {note['type']}", _span(note), *_source(note, whole=True), *tags, *_marks(note)]
    head = f"**{_name(note['key'])}** ({', '.join(about)}), version {note['version']}, {_path(note['path'])}"
    return _verbatim(head, answer["text"]) + _relations(answer) + ([QUARANTINED] if note.get("quarantined") else [])


def format_history(answer: Answer) -> list[str]:
    """Return the versions of a note, or the turns around a turn."""
    if "turns" in answer:
        return _turns(answer["turns"])
    versions = answer["versions"]
    lines = [f"{_count(versions, 'version')}, newest first. {NOTICE}"]
    for place, one in enumerate(versions, 1):
        about = [one["type"], f"recorded {one['recorded']}", *_source(one), *_marks(one)]
        rows, _ = _shortened(one["text"], _HIT_CHARS, f"memory_get with as_of {one['valid_from']}")
        lines += _entry(f"{place}. {_span(one)} ({', '.join(about)}): ", rows)
    return lines


def format_facts(answer: Answer) -> list[str]:
    """Return the fact that was set, or the facts about a subject."""
    if "facts" in answer:
        known = answer["facts"]
        head = f"{_count(known, 'fact')}. {NOTICE}" if known else "No such fact found."
        return [head, *[f"- {_fact(one)}" for one in known], *_stale(known), *_quarantined(known)]
    lines = [f"{answer['action'].capitalize()}: {_fact(answer['fact'])}"]
    lines += [f"Closed: {_fact(one)}" for one in answer["retired"]]
    return lines + _stale([answer["fact"]]) + _redacted(answer) + _quarantined([answer["fact"]])


def format_forget(answer: Answer) -> list[str]:
    """Return whether a note was forgotten, and until when it can be restored."""
    if not answer["deleted"]:
        return [f"No note **{_name(answer['key'])}**: nothing was forgotten."]
    until = answer.get("restorable_until")
    lines = [f"Forgot **{_name(answer['key'])}** ({_scope_kind(answer)}){f', restorable until {until[:10]}' if until else ''}."]
    return lines + [f"The text may remain in {_path(one)}" for one in answer.get("beyond_reach", ())]


def format_file(answer: Answer) -> list[str]:
    """Return the result of a file command, or the text of a file."""
    if answer["command"] != "view":
        return [f"{_DONE[answer['command']]} {_path(answer['path'])}."]
    return _verbatim(f"Contents of {_path(answer['path'])}{''.join([f' ({one})' for one in _marks(answer)])}", answer["text"])


def format_project(used: Answer) -> str:
    """Return the last line of every result: which project was used, and how it was found."""
    if "fix" in used:
        return f"No project is known. {used['fix']}."
    return f"Project: {_name(str(used.get('id') or used.get('folder') or 'unknown'))}, found by {used['found_by']}."


# --- parts of a line -----------------------------------------------------------------------------------------------------


def _count_line(answer: Answer, name: str) -> list[str]:
    if answer.get("disabled"):
        return [DISABLED]
    if not answer[name]:
        return [f"Nothing found (mode {answer['mode']})."]
    return [f"{len(answer[name])} found (mode {answer['mode']}). {NOTICE}"]


def _limit_weak(hits: list[Answer]) -> list[Answer]:
    """Return the strong hits, then at most a few of those that probably do not answer."""
    return [*[hit for hit in hits if not hit.get("weak")], *[hit for hit in hits if hit.get("weak")][:_MOST_WEAK]]


def _warnings(answer: Answer, rows: list[Answer]) -> list[str]:
    if not answer["degraded"] or answer.get("disabled"):
        return _quarantined(rows)
    reason = flatten(answer.get("reason", "not all was searched"), 300).rstrip(".")
    return [*_quarantined(rows), f"Degraded: {reason}. Matches may be missing, or in another order."]


def _quarantined(rows: list[Answer]) -> list[str]:
    return [QUARANTINED] if any(one.get("quarantined") for one in rows) else []


def _redacted(answer: Answer) -> list[str]:
    return [f"Removed what looks like a secret: {', '.join(answer['redacted'])}."] if answer.get("redacted") else []


def _entry(head: str, rows: list[str]) -> list[str]:
    """Return a line of Holdfast with the first row of a stored text, and the other rows indented below it."""
    return [(head + (rows[0] if rows else "")).rstrip(), *["   " + row for row in rows[1:]]]


def _rows(text: str) -> list[str]:
    return [row.strip() if not place else row.rstrip() for place, row in enumerate(text.strip().split("\n")) if row.strip()]


def _shortened(text: str, room: int, whole: str) -> tuple[list[str], int]:
    """Return the rows of a text that fit into `room`, cut at the end of a sentence or line, and their number of characters."""
    most, plain = max(min(_HIT_CHARS, room), _LEAST_CHARS), escape_text(text).strip()
    if len(plain) > most:
        plain = f"{_cut(plain, most)} … ({whole} shows all)"
    return _rows(plain), len(plain)


def _snippet(text: str) -> str:
    """Return the beginning of a snippet."""
    plain = escape_text(text).strip()
    return f"{_cut(plain, _SNIPPET_CHARS)} …" if len(plain) > _SNIPPET_CHARS else plain


def _more_line(hits: list[Answer]) -> list[str]:
    """Return one line that names the hits whose text is not shown."""
    if not hits:
        return []
    names = [_reference(hit) for hit in hits[:_MOST_NAMED]]
    more = f" and {len(hits) - _MOST_NAMED} more" if len(hits) > _MOST_NAMED else ""
    return [f"More: {', '.join(names)}{more} (memory_get KEY)"]


def _reference(hit: Answer) -> str:
    """Return the arguments of memory_get or memory_history for a hit: key and, outside the project, scope; else the path."""
    if hit["kind"] not in ("note", "past"):
        return _path(hit["citation"])
    marks = [*([_scope_kind(hit)] if _scope_kind(hit) != "project" else []), *_marks(hit)]
    return _name(hit["key"]) + (f" ({', '.join(marks)})" if marks else "")


def _cut(text: str, most: int) -> str:
    head = text[:most]
    end = max([head.rfind(stop) + len(stop.strip() or " ") for stop in _STOPS if stop in head], default=0)
    if end < most // 3:
        end = head.rfind(" ")
    return head[: end if end >= most // 3 else most].rstrip()


def _how_to_read(hit: Answer) -> str:
    """Return the call that shows all of a hit."""
    if hit["kind"] == "turn":
        return "memory_history with this turn, before 0, after 0"
    if hit["kind"] not in ("note", "past"):
        return "memory_get with this path"
    scope = "" if _scope_kind(hit) == "project" else f", scope {_scope_kind(hit)}"
    then = f", as_of {hit['valid_from']}" if hit["kind"] == "past" and hit.get("valid_from") else ""
    return f"memory_get {_name(hit['key'])}{scope}{then}"


def _hit_name(hit: Answer) -> str:
    return _name(hit["session"] if hit["kind"] == "turn" and hit.get("session") else hit["key"])


def _hit_details(hit: Answer) -> list[str]:
    """Return where a hit applies, its date and source and, unless it is a note, the path that reads it."""
    if hit["kind"] in ("note", "past"):
        kind = [hit["type"]] if hit.get("type") not in (None, "project") else []
        return [_scope_kind(hit), *kind, _span(hit), *_source(hit), *_marks(hit)]
    speaker = [_speaker(hit["speaker"], hit.get("source", {}).get("agent"))] if hit.get("speaker") else []
    return [hit["kind"], *speaker, _span(hit), *_marks(hit), _path(hit["citation"])]


def _marks(one: Answer) -> list[str]:
    """Return what a reader must know before the text."""
    words = [word for word in ("pinned", "archived", "weak", "quarantined") if one.get(word)]
    words += [f"superseded by {_name(one['superseded_by'])}"] if one.get("superseded_by") else []
    return words + ([f"hidden: {', '.join(one['hidden'])}"] if one.get("hidden") else [])


def _source(one: Answer, whole: bool = False) -> list[str]:
    """Return the origin of a text, and the least trusted source that it was made from."""
    source = one.get("source")
    if not source:
        return []
    trust = [f"from {source['trust']}"] if source.get("trust") else []
    names = [_name(source[name]) for name in ("agent", "client", "session") if source.get(name)] if whole else []
    made_from = [f"made from {_path(path)}" for path in source.get("made_from", ())] if whole else []
    return [" ".join([source["origin"], *names]), *trust, *made_from]


def _span(one: Answer) -> str:
    """Return since when it is true, and until when if that has an end."""
    since, until = one.get("valid_from") or one.get("updated") or "", one.get("closed") or one.get("valid_to")
    return f"{since[:10]} to {until[:10]}" if until else since[:10]


def _fact(one: Answer) -> str:
    until = one.get("valid_to")
    when = f"{one['valid_from'][:10]} to {until[:10]}" if until else f"since {one['valid_from'][:10]}"
    where = f"{_path(one['path'])}:{one['line']}" if one.get("path") else _scope_kind(one)
    about = ", ".join([when, where, *_marks(one)])
    return f"{_name(one['subject'])}, {_name(one['label'])} ({about}): {' '.join(_rows(escape_text(one['value'])))}"


def _stale(facts: list[Answer]) -> list[str]:
    """Return one line that names the places that still state an older value."""
    places = list(dict.fromkeys([place for one in facts for place in one.get("stale_in", ())]))
    if not places:
        return []
    more = f" and {len(places) - _MOST_STALE} more" if len(places) > _MOST_STALE else ""
    return [f"Older values remain in: {', '.join([_path(place) for place in places[:_MOST_STALE]])}{more}."]


def _turns(turns: list[Answer]) -> list[str]:
    lines, most = [f"{_count(turns, 'turn')}. {NOTICE}"], _TURN_CHARS if len(turns) > 1 else None
    for one in turns:
        text = escape_text(one["text"])
        if most and len(text) > most:
            text = f"{_cut(text, most)} … (memory_history with this turn, before 0, after 0 shows all)"
        who = [one["role"], *([_name(one["speaker"])] if one.get("speaker") else [])]
        if one.get("agent"):  # sent with a token: what it claims, in one piece
            who = [_speaker(" ".join(who), one["agent"])]
        when = [one["time"]] if one.get("time") else []
        lines += _entry(f"- {', '.join([*who, *when, *_marks(one), _path(one['citation'])])}: ", _rows(text))
    return lines


def _verbatim(head: str, text: str) -> list[str]:
    """Return a text that may be edited and written back: every line indented by four spaces, reversible escapes only."""
    shown = escape_markup(text)
    rows = [f"    {row.removesuffix(chr(13))}" for row in shown.removesuffix("\n").split("\n")] if text else []
    lines = [f"{head}. {NOTICE}", *rows] if text else [f"{head}: no text. {NOTICE}"]
    return [*lines, _ESCAPED] if shown != text else lines


def _speaker(speaker: str, agent: str | None) -> str:
    return _name(describe_speaker(speaker, agent))


def _scope_kind(one: Answer) -> str:
    return str(one["scope"]).partition(":")[0]


def _name(name: str) -> str:
    return flatten(name, _NAME_CHARS)


def _path(path: str) -> str:
    return flatten(path, _PATH_CHARS)


def _count(rows: list[Answer], what: str) -> str:
    return f"{len(rows)} {what}{'' if len(rows) == 1 else 's'}"
