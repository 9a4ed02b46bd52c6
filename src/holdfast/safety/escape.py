"""Escape stored text before a model reads it, so that it cannot close a block, open a fence or tag, or hide characters."""

from __future__ import annotations

from holdfast.base.lazy_re import pattern
from holdfast.safety.hidden_chars import make_visible

CUT_MARK = " […]"
_SUSPECT = ("<", "\ufe64", "\uff1c", "```", "~~~")
_FENCE = pattern(r"`{3,}|~{3,}")
_RESERVED = (  # prefixes of tag names that clients and models interpret; other tags are placeholders such as <branch>
    "antml|assistant|command-|developer|environment_|function|holdfast|hook[_-]|human|iframe|img|important|instruction|invoke|"
    "local-command|object|parameter|script|style|svg|system|think|tool[_-]|untrusted|user[_-]"
)
_TAG = pattern(  # a closing tag, a comment, a tag with attributes, or one with a reserved name
    rf"(?i)[<\ufe64\uff1c](?=\s*/[\s/]*[a-z]|[!?|]|[a-z][\w:.-]*(?:[^\w>:.-]|\Z)|(?:[\w.-]*:)?(?:{_RESERVED}))"
)


def escape_text(text: str) -> str:
    """Return the text with hidden characters shown, fences replaced, and tags that have a meaning made harmless."""
    plain = make_visible(text).replace("\r", "").replace("\t", " ")
    if not any(mark in plain for mark in _SUSPECT):
        return plain  # most texts: a hook has no time to load regular expressions
    plain = _FENCE.sub(lambda match: "'" * len(match.group()), plain)
    return _TAG.sub("‹", plain)


def flatten(text: str, max_chars: int) -> str:
    """Return at most `max_chars` characters of the text on one line, escaped, with a mark where text was cut."""
    lines = [line.strip(" \t\r") for line in text.split("\n")]
    joined = " / ".join([line for line in lines if line])
    return escape_text(joined[:max_chars]) + (CUT_MARK if len(joined) > max_chars else "")
