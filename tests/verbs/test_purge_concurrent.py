"""Changes of sessions and scopes by other processes while a purge is in progress."""

from __future__ import annotations

import pytest

from holdfast.verbs.purge import transcripts

TEXT = "the harbour code of zanzibarqvx7 is forty-two and a half"


def say(memory, text, session="s1"):
    return memory.log([{"role": "user", "text": text}], session=session, client="chat")


def once(monkeypatch, place, name, do):
    """Run a function just before the first call of this one."""
    real, done = getattr(place, name), []

    def meanwhile(*given, **named):
        if not done:
            done.append(True)
            do()
        return real(*given, **named)

    monkeypatch.setattr(place, name, meanwhile)


def holding(home):
    return [path.name for path in home.rglob("*") if path.is_file() and b"zanzibarqvx7" in path.read_bytes()]


@pytest.mark.promise("N10")
@pytest.mark.parametrize("back", [True, False], ids=["back from the trash", "to the trash"])
def test_a_session_that_moves_while_it_is_purged_is_purged(memory, open_memory, monkeypatch, home, back):
    other = open_memory()
    say(other, TEXT)
    if back:
        other.forget_session("s1", client="chat")
    move = other.restore_session if back else other.forget_session
    once(monkeypatch, memory._context, "refresh", lambda: move("s1", client="chat"))
    receipt = memory.purge(session="s1", client="chat")
    assert (receipt.state, receipt.turns, receipt.deleted) == ("done", 1, True)
    assert holding(home) == [] and say(other, TEXT).purged == 1


@pytest.mark.promise("N10")
def test_a_turn_that_comes_while_its_session_is_purged_is_refused_like_the_others(memory, open_memory, monkeypatch, home):
    other = open_memory()
    say(other, "the first thing that was said in this session")
    refuse, late = transcripts._refuse, []

    def meanwhile(*given):
        refuse(*given)
        if not late:
            late.append(say(other, TEXT))

    monkeypatch.setattr(transcripts, "_refuse", meanwhile)
    receipt = memory.purge(session="s1", client="chat")
    assert (receipt.state, receipt.turns) == ("done", 2)
    assert holding(home) == [] and say(other, TEXT).purged == 1


@pytest.mark.promise("N10")
def test_a_note_of_a_project_that_is_new_meanwhile_goes_with_the_text(open_memory, monkeypatch, home):
    person, other = open_memory(origin="user"), open_memory(project="brandnew")
    person.store(f"a note: {TEXT}", key="known")
    once(monkeypatch, person._context, "refresh", lambda: other.store(TEXT, key="late"))
    receipt = person.purge(text=TEXT)
    assert receipt.state == "done" and sorted(receipt.removed)[0] == "projects/brandnew/notes/late.md"
    assert holding(home) == []
