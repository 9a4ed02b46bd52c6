"""The pages of LangGraph and LlamaIndex: their code runs, and their examples print what they promise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from test_readme import blocks, check_comments

from holdfast.adapters import FrameworkError, require

DOCS = Path(__file__).resolve().parents[2] / "docs" / "adapters"


def need(*extras):
    for extra in extras:
        try:
            require(extra)
        except FrameworkError as error:
            pytest.skip(f"NOT PROVEN HERE: the page of {extra}, because {error.message}")


def run_page(name, capsys, **names):
    """Run the Python blocks of a page, which share their names, and check what they print."""
    code = blocks(DOCS / name, "python")
    assert code
    for block in code:
        exec(compile(block, name, "exec"), names)  # noqa: S102  # our own page
        check_comments(block, capsys.readouterr().out)
    return names


@pytest.fixture(autouse=True)
def own_home(home, monkeypatch):
    monkeypatch.setenv("HOLDFAST_HOME", str(home))


def test_the_code_of_the_langgraph_page_prints_what_the_page_shows(capsys):
    need("langgraph", "langchain")
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, HumanMessage

    from holdfast.adapters.langgraph import note_key

    names = run_page("langgraph.md", capsys, model=GenericFakeChatModel(messages=iter([AIMessage("ok")] * 2)))
    assert names["answer"]["messages"][-1].text == "ok"
    assert names["call_model"]({"messages": [HumanMessage("Hi")]})["messages"][0].text == "ok"
    assert f"{note_key(('users', 'ann'), 'drink')}.md" in (DOCS / "langgraph.md").read_text(encoding="utf-8")


def test_the_code_of_the_llama_index_page_prints_what_the_page_shows(tmp_path):
    need("llama-index")
    script = tmp_path / "page.py"  # its own process: LlamaIndex does not close its database
    script.write_text("\n".join(blocks(DOCS / "llama-index.md", "python")), encoding="utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=True)
    check_comments(script.read_text(encoding="utf-8"), done.stdout)
    assert done.stdout.count("True") == 2


def test_the_langgraph_example_runs(run_example):
    need("langgraph", "langchain")
    assert run_example("langgraph_agent.py").splitlines() == [
        "system message has the note: True",
        "system message has the note: True",
        "assistant: Noted. And we deploy on Tuesdays.",
        "found: taste {'text': 'Ann drinks green tea.'}",
    ]


def test_the_llama_index_example_runs(run_example):
    need("llama-index")
    assert run_example("llama_index_memory.py").splitlines() == [
        "system message has the note: True",
        "dropped from the chat: True",
        "found: My favourite tea number 1 comes from Japan.",
        "tools: memory_recall, memory_get, memory_store, memory_fact, memory_forget",
    ]
