"""Installation: build the wheel, install it in an empty environment, and store the first note in an empty home."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

# one environment for all tests of this file
pytestmark = [pytest.mark.battery, pytest.mark.xdist_group("install"), pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parents[2]
UNREACHABLE = re.compile(
    r"NewConnectionError|ConnectTimeout|Max retries exceeded|Temporary failure in name resolution|Network is unreachable"
    r"|No matching distribution found for hatchling|Could not find a version that satisfies the requirement (hatchling|apsw)"
)


def run_pip(python, *arguments, **options):
    """Run pip; skip the test if the package index cannot be reached."""
    command = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=800, stdin=subprocess.DEVNULL, **options)
    if result.returncode and UNREACHABLE.search(result.stderr):
        pytest.skip(f"the package index cannot be reached: {result.stderr.strip().splitlines()[-1]}")
    assert result.returncode == 0, result.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel built from this source."""
    folder = tmp_path_factory.mktemp("wheel")
    run_pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", folder, ROOT)
    (built,) = folder.glob("holdfast-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, disk_folder):
    """The bin folder of an environment with only Holdfast and its dependencies."""
    folder = disk_folder / "venv"
    venv.create(folder, with_pip=True)
    run_pip(folder / "bin" / "python", "install", wheel)
    return folder / "bin"


@pytest.fixture
def run(installed, tmp_path):
    """Return a function that runs a program of that environment with a new home and a minimal environment."""
    user = tmp_path / "user"
    user.mkdir()

    def run_program(program, *arguments):
        env = {"HOME": str(user), "PATH": os.defpath, "LANG": "C.UTF-8"}
        result = subprocess.run(
            [installed / program, *arguments], cwd=user, env=env, capture_output=True, text=True, timeout=120,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        return result.stdout

    return run_program


def test_the_wheel_contains_all_source_files_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {"holdfast/py.typed", "holdfast/index/sqlite.sql", "holdfast/ledger/sqlite.sql"} <= names
    templates = [path for path in (ROOT / "src/holdfast").rglob("*") if path.suffix in (".md", ".js", ".jsonl", ".sql")]
    assert {path.relative_to(ROOT / "src").as_posix() for path in templates} <= names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    source = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".sql")}
    assert {name for name in names if name.endswith((".py", ".sql"))} == source
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"holdfast", "holdfast_bench", "holdfast_prove"}


def test_the_sdist_contains_the_same_source_and_builds_the_same_wheel(wheel, tmp_path):
    build = [sys.executable, "-m", "build", "--sdist", "--outdir", tmp_path, ROOT]
    result = subprocess.run(build, capture_output=True, text=True, timeout=800, stdin=subprocess.DEVNULL)
    if result.returncode and UNREACHABLE.search(result.stdout + result.stderr):
        pytest.skip("the package index cannot be reached")
    assert result.returncode == 0, result.stdout + result.stderr
    (sdist,) = tmp_path.glob("holdfast-*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "CHANGELOG.md", "LICENSE", "docs/index.md", "examples/ten_lines.py", "tests/conftest.py"} <= names
    run_pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", tmp_path, sdist)
    (rebuilt,) = tmp_path.glob("holdfast-*.whl")
    with zipfile.ZipFile(wheel) as first, zipfile.ZipFile(rebuilt) as second:
        assert set(first.namelist()) == set(second.namelist())


def test_an_installed_holdfast_stores_and_finds_the_first_note(run):
    stored = json.loads(run("holdfast", "store", "We deploy on Fridays.", "--key", "deploys", "--json"))
    assert stored["action"] == "created"
    answer = json.loads(run("holdfast", "recall", "deploy", "--json"))
    assert [hit["text"] for hit in answer["hits"]] == ["We deploy on Fridays."]


def test_an_installed_holdfast_runs_the_demo(run):
    shown = run("holdfast", "demo")
    assert "holdfast restore deploys" in shown
    assert "<!-- holdfast:history -->" in shown


def test_the_ten_lines_of_the_readme_run_in_an_installed_holdfast(run):
    from test_readme import ten_lines

    assert run("python", "-c", ten_lines()).startswith("We deploy on Tuesdays, never on Fridays.\nWe deploy on Fridays.\n2\n")
