"""done: which work agents have recorded, such as reviews of pull requests."""

from __future__ import annotations

from holdfast.base.dates import timestamp
from holdfast.cli.commands.audit import ledger_of
from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation

_MOST = 1000


def list_(call: Invocation) -> int:
    limit = call["limit"] if call["limit"] is not None else 50
    if not 1 <= limit <= _MOST:
        raise UsageError(f"--limit is 1 to {_MOST}, not {limit}", "Ask for the next page with --cursor")
    ledger = ledger_of(call)
    try:
        found, following = ledger.done.list_page(
            call["agent"], call["kind"], call["subject"], limit=limit, cursor=call["cursor"]
        )
    finally:
        ledger.close()
    rows = [{"agent": one.agent, "kind": one.kind, "subject": one.subject, "time": timestamp(one.time)} for one in found]
    return call.answer({"done": rows, "next": following}, _tell_list)


def exists(call: Invocation) -> int:
    """Exit 0 if it was done, else 1."""
    ledger = ledger_of(call)
    try:
        found = ledger.done.exists(call["agent"], call["kind"], call["subject"])
    finally:
        ledger.close()
    return call.answer({"exists": found}, _tell_exists, 0 if found else 1)


def _tell_list(screen: Output, told: dict[str, Any]) -> None:
    if not told["done"]:
        screen.nothing("no work recorded, or none of that kind")
        return
    rows = [(one["time"], one["agent"], one["kind"], one["subject"]) for one in told["done"]]
    screen.table(("TIME", "AGENT", "KIND", "SUBJECT"), rows, ("dim", "bold", "", ""))
    if told["next"]:
        screen.aside(f"more: --cursor {told['next']}")


def _tell_exists(screen: Output, told: dict[str, Any]) -> None:
    screen.say("yes" if told["exists"] else "no")
