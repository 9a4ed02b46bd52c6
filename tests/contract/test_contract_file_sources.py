"""Who wrote a file of an agent's tree: kept with every write, moved and removed with the file; of every store."""

from __future__ import annotations

import pytest

from holdfast.errors import Busy
from holdfast.ledger.file_sources import FileSources, digest_path
from holdfast.models import Source

WORD = "zanzibarqvx7 is the word that must be gone for good"
MALLORY = Source("agent", "mallory", "chat", "s1")


@pytest.fixture
def mallory(open_any):
    return open_any(agent="mallory", client="chat", session="s1")


def source_of(memory, path, query="harbour"):
    """Return the source that a hit on a file and reading it both show."""
    hits = memory.recall(query, mode="keyword", kind="file", limit=100)
    (hit,) = [hit for hit in hits if hit.citation.startswith(f"projects/demo/files/{path}:")]
    assert memory.read(f"projects/demo/files/{path}").source == hit.source
    return hit.source


def write_by_hand(memory, path, text):
    """Write a file as another program does: without a record."""
    tree, parts = memory._context.store.tree("projects/demo"), tuple(path.split("/"))
    tree.write(parts, text.encode(), tree.file_id(parts))
    memory._context.sync.refresh_folder("projects/demo", "files")


def recorded(memory, *paths):
    """Return whether there are records of exactly these files."""
    files = {one.file for one in memory._context.ledger.file_sources.list() if one.scope == "projects/demo"}
    return files == {digest_path(path) for path in paths}


def test_a_file_names_its_writer_to_everybody(mallory, open_any):
    mallory.files.create("deep/plan.md", "the harbour opens at six\n")
    for reader in (mallory, open_any(), open_any(agent="bob"), open_any(origin="user")):
        assert source_of(reader, "deep/plan.md") == MALLORY
    answer = open_any(agent="bob").recall("harbour", mode="recent", kind="file")
    assert [hit.source for hit in answer] == [MALLORY]


def test_the_last_writer_counts_and_a_new_text_is_only_its_own(mallory, open_any, person):
    mallory.files.create("plan.md", "the harbour opens at six\n")
    bob = open_any(agent="bob")
    bob.files.insert("plan.md", 1, "and closes at ten")
    assert source_of(bob, "plan.md") == Source("agent", "bob")
    mallory.files.str_replace("plan.md", "ten", "eleven")
    assert source_of(bob, "plan.md") == MALLORY
    person.files.create("plan.md", "the harbour is closed\n")
    assert source_of(bob, "plan.md") == Source("user")


def test_an_edit_does_not_raise_the_trust_of_the_rest(mallory, open_any, person):
    mallory.files.create("plan.md", "the harbour opens at six\n")
    person.files.insert("plan.md", 1, "and closes at ten")
    assert source_of(mallory, "plan.md") == Source("user", trust="agent")
    person.files.str_replace("plan.md", "ten", "nine")
    assert source_of(mallory, "plan.md").trusted == "agent"
    open_any(origin="web").files.insert("plan.md", 0, "from a page")
    mallory.files.insert("plan.md", 0, "again")
    assert source_of(mallory, "plan.md") == MALLORY.replace(trust="web")


def test_a_file_that_another_program_wrote_has_no_source(mallory, person):
    write_by_hand(mallory, "plan.md", "the harbour opens at six\n")
    assert source_of(mallory, "plan.md") is None
    person.files.insert("plan.md", 1, "and closes at ten")  # it may have been anybody who wrote the rest
    assert source_of(mallory, "plan.md") is None
    mallory.files.insert("plan.md", 1, "on weekdays")
    assert source_of(mallory, "plan.md") == MALLORY
    write_by_hand(mallory, "plan.md", "the harbour opens at seven\n")
    assert source_of(mallory, "plan.md") is None and recorded(mallory, "plan.md")


def test_a_source_moves_with_its_file_and_with_the_folder_above_it(mallory, person):
    mallory.files.create("old/a.md", "the harbour opens at six\n")
    mallory.files.create("old/er/b.md", "the harbour closes at ten\n")
    mallory.files.create("older.md", "the harbour is deep\n")
    person.files.rename("old/a.md", "old/c.md")
    assert source_of(person, "old/c.md") == MALLORY
    person.files.rename("old", "new")
    assert [source_of(person, path) for path in ("new/c.md", "new/er/b.md", "older.md")] == [MALLORY] * 3
    assert recorded(person, "new/c.md", "new/er/b.md", "older.md")


def test_a_rename_gives_no_writer_to_a_file_that_changed_since(mallory):
    mallory.files.create("a.md", "the harbour opens at six\n")
    write_by_hand(mallory, "a.md", "the harbour opens at ten\n")
    mallory.files.rename("a.md", "b.md")
    assert source_of(mallory, "b.md") is None and recorded(mallory)


def test_a_deleted_file_or_folder_leaves_no_record(mallory):
    for path in ("old/a.md", "old/er/b.md", "older.md", "old-two/c.md"):
        mallory.files.create(path, "the harbour opens at six\n")
    mallory.files.delete("old")
    assert recorded(mallory, "old-two/c.md", "older.md")
    mallory.files.delete("older.md")
    assert recorded(mallory, "old-two/c.md")


def test_a_scaffold_names_who_made_it(mallory, open_any):
    made = mallory.scaffold("wiki", scope="project")
    files = sorted(path for path in made.created if not path.endswith("/"))
    assert files and recorded(mallory, *files)
    piece = open_any().read(f"projects/demo/files/{files[0]}")
    assert piece.exists and piece.source == MALLORY


def test_a_fact_in_a_file_names_the_writer_of_the_file(mallory, open_any):
    mallory.files.create("ports.md", "# Harbour club\n\n- [2026-01-01] town: Turin\n")
    (hit,) = open_any().recall("harbour club town", kind="fact", mode="keyword")
    assert hit.source == MALLORY
    write_by_hand(mallory, "ports.md", "# Harbour club\n\n- [2026-01-01] town: Rome\n")
    (hit,) = open_any().recall("harbour club town", kind="fact", mode="keyword")
    assert hit.source is None


def test_lines_of_a_note_name_its_writer(mallory, open_any):
    mallory.store("the harbour opens at six", key="harbour")
    assert open_any().read("projects/demo/notes/harbour.md").source == MALLORY
    assert open_any().read("projects/demo/notes/none.md").source is None


def test_a_recall_asks_for_writers_only_where_it_found_a_file(mallory, monkeypatch):
    asked = []
    monkeypatch.setattr(FileSources, "find", lambda self, files: asked.append(files) or [None] * len(files))
    mallory.store("the harbour opens at six", key="harbour")
    assert len(mallory.recall("harbour", mode="keyword")) == 1 and asked == []
    for path in ("a.md", "b.md"):
        mallory.files.create(path, "the harbour closes at ten\n")
    assert len(mallory.recall("harbour", mode="keyword")) == 3
    assert [[one.path for one in files] for files in asked] in ([["a.md", "b.md"]], [["b.md", "a.md"]])


def test_a_ledger_that_fails_fails_neither_a_recall_nor_a_write(mallory, monkeypatch):
    mallory.files.create("a.md", "the harbour opens at six\n")

    def fail(*_):
        raise Busy("the ledger is locked", "Try again")

    for name in ("find", "record", "list", "remove"):
        monkeypatch.setattr(FileSources, name, fail)
    assert source_of(mallory, "a.md") is None
    mallory.files.insert("a.md", 0, "harbour")
    mallory.files.rename("a.md", "b.md")
    mallory.files.create("c.md", "the harbour closes at ten\n")
    mallory.files.delete("c.md")
    monkeypatch.undo()
    assert source_of(mallory, "b.md") is None


def test_a_purge_leaves_no_record_of_a_file_that_is_gone_and_keeps_the_writer_of_the_rest(mallory, person, home, store):
    for path in ("plan.md", "gone.md", f"{WORD}.md"):
        mallory.files.create(path, f"the harbour opens at six\n{WORD}\n")
    person._context.store.tree("projects/demo").delete(("gone.md",))  # as `rm` does
    receipt = person.purge(text=WORD, files=True)
    assert recorded(person, "plan.md", f"{WORD}.md")
    assert source_of(person, "plan.md") == MALLORY and WORD not in person.files.view("plan.md")
    assert [line for line in receipt.pending if "ledger" in line or "file_sources" in line] == []
    person.files.delete(f"{WORD}.md")
    assert recorded(person, "plan.md")
    if store == "folder":
        kept = b"".join([path.read_bytes() for path in home.glob("ledger.db*")])
        assert b"zanzibarqvx7" not in kept  # a path may say as much as a text
        assert digest_path("plan.md").encode() in kept and digest_path("gone.md").encode() not in kept
