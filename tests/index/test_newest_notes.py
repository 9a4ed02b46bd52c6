"""The newest notes of a scope and their number: read from indexes, with the same result as reading every note."""

from __future__ import annotations

import pytest

from holdfast.index.sqlite import SqliteIndex

NOW = "2026-06-01T00:00:00Z"
SCOPE = "projects/demo"


@pytest.fixture
def filled(open_memory, home):
    """Notes of every kind: pinned, ended, ending later, of every origin, by hand without an id, and one that is not text."""
    with open_memory(origin="user") as memory:
        for number, origin in enumerate(["user", "agent", "tool", "import", "web"] * 3):
            ends = {0: "2026-05-01", 1: "2027-01-01"}.get(number % 4)
            given = {"valid_from": "2026-01-01", "valid_to": ends} if ends else {}
            memory.store(f"harbour {number}", key=f"note-{number}", origin=origin, pinned=number % 7 == 3, **given)
        memory.store("another place", key="there", scope="global")
    notes = home / "shelf" / SCOPE / "notes"
    for name in ("by-hand", "also-by-hand"):
        (notes / f"{name}.md").write_text(f"{name} this was written\n")
    (notes / "empty.md").write_text("")
    (notes / "no-text.md").mkdir()
    with open_memory() as memory:
        memory.list()
    return home


@pytest.mark.parametrize("quarantine", [(), ("web", "import"), ("agent", "web")], ids=", ".join)
@pytest.mark.parametrize("now", ["", NOW])
@pytest.mark.parametrize("only", [None, 0, 1])
def test_one_scope_tells_its_notes_as_it_does_among_others_and_counts_them(filled, quarantine, now, only):
    index = SqliteIndex(str(filled), 5, quarantine)
    try:
        alone = index.list_notes((SCOPE,), now=now, only=only)
        among = [row for row in index.list_notes((SCOPE, "global"), now=now, only=only) if row.scope.folder == SCOPE]
        assert alone == among
        assert index.count_notes((SCOPE,), now, only) == len(alone)
        assert index.count_notes((SCOPE, "global"), now, only) == len(index.list_notes((SCOPE, "global"), now=now, only=only))
        assert index.list_notes((SCOPE,), now=now, only=only, most=3) == alone[:3]
        assert index.list_notes((SCOPE,), type="feedback") == [] == index.list_notes((SCOPE,), tags=("none",))
    finally:
        index.close()


def test_the_count_follows_what_comes_and_goes(open_memory, home):
    with open_memory() as memory:
        for number in range(4):
            memory.store(f"harbour {number}", key=f"note-{number}")
        memory.store("harbour 1 anew", key="note-1")
        memory.forget("note-2")
        (home / "shelf" / SCOPE / "notes" / "note-3.md").unlink()
        memory.list()
    index = SqliteIndex(str(home), 5)
    try:
        assert index.count_notes((SCOPE,)) == 2
    finally:
        index.close()
