"""The slow tests of `tests/`: those marked `battery`, and the property tests again with many more examples."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from battery.report import Report

ROOT = Path(__file__).resolve().parents[1]
MARKS = "battery or hypothesis"  # Hypothesis marks its tests itself
MORE = ("--hypothesis-profile=battery", "--model-examples=300", "--timeout=1800")


def run(report: Report, jobs: int) -> None:
    """Run them with pytest, whose log goes to stderr; a row has their number and each failure."""
    with tempfile.TemporaryDirectory(prefix="holdfast-battery-") as folder, report.row("tests: the slow ones of pytest") as row:
        results = Path(folder, "results.xml")
        words = ("-n", str(jobs), "--dist", "loadgroup", "-m", MARKS, *MORE, f"--junit-xml={results}")
        ended = subprocess.run([sys.executable, "-m", "pytest", *words], cwd=ROOT, stdout=sys.stderr).returncode
        skipped = 0
        for name, problems, was_skipped in read(results):
            skipped += was_skipped
            if not was_skipped:
                row.tried(problems, f"python -m pytest -m '' {' '.join(MORE)} -k {name}")
        if ended and not row.failures:
            row.failed([f"pytest ended with {ended}"], "python -m battery tests")
        if skipped:
            row.figure(f"{skipped} NOT TRIED")
            report.note(f"NOT TRIED: {skipped} slow tests that were skipped; the log above has the reasons")


def read(results: Path) -> list[tuple[str, list[str], bool]]:
    """Return each test of a JUnit report: its name, what failed, and whether it was skipped."""
    if not os.path.exists(results):
        return []
    found = []
    for case in ElementTree.parse(results).iter("testcase"):
        wrong = [one for one in case if one.tag in ("failure", "error")]
        said = [f"{case.get('classname')}::{case.get('name')}: {one.get('message', '')[:300]}" for one in wrong]
        found.append((str(case.get("name")).partition("[")[0], said, case.find("skipped") is not None))
    return found
