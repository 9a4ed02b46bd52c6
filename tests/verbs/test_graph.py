"""The graph of facts: links between entities, under any of their names, and drawings."""

from __future__ import annotations

import random
from collections import deque
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import UsageError
from holdfast.formats import facts as dated
from holdfast.models import Fact, Scope
from holdfast.verbs.graph import Graph, as_dot, as_mermaid, as_text, build_graph, find_path

PAGE = Path(__file__).parents[2] / "docs" / "facts.md"

TEXTS = {
    "Telegram": """
- ~~[2026-01-05] owner: [[Bob]]~~ superseded 2026-03-27
- [2026-03-27] owner: [[Ada]]
- [2026-03-27] status: enabled
""",
    "Ada Lovelace": """
- [2026-01-01] alias: Ada, the Countess
- [2026-02-01] team: [[Platform]]
- [2026-02-01] desk: 4.12
""",
    "billing": "- [2026-02-10] uses: [[telegram]] and [[PostgreSQL|the database]]\n",
    "Platform": "- [2026-01-01] lead: [[Bob]]\n",
}


def known(texts: dict[str, str] = TEXTS) -> list[Fact]:
    return [
        fact
        for subject, text in texts.items()
        for fact in dated.parse_facts(text, subject, Scope("global"), f"{subject}.md", 1)
    ]


def fact(subject: str, label: str, value: str, start: str = "2026-01-01", end: str | None = None) -> Fact:
    return dated.parse_facts(
        f"- [{start}] {label}: {value}" if end is None else f"- ~~[{start}] {label}: {value}~~ superseded {end}",
        subject, Scope("global"), "", 1,
    )[0]  # fmt: skip


def names(found: Graph) -> list[tuple[str, int]]:
    return [(entity.name, entity.distance) for entity in found.entities]


def arrows(found) -> list[str]:
    edges = found.edges if isinstance(found, Graph) else found
    return [f"{edge.source} {edge.label} {edge.target}" for edge in edges]


@pytest.mark.promise("T4")
def test_neighbours_either_way_by_distance():
    one = build_graph(known(), "Telegram")
    assert names(one) == [("Telegram", 0), ("Ada Lovelace", 1), ("billing", 1), ("Bob", 1)]
    assert arrows(one) == ["Telegram owner Ada Lovelace", "billing uses Telegram", "Telegram owner Bob"]
    two = build_graph(known(), "Telegram", 2)
    assert names(two)[4:] == [("Platform", 2), ("PostgreSQL", 2)]
    assert arrows(two)[3:] == ["Ada Lovelace team Platform", "billing uses PostgreSQL", "Platform lead Bob"]


@pytest.mark.promise("T4")
def test_an_edge_says_from_when_to_when_and_where_it_stands():
    bob = build_graph(known(), "Telegram").edges[2]
    assert (bob.valid_from, bob.valid_to, bob.fact.path, bob.fact.line) == ("2026-01-05", "2026-03-27", "Telegram.md", 2)


@pytest.mark.promise("T4")
@pytest.mark.parametrize("name", ["Ada", "ada", "ADA  LOVELACE", "the countess", "Ada\tLovelace"])
def test_case_spacing_and_aliases_are_one_entity(name):
    found = build_graph(known(), name)
    assert found.start == "Ada Lovelace"
    assert found.entities[0].aliases == ("Ada", "the Countess")
    assert names(found) == [("Ada Lovelace", 0), ("Platform", 1), ("Telegram", 1)]


@pytest.mark.parametrize(
    "line", ["alias: [[Ada]]", "Alias: Ada", "aliases: A, Ada", "aka: [[Ada]] or [[A]]", "Also  known as: Ada"]
)
def test_the_ways_to_declare_an_alias(line):
    label, _, value = line.partition(": ")
    facts = [fact("Ada Lovelace", label, value), fact("Telegram", "owner", "[[ada]]")]
    assert arrows(build_graph(facts, "Ada Lovelace")) == ["Telegram owner Ada Lovelace"]


@pytest.mark.promise("T4")
def test_an_alias_holds_as_long_as_its_fact():
    facts = [fact("Ada Lovelace", "alias", "Ada", "2026-01-01", "2026-03-01"), fact("Telegram", "owner", "[[Ada]]")]
    assert build_graph(facts, "Ada").start == "Ada Lovelace"
    later = [one for one in facts if one.valid_to is None]  # as the index returns them as of a later day
    assert build_graph(later, "Ada").start == "Ada"
    assert build_graph(later, "Ada Lovelace").entities == ()


def test_aliases_of_aliases_are_one_and_loops_do_no_harm():
    facts = [fact("A", "alias", "B"), fact("B", "alias", "C"), fact("C", "alias", "A"), fact("C", "knows", "[[B]] and [[D]]")]
    assert arrows(build_graph(facts, "d")) == ["A knows D"]
    assert build_graph(facts, "b").entities[0].aliases == ("B", "C")


def test_the_name_shown_does_not_hang_on_the_order_of_facts():
    facts = known()
    shuffled = facts[:]
    for seed in range(10):
        random.Random(seed).shuffle(shuffled)
        assert as_text(build_graph(shuffled, "telegram", 3)) == as_text(build_graph(facts, "Telegram", 3))
        assert find_path(shuffled, "billing", "bob") == find_path(facts, "billing", "bob")


def test_depth_none_unknown_and_unlinked():
    assert names(build_graph(known(), "Telegram", 0)) == [("Telegram", 0)]
    assert build_graph(known(), "Nobody", 3) == Graph("Nobody", (), ())
    assert names(build_graph([fact("Moon", "phase", "full")], "moon")) == [("Moon", 0)]
    with pytest.raises(UsageError, match="depth"):
        build_graph(known(), "Telegram", -1)


def test_a_link_to_itself_or_twice_is_nothing_new():
    assert arrows(build_graph([fact("A", "is", "[[a]]")], "A")) == []
    assert arrows(build_graph([fact("A", "is", "[[B]] and [[b]]")], "A")) == ["A is B"]


@pytest.mark.promise("T4")
def test_the_path_is_the_shortest_and_goes_either_way():
    assert arrows(find_path(known(), "PostgreSQL", "Platform")) == [
        "billing uses PostgreSQL", "billing uses Telegram", "Telegram owner Ada Lovelace", "Ada Lovelace team Platform",
    ]  # fmt: skip
    assert find_path(known(), "Telegram", "TELEGRAM") == []
    assert find_path(known(), "Telegram", "Nobody") == []
    assert find_path([fact("A", "is", "[[B]]"), fact("C", "is", "[[D]]")], "A", "D") == []


def test_of_equal_paths_the_first_by_name_and_of_equal_links_the_one_that_holds():
    facts = [
        fact("A", "x", "[[C]]"), fact("A", "x", "[[B]]"), fact("C", "x", "[[D]]"), fact("B", "x", "[[D]]"),
        fact("A", "old", "[[B]]", "2025-01-01", "2025-02-01"),
    ]  # fmt: skip
    assert arrows(find_path(facts, "A", "D")) == ["A x B", "B x D"]


# --- drawings


def test_the_tree_is_as_the_page_shows_it():
    drawn = as_text(build_graph(known(), "Telegram", 2))
    assert drawn == (
        "Telegram\n"
        "├── owner → Ada Lovelace (also Ada, the Countess) (since 2026-03-27)\n"
        "│   └── team → Platform (since 2026-02-01)\n"
        "├── uses ← billing (since 2026-02-10)\n"
        "│   └── uses → PostgreSQL (since 2026-02-10)\n"
        "└── owner → Bob (2026-01-05 to 2026-03-27)\n"
        "    └── lead ← Platform (since 2026-01-01)"
    )
    page = PAGE.read_text(encoding="utf-8")
    assert drawn in page
    assert as_mermaid(build_graph(known(), "Telegram", 2)) in page
    for subject, text in TEXTS.items():
        assert f"# {subject}\n\n{text.strip()}\n" in page


def test_nothing_known_is_said():
    assert as_text(build_graph([], "Nobody")) == "Nobody: no facts"


def test_names_cannot_break_out_of_a_drawing():
    facts = [fact('A"];x', 'l"|', '[[<b> \\" #1;]]')]
    found = build_graph(facts, 'a"];x')
    lines = as_mermaid(found).splitlines()
    assert lines[1] == '    n0["A#34;#93;#59;x"]'
    assert all(line.count('"') == 2 for line in lines[1:])
    assert '    n0 [label="A\\"];x"];' in as_dot(found)
    assert '    n1 [label="<b> \\\\\\" #1;"];' in as_dot(found)


def test_links_that_are_over_look_so():
    found = build_graph(known(), "Telegram")
    assert 'n0 -.->|"owner, 2026-01-05 to 2026-03-27"| n3' in as_mermaid(found)
    assert 'n0 -> n3 [label="owner, 2026-01-05 to 2026-03-27", style=dashed];' in as_dot(found)


def test_a_very_long_chain_is_drawn():
    chain = [fact(f"n{number}", "next", f"[[n{number + 1}]]") for number in range(3000)]
    assert len(as_text(build_graph(chain, "n0", 5000)).splitlines()) == 3001
    assert len(find_path(chain, "n3000", "n0")) == 3000


# --- compared with a plain search

LETTERS = "abcdefgh"
LINKS = st.lists(st.tuples(st.sampled_from(LETTERS), st.sampled_from(LETTERS)), max_size=14)


def steps(links: list[tuple[str, str]], start: str) -> dict[str, int]:
    found, waiting = {start: 0}, deque([start])
    while waiting:
        one = waiting.popleft()
        for a, b in links:
            other = b if a == one else a if b == one else one
            if other not in found:
                found[other] = found[one] + 1
                waiting.append(other)
    return found


@given(LINKS, st.sampled_from(LETTERS), st.sampled_from(LETTERS), st.integers(0, 4))
def test_distances_and_paths_are_those_of_a_plain_search(links, start, goal, depth):
    facts = [fact(a.upper(), "x", f"[[{b}]]") for a, b in links]
    distance = steps(links, start)
    mentioned = any(start in link for link in links)
    found = build_graph(facts, start, depth)
    assert {one.name.lower(): one.distance for one in found.entities} == (
        {name: far for name, far in distance.items() if far <= depth} if mentioned else {}
    )
    walk = find_path(facts, start, goal)
    assert len(walk) == (distance.get(goal, 0) if mentioned else 0)
    place = start
    for edge in walk:
        ends = [edge.source.lower(), edge.target.lower()]
        assert place in ends
        place = ends[1] if ends[0] == place else ends[0]
    assert not walk or place == goal


def test_a_hundred_thousand_facts():
    chance = random.Random(1)
    facts = [
        Fact(f"Entity {chance.randrange(50_000)}", "knows", "", "2026-01-01", links=(f"entity {chance.randrange(50_000)}",))
        for _ in range(100_000)
    ]
    beside: dict[str, set[str]] = {}
    for one in facts:
        for first, second in ((one.subject, one.links[0]), (one.links[0], one.subject)):
            beside.setdefault(first.lower(), set()).add(second.lower())
    reached, edge = {"entity 5"}, {"entity 5"}
    steps = 0
    while "entity 77" not in reached and edge:
        edge = {name for known in edge for name in beside[known]} - reached
        reached |= edge
        steps += 1
    assert len(find_path(facts, "entity 5", "entity 77")) == (steps if "entity 77" in reached else 0)
    assert len(build_graph(facts, "entity 5", 1).edges) >= len(beside["entity 5"])
