"""Every parser fuzzed, with Hypothesis and with Atheris: no crash, and no input that takes more than a second of work."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from battery.lab import Lab
from battery.report import Report, repeat

COUNTS = {"hypothesis": 1500, "atheris": 20_000}  # inputs of each parser
_SECONDS = 1500
NAMES = (
    "frontmatter", "facts", "dates", "spans", "words", "queries", "transcripts", "turns", "hook input", "what clients tell",
    "jsonc edits", "toml edits", "blocks", "config.toml", "git and markers", "names and paths", "import lines", "what is shown",
)  # fmt: skip
SLOW = ("queries", "hook input", "git and markers", "words", "what is shown")  # a tenth of the inputs: each takes milliseconds


def run(lab: Lab, report: Report, share: float, seed: int, *, jobs: int = 2) -> None:
    """Both ways; at a share of less than 1, fewer inputs."""
    for way, count in COUNTS.items():
        missing = why_not(way)
        if missing:
            report.not_tried(f"fuzz: every parser with {way.capitalize()}", missing)
            continue
        with report.row(f"fuzz: {len(NAMES)} parsers with {way.capitalize()}") as row:
            slowest = 0.0
            for tried, worst, problems in fuzzed(lab, way, seed, _inputs(count, share), jobs):
                slowest = max(slowest, worst)
                for _ in range(tried - len(problems)):
                    row.tried([], "")
                for problem in problems:
                    row.tried([problem], repeat("fuzz", share, seed))
            row.figure(f"{len(row.failures)} crashes or hangs, slowest input {slowest:.2f} s of work")


def _inputs(count: int, share: float) -> int:
    """A child takes seconds to start, so that a sample is smaller than its share."""
    return count if share >= 1 else max(10, round(count * share / 8))


def why_not(way: str) -> str:
    """Empty where it can be done."""
    if importlib.util.find_spec(way) is None:
        return f"{way} is not installed: pip install {way}"
    return ""


def fuzzed(lab: Lab, way: str, seed: int, count: int, jobs: int = 2) -> Iterator[tuple[int, float, list[str]]]:
    """Some parsers in a child each: inputs tried, the slowest, and what was found."""
    quick = tuple(name for name in NAMES if name not in SLOW)
    groups = [(quick, count), (SLOW, max(10, count // 10))]
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(lambda group: some(lab, way, group[0], seed, group[1]), groups)


def some(lab: Lab, way: str, names: tuple[str, ...], seed: int, inputs: int) -> tuple[int, float, list[str]]:
    """Some parsers, with so many inputs each."""
    room = lab.home("fuzz").parent
    environment = lab.whole_environment()
    environment["PYTHONPATH"] += os.pathsep + str(Path(__file__).resolve().parents[1])
    child = [sys.executable, "-m", "battery.fuzzing", way, ",".join(names), str(room), str(seed), str(inputs)]
    try:
        done = subprocess.run(
            child, capture_output=True, text=True, check=False, env={**environment, "HOME": str(room)}, cwd=room,
                timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        return 1, 0.0, [f"it did not come to the end in {_SECONDS} s"]
    finally:
        lab.away(room / "home")
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    found = [line for line in lines if "found" in line]
    problems = [f"{line['found']}; {line['bytes']} bytes, as hex: {line['input'][:400]}" for line in found]
    end = next((line for line in lines if "tried" in line), None)
    if end is None:
        return 1, 0.0, [*problems, f"CRASHED with {done.returncode}: {done.stderr[-500:]}"]
    return int(end["tried"]), float(end["slowest"]), problems
