"""An interrupted purge, and what blocks it: the obstacle is named, and the purge finishes when it is removed."""

from __future__ import annotations

import json

import pytest

from holdfast.cli import main
from holdfast.errors import Busy, HoldfastError, Purged
from holdfast.verbs.purge.job import PurgeJob

TEXT = "The harbour code of zanzibarqvx7 is forty-two and a half."


@pytest.fixture
def cut_short(monkeypatch):
    """Start a purge whose process ends when the files are deleted, and before anything else is."""

    def run(memory, *given, **named):
        with monkeypatch.context() as patched:
            patched.setattr(PurgeJob, "scrub", _breaks)
            with pytest.raises(HoldfastError):
                memory.purge(*given, **named)
        assert memory.receipts()[0].state == "begun"

    return run


def _breaks(*_, **__):
    raise OSError(5, "Input/output error")


def of_purge(memory):
    return [problem for problem in memory.check() if problem.code == "purge"]


@pytest.fixture
def obstacle(home, open_memory):
    """Put a folder at the path of another project's index.md."""
    open_memory(project="other").store("Words that have nothing to do with it.", key="l")
    path = home / "shelf" / "projects" / "other" / "index.md"
    path.unlink()
    path.mkdir()
    return path


@pytest.mark.promise("N10")
def test_an_agents_purge_that_was_cut_short_ends_although_another_scope_says_the_same(memory, open_memory, cut_short):
    other = open_memory(project="other")
    memory.store(TEXT, key="k")
    cut_short(memory, "k")
    other.store(TEXT, key="theirs")  # allowed from the moment that the purge began
    with pytest.raises(Purged):
        memory.store(TEXT, key="again")
    assert of_purge(memory) == [] and [receipt.state for receipt in memory.receipts()] == ["done"]
    assert other.get("theirs").text == TEXT and [hit.key for hit in other.recall("zanzibarqvx7", mode="keyword")] == ["theirs"]
    with pytest.raises(Purged):
        memory.store(TEXT, key="again")


@pytest.mark.promise("N10")
@pytest.mark.parametrize("key", ["k", "zanzibarqvx7-code"], ids=["a key that is kept", "a key made of what is purged"])
def test_a_list_that_cannot_be_made_keeps_a_purge_open_by_name_and_only_until_it_can(memory, cut_short, obstacle, home, key):
    memory.store(TEXT, key=key)
    cut_short(memory, key)
    for _ in range(2):
        [problem] = of_purge(memory)
        assert "shelf/projects/other/index.md: a folder is in its place" in problem.message
        assert problem.fix.startswith("Remove what blocks index.md, then run `holdfast") and problem.fix.endswith("doctor`")
        again = memory.purge(key)
        assert (again.key, again.state, again.id) == (key, "pending", memory.receipts()[0].id)
        assert again.pending == ("shelf/projects/other/index.md: a folder is in its place",)
    assert [receipt.state for receipt in memory.receipts()] == ["pending"]
    obstacle.rmdir()
    assert memory.check() == [] and obstacle.is_file()
    [receipt] = memory.receipts()
    assert (receipt.state, receipt.pending) == ("done", ()) and sum("finished" in one for one in receipt.checks) == 1
    over = memory.purge(key)
    assert (over.deleted, over.state, over.id) == (False, "done", "")
    assert all(b"zanzibarqvx7" not in path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_on_the_command_line_a_purge_that_is_not_over_is_not_a_note_that_was_never_there(
    memory, cut_short, obstacle, home, monkeypatch, capsys
):
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    memory.store(TEXT, key="k")
    cut_short(memory, "k")
    asked = ["--project", "demo", "purge", "k", "--yes", "--json"]
    assert main(asked) == 4
    assert json.loads(capsys.readouterr().out)["pending"] == ["shelf/projects/other/index.md: a folder is in its place"]
    obstacle.rmdir()
    assert main(asked) == 1 and memory.receipts()[0].state == "done"


def test_a_purge_that_another_program_keeps_from_ending_is_told_to_whoever_purges_that_note_and_no_other(
    memory, open_memory, cut_short, monkeypatch
):
    memory.store(TEXT, key="k")
    cut_short(memory, "k")
    with monkeypatch.context() as patched:
        patched.setattr(type(memory._context.index), "scrub", _busy_if_rewritten)
        again, other = memory.purge("k"), memory.purge("another")
        elsewhere = open_memory(project="elsewhere").purge("k")
        [problem] = of_purge(memory)
    assert again.state == "pending" and "interrupted" in again.pending[0]
    assert (other.state, other.id, elsewhere.state, elsewhere.id) == ("done", "", "done", "")
    assert "is not complete" in problem.message and "Stop the programs that use these files" in problem.fix
    assert memory.purge("k").state == "done" and memory.receipts()[0].state == "done"


def _busy_if_rewritten(*_, rewrite=False, **__):
    if rewrite:
        raise Busy("another program reads old pages", "Try again")


def test_a_purge_with_transcripts_that_was_cut_short_is_not_over_for_whoever_purges_the_note_again(memory, cut_short):
    memory.store(TEXT, key="k")
    cut_short(memory, "k", transcripts=True)
    again = memory.purge("k", transcripts=True)
    assert (again.state, again.id) == ("pending", memory.receipts()[0].id)
    assert "interrupted" in again.pending[0]


def test_what_stands_for_a_note_is_kept_until_its_purge_is_over_and_no_longer(memory, cut_short):
    memory.store(TEXT, key="k")
    memory.store("Quite another text to purge.", key="l")
    cut_short(memory, "k")
    kept = memory._context.ledger.purges
    assert kept.list_receipts()[0]["named"]
    memory.purge("l")
    assert [receipt.get("named") for receipt in kept.list_receipts()] == [None, None]
