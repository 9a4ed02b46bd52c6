"""`python -m battery`: run it all, or one part, or repeat one failure."""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from importlib import import_module

from battery.lab import Lab, kind_of
from battery.report import Report

TRUST = {  # the parts about trust: each is a module with `run(lab, report, share, seed)`
    "paths": "every path, key, name and id that could lead out of the home, through every door",
    "secrets": "a sample of every rule for secrets, and ordinary notes",
    "race": "folders and files swapped for links while others work on them",
    "rotten": "index files and notes that somebody or something spoiled",
    "fuzz": "every parser, with inputs that nobody thought of",
    "erase": "what is purged leaves no byte, and cannot come back while others write",
    "network": "every embedded verb, watched for connections",
    "readside": "orders and hidden characters in what is stored, read through every door that shows",
    "leaks": "every verb, door and scope, asked by its owner and by others",
    "advisories": "known vulnerabilities in what we depend on",
}
PARTS = ("crash", "kill", "crowd", "tamper", *TRUST, "tests")
QUICK = 0.05  # the share of everything that a quick run tries


def main(arguments: list[str] | None = None) -> int:
    """0 when everything held, 1 when anything failed."""
    asked = _parser().parse_args(arguments)
    report = Report(quiet=asked.json)
    start = time.monotonic()
    for name in [name for name in os.environ if name.startswith("HOLDFAST_") and name != "HOLDFAST_TEST_NPM"]:
        del os.environ[name]  # the battery's homes are nobody's
    with Lab.make() as lab:
        sys.path.insert(0, str(lab.library))  # this process judges with the same copy that its children run
        try:
            _run(lab, report, asked)
        finally:
            sys.path.remove(str(lab.library))
        report.note(f"{time.monotonic() - start:.0f} s on {kind_of(str(lab.root))}, seed {asked.seed}")
    print(report.json() if asked.json else report.text())
    return 1 if report.failed else 0


def _run(lab: Lab, report: Report, asked: argparse.Namespace) -> None:
    from battery import crowd, kill, slow_tests, strace, tamper

    wanted = {asked.part or asked.only} - {None} or set(PARTS)
    if "crash" in wanted:
        reason = strace.why_not()
        if reason:
            report.note(f"NOT TRIED: faults at system calls, because {reason}; random moments only")
            wanted.add("kill")
        else:
            _crash(lab, report, asked)
    if "kill" in wanted and asked.life:
        with report.row(f"killed at random moments (life {asked.life})") as row:
            for problems in kill.live(lab, asked.life):
                row.tried(problems, f"python -m battery kill --life {asked.life}")
    elif "kill" in wanted:
        kill.run(lab, report, asked.moments or (24 if asked.quick else 300), asked.seed, jobs=asked.jobs)
    if "crowd" in wanted:
        crowd.run(lab, report, share=QUICK if asked.quick else 1.0)
    if "tamper" in wanted:
        tamper.run(lab, report, rows=100 if asked.quick else 1000)
    for part in TRUST:
        if part in wanted:
            import_module(f"battery.{part}").run(lab, report, QUICK if asked.quick else 1.0, asked.seed)
    if "tests" in wanted and asked.quick:
        report.not_tried("tests: the slow ones of pytest", "they have no quick form")
    elif "tests" in wanted:
        slow_tests.run(report, asked.jobs)


def _crash(lab: Lab, report: Report, asked: argparse.Namespace) -> None:
    from battery import crash
    from battery.verbs import VERBS

    verbs = asked.verb or list(VERBS)
    faults = asked.fault or [*crash.FAULTS, crash.FULL]
    if asked.call:
        crash.once(lab, report, verbs, faults, asked.call)
    else:
        crash.run(lab, report, verbs, faults, every=29 if asked.quick else 1, jobs=asked.jobs)


def _parser() -> argparse.ArgumentParser:
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
