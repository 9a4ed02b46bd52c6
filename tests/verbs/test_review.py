"""Review: a person approves, rejects or edits quarantined notes; an agent may not (S3)."""

from __future__ import annotations

import os
import pty
import select
import sys

import apsw
import pytest

from holdfast import Memory, config
from holdfast.errors import Busy, Conflict, NotFound, Refused


@pytest.fixture
def person(open_memory):
    return open_memory(origin="user")


@pytest.mark.promise("S3")
def test_an_approved_text_is_told_and_the_file_itself_says_so(memory, person, home, clock):
    memory.store("The harbour opens at six.", key="tide", origin="web")
    assert [note.key for note in person.review()] == ["tide"]
    note = person.approve("tide")
    assert not note.quarantined
    assert person.review() == []
    assert "opens at six" in memory.brief().text
    assert f"approved: {{time: {clock.now}, text: " in (home / "shelf/projects/demo/notes/tide.md").read_text()
    person.reindex()
    assert not memory.get("tide").quarantined
    assert memory.list()[0].quarantined is False


@pytest.mark.promise("S3")
def test_a_later_text_of_an_untrusted_source_waits_anew(memory, person):
    memory.store("one", key="k", origin="web")
    person.approve("k")
    person.store("two", key="k", origin="web")
    assert memory.get("k").quarantined
    assert "two" not in memory.brief().text


def test_what_is_made_from_an_approved_text_is_trusted(memory, person):
    memory.store("one", key="k", origin="web")
    person.approve("k")
    memory.store("from it", key="derived", made_from="note:k")
    memory.fact("K", "state", "on")
    assert not memory.get("derived").quarantined


@pytest.mark.promise("S3")
def test_only_a_person_approves_or_rejects(memory):
    memory.store("one", key="k", origin="web")
    for verb in (memory.approve, memory.reject):
        with pytest.raises(Refused, match="only a person"):
            verb("k")
    assert memory.get("k").quarantined


def test_a_rejected_note_is_forgotten_and_can_be_restored(memory, person):
    memory.store("one", key="k", origin="web")
    assert person.reject("k").deleted
    assert memory.list() == []
    assert person.restore("k").quarantined


def test_an_approval_is_taken_back(memory, person):
    memory.store("one", key="k", origin="import")
    person.approve("k")
    assert "one" in memory.brief().text
    note = person.quarantine("k")
    assert note.quarantined and note.source.trusted == "import"
    assert [one.key for one in person.review()] == ["k"] and "one" not in memory.brief().text
    assert person.quarantine("k") == note
    assert [one.action for one in memory.trace("k").decisions] == ["quarantined", "approved"]
    assert not person.approve("k").quarantined
    with pytest.raises(Refused, match="only a person"):
        memory.quarantine("k")
    with pytest.raises(Conflict):
        person.quarantine("k", expected=note.version)
    with pytest.raises(NotFound):
        person.quarantine("none")


def test_undo_at_the_command_line_takes_an_approval_or_a_rejection_back(memory, person, home, capsys):
    from holdfast.cli import main

    words = ["--home", str(home), "--project", "demo", "review", "--undo"]
    for decide in (person.approve, person.reject):
        memory.store("one", key="k", origin="web")
        decide("k")
        assert main([*words, "k"]) == 0 and "back in quarantine k" in capsys.readouterr().out
        assert person.get("k").quarantined
    assert main([*words, "none"]) == 1


def test_decisions_are_kept_and_traced(memory, person):
    memory.store("one", key="k", origin="web")
    person.approve("k")
    person.approve("k")  # nothing is left to decide
    trace = memory.trace("k")
    assert [one.action for one in trace.decisions] == ["approved"]
    assert trace.decisions[0].detail == {"scope": "project:demo", "key": "k"}


def test_what_changed_since_it_was_read_is_not_approved(memory, person):
    seen = memory.store("one", key="k", origin="web").note.version
    memory.store("two", key="k", origin="web")
    with pytest.raises(Conflict):
        person.approve("k", expected=seen)
    with pytest.raises(NotFound):
        person.approve("none")


def test_an_approval_a_person_wrote_for_another_text_counts_for_nothing(memory, home):
    memory.store("one", key="k", origin="web")
    path = home / "shelf/projects/demo/notes/k.md"
    path.write_text(path.read_text().replace("---\none", "approved: {time: 2026-05-01T12:00:00Z, text: abc}\n---\none"))
    assert memory.get("k").quarantined
    assert memory.list()[0].quarantined


def at_a_terminal(home, cwd, keys, *words, **more):
    """Run a command in a terminal of its own, and type a key each time it asks."""
    env = {name: value for name, value in os.environ.items() if name not in config.AGENTS} | {"TERM": "dumb", **more}
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.execvpe(sys.executable, [sys.executable, "-m", "holdfast", "--home", str(home), "--project", "demo", *words], env)
    said, answered = b"", 0
    while True:
        ready, _, _ = select.select([fd], [], [], 60)
        assert ready, said
        try:
            piece = os.read(fd, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        said += piece
        if said.count(b"[q]uit") > answered < len(keys):
            os.write(fd, keys[answered].encode())
            answered += 1
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode("utf-8", "replace")


@pytest.mark.promise("S3")
def test_at_a_terminal_one_key_decides_each(home, tmp_path, clock):
    with Memory(home, project="demo", cwd=tmp_path) as memory:
        for key in ("a", "b", "c", "d", "e"):
            clock.forward(minutes=1)
            memory.store(f"text of {key}", key=f"k-{key}", origin="web")
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho changed by a person > "$1"\n')
    editor.chmod(0o700)
    code, said = at_a_terminal(home, tmp_path, "aresq", "review", EDITOR=str(editor), VISUAL="")
    assert code == 0, said
    with Memory(home, project="demo", cwd=tmp_path) as memory:
        assert [note.key for note in memory.review()] == ["k-b", "k-a"]  # skipped, and not asked after quitting
        assert not memory.get("k-e").quarantined
        edited = memory.get("k-c")
        assert (edited.text, edited.source.origin, edited.quarantined) == ("changed by a person", "user", False)
        assert "k-d" not in [note.key for note in memory.list()]


def test_without_a_terminal_it_lists(home, tmp_path, capsys):
    from holdfast.cli import main

    with Memory(home, project="demo", cwd=tmp_path) as memory:
        memory.store("of a page", key="k", origin="web")
    assert main(["--home", str(home), "--project", "demo", "review", "--json"]) == 0
    assert '"quarantined": true' in capsys.readouterr().out
    assert main(["--home", str(home), "--project", "demo", "review", "--approve", "k"]) == 0
    assert main(["--home", str(home), "--project", "demo", "review"]) == 0
    assert "No notes in quarantine" in capsys.readouterr().err


def test_to_approve_what_is_not_in_quarantine_says_so(home, tmp_path, capsys):
    from holdfast.cli import main

    with Memory(home, project="demo", cwd=tmp_path) as memory:
        memory.store("said here", key="mine")
        memory.store("of a page", key="k", origin="web")
    words = ["--home", str(home), "--project", "demo", "review", "--approve"]
    assert main([*words, "mine"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "the note 'mine' is not in quarantine" in said.err
    assert main([*words, "k"]) == 0
    assert "approved k" in capsys.readouterr().out
    assert main([*words, "k", "--json"]) == 1
    assert "\"the note 'k' is not in quarantine\"" in capsys.readouterr().out
    assert main([*words, "none"]) == 1
    assert "no note 'none'" in capsys.readouterr().err


def test_what_somebody_wrote_after_the_edit_is_not_approved_with_it(home, tmp_path, monkeypatch):
    """The edit is done, and before the approval another text of the web stands there."""
    from holdfast.cli.commands import edit, review
    from holdfast.cli.output import Output

    with Memory(home, project="demo", cwd=tmp_path, origin="user") as memory:
        note = memory.store("of a page", key="k", origin="web").note

        def edit_note(call, note):
            stored = memory.store("by a person", key="k")
            memory.store("of a page again", key="k", origin="web")
            return stored

        monkeypatch.setattr(edit, "edit_note", edit_note)

        class Call:
            output = Output(False)

        Call.memory = memory
        with pytest.raises(Conflict):
            review._decide(Call, note, "e")
        assert memory.get("k").quarantined


def test_what_somebody_wrote_after_it_was_shown_is_not_rejected(memory, person):
    from holdfast.cli.commands import review
    from holdfast.cli.output import Output

    shown = memory.store("The harbour opens at six.", key="tide", origin="web").note
    memory.store("The harbour opens at seven.", key="tide", origin="web")

    class Call:
        output = Output(False)

    Call.memory = person
    with pytest.raises(Conflict):
        review._decide(Call, shown, "r")
    assert memory.get("tide").text == "The harbour opens at seven."
    assert not memory.store("The harbour opens at seven!", key="other").note.quarantined
    assert person.trace("tide").decisions == ()


@pytest.mark.promise("S3")
@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_what_cannot_be_put_on_record_is_not_done(memory, open_memory, home, verb):
    memory.store("of a page", key="k", origin="web")
    memory.store("of another", key="other", origin="web")
    person = open_memory(origin="user", config=config.load(home).replace(lock_seconds=0.05))
    person.approve("other")  # so that there is a ledger
    other = apsw.Connection(str(home / "ledger.db"))
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(Busy):
            getattr(person, verb)("k")
    finally:
        other.execute("ROLLBACK")
        other.close()
    assert memory.get("k").quarantined
    getattr(person, verb)("k")
