"""Recall: modes, filters, sorts, limits, hits; lists; briefings; of every store."""

from __future__ import annotations

import pytest

from holdfast import UsageError
from holdfast.api import pagination

HOSTILE = ['"', "AND OR NOT", "a* b^ (c", "' OR 1=1 --", "%(x)s %", "col:word", "日本", "\n", "\\"]
HOSTILE.append(" ".join(f"w{n}" for n in range(2000)))


@pytest.fixture
def harbour(open_any, clock):
    """A store with some notes about one subject."""
    memory = open_any(session="s1", agent="reviewer")
    memory.store("the harbour opens at six", key="opening", tags="hours,ci-cd", type="reference")
    clock.forward(days=1)
    memory.store("harbour dues are paid on Friday", key="dues", tags="money", type="feedback")
    clock.forward(days=1)
    memory.store("harbour", key="bare", scope="global", tags="Hours")
    return memory


def keys(answer):
    return [hit.key for hit in answer]


def test_a_query_finds_the_notes_that_have_any_of_its_words(harbour):
    assert set(keys(harbour.recall("harbour"))) == {"opening", "dues", "bare"}
    assert keys(harbour.recall("friday nonsense")) == ["dues"]
    assert keys(harbour.recall("nonsense")) == []


def test_more_of_the_words_is_a_better_answer_and_scores_fall(harbour):
    answer = harbour.recall("harbour opens six")
    assert keys(answer)[0] == "opening"
    scores = [hit.score for hit in answer]
    assert scores == sorted(scores, reverse=True) and scores[-1] > 0


def test_words_are_found_in_other_forms_and_scripts(any_memory):
    any_memory.store("She was running to the harbours", key="stem")
    any_memory.store("東京タワーは高いです", key="tower")
    any_memory.store("Größe der Kästen", key="size")
    assert keys(any_memory.recall("run harbour")) == ["stem"]
    assert keys(any_memory.recall("東京タワー")) == ["tower"]
    assert keys(any_memory.recall("GRÖSSE kästen")) == ["size"]


def test_a_note_is_found_by_its_key_and_its_tags_too(harbour):
    assert keys(harbour.recall("dues")) == ["dues"]
    assert keys(harbour.recall("money")) == ["dues"]


def test_filters_narrow_by_scope_type_tags_and_kind(harbour):
    assert keys(harbour.recall("harbour", scope="global")) == ["bare"]
    assert keys(harbour.recall("harbour", type="feedback")) == ["dues"]
    assert keys(harbour.recall("harbour", tags="ci-cd")) == ["opening"]
    assert keys(harbour.recall("harbour", tags=["hours", "ci-cd"])) == ["opening"]
    assert keys(harbour.recall("harbour", kind="file")) == []
    assert len(harbour.recall("harbour", kind="note,file")) == 3


def test_tags_in_any_script_can_be_asked_for(any_memory):
    any_memory.store("words", key="k", tags=["日本", "größe", "it's"])
    for tag in ("日本", "größe", "it's"):
        assert keys(any_memory.recall("words", tags=tag)) == ["k"], tag


def test_ten_hits_unless_the_limit_says_otherwise(any_memory):
    any_memory.store_many([{"text": f"harbour number {n}", "key": f"n{n}"} for n in range(30)])
    assert (len(any_memory.recall("harbour")), len(any_memory.recall("harbour", limit=25))) == (10, 25)
    assert len(any_memory.recall(mode="recent", limit=3)) == 3


@pytest.mark.parametrize(
    "wrong", [{"mode": "magic"}, {"sort": "luck"}, {"limit": 0}, {"limit": 101}, {"limit": "5"}, {"type": "x"}, {"kind": "x"},
              {"scope": "x"}, {"tags": 5}, {"as_of": "soon"}],
    ids=str,
)  # fmt: skip
def test_an_argument_that_means_nothing_is_refused_before_any_work(any_memory, wrong):
    with pytest.raises(UsageError):
        any_memory.recall("x", **wrong)


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_in_a_query_is_syntax(harbour, query):
    if query.strip():
        harbour.recall(query)
        assert "opening" in keys(harbour.recall(f"{query} opens"))


def test_recent_is_newest_first_and_heeds_the_filters(harbour):
    assert keys(harbour.recall(mode="recent")) == ["bare", "dues", "opening"]
    assert keys(harbour.recall(mode="recent", type="reference")) == ["opening"]


def test_sorting_by_recency_and_by_usage(harbour, clock):
    assert keys(harbour.recall("harbour", sort="recency")) == ["bare", "dues", "opening"]
    for _ in range(3):
        clock.forward(minutes=2)
        harbour.recall("six")
    clock.forward(minutes=2)
    assert keys(harbour.recall("harbour", sort="usage"))[0] == "opening"


def test_a_recalled_note_counts_at_most_once_a_minute(harbour, clock):
    for _ in range(20):
        harbour.recall("six")
        clock.forward(1)
    clock.forward(minutes=5)
    for _ in range(2):
        clock.forward(minutes=2)
        harbour.recall("friday")
    assert keys(harbour.recall("harbour", sort="usage"))[0] == "dues"


def test_without_a_model_the_answer_says_that_it_is_less_than_was_asked(harbour):
    answer = harbour.recall("harbour")
    assert (answer.mode, answer.degraded) == ("keyword", True) and answer.reason
    asked = harbour.recall("harbour", mode="keyword")
    assert (asked.mode, asked.degraded, asked.reason) == ("keyword", False, "")


def test_a_hit_carries_all_that_is_needed_to_believe_it(open_any, clock):
    caller = open_any(session="s1", agent="reviewer", client="cli")
    note = caller.store("the harbour opens at six", key="opening", tags="hours", type="reference").note
    (hit,) = caller.recall("harbour")
    assert (hit.kind, str(hit.scope), hit.key, hit.tags) == ("note", "project:demo", "opening", ("hours",))
    assert (hit.text, hit.valid_from, hit.valid_to, hit.updated) == (note.text, clock.now, None, clock.now)
    assert (hit.source.origin, hit.source.agent, hit.source.client, hit.source.session) == ("agent", "reviewer", "cli", "s1")
    path, _, lines = hit.citation.rpartition(":")
    first, last = map(int, lines.split("-"))
    assert caller.read(path, first, last - first + 1).text.strip() == hit.text


def test_matches_that_the_caller_may_not_see_do_not_crowd_out_those_it_may(open_any):
    open_any(project="other").store_many([{"text": "harbour " * 5, "key": f"n{n}"} for n in range(60)])
    mine = open_any()
    mine.store("one word of a harbour among very many other words that say nothing", key="mine")
    assert keys(mine.recall("harbour", limit=1)) == ["mine"]


def test_rare_words_weigh_more_than_common_ones(any_memory):
    any_memory.store_many([{"text": f"the harbour and the ship {n}", "key": f"n{n}"} for n in range(30)])
    any_memory.store("a lighthouse stands here", key="rare")
    assert keys(any_memory.recall("harbour ship lighthouse"))[0] == "rare"


def test_a_list_is_newest_first_pinned_before_and_heeds_its_filters(harbour):
    assert [note.key for note in harbour.list()] == ["bare", "dues", "opening"]
    harbour.store("the harbour opens at six", key="opening", pinned=True)
    assert harbour.list()[0].key == "opening"
    assert [note.key for note in harbour.list(type="feedback")] == ["dues"]
    assert [note.key for note in harbour.list(tags="money")] == ["dues"]
    assert len(harbour.list(limit=2)) == 2
    for note in harbour.list():
        assert note == harbour.get(note.key)


def test_notes_are_leafed_through_page_by_page_and_each_comes_once(any_memory):
    any_memory.store_many([{"text": f"note number {n}", "key": f"n{n:04}"} for n in range(200)])
    seen, (notes, cursor) = [], pagination.list_page(any_memory, 70)
    while cursor is not None:
        seen += notes
        notes, cursor = pagination.list_page(any_memory, 70, cursor)
    assert [note.key for note in (*seen, *notes)] == [note.key for note in any_memory.list()]
    assert [note.key for note in pagination.iterate_notes(any_memory)] == [f"n{n:04}" for n in range(200)]


def test_snippets_have_a_path_lines_and_a_score(harbour):
    snippets = harbour.search("harbour", limit=2)
    assert len(snippets) == 2
    assert all(one.path and one.lines[0] <= one.lines[1] and one.score > 0 for one in snippets)
    asked, words = harbour.recall("harbour"), harbour.search("harbour", mode="keyword")
    assert (snippets.mode, snippets.degraded, snippets.reason) == (asked.mode, asked.degraded, asked.reason)
    assert (words.mode, words.degraded, words.disabled) == ("keyword", False, False)


# --- briefing ---------------------------------------------------------------------------------------------------------


def test_a_briefing_tells_session_then_project_then_agent_then_global(open_any):
    caller = open_any(session="s", agent="a")
    for scope in ("global", "agent", "project", "session"):
        caller.store(f"words of {scope}", key=f"k-{scope}", scope=scope)
    text = caller.brief().text
    places = [text.index(f"words of {scope}") for scope in ("session", "project", "agent", "global")]
    assert places == sorted(places)


def test_the_same_memories_give_the_same_bytes_to_every_caller_and_after_a_rebuild(any_memory, open_any, clock):
    any_memory.store("one thing", key="one")
    any_memory.store("another thing", key="two", pinned=True)
    before = any_memory.brief().text
    assert before == open_any().brief().text
    any_memory.reindex()
    assert any_memory.brief().text == before


def test_a_prompt_brings_what_bears_on_it_once_in_a_session(open_any):
    caller = open_any(session="s1")
    caller.store("We deploy on Tuesdays, never on Fridays.", key="deploys")
    caller.store("The lighthouse keeper is called Ada.", key="keeper")
    told = caller.brief(prompt="when do we deploy on tuesdays?").text
    assert "never on Fridays" in told and "Ada" not in told
    assert "never on Fridays" not in caller.brief(prompt="when do we deploy on tuesdays?").text
    assert "never on Fridays" in caller.brief(prompt="when do we deploy on tuesdays?", again=True).text
    assert "never on Fridays" in open_any(session="s2").brief(prompt="when do we deploy on tuesdays?").text


def test_a_briefing_can_be_rendered_into_a_file_and_what_is_forgotten_leaves_it(any_memory, tmp_path):
    any_memory.store("the harbour opens at six", key="k")
    page = tmp_path / "AGENTS.md"
    page.write_text("# Ours\n")
    any_memory.render(page)
    assert "the harbour opens at six" in page.read_text() and page.read_text().startswith("# Ours\n")
    any_memory.forget("k")
    assert page.read_text() == "# Ours\n"


def test_continuity_boots_from_its_files(any_memory):
    any_memory.scaffold("continuity")
    any_memory.files.create("HEARTBEAT.md", "# Heartbeat\n\nthe harbour is quiet\n")
    assert "the harbour is quiet" in any_memory.boot().text


# --- by meaning -------------------------------------------------------------------------------------------------------


@pytest.fixture
def by_meaning(store, open_any, monkeypatch):
    """A caller with the static model, which loads quickly."""
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "static")
    return open_any()


def test_a_question_in_other_words_finds_its_note(by_meaning):
    by_meaning.store("We rent a car for the journey to the coast.", key="trip")
    by_meaning.store("The database password rotates every month.", key="rotation")
    by_meaning.store("Pancakes need flour, milk and eggs.", key="food")
    by_meaning.embed()
    for mode in ("hybrid", "semantic"):
        answer = by_meaning.recall("automobile for travelling to the beach", mode=mode)
        assert (answer.mode, answer.degraded, answer[0].key) == (mode, False, "trip"), answer.reason


def test_vectors_go_with_what_is_forgotten_and_come_with_what_changes(by_meaning, open_any):
    by_meaning.store("We rent a car for the journey to the coast.", key="trip")
    by_meaning.store("Pancakes need flour, milk and eggs.", key="food")
    assert by_meaning.recall("automobile", mode="semantic")[0].key == "trip"
    by_meaning.store("Bread needs flour, water and salt.", key="trip")
    assert by_meaning.recall("automobile trip", mode="hybrid")[0].text.startswith("Bread")
    other = open_any()
    assert {hit.key for hit in other.recall("ingredients for baking", mode="semantic")} == {"trip", "food"}
    by_meaning.forget("food")
    assert {hit.key for hit in other.recall("ingredients for baking", mode="semantic")} == {"trip"}


def test_an_explained_hit_says_why_it_is_where_it_is(by_meaning):
    by_meaning.store("The harbour opens at six.", key="harbour")
    (hit,) = by_meaning.recall("when does the harbour open?", explain=True)
    assert hit.why


def test_a_question_about_a_time_means_it_as_of_now(by_meaning, clock):
    by_meaning.log(
        [{"role": "user", "text": "we sailed to the island", "time": "2026-04-27T10:00:00Z"},
         {"role": "user", "text": "we sailed to the lighthouse", "time": "2026-01-05T10:00:00Z"}],
        session="s", client="c",
    )  # fmt: skip
    found = by_meaning.recall("where did we sail last week?", kind="turn", now="2026-05-04")
    assert found[0].text == "we sailed to the island"
