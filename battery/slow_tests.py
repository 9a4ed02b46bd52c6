"""Part `tests`: the slow tests of `tests/`, marked `battery`, and the property tests with many more examples."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple

from battery.report import Report

ROOT = Path(__file__).resolve().parents[1]
MARKS = "battery or hypothesis"  # Hypothesis marks its tests itself
OPTIONS = ("--hypothesis-profile=battery", "--model-examples=300", "--timeout=1800")


class TestResult(NamedTuple):
    """One test: its name without parameters, what failed, and whether it was skipped."""

    name: str
    problems: list[str]
    skipped: bool


def run(report: Report, jobs: int) -> None:
    """Run the tests with pytest, whose output goes to stderr; one row has their number and each failure."""
    folders = tempfile.TemporaryDirectory(prefix="holdfast-battery-")
    with folders as folder, report.start_row("tests: the slow ones of pytest") as row:
        path = Path(folder, "results.xml")
        arguments = ("-n", str(jobs), "--dist", "loadgroup", "-m", MARKS, *OPTIONS, f"--junit-xml={path}")
        exit_code = subprocess.run([sys.executable, "-m", "pytest", *arguments], cwd=ROOT, stdout=sys.stderr).returncode
        results = _read_results(path)
        for result in results:
            if not result.skipped:
                row.add(result.problems, f"python -m pytest -m '' {' '.join(OPTIONS)} -k {result.name}")
        if exit_code and not row.failures:
            row.add([f"pytest ended with {exit_code}"], "python -m battery tests")
        skipped = sum(result.skipped for result in results)
        if skipped:
            row.set_figure(f"{skipped} NOT TRIED")
            report.add_note(f"NOT TRIED: {skipped} slow tests that were skipped; the log above has the reasons")


def _read_results(path: Path) -> list[TestResult]:
    """Return each test of a JUnit report; none if pytest did not write it."""
    if not path.exists():
        return []
    results = []
    for case in ElementTree.parse(path).iter("testcase"):
        failures = [element for element in case if element.tag in ("failure", "error")]
        test = f"{case.get('classname')}::{case.get('name')}"
        problems = [f"{test}: {failure.get('message', '')[:300]}" for failure in failures]
        name = str(case.get("name")).partition("[")[0]
        results.append(TestResult(name, problems, case.find("skipped") is not None))
    return results
