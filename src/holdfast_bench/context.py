"""`holdfast bench context`: whether an agent is shown what it needs, at session start and with each prompt, and at what cost.

Every text that is scored is the output of the program itself, run as a client's hook runs it.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from holdfast.api import resident
from holdfast.api.memory import Memory
from holdfast.base import dates, failure_log
from holdfast.base.record import Record
from holdfast.config import Config
from holdfast.errors import Trouble, UsageError
from holdfast_bench.context_corpus import Corpus, Note, read_corpus
from holdfast_bench.context_metrics import Scores, ShownTexts, score
from holdfast_bench.processes import (
    PrintProgress,
    holdfast_command,
    make_progress_printer,
    minimal_environment,
    start_process,
    temporary_folder,
)

SITUATIONS = ("keyword", "hybrid")  # without another process; with a resident process that has loaded the models
_CLIENT = "claude-code"
_SESSION = "earlier"  # the session of the corpus's turns
_WARM_UP_QUERY = "is everything here yet"
_HOOK_SECONDS = 60.0
_LOAD_SECONDS = 300.0  # to load the models on a busy machine
_WARM_SECONDS = 1.0  # the resident process is warm when it answers within this time
_HOOK_WAIT_SECONDS = 2.0  # a hook waits this long for the resident process, then searches by keyword without saying so
_ATTEMPTS = 5  # for a hook that may have stopped waiting


class Options(Record):
    """The options of the command."""

    files: tuple[Path, ...] = ()
    situations: tuple[str, ...] = SITUATIONS
    large: bool = False
    json: bool = False


class Report(Record):
    """The figures of one file in one situation; the field names are the keys of the JSON report."""

    file: str
    situation: str
    large: bool
    notes: int  # current notes of the project and of the user
    facts: int
    turns: int
    prompts: int
    unrelated: int
    scores: Scores
    slow: int  # prompts for which the hook may have stopped waiting for the resident process
    failed: int  # hooks that reported a failure
    reason: str


def run(options: Options) -> int:
    """Measure every file, print the report and return the exit status."""
    if options.large and len(options.files) < 2:
        raise UsageError("--large needs at least two files", "Name the files whose project notes are stored first")
    print_progress = make_progress_printer(options.json)
    corpora = [read_corpus(path) for path in options.files]  # a mistake in the last file shows before the first is measured
    reports: list[list[Report]] = []
    for place, corpus in enumerate(corpora):
        others = [*corpora[:place], *corpora[place + 1 :]] if options.large else []
        reports.append([measure(corpus, others, situation, print_progress) for situation in options.situations])
    if options.json:
        print(json.dumps({"files": [report.as_dict() for by_situation in reports for report in by_situation]}, indent=2))
    else:
        print("\n\n".join(format_reports(by_situation) for by_situation in reports))
    return 0


def measure(corpus: Corpus, others: list[Corpus], situation: str, print_progress: PrintProgress = lambda text: None) -> Report:
    """Store one corpus in an empty home, run the hooks there, and score their output.

    The project notes of the other corpora are stored in the same project first.
    """
    name = Path(corpus.path).name
    other_notes = [note for other in others for note in other.project_notes]
    with temporary_folder("context") as base:
        bench = _Bench(base)
        notes = len(corpus.notes) + len(other_notes)
        print_progress(f"{name}: storing {notes:,} notes, {len(corpus.facts)} facts, {len(corpus.turns)} turns")
        bench.store(corpus, other_notes)
        if situation == "hybrid":
            print_progress(f"{name}: making vectors, starting a resident process")
            bench.embed()
        with bench.run_resident() if situation == "hybrid" else nullcontext():
            print_progress(f"{name}: {situation}, {len(corpus.prompts) + len(corpus.unrelated)} prompts")
            shown = bench.run_hooks(corpus, situation)
        failures = failure_log.read(bench.home)
    return Report(
        file=name, situation=situation, large=bool(others), notes=len({note.key for note in [*other_notes, *corpus.notes]}),
        facts=len({(fact.subject, fact.label) for fact in corpus.facts}), turns=len(corpus.turns), prompts=len(corpus.prompts),
        unrelated=len(corpus.unrelated), scores=score(corpus, shown), slow=bench.slow, failed=len(failures),
        reason=failures[0].message if failures else "",
    )  # fmt: skip


class _Bench:
    """A private home in a temporary folder, a project and another project of the same user."""

    def __init__(self, base: Path) -> None:
        self.home = str(base / "holdfast")
        self.slow = 0
        self._project, self._other_project, self._user = [base / name for name in ("project", "other-project", "user")]
        for folder in (self._project, self._other_project, self._user):
            folder.mkdir()

    def store(self, corpus: Corpus, other_notes: list[Note]) -> None:
        """Store the corpus in the order of its file, an entry per second.

        The order of timestamps then does not depend on the speed of the machine.
        """
        entries = len(other_notes) + len(corpus.notes) + len(corpus.facts)
        with _ManualClock(entries) as clock, self._open(self._project) as memory:
            for note in [*other_notes, *corpus.notes]:
                clock.advance()
                memory.store(**note.as_dict(), redact=True)
            for fact in corpus.facts:
                clock.advance()
                memory.fact(**fact.as_dict(), redact=True)
        with self._open(self._other_project) as memory:
            for note in corpus.other_project:
                memory.store(**note.as_dict(), redact=True)
        with self._open(self._project) as memory:
            memory.log([turn.as_dict() for turn in corpus.turns], session=_SESSION, redact=True)

    def embed(self) -> None:
        """Make every vector; raise Trouble if one fails."""
        with self._open(self._project) as memory:
            for reason in memory.embed().failed.values():
                raise Trouble(f"hybrid search cannot be measured: {reason}", "Run `holdfast doctor`, or measure keyword only")

    @contextmanager
    def run_resident(self) -> Iterator[None]:
        """Run a resident process that has loaded the models."""
        silent = subprocess.DEVNULL
        with start_process(
            holdfast_command("resident"), graceful=True, stdin=silent, stdout=silent, stderr=silent, env=self._environment(),
            cwd=self._user,
        ) as process:  # fmt: skip
            self._wait_until_warm(process)
            yield

    def _wait_until_warm(self, process: subprocess.Popen[Any]) -> None:
        """Wait until the resident process answers hybrid recalls quickly; raise Trouble if it does not."""
        with self._open(self._project) as memory:
            caller = {"project": memory.status(whole=False).project, "session": None, "agent": None}
        end = time.monotonic() + _LOAD_SECONDS
        seconds = _LOAD_SECONDS
        while seconds > _WARM_SECONDS:
            if process.poll() is not None or time.monotonic() > end:
                raise Trouble("the resident process does not answer", "Run `holdfast resident` to see why")
            start = time.monotonic()
            query = {"query": _WARM_UP_QUERY, "mode": "hybrid", "limit": 1}
            answer = resident.recall(self.home, caller, query, _LOAD_SECONDS)
            if answer is None:
                time.sleep(0.1)
                continue
            if answer.degraded:
                raise Trouble(f"hybrid search cannot be measured: {answer.reason}", "Run `holdfast doctor`")
            resident.find_matches(self.home, caller, _WARM_UP_QUERY, _LOAD_SECONDS)
            seconds = time.monotonic() - start

    def run_hooks(self, corpus: Corpus, situation: str) -> ShownTexts:
        """Return the start briefing, and the text added to each prompt in a session of its own."""
        start = self._run_hook("SessionStart", "start", source="startup")
        prompts, unrelated = [
            tuple([self._run_prompt_hook(f"{name}-{place}", text, situation) for place, text in enumerate(texts)])
            for name, texts in (("prompt", [prompt.text for prompt in corpus.prompts]), ("unrelated", list(corpus.unrelated)))
        ]
        return ShownTexts(start, prompts, unrelated)

    def _run_prompt_hook(self, session: str, prompt: str, situation: str) -> str:
        """Return the text added to a prompt; try again in a new session if the hook may have stopped waiting."""
        for number in range(_ATTEMPTS):
            start = time.monotonic()
            text = self._run_hook("UserPromptSubmit", f"{session}-{number}", prompt=prompt)
            if situation != "hybrid" or time.monotonic() - start < _HOOK_WAIT_SECONDS:
                return text
        self.slow += 1
        return text

    def _run_hook(self, event: str, session: str, **fields: str) -> str:
        """Run a hook and return its text for the model; raise Trouble if it fails or takes too long."""
        stdin = json.dumps({"session_id": session, "cwd": str(self._project), "hook_event_name": event, **fields}).encode()
        try:
            result = subprocess.run(
                holdfast_command("hook", _CLIENT, event), input=stdin, capture_output=True, env=self._environment(),
                cwd=self._project, timeout=_HOOK_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            reason = f"the hook for {event} took more than {_HOOK_SECONDS:.0f} seconds"
            raise Trouble(reason, "Measure when the machine is less busy") from None
        if result.returncode or result.stderr:
            reason = result.stderr.decode(errors="replace").strip() or f"exit status {result.returncode}"
            raise Trouble(f"the hook for {event} failed: {reason}", "Run `holdfast doctor`")
        return extract_model_text(result.stdout)

    def _environment(self) -> dict[str, str]:
        """Return an environment without settings, so that the defaults are measured."""
        return minimal_environment(HOLDFAST_HOME=self.home, HOME=str(self._user))

    def _open(self, project: Path) -> Memory:
        return Memory(config=Config(home=self.home), cwd=project)


def extract_model_text(output: bytes) -> str:
    """Return the text for the model in a hook's output; empty if there is none."""
    if not output.strip():
        return ""
    return str(json.loads(output).get("hookSpecificOutput", {}).get("additionalContext", ""))


class _ManualClock:
    """Replace the clock of new notes; it starts `seconds` before now and advances by one second on demand."""

    def __init__(self, seconds: int) -> None:
        self._real = dates.clock
        self._now = int(self._real()) - seconds - 1

    def __enter__(self) -> _ManualClock:
        dates.clock = self._read
        return self

    def __exit__(self, *_: object) -> None:
        dates.clock = self._real

    def advance(self) -> None:
        """Advance by one second."""
        self._now += 1

    def _read(self) -> float:
        return self._now


def format_reports(reports: list[Report]) -> str:
    """Return the table of one file, with a column for each situation."""
    first = reports[0]
    scores = [report.scores for report in reports]
    suffix = ", in a large project" if first.large else ""
    lines = [
        f"{first.file}{suffix}: {first.notes} notes, {first.facts} facts, {first.turns} turns, {first.prompts} prompts, "
        f"{first.unrelated} unrelated prompts",
        "",
        _format_row("S is the start briefing, A what a prompt adds", [report.situation for report in reports]),
        _format_row("coverage: the answer is in S + A", [_percent(row.coverage) for row in scores]),
    ]
    for kind, figures in first.scores.kinds.items():
        lines.append(_format_row(f"  {kind} ({figures.prompts})", [_percent(row.kinds[kind].coverage) for row in scores]))
    lines += [
        _format_row("coverage of A alone", [_percent(row.prompt_only) for row in scores]),
        _format_row("always: standing notes whole in S", [_percent(row.always) for row in scores]),
        _format_row("stale: old values shown as current", [_percent(row.stale) for row in scores]),
        _format_row("noise: characters of A, unrelated prompts", [f"{row.noise:,.0f}" for row in scores]),
        _format_row("  with an empty A", [_percent(row.empty) for row in scores]),
        _format_row("leaks: notes of another project", [str(row.leaks) for row in scores]),
        _format_row("cost: characters of S", [f"{row.start_chars:,}" for row in scores]),
        _format_row("cost: characters of A, mean", [f"{row.prompt_chars:,.0f}" for row in scores]),
    ]
    for report in reports:
        lines += [f"{report.situation}: {failure}" for failure in _describe_failures(report)]
    return "\n".join(lines)


def _describe_failures(report: Report) -> list[str]:
    """Return a line for each failure, with its names."""
    scores = report.scores
    failures = [f"not whole in S: {', '.join(scores.missed_always)}"] if scores.missed_always else []
    failures += [f"old value shown as current: {prompt}" for prompt in scores.stale_prompts]
    failures += [f"leaked: {', '.join(scores.leaked)}"] if scores.leaked else []
    failures += [f"{report.slow} prompts may have been answered by words only: the machine is too busy"] if report.slow else []
    failures += [f"{report.failed} hooks failed: {report.reason}"] if report.failed else []
    return failures


def _format_row(name: str, values: list[str]) -> str:
    return f"{name:<48}" + "".join([f"{value:>10}" for value in values])


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
