"""Notes with many versions: old versions move to history files and stay readable; of every store."""

from __future__ import annotations

import pytest

from holdfast import NotFound, Purged
from holdfast.formats import history_file
from holdfast.formats.versions import parse_note
from holdfast.models import Scope
from holdfast.store import note_history

SCOPE = Scope("project", "demo")
MANY = 57


def write_versions(memory, clock, count=MANY, key="door", first=1):
    """Store versions one minute apart; version N says colourN."""
    for number in range(first, first + count):
        memory.store(f"the door has colour{number}", key=key, pinned=False)
        clock.seconds += 60


@pytest.fixture
def painted(any_memory, clock):
    write_versions(any_memory, clock)
    return any_memory


def read_file(memory, key="door"):
    content = memory._context.store.read_note(SCOPE, key)
    return parse_note(content.data, content.modified)


def history_names(memory):
    return sorted(entry.name for entry in memory._context.store.entries(SCOPE.folder, "history"))


def test_a_note_file_keeps_the_newest_versions_and_all_stay_readable(painted):
    note = read_file(painted)
    inline = note.past_count - note.header.older.versions
    assert 1 <= inline <= painted._context.config.inline_versions and note.past_count == MANY - 1
    assert history_names(painted) == [f"{note.header.id}-00000001.md"]
    texts = [version.text for version in painted.history("door")]
    assert texts == [f"the door has colour{number}" for number in range(MANY, 0, -1)]
    assert painted.get("door").versions == MANY


def test_what_was_true_then_is_answered_from_the_history(painted):
    versions = painted.history("door")
    for number in (1, 2, 20, 37, MANY):
        then = versions[MANY - number]
        note = painted.get("door", as_of=then.valid_from)
        assert note.text == f"the door has colour{number}"
        lines = painted.read(note.path, start=note.lines[0], lines=1)
        assert lines.text == note.text, note.path
        found = painted.recall(f"colour{number}", as_of=then.valid_from)
        assert [hit.text for hit in found] == [note.text]
        path, _, at = found[0].citation.rpartition(":")
        assert painted.read(path, start=int(at.partition("-")[0]), lines=1).text == note.text
    assert painted.get("door", known_at=versions[-3].recorded).text == "the door has colour3"
    assert ("/history/" in painted.get("door", as_of=versions[-1].valid_from).path) is True
    with pytest.raises(NotFound):
        painted.get("door", as_of="2020-01-01")


def test_the_index_built_again_from_the_store_has_every_version(painted):
    before = painted._context.index.count_all()
    painted.reindex()
    assert painted._context.index.count_all().passages == before.passages == MANY
    assert [hit.text for hit in painted.recall("colour5", as_of=painted.history("door")[-5].valid_from)] == [
        "the door has colour5"
    ]


def test_the_history_follows_its_note_into_the_trash_and_back(painted, clock):
    painted.forget("door")
    painted.store("another door", key="door")
    assert len(painted.history("door")) == 1
    painted.restore("door", under="old-door")
    assert len(painted.history("old-door")) == MANY
    write_versions(painted, clock, 30, key="old-door", first=MANY + 1)
    texts = [version.text for version in painted.history("old-door")]
    assert texts == [f"the door has colour{number}" for number in range(MANY + 30, 0, -1)]
    then = painted.history("old-door")[-4].valid_from
    assert [hit.text for hit in painted.recall("colour4", as_of=then)] == ["the door has colour4"]


def test_an_emptied_trash_takes_the_history_with_it(painted, person, clock):
    painted.forget("door")
    clock.seconds += 86400 * 40
    person.retain()
    assert history_names(painted) == []


def test_an_archived_note_keeps_its_history(painted, person, clock):
    clock.seconds += 86400 * 200
    person.retain()
    assert painted._context.store.read_note(SCOPE, "door") is None
    assert len(person.history("door")) == MANY
    write_versions(painted, clock, 3, first=MANY + 1)
    assert len(painted.history("door")) == MANY + 3


def test_the_history_of_a_forgotten_note_cannot_be_read(painted):
    path = painted.get("door", as_of=painted.history("door")[-1].valid_from).path
    assert "/history/" in path and painted.read(path).exists
    painted.forget("door")
    assert not painted.read(path).exists
    painted.restore("door")
    assert "colour1" in painted.read(path).text


def test_a_history_file_that_came_back_is_not_shown_where_an_agent_purged_its_note(painted):
    store, (name,) = painted._context.store, history_names(painted)
    data = store.read_file(SCOPE.folder, "history", name).data
    assert painted._context.origin == "agent" and painted.purge("door").state == "done"
    store.write_history(SCOPE, name, data, None, note=("door.md", None))  # from a backup
    with pytest.raises(Purged):
        painted.read(f"{SCOPE.folder}/history/{name}")


def test_an_export_has_every_version(painted):
    (row,) = [row for row in painted.export() if row["key"] == "door"]
    assert len(row["versions"]) == MANY and row["versions"][-1]["text"] == "the door has colour1"


def test_a_purged_note_leaves_no_byte_of_its_history(painted, person, store, home):
    receipt = person.purge("door")
    assert receipt.state == "done"
    assert history_names(painted) == []
    assert any("/history/" in path for path in receipt.removed)
    if store == "folder":
        assert not any(b"colour7" in path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert not painted.recall("colour7", mode="keyword")


def test_a_line_of_a_purged_history_is_refused_from_then_on(any_memory, person, clock):
    line = "the treasure is buried below the old lighthouse"
    any_memory.store(f"{line}\n\nand more", key="door")
    write_versions(any_memory, clock, 40, first=2)
    assert line.encode() not in any_memory._context.store.read_note(SCOPE, "door").data
    person.purge("door")
    with pytest.raises(Purged):
        any_memory.store(f"As I said: \n{line}\n", key="again")


def test_a_purged_text_is_removed_from_a_history_file(painted, person, store, home):
    receipt = person.purge(text="the door has colour7")
    assert receipt.state == "done", receipt
    texts = [version.text for version in painted.history("door")]
    assert len(texts) == MANY and texts[-7] == "[purged]" and texts[-6] == "the door has colour6"
    then = painted.history("door")[-7].valid_from
    assert not [hit for hit in painted.recall("colour7", as_of=then) if "colour7" in hit.text]
    if store == "folder":
        assert not any(b"has colour7\n" in path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_a_purge_of_the_newest_texts_leaves_the_note_as_the_history_has_it(any_memory, person, clock):
    write_versions(any_memory, clock, 30, key="k")
    note = read_file(any_memory, "k")
    for number in range(note.header.older.versions + 1, 31):
        person.purge(text=f"the door has colour{number}")
    assert any_memory.get("k").text == f"the door has colour{note.header.older.versions}"
    assert len(any_memory.history("k")) == note.header.older.versions


def test_a_write_that_died_after_the_history_file_loses_and_doubles_nothing(any_memory, clock, monkeypatch):
    write_versions(any_memory, clock, 21)
    kind = type(any_memory._context.store)
    with monkeypatch.context() as patch:
        patch.setattr(kind, "write_note", _die)
        patch.setattr(kind, "write_notes", _die)
        with pytest.raises(Died):
            any_memory.store("the door has colour22", key="door")
    assert history_names(any_memory), "the history file was written first"
    assert len(any_memory.history("door")) == 21
    write_versions(any_memory, clock, 36, first=22)
    texts = [version.text for version in any_memory.history("door")]
    assert texts == [f"the door has colour{number}" for number in range(57, 0, -1)]


class Died(Exception):
    """The process ends here."""


def _die(*_args, **_values):
    raise Died


def test_a_copied_note_goes_on_in_a_history_of_its_own(painted, clock):
    store = painted._context.store
    store.write_note(SCOPE, "copy", store.read_note(SCOPE, "door").data, None)
    write_versions(painted, clock, 40, first=MANY + 1)
    for number in range(1, 41):
        painted.store(f"the copy says word{number}", key="copy")
    door = [version.text for version in painted.history("door")]
    copy = [version.text for version in painted.history("copy")]
    assert door == [f"the door has colour{number}" for number in range(MANY + 40, 0, -1)]
    assert copy == [f"the copy says word{number}" for number in range(40, 0, -1)] + door[40:]
    id = read_file(painted).header.id
    assert all(history_file.belongs_to(name, id) for name in history_names(painted))


def test_large_versions_leave_the_note_file_early_and_fill_several_files(any_memory, clock):
    for number in range(12):
        any_memory.store(f"# Version {number}\n" + f"line {number}\n" * 7000, key="large")
        clock.seconds += 60
    note = read_file(any_memory, "large")
    assert len(note.data) < 256 * 1024 + 128 * 1024
    assert len(history_names(any_memory)) > 1
    assert [version.text.split("\n")[0] for version in any_memory.history("large")] == [
        f"# Version {n}" for n in range(11, -1, -1)
    ]
    for name in history_names(any_memory):
        data = any_memory._context.store.read_file(SCOPE.folder, "history", name).data
        assert history_file.render(history_file.parse(data, name)) == data


def test_two_callers_of_one_key_lose_no_version(open_any, clock):
    one, other = open_any(), open_any()
    for number in range(1, 61):
        (one, other)[number % 2].store(f"the door has colour{number}", key="door")
        clock.seconds += 60
    assert [version.text for version in one.history("door")] == [f"the door has colour{n}" for n in range(60, 0, -1)]
    then = one.history("door")[-9].valid_from
    assert [hit.text for hit in other.recall("colour9", as_of=then)] == ["the door has colour9"]


def test_a_stale_writer_does_not_shorten_the_history(any_memory, clock):
    write_versions(any_memory, clock, 21)
    context = any_memory._context
    content = context.store.read_note(SCOPE, "door")
    stale = parse_note(content.data, content.modified)
    write_versions(any_memory, clock, 30, first=22)
    _, writes = note_history.split_off(context.store, SCOPE.folder, "door", stale, most_versions=10, most_bytes=10**6)
    assert writes == []  # these versions are in the history already
    assert len(any_memory.history("door")) == 51


def test_doctor_reports_missing_versions_and_files_without_a_note(painted, person):
    assert not [one for one in person.check() if one.code == "history"]
    (name,) = history_names(painted)
    store = painted._context.store
    content = store.read_file(SCOPE.folder, "history", name)
    store.replace_file(SCOPE, "history", name, content.data.split(b"## ", 2)[0] + b"## ", content.file_id)
    assert "are missing" in "".join([one.message for one in person.check() if one.code == "history"])
    store.erase_file(SCOPE, "notes", "door.md")
    assert "belongs to no note" in "".join([one.message for one in person.check() if one.code == "history"])


def test_a_note_without_its_history_files_is_still_read_and_indexed(painted, person, clock):
    (name,) = history_names(painted)
    store = painted._context.store
    store.erase_file(SCOPE, "history", name)
    content = store.read_note(SCOPE, "door")
    store.replace_file(SCOPE, "notes", "door.md", content.data.replace(b"colour57", b"varnish"), content.file_id)
    assert [hit.text for hit in painted.recall("varnish")] == ["the door has varnish"]
    person.reindex()
    assert [hit.text for hit in painted.recall("varnish")] == ["the door has varnish"]
    write_versions(painted, clock, 30, first=MANY + 1)
    texts = [version.text for version in painted.history("door")]
    assert (
        texts[:30] == [f"the door has colour{number}" for number in range(MANY + 30, MANY, -1)]
        and texts[30] == "the door has varnish"
    )


def test_trace_shows_every_version(painted):
    assert len(painted.trace("door").versions) == MANY
