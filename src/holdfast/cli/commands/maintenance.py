"""Maintenance: status, doctor, reindex, retain, embed, resident, copy, migrate."""

from __future__ import annotations

from holdfast.cli.output import format_bytes, format_count, join_lines, mark_hidden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.models import Note, Problem
    from holdfast.verbs.copy import Copied
    from holdfast.verbs.status import Reindexed, ScopeStatus, Status


def status(call: Invocation) -> int:
    """`holdfast status`."""
    return call.answer(call.memory.status(), _print_status)


def doctor(call: Invocation) -> int:
    """`holdfast doctor`; exit 1 if there is a problem."""
    from holdfast.api.memory import context_of
    from holdfast.config import hide_password
    from holdfast.verbs.doctor import checks, secrets

    memory = call.memory
    problems = checks.merge_problems([*memory.check(), *_find_client_problems(call)], _find_gateway_problems(call))
    quarantined = _count_quarantined(call)
    store = memory.config.store
    searched, total = (0, 0) if call.is_remote else secrets.count_transcript_bytes(context_of(memory))
    report = {
        "quarantined": quarantined, "ok": not problems, "home": hide_password(store) if store else memory.home,
        "disabled": not memory.config.enabled, "problems": problems,
        "transcripts": {"bytes": total, "looked_at": searched}, "archived": _describe_archived(call),
    }  # fmt: skip
    return call.answer(report, _print_report, 1 if problems else 0)


def _count_quarantined(call: Invocation) -> int:
    """Return how many notes are in quarantine; 0 if the home cannot be read, which is a problem of its own."""
    from holdfast.errors import HoldfastError

    try:
        return len(call.memory.review())
    except HoldfastError:
        return 0


def _describe_archived(call: Invocation) -> list[str]:
    """Return how many notes are archived and why; nothing if the home cannot be read, which is a problem of its own."""
    from holdfast.errors import HoldfastError

    try:
        return list(call.memory.status().archived)
    except HoldfastError:
        return []


def _find_client_problems(call: Invocation) -> list[Problem]:
    """Return the problems of the coding agents for which Holdfast is installed."""
    import os

    if not os.path.isdir(os.path.join(call.memory.home, "installed")):
        return []
    from holdfast import clients
    from holdfast.clients import health

    return health.find_problems(clients.install_target(call.memory.config))


def _find_gateway_problems(call: Invocation) -> list[Problem]:
    """Return the problems of roles, agents and the audit; none if there is no home or it is another machine's."""
    import os

    settings = call.memory.config
    if not settings.enabled or call.memory.home != settings.home or not (settings.store or os.path.isdir(settings.home)):
        return []
    from holdfast.access import health
    from holdfast.verbs.doctor.fixes import with_fixes

    return with_fixes(settings.home, health.find_problems(settings))


def reindex(call: Invocation) -> int:
    """`holdfast reindex`."""
    return call.answer(call.memory.reindex(), _print_reindexed)


def retain(call: Invocation) -> int:
    """`holdfast retain`."""
    from holdfast.verbs import archive

    dry_run = bool(call["dry_run"])
    notes = call.memory.retain(dry_run=dry_run)
    reasons: list[str] = []
    if not call.is_remote:
        kinds = [note.scope.kind for note in notes]
        reasons = archive.describe_archived(kinds, call.memory.config, _describe_archiving(dry_run))
    return call.answer({"dry_run": dry_run, "archived": notes}, lambda output, report: _print_retained(output, report, reasons))


def embed(call: Invocation) -> int:
    """`holdfast embed`; exit 1 if a model failed."""
    from holdfast.config import hide_password

    left = call.memory.embed()
    embedder = call.memory.status().embedder if call.is_remote else hide_password(call.memory.config.embedder)
    return call.answer({"embedder": embedder, "left": left, "failed": left.failed}, _print_embedded, 1 if left.failed else 0)


def resident(call: Invocation) -> int:
    """`holdfast resident`: answer other processes until it is stopped."""
    from holdfast import config
    from holdfast.api.memory import Memory
    from holdfast.api.resident import Resident
    from holdfast.embedders import available
    from holdfast.errors import UsageError

    settings = call.memory.config
    call.memory.close()
    if settings.store:
        raise UsageError("`holdfast resident` works with a home, not with --store", "Run `holdfast serve` instead")

    def open_memory(**caller: Any) -> Memory:
        return Memory(config=config.load(settings.home).replace(project=None, session=None, agent=None), **caller)

    def report_ready(socket_path: str) -> None:
        call.output.print_message(f"answering recalls for {settings.home}; stop with Ctrl-C")
        embedder = settings.embedder
        problems = available.find_missing_packages(embedder) or available.check_models(embedder, settings.embed_key)
        for problem, _ in problems:
            call.output.print_message(f"semantic search is off: {problem}", "yellow")
        reranker = settings.reranker
        problems = available.find_reranker_problems(reranker)
        for problem, _ in problems or available.check_reranker(reranker, settings.rerank_key):
            call.output.print_message(f"reranking is off: {problem}", "yellow")

    Resident(settings.home, open_memory).serve(report_ready)
    return 0


def copy(call: Invocation) -> int:
    """`holdfast copy`: all memory from one store to another; exit 1 if something could not be read."""
    from holdfast.cli.progress import ProgressBar
    from holdfast.verbs import copy as copy_verb

    progress = None if call.output.json else ProgressBar()
    copied = copy_verb.copy(call["src"], call["dst"], call.load_settings(), progress)
    return call.answer(copied, _print_copied, 1 if copied.left else 0)


def migrate(call: Invocation) -> int:
    """`holdfast migrate`: as the user in the store's address, who then owns the schema."""
    from holdfast.errors import UsageError

    settings = call.load_settings()
    if not settings.store:
        raise UsageError("no database was named", "Give --store postgresql://user@host/database, or set store.url")
    from holdfast import postgres

    output = call.output
    applied = postgres.migrate(settings.store, None if output.json else lambda name: output.print_message(f"applied {name}"))
    problem, fix = postgres.vector_problem_at(settings.store)
    if problem and not output.json:
        output.print_message(f"semantic search is off: {problem}. {fix}", "yellow")
    report = {"applied": applied, "version": postgres.newest_version(), "without_vectors": problem}
    return call.answer(report, _print_migrated)


def _print_status(output: Output, status: Status) -> None:
    in_store = "://" in status.shelf
    rows = [
        ("home", status.home), *([("store", status.shelf)] if in_store else []),
        ("project", status.project or "unknown (memory is disabled)"),
        ("session", status.session or "none"), ("agent", status.agent or "none"),
        ("enabled", "yes" if status.enabled else "no (memory is disabled)"),
        *_format_amounts("index", (status.index_bytes, None), (status.passages, "passage"), (status.facts, "fact")),
        *_format_amounts("ledger", (status.ledger_bytes, None)),
        *_format_amounts("history", (status.sessions, "session"), (status.turns, "turn")),
        ("embedder", _format_embedder(status)), ("reranker", _format_reranker(status)),
        ("briefing", f"{status.briefing_chars:,} characters: {', '.join(status.briefed) or 'nothing'}"),
    ]  # fmt: skip
    rows += [("archived", line.replace(" archived", "", 1)) for line in status.archived]
    if status.quarantined:
        rows.append(("held back", f"{format_count(status.quarantined, 'note')} in quarantine: `holdfast review`"))
    for name, value in [*rows, ("degraded", status.degraded)] if status.degraded else rows:
        output.print_line(f"{output.style(f'{name:<9}', 'dim')} {join_lines(value)}")
    if status.scopes:
        output.print_line()
        head = ("SCOPE", "YOURS", "NOTES", "ARCHIVED", "FILES", "SESSIONS", "SIZE", "LAST WRITE")
        output.print_table(head, [_format_scope(scope) for scope in status.scopes], ("cyan", "", "", "", "", "", "", "dim"))


def _format_amounts(name: str, *amounts: tuple[int | None, str | None]) -> list[tuple[str, str]]:
    """Return a row of sizes and counts without those that are unknown; no row if all are."""
    known = [format_count(count, noun) if noun else format_bytes(count) for count, noun in amounts if count is not None]
    return [(name, ", ".join(known))] if known else []


def _format_embedder(status: Status) -> str:
    """Return the embedder that is set, with why it does not work or how many passages wait for it."""
    if status.unusable:
        return f"{status.embedder}: {status.unusable}"
    if status.waiting:
        return f"{status.embedder}, {format_count(status.waiting, 'passage')} without vectors yet"
    return status.embedder


def _format_reranker(status: Status) -> str:
    return f"{status.reranker}: {status.reranker_unusable}" if status.reranker_unusable else status.reranker


def _format_scope(scope: ScopeStatus) -> tuple[str, ...]:
    counts = [f"{count:,}" for count in (scope.notes, scope.archived, scope.files, scope.sessions)]
    return scope.scope, "yes" if scope.visible else "no", *counts, format_bytes(scope.bytes), scope.last_write


def _print_report(output: Output, report: dict[str, Any]) -> None:
    for problem in report["problems"]:
        output.print_line(f"{output.style('problem', 'red')} {join_lines(problem.message)}")
        output.print_line(f"    {output.style('fix:', 'dim')} {mark_hidden(problem.fix)}")  # to be pasted: every space counts
    if report["disabled"]:
        output.print_message("memory is disabled: only checks that write nothing were run", "yellow")
    for line in report["archived"]:
        output.print_message(f"{line}; recall finds them: `holdfast list --archived`")
    if report["quarantined"]:
        output.print_message(f"{format_count(report['quarantined'], 'note')} in quarantine: `holdfast review`")
    transcripts = report["transcripts"]
    if transcripts["looked_at"] < transcripts["bytes"]:
        searched = f"{transcripts['looked_at'] >> 20:,} of {transcripts['bytes'] >> 20:,} MiB"
        output.print_message(f"only the newest transcripts were searched for secrets: {searched}")
    if report["ok"]:
        output.print_line(f"{output.style('no problems', 'green')} in {report['home']}")
    else:
        output.print_message(format_count(len(report["problems"]), "problem"))


def _print_reindexed(output: Output, report: Reindexed) -> None:
    output.print_line(
        f"indexed {format_count(report.notes, 'note')} and {format_count(report.files, 'file')}: "
        f"{format_count(report.passages, 'passage')}, {format_count(report.facts, 'fact')}, in {report.seconds:.2f} s"
    )


def _print_embedded(output: Output, report: dict[str, Any]) -> None:
    if report["embedder"] == "none":
        output.print_empty("No embedder is set. Set one with `holdfast config search.embedder default`.")
        return
    left = max(report["left"].values(), default=0)
    if left:
        output.print_line(f"{format_count(left, 'passage')} without vectors")
    elif not report["failed"]:
        output.print_line("All passages have vectors.")
    for role, reason in report["failed"].items():
        output.print_message(f"no vectors from the {role} model: {reason}", "yellow")


def _describe_archiving(dry_run: bool) -> str:
    return "would be archived" if dry_run else "archived"


def _print_retained(output: Output, report: dict[str, Any], reasons: list[str]) -> None:
    notes: list[Note] = report["archived"]
    if notes:
        output.print_table(("KEY", "SCOPE", "UPDATED"), [(note.key, str(note.scope), note.updated) for note in notes])
    for line in reasons or [f"{format_count(len(notes), 'note')} {_describe_archiving(report['dry_run'])}"]:
        output.print_line(line)


def _print_copied(output: Output, copied: Copied) -> None:
    for path in copied.left:
        output.print_message(f"not copied: {path}")
    output.print_line(f"{output.style('copied', 'green')} {copied.source} to {copied.target}")
    output.print_line(f"  documents    {copied.documents_copied:,} copied, {copied.documents:,} in total")
    transcripts = f"{copied.lines_copied:,} lines copied, {copied.lines:,} in {copied.transcripts:,} files in total"
    output.print_line(f"  transcripts  {transcripts}")
    records = f"{copied.records_copied:,} copied, {copied.records:,} in total; audit rows: {copied.audit_rows:,}"
    output.print_line(f"  records      {records}")
    output.print_line(f"  verified     {copied.verified:,}")


def _print_migrated(output: Output, report: dict[str, Any]) -> None:
    if report["applied"]:
        output.print_line(f"{output.style('migrated', 'green')} to version {report['version']}")
    else:
        output.print_empty(f"Nothing to migrate: the database is at version {report['version']}")
