"""Render the Markdown of a note as HTML in which nothing runs and nothing loads by itself.

HTML in the text is shown as text, an image is shown as its address, and only links to http, https and mailto are links.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from holdfast.safety.hidden_chars import make_visible

_MAX_CHARS = 200_000  # of a text that is parsed; a longer one is shown as it is
_LINK = re.compile(r"(?:https?://|mailto:)[^\s]", re.IGNORECASE)


def render(text: str) -> Markup:
    """Return a note's text as HTML."""
    shown = make_visible(text)
    if len(shown) > _MAX_CHARS:
        return Markup("<pre>{}</pre>").format(shown)
    return Markup(_parser().render(shown))


@functools.cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.validateLink = _is_safe  # type: ignore[method-assign]
    parser.add_render_rule("image", _render_image)
    parser.add_render_rule("link_open", _render_link)
    parser.add_render_rule("heading_open", _render_heading)
    parser.add_render_rule("heading_close", _render_heading)
    return parser


def _is_safe(url: str) -> bool:
    """Return whether an address may be a link; what is not stays as it was written."""
    return bool(_LINK.match(url))


def _render_image(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Return an image as text, with its address."""
    token = tokens[index]
    address = str(token.attrs.get("src", ""))
    return Markup('<span class="image">image: {} <code>{}</code></span>').format(token.content, address)


def _render_link(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Return the start of a link that says where it leads and tells no other site where it came from."""
    address = str(tokens[index].attrs.get("href", ""))
    return f'<a class="outside" href="{escape(address)}" title="{escape(address)}" rel="noreferrer noopener nofollow">'


def _render_heading(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Return a heading below those of the page: `#` becomes h3."""
    token = tokens[index]
    level = min(6, int(token.tag[1]) + 2)
    return f"<{'/' if token.nesting < 0 else ''}h{level}>"
