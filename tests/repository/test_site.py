"""The documentation builds as a site without warnings, and the site loads nothing from another host."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOADED = re.compile(r"""<(?:script|img|iframe|link\s+rel="(?:stylesheet|preconnect)")[^>]*?(?:src|href)="(?:https?:)?//""")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_every_page_is_in_the_site(site):
    pages = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    for page in pages:
        name = "index.html" if page.name in {"index.md", "README.md"} else f"{page.stem}.html"
        assert (site / page.parent / name).is_file(), page


def test_the_site_can_be_searched(site):
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {entry["location"].partition("#")[0] for entry in index["docs"] if "uninstall" in entry["text"]}
    assert "clients.html" in found


def test_no_page_loads_anything_from_another_host(site):
    for page in site.rglob("*.html"):
        assert not LOADED.search(page.read_text(encoding="utf-8")), page


def test_links_to_files_outside_the_docs_are_shown_as_their_path(site):
    promises = (site / "promises.html").read_text(encoding="utf-8")
    assert "<code>tests/" in promises
    assert 'href="../tests' not in promises
