"""`python -m battery`: run all parts, or one part, or repeat one failure."""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from importlib import import_module

from battery.report import Report
from battery.workspace import Workspace, file_system_of

SEEDED_PARTS = (  # modules with `run(workspace, report, share, seed)`
    "paths", "secrets", "symlinks", "damage", "fuzz", "purge", "network", "injection", "leaks", "advisories",
)  # fmt: skip
PARTS = ("crash", "kill", "concurrency", "audit", *SEEDED_PARTS, "tests")
QUICK_SHARE = 0.05  # of all cases, in a quick run


def main(arguments: list[str] | None = None) -> int:
    """Run the battery and return the exit status: 0 if everything passed, 1 if anything failed."""
    options = _create_parser().parse_args(arguments)
    report = Report(quiet=options.json)
    start = time.monotonic()
    for name in [name for name in os.environ if name.startswith("HOLDFAST_") and name != "HOLDFAST_TEST_NPM"]:
        del os.environ[name]  # settings of the user do not apply to the homes of the battery
    with Workspace.create() as workspace:
        sys.path.insert(0, str(workspace.package_root))  # this process uses the same copy as its children
        try:
            _run_parts(workspace, report, options)
        finally:
            sys.path.remove(str(workspace.package_root))
        report.add_note(f"{time.monotonic() - start:.0f} s on {file_system_of(str(workspace.root))}, seed {options.seed}")
    print(report.render_json() if options.json else report.render_text())
    return 1 if report.failed else 0


def _run_parts(workspace: Workspace, report: Report, options: argparse.Namespace) -> None:
    from battery import audit, concurrency, slow_tests, strace

    part = options.part or options.only
    wanted = {part} if part else set(PARTS)
    share = QUICK_SHARE if options.quick else 1.0
    if "crash" in wanted:
        reason = strace.unavailable_reason()
        if reason:
            report.add_note(f"NOT TRIED: faults at system calls, because {reason}; random moments only")
            wanted.add("kill")
        else:
            _run_crash(workspace, report, options)
    if "kill" in wanted:
        _run_kill(workspace, report, options)
    if "concurrency" in wanted:
        concurrency.run(workspace, report, share=share)
    if "audit" in wanted:
        audit.run(workspace, report, rows=100 if options.quick else 1000)
    for name in SEEDED_PARTS:
        if name in wanted:
            import_module(f"battery.{name}").run(workspace, report, share, options.seed)
    if "tests" in wanted and options.quick:
        report.add_not_tried("tests: the slow ones of pytest", "they have no quick form")
    elif "tests" in wanted:
        slow_tests.run(report, options.jobs)


def _run_crash(workspace: Workspace, report: Report, options: argparse.Namespace) -> None:
    from battery import crash
    from battery.child_programs import VERBS

    verbs = options.verb or list(VERBS)
    faults = options.fault or [*crash.FAULTS, crash.FULL]
    if options.call:
        crash.run_one_call(workspace, report, verbs, faults, options.call)
    else:
        crash.run(workspace, report, verbs, faults, every=29 if options.quick else 1, jobs=options.jobs)


def _run_kill(workspace: Workspace, report: Report, options: argparse.Namespace) -> None:
    from battery import kill

    if not options.life:
        kill.run(workspace, report, options.moments or (24 if options.quick else 300), options.seed, jobs=options.jobs)
        return
    with report.start_row(f"killed at random moments (life {options.life})") as row:
        for problems in kill.run_home(workspace, options.life):
            row.add(problems, f"python -m battery kill --life {options.life}")


def _create_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m battery", description=__doc__)
    parser.add_argument("part", nargs="?", choices=PARTS, help="only this part")
    parser.add_argument("--only", choices=PARTS, help="the same")
    parser.add_argument("--quick", action="store_true", help="a sample of everything, in about two minutes")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of everything that is random")
    parser.add_argument("--moments", type=int, help="how many random moments (300)")
    parser.add_argument("--jobs", type=int, default=2, help="cases tried at a time (2)")
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    parser.add_argument("--verb", action="append", help="crash: only this verb")
    parser.add_argument("--call", type=int, help="crash: only this system call, by its number")
    faults = ("SIGKILL", "EIO", "ENOSPC", "FULL")
    parser.add_argument("--fault", action="append", choices=faults, help="crash: only this fault")
    parser.add_argument("--life", help="kill: only the home with this seed")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
