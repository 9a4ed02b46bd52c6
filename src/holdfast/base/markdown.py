"""Extract names from Markdown text: its title and its labels."""

from __future__ import annotations


def find_title(text: str, default: str) -> str:
    """Return the first top-level heading in the first 20 lines of a text, or the default."""
    for line in text.split("\n", 20)[:20]:
        if line.startswith("# ") and line[2:].strip():
            return line[2:].strip()
    return default


def strip_bold(text: str) -> str:
    """Return a text without white space and one pair of `**` around it."""
    text = text.strip()
    inner = text[2:-2].strip() if text.startswith("**") and text.endswith("**") else ""
    return inner if inner and "**" not in inner else text
