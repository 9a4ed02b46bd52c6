"""`forget`, `restore`, `purge`, `receipts` and `clear`."""

from __future__ import annotations

from holdfast.cli.output import format_count, join_lines
from holdfast.cli.runner import confirm, needs_confirmation
from holdfast.errors import NotFound, Purged, Refused, Trouble, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.models import Forgotten, Logged, Note, Receipt
    from holdfast.verbs.forget_source import Swept, Touched

_MAX_TEXT_BYTES = 1024 * 1024  # of a text to purge


def forget(call: Invocation) -> int:
    """`holdfast forget`; exit 1 if there was nothing to forget."""
    if call["source"] is not None:
        return _forget_source(call)
    if not call["key"] and call["session"]:
        option, forgotten = "--session ", call.memory.forget_session(call["session"], client=call["client"])
    else:
        option, forgotten = "", call.memory.forget(_require_key(call), scope=call["scope"])
    code = 0 if forgotten.deleted else 1
    return call.answer(forgotten, lambda output, result: _print_forgotten(output, result, option), code)


def restore(call: Invocation) -> int:
    """`holdfast restore`."""
    if not call["key"] and call["session"]:
        return call.answer(call.memory.restore_session(call["session"], client=call["client"]), _print_restored_session)
    return call.answer(call.memory.restore(_require_key(call), scope=call["scope"], under=call["as"]), _print_restored)


def purge(call: Invocation) -> int:
    """`holdfast purge`; exit 4 if the purge is not finished yet, 1 if there was nothing to purge."""
    from holdfast.config import runs_in_agent

    if runs_in_agent():
        fix = "Run it yourself in a terminal outside the agent, or use `holdfast forget`, which can be undone"
        raise Refused("agents cannot purge from the command line", fix)
    if call["text"] is not None and (call["key"] or call["session"]):
        raise UsageError("KEY, --session and --text cannot be combined", "Give exactly one of them")
    if call["key"]:
        if needs_confirmation(call) and _note_exists(call):
            confirm(call, f"Permanently delete {call['key']!r} with its whole history?")
        receipt = call.memory.purge(call["key"], scope=call["scope"], transcripts=bool(call["transcripts"]))
    elif call["text"] is not None:
        if call["text"] != "-":
            fix = "Pipe the text to `holdfast purge --text -`, so that it is not in the shell history"
            raise UsageError("--text only accepts - (stdin)", fix)
        if needs_confirmation(call):
            raise Refused("confirmation needed: permanently delete a text everywhere?", "Add --yes to confirm")
        text = call.read_text("text", _MAX_TEXT_BYTES, "a text to purge")
        receipt = call.memory.purge(text=text, files=bool(call["files"]))
    elif call["session"]:
        if needs_confirmation(call):
            confirm(call, f"Permanently delete the whole transcript of session {call['session']!r}?")
        receipt = call.memory.purge(session=call["session"], client=call["client"])
    else:
        raise UsageError("no note, session or text to purge", "Give exactly one of KEY, --session ID and --text -")
    return call.answer(receipt, _print_receipt, 4 if receipt.state == "pending" else 0 if receipt.deleted else 1)


def receipts(call: Invocation) -> int:
    """`holdfast receipts`."""
    found = call.memory.receipts(call["id"])
    return call.answer(found[0], _print_receipt) if call["id"] and found else call.answer(found, _print_receipts)


def clear(call: Invocation) -> int:
    """`holdfast clear`."""
    scope = call["scope"]
    if not scope:
        raise UsageError("no scope was named", "Name the scope to clear with --scope")
    if needs_confirmation(call):
        count = len(call.memory.list(scope=scope))  # rejects an unknown scope before the question
        confirm(call, f"Forget every note of the scope {scope} ({count:,})?")
    forgotten = call.memory.clear(scope)
    report = {"scope": scope, "forgotten": int(forgotten), "beyond_reach": list(forgotten.beyond_reach)}
    return call.answer(report, _print_cleared)


def _require_key(call: Invocation) -> str:
    if not call["key"]:
        raise UsageError("no note was named", "Give KEY, or --session ID for a transcript")
    return str(call["key"])


def _note_exists(call: Invocation) -> bool:
    """Return whether there is a note to purge, readable or not; reject an invalid key or scope before the question."""
    key, scope = call["key"], call["scope"]
    if any(note.key == key for note in call.memory.trash(scope=scope)):
        return True  # without reading it: that would restore an archived note
    try:
        call.memory.get(key, scope=scope)
    except NotFound:
        return False
    except (Trouble, Purged):
        return True
    return True


def _print_forgotten(output: Output, forgotten: Forgotten, option: str) -> None:
    if not forgotten.deleted:
        output.print_line(f"no {'session' if option else 'note'} {forgotten.key}; nothing was forgotten")
        return
    output.print_line(f"{output.style('forgotten', 'yellow')} {output.style(forgotten.key, 'bold')} in {forgotten.scope}")
    until = (forgotten.restorable_until or "")[:10]
    output.print_message(f"restore it until {until} with `holdfast restore {option}{forgotten.key}`")
    _print_beyond_reach(output, forgotten.beyond_reach)


def _print_beyond_reach(output: Output, places: Iterable[str]) -> None:
    for place in places:
        output.print_message(f"the text may remain in {place}", "yellow")


def _print_restored(output: Output, note: Note) -> None:
    output.print_line(f"{output.style('restored', 'green')} {output.style(note.key, 'bold')} in {note.scope}")
    if note.quarantined:
        approve = f"`holdfast review --approve {note.key}`"
        output.print_message(f"in quarantine: agents are not shown it until you approve it with {approve}")


def _print_restored_session(output: Output, logged: Logged) -> None:
    output.print_line(f"{output.style('restored', 'green')} {join_lines(logged.path)}, {logged.added} turns")


def _print_receipt(output: Output, receipt: Receipt) -> None:
    if not receipt.deleted and not receipt.id:
        reason = f"no note {receipt.key}" if receipt.key else "nothing was found"
        output.print_line(f"{reason}; nothing was purged")
        _print_beyond_reach(output, receipt.beyond_reach)
        return
    pending = receipt.state not in ("done", "damaged")
    state = output.style("not yet purged" if pending else "purged", "yellow" if pending else "red")
    output.print_line(f"{state} {output.style(join_lines(receipt.what or receipt.key), 'bold')} at {receipt.time}")
    removed = [*receipt.removed, f"{receipt.index_rows} index rows", f"{receipt.usage_rows} usage rows"]
    removed += [f"{receipt.turns} turns"] if receipt.turns else []
    sections = (
        ("to do", receipt.pending), ("removed", removed), ("checked", receipt.checks),
        ("also contained in", receipt.also_said_by), ("told before", receipt.told), ("not reached", receipt.beyond_reach),
        ("taken back", [receipt.taken_back] if receipt.taken_back else ()),
    )  # fmt: skip
    for title, lines in sections:
        if lines:
            output.print_line(output.style(f"  {title}", "dim"))
        for line in lines:
            output.print_line(f"    {join_lines(line)}")
    output.print_message(f"show this receipt again with `holdfast receipts {receipt.id}`; it contains no purged text")
    if pending:
        output.print_message("run `holdfast doctor` to finish the purge once nothing blocks it", "yellow")


def _print_receipts(output: Output, receipts: list[Receipt]) -> None:
    if not receipts:
        output.print_empty("No purges in this home.")
        return
    rows = [(receipt.id, receipt.time, receipt.state, f"{len(receipt.removed)}", receipt.what) for receipt in receipts]
    output.print_table(("RECEIPT", "TIME", "STATE", "REMOVED", "WHAT"), rows, ("bold", "dim", "", "", ""))


def _print_cleared(output: Output, report: dict[str, Any]) -> None:
    count: int = report["forgotten"]
    output.print_line(f"forgot {format_count(count, 'note')} of the scope {report['scope']}")
    if count:
        output.print_message("list what can be restored with `holdfast list --trash`")
    _print_beyond_reach(output, report["beyond_reach"])


# --- forget --source --------------------------------------------------------------------------------------------------


def _forget_source(call: Invocation) -> int:
    """`holdfast forget --source`: forget or revert every note that came from a source; exit 1 if there is none."""
    if call["key"]:
        raise UsageError("--source and KEY cannot be combined", "Give one of them")
    options = {"revert": bool(call["revert"]), "everywhere": bool(call["everywhere"])}
    if not call["dry_run"] and needs_confirmation(call):
        preview = call.memory.forget_source(call["source"], dry_run=True, **options)
        if (preview.forgotten or preview.reverted) and not preview.refused:
            if not call.output.json:
                _print_swept(call.output, preview)
            count = format_count(len(preview.forgotten) + len(preview.reverted), "note")
            confirm(call, f"Forget or revert what came from {call['source']} ({count})?")
    swept = call.memory.forget_source(call["source"], dry_run=bool(call["dry_run"]), **options)
    return call.answer(swept, _print_swept, 0 if swept.forgotten or swept.reverted or swept.older else 1)


def _print_swept(output: Output, swept: Swept) -> None:
    prefix = "not " if swept.refused else "would be " if swept.dry_run else ""
    sections = (
        (f"{prefix}forgotten", swept.forgotten), (f"{prefix}taken back", swept.reverted), ("only before", swept.older),
        ("put away", swept.binned),
    )  # fmt: skip
    if swept.refused:
        output.print_message(f"nothing would change: {swept.refused}", "yellow")
    rows = [(title, *_format_touched(note)) for title, notes in sections for note in notes]
    if rows:
        output.print_table(("", "KEY", "SCOPE", "VIA", "CLEAN UNTIL"), rows, ("bold", "bold", "cyan", "", "dim"))
    else:
        output.print_empty(f"No notes came from {swept.source}")
    if any(note.clean for note in swept.forgotten):
        output.print_message("use --revert to restore the last text from another source instead of forgetting the note")
    for note in swept.binned:
        purge = f"delete it permanently with `holdfast purge {note.key}`"
        output.print_message(f"{join_lines(note.path)} can be restored: {purge}", "yellow")
    if swept.restorable_until:
        output.print_message(
            f"restore a note until {swept.restorable_until[:10]} with `holdfast restore KEY`; it comes back in quarantine"
        )
    for path in swept.transcripts:
        session = path.rpartition("/")[2].removesuffix(".jsonl")
        purge = f"delete it with `holdfast purge --session {session}`"
        output.print_message(f"the transcript {path} contains what was said: {purge}", "yellow")
    _print_beyond_reach(output, swept.beyond_reach)


def _format_touched(note: Touched) -> tuple[str, str, str, str]:
    return note.key, str(note.scope), note.via, note.clean or "never"
