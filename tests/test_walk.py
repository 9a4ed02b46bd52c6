"""How far a call walks: one store and one recall each visit at most twelve of our files."""

from __future__ import annotations

import os
import sys

import pytest

import holdfast

HERE = os.path.dirname(holdfast.__file__)
MOST = 12


def walked(call):
    """The files of ours in which a function ran."""
    files = {}

    def step(frame, event, _):
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(HERE):
            files[os.path.relpath(path, HERE)] = None

    sys.setprofile(step)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(files)


@pytest.fixture
def warm(memory):
    memory.store("harbour words", key="k")
    memory.store("harbour words, the second", key="k")
    for _ in range(3):
        memory.recall("harbour")
    return memory


@pytest.mark.parametrize(
    "call",
    [
        lambda memory: memory.store("lighthouse words", key="new"),
        lambda memory: memory.store("lighthouse words", key="k"),
        lambda memory: memory.store("harbour words, the second", key="k"),
    ],
    ids=["new", "next version", "unchanged"],
)
def test_a_store_visits_at_most_twelve_of_our_files(warm, call):
    files = walked(lambda: call(warm))
    assert len(files) <= MOST, "\n".join(files)
    assert "memory.py" in files


@pytest.mark.parametrize(
    "call",
    [
        lambda memory: memory.recall("harbour"),
        lambda memory: memory.recall("harbour", mode="keyword", limit=1),
        lambda memory: memory.recall(mode="recent"),
    ],
    ids=["hybrid", "keyword", "recent"],
)
def test_a_recall_visits_at_most_twelve_of_our_files(warm, call):
    files = walked(lambda: call(warm))
    assert len(files) <= MOST, "\n".join(files)
    assert "memory.py" in files
