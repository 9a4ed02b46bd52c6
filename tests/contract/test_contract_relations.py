"""Relations between notes, on both stores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from holdfast.errors import Conflict, InvalidKey, NotFound, Refused, UsageError
from holdfast.models import Scope


@pytest.fixture
def notes(person):
    """A person's memory with two notes about the same thing, and one about another."""
    person.store("Deploys run on Fridays with the old script.", key="old-deploys")
    person.store("Rollouts happen every Tuesday by pipeline.", key="deploys")
    person.store("Lunch is at noon.", key="lunch")
    return person


def stated(memory, key, **options):
    return [(one.key, one.kind, one.target, one.status) for one in memory.relations(key, **options)]


def test_a_relation_is_stated_once_and_listed_from_both_notes(notes):
    first = notes.relate("deploys", "supersedes", "old-deploys")
    again = notes.relate("deploys", "supersedes", "old-deploys")
    assert (first.action, again.action) == ("created", "unchanged")
    expected = [("deploys", "supersedes", "old-deploys", "accepted")]
    assert stated(notes, "deploys") == stated(notes, "old-deploys") == stated(notes, None) == expected
    assert first.relation.origin == "user" and first.relation.time
    assert notes.relations("lunch") == []


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_recall_puts_the_current_note_before_the_one_that_it_superseded(notes, mode):
    before = notes.recall("Fridays old script", mode=mode)
    assert before[0].key == "old-deploys" and before[0].superseded_by is None
    notes.relate("deploys", "supersedes", "old-deploys")
    hits = notes.recall("Fridays old script", mode=mode)
    keys = [hit.key for hit in hits]
    assert keys.index("deploys") + 1 == keys.index("old-deploys")
    assert {hit.key: hit.superseded_by for hit in hits}["old-deploys"] == "deploys"
    assert [hit.key for hit in notes.recall("Fridays old script", mode=mode, limit=1)] == ["deploys"]


def test_recall_names_the_last_note_of_a_chain(notes):
    notes.store("Rollouts happen daily.", key="daily")
    notes.relate("deploys", "supersedes", "old-deploys")
    notes.relate("daily", "supersedes", "deploys")
    hits = notes.recall("Fridays old script Tuesday", mode="keyword")
    assert [(hit.key, hit.superseded_by) for hit in hits if hit.superseded_by] == [
        (hit.key, "daily") for hit in hits if hit.key != "daily"
    ]
    assert hits[0].key == "daily"


def test_recall_of_the_past_ignores_relations(notes):
    notes.relate("deploys", "supersedes", "old-deploys")
    hits = notes.recall("Fridays old script", as_of="2999-01-01", mode="keyword")
    assert [hit.superseded_by for hit in hits] == [None] * len(hits)


def test_a_superseding_note_is_added_only_if_it_passes_the_filter(notes):
    notes.store("Deploys run on Fridays with the old script!", key="old-deploys", tags=["ops"])
    notes.relate("deploys", "supersedes", "old-deploys")
    hits = notes.recall("Fridays old script", mode="keyword", tags=["ops"])
    assert [(hit.key, hit.superseded_by) for hit in hits] == [("old-deploys", "deploys")]


def test_briefings_leave_a_superseded_note_out_and_say_why(notes):
    notes.relate("deploys", "supersedes", "old-deploys")
    assert "Tuesday" in notes.brief().text and "Fridays" not in notes.brief().text
    prompted = notes.brief(prompt="on which day do the deploys run with the old script?").text
    assert "Tuesday" in prompted and "Fridays" not in prompted
    for explained in (notes.brief(explain=True), notes.brief(prompt="old script on Fridays", explain=True)):
        assert {why.name: why.reason for why in explained.why}["project/old-deploys"] == "superseded by deploys"


def test_facts_of_a_superseded_note_are_not_briefed(notes):
    notes.store("# Canary\n\n- [2026-01-01] share: 5 %\n", key="canary")
    assert "5 %" in notes.brief().text
    notes.relate("deploys", "supersedes", "canary")
    assert "5 %" not in notes.brief().text


def test_a_note_that_ended_or_was_forgotten_supersedes_nothing(notes):
    notes.relate("deploys", "supersedes", "old-deploys")
    notes.store("Rollouts happened on Tuesdays.", key="deploys", valid_from="2020-01-01", valid_to="2021-01-01")
    assert "Fridays" in notes.brief().text
    notes.store("Rollouts happen every Tuesday by pipeline.", key="deploys")
    assert "Fridays" not in notes.brief().text
    notes.forget("deploys")
    assert "Fridays" in notes.brief().text
    assert stated(notes, None) == []
    notes.restore("deploys")
    assert stated(notes, None) == [("deploys", "supersedes", "old-deploys", "accepted")]


def test_a_later_note_on_the_same_key_inherits_no_relation(notes):
    notes.relate("deploys", "supersedes", "old-deploys")
    notes.forget("old-deploys")
    assert notes.relations("deploys") == []
    notes.store("Deploys of the other product.", key="old-deploys")
    assert notes.relations("deploys") == notes.relations("old-deploys") == []
    notes.forget("deploys")
    notes.store("Another text.", key="deploys")
    notes.forget("old-deploys")
    notes.restore("old-deploys")
    assert notes.relations("deploys") == []


def test_a_new_version_keeps_the_relations_of_its_note(notes):
    notes.relate("deploys", "supersedes", "old-deploys")
    notes.store("Rollouts happen every Wednesday.", key="deploys")
    assert stated(notes, "deploys") == [("deploys", "supersedes", "old-deploys", "accepted")]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("deploys", "supersedes", "deploys"), UsageError),
        (("deploys", "supersedes", "nothing"), NotFound),
        (("nothing", "supersedes", "deploys"), NotFound),
        (("deploys", "derived_from", "old-deploys"), UsageError),
        (("deploys", "eats", "old-deploys"), UsageError),
        (("deploys", "supersedes", "../old"), InvalidKey),
    ],
)
def test_bad_relations_are_refused(notes, arguments, error):
    with pytest.raises(error):
        notes.relate(*arguments)
    assert notes.relations() == []


def test_a_circle_of_superseding_notes_is_refused(notes):
    notes.relate("deploys", "supersedes", "old-deploys")
    notes.relate("lunch", "supersedes", "deploys")
    with pytest.raises(Conflict, match="circle"):
        notes.relate("old-deploys", "supersedes", "lunch")


def test_a_note_relates_to_a_global_note_but_not_to_a_narrower_scope(open_any):
    memory = open_any(origin="user", agent="reviewer")
    memory.store("House rules.", key="rules", scope="global")
    memory.store("Our own rules.", key="ours")
    memory.store("My notes.", key="mine", scope="agent")
    related = memory.relate("ours", "supersedes", "rules")
    assert related.relation.target_scope == Scope("global")
    assert [hit.superseded_by for hit in memory.recall("House", mode="keyword") if hit.key == "rules"] == ["ours"]
    with pytest.raises(UsageError, match="not all its readers"):
        memory.relate("rules", "relates_to", "ours")
    with pytest.raises(UsageError, match="not all its readers"):
        memory.relate("ours", "relates_to", "mine")


def test_another_project_does_not_see_what_superseded_a_global_note(open_any):
    memory = open_any(origin="user", project="one")
    memory.store("House rules.", key="rules", scope="global")
    memory.store("Our own rules.", key="ours")
    memory.relate("ours", "supersedes", "rules")
    other = open_any(origin="user", project="two")
    assert other.relations("rules") == []
    assert [hit.superseded_by for hit in other.recall("House rules", mode="keyword")] == [None]
    assert "House rules" in other.brief().text


def test_an_agent_supersedes_its_own_notes_and_only_proposes_to_supersede_a_persons(notes, open_any):
    agent = open_any(origin="agent")
    agent.store("First finding.", key="first")
    agent.store("Second finding.", key="second")
    assert agent.relate("second", "supersedes", "first").relation.status == "accepted"
    proposed = agent.relate("second", "supersedes", "deploys")
    assert (proposed.action, proposed.relation.status, proposed.relation.origin) == ("created", "proposed", "agent")
    assert agent.relate("second", "relates_to", "deploys").relation.status == "accepted"
    assert all(hit.superseded_by is None for hit in agent.recall("Rollouts Tuesday", mode="keyword") if hit.key == "deploys")
    assert stated(notes, None, status="proposed") == [("second", "supersedes", "deploys", "proposed")]


def test_what_a_person_accepts_counts_and_what_a_person_rejects_is_never_proposed_again(notes, open_any):
    agent = open_any(origin="agent")
    agent.store("A finding.", key="finding")
    agent.relate("finding", "supersedes", "deploys")
    agent.relate("finding", "contradicts", "lunch")
    assert notes.accept_relation("finding", "supersedes", "deploys").relation.status == "accepted"
    assert [hit.superseded_by for hit in agent.recall("Rollouts", mode="keyword") if hit.key == "deploys"] == ["finding"]
    assert notes.reject_relation("finding", "contradicts", "lunch").relation.status == "rejected"
    again = agent.relate("finding", "contradicts", "lunch")
    reverse = agent.relate("lunch", "contradicts", "finding")
    assert [(one.action, one.relation.status) for one in (again, reverse)] == [("unchanged", "rejected")] * 2
    with pytest.raises(Refused):
        agent.unrelate("finding", "contradicts", "lunch")
    assert stated(notes, None, status="proposed") == []
    assert notes.relate("finding", "contradicts", "lunch").relation.status == "accepted"  # a person may change their mind


def test_agents_neither_decide_nor_remove_what_a_person_stated(notes, open_any):
    notes.relate("deploys", "supersedes", "old-deploys")
    agent = open_any(origin="agent")
    for decide in (agent.accept_relation, agent.reject_relation, agent.unrelate):
        with pytest.raises(Refused):
            decide("deploys", "supersedes", "old-deploys")
    with pytest.raises(Refused):
        agent.relations(everywhere=True)


def test_a_relation_that_is_removed_is_gone(notes):
    notes.relate("deploys", "supersedes", "old-deploys")
    assert notes.unrelate("deploys", "supersedes", "old-deploys").action == "removed"
    assert notes.relations() == []
    with pytest.raises(NotFound):
        notes.unrelate("deploys", "supersedes", "old-deploys")


def test_a_note_in_quarantine_supersedes_nothing(notes, open_any):
    scraper = open_any(origin="web")
    scraper.store("Deploys are cancelled.", key="scraped")
    notes.relate("scraped", "supersedes", "deploys")
    assert "Tuesday" in notes.brief().text
    notes.approve("scraped")
    assert "Tuesday" not in notes.brief().text


def test_what_a_note_was_made_from_is_listed_as_derived_from(notes):
    notes.store("Summary of the deploys.", key="summary", made_from="note:deploys")
    expected = [("summary", "derived_from", "deploys", "accepted")]
    assert stated(notes, "summary") == stated(notes, "deploys") == expected


def test_purging_a_note_takes_its_id_out_of_the_notes_that_relate_to_it(notes):
    id = notes.get("old-deploys").id
    notes.relate("deploys", "supersedes", "old-deploys")
    notes.relate("deploys", "relates_to", "lunch")
    notes.purge("old-deploys")
    content = notes._context.store.read_note(Scope("project", notes.project), "deploys")
    assert id.encode() not in content.data
    assert stated(notes, "deploys") == [("deploys", "relates_to", "lunch", "accepted")]


def test_links_outside_facts_enter_the_graph_without_dates(notes):
    notes.store("# Billing\n\nTalks to [[Ledger]].\n\n- [2026-01-01] owner: [[Ada]]\n", key="billing")
    notes.files.create("wiki.md", "# Wiki\n\nSee [[ledger|the ledger]].\n\n```\n[[not a link]]\n```\n")
    graph = notes.graph("Ledger", depth=2)
    edges = {(edge.source, edge.label, edge.target, edge.valid_from) for edge in graph.edges}
    assert edges == {
        ("Billing", "mentions", "Ledger", ""), ("Wiki", "mentions", "Ledger", ""), ("Billing", "owner", "Ada", "2026-01-01"),
    }  # fmt: skip
    assert [edge.label for edge in notes.path("Wiki", "Ada")] == ["mentions", "mentions", "owner"]
    assert notes.graph("Ledger", as_of="2026-02-01").edges == ()  # they have no time of their own


def test_an_index_that_is_built_again_has_the_relations(notes):
    notes.relate("deploys", "supersedes", "old-deploys")
    notes.reindex()
    assert stated(notes, "deploys") == [("deploys", "supersedes", "old-deploys", "accepted")]
    assert notes.check() == []


def test_a_person_cannot_accept_a_relation_that_makes_a_circle(notes, open_any):
    agent = open_any(origin="agent")
    agent.store("A finding.", key="finding")
    agent.relate("finding", "supersedes", "deploys")
    notes.relate("deploys", "supersedes", "finding")  # what is only proposed does not forbid it
    with pytest.raises(Conflict, match="circle"):
        notes.accept_relation("finding", "supersedes", "deploys")
    assert stated(notes, None, status="accepted") == [("deploys", "supersedes", "finding", "accepted")]


def test_two_callers_at_once_do_not_make_a_circle(notes, open_any):
    count = 15
    notes.store_many([{"text": f"Note {number} {side}.", "key": f"{side}{number}"} for number in range(count) for side in "ab"])

    def state_all(first, second):
        memory, together = open_any(origin="user"), []
        for number in range(count):
            start.wait()
            try:
                together.append(memory.relate(f"{first}{number}", "supersedes", f"{second}{number}").action)
            except Conflict:
                together.append("conflict")
        return together

    start = Barrier(2)
    with ThreadPoolExecutor(2) as threads:
        results = [threads.submit(state_all, *sides) for sides in ("ab", "ba")]
    pairs = list(zip(*[result.result() for result in results], strict=True))
    assert ("created", "created") not in pairs
    created = [action for pair in pairs for action in pair if action == "created"]
    assert len(notes.relations()) == len(created)


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_a_note_that_two_notes_superseded_is_ranked_below_both(notes, mode):
    notes.store("Fridays: the old script is forbidden.", key="ban")
    notes.relate("ban", "supersedes", "old-deploys")
    notes.relate("deploys", "supersedes", "old-deploys")
    keys = [hit.key for hit in notes.recall("Deploys run on Fridays with the old script", mode=mode)]
    assert keys.index("old-deploys") > max(keys.index("ban"), keys.index("deploys"))


def test_a_relation_by_key_means_the_note_of_its_own_scope(notes):
    notes.store("House rules.", key="rules", scope="global")
    notes.store("Lunch rules.", key="lunch", scope="global")
    context = notes._context
    content = context.store.read_note(Scope("global"), "rules")
    written = content.data.replace(b"---\n", b"---\nrelations: [relates_to lunch]\n", 1)
    context.store.write_note(Scope("global"), "rules", written, content.file_id)
    related = notes.relate("lunch", "relates_to", "rules", scope="project", target_scope="global")
    assert (related.action, related.relation.scope.kind) == ("created", "project")


def test_relations_of_a_whole_scope_are_only_those_of_its_notes(notes):
    notes.store("House rules.", key="rules", scope="global")
    notes.store("More rules.", key="more", scope="global")
    notes.relate("deploys", "supersedes", "old-deploys")
    notes.relate("more", "relates_to", "rules", scope="global")
    assert stated(notes, None, scope=Scope("global")) == [("more", "relates_to", "rules", "accepted")]
    assert stated(notes, None, scope="global", everywhere=True) == [("more", "relates_to", "rules", "accepted")]
    assert len(notes.relations(everywhere=True)) == 2


def test_nothing_is_stated_beside_relations_that_cannot_be_read(notes, open_any):
    notes.relate("deploys", "relates_to", "lunch")
    context = notes._context
    scope = Scope("project", notes.project)
    content = context.store.read_note(scope, "deploys")
    broken = content.data.replace(b"relations: [", b"relations: [eats old-deploys, ")
    context.store.write_note(scope, "deploys", broken, content.file_id)
    agent = open_any(origin="agent")
    with pytest.raises(Conflict, match="cannot be read"):
        agent.relate("deploys", "relates_to", "lunch")
    assert context.store.read_note(scope, "deploys").data == broken


def test_purging_a_note_takes_its_id_out_of_the_trash_of_other_projects(notes, open_any):
    notes.store("House rules.", key="rules", scope="global")
    other = open_any(origin="user", project="two")
    other.store("Our own rules.", key="ours")
    other.relate("ours", "supersedes", "rules")
    other.forget("ours")
    id = notes.get("rules").id
    notes.purge("rules", scope="global")
    assert other.restore("ours").text == "Our own rules."
    content = other._context.store.read_note(Scope("project", other.project), "ours")
    assert id.encode() not in content.data


def test_an_agents_statement_has_no_effect_on_a_text_that_a_person_wrote_since(notes, open_any):
    agent = open_any(origin="agent")
    agent.store("Backups run at night.", key="first")
    agent.store("Backups run at noon.", key="second")
    agent.relate("second", "supersedes", "first")
    assert "at night" not in notes.brief().text
    notes.store("Backups run at night, says the person.", key="first")
    assert "says the person" in notes.brief().text
    assert [hit.superseded_by for hit in notes.recall("Backups", mode="keyword")] == [None, None]
    again = agent.relate("second", "supersedes", "first")
    assert (again.action, again.relation.status) == ("updated", "proposed")
    accepted = notes.accept_relation("second", "supersedes", "first").relation
    assert (accepted.status, accepted.origin) == ("accepted", "user")
    assert "says the person" not in notes.brief().text
    assert agent.relate("second", "supersedes", "first").action == "unchanged"
    with pytest.raises(Refused):
        agent.unrelate("second", "supersedes", "first")


def test_a_person_confirms_what_an_agent_stated(notes, open_any):
    agent = open_any(origin="agent")
    agent.store("Backups run at night.", key="first")
    agent.store("Backups run at noon.", key="second")
    agent.relate("second", "supersedes", "first")
    confirmed = notes.relate("second", "supersedes", "first")
    assert (confirmed.action, confirmed.relation.origin) == ("updated", "user")
    assert notes.relate("second", "supersedes", "first").action == "unchanged"
