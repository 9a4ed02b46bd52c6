"""SQL by name: it stands in a `.sql` file beside the module that runs it, never put together from strings."""

from __future__ import annotations

import os


def load(package_file: str) -> dict[str, str]:
    """The `-- name: x` sections of the .sql file that stands next to this module."""
    with open(os.path.splitext(package_file)[0] + ".sql", encoding="utf-8") as file:
        sections = ("\n" + file.read()).split("\n-- name: ")
    named = (section.partition("\n") for section in sections[1:])
    return {name.strip(): statement.strip() for name, _, statement in named}
