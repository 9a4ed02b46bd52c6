"""`review` and `trace`: decide about notes in quarantine, and show where a note came from."""

from __future__ import annotations

import os
import sys

from holdfast.cli.output import format_count, join_lines
from holdfast.cli.runner import check_exclusive
from holdfast.errors import HoldfastError, NotFound, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.models import Forgotten, Note, Scope
    from holdfast.verbs.trace import Decision, Made, Saying, Step, Trace

_MENU = "[a]pprove  [r]eject  [e]dit  [s]kip  [q]uit"
_QUIT_KEYS = "\x03\x04"  # Ctrl-C and Ctrl-D, if the terminal passes them on


def review(call: Invocation) -> int:
    """`holdfast review`: approve or reject one note, ask about each at a terminal, or list them."""
    from holdfast.cli.commands import relations

    check_exclusive(call, "approve", "reject", "undo", "relations")
    if call["relations"]:
        return relations.list_proposed(call)
    if relations.names_relation(call["approve"] or call["reject"] or ""):
        return relations.decide(call)
    if call["undo"]:
        return call.answer(_undo(call, call["undo"]), _print_undone)
    if call["approve"]:
        key, scope, version = _find_waiting(call, call["approve"])
        return call.answer(call.memory.approve(key, scope=scope, expected=version), _print_approved)
    if call["reject"]:
        key, scope, version = _find_waiting(call, call["reject"])
        return call.answer(call.memory.reject(key, scope=scope, expected=version), _print_rejected)
    notes = _list_waiting(call)
    if notes and not call.output.json and call.output.is_terminal and sys.stdin.isatty():
        return _review_each(call, notes) or relations.review_each(call)
    if call["everywhere"]:
        call.answer(notes, _print_everywhere)
    else:
        call.answer(notes, _print_waiting if notes else lambda *_: _print_nothing_waiting(call))
    if not call.output.json:
        relations.print_count(call)
    return 0


def _undo(call: Invocation, key: str) -> Note:
    """Let a note wait for review again: restore it if it was rejected, else take its approval back."""
    from holdfast.verbs.review import require_person

    require_person(call.memory, "undo a decision")
    try:
        return call.memory.quarantine(key, scope=call["scope"])
    except NotFound:
        return call.memory.restore(key, scope=call["scope"])


def _list_waiting(call: Invocation) -> list[Note]:
    return call.memory.review(scope=call["scope"], everywhere=bool(call["everywhere"]))


def _find_waiting(call: Invocation, name: str) -> tuple[str, str | Scope | None, str | None]:
    """Return the key, the scope and with --everywhere the version of the note in quarantine that `KEY` or `SCOPE/KEY` names."""
    if not call["everywhere"]:
        _check_quarantined(call, name)
        return name, call["scope"], None
    found = [note for note in _list_waiting(call) if name in (note.key, f"{note.scope}/{note.key}")]
    if not found:
        raise NotFound(f"no note {name!r} in quarantine", "Run `holdfast review --everywhere` for the list")
    if len(found) > 1:
        names = ", ".join([f"{note.scope}/{note.key}" for note in found])
        raise UsageError(f"{name!r} is in quarantine in several scopes", f"Name one of: {names}")
    return found[0].key, found[0].scope, found[0].version


def _check_quarantined(call: Invocation, key: str) -> None:
    """Raise NotFound if the note is not in quarantine: there is nothing to decide."""
    from holdfast.verbs.review import require_person

    require_person(call.memory, "approve a note")
    if call.memory.config.enabled and not call.memory.get(key, scope=call["scope"]).quarantined:
        raise NotFound(f"the note {key!r} is not in quarantine", "Run `holdfast review` for the list of notes in quarantine")


def _print_nothing_waiting(call: Invocation) -> None:
    """Say that nothing waits here, and to a person how many notes wait in other scopes."""
    elsewhere = 0
    if call.memory.origin == "user" and not call.is_remote:  # a gateway records who asks: only with --everywhere
        from holdfast.api.pagination import review_page

        elsewhere = review_page(call.memory, 1, everywhere=True)[2]
    count = "1 note" if elsewhere == 1 else f"{elsewhere:,} notes"
    more = f" here; {count} elsewhere: `holdfast review --everywhere`" if elsewhere else ""
    call.output.print_empty(f"No notes in quarantine{more}.")


def _review_each(call: Invocation, notes: list[Note]) -> int:
    """Show each note and ask what to do with it."""
    from holdfast.verbs.review import require_person

    require_person(call.memory, "review notes")
    for number, note in enumerate(notes, 1):
        _print_note(call.output, note, f"{number} of {len(notes)}")
        choice = _ask_choice(call)
        if choice == "q":
            break
        try:
            _decide(call, note, choice, note.scope if call["everywhere"] else note.scope.kind)
        except HoldfastError as error:  # the other notes can still be decided
            call.output.print_message(f"{error.message}. {error.fix}", "red")
    call.output.print_message(f"{format_count(len(_list_waiting(call)), 'note')} left in quarantine")
    return 0


def _decide(call: Invocation, note: Note, choice: str, scope: str | Scope | None = None) -> None:
    if choice == "a":
        _print_approved(call.output, call.memory.approve(note.key, scope=scope, expected=note.version))
    elif choice == "r":
        _print_rejected(call.output, call.memory.reject(note.key, scope=scope, expected=note.version))
    elif choice == "e":
        from holdfast.cli.commands.edit import edit_note
        from holdfast.cli.commands.notes import print_stored

        stored = edit_note(call, note)
        print_stored(call.output, stored)
        # the person has read this version, also if it is unchanged, but nothing that was written since
        call.memory.approve(note.key, scope=scope, expected=stored.note.version)


def _ask_choice(call: Invocation) -> str:
    """Ask for a key of the menu; with --everywhere a note may be another user's and cannot be edited."""
    everywhere = bool(call["everywhere"])
    return ask_key(call, _MENU.replace("[e]dit  ", "") if everywhere else _MENU, "arsq" if everywhere else "aresq")


def ask_key(call: Invocation, menu: str, keys: str) -> str:
    """Show a menu and return the key that was pressed; q to quit."""
    call.output.print_message(menu)
    while True:
        key = _read_key().lower()
        if not key or key in _QUIT_KEYS:
            return "q"
        if key in keys:
            return key


def _read_key() -> str:
    """Read one key without waiting for the end of a line."""
    import termios
    import tty

    fd = sys.stdin.fileno()
    previous = termios.tcgetattr(fd)
    try:
        tty.setcbreak(fd, termios.TCSADRAIN)  # TCSADRAIN keeps what was typed ahead
        return os.read(fd, 1).decode("latin-1")
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, previous)


def _print_note(output: Output, note: Note, position: str) -> None:
    key, details = output.style(join_lines(note.key), "bold"), output.style(join_lines(_describe_note(note)), "dim")
    output.print_line(f"{key}  {details}  {position}")
    output.print_indented(note.text)


def _describe_note(note: Note) -> str:
    source = note.source
    names = [name for name in (source.agent, source.client, source.session) if name]
    made_from = f", derived from {', '.join(source.made_from)}" if source.made_from else ""
    trust = f", trusted as {source.trusted}" if source.trusted != source.origin else ""
    return f"{note.scope}, {note.updated[:10]}, by {' '.join([source.origin, *names])}{trust}{made_from}"


def _print_waiting(output: Output, notes: list[Note]) -> None:
    _print_table(output, [(note.scope.kind, note) for note in notes])
    output.print_message("approve a note with `holdfast review --approve KEY`, or forget it with `--reject KEY`")


def _print_everywhere(output: Output, notes: list[Note]) -> None:
    """Print the notes of all scopes, with the name of each scope."""
    if not notes:
        output.print_empty("No notes in quarantine.")
        return
    _print_table(output, [(str(note.scope), note) for note in notes])
    output.print_message("approve a note with `holdfast review --everywhere --approve KEY`, or forget it with `--reject KEY`")


def _print_table(output: Output, notes: list[tuple[str, Note]]) -> None:
    rows = [(note.key, scope, note.source.trusted, note.updated[:10], note.text[:400]) for scope, note in notes]
    output.print_table(("KEY", "SCOPE", "TRUST", "UPDATED", "TEXT"), rows, ("bold", "cyan", "yellow", "dim", ""))


def _print_approved(output: Output, note: Note) -> None:
    output.print_line(f"{output.style('approved', 'green')} {output.style(join_lines(note.key), 'bold')} in {note.scope}")


def _print_undone(output: Output, note: Note) -> None:
    state = "back in quarantine" if note.quarantined else "restored"
    output.print_line(f"{output.style(state, 'yellow')} {output.style(join_lines(note.key), 'bold')} in {note.scope}")


def _print_rejected(output: Output, forgotten: Forgotten) -> None:
    key = output.style(join_lines(forgotten.key), "bold")
    output.print_line(f"{output.style('rejected', 'yellow')} {key}; it is in the trash")


# --- trace ------------------------------------------------------------------------------------------------------------


def trace(call: Invocation) -> int:
    """`holdfast trace`."""
    return call.answer(call.memory.trace(call["key"], scope=call["scope"]), _print_trace)


def _print_trace(output: Output, trace: Trace) -> None:
    quarantined = output.style("  in quarantine", "yellow") if trace.note.quarantined else ""
    output.print_line(f"{output.style(join_lines(trace.note.key), 'bold')} in {trace.note.scope}{quarantined}")
    output.print_line(output.style("came from", "dim"))
    for version in trace.versions:
        _print_version(output, version)
    briefed = [
        f"{shown.time}  session {shown.session}  {shown.client}  version {shown.version[:8]}".rstrip()
        for shown in trace.briefed
    ]
    _print_section(output, "told to", briefed)
    if trace.led_to:
        output.print_line(output.style("led to", "dim"))
        _print_derived(output, trace.led_to, 1)
    decisions = [f"{decision.time}  {_format_decision(decision, trace.note)}" for decision in trace.decisions]
    _print_section(output, "decided", decisions)


def _format_decision(decision: Decision, note: Note) -> str:
    """Return the decision; if it was about another note with the same words, with that note's scope and key."""
    scope, key = decision.detail.get("scope", ""), decision.detail.get("key", "")
    return decision.action if (scope, key) == (str(note.scope), note.key) else f"{decision.action}: {scope} {key}"


def _print_version(output: Output, version: Saying) -> None:
    source = version.source
    names = " ".join([name for name in (source.origin, source.agent, source.client) if name])
    session = f", session {source.session}" if source.session else ""
    output.print_line(_indent(1, f"{version.recorded}  by {names}{session}, trusted as {version.trust}"))
    _print_sources(output, version.came_from, 2)


def _print_sources(output: Output, steps: tuple[Step, ...], depth: int) -> None:
    """Print the sources of a version as a tree."""
    for step in steps:
        source = f"{step.note}, trusted as {step.trust}" if step.note else step.what
        output.print_line(_indent(depth, f"└ {source}"))
        _print_sources(output, step.came_from, depth + 1)


def _print_derived(output: Output, notes: tuple[Made, ...], depth: int) -> None:
    """Print the notes that were made from a note as a tree."""
    for derived in notes:
        output.print_line(_indent(depth, f"└ {derived.note}{'' if derived.current else ' (an older version of it)'}"))
        _print_derived(output, derived.led_to, depth + 1)


def _print_section(output: Output, title: str, lines: list[str]) -> None:
    if lines:
        output.print_line(output.style(title, "dim"))
        for line in lines:
            output.print_line(_indent(1, line))


def _indent(depth: int, text: str) -> str:
    return "  " * depth + join_lines(text)
