"""Two tiers of tests: `make test` leaves out what is marked `battery`, and the log says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import ram_disk

HERE = Path(__file__).parents[1]
TESTS = """
import pytest

def test_fast(tmp_path):
    print("FOLDER", tmp_path)

@pytest.mark.battery
@pytest.mark.parametrize("number", range(3))
def test_slow(number):
    pass
"""


@pytest.fixture
def run(tmp_path):
    """Run pytest on one fast and three slow tests, with the settings of this project; return what it prints."""
    test = tmp_path / "test_it.py"
    test.write_text(TESTS)

    def run_(*words):
        settings = ("-c", HERE.parent / "pyproject.toml", "-p", "no:cacheprovider", "-p", "conftest")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *settings, *words, test],
            capture_output=True, text=True, timeout=120, cwd=tmp_path,
            env={"PYTHONPATH": f"{HERE}:{HERE / 'support'}", "HOME": str(tmp_path)},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run_


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "worker"])
def test_slow_tests_are_left_out_and_the_log_says_so_and_no_folder_is_left(run, workers):
    log = run("-rP", *workers)
    assert "tier: test; 3 tests of the battery tier not run: make battery" in log
    assert "1 passed" in log
    folder = Path(next(line for line in log.splitlines() if line.startswith("FOLDER")).partition(" ")[2])
    assert ram_disk.find_ram_disk() is None or ram_disk.RAM_DISK in folder.parents
    assert not [path for path in folder.parents if path.name.startswith((ram_disk.PREFIX, "test_")) and path.exists()]


def test_the_battery_runs_the_slow_tests(run, tmp_path):
    log = run("-m", "battery")
    assert "tier: battery; 1 test of the test tier not run: make test" in log
    assert "3 passed" in log


def test_an_empty_selection_runs_all_and_a_folder_that_is_named_is_used(run, tmp_path):
    log = run("-m", "", "-rP", f"--basetemp={tmp_path / 'mine'}")
    assert "tier: test and battery\n" in log
    assert "4 passed" in log
    assert f"FOLDER {tmp_path / 'mine'}" in log


def test_the_folder_of_a_killed_run_is_swept(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left, other = tmp_path / f"{ram_disk.PREFIX}{ended.pid}-abc", tmp_path / "other"
    left.mkdir()
    other.mkdir()
    ram_disk.delete_leftovers(tmp_path, ram_disk.PREFIX)
    assert not left.exists() and other.exists()
