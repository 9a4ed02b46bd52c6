"""Known vulnerabilities in what we depend on: everything that an install with all extras brings, asked of the registry.

`pip-audit` is asked where it is installed and its service answers; otherwise the package index itself, whose JSON names the
advisories of a release. What cannot be asked is said to be not tried, and never counted as passed.
"""

from __future__ import annotations

import importlib.metadata as metadata
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from battery.lab import Lab
from battery.report import Report, repeat

INDEX = "https://pypi.org/pypi/{}/{}/json"
CONTROL = ("requests", "2.19.0")  # a release with an advisory that everybody knows: who does not tell of it cannot be asked
_SECONDS = 20


def run(lab: Lab, report: Report, share: float, seed: int) -> None:
    """One row: a release and its advisories each."""
    needed = releases()
    answers, by = asked(needed)
    if not answers:
        report.not_tried("advisories: what we depend on", f"no service that knows of {' '.join(CONTROL)} answers here")
        return
    with report.row(f"advisories: what we depend on, by {by}") as row:
        for name, found in answers.items():
            row.tried([f"{name} {needed[name]}: {one}" for one in found], repeat("advisories", share, seed))
        count = sum(len(found) for found in answers.values())
        row.figure(f"{count} known vulnerabilities in {len(answers)} releases")
    unknown = sorted(set(needed) - set(answers))
    if unknown:
        report.not_tried(f"advisories: {', '.join(unknown)}", "the index does not answer for them")


def releases(root: str = "holdfast") -> dict[str, str]:
    """Everything installed that Holdfast needs, directly or not, with all its extras; by name, its version."""
    found: dict[str, str] = {}
    wanted = list(_needs(root, everything=True))
    while wanted:
        name = wanted.pop()
        if name in found:
            continue
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # an extra that is not installed here, or for another system
        wanted += _needs(name, everything=False)
    return found


def _needs(name: str, *, everything: bool) -> Iterator[str]:
    try:
        lines = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return
    for line in lines:
        if everything or "extra ==" not in line:
            match = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", line)
            if match:
                yield re.sub(r"[-_.]+", "-", match[0]).lower()


def asked(needed: dict[str, str]) -> tuple[dict[str, list[str]], str]:
    """The advisories of each release, and who said so: somebody who knows what everybody knows of an old release."""
    control, version = CONTROL
    if by_pip_audit({control: version}).get(control):
        return by_pip_audit(needed), "pip-audit"
    if not by_index(control, version):
        return {}, ""
    with ThreadPoolExecutor(4) as pool:
        told = dict(zip(needed, pool.map(lambda name: by_index(name, needed[name]), needed), strict=True))
    return {name: found for name, found in told.items() if found is not None}, "the package index"


def by_pip_audit(needed: dict[str, str]) -> dict[str, list[str]]:
    """What pip-audit says, where it is installed and its service answers."""
    program = shutil.which("pip-audit", path=os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")]))
    if program is None:
        return {}
    wanted = "".join(f"{name}=={version}\n" for name, version in sorted(needed.items()))
    command = [program, "--requirement", "/dev/stdin", "--no-deps", "--disable-pip", "--format", "json",
        "--progress-spinner", "off"]
    try:
        done = subprocess.run(command, input=wanted, capture_output=True, text=True, check=False, timeout=180)
        rows = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, OSError, subprocess.TimeoutExpired):
        return {}
    return {row["name"]: [one["id"] for one in row["vulns"]] for row in rows if "vulns" in row}


def by_index(name: str, version: str) -> list[str] | None:
    """The advisories that the package index names for a release; None where it does not answer."""
    try:
        with urllib.request.urlopen(INDEX.format(name, version), timeout=_SECONDS) as answer:
            told = json.load(answer)
    except (OSError, ValueError, urllib.error.URLError):
        return None
    if "vulnerabilities" not in told:
        return None
    return [one["id"] for one in told["vulnerabilities"] if not one.get("withdrawn")]
