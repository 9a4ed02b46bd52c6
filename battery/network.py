"""No network: every embedded verb, every plain command and every route of a gateway, with sockets refused inside and strace
watching outside. A gateway listens on loopback, and from it no connection leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from battery import gateway, opens, strace
from battery.lab import Lab
from battery.report import Report, repeat

_SECONDS = 300


def run(lab: Lab, report: Report, share: float, seed: int) -> None:
    """Three doors; the share changes nothing, it is all or nothing."""
    why_not = strace.why_not()
    if why_not:
        report.not_tried("network: connections, seen from outside with strace", why_not)
    for door in ("library", "cli", "gateway"):
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
    command = opens.command(log, child, opens.NET_CALLS) if watched else child
    told = gateway.judged(command, environment, "/") if door == "gateway" else _judged(command, environment)
    seen = opens.connections(log, str(home), serves=door == "gateway") if watched else []
    lab.away(home)
    tried = [f"network, from inside: {one}" for one in told["attempts"]]
    elsewhere = [] if door != "gateway" or told["bound"] == ["127.0.0.1"] else [f"network, it listens on {told['bound']}"]
    return [*tried, *elsewhere, *[f"network, from outside: {one}" for one in seen], *told["wrong"]]


def _judged(command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    """What a child that needs nobody says of itself."""
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, cwd="/", timeout=_SECONDS
    )  # fmt: skip
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return lines[-1] if lines else {"attempts": [], "wrong": [f"it did not come to the end: {done.stderr[-600:]}"]}
