"""Purge: purged text cannot be stored again by any caller; what cannot be done yet is reported; and a receipt is stored."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the battery is beside the package, not in it

from battery import purge as battery_purge
from battery.workspace import Workspace

from holdfast import Conflict, NotFound, Purged, Refused, UsageError
from holdfast.home import Lock
from holdfast.verbs import quarantine
from holdfast.verbs.purge.patterns import Patterns, encode_all_ways

WORD = "zanzibarqvx7"
LINE = f"the harbour code of {WORD} is forty-two and a half"  # long enough to be recognised by itself
TEXT = f"# Harbour\n\n{LINE}\nand nothing else matters"


def spellings(word=WORD):
    """Return a word in the six encodings in which a file may contain it."""
    data = word.encode()
    alike = [base64.b64encode(bytes(shift) + data)[4 : (shift + len(data)) * 8 // 6 - 1] for shift in range(3)]
    return [data, word.encode("utf-16-le"), word.encode("utf-16-be"), data.hex().encode(), data.hex().upper().encode(), *alike]


def holding(home, word=WORD):
    """Return the files of the home that contain a word, in any encoding."""
    found = []
    for path in sorted(home.rglob("*")):
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            if any(one in data or one in data.lower() for one in spellings(word)):
                found.append(str(path.relative_to(home)))
    return found


@pytest.fixture
def purged(memory):
    """A purged note and its receipt."""
    memory.store(TEXT, key="k")
    memory.store("something else stays", key="other")
    return memory.purge("k")


# --- storing it again -------------------------------------------------------------------------------------------------


@pytest.mark.promise("N10")
@pytest.mark.parametrize(
    "text",
    [TEXT, TEXT.upper(), TEXT.replace(" ", "  \n"), f"quite another note\n{LINE}\nwith one old line", f"  {LINE}  "],
    ids=["the text", "in capitals", "other white space", "one of its lines", "the line alone"],
)
def test_what_was_purged_is_refused_by_every_way_of_writing_and_names_only_its_receipt(purged, memory, text):
    ways = [
        lambda: memory.store(text),
        lambda: memory.store(text, key="other"),
        lambda: memory.store_many([{"text": "innocent words", "key": "i"}, {"text": text, "key": "j"}]),
        lambda: memory.files.create("page.md", text),
    ]
    for way in ways:
        with pytest.raises(Purged) as refused:
            way()
        assert purged.id in str(refused.value)
        assert WORD not in str(refused.value).lower()
    assert [note.key for note in memory.list()] == ["other"]
    assert memory.get("other").versions == 1


def test_an_edit_of_a_file_that_would_bring_a_purged_line_back_is_refused(purged, memory):
    memory.files.create("page.md", "# Page\n")
    with pytest.raises(Purged):
        memory.files.insert("page.md", 1, LINE)
    with pytest.raises(Purged):
        memory.files.str_replace("page.md", "# Page", LINE)
    assert memory.files.view("page.md") == "# Page\n"


def test_a_fact_that_was_purged_is_refused(memory):
    memory.fact("Harbour", "code", f"{WORD} and more of it", on="2026-01-01")
    memory.purge("harbour")
    with pytest.raises(Purged):
        memory.fact("Harbour", "code", f"{WORD} and more of it", on="2026-01-01")


def test_every_process_knows_at_once_what_another_purged(memory, open_memory, child, home):
    other = open_memory()
    other.store("warm", key="warm")
    memory.store(TEXT, key="k")
    memory.purge("k")
    with pytest.raises(Purged):
        other.store(TEXT, key="k")
    code = """
    try:
        Memory(args[0], project="demo").store(args[1], key="k")
    except HoldfastError as error:
        answer = error.code
    """
    assert child(code, home, TEXT) == "purged"


def test_a_text_that_has_a_few_words_in_common_passes(purged, memory):
    assert memory.store(f"the word {WORD} alone is no secret", key="free").action == "created"
    assert memory.store("nothing else matters", key="short").action == "created"


def test_what_another_note_says_too_may_be_said_again_and_the_receipt_names_that_note(memory):
    shared = "this very line stands in both of the notes"
    memory.store(f"{LINE}\n{shared}", key="k")
    memory.store(f"{shared}\nand more", key="other")
    receipt = memory.purge("k")
    assert receipt.state == "done"
    assert receipt.also_said_by == ("shelf/projects/demo/notes/other.md",)
    assert memory.store(f"{shared}\nand still more", key="other").action == "updated"
    with pytest.raises(Purged):
        memory.store(LINE)


def test_a_trashed_note_that_says_it_too_cannot_be_restored_once_it_was_purged_everywhere(memory):
    memory.store(TEXT, key="k")
    memory.forget("k")
    trash = os.path.join(memory.home, "shelf", "projects", "demo", "trash")
    [name] = os.listdir(trash)
    with open(os.path.join(trash, name), "rb") as file:
        data = file.read()
    memory.purge("k")
    with open(os.path.join(trash, name), "wb") as file:  # from a backup
        file.write(data)
    with pytest.raises(Purged):
        memory.restore("k")


def test_a_person_may_take_it_back_and_nobody_else(purged, memory, open_memory):
    with pytest.raises(Refused):
        memory.store(TEXT, key="k", again=True)
    person = open_memory(origin="user")
    assert person.store(TEXT, key="k", again=True).action == "created"
    assert memory.store(f"{TEXT}\nand an edit", key="k").action == "updated"
    assert [hit.key for hit in memory.recall(WORD)] == ["k"]
    assert memory.receipts(purged.id)[0].taken_back


def test_a_home_in_which_nothing_was_purged_asks_nobody(memory, home):
    memory.store("words", key="k")
    assert not (home / "ledger.db").exists()
    assert not (home / "ledger.purged").exists()


# --- an old clone -----------------------------------------------------------------------------------------------------


@pytest.mark.promise("N10")
@pytest.mark.parametrize("rebuilt", [False, True], ids=["noticed", "reindexed"])
def test_a_file_that_an_old_clone_brings_back_is_known_and_never_told(memory, open_memory, note_file, rebuilt):
    memory.store(TEXT, key="k")
    memory.store("something else stays", key="other")
    shutil.copy(note_file("k"), note_file("k").parent.parent / "copy")
    receipt = memory.purge("k")
    os.rename(note_file("k").parent.parent / "copy", note_file("renamed"))
    if rebuilt:
        memory.reindex()
    for caller in (memory, open_memory()):
        assert len(caller.recall(WORD)) == 0
        assert [note.key for note in caller.list()] == ["other"]
        assert WORD not in caller.brief().text
        assert caller.search(WORD) == []
        with pytest.raises(Purged):
            caller.get("renamed")
    [problem] = [one for one in memory.check() if one.code == "purged"]
    assert receipt.id in problem.message
    assert "purge renamed" in problem.fix
    assert memory.purge("renamed").deleted
    assert memory.check() == []


def test_a_file_of_the_tree_that_brings_a_purged_line_back_is_not_recalled(purged, memory, home):
    tree = home / "shelf" / "projects" / "demo" / "files"
    tree.mkdir(parents=True, exist_ok=True)
    (tree / "old.md").write_text(f"# Old\n\n{LINE}\n")
    assert len(memory.recall(WORD)) == 0
    assert [one.code for one in memory.check()] == ["purged"]


def test_an_overview_that_brings_a_purged_line_back_is_not_briefed(purged, memory, home):
    tree = home / "shelf" / "projects" / "demo" / "files"
    tree.mkdir(parents=True, exist_ok=True)
    (tree / "MEMORY.md").write_text(f"# Overview\n\n{LINE}\n")
    assert WORD not in memory.brief().text


def test_the_sign_that_something_was_purged_is_put_up_again(purged, memory, home):
    (home / "ledger.purged").unlink()
    assert memory.check() == []
    with pytest.raises(Purged):
        memory.store(TEXT, key="k")


# --- turns of sessions ------------------------------------------------------------------------------------------------


def said(memory, session="s", texts=(f"please remember: {LINE}", "ok, I will keep that", f"{LINE}", "and now?")):
    return memory.log([{"role": "user", "text": text} for text in texts], session=session, client="chat")


@pytest.mark.promise("N10", "H1")
def test_the_turns_that_say_a_note_go_with_it_when_asked_and_the_others_keep_their_lines(memory, home):
    said(memory)
    memory.store(LINE, key="k")
    before = memory.recall("keep that", kind="turn")[0].citation
    receipt = memory.purge("k", transcripts=True)
    assert (receipt.state, receipt.turns, receipt.also_said_by) == ("done", 2, ())
    assert holding(home) == []
    assert memory.recall("keep that", kind="turn")[0].citation == before
    assert [turn.text for turn in memory.expand(before)] == ["ok, I will keep that", "and now?"]
    rows = (home / "shelf" / before.rpartition(":")[0]).read_text().splitlines()
    assert [json.loads(row).get("purged") for row in rows] == [None, receipt.id, None, receipt.id, None]


@pytest.mark.promise("N10", "H1")
def test_a_turn_that_was_purged_is_left_out_when_it_is_captured_again(memory, home):
    said(memory)
    memory.store(LINE, key="k")
    memory.purge("k", transcripts=True)
    again = said(memory)
    assert (again.added, again.known, again.purged) == (0, 2, 2)
    assert said(memory, "another", [LINE, "something new"]).purged == 1
    assert holding(home) == []


def test_without_being_asked_the_turns_stay_and_the_receipt_says_so(memory):
    said(memory)
    memory.store(LINE, key="k")
    receipt = memory.purge("k")
    assert (receipt.state, receipt.also_said_by) == ("done", ("shelf/projects/demo/transcripts/chat/s.jsonl",))
    memory.reindex()
    assert len(memory.recall(WORD, kind="turn")) == 2
    assert said(memory).known == 4


def test_another_projects_sessions_are_not_touched(memory, open_memory):
    other = open_memory(project="other")
    said(other)
    memory.store(LINE, key="k")
    assert memory.purge("k", transcripts=True).turns == 0
    assert len(other.recall(WORD, kind="turn")) == 2


@pytest.mark.promise("N10", "H1")
def test_a_whole_session_is_purged_and_does_not_come_back_but_may_go_on(memory, home):
    said(memory)
    said(memory, "s2", ["another session stays as it is"])
    receipt = memory.purge(session="s")
    assert (receipt.deleted, receipt.state, receipt.turns) == (True, "done", 4)
    assert receipt.removed == ("projects/demo/transcripts/chat/s.jsonl",)
    assert holding(home) == []
    again = said(memory)
    assert (again.added, again.purged) == (0, 4)
    assert said(memory, "s", ["something quite new"]).added == 1
    assert len(memory.recall("another session", kind="turn")) == 1
    assert not memory.purge(session="s", client="somebody").deleted


def test_a_forgotten_session_can_be_restored_for_as_long_as_a_note(memory, clock, home):
    said(memory)
    assert memory.forget_session("s").deleted
    assert len(memory.recall(WORD, kind="turn")) == 0
    assert memory.restore_session("s").added == 4
    assert len(memory.recall(WORD, kind="turn")) == 2
    memory.forget_session("s")
    assert not memory.forget_session("s").deleted
    clock.forward(days=31)
    memory.retain()
    with pytest.raises(NotFound):
        memory.restore_session("s")
    assert holding(home / "shelf") == []


def test_a_purge_of_a_session_reaches_the_trash(memory, home):
    said(memory)
    memory.forget_session("s")
    assert memory.purge(session="s").deleted
    assert holding(home) == []


# --- a text wherever it occurs ------------------------------------------------------------------------------------------


@pytest.fixture
def spread(open_memory):
    """One word in many places of the home, and a person who may purge it."""
    memory = open_memory(origin="user")
    memory.store(f"an old version with {WORD}", key="k")
    memory.store("a version without it", key="k")
    memory.store("first without", key="now")
    memory.store(f"and now with {WORD}", key="now")
    memory.store(f"only {WORD}", key="only")
    memory.store(f"in the trash {WORD}", key="gone")
    memory.forget("gone")
    memory.store(f"for all {WORD}", key="g", scope="global")
    open_memory(project="other").store(f"elsewhere {WORD}", key="e")
    memory.files.create("plan.md", f"# Plan\nuse {WORD} here\n")
    said(memory)
    return memory


@pytest.mark.promise("N10")
def test_a_text_is_purged_from_every_version_and_turn_and_files_are_reported(spread, home):
    receipt = spread.purge(text=WORD)
    assert receipt.deleted
    assert receipt.also_said_by == ("shelf/projects/demo/files/plan.md",)
    assert [one for one in holding(home) if "/files/" not in one and not one.startswith("index.db")] == []
    assert (spread.get("k").text, spread.get("k").versions) == ("a version without it", 1)
    assert (spread.get("now").text, spread.get("now").versions) == ("first without", 1)
    assert [note.key for note in spread.list()] == ["now", "k"]
    assert spread.check() == []
    assert WORD not in json.dumps(receipt.as_dict())


@pytest.mark.promise("N10")
def test_with_files_a_text_leaves_no_byte_anywhere(spread, home):
    assert spread.purge(text=WORD, files=True).also_said_by == ()
    assert holding(home) == []
    assert spread.files.view("plan.md") == "# Plan\nuse [purged] here\n"


def test_with_files_a_text_leaves_the_strings_of_json_too(open_memory, home):
    memory = open_memory(origin="user")
    text = 'They call me "Größe"\nand I live at 12 Elm Street.'
    for name, quoted in (
        ("a.json", json.dumps({"text": text})),
        ("b.jsonl", json.dumps([json.dumps(text)], ensure_ascii=False)),
    ):
        memory.files.create(name, quoted)
    receipt = memory.purge(text=text, files=True)
    assert memory.files.view("a.json") == '{"text": "[purged]"}'
    assert memory.files.view("b.jsonl") == r'["\"[purged]\""]'
    assert receipt.also_said_by == ()
    assert not any(b"12 Elm Street" in path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_a_word_that_was_purged_is_known_again_wherever_it_stands_in_a_text(spread):
    spread.purge(text=WORD, files=True)
    for text in (f"it is {WORD}.", f"harbour={WORD}", f'say "{WORD.upper()}" again'):
        with pytest.raises(Purged):
            spread.store(text)


def test_a_text_that_is_too_short_to_tell_from_others_is_refused(open_memory):
    memory = open_memory(origin="user")
    with pytest.raises(UsageError):
        memory.purge(text="too short")
    with pytest.raises(UsageError):
        memory.purge("k", text=WORD)
    with pytest.raises(UsageError):
        memory.purge()


# --- receipts -------------------------------------------------------------------------------------------------------------


@pytest.mark.promise("N10")
def test_receipts_are_kept_newest_first_without_a_word_of_what_was_purged(memory, home):
    memory.store(f"{WORD} stands in the very first words", scope="global")
    [key] = [note.key for note in memory.list()]
    first = memory.purge(key)
    memory.store("another harmless text", key="k")
    second = memory.purge("k")
    assert [one.id for one in memory.receipts()] == [second.id, first.id]
    assert memory.receipts(second.id) == [second]
    kept = memory.receipts(first.id)[0]
    assert (kept.state, kept.deleted, kept.scope) == ("done", True, first.scope)
    assert first.removed == (f"global/notes/{key}.md",)
    assert WORD not in json.dumps(kept.as_dict())
    assert holding(home) == []
    with pytest.raises(NotFound):
        memory.receipts("nothing")


def test_a_purge_of_nothing_leaves_no_receipt(memory):
    memory.store("words", key="k")
    assert memory.purge("nothing").id == ""
    assert memory.receipts() == []


def git(where, *words):
    command = ["git", "-C", str(where), "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.skipif(not shutil.which("git"), reason="git is not here")
def test_where_git_keeps_the_home_the_receipt_says_what_its_history_holds_and_the_command_works(memory, home):
    memory.store(TEXT, key="k")
    memory.store("something else stays", key="other")
    git(home, "init", "-q")
    git(home, "add", "shelf")
    git(home, "commit", "-qm", "notes")
    memory.store(f"never committed {WORD}", key="later")
    assert not any("git repository" in one for one in memory.purge("later").beyond_reach)
    [told] = [one for one in memory.purge("k").beyond_reach if "git repository" in one]
    assert "shelf/projects/demo/notes/k.md" in told
    command = told.partition("to remove it, run: ")[2]
    git(home, "add", "-A", "shelf")
    git(home, "commit", "-qm", "purged")
    quiet = {**os.environ, "FILTER_BRANCH_SQUELCH_WARNING": "1"}
    subprocess.run(["sh", "-c", command], check=True, capture_output=True, env=quiet)
    assert git(home, "rev-list", "--all", "--", "shelf/projects/demo/notes/k.md") == ""
    assert git(home, "rev-list", "--all", "--", "shelf/projects/demo/notes/other.md") != ""


# --- what cannot be done yet ----------------------------------------------------------------------------------------------


@pytest.fixture
def reader(home):
    """Another program that keeps a read transaction of the index open."""
    opened = []

    def read():
        db = apsw.Connection(str(home / "index.db"))
        opened.append(db)
        db.execute("BEGIN").fetchall()
        db.execute("SELECT count(*) FROM passage").fetchall()
        return db

    yield read
    for db in opened:
        db.close()


@pytest.mark.promise("N10")
def test_while_somebody_reads_old_pages_a_purge_says_pending_and_the_next_look_finishes_it(memory, open_memory, reader, home):
    hurried = open_memory(config=memory.config.replace(lock_seconds=0.3), home=None)
    hurried.store(TEXT, key="k")
    held = reader()
    receipt = hurried.purge("k")
    assert (receipt.deleted, receipt.state) == (True, "pending")
    assert any("index.db" in one for one in receipt.pending)
    assert not any("none found" in one for one in receipt.checks)
    assert len(hurried.recall(WORD)) == 0
    with pytest.raises(Purged):
        hurried.store(TEXT, key="k")
    [problem] = [one for one in hurried.check() if one.code == "purge"]
    assert receipt.id in problem.message
    held.execute("COMMIT").fetchall()
    assert hurried.check() == []
    assert hurried.receipts(receipt.id)[0].state == "done"
    assert holding(home) == []


def test_the_next_purge_finishes_one_that_is_pending(memory, open_memory, reader):
    hurried = open_memory(config=memory.config.replace(lock_seconds=0.3), home=None)
    hurried.store(TEXT, key="k")
    hurried.store("another text to purge", key="l")
    held = reader()
    first = hurried.purge("k")
    held.execute("COMMIT").fetchall()
    hurried.purge("l")
    assert hurried.receipts(first.id)[0].state == "done"


def test_a_purge_that_was_cut_short_is_told_with_the_command_that_ends_it(memory, monkeypatch):
    memory.store(TEXT, key="k")

    def fails(*_, **__):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", fails)
        with pytest.raises(Exception, match="Input/output"):
            memory.purge("k")
    assert memory.get("k").text == TEXT
    assert [hit.key for hit in memory.recall(WORD)] == ["k"]
    [problem] = [one for one in memory.check() if one.code == "purge"]
    assert "purge k" in problem.fix
    assert memory.purge("k").state == "done"
    assert memory.check() == []


# --- concurrency, and every encoding: smaller runs of what `python -m battery purge` does ------------------------------------


@pytest.fixture(scope="module")
def workspace():
    with Workspace.create() as workspace:
        yield workspace


@pytest.mark.battery
@pytest.mark.promise("N10", "promise-4")
def test_a_purge_that_races_with_eight_ways_to_bring_it_back_wins_every_time(workspace):
    assert [problems for problems in battery_purge.run_races(workspace, 16, seed=3) if problems] == []


@pytest.mark.promise("N10")
def test_a_purge_waits_for_a_reader_or_says_pending_and_never_claims_more(workspace):
    assert battery_purge.purge_during_long_read(workspace) == []
    assert battery_purge.purge_during_short_read(workspace) == []


@pytest.mark.xdist_group("models")
@pytest.mark.promise("N10", "promise-4")
def test_canaries_in_every_place_are_in_no_byte_of_the_home_afterwards(workspace):
    result = battery_purge.purge_canaries(workspace, 6, seed=3)
    assert result.problems == {}
    assert result.files > 5
    assert result.needles > 60


def test_the_search_for_canaries_sees_every_spelling(tmp_path):
    needles = {0: battery_purge.encode_word("bcdfghjklmnpqrst")}
    for number, (_, needle) in enumerate(needles[0]):
        (tmp_path / f"f{number}").write_bytes(b"before" + needle + b"after")
    assert len(battery_purge.find_needles(tmp_path, needles)[0]) >= len(needles[0])


# --- search patterns ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("many", [False, True], ids=["few", "many"])
@pytest.mark.parametrize("shift", range(9))
def test_every_spelling_of_a_line_is_found_wherever_it_starts(many, shift):
    others = [f"line number {number} of a long text that goes on" for number in range(100 if many else 0)]
    patterns = Patterns([LINE, *others])
    for needle in encode_all_ways(patterns.pieces[0]):
        assert patterns.find_in(b"x" * shift + needle + b"y" * 20) == {0}, needle
    assert patterns.find_in(b"nothing of it " * 100) == set()


def test_base64_is_found_in_the_midst_of_other_bytes():
    patterns = Patterns([LINE])
    for before in range(7):
        data = base64.b64encode(b"a" * before + LINE.encode() + b"bcd")
        assert patterns.find_in(data) == set(range(len(patterns.pieces)))


def test_every_line_of_every_version_is_looked_for_in_pieces_and_short_ones_are_told(memory):
    text = "\n".join([f"{number} is the number of this line" for number in range(50)])
    assert len(Patterns([text]).pieces) == 51  # the end of each line is the same
    assert Patterns(["short", "also short\nyes"]).pieces == []
    memory.store("tiny", key="k")
    memory.store(text, key="k")
    receipt = memory.purge("k")
    assert any("51 pieces" in one for one in receipt.checks)
    assert any("1 of its texts shorter than 12" in one for one in receipt.checks)


def test_what_is_left_in_a_log_of_ours_is_found_and_not_claimed_gone(memory, open_memory, home):
    hurried = open_memory(config=memory.config.replace(lock_seconds=0.2), home=None)
    hurried.store(LINE, key="k")
    (home / "run").mkdir(exist_ok=True)
    (home / "run" / "hooks.log").write_bytes(LINE.encode("utf-16-le"))
    receipt = hurried.purge("k")
    assert receipt.state == "pending"
    assert any("run/hooks.log" in one for one in receipt.pending)
    assert [one.code for one in hurried.check()] == ["purge"]
    (home / "run" / "hooks.log").unlink()
    assert hurried.check() == []


def test_a_file_that_somebody_put_into_the_home_is_named_as_out_of_reach(memory, home):
    memory.store(LINE, key="k")
    (home / "backup.tar").write_bytes(b"..." + LINE.encode() + b"...")
    receipt = memory.purge("k")
    assert receipt.state == "done"
    assert any("backup.tar" in one for one in receipt.beyond_reach)


def test_whom_it_was_told_to_is_counted_before_that_is_forgotten(memory, open_memory):
    for session in ("s1", "s2"):
        teller = open_memory(session=session)
        teller.store(LINE, key="k")
        teller.brief()
    told = memory.purge("k").told
    assert len(told) == 1
    assert "s1" in told[0]
    assert "s2" in told[0]
    assert memory._context.ledger.sessions.count_shown([memory.receipts()[0].id]) == (0, [])


@pytest.mark.promise("N10")
def test_a_session_that_is_named_after_what_was_purged_is_not_named_by_the_receipt_that_is_kept(memory, open_memory):
    memory.store("The vault opens with seven silver herrings.", key="k")
    for session in ("about-herrings", "7f3a"):
        open_memory(session=session).brief()
    receipt = memory.purge("k")
    (kept,) = memory.receipts(receipt.id)
    assert kept.told == ("shown 2 times, to the sessions 7f3a, (not kept)",)
    assert "herring" not in json.dumps(kept.as_dict())


def test_a_short_key_is_masked_in_a_kept_receipt_only_where_it_is_a_word_of_its_own(memory):
    memory.store("the lock of the harbour gate sticks in the rain", key="lock")
    receipt = memory.purge("lock")
    (kept,) = memory.receipts()
    assert kept.key.startswith("(") and kept.what == f"the note {kept.key} in {kept.scope}"
    assert [path.rpartition("/")[2] for path in kept.removed] == [f"{kept.key}.md"]
    assert "disk blocks that are not yet overwritten" in kept.beyond_reach
    assert kept.beyond_reach == receipt.beyond_reach and "lock" not in " ".join([kept.what, *kept.removed]).split()


def test_our_own_sentences_are_not_masked_though_a_key_stands_in_them(memory):
    memory.store("the disk of the harbour clock is full again", key="disk")
    receipt = memory.purge("disk")
    (kept,) = memory.receipts()
    assert kept.beyond_reach == receipt.beyond_reach and kept.key.startswith("(")


# --- findings of a review -----------------------------------------------------------------------------------------------------

SECRET = "ghp_" + "x7Kq2mV9bT4nR8sL1pZ6wY3cD5fG0hJ2aQ8e"
MANY = f"# Harbour\n{LINE}\nand nothing else matters here either"


@pytest.fixture
def person(open_memory):
    return open_memory(origin="user")


def test_a_secret_that_a_person_kept_can_be_purged_by_its_text(person, home):
    person.store(f"the key is {SECRET}", key="k", allow_secret="a test of it")
    assert person.purge(text=SECRET).state == "done"
    assert holding(home, SECRET) == []


def test_an_agent_cannot_purge_a_text_wherever_it_stands(memory):
    memory.store(TEXT, key="k")
    with pytest.raises(Refused):
        memory.purge(text=LINE)
    assert memory.get("k").text == TEXT


@pytest.mark.parametrize("what", ["note", "session"])
def test_a_note_elsewhere_that_says_the_same_in_many_lines_stays_readable(memory, open_memory, what):
    other = open_memory(project="other")
    other.store(MANY, key="same")
    other.store("a newer text", key="newer")
    other.store(MANY, key="newer")
    if what == "note":
        memory.store(MANY, key="k")
        memory.purge("k")
    else:
        said(memory, "s", [MANY])
        memory.purge(session="s")
    for rebuilt in (False, True):
        if rebuilt:
            other.reindex()
        assert other.get("same").text == MANY
        assert {hit.key for hit in other.recall(WORD)} == {"same", "newer"}
    assert other.store(f"{MANY}\nmore", key="same").action == "updated"


def test_a_note_that_says_what_a_late_turn_of_a_long_session_said_stays_readable(memory):
    texts = [f"turn number {number} of a session that goes on and on" for number in range(2005)]
    said(memory, "s", texts)
    memory.store(texts[-1], key="k")
    receipt = memory.purge(session="s")
    assert memory.get("k").text == texts[-1]
    assert any("5 of its turns not searched for" in one for one in receipt.checks)


@pytest.fixture
def cut_short(monkeypatch):
    """Run a purge that ends right after it has been recorded."""

    def run(way):
        def fails(*_, **__):
            raise OSError(5, "Input/output error")

        with monkeypatch.context() as patched:
            patched.setattr(os, "unlink", fails)
            patched.setattr(os, "rename", fails)
            with pytest.raises(Exception, match="Input/output"):
                way()

    return run


@pytest.mark.promise("N10")
@pytest.mark.parametrize("what", ["text", "session"])
def test_a_purge_of_a_text_or_session_that_was_cut_short_is_never_called_done(person, cut_short, what):
    person.store(TEXT, key="k")
    said(person)
    wanted = {"text": LINE} if what == "text" else {"session": "s"}
    cut_short(lambda: person.purge(**wanted))
    [problem] = [one for one in person.check() if one.code == "purge"]
    assert "interrupted" in problem.message
    assert ("--text -" if what == "text" else "--session s") in problem.fix
    assert WORD not in problem.message + problem.fix
    assert person.receipts()[0].state == "begun"
    assert person.purge(**wanted).state == "done"
    assert [one for one in person.check() if one.code == "purge"] == []
    assert len(person.receipts()) == 2


def test_what_is_pending_about_a_file_of_a_person_is_not_called_done_when_that_is_moved(person, note_file):
    person.store("harmless", key="k", tags=[WORD])
    receipt = person.purge(text=WORD)
    assert (receipt.state, len(receipt.pending)) == ("pending", 1)
    assert "tag" in receipt.pending[0]
    assert person.get("k").tags == (WORD,)
    note_file("k").rename(note_file("l"))
    assert [one.code for one in person.check()] == ["purge"]
    assert person.receipts(receipt.id)[0].state == "pending"
    person.purge("l")
    assert person.purge(text=WORD).state == "done"
    assert person.check() == []


@pytest.mark.promise("N10")
def test_the_kept_receipt_of_a_text_has_no_name_that_was_made_from_it(person, home):
    person.store(f"{WORD} stands first here")
    person.store(f"{WORD} is the name of this one")
    [named] = [note.key for note in person.list() if "name" in note.key]
    person.store("a version without it", key=named)
    person.files.create(f"{WORD}.md", f"say {WORD}")
    receipt = person.purge(text=WORD)
    assert receipt.state == "pending"
    assert any(f"{named}.md" in one for one in receipt.pending)
    kept = person.receipts(receipt.id)[0]
    assert WORD not in json.dumps(kept.as_dict())
    [problem] = [one for one in person.check() if one.code == "purge"]
    assert WORD not in problem.message + problem.fix
    assert WORD not in (home / "ledger.db").read_bytes().decode("latin-1")


@pytest.mark.skipif(not shutil.which("git"), reason="git is not here")
def test_git_is_asked_for_the_note_that_was_forgotten_first_and_for_what_was_made_from_it(memory, home):
    memory.store(TEXT, key="k")
    memory.store("something else stays", key="other")
    memory.recall(WORD)
    memory.close()
    git(home, "init", "-q")
    git(home, "add", "-f", "shelf", "index.db")
    git(home, "commit", "-qm", "notes")
    memory.forget("k")
    [told] = [one for one in memory.purge("k").beyond_reach if "git repository" in one]
    memory.close()
    git(home, "add", "-A", "-f", "shelf", "index.db")
    git(home, "commit", "-qm", "purged")
    quiet = {**os.environ, "FILTER_BRANCH_SQUELCH_WARNING": "1"}
    subprocess.run(["sh", "-c", told.partition("to remove it, run: ")[2]], check=True, capture_output=True, env=quiet)
    for commit in git(home, "rev-list", "--all").split():
        found = subprocess.run(["git", "-C", str(home), "grep", "-a", "-q", WORD, commit], check=False)
        assert found.returncode == 1
    assert git(home, "rev-list", "--all", "--", "shelf/projects/demo/notes/other.md") != ""


def test_what_came_back_as_a_file_is_told_by_no_verb(memory, home, note_file):
    memory.store(TEXT, key="k")
    memory.files.create("page.md", f"# Page\n{LINE}\n")
    said(memory)
    transcript_file = home / "shelf" / "projects" / "demo" / "transcripts" / "chat" / "s.jsonl"
    files = {path: path.read_bytes() for path in (note_file("k"), transcript_file)}
    page = home / "shelf" / "projects" / "demo" / "files" / "page.md"
    files[page] = page.read_bytes()
    page.unlink()
    memory.purge("k", transcripts=True)
    for path, data in files.items():
        path.write_bytes(data)
    citation = "projects/demo/transcripts/chat/s.jsonl:3-3"
    assert WORD not in json.dumps(list(memory.export()))
    assert [turn.text for turn in memory.expand(citation)] == ["ok, I will keep that", "and now?"]
    ways = [
        lambda: memory.read("projects/demo/notes/k.md"), lambda: memory.read("projects/demo/files/page.md"),
        lambda: memory.files.view("page.md"), lambda: memory.store("new words", made_from=["note:k"]),
    ]  # fmt: skip
    for way in ways:
        with pytest.raises(Purged):
            way()


def test_what_a_person_takes_back_stays_refused_until_it_is_written(purged, person, memory, monkeypatch):
    def fails(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", fails)
        with pytest.raises(Exception, match="space"):
            person.store(TEXT, key="k", again=True)
    with pytest.raises(Purged):
        memory.store(TEXT, key="k")


def test_a_person_may_take_back_what_came_back_as_a_file(memory, person, note_file):
    memory.store(TEXT, key="k")
    data = note_file("k").read_bytes()
    memory.purge("k")
    note_file("k").write_bytes(data)
    assert len(memory.recall(WORD)) == 0
    assert person.store(TEXT, key="k", again=True).action == "unchanged"
    assert [hit.key for hit in memory.recall(WORD)] == ["k"]


def test_receipts_of_other_scopes_are_a_persons_to_see(memory, open_memory, person):
    other = open_memory(project="other")
    other.store(TEXT, key="k")
    receipt = other.purge("k")
    assert other.receipts() == [receipt]
    assert memory.receipts() == []
    with pytest.raises(NotFound):
        memory.receipts(receipt.id)
    assert person.receipts() == [receipt]


def test_a_ledger_that_was_replaced_has_a_key_of_its_own(memory, open_memory, home):
    memory.store(TEXT, key="k")
    memory.store(f"{LINE}, the second", key="l")
    memory.purge("k")
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
        (home / name).unlink(missing_ok=True)
    memory.purge("l")
    for caller in (memory, open_memory()):
        with pytest.raises(Purged):
            caller.store(f"{LINE}, the second", key="l")


def test_a_file_that_came_back_while_the_ledger_was_busy_is_looked_at_again(memory, open_memory, home, note_file):
    memory.store(TEXT, key="k")
    data = note_file("k").read_bytes()
    memory.purge("k")
    note_file("k").write_bytes(data)
    hurried = open_memory(config=memory.config.replace(lock_seconds=0.2), home=None)
    memory.close()
    db = apsw.Connection(str(home / "ledger.db"))
    db.execute("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=DELETE; BEGIN EXCLUSIVE").fetchall()
    try:
        assert hurried.recall("harbour").degraded
    finally:
        db.execute("ROLLBACK").fetchall()
        db.close()
    assert len(hurried.recall(WORD)) == 0
    assert [one.code for one in hurried.check()] == ["purged"]


def test_a_transcript_that_was_read_before_a_purge_is_not_catalogued_after_it(memory, open_memory, monkeypatch, home):
    from holdfast.context import transcript_entries

    reader, real = open_memory(), transcript_entries.read_entries
    said(memory)
    memory.store(LINE, key="k")

    def slow(*given):
        found = list(real(*given))
        monkeypatch.setattr(transcript_entries, "read_entries", real)
        memory.purge("k", transcripts=True)
        yield from found

    (home / "index.db").unlink()
    memory.close()
    monkeypatch.setattr(transcript_entries, "read_entries", slow)
    reader.recall(WORD)
    assert holding(home) == []
    assert len(reader.recall("keep that", kind="turn")) == 1


def test_a_note_that_is_restored_just_when_a_purge_looks_for_it_is_purged(memory, open_memory, monkeypatch, home):
    memory.store(TEXT, key="k")
    memory.forget("k")
    other, store = open_memory(), memory._context.store
    list_trash, acquire, tried = store.list_trash, Lock.acquire, threading.Event()

    def restore():
        with suppress(Conflict, NotFound, Purged):
            other.restore("k")
        tried.set()

    def slowly(*given):
        if restoring.ident is None:  # the notes were searched, and now the trash is
            restoring.start()
            assert tried.wait(60)
        return list_trash(*given)

    def waiting(self, seconds):
        if acquire(self, 0):
            return True
        tried.set()
        return acquire(self, seconds)

    restoring = threading.Thread(target=restore)
    monkeypatch.setattr(store, "list_trash", slowly)
    monkeypatch.setattr(Lock, "acquire", waiting)
    receipt = memory.purge("k")
    restoring.join()
    assert receipt.state == "done" and receipt.removed
    assert holding(home) == []


def on_its_way(monkeypatch, owner, asks, write):
    """A thread that has passed the check, and writes as soon as another one waits for its lock or the test allows it."""
    asked, goes_on = threading.Event(), threading.Event()
    ask, acquire = getattr(owner, asks), Lock.acquire

    def slowly(*given, **named):
        answer = ask(*given, **named)
        asked.set()
        assert goes_on.wait(60)
        return answer

    def waiting(self, seconds):
        if acquire(self, 0):
            return True
        goes_on.set()
        return acquire(self, seconds)

    monkeypatch.setattr(owner, asks, slowly)
    monkeypatch.setattr(Lock, "acquire", waiting)
    thread = threading.Thread(target=write)
    thread.start()
    assert asked.wait(60)
    return thread, goes_on


@pytest.mark.promise("N10")
def test_a_turn_that_is_on_its_way_when_a_purge_begins_is_taken_out(memory, open_memory, monkeypatch, home):
    memory.store(LINE, key="k")
    other = open_memory()
    said(other, texts=["what was it?"])
    thread, goes_on = on_its_way(monkeypatch, other._context.purge_filter, "find_purged_turns", lambda: said(other))
    receipt = memory.purge("k", transcripts=True)
    goes_on.set()
    thread.join()
    assert (receipt.state, receipt.turns) == ("done", 2)
    assert holding(home) == []


@pytest.mark.promise("N10")
def test_a_note_that_is_on_its_way_when_a_purge_of_its_text_begins_is_taken_out(person, open_memory, monkeypatch, home):
    person.store("something else stays", key="other")
    other = open_memory()
    thread, goes_on = on_its_way(monkeypatch, quarantine, "refuse_rejected", lambda: other.store(TEXT, key="late"))
    receipt = person.purge(text=LINE)
    goes_on.set()
    thread.join()
    assert (receipt.state, receipt.removed) == ("done", ("projects/demo/notes/late.md",))
    assert holding(home) == []


@pytest.mark.promise("N10")
@pytest.mark.parametrize("moment", range(9))
@pytest.mark.parametrize("back", [True, False], ids=["back from the trash", "to the trash"])
def test_a_note_that_moves_while_a_purge_looks_for_its_text_is_taken_out(person, open_memory, monkeypatch, home, back, moment):
    place = person.store(TEXT, key="k").note.scope
    if back:
        person.forget("k")
    store, other = person._context.store, open_memory()._context.store
    entries, left = store.entries, [moment]

    def meanwhile(*given):
        left[0] -= 1
        if left[0] == -1:
            for one in other.list_trash(place, "k") if back else ():
                other.restore_note(place, one, "k")
            if not back:
                other.move_notes(place, ["k"], "trash", 0)
        return entries(*given)

    monkeypatch.setattr(store, "entries", meanwhile)
    assert person.purge(text=LINE).state == "done"
    assert holding(home) == []


def test_the_ledger_is_asked_once_for_many_turns(memory, monkeypatch):
    memory.store(TEXT, key="gone")
    memory.purge("gone")
    said(memory, "s", [f"turn number {number}" for number in range(50)])
    asked, real = [], memory._context.ledger.purges.find_purged_turns
    monkeypatch.setattr(memory._context.ledger.purges, "find_purged_turns", lambda *given: asked.append(1) or real(*given))
    memory.reindex()
    assert len(memory.recall("turn number", kind="turn", limit=100)) == 50
    assert len(asked) == 1


def test_a_note_that_others_write_all_the_time_is_pending(person, monkeypatch):
    from holdfast.store.files import FileStore
    from holdfast.store.interface import Changed

    def changed(*_):
        raise Changed

    person.store(TEXT, key="k")
    with monkeypatch.context() as patched:
        patched.setattr(FileStore, "erase_file", changed)
        receipt = person.purge(text=LINE)
    assert receipt.state == "pending"
    assert any("keep changing" in one for one in receipt.pending)


def test_a_session_that_goes_on_is_not_claimed_to_have_no_file(memory, open_memory, monkeypatch):
    from holdfast.verbs.purge.job import PurgeJob

    said(memory)
    other, real = open_memory(), PurgeJob.scrub

    def scrub(work, *given):
        said(other, "s", ["something quite new was said since"])
        real(work, *given)

    monkeypatch.setattr(PurgeJob, "scrub", scrub)
    receipt = memory.purge(session="s")
    assert receipt.state == "done"
    assert any("continues" in one for one in receipt.checks)
    assert not any("no file of this session" in one for one in receipt.checks)


@pytest.fixture
def run(home, tmp_path):
    """Run a command and return its exit code."""

    def typed(*words, stdin="", **env):
        command = [sys.executable, "-m", "holdfast", *words]
        around = {**os.environ, "HOLDFAST_HOME": str(home), "HOLDFAST_PROJECT": "demo", **env}
        done = subprocess.run(command, input=stdin, text=True, capture_output=True, cwd=tmp_path, env=around, timeout=60)
        return done.returncode

    return typed


@pytest.mark.parametrize("words", [["k", "--text", "-"], ["--session", "s", "--text", "-"]])
def test_only_one_thing_is_purged_at_a_time_on_the_command_line(memory, run, words):
    memory.store(TEXT, key="k")
    assert run("purge", *words, "--yes", stdin=LINE) == 2
    assert memory.get("k").text == TEXT


def test_an_agent_at_the_command_line_cannot_purge(memory, run):
    memory.store(TEXT, key="k")
    assert run("purge", "k", "--yes", CLAUDECODE="1") == 3
    assert memory.get("k").text == TEXT


# --- in another form ----------------------------------------------------------------------------------------------------


@pytest.mark.promise("N10")
@pytest.mark.parametrize("form", ["{}.", "- {}", "* [x] {}", "Note: {}", "> {}!", "3. {}", "**{}**", '"{}"', "- to do: {};"])
def test_a_purged_line_is_known_whatever_stands_around_it(purged, memory, form):
    with pytest.raises(Purged):
        memory.store(form.format(LINE))
    with pytest.raises(Purged):
        memory.store(f"innocent words\n{form.format(LINE)}\nand more")


def test_a_note_that_says_it_in_another_dress_already_stays_readable(memory):
    memory.store(f"- {LINE}!", key="list")
    memory.store(f"{LINE}.", key="k")
    memory.purge("k")
    memory.reindex()
    assert memory.get("list").text == f"- {LINE}!"


@pytest.mark.promise("N10")
def test_a_purged_line_is_refused_as_a_fact_and_as_a_tag(purged, memory):
    ways = [
        lambda: memory.fact("Note", "said", LINE),
        lambda: memory.fact("Note", "said", f"{LINE}."),
        lambda: memory.fact("the harbour", "code of", LINE.removeprefix("the harbour code of ")),
        lambda: memory.store("words", key="tagged", tags=[LINE]),
        lambda: memory.store_many([{"text": "words", "key": "tagged", "tags": [LINE]}]),
    ]
    for way in ways:
        with pytest.raises(Purged):
            way()
    assert [note.key for note in memory.list()] == ["other"]
