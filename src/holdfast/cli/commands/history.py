"""`log`, `import-history` and `expand`: the transcripts of sessions."""

from __future__ import annotations

from holdfast.cli.output import describe_hidden, format_count, join_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.models import Logged, Turn

_REST_NOTE = "turns before it may be stored, and none is stored twice"  # in the error about a bad line


def log(call: Invocation) -> int:
    """`holdfast log`."""
    from holdfast.base.json_lines import max_line_bytes
    from holdfast.cli.commands.import_notes import read_objects
    from holdfast.formats.transcript import TURN_BYTES

    turns = (row for _, row in read_objects(call["file"], max_line_bytes(TURN_BYTES), _REST_NOTE))
    logged = call.memory.log(turns, **call.pick("session", "client", "scope", "redact"))
    return call.answer(logged, _print_logged)


def import_history(call: Invocation) -> int:
    """`holdfast import-history`."""
    options = call.pick("client", "scope")
    logged = [session for path in call["path"] for session in call.memory.import_history(path, **options)]
    return call.answer(logged, _print_imported)


def expand(call: Invocation) -> int:
    """`holdfast expand`."""
    turns = call.memory.expand(call["turn"], **call.pick("before", "after", "session"))
    return call.answer(turns, lambda output, turns: _print_turns(output, turns, call["turn"]))


def _print_logged(output: Output, logged: Logged) -> None:
    output.print_line(f"{_format_counts([logged])} in {join_lines(logged.path)}")


def _print_imported(output: Output, logged: list[Logged]) -> None:
    if not logged:
        output.print_empty("No transcripts found.")
        return
    rows = [(session.session, session.client, f"{session.added:,}", f"{session.known:,}", session.path) for session in logged]
    output.print_table(("SESSION", "CLIENT", "ADDED", "KNOWN", "PATH"), rows, ("bold", "cyan", "", "dim", "dim"))
    paths = list(dict.fromkeys([session.path for session in logged]))
    output.print_line(f"{_format_counts(logged)} in {format_count(len(paths), 'session')}")
    scopes = [path.partition("/transcripts/")[0] for path in paths]
    for scope in dict.fromkeys(scopes) if len(set(scopes)) > 1 else ():
        output.print_line(f"  {format_count(scopes.count(scope), 'session')} in {join_lines(scope)}")
    broken = sum([session.broken for session in logged])
    if broken:
        output.print_message(f"skipped {format_count(broken, 'line')} that could not be read", "yellow")


def _format_counts(logged: list[Logged]) -> str:
    added, known = sum([session.added for session in logged]), sum([session.known for session in logged])
    redacted, purged = sum([session.redacted for session in logged]), sum([session.purged for session in logged])
    without_secret = f" (secrets were removed from {redacted:,})" if redacted else ""
    without_purged = f", {purged:,} left out because they were purged" if purged else ""
    return f"{format_count(added, 'turn')} added{without_secret}, {known:,} known{without_purged}"


def _print_turns(output: Output, turns: list[Turn], wanted: str) -> None:
    """Print a conversation, with a mark at the turn that was asked for by its id or citation."""
    if not turns:
        output.print_empty("No turns found.")
        return
    first, last = turns[0], turns[-1]
    citation = f"{first.citation.rpartition('-')[0]}-{last.citation.rpartition('-')[2]}"
    session = output.style(join_lines(f"session {first.session}"), "bold")
    output.print_line(f"{session}  {output.style(join_lines(citation), 'cyan')}")
    for turn in turns:
        mark = "> " if wanted in (turn.id, turn.citation) else "  "
        speaker = output.style(join_lines(turn.spoken_by), "bold")
        details = "  ".join([*([join_lines(turn.time)] if turn.time else []), *describe_hidden(turn.hidden)])
        output.print_line()
        output.print_line(f"{mark}{speaker}  {output.style(details, 'dim')}".rstrip())
        output.print_indented(turn.text)
