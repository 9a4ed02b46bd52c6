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
        raise Refused("only a person may purge", "Run it in a terminal of your own; `holdfast forget` can be undone")
    if call["text"] is not None and (call["key"] or call["session"]):
        raise UsageError("what should be purged?", "Give a note's key, --session ID, or --text -: one of them")
    if call["key"]:
        if needs_confirmation(call) and _note_exists(call):
            confirm(call, f"Purge {call['key']!r} for good, with its whole history?")
        receipt = call.memory.purge(call["key"], scope=call["scope"], transcripts=bool(call["transcripts"]))
    elif call["text"] is not None:
        if call["text"] != "-":
            raise UsageError("a text to purge is read from stdin", "Say --text - and pipe it in: no shell should remember it")
        if needs_confirmation(call):
            raise Refused("not without being sure: purge a text for good, wherever it stands?", "Say --yes")
        text = call.read_text("text", _MAX_TEXT_BYTES, "a text to purge")
        receipt = call.memory.purge(text=text, files=bool(call["files"]))
    elif call["session"]:
        if needs_confirmation(call):
            confirm(call, f"Purge the whole transcript of session {call['session']!r} for good?")
        receipt = call.memory.purge(session=call["session"], client=call["client"])
    else:
        raise UsageError("what should be purged?", "Give a note's key, --session ID, or --text -")
    return call.answer(receipt, _print_receipt, 4 if receipt.state == "pending" else 0 if receipt.deleted else 1)


def receipts(call: Invocation) -> int:
    """`holdfast receipts`."""
    found = call.memory.receipts(call["id"])
    return call.answer(found[0], _print_receipt) if call["id"] and found else call.answer(found, _print_receipts)


def clear(call: Invocation) -> int:
    """`holdfast clear`."""
    scope = call["scope"]
    if not scope:
        raise UsageError("which scope should be cleared?", "Say it with --scope")
    if needs_confirmation(call):
        count = len(call.memory.list(scope=scope))  # rejects an unknown scope before the question
        confirm(call, f"Forget every note of the scope {scope} ({count:,})?")
    forgotten = call.memory.clear(scope)
    report = {"scope": scope, "forgotten": int(forgotten), "beyond_reach": list(forgotten.beyond_reach)}
    return call.answer(report, _print_cleared)


def _require_key(call: Invocation) -> str:
    if not call["key"]:
        raise UsageError("which note?", "Give its key, or --session ID for a transcript")
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
        output.print_line(f"there is no {'session' if option else 'note'} {forgotten.key}; nothing was forgotten")
        return
    output.print_line(f"{output.style('forgotten', 'yellow')} {output.style(forgotten.key, 'bold')} in {forgotten.scope}")
    until = (forgotten.restorable_until or "")[:10]
    output.print_message(f"until {until}, `holdfast restore {option}{forgotten.key}` brings it back")
    _print_beyond_reach(output, forgotten.beyond_reach)


def _print_beyond_reach(output: Output, places: Iterable[str]) -> None:
    for place in places:
        output.print_message(f"it may still stand in {place}", "yellow")


def _print_restored(output: Output, note: Note) -> None:
    output.print_line(f"{output.style('restored', 'green')} {output.style(note.key, 'bold')} in {note.scope}")
    if note.quarantined:
        approve = f"`holdfast review --approve {note.key}`"
        output.print_message(f"in quarantine, and told to nobody before a person approves it: {approve}")


def _print_restored_session(output: Output, logged: Logged) -> None:
    output.print_line(f"{output.style('restored', 'green')} {join_lines(logged.path)}, {logged.added} turns")


def _print_receipt(output: Output, receipt: Receipt) -> None:
    if not receipt.deleted and not receipt.id:
        reason = f"there is no note {receipt.key}" if receipt.key else "nothing was found"
        output.print_line(f"{reason}; nothing was purged")
        _print_beyond_reach(output, receipt.beyond_reach)
        return
    pending = receipt.state not in ("done", "damaged")
    state = output.style("not yet purged" if pending else "purged", "yellow" if pending else "red")
    output.print_line(f"{state} {output.style(join_lines(receipt.what or receipt.key), 'bold')} at {receipt.time}")
    removed = [*receipt.removed, f"{receipt.index_rows} index rows", f"{receipt.usage_rows} usage rows"]
    removed += [f"{receipt.turns} turns"] if receipt.turns else []
    sections = (
        ("left to do", receipt.pending), ("removed", removed), ("checked", receipt.checks),
        ("also said by", receipt.also_said_by), ("told before", receipt.told), ("out of reach", receipt.beyond_reach),
        ("taken back", [receipt.taken_back] if receipt.taken_back else ()),
    )  # fmt: skip
    for title, lines in sections:
        if lines:
            output.print_line(output.style(f"  {title}", "dim"))
        for line in lines:
            output.print_line(f"    {join_lines(line)}")
    output.print_message(f"`holdfast receipts {receipt.id}` shows this again; not a word of what was purged is in it")
    if pending:
        output.print_message("`holdfast doctor` finishes it once nothing stands in its way", "yellow")


def _print_receipts(output: Output, receipts: list[Receipt]) -> None:
    if not receipts:
        output.print_empty("nothing was ever purged here")
        return
    rows = [(receipt.id, receipt.time, receipt.state, f"{len(receipt.removed)}", receipt.what) for receipt in receipts]
    output.print_table(("RECEIPT", "TIME", "STATE", "REMOVED", "WHAT"), rows, ("bold", "dim", "", "", ""))


def _print_cleared(output: Output, report: dict[str, Any]) -> None:
    count: int = report["forgotten"]
    output.print_line(f"forgot {format_count(count, 'note')} of the scope {report['scope']}")
    if count:
        output.print_message("`holdfast list --trash` shows what can be restored")
    _print_beyond_reach(output, report["beyond_reach"])


# --- forget --source --------------------------------------------------------------------------------------------------


def _forget_source(call: Invocation) -> int:
    """`holdfast forget --source`: forget or revert every note that came from a source; exit 1 if there is none."""
    if call["key"]:
        raise UsageError("--source and a key contradict each other", "Give one of them")
    options = {"revert": bool(call["revert"]), "everywhere": bool(call["everywhere"])}
    if not call["dry_run"] and needs_confirmation(call):
        preview = call.memory.forget_source(call["source"], dry_run=True, **options)
        if (preview.forgotten or preview.reverted) and not preview.refused:
            if not call.output.json:
                _print_swept(call.output, preview)
            count = format_count(len(preview.forgotten) + len(preview.reverted), "note")
            confirm(call, f"Forget or take back what came from {call['source']} ({count})?")
    swept = call.memory.forget_source(call["source"], dry_run=bool(call["dry_run"]), **options)
    return call.answer(swept, _print_swept, 0 if swept.forgotten or swept.reverted or swept.older else 1)


def _print_swept(output: Output, swept: Swept) -> None:
    prefix = "not " if swept.refused else "would be " if swept.dry_run else ""
    sections = (
        (f"{prefix}forgotten", swept.forgotten), (f"{prefix}taken back", swept.reverted), ("only before", swept.older),
        ("put away", swept.binned),
    )  # fmt: skip
    if swept.refused:
        output.print_message(f"nothing would be done: {swept.refused}", "yellow")
    rows = [(title, *_format_touched(note)) for title, notes in sections for note in notes]
    if rows:
        output.print_table(("", "KEY", "SCOPE", "BY WAY OF", "CLEAN UNTIL"), rows, ("bold", "bold", "cyan", "", "dim"))
    else:
        output.print_empty(f"nothing here came from {swept.source}")
    if any(note.clean for note in swept.forgotten):
        output.print_message("--revert stores the last text that did not come from it again, instead of forgetting the note")
    for note in swept.binned:
        purge = f"`holdfast purge {note.key}` removes it for good"
        output.print_message(f"{join_lines(note.path)} can be restored: {purge}", "yellow")
    if swept.restorable_until:
        output.print_message(f"until {swept.restorable_until[:10]}, `holdfast restore KEY` brings one back, in quarantine")
    for path in swept.transcripts:
        session = path.rpartition("/")[2].removesuffix(".jsonl")
        purge = f"`holdfast purge --session {session}` removes it"
        output.print_message(f"what was said stands in {path}: {purge}", "yellow")
    _print_beyond_reach(output, swept.beyond_reach)


def _format_touched(note: Touched) -> tuple[str, str, str, str]:
    return note.key, str(note.scope), note.via, note.clean or "never"
