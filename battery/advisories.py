"""Part `advisories`: known vulnerabilities in all packages that an install with all extras brings.

`pip-audit` is asked if it is installed and its service answers, otherwise the package index, whose JSON has the advisories of
a release. A release that neither knows is reported as not tried, never as passed.
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

from battery.report import Report, repeat_command
from battery.workspace import Workspace

INDEX = "https://pypi.org/pypi/{}/{}/json"
CONTROL = ("requests", "2.19.0")  # a release with a known advisory: a service that does not know it is not used
_TIMEOUT = 20  # seconds


def run(workspace: Workspace, report: Report, share: float, seed: int) -> None:
    """Look up the advisories of each release, whatever the share."""
    installed = list_releases()
    advisories, service = query_advisories(installed)
    if not advisories:
        report.add_not_tried("advisories: what we depend on", f"no service that knows of {' '.join(CONTROL)} answers here")
        return
    with report.start_row(f"advisories: what we depend on, by {service}") as row:
        for name, ids in advisories.items():
            row.add([f"{name} {installed[name]}: {id}" for id in ids], repeat_command("advisories", share, seed))
        count = sum(len(ids) for ids in advisories.values())
        row.set_figure(f"{count} known vulnerabilities in {len(advisories)} releases")
    unknown = sorted(set(installed) - set(advisories))
    if unknown:
        report.add_not_tried(f"advisories: {', '.join(unknown)}", "the index does not answer for them")


def list_releases(root: str = "holdfast") -> dict[str, str]:
    """Return the versions of all installed packages that Holdfast and its extras need, directly or not, by name."""
    found: dict[str, str] = {}
    names = list(_list_requirements(root, extras=True))
    while names:
        name = names.pop()
        if name in found:
            continue
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # an extra that is not installed here, or for another system
        names += _list_requirements(name, extras=False)
    return found


def _list_requirements(name: str, *, extras: bool) -> Iterator[str]:
    try:
        lines = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return
    for line in lines:
        if extras or "extra ==" not in line:
            match = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", line)
            if match:
                yield re.sub(r"[-_.]+", "-", match[0]).lower()


def query_advisories(releases: dict[str, str]) -> tuple[dict[str, list[str]], str]:
    """Return the advisories of each release and the name of the service that knows the control; nothing if none does."""
    control, version = CONTROL
    if query_pip_audit({control: version}).get(control):
        return query_pip_audit(releases), "pip-audit"
    if not query_index(control, version):
        return {}, ""
    with ThreadPoolExecutor(4) as pool:
        answers = zip(releases, pool.map(lambda name: query_index(name, releases[name]), releases), strict=True)
        return {name: ids for name, ids in answers if ids is not None}, "the package index"


def query_pip_audit(releases: dict[str, str]) -> dict[str, list[str]]:
    """Return the advisories that pip-audit names; nothing if it is not installed or its service does not answer."""
    program = shutil.which("pip-audit", path=os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")]))
    if program is None:
        return {}
    requirements = "".join(f"{name}=={version}\n" for name, version in sorted(releases.items()))
    options = ["--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off"]
    command = [program, "--requirement", "/dev/stdin", *options]
    try:
        done = subprocess.run(command, input=requirements, capture_output=True, text=True, check=False, timeout=180)
        rows = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, OSError, subprocess.TimeoutExpired):
        return {}
    return {row["name"]: [advisory["id"] for advisory in row["vulns"]] for row in rows if "vulns" in row}


def query_index(name: str, version: str) -> list[str] | None:
    """Return the advisories that the package index names for a release, or None if it does not answer."""
    try:
        with urllib.request.urlopen(INDEX.format(name, version), timeout=_TIMEOUT) as response:
            answer = json.load(response)
    except (OSError, ValueError, urllib.error.URLError):
        return None
    if "vulnerabilities" not in answer:
        return None
    return [advisory["id"] for advisory in answer["vulnerabilities"] if not advisory.get("withdrawn")]
