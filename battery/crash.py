"""Part `crash`: each writing verb is killed, or gets a disk error, at each system call that changes the disk."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import apsw

from battery import invariants, strace
from battery.child_programs import NEXT_TEXT, VERBS, Verb, open_memory
from battery.invariants import State
from battery.report import Report
from battery.strace import ChildResult, SystemCall
from battery.workspace import Workspace
from holdfast import Memory
from holdfast.base import dates

FAULTS = ("SIGKILL", "EIO", "ENOSPC")
FULL = "FULL"  # the disk is full from the first call to the last
_NEXT_ITEM = "global/notes/next-one.md"
_DAY = 86400  # seconds
_CASES_PER_JOB = 4


@dataclass(frozen=True)
class Case:
    """One fault at one call; without a call, during the whole verb."""

    fault: str
    call: SystemCall | None = None

    def repeat_command(self, verb: str) -> str:
        """Return the command that runs this case again."""
        where = f" --call {self.call.number}" if self.call else ""
        return f"python -m battery crash --verb {verb}{where} --fault {self.fault}"

    def describe(self, problems: list[str]) -> list[str]:
        """Return the problems, preceded by the call that got the fault."""
        if not problems or self.call is None:
            return problems
        return [f"{self.fault} at call {self.call.number}, {self.call.text[:160]}", *problems]


@dataclass(frozen=True)
class Baseline:
    """A verb without faults: the store before and after it, and its system calls."""

    verb: str
    before: State
    after: State
    calls: tuple[SystemCall, ...]
    problems: tuple[str, ...]  # what is wrong already without a fault


def run(workspace: Workspace, report: Report, verbs: list[str], faults: list[str], *, every: int = 1, jobs: int = 2) -> None:
    """Run each fault at each call of each verb; with `every` 5, at each fifth call only."""
    template = create_template(workspace)
    baselines = []
    with report.start_row("verbs: flushed before acknowledged") as row:
        for verb in verbs:
            baselines.append(record_baseline(workspace, template, verb))
            problems = [f"{verb}: {problem}" for problem in baselines[-1].problems]
            row.add(problems, f"python -m battery crash --verb {verb} --fault FULL", len(verbs))
    with _WorkerPool(jobs) as workers:
        for baseline in baselines:
            cases = list(list_cases(baseline, faults, every))
            with report.start_row(f"crash: {baseline.verb} ({len(baseline.calls)} calls)") as row:
                for case, problems in workers.run_cases(workspace, template, baseline, cases):
                    row.add(case.describe(problems), case.repeat_command(baseline.verb), len(cases))


def run_one_call(workspace: Workspace, report: Report, verbs: list[str], faults: list[str], number: int) -> None:
    """Run the faults at one call only, to repeat a failure."""
    template = create_template(workspace)
    for verb in verbs:
        baseline = record_baseline(workspace, template, verb)
        with report.start_row(f"crash: {verb}, call {number}") as row:
            for case in list_cases(baseline, faults):
                if case.call and case.call.number == number:
                    problems = run_case(workspace, template, baseline, case)
                    row.add(case.describe(problems), case.repeat_command(verb))


def record_baseline(workspace: Workspace, template: Path, verb: str) -> Baseline:
    """Run a verb without a fault to learn what it does."""
    home = workspace.new_home(f"baseline-{verb}")
    copy_template(template, home, VERBS[verb])
    before = invariants.read_store(home)
    lines, result = strace.trace_verb(workspace, home, verb)
    after = invariants.read_store(home)
    problems = [] if result.output == ["ack"] else [f"without a fault it prints {result.output}"]
    problems += strace.find_unflushed(lines, home) + invariants.find_torn(after) + invariants.check_reopened(home, after)
    workspace.remove_home(home)
    return Baseline(verb, before, after, tuple(strace.select_calls(lines, home)), tuple(problems))


def list_cases(baseline: Baseline, faults: list[str], every: int = 1) -> Iterator[Case]:
    """Yield each fault at each call."""
    for fault in faults:
        if fault == FULL:
            yield Case(FULL)
        else:
            yield from (Case(fault, call) for call in baseline.calls if call.number % every == 0)


def run_case(workspace: Workspace, template: Path, baseline: Baseline, case: Case) -> list[str]:
    """Run one case on a home of its own and return what is wrong afterwards."""
    home = workspace.new_home(f"crash-{baseline.verb}")
    copy_template(template, home, VERBS[baseline.verb])
    result = strace.inject_fault(workspace, home, baseline.verb, case.call, case.fault)
    problems = _check_output(result, case) + _check_home(home, baseline, result)
    workspace.remove_home(home)
    return problems


def _check_home(home: Path, baseline: Baseline, result: ChildResult) -> list[str]:
    """Check what the case left behind."""
    now = invariants.read_store(home)
    next_note = now.pop(_NEXT_ITEM, None)
    unit, acknowledged = VERBS[baseline.verb].unit, "ack" in result.output
    problems = invariants.find_torn(now)
    problems += invariants.find_differences(baseline.before, baseline.after, now, unit, acknowledged)
    problems += _check_bulk_error(baseline, now, result)
    if "next" in result.output and (next_note is None or invariants.read_texts(next_note) != (NEXT_TEXT,)):
        problems.append("the next store in the same process was acknowledged, but is not there")
    if next_note is not None:
        now[_NEXT_ITEM] = next_note
    return problems + invariants.check_reopened(home, now, _collect_words(baseline))


def _check_output(result: ChildResult, case: Case) -> list[str]:
    """Check that the child was killed, or printed an acknowledgement or a Holdfast error and went on."""
    problems = [line for line in result.output if line.startswith(("raw", "stderr", "wrong"))]
    if case.fault == "SIGKILL":
        return problems if result.killed else [*problems, "it was not killed: the verb makes other calls than without a fault"]
    if case.call is not None and not result.injected:
        problems.append("the fault was not reached: the verb makes other calls than without a fault")
    if not problems and not any(line == "ack" or line.startswith("error ") for line in result.output):
        problems.append(f"neither an acknowledgement nor an error: {result.output}, exit {result.exit_code}")
    if not problems and case.fault != FULL and "next" not in result.output:
        problems.append("the same memory could not store afterwards")
    return problems


def _check_bulk_error(baseline: Baseline, now: State, result: ChildResult) -> list[str]:
    """Check that a bulk write that failed half-way names the notes that it wrote or did not write."""
    error = next((line for line in result.output if line.startswith("error ")), "")
    if baseline.verb != "store-many" or not error:
        return []
    done, undone = invariants.split_units(baseline.before, baseline.after, now, "key")
    if not done or not undone:
        return []
    key_of = invariants.key_of
    named = any(key_of(item) in error for item in undone) or all(key_of(item) in error for item in done)
    return [] if named else [f"{len(done)} of {len(done) + len(undone)} notes are written, and it names none: {error}"]


def _collect_words(baseline: Baseline) -> set[str]:
    """Return every word that was in the store before or after the verb."""
    text = b"\n".join([*baseline.before.values(), *baseline.after.values()]).decode()
    return set(re.findall(r"\bzq\w+", text))


# --- the template home ------------------------------------------------------------------------------------------------


def create_template(workspace: Workspace) -> Path:
    """Create the home that every case gets a copy of: versions, facts, files, trash, an archive and expired notes."""
    home = workspace.new_home("template")
    real_clock = dates.clock
    try:  # in the past, so that nothing was written just now
        _set_clock(real_clock() - 200 * _DAY)
        _write_old_notes(home)
        for days_ago in (10, 9, 8):
            _set_clock(real_clock() - days_ago * _DAY)
            _write_recent_notes(home, days_ago)
    finally:
        dates.clock = real_clock
    _truncate_index_log(home)
    return home


def copy_template(template: Path, home: Path, verb: Verb) -> None:
    """Make the home in which a verb is tested; a copy has other inodes, so its index is updated first."""
    if verb.empty:
        return
    shutil.copytree(template, home, symlinks=True)
    with open_memory(home) as memory:
        memory.list()
        memory.list()
    if verb.delete:
        (home / verb.delete).unlink()


def _truncate_index_log(home: Path) -> None:
    """Keep the template small: it is copied thousands of times."""
    db = apsw.Connection(str(home / "index.db"))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.close()


def _set_clock(seconds: float) -> None:
    dates.clock = lambda: seconds


def _write_old_notes(home: Path) -> None:
    with open_memory(home) as memory:
        memory.store("zq001 nobody has touched this for long", key="stale")
        memory.store("zq002 a session that is over", key="stale-too", scope="session")
        memory.store("zq003 feedback stays for ever", key="lasting", type="feedback")
        memory.store("zq004 forgotten long ago", key="ancient")
        memory.forget("ancient")


def _write_recent_notes(home: Path, days_ago: int) -> None:
    with open_memory(home) as memory:
        memory.store(f"zq01{days_ago} alpha, {days_ago} days ago", key="alpha", tags=["first", "letter"])
        memory.fact("Telegram", "status", f"zq02{days_ago}", on=f"2026-03-{20 - days_ago}")
        if days_ago == 10:
            _write_other_notes(memory)
        if days_ago == 9:
            memory.store("zq034 gamma, again", key="gamma")
            memory.store("zq035 lost, again\n\n## 2026-01-01 to 2026-01-02\nnot history", key="lost")
            memory.forget("lost")


def _write_other_notes(memory: Memory) -> None:
    memory.store("zq030 beta, a person's liking", key="beta", type="user")
    memory.store("zq031 gamma, to be forgotten", key="gamma")
    memory.forget("gamma")
    memory.store("zq032 gamma, once", key="gamma")
    memory.store("zq033 lost, once", key="lost")
    memory.store("zq036 for everybody", key="common", scope="global")
    memory.store("zq037 the agent's own", key="own", scope="agent")
    memory.store("zq038 of this session", key="now", scope="session")
    memory.files.create("/memories/MEMORY.md", "# Overview\nzq050 what is where\n")
    memory.files.create("/memories/plan.md", "# Plan\nzq051 first this, then that\n")
    memory.files.create("/memories/folder/one.md", "zq052 one\n")
    memory.files.create("/memories/folder/two.md", "zq053 two\n")
    memory.recall("alpha", mode="keyword")


# --- several cases at a time ------------------------------------------------------------------------------------------


class _WorkerPool:
    """New processes that run cases; with one job, this process runs them."""

    def __init__(self, jobs: int) -> None:
        self._pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) if jobs > 1 else None

    def __enter__(self) -> _WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def run_cases(
        self, workspace: Workspace, template: Path, baseline: Baseline, cases: list[Case]
    ) -> Iterator[tuple[Case, list[str]]]:
        """Yield each case with its problems, in order."""
        if self._pool is None:
            for case in cases:
                yield case, run_case(workspace, template, baseline, case)
            return
        futures = [
            self._pool.submit(_run_cases, str(workspace.root), template, baseline, cases[start : start + _CASES_PER_JOB])
            for start in range(0, len(cases), _CASES_PER_JOB)
        ]
        results = (problems for future in futures for problems in future.result())
        yield from zip(cases, results, strict=True)


def _run_cases(root: str, template: Path, baseline: Baseline, cases: list[Case]) -> list[list[str]]:
    workspace = Workspace.attach(root)
    return [run_case(workspace, template, baseline, case) for case in cases]
