"""Scaffolds: trees of template files, created only on request, only where they are missing; nothing is overwritten."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast import HoldfastError, UsageError
from holdfast.formats import facts
from holdfast.verbs import scaffold
from holdfast.verbs.read import WIKI_LINKS

TEMPLATES = Path(holdfast.__file__).parent / "verbs" / "scaffold"
TREES = {
    "wiki": ["memory/data/", "memory/index.md", "memory/memories/", "memory/system/definition.md"],
    "continuity": [
        "HEARTBEAT.md", "memory/CAPABILITIES.md", "memory/CORE_MEMORY.md", "memory/GOALS.md", "memory/OPEN_LOOPS.md",
        "memory/RUNTIME_REALITY.md", "memory/WORLD_MODEL.md", "memory/research/", "operator-inbox.jsonl",
        "operator-outbox.jsonl",
    ],
}  # fmt: skip
FILES = [(name, path) for name, paths in TREES.items() for path in paths if not path.endswith("/")]


@pytest.fixture
def tree(home):
    return home / "shelf" / "projects" / "demo" / "files"


def marks(folder):
    """Return a state that any change below the folder changes."""
    return {path: (info.st_ino, info.st_ctime_ns, info.st_size) for path in folder.rglob("*") if (info := path.lstat())}


# --- what is created --------------------------------------------------------------------------------------------------


@pytest.mark.promise("F6")
@pytest.mark.parametrize("name", TREES)
def test_a_scaffold_is_exactly_these_files_and_folders_as_shipped(memory, tree, name, no_temp_left):
    made = memory.scaffold(name)
    assert sorted(made.created) == TREES[name]
    assert (made.kept, made.scope.folder) == ((), "projects/demo")
    there = [path for path in tree.rglob("*") if path.is_file() or not any(path.iterdir())]
    assert sorted(path.relative_to(tree).as_posix() + "/" * path.is_dir() for path in there) == TREES[name]
    for path in there:
        if path.is_file():
            assert path.read_bytes() == (TEMPLATES / name / path.relative_to(tree)).read_bytes()


def test_the_scaffolds_are_the_folders_that_are_shipped():
    assert scaffold.list_scaffolds() == sorted(TREES)


@pytest.mark.promise("F6")
def test_both_scaffolds_stand_side_by_side(memory, tree):
    for name in TREES:
        memory.scaffold(name)
    assert memory.scaffold("wiki").created == memory.scaffold("continuity").created == ()


@pytest.mark.promise("F6")
@pytest.mark.parametrize("scope", ["global", "project", "session", "agent"])
def test_it_is_made_in_the_scope_that_was_named(open_memory, home, scope):
    made = open_memory(session="s1", agent="a1").scaffold("wiki", scope=scope)
    assert made.scope.kind == scope
    assert (home / "shelf" / made.scope.folder / "files" / "memory" / "index.md").exists()
    assert len(list((home / "shelf").rglob("definition.md"))) == 1


@pytest.mark.promise("F6")
def test_without_a_scope_it_is_the_agents_and_without_an_agent_the_projects(open_memory):
    assert open_memory(agent="a1").scaffold("continuity").scope.folder == "agents/a1"
    assert open_memory().scaffold("continuity").scope.folder == "projects/demo"


@pytest.mark.promise("F6")
def test_what_is_made_can_be_found_when_the_call_returns(memory):
    memory.scaffold("wiki")
    assert "projects/demo/files/memory/system/definition.md" in {one.path for one in memory.search("superseded")}


@pytest.mark.promise("F6")
def test_the_index_of_the_wiki_links_its_parts(memory, tree):
    memory.scaffold("wiki")
    page = (tree / "memory/index.md").read_text()
    links = re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", page, re.M)
    assert sorted(links) == ["data/", "memories/", "system/definition.md"]
    assert all((tree / "memory" / link).exists() for link in links)
    assert [line for line in page.splitlines() if line.startswith("- ")] == list(WIKI_LINKS)


@pytest.mark.promise("F6")
@pytest.mark.parametrize(
    "rule",
    [
        "Every folder has its own `index.md`", "about 20 entries", "entity folders", "smallest existing file",
        "nearest index true", "Read before you answer from memory",
    ],
)  # fmt: skip
def test_the_wiki_says_how_it_is_kept(rule):
    assert rule in (TEMPLATES / "wiki/memory/system/definition.md").read_text()


# --- existing files stay ----------------------------------------------------------------------------------------------


@pytest.mark.promise("F6")
@pytest.mark.parametrize(("name", "path"), FILES)
@pytest.mark.parametrize("data", [b"", b"mine", b"\xff\xfe not text"])
def test_a_file_that_is_there_is_never_touched(memory, tree, name, path, data):
    (tree / path).parent.mkdir(parents=True)
    (tree / path).write_bytes(data)
    before = marks(tree)[tree / path]
    made = memory.scaffold(name)
    assert made.kept == (path,)
    assert sorted([*made.created, path]) == TREES[name]
    assert (tree / path).read_bytes() == data
    assert marks(tree)[tree / path] == before


@pytest.mark.promise("F6")
def test_a_second_time_changes_nothing_at_all(memory, tree):
    memory.scaffold("continuity")
    before = marks(tree)
    again = memory.scaffold("continuity")
    assert (again.created, sorted(again.kept)) == ((), TREES["continuity"])
    assert marks(tree) == before


@pytest.mark.promise("F6")
def test_what_was_deleted_comes_back_and_nothing_else_changes(memory, tree):
    memory.scaffold("continuity")
    (tree / "memory" / "GOALS.md").unlink()
    (tree / "HEARTBEAT.md").write_text("mine")
    assert memory.scaffold("continuity").created == ("memory/GOALS.md",)
    assert (tree / "HEARTBEAT.md").read_text() == "mine"


@pytest.mark.promise("F6", "promise-5")
def test_a_link_in_the_place_of_a_file_stays_and_is_not_followed(memory, tree, tmp_path):
    tree.mkdir(parents=True)
    (tmp_path / "outside.md").write_text("outside")
    (tree / "HEARTBEAT.md").symlink_to(tmp_path / "outside.md")
    (tree / "operator-inbox.jsonl").symlink_to(tmp_path / "nowhere.jsonl")
    assert {"HEARTBEAT.md", "operator-inbox.jsonl"} == set(memory.scaffold("continuity").kept)
    assert (tmp_path / "outside.md").read_text() == "outside"
    assert not (tmp_path / "nowhere.jsonl").exists()


@pytest.mark.promise("F6", "promise-5")
def test_nothing_is_made_through_a_folder_that_is_a_link(memory, tree, tmp_path):
    tree.mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tree / "memory").symlink_to(tmp_path / "outside")
    with pytest.raises(HoldfastError):
        memory.scaffold("wiki")
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.promise("F6")
@pytest.mark.parametrize("kind", ["file", "pipe"])
def test_something_else_in_the_place_of_a_folder_is_a_named_error_and_stays(memory, tree, kind):
    (tree / "memory").mkdir(parents=True)
    place = tree / "memory" / "data"
    place.write_text("mine") if kind == "file" else os.mkfifo(place)
    with pytest.raises(HoldfastError, match="data"):
        memory.scaffold("wiki")
    assert place.is_file() or place.is_fifo()


CROWD = """
import json, sys
from holdfast import Memory
with Memory(sys.argv[1], project="demo") as memory:
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps([path for name in ("continuity", "wiki") for path in memory.scaffold(name).created]), flush=True)
"""


@pytest.mark.promise("F6", "promise-2")
def test_of_many_processes_at_once_each_file_is_made_by_exactly_one(home, tree, tmp_path, no_temp_left):
    command = [sys.executable, "-c", CROWD, str(home)]
    crowd = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path) for _ in range(6)
    ]
    for one in crowd:
        assert one.stdout.readline() == "ready\n"
    for one in crowd:
        one.stdin.write("go\n")
        one.stdin.flush()
    made = [json.loads(one.communicate(timeout=60)[0]) for one in crowd]
    assert [one.returncode for one in crowd] == [0] * 6
    files = sorted(path for paths in made for path in paths if not path.endswith("/"))
    assert files == sorted(path for _, path in FILES)
    for name, path in FILES:
        assert (tree / path).read_bytes() == (TEMPLATES / name / path).read_bytes()


EDITOR = """
import os, sys
print("ready", flush=True)
sys.stdin.readline()
for path in sys.argv[2:]:
    try:
        fd = os.open(os.path.join(sys.argv[1], path), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        continue
    os.write(fd, b"written by a person")
    os.close(fd)
"""


@pytest.mark.promise("F6")
@pytest.mark.parametrize("turn", range(3))
def test_a_person_who_writes_at_the_same_moment_loses_nothing(memory, tree, turn):
    """The editor makes its files as editors do, without asking our lock; whoever came first keeps the place."""
    (tree / "memory").mkdir(parents=True)
    paths = [path for name, path in FILES if name == "continuity"]
    command = [sys.executable, "-S", "-c", EDITOR, str(tree), *reversed(paths)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as person:
        assert person.stdout.readline() == "ready\n"
        person.stdin.write("go\n")
        person.stdin.flush()
        created = memory.scaffold("continuity").created
    for path in paths:
        template = (TEMPLATES / "continuity" / path).read_bytes()
        assert (tree / path).read_bytes() == (template if path in created else b"written by a person")


# --- opt-in -----------------------------------------------------------------------------------------------------------


@pytest.mark.promise("F6")
def test_nothing_is_scaffolded_unless_somebody_asks(open_memory, home):
    memory = open_memory(agent="a1", session="s1")
    memory.store("harbour", key="k")
    memory.files.create("page.md", "a page")
    before = sorted(home.glob("shelf/**/files/**/*"))
    for verb in (memory.boot, memory.brief, memory.status, memory.check, memory.reindex):
        verb()
    assert sorted(home.glob("shelf/**/files/**/*")) == before


@pytest.mark.promise("F6")
def test_boot_in_an_empty_home_makes_no_home(memory, home):
    assert memory.boot().text == ""
    assert not home.exists()


@pytest.mark.promise("F6")
def test_what_an_agent_declares_in_its_settings_is_made_at_its_first_boot(home, open_memory, monkeypatch):
    monkeypatch.setenv("HOLDFAST_SCAFFOLDS", "continuity, wiki")
    memory = open_memory(agent="a1")
    assert "Heartbeat" in memory.boot().text
    assert (home / "shelf/agents/a1/files/memory/index.md").exists()
    assert memory.scaffold("wiki").created == ()


@pytest.mark.promise("F6")
def test_what_a_client_declares_is_made_at_its_first_boot(open_memory, home):
    memory = open_memory()
    memory.boot(scaffolds=("wiki",))
    assert (home / "shelf/projects/demo/files/memory/index.md").exists()
    assert not (home / "shelf/projects/demo/files/HEARTBEAT.md").exists()


@pytest.mark.promise("F6")
def test_a_declared_scaffold_that_is_not_known_is_an_error_and_makes_nothing(memory, home, monkeypatch, open_memory):
    with pytest.raises(UsageError, match="unknown scaffold"):
        memory.boot(scaffolds=["wiki", "bogus"])
    monkeypatch.setenv("HOLDFAST_SCAFFOLDS", "bogus")
    with pytest.raises(UsageError, match="unknown scaffold"):
        open_memory().boot()
    assert not home.exists()


@pytest.mark.parametrize("name", ["", ".", "..", "../wiki", "wiki/memory", "__pycache__", "Wiki", "/etc", "wiki\0", 5, None])
def test_a_name_that_is_none_is_refused_and_makes_nothing(memory, home, name):
    with pytest.raises(UsageError) as raised:
        memory.scaffold(name)
    assert raised.value.fix == "Use one of: continuity, wiki"
    assert not home.exists()


@pytest.mark.promise("F6")
def test_no_client_and_no_agent_is_known_by_name_here():
    """A capability is declared by whoever has it: nothing here asks who that is."""
    from holdfast import clients

    texts = [path.read_text(encoding="utf-8") for path in TEMPLATES.rglob("*") if path.suffix in (".py", ".md")]
    words = "\n".join(texts).lower()
    assert [name for name in clients.names() if len(name) > 4 and name in words] == []


# --- the templates ----------------------------------------------------------------------------------------------------


@pytest.mark.promise("F6")
def test_the_heartbeat_is_under_40_lines():
    assert len((TEMPLATES / "continuity/HEARTBEAT.md").read_text().splitlines()) < 40


@pytest.mark.parametrize(("name", "path"), [(name, path) for name, path in FILES if path.endswith(".md")])
def test_a_template_has_headings_is_short_and_states_no_fact_of_its_own(name, path):
    text = (TEMPLATES / name / path).read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert "\n## " in text
    assert text.isascii()
    assert len(text.splitlines()) < 40
    assert facts.find_fact_lines(text) == [], "an example would be told as a fact"


@pytest.mark.parametrize("path", [path for name, path in FILES if name == "continuity" and path.startswith("memory/")])
def test_each_heading_of_a_continuity_page_has_one_example_and_the_dated_ones_are_real_facts(path):
    text = (TEMPLATES / "continuity" / path).read_text(encoding="utf-8")
    sections = text.split("\n## ")[1:]
    for section in sections:
        (example,) = [line for line in section.splitlines() if line.startswith("<!-- e.g. ")]
        line = example.removeprefix("<!-- e.g. ").removesuffix(" -->")
        assert line.startswith("- ")
        assert facts.find_fact_lines(line) or "[20" not in line, line
    assert any(facts.find_fact_lines(part.partition("<!-- e.g. ")[2].partition(" -->")[0]) for part in sections)


def test_doctor_finds_nothing_wrong_with_fresh_scaffolds(memory):
    for name in TREES:
        memory.scaffold(name)
    assert memory.check() == []
    assert memory.facts() == []


# --- on the command line ----------------------------------------------------------------------------------------------


@pytest.fixture
def program(home, tmp_path):
    def run(*words, **env):
        command = [sys.executable, "-m", "holdfast", "--home", str(home), "--project", "demo", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60, env={**os.environ, **env})
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.mark.promise("F6")
def test_the_command_says_what_it_made_and_what_was_there(program):
    code, out, _ = program("scaffold", "wiki")
    assert (code, out.splitlines()) == (0, [f"created {path}" for path in TREES["wiki"]])
    code, out, err = program("scaffold", "wiki")
    assert (code, out) == (0, "")
    assert "4 paths existed already" in err


@pytest.mark.promise("F6")
def test_the_command_answers_in_json_and_takes_a_scope(program, home):
    made = json.loads(program("scaffold", "continuity", "--scope", "agent", "--agent", "a1", "--json")[1])
    assert sorted(made["created"]) == TREES["continuity"]
    assert (made["name"], made["scope"], made["kept"]) == ("continuity", {"kind": "agent", "id": "a1"}, [])
    assert (home / "shelf/agents/a1/files/HEARTBEAT.md").exists()


def test_the_command_refuses_what_it_does_not_know(program, home):
    code, _, err = program("scaffold", "wikki")
    assert code == 2
    assert "continuity, wiki" in err
    assert not home.exists()


def test_completion_offers_the_scaffolds(program):
    code, out, _ = program("_complete", "scaffold", "")
    assert (code, [line.split("\t")[0] for line in out.splitlines()]) == (0, ["continuity", "wiki"])


def test_the_examples_in_a_scaffold_are_no_knowledge(memory):
    memory.scaffold("continuity")
    assert memory.recall("is Telegram enabled", mode="keyword").hits == ()
    memory.files.create("notes.md", "# Chats\n\n<!-- Telegram\nwas tried -->\nSignal is enabled.\n")
    (hit,) = memory.recall("enabled", mode="keyword").hits
    assert hit.citation.endswith("files/notes.md:1-5")
    assert memory.recall("Telegram", mode="keyword").hits == ()
