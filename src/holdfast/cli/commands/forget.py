"""forget, restore, purge, receipts, clear."""

from __future__ import annotations

from holdfast.cli.output import one_line
from holdfast.cli.runner import confirm, must_ask
from holdfast.errors import NotFound, Purged, Refused, Trouble, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.models import Forgotten, Logged, Note, Receipt

_TEXT_BYTES = 1024 * 1024  # of a text to purge


def forget(call: Invocation) -> int:
    if call["source"] is not None:
        from holdfast.cli.commands.review import forget_source

        return forget_source(call)
    option = ""
    if not call["key"] and call["session"]:
        forgotten, option = call.memory.forget_session(call["session"], client=call["client"]), "--session "
    else:
        forgotten = call.memory.forget(_key(call), scope=call["scope"])
    return call.answer(forgotten, lambda screen, one: _tell_forgotten(screen, one, option), 0 if forgotten.deleted else 1)


def _key(call: Invocation) -> str:
    if not call["key"]:
        raise UsageError("which note?", "Give its key, or --session ID for a transcript")
    return str(call["key"])


def restore(call: Invocation) -> int:
    if not call["key"] and call["session"]:
        return call.answer(call.memory.restore_session(call["session"], client=call["client"]), _tell_session)
    return call.answer(call.memory.restore(_key(call), scope=call["scope"], under=call["as"]), _tell_restored)


def purge(call: Invocation) -> int:
    from holdfast.config import runs_in_agent

    if runs_in_agent():
        raise Refused("only a person may purge", "Run it in a terminal of your own; `holdfast forget` can be undone")
    if call["text"] is not None and (call["key"] or call["session"]):
        raise UsageError("what should be purged?", "Give a note's key, --session ID, or --text -: one of them")
    if call["key"]:
        if must_ask(call) and _is_there(call):
            confirm(call, f"Purge {call['key']!r} for good, with its whole history?")
        receipt = call.memory.purge(call["key"], scope=call["scope"], transcripts=bool(call["transcripts"]))
    elif call["text"] is not None:
        if call["text"] != "-":
            raise UsageError("a text to purge is read from stdin", "Say --text - and pipe it in: no shell should remember it")
        if must_ask(call):
            raise Refused("not without being sure: purge a text for good, wherever it stands?", "Say --yes")
        receipt = call.memory.purge(text=call.text("text", _TEXT_BYTES, "a text to purge"), files=bool(call["files"]))
    elif call["session"]:
        if must_ask(call):
            confirm(call, f"Purge the whole transcript of session {call['session']!r} for good?")
        receipt = call.memory.purge(session=call["session"], client=call["client"])
    else:
        raise UsageError("what should be purged?", "Give a note's key, --session ID, or --text -")
    return call.answer(receipt, _tell_receipt, 4 if receipt.state == "pending" else 0 if receipt.deleted else 1)


def receipts(call: Invocation) -> int:
    found = call.memory.receipts(call["id"])
    return call.answer(found[0], _tell_receipt) if call["id"] and found else call.answer(found, _tell_receipts)


def clear(call: Invocation) -> int:
    scope = call["scope"]
    if not scope:
        raise UsageError("which scope should be cleared?", "Say it with --scope")
    if must_ask(call):
        count = len(call.memory.list(scope=scope))  # refuses a scope that is none before anybody is asked
        confirm(call, f"Forget every note of the scope {scope} ({count:,})?")
    forgotten = call.memory.clear(scope)
    cleared = {"scope": scope, "forgotten": int(forgotten), "beyond_reach": list(forgotten.beyond_reach)}
    return call.answer(cleared, _tell_cleared)


def _is_there(call: Invocation) -> bool:
    """Whether there is anything to be sure about. A key or a scope that means nothing is refused before anybody is asked."""
    key, scope = call["key"], call["scope"]
    if any(one.key == key for one in call.memory.trash(scope=scope)):
        return True  # not read: that would bring an archived note back
    try:
        call.memory.get(key, scope=scope)
    except NotFound:
        return False
    except (Trouble, Purged):
        return True
    return True


def _tell_forgotten(screen: Output, forgotten: Forgotten, option: str) -> None:
    if not forgotten.deleted:
        screen.say(f"there is no {'session' if option else 'note'} {forgotten.key}; nothing was forgotten")
        return
    screen.say(f"{screen.paint('forgotten', 'yellow')} {screen.paint(forgotten.key, 'bold')} in {forgotten.scope}")
    until = (forgotten.restorable_until or "")[:10]
    screen.aside(f"until {until}, `holdfast restore {option}{forgotten.key}` brings it back")
    _tell_beyond_reach(screen, forgotten.beyond_reach)


def _tell_beyond_reach(screen: Output, places: Iterable[str]) -> None:
    for one in places:
        screen.aside(f"it may still stand in {one}", "yellow")


def _tell_restored(screen: Output, note: Note) -> None:
    screen.say(f"{screen.paint('restored', 'green')} {screen.paint(note.key, 'bold')} in {note.scope}")
    if note.quarantined:
        screen.aside(f"in quarantine, and told to nobody before a person approves it: `holdfast review --approve {note.key}`")


def _tell_session(screen: Output, logged: Logged) -> None:
    screen.say(f"{screen.paint('restored', 'green')} {one_line(logged.path)}, {logged.added} turns")


def _tell_receipt(screen: Output, receipt: Receipt) -> None:
    if not receipt.deleted and not receipt.id:
        what = f"there is no note {receipt.key}" if receipt.key else "nothing was found"
        screen.say(f"{what}; nothing was purged")
        _tell_beyond_reach(screen, receipt.beyond_reach)
        return
    pending = receipt.state not in ("done", "damaged")
    state = screen.paint("not yet purged" if pending else "purged", "yellow" if pending else "red")
    screen.say(f"{state} {screen.paint(one_line(receipt.what or receipt.key), 'bold')} at {receipt.time}")
    removed = [*receipt.removed, f"{receipt.index_rows} index rows", f"{receipt.usage_rows} usage rows"]
    removed += [f"{receipt.turns} turns"] if receipt.turns else []
    parts = (
        ("left to do", receipt.pending), ("removed", removed), ("checked", receipt.checks),
        ("also said by", receipt.also_said_by), ("told before", receipt.told), ("out of reach", receipt.beyond_reach),
        ("taken back", [receipt.taken_back] if receipt.taken_back else ()),
    )  # fmt: skip
    for title, lines in parts:
        if lines:
            screen.say(screen.paint(f"  {title}", "dim"))
        for line in lines:
            screen.say(f"    {one_line(line)}")
    screen.aside(f"`holdfast receipts {receipt.id}` shows this again; not a word of what was purged is in it")
    if pending:
        screen.aside("`holdfast doctor` finishes it once nothing stands in its way", "yellow")


def _tell_receipts(screen: Output, receipts: list[Receipt]) -> None:
    if not receipts:
        screen.nothing("nothing was ever purged here")
        return
    rows = [(one.id, one.time, one.state, f"{len(one.removed)}", one.what) for one in receipts]
    screen.table(("RECEIPT", "TIME", "STATE", "REMOVED", "WHAT"), rows, ("bold", "dim", "", "", ""))


def _tell_cleared(screen: Output, cleared: dict[str, object]) -> None:
    from holdfast.cli.output import plural

    count = cleared["forgotten"]
    assert isinstance(count, int)
    screen.say(f"forgot {plural(count, 'note')} of the scope {cleared['scope']}")
    if count:
        screen.aside("`holdfast list --trash` shows what can be restored")
    assert isinstance(cleared["beyond_reach"], list)
    _tell_beyond_reach(screen, cleared["beyond_reach"])
