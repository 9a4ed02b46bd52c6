"""forget, restore, purge, clear."""

from __future__ import annotations

from holdfast.doors.cli.call import confirm, must_ask
from holdfast.errors import NotFound, Trouble, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.doors.cli.call import Call
    from holdfast.doors.cli.screen import Screen
    from holdfast.note import Forgotten, Note, Receipt


def forget(call: Call) -> int:
    forgotten = call.memory.forget(call["key"], scope=call["scope"])
    return call.answer(forgotten, _tell_forgotten, 0 if forgotten.deleted else 1)


def restore(call: Call) -> int:
    return call.answer(call.memory.restore(call["key"], scope=call["scope"], under=call["as"]), _tell_restored)


def purge(call: Call) -> int:
    if must_ask(call) and _is_there(call):
        confirm(call, f"Purge {call['key']!r} for good, with its whole history?")
    receipt = call.memory.purge(call["key"], scope=call["scope"])
    return call.answer(receipt, _tell_receipt, 0 if receipt.deleted else 1)


def clear(call: Call) -> int:
    scope = call["scope"]
    if not scope:
        raise UsageError("which scope should be cleared?", "Say it with --scope")
    if must_ask(call):
        count = len(call.memory.list(scope=scope))  # refuses a scope that is none before anybody is asked
        confirm(call, f"Forget every note of the scope {scope} ({count:,})?")
    forgotten = call.memory.clear(scope)
    cleared = {"scope": scope, "forgotten": int(forgotten), "beyond_reach": list(forgotten.beyond_reach)}
    return call.answer(cleared, _tell_cleared)


def _is_there(call: Call) -> bool:
    """Whether there is anything to be sure about. A key or a scope that means nothing is refused before anybody is asked."""
    key, scope = call["key"], call["scope"]
    try:
        call.memory.get(key, scope=scope)
    except NotFound:
        return any(one.key == key for one in call.memory.trash(scope=scope))
    except Trouble:
        return True
    return True


def _tell_forgotten(screen: Screen, forgotten: Forgotten) -> None:
    if not forgotten.deleted:
        screen.say(f"there is no note {forgotten.key}; nothing was forgotten")
        return
    screen.say(f"{screen.paint('forgotten', 'yellow')} {screen.paint(forgotten.key, 'bold')} in {forgotten.scope}")
    screen.aside(f"until {(forgotten.restorable_until or '')[:10]}, `holdfast restore {forgotten.key}` brings it back")
    _tell_beyond_reach(screen, forgotten.beyond_reach)


def _tell_beyond_reach(screen: Screen, places: Iterable[str]) -> None:
    for one in places:
        screen.aside(f"it may still stand in {one}", "yellow")


def _tell_restored(screen: Screen, note: Note) -> None:
    screen.say(f"{screen.paint('restored', 'green')} {screen.paint(note.key, 'bold')} in {note.scope}")


def _tell_receipt(screen: Screen, receipt: Receipt) -> None:
    if not receipt.deleted:
        screen.say(f"there is no note {receipt.key}; nothing was purged")
        return
    key = screen.paint(receipt.key, "bold")
    screen.say(f"{screen.paint('purged', 'red')} {key} in {receipt.scope} at {receipt.time}")
    removed = [*receipt.removed, f"{receipt.index_rows} index rows", f"{receipt.usage_rows} usage rows"]
    parts = (("removed", removed), ("checked", receipt.checks), ("out of reach", receipt.beyond_reach))
    for title, lines in parts:
        screen.say(screen.paint(f"  {title}", "dim"))
        for line in lines:
            screen.say(f"    {line}")


def _tell_cleared(screen: Screen, cleared: dict[str, object]) -> None:
    from holdfast.doors.cli.screen import plural

    count = cleared["forgotten"]
    assert isinstance(count, int)
    screen.say(f"forgot {plural(count, 'note')} of the scope {cleared['scope']}")
    if count:
        screen.aside("`holdfast list --trash` shows what can be restored")
    assert isinstance(cleared["beyond_reach"], list)
    _tell_beyond_reach(screen, cleared["beyond_reach"])
