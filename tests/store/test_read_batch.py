"""`read_batch`: the hits of a recall are read together, and what cannot be read so is left to be read alone."""

from __future__ import annotations

import pytest

from holdfast.store.files import FileStore

FOLDER = "projects/p"


@pytest.fixture
def store(tmp_path):
    return FileStore(str(tmp_path), 5)


@pytest.fixture
def folder(tmp_path):
    """Return the folder of the scope, with its notes and the transcripts of one client."""
    folder = tmp_path / "shelf" / "projects" / "p"
    for part in ("notes", "transcripts/client"):
        (folder / part).mkdir(parents=True)
    return folder


def read(store, part, *names):
    found = store.read_batch([(FOLDER, part, name) for name in names])
    return {name: content.data for (_, _, name), content in found.items()}


def test_notes_are_read_together(store, folder):
    for name in ("a.md", "b.md"):
        (folder / "notes" / name).write_text(name)
    assert read(store, "notes", "a.md", "b.md", "missing.md") == {"a.md": b"a.md", "b.md": b"b.md"}


def test_a_note_that_is_a_link_is_left_out(store, folder, tmp_path):
    (tmp_path / "outside").write_text("not ours")
    (folder / "notes" / "link.md").symlink_to(tmp_path / "outside")
    (folder / "notes" / "a.md").write_text("a")
    assert read(store, "notes", "link.md", "a.md") == {"a.md": b"a"}


def test_lines_of_transcripts_are_read_at_their_offsets(store, folder):
    (folder / "transcripts" / "client" / "s.jsonl").write_bytes(b"one\ntwo\nthree\n")
    (folder / "transcripts" / "client" / "t.jsonl").write_bytes(b"four\n")
    places = ("client/s.jsonl:4", "client/s.jsonl:8", "client/t.jsonl:0")
    assert read(store, "transcripts", *places) == dict(zip(places, (b"two", b"three", b"four"), strict=True))


def test_lines_that_are_long_unfinished_or_gone_are_left_out(store, folder):
    (folder / "transcripts" / "client" / "s.jsonl").write_bytes(b"x" * 5000 + b"\nlast, not finished")
    (folder / "transcripts" / "client" / "link.jsonl").symlink_to(folder / "transcripts" / "client" / "s.jsonl")
    places = ("s.jsonl:0", "s.jsonl:5001", "s.jsonl:9000", "gone.jsonl:0", "link.jsonl:0")
    assert read(store, "transcripts", *[f"client/{place}" for place in places], "nobody/s.jsonl:0") == {}


def test_files_of_a_tree_are_left_to_be_read_alone(store, folder):
    assert read(store, "files", "a/b.txt") == {}


def test_a_folder_that_cannot_be_opened_leaves_out_its_files_only(store, folder):
    (folder / "notes" / "a.md").write_text("a")
    outside = folder.parent / "outside"
    (outside / "notes").mkdir(parents=True)
    (folder.parent / "linked").symlink_to(outside)
    wanted = [
        ("projects/linked", "notes", "b.md"),
        (FOLDER, "notes", "a.md"),
        ("projects/linked", "transcripts", "c/s.jsonl:0"),
    ]
    assert list(store.read_batch(wanted)) == [(FOLDER, "notes", "a.md")]
