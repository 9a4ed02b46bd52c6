"""Search by facts: what is stated about the things that a question names."""

from __future__ import annotations

import pytest

from holdfast.search.fact_matches import find_names

pytestmark = pytest.mark.xdist_group("models")


@pytest.fixture
def facts(open_memory, monkeypatch):
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "default")
    memory = open_memory()
    memory.fact("Kubernetes", "alias", "K8s, kube")
    memory.fact("Kubernetes", "version", "1.34", on="2026-02-01")
    memory.fact("Telegram", "status", "enabled", on="2026-03-27")
    memory.fact("Ada", "works_at", "[[Acme]]", on="2026-01-05")
    for number in range(20):
        memory.store(f"Version {number} of the plan was written on day {number}.", key=f"plan-{number}")
    return memory


def test_a_thing_is_found_by_its_other_name(facts):
    hits = facts.recall("which version of K8s?").hits
    assert hits[0].key == "kubernetes"


def test_an_alias_finds_facts_that_stand_where_it_does_not(facts):
    facts.store("- [2026-05-01] Kubernetes: moved to eu-west", key="regions")
    hits = facts.recall("where did kube go", explain=True).hits
    found = next(hit for hit in hits if hit.key == "regions")
    assert found.why["fact"][0] > 0


def test_a_fact_of_the_kind_asked_for_comes_before_another(facts):
    hits = facts.recall("Telegram status", explain=True).hits
    assert hits[0].key == "telegram"
    assert hits[0].why["fact"][0] == 1.0


def test_what_is_no_longer_true_is_no_leg(facts):
    facts.fact("Old thing", "state", "here", on="2025-01-01")
    note = facts.get("old-thing")
    ended = note.text.replace("- [2025-01-01] state: here", "- ~~[2025-01-01] state: here~~ ended 2025-06-01")
    facts.store(ended, key="old-thing")
    hits = facts.recall("Old thing", explain=True).hits
    assert all("fact" not in (hit.why or {}) for hit in hits)


def test_another_project_s_facts_are_no_leg(facts, open_memory):
    other = open_memory(project="elsewhere")
    assert not any(hit.key == "kubernetes" for hit in other.recall("K8s version").hits)


def test_names_are_runs_of_words():
    assert find_names("Is the Data Lake's v1.2 ready?") >= {"data", "data lake's", "v1.2", "lake's v1.2 ready"}
    assert "the" not in find_names("the")
    assert find_names("") == set()


def test_facts_are_known_under_any_name_and_a_new_one_closes_the_old(open_memory):
    memory = open_memory()
    memory.fact("Ada Lovelace", "alias", "Ada", on="2026-01-01")
    memory.fact("Ada Lovelace", "team", "[[Platform]]", on="2026-02-01")
    assert [fact.value for fact in memory.facts("ada", label="team")] == ["[[Platform]]"]
    assert memory.fact("Ada", "team", "[[Infra]]", on="2026-05-01").fact.subject == "Ada Lovelace"
    assert [fact.value for fact in memory.facts("Ada Lovelace", label="team")] == ["[[Infra]]"]
    assert memory.facts("Ada", label="team") == memory.facts("Ada Lovelace", label="team")


def test_names_that_meet_by_way_of_a_third_are_one(open_memory):
    memory = open_memory()
    memory.fact("Kubernetes", "alias", "K8s")
    memory.fact("Cluster", "alias", "K8s")
    memory.fact("Cluster", "region", "eu-west")
    assert [fact.value for fact in memory.facts("kubernetes", label="region")] == ["eu-west"]
