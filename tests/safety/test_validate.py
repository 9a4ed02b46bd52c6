"""Validation: valid values pass unchanged, all others are rejected with a hint."""

from __future__ import annotations

import re
import unicodedata

import pytest
import strategies as some
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.base.ids import KEY_PATTERN
from holdfast.errors import InvalidKey, InvalidPath, InvalidText, Refused, TooLarge, UsageError
from holdfast.models import ORIGINS, TYPES, parse_tags
from holdfast.safety import validate

CAP = 64 * 1024

# --- texts ------------------------------------------------------------------------------------------------------------


@pytest.mark.promise("N6")
@given(some.note_texts)
def test_any_text_within_the_cap_passes_unchanged(text):
    assert validate.check_text(text, CAP) == text
    assert validate.check_text(text.encode(), CAP) == text


@pytest.mark.promise("N6")
@pytest.mark.parametrize("value", ["", " ", "\n\t\r\n", "\u3000\xa0", b"", b"  \n"])
def test_empty_content_is_refused(value):
    with pytest.raises(InvalidText, match="empty") as caught:
        validate.check_text(value, CAP)
    assert caught.value.fix


@pytest.mark.promise("N6")
@pytest.mark.parametrize("value", ["a\0b", "\0", b"a\0", "x" * 1000 + "\0"])
def test_a_nul_byte_is_refused(value):
    with pytest.raises(InvalidText, match="NUL"):
        validate.check_text(value, CAP)


@pytest.mark.promise("N6")
@pytest.mark.parametrize(
    "value",
    [b"\xff", b"caf\xe9", b"\xc0\xae", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", "lone \ud800", "\udcff", "a\udfffb"],
)
def test_what_is_not_utf8_is_refused(value):
    with pytest.raises(InvalidText, match=r"not UTF-8|surrogate"):
        validate.check_text(value, CAP)


@pytest.mark.promise("N6")
@given(some.broken_texts)
def test_bytes_that_are_not_utf8_never_pass_as_text(text):
    data = text.encode("utf-8", "surrogateescape")
    try:
        assert validate.check_text(data, CAP) == data.decode()
    except InvalidText:
        assert not data.strip() or b"\0" in data or text != data.decode("utf-8", "replace") or not data.decode().strip()


@pytest.mark.promise("N6")
@pytest.mark.parametrize("character", ["a", "é", "記", "🧠"])
def test_the_cap_counts_bytes_and_is_exact(character):
    width = len(character.encode())
    fits = character * (CAP // width)
    assert validate.check_text(fits, len(fits.encode())) == fits
    with pytest.raises(TooLarge) as caught:
        validate.check_text(fits, len(fits.encode()) - 1)
    assert f"{len(fits.encode()):,}" in caught.value.message
    assert "notes.max_bytes" in caught.value.fix


@pytest.mark.parametrize("value", [None, 5, 1.5, [], {}, object(), True])
def test_what_is_no_text_at_all_is_wrong_usage(value):
    with pytest.raises(UsageError):
        validate.check_text(value, CAP)


# --- keys and names ---------------------------------------------------------------------------------------------------


@pytest.mark.promise("N3")
@pytest.mark.parametrize("key", ["a", "0", "a-b", "use-pytest", "a--b", "a-", "9-lives", "x" * 60])
def test_a_key_that_keeps_the_rule_passes_unchanged(key):
    assert validate.check_key(key) == key


BAD_KEYS = [
    "", " ", "-a", "a.b", "a_b", "A", "Ab", "a b", "a/b", "../a", "a\n", "a\0", "\na", "é", "記憶", "a:b", "a\\b",
    "ａ", "a\u200b",
    "٣", "ı", "x" * 61, "a.md", "~a", "%41", None, 5, b"a", ["a"], "a\r", "a\ud800", "x" * 10_000,
]  # fmt: skip


@pytest.mark.promise("N3")
@pytest.mark.parametrize("key", BAD_KEYS, ids=lambda key: ascii(key)[:20])
def test_a_key_that_breaks_the_rule_is_rejected_and_never_changed(key):
    with pytest.raises(InvalidKey) as caught:
        validate.check_key(key)
    assert "a-z" in caught.value.fix
    assert len(str(caught.value)) < 300
    assert str(caught.value).isascii()  # nothing of it reaches a terminal as it is


@pytest.mark.promise("N3")
@given(some.raw_texts | some.broken_texts)
def test_any_key_passes_as_it_is_or_not_at_all(text):
    try:
        assert validate.check_key(text) is text
        assert KEY_PATTERN.match(text)
    except InvalidKey:
        assert not KEY_PATTERN.fullmatch(text)


@pytest.mark.promise("N1", "P1")
@pytest.mark.parametrize("name", ["a", "A.b_c-1", "7f3a", "github.com-x-y", "_x", "-", "a..b", "x" * 128])
def test_an_id_that_keeps_the_rule_passes(name):
    assert validate.check_name(name, "project id") == name


@pytest.mark.promise("N1", "P1")
@pytest.mark.parametrize(
    "name", ["", ".", "..", ".git", "a/b", "a b", "é", "a\n", "a\0", "x" * 129, "a:b", "a%2f", None, 3], ids=ascii
)
def test_an_id_that_breaks_the_rule_is_rejected(name):
    with pytest.raises(InvalidKey, match="project id"):
        validate.check_name(name, "project id")
    assert not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}", name)


# --- types, origins, tags ---------------------------------------------------------------------------------------------


@pytest.mark.promise("N2")
def test_only_the_four_types_are_types():
    assert [validate.check_note_type(one) for one in TYPES] == ["user", "feedback", "project", "reference"]
    for wrong in ("", "User", "note", "project ", "global"):
        with pytest.raises(UsageError, match="unknown type") as caught:
            validate.check_note_type(wrong)
        assert "feedback" in caught.value.fix


@pytest.mark.promise("N13")
def test_only_the_five_origins_are_origins():
    assert {validate.check_origin(one) for one in ORIGINS} == {"user", "agent", "tool", "web", "import"}
    with pytest.raises(UsageError, match="unknown origin"):
        validate.check_origin("god")


def test_a_choice_is_one_of_its_words():
    assert validate.check_choice("b", ("a", "b"), "mode") == "b"
    for wrong in ("c", None, 1, ["a"], "A"):
        with pytest.raises(UsageError, match="unknown mode"):
            validate.check_choice(wrong, ("a", "b"), "mode")


@pytest.mark.promise("N5")
@given(some.tags)
@example(("ci-cd", "日本語", "a b", "[x]", "#1", "c++", "🧠", "ß"))
def test_tags_with_hyphens_and_any_script_survive(tags):
    assert validate.check_tags(tags) == tags
    assert parse_tags(", ".join(tags)) == tags
    assert parse_tags([f"  {tag}\t" for tag in tags]) == tags


@pytest.mark.promise("N5")
def test_tags_are_few_short_and_on_one_line():
    assert validate.check_tags(("x" * 100,) * 64)
    with pytest.raises(TooLarge):
        validate.check_tags(("x",) * 65)
    with pytest.raises(TooLarge):
        validate.check_tags(("x" * 101,))
    for wrong in ("a\nb", "a\0", "\x1b[31m", "a\u2028b", "\x85", "a\ud800"):
        with pytest.raises(InvalidText):
            validate.check_tags((wrong,))


# --- facts ------------------------------------------------------------------------------------------------------------


@pytest.mark.promise("T3")
def test_a_fact_stands_on_one_line_and_its_label_has_no_colon():
    assert validate.check_line("  works at Acme  ", "value") == "works at Acme"
    assert validate.check_label("works_at") == "works_at"
    for wrong in ("", "  ", None, 5, "a\nb", "a\rb", "a\0b", "a\u2028b", "\ud800"):
        with pytest.raises(InvalidText):
            validate.check_line(wrong, "value")
        with pytest.raises(InvalidText):
            validate.check_label(wrong)
    with pytest.raises(InvalidText, match="colon"):
        validate.check_label("a: b")
    with pytest.raises(TooLarge):
        validate.check_line("x" * 2001, "value")
    with pytest.raises(TooLarge):
        validate.check_label("x" * 201)


# --- paths ------------------------------------------------------------------------------------------------------------

_CLIMBS = (
    "..",
    "../",
    "../x",
    "x/..",
    "x/../y",
    "x/../../y",
    "/memories/..",
    "/memories/../x",
    "/memories/x/../../y",
    "../../../../etc/passwd",
)
_DOTS = (
    "．．/x", "．．", "x/．．/y", "․․/x", "․./x", ".․/x", "‥/x", "‥", "…", "…/x", "。。/x", "｡｡/x", "︒︒/x", "．",
    "․", "x/．", "．/x",
    "．git/config", "․git/config", "．．．", "。", "x/。。/y", "．．／x", "x．．／..",
)  # fmt: skip
_SLASHES = (
    "..／x",
    "x／y",
    "x／..／y",
    "／etc/passwd",
    "x∕y",
    "..∕x",
    "x⁄y",
    "x⧸y",
    "x╱y",
    "x＼y",
    "..＼x",
    "x﹨y",
    "x∖y",
    "x⧵y",
    "x⧹y",
    "℀",
    "x/℅",
)
_ENCODED = (
    "%2e%2e/x", "%2E%2E/x", "..%2fx", "%2e%2e%2fx", "x%2fy", "x%5cy", "%252e%252e/x", "%c0%ae%c0%ae/x", "%00",
    "x%00.md", "%u002e%u002e/x",
    "%U002E", "％2e％2e/x", "x%0ay", "%7eroot", "x/%2e", "a%2Fb%2Fc",
)  # fmt: skip
_ABSOLUTE = (
    "/", "//", "///", "/x", "/etc/passwd", "//etc/passwd", "/memoriesX", "/memoriesX/y", "/memories.bak/x",
    "/MEMORIES/x", "/Memories", "/memorie",
    "/memories../x", "/memories ", "/memories\\x", "C:/x", "c:\\x", "C:", "C:x", "\\\\host\\share",
    "/proc/self/environ", "file:///etc/passwd",
    "~", "~/x", "~root/x", "~/../x", "x/~/y", "/memories/~/x", "/memories/~root",
)  # fmt: skip
_EMPTY = (
    "",
    " ",
    "\t",
    "\n",
    "x//y",
    "//x",
    "x//",
    "/memories//x",
    "/memories//",
    "/memories///x",
    "x/ /y",
    "x/\u3000/y",
    "x/\xa0/y",
    "\xa0",
)
_SINGLE_DOTS = (
    ".",
    "./",
    "./x",
    "x/.",
    "x/./y",
    "/memories/.",
    "/memories/./x",
    "...",
    "x/...",
    "....//x",
    ". .",
    ".. ",
    " ..",
    ".. /x",
    "x/.. /y",
    ". ./x",
)
_BACKSLASHES = ("\\", "x\\y", "..\\x", "x\\..\\y", "\\..\\x", "/memories\\..\\x", "x/\\", "\\x2e\\x2e/x")
_HIDDEN = (".git", ".git/config", "x/.ssh/id", ".holdfast", "/memories/.env", "..x", "x/..y", ".x.md")
_TRAILING = (
    "x.",
    "x./y",
    "x ",
    "x /y",
    " x",
    "x/ y",
    "x. ",
    "x..",
    "x.md.",
    "x.md ",
    "/memories/x.",
    "x．",
    "x\u3000",
    "\xa0x",
    "…x…",
)
_CONTROLS = (
    "x\0", "\0", "x\0.md", "x\ny", "x\ry", "x\ty", "\x1b[31mx", "x\x07", "x\x7f", "x\x85y", "x\x9by", "x\u2028y",
    "x\u2029y", "x\x0b", "x\x01/y",
)  # fmt: skip
_INVISIBLE = (
    "x\u200by", "\u200b", "x\u200c", "x\u200d", "x\u200ey", "x\u200f", "x\u202ey", "\u202edm.x", "x\u202a",
    "x\u202b", "x\u202c", "x\u202d",
    "x\u2060", "x\u2066y", "x\u2067", "x\u2068", "x\u2069", "\ufeffx", "x\ufeff", "x\u00ady", "x\u061c", "x\u180e",
    "x\u206a", "x\ufff9", "x\u034f",
    "\u115f", "\u3164", "x\uffa0", "x\U000e0041", "x\U000e0100", ".\u200b./x", "..\u200d/x", "\u202e../x",
)  # fmt: skip
_BROKEN = ("x\ud800", "\udcff", "x\udcc0\udcae", "\udc2e\udc2e/x", "x/\udfff")
_LONG = (
    "x" * 256,
    "x" * 252 + ".md" + "x",
    "é" * 128,
    "🧠" * 64,
    "x/" * 600,
    "x/" + "y" * 256,
    "x" * 1025,
    "x" * 1_000_000,
)
_NO_TEXT = (None, 5, b"x", ["x"], ("a", "b"), True, 1.5)

HOSTILE = [
    *_CLIMBS, *_DOTS, *_SLASHES, *_ENCODED, *_ABSOLUTE, *_EMPTY, *_SINGLE_DOTS, *_BACKSLASHES, *_HIDDEN,
    *_TRAILING, *_CONTROLS, *_INVISIBLE, *_BROKEN, *_LONG, *_NO_TEXT,
]  # fmt: skip

HONEST = [
    "notes.md", "MEMORY.md", "index.md", "today", "a/b/c/d/e/f/g/h.md", "memory/system/definition.md", "a b.md",
    "My Notes/2026 plan.md",
    "données/été.md", "données.md", "記憶/今日.md", "ذاكرة/اليوم.md", "память/сегодня.md", "स्मृति.md", "기억.md",
    "🧠.md", "❤️.md",
    "a.b.c.md", "a..b.md", "x...y", "v1.2.3/notes", "100%.md", "50% done.md", "%.md", "%2", "a&b.md", "a+b.md",
    "a=b", "c#.md", "c++.md", "q&a?.md",
    "it's.md", "\"quoted\".md", "(1).md", "[draft].md", "{x}.md", "a,b;c.md", "!important.md", "$HOME.md", "`x`.md",
    "x~", "a~b.md", "@home.md",
    "-rf", "--help", "memories/x.md", "memoriesX", "operator-inbox.jsonl", "ß.md", "½ cup.md", "ratio 1:2.md",
    "two: parts.md", "null", "CON",
    "x" * 255, "é" * 127, "/".join(["deep"] * 100), "a|b.md", "a<b>.md", "*.md", "e\u0301.md", "Ａ.md",
    "２０２６.md", "x.md~1",
]  # fmt: skip


def test_the_corpora_are_as_large_as_they_claim():
    assert len(set(map(repr, HOSTILE))) >= 150
    assert len(set(HONEST)) >= 50


@pytest.mark.promise("F3")
@pytest.mark.parametrize("path", HOSTILE, ids=lambda path: ascii(path)[:40])
def test_a_hostile_path_is_refused(path):
    with pytest.raises(InvalidPath) as caught:
        validate.check_path(path)
    assert str(caught.value).isascii()
    assert len(str(caught.value)) < 400


@pytest.mark.promise("F3")
@pytest.mark.parametrize(
    "path",
    [
        *_DOTS,
        *_SLASHES,
        *_ENCODED,
        *_SINGLE_DOTS,
        *_BACKSLASHES,
        *_HIDDEN,
        *_TRAILING,
        *_CONTROLS,
        *_INVISIBLE,
        *_BROKEN,
    ],
    ids=lambda path: ascii(path)[:40],
)
def test_a_trick_is_refused_at_any_depth(path):
    for whole in (f"honest/{path}", f"/memories/{path}", f"/memories/honest/{path}/x.md", f"{path}/x.md"):
        with pytest.raises(InvalidPath):
            validate.check_path(whole)


@pytest.mark.promise("F3")
@pytest.mark.parametrize("path", HONEST, ids=lambda path: ascii(path)[:40])
def test_an_honest_path_passes_unchanged(path):
    assert validate.check_path(path) == tuple(path.split("/"))
    assert validate.check_path(f"/memories/{path}"[:1024]) == tuple(path.split("/"))
    assert validate.check_path(f"{path}/"[:1024]) == tuple(path.split("/"))


@pytest.mark.promise("F3")
def test_the_tree_itself_is_slash_memories():
    assert validate.check_path("/memories") == validate.check_path("/memories/") == ()
    assert validate.check_path("/memories/x/y.md") == validate.check_path("x/y.md") == ("x", "y.md")


@pytest.mark.promise("F3")
@given(some.raw_texts | some.broken_texts | st.lists(st.sampled_from([
    ".", "..", "/", "//", "x", " ", "~", "%", "2e", "．", "／", "\\", "memories", "/memories", "\u200b", "…", "C:", "é",
]), max_size=8).map("".join))  # fmt: skip
def test_whatever_passes_can_only_name_something_below(path):
    try:
        parts = validate.check_path(path)
    except Refused:
        return
    again = "/".join(parts)
    assert again in (path, path.removeprefix("/memories").strip("/"), path.removesuffix("/"))
    for part in parts:
        for form in (part, *[unicodedata.normalize(name, part) for name in ("NFC", "NFD", "NFKC", "NFKD")]):
            assert form not in ("", ".", "..")
            assert not form.startswith((".", "~", " "))
            assert not form.endswith((".", " "))
            assert not {"/", "\\", "\0", "\n", "\r"} & set(form)
        assert len(part.encode()) <= 255
