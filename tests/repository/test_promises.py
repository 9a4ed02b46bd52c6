"""Every promise has a test, every promise mark names an existing promise, and docs/promises.md lists both.

`python tests/repository/test_promises.py --write` writes docs/promises.md.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter
from pathlib import Path

TESTS_FOLDER = Path(__file__).resolve().parents[1]
REGISTRY = TESTS_FOLDER / "promises.toml"
PAGE = TESTS_FOLDER.parent / "docs" / "promises.md"
TITLES = {
    "product": "Guarantees",
    "notes": "Notes",
    "time-and-facts": "Time and facts",
    "history": "History",
    "files": "Files",
    "briefing": "Briefing",
    "identity": "Projects",
    "gate": "Checks and trust",
    "gateway": "Gateway",
    "care": "Doctor and status",
}
REQUIRED = {
    *(f"promise-{number}" for number in range(1, 9)), *(f"N{number}" for number in range(1, 14)), "T1", "T2", "T3", "T4",
    "H1", "H2", "H3", "F1", "F2", "F3", "F4", "F5", "F6", "F7", "P1", "P2", "P3", "D1", "D2", "D3", "S1",
    "B1", "B2", "B3", "B4", "B5", "B6", "A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "A9", "A10",
}  # fmt: skip


def registry():
    """Return the sentence of each promise by group and id."""
    return {group: promises for group, promises in _read_registry().items() if group != "proofs"}


def _read_registry():
    return tomllib.loads(REGISTRY.read_text(encoding="utf-8"))


def promises_by_id():
    return {id: sentence for group in registry().values() for id, sentence in group.items()}


def _is_promise(node):
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.promise"


def _find_marks(tree):
    """Yield the name and the promise ids of every marked test function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for mark in node.decorator_list:
                if _is_promise(mark):
                    yield node.name, [ast.literal_eval(word) for word in mark.args]


def _trees():
    return {
        str(path.relative_to(TESTS_FOLDER)): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(TESTS_FOLDER.rglob("*.py"))
    }


def find_proofs():
    """Return the tests that prove each promise, as (file, name)."""
    found = {}
    for file, tree in _trees().items():
        for name, ids in _find_marks(tree):
            for id in ids:
                found.setdefault(id, []).append((file, name))
    for id, tests in _read_registry()["proofs"].items():
        found.setdefault(id, []).extend(tuple(test.split("::")) for test in tests)
    return {id: sorted(tests) for id, tests in found.items()}


def anchor(id):
    """Return the heading of a promise, to which README links."""
    return id.replace("-", " ").capitalize()


def page():
    """Return the text of docs/promises.md."""
    tests_by_id = find_proofs()
    lines = [
        "# Promises",
        "",
        "<!-- Made by `python tests/repository/test_promises.py --write` from tests/promises.toml and the tests. -->",
        "",
        "What Holdfast promises, and the test files that prove each promise. A number in brackets counts several tests.",
        "To find the tests of a promise, search for its id: `grep -rn 'promise(.*\"N4\"' tests`.",
        "What is not listed here is not promised.",
    ]
    for group, promises in registry().items():
        lines += ["", f"## {TITLES[group]}"]
        for id, sentence in promises.items():
            lines += ["", f"### {anchor(id)}", "", sentence, "", f"Proof: {_link_files(tests_by_id.get(id, []))}."]
    return "\n".join(lines) + "\n"


def _link_files(tests):
    """Return links to the files of the tests, each with the number of its tests if there are several."""
    counts = Counter(file for file, _ in tests)
    return ", ".join(f"[{file}](../tests/{file})" + (f" ({number})" if number > 1 else "") for file, number in counts.items())


def test_every_promise_has_a_test():
    assert set(promises_by_id()) - set(find_proofs()) == set()


def test_every_test_that_claims_a_promise_names_one_that_exists():
    assert {id: tests for id, tests in find_proofs().items() if id not in promises_by_id()} == {}


def test_every_required_promise_is_in_the_registry():
    assert set(promises_by_id()) >= REQUIRED


def test_every_promise_mark_is_on_a_test_function():
    for file, tree in _trees().items():
        marks = [node for node in ast.walk(tree) if _is_promise(node)]
        seen = list(_find_marks(tree))
        assert len(marks) == len(seen), f"{file}: a promise that is not a decorator of a test function"
        assert [name for name, ids in seen if not name.startswith("test_") or not ids] == [], file


def test_the_proofs_in_the_registry_are_existing_tests():
    existing = {
        (file, node.name) for file, tree in _trees().items() for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
    }
    named = [tuple(test.split("::")) for tests in _read_registry()["proofs"].values() for test in tests]
    assert [test for test in named if test not in existing] == []


def test_the_page_of_promises_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python tests/repository/test_promises.py --write"


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python tests/repository/test_promises.py --write")
    PAGE.write_text(page(), encoding="utf-8")
