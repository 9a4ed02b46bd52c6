"""Lines of a transcript: they are parsed as they were rendered, ids are stable, and Holdfast's own blocks are removed."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import SPECIAL_TEXTS, raw_texts, stamps

from holdfast.errors import UsageError
from holdfast.formats import transcript
from holdfast.formats.transcript import CompactMap, KnownTurns, TranscriptHeader, TranscriptLine
from holdfast.verbs.brief import render

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_NAMES = st.text(min_size=1, max_size=8).filter(lambda name: name not in ("id", "role", "speaker", "time", "text"))
said_turns = st.builds(
    TranscriptLine,
    st.sampled_from(transcript.ROLES),
    raw_texts,
    raw_texts.map(lambda text: "x" + text),
    st.none() | stamps,
    st.none() | raw_texts,
    st.none(),
    st.dictionaries(_NAMES, _JSON, max_size=3),
)


def brief(text="Deploys are on Tuesdays.", count=1):
    notes = tuple([render.NoteView("project", f"k{number}", "2026-05-01", "agent", text) for number in range(count)])
    return render.compose_start([render.ScopeView("project", notes, count)], render.FactView(), render.Budget()).brief.text


# --- lines ------------------------------------------------------------------------------------------------------------


@given(said_turns)
def test_a_turn_comes_out_of_its_line_as_it_went_in(said):
    line = transcript.render_line(said)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert transcript.parse_line(line) == said
    assert transcript.render_line(transcript.parse_line(line)) == line


@given(st.dictionaries(st.text(max_size=5), _JSON, max_size=3))
def test_fields_that_are_not_ours_are_kept(more):
    line = json.dumps({**more, "id": "a", "role": "user", "text": "hello"}).encode()
    again = json.loads(transcript.render_line(transcript.parse_line(line)))
    assert again == json.loads(line)


@given(raw_texts.filter(bool), raw_texts, stamps)
def test_a_header_comes_out_as_it_went_in(session, client, started):
    header = TranscriptHeader(session, client, started)
    assert transcript.parse_header(transcript.render_header(header)) == header


@pytest.mark.parametrize(
    "line",
    [
        b"", b"{", b"[]", b"null", b"\xff\xfe", b"\0\0\0", b"[" * 100_000, b'{"a":' * 100_000, b'{"id": "a", "role": "user"}',
        b'{"id": "", "role": "user", "text": "x"}', b'{"id": 3, "role": "user", "text": "x"}',
        b'{"id": "a", "role": "king", "text": "x"}', b'{"id": "a", "role": "user", "text": "x", "time": 5}',
        b'{"holdfast": "transcript", "version": 1, "session": "s", "client": "c"}', b"9" * 10_000,
    ],
)  # fmt: skip
def test_a_line_that_is_no_turn_is_none(line):
    assert transcript.parse_line(line) is None


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_a_header_of_a_version_we_do_not_know_is_none(version):
    line = json.dumps({"holdfast": "transcript", "version": version, "session": "s", "client": "c"}).encode()
    assert transcript.parse_header(line) is None


# --- ids --------------------------------------------------------------------------------------------------------------


@given(raw_texts)
def test_an_id_stands_on_one_line_and_is_the_same_each_time(text):
    id = transcript.make_safe_id(text)
    assert id and id.isprintable() and len(id) <= 200 and transcript.make_safe_id(text) == id


def test_an_id_of_the_source_is_kept_as_it_is():
    for id in ("D1:3", "610cc996-000a-4690-b67e-4aec1ba1eafd", "answer_4be1b6b4_2#0", "記憶", "a b"):
        assert transcript.make_safe_id(id) == id


def test_the_same_words_said_again_are_another_turn():
    seen = CompactMap()
    ids = [transcript.assign_id(TranscriptLine("user", "yes"), "s", seen).id for _ in range(3)]
    again = CompactMap()
    assert len(set(ids)) == 3
    assert [transcript.assign_id(TranscriptLine("user", "yes"), "s", again).id for _ in range(3)] == ids


def test_a_word_repeated_a_hundred_thousand_times_is_counted_in_no_time():
    seen, start = CompactMap(), time.process_time()
    for _ in range(100_000):
        transcript.assign_id(TranscriptLine("user", "ok"), "s", seen)
    assert time.process_time() - start < 20


@given(st.lists(st.tuples(st.integers(1, 2**64 - 1), st.integers(0, 2**32 - 1)), max_size=3000))
def test_a_tally_is_a_dictionary(pairs):
    tally, wanted = CompactMap(), dict(pairs)
    for mark, value in pairs:
        tally.put(mark, value)
    assert {mark: tally.get(mark) for mark in wanted} == wanted
    assert tally.get(2**63 + 12345) == wanted.get(2**63 + 12345)


def test_an_id_that_comes_with_another_text_is_kept_beside_the_first_and_once():
    known = KnownTurns()
    first, second = TranscriptLine("user", "one", "a"), TranscriptLine("user", "two", "a")
    assert known.add_if_new(first) == first
    kept = known.add_if_new(second)
    assert kept.text == "two" and kept.id.startswith("a~")
    assert [known.add_if_new(first), known.add_if_new(second)] == [None, None]


@pytest.mark.parametrize("name", ["a/b", "..", "", "a\0b", "a b", ".hidden", "x" * 200, "é", "~", "a\nb"])
def test_a_name_that_is_none_of_ours_becomes_a_digest(name):
    safe = transcript.make_file_name(name)
    assert safe.startswith("~") and len(safe) == 33 and safe == transcript.make_file_name(name)
    assert transcript.make_file_name(safe) != safe  # no session can take another's file


# --- what comes in ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "time"),
    [
        ("2026-02-01T14:59:02.592Z", "2026-02-01T14:59:02Z"), ("2026-02-01", "2026-02-01T00:00:00Z"),
        (1769958000, "2026-02-01T15:00:00Z"), (1769958000123, "2026-02-01T15:00:00Z"), (1769958000.5, "2026-02-01T15:00:00Z"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"), (None, None), ("", None),
    ],
)  # fmt: skip
def test_times_in_the_ways_that_transcripts_have_them(value, time):
    assert transcript.parse_time(value) == time


@pytest.mark.parametrize("value", ["yesterday", "2026-13-01", True, -5, 10**20, float("inf"), [], {}])
def test_what_is_no_date_is_an_error_or_none(value):
    with pytest.raises(UsageError):
        transcript.parse_time(value)
    assert transcript.parse_time_or_none(value) is None


@given(raw_texts, st.integers(20, 60))
def test_a_text_is_cut_within_its_bytes_with_a_mark(text, most):
    short = transcript.truncate(text, most)
    assert len(short.encode()) <= most
    assert short == text or (short.endswith(transcript.CUT_MARK) and text.startswith(short.removesuffix(transcript.CUT_MARK)))


# --- our own blocks ---------------------------------------------------------------------------------------------------


@pytest.mark.promise("H3")
@given(raw_texts, raw_texts, raw_texts)
def test_a_briefing_is_taken_out_and_what_people_wrote_stays(before, note, after):
    block = brief(note or "x")
    text = f"{before}\n{block}{after}"
    assert transcript.strip_own_output(text).split() == transcript.strip_own_output(f"{before}\n{after}").split()


@pytest.mark.promise("H3")
@pytest.mark.parametrize("size", range(40, 900, 61))
def test_a_briefing_that_was_cut_anywhere_after_its_opening_leaves_no_note(size):
    block = brief("the harbour is grey", 5)
    left = transcript.strip_own_output(f"{block[:size]}\nWhat about Monday?")
    assert "harbour" not in left and "What about Monday?" in left


@pytest.mark.promise("H3")
def test_a_briefing_whose_middle_was_cut_out_is_taken_out():
    block = brief("the harbour is grey", 5)
    assert transcript.strip_own_output(f"Hello. {block[:150]} [...] {block[-100:]}Bye.") == "Hello. Bye."


@pytest.mark.promise("H3")
def test_a_briefing_within_json_is_taken_out():
    text = json.dumps({"prompt": f"Hello. {brief('the harbour')}Bye."})
    assert json.loads(transcript.strip_own_output(text)) == {"prompt": "Hello. Bye."}


@pytest.mark.promise("H3")
def test_a_wrapper_that_held_only_a_briefing_goes_with_it():
    assert transcript.strip_own_output(f"<hook_context>{brief()}</hook_context>\n\nWhat now?") == "What now?"


@pytest.mark.promise("H3")
def test_what_is_rendered_into_a_file_is_taken_out_and_a_stray_mark_eats_nothing():
    block = "<!-- holdfast:begin -->\n- harbour\n<!-- holdfast:end -->"
    assert transcript.strip_own_output(f"# Rules\n{block}\nBe kind.") == "# Rules\n\nBe kind."
    assert transcript.strip_own_output("I saw <!-- holdfast:begin --> in a file") == "I saw <!-- holdfast:begin --> in a file"


@given(st.lists(st.sampled_from(SPECIAL_TEXTS) | st.text(max_size=5), max_size=10).map("".join))
def test_a_text_without_a_block_is_kept_byte_for_byte(text):
    if '<holdfast-memory id="' not in text and "<!-- holdfast:begin -->" not in text:
        assert transcript.strip_own_output(text) == text


def test_a_text_full_of_openings_is_stripped_in_no_time():
    start = time.process_time()
    for number in (None, 0):
        marks = [f"{number if number is not None else place:012x}" for place in range(30_000)]
        transcript.strip_own_output("".join([f'<holdfast-memory id="{mark}">' for mark in marks]))
        transcript.strip_own_output(
            "".join([f'<holdfast-memory id="{mark}"></holdfast-memory id="{mark[::-1]}">' for mark in marks])
        )
    assert time.process_time() - start < 20
