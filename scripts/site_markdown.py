"""Hook of MkDocs: adapt what code hosts show but the documentation site cannot, and rank pages in the search."""

from __future__ import annotations

import re
from typing import Any

# [text](../tests/store/test_x.py): the site has no files outside docs/
_OUTSIDE = re.compile(r"\[([^\]]*)\]\((?:\.\./)+((?:tests|battery|scripts|src|examples)/[^)#]*|[A-Z]+(?:\.md)?)(?:#[^)]*)?\)")
_FENCE_KIND = re.compile(r"^```markdown \w+$", re.M)  # docs/format.md: `markdown note`
_LATER = ("adr/", "promises.md", "battery.md", "benchmarks.md")  # found after the pages that users need


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace links to files outside docs/ by their path, and fences with two words by their language."""
    if page.file.src_uri.startswith(_LATER):
        page.meta["search"] = {"boost": 0.1}
    return _FENCE_KIND.sub("```markdown", _OUTSIDE.sub(_show_path, markdown))


def _show_path(link: re.Match[str]) -> str:
    text, path = link.groups()
    return f"`{path}`" if text.strip("`") in path else f"{text} (`{path}`)"
