"""Check and status: what is wrong with the home and what mends it; where memory lives and how much there is."""

from __future__ import annotations

import os
import shlex
import subprocess

import pytest


def found(memory, code):
    return [problem for problem in memory.check() if problem.code == code]


@pytest.fixture
def sound(memory):
    memory.store("the harbour opens at six", key="opening")
    memory.store("the harbour opens at seven", key="opening")
    memory.fact("Harbour", "state", "open", on="2026-01-01")
    memory.files.create("page.md", "# Page\ntext\n")
    memory.forget("opening")
    memory.restore("opening")
    return memory


# --- check (D1) -------------------------------------------------------------------------------------------------------


@pytest.mark.promise("D1")
def test_a_sound_home_has_no_problem(sound, open_memory):
    assert sound.check() == []
    assert open_memory().check() == []


@pytest.mark.promise("D1")
def test_a_home_that_is_not_there_yet_is_no_problem_and_is_not_made(memory, home):
    assert memory.check() == []
    assert not home.exists()


@pytest.mark.promise("D1")
def test_a_home_that_others_can_read_is_reported_with_the_command_that_mends_it(sound, home):
    home.chmod(0o755)
    (problem,) = found(sound, "permissions")
    subprocess.run(problem.fix, shell=True, check=True)
    assert sound.check() == []


@pytest.mark.promise("D1")
@pytest.mark.parametrize(
    ("name", "data", "what"),
    [
        ("Bad Key.md", b"text", "key"),
        ("open.md", b"---\ntype: user\ntext", "closed"),
        ("type.md", b"---\ntype: odd\n---\ntext", "type"),
        ("date.md", b"---\nupdated: soon\n---\ntext", "updated"),
        ("yaml.md", b"---\ntags: [a, b\n---\ntext", "tags"),
        ("latin.md", b"caf\xe9", "UTF-8"),
        ("empty.md", b"", "empty"),
        ("blank.md", b"---\ntype: user\n---\n\n", "empty"),
        ("note.txt", b"text", "markdown"),
    ],
)
def test_a_note_that_does_not_parse_is_reported_with_its_path_and_a_fix(sound, note_file, name, data, what):
    path = note_file("x").parent / name
    path.write_bytes(data)
    (problem,) = found(sound, "file")
    assert problem.path == f"projects/demo/notes/{name}"
    assert what in problem.message
    assert shlex.quote(str(path)) in problem.fix


@pytest.mark.promise("D1")
@pytest.mark.parametrize("name", ["Bad Key.md", "Bad Key.md;touch pwned", "$(touch pwned).md", "-rf.md", "new\nline.md"])
def test_the_fix_for_a_bad_name_renames_exactly_that_file_whatever_it_is_called(sound, note_file, tmp_path, name):
    path = note_file("x").parent / name
    path.write_text("harbour words")
    for problem in found(sound, "file"):
        if problem.fix.startswith("mv "):
            subprocess.run(problem.fix, shell=True, check=True, cwd=tmp_path)
            assert not path.exists()
    assert not (tmp_path / "pwned").exists()
    assert sorted(file.read_text() for file in path.parent.iterdir() if "harbour words" in file.read_text()) == [
        "harbour words"
    ]


@pytest.mark.promise("D1")
def test_a_malformed_note_is_still_a_note_that_can_be_found(sound, note_file):
    note_file("odd").write_text("---\ntype: odd\ntags: {a: 1}\nupdated: soon\n---\nlighthouse\n")
    assert [hit.key for hit in sound.recall("lighthouse")] == ["odd"]
    assert sound.get("odd").text == "lighthouse"


@pytest.mark.promise("D1")
@pytest.mark.parametrize("plant", ["link", "fifo", "folder"])
def test_what_is_no_plain_file_among_the_notes_is_reported(sound, note_file, tmp_path, plant):
    path = note_file("planted")
    {"link": lambda: path.symlink_to(tmp_path), "fifo": lambda: os.mkfifo(path), "folder": path.mkdir}[plant]()
    (problem,) = found(sound, "file")
    assert problem.path == "projects/demo/notes/planted.md"
    assert problem.fix


@pytest.mark.promise("D1")
def test_a_damaged_index_is_reported_once_and_mended_on_the_way(sound, home, open_memory):
    sound.close()
    for name in ("index.db-wal", "index.db-shm"):
        if (home / name).exists():
            (home / name).unlink()
    data = bytearray((home / "index.db").read_bytes())
    data[len(data) // 2 :] = os.urandom(len(data) - len(data) // 2)
    (home / "index.db").write_bytes(data)
    memory = open_memory()
    memory.check()
    assert memory.check() == []
    assert len(memory.recall("harbour")) == 2


@pytest.mark.promise("D1")
def test_an_unknown_setting_and_low_disk_and_each_problem_has_a_fix(sound, home, open_memory, monkeypatch):
    (home / "config.toml").write_text("[memory]\nenabeld = true\n")
    full = os.statvfs_result((4096, 4096, 100, 1, 1, 100, 50, 50, 0, 255, 0))
    monkeypatch.setattr(os, "statvfs", lambda path: full)
    problems = open_memory().check()
    assert {problem.code for problem in problems} == {"unknown_setting", "disk"}
    assert "enabeld" in next(problem.message for problem in problems if problem.code == "unknown_setting")
    assert all(problem.fix and problem.message for problem in problems)


@pytest.mark.promise("D1")
def test_a_ledger_that_is_no_ledger_is_reported(sound, home, open_memory):
    sound.close()
    for name in os.listdir(home):
        if name.startswith("ledger.db"):
            os.unlink(home / name)
    (home / "ledger.db").write_bytes(b"garbage" * 1000)
    memory = open_memory()
    memory.recall("harbour")
    assert found(memory, "ledger")


@pytest.mark.promise("D1")
def test_problems_of_every_scope_are_reported_not_only_of_the_callers(open_memory, home):
    open_memory(project="other").store("text", key="k")
    (home / "shelf" / "projects" / "other" / "notes" / "Bad Key.md").write_text("text")
    assert len(found(open_memory(), "file")) == 1


@pytest.mark.promise("D1")
@pytest.mark.parametrize(
    "stray", ["projects/stray.txt", "projects/.hidden/", "projects/not an id/", "sessions", "stray.md", "agents/x"]
)
def test_something_stray_where_scopes_live_breaks_nothing(sound, home, open_memory, stray):
    path = home / "shelf" / stray
    path.parent.mkdir(exist_ok=True)
    path.mkdir() if stray.endswith("/") else path.write_text("x")
    memory = open_memory()
    memory.check()
    assert len(memory.recall("harbour")) == 2
    assert memory.retain() == []
    memory.reindex()
    assert memory.status().home == str(home)
    assert len(memory.recall("harbour")) == 2


@pytest.mark.promise("D1")
def test_problems_are_plain_data(sound, note_file):
    note_file("Bad").write_text("text")
    assert set(sound.check()[0].as_dict()) == {"code", "message", "fix", "path"}


# --- status (D2) ------------------------------------------------------------------------------------------------------


@pytest.mark.promise("D2")
def test_status_says_where_memory_for_this_folder_lives_and_who_asks(open_memory, home):
    status = open_memory(session="s1", agent="a1").status()
    assert status.home == str(home)
    assert status.shelf == str(home / "shelf")
    assert (status.project, status.session, status.agent, status.enabled) == ("demo", "s1", "a1", True)
    assert not home.exists()


@pytest.mark.promise("D2")
def test_status_counts_notes_files_and_bytes_and_names_the_last_write(open_memory, clock, home):
    memory = open_memory(session="s1")
    memory.store("one", key="a")
    clock.forward(days=2)
    memory.store("two", key="b")
    memory.store("three", key="c", scope="session")
    memory.files.create("page.md", "text")
    open_memory(project="other").store("four", key="d")
    scopes = {scope.scope: scope for scope in memory.status().scopes}
    mine = scopes["projects/demo"]
    assert (mine.notes, mine.files, mine.visible) == (2, 1, True)
    assert mine.bytes == sum(
        path.stat().st_size for part in ("notes", "files") for path in (home / "shelf/projects/demo" / part).iterdir()
    )
    assert mine.last_write == "2026-05-03T12:00:00Z"
    assert (scopes["sessions/s1"].notes, scopes["sessions/s1"].visible) == (1, True)
    assert (scopes["projects/other"].notes, scopes["projects/other"].visible) == (1, False)


@pytest.mark.promise("D2")
def test_status_says_what_would_be_briefed(sound):
    status, brief = sound.status(), sound.brief()
    assert status.briefed == brief.shown
    assert status.briefing_chars == len(brief.text)
    assert status.index_bytes > 0
    assert (status.passages, status.facts) == (4, 1)


@pytest.mark.promise("D2")
def test_status_is_plain_data(sound):
    import json

    assert json.loads(json.dumps(sound.status().as_dict()))["project"] == "demo"
