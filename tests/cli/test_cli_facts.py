"""`fact`, `facts` and `graph`."""

from __future__ import annotations

import pytest


@pytest.mark.promise("T3")
def test_a_fact_retires_the_previous_one(holdfast):
    holdfast("fact", "Telegram", "status", "disabled", "--on", "2026-03-20")
    said = holdfast("fact", "Telegram", "status", "enabled", "--on", "2026-03-27")
    assert said.out.splitlines() == [
        "updated Telegram: status: enabled (since 2026-03-27) in project:demo",
        "  closed status: disabled (since 2026-03-20)",
    ]
    assert [fact["value"] for fact in holdfast("facts", "Telegram", "--json").json] == ["enabled"]
    assert [fact["value"] for fact in holdfast("facts", "--as-of", "2026-03-22", "--json").json] == ["disabled"]
    assert len(holdfast("facts", "Telegram", "--label", "status", "--history", "--json").json) == 2


def test_many_adds_a_fact_beside_the_others(holdfast):
    holdfast("fact", "Bob", "likes", "tea")
    holdfast("fact", "Bob", "likes", "cake", "--many", "--scope", "project", "--origin", "agent")
    table = holdfast("facts", "Bob").out.splitlines()
    assert table[0].split() == ["SUBJECT", "LABEL", "FROM", "TO", "SCOPE", "VALUE"]
    assert [line.split()[-1] for line in table[1:]] == ["tea", "cake"]


def test_facts_without_a_match_exits_0(holdfast):
    said = holdfast("facts")
    assert (said.code, said.out, said.err) == (0, "", "No facts found.\n")


FACTS = (
    ("Telegram", "owner", "[[Bob]]", "--on", "2026-01-05"), ("Telegram", "owner", "[[Ada]]", "--on", "2026-03-27"),
    ("Ada Lovelace", "alias", "Ada", "--on", "2026-01-01"), ("Ada Lovelace", "team", "[[Platform]]", "--on", "2026-02-01"),
)  # fmt: skip


@pytest.fixture
def linked(holdfast):
    for words in FACTS:
        holdfast("fact", *words)
    return holdfast


@pytest.mark.promise("T4")
def test_graph_draws_links_now_and_as_of_a_day(linked):
    assert linked("graph", "telegram", "--depth", "2").out.splitlines() == [
        "Telegram",
        "└── owner → Ada Lovelace (also Ada) (since 2026-03-27)",
        "    └── team → Platform (since 2026-02-01)",
    ]
    before = linked("graph", "Telegram", "--as-of", "2026-02-01").out.splitlines()
    assert before == ["Telegram", "└── owner → Bob (2026-01-05 to 2026-03-27)"]
    around = linked("graph", "Ada", "--json").json["entities"]
    assert [one["name"] for one in around] == ["Ada Lovelace", "Platform", "Telegram"]
    assert linked("graph", "Ada", "--format", "mermaid").out.startswith("graph LR\n")
    assert linked("graph", "Ada", "--format", "dot").out.startswith("digraph facts {\n")


@pytest.mark.promise("T4")
def test_graph_finds_the_shortest_path(linked):
    assert linked("graph", "Platform", "--to", "telegram").out.splitlines() == [
        "Platform", "└── team ← Ada Lovelace (since 2026-02-01)", "    └── owner ← Telegram (since 2026-03-27)"
    ]  # fmt: skip
    assert [edge["label"] for edge in linked("graph", "Ada", "--to", "telegram", "--json").json] == ["owner"]
    said = linked("graph", "Platform", "--to", "Bob")
    assert (said.code, said.out, said.err) == (0, "", "no path from Platform to Bob\n")
    assert linked("graph", "Platform", "--to", "Bob", "--json").json == []


def test_graph_of_an_unknown_entity_exits_0_and_an_unknown_format_exits_2(linked):
    said = linked("graph", "Zeppelin")
    assert (said.code, said.out, said.err) == (0, "", "no facts about Zeppelin\n")
    assert linked("graph", "Zeppelin", "--json").json["entities"] == []
    for words in (("--format", "svg"), ("--depth", "2", "--to", "Ada"), ("--format", "dot", "--json"), ("--depth", "-1")):
        assert linked("graph", "Telegram", *words).code == 2
