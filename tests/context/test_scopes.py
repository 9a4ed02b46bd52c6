"""Scopes: where a note applies, which callers read it, and which do not."""

from __future__ import annotations

import re

import pytest

from holdfast import InvalidKey, Memory, NoScope, NotFound, UsageError

FOLDERS = {"global": "global", "project": "projects/demo", "session": "sessions/s1", "agent": "agents/reviewer"}
VERBS = {
    "store": lambda memory, scope: memory.store("text", scope=scope),
    "store_many": lambda memory, scope: memory.store_many([{"text": "text"}], scope=scope),
    "recall": lambda memory, scope: memory.recall("text", scope=scope),
    "get": lambda memory, scope: memory.get("k", scope=scope),
    "list": lambda memory, scope: memory.list(scope=scope),
    "history": lambda memory, scope: memory.history("k", scope=scope),
    "fact": lambda memory, scope: memory.fact("a", "b", "c", scope=scope),
    "facts": lambda memory, scope: memory.facts(scope=scope),
    "forget": lambda memory, scope: memory.forget("k", scope=scope),
    "restore": lambda memory, scope: memory.restore("k", scope=scope),
    "purge": lambda memory, scope: memory.purge("k", scope=scope),
    "clear": lambda memory, scope: memory.clear(scope),
    "scaffold": lambda memory, scope: memory.scaffold("wiki", scope=scope),
    "boot": lambda memory, scope: memory.boot(scope=scope),
    "operator_send": lambda memory, scope: memory.operator_send("text", to="operator", scope=scope),
    "operator_list": lambda memory, scope: memory.operator_list(scope=scope),
    "operator_read": lambda memory, scope: memory.operator_read(scope=scope),
    "files.view": lambda memory, scope: memory.files.view("/memories", scope=scope),
    "files.create": lambda memory, scope: memory.files.create("a.md", "text", scope=scope),
    "files.str_replace": lambda memory, scope: memory.files.str_replace("a.md", "a", "b", scope=scope),
    "files.insert": lambda memory, scope: memory.files.insert("a.md", 0, "b", scope=scope),
    "files.delete": lambda memory, scope: memory.files.delete("a.md", scope=scope),
    "files.rename": lambda memory, scope: memory.files.rename("a.md", "b.md", scope=scope),
}


@pytest.fixture
def everywhere(open_memory):
    """A caller with a session, a project and an agent name."""
    return open_memory(session="s1", agent="reviewer")


# --- where a note applies (N1) ----------------------------------------------------------------------------------------


@pytest.mark.promise("N1")
@pytest.mark.parametrize("scope", FOLDERS)
def test_each_scope_has_its_place_on_the_shelf(everywhere, home, scope):
    note = everywhere.store("text", key="k", scope=scope).note
    assert note.scope.kind == scope
    assert (home / "shelf" / FOLDERS[scope] / "notes" / "k.md").exists()
    assert note.path == f"{FOLDERS[scope]}/notes/k.md"
    assert len(list((home / "shelf").rglob("k.md"))) == 1


@pytest.mark.promise("N1")
def test_project_is_the_default_scope(everywhere):
    assert everywhere.store("text").note.scope.kind == "project"
    assert everywhere.fact("a", "b", "c").note.scope.kind == "project"
    assert everywhere.store_many([{"text": "more"}])[0].note.scope.kind == "project"


@pytest.mark.promise("N1")
def test_a_global_note_is_read_in_every_project(open_memory):
    open_memory(project="one").store("everywhere", key="k", scope="global")
    assert open_memory(project="two").get("k").text == "everywhere"
    assert len(open_memory(project="two").recall("everywhere")) == 1


@pytest.mark.promise("N1")
@pytest.mark.parametrize("scope", ["session", "agent"])
@pytest.mark.parametrize("verb", ["store", "store_many", "fact", "files.create", "clear"])
def test_a_scope_without_an_id_refuses_the_write_says_how_to_give_one_and_falls_nowhere_else(memory, home, scope, verb):
    with pytest.raises(NoScope) as raised:
        VERBS[verb](memory, scope)
    assert f"HOLDFAST_{scope.upper()}" in raised.value.fix
    assert f"{scope}=" in raised.value.fix
    assert not home.exists()


@pytest.mark.promise("N1")
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("scope", ["team", "", "Global", "projects/other", "../global", 5], ids=str)
def test_there_is_no_fifth_scope(everywhere, home, verb, scope):
    with pytest.raises(UsageError):
        VERBS[verb](everywhere, scope)
    assert not home.exists()


@pytest.mark.promise("N1")
@pytest.mark.parametrize("id", ["..", ".", ".hidden", "a/b", "a b", "ä", "a" * 129, "a\n", "a\0", "-\u202e"], ids=ascii)
@pytest.mark.parametrize("kind", ["project", "session", "agent"])
def test_an_id_that_could_not_be_a_folder_of_ours_is_refused(home, kind, id):
    with pytest.raises(InvalidKey):
        Memory(home, **{kind: id})
    assert not home.exists()


@pytest.mark.promise("N1")
def test_ids_come_from_the_environment_and_from_config_and_the_caller_has_the_last_word(home, tmp_path, monkeypatch):
    home.mkdir(0o700)
    (home / "config.toml").write_text(
        '[session]\nid = "from-config"\n[agent]\nname = "from-config"\n[project]\nid = "from-config"\n'
    )
    memory = Memory(home, cwd=tmp_path)
    assert (memory.session, memory.agent, memory.project) == ("from-config",) * 3
    for kind in ("SESSION", "AGENT", "PROJECT"):
        monkeypatch.setenv(f"HOLDFAST_{kind}", "from-environment")
    memory = Memory(home, cwd=tmp_path)
    assert (memory.session, memory.agent, memory.project) == ("from-environment",) * 3
    memory = Memory(home, cwd=tmp_path, session="given", agent="given", project="given")
    assert (memory.session, memory.agent, memory.project) == ("given",) * 3


@pytest.mark.promise("N1")
def test_without_any_id_a_project_is_found_for_the_folder_the_same_for_reads_and_writes(home, tmp_path):
    (tmp_path / "here" / "below").mkdir(parents=True)
    (tmp_path / "there").mkdir()
    Memory(home, cwd=tmp_path / "here").store("about here", key="k")
    assert Memory(home, cwd=tmp_path / "here").get("k").text == "about here"
    with pytest.raises(NotFound):
        Memory(home, cwd=tmp_path / "there").get("k")


# --- which callers read it (N8) ---------------------------------------------------------------------------------------


@pytest.fixture
def crowd(open_memory):
    """Two callers of each kind, each with the same text under the same key in all of its scopes."""
    callers = [open_memory(project=f"p{n}", session=f"s{n}", agent=f"a{n}") for n in (1, 2)]
    for number, caller in enumerate(callers, 1):
        for scope in ("project", "session", "agent"):
            caller.store(f"harbour words of {scope} {number}", key=f"{scope}-{number}", scope=scope)
            caller.files.create(f"{scope}.md", f"# Page\n\nharbour file of {scope} {number}\n", scope=scope)
            caller.fact(f"Subject {number}", scope, f"value {number}", scope=scope)
    return callers


@pytest.mark.promise("N8")
def test_recall_without_a_scope_reads_all_that_this_caller_may_see_and_nothing_else(crowd):
    for number, caller in enumerate(crowd, 1):
        hits = caller.recall("harbour", limit=100).hits
        assert sorted(hit.text.split("\n")[-1] for hit in hits) == sorted(
            f"harbour {what} of {scope} {number}" for scope in ("project", "session", "agent") for what in ("words", "file")
        )
        assert {hit.scope.id for hit in caller.recall(mode="recent", limit=100)} == {f"{kind}{number}" for kind in "psa"}


@pytest.mark.promise("N8")
def test_no_verb_shows_anothers_notes(crowd, truth):
    first, _ = crowd
    assert all(note.key.endswith("1") for note in first.list())
    assert {fact.value for fact in first.facts()} == {"value 1"}
    assert all("2" not in snippet.path for snippet in first.search("harbour", limit=100))
    assert not re.search(r" 2\b", first.brief().text)
    assert not any(re.search(r" 2\b", told) for told in first.status().briefed)
    for scope in ("project", "session", "agent"):
        for verb in (first.get, first.history, first.restore):
            with pytest.raises(NotFound):
                verb(f"{scope}-2")
        before = truth()
        assert not first.forget(f"{scope}-2").deleted
        assert not first.purge(f"{scope}-2").deleted
        assert truth() == before


@pytest.mark.promise("N8", "F2")
def test_no_path_reads_anothers_files(crowd):
    first, second = crowd
    for snippet in second.search("harbour", limit=100):
        assert second.read(snippet.path).text
        assert first.read(snippet.path).text == ""


@pytest.mark.promise("N8")
def test_clear_forgets_only_the_callers_own_scope(crowd):
    first, second = crowd
    assert first.clear("session") == 2
    assert sorted(note.key for note in first.list()) == ["agent-1", "project-1", "subject-1", "subject-1"]
    assert len(second.list()) == 6


@pytest.mark.promise("N8")
def test_when_relevance_ties_the_nearer_scope_comes_first(everywhere):
    for scope in ("global", "agent", "project", "session"):
        everywhere.store("the harbour opens at six", key=f"in-{scope}", scope=scope)
    found = [hit.scope.kind for hit in everywhere.recall("harbour opens six")]
    assert found == ["session", "project", "agent", "global"]


@pytest.mark.promise("N8")
def test_when_the_same_key_exists_in_several_scopes_the_nearest_is_meant(everywhere):
    for scope in ("global", "agent", "project", "session"):
        everywhere.store(f"{scope} harbour " + "harbour " * (scope == "global") * 5, key="k", scope=scope)
    for scope in ("session", "project", "agent", "global"):
        assert everywhere.get("k").scope.kind == scope
        assert everywhere.history("k")[0].text.startswith(scope)
        assert everywhere.recall("harbour")[0].scope.kind == scope
        everywhere.forget("k", scope=scope)
    with pytest.raises(NotFound):
        everywhere.get("k")


@pytest.mark.promise("N8")
def test_a_scope_that_is_named_is_the_only_one_read(everywhere):
    for scope in ("global", "agent", "project", "session"):
        everywhere.store(f"harbour of {scope}", key="k", scope=scope)
    for scope in ("global", "agent", "project", "session"):
        assert everywhere.get("k", scope=scope).text == f"harbour of {scope}"
        assert [hit.text for hit in everywhere.recall("harbour", scope=scope)] == [f"harbour of {scope}"]
        assert [note.text for note in everywhere.list(scope=scope)] == [f"harbour of {scope}"]


def test_forgetting_a_key_that_several_scopes_have_asks_which(everywhere, truth):
    everywhere.store("one", key="k", scope="global")
    everywhere.store("two", key="k", scope="project")
    before = truth()
    for verb in (everywhere.forget, everywhere.purge):
        with pytest.raises(UsageError, match="scope"):
            verb("k")
    assert truth() == before
    assert everywhere.forget("k", scope="global").deleted
    assert everywhere.get("k").text == "two"


def test_a_store_never_updates_the_note_of_another_scope(everywhere):
    everywhere.store("global words", key="k", scope="global")
    assert everywhere.store("project words", key="k").action == "created"
    assert everywhere.get("k", scope="global").text == "global words"
    assert everywhere.get("k", scope="global").versions == 1


def test_two_sessions_that_differ_only_in_case_are_two(open_memory):
    open_memory(session="S1").store("upper", key="k", scope="session")
    with pytest.raises(NotFound):
        open_memory(session="s1").get("k")
