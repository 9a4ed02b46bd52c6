"""Templates of the console. Every value is escaped, and hidden characters in it are shown as marks."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from holdfast.models import SCOPES, TYPES
from holdfast.safety.hidden_chars import make_visible
from holdfast.server.web import address, markdown, static


def render(name: str, values: dict[str, Any]) -> str:
    """Return a page as HTML."""
    return _environment().get_template(name).render(values)


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, auto_reload=False, finalize=_show_hidden,
    )  # fmt: skip
    environment.filters.update(
        markdown=markdown.render, as_typed=_as_typed, moment=_format_moment, day=_format_day, count=_format_count,
        scope=address.scope_label, note_url=address.note_url, session_url=address.session_url,
        capitalize_first=_capitalize_first, author=_name_author,
    )  # fmt: skip
    environment.globals.update(static=static.address, SCOPES=SCOPES, TYPES=TYPES)
    return environment


def _show_hidden(value: Any) -> Any:
    """Return text with marks for hidden characters; HTML that we made ourselves has them already."""
    return make_visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _as_typed(text: str) -> Markup:
    """Return text with its hidden characters, for a field in which a person edits it."""
    return escape(text)


def _format_moment(time: str | None) -> str:
    """Return a timestamp such as 2026-05-02T09:00:00Z as people read it."""
    return time.replace("T", " ").removesuffix("Z")[:16] if time else ""


def _format_day(time: str | None) -> str:
    return (time or "")[:10]


def _format_count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _name_author(source: dict[str, Any]) -> str:
    """Return who a text came from: a person, an agent by its name, or another origin."""
    if source["origin"] == "user":
        return "a person"
    names = {"agent": "an agent", "tool": "a tool", "import": "an import", "web": "the web"}
    return str(source["agent"] or names.get(source["origin"], source["origin"]))


def _capitalize_first(text: str) -> str:
    """Return a sentence with a capital letter; the messages of the API begin with a small one."""
    return text[:1].upper() + text[1:]
