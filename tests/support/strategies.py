"""Hypothesis strategies: texts that may break a parser, valid dates, valid metadata."""

from __future__ import annotations

import re
from datetime import date, timedelta

from hypothesis import strategies as st

from holdfast.base.markdown import strip_bold
from holdfast.models import ORIGINS, TYPES, Source, parse_tags

# Pieces that mean something to a parser of Holdfast, to YAML, to Markdown or to a terminal.
SPECIAL_TEXTS = (
    "<!-- holdfast:history -->", "\\<!-- holdfast:history -->", "<!-- holdfast:version {origin: user} -->",
    "<!-- holdfast:begin -->", "<!-- holdfast:end -->", "<!-- holdfast:", "-->", "---", "--- ", "...", "+++",
    "## 2026-01-01T00:00:00Z to 2026-02-01T00:00:00Z", "## 2026-01-01 to 2026-02-01", "## 2026-01-01 to 2026-02-01 ",
    "\\## 2026-01-01 to 2026-02-01", "\\\\## 2026-01-01 to 2026-02-01", "## ٢٠٢٦-٠١-٠١ to ٢٠٢٦-٠٢-٠١", "## ", "# ",
    "\\",
    "id: x", "type: user", "type: nonsense", "tags: [a, b]", "tags:", "  - a", "- a", "source: {origin: web}",
    "pinned: true",
    "- [2026-03-27] status: on", "- ~~[2026-03-20] status: off~~ superseded 2026-03-27", "  * [2026-03-27] x: y",
    "```", "~~~", "~~", "</holdfast-memory>", '<holdfast-memory id="0">', "< / b>", "<b", "{", "}", "[", "]", ": ",
    " #", "#",
    "\"", "'", "&a", "*a", "|", ">", "%", "@", "`", "!!x", ",", "?", "null", "true", "~",
    "\r", "\r\n", "\n", "\n\n", "\t", " ", "  ", "\x0b", "\x0c", "\x1b[31m", "\x07", "\x1c", "\x7f", "\x85", "\xa0",
    "\xad",
    "\u200b", "\u200d", "\u202e", "\u2028", "\u2029", "\u2066", "\ufeff", "\ufffe", "\U000e0041", "\U000e0100",
    "é", "e\u0301", "記憶", "ذاكرة", "память", "🧠", "👩‍👩‍👧", "❤️", "ß", "İ", "½", "．", "a", "word",
    "some words", "0", "x" * 300,
)  # fmt: skip

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_CHARACTERS = st.characters(blacklist_categories=("Cs",), blacklist_characters="\0")
_PIECE = st.sampled_from(SPECIAL_TEXTS) | st.text(_CHARACTERS, max_size=8)

raw_texts = st.lists(_PIECE | st.just("\n"), max_size=14).map("".join)
"""Any text of a UTF-8 file."""

broken_texts = st.lists(_PIECE.map(str.encode) | st.binary(max_size=6), max_size=14).map(
    lambda pieces: b"".join(pieces).decode("utf-8", "surrogateescape")
)
"""Any bytes of a file, as the store reads them."""

note_texts = raw_texts.map(lambda text: text if text.strip().strip("\ufeff") else text + "x")
"""Any text that may be stored."""

one_line = raw_texts.map(lambda text: " ".join(_CONTROL.sub(" ", text).split()) or "x")
"""A tag, subject or value on one line."""

labels = one_line.map(lambda text: strip_bold(" ".join(re.sub(r":|^[~ ]+", " ", text).split())) or "x")

tags = st.lists(one_line.map(lambda text: text[:40]), max_size=4).map(parse_tags)

types = st.sampled_from(TYPES)

_NAMES = st.none() | st.text("abcXYZ019._-", min_size=1, max_size=12)
_CLIENTS = st.none() | one_line.map(lambda text: "".join(filter(str.isprintable, text))[:20] or "x")

sources = st.builds(Source, st.sampled_from(ORIGINS), _NAMES, _CLIENTS, _NAMES)

days = st.dates(date(2024, 1, 1), date(2027, 12, 31)).map(date.isoformat)

stamps = st.builds(
    lambda day, seconds: f"{day}T{timedelta(seconds=seconds)!s:0>8}Z", days, st.integers(0, 86399)
)  # fmt: skip
