"""Part `fuzz`: every parser with inputs of Hypothesis and Atheris; none may crash or need more than a second of work."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from battery.report import Report, repeat_command
from battery.workspace import Workspace

INPUTS = {"hypothesis": 1500, "atheris": 20_000}  # for each parser
_TIMEOUT = 1500  # seconds for one child
PARSERS = (
    "frontmatter", "facts", "dates", "time expressions", "words", "queries", "transcripts", "turns", "hook input",
    "client events", "jsonc edits", "toml edits", "blocks", "config.toml", "git and markers", "names and paths",
    "import lines", "hidden characters and secrets",
)  # fmt: skip
SLOW_PARSERS = ("queries", "hook input", "git and markers", "words", "hidden characters and secrets")  # milliseconds each


@dataclass(frozen=True)
class Result:
    """Some parsers: how many inputs they got, the seconds of work for the slowest, and what is wrong."""

    inputs: int
    slowest: float
    problems: list[str]


def run(workspace: Workspace, report: Report, share: float, seed: int, *, jobs: int = 2) -> None:
    """Run both fuzzers; a share below 1 means fewer inputs."""
    for fuzzer, count in INPUTS.items():
        reason = unavailable_reason(fuzzer)
        if reason:
            report.add_not_tried(f"fuzz: every parser with {fuzzer.capitalize()}", reason)
            continue
        with report.start_row(f"fuzz: {len(PARSERS)} parsers with {fuzzer.capitalize()}") as row:
            slowest = 0.0
            for result in _run_fuzzer(workspace, fuzzer, seed, _scale(count, share), jobs):
                slowest = max(slowest, result.slowest)
                for _ in range(result.inputs - len(result.problems)):
                    row.add([], "")
                for problem in result.problems:
                    row.add([problem], repeat_command("fuzz", share, seed))
            row.set_figure(f"{len(row.failures)} crashes or hangs, slowest input {slowest:.2f} s of work")


def _scale(count: int, share: float) -> int:
    """Return the number of inputs for a share; less than that share, because a child takes seconds to start."""
    return count if share >= 1 else max(10, round(count * share / 8))


def unavailable_reason(fuzzer: str) -> str:
    """Return why a fuzzer cannot run, or an empty string if it can."""
    if importlib.util.find_spec(fuzzer) is None:
        return f"{fuzzer} is not installed: pip install {fuzzer}"
    return ""


def _run_fuzzer(workspace: Workspace, fuzzer: str, seed: int, count: int, jobs: int) -> Iterator[Result]:
    """Run fast and slow parsers in a child each; slow ones get a tenth of the inputs."""
    fast = tuple(name for name in PARSERS if name not in SLOW_PARSERS)
    groups = [(fast, count), (SLOW_PARSERS, max(10, count // 10))]
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(lambda group: run_child(workspace, fuzzer, group[0], seed, group[1]), groups)


def run_child(workspace: Workspace, fuzzer: str, parsers: tuple[str, ...], seed: int, inputs: int) -> Result:
    """Run some parsers in a child with `inputs` inputs each."""
    folder = workspace.new_home("fuzz").parent
    environment = {**workspace.full_environment(with_battery=True), "HOME": str(folder)}
    child = [sys.executable, "-m", "battery.fuzz_child", fuzzer, ",".join(parsers), str(folder), str(seed), str(inputs)]
    try:
        done = subprocess.run(
            child, capture_output=True, text=True, check=False, env=environment, cwd=folder, timeout=_TIMEOUT
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Result(1, 0.0, [f"it did not finish in {_TIMEOUT} s"])
    finally:
        workspace.remove_home(folder / "home")
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    problems = [
        f"{line['problem']}; {line['bytes']} bytes, as hex: {line['input'][:400]}" for line in lines if "problem" in line
    ]
    end = next((line for line in lines if "inputs" in line), None)
    if end is None:
        return Result(1, 0.0, [*problems, f"CRASHED with {done.returncode}: {done.stderr[-500:]}"])
    return Result(int(end["inputs"]), float(end["slowest"]), problems)
