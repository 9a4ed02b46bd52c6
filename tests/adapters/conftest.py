"""Fixtures of the tests of adapters: no telemetry of a framework, and a memory of the test's home."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from test_readme import blocks, check_comments

from holdfast import Memory

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def no_telemetry(monkeypatch):
    """Switch off what frameworks send to their makers, and hide keys of model providers."""
    for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "OTEL_SDK_DISABLED", "OPENAI_AGENTS_DISABLE_TRACING"):
        monkeypatch.setenv(name, "true" if "DISABLE" in name else "false")
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "LANGSMITH_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def memory(home):
    """The memory of an agent in the test's home."""
    with Memory(home, project="shop") as opened:
        yield opened


@pytest.fixture(params=["home", "postgres", "gateway"])
def any_memory(request, home, tmp_path, monkeypatch):
    """The memory of an agent on files, on PostgreSQL, and over HTTP."""
    if request.param == "gateway":
        gateway = request.getfixturevalue("gateway")
        gateway.add_role("shopkeeper", ("agent.memory.read", "agent.memory.write"), ("project", "agent"))
        opened = Memory(
            f"http://127.0.0.1:{gateway.port}", token=gateway.agent("shopkeeper", "shopkeeper").token, project="shop"
        )
    else:
        if request.param == "postgres":
            monkeypatch.setenv("HOLDFAST_STORE", request.getfixturevalue("postgres_url"))
        opened = Memory(home, project="shop", cwd=tmp_path)
    with opened:
        yield opened


@pytest.fixture
def run_example(home):
    """Return a function that runs a program of examples/ with the test's home and returns its output."""

    def run(name, *arguments):
        done = subprocess.run(
            [sys.executable, ROOT / "examples" / name, *arguments],
            capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin", "HOME": str(home.parent), "HOLDFAST_HOME": str(home), "HOLDFAST_EMBEDDER": "none"},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


@pytest.fixture
def run_page(home, tmp_path):
    """Return a function that runs the code of a page of docs/adapters in a process of its own and checks what it prints."""

    def run(name, before="", **env):
        code = blocks(ROOT / "docs/adapters" / name, "python")
        assert code
        script = tmp_path / "page.py"
        script.write_text("\n".join([before, *code]), encoding="utf-8")
        env = {"PATH": "/usr/bin:/bin", "HOLDFAST_HOME": str(home), "HOLDFAST_EMBEDDER": "none", **env}
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, env=env, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        check_comments("\n".join(code), done.stdout)

    return run
