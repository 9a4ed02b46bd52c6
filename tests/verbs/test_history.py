"""Transcripts word for word: stored once, from whichever source, whatever happens meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from test_importers import CHAT, GEMINI, claude_lines, codex_lines, gemini_messages

from holdfast import Memory
from holdfast.errors import (
    Busy,
    Damaged,
    Disabled,
    DiskTrouble,
    InvalidKey,
    InvalidPath,
    InvalidText,
    NoScope,
    NotFound,
    Refused,
    TooLarge,
    UsageError,
)  # fmt: skip
from holdfast.formats import transcript
from holdfast.models import Logged, Progress
from holdfast.store import transcripts as roll_
from holdfast.store.interface import Position
from holdfast.store.transcripts import TranscriptFiles
from holdfast.verbs import history
from holdfast.verbs.brief import render

HELLO = [{"role": "user", "text": "Where is the harbour?"}, {"role": "assistant", "text": "By the sea."}]


def log(memory, given, session="s", client="c", scope="project"):
    return history.log(memory._context, given, session=session, client=client, scope=scope)


def bring(memory, path, client=None, scope="project", progress=None):
    return history.import_history(memory._context, path, client=client, scope=scope, progress=progress)


def expand(memory, what, before=3, after=3, session=None):
    return history.expand(memory._context, what, before=before, after=after, session=session)


@pytest.fixture
def kept(home):
    """Return the turns in a session's file, and the file."""

    def read(path="projects/demo/transcripts/c/s.jsonl"):
        lines = (home / "shelf" / path).read_bytes().splitlines(keepends=True)
        assert transcript.parse_header(lines[0])
        return [transcript.parse_line(line) for line in lines[1:]]

    read.file = lambda path="projects/demo/transcripts/c/s.jsonl": home / "shelf" / path
    return read


def texts(said):
    return [one.text for one in said]


def lines_of(rows):
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


# --- storing ----------------------------------------------------------------------------------------------------------


@pytest.mark.promise("H1")
def test_turns_are_kept_with_role_text_time_session_and_client(memory, kept, clock):
    first = {"role": "user", "speaker": "Ana", "time": "2026-04-01", "id": "a", "text": "Hello\nthere"}
    logged = log(memory, [first, HELLO[1]])
    assert logged == Logged("s", "c", 2, 0, "projects/demo/transcripts/c/s.jsonl")
    header, first, _ = kept.file().read_text().splitlines()
    assert json.loads(header) == {
        "holdfast": "transcript", "version": 1, "session": "s", "client": "c", "started": "2026-04-01T00:00:00Z",
        "kept": "live",
    }  # fmt: skip
    assert json.loads(first) == {
        "id": "a", "role": "user", "speaker": "Ana", "time": "2026-04-01T00:00:00Z", "text": "Hello\nthere"
    }  # fmt: skip


@pytest.mark.promise("H1")
def test_the_same_turns_again_add_nothing_and_new_ones_are_added(memory, kept):
    log(memory, HELLO)
    before = kept.file().read_bytes()
    assert log(memory, HELLO) == Logged("s", "c", 0, 2, "projects/demo/transcripts/c/s.jsonl")
    assert kept.file().read_bytes() == before
    assert log(memory, [*HELLO, {"role": "user", "text": "Thanks"}]).added == 1
    assert kept.file().read_bytes().startswith(before)
    assert texts(kept()) == ["Where is the harbour?", "By the sea.", "Thanks"]


def test_the_same_words_twice_in_one_session_are_two_turns(memory, kept):
    given = [{"role": "user", "text": "yes"}, {"role": "user", "text": "yes"}]
    assert [log(memory, given).added, log(memory, given).added] == [2, 0]
    assert len(kept()) == 2


def test_an_id_that_comes_again_with_another_text_loses_neither(memory, kept):
    given = [{"id": "a", "text": "one"}, {"id": "a", "text": "two"}, {"id": "a", "text": "one"}]
    assert (log(memory, given).added, log(memory, given).known) == (2, 3)
    assert texts(kept()) == ["one", "two"] and len({one.id for one in kept()}) == 2


def test_turns_may_come_from_a_generator_in_many_batches(memory, kept, monkeypatch):
    monkeypatch.setattr(history, "_BATCH_TURNS", 7)
    given = [{"role": "user", "text": f"turn {number}"} for number in range(50)]
    assert log(memory, iter(given)).added == 50
    assert log(memory, iter(given)) == Logged("s", "c", 0, 50, "projects/demo/transcripts/c/s.jsonl")
    assert texts(kept()) == [one["text"] for one in given]


@pytest.mark.parametrize("scope", ["project", "global", "session", "agent"])
def test_turns_belong_to_a_scope(open_memory, scope):
    memory = open_memory(session="s1", agent="a1")
    folder = {"project": "projects/demo", "global": "global", "session": "sessions/s1", "agent": "agents/a1"}[scope]
    assert log(memory, HELLO, None, None, scope).path == f"{folder}/transcripts/unknown/s1.jsonl"


def test_a_session_goes_on_where_it_is_under_an_older_id_of_the_project(memory, monkeypatch):
    log(memory, HELLO)
    monkeypatch.setattr(memory._context, "_project", ("renamed", "demo"))
    assert log(memory, [*HELLO, {"text": "more"}]) == Logged("s", "c", 1, 2, "projects/demo/transcripts/c/s.jsonl")
    assert log(memory, HELLO, "new").path == "projects/renamed/transcripts/c/new.jsonl"


@pytest.mark.parametrize("session", ["../../x", "a/b", ".hidden", "é", "x" * 300, "~", "a b"])
def test_no_session_id_becomes_a_path(memory, home, session):
    logged = log(memory, HELLO, session, session)
    parts = logged.path.split("/")
    assert parts[:3] == ["projects", "demo", "transcripts"] and parts[3].startswith("~") and parts[4].startswith("~")
    assert (home / "shelf" / logged.path).is_file()
    assert (logged.session, log(memory, HELLO, session, session).known) == (session, 2)
    assert expand(memory, logged.path + ":2")[0].session == session


@pytest.mark.promise("H3")
def test_what_holdfast_said_itself_is_not_kept(memory, kept):
    told = render.NoteView("project", "k", "2026-05-01", "agent", "the secret harbour")
    block = render.compose_start([render.ScopeView("project", (told,), 1)], render.FactView(), render.Budget()).brief.text
    logged = log(memory, [{"role": "user", "text": f"{block}What now?"}, {"role": "system", "text": block}])
    assert logged.added == 1 and texts(kept()) == ["What now?"]
    assert b"harbour" not in kept.file().read_bytes()


def test_messages_in_openais_shape_may_be_logged_as_they_are(memory, kept):
    log(memory, CHAT)
    assert [(one.role, one.text) for one in kept()][1:4] == [("user", "Is it tide?"), ("tool", "tide {}"), ("tool", "low")]


def test_turns_that_say_nothing_are_passed_over(memory, home):
    assert log(memory, [{"role": "user", "text": ""}, {"role": "user", "content": None}, {"text": " \n"}]).added == 0
    assert not (home / "shelf").exists()


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"role": "king", "text": "x"}, UsageError), ({"role": "user", "text": 7}, UsageError), ("text", UsageError),
        ({"role": "user", "text": "a\0b"}, InvalidText), ({"role": "user", "text": "\ud800"}, InvalidText),
        ({"role": "user", "text": "x" * (transcript.TURN_BYTES + 1)}, TooLarge), ({"text": "x", "time": "soon"}, UsageError),
        ({"text": "x", "speaker": "a\nb"}, InvalidText), ({"text": b"\xff"}, InvalidText),
    ],
)  # fmt: skip
def test_the_gate_refuses_a_turn_by_its_number_and_keeps_nothing_of_it(memory, home, given, error):
    with pytest.raises(error, match="turn 2: "):
        log(memory, [HELLO[0], given])
    assert not (home / "shelf").exists()


def test_a_tools_long_answer_is_cut_with_a_mark(memory, kept):
    log(memory, [{"role": "tool", "text": "x" * 100_000}])
    assert len(kept()[0].text) < 17_000 and kept()[0].text.endswith(transcript.CUT_MARK)


@pytest.mark.parametrize("session", ["", " ", "a\nb", "x" * 501, 7])
def test_a_session_that_is_no_name_is_refused(memory, home, session):
    with pytest.raises(InvalidKey):
        log(memory, HELLO, session)
    assert not (home / "shelf").exists()


def test_without_a_session_nothing_is_kept(memory, home):
    with pytest.raises(NoScope, match="session"):
        log(memory, HELLO, None)
    with pytest.raises(NoScope):
        log(memory, HELLO, "s", "c", "agent")
    for scope in ("nowhere", None):
        with pytest.raises(UsageError):
            log(memory, HELLO, "s", "c", scope)
    assert not (home / "shelf").exists()


def test_switched_off_nothing_is_read_or_written(open_memory, home, monkeypatch, tmp_path):
    log(open_memory(), HELLO)
    monkeypatch.setenv("HOLDFAST_ENABLED", "0")
    off = open_memory()
    for call in (lambda: log(off, HELLO, "new"), lambda: bring(off, tmp_path / "nothing")):
        with pytest.raises(Disabled):
            call()
    assert expand(off, "projects/demo/transcripts/c/s.jsonl:2") == []
    assert [path.name for path in (home / "shelf").rglob("*.jsonl")] == ["s.jsonl"]


# --- importing --------------------------------------------------------------------------------------------------------

SOURCES = {
    "claude-code": (lines_of(claude_lines()), "s-1", "x.jsonl", 5),
    "codex": (lines_of(codex_lines()), "c-1", "rollout-x.jsonl", 3),
    "gemini": (json.dumps({**GEMINI, "messages": gemini_messages()}, indent=2).encode(), "g-1", "session-x.json", 2),
    "chat": (lines_of(CHAT), "talk", "talk.jsonl", 3),
}


@pytest.mark.promise("H1")
@pytest.mark.parametrize("client", SOURCES)
def test_a_transcript_is_brought_in_once(memory, tmp_path, client, kept):
    data, session, name, count = SOURCES[client]
    (tmp_path / name).write_bytes(data)
    path = f"projects/demo/transcripts/{client}/{session}.jsonl"
    assert bring(memory, tmp_path / name) == [Logged(session, client, count, 0, path)]
    before = kept.file(path).read_bytes()
    assert bring(memory, str(tmp_path / name)) == [Logged(session, client, 0, count, path)]
    assert kept.file(path).read_bytes() == before


@pytest.mark.promise("H1")
@pytest.mark.parametrize("client", ["claude-code", "codex", "chat"])
def test_a_transcript_that_grew_adds_only_what_is_new(memory, tmp_path, client, kept):
    data, _, name, count = SOURCES[client]
    half = data[: len(data) // 2]
    (tmp_path / name).write_bytes(half[: half.rindex(b"\n") + 20])  # its writer is in the middle of a line
    some = bring(memory, tmp_path / name)[0]
    assert 0 < some.added < count and some.broken == 1
    (tmp_path / name).write_bytes(data)
    rest = bring(memory, tmp_path / name)[0]
    assert (rest.added, rest.known, rest.broken) == (count - some.added, some.added, 0)


def test_broken_lines_are_counted_and_the_rest_is_kept(memory, tmp_path, kept):
    (tmp_path / "t.jsonl").write_bytes(b"{oops\n" + lines_of(CHAT) + b"\xff\xff\n" + b"[" * 100_000 + b"\n")
    logged = bring(memory, tmp_path / "t.jsonl")
    assert [(one.added, one.broken) for one in logged] == [(3, 3)]


def test_a_folder_is_brought_in_with_all_its_transcripts(memory, tmp_path):
    for name, (data, _, file, _) in SOURCES.items():
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / file).write_bytes(data)
    (tmp_path / "in" / "settings.json").write_text('{"theme": "dark"}')
    (tmp_path / "in" / "broken.json").write_text("no json")
    (tmp_path / "in" / "notes.txt").write_text("words")
    assert [(one.client, one.added) for one in bring(memory, tmp_path / "in")] == [
        ("chat", 3), ("claude-code", 5), ("codex", 3), ("gemini", 2)
    ]  # fmt: skip


def test_a_file_with_many_sessions_gives_each_its_own(memory, tmp_path, monkeypatch):
    monkeypatch.setattr(history, "_MAX_OPEN_SESSIONS", 3)
    rows = [{"role": "user", "text": "yes", "session": f"n{number % 10}"} for number in range(100)]
    (tmp_path / "t.jsonl").write_bytes(lines_of(rows))
    logged = bring(memory, tmp_path / "t.jsonl", client="my-app")
    assert [(one.session, one.added, one.known) for one in logged] == [(f"n{n}", 10, 0) for n in range(10)]
    assert {one.client for one in logged} == {"my-app"}
    assert {(one.added, one.known) for one in bring(memory, tmp_path / "t.jsonl", client="my-app")} == {(0, 10)}


def test_what_is_no_transcript_is_a_typed_error(memory, tmp_path, home):
    for name, data, error in [("a.jsonl", b'{"a": 1}\n', UsageError), ("b.txt", b"words", Refused)]:
        (tmp_path / name).write_bytes(data)
        with pytest.raises(error):
            bring(memory, tmp_path / name)
    with pytest.raises(NotFound):
        bring(memory, tmp_path / "nothing.jsonl")
    assert not (home / "shelf").exists()


def test_a_document_that_breaks_off_keeps_what_stands_before(memory, tmp_path, kept):
    (tmp_path / "t.json").write_bytes(json.dumps({"messages": CHAT}, indent=1).encode()[:-30])
    with pytest.raises(Refused, match="broken"):
        bring(memory, tmp_path / "t.json")
    assert texts(kept("projects/demo/transcripts/chat/t.jsonl"))[0] == "Be brief."


def test_progress_is_told_in_bytes(memory, tmp_path):
    class Told(Progress):
        steps = 0

        def start(self, what, total):
            self.total = total

        def step(self, count=1):
            self.steps += count

    (tmp_path / "t.jsonl").write_bytes(lines_of(CHAT))
    told = Told()
    bring(memory, tmp_path / "t.jsonl", progress=told)
    assert told.total == (tmp_path / "t.jsonl").stat().st_size <= told.steps <= 2 * told.total


@pytest.mark.battery
@pytest.mark.parametrize("form", ["lines", "document"])
def test_a_large_transcript_needs_little_memory(tmp_path, child, home, form):
    path = tmp_path / "large.json"
    line = json.dumps({"role": "user", "content": "harbour " * 250}).encode()
    with open(path, "wb") as file:
        file.write(b'{"messages":[' if form == "document" else b"")
        for number in range(30_000):
            file.write((b"," if form == "document" and number else b"") + line + (b"" if form == "document" else b"\n"))
        file.write(b"]}" if form == "document" else b"")
    code = """
    import resource
    from holdfast.verbs import history
    with Memory(args[0], project="demo") as memory:
        history.log(memory._context, [{"text": "warm"}], session="w", client="c", scope="project")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        logged = history.import_history(memory._context, args[1], client="chat", scope="project")
        answer = [logged[0].added, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before]
    """
    added, grown = child(code, home, path, timeout=200)
    assert added == 30_000 and os.path.getsize(path) > 60_000_000
    assert grown < 50 * 1024, f"{grown:,} KiB"


# --- crashes and concurrency ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 5, 40])
def test_a_torn_tail_is_no_turn_and_goes_with_the_next_append(memory, kept, size):
    log(memory, HELLO)
    whole = kept.file().read_bytes()
    kept.file().write_bytes(whole + b'{"id": "z", "role": "user", "text": "half of a li'[:size])
    citation = "projects/demo/transcripts/c/s.jsonl:2"
    assert texts(expand(memory, citation)) == ["Where is the harbour?", "By the sea."]
    assert log(memory, [{"text": "more"}]).added == 1
    assert kept.file().read_bytes().startswith(whole)
    assert texts(kept()) == ["Where is the harbour?", "By the sea.", "more"]


def test_a_file_whose_header_is_torn_starts_anew(memory, kept):
    kept.file().parent.mkdir(parents=True)
    kept.file().write_bytes(b'{"holdfast": "tran')
    assert log(memory, HELLO).added == 2 and len(kept()) == 2


def test_a_last_line_that_lacks_only_its_newline_is_kept(memory, kept):
    log(memory, HELLO)
    kept.file().write_bytes(kept.file().read_bytes()[:-1])
    assert (log(memory, [*HELLO, {"text": "more"}])).known == 2
    assert texts(kept()) == ["Where is the harbour?", "By the sea.", "more"]


def test_a_very_long_torn_tail_is_taken_away_whole(memory, kept, monkeypatch):
    monkeypatch.setattr(roll_, "LINE_BYTES", 1000)
    log(memory, HELLO)
    with open(kept.file(), "ab") as file:
        file.write(b"x" * 700_000)
    log(memory, [{"text": "more"}])
    assert texts(kept())[-1] == "more" and len(kept()) == 3


def test_lines_that_people_broke_are_passed_over_and_kept_as_they_are(memory, kept):
    log(memory, HELLO)
    with open(kept.file(), "ab") as file:
        file.write(b"a note of mine\n\xff\n")
    log(memory, [{"text": "more"}])
    assert b"a note of mine\n\xff\n" in kept.file().read_bytes()
    around = expand(memory, "projects/demo/transcripts/c/s.jsonl:6", 1, 0)
    assert [(one.text, one.number) for one in around] == [("By the sea.", 1), ("more", 4)]


def test_a_full_disk_is_a_named_error_and_nothing_is_half_written(memory, kept, monkeypatch):
    log(memory, HELLO)
    before = kept.file().read_bytes()
    real = os.write

    def full(fd, data):
        if len(data) > 20:
            return real(fd, data[:20])
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(roll_.os, "write", full)
    with pytest.raises(DiskTrouble):
        log(memory, [{"text": "more " * 20}])
    assert kept.file().read_bytes() == before


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_planted_in_place_of_a_file_is_never_followed(memory, kept, kind, tmp_path):
    kept.file().parent.mkdir(parents=True)
    (tmp_path / "victim").write_text("mine")
    plant = {"link": lambda path: path.symlink_to(tmp_path / "victim"), "pipe": os.mkfifo, "folder": os.mkdir}
    plant[kind](kept.file())
    with pytest.raises(Damaged):
        log(memory, HELLO)
    assert (tmp_path / "victim").read_text() == "mine"
    with pytest.raises(NotFound):
        expand(memory, "some-id")


@pytest.mark.parametrize("first", [b"not a header\n", transcript.render_header(transcript.TranscriptHeader("other", "c", ""))])
def test_a_file_that_is_not_this_sessions_is_left_alone(memory, kept, first):
    kept.file().parent.mkdir(parents=True)
    kept.file().write_bytes(first)
    with pytest.raises(Damaged):
        log(memory, HELLO)
    assert kept.file().read_bytes() == first


def test_a_lock_that_somebody_keeps_is_busy(memory, kept, monkeypatch):
    from holdfast.home import Lock

    log(memory, HELLO)
    monkeypatch.setattr(Lock, "acquire", lambda *_: False)
    with pytest.raises(Busy):
        log(memory, [{"text": "more"}])
    assert len(kept()) == 2


WRITER = """
import sys
from holdfast import Memory
from holdfast.verbs import history
home, name, count = sys.argv[1:]
with Memory(home, project="demo") as memory:
    for number in range(int(count)):
        ids = [f"{name}-{number}-{part}" for part in range(5)]
        given = [{"id": id, "role": "user", "text": id + "x" * 3000} for id in ids]
        given += [{"id": f"shared-{number}", "text": f"shared {number}"}]
        history.log(memory._context, given, session="s", client="c", scope="project")
        print(number, flush=True)
"""


def writers(home, count, names):
    return [
        subprocess.Popen([sys.executable, "-c", WRITER, str(home), name, str(count)], stdout=subprocess.PIPE, text=True)
        for name in names
    ]


@pytest.mark.promise("H1")
def test_writers_of_one_session_lose_nothing_and_double_nothing(home, kept):
    names, count = "abcd", 15
    for one in writers(home, count, names):
        one.communicate(timeout=120)
        assert one.returncode == 0
    said = kept()
    assert None not in said
    ids = [one.id for one in said]
    assert len(ids) == len(set(ids)) == len(names) * count * 5 + count


@pytest.mark.battery
@pytest.mark.disk
@pytest.mark.promise("H1")
def test_writers_killed_at_random_moments_lose_nothing_they_acknowledged(home, kept, open_memory):
    acknowledged = {}
    for life in range(6):
        running = writers(home, 100_000, [f"w{life}a", f"w{life}b"])
        for one in running:  # until it has started
            acknowledged[one.args[4]] = int(one.stdout.readline() or -1)
        time.sleep(0.02 * life)
        for one in running:
            one.send_signal(signal.SIGKILL)
            rest = one.stdout.read().splitlines()
            one.wait()
            one.stdout.close()
            acknowledged[one.args[4]] = max([acknowledged[one.args[4]], *[int(line) for line in rest if line.isdigit()]])
    log(open_memory(), [{"id": "last", "text": "last"}])
    said = kept()
    assert None not in said
    ids = [one.id for one in said]
    assert len(ids) == len(set(ids)) and ids[-1] == "last"
    wanted = {f"{name}-{n}-{part}" for name, last in acknowledged.items() for n in range(last + 1) for part in range(5)}
    assert wanted and wanted <= set(ids)


# --- reading around a turn --------------------------------------------------------------------------------------------


@pytest.fixture
def talk(memory):
    given = [{"id": f"t{number}", "role": "user", "text": f"turn {number}"} for number in range(20)]
    log(memory, given)
    return memory


@pytest.mark.promise("H2")
@pytest.mark.parametrize(
    ("what", "before", "after", "numbers"),
    [
        ("t10", 3, 3, range(7, 14)), ("t0", 3, 1, range(2)), ("t19", 1, 3, range(18, 20)), ("t5", 0, 0, [5]),
        ("projects/demo/transcripts/c/s.jsonl:12-12", 1, 1, range(9, 12)), ("t10", 1000, 1000, range(20)),
        ("projects/demo/transcripts/c/s.jsonl:12", 0, 0, [10]), ("projects/demo/transcripts/c/s.jsonl:4-6", 1, 1, range(1, 6)),
    ],
)  # fmt: skip
def test_turns_around_one_can_be_read_by_its_id_or_citation(talk, what, before, after, numbers):
    around = expand(talk, what, before, after)
    assert [one.number for one in around] == list(numbers)
    assert texts(around) == [f"turn {number}" for number in numbers]
    assert all(one.citation == f"projects/demo/transcripts/c/s.jsonl:{one.number + 2}-{one.number + 2}" for one in around)
    assert {(one.session, one.client) for one in around} == {("s", "c")}


def test_a_turn_that_several_sessions_have_needs_its_session(talk):
    log(talk, [{"id": "t1", "text": "other"}], "s2")
    with pytest.raises(UsageError, match="several sessions"):
        expand(talk, "t1")
    assert texts(expand(talk, "t1", session="s2")) == ["other"]


@pytest.mark.parametrize("what", ["none", "c/s.jsonl:99", "c/s.jsonl:1", "c/no.jsonl:2"])
def test_a_turn_that_is_not_there_is_not_found(talk, what):
    with pytest.raises(NotFound):
        expand(talk, f"projects/demo/transcripts/{what}" if ":" in what else what)


@pytest.mark.promise("H1")
def test_nobody_reads_another_projects_sessions(talk, open_memory):
    other = open_memory(project="other")
    for what in ("t1", "projects/demo/transcripts/c/s.jsonl:3", "projects/other/../demo/transcripts/c/s.jsonl:3"):
        with pytest.raises(NotFound):
            expand(other, what)


@pytest.mark.parametrize(
    ("what", "before", "after"),
    [("", 3, 3), ("t1", -1, 3), ("t1", 3, 1001), ("t1", True, 3), (7, 3, 3), ("t1", "3", 3)],
)
def test_what_means_nothing_is_an_error_before_any_work(talk, what, before, after):
    with pytest.raises(UsageError):
        expand(talk, what, before, after)


# --- for the index ----------------------------------------------------------------------------------------------------


def test_the_census_names_every_session_and_changes_with_it(memory, home, kept):
    log(memory, HELLO, "a", "x")
    log(memory, HELLO, "b", "x")
    log(memory, HELLO, "a", "y")
    (kept.file().parent.parent / "x" / "notes.txt").write_text("no transcript")
    transcript_files = TranscriptFiles(str(home), "projects/demo", 1)
    before = {entry.name: entry.file_id for entry in transcript_files.entries()}
    assert list(before) == ["x/a.jsonl", "x/b.jsonl", "y/a.jsonl"]
    assert transcript_files.open("x/a.jsonl").file_id() == before["x/a.jsonl"]
    log(memory, [{"text": "more"}], "a", "x")
    after = {entry.name: entry.file_id for entry in transcript_files.entries()}
    assert [name for name in after if after[name] != before[name]] == ["x/a.jsonl"]
    assert len(transcript_files.list_folders()) == 3


def test_a_reader_goes_on_from_where_it_was(memory, home):
    log(memory, HELLO)
    transcript_file = TranscriptFiles(str(home), "projects/demo", 1).open("c/s.jsonl")
    last = list(transcript_file.read_lines())[-1]
    header = transcript.parse_header(next(transcript_file.read_lines()).data)
    log(memory, [{"text": "more"}])
    new = list(history.turns_of(transcript_file, Position(last.end, last.number), header))
    assert [(one.text, one.number, one.citation) for one in new] == [("more", 2, "projects/demo/transcripts/c/s.jsonl:4-4")]


@pytest.mark.parametrize(
    "name",
    ["s.jsonl", "c/s.md", "../s.jsonl", "c/../s.jsonl", "/s.jsonl", "c/.s.jsonl", "c/a/s.jsonl", "c/s\0.jsonl"],
)
def test_no_name_leaves_the_transcripts(home, name):
    with pytest.raises(InvalidPath):
        TranscriptFiles(str(home), "projects/demo", 1).open(name)


def test_a_folder_that_holds_the_home_does_not_bring_our_own_transcripts_in_again(memory, tmp_path):
    log(memory, HELLO, "s1", None, "project")
    assert bring(memory, tmp_path) == []


def test_one_broken_file_does_not_keep_the_others_of_its_folder_out(memory, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"messages": [{"role": "user", "content": "first"}, {"role": "assistant", "con')
    (tmp_path / "in" / "b.jsonl").write_bytes(lines_of(CHAT))
    logged = bring(memory, tmp_path / "in")
    assert [one.added for one in logged if one.path.endswith("b.jsonl")] == [3]
    assert sum(one.broken for one in logged) == 1


@pytest.mark.promise("N8")
@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_each_session_goes_to_the_project_that_its_transcript_names(home, tmp_path, client, program_in):
    def rows(session, cwd):
        if client == "codex":
            said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"harbour {session}"}]}
            head = {"id": session, **({"cwd": cwd} if cwd else {})}
            return [{"type": "session_meta", "payload": head}, {"type": "response_item", "payload": said}]
        said = {"role": "user", "content": f"harbour {session}"}
        return [{"type": "user", "sessionId": session, "uuid": session, "message": said, **({"cwd": cwd} if cwd else {})}]

    here, there, gone = tmp_path / "here", tmp_path / "there", tmp_path / "gone"
    for folder in (here, there, tmp_path / "all"):
        folder.mkdir()
    for session, cwd in [("a", str(there)), ("b", str(gone)), ("c", ""), ("d", "relative"), ("e", str(there))]:
        lines = [json.dumps(row) + "\n" for row in rows(session, cwd)]
        (tmp_path / "all" / f"{session}.jsonl").write_text("".join(lines))
    done = program_in(here, "import-history", str(tmp_path / "all"))
    assert "2 sessions in projects/" in done and "1 session in projects/" in done

    def kept(folder, **given):
        with Memory(home, cwd=folder, **given) as memory:
            return sorted(hit.text[-1] for hit in memory.recall(mode="recent", kind="turn"))

    assert (kept(there), kept(gone), kept(here)) == (["a", "e"], ["b"], ["c", "d"])
    program_in(here, "import-history", str(tmp_path / "all"), "--project", "demo")
    assert kept(here, project="demo") == ["a", "b", "c", "d", "e"]


@pytest.fixture
def program_in(home):
    """Run a command in a folder and return its output."""

    def run(folder, *words):
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *words, "--home", str(home)],
            capture_output=True, text=True, timeout=60, cwd=folder,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    return run


def test_people_are_told_what_an_import_left_out(home, tmp_path, capsys):
    from holdfast.cli import main

    file = tmp_path / "chat.jsonl"
    file.write_text(json.dumps({"role": "user", "content": "where the harbour lies, said once and for all"}))
    words = ["--home", str(home), "--project", "demo"]
    assert main([*words, "import-history", str(file)]) == 0
    with Memory(home, project="demo", cwd=tmp_path, origin="user") as memory:
        memory.purge(session="chat")
    capsys.readouterr()
    main([*words, "import-history", str(file)])
    assert "1 left out because they were purged" in " ".join(capsys.readouterr().out.split())
