"""Transcripts: stored word for word and once, found, read around a hit, forgotten and restored; of every store."""

from __future__ import annotations

import json

import pytest

from holdfast import InvalidText, NoScope, NotFound, UsageError

HELLO = [{"role": "user", "text": "Where is the harbour?"}, {"role": "assistant", "text": "By the sea."}]


def said(memory, turns=HELLO, session="s", client="c", **given):
    return memory.log(turns, session=session, client=client, **given)


def transcript_file(memory, name="c/s.jsonl", scope="projects/demo"):
    """Return every stored line of a session."""
    return [line.data for line in memory._context.store.transcripts(scope).open(name).read_lines()]


def test_turns_are_kept_word_for_word_and_once(any_memory, open_any):
    first = said(any_memory)
    assert (first.added, first.known, first.path) == (2, 0, "projects/demo/transcripts/c/s.jsonl")
    before = transcript_file(any_memory)
    again = said(open_any())
    assert (again.added, again.known) == (0, 2)
    assert transcript_file(any_memory) == before
    assert [json.loads(line)["text"] for line in before[1:]] == [one["text"] for one in HELLO]


def test_a_session_that_goes_on_gets_only_what_is_new(any_memory):
    said(any_memory)
    before = transcript_file(any_memory)
    assert said(any_memory, [*HELLO, {"role": "user", "text": "Thanks"}]).added == 1
    assert transcript_file(any_memory)[:3] == before and len(transcript_file(any_memory)) == 4


def test_the_same_words_twice_are_two_turns(any_memory):
    twice = [{"role": "user", "text": "yes"}, {"role": "user", "text": "yes"}]
    assert [said(any_memory, twice).added, said(any_memory, twice).added] == [2, 0]


def test_turns_are_found_by_the_next_recall_of_anybody_who_may(any_memory, open_any):
    other, stranger = open_any(), open_any(project="other")
    said(any_memory)
    (hit,) = other.recall("harbour", kind="turn")
    assert (hit.kind, hit.text, hit.session) == ("turn", "Where is the harbour?", "s")
    assert hit.citation == "projects/demo/transcripts/c/s.jsonl:2-2"
    assert len(stranger.recall("harbour", kind="turn")) == 0


def test_turns_after_a_recall_are_found_too(any_memory):
    for number in range(4):
        said(any_memory, [{"role": "user", "text": f"lighthouse {number} talk"}], session=f"s{number % 2}")
        assert len(any_memory.recall("lighthouse", kind="turn")) == number + 1


def test_what_was_said_around_a_turn_can_be_read(any_memory):
    said(any_memory, [{"role": "user", "text": f"word{number} was said"} for number in range(20)])
    citation = any_memory.recall("word10", kind="turn")[0].citation
    around = any_memory.expand(citation, before=2, after=3)
    assert [turn.text for turn in around] == [f"word{number} was said" for number in range(8, 14)]
    assert [turn.text for turn in any_memory.expand(around[0].id, before=0, after=0, session="s")] == ["word8 was said"]


def test_expanding_what_is_not_there_is_not_found(any_memory):
    said(any_memory)
    with pytest.raises(NotFound):
        any_memory.expand("projects/demo/transcripts/c/none.jsonl:2-2")
    with pytest.raises(NotFound):
        any_memory.expand("projects/other/transcripts/c/s.jsonl:2-2")


@pytest.mark.parametrize("session", ["../../x", "a/b", ".hidden", "é", "x" * 300, "a b", "'; --"])
def test_no_session_id_becomes_a_path(any_memory, session):
    logged = said(any_memory, session=session, client=session)
    assert logged.path.split("/")[3].startswith("~") and logged.path.split("/")[4].startswith("~")
    assert said(any_memory, session=session, client=session).known == 2
    assert any_memory.expand(f"{logged.path}:2")[0].session == session


@pytest.mark.parametrize(
    ("turn", "error"),
    [({"role": "king", "text": "x"}, UsageError), ({"text": "a\0b"}, InvalidText), ({"text": "\ud800"}, InvalidText),
     ({"text": "x", "time": "soon"}, UsageError)],
)  # fmt: skip
def test_the_gate_refuses_a_turn_by_its_number_and_keeps_nothing(any_memory, turn, error):
    with pytest.raises(error, match="turn 2: "):
        said(any_memory, [HELLO[0], turn])
    assert any_memory._context.store.list_scopes() == []


def test_without_a_session_nothing_is_kept(any_memory):
    with pytest.raises(NoScope):
        any_memory.log(HELLO)


@pytest.mark.parametrize("text", ["'; DROP TABLE line; --", "%s %(x)s", "東京 🚀", "a\tb\r\nc", "\u202eevil", "x" * 50_000])
def test_a_hostile_turn_comes_back_as_it_was(any_memory, open_any, text):
    said(any_memory, [{"role": "user", "text": f"marker {text}"}])
    (hit,) = open_any().recall("marker", kind="turn")
    assert open_any().expand(hit.citation)[0].text == f"marker {text}"


def test_a_long_session_is_kept_in_order(any_memory, open_any):
    given = [{"role": "user", "text": f"turn {number}", "id": str(number)} for number in range(700)]
    assert said(any_memory, given).added == 700
    assert [json.loads(line)["text"] for line in transcript_file(open_any())[1:]] == [one["text"] for one in given]
    assert said(open_any(), given[600:]).known == 100


def test_a_transcript_of_another_program_is_brought_in_once(any_memory, tmp_path):
    rows = [{"role": "user", "content": "Is it tide?", "session": "talk"}, {"role": "assistant", "content": "It is."}]
    (tmp_path / "talk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    first = any_memory.import_history(tmp_path / "talk.jsonl")
    again = any_memory.import_history(tmp_path / "talk.jsonl")
    assert sum(one.added for one in first) == 2 and sum(one.known for one in again) == 2
    assert len(any_memory.recall("tide", kind="turn")) == 1


def test_a_forgotten_session_is_gone_at_once_and_can_be_restored(any_memory, open_any):
    said(any_memory)
    before = transcript_file(any_memory)
    assert any_memory.forget_session("s").deleted
    for caller in (any_memory, open_any()):
        assert len(caller.recall("harbour", kind="turn")) == 0
    assert not any_memory.forget_session("s").deleted
    assert any_memory.restore_session("s").added == 2
    assert transcript_file(any_memory) == before
    assert len(open_any().recall("harbour", kind="turn")) == 1


def test_a_session_in_the_trash_is_gone_for_good_after_its_time(any_memory, clock):
    said(any_memory)
    any_memory.forget_session("s")
    clock.forward(days=31)
    any_memory.retain()
    with pytest.raises(NotFound):
        any_memory.restore_session("s")


def test_turns_belong_to_the_scope_they_were_given(open_any):
    caller = open_any(session="s1", agent="a1")
    for scope, folder in (("global", "global"), ("session", "sessions/s1"), ("agent", "agents/a1")):
        assert said(caller, session="t", scope=scope).path == f"{folder}/transcripts/c/t.jsonl"
    assert len(open_any(agent="a2").recall("harbour", kind="turn")) == 1
    assert len(caller.recall("harbour", kind="turn")) == 3


def test_every_turn_of_a_long_session_is_found_at_once_and_after_the_catalogue_is_made_anew(any_memory, open_any):
    said(any_memory, [{"role": "user", "text": f"turn {number} of the flamingo"} for number in range(4500)])

    def found(caller):
        answers = [caller.recall(f"turn {number}", kind="turn", mode="keyword", limit=1) for number in (0, 1999, 2001, 4499)]
        return [one.hits[0].text for one in answers if one.hits]

    expected = [f"turn {number} of the flamingo" for number in (0, 1999, 2001, 4499)]
    assert found(any_memory) == found(open_any()) == expected
    said(any_memory, [{"role": "user", "text": f"word {number} of the pelican"} for number in range(2100)])
    assert any_memory.recall("word 2099", kind="turn", mode="keyword").hits[0].text == "word 2099 of the pelican"
    any_memory.reindex()
    assert found(open_any()) == expected
    assert not any_memory.check()
