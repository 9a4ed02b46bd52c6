"""`store`, `recall`, `get` and `list`."""

from __future__ import annotations

import os

from holdfast.cli.runner import check_exclusive
from holdfast.errors import Busy
from holdfast.models import RECALL_OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.models import Answer, Hit, Note, Source, Stored, TrashedNote, Version

MAX_WEAK_HITS = 3  # weak hits that people are shown
_MAX_HIT_LINES = 12  # lines of a hit's text on a terminal; `get` shows all


def store(call: Invocation) -> int:
    """`holdfast store`."""
    check_exclusive(call, "pin", "unpin")
    pinned = True if call["pin"] else False if call["unpin"] else None
    confirm_secret(call)
    text = call.read_text("text", call.memory.config.note_bytes, "a note")
    stored = call.memory.store(
        text, tags=call["tag"], pinned=pinned, made_from=call["from"],
        **call.pick("key", "scope", "type", "valid_from", "valid_to", "origin", "expected", "again", "redact", "allow_secret"),
    )  # fmt: skip
    return call.answer(stored, print_stored)


def recall(call: Invocation) -> int:
    """`holdfast recall`."""
    explain, all_scopes = bool(call["explain"]), call["scope"] == "all"
    query = {**call.pick(*RECALL_OPTIONS), "tags": call["tag"], "explain": explain}
    query.pop("mode", None)
    answer = recall_from_resident(call, query)
    if answer is None:
        answer = call.memory.recall(call["query"] or "", mode=choose_mode(call), **query)
    may_widen = not all_scopes and not call.is_remote and call.find_origin() == "user"
    return call.answer(answer, lambda output, answer: _print_answer(output, answer, explain, all_scopes, may_widen))


def recall_from_resident(call: Invocation, query: dict[str, Any]) -> Answer | None:
    """Return the answer of a resident process, which has the models loaded; None if there is none or it is not wanted."""
    memory, mode = call.memory, call["mode"] or "hybrid"
    if query.get("scope") == "all":  # a resident process cannot know that a person asks
        return None
    if mode not in ("hybrid", "semantic") or not memory.config.enabled or call.is_remote or memory.config.store:
        return None
    if not os.path.exists(os.path.join(memory.home, "run", "resident.sock")):  # `resident.is_running`, without its import
        return None
    from holdfast.api import resident

    caller = {"project": memory.project, "session": memory.session, "agent": memory.agent}
    arguments = {"query": call["query"] or "", "mode": mode, **query}
    try:
        return resident.recall(memory.home, caller, arguments, resident.SECONDS)
    except Busy as error:
        call.output.print_message(f"{error.message}, so this command searches by itself. {error.fix}", "yellow")
        return None


def choose_mode(call: Invocation) -> str:
    """Return --mode, otherwise keyword: loading the models takes longer than the rest of this process."""
    if call["mode"] is not None:
        mode: str = call["mode"]
        return mode
    return "hybrid" if call["explain"] or call["now"] or call.is_remote else "keyword"


def get(call: Invocation) -> int:
    """`holdfast get`."""
    scope = call["scope"]
    if call["history"]:
        check_exclusive(call, "history", "as_of")
        check_exclusive(call, "history", "known_at")
        return call.answer(call.memory.history(call["key"], scope=scope), _print_history)
    note = call.memory.get(call["key"], scope=scope, as_of=call["as_of"], known_at=call["known_at"])
    return call.answer(note, _print_note)


def list_notes(call: Invocation) -> int:
    """`holdfast list`."""
    check_exclusive(call, "all", "scope", "trash")
    if call["trash"]:
        return call.answer(call.memory.trash(scope=call["scope"])[: call["limit"]], _print_trash)
    check_exclusive(call, "archived", "source")
    scope = {"scope": "all"} if call["all"] else call.pick("scope")
    notes = call.memory.list(tags=call["tag"], **scope, **call.pick("type", "limit", "source", "archived"))
    if notes and call["all"]:
        return call.answer(notes, lambda output, notes: _print_notes(output, notes, all_scopes=True))
    return call.answer(notes, _print_archived if call["archived"] else _print_notes)


def confirm_secret(call: Invocation) -> None:
    """Ask a person at a terminal before --allow-secret takes effect; the ledger records the reason in any case."""
    import sys

    if call["allow_secret"] is not None and not call.output.json and sys.stdin.isatty() and sys.stderr.isatty():
        from holdfast.cli.runner import confirm

        confirm(call, "Store the text even if it contains a secret? Every program of yours can read it")


def print_stored(output: Output, stored: Stored) -> None:
    """Print what a write did to a note."""
    note = stored.note
    style = {"created": "green", "updated": "yellow"}.get(stored.action, "dim")
    output.print_line(f"{output.style(stored.action, style)} {output.style(note.key, 'bold')} in {note.scope}")
    if stored.redacted:
        output.print_message(f"removed what looks like a secret: {', '.join(stored.redacted)}", "yellow")


def _print_answer(output: Output, answer: Answer, explain: bool, all_scopes: bool, may_widen: bool) -> None:
    """Print the hits of a recall, strong ones first and at most MAX_WEAK_HITS weak ones.

    `may_widen`: the caller may search every project, which a person at a terminal is told if there are no hits.
    """
    weak = [hit for hit in answer.hits if hit.weak]
    shown = [hit for hit in answer.hits if not hit.weak] + weak[:MAX_WEAK_HITS]
    if weak and len(weak) == len(answer.hits):
        output.print_message("No strong match. These results may not answer your query:")
    for number, hits in enumerate(_group_by_session(shown)):
        if number:
            output.print_line()
        if hits[0].session is None:
            _print_hit(output, hits[0], explain, all_scopes)
        else:
            _print_session(output, hits, explain, all_scopes)
    if len(weak) > MAX_WEAK_HITS:
        output.print_message(f"{len(weak) - MAX_WEAK_HITS} more weak matches; use --json for all")
    if answer.degraded:
        output.print_message(f"({answer.reason})")
    if not answer.hits and not answer.disabled:
        hint = " Add `--scope all` to search every project." if may_widen and output.is_terminal else ""
        output.print_empty(f"No results.{hint}")


def _group_by_session(hits: list[Hit]) -> list[list[Hit]]:
    """Group the turns of a session at the place of its best turn; every other hit is a group of its own."""
    groups: dict[object, list[Hit]] = {}
    for number, hit in enumerate(hits):
        group = number if hit.session is None else hit.citation.rpartition(":")[0]
        groups.setdefault(group, []).append(hit)
    return list(groups.values())


def _print_session(output: Output, hits: list[Hit], explain: bool, all_scopes: bool) -> None:
    from holdfast.cli.output import describe_hidden, join_lines
    from holdfast.models import describe_speaker

    name = output.style(join_lines(f"session {hits[0].session}"), "bold")
    output.print_line(f"{name}  {output.style(_format_scope(hits[0], all_scopes), 'dim')}")
    for hit in hits:
        details = "  ".join([join_lines(hit.updated), *describe_hidden(hit.hidden)])
        speaker = describe_speaker(hit.speaker or "a person", hit.source.agent if hit.source else None)
        output.print_line(f"  {join_lines(speaker)}  {output.style(details, 'dim')}".rstrip())
        _print_hit_text(output, hit, explain)


def _print_hit(output: Output, hit: Hit, explain: bool, all_scopes: bool) -> None:
    from holdfast.cli.output import describe_hidden, join_lines

    until = f" to {hit.valid_to[:10]}" if hit.valid_to else ""
    since = f"{hit.valid_from[:10]}{until}" if hit.valid_from else hit.updated[:10]
    details = [_format_scope(hit, all_scopes), hit.type or hit.kind, since, *_format_tags(hit.tags)]
    details += [*_format_source(hit.source), *_describe_state(hit)]
    details += [*describe_hidden(hit.hidden), *_describe_secrets(output, hit.text)]
    output.print_line(f"{output.style(join_lines(hit.key), 'bold')}  {output.style(join_lines('  '.join(details)), 'dim')}")
    if hit.name:
        output.print_line(f"    {join_lines(f'{hit.name}: {hit.description}' if hit.description else hit.name)}")
    _print_hit_text(output, hit, explain)


def _print_hit_text(output: Output, hit: Hit, explain: bool) -> None:
    from holdfast.cli.output import join_lines

    output.print_indented(hit.text, _MAX_HIT_LINES)
    output.print_line("    " + output.style(join_lines(hit.citation), "cyan"))
    if explain:
        _print_signals(output, hit)


def _print_notes(output: Output, notes: list[Note], all_scopes: bool = False) -> None:
    if not notes:
        output.print_empty("No notes yet. Store one with `holdfast store TEXT`.")
        return
    rows = [
        (
            note.key, str(note.scope) if all_scopes else note.scope.kind, note.type, note.updated[:10], ",".join(note.tags),
            _format_excerpt(note),
        )
        for note in notes
    ]  # fmt: skip
    output.print_table(("KEY", "SCOPE", "TYPE", "UPDATED", "TAGS", "TEXT"), rows, ("bold", "cyan", "", "dim", "blue", ""))


def _print_archived(output: Output, notes: list[Note]) -> None:
    if notes:
        _print_notes(output, notes)
    else:
        output.print_empty("No archived notes.")


def _format_excerpt(note: Note) -> str:
    """Return the start of a note's text, with its state first because the table cuts the end."""
    hidden = f"⟦hidden: {', '.join(note.hidden)}⟧ " if note.hidden else ""
    state = "(in quarantine) " if note.quarantined else ""
    state += "(archived) " if note.archived else ""
    return f"{'* ' if note.pinned else ''}{state}{hidden}{note.text[:400]}"


def _print_trash(output: Output, trashed: list[TrashedNote]) -> None:
    if not trashed:
        output.print_empty("Nothing to restore.")
        return
    rows = [(note.key, note.scope.kind, note.part, note.time) for note in trashed]
    output.print_table(("KEY", "SCOPE", "WHERE", "SINCE"), rows, ("bold", "cyan", "", "dim"))


def _print_note(output: Output, note: Note) -> None:
    """Print the text of a note, on a terminal also its details."""
    from holdfast.cli.output import join_lines

    output.print_text(note.text, wrap=True)
    if output.is_terminal:
        until = f" to {note.valid_to[:10]}" if note.valid_to else ""
        details = [str(note.scope), note.type, *_format_tags(note.tags), f"{note.valid_from[:10]}{until}"]
        details += [*_format_source(note.source), *_describe_state(note), *_describe_secrets(output, note.text)]
        details += [f"version {note.versions} ({note.version[:8]})", f"{note.path}:{note.lines[0]}-{note.lines[1]}"]
        output.print_message(join_lines("  ".join([*details, "pinned"] if note.pinned else details)))


def _print_history(output: Output, versions: list[Version]) -> None:
    from holdfast.base import dates
    from holdfast.cli.output import describe_hidden, join_lines

    now = dates.now()
    for number, version in enumerate(versions):
        if number:
            output.print_line()
        period = _format_period(version.valid_from, version.until, now)
        details = [version.type, *_format_tags(version.tags), f"recorded {version.recorded}", *_format_source(version.source)]
        details += [*describe_hidden(version.hidden), *_describe_secrets(output, version.text)]
        output.print_line(f"{output.style(period, 'bold')}  {output.style(join_lines('  '.join(details)), 'dim')}")
        output.print_indented(version.text)


def _format_period(start: str, end: str | None, now: str) -> str:
    """Return from when to when a version is valid; one that is not valid yet has not lasted until now."""
    if end:
        return f"{start} to {end}"
    return f"from {start}" if start > now else f"{start} to now"


def _format_scope(hit: Hit, all_scopes: bool) -> str:
    """Return the kind of a hit's scope, with its name if hits may come from other projects."""
    return str(hit.scope) if all_scopes else hit.scope.kind


def _format_tags(tags: tuple[str, ...]) -> list[str]:
    return [f"#{tag}" for tag in tags]


def _format_source(source: Source | None) -> list[str]:
    if source is None:
        return []
    trust = f", from {source.trusted}" if source.trusted != source.origin else ""
    return [f"by {source.origin}" + "".join(f" {name}" for name in (source.agent, source.client) if name) + trust]


def _describe_state(item: Hit | Note) -> list[str]:
    state = ["in quarantine: `holdfast review`"] if item.quarantined else []
    state += ["archived"] if item.archived else []
    if superseded := getattr(item, "superseded_by", None):
        state.append(f"superseded by {superseded}")
    return [*state, "weak match"] if getattr(item, "weak", False) else state


def _describe_secrets(output: Output, text: str) -> list[str]:
    """Return a mark for text with secrets, which no model is shown; only for people, at a terminal."""
    if not output.is_terminal:
        return []
    from holdfast.safety.validate import redact_or_withhold

    rules = redact_or_withhold(text)[1]
    return [f"⟦secret: {', '.join(rules)}⟧"] if rules else []


def _print_signals(output: Output, hit: Hit) -> None:
    """Print what each signal of the ranking added to the hit's score, largest first."""
    from holdfast.search.signals import SIGNALS

    signals = [(SIGNALS.get(name, name), value, added) for name, (value, added) in (hit.why or {}).items()]
    signals.sort(key=lambda signal: -abs(signal[2]))
    rows = [(name, f"{value:.3f}", f"{added:+.3f}") for name, value, added in signals]
    rows.append(("score", "", f"{hit.score:.4g}"))
    output.print_table(("SIGNAL", "VALUE", "ADDED"), rows, indent=4)
