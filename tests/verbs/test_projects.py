"""Projects from end to end: memory follows a folder, a person joins projects, and searches all of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest
from mcp_sdk import Agent, run

from holdfast import Memory
from holdfast.cli import main
from holdfast.config import load
from holdfast.errors import Denied, InvalidKey, NotFound, Purged, UsageError
from holdfast.project.repository_id import read_id, write_id

URL = "https://git.example.com/team/app.git"


def git(folder, *words):
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    def make(name="app", url=None, commit=True):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        git(folder, "init", "-q")
        if commit:
            git(folder, "commit", "-q", "--allow-empty", "-m", f"begin {name}")
        if url:
            git(folder, "remote", "add", "origin", url)
        return folder

    return make


@pytest.fixture(params=["home", "postgres"])
def at(request, home):
    """Open the memory of a folder, in a home or in PostgreSQL; a new one each time, as each command does."""
    given = {"store": request.getfixturevalue("postgres_url")} if request.param == "postgres" else {}
    opened = []

    def open_(folder, origin="user", **whose):
        opened.append(Memory(config=load(home).replace(**given), cwd=folder, origin=origin, **whose))
        return opened[-1]

    yield open_
    for memory in opened:
        memory.close()


@pytest.fixture
def holdfast(home, capsys, monkeypatch):
    def run(folder, *words):
        monkeypatch.chdir(folder)
        capsys.readouterr()
        code = main(["--home", str(home), *words])
        return code, *capsys.readouterr()

    return run


def texts(answer):
    return sorted(hit.text for hit in answer)


# --- memory follows the folder ----------------------------------------------------------------------------------------


@pytest.mark.promise("P2")
@pytest.mark.parametrize("commit", [True, False])
def test_a_repository_that_is_moved_after_its_first_store_keeps_its_memory(at, repository, tmp_path, commit):
    folder = repository(commit=commit)
    at(folder).store("Deploys happen on Friday.", key="deploys")
    moved = folder.rename(tmp_path / "elsewhere")
    assert texts(at(moved).recall("deploys", mode="keyword")) == ["Deploys happen on Friday."]


@pytest.mark.promise("P2")
def test_a_repository_whose_remote_changes_after_its_first_store_keeps_its_memory(at, repository):
    folder = repository(url=URL)
    at(folder).store("Deploys happen on Friday.", key="deploys")
    git(folder, "remote", "set-url", "origin", "https://git.example.com/team/renamed.git")
    assert at(folder).get("deploys").text == "Deploys happen on Friday."


@pytest.mark.promise("N10", "P2")
def test_what_an_agent_purged_stays_refused_in_a_project_that_got_another_id(at, repository, tmp_path):
    folder, text = repository(url=URL), "Deploys happen on Friday at the stroke of noon."
    at(folder, origin="agent").store(text, key="deploys")
    at(folder, origin="agent").store("Something that stays.", key="other")
    assert at(folder, origin="agent").purge("deploys").state == "done"
    git(folder, "remote", "set-url", "origin", "https://git.example.com/team/renamed.git")
    with pytest.raises(Purged):
        at(folder, origin="agent").store(text, key="again")
    at(repository("another"), origin="agent").store(text, key="deploys")


@pytest.mark.promise("P2", "N8")
def test_what_a_clone_of_a_template_stores_under_its_own_remote_stays_there(at, repository, tmp_path):
    repository("template")
    for name in ("first", "second"):
        git(tmp_path, "clone", "-q", str(tmp_path / "template"), name)
    first, second = tmp_path / "first", tmp_path / "second"
    at(first).store("Deploys happen on Friday.", key="deploys")
    git(first, "remote", "set-url", "origin", URL)
    memory = at(first)
    assert memory.get("deploys").text == "Deploys happen on Friday."
    memory.store("The customer is Acme.", key="customer")
    memory.store("Deploys happen on Monday.", key="deploys")
    memory.store_many([{"text": "Deploys happen on Tuesday.", "key": "deploys"}])
    memory.fact("Acme", "contact", "Ada")
    assert at(first).get("deploys").text == "Deploys happen on Tuesday."
    assert at(first).get("customer").text == "The customer is Acme."
    for folder in (second, tmp_path / "third"):
        if not folder.exists():
            git(tmp_path, "clone", "-q", str(tmp_path / "template"), folder.name)
        assert [note.text for note in at(folder).list()] == ["Deploys happen on Friday."]


@pytest.mark.promise("P2")
@pytest.mark.parametrize(
    "write",
    [
        lambda memory: memory.store_many([{"text": "text"}]),
        lambda memory: memory.fact("a", "b", "c"),
        lambda memory: memory.files.create("a.md", "text"),
        lambda memory: memory.scaffold("wiki", scope="project"),
        lambda memory: memory.log([{"role": "user", "text": "text"}], session="s1"),
    ],
    ids=["store_many", "fact", "files", "scaffold", "log"],
)
def test_every_first_write_records_the_folder(home, repository, tmp_path, write):
    folder = repository(commit=False)
    with Memory(home, cwd=folder) as memory:
        write(memory)
        id = memory.project
    with Memory(home, cwd=folder.rename(tmp_path / "elsewhere")) as memory:
        assert memory.project == id


@pytest.mark.promise("P2")
def test_memory_survives_a_move_after_git_has_dropped_the_reflog(at, repository, tmp_path):
    folder = repository()
    at(folder).store("text", key="k")
    git(folder, "reflog", "expire", "--all", "--expire=now")
    assert at(folder.rename(tmp_path / "elsewhere")).get("k").text == "text"


@pytest.mark.promise("P2", "N8")
def test_a_copy_has_a_memory_of_its_own_and_keeps_it_when_it_moves(at, repository, tmp_path):
    folder = repository()
    at(folder).store("of the original", key="k")
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy, symlinks=True)
    assert at(copy).recall("original", mode="keyword").hits == ()
    at(copy).store("of the copy", key="k")
    assert read_id(str(copy / ".git")) not in (None, read_id(str(folder / ".git")))
    for name in ("copy-1", "copy-2"):
        copy = copy.rename(tmp_path / name)
        assert at(copy).get("k").text == "of the copy"
        assert at(folder).get("k").text == "of the original"
    shutil.rmtree(folder)
    assert texts(at(copy.rename(tmp_path / "copy-3")).recall("copy original", mode="keyword")) == ["of the copy"]


@pytest.mark.promise("P2", "N8")
def test_a_copy_of_a_repository_that_had_moved_before_is_still_a_copy(at, repository, tmp_path):
    folder = repository()
    at(folder).recall("anything", mode="keyword")  # known by its reflog before it has an id
    at(folder).store("of the original", key="k")
    folder = folder.rename(tmp_path / "moved")
    at(folder).get("k")
    shutil.copytree(folder, tmp_path / "copy", symlinks=True)
    assert at(tmp_path / "copy").recall("original", mode="keyword").hits == ()


@pytest.mark.promise("P2", "N8")
def test_a_repository_that_moves_to_the_path_of_another_does_not_get_its_memory(at, repository, tmp_path):
    first, second = repository("first"), repository("second")
    at(first).store("of the first", key="first")
    at(second).store("of the second", key="second")
    shutil.rmtree(second)
    memory = at(first.rename(tmp_path / "second"))
    assert [note.key for note in memory.list()] == ["first"]


@pytest.mark.promise("P2", "N8")
def test_a_clone_does_not_inherit_the_id(home, repository, tmp_path):
    folder = repository()
    with Memory(home, cwd=folder) as memory:
        memory.store("text")
    git(tmp_path, "clone", "-q", str(folder), "clone")
    assert read_id(str(folder / ".git")) and read_id(str(tmp_path / "clone" / ".git")) is None


@pytest.mark.promise("P2")
def test_two_homes_share_the_id_and_nothing_else(tmp_path, repository):
    folder = repository()
    homes = [tmp_path / "one", tmp_path / "two"]
    for home in homes:
        with Memory(home, cwd=folder) as memory:
            memory.store(f"of {home.name}", key="k")
    moved = folder.rename(tmp_path / "elsewhere")
    for home in homes:
        with Memory(home, cwd=moved) as memory:
            assert memory.get("k").text == f"of {home.name}"


@pytest.mark.promise("P2")
def test_nothing_is_written_into_a_repository_that_has_no_memory(home, repository, open_memory):
    folder = repository()
    open_memory().store("of another project")
    before = sorted(os.listdir(folder / ".git"))
    with Memory(home, cwd=folder) as memory:
        memory.recall("text", mode="keyword")
        memory.store("text", scope="global")
    with Memory(config=load(home).replace(enabled=False), cwd=folder) as memory:
        memory.recall("text")
    assert sorted(os.listdir(folder / ".git")) == before


# --- the id in git's folder -------------------------------------------------------------------------------------------


def test_the_id_is_one_plain_line_and_no_other_file_is_left(repository):
    git_folder = repository() / ".git"
    before = set(os.listdir(git_folder))
    id = write_id(str(git_folder))
    assert (git_folder / "holdfast-id").read_text() == f"{id}\n"
    assert set(os.listdir(git_folder)) - before == {"holdfast-id"}
    assert write_id(str(git_folder)) == id  # the first one stays


@pytest.mark.parametrize("content", [b"", b"\n", b"x" * 32, b"a" * 31, b"a" * 33, b"A" * 32, b"\xff" * 32, b"a" * 32 + b"\n\n"])
def test_a_file_that_holds_no_id_is_left_alone(home, repository, tmp_path, content):
    folder = repository()
    file = folder / ".git" / "holdfast-id"
    file.write_bytes(content)
    with Memory(home, cwd=folder) as memory:
        memory.store("text", key="k")
    assert file.read_bytes() == content
    with Memory(home, cwd=folder.rename(tmp_path / "elsewhere")) as memory:  # by the reflog, as long as git keeps it
        assert memory.get("k").text == "text"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("x", path)], ids=["pipe", "folder", "link"])
def test_what_is_no_plain_file_is_no_id_and_holds_nobody_up(repository, make):
    git_folder = repository() / ".git"
    make(git_folder / "holdfast-id")
    assert read_id(str(git_folder)) is None
    assert write_id(str(git_folder)) is None
    assert not [name for name in os.listdir(git_folder) if name.endswith(".tmp")]


def test_a_git_folder_of_another_user_is_not_written_to(repository, monkeypatch):
    git_folder = repository() / ".git"
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    assert write_id(str(git_folder)) is None
    assert not (git_folder / "holdfast-id").exists()


def test_a_disk_that_refuses_leaves_nothing_behind(repository, monkeypatch):
    git_folder = repository() / ".git"

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    assert write_id(str(git_folder)) is None
    assert not [name for name in os.listdir(git_folder) if "holdfast" in name]


def test_processes_that_write_an_id_at_once_agree(repository):
    git_folder = repository() / ".git"
    code = "import sys; from holdfast.project.repository_id import write_id; sys.stdin.readline(); print(write_id(sys.argv[1]))"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    crowd = [subprocess.Popen([sys.executable, "-c", code, str(git_folder)], **pipes) for _ in range(6)]
    said = {process.communicate("go\n", timeout=60)[0].strip() for process in crowd}
    assert said == {read_id(str(git_folder))}


# --- doctor, list and adopt -------------------------------------------------------------------------------------------


@pytest.fixture
def lost(home, tmp_path):
    """The notes of a plain folder that was renamed: nothing in the new one identifies it."""
    folder = tmp_path / "before"
    folder.mkdir()
    with Memory(home, cwd=folder) as memory:
        memory.store("Deploys happen on Friday.", key="deploys")
        id = memory.project
    return id, folder.rename(tmp_path / "after")


@pytest.mark.promise("P2")
def test_doctor_names_a_project_whose_folder_is_gone_and_adopt_reunites_it(lost, holdfast):
    id, folder = lost
    assert holdfast(folder, "recall", "deploys")[1] == ""
    code, out, _ = holdfast(folder, "doctor")
    assert code == 1 and id in out and f"project adopt {id}" in out
    problem = json.loads(holdfast(folder, "doctor", "--json")[1])["problems"][0]
    assert (problem["code"], problem["path"]) == ("project_gone", f"projects/{id}")
    code, out, _ = holdfast(folder, "project", "adopt", id)
    assert code == 0 and out.startswith(f"adopted {id}: 1 note found from after-")
    assert "Deploys happen on Friday." in holdfast(folder, "recall", "deploys")[1]
    assert holdfast(folder, "doctor")[0] == 0
    assert json.loads(holdfast(folder, "project", "adopt", id, "--json")[1])["action"] == "unchanged"


def test_forgetting_the_notes_of_a_gone_project_settles_it_too(lost, holdfast):
    id, folder = lost
    assert holdfast(folder, "clear", "--scope", "project", "--project", id, "--yes")[0] == 0
    assert holdfast(folder, "doctor")[0] == 0


def test_project_list_says_where_each_project_was_last_seen(lost, holdfast, tmp_path, repository):
    id, folder = lost
    holdfast(folder, "store", "text")
    clone = repository("clone", URL)
    holdfast(clone, "store", "of a clone")
    shutil.rmtree(clone)  # found again with the next clone of that remote: not lost
    listed = {one["id"]: one for one in json.loads(holdfast(folder, "project", "list", "--json")[1])}
    assert len(listed) == 3
    assert listed[id]["folders"] == [str(tmp_path / "before")] and listed[id]["gone"] and listed[id]["notes"] == 1
    assert [one["id"] for one in listed.values() if one["gone"]] == [id]
    assert [one["folders"] for one in listed.values() if one["current"]] == [[str(folder)]]
    _, out, err = holdfast(folder, "project", "list")
    assert "folder gone" in out and "this folder" in out and "project adopt" in err


@pytest.mark.promise("N8")
def test_only_a_person_lists_the_projects_and_doctor_works_for_everybody(at, holdfast, tmp_path, monkeypatch):
    at(tmp_path, project="secret-customer").store("text")
    agent = at(tmp_path, origin="agent")
    with pytest.raises(Denied, match="only a person may list the projects of this home") as denied:
        agent.projects()
    assert "holdfast project list" in denied.value.fix
    agent.check()
    monkeypatch.setenv("CLAUDECODE", "1")
    code, out, err = holdfast(tmp_path, "project", "list")
    assert code != 0 and "secret-customer" not in out + err


def test_a_home_without_projects_lists_none(holdfast, tmp_path, home):
    assert holdfast(tmp_path, "project", "list", "--json")[:2] == (0, "[]\n")
    assert not home.exists()


@pytest.mark.promise("P2")
def test_adopt_joins_two_projects_that_both_have_notes(at, tmp_path):
    old, new = (at(tmp_path, project=name) for name in ("old", "new"))
    old.store("of the old", key="k")
    old.store("only of the old", key="other")
    new.store("of the new", key="k")
    done = new.adopt("old")
    assert (done.action, done.old, done.new, done.notes) == ("adopted", "old", "new", 2)
    again = at(tmp_path, project="new")
    assert again.get("k").text == "of the new"
    assert texts(again.recall("old new", mode="keyword")) == ["of the new", "of the old", "only of the old"]
    assert again.store("changed", key="other").action == "updated"
    assert [note.text for note in at(tmp_path, project="old").list(scope="project") if note.key == "other"] == ["changed"]
    assert again.adopt("old").action == "unchanged"
    (row,) = [one for one in again.projects() if one.id == "old"]
    assert row.part_of == "new"


@pytest.mark.promise("P2")
def test_adopted_projects_stay_joined_when_they_are_adopted_again(at, tmp_path):
    for name in ("first", "second", "third"):
        at(tmp_path, project=name).store(f"of the {name}", key=name)
    at(tmp_path).adopt("first", "second")
    at(tmp_path).adopt("second", "third")
    assert sorted(note.key for note in at(tmp_path, project="third").list()) == ["first", "second", "third"]


def test_the_folder_of_an_adopted_project_leads_to_the_new_one(at, repository):
    folder = repository()
    at(folder).store("of the folder", key="k")
    id = at(folder).project
    at(folder, project="new").adopt(id)
    assert at(folder).project == "new"
    assert at(folder).get("k").text == "of the folder"


def test_adopt_says_what_is_wrong(at, tmp_path):
    memory = at(tmp_path, project="mine")
    memory.store("text")
    with pytest.raises(NotFound, match="no project named 'nosuch' in this home") as missing:
        memory.adopt("nosuch")
    assert "Known projects: mine" in missing.value.fix
    with pytest.raises(NotFound, match="no project named 'nosuch' in this home") as missing:
        memory.adopt("mine", "nosuch")
    assert "Known projects: mine" in missing.value.fix
    assert [one.part_of for one in memory.projects()] == [None]
    with pytest.raises(UsageError, match="cannot adopt itself"):
        memory.adopt("mine")
    for bad in ("", "../other", "a/b"):
        with pytest.raises(InvalidKey):
            memory.adopt(bad)
        with pytest.raises(InvalidKey):
            memory.adopt("mine", bad)
    with pytest.raises(Denied, match="only a person"):
        at(tmp_path, origin="agent", project="other").adopt("mine")


# --- a project that does not exist ------------------------------------------------------------------------------------


def test_an_empty_project_is_rejected(holdfast, tmp_path, home):
    code, out, err = holdfast(tmp_path, "recall", "text", "--project", "")
    assert (code, out) == (3, "") and "not a valid project id: ''" in err
    with pytest.raises(InvalidKey):
        Memory(home, project="")


def test_a_read_of_an_unknown_project_says_so_and_does_not_fail(holdfast, tmp_path):
    holdfast(tmp_path, "store", "text", "--project", "demo")
    said = "No project named 'dmeo' in this home. Known projects: demo."
    for words in (("recall", "text"), ("list",), ("facts",), ("search", "text"), ("brief",), ("status",)):
        code, _, err = holdfast(tmp_path, *words, "--project", "dmeo")
        assert code == 0 and said in err, words
    code, out, err = holdfast(tmp_path, "recall", "text", "--project", "dmeo", "--json")
    assert (code, json.loads(out)["notice"], json.loads(out)["hits"]) == (0, said, []) and said in err
    code, out, err = holdfast(tmp_path, "list", "--project", "dmeo", "--json")
    assert (code, json.loads(out)) == (0, []) and said in err


def test_a_known_project_and_a_home_without_projects_get_no_notice(holdfast, tmp_path):
    assert "No project" not in holdfast(tmp_path, "recall", "text", "--project", "demo")[2]
    holdfast(tmp_path, "store", "text", "--project", "demo")
    code, out, err = holdfast(tmp_path, "recall", "text", "--project", "demo", "--json")
    assert (code, err) == (0, "") and "notice" not in json.loads(out)


def test_an_agent_is_not_told_which_projects_there_are(holdfast, tmp_path, monkeypatch):
    holdfast(tmp_path, "store", "text", "--project", "demo")
    monkeypatch.setenv("CLAUDECODE", "1")
    err = holdfast(tmp_path, "recall", "text", "--project", "dmeo")[2]
    assert "No project named 'dmeo'" in err and "Known projects" not in err


# --- every project at once --------------------------------------------------------------------------------------------


@pytest.fixture
def scattered(at, tmp_path):
    """A note in every kind of scope, and a turn of a session."""
    at(tmp_path, project="one").store("The lighthouse is red.", key="light", tags="sea")
    at(tmp_path, project="two").store("The lighthouse is blue.", key="light")
    at(tmp_path, project="two", agent="ada").store("The lighthouse is Ada's.", key="light", scope="agent")
    at(tmp_path, project="two", session="s1").store("The lighthouse is of a session.", key="light", scope="session")
    at(tmp_path, project="two").store("The lighthouse is everybody's.", key="light", scope="global")
    at(tmp_path, project="two").log([{"role": "user", "text": "Who keeps the lighthouse?"}], session="s2", client="c")
    return at


@pytest.mark.parametrize("mode", ["keyword", "hybrid", "recent"])
def test_a_person_searches_every_project_of_the_home(scattered, tmp_path, mode):
    person = scattered(tmp_path, project="mine")
    hits = person.recall("lighthouse", scope="all", mode=mode).hits
    assert {str(hit.scope) for hit in hits} == {"project:one", "project:two", "agent:ada", "session:s1", "global"}
    assert [hit.text for hit in hits if hit.session] == ["Who keeps the lighthouse?"]
    assert texts(person.recall("lighthouse", mode=mode)) == ["The lighthouse is everybody's."]


def test_filters_hold_for_every_project(scattered, tmp_path):
    person = scattered(tmp_path, project="mine")
    assert texts(person.recall("lighthouse", scope="all", mode="keyword", tags="sea")) == ["The lighthouse is red."]
    assert len(person.recall("lighthouse", scope="all", mode="keyword", limit=2)) == 2
    assert texts(person.recall("lighthouse", scope="all", mode="keyword", kind="turn")) == ["Who keeps the lighthouse?"]


@pytest.mark.promise("N8")
@pytest.mark.parametrize("origin", ["agent", "tool", "web", "import"])
def test_nobody_but_a_person_searches_every_project(scattered, tmp_path, origin):
    with pytest.raises(Denied, match="only a person may search every project"):
        scattered(tmp_path, origin=origin, project="mine").recall("lighthouse", scope="all")


def test_all_is_a_scope_of_recall_and_list_alone(scattered, tmp_path):
    person = scattered(tmp_path, project="one")
    verbs = [
        lambda: person.store("text", scope="all"),
        lambda: person.forget("light", scope="all"),
        lambda: person.purge("light", scope="all"),
        lambda: person.clear("all"),
    ]
    for verb in verbs:
        with pytest.raises(UsageError, match="unknown scope 'all'"):
            verb()


def test_the_command_line_shows_whose_each_hit_is(holdfast, tmp_path, monkeypatch):
    holdfast(tmp_path, "store", "The lighthouse is red.", "--project", "one")
    holdfast(tmp_path, "store", "The lighthouse is blue.", "--project", "two")
    code, out, _ = holdfast(tmp_path, "recall", "lighthouse", "--scope", "all")
    assert code == 0 and "  project:one " in out and "  project:two " in out
    monkeypatch.setenv("CLAUDECODE", "1")
    code, out, err = holdfast(tmp_path, "recall", "lighthouse", "--scope", "all")
    assert (code, out) == (3, "") and "only a person" in err


def test_a_new_repository_where_a_moved_one_was_is_another_project(repository, home, tmp_path):
    old = repository("client-a", commit=False)
    with Memory(home, cwd=old) as memory:
        memory.store("Client A pays 40k.", key="pricing")
        first = memory.project
    old.rename(tmp_path / "archive")
    with Memory(home, cwd=tmp_path / "archive") as memory:
        assert memory.project == first and memory.get("pricing")
    new = repository("client-a", commit=False)
    with Memory(home, cwd=new) as memory:
        assert memory.list() == [] and memory.project != first
        memory.store("Client B pays 10k.", key="offer")
    with Memory(home, cwd=new) as memory:
        assert [note.key for note in memory.list()] == ["offer"]
    with Memory(home, cwd=tmp_path / "archive") as memory:
        assert [note.key for note in memory.list()] == ["pricing"]


def test_over_mcp_no_agent_searches_every_project(home):
    async def work():
        async with Agent(home, project="demo") as agent:
            return await agent.refused("memory_recall", query="lighthouse", scope="all")

    assert "unknown scope 'all'" in run(work)


def test_over_http_only_the_operator_searches_every_project(gateway):
    operator, agent = gateway.operator, gateway.agent("reviewer")
    operator("POST", "/v1/notes", {"text": "The lighthouse is red."}, X_Holdfast_Project="one")
    said = agent("POST", "/v1/recall", {"query": "lighthouse", "scope": "all", "mode": "keyword"}, X_Holdfast_Project="two")
    assert (said.status, said.code) == (403, "denied")
    assert "holdfast " not in said.json["fix"]
    said = operator("POST", "/v1/recall", {"query": "lighthouse", "scope": "all", "mode": "keyword"}, X_Holdfast_Project="two")
    assert [hit["scope"] for hit in said.json["hits"]] == [{"kind": "project", "id": "one"}]
