"""audit: what was decided, whether it is what was written, and all of it for keeping elsewhere."""

from __future__ import annotations

from holdfast.base import dates
from holdfast.cli.output import one_line, plural
from holdfast.context.ledgers import open_ledger
from holdfast.errors import NotFound, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.config import Config
    from holdfast.ledger.audit_verify import Verdict
    from holdfast.ledger.interface import Ledger

_MOST = 1000


def list_(call: Invocation) -> int:
    limit = call["limit"] if call["limit"] is not None else 50
    if not 1 <= limit <= _MOST:
        raise UsageError(f"--limit is 1 to {_MOST}, not {limit}", "`holdfast audit export` gives all of them")
    if call["outcome"] not in (None, "allowed", "denied"):
        raise UsageError(f"there is no outcome {call['outcome']!r}", "One of: allowed, denied")
    wanted = call.given("before", "agent", "action", "outcome")
    wanted |= {name: dates.parse_moment(call[name], f"--{name}") for name in ("since", "until") if call[name]}
    ledger = ledger_of(call)
    try:
        entries, cursor = ledger.audit.list(limit=limit, **wanted)
    finally:
        ledger.close()
    return call.answer({"entries": entries, "next": cursor}, _tell_entries)


def verify(call: Invocation) -> int:
    from holdfast.ledger.audit import parse_mark
    from holdfast.ledger.audit_verify import verify as verified

    known = parse_mark(call["known"]) if call["known"] else None
    if call["known"] and known is None:
        raise UsageError("--known is not a head of an audit", "Give one as `holdfast audit verify` prints it: 12:ab34...")
    ledger = ledger_of(call)
    try:
        verdict = verified(ledger.audit, known)
    finally:
        ledger.close()
    return call.answer(verdict, _tell_verdict, 0 if verdict.ok else 1)


def export(call: Invocation) -> int:
    """A line each, as they come; with --json all of them in one document."""
    ledger = ledger_of(call)
    try:
        if call.screen.json:
            call.screen.document([entry.as_dict() for entry in ledger.audit.iterate_entries()])
            return 0
        import json

        for entry in ledger.audit.iterate_entries():
            call.screen.say(json.dumps(entry.as_dict(), separators=(",", ":")))
    finally:
        ledger.close()
    return 0


def ledger_of(call: Invocation) -> Ledger:
    """Open the ledger of the home or store that is meant; the caller closes it."""
    from holdfast.cli.remote import say_where

    settings = call.settings()
    say_where(call, settings)
    ledger = open_ledger(settings)
    if settings.store and settings.tenant != "default":
        _must_be_there(settings, ledger)
    return ledger


def _must_be_there(settings: Config, ledger: Ledger) -> None:
    """A tenant that has nothing at all is one that was never there: nobody is to hear that its audit is sound."""
    from holdfast.postgres import make_settings
    from holdfast.postgres.store import PostgresStore

    if ledger.audit.read_last() is None and not ledger.agents.list():
        store = make_settings(settings, None, all_agents=True)
        if not PostgresStore(store, settings.home, settings.lock_seconds).list_scopes():
            ledger.close()
            raise NotFound(f"there is no tenant {settings.tenant!r} in the store", "Correct --tenant (HOLDFAST_TENANT)")


def _tell_entries(screen: Output, told: dict[str, Any]) -> None:
    entries = told["entries"]
    if not entries:
        screen.nothing("nothing was decided yet, or nothing of that kind")
        return
    rows = [(str(one.number), one.time, one.agent, one.action, one.outcome, _about(one.metadata)) for one in entries]
    screen.table(("ROW", "TIME", "AGENT", "ACTION", "OUTCOME", "ABOUT"), rows, ("dim", "dim", "bold", "", "", "dim"))
    if told["next"]:
        screen.aside(f"more: --before {told['next']}")


def _about(metadata: dict[str, Any]) -> str:
    return ", ".join([f"{name} {value}" for name, value in metadata.items()])


def _tell_verdict(screen: Output, verdict: Verdict) -> None:
    if verdict.ok:
        screen.say(f"{screen.paint('sound', 'green')}: {plural(verdict.rows, 'row')}, each as it was written")
    else:
        screen.say(f"{screen.paint('broken', 'red')} in {plural(verdict.broken, 'place')} of {plural(verdict.rows, 'row')}")
        for problem in verdict.problems:
            screen.say(f"  {one_line(problem)}")
    if verdict.head:
        screen.say(f"head {verdict.head}")
    if verdict.head and verdict.ok:
        screen.aside("keep this line elsewhere and give it to --known later: then nothing before it changes unnoticed")
