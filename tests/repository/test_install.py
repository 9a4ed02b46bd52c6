"""A stranger's way in: the wheel, an empty environment, an empty home, the first note."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

# one environment for all of them
pytestmark = [pytest.mark.battery, pytest.mark.xdist_group("install"), pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parents[2]
UNREACHABLE = re.compile(
    r"NewConnectionError|ConnectTimeout|Max retries exceeded|Temporary failure in name resolution|Network is unreachable"
    r"|No matching distribution found for hatchling|Could not find a version that satisfies the requirement (hatchling|apsw)"
)


def pip(python, *words, **options):
    """Run pip; where the package index is out of reach, there is nothing to prove here."""
    command = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=800, stdin=subprocess.DEVNULL, **options)
    if done.returncode and UNREACHABLE.search(done.stderr):
        pytest.skip(f"the package index cannot be reached: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from this source."""
    folder = tmp_path_factory.mktemp("wheel")
    pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", folder, ROOT)
    (built,) = folder.glob("holdfast-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, disk_folder):
    """The folder of programs of an environment that has Holdfast and what it needs, and nothing else."""
    folder = disk_folder / "venv"
    venv.create(folder, with_pip=True)
    pip(folder / "bin" / "python", "install", wheel)
    return folder / "bin"


@pytest.fixture
def run(installed, tmp_path):
    """Runs a program of that environment, with a home of its own and nothing of ours in sight."""
    user = tmp_path / "user"
    user.mkdir()

    def run_(program, *words):
        env = {"HOME": str(user), "PATH": os.defpath, "LANG": "C.UTF-8"}
        done = subprocess.run(
            [installed / program, *words], cwd=user, env=env, capture_output=True, text=True, timeout=120,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run_


def test_the_wheel_holds_all_that_is_needed_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {"holdfast/py.typed", "holdfast/index/sqlite.sql", "holdfast/ledger/sqlite.sql"} <= names
    templates = [path for path in (ROOT / "src/holdfast").rglob("*") if path.suffix in (".md", ".js", ".jsonl", ".sql")]
    assert {path.relative_to(ROOT / "src").as_posix() for path in templates} <= names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    source = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".sql")}
    assert {name for name in names if name.endswith((".py", ".sql"))} == source
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"holdfast"}


def test_an_installed_holdfast_keeps_and_finds_the_first_note(run):
    stored = json.loads(run("holdfast", "store", "We deploy on Fridays.", "--key", "deploys", "--json"))
    assert stored["action"] == "created"
    answer = json.loads(run("holdfast", "recall", "deploy", "--json"))
    assert [hit["text"] for hit in answer["hits"]] == ["We deploy on Fridays."]


def test_an_installed_holdfast_gives_the_guided_demo(run):
    shown = run("holdfast", "demo")
    assert "holdfast restore deploys" in shown
    assert "<!-- holdfast:history -->" in shown


def test_the_ten_lines_of_the_readme_run_there(run):
    from test_readme import ten_lines

    assert run("python", "-c", ten_lines()).startswith("We deploy on Tuesdays, never on Fridays.\nWe deploy on Fridays.\n2\n")
