"""No network: every embedded verb and every plain command, with sockets refused inside and strace watching outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from battery import opens, strace
from battery.lab import Lab
from battery.report import Report, repeat

_SECONDS = 300


def run(lab: Lab, report: Report, share: float, seed: int) -> None:
    """Both doors that need no server; the share changes nothing, it is all or nothing."""
    why_not = strace.why_not()
    if why_not:
        report.not_tried("network: connections, seen from outside with strace", why_not)
    for door in ("library", "cli"):
        with report.row(f"network: everything by the {door}") as row:
            problems = used(lab, door, watched=not why_not)
            row.tried(problems, repeat("network", share, seed))
            row.figure(f"{sum('network' in one for one in problems)} connections" + ("" if why_not else ", seen from outside"))


def used(lab: Lab, door: str, *, watched: bool) -> list[str]:
    """What is wrong: an attempt, seen from inside or from outside; or a verb that was not tried."""
    home = Path(os.path.realpath(lab.home("network")))
    environment = {**lab.whole_environment(), "HOME": str(home.parent)}
    environment["PYTHONPATH"] += os.pathsep + str(Path(__file__).resolve().parents[1])
    del environment["HOLDFAST_EMBEDDER"]  # with the models that come with the install
    log = home.parent / "trace"
    child = [sys.executable, "-m", "battery.everything", door, str(home)]
    done = subprocess.run(
        opens.command(log, child, opens.NET_CALLS) if watched else child, capture_output=True, text=True, check=False,
        env=environment, cwd="/", timeout=_SECONDS,
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    seen = opens.connections(log, str(home)) if watched else []
    lab.away(home)
    if not lines:
        return [f"it did not come to the end: {done.stderr[-600:]}"]
    tried = [f"network, from inside: {one}" for one in lines[-1]["attempts"]]
    return [*tried, *[f"network, from outside: {one}" for one in seen], *lines[-1]["wrong"]]
