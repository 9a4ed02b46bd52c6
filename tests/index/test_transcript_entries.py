"""Transcripts in the index: new turns are found at once, a file that grew is read on, one that was changed is read again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

from holdfast.context import transcript_entries
from holdfast.index.results import FileProblem
from holdfast.store import transcripts as transcript_files
from holdfast.store.transcripts import TranscriptFiles

SCOPE, FILE = "projects/demo", "projects/demo/transcripts/c/s.jsonl"


def say(memory, *texts, session="s", **more):
    return memory.log([{"role": "user", "text": text, **more} for text in texts], session=session, client="c")


def found(memory, query, **more):
    return [hit.text for hit in memory.recall(query, mode="keyword", limit=100, **more)]


@pytest.fixture
def file(home):
    return home / "shelf" / FILE


@pytest.fixture
def lines_read(monkeypatch):
    """Return the numbers of the lines that were read from transcripts."""
    read, real = [], transcript_files._read_lines

    def counted(fd, place, *size):
        for line in real(fd, place, *size):
            read.append(line.number)
            yield line

    monkeypatch.setattr(transcript_files, "_read_lines", counted)
    return read


@pytest.mark.promise("H2")
def test_what_was_said_is_found_when_log_returns(memory):
    say(memory, "The ferry leaves from the harbour")
    (hit,) = memory.recall("ferry", mode="keyword")
    assert (hit.kind, hit.text, hit.session, hit.speaker) == ("turn", "The ferry leaves from the harbour", "s", "user")
    assert hit.citation == f"{FILE}:2-2"
    say(memory, "The ferry is late")
    assert len(found(memory, "ferry")) == 2


def test_a_hit_carries_who_said_it_when_and_where(memory):
    memory.log(
        [{"speaker": "Ana", "text": "I sold the boat", "time": "2026-02-03T10:00:00Z", "id": "t1"}], session="s", client="c"
    )
    (hit,) = memory.recall("boat", mode="keyword")
    assert (hit.key, hit.speaker, hit.updated) == ("t1", "Ana", "2026-02-03T10:00:00Z")
    assert (hit.source.client, hit.source.session) == ("c", "s")


def test_turns_are_grouped_by_session_the_best_first(memory):
    say(memory, "the boat is blue", "nothing here", session="one")
    say(memory, "boat boat boat", "another boat of mine that is old and slow", session="two")
    groups = memory.recall("boat", mode="keyword").sessions
    assert {session: len(hits) for session, hits in groups.items()} == {"two": 2, "one": 1}
    assert next(iter(groups)) == memory.recall("boat", mode="keyword")[0].session


@pytest.mark.promise("H2")
def test_expand_reads_around_a_hit(memory):
    say(memory, *[f"turn number {number}" for number in range(20)], "the harbour", *[f"later {number}" for number in range(20)])
    (hit,) = memory.recall("harbour", mode="keyword")
    around = memory.expand(hit.citation, before=2, after=1)
    assert [turn.text for turn in around] == ["turn number 18", "turn number 19", "the harbour", "later 0"]
    assert memory.expand(hit.key, before=2, after=1) == around


def test_an_imported_transcript_is_found(memory, tmp_path):
    path = tmp_path / "chat.jsonl"
    rows = [{"role": "user", "content": "Where is the lighthouse?"}, {"role": "assistant", "content": "On the cliff."}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (logged,) = memory.import_history(path)
    assert logged.added == 2
    (hit,) = memory.recall("lighthouse", mode="keyword")
    assert [turn.text for turn in memory.expand(hit.citation)] == ["Where is the lighthouse?", "On the cliff."]
    memory.import_history(path)
    assert len(found(memory, "lighthouse")) == 1


def test_another_projects_turns_are_not_seen(memory, open_memory):
    say(open_memory(project="other"), "a secret harbour")
    assert found(memory, "harbour") == []
    assert found(open_memory(project="other"), "harbour") == ["a secret harbour"]


# --- growth ----------------------------------------------------------------------------------------------------------


def test_a_file_that_grew_is_read_on_from_where_it_ended(memory, lines_read):
    say(memory, *[f"harbour {number}" for number in range(500)])
    assert len(found(memory, "harbour", kind="turn")) == 100
    say(memory, "a lighthouse")
    lines_read.clear()
    assert memory._context.refresh((SCOPE,)) == ""
    assert set(lines_read) == {1, 502}
    assert found(memory, "lighthouse") == ["a lighthouse"]


def test_nothing_is_read_where_nothing_changed(memory, lines_read):
    say(memory, "a harbour", "a lighthouse")
    memory._context.refresh((SCOPE,))
    lines_read.clear()
    memory._context.refresh((SCOPE,))
    memory._context.refresh((SCOPE,))
    assert lines_read == []


def test_one_session_that_grew_does_not_touch_the_others(memory, lines_read):
    for number in range(10):
        say(memory, "a harbour", "a lighthouse", session=f"s{number}")
    memory._context.refresh((SCOPE,))
    say(memory, "a ferry", session="s4")
    lines_read.clear()
    memory._context.refresh((SCOPE,))
    assert sorted(lines_read) == [1, 4]
    assert found(memory, "ferry") == ["a ferry"] and len(found(memory, "harbour")) == 10


@pytest.mark.battery
def test_twenty_thousand_turns_are_catalogued_in_bounded_batches(memory, monkeypatch):
    memory.log(({"role": "user", "text": f"turn {number}"} for number in range(20_000)), session="s", client="c")
    batches, real = [], memory._context.index.put

    def put(docs, still):
        docs = list(docs)
        batches.extend(len(doc.passages) for doc, _ in docs)
        return real(docs, still)

    monkeypatch.setattr(memory._context.index, "put", put)
    assert found(memory, "19999") == ["turn 19999"]
    assert sum(batches) == 20_000 and max(batches) <= transcript_entries._BATCH_TURNS
    assert [found(memory, str(number)) for number in (0, 1999, 2000, 2001, 13_337)] == [
        [f"turn {number}"] for number in (0, 1999, 2000, 2001, 13_337)
    ]
    assert [turn.text for turn in memory.expand(memory.recall("2000", mode="keyword")[0].citation, before=1, after=1)] == [
        "turn 1999", "turn 2000", "turn 2001",
    ]  # fmt: skip


def test_a_crash_between_batches_goes_on_from_there(memory, open_memory, monkeypatch, lines_read):
    monkeypatch.setattr(transcript_entries, "_BATCH_TURNS", 10)
    say(memory, *[f"harbour {number}" for number in range(45)])
    real, calls = memory._context.index.put, []

    def dying(docs, still):
        if len(calls) == 3:
            raise KeyboardInterrupt
        calls.append(1)
        return real(docs, still)

    monkeypatch.setattr(memory._context.index, "put", dying)
    with pytest.raises(KeyboardInterrupt):
        memory.recall("harbour", mode="keyword")
    again = open_memory()
    lines_read.clear()
    again._context.refresh((SCOPE,))
    assert sorted(set(lines_read)) == [1, *range(31, 47)]  # the header counts as a line of the first batch
    assert len(found(again, "harbour")) == 45


def test_two_processes_that_read_the_same_growth_lose_no_turn(memory, home):
    index = memory._context.index
    say(memory, *[f"harbour {number}" for number in range(10)])
    assert len(found(memory, "harbour")) == 10
    seen_by_the_slow_one = index.file_digest(SCOPE, "transcripts", "c/s.jsonl")
    say(memory, "harbour 10")
    assert len(found(memory, "harbour")) == 11
    say(memory, "harbour 11")
    transcript_file = TranscriptFiles(str(home), SCOPE, 5).open("c/s.jsonl")
    for doc in transcript_entries.read_entries(SCOPE, transcript_file, transcript_file.file_id(), seen_by_the_slow_one):
        index.put([(doc, None)], lambda _: True)
    assert len(found(memory, "harbour")) == 12


@pytest.mark.battery
def test_many_processes_log_and_recall_one_session(memory, home, tmp_path):
    code = """
        import sys
        from holdfast import Memory
        with Memory(sys.argv[1], project="demo", cwd=sys.argv[1]) as memory:
            for number in range(25):
                memory.log([{"role": "user", "text": f"harbour {sys.argv[2]}x{number}"}], session="s", client="c")
                memory.recall("harbour", mode="keyword")
    """
    memory.store("so that the home is there")
    children = [
        subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), str(home), str(who)], env={**os.environ}, cwd=tmp_path)
        for who in range(4)
    ]
    assert [child.wait(120) for child in children] == [0] * 4
    assert len(found(memory, "harbour")) == 100


# --- changed by hand -------------------------------------------------------------------------------------------------


def replace_by_new_file(file, old, new):
    """Replace the file as most editors do: another file under the same name."""
    other = file.with_suffix(".new")
    other.write_bytes(file.read_bytes().replace(old, new))
    os.replace(other, file)


def replace_in_place(file, old, new):
    data = file.read_bytes().replace(old, new)
    with file.open("r+b") as open_:
        open_.write(data)
        open_.truncate()


@pytest.mark.parametrize("change", [replace_by_new_file, replace_in_place])
@pytest.mark.parametrize("new", [b"quay", b"waterfront"])
def test_a_turn_that_was_changed_by_hand(memory, file, change, new):
    say(memory, "the harbour is full", "the lighthouse is dark", "the ferry is late")
    assert len(found(memory, "harbour")) == 1
    change(file, b"harbour", new)
    assert found(memory, new.decode()) == [f"the {new.decode()} is full"]
    assert found(memory, "harbour") == []
    assert found(memory, "ferry") == ["the ferry is late"]


def test_a_turn_changed_in_place_for_one_as_long(memory, file):
    say(memory, "the harbour is full", "the lighthouse is dark", "the ferry is late")
    assert len(found(memory, "harbour")) == 1
    replace_in_place(file, b"harbour", b"seaport")
    assert found(memory, "seaport") == ["the seaport is full"]
    assert found(memory, "harbour") == []


def test_a_transcript_that_was_cut_short(memory, file):
    say(memory, "the harbour is full", "the lighthouse is dark", "the ferry is late")
    assert len(found(memory, "ferry")) == 1
    whole = file.read_bytes().splitlines(keepends=True)
    with file.open("r+b") as open_:
        open_.truncate(len(b"".join(whole[:2])))
    assert found(memory, "ferry lighthouse") == []
    assert found(memory, "harbour") == ["the harbour is full"]
    say(memory, "a seagull")
    assert found(memory, "seagull") == ["a seagull"] and found(memory, "harbour") == ["the harbour is full"]


def test_a_transcript_that_was_replaced_by_a_longer_one(memory, file):
    say(memory, "the harbour is full", "the lighthouse is dark")
    assert len(found(memory, "harbour")) == 1
    head, *_ = file.read_bytes().splitlines(keepends=True)
    other = [
        json.dumps({"id": f"n{number}", "role": "user", "text": f"seagull {number}"}).encode() + b"\n" for number in range(50)
    ]
    file.write_bytes(head + b"".join(other))
    assert len(found(memory, "seagull")) == 50
    assert found(memory, "harbour lighthouse") == []


def test_a_transcript_that_was_deleted_and_one_that_came_back(memory, file):
    say(memory, "the harbour is full")
    say(memory, "the harbour is empty", session="other")
    assert len(found(memory, "harbour")) == 2
    data = file.read_bytes()
    file.unlink()
    assert found(memory, "harbour") == ["the harbour is empty"]
    file.write_bytes(data)
    assert len(found(memory, "harbour")) == 2


def test_a_torn_tail_is_no_turn_until_it_is_whole(memory, file):
    say(memory, "the harbour is full")
    line = b'{"id": "x", "role": "user", "text": "the seagull sleeps"}\n'
    with file.open("ab") as open_:
        open_.write(line[:30])
    assert found(memory, "seagull") == [] and len(found(memory, "harbour")) == 1
    with file.open("ab") as open_:
        open_.write(line[30:])
    assert found(memory, "seagull") == ["the seagull sleeps"]
    assert len(found(memory, "harbour")) == 1


def test_a_torn_tail_is_taken_away_by_the_next_turn(memory, file):
    say(memory, "the harbour is full")
    with file.open("ab") as open_:
        open_.write(b'{"id": "x", "role": "us')
    assert len(found(memory, "harbour")) == 1
    say(memory, "the ferry is late")
    assert found(memory, "ferry") == ["the ferry is late"] and len(found(memory, "harbour")) == 1


@pytest.mark.parametrize(
    "line", [b"not json\n", b"[]\n", b"{}\n", b"\n", b'{"id": "x", "role": "king", "text": "a"}\n', b"\xff\xfe\n"]
)
def test_a_line_that_is_no_turn_hides_no_other(memory, file, line):
    say(memory, "the harbour is full")
    with file.open("ab") as open_:
        open_.write(line)
    say(memory, "the ferry is late")
    assert found(memory, "ferry") == ["the ferry is late"] and len(found(memory, "harbour")) == 1
    (hit,) = memory.recall("ferry", mode="keyword")
    assert memory.expand(hit.citation, before=0, after=0)[0].text == "the ferry is late"


def test_a_file_that_is_no_transcript_is_told_and_its_turns_are_found(memory, file):
    file.parent.mkdir(parents=True)
    file.write_bytes(b'{"id": "x", "role": "user", "text": "the seagull sleeps"}\n')
    assert memory._context.refresh((SCOPE,)) == ""
    assert memory._context.index.find_problems((SCOPE,)) == [
        FileProblem(SCOPE, "transcripts", "c/s.jsonl", "its first line is not the header of a transcript")
    ]


@pytest.mark.parametrize("said", [r"the \ud800 seagull", r"the seagull \u0000", r"\u0e31\u0e01 seagull", r"\u2028 seagull"])
@pytest.mark.parametrize("session", ["s", r"two\nlines", r"\ud800"])
def test_odd_characters_that_somebody_wrote_hide_no_turn(memory, file, said, session):
    file.parent.mkdir(parents=True)
    header = f'{{"holdfast": "transcript", "version": 1, "session": "{session}", "client": "c\\nd", "started": ""}}\n'
    turns = [f'{{"id": "x", "role": "user", "text": "{said}"}}\n', '{"id": "y", "role": "user", "text": "the harbour"}\n']
    file.write_text(header + "".join(turns), encoding="ascii")
    assert found(memory, "harbour") == ["the harbour"]
    assert len(found(memory, "seagull")) == 1


def test_a_link_is_never_followed(memory, file, tmp_path):
    say(memory, "the harbour is full")
    outside = tmp_path / "outside.jsonl"
    outside.write_bytes(file.read_bytes().replace(b"harbour", b"seagull"))
    (file.parent / "linked.jsonl").symlink_to(outside)
    assert found(memory, "seagull") == [] and len(found(memory, "harbour")) == 1


# --- a long-running process ------------------------------------------------------------------------------------------


def test_a_process_that_stays_hears_what_another_logs(memory, child, home):
    say(memory, "the harbour is full")
    for _ in range(3):
        assert len(found(memory, "harbour")) == 1
    code = """
        with Memory(args[0], project="demo", cwd=args[0]) as memory:
            answer = memory.log([{"role": "user", "text": args[2]}], session=args[1], client=args[3]).added
    """
    assert child(code, home, "s", "the ferry is late", "c") == 1
    assert found(memory, "ferry") == ["the ferry is late"]
    assert child(code, home, "new", "the seagull sleeps", "c") == 1
    assert found(memory, "seagull") == ["the seagull sleeps"]
    assert child(code, home, "new", "the lighthouse is dark", "another-client") == 1
    assert found(memory, "lighthouse") == ["the lighthouse is dark"]
    assert child(code, home, "new", "the lighthouse is lit", "another-client") == 1
    assert len(found(memory, "lighthouse")) == 2


def test_the_first_transcript_of_a_scope_is_heard_of(memory, child, home):
    memory.store("a note")
    for _ in range(3):
        assert found(memory, "harbour") == []
    code = """
        with Memory(args[0], project="demo", cwd=args[0]) as memory:
            answer = memory.log([{"role": "user", "text": "the harbour"}], session="s").added
    """
    assert child(code, home) == 1
    assert found(memory, "harbour") == ["the harbour"]


# --- kinds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["keyword", "recent"])
def test_one_kind_alone(memory, mode):
    memory.store("the harbour note", key="n")
    memory.files.create("/memories/plan.md", "the harbour file")
    say(memory, "the harbour turn")
    assert {hit.kind for hit in memory.recall("harbour", mode=mode)} == {"note", "file", "turn"}
    for kind in ("note", "file", "turn"):
        assert [hit.kind for hit in memory.recall("harbour", mode=mode, kind=kind)] == [kind]


def test_the_newest_turn_is_the_most_recent(memory, clock):
    say(memory, "first", time="2026-01-01T00:00:00Z")
    say(memory, "last", time="2026-03-01T00:00:00Z", session="other")
    assert [hit.text for hit in memory.recall(mode="recent")] == ["last", "first"]


def test_as_of_hides_what_was_said_later(memory):
    say(memory, "harbour one", time="2026-01-01T00:00:00Z")
    say(memory, "harbour two", time="2026-03-01T00:00:00Z")
    assert found(memory, "harbour", as_of="2026-02-01", known_at="2026-02-01") == ["harbour one"]
