"""SQL statements by name, in PostgreSQL's dialect: `:name` is a value, `::type` is a cast."""

from __future__ import annotations

import os
import re
from functools import lru_cache

_TOKEN = re.compile(
    r"--[^\n]*"  # a comment
    r"|'(?:[^']|'')*'"  # a text
    r'|"[^"]*"'  # a name in quotes
    r"|\$(\w*)\$.*?\$\1\$"  # a text between dollars
    r"|::?\w*"  # a cast or a value
    r"|%",
    re.DOTALL,
)
_PLACEHOLDER = re.compile(r"%(?:\((\w+)\)s|(s)|(%))")


def statements(module_file: str, name: str | None = None) -> dict[str, str]:
    """Return the `-- name: x` sections of the .sql file of this name beside a module (default: the module's name)."""
    path = os.path.join(os.path.dirname(module_file), f"{name}.sql") if name else os.path.splitext(module_file)[0] + ".sql"
    with open(path, encoding="utf-8") as file:
        sections = ("\n" + file.read()).split("\n-- name: ")
    named = [section.partition("\n") for section in sections[1:]]
    return {title.strip(): _to_psycopg(statement.strip()) for title, _, statement in named}


def _to_psycopg(statement: str) -> str:
    """Return the statement with `:name` as %(name)s, other percent signs doubled, and without comments."""

    def replace(found: re.Match[str]) -> str:
        text = found[0]
        if text.startswith("--"):
            return ""
        if text.startswith(":") and not text.startswith("::") and len(text) > 1 and not text[1].isdigit():
            before = found.string[found.start() - 1 : found.start()]
            if not (before.isalnum() or before in ("_", "]", ")")):  # part of an array: a[low:high]
                return f"%({text[1:]})s"
        return text.replace("%", "%%")

    return _TOKEN.sub(replace, statement).strip()


@lru_cache(2048)
def number_placeholders(statement: str) -> tuple[bytes, tuple[str, ...] | int]:
    """Return the statement with $1 for the first value, and the names of the values in that order, or how many there are."""
    names: dict[str, int] = {}
    count = 0

    def replace(found: re.Match[str]) -> str:
        nonlocal count
        if found[3]:
            return "%"
        if found[2]:
            count += 1
            return f"${count}"
        return f"${names.setdefault(found[1], len(names) + 1)}"

    text = _PLACEHOLDER.sub(replace, statement).encode()
    return text, (tuple(names) if names or not count else count)


SQL = statements(__file__, "common")
