"""A sample of `python -m battery leaks`: callers see the notes they may see and no others."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the battery is beside the package, not in it

from battery import leaks
from battery.lab import Lab


@pytest.mark.promise("N8")
def test_no_verb_of_the_library_or_mcp_shows_a_note_of_another_caller(tmp_path):
    assert leaks.sample(Lab.take(str(tmp_path))) == []


def test_a_leak_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(leaks, "ASKERS", (leaks.OWNER,))
    monkeypatch.setattr(leaks.Asker, "sees", lambda *_: False)
    assert "a foreign note" in leaks.sample(Lab.take(str(tmp_path)))[0]
