"""Two tiers of tests: `make test` does not run tests marked `battery`, and the log says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import ram_disk

TESTS_FOLDER = Path(__file__).parents[1]
TEST_CODE = """
import pytest

def test_fast(tmp_path):
    print("FOLDER", tmp_path)

@pytest.mark.battery
@pytest.mark.parametrize("number", range(3))
def test_slow(number):
    pass
"""


@pytest.fixture
def run_pytest(tmp_path):
    """Return a function that runs pytest on one fast and three slow tests with these settings and returns its output."""
    test = tmp_path / "test_it.py"
    test.write_text(TEST_CODE)

    def run(*arguments):
        settings = ("-c", TESTS_FOLDER.parent / "pyproject.toml", "-p", "no:cacheprovider", "-p", "conftest")
        result = subprocess.run(
            [sys.executable, "-m", "pytest", *settings, *arguments, test],
            capture_output=True, text=True, timeout=120, cwd=tmp_path,
            env={"PYTHONPATH": f"{TESTS_FOLDER}:{TESTS_FOLDER / 'support'}", "HOME": str(tmp_path)},
        )  # fmt: skip
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    return run


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "worker"])
def test_slow_tests_are_not_run_and_the_log_says_so_and_no_folder_is_left(run_pytest, workers):
    log = run_pytest("-rP", *workers)
    assert "tier: test; 3 tests of the battery tier not run: make battery" in log
    assert "1 passed" in log
    folder = Path(next(line for line in log.splitlines() if line.startswith("FOLDER")).partition(" ")[2])
    assert ram_disk.find_ram_disk() is None or ram_disk.RAM_DISK in folder.parents
    assert not [path for path in folder.parents if path.name.startswith((ram_disk.PREFIX, "test_")) and path.exists()]


def test_the_battery_runs_the_slow_tests(run_pytest, tmp_path):
    log = run_pytest("-m", "battery")
    assert "tier: battery; 1 test of the test tier not run: make test" in log
    assert "3 passed" in log


def test_an_empty_selection_runs_all_tests_and_basetemp_is_used(run_pytest, tmp_path):
    log = run_pytest("-m", "", "-rP", f"--basetemp={tmp_path / 'mine'}")
    assert "tier: test and battery\n" in log
    assert "4 passed" in log
    assert f"FOLDER {tmp_path / 'mine'}" in log


def test_the_folder_of_a_killed_run_is_deleted(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left, other = tmp_path / f"{ram_disk.PREFIX}{ended.pid}-abc", tmp_path / "other"
    left.mkdir()
    other.mkdir()
    ram_disk.delete_leftovers(tmp_path, ram_disk.PREFIX)
    assert not left.exists() and other.exists()
