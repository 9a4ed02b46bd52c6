"""`audit` and `done`: read the records of the ledger, which are the gateway's decisions and the work of agents."""

from __future__ import annotations

import os
from contextlib import closing

from holdfast.base import dates
from holdfast.base.dates import format_timestamp
from holdfast.cli.output import format_count, join_lines
from holdfast.context.ledgers import open_ledger
from holdfast.errors import NotFound, Refused, UsageError, from_os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.config import Config
    from holdfast.ledger.audit import AuditMark, ChainedEntry
    from holdfast.ledger.audit_checkpoint import Pruned
    from holdfast.ledger.audit_verify import Verdict
    from holdfast.ledger.interface import Ledger

_DEFAULT_LIMIT = 50
_MAX_LIMIT = 1000


def list_audit(call: Invocation) -> int:
    """`holdfast audit list`."""
    limit = _parse_limit(call, "Use `holdfast audit export` for all rows")
    if call["outcome"] not in (None, "allowed", "denied"):
        raise UsageError(f"unknown value for --outcome: {call['outcome']!r}", "Use one of: allowed, denied")
    filters = call.pick("before", "agent", "action", "outcome")
    filters |= _parse_period(call)
    with closing(_open_ledger(call)) as ledger:
        entries, cursor = ledger.audit.list(limit=limit, **filters)
    return call.answer({"entries": entries, "next": cursor}, _print_entries)


def verify_audit(call: Invocation) -> int:
    """`holdfast audit verify`; exit 1 if a row was changed, inserted or deleted."""
    from holdfast.ledger.audit import parse_mark
    from holdfast.ledger.audit_verify import verify

    known = parse_mark(call["known"]) if call["known"] else None
    if call["known"] and known is None:
        raise UsageError("--known is not an audit head", "Copy a head that `holdfast audit verify` printed, such as 12:ab34...")
    if call["file"]:
        verdict = _verify_file(call["file"], known)
    else:
        with closing(_open_ledger(call)) as ledger:
            verdict = verify(ledger.audit, known)
    return call.answer(verdict, _print_verdict, 0 if verdict.ok else 1)


def _verify_file(path: str, known: AuditMark | None) -> Verdict:
    """Verify an exported file; `-` is stdin."""
    from holdfast.cli.runner import open_stdin
    from holdfast.ledger.audit_verify import verify_lines

    if path == "-":
        return verify_lines(open_stdin(), known)
    try:
        with open(path, "rb") as file:
            return verify_lines(file, known)
    except OSError as error:
        raise from_os(error, f"cannot read {path}") from error


def export_audit(call: Invocation) -> int:
    """`holdfast audit export`: one line of JSON per row as it is read; with --json one document of all rows."""
    period = _parse_period(call)
    if call["format"] not in (None, "jsonl"):
        raise UsageError(f"unknown value for --format: {call['format']!r}", "Use jsonl, or leave out --format")
    with closing(_open_ledger(call)) as ledger:
        entries = ledger.audit.export(**period)
        if call["output"]:
            count = _write_entries(entries, call["output"])
            report = {"path": call["output"], "rows": count}
            return call.answer(report, lambda output, _: output.print_line(f"{format_count(count, 'row')} in {call['output']}"))
        if call.output.json:
            call.output.print_json([entry.as_dict() for entry in entries])
            return 0
        for entry in entries:
            call.output.print_line(_format_line(entry))
    return 0


def _write_entries(entries: Iterator[ChainedEntry], path: str) -> int:
    """Write the rows to a new file and return how many there are; a file that is there already is not changed."""
    count = 0
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(fd, "w", encoding="ascii") as file:
            for entry in entries:
                file.write(_format_line(entry) + "\n")
                count += 1
            file.flush()
            os.fsync(fd)
    except FileExistsError:
        raise UsageError(f"{path} exists already", "Choose another --output, or delete the file") from None
    except OSError as error:
        raise from_os(error, f"cannot write {path}") from error
    return count


def _format_line(entry: ChainedEntry) -> str:
    import json

    return json.dumps(entry.as_dict(), separators=(",", ":"))


def prune_audit(call: Invocation) -> int:
    """`holdfast audit prune`; ask first, because removed rows cannot be restored."""
    from holdfast.access import AccessGate
    from holdfast.cli.remote import report_local_home
    from holdfast.cli.runner import confirm
    from holdfast.config import runs_in_agent
    from holdfast.ledger.audit_checkpoint import check_before

    if not call["before"]:
        raise UsageError("no date was given", "Give the date with --before DATE")
    before = dates.parse_moment_milliseconds(call["before"], "--before")
    check_before(before)
    if runs_in_agent():
        raise Refused("agents cannot delete audit rows", "Run it yourself in a terminal outside the agent")
    if not call["yes"]:
        confirm(call, f"Permanently delete all audit rows before {before}?")
    settings = call.load_settings()
    report_local_home(call, settings)
    with closing(AccessGate(settings)) as gate:
        pruned = gate.prune_audit(before)
    return call.answer(pruned, _print_pruned)


def _parse_period(call: Invocation) -> dict[str, str]:
    """Return --since and --until as the audit compares them."""
    return {name: dates.parse_moment_milliseconds(call[name], f"--{name}") for name in ("since", "until") if call[name]}


def list_done(call: Invocation) -> int:
    """`holdfast done list`."""
    limit = _parse_limit(call, "Get further pages with --cursor")
    with closing(_open_ledger(call)) as ledger:
        records, cursor = ledger.done.list_page(
            call["agent"], call["kind"], call["subject"], limit=limit, cursor=call["cursor"]
        )
    rows = [
        {"agent": record.agent, "kind": record.kind, "subject": record.subject, "time": format_timestamp(record.time)}
        for record in records
    ]
    return call.answer({"done": rows, "next": cursor}, _print_done)


def check_done(call: Invocation) -> int:
    """`holdfast done exists`; exit 1 if there is no such record."""
    with closing(_open_ledger(call)) as ledger:
        exists = ledger.done.exists(call["agent"], call["kind"], call["subject"])
    return call.answer({"exists": exists}, _print_exists, 0 if exists else 1)


def _parse_limit(call: Invocation, fix: str) -> int:
    limit: int = call["limit"] if call["limit"] is not None else _DEFAULT_LIMIT
    if not 1 <= limit <= _MAX_LIMIT:
        raise UsageError(f"--limit must be 1 to {_MAX_LIMIT}, not {limit}", fix)
    return limit


def _open_ledger(call: Invocation) -> Ledger:
    """Open the ledger of the home or the store; the caller closes it."""
    from holdfast.cli.remote import report_local_home

    settings = call.load_settings()
    report_local_home(call, settings)
    ledger = open_ledger(settings)
    if settings.store and settings.tenant != "default":
        _check_tenant(settings, ledger)
    return ledger


def _check_tenant(settings: Config, ledger: Ledger) -> None:
    """Raise NotFound for a tenant without any data, which is a typo: its empty audit must not count as verified."""
    from holdfast.postgres import make_settings
    from holdfast.postgres.store import PostgresStore

    if ledger.audit.read_last() is None and not ledger.agents.list():
        store = make_settings(settings, None, all_agents=True)
        if not PostgresStore(store, settings.home, settings.lock_seconds).list_scopes():
            ledger.close()
            raise NotFound(f"the store has no tenant {settings.tenant!r}", "Correct --tenant (HOLDFAST_TENANT)")


def _print_entries(output: Output, page: dict[str, Any]) -> None:
    entries = page["entries"]
    if not entries:
        output.print_empty("No audit rows found.")
        return
    rows = [
        (str(entry.number), entry.time, entry.agent, entry.action, entry.outcome, _format_metadata(entry.metadata))
        for entry in entries
    ]
    head, styles = ("ROW", "TIME", "AGENT", "ACTION", "OUTCOME", "ABOUT"), ("dim", "dim", "bold", "", "", "dim")
    output.print_table(head, rows, styles, wrap=True)
    if page["next"]:
        output.print_message(f"next page: --before {page['next']}")


def _format_metadata(metadata: dict[str, Any]) -> str:
    return ", ".join([f"{name} {value}" for name, value in metadata.items()])


def _print_verdict(output: Output, verdict: Verdict) -> None:
    rows = format_count(verdict.rows, "row")
    if verdict.ok:
        output.print_line(f"{output.style('verified', 'green')}: {rows}, none changed")
    else:
        output.print_line(f"{output.style('changed', 'red')} in {format_count(verdict.broken, 'place')} of {rows}")
        for problem in verdict.problems:
            output.print_line(f"  {join_lines(problem)}")
    if verdict.removed:
        output.print_line(f"starts after row {verdict.removed}")
    if verdict.head:
        output.print_line(f"head {verdict.head}")
    if verdict.head and verdict.ok:
        output.print_message("store this head elsewhere and check it later with --known, to detect changes of earlier rows")


def _print_pruned(output: Output, pruned: Pruned) -> None:
    output.print_line(f"deleted {format_count(pruned.removed, 'row')}, kept {format_count(pruned.kept, 'row')}")
    if pruned.checkpoint is not None:
        output.print_line(f"checkpoint {pruned.checkpoint.number}:{pruned.checkpoint.hash}")


def _print_done(output: Output, page: dict[str, Any]) -> None:
    if not page["done"]:
        output.print_empty("No recorded work found.")
        return
    rows = [(record["time"], record["agent"], record["kind"], record["subject"]) for record in page["done"]]
    output.print_table(("TIME", "AGENT", "KIND", "SUBJECT"), rows, ("dim", "bold", "", ""))
    if page["next"]:
        output.print_message(f"next page: --cursor {page['next']}")


def _print_exists(output: Output, report: dict[str, Any]) -> None:
    output.print_line("yes" if report["exists"] else "no")
