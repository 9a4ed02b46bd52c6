"""log, import-history, expand."""

from __future__ import annotations

from holdfast.cli.output import hidden_mark, one_line, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.models import Logged, Turn

_KEPT = "turns before it may be kept, and none is ever added twice"


def log(call: Invocation) -> int:
    from holdfast.base.json_lines import max_line_bytes
    from holdfast.cli.commands.import_notes import objects
    from holdfast.formats import transcript as turns

    said = (row for _, row in objects(call["file"], max_line_bytes(turns.TURN_BYTES), _KEPT))
    logged = call.memory.log(said, **call.given("session", "client", "scope", "redact"))
    return call.answer(logged, _tell_logged)


def import_history(call: Invocation) -> int:
    logged = [one for path in call["path"] for one in call.memory.import_history(path, **call.given("client", "scope"))]
    return call.answer(logged, _tell_imported)


def expand(call: Invocation) -> int:
    turns = call.memory.expand(call["turn"], **call.given("before", "after", "session"))
    return call.answer(turns, lambda screen, turns: _tell_turns(screen, turns, call["turn"]))


def _tell_logged(screen: Output, logged: Logged) -> None:
    screen.say(f"{_counted([logged])} in {one_line(logged.path)}")


def _tell_imported(screen: Output, logged: list[Logged]) -> None:
    if not logged:
        screen.nothing("no transcript found")
        return
    rows = [(one.session, one.client, f"{one.added:,}", f"{one.known:,}", one.path) for one in logged]
    screen.table(("SESSION", "CLIENT", "ADDED", "KNOWN", "PATH"), rows, ("bold", "cyan", "", "dim", "dim"))
    screen.say(f"{_counted(logged)} in {plural(len({one.path for one in logged}), 'session')}")
    places = [path.partition("/transcripts/")[0] for path in {one.path: None for one in logged}]
    for place in dict.fromkeys(places) if len(set(places)) > 1 else ():
        screen.say(f"  {plural(places.count(place), 'session')} in {one_line(place)}")
    broken = sum([one.broken for one in logged])
    if broken:
        screen.aside(f"{plural(broken, 'line')} could not be read", "yellow")


def _counted(logged: list[Logged]) -> str:
    added, known = sum([one.added for one in logged]), sum([one.known for one in logged])
    redacted = sum([one.redacted for one in logged])
    left_out = f" (a secret was left out of {redacted:,})" if redacted else ""
    purged = sum([one.purged for one in logged])
    kept_out = f", {purged:,} left out because they were purged" if purged else ""
    return f"{plural(added, 'turn')} added{left_out}, {known:,} known already{kept_out}"


def _tell_turns(screen: Output, turns: list[Turn], asked: str) -> None:
    """A conversation: who, when, and what; the turn that was asked for has a mark."""
    if not turns:
        screen.nothing("nothing was said")
        return
    first, last = turns[0], turns[-1]
    where = f"{first.citation.rpartition('-')[0]}-{last.citation.rpartition('-')[2]}"
    screen.say(f"{screen.paint(one_line(f'session {first.session}'), 'bold')}  {screen.paint(one_line(where), 'cyan')}")
    for turn in turns:
        mark = "> " if asked in (turn.id, turn.citation) else "  "
        who = one_line(turn.speaker or turn.role)
        screen.say()
        said = "  ".join([*([one_line(turn.time)] if turn.time else []), *hidden_mark(turn.hidden)])
        screen.say(f"{mark}{screen.paint(who, 'bold')}  {screen.paint(said, 'dim')}".rstrip())
        screen.indented(turn.text)
