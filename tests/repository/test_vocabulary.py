"""Docs, messages and docstrings avoid the words of vocabulary.txt. Inline code, in backticks, may have any word."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("examples/*.md"))]
MODULES = [*sorted(ROOT.glob("src/**/*.py")), *sorted(ROOT.glob("examples/*.py"))]
TEMPLATES = [*sorted(ROOT.glob("src/**/*.html")), *sorted(ROOT.glob("src/**/*.md"))]
INLINE_CODE = re.compile(r"``.*?``|`[^`\n]*`")


def read_vocabulary():
    """Return the replacements by word or phrase."""
    lines = (Path(__file__).parent / "vocabulary.txt").read_text(encoding="utf-8").splitlines()
    entries = [line.partition(" -> ") for line in lines if line and not line.startswith("#")]
    return {phrase: replacement for phrase, _, replacement in entries}


VOCABULARY = read_vocabulary()
AVOIDED = re.compile(
    r"(?<![\w-])(?:" + "|".join(re.escape(phrase).replace(r"\ ", r"\s+") for phrase in VOCABULARY) + r")(?![\w-])", re.I
)


def find_avoided(text, first_line=1):
    """Return a line for each avoided word: its place and what to write instead."""
    text = INLINE_CODE.sub(lambda code: " " * len(code[0]), text)
    lines = []
    for found in AVOIDED.finditer(text):
        line = first_line + text.count("\n", 0, found.start())
        lines.append(f"{line}: {found[0]!r}: write {VOCABULARY[' '.join(found[0].lower().split())]}")
    return lines


def find_avoided_in_module(source):
    """Return the avoided words in the string literals and docstrings of a module."""
    strings = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [line for node in strings for line in find_avoided(node.value, node.lineno)]


def test_every_entry_has_a_replacement():
    assert VOCABULARY
    assert all(phrase == phrase.lower().strip() and replacement.strip() for phrase, replacement in VOCABULARY.items())


def test_a_word_is_found_in_text_and_strings_and_not_in_code_or_in_longer_words():
    assert find_avoided("Write it Anew.\nDelete it for\ngood.") == [
        "1: 'Anew': write " + VOCABULARY["anew"], "2: 'for\\ngood': write permanently"
    ]  # fmt: skip
    assert find_avoided("`anew` in code, recommends, mend-it, for goods") == []
    assert find_avoided_in_module('def f():\n    """Mend it."""\n    return f"{f} by now"  # anew') == [
        "2: 'Mend': write fix", "3: 'by now': write currently, already"
    ]  # fmt: skip


@pytest.mark.parametrize("paths", [PAGES, TEMPLATES, MODULES], ids=["pages", "templates", "modules"])
def test_texts_avoid_the_words_of_the_vocabulary(paths):
    found = []
    for path in paths:
        text = path.read_text(encoding="utf-8")
        lines = find_avoided_in_module(text) if path.suffix == ".py" else find_avoided(text)
        found += [f"{path.relative_to(ROOT)}:{line}" for line in lines]
    assert not found, "\n" + "\n".join(found)
