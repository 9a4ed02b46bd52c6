"""docs/migrate.md is correct: its scripts and commands bring sample data of other memories into Holdfast."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "migrate.md"
SECTION = re.compile(r"^## From ([^\n]+)\n(.*?)(?=^## |\Z)", re.M | re.S)
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.M | re.S)
SCRIPT = re.compile(r"as `(\w+\.py)`")
MEMORY = "# Memory\n\n- We deploy on Tuesdays.\n- Use pnpm.\n  It is faster.\n\n## Staging\nIt is reset on Sundays.\n"
DEPLOY_DAY = "---\ntitle: Deploy day\ntags:\n- ci-cd\n---\n\n# Deploy day\n\n- [decision] We deploy on Tuesdays #deploy\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, in a home folder of its own and with the commands of this environment."""
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    work = tmp_path / "work"
    work.mkdir()
    return work


def write_file(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def run_section(title, folder):
    """Save the scripts of a section, run its commands one after the other, and return what each block printed."""
    text = dict(SECTION.findall(PAGE.read_text(encoding="utf-8")))[title]
    printed, end = [], 0
    for block in BLOCK.finditer(text):
        kind, body = block.groups()
        names = SCRIPT.findall(text[end : block.start()])
        end = block.end()
        if kind == "python" and names:
            write_file(folder / names[-1], body)
        elif kind == "sh":
            done = subprocess.run(["bash", "-e"], input=body, cwd=folder, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stderr
            printed.append(done.stdout)
    return printed


def test_a_bare_memory_file_is_briefed_and_becomes_notes(folder):
    write_file(folder / "MEMORY.md", MEMORY)
    briefing, listing = run_section("a bare MEMORY.md", folder)
    assert "Use pnpm." in briefing
    texts = [json.loads(line)["text"] for line in (folder / "notes.jsonl").read_text(encoding="utf-8").splitlines()]
    assert texts == ["We deploy on Tuesdays.", "Use pnpm.\n  It is faster.", "It is reset on Sundays."]
    assert listing.count("project") == 2 * len(texts) and "quarantine" not in listing


def test_the_memory_and_the_sessions_of_claude_code_are_found(folder):
    projects = Path(os.environ["HOME"]) / ".claude" / "projects"
    write_file(projects / "-src-demo" / "memory" / "MEMORY.md", MEMORY)
    message = {"role": "user", "content": "Please deploy the harbour service."}
    line = {"type": "user", "uuid": "u1", "sessionId": "s1", "cwd": str(folder), "timestamp": "2026-05-02T09:00:00Z"}
    write_file(projects / "-src-demo" / "s1.jsonl", json.dumps({**line, "message": message}) + "\n")
    briefing, recalled = run_section("Claude's memory", folder)
    assert "Use pnpm." in briefing
    assert "deploy the harbour service" in recalled


def test_notes_of_basic_memory_are_found_as_files_and_become_notes(folder):
    write_file(Path(os.environ["HOME"]) / "basic-memory" / "decisions" / "Deploy day.md", DEPLOY_DAY)
    recalled, listing = run_section("basic-memory", folder)
    assert "decisions/Deploy day.md" in recalled and "We deploy on Tuesdays" in recalled
    assert "decisions-deploy-day" in listing and "ci-cd" in listing


def test_memories_of_mem0_become_notes_that_wait_for_review(folder):
    memory = {"id": "0b4c", "memory": "Ada prefers short answers", "created_at": "2026-03-01T10:00:00.123456-07:00"}
    write_file(folder / "mem0.json", json.dumps({"results": [memory, {"id": "1", "memory": "Ada uses pnpm"}]}))
    (reviewed,) = run_section("mem0", folder)
    assert "Ada prefers short answers" in reviewed and "Ada uses pnpm" in reviewed
    assert reviewed.count("global") == 2
