"""Tests of promises that span several packages."""

from __future__ import annotations

import pytest


@pytest.mark.promise("promise-6")
def test_no_verb_opens_a_socket_or_starts_a_program(child, home):
    events = child(
        """
        os.environ["HOLDFAST_EMBEDDER"] = "default"
        events = []
        watched = ("socket.", "urllib.", "http.", "ssl.", "smtplib.", "ftplib.", "subprocess.", "os.system", "os.exec")
        sys.addaudithook(lambda event, _: events.append(event) if event.startswith(watched) else None)
        with Memory(args[0], cwd=os.getcwd(), session="s", agent="a") as memory:
            memory.store("We deploy on Fridays.", key="deploys")
            memory.store_many([{"text": "one"}, {"text": "two"}], scope="global")
            memory.fact("Telegram", "status", "enabled")
            memory.files.create("plan.md", "# Plan")
            for call in (memory.list, memory.facts, memory.brief, memory.status, memory.check, memory.reindex, memory.retain):
                call()
            memory.log([{"role": "user", "text": "When do we deploy?", "id": "t"}], session="s", client="c")
            memory.expand("t"), memory.graph("Telegram"), memory.path("Telegram", "Ada"), memory.embed()
            memory.recall("deploy"), memory.search("plan"), memory.get("deploys"), memory.history("deploys")
            memory.forget("deploys"), memory.restore("deploys"), memory.purge("deploys"), memory.clear("global")
            memory.mark()
        answer = sorted(set(events))
        """,
        home,
    )
    assert events == []


def neighbours_and_path(memory, as_of=None):
    """Return the neighbours of billing, and the labels on the path from there to Bob, as of a day."""
    graph = memory.graph("BILLING", depth=2, as_of=as_of)
    return [entity.name for entity in graph.entities], [edge.label for edge in memory.path("billing", "bob", as_of=as_of)]


@pytest.mark.promise("T4")
def test_neighbours_and_paths_are_those_of_the_day_asked_about(memory):
    memory.fact("billing", "uses", "[[Telegram]]", on="2026-01-10")
    memory.fact("Telegram", "owner", "[[Bob]]", on="2026-01-05")
    memory.fact("Telegram", "owner", "[[Ada]]", on="2026-03-27")
    memory.fact("Ada Lovelace", "alias", "Ada", on="2026-03-01")
    assert neighbours_and_path(memory, "2026-02-01") == (["billing", "Telegram", "Bob"], ["uses", "owner"])
    assert neighbours_and_path(memory) == (["billing", "Telegram", "Ada Lovelace"], [])
    assert neighbours_and_path(memory, "2026-01-07") == ([], [])


@pytest.mark.promise("T4")
def test_links_of_another_project_are_not_followed(memory, open_memory):
    memory.fact("billing", "uses", "[[Telegram]]", on="2026-01-10")
    other = open_memory(project="other")
    assert other.graph("billing").entities == ()
    assert other.path("billing", "Telegram") == []


@pytest.mark.promise("H2")
def test_turns_are_found_with_notes_grouped_by_session_and_their_context_is_read(memory):
    memory.store("The harbour is dredged in June.", key="harbour")
    for session in ("monday", "tuesday"):
        texts = ["Good morning.", f"On {session} the harbour was closed.", "Why?"]
        turns = [{"role": "user", "text": text, "id": f"{session}-{text[:2]}"} for text in texts]
        memory.log(turns, session=session, client="c")
    answer = memory.recall("harbour", mode="keyword")
    assert {hit.kind for hit in answer} == {"note", "turn"}
    assert set(answer.sessions) == {"monday", "tuesday"}
    hit = answer.sessions["monday"][0]
    assert [turn.text for turn in memory.expand(hit.citation, before=1, after=1)] == [
        "Good morning.", "On monday the harbour was closed.", "Why?",
    ]  # fmt: skip
    assert [turn.text for turn in memory.expand(hit.key, before=0, after=0)] == [hit.text]
    assert {hit.kind for hit in memory.recall("harbour", mode="keyword", kind="turn")} == {"turn"}


@pytest.mark.promise("H2", "N8")
def test_turns_of_another_project_are_neither_found_nor_read(memory, open_memory):
    from holdfast.errors import NotFound

    memory.log([{"role": "user", "text": "The harbour is closed."}], session="s", client="c")
    citation = memory.recall("harbour", mode="keyword")[0].citation
    other = open_memory(project="other")
    assert len(other.recall("harbour", mode="keyword")) == 0
    with pytest.raises(NotFound):
        other.expand(citation)


@pytest.mark.promise("N7", "promise-8")
def test_an_unreachable_embedder_gives_a_degraded_answer_with_the_reason(open_memory, monkeypatch):
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "endpoint:m@http://127.0.0.1:9/v1")
    memory = open_memory()
    memory.store("The harbour is dredged in June.", key="harbour")
    answer = memory.recall("harbour")
    assert [hit.key for hit in answer] == ["harbour"]
    assert answer.degraded
    assert "127.0.0.1:9" in answer.reason
