"""Retention: what was not touched for its scope's time is archived, never deleted."""

from __future__ import annotations

import os

import pytest

from holdfast import NotFound


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


def test_whoever_asks_for_an_archived_note_is_told_where_it_is(memory, clock):
    memory.store("The port is 5433.", key="port")
    clock.forward(days=91)
    memory.retain()
    with pytest.raises(NotFound, match="in the archive since") as caught:
        memory.get("port")
    assert caught.value.fix == "`holdfast restore port` brings it back"
    assert [scope.archived for scope in memory.status().scopes if scope.scope == "projects/demo"] == [1]


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
def test_what_is_archived_is_hidden_and_can_be_restored(memory, clock, open_memory, home):
    memory.store("old harbour words", key="k")
    memory.store("harbour words", key="k")
    before = memory.get("k").replace(version="", lines=()), memory.history("k")
    clock.forward(days=91)
    memory.retain()
    for caller in (memory, open_memory()):
        assert len(caller.recall("harbour")) == 0
        assert caller.list() == []
        assert caller.brief().text == ""
        with pytest.raises(NotFound):
            caller.get("k")
    assert len(os.listdir(home / "shelf" / "projects" / "demo" / "archive")) == 1
    memory.restore("k")
    assert (memory.get("k").replace(version="", lines=()), memory.history("k")) == before
    assert len(memory.recall("harbour")) == 1


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
    memory.retain()
    assert memory.get("k").text == "harbour words"


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
