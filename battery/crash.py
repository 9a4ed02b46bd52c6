"""Every writing verb, hit at every call that changes the disk: killed there, or told that the disk fails or is full."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from battery import furnish, oracle, strace
from battery.lab import Lab
from battery.oracle import State
from battery.report import Report
from battery.strace import Call, Ended
from battery.verbs import NEXT, VERBS

FAULTS = ("SIGKILL", "EIO", "ENOSPC")
FULL = "FULL"  # the disk is full from the first call to the last
_NEXT_ITEM = "global/notes/next-one.md"


@dataclass(frozen=True)
class Case:
    """One fault at one call; no call: throughout."""

    fault: str
    call: Call | None = None

    def repeat(self, verb: str) -> str:
        where = f" --call {self.call.number}" if self.call else ""
        return f"python -m battery crash --verb {verb}{where} --fault {self.fault}"


@dataclass(frozen=True)
class Trial:
    """A verb as it goes without faults: the shelf before and after it, and the calls it makes."""

    verb: str
    before: State
    after: State
    calls: tuple[Call, ...]
    wrong: tuple[str, ...]  # what is wrong already without a fault


def run(lab: Lab, report: Report, verbs: list[str], faults: list[str], *, every: int = 1, jobs: int = 2) -> None:
    """All of it; `every` 5 takes each fifth call only."""
    template = make_template(lab)
    trials = []
    with report.row("verbs: flushed before acknowledged") as row:
        for verb in verbs:
            trials.append(rehearse(lab, template, verb))
            problems = [f"{verb}: {one}" for one in trials[-1].wrong]
            row.tried(problems, f"python -m battery crash --verb {verb} --fault FULL", len(verbs))
    with _Workers(jobs) as workers:
        for trial in trials:
            cases = list(cases_of(trial, faults, every))
            with report.row(f"crash: {trial.verb} ({len(trial.calls)} calls)") as row:
                for case, problems in workers.each(lab, template, trial, cases):
                    row.tried(told(case, problems), case.repeat(trial.verb), len(cases))


def once(lab: Lab, report: Report, verbs: list[str], faults: list[str], number: int) -> None:
    """Just one call, to repeat a failure."""
    template = make_template(lab)
    for verb in verbs:
        trial = rehearse(lab, template, verb)
        with report.row(f"crash: {verb}, call {number}") as row:
            for case in cases_of(trial, faults):
                if case.call and case.call.number == number:
                    row.tried(told(case, attempt(lab, template, trial, case)), case.repeat(verb))


def make_template(lab: Lab) -> Path:
    """The furnished home that every case gets a copy of."""
    template = lab.home("template")
    furnish.furnished(template)
    return template


def rehearse(lab: Lab, template: Path, verb: str) -> Trial:
    """The verb without a fault, to learn what it does."""
    home = lab.home(f"rehearse-{verb}")
    furnish.copy(template, home, VERBS[verb])
    before = oracle.read(home)
    lines, ended = strace.traced(lab, home, verb)
    after = oracle.read(home)
    wrong = [] if ended.said == ["ack"] else [f"without any fault it says {ended.said}"]
    wrong += strace.unflushed(lines, home) + oracle.torn(after) + oracle.reopened(home, after)
    lab.away(home)
    return Trial(verb, before, after, tuple(strace.calls_of(lines, home)), tuple(wrong))


def cases_of(trial: Trial, faults: list[str], every: int = 1) -> Iterator[Case]:
    """Each fault at each call."""
    for fault in faults:
        if fault == FULL:
            yield Case(FULL)
        else:
            yield from (Case(fault, call) for call in trial.calls if call.number % every == 0)


def attempt(lab: Lab, template: Path, trial: Trial, case: Case) -> list[str]:
    """One case on a home of its own; what is wrong afterwards."""
    home = lab.home(f"crash-{trial.verb}")
    furnish.copy(template, home, VERBS[trial.verb])
    ended = strace.hit(lab, home, trial.verb, case.call, case.fault)
    problems = _behaviour(ended, case) + judged(home, trial, ended)
    lab.away(home)
    return problems


def judged(home: Path, trial: Trial, ended: Ended) -> list[str]:
    """The oracle over what the case left behind."""
    now = oracle.read(home)
    next_one = now.pop(_NEXT_ITEM, None)
    unit = VERBS[trial.verb].unit
    wrong = oracle.torn(now) + oracle.differences(trial.before, trial.after, now, unit, "ack" in ended.said)
    wrong += _all_or_named(trial, now, ended)
    if "next" in ended.said and (next_one is None or oracle.texts_of(next_one) != (NEXT,)):
        wrong.append("the next store in the same process was acknowledged, but is not there")
    if next_one is not None:
        now[_NEXT_ITEM] = next_one
    return wrong + oracle.reopened(home, now, _words_of(trial))


def _behaviour(ended: Ended, case: Case) -> list[str]:
    """What the child may say: an acknowledgement or an error of ours, and then that it goes on."""
    wrong = [line for line in ended.said if line.startswith(("raw", "stderr", "wrong"))]
    if case.fault == "SIGKILL":
        return wrong if ended.killed else [*wrong, "it was not killed: the verb makes other calls than in rehearsal"]
    if case.call is not None and not ended.injected:
        wrong.append("the fault was not reached: the verb makes other calls than in rehearsal")
    if not wrong and not any(line == "ack" or line.startswith("error ") for line in ended.said):
        wrong.append(f"neither an acknowledgement nor an error: {ended.said}, exit {ended.code}")
    if not wrong and case.fault != FULL and "next" not in ended.said:
        wrong.append("the same memory could not store afterwards")
    return wrong


def _all_or_named(trial: Trial, now: State, ended: Ended) -> list[str]:
    """A bulk write that failed half-way must say how far it came."""
    error = next((line for line in ended.said if line.startswith("error ")), "")
    if trial.verb != "store-many" or not error:
        return []
    done, undone = oracle.changed_units(trial.before, trial.after, now, "key")
    if not done or not undone:
        return []
    named = any(oracle.key_of(item) in error for item in undone) or all(oracle.key_of(item) in error for item in done)
    return [] if named else [f"{len(done)} of {len(done) + len(undone)} notes are written, and it names none: {error}"]


def _words_of(trial: Trial) -> set[str]:
    """Every word that was ever on the shelf: it may be found only where it still stands."""
    every = b"\n".join([*trial.before.values(), *trial.after.values()]).decode()
    return set(re.findall(r"\bzq\w+", every))


def told(case: Case, problems: list[str]) -> list[str]:
    """The problems, with where the fault was."""
    if not problems or case.call is None:
        return problems
    return [f"{case.fault} at call {case.call.number}, {case.call.text[:160]}", *problems]


# --- two cases at a time ----------------------------------------------------------------------------------------------


class _Workers:
    """Processes of a clean interpreter that try cases; with one job, this process does it."""

    def __init__(self, jobs: int) -> None:
        self._pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) if jobs > 1 else None

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def each(self, lab: Lab, template: Path, trial: Trial, cases: list[Case]) -> Iterator[tuple[Case, list[str]]]:
        """Every case with its problems, in order."""
        if self._pool is None:
            for case in cases:
                yield case, attempt(lab, template, trial, case)
            return
        futures = [
            self._pool.submit(_attempts, str(lab.root), template, trial, cases[start : start + 4])
            for start in range(0, len(cases), 4)
        ]
        found = (problems for future in futures for problems in future.result())
        yield from zip(cases, found, strict=True)


def _attempts(root: str, template: Path, trial: Trial, cases: list[Case]) -> list[list[str]]:
    lab = Lab.take(root)
    return [attempt(lab, template, trial, case) for case in cases]
