"""status, doctor, reindex, retain, embed, resident."""

from __future__ import annotations

from holdfast.cli.output import one_line, plural, size, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.models import Note, Problem
    from holdfast.verbs.status import Reindexed, ScopeStatus, Status


def status(call: Invocation) -> int:
    return call.answer(call.memory.status(), _tell_status)


def doctor(call: Invocation) -> int:
    from holdfast.config import hide_password
    from holdfast.verbs import status as status_verb
    from holdfast.verbs.doctor import secrets

    problems = status_verb.beside([*call.memory.check(), *_of_clients(call)], _of_gateway(call))
    disabled = not call.memory.config.enabled
    held = _held(call)
    store = call.memory.config.store
    where = hide_password(store) if store else call.memory.home
    looked_at, total = secrets.looked_at(call.memory)
    report = {
        "quarantined": held, "ok": not problems, "home": where, "disabled": disabled, "problems": problems,
        "transcripts": {"bytes": total, "looked_at": looked_at}, "archived": _archived(call),
    }  # fmt: skip
    return call.answer(report, _tell_report, 1 if problems else 0)


def _held(call: Invocation) -> int:
    """How many notes wait for a person; a home that cannot be read tells of its problems instead."""
    from holdfast.errors import HoldfastError

    try:
        return len(call.memory.review())
    except HoldfastError:
        return 0


def _archived(call: Invocation) -> list[str]:
    """How many notes are archived and why; a home that cannot be read tells of its problems instead."""
    from holdfast.errors import HoldfastError

    try:
        return list(call.memory.status().archived)
    except HoldfastError:
        return []


def _of_clients(call: Invocation) -> list[Problem]:
    """What keeps coding agents from using this memory; nothing is looked at that no install has touched."""
    import os

    if not os.path.isdir(os.path.join(call.memory.home, "installed")):
        return []
    from holdfast import clients
    from holdfast.clients import health

    return health.find_problems(clients.install_target(call.memory.config))


def _of_gateway(call: Invocation) -> list[Problem]:
    """What is wrong with roles, agents and the audit; nothing is looked at where there is no home, or another machine's."""
    import os

    settings = call.memory.config
    if not settings.enabled or call.memory.home != settings.home or not (settings.store or os.path.isdir(settings.home)):
        return []
    from holdfast.access import health

    return health.problems(settings)


def reindex(call: Invocation) -> int:
    return call.answer(call.memory.reindex(), _tell_reindexed)


def retain(call: Invocation) -> int:
    dry = bool(call["dry_run"])
    from holdfast.context import archive

    notes = call.memory.retain(dry_run=dry)
    why = [] if call.is_remote else archive.reasons([one.scope.kind for one in notes], call.memory.config, _verb(dry))
    return call.answer({"dry_run": dry, "archived": notes}, lambda screen, told: _tell_retained(screen, told, why))


def embed(call: Invocation) -> int:
    from holdfast.config import hide_password

    left = call.memory.embed()
    setting = call.memory.status().embedder if call.is_remote else hide_password(call.memory.config.embedder)
    return call.answer({"embedder": setting, "left": left, "failed": left.failed}, _tell_embedded, 1 if left.failed else 0)


def resident(call: Invocation) -> int:
    """Until it is stopped."""
    from holdfast import config
    from holdfast.api.memory import Memory
    from holdfast.api.resident import Resident
    from holdfast.embedders import available
    from holdfast.errors import UsageError

    now = call.memory.config
    call.memory.close()
    if now.store:
        raise UsageError("a process that stays answers for a home, not for a store", "Run `holdfast serve`")

    def open_memory(**who: Any) -> Memory:
        return Memory(config=config.load(now.home).replace(project=None, session=None, agent=None), **who)

    def ready(path: str) -> None:
        call.screen.aside(f"answering for {now.home}; stop with Ctrl-C")
        for what, _ in available.find_missing_packages(now.embedder) or available.check_endpoint(now.embedder, now.embed_key):
            call.screen.aside(f"search by meaning lacks a model, and the answers say so: {what}", "yellow")

    Resident(now.home, open_memory).serve(ready)
    return 0


def _tell_status(screen: Output, status: Status) -> None:
    hosted = "://" in status.store  # in a store
    rows = [
        ("home", status.home), *([("store", status.store)] if hosted else []),
        ("project", status.project or "not looked up while memory is disabled"),
        ("session", status.session or "none"), ("agent", status.agent or "none"),
        ("enabled", "yes" if status.enabled else "no: memory is disabled"),
        *_counted("index", (status.index_bytes, None), (status.passages, "passage"), (status.facts, "fact")),
        *_counted("ledger", (status.ledger_bytes, None)),
        *_counted("history", (status.sessions, "session"), (status.turns, "turn")),
        ("embedder", _embedder(status)),
        ("briefing", f"{status.briefing_chars:,} characters: {', '.join(status.briefed) or 'nothing'}"),
    ]  # fmt: skip
    rows += [("archived", line.replace(" archived", "", 1)) for line in status.archived]
    if status.quarantined:
        rows.append(("held back", f"{plural(status.quarantined, 'note')} in quarantine: `holdfast review`"))
    for name, value in [*rows, ("degraded", status.degraded)] if status.degraded else rows:
        screen.say(f"{screen.paint(f'{name:<9}', 'dim')} {one_line(value)}")
    if status.scopes:
        screen.say()
        head = ("SCOPE", "YOURS", "NOTES", "ARCHIVED", "FILES", "SESSIONS", "SIZE", "LAST WRITE")
        screen.table(head, [_scope_row(one) for one in status.scopes], ("cyan", "", "", "", "", "", "", "dim"))


def _counted(name: str, *amounts: tuple[int | None, str | None]) -> list[tuple[str, str]]:
    """A row of sizes and counts, without those that were not told; no row if none was."""
    told = [plural(count, noun) if noun else size(count) for count, noun in amounts if count is not None]
    return [(name, ", ".join(told))] if told else []


def _embedder(status: Status) -> str:
    """Which one is set, what keeps it from working, and what it has not seen yet."""
    if status.unusable:
        return f"{status.embedder}: {status.unusable}"
    return f"{status.embedder}, {plural(status.waiting, 'passage')} without vectors yet" if status.waiting else status.embedder


def _scope_row(one: ScopeStatus) -> tuple[str, ...]:
    yours = "yes" if one.visible else "no"
    counts = [f"{count:,}" for count in (one.notes, one.archived, one.files, one.sessions)]
    return one.scope, yours, *counts, size(one.bytes), one.last_write


def _tell_report(screen: Output, report: dict[str, Any]) -> None:
    for problem in report["problems"]:
        screen.say(f"{screen.paint('problem', 'red')} {one_line(problem.message)}")
        screen.say(f"    {screen.paint('fix:', 'dim')} {visible(problem.fix)}")  # to be pasted: every space counts
    if report["disabled"]:
        screen.aside("memory is disabled: only what can be seen without writing anything was looked at", "yellow")
    for line in report["archived"]:
        screen.aside(f"{line}; recall still finds them: `holdfast list --archived`")
    if report["quarantined"]:
        screen.aside(f"{plural(report['quarantined'], 'note')} in quarantine: `holdfast review`")
    said = report["transcripts"]
    if said["looked_at"] < said["bytes"]:
        most = f"{said['looked_at'] >> 20:,} of {said['bytes'] >> 20:,} MiB"
        screen.aside(f"of transcripts only the newest were looked through for secrets: {most}")
    if report["ok"]:
        screen.say(f"{screen.paint('all is well', 'green')} in {report['home']}")
    else:
        screen.aside(plural(len(report["problems"]), "problem"))


def _tell_reindexed(screen: Output, done: Reindexed) -> None:
    screen.say(
        f"indexed {plural(done.notes, 'note')} and {plural(done.files, 'file')}: "
        f"{plural(done.passages, 'passage')}, {plural(done.facts, 'fact')}, in {done.seconds:.2f} s"
    )


def _tell_embedded(screen: Output, done: dict[str, Any]) -> None:
    if done["embedder"] == "none":
        screen.nothing("no embedder is set, so there are no vectors to make: `holdfast config search.embedder default`")
        return
    left = max(done["left"].values(), default=0)
    if left:
        screen.say(f"{plural(left, 'passage')} still without vectors")
    elif not done["failed"]:
        screen.say("every passage has its vectors")
    for role, why in done["failed"].items():
        screen.aside(f"no vectors of the {role} model: {why}", "yellow")


def _verb(dry_run: bool) -> str:
    return "would be archived" if dry_run else "archived"


def _tell_retained(screen: Output, retained: dict[str, Any], why: list[str]) -> None:
    notes: list[Note] = retained["archived"]
    if notes:
        screen.table(("KEY", "SCOPE", "UPDATED"), [(one.key, str(one.scope), one.updated) for one in notes])
    for line in why or [f"{plural(len(notes), 'note')} {_verb(retained['dry_run'])}"]:
        screen.say(line)
