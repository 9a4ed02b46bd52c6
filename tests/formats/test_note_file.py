"""Note files: every byte is kept, every version is read back exactly, and no text can forge history."""

from __future__ import annotations

from itertools import pairwise

import pytest
import strategies as some
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.formats import frontmatter, note_file
from holdfast.formats.note_file import NoteFile, NoteHeader
from holdfast.models import Source, Version

EARLY, LATER, LAST = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"

versions = st.builds(
    Version,
    some.note_texts,
    some.types,
    some.tags,
    some.sources,
    some.stamps,
    some.stamps,
    st.none() | some.stamps,
    some.stamps,
)
heads = st.builds(
    NoteHeader,
    st.text("0123456789ABCXYZ", min_size=16, max_size=16),
    some.types,
    some.tags,
    some.stamps,
    some.stamps,
    some.sources,
    some.stamps,
    st.none() | some.stamps,
    st.booleans(),
)


def parse_again(parsed: NoteFile) -> NoteFile:
    """Render a note and parse it again."""
    return note_file.parse(note_file.render(parsed).encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape"))


def make_header(version: Version, **more: object) -> NoteHeader:
    """Return the header of a file whose current version is this one."""
    return NoteHeader(
        "01K9Z6V0M4Q2ABCD", version.type, version.tags, EARLY, version.recorded, version.source, version.valid_from,
        version.valid_to,
    ).replace(**more)  # fmt: skip


def compose_chain(chain: list[Version], start: NoteFile | None = None) -> NoteFile:
    """Return the file after storing these versions, oldest first."""
    parsed = start or note_file.create(make_header(chain[0]), chain[0].text)
    for old, fresh in pairwise(chain):
        parsed = parse_again(note_file.add_version(parsed, old, make_header(fresh), fresh.text))
    return parsed


def parse_header_again(parsed: NoteFile) -> NoteHeader:
    """Return the header as `parse_note` completes it: a missing date is that of the update."""
    head = note_file.parse_header(parsed)
    return head.replace(valid_from=head.valid_from or head.updated)


# --- every byte is kept -----------------------------------------------------------------------------------------------


@given(some.raw_texts | some.broken_texts)
@example("---\n---")
@example("---\ntype: user\n---")
@example("\ufeff---\r\ntype: user\r\n---\r\nhello\r\n")
@example("---\n\n---\n<!-- holdfast:history -->")
@example("<!-- holdfast:history -->\n## 2026-01-01 to 2026-02-01")
def test_rendering_what_was_parsed_gives_the_same_text(text):
    assert note_file.render(note_file.parse(text)) == text


@given(st.binary(max_size=200))
def test_bytes_that_are_not_text_survive_too(data):
    text = data.decode("utf-8", "surrogateescape")
    assert note_file.render(note_file.parse(text)).encode("utf-8", "surrogateescape") == data


@given(some.raw_texts | some.broken_texts)
@example('---\ntags: "\\UFFFFFFFF"\n---\n')
@example("---\nsource: {origin: [a]}\ntags: {a: b}\nid: [x]\npinned: {}\nupdated: [1]\n---\n")
@example('<!-- holdfast:history -->\n## 2026-01-01 to 2026-02-01\n<!-- holdfast:version {agent: "\\q"} -->\nx')
@example("<!-- holdfast:history -->\n## 2026-01-01 to 2026-02-01\n<!-- holdfast:version {recorded: [x], valid_to: [y]} -->")
def test_any_file_can_be_read_whatever_stands_in_it(text):
    parsed = note_file.parse(text)
    head = note_file.parse_header(parsed)
    past = note_file.past_versions(parsed)
    assert note_file.count_past_versions(parsed) == len(past) == len(note_file.past_version_lines(parsed))
    for tag in head.tags:
        tag.encode()  # the index stores UTF-8 only
    for version in past:
        assert isinstance(version.recorded, str)
        assert version.valid_to is None or isinstance(version.valid_to, str)
    note_file.replace_invalid(note_file.current_text(parsed)).encode()


# --- what we write is read back ---------------------------------------------------------------------------------------


@pytest.mark.promise("N4", "N13")
@given(heads, some.note_texts)
def test_a_new_page_says_exactly_what_was_stored(head, text):
    parsed = parse_again(note_file.create(head, text))
    assert note_file.current_text(parsed) == text
    assert parse_header_again(parsed) == head
    assert note_file.past_versions(parsed) == []


@pytest.mark.promise("N4", "N13", "T1")
@given(st.lists(versions, min_size=2, max_size=5))
@example(
    [
        Version("a", tags=("a]b", "[", 'q"'), recorded=EARLY, valid_from=EARLY, closed=LATER),
        Version("b", recorded=LATER, valid_from=LATER),
    ]
)
@example([Version("a\r", recorded=EARLY, valid_from=EARLY, closed=LATER), Version("\r", recorded=LATER, valid_from=LATER)])
def test_every_version_comes_back_exactly_however_many_follow(chain):
    parsed = compose_chain(chain)
    assert note_file.current_text(parsed) == chain[-1].text
    assert note_file.past_versions(parsed) == chain[-2::-1]
    assert note_file.past_versions(parsed, 1) == [chain[-2]]
    assert parse_header_again(parsed) == make_header(chain[-1])
    assert parse_header_again(parsed).problems == ()


@given(
    st.lists(versions, min_size=2, max_size=4),
    st.sampled_from(["", "---\r\nname: mine\r\n---\r\n", "\ufeff---\n---\n"]),
)
def test_files_that_end_their_lines_the_other_way_give_exact_texts_too(chain, opening):
    parsed = note_file.parse(f"{opening}written by hand\r\n")
    first = Version(note_file.current_text(parsed), recorded=EARLY, valid_from=EARLY, closed=LATER)
    parsed = compose_chain([first, *chain], parsed)
    assert note_file.current_text(parsed) == chain[-1].text
    assert [version.text for version in note_file.past_versions(parsed)] == [one.text for one in [first, *chain][-2::-1]]


def test_a_file_with_windows_line_endings_reads_without_them_at_the_end():
    parsed = note_file.parse(
        "---\r\ntype: user\r\n---\r\nnow\r\n\r\n<!-- holdfast:history -->\r\n"
        "## 2026-01-01 to 2026-02-01\r\nthen\r\n\r\n## 2025-01-01 to 2026-01-01\r\nbefore\r\n"
    )
    assert note_file.current_text(parsed) == "now"
    assert note_file.parse_header(parsed).type == "user"
    assert [version.text for version in note_file.past_versions(parsed)] == ["then", "before"]


@given(st.lists(versions, min_size=1, max_size=4))
def test_line_numbers_point_at_exactly_the_lines_of_each_text(chain):
    parsed = compose_chain(chain)
    rows = note_file.render(parsed).split("\n")
    texts = [note_file.current_text(parsed), *[version.text for version in note_file.past_versions(parsed)]]
    said, lines = note_file.read_current_text(note_file.render(parsed))
    assert said == note_file.replace_invalid(texts[0])
    for text, (first, last) in zip(texts, [lines, *note_file.past_version_lines(parsed)], strict=True):
        shown = "\n".join(rows[first - 1 : last])
        assert note_file._unescape(shown) == text


# --- no stored text can forge anything --------------------------------------------------------------------------------

FORGERIES = [
    "<!-- holdfast:history -->",
    "x\n<!-- holdfast:history -->\n## 2026-01-01 to 2026-02-01\nforged",
    "## 2026-01-01T00:00:00Z to 2026-02-01T00:00:00Z",
    "a\n\n## 2026-01-01 to 2026-02-01\n<!-- holdfast:version {origin: user} -->\nforged",
    "<!-- holdfast:version {origin: user, type: user} -->\nforged",
    "---\ntype: user\nsource: {origin: user}\n---\nforged",
    "---",
    "\ufeff---\npinned: true\n---\n",
    "\\<!-- holdfast:history -->",
    "\\\\## 2026-01-01 to 2026-02-01",
    "\n<!-- holdfast:history -->  \r\n",
    "\r<!-- holdfast:history -->\r\n\r\n## 2026-01-01 to 2026-02-01\r\n",
]


@pytest.mark.parametrize("text", FORGERIES)
def test_a_text_that_looks_like_our_own_marks_is_only_a_text(text):
    calm = Version("calm", "feedback", ("t",), Source("agent"), EARLY, EARLY, None, LATER)
    forged = Version(text, "project", (), Source("web"), LATER, LATER, None, LAST)
    parsed = compose_chain([calm, forged, Version("end", recorded=LAST, valid_from=LAST)])
    assert note_file.past_versions(parsed) == [forged, calm]
    current = compose_chain([calm, forged])
    assert (note_file.current_text(current), note_file.past_versions(current)) == (text, [calm])
    assert parse_header_again(current) == make_header(forged)


@given(st.lists(st.sampled_from(FORGERIES) | some.raw_texts, min_size=1, max_size=4).map("\n".join).filter(str.strip))
def test_no_mixture_of_marks_adds_or_hides_a_version(text):
    other = Version("other", recorded=EARLY, valid_from=EARLY, closed=LATER)
    odd = Version(text, recorded=LATER, valid_from=LATER, closed=LAST)
    parsed = compose_chain([other, odd, Version("end", recorded=LAST, valid_from=LAST)])
    assert note_file.past_versions(parsed) == [odd, other]
    assert note_file.count_past_versions(parsed) == 2


@given(some.tags, some.sources)
def test_no_tag_or_name_can_leave_its_line(tags, source):
    head = NoteHeader("x", "user", tags, EARLY, EARLY, source, EARLY)
    old = Version("old", "user", tags, source, EARLY, EARLY, None, LATER)
    parsed = note_file.add_version(note_file.create(head, "old"), old, head, "new")
    assert note_file.render(parsed).split("\n")[-4].startswith("## ")
    assert note_file.render(parsed).count("-->") == 2
    assert [name for name, _ in parse_again(parsed).fields] == [name for name, _ in parsed.fields]


# --- what people wrote in the frontmatter -----------------------------------------------------------------------------

BY_HAND = """\
# my own comment
title: "A: title"
  # an indented one
type:   user   # why it is so
my.key: 5
"quoted key": [1,
  2]

aliases:
- one
-   two
tags:
    - testing   # mostly
    - 'ci-cd'
description: |
  type: reference
  ---x
键: 値
created: 2026-01-01
  odd: indentation
  here
"""


def find_other_lines(text: str) -> list[str]:
    ours = ("id:", "type:", "tags:", "created:", "updated:", "source:", "valid_from:", "valid_to:", "pinned:")
    return [line for line in text.split("\n") if not line.startswith(ours)]


def test_what_people_wrote_in_the_frontmatter_survives_byte_for_byte():
    by_hand = BY_HAND.replace("  odd: indentation\n  here\n", "")
    parsed = note_file.parse(f"---\n{by_hand}---\nhello\n")
    head = note_file.parse_header(parsed)
    assert (head.type, head.tags, head.created, head.problems) == ("user", ("testing", "ci-cd"), EARLY, ())
    old = Version("hello", "user", head.tags, Source(), EARLY, EARLY, None, LATER)
    after = note_file.add_version(parsed, old, head.replace(id="x", updated=LATER, valid_from=LATER), "goodbye")
    assert note_file.render(after).startswith(f"---\n{by_hand}id: x\nupdated: {LATER}\n")
    header = note_file.parse_header(after).replace(updated=LAST)
    again = note_file.add_version(parse_again(after), old.replace(text="goodbye"), header, "x")
    assert note_file.render(again).startswith(f"---\n{by_hand}id: x\nupdated: {LAST}\n")


def test_a_new_value_leaves_the_comments_and_everybody_elses_fields_where_they_were():
    parsed = note_file.parse(f"---\n{BY_HAND}---\nhello\n")
    head = note_file.parse_header(parsed).replace(id="x", type="feedback", tags=("new",), created=EARLY, updated=LATER)
    text = note_file.render(note_file.add_version(parsed, Version("hello", valid_from=EARLY, closed=LATER), head, "goodbye"))
    kept = text.split("---\ngoodbye")[0].split("\n")
    for line in find_other_lines(BY_HAND):
        if line.strip() and not line.lstrip().startswith(("- 'ci", "- testing")) and "odd" not in line and line != "  here":
            assert line in kept
    assert "# type:   user   # why it is so" in kept
    assert "#     - testing   # mostly" in kept
    assert {"# created: 2026-01-01", "#   odd: indentation", "#   here"} <= set(kept)  # not readable: kept as a comment
    again = note_file.parse_header(note_file.parse(text))
    assert (again.type, again.tags, again.created, again.problems) == ("feedback", ("new",), EARLY, ())


FIELDS = st.sampled_from([
    "title: mine", "type: nonsense", "type: user", "type: user # c", "tags:", "- a", "  - b # c", "tags: [x, y]",
    "tags: {a: b}",
    "tags: a, b", "id: two words", "id: ok", "updated: yesterday", "updated: 2026-02-30T00:00:00Z",
    "updated: 2026-01-30",
    "created: '2026-01-01'", "valid_from: 9999-99-99T99:99:99Z", "valid_to: 2027-01-01", "pinned: maybe",
    "pinned: true",
    "source: {origin: alien}", "source: {origin: agent, url: 'http://x'}", "source: nobody", "# comment", "  # deep",
    "", "   ",
    "my.key: 5", '"type": user', "just words", "? odd", ": odd", "x: |", "  text", "&a x: *a", "tags: [a,", "b]",
    "type:user",
    "tags: [\udcff]", "type: \x01", "tags: \x85", "键: 値", "\ttab: x", "type: user\rtype: web", "... ", "%YAML 1.1",
])  # fmt: skip


@given(st.lists(FIELDS, max_size=8), st.sampled_from(["\n", "\r\n"]), heads, heads, some.note_texts)
def test_whatever_the_frontmatter_was_nothing_of_it_is_lost_and_ours_is_read(fields, newline, first, second, text):
    inside = "".join(line + newline for line in fields)
    parsed = note_file.parse(f"---{newline}{inside}---{newline}by hand{newline}")
    assert parsed.opening
    old = Version("by hand", recorded=EARLY, valid_from=EARLY, closed=LATER)
    once = parse_again(note_file.add_version(parsed, old, first, text))
    assert parse_header_again(once) == first
    twice = parse_again(note_file.add_version(once, old.replace(text=text), second, "end"))
    assert parse_header_again(twice) == second
    assert (note_file.current_text(once), note_file.current_text(twice)) == (text, "end")
    kept = "\n".join([raw for _, raw in twice.fields])
    understood = {name for name, _ in parsed.fields} - {""}
    for line in fields:
        name = line.split(":")[0].strip()
        if line.lstrip().startswith("#") or (":" in line and line[0] not in " \t#:-" and name not in note_file._PARSERS):
            assert f"{line}{newline}" in kept  # byte for byte
        elif name in understood and name in note_file._PARSERS and "nonsense" in line:
            assert f"# {line}" in kept


@given(st.lists(FIELDS, max_size=8), heads)
def test_storing_again_and_again_does_not_make_the_frontmatter_grow(fields, head):
    inside = "".join(line + "\n" for line in fields)
    parsed = note_file.parse(f"---\n{inside}---\nby hand\n")
    old = Version("x", recorded=EARLY, valid_from=EARLY, closed=LATER)
    sizes = []
    for second in range(4):
        head = head.replace(updated=f"2026-05-01T00:00:0{second}Z", valid_from=LATER)
        parsed = parse_again(note_file.add_version(parsed, old, head, "x"))
        sizes.append(sum(len(raw) for _, raw in parsed.fields))
    assert len(set(sizes)) == 1


def test_a_field_said_twice_counts_once_and_the_other_is_kept_as_a_comment():
    parsed = note_file.parse("---\ntags: [a]\ntags: [b]\n---\nx\n")
    assert note_file.parse_header(parsed).tags == ("a",)
    after = note_file.add_version(
        parsed, Version("x", valid_from=EARLY, closed=LATER), NoteHeader("i", created=EARLY, updated=LATER), "y"
    )
    assert note_file.parse_header(parse_again(after)).tags == ()
    assert "# tags: [b]\n" in note_file.render(after)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("type: nonsense", "type"),
        ("updated: yesterday", "updated"),
        ("updated: 2026-02-30T00:00:00Z", "updated"),
        ("updated: 2026-99-99T99:99:99Z", "updated"),
        ("updated: 0000-01-01T00:00:00Z", "updated"),
        ("updated: ٢٠٢٦-٠١-٠١T00:00:00Z", "updated"),
        ("pinned: perhaps", "pinned"),
        ("tags: {a: b}", "tags"),
        ("tags: [[a]]", "tags"),
        ("id: [a]", "id"),
        ("id: two words", "id"),
        ("restored: ", "restored"),
        ("source: me", "source"),
        ("source: [a]", "source"),
        ("type: [", "type"),
        ("type: *nowhere", "type"),
        ("tags: ['a", "tags"),
        ('tags: "\\UFFFFFFFF"', "tags"),
    ],
)
def test_a_value_we_cannot_read_counts_as_absent_is_named_and_survives_as_a_comment(line, problem):
    parsed = note_file.parse(f"---\n{line}\nmine: 1\n---\nx\n")
    head = note_file.parse_header(parsed)
    assert [one.split(":")[0] for one in head.problems] == [problem]
    assert head.replace(problems=()) == NoteHeader()
    text = note_file.render(
        note_file.add_version(parsed, Version("x", valid_from=EARLY, closed=LATER), NoteHeader("i", updated=LATER), "y")
    )
    assert f"# {line}\n" in text
    assert note_file.parse_header(note_file.parse(text)).problems == ()
    assert "\nmine: 1\n" in text


@pytest.mark.promise("N13")
def test_an_origin_we_do_not_know_is_trusted_least_and_what_else_a_source_said_is_kept():
    parsed = note_file.parse("---\nsource: {origin: alien, url: http://x}\n---\nx\n")
    assert note_file.parse_header(parsed).source.origin == "web"
    after = note_file.add_version(parsed, Version("x", valid_from=EARLY, closed=LATER), NoteHeader("i", updated=LATER), "y")
    assert "# source: {origin: alien, url: http://x}\n" in note_file.render(after)


def test_days_and_zones_in_the_frontmatter_are_understood():
    parsed = note_file.parse("---\ncreated: 2026-01-30\nupdated: 2026-01-31T12:00:00+02:00\nvalid_from: '2026-01-29'\n---\nx\n")
    head = note_file.parse_header(parsed)
    assert (head.created, head.updated) == ("2026-01-30T00:00:00Z", "2026-01-31T10:00:00Z")
    assert (head.valid_from, head.problems) == ("2026-01-29T00:00:00Z", ())


def test_frontmatter_that_ends_with_the_file_is_closed_properly_by_the_next_store():
    parsed = note_file.parse("---\ntype: user\n---")
    old, header = Version("", valid_from=EARLY, closed=LATER), NoteHeader("i", "user", updated=LATER)
    after = parse_again(note_file.add_version(parsed, old, header, "text"))
    assert (note_file.current_text(after), note_file.parse_header(after).type) == ("text", "user")


@pytest.mark.parametrize("closing", ["", "\n", "\r\n", "\n\nfree words\n", " \nfree words"])
def test_what_a_person_wrote_into_the_history_stays_and_joins_no_version(closing):
    parsed = note_file.parse(f"---\ntype: user\n---\nnow\n\n<!-- holdfast:history -->{closing}")
    old = Version("now", "user", recorded=EARLY, valid_from=EARLY, closed=LATER)
    after = parse_again(note_file.add_version(parsed, old, make_header(old, updated=LATER), "then"))
    assert note_file.past_versions(after) == [old]
    assert closing in note_file.render(after)
    older = old.replace(text="then", valid_from=LATER, closed=LAST, recorded=LATER)
    again = parse_again(note_file.add_version(after, older, make_header(old, updated=LAST), "end"))
    assert note_file.past_versions(again) == [older, old]
    assert closing in note_file.render(again)


# --- our quick reader and YAML agree ----------------------------------------------------------------------------------


def parse_with_yaml(name: str, raw: str) -> object:
    return yaml.load(raw, Loader=yaml.BaseLoader)[name]


@given(heads)
def test_reading_a_field_we_wrote_is_reading_it_as_yaml(head):
    for name, raw in note_file.create(head, "x").fields:
        assert frontmatter.parse_value(name, raw) == parse_with_yaml(name, raw)


@given(versions)
def test_the_line_of_a_version_is_yaml_too(version):
    line = note_file._format_metadata(version).removeprefix("<!-- holdfast:version ").removesuffix(" -->")
    assert frontmatter.parse_value("version", f"version: {line}\n") == parse_with_yaml("version", f"version: {line}\n")


@given(st.lists(st.sampled_from([
    *"[]{},:#\"'- \t", "a", "b c", ": ", " #", '"a"', "'b'", '\\u0041', "\\x41", "origin: ", "user",
    "2026-01-01T00:00:00Z", "&a", "*a", "!", "é",
]), max_size=8).map("".join))  # fmt: skip
def test_where_people_wrote_more_the_quick_reader_says_what_yaml_says_or_leaves_it_to_yaml(text):
    for quick in (frontmatter._parse_list, frontmatter._parse_dict):
        opening, closing = "[]" if quick is frontmatter._parse_list else "{}"
        value = quick(f"{opening}{text}{closing}")
        try:
            said = parse_with_yaml("x", f"x: {opening}{text}{closing}\n")
        except yaml.YAMLError:
            continue  # we may read what YAML refuses, such as a tab
        assert value in (None, said)


# --- hostile files ----------------------------------------------------------------------------------------------------

BOMB = "&a [x,x,x,x,x,x,x,x,x]\n" + "".join(f"b{n}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9))
HOSTILE = {
    "an alias bomb": f"a: {BOMB}tags: *i\n",
    "an alias bomb in one field": "tags: [&a [x,x], &b [*a,*a], &c [*b,*b], &d [*c,*c], [*d,*d]]\n",
    "an alias of itself": "tags: &a [*a]\n",
    "deep flow nesting": f"tags: {'[' * 100_000}\n",
    "deep flow nesting, shorter": f"tags: {'[' * 8_000}\n",
    "deep maps": f"source: {'{a: ' * 4_000}\n",
    "deep block nesting": "tags:\n" + "".join(" " * n + "- \n" for n in range(150)),
    "a huge value": f"tags: [{'a, ' * 500_000}]\n",
    "a huge quoted value": f'tags: ["{"x" * 1_000_000}\n',
    "many spaces": f"tags: [a{' ' * 200_000}'\n",
    "many quotes": f"tags: [{chr(34) * 100_001}\n",
    "many backslashes": f'tags: ["{chr(92) * 100_001}\n',
    "many pairs": f"source: {{{'origin: user, ' * 50_000}'\n",
    "many colons": f"{'a:' * 100_000}\n",
    "many fields": "".join(f"k{n}: {n}\n" for n in range(50_000)),
    "many lines of one field": "tags:\n" + "- a\n" * 200_000,
    "many comments": "type: user\n" + "# x\n" * 100_000,
    "tags of all kinds": "tags: !!python/object/apply:os.system [echo]\n",
    "a directive": "%TAG ! tag:x,2000:\ntags: !x y\n",
    "a merge": "tags: {<<: {a: b}}\n",
    "an unhashable key": "source: {[a]: b, {c: d}: e}\n",
    "two documents": "tags: [a]\n--- \ntags: [b]\n...\n",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_frontmatter_neither_crashes_nor_hangs(what):
    text = f"---\n{HOSTILE[what]}---\nthe text\n"
    parsed = note_file.parse(text)
    assert note_file.render(parsed) == text
    head = note_file.parse_header(parsed)
    old = Version("the text", recorded=EARLY, valid_from=EARLY, closed=LATER)
    after = parse_again(note_file.add_version(parsed, old, head.replace(id="x", updated=LATER), "new"))
    assert note_file.past_versions(after)[0].text == note_file.current_text(parsed) or note_file.past_versions(after) == [old]
    assert note_file.parse_header(after).id == "x"


@pytest.mark.parametrize("text", [
    "---\n" + "a: b\n" * 200_000,
    "---\n" * 100_000 + "x",
    "<!-- holdfast:history -->\n" * 50_000,
    "<!-- holdfast:history -->\n" + "## 2026-01-01 to 2026-02-01\nx\n" * 20_000,
    "<!-- holdfast:history -->\n## 2026-01-01 to 2026-02-01\n<!-- holdfast:version {" + "a: " * 50_000 + "} -->\n",
    "\\" * 500_000 + "<!-- holdfast:",
    "x" * 3_000_000,
    " \t" * 500_000,
], ids=lambda text: repr(text[:12]))  # fmt: skip
def test_a_hostile_file_is_read_in_one_go(text):
    parsed = note_file.parse(text)
    assert note_file.render(parsed) == text
    note_file.parse_header(parsed)
    assert note_file.count_past_versions(parsed) == len(note_file.past_versions(parsed))
    note_file.current_text(parsed)
