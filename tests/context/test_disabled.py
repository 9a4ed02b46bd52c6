"""Disabled memory: writes are rejected before anything else, reads return empty answers that say so."""

from __future__ import annotations

import pytest

from holdfast import ConfigError, Disabled, HoldfastError, NotFound

WRITES = {
    "store": lambda memory: memory.store("text", key="k"),
    "store with a bad key": lambda memory: memory.store("text", key="../"),
    "store with no text": lambda memory: memory.store(""),
    "store in no scope": lambda memory: memory.store("text", scope="nowhere"),
    "store_many": lambda memory: memory.store_many([{"text": "text"}]),
    "store_many of something bad": lambda memory: memory.store_many([{"text": ""}]),
    "fact": lambda memory: memory.fact("a", "b", "c"),
    "fact with a bad date": lambda memory: memory.fact("a", "b", "c", on="soon"),
    "forget": lambda memory: memory.forget("kept"),
    "forget with a bad key": lambda memory: memory.forget("../"),
    "restore": lambda memory: memory.restore("gone"),
    "purge": lambda memory: memory.purge("kept"),
    "clear": lambda memory: memory.clear("project"),
    "clear of no scope": lambda memory: memory.clear("nowhere"),
    "retain": lambda memory: memory.retain(),
    "mark": lambda memory: memory.mark(),
    "render": lambda memory: memory.render("a.md"),
    "scaffold": lambda memory: memory.scaffold("continuity"),
    "scaffold of nothing": lambda memory: memory.scaffold("nothing"),
    "reindex": lambda memory: memory.reindex(),
    "files.create": lambda memory: memory.files.create("a.md", "text"),
    "files.create of a bad path": lambda memory: memory.files.create("../a.md", "text"),
    "files.str_replace": lambda memory: memory.files.str_replace("page.md", "harbour", "b"),
    "files.insert": lambda memory: memory.files.insert("page.md", 0, "b"),
    "files.delete": lambda memory: memory.files.delete("page.md"),
    "files.rename": lambda memory: memory.files.rename("page.md", "b.md"),
}


@pytest.fixture(params=["environment", "config"])
def off(request, open_memory, home, monkeypatch):
    """A home with data, disabled by a setting or by the environment."""
    on = open_memory(session="s1")
    on.store("harbour words", key="kept")
    on.store("gone words", key="gone")
    on.forget("gone")
    on.fact("Harbour", "state", "open")
    on.files.create("page.md", "harbour page")
    on.close()
    if request.param == "environment":
        monkeypatch.setenv("HOLDFAST_ENABLED", "0")
    else:
        (home / "config.toml").write_text("[memory]\nenabled = false\n")
    return open_memory(session="s1")


def marks(folder):
    """Return a state that any change below the folder changes."""
    return {path: (info.st_ino, info.st_ctime_ns, info.st_size) for path in folder.rglob("*") if (info := path.lstat())}


@pytest.mark.promise("N12")
@pytest.mark.parametrize("verb", WRITES)
def test_a_write_is_refused_before_anything_else_and_touches_nothing(off, home, verb):
    before = marks(home)
    with pytest.raises(Disabled) as raised:
        WRITES[verb](off)
    assert "enabled" in raised.value.fix
    assert marks(home) == before


@pytest.mark.promise("N12")
def test_reads_answer_empty_and_say_disabled(off):
    for answer in (off.recall("harbour"), off.recall(mode="recent"), off.recall("harbour", as_of="2100-01-01")):
        assert answer.hits == ()
        assert answer.disabled
        assert "disabled" in answer.reason
    assert off.list() == []
    assert off.facts("Harbour") == []
    assert off.search("harbour") == []
    assert off.trash() == []
    assert (off.brief().text, off.brief().disabled) == ("", True)
    assert off.read("page.md").text == ""
    assert off.read("projects/demo/notes/kept.md").text == ""
    assert not off.status().enabled


@pytest.mark.promise("N12")
def test_what_a_single_key_or_file_is_asked_for_says_disabled_too(off):
    for call in (lambda: off.get("kept"), lambda: off.history("kept"), lambda: off.files.view("page.md")):
        with pytest.raises(HoldfastError, match="disabled") as raised:
            call()
        assert isinstance(raised.value, Disabled | NotFound)


READS = {
    "recall": lambda memory: memory.recall("harbour"),
    "list": lambda memory: memory.list(),
    "facts": lambda memory: memory.facts(),
    "brief": lambda memory: memory.brief(),
    "search": lambda memory: memory.search("harbour"),
    "read": lambda memory: memory.read("page.md"),
    "trash": lambda memory: memory.trash(),
    "status": lambda memory: memory.status(),
    "check": lambda memory: memory.check(),
}


@pytest.mark.promise("N12")
@pytest.mark.parametrize("project", ["demo", None], ids=["told", "to find out"])
@pytest.mark.parametrize("verb", READS)
def test_reads_touch_nothing_in_the_whole_home(off, home, tmp_path, open_memory, verb, project):
    (home / "shelf/projects/demo/notes/.holdfast-1-dead.tmp").write_text("half a no")
    (home / "shelf/projects/demo/notes/hand.md").write_text("written by hand")
    (home / "index.db").write_bytes(b"damaged")
    before = marks(home)
    READS[verb](open_memory(project=project))
    assert marks(home) == before


@pytest.mark.promise("N12", "D2")
def test_status_says_where_memory_is_and_that_it_is_off(off, home, open_memory):
    status = off.status()
    assert (status.enabled, status.home, status.project, status.session) == (False, str(home), "demo", "s1")
    assert (status.scopes, status.briefed, status.briefing_chars, status.passages) == ((), (), 0, None)  # not checked
    assert status.index_bytes
    assert open_memory(project=None).status().project is None


@pytest.mark.promise("N12", "D1")
def test_check_still_reports_what_can_be_seen_without_writing(off, home):
    assert off.check() == []
    home.chmod(0o755)
    (home / "shelf" / "stray.txt").write_text("x")
    (home / "run" / "locks").rename(home / "run" / "elsewhere")
    assert {problem.code for problem in off.check()} == {"permissions", "stray"}
    (home / "run" / "locks").write_text("x")
    assert {problem.code for problem in off.check()} == {"permissions", "in_the_way"}


@pytest.mark.promise("N12")
def test_nothing_of_the_global_tree_is_read_either(open_memory, monkeypatch):
    open_memory().files.create("secret.md", "harbour", scope="global")
    monkeypatch.setenv("HOLDFAST_ENABLED", "0")
    piece = open_memory().read("secret.md")
    assert (piece.text, piece.exists) == ("", False)


@pytest.mark.promise("N12")
def test_a_disabled_recall_still_refuses_what_means_nothing(off):
    with pytest.raises(HoldfastError):
        off.recall("harbour", mode="odd")


@pytest.mark.promise("N12")
def test_switched_on_again_everything_is_as_it_was(off, home, open_memory, monkeypatch):
    monkeypatch.delenv("HOLDFAST_ENABLED", raising=False)
    (home / "config.toml").write_text("[memory]\nenabled = true\n")
    on = open_memory(session="s1")
    assert len(on.recall("harbour")) == 3
    assert on.restore("gone").text == "gone words"


@pytest.mark.promise("N12")
@pytest.mark.parametrize(("word", "enabled"), [("1", True), ("true", True), ("0", False), ("off", False), ("FALSE", False)])
def test_the_environment_says_it_in_the_usual_words(open_memory, monkeypatch, word, enabled):
    monkeypatch.setenv("HOLDFAST_ENABLED", word)
    assert open_memory().status().enabled is enabled


@pytest.mark.promise("N12")
def test_a_switch_that_cannot_be_read_is_an_error_and_never_counts_as_on(open_memory, monkeypatch):
    monkeypatch.setenv("HOLDFAST_ENABLED", "perhaps")
    with pytest.raises(ConfigError):
        open_memory()


@pytest.mark.promise("N12")
def test_a_disabled_memory_without_a_home_makes_none(open_memory, home, monkeypatch):
    monkeypatch.setenv("HOLDFAST_ENABLED", "0")
    memory = open_memory()
    memory.recall("harbour")
    memory.brief()
    memory.status()
    memory.check()
    with pytest.raises(Disabled):
        memory.store("text")
    assert not home.exists()
