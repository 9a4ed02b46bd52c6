"""The pages that are generated from the code are up to date and complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import __all__ as public_names
from holdfast import errors
from holdfast.cli import docs_pages
from holdfast.cli.command_table import COMMANDS
from holdfast.config import SETTINGS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", docs_pages.PAGES)
def test_the_page_is_up_to_date(name):
    written = (DOCS / name).read_text(encoding="utf-8")
    assert written == docs_pages.PAGES[name](), "run: python -m holdfast.cli.docs_pages docs"


def test_every_command_and_option_is_documented():
    page = docs_pages.render_commands()
    for name, command in COMMANDS.items():
        section = page.partition(f"\n### {name}\n")[2].partition("\n### ")[0]
        assert section
        assert all(f"`{option.name}" in section for option in command.options)


def test_every_error_is_in_the_tree_and_in_the_table():
    page = docs_pages.render_errors()
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.HoldfastError)]
    named = [kind.__name__ for kind in kinds]
    assert named
    for name in named:
        assert page.count(name) >= 2
        assert name in public_names


def test_every_setting_is_documented():
    page = docs_pages.render_settings()
    assert all(f"`{setting.name}`" in page and setting.description in page for setting in SETTINGS)


def test_pages_are_written_into_a_folder_or_printed(tmp_path, capsys):
    docs_pages.main(str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(docs_pages.PAGES)
    docs_pages.main(None)
    assert capsys.readouterr().out == docs_pages.render_commands()
