"""The real programs come from npm, or the test run reports clearly that they did not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import npm
import pytest

HERE = Path(__file__).parents[1]


def test_the_node_of_the_venv_is_new_enough():
    said = subprocess.run([npm.find_node(), "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    assert int(said.lstrip("v").partition(".")[0]) >= 24


def test_a_registry_that_cannot_be_reached_skips_and_is_asked_once(tmp_path, monkeypatch):
    monkeypatch.setattr(npm, "CACHE", tmp_path)
    monkeypatch.setattr(npm, "_unreachable", [])
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    for _ in range(2):
        with pytest.raises(pytest.skip.Exception, match=npm.SKIP_PREFIX):
            npm.install_package("nothing", "1.0.0")
        monkeypatch.setattr(npm, "run_npm", None)  # a second try would fail here
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def test_such_a_skip_stands_in_the_summary(tmp_path):
    test = tmp_path / "test_it.py"
    test.write_text("import npm, pytest\n\ndef test_it():\n    pytest.skip(f'{npm.SKIP_PREFIX}: because')\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "conftest", str(test)],
        capture_output=True, text=True, timeout=120, cwd=HERE, env={"PYTHONPATH": str(HERE / "support"), "HOME": str(tmp_path)},
    )  # fmt: skip
    assert f"!!! {npm.SKIP_PREFIX}: because" in done.stdout
