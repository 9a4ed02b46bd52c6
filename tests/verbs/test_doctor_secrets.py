"""D1, S2: doctor searches transcripts for secrets, the newest first, and reports how much it searched."""

from __future__ import annotations

import json
import os

import pytest

from holdfast import Memory

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
HERE = "projects/demo/transcripts"


def problems(memory):
    return [one for one in memory.check() if one.code == "secret"]


def pasted(home, session, text):
    """Write a turn by hand, or as a version without validation would."""
    path = home / "shelf" / HERE / f"unknown/{session}.jsonl"
    with path.open("a") as file:
        file.write(json.dumps({"role": "user", "text": text, "id": f"x{len(text)}"}) + "\n")
    return path


def make_newer(path, than):
    """Touch the file until the file system gives it a later time."""
    while os.stat(path).st_ctime_ns <= os.stat(than).st_ctime_ns:
        os.utime(path)


@pytest.fixture
def spoken(memory):
    for session in ("old", "new"):
        memory.log([{"role": "user", "text": f"hello from {session}"}], session=session, client="unknown")
    return memory


@pytest.mark.promise("D1", "S2")
def test_a_secret_in_a_transcript_is_listed_by_line_and_rule_and_not_by_value(spoken, home):
    assert problems(spoken) == []
    path = pasted(home, "new", f"use {TOKEN} please")
    (problem,) = problems(spoken)
    assert (problem.path, "github-pat" in problem.message) == (f"{HERE}/unknown/new.jsonl:3", True)
    assert str(path) in problem.fix
    assert TOKEN not in str(problem)


def test_once_it_is_taken_out_it_is_not_listed(spoken, home):
    pasted(home, "new", f"use {TOKEN} please")
    with Memory(home, project="demo", origin="user") as person:
        person.purge(text=TOKEN)
    assert problems(spoken) == []


def test_beyond_so_many_bytes_only_the_newest_are_looked_through(spoken, home, capsys):
    from holdfast.cli import main

    old = pasted(home, "old", f"use {TOKEN} please")
    new = home / "shelf" / HERE / "unknown/new.jsonl"
    line = json.dumps({"role": "tool", "text": "the harbour is deep " * 40_000, "id": "long"}) + "\n"
    with new.open("a") as file:
        for _ in range(45):
            file.write(line)
    make_newer(new, old)
    assert problems(spoken) == []
    assert main(["--home", str(home), "--project", "demo", "doctor"]) == 0
    assert "only the newest transcripts were searched for secrets: 32 of 34 MiB" in capsys.readouterr().err
    make_newer(old, new)
    assert [one.path for one in problems(spoken)] == [f"{HERE}/unknown/old.jsonl:3"]
