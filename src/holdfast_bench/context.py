"""`holdfast bench context`: whether an agent is shown what it needs, at session start and with each prompt, and at what cost.

Every text that is scored comes from the program itself, run as a client's hook runs it.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from holdfast.api import resident
from holdfast.api.memory import Memory
from holdfast.base import dates, failure_log
from holdfast.base.record import Record
from holdfast.config import Config
from holdfast.errors import Trouble, UsageError
from holdfast_bench import floors
from holdfast_bench.context_metrics import Scores, Told, score
from holdfast_bench.corpus import Corpus, Note, read
from holdfast_bench.progress import folder, started, teller

SITUATIONS = ("keyword", "hybrid")  # no other process, and a resident process with the models
_CLIENT = "claude-code"
_SESSION = "earlier"  # the one whose turns are fed
_PROBE = "is everything here yet"
_HOOK_SECONDS = 60.0
_WARM_SECONDS = 300.0  # to load the models on a busy machine
_QUICK_SECONDS = 1.0
_ASK_SECONDS = 2.0  # a hook waits so long for the resident process, then searches by words without saying so
_TRIES = 5  # for a hook that may have stopped waiting

Say = Callable[[str], None]


class Options(Record):
    """The options of the command."""

    files: tuple[Path, ...] = ()
    situations: tuple[str, ...] = SITUATIONS
    large: bool = False
    json: bool = False


class Report(Record):
    """The figures of one file in one situation."""

    file: str
    situation: str
    large: bool
    notes: int  # current ones of the project and of the person
    facts: int
    turns: int
    prompts: int
    unrelated: int
    scores: Scores
    slow: int  # prompts for which the hook may have stopped waiting for the resident process
    failed: int  # hooks that reported a failure
    reason: str


def run(options: Options) -> int:
    """Measure every file and print the figures."""
    if options.large and len(options.files) < 2:
        raise UsageError("--large needs at least two files", "Name the files whose project notes are stored first")
    say = teller(options.json)
    corpora = [read(path) for path in options.files]  # a mistake in the last file shows before the first is measured
    reports: list[list[Report]] = []
    for place, corpus in enumerate(corpora):
        others = [*corpora[:place], *corpora[place + 1 :]] if options.large else []
        reports.append([measure(corpus, others, situation, say) for situation in options.situations])
    if options.json:
        print(json.dumps({"files": [report.as_dict() for several in reports for report in several]}, indent=2))
    else:
        print("\n\n".join(as_text(several) for several in reports))
    return 0


def measure(corpus: Corpus, others: list[Corpus], situation: str, say: Say = lambda text: None) -> Report:
    """Feed one corpus into an empty home, run the hooks there, and score what they say. The project notes of the other corpora
    are stored in the same project first."""
    name = Path(corpus.path).name
    beside = [note for other in others for note in other.project_notes]
    with folder("context") as base:
        bench = _Bench(base)
        say(f"{name}: storing {len(corpus.notes) + len(beside):,} notes, {len(corpus.facts)} facts, {len(corpus.turns)} turns")
        bench.feed(corpus, beside)
        if situation == "hybrid":
            say(f"{name}: making vectors, starting a resident process")
            bench.embed()
        with bench.resident() if situation == "hybrid" else nullcontext():
            say(f"{name}: {situation}, {len(corpus.prompts) + len(corpus.unrelated)} prompts")
            told = bench.ask(corpus, situation)
        mishaps = failure_log.read(bench.home)
    return Report(
        file=name, situation=situation, large=bool(others), notes=len({note.key for note in [*beside, *corpus.notes]}),
        facts=len({(fact.subject, fact.label) for fact in corpus.facts}), turns=len(corpus.turns), prompts=len(corpus.prompts),
        unrelated=len(corpus.unrelated), scores=score(corpus, told), slow=bench.slow, failed=len(mishaps),
        reason=mishaps[0].message if mishaps else "",
    )  # fmt: skip


class _Bench:
    """A private home in a temporary folder, a project and another project of the same person."""

    def __init__(self, base: Path) -> None:
        self.home = str(base / "holdfast")
        self.slow = 0
        self._project, self._other, self._user = [base / name for name in ("project", "other-project", "user")]
        for place in (self._project, self._other, self._user):
            place.mkdir()

    def feed(self, corpus: Corpus, beside: list[Note]) -> None:
        """Store the corpus in the order of its file. Entries are a second apart: which notes are newer does not depend on the
        speed of the machine."""
        with _Clock(len(beside) + len(corpus.notes) + len(corpus.facts)) as clock, self._open(self._project) as memory:
            for note in [*beside, *corpus.notes]:
                clock.forward()
                memory.store(**note.as_dict(), redact=True)
            for fact in corpus.facts:
                clock.forward()
                memory.fact(**fact.as_dict(), redact=True)
        with self._open(self._other) as memory:
            for note in corpus.other_project:
                memory.store(**note.as_dict(), redact=True)
        with self._open(self._project) as memory:
            memory.log([turn.as_dict() for turn in corpus.turns], session=_SESSION, redact=True)

    def embed(self) -> None:
        """Make every vector."""
        with self._open(self._project) as memory:
            for reason in memory.embed().failed.values():
                raise Trouble(f"hybrid search cannot be measured: {reason}", "Run `holdfast doctor`, or measure keyword only")

    @contextmanager
    def resident(self) -> Iterator[None]:
        """Run a resident process that has loaded the models."""
        environment, silent = self._environment(), subprocess.DEVNULL
        command = [*floors.program(), "resident"]
        with started(command, True, stdin=silent, stdout=silent, stderr=silent, env=environment, cwd=self._user) as process:
            self._wait(process)
            yield

    def _wait(self, process: subprocess.Popen[Any]) -> None:
        """Wait until the resident process searches by meaning, and answers quickly."""
        with self._open(self._project) as memory:
            who = {"project": memory.status(whole=False).project, "session": None, "agent": None}
        end = time.monotonic() + _WARM_SECONDS
        took = _WARM_SECONDS
        while took > _QUICK_SECONDS:
            if process.poll() is not None or time.monotonic() > end:
                raise Trouble("the resident process does not answer", "Run `holdfast resident` to see why")
            start = time.monotonic()
            answer = resident.recall(self.home, who, {"query": _PROBE, "mode": "hybrid", "limit": 1}, _WARM_SECONDS)
            if answer is None:
                time.sleep(0.1)
                continue
            if answer.degraded:
                raise Trouble(f"hybrid search cannot be measured: {answer.reason}", "Run `holdfast doctor`")
            resident.find_matches(self.home, who, _PROBE, _WARM_SECONDS)
            took = time.monotonic() - start

    def ask(self, corpus: Corpus, situation: str) -> Told:
        """Take the start briefing once, and what is added to each prompt in a session of its own."""
        start = self._hook("SessionStart", "start", source="startup")
        prompts, unrelated = [
            tuple([self._added(f"{name}-{place}", text, situation) for place, text in enumerate(texts)])
            for name, texts in (("prompt", [prompt.text for prompt in corpus.prompts]), ("unrelated", list(corpus.unrelated)))
        ]
        return Told(start, prompts, unrelated)

    def _added(self, session: str, prompt: str, situation: str) -> str:
        """What is added to a prompt. A hook that may have stopped waiting for the resident process runs again, in a new
        session."""
        for number in range(_TRIES):
            start = time.monotonic()
            said = self._hook("UserPromptSubmit", f"{session}-{number}", prompt=prompt)
            if situation != "hybrid" or time.monotonic() - start < _ASK_SECONDS:
                return said
        self.slow += 1
        return said

    def _hook(self, event: str, session: str, **more: str) -> str:
        """What the hook gives the model."""
        heard = {"session_id": session, "cwd": str(self._project), "hook_event_name": event, **more}
        command = [*floors.program(), "hook", _CLIENT, event]
        try:
            done = subprocess.run(
                command, input=json.dumps(heard).encode(), capture_output=True, env=self._environment(), cwd=self._project,
                timeout=_HOOK_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            reason = f"the hook for {event} took more than {_HOOK_SECONDS:.0f} seconds"
            raise Trouble(reason, "Measure when the machine is less busy") from None
        if done.returncode or done.stderr:
            reason = done.stderr.decode(errors="replace").strip() or f"exit status {done.returncode}"
            raise Trouble(f"the hook for {event} failed: {reason}", "Run `holdfast doctor`")
        return said_to_model(done.stdout)

    def _environment(self) -> dict[str, str]:
        """An environment without settings: the defaults are measured."""
        return floors.plain_environment() | {"HOLDFAST_HOME": self.home, "HOME": str(self._user)}

    def _open(self, place: Path) -> Memory:
        return Memory(config=Config(home=self.home), cwd=place)


def said_to_model(output: bytes) -> str:
    """The text for the model in a hook's output; mostly there is none."""
    if not output.strip():
        return ""
    said = json.loads(output).get("hookSpecificOutput", {}).get("additionalContext", "")
    return str(said)


class _Clock:
    """While it is entered, the time of new notes: it moves on by a second when it is told to, and ends before now."""

    def __init__(self, seconds: int) -> None:
        self._real = dates.clock
        self._now = int(self._real()) - seconds - 1

    def __enter__(self) -> _Clock:
        dates.clock = self._read
        return self

    def __exit__(self, *_: object) -> None:
        dates.clock = self._real

    def forward(self) -> None:
        self._now += 1

    def _read(self) -> float:
        return self._now


def as_text(reports: list[Report]) -> str:
    """One table of a file, with a column for each situation."""
    first = reports[0]
    scores = [report.scores for report in reports]
    where = ", in a large project" if first.large else ""
    lines = [
        f"{first.file}{where}: {first.notes} notes, {first.facts} facts, {first.turns} turns, {first.prompts} prompts, "
        f"{first.unrelated} unrelated prompts",
        "",
        _row("S is the start briefing, A what a prompt adds", [report.situation for report in reports]),
        _row("coverage: the answer is in S + A", [_percent(one.coverage) for one in scores]),
    ]
    for kind, row in first.scores.kinds.items():
        lines.append(_row(f"  {kind} ({row.prompts})", [_percent(one.kinds[kind].coverage) for one in scores]))
    lines += [
        _row("coverage of A alone", [_percent(one.prompt_only) for one in scores]),
        _row("always: standing notes whole in S", [_percent(one.always) for one in scores]),
        _row("stale: old values shown as current", [_percent(one.stale) for one in scores]),
        _row("noise: characters of A, unrelated prompts", [f"{one.noise:,.0f}" for one in scores]),
        _row("  with an empty A", [_percent(one.empty) for one in scores]),
        _row("leaks: notes of another project", [str(one.leaks) for one in scores]),
        _row("cost: characters of S", [f"{one.start_chars:,}" for one in scores]),
        _row("cost: characters of A, mean", [f"{one.prompt_chars:,.0f}" for one in scores]),
    ]
    for report in reports:
        lines += [f"{report.situation}: {said}" for said in _wrong(report)]
    return "\n".join(lines)


def _wrong(report: Report) -> list[str]:
    """What went wrong, by name."""
    scores = report.scores
    said = [f"not whole in S: {', '.join(scores.missed_always)}"] if scores.missed_always else []
    said += [f"old value shown as current: {prompt}" for prompt in scores.stale_prompts]
    said += [f"leaked: {', '.join(scores.leaked)}"] if scores.leaked else []
    said += [f"{report.slow} prompts may have been answered by words only: the machine is too busy"] if report.slow else []
    said += [f"{report.failed} hooks failed: {report.reason}"] if report.failed else []
    return said


def _row(name: str, values: list[str]) -> str:
    return f"{name:<48}" + "".join([f"{value:>10}" for value in values])


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
