"""Versions of a note: when each was valid and recorded, the next version, and the entry in the index."""

from __future__ import annotations

import pytest
import strategies as some
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.base import dates
from holdfast.base.record import Record
from holdfast.errors import Conflict, NotFound
from holdfast.formats import note_file
from holdfast.formats import versions as note_versions
from holdfast.formats.versions import Draft
from holdfast.index import entries
from holdfast.models import Scope, Source, Version

HERE = Scope("project", "p")
DAYS = [f"2026-03-0{day}T00:00:00Z" for day in range(1, 8)]
BETWEEN = ["2026-01-01T00:00:00Z", *[moment for day in DAYS for moment in (day, day.replace("T00", "T12"))]]


class Write(Record):
    """One write: when it was recorded, and for which time it is valid."""

    recorded: str
    valid_from: str | None
    valid_to: str | None
    tick: int


def writes(most: int = 6):
    """Writes in the order of the clock, each valid for an interval of any kind."""
    one = st.builds(
        Write, st.sampled_from(DAYS), st.none() | st.sampled_from(DAYS), st.none() | st.sampled_from(DAYS), st.just(0)
    )
    sane = one.filter(lambda write: write.valid_to is None or (write.valid_from or write.recorded) < write.valid_to)
    return st.lists(sane, min_size=1, max_size=most).map(
        lambda many: [write.replace(tick=tick) for tick, write in enumerate(sorted(many, key=lambda write: write.recorded))]
    )


def draft(text: str, **more: object) -> Draft:
    return Draft("k", text, Source("agent")).replace(**more)


def compose_all(recorded_writes: list[Write]) -> note_versions.ParsedNote:
    """Return the file after these writes, parsed again after each."""
    note = None
    for write in recorded_writes:
        wanted = draft(f"text {write.tick}", valid_from=write.valid_from, valid_to=write.valid_to)
        _, note = note_versions.compose(wanted, note, write.recorded, "ID")
        note = note_versions.parse_note(note.data, 0)
    assert note is not None
    return note


def expected_text(recorded_writes: list[Write], as_of: str, known_at: str | None) -> str | None:
    """Return the text of the newest recorded write that covers the moment; a recorded later write ends an earlier one."""
    known = [write for write in recorded_writes if known_at is None or write.recorded <= known_at]
    for position in range(len(known) - 1, -1, -1):
        write = known[position]
        start = write.valid_from or write.recorded
        ends = [write.valid_to] if write.valid_to else []
        if position + 1 < len(known):
            after = known[position + 1]
            ends.append(max(after.valid_from or after.recorded, start))
        if start <= as_of and all(as_of < end for end in ends):
            return f"text {write.tick}"
    return None


# --- two times --------------------------------------------------------------------------------------------------------


@pytest.mark.promise("T1")
@given(writes())
def test_every_question_on_both_clocks_is_answered_as_by_going_through_all_that_was_said(recorded_writes):
    note = compose_all(recorded_writes)
    versions = note_versions.list_versions(note)
    assert [version.text for version in versions] == [f"text {write.tick}" for write in reversed(recorded_writes)]
    for as_of in BETWEEN:
        for known_at in [None, *BETWEEN]:
            expected = expected_text(recorded_writes, as_of, known_at)
            position = note_versions.find_version(versions, as_of, known_at)
            assert (versions[position].text if position is not None else None) == expected
        try:
            then = note_versions.to_note_at(HERE, "k", note, as_of=as_of, known_at=None)
        except NotFound:
            assert expected_text(recorded_writes, as_of, None) is None
        else:
            assert then.text == expected_text(recorded_writes, as_of, None)
            rows = note.data.decode().split("\n")
            assert "\n".join(rows[then.lines[0] - 1 : then.lines[1]]) == then.text


@pytest.mark.promise("T1")
@given(st.lists(st.builds(
    Version, st.uuids().map(str), recorded=st.sampled_from(DAYS), valid_from=st.sampled_from(DAYS),
    valid_to=st.none() | st.sampled_from(DAYS), closed=st.sampled_from(DAYS),
), max_size=6))  # fmt: skip
def test_histories_that_people_wrote_are_answered_by_the_same_rule(versions):
    versions = [version if position else version.replace(closed=None) for position, version in enumerate(versions)]
    for as_of in BETWEEN:
        for known_at in [None, *BETWEEN]:
            covering = []
            for position, version in enumerate(versions):
                closer = versions[position - 1] if position else None
                closed = closer is not None and (known_at is None or closer.recorded <= known_at)
                end = version.closed if closed else version.valid_to
                if (known_at is None or version.recorded <= known_at) and version.valid_from <= as_of < (end or "9"):
                    covering.append(position)
            assert note_versions.find_version(versions, as_of, known_at) == min(covering, default=None)


@pytest.mark.promise("T1")
def test_only_known_at_asks_what_was_held_then():
    note = compose_all([Write(DAYS[0], None, None, 0), Write(DAYS[4], None, None, 1)])
    versions = note_versions.list_versions(note)
    assert note_versions.find_version(versions, None, DAYS[2]) == 1
    assert note_versions.find_version(versions, None, DAYS[5]) == 0


@pytest.mark.promise("T1")
def test_a_correction_of_the_past_changes_what_was_true_but_not_what_was_known():
    note = compose_all([Write(DAYS[0], None, None, 0), Write(DAYS[3], None, None, 1), Write(DAYS[5], DAYS[1], None, 2)])
    ask = lambda as_of, known_at=None: note_versions.to_note_at(HERE, "k", note, as_of=as_of, known_at=known_at).text  # noqa: E731
    assert ask(DAYS[2]) == "text 2"
    assert ask(DAYS[2], DAYS[4]) == "text 0"
    assert ask(DAYS[4], DAYS[4]) == "text 1"
    assert ask(DAYS[4]) == "text 2"
    assert ask(DAYS[0]) == "text 0"


def test_an_error_says_whether_nothing_was_true_or_nothing_was_recorded():
    note = compose_all([Write(DAYS[3], DAYS[1], None, 0)])
    with pytest.raises(NotFound, match="had no version at"):
        note_versions.to_note_at(HERE, "k", note, as_of=DAYS[0], known_at=None)
    with pytest.raises(NotFound, match="no version of 'k' had been recorded by"):
        note_versions.to_note_at(HERE, "k", note, as_of=DAYS[2], known_at=DAYS[2])


# --- the next version -------------------------------------------------------------------------------------------------

drafts = st.builds(
    Draft, st.just("k"), some.note_texts, some.sources, st.none() | some.types, st.none() | some.tags,
    st.none() | some.stamps,
    st.none() | some.stamps, st.none() | st.booleans(),
)  # fmt: skip


@pytest.mark.promise("N4")
@given(
    st.lists(st.tuples(drafts, some.stamps), min_size=1, max_size=5),
    st.sampled_from([None, b"by hand\n", b"---\nmine: 1\ntags: [\xff]\n---\r\nhi\r\n"]),
)
def test_a_file_we_write_reads_back_as_what_we_meant_without_reading_it(sequence, start):
    note = note_versions.parse_note(start, 1_700_000_000) if start else None
    for wanted, now in sequence:
        before = note
        action, note = note_versions.compose(wanted, before, now, "ID")
        again = note_versions.parse_note(note.data, 5)
        assert again.header.replace(problems=()) == note.header.replace(problems=())
        assert (
            (again.text, again.lines, again.past_count)
            == (note.text, note.lines, note.past_count)
            == (wanted.text, note.lines, note.past_count)
        )
        assert action == ("created" if before is None else "unchanged" if note is before else "updated")
        if action == "updated":
            assert again.past_count == before.past_count + 1
            assert note_versions.list_versions(again)[2:] == note_versions.list_versions(before)[1:]
            old, was = note_versions.list_versions(again)[1], note_versions.list_versions(before)[0]
            assert old.replace(closed=None) == was
            assert again.header.updated >= before.header.updated  # history does not go backwards with the clock
        assert note_versions.compose(wanted, again, now, "ID")[0] == "unchanged"


@pytest.mark.promise("N4")
@given(st.lists(drafts, min_size=1, max_size=2), drafts)
def test_the_same_content_again_makes_no_new_version(sequence, last):
    note = None
    for wanted in [*sequence, last]:
        _, note = note_versions.compose(wanted, note, DAYS[0], "ID")
    again = draft(last.text, source=Source("user", "someone else"))
    action, same = note_versions.compose(again, note, DAYS[6], "OTHER")
    assert (action, same.data) == ("unchanged", note.data)


@pytest.mark.promise("N4")
@pytest.mark.parametrize(
    "more",
    [
        {"type": "user"},
        {"tags": ("x",)},
        {"pinned": True},
        {"valid_from": DAYS[1]},
        {"valid_to": DAYS[6]},
        {"text": "other"},
    ],
)
def test_a_change_of_anything_is_a_new_version(more):
    _, note = note_versions.compose(draft("text"), None, DAYS[0], "ID")
    action, after = note_versions.compose(draft("text").replace(**more), note, DAYS[2], "OTHER")
    assert (action, after.past_count, after.header.id) == ("updated", 1, "ID")


@pytest.mark.promise("N4")
def test_what_a_draft_leaves_out_stays_as_it_was():
    _, note = note_versions.compose(draft("a", type="feedback", tags=("t",), pinned=True), None, DAYS[0], "ID")
    _, note = note_versions.compose(draft("b"), note, DAYS[1], "ID")
    head = note.header
    assert (head.type, head.tags, head.pinned, head.created, head.updated) == (
        "feedback",
        ("t",),
        True,
        DAYS[0],
        DAYS[1],
    )


def test_an_edit_that_names_another_version_loses_with_a_conflict():
    _, note = note_versions.compose(draft("a"), None, DAYS[0], "ID")
    action, after = note_versions.compose(draft("b", expected=note.digest), note, DAYS[1], "ID")
    assert action == "updated"
    with pytest.raises(Conflict, match="has changed"):
        note_versions.compose(draft("c", expected=note.digest), after, DAYS[2], "ID")
    with pytest.raises(Conflict, match="no longer exists"):
        note_versions.compose(draft("c", expected=note.digest), None, DAYS[2], "ID")
    assert note_versions.compose(draft("c", expected=""), None, DAYS[2], "ID")[0] == "created"


# --- its entry in the index -------------------------------------------------------------------------------------------


@given(
    some.raw_texts | some.broken_texts | st.binary(max_size=80).map(lambda data: data.decode("utf-8", "surrogateescape")),
    st.integers(0, 2**40),
)
@example("---\ntags: [\udcff]\nid: \udcff\nsource: {agent: \udcff}\n---\n# \udcff\n- [2026-01-01] \udcff: \udcfe\n", 0)
def test_any_file_has_an_entry_that_the_catalogue_can_keep(text, modified):
    data = text.encode("utf-8", "surrogateescape")
    note = note_versions.parse_note(data, modified)
    assert note_file.render(note.file).encode("utf-8", "surrogateescape") == data
    for doc in (
        entries.note_entry("global", "k.md", note, (1, 2, 3)),
        entries.note_entry("global", "k.md", note, (1, 2, 3), newest_only=True),
        entries.file_entry("global", "a/b.md", data, (1, 2, 3), modified),
    ):
        repr(doc.as_dict()).encode()
        str(doc).encode()
        for passage in doc.passages:
            f"{passage.text}{passage.names}{passage.tags}{passage.source}".encode()
        assert all(fact.line >= 1 for fact in doc.facts)
        assert dates.is_moment(doc.updated) and dates.is_moment(doc.created)
    seen = note_versions.to_note(Scope("global"), "k", note)
    assert repr(seen.as_dict()).encode()
    assert dates.is_moment(seen.valid_from)


@given(writes(4))
def test_the_catalogue_knows_every_version_and_finds_its_text_again(recorded_writes):
    note = compose_all(recorded_writes)
    doc = entries.note_entry("projects/p", "k.md", note, (1, 2, 3))
    versions = note_versions.list_versions(note)
    assert doc.versions == len(versions) == len(doc.passages)
    assert [passage.text for passage in doc.passages] == [version.text for version in versions]
    assert [passage.seq for passage in doc.passages] == list(range(len(versions) - 1, -1, -1))
    for passage, newer in zip(doc.passages[1:], versions, strict=False):
        assert passage.past and passage.replaced == newer.recorded
        text, lines = note_versions.read_past_text(note, passage.seq)
        assert text == passage.text
        assert "\n".join(note.data.decode().split("\n")[lines[0] - 1 : lines[1]]) == text
    assert note_versions.read_past_text(note, len(versions) - 1) == note_versions.read_past_text(note, 99) == ("", (0, 0))
    newest = entries.note_entry("projects/p", "k.md", note, (1, 2, 3), newest_only=True)
    assert newest.passages == doc.passages[:2]


@pytest.mark.promise("F1", "F2")
@given(some.raw_texts)
def test_the_sections_of_a_file_are_its_lines_each_once(text):
    pieces = entries.split_sections(text)
    rows = text.split("\n")
    covered: list[int] = []
    for (first, last), piece in pieces:
        assert "\n".join(rows[first - 1 : last]) == piece
        covered.extend(range(first, last + 1))
    assert covered == sorted(set(covered))
    assert all(not row.strip() for number, row in enumerate(rows, 1) if number not in covered)


@pytest.mark.promise("F2")
def test_long_sections_are_cut_again_and_headings_begin_new_ones():
    text = "intro\n# One\n" + "line\n" * 100 + "## Two\nend"
    cuts = [lines for lines, _ in entries.split_sections(text)]
    assert cuts == [(1, 1), (2, 41), (42, 81), (82, 102), (103, 104)]


@pytest.mark.promise("F5")
@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.md", "---\nname: x\ndescription: y\n---\n", ""),
        ("a.md", "no frontmatter", ""),
        ("a.txt", "---\nx: 1\n---\n", ""),
        ("a.md", "---\ndescription: y\n---\n", "its frontmatter has no name"),
        ("a.md", "---\nname:\n---\n", "its frontmatter has no name"),
        ("a.md", "---\nname: x\n", "its frontmatter is never closed"),
    ],
)
def test_an_entry_file_needs_a_name_and_is_searchable_without(name, text, problem):
    doc = entries.file_entry("global", name, text.encode(), (1, 2, 3), 0)
    assert doc.problem == problem
    assert doc.passages


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("k.md", b"fine", ""),
        ("Bad Key.md", b"fine", "its name is not a valid key"),
        ("k.md", b"---\ntype: odd\n---\nx", "type: one of user, feedback, project, reference"),
        ("k.md", b"---\ntype: user\nx", "its frontmatter is never closed"),
        ("k.md", b"caf\xe9", "not UTF-8"),
        ("k.md", "caf\ufffd".encode(), ""),
        ("k.md", b" \n", "it is empty"),
    ],
)
def test_what_is_wrong_with_a_note_is_named(name, data, problem):
    assert entries.note_entry("global", name, note_versions.parse_note(data, 0), (1, 2, 3)).problem == problem


def test_a_file_that_dates_itself_nowhere_is_dated_by_the_file_system():
    note = note_versions.parse_note(b"by hand", 1_800_000_000)
    assert note.header.created == note.header.updated == note.header.valid_from == "2027-01-15T08:00:00Z"
    assert note_versions.to_note(HERE, "k", note).path == "projects/p/notes/k.md"
