"""store, recall, get, list."""

from __future__ import annotations

from holdfast.cli.runner import only_one

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.models import Answer, Hit, Note, Source, Stored, TrashedNote, Version

WEAK = 3  # weak hits that are shown on a terminal
_LINES = 12  # of a hit's text on a terminal; `get` shows all


def store(call: Invocation) -> int:
    only_one(call, "pin", "unpin")
    pinned = True if call["pin"] else False if call["unpin"] else None
    sure_of_secret(call)
    stored = call.memory.store(
        call.text("text", call.memory.config.note_bytes, "a note"), tags=call["tag"], pinned=pinned, made_from=call["from"],
        **call.given("key", "scope", "type", "valid_from", "valid_to", "origin", "expected", "again", "redact", "allow_secret"),
    )  # fmt: skip
    return call.answer(stored, tell_stored)


def recall(call: Invocation) -> int:
    asked = {"tags": call["tag"], "explain": bool(call["explain"])}
    asked |= call.given("scope", "type", "limit", "as_of", "known_at", "sort", "kind", "now")
    answer = from_resident(call, asked)
    if answer is None:
        answer = call.memory.recall(call["query"] or "", mode=mode_of(call), **asked)
    explain, everywhere = bool(call["explain"]), call["scope"] == "all"
    return call.answer(answer, lambda screen, answer: tell_answer(screen, answer, explain, everywhere))


def from_resident(call: Invocation, asked: dict[str, Any]) -> Answer | None:
    """The full answer of a process that stays and has the models; None where there is none, or words alone were asked for."""
    memory, mode = call.memory, call["mode"] or "hybrid"
    if asked.get("scope") == "all":  # a process that answers for others does not know that a person asks
        return None
    if mode not in ("hybrid", "semantic") or not memory.config.enabled or call.is_remote or memory.config.store:
        return None
    from holdfast.api import resident

    if not resident.is_there(memory.home):
        return None
    who = {"project": memory.project, "session": memory.session, "agent": memory.agent}
    return resident.ask(memory.home, who, {"query": call["query"] or "", "mode": mode, **asked})


def mode_of(call: Invocation) -> str:
    """As asked; else by words, for this process lives too short to load models that were not asked for."""
    if call["mode"] is not None:
        mode: str = call["mode"]
        return mode
    return "hybrid" if call["explain"] or call["now"] or call.is_remote else "keyword"


def get(call: Invocation) -> int:
    scope = call["scope"]
    if call["history"]:
        only_one(call, "history", "as_of")
        only_one(call, "history", "known_at")
        return call.answer(call.memory.history(call["key"], scope=scope), _tell_history)
    note = call.memory.get(call["key"], scope=scope, as_of=call["as_of"], known_at=call["known_at"])
    return call.answer(note, _tell_note)


def list_(call: Invocation) -> int:
    if call["trash"]:
        return call.answer(call.memory.trash(scope=call["scope"])[: call["limit"]], _tell_binned)
    only_one(call, "archived", "source")
    notes = call.memory.list(tags=call["tag"], **call.given("scope", "type", "limit", "source", "archived"))
    return call.answer(notes, _tell_archived if call["archived"] else tell_notes)


def tell_stored(screen: Output, stored: Stored) -> None:
    note = stored.note
    style = {"created": "green", "updated": "yellow"}.get(stored.action, "dim")
    screen.say(f"{screen.paint(stored.action, style)} {screen.paint(note.key, 'bold')} in {note.scope}")
    if stored.redacted:
        screen.aside(f"left out what looks like a secret: {', '.join(stored.redacted)}", "yellow")


def sure_of_secret(call: Invocation) -> None:
    """A person at a terminal is asked before a secret is kept; the ledger gets the answer either way."""
    import sys

    if call["allow_secret"] is not None and not call.screen.json and sys.stdin.isatty() and sys.stderr.isatty():
        from holdfast.cli.runner import confirm

        confirm(call, "Keep it as it is, also if it holds a secret? Every program of yours can read it")


def _secret_mark(screen: Output, text: str) -> list[str]:
    """For people: what they see is not told to a model."""
    if not screen.terminal:
        return []
    from holdfast.safety.validate import redact_or_withhold

    rules = redact_or_withhold(text)[1]
    return [f"⟦secret: {', '.join(rules)}⟧"] if rules else []


def tell_answer(screen: Output, answer: Answer, explain: bool = False, everywhere: bool = False) -> None:
    weak = [hit for hit in answer.hits if hit.weak]
    shown = [hit for hit in answer.hits if not hit.weak] + weak[:WEAK]
    if weak and len(weak) == len(answer.hits):
        screen.aside("No strong match. These may not be what you look for:")
    for place, hits in enumerate(_grouped(shown)):
        if place:
            screen.say()
        if hits[0].session is None:
            _tell_hit(screen, hits[0], explain, everywhere)
        else:
            _tell_session(screen, hits, explain, everywhere)
    if len(weak) > WEAK:
        screen.aside(f"{len(weak) - WEAK} more weak matches; --json has them all")
    if answer.degraded:
        screen.aside(f"({answer.reason})")
    if not answer.hits and not answer.disabled:
        screen.nothing("nothing found")


def _grouped(shown: list[Hit]) -> list[list[Hit]]:
    """Each hit alone, but turns with the others of their session, where its best one stands."""
    groups: dict[object, list[Hit]] = {}
    for place, hit in enumerate(shown):
        group = place if hit.session is None else hit.citation.rpartition(":")[0]
        groups.setdefault(group, []).append(hit)
    return list(groups.values())


def tell_notes(screen: Output, notes: list[Note]) -> None:
    if not notes:
        screen.nothing("no notes yet: `holdfast store TEXT` keeps one")
        return
    rows = [
        (note.key, note.scope.kind, note.type, note.updated[:10], ",".join(note.tags), _gist(note)) for note in notes
    ]
    screen.table(("KEY", "SCOPE", "TYPE", "UPDATED", "TAGS", "TEXT"), rows, ("bold", "cyan", "", "dim", "blue", ""))


def _tell_archived(screen: Output, notes: list[Note]) -> None:
    if notes:
        tell_notes(screen, notes)
    else:
        screen.nothing("no archived notes")


def _gist(note: Note) -> str:
    hidden = f"⟦hidden: {', '.join(note.hidden)}⟧ " if note.hidden else ""  # it may stand where the text is cut
    held = "(in quarantine) " if note.quarantined else ""
    held += "(archived) " if note.archived else ""
    return f"{'* ' if note.pinned else ''}{held}{hidden}{note.text[:400]}"


def _tell_session(screen: Output, hits: list[Hit], explain: bool, everywhere: bool = False) -> None:
    from holdfast.cli.output import hidden_mark, one_line

    name = screen.paint(one_line(f"session {hits[0].session}"), "bold")
    screen.say(f"{name}  {screen.paint(_where(hits[0], everywhere), 'dim')}")
    for hit in hits:
        who, when = one_line(hit.speaker or "somebody"), one_line(hit.updated)
        screen.say(f"  {who}  {screen.paint('  '.join([when, *hidden_mark(hit.hidden)]), 'dim')}".rstrip())
        _tell_text(screen, hit, explain)


def _where(hit: Hit, everywhere: bool) -> str:
    """The kind of a hit's scope; with its name where hits may come from other projects."""
    return str(hit.scope) if everywhere else hit.scope.kind


def _tell_hit(screen: Output, hit: Hit, explain: bool, everywhere: bool = False) -> None:
    from holdfast.cli.output import hidden_mark, one_line

    name = screen.paint(one_line(hit.key), "bold")
    until = f" to {hit.valid_to[:10]}" if hit.valid_to else ""
    since = f"{hit.valid_from[:10]}{until}" if hit.valid_from else hit.updated[:10]
    said = [_where(hit, everywhere), hit.type or hit.kind, since, *_marked(hit.tags), *_by(hit.source), *_held(hit)]
    said += [*hidden_mark(hit.hidden), *_secret_mark(screen, hit.text)]
    screen.say(f"{name}  {screen.paint(one_line('  '.join(said)), 'dim')}")
    if hit.name:
        screen.say(f"    {one_line(f'{hit.name}: {hit.description}' if hit.description else hit.name)}")
    _tell_text(screen, hit, explain)


def _tell_text(screen: Output, hit: Hit, explain: bool) -> None:
    from holdfast.cli.output import one_line

    screen.indented(hit.text, _LINES)
    screen.say("    " + screen.paint(one_line(hit.citation), "cyan"))
    if explain:
        from holdfast.cli.explain import tell_why

        tell_why(screen, hit)


def _tell_note(screen: Output, note: Note) -> None:
    """The text alone down a pipe; on a terminal also what is known about it."""
    from holdfast.cli.output import one_line

    screen.text(note.text, wrap=True)
    if screen.terminal:
        until = f" to {note.valid_to[:10]}" if note.valid_to else ""
        said = [str(note.scope), note.type, *_marked(note.tags), f"{note.valid_from[:10]}{until}", *_by(note.source)]
        said += [*_held(note), *_secret_mark(screen, note.text)]
        said += [f"version {note.versions} ({note.version[:8]})", f"{note.path}:{note.lines[0]}-{note.lines[1]}"]
        screen.aside(one_line("  ".join([*said, "pinned"] if note.pinned else said)))


def _tell_history(screen: Output, versions: list[Version]) -> None:
    from holdfast.base import dates
    from holdfast.cli.output import hidden_mark, one_line

    now = dates.now()
    for place, version in enumerate(versions):
        if place:
            screen.say()
        span = _span(version.valid_from, version.until, now)
        said = [version.type, *_marked(version.tags), f"recorded {version.recorded}", *_by(version.source)]
        said += [*hidden_mark(version.hidden), *_secret_mark(screen, version.text)]
        screen.say(f"{screen.paint(span, 'bold')}  {screen.paint(one_line('  '.join(said)), 'dim')}")
        screen.indented(version.text)


def _span(start: str, end: str | None, now: str) -> str:
    """From when to when; what is only going to be true has not lasted until now."""
    if end:
        return f"{start} to {end}"
    return f"from {start}" if start > now else f"{start} to now"


def _held(of: Hit | Note) -> list[str]:
    held = ["in quarantine: `holdfast review`"] if of.quarantined else []
    held += ["archived"] if of.archived else []
    return [*held, "weak match"] if getattr(of, "weak", False) else held


def _marked(tags: tuple[str, ...]) -> list[str]:
    return [f"#{tag}" for tag in tags]


def _by(source: Source | None) -> list[str]:
    """Who said it."""
    if source is None:
        return []
    trust = f", from {source.trusted}" if source.trusted != source.origin else ""
    return [f"by {source.origin}" + "".join(f" {name}" for name in (source.agent, source.client) if name) + trust]


def _tell_binned(screen: Output, binned: list[TrashedNote]) -> None:
    if not binned:
        screen.nothing("nothing to restore")
        return
    rows = [(one.key, one.scope.kind, one.part, one.time) for one in binned]
    screen.table(("KEY", "SCOPE", "WHERE", "SINCE"), rows, ("bold", "cyan", "", "dim"))
