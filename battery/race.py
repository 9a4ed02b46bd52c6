"""Symlink swaps in a race: somebody puts links in the place of folders and files, thousands of times, while others work on
them. Not one byte outside the home may be read or written, and nothing may fail but with an error of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from battery import opens, strace
from battery.lab import Lab
from battery.outside import CANARY, Outside
from battery.report import Report, repeat

SWAPS = 10_000
WORKERS = 3  # of which one is watched by strace besides
SECONDS = 1500
_RACING = Path(__file__).with_name("racing.py")


def run(lab: Lab, report: Report, share: float, seed: int) -> None:
    """The race: at a share of less than 1, with fewer swaps."""
    swaps = max(200, round(SWAPS * share))
    if sys.platform != "linux":
        report.not_tried(f"race: {swaps:,} symlink swaps", "two names are exchanged in one step only on Linux")
        return
    with report.row(f"race: {swaps:,} symlink swaps") as row:
        done, figure, wrong = held(lab, swaps, seed)
        for _ in range(done):
            row.tried([], "")
        for problem in wrong:
            row.failed([problem], repeat("race", share, seed))
        row.figure(figure)


def held(lab: Lab, swaps: int, seed: int) -> tuple[int, str, list[str]]:
    """One race: how many swaps there were, the figure, and what is wrong."""
    home = Path(os.path.realpath(lab.home("race")))
    _furnish(home)
    watched = not strace.why_not()
    with Outside(home.parent) as outside:
        said, wrong = _raced(lab, home, outside, swaps, seed, watched)
        wrong += outside.problems()
    wrong += _leaked(home) + _usable(home)
    if watched:
        wrong += opens.judged(home.parent / "trace", _allowed(lab, home))
    lab.away(home)
    tries = sum(sum(one["counts"].values()) for one in said["work"])
    refused = tries - sum(one["counts"].get("done", 0) for one in said["work"])
    wrong += [f"{problem} ({count} times)" for one in said["work"] for problem, count in one["wrong"].items()]
    if said["swaps"] < swaps:
        wrong.append(f"only {said['swaps']} swaps of {swaps}")
    outside_count = sum("outside" in one for one in wrong)
    return said["swaps"], f"{outside_count} touched outside; {tries:,} verbs meanwhile, {refused:,} refused", wrong


def _raced(lab: Lab, home: Path, outside: Outside, swaps: int, seed: int, watched: bool) -> tuple[dict[str, Any], list[str]]:
    """Everybody at once, until the swaps are done."""
    stop = home.parent / "stop"
    environment = lab.whole_environment()

    def start(*words: str, log: Path | None = None) -> subprocess.Popen[str]:
        child = [sys.executable, str(_RACING), *words]
        return subprocess.Popen(
            opens.command(log, child) if log else child, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment, cwd="/",
        )  # fmt: skip

    log = home.parent / "trace"
    working = [
        start("work", str(home), f"{seed}-{one}", str(stop),
            log=log if watched and one == 0 else None) for one in range(WORKERS)
    ]
    for child in working:
        assert child.stdout is not None
        child.stdout.readline()  # it has loaded everything, and begins
    swapping = start("swap", str(home), str(outside.root), str(swaps), str(seed))
    try:
        swapped, complaint = swapping.communicate(timeout=SECONDS)
        stop.touch()
        ended = [child.communicate(timeout=120) for child in working]
    finally:
        for child in (swapping, *working):
            child.kill()
    wrong = [f"a child said: {text.strip()[-800:]}" for text in (complaint, *[err for _, err in ended]) if text.strip()]
    work = [json.loads(out) for out, _ in ended if out.strip()]
    if len(work) < WORKERS:
        wrong.append(f"{WORKERS - len(work)} workers did not come to the end")
    return {**(json.loads(swapped) if swapped.strip() else {"swaps": 0}), "work": work}, wrong


def _furnish(home: Path) -> None:
    from battery.verbs import caller

    with caller(home) as memory:
        for key in ("alpha", "keep", "secret"):
            memory.store(f"zq {key} before the race", key=key)
        for path in ("plan.md", "MEMORY.md", "folder/secret.md", "folder/deep/secret.md"):
            memory.files.create(path, f"# {path}\nzq before the race\n")
        memory.log([{"role": "user", "text": "zq said before the race"}], session="s1", client="chat")
        memory.forget("secret")


def _allowed(lab: Lab, home: Path) -> opens.Allowed:
    links = str(home.parent / "links")  # where a folder stands while a link stands in its place: an open one goes there with it
    return opens.Allowed(str(home), (str(lab.library), str(_RACING.parent)), (links,))


def _leaked(home: Path) -> list[str]:
    """No byte of the sentinel is in any file of the home."""
    files = [path for path in home.rglob("*") if path.is_file() and not path.is_symlink()]
    return [f"what stands outside is in {path.relative_to(home)}" for path in files if CANARY.encode() in path.read_bytes()]


def _usable(home: Path) -> list[str]:
    """Once it is over, the home works."""
    from battery.verbs import caller

    try:
        with caller(home) as memory:
            memory.reindex()
            memory.store("zqafter the race", key="after")
            found = [hit.key for hit in memory.recall("zqafter", mode="keyword")]
            memory.check()  # which may well name a link that was left behind, and a purge that was cut short
    except Exception as error:  # noqa: BLE001 - whatever it raises, the home is not usable
        return [f"after the race: {type(error).__name__}: {error}"]
    return [] if found == ["after"] else [f"after the race the next store is found as {found}"]
