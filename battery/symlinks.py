"""Part `symlinks`: folders and files are exchanged for links thousands of times while other processes use them.

Not one byte outside the home may be read or written, and every verb must succeed or fail with an error of Holdfast.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from battery import access_trace, strace
from battery.child_programs import open_memory
from battery.report import Report, repeat_command
from battery.watched_folder import CANARY, WatchedFolder
from battery.workspace import Workspace

SWAPS = 10_000
WORKERS = 3  # the first one is traced by strace
_TIMEOUT = 1500  # seconds
_CHILD = Path(__file__).with_name("symlinks_child.py")


@dataclass(frozen=True)
class Result:
    """A race: how many swaps there were, a figure for the report, and what is wrong."""

    swaps: int
    figure: str
    problems: list[str]


def run(workspace: Workspace, report: Report, share: float, seed: int) -> None:
    """Run the race; a share below 1 means fewer swaps."""
    swaps = max(200, round(SWAPS * share))
    if sys.platform != "linux":
        report.add_not_tried(f"symlinks: {swaps:,} swaps", "two names are exchanged in one step only on Linux")
        return
    with report.start_row(f"symlinks: {swaps:,} swaps") as row:
        result = run_race(workspace, swaps, seed)
        for _ in range(result.swaps):
            row.add([], "")
        for problem in result.problems:
            row.add([problem], repeat_command("symlinks", share, seed))
        row.set_figure(result.figure)


def run_race(workspace: Workspace, swaps: int, seed: int) -> Result:
    """Exchange links in one home while workers use it, and check the home and the folder the links lead to."""
    home = Path(os.path.realpath(workspace.new_home("symlinks")))
    _create_notes(home)
    traced = not strace.unavailable_reason()
    with WatchedFolder(home.parent) as outside:
        done, work, problems = _run_processes(workspace, home, outside, swaps, seed, traced)
        problems += outside.find_changes()
    problems += _find_canary(home) + _check_usable(home)
    if traced:
        problems += access_trace.find_violations(home.parent / "trace", _allowed_paths(workspace, home))
    workspace.remove_home(home)
    calls = sum(sum(result["counts"].values()) for result in work)
    refused = calls - sum(result["counts"].get("done", 0) for result in work)
    problems += [f"{problem} ({count} times)" for result in work for problem, count in result["problems"].items()]
    if done < swaps:
        problems.append(f"only {done} swaps of {swaps}")
    touched = sum("outside" in problem for problem in problems)
    return Result(done, f"{touched} touched outside; {calls:,} verbs meanwhile, {refused:,} refused", problems)


def _run_processes(
    workspace: Workspace, home: Path, outside: WatchedFolder, swaps: int, seed: int, traced: bool
) -> tuple[int, list[dict[str, Any]], list[str]]:
    """Run the workers until the swaps are done; return the number of swaps, the result of each worker and the problems."""
    stop = home.parent / "stop"
    environment = workspace.full_environment()

    def start(*words: str, log: Path | None = None) -> subprocess.Popen[str]:
        child = [sys.executable, str(_CHILD), *words]
        return subprocess.Popen(
            access_trace.trace_command(log, child) if log else child, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env=environment, cwd="/",
        )  # fmt: skip

    workers = []
    for number in range(WORKERS):
        log = home.parent / "trace" if traced and number == 0 else None
        workers.append(start("work", str(home), f"{seed}-{number}", str(stop), log=log))
    for worker in workers:
        assert worker.stdout is not None
        worker.stdout.readline()  # printed when it has loaded everything
    swapper = start("swap", str(home), str(outside.root), str(swaps), str(seed))
    try:
        swapped, swap_errors = swapper.communicate(timeout=_TIMEOUT)
        stop.touch()
        outputs = [worker.communicate(timeout=120) for worker in workers]
    finally:
        for child in (swapper, *workers):
            child.kill()
    errors = (swap_errors, *[errors for _, errors in outputs])
    problems = [f"a child printed to stderr: {text.strip()[-800:]}" for text in errors if text.strip()]
    work = [json.loads(output) for output, _ in outputs if output.strip()]
    if len(work) < WORKERS:
        problems.append(f"{WORKERS - len(work)} workers did not finish")
    return json.loads(swapped)["swaps"] if swapped.strip() else 0, work, problems


def _create_notes(home: Path) -> None:
    with open_memory(home) as memory:
        for key in ("alpha", "keep", "secret"):
            memory.store(f"zq {key} before the race", key=key)
        for path in ("plan.md", "MEMORY.md", "folder/secret.md", "folder/deep/secret.md"):
            memory.files.create(path, f"# {path}\nzq before the race\n")
        memory.log([{"role": "user", "text": "zq said before the race"}], session="s1", client="chat")
        memory.forget("secret")


def _allowed_paths(workspace: Workspace, home: Path) -> access_trace.AllowedPaths:
    links = str(home.parent / "links")  # where a folder is while a link has its name: a process may have it open
    return access_trace.AllowedPaths(str(home), (str(workspace.package_root), str(_CHILD.parent)), (links,))


def _find_canary(home: Path) -> list[str]:
    """Return the files of the home that have bytes of the watched folder."""
    files = [path for path in home.rglob("*") if path.is_file() and not path.is_symlink()]
    return [f"text from outside is in {path.relative_to(home)}" for path in files if CANARY.encode() in path.read_bytes()]


def _check_usable(home: Path) -> list[str]:
    """Check that the home works after the race."""
    try:
        with open_memory(home) as memory:
            memory.reindex()
            memory.store("zqafter the race", key="after")
            found = [hit.key for hit in memory.recall("zqafter", mode="keyword")]
            memory.check()  # it may report a link that was left behind and an interrupted purge
    except Exception as error:  # noqa: BLE001 - whatever it raises, the home is not usable
        return [f"after the race: {type(error).__name__}: {error}"]
    return [] if found == ["after"] else [f"after the race the next store is found as {found}"]
