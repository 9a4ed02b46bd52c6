"""The programs in examples/ run as their header says, each in a new home."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PROGRAMS = sorted(EXAMPLES.glob("*.py"))
OUTPUT = {  # what a program prints in a new home, in part
    "ten_lines.py": [
        "now: We deploy on Tuesdays, never on Fridays.",
        "in February: We deploy on Fridays.",
        "restored: deploys",
    ],
    "async_memory.py": ["which test runner: Use pytest, never unittest.", "when do we deploy: We deploy on Tuesdays."],
    "agent_loop.py": ["-> created deploys", "-> deploys: We deploy on Tuesdays.", "assistant: You deploy on Tuesdays."],
    "briefing_prompt.py": ["--- system\nYou are a coding agent.", "never on Fridays.", "Run the tests with `make test`."],
    "import_json.py": ["created deploy-day", "3 of them wait for your approval"],
}


def run_example(name, *arguments, **env):
    """Run an example with the interpreter and the commands of this environment."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, EXAMPLES / name, *arguments], capture_output=True, text=True, timeout=120,
        env={**os.environ, "PATH": path, **env}, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize("name", OUTPUT)
def test_an_example_prints_what_it_promises_in_a_new_home(name):
    result = run_example(name)
    assert result.returncode == 0, result.stderr
    for expected in OUTPUT[name]:
        assert expected in result.stdout
    assert result.stderr == ""


def test_an_import_that_runs_again_changes_nothing():
    run_example("import_json.py")
    assert run_example("import_json.py").stdout.count("unchanged ") == 3


def test_the_remote_example_stores_and_finds_a_note_on_a_server(gateway):
    token = gateway.agent("writer", "code-review-engineer").token
    result = run_example("remote_gateway.py", HOLDFAST_URL=f"http://127.0.0.1:{gateway.port}", HOLDFAST_TOKEN=token)
    assert (result.returncode, result.stdout) == (0, "testing: Use pytest, never unittest.\n"), result.stderr


def test_the_remote_example_explains_what_is_missing_or_not_allowed(gateway):
    url = f"http://127.0.0.1:{gateway.port}"
    missing = run_example("remote_gateway.py", HOLDFAST_TOKEN="hf_x")
    assert (missing.returncode, "Set HOLDFAST_URL" in missing.stderr) == (1, True)
    denied = run_example("remote_gateway.py", HOLDFAST_URL=url, HOLDFAST_TOKEN=gateway.agent("reader", "secretary").token)
    assert (denied.returncode, "does not allow that" in denied.stderr) == (1, True), denied.stderr
    wrong = run_example("remote_gateway.py", HOLDFAST_URL=url, HOLDFAST_TOKEN="hf_aaaaaaaa_wrong")
    assert (wrong.returncode, "The token is not valid" in wrong.stderr) == (1, True), wrong.stderr


def test_the_audit_example_counts_decisions_and_finds_a_changed_row(gateway, home, tmp_path):
    token = gateway.agent("writer", "code-review-engineer").token
    run_example("remote_gateway.py", HOLDFAST_URL=f"http://127.0.0.1:{gateway.port}", HOLDFAST_TOKEN=token)
    exported = tmp_path / "audit.jsonl"
    export = [sys.executable, "-m", "holdfast", "--home", home, "audit", "export", "--output", exported]
    subprocess.run(export, check=True, capture_output=True, timeout=60)
    result = run_example("read_audit.py", exported, HOLDFAST_HOME=str(home))
    assert result.returncode == 0, result.stdout + result.stderr
    assert "writer" in result.stdout and "allowed" in result.stdout
    exported.write_text(exported.read_text().replace('"writer"', '"reader"', 1))
    assert run_example("read_audit.py", exported, HOLDFAST_HOME=str(home)).returncode == 1


def test_every_example_has_a_header_that_says_how_to_run_it():
    assert len(PROGRAMS) >= 5
    for path in PROGRAMS:
        header = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        assert "Run:" in header and f"python examples/{path.name}" in header, path.name
