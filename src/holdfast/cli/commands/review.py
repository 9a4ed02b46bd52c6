"""review, trace, and forget --source: what is too little trusted to be told, and where it came from."""

from __future__ import annotations

import os
import sys

from holdfast.cli.output import one_line, plural
from holdfast.cli.runner import confirm, must_ask, only_one
from holdfast.errors import HoldfastError, NotFound, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.models import Forgotten, Note, Scope
    from holdfast.verbs.forget_source import Swept, Touched
    from holdfast.verbs.trace import Decision, Made, Saying, Step, Trace

_KEYS = "[a]pprove  [r]eject  [e]dit  [s]kip  [q]uit"
_END = "\x03\x04"  # Ctrl-C and Ctrl-D, where a terminal hands them on


def review(call: Invocation) -> int:
    only_one(call, "approve", "reject")
    if call["approve"]:
        key, where, seen = _meant(call, call["approve"])
        if seen is None:
            _must_wait(call, key)
        return call.answer(call.memory.approve(key, scope=where, expected=seen), _tell_approved)
    if call["reject"]:
        key, where, seen = _meant(call, call["reject"])
        if seen is None:
            _must_wait(call, key)
        return call.answer(call.memory.reject(key, scope=where, expected=seen), _tell_rejected)
    notes = _waiting(call)
    if notes and not call.screen.json and call.screen.terminal and sys.stdin.isatty():
        return _one_by_one(call, notes)
    if call["everywhere"]:
        return call.answer(notes, _tell_everywhere)
    return call.answer(notes, _tell_waiting if notes else lambda *_: _tell_nothing(call))


def _waiting(call: Invocation) -> list[Note]:
    return call.memory.review(scope=call["scope"], everywhere=bool(call["everywhere"]))


def _meant(call: Invocation, name: str) -> tuple[str, str | Scope | None, str | None]:
    """The note that is named: its key, where it is, and the version that waits. Everywhere a key may stand in many scopes:
    then `SCOPE/KEY` says which one."""
    if not call["everywhere"]:
        return name, call["scope"], None
    found = [note for note in _waiting(call) if name in (note.key, f"{note.scope}/{note.key}")]
    if not found:
        raise NotFound(f"no note {name!r} is in quarantine", "`holdfast review --everywhere` lists what waits")
    if len(found) > 1:
        names = ", ".join([f"{note.scope}/{note.key}" for note in found])
        raise UsageError(f"{name!r} waits in several scopes", f"Say which one: {names}")
    return found[0].key, found[0].scope, found[0].version


def _must_wait(call: Invocation, key: str) -> None:
    """Reject a key whose note is not in quarantine: there is nothing to approve."""
    from holdfast.verbs.review import require_person

    require_person(call.memory, "approve a note")
    if call.memory.config.enabled and not call.memory.get(key, scope=call["scope"]).quarantined:
        raise NotFound(f"the note {key!r} is not in quarantine", "Nothing to approve; `holdfast review` lists what waits")


def _tell_nothing(call: Invocation) -> None:
    """That nothing waits here; a person is told how much waits where they are not."""
    elsewhere = 0
    if call.memory.origin == "user" and not call.is_remote:  # a gateway writes down who asks: only with --everywhere
        from holdfast.api.pagination import review_page

        elsewhere = review_page(call.memory, 1, everywhere=True)[2]
    count = "1 note waits" if elsewhere == 1 else f"{elsewhere:,} notes wait"
    more = f" here; {count} elsewhere: `holdfast review --everywhere`" if elsewhere else ""
    call.screen.nothing(f"nothing is in quarantine{more}")


def _one_by_one(call: Invocation, notes: list[Note]) -> int:
    from holdfast.verbs.review import require_person

    require_person(call.memory, "review notes")
    for number, note in enumerate(notes, 1):
        _tell_note(call.screen, note, f"{number} of {len(notes)}")
        word = _asked(call)
        if word == "q":
            break
        try:
            _do(call, note, word, note.scope if call["everywhere"] else note.scope.kind)
        except HoldfastError as error:  # the others can be decided all the same
            call.screen.aside(f"{error.message}. {error.fix}", "red")
    call.screen.aside(f"{plural(len(_waiting(call)), 'note')} left in quarantine")
    return 0


def _do(call: Invocation, note: Note, word: str, where: str | Scope | None = None) -> None:
    if word == "a":
        _tell_approved(call.screen, call.memory.approve(note.key, scope=where, expected=note.version))
    elif word == "r":
        _tell_rejected(call.screen, call.memory.reject(note.key, scope=where, expected=note.version))
    elif word == "e":
        from holdfast.cli.commands.edit import edited
        from holdfast.cli.commands.notes import tell_stored

        stored = edited(call, note)
        tell_stored(call.screen, stored)
        # left as it was, it was read all the same; what somebody wrote since was not
        call.memory.approve(note.key, scope=where, expected=stored.note.version)


def _asked(call: Invocation) -> str:
    """One key, of those that mean something; what is somebody else's is not edited."""
    call.screen.aside(_KEYS.replace("[e]dit  ", "") if call["everywhere"] else _KEYS)
    while True:
        word = _key().lower()
        if not word or word in _END:
            return "q"
        if word in ("arsq" if call["everywhere"] else "aresq"):
            return word


def _key() -> str:
    """The next key, without waiting for the end of a line."""
    import termios
    import tty

    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    try:
        tty.setcbreak(fd, termios.TCSADRAIN)  # what was typed ahead counts
        return os.read(fd, 1).decode("latin-1")
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


def _tell_note(screen: Output, note: Note, place: str) -> None:
    screen.say(f"{screen.paint(one_line(note.key), 'bold')}  {screen.paint(one_line(_about(note)), 'dim')}  {place}")
    screen.indented(note.text)


def _about(note: Note) -> str:
    source = note.source
    who = [name for name in (source.agent, source.client, source.session) if name]
    made = f", made from {', '.join(source.made_from)}" if source.made_from else ""
    trust = f", trusted as {source.trusted}" if source.trusted != source.origin else ""
    return f"{note.scope}, {note.updated[:10]}, by {' '.join([source.origin, *who])}{trust}{made}"


def _tell_waiting(screen: Output, notes: list[Note]) -> None:
    _table(screen, [(note.key, note.scope.kind, note) for note in notes])
    screen.aside("`holdfast review --approve KEY` lets one be told, `--reject KEY` forgets it")


def _tell_everywhere(screen: Output, notes: list[Note]) -> None:
    """The same, with whose each is."""
    if not notes:
        screen.nothing("nothing is in quarantine")
        return
    _table(screen, [(note.key, str(note.scope), note) for note in notes])
    screen.aside("`holdfast review --everywhere --approve KEY` lets one be told, `--reject KEY` forgets it")


def _table(screen: Output, notes: list[tuple[str, str, Note]]) -> None:
    rows = [(key, scope, note.source.trusted, note.updated[:10], note.text[:400]) for key, scope, note in notes]
    screen.table(("KEY", "SCOPE", "TRUST", "UPDATED", "TEXT"), rows, ("bold", "cyan", "yellow", "dim", ""))


def _tell_approved(screen: Output, note: Note) -> None:
    screen.say(f"{screen.paint('approved', 'green')} {screen.paint(one_line(note.key), 'bold')} in {note.scope}")


def _tell_rejected(screen: Output, forgotten: Forgotten) -> None:
    screen.say(f"{screen.paint('rejected', 'yellow')} {screen.paint(one_line(forgotten.key), 'bold')}; it is in the trash")


# --- where it came from -----------------------------------------------------------------------------------------------


def trace(call: Invocation) -> int:
    return call.answer(call.memory.trace(call["key"], scope=call["scope"]), _tell_trace)


def _tell_trace(screen: Output, trace: Trace) -> None:
    held = screen.paint("  in quarantine", "yellow") if trace.note.quarantined else ""
    screen.say(f"{screen.paint(one_line(trace.note.key), 'bold')} in {trace.note.scope}{held}")
    screen.say(screen.paint("came from", "dim"))
    for saying in trace.versions:
        _tell_saying(screen, saying)
    told = [f"{one.time}  session {one.session}  {one.client}  version {one.version[:8]}".rstrip() for one in trace.briefed]
    _tell_lines(screen, "told to", told)
    if trace.led_to:
        screen.say(screen.paint("led to", "dim"))
        _tell_made(screen, trace.led_to, 1)
    decided = [f"{one.time}  {_decision(one, trace.note)}" for one in trace.decisions]
    _tell_lines(screen, "decided", decided)


def _decision(one: Decision, note: Note) -> str:
    """What was decided; of another note, whose words this one says, also of which."""
    where, key = one.detail.get("scope", ""), one.detail.get("key", "")
    return one.action if (where, key) == (str(note.scope), note.key) else f"{one.action}: {where} {key}"


def _tell_saying(screen: Output, saying: Saying) -> None:
    source = saying.source
    who = " ".join([name for name in (source.origin, source.agent, source.client) if name])
    session = f", session {source.session}" if source.session else ""
    screen.say(one_line_at(1, f"{saying.recorded}  by {who}{session}, trusted as {saying.trust}"))
    _tell_steps(screen, saying.came_from, 2)


def _tell_steps(screen: Output, steps: tuple[Step, ...], depth: int) -> None:
    for step in steps:
        what = f"{step.note}, trusted as {step.trust}" if step.note else step.what
        screen.say(one_line_at(depth, f"└ {what}"))
        _tell_steps(screen, step.came_from, depth + 1)


def _tell_made(screen: Output, made: tuple[Made, ...], depth: int) -> None:
    for one in made:
        screen.say(one_line_at(depth, f"└ {one.note}{'' if one.current else ' (an older version of it)'}"))
        _tell_made(screen, one.led_to, depth + 1)


def _tell_lines(screen: Output, title: str, lines: list[str]) -> None:
    if lines:
        screen.say(screen.paint(title, "dim"))
        for line in lines:
            screen.say(one_line_at(1, line))


def one_line_at(depth: int, text: str) -> str:
    return "  " * depth + one_line(text)


# --- everything that a source touched ---------------------------------------------------------------------------------


def forget_source(call: Invocation) -> int:
    """What `forget` does that is given a source and no key."""
    if call["key"]:
        raise UsageError("--source and a key contradict each other", "Give one of them")
    how = {"revert": bool(call["revert"]), "everywhere": bool(call["everywhere"])}
    if not call["dry_run"] and must_ask(call):
        would = call.memory.forget_source(call["source"], dry_run=True, **how)
        if (would.forgotten or would.reverted) and not would.refused:
            if not call.screen.json:
                _tell_swept(call.screen, would)
            count = plural(len(would.forgotten) + len(would.reverted), "note")
            confirm(call, f"Forget or take back what came from {call['source']} ({count})?")
    swept = call.memory.forget_source(call["source"], dry_run=bool(call["dry_run"]), **how)
    return call.answer(swept, _tell_swept, 0 if swept.forgotten or swept.reverted or swept.older else 1)


def _tell_swept(screen: Output, swept: Swept) -> None:
    would = "not " if swept.refused else "would be " if swept.dry_run else ""
    parts = (
        (f"{would}forgotten", swept.forgotten), (f"{would}taken back", swept.reverted), ("only before", swept.older),
        ("put away", swept.binned),
    )  # fmt: skip
    if swept.refused:
        screen.aside(f"nothing would be done: {swept.refused}", "yellow")
    rows = [(what, *_row(one)) for what, some in parts for one in some]
    if rows:
        screen.table(("", "KEY", "SCOPE", "BY WAY OF", "CLEAN UNTIL"), rows, ("bold", "bold", "cyan", "", "dim"))
    else:
        screen.nothing(f"nothing here came from {swept.source}")
    if any(one.clean for one in swept.forgotten):
        screen.aside("--revert stores the last text that did not come from it again, instead of forgetting the note")
    for one in swept.binned:
        screen.aside(f"{one_line(one.path)} can be restored: `holdfast purge {one.key}` removes it for good", "yellow")
    if swept.restorable_until:
        screen.aside(f"until {swept.restorable_until[:10]}, `holdfast restore KEY` brings one back, in quarantine")
    for path in swept.transcripts:
        session = path.rpartition("/")[2].removesuffix(".jsonl")
        screen.aside(f"what was said stands in {path}: `holdfast purge --session {session}` removes it", "yellow")
    for place in swept.beyond_reach:
        screen.aside(f"it may still stand in {place}", "yellow")


def _row(one: Touched) -> tuple[str, str, str, str]:
    return one.key, str(one.scope), one.via, one.clean or "never"
