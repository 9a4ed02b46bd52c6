"""brief, status, doctor, reindex, retain, bench."""

from __future__ import annotations

from holdfast.doors.cli.screen import one_line, plural, size, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.briefing import Brief
    from holdfast.checkup import Reindexed, ScopeStatus, Status
    from holdfast.doors.cli.call import Call
    from holdfast.doors.cli.screen import Screen
    from holdfast.note import Note


def brief(call: Call) -> int:
    return call.answer(call.memory.brief(), _tell_brief)


def status(call: Call) -> int:
    return call.answer(call.memory.status(), _tell_status)


def doctor(call: Call) -> int:
    problems = call.memory.check()
    disabled = not call.memory.config.enabled
    report = {"ok": not problems, "home": call.memory.home, "disabled": disabled, "problems": problems}
    return call.answer(report, _tell_report, 1 if problems else 0)


def reindex(call: Call) -> int:
    return call.answer(call.memory.reindex(), _tell_reindexed)


def retain(call: Call) -> int:
    dry = bool(call["dry_run"])
    notes = call.memory.retain(dry_run=dry)
    return call.answer({"dry_run": dry, "archived": notes}, _tell_retained)


def bench(call: Call) -> int:
    from holdfast.bench import main

    code: int = main(call.words.rest)
    return code


def _tell_brief(screen: Screen, brief: Brief) -> None:
    if brief.text:
        screen.text(brief.text)
    else:
        screen.nothing("nothing to tell yet: `holdfast store TEXT` keeps the first note")


def _tell_status(screen: Screen, status: Status) -> None:
    rows = [
        ("home", status.home), ("project", status.project or "not looked up while memory is disabled"),
        ("session", status.session or "none"), ("agent", status.agent or "none"),
        ("enabled", "yes" if status.enabled else "no: memory is disabled"),
        ("index", f"{size(status.index_bytes)}, {plural(status.passages, 'passage')}, {plural(status.facts, 'fact')}"),
        ("ledger", size(status.ledger_bytes)),
        ("briefing", f"{status.briefing_chars:,} characters: {', '.join(status.briefed) or 'nothing'}"),
    ]  # fmt: skip
    for name, value in [*rows, ("degraded", status.degraded)] if status.degraded else rows:
        screen.say(f"{screen.paint(f'{name:<9}', 'dim')} {one_line(value)}")
    if status.scopes:
        screen.say()
        head = ("SCOPE", "YOURS", "NOTES", "FILES", "SIZE", "LAST WRITE")
        screen.table(head, [_scope_row(one) for one in status.scopes], ("cyan", "", "", "", "", "dim"))


def _scope_row(one: ScopeStatus) -> tuple[str, ...]:
    yours = "yes" if one.visible else "no"
    return one.scope, yours, f"{one.notes:,}", f"{one.files:,}", size(one.bytes), one.last_write


def _tell_report(screen: Screen, report: dict[str, Any]) -> None:
    for problem in report["problems"]:
        screen.say(f"{screen.paint('problem', 'red')} {one_line(problem.message)}")
        screen.say(f"    {screen.paint('fix:', 'dim')} {visible(problem.fix)}")  # to be pasted: every space counts
    if report["disabled"]:
        screen.aside("memory is disabled: only what can be seen without writing anything was looked at", "yellow")
    if report["ok"]:
        screen.say(f"{screen.paint('all is well', 'green')} in {report['home']}")
    else:
        screen.aside(plural(len(report["problems"]), "problem"))


def _tell_reindexed(screen: Screen, done: Reindexed) -> None:
    screen.say(
        f"indexed {plural(done.notes, 'note')} and {plural(done.files, 'file')}: "
        f"{plural(done.passages, 'passage')}, {plural(done.facts, 'fact')}, in {done.seconds:.2f} s"
    )


def _tell_retained(screen: Screen, retained: dict[str, Any]) -> None:
    notes: list[Note] = retained["archived"]
    if notes:
        screen.table(("KEY", "SCOPE", "UPDATED"), [(one.key, str(one.scope), one.updated) for one in notes])
    verb = "would be archived" if retained["dry_run"] else "archived"
    screen.say(f"{plural(len(notes), 'note')} {verb}")
