"""Names in trash and archive, and names of transcripts."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidPath
from holdfast.models import Scope
from holdfast.store import layout

HERE = Scope("project", "demo")
NOON = 1_767_268_800.0  # 2026-01-01T12:00:00Z


@pytest.mark.parametrize("key", ["k", "two-words", "with--dashes", "ends-20260101T120000Z"])
def test_a_name_in_the_trash_says_the_key_the_time_and_the_number(key):
    name = layout.format_trash_name(key, NOON, 26)
    assert name == f"{key}--20260101T120000Z-0000001a.md"
    assert layout.parse_trash_name(name) == layout.TrashName(key, "2026-01-01T12:00:00Z", 26)
    assert layout.parse_trashed_key(name) == key


@pytest.mark.parametrize("name", ["k.md", "k--20260101T120000Z.md", "--20260101T120000Z-0000001a.md", "k--x-0000001a.md", ""])
def test_other_files_in_the_trash_have_no_key(name):
    assert layout.parse_trash_name(name) is None
    assert layout.parse_trashed_key(name) == ""


def test_the_last_note_in_the_trash_comes_first_even_if_the_clock_went_back():
    first, second = layout.format_trash_name("k", NOON, 1), layout.format_trash_name("k", NOON - 60, 2)
    found = layout.select_trashed(HERE, None, [("trash", first), ("archive", second), ("trash", "other.txt")])
    assert [(note.part, note.name) for note in found] == [("archive", second), ("trash", first)]
    assert layout.find_last_number([first, second, "other.txt"]) == 2
    assert layout.find_last_number([]) == 0


def test_only_the_last_archived_note_of_a_wanted_key_is_selected():
    names = [layout.format_trash_name(key, NOON + n, n) for n, key in enumerate(["a", "b", "a", "c"])]
    found = layout.select_last_archived([(HERE, "a"), (HERE, "b"), (HERE, "missing")], {HERE: names})
    assert {key: note.name for key, note in found.items()} == {(HERE, "a"): names[2], (HERE, "b"): names[1]}


@pytest.mark.parametrize("name", ["s.jsonl", "c/s.txt", "c/d/s.jsonl", "/s.jsonl", ".c/s.jsonl", "c/.s.jsonl", "c/s\0.jsonl"])
def test_other_names_are_not_transcripts(name):
    with pytest.raises(InvalidPath):
        layout.split_transcript_name(name)


def test_a_transcript_is_named_by_client_and_session():
    assert layout.split_transcript_name("c/s.jsonl") == ("c", "s.jsonl")
    assert layout.format_trashed_transcript("s.jsonl", "20260101T120000Z") == "s--20260101T120000Z.jsonl"
