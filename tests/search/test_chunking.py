"""Chunks of texts: nothing is lost, no piece is too long, and each has the marks of its content."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.search import chunking
from holdfast.search.chunking import DIRECTIVE, NAME, NUMBER, PEOPLE, PIECE_WORDS, QUESTIONS, TIME, chunks, cut, sentences

WORDS = st.sampled_from(
    ["I", "you", "my", "harbour", "ferry.", "really?", "yes!", "早安。", "one", "2026", "- item", "a\n\nb", "\n"]
)
PROSE = st.lists(WORDS, max_size=400).map(" ".join)
ANY = st.text(max_size=300)
MOST = int(1.5 * PIECE_WORDS)  # words of a sentence that is not cut


def join_words(text):
    """Return the words alone: a boundary may be where there was no space."""
    return "".join(text.split())


@given(PROSE | ANY)
@example("")
@example("word " * 5000)
@example("a. " * 5000)
def test_chunks_lose_nothing(text):
    assert join_words(" ".join(chunks(text))) == join_words(text)


@given(PROSE | ANY, st.integers(5, 100))
def test_chunks_are_not_much_longer_than_asked_for(text, size):
    found = chunks(text, size)
    assert found
    assert all(len(chunk.split()) <= 2.5 * size for chunk in found)
    if len(text.split()) > size:
        assert all(found)


def test_chunks_are_whole_sentences_of_about_the_same_size():
    text = " ".join(f"Sentence number {number} says a little more than nothing." for number in range(20))  # 180 words
    found = chunks(text)
    assert len(found) == 3 and all(chunk.startswith("Sentence") and chunk.endswith(".") for chunk in found)
    sizes = [len(chunk.split()) for chunk in found]
    assert max(sizes) - min(sizes) <= 18


def test_a_sentence_without_end_is_cut():
    found = chunks("word " * 1000)
    assert all(len(chunk.split()) <= MOST for chunk in found)


@given(PROSE | ANY, st.sampled_from(["", "Ana", "user", "assistant"]))
@example("", "")
@example("\n\n", "Ana")
@example("no end " * 3000, "")
def test_a_cut_text_has_pieces_and_each_has_units(text, speaker):
    found = cut(text, speaker)
    assert found if text.strip() else True
    assert join_words(" ".join(piece.text for piece in found)) == join_words(text.replace("’", "'"))
    assert all(piece.units for piece in found)
    assert all(len(unit.split()) <= chunking._SENTENCE_WORDS for piece in found for unit in piece.units if unit != piece.text)
    assert all(len(piece.units) <= chunking._MAX_SENTENCES for piece in found)
    assert all(len(piece.text.split()) <= 2.5 * PIECE_WORDS for piece in found)


@given(PROSE | ANY)
def test_sentences_are_never_none_and_never_too_long(text):
    found = sentences(text)
    assert found and all(len(one.split()) <= chunking._SENTENCE_WORDS for one in found)


def test_sentences_end_where_sentences_and_lines_end():
    text = "I took the ferry. It was late!  Was it worth it?\nA line of its own\n"
    text += "今日はとてもよく晴れています。明日は雨が降るでしょうね。"
    assert sentences(text) == [
        "I took the ferry.", "It was late!", "Was it worth it?", "A line of its own", "今日はとてもよく晴れています。",
        "明日は雨が降るでしょうね。",
    ]  # fmt: skip


def test_scraps_are_no_sentences_unless_there_is_nothing_else():
    assert sentences("Yes. I took the ferry.") == ["I took the ferry."]
    assert sentences("Yes. No.") == ["Yes. No."]


def test_the_speakers_names_say_nothing_within_their_own_session():
    assert sentences("Ana's cat sleeps, Ana said so.", ("Ana",)) == ["cat sleeps, said so."]
    assert sentences("Our Anniversary is on Ann's list", ("Ann", "A.* (x)")) == ["Our Anniversary is on list"]
    assert sentences("That is what A.* (x) said", ("Ann", "A.* (x)")) == ["That is what said"]


def test_what_a_picture_shows_is_a_sentence():
    assert sentences("Look at this [image: a photo of a red boat at sea]") == ["Look at this .", "a red boat at sea"]


def test_what_people_say_is_embedded_by_the_sentence_and_what_machines_say_as_a_whole():
    text = "I took the ferry. It was late and cold."
    assert cut(text, "Ana")[0].units == ("I took the ferry.", "It was late and cold.")
    assert cut(text, "user")[0].units == ("I took the ferry.", "It was late and cold.")
    assert cut(text, "assistant")[0].units == (text,)
    assert cut(text, "Assistant")[0].units == (text,)


def test_a_long_text_nobody_in_particular_said_is_cut_where_it_turns_personal():
    text = "The manual lists every screw.\n" * 30 + "I keep my spare keys under the pot.\n" + "The manual ends here.\n" * 20
    found = cut(text)
    assert [piece.text for piece in found if piece.marks & PEOPLE] == ["I keep my spare keys under the pot."]


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("I saw her yesterday", PEOPLE | TIME), ("we met on 5th of May", PEOPLE | TIME), ("I have three cats", PEOPLE | NUMBER),
        ("Always run the tests before you push", DIRECTIVE), ("From now on, use tabs", DIRECTIVE),
        ("I prefer tea", PEOPLE | DIRECTIVE), ("Where is the boat?", 8 * QUESTIONS),
        ("The boat is blue. Is yours?", 4 * QUESTIONS),
        ("Is it? It is. The boat is blue.", 0), ("Your boat is blue", 0), ("- I want this", 0), ("1) my own list", NUMBER),
        ("The mayor is here", 0), ("a thirsty horse", 0), ("the ferry to Oslo", NAME), ('the book "Dune" is long', NAME),
    ],
)  # fmt: skip
def test_the_marks_of_a_piece(text, marks):
    assert cut(text)[0].marks == marks


@pytest.mark.parametrize(
    "text",
    [
        "a " * 50_000, ". " * 50_000, "\n" * 100_000, "?" * 100_000, "[image: " * 10_000, "I " * 50_000, "。" * 100_000,
        " " * 100_000, "Ana" * 30_000,
    ],
    ids=lambda text: ascii(text[:8]),
)  # fmt: skip
def test_a_long_text_is_cut_in_time_in_proportion(text):
    start = time.process_time()
    cut(text)
    cut(text, "Ana", ("Ana", "Ben"))
    assert time.process_time() - start < 3
