"""Retention: a note that was not updated or used for its scope's time is archived, never deleted."""

from __future__ import annotations

import os

import pytest

from holdfast import Busy, NotFound


@pytest.fixture
def full(open_memory, clock):
    """A note of every type in every scope, all from the same day."""
    memory = open_memory(session="s1", agent="a1")
    for scope in ("global", "project", "session", "agent"):
        for type in ("user", "feedback", "project", "reference"):
            memory.store(f"{scope} {type} words", key=f"{scope}-{type}", scope=scope, type=type)
    return memory


def keys(notes):
    return sorted(note.key for note in notes)


EXPIRING = {"session": ["session-project", "session-reference"], "project": ["project-project", "project-reference"]}


@pytest.fixture
def archived(memory, clock):
    memory.store("The harbour port is 5433.", key="port")
    clock.forward(days=91)
    assert keys(memory.retain()) == ["port"]
    return memory


def test_status_counts_archived_notes_by_scope_and_says_why(archived, open_memory, clock):
    theirs = open_memory(session="s9")
    theirs.store("one", key="one", scope="session")
    theirs.store("two", key="two", scope="session")
    clock.forward(days=15)
    archived.retain()
    status = archived.status()
    assert {scope.scope: scope.archived for scope in status.scopes} == {"projects/demo": 1, "sessions/s9": 2}
    assert sorted(status.archived) == [
        "1 note archived: not updated or used for 90 days (project)",
        "2 notes archived: not updated or used for 14 days (session)",
    ]


@pytest.mark.promise("N11")
@pytest.mark.parametrize(
    ("days", "expired"),
    [
        (13, []),
        (15, EXPIRING["session"]),
        (89, EXPIRING["session"]),
        (91, EXPIRING["project"] + EXPIRING["session"]),
        (9999, EXPIRING["project"] + EXPIRING["session"]),
    ],
)
def test_a_project_note_lives_90_days_a_session_note_14_and_the_rest_for_ever(full, clock, days, expired):
    clock.forward(days=days)
    assert keys(full.retain()) == sorted(expired)
    left = [
        f"{scope}-{type}"
        for scope in ("global", "project", "session", "agent")
        for type in ("user", "feedback", "project", "reference")
    ]
    assert keys(full.list()) == sorted(set(left) - set(expired))


@pytest.mark.promise("N11")
def test_time_counts_from_the_last_update(memory, clock):
    memory.store("one", key="k")
    clock.forward(days=80)
    memory.store("two", key="k")
    clock.forward(days=80)
    assert memory.retain() == []
    clock.forward(days=11)
    assert keys(memory.retain()) == ["k"]


@pytest.mark.promise("N11")
def test_what_is_archived_is_left_out_of_briefings_and_lists_and_can_be_restored(memory, clock, open_memory, home):
    memory.store("old harbour words", key="k")
    memory.store("harbour words", key="k")
    before = memory.get("k").replace(version="", lines=()), memory.history("k")
    clock.forward(days=91)
    memory.retain()
    for caller in (memory, open_memory()):
        assert [hit.archived for hit in caller.recall("harbour")] == [True]
        assert caller.list() == []
        assert caller.brief().text == "" and caller.brief(prompt="harbour words").text == ""
        assert "harbour" not in (home / "shelf" / "projects" / "demo" / "index.md").read_text()
    assert len(os.listdir(home / "shelf" / "projects" / "demo" / "archive")) == 1
    memory.restore("k")
    assert (memory.get("k").replace(version="", lines=()), memory.history("k")) == before
    assert [hit.archived for hit in memory.recall("harbour")] == [False]


@pytest.mark.promise("N11")
def test_what_is_archived_is_never_deleted(memory, clock):
    memory.store("harbour words", key="k")
    clock.forward(days=91)
    memory.retain()
    clock.forward(days=3650)
    memory.retain()
    assert memory.restore("k").text == "harbour words"


@pytest.mark.promise("N11")
def test_a_restored_note_is_not_archived_again_at_once(memory, clock):
    memory.store("harbour words", key="k")
    clock.forward(days=91)
    memory.retain()
    memory.restore("k")
    os.unlink(memory.home + "/ledger.db")  # its file itself says so
    memory.retain()
    assert keys(memory.list()) == ["k"]


@pytest.mark.promise("N11")
def test_a_dry_run_shows_and_touches_nothing(full, clock, truth):
    full.forget("global-user")
    clock.forward(days=100)
    before = truth()
    assert keys(full.retain(dry_run=True)) == sorted(EXPIRING["project"] + EXPIRING["session"])
    assert truth() == before
    assert len(full.list()) == 15


@pytest.mark.promise("N11")
def test_retention_covers_every_project_and_session_not_only_the_callers(open_memory, clock):
    open_memory(project="other", session="s9").store("other words", key="other")
    open_memory(project="other", session="s9").store("session words", key="theirs", scope="session")
    clock.forward(days=91)
    assert keys(open_memory().retain()) == ["other", "theirs"]


@pytest.mark.promise("N11")
def test_pinned_notes_stay(memory, clock):
    memory.store("pinned words", key="k", pinned=True)
    clock.forward(days=500)
    assert memory.retain() == []


@pytest.mark.promise("N11")
def test_the_days_are_settings_and_zero_means_never(home, open_memory, clock):
    home.mkdir(0o700)
    (home / "config.toml").write_text("[retention]\nproject_days = 0\nsession_days = 3\n")
    memory = open_memory(session="s1")
    memory.store("project words", key="p")
    memory.store("session words", key="s", scope="session")
    clock.forward(days=4)
    assert keys(memory.retain()) == ["s"]
    clock.forward(days=4000)
    assert memory.retain() == []


@pytest.mark.promise("N11")
def test_hand_written_notes_age_by_their_files_date(memory, clock, note_file):
    memory.store("there is a home now", key="first")
    note_file("by-hand").write_text("written by a person\n")
    os.utime(note_file("by-hand"), (clock() - 91 * 86400,) * 2)
    assert keys(memory.retain()) == ["by-hand"]


@pytest.mark.promise("N11")
def test_retaining_nothing_in_no_home_makes_none(memory, home):
    assert memory.retain() == []
    assert not home.exists()


@pytest.mark.promise("N11")
def test_a_clock_set_back_archives_nothing_early(full, clock):
    clock.back(days=3650)
    assert full.retain() == []


# --- archived notes ----------------------------------------------------------------------------------------------------


def file_of(home, part):
    (path,) = (home / "shelf" / "projects" / "demo" / part).glob("*.md")
    return path


@pytest.mark.promise("N11")
def test_the_bytes_of_a_note_that_comes_back_are_those_that_were_archived(archived, home):
    before = file_of(home, "archive").read_bytes()
    archived.get("port")
    assert file_of(home, "notes").read_bytes() == before


@pytest.mark.promise("N11")
@pytest.mark.parametrize("prompt", [None, "harbour words"])
def test_an_explained_briefing_lists_archived_notes_also_with_a_new_index(archived, open_memory, home, prompt):
    archived.close()
    (home / "index.db").unlink()
    (why,) = open_memory().brief(prompt=prompt, explain=True).why
    assert (why.name, why.told, why.reason) == ("project/port", False, "archived: not briefed")


def test_a_version_that_was_read_from_the_archive_can_be_edited_safely(archived):
    note = archived.get("port")
    assert archived.store("The port is 5434.", key="port", expected=note.version).action == "updated"


@pytest.mark.promise("N11")
def test_a_recall_by_keywords_alone_touches_no_file_of_an_archived_note(archived, truth):
    before = truth()
    assert archived.recall("harbour", mode="keyword").hits[0].archived
    assert truth() == before


@pytest.mark.promise("N11")
def test_a_file_that_a_person_edits_in_the_archive_is_read_again(archived, open_memory, home):
    path = file_of(home, "archive")
    path.write_bytes(path.read_bytes().replace(b"5433", b"7777 zebra"))
    for caller in (archived, open_memory()):
        assert [(hit.key, hit.archived) for hit in caller.recall("zebra")] == [("port", True)]


@pytest.mark.promise("N11")
def test_a_file_that_a_person_moves_back_by_hand_is_a_note_again(archived, open_memory, home):
    file_of(home, "archive").rename(home / "shelf" / "projects" / "demo" / "notes" / "port.md")
    for caller in (archived, open_memory()):
        assert [(hit.key, hit.archived) for hit in caller.recall("harbour")] == [("port", False)]
        assert caller.check() == []


@pytest.mark.promise("N11")
def test_a_file_in_the_archive_that_retention_did_not_put_there_is_left_alone(archived, home):
    (home / "shelf" / "projects" / "demo" / "archive" / "mine.md").write_text("harbour words of my own")
    (home / "shelf" / "projects" / "demo" / "archive" / "link.md").symlink_to("mine.md")
    assert [hit.key for hit in archived.recall("harbour")] == ["port"]
    assert archived.check() == []
    assert keys(archived.list(archived=True)) == ["port"]


@pytest.mark.promise("N11")
def test_a_note_without_an_id_is_kept_by_its_use_and_comes_back_by_it(memory, clock, note_file):
    memory.store("there is a home now", key="first", type="user")
    note_file("by-hand").write_text("harbour words of a person\n")
    os.utime(note_file("by-hand"), (clock() - 80 * 86400,) * 2)
    memory.recall("harbour")
    clock.forward(days=80)
    assert memory.retain() == []
    clock.forward(days=11)
    assert keys(memory.retain()) == ["by-hand"]
    clock.forward(days=1)
    assert memory.recall("harbour").hits[0].archived
    assert memory.retain() == []
    assert keys(memory.list()) == ["by-hand", "first"]


@pytest.mark.promise("N11")
def test_a_ledger_that_cannot_be_asked_archives_nothing(memory, clock, monkeypatch):
    memory.store("harbour words", key="k")
    clock.forward(days=91)

    def busy(*_, **__):
        raise Busy("another process holds it", "Try again")

    monkeypatch.setattr(memory._context.ledger.database, "read", busy)
    with pytest.raises(Busy):
        memory.retain()
    assert keys(memory.list()) == ["k"]


@pytest.mark.promise("N9", "N11")
def test_a_count_that_fails_never_fails_a_read(archived, monkeypatch):
    def busy(*_):
        raise Busy("another process holds it", "Try again")

    monkeypatch.setattr(archived._context.ledger.usage, "record_use", busy)
    assert archived.get("port").text == archived.get("port").text == "The harbour port is 5433."


@pytest.mark.promise("N11")
def test_a_home_that_cannot_be_written_still_reads_archived_notes(archived, monkeypatch):
    monkeypatch.setattr(archived._context.store, "restore_note", lambda *_: (_ for _ in ()).throw(PermissionError(13, "no")))
    for _ in range(2):
        assert archived.get("port").archived
    assert archived.recall("harbour").hits[0].archived


@pytest.mark.promise("N11")
def test_an_agent_does_not_bring_back_what_a_person_took_away_by_its_source(open_memory, clock):
    person, agent = open_memory(origin="user"), open_memory(origin="agent")
    agent.store("harbour words", key="k", made_from="https://evil.example/page", origin="web")
    clock.forward(days=91)
    person.retain()
    swept = person.forget_source("https://evil.example/page")
    assert [one.key for one in swept.binned] == ["k"]
    assert len(agent.recall("harbour")) == 0
    with pytest.raises(NotFound, match="to the trash"):
        agent.get("k")


@pytest.mark.promise("N11")
def test_two_processes_that_read_an_archived_note_at_once_both_get_it(archived, open_memory):
    from threading import Barrier, Thread

    others, answers, start = [open_memory() for _ in range(4)], [], Barrier(4)

    def read(caller):
        start.wait()
        answers.append(caller.get("port").text)

    threads = [Thread(target=read, args=(caller,)) for caller in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["The harbour port is 5433."] * 4
    assert keys(archived.list()) == ["port"] and archived.list(archived=True) == []


def test_retain_says_what_it_did_and_why(archived, home, capsys):
    from holdfast.cli import main

    assert main(["--home", str(home), "--project", "demo", "list", "--archived"]) == 0
    assert "(archived) The harbour port" in capsys.readouterr().out
    assert main(["--home", str(home), "--project", "demo", "recall", "harbour"]) == 0
    assert "archived" in capsys.readouterr().out.splitlines()[0]
    assert main(["--home", str(home), "--project", "demo", "status"]) == 0
    assert "archived  1 note: not updated or used for 90 days (project)" in capsys.readouterr().out
    assert main(["--home", str(home), "--project", "demo", "doctor"]) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert "1 note archived: not updated or used for 90 days (project)" in told
