"""A sample of `python -m battery leaks`: callers see the notes they may see and no others."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the battery is beside the package, not in it

from battery import leaks
from battery.workspace import Workspace


@pytest.mark.promise("N8")
def test_no_verb_of_library_or_mcp_shows_a_foreign_note(tmp_path):
    assert leaks.run_sample(Workspace.attach(str(tmp_path))) == []


def test_it_would_notice_a_leak(tmp_path, monkeypatch):
    monkeypatch.setattr(leaks, "CALLERS", (leaks.OWNER,))
    monkeypatch.setattr(leaks.Caller, "may_see", lambda *_: False)
    assert "a foreign note" in leaks.run_sample(Workspace.attach(str(tmp_path)))[0]
