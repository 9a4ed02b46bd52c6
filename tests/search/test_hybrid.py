"""Hybrid recall with the bundled models: it finds by meaning, reports its mode, and keeps scopes apart."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from holdfast.embedders import minilm, model_server
from holdfast.errors import DiskTrouble
from holdfast.index import sqlite
from holdfast.index.filters import SearchFilter
from holdfast.index.vectors import FoundCosines
from holdfast.search import hybrid, passage_cache, scoring, vectorize
from holdfast.search.question import to_first_person
from holdfast.search.signals import SIGNALS
from holdfast.sqlite import Database

pytestmark = pytest.mark.xdist_group("models")  # they are loaded once per process

NOTES = {
    "vet": "My dog is ill and must see the vet on Monday",
    "deploy": "We roll out new releases every Tuesday morning",
    "coffee": "The espresso machine in the kitchen is broken",
    "garden": "The tomatoes need water twice a day in July",
    "backup": "Copies of the database are written to tape at night",
    "paris": "The office in Paris closes at six",
}


@pytest.fixture(autouse=True)
def models(monkeypatch, nobody_touches_the_real_home):
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "default")


@pytest.fixture
def notes(memory):
    memory.store_many([{"key": key, "text": text} for key, text in NOTES.items()])
    memory.embed()
    return memory


def keys(answer):
    return [hit.key for hit in answer]


# --- meaning ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("the puppy is sick", "vet"), ("when do we ship to production", "deploy"), ("caffeine", "coffee"),
        ("how often should I irrigate the vegetables", "garden"), ("where is data archived", "backup"),
    ],
)  # fmt: skip
def test_a_paraphrase_finds_it(notes, query, key):
    answer = notes.recall(query)
    assert keys(answer)[0] == key
    assert (answer.mode, answer.degraded, answer.reason) == ("hybrid", False, "")
    assert keys(notes.recall(query, mode="semantic"))[0] == key


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("mi perro está enfermo", "vet"), ("mon chien est malade", "vet"), ("die Kaffeemaschine ist kaputt", "coffee"),
        ("犬が病気です", "vet"), ("кофемашина сломалась", "coffee"), ("数据库备份", "backup"),
    ],
)  # fmt: skip
def test_a_question_in_another_language_finds_it(notes, query, key):
    assert keys(notes.recall(query))[0] == key


def test_a_note_in_another_language_is_found(memory):
    memory.store("Der Hund ist krank und muss zum Tierarzt", key="hund")
    memory.store("Die Heizung im Keller wird im Oktober gewartet", key="heizung")
    assert keys(memory.recall("my dog is sick"))[0] == "hund"


def test_the_exact_word_still_wins(notes):
    notes.store("Ticket QX-4711 is about the login page", key="ticket")
    assert keys(notes.recall("QX-4711"))[0] == "ticket"


def test_nonsense_finds_next_to_nothing(notes):
    notes.log([{"speaker": "Ana", "text": f"I told you about the trip to town {number}"} for number in range(40)], session="s")
    assert max(len(notes.recall(query, limit=100)) for query in ("xqzvw blorf", "zzzz", "qwrtp fghjk")) <= 3


def test_nonsense_scores_far_below_an_answer(notes):
    worst = min(notes.recall(query)[0].score for query in ("the puppy is sick", "espresso", "releases"))
    for query in ("xqzvw blorf", "zzzz", "qwrtp fghjk lmnbv"):
        assert all(hit.score < worst / 2 for hit in notes.recall(query)), query


def test_what_has_the_words_is_never_hidden_by_the_floor(notes):
    notes.store("wholly unrelated matter, with the word zugzwang in the middle of it all", key="zug")
    assert keys(notes.recall("zugzwang"))[0] == "zug"


def test_a_file_is_found_by_what_it_means(notes):
    notes.files.create("/memories/travel.md", "# Travel\n\nThe train to the airport runs every ten minutes.\n")
    assert notes.recall("how do I get to my flight")[0].kind == "file"


def test_one_sentence_of_a_long_turn_is_found(memory):
    filler = [f"Then we talked about item {number} of the agenda, which nobody had prepared." for number in range(60)]
    filler[37] = "By the way, I am allergic to peanuts."
    memory.log(
        [{"speaker": "Ana", "text": " ".join(filler)}, {"speaker": "Ben", "text": "The agenda was far too long."}], session="s"
    )
    assert memory.recall("which food makes Ana ill")[0].speaker == "Ana"


# --- which mode ran, and why ------------------------------------------------------------------------------------------


@pytest.mark.promise("N7", "promise-8")
def test_without_an_embedder_keyword_search_runs_and_says_so(monkeypatch, open_memory):
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "none")
    memory = open_memory()
    memory.store("the harbour is full", key="h")
    for mode in ("hybrid", "semantic"):
        answer = memory.recall("harbour", mode=mode)
        assert (keys(answer), answer.mode, answer.degraded) == (["h"], "keyword", True)
        assert "no embedder" in answer.reason
    assert not memory.recall("harbour", mode="keyword").degraded


@pytest.mark.promise("promise-8")
def test_a_model_that_is_not_installed_degrades_and_says_so(notes, open_memory, monkeypatch, tmp_path):
    notes.recall("the puppy is sick")
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "model:bge-small,use")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "no-models"))
    answer = open_memory().recall("the puppy is sick")
    assert keys(answer)[0] == "vet" and answer.degraded and "bge-small is not installed" in answer.reason


@pytest.mark.promise("N7", "promise-8")
def test_passages_that_wait_for_their_vectors_are_told(notes, monkeypatch):
    monkeypatch.setattr(vectorize, "_MAX_DURING_QUERY", {"static": 20_000, "sentence": 0, "multi": 0})
    monkeypatch.setattr(vectorize.Vectorizer, "_start_background", lambda self: None)
    notes.store("the lighthouse is dark", key="light")
    answer = notes.recall("lighthouse")
    assert keys(answer)[0] == "light" and answer.degraded and "1 passages wait" in answer.reason
    assert set(notes.embed().values()) == {0}
    assert not notes.recall("lighthouse").degraded


def test_what_has_no_vectors_yet_is_found_by_its_words(notes, monkeypatch):
    monkeypatch.setattr(vectorize, "_MAX_DURING_QUERY", {"static": 0, "sentence": 0, "multi": 0})
    monkeypatch.setattr(vectorize.Vectorizer, "_start_background", lambda self: None)
    notes.store("the lighthouse is dark", key="light")
    answer = notes.recall("lighthouse")
    assert answer.degraded and keys(answer)[:1] == ["light"]


def test_what_waits_is_embedded_behind_the_answers(notes, monkeypatch):
    monkeypatch.setattr(vectorize, "_MAX_DURING_QUERY", {"static": 20_000, "sentence": 2, "multi": 2})
    notes.store_many([{"key": f"k{number}", "text": f"sentence number {number}"} for number in range(20)])
    assert notes.recall("sentence").degraded
    with notes._context.hybrid_search().vectorizer._background:
        pass
    assert not notes.recall("sentence").degraded


class Server:
    """A fake endpoint: vectors made of words; it can be made to fail."""

    def __init__(self):
        server = self
        self.fails, self.asked = False, 0

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                server.asked += 1
                texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
                body = json.dumps(
                    {"data": [{"index": place, "embedding": server.vector(text)} for place, text in enumerate(texts)]}
                )
                self.send_response(500 if server.fails else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    @staticmethod
    def vector(text):
        row = np.full(32, 0.01)
        for word in text.lower().split():
            row[sum(map(ord, word)) % 32] += 1
        return row.tolist()

    @property
    def setting(self):
        return f"endpoint:toy@http://127.0.0.1:{self.http.server_port}/v1"


@pytest.fixture
def server(monkeypatch):
    server = Server()
    monkeypatch.setenv("HOLDFAST_EMBEDDER", server.setting)
    monkeypatch.setattr(model_server, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr("holdfast.search.vectorize._RETRY_SECONDS", 0.0)
    yield server
    server.http.shutdown()
    server.http.server_close()


def test_an_endpoint_gives_the_vectors(server, memory):
    memory.store("the harbour is full", key="h")
    answer = memory.recall("harbour")
    assert (keys(answer), answer.mode, answer.degraded) == (["h"], "hybrid", False)
    asked = server.asked
    memory.recall("a full harbour")
    assert asked < server.asked <= asked + 1
    memory.recall("a full harbour")
    assert server.asked <= asked + 1  # the vector of a question is cached


@pytest.mark.promise("N7", "promise-8")
def test_an_endpoint_that_never_answered_degrades_and_says_so(server, memory):
    server.fails = True
    memory.store("the harbour is full", key="h")
    answer = memory.recall("harbour")
    assert keys(answer) == ["h"] and answer.degraded and "500" in answer.reason
    server.fails = False
    answer = memory.recall("harbour")
    assert keys(answer) == ["h"] and not answer.degraded


def test_an_endpoint_that_fails_later_degrades_and_says_so(server, memory):
    memory.store("the harbour is full", key="h")
    assert not memory.recall("harbour").degraded
    server.fails = True
    assert not memory.recall("harbour").degraded  # its vector is cached
    answer = memory.recall("a full harbour")
    assert keys(answer) == ["h"] and answer.degraded and "500" in answer.reason
    memory.store("the ferry is late", key="f")
    answer = memory.recall("ferry")
    assert keys(answer)[0] == "f" and answer.degraded
    server.fails = False
    assert not memory.recall("ferry").degraded


# --- what is cached --------------------------------------------------------------------------------------------------


def count_rankings(monkeypatch):
    """Return a list that grows with every result that is computed and not read from the cache."""
    computed, rank = [], hybrid.HybridSearch._rank

    def count(self, *args, **kwargs):
        computed.append(1)
        return rank(self, *args, **kwargs)

    monkeypatch.setattr(hybrid.HybridSearch, "_rank", count)
    return computed


def test_the_same_question_is_ranked_once_until_anything_is_written(notes, monkeypatch):
    computed = count_rankings(monkeypatch)
    first = notes.recall("the puppy is sick")
    assert notes.recall("the puppy is sick") == first and len(computed) == 1
    notes.recall("the puppy is sick", limit=3)
    notes.recall("the puppy is sick", now="2026-01-01")
    notes.recall("the puppy is sick", type="feedback")
    assert len(computed) == 4  # another limit, time or filter is another question
    notes.store("The puppy has a fever", key="fever")
    assert "fever" in keys(notes.recall("the puppy is sick")) and len(computed) == 5
    notes.forget("fever")
    assert "fever" not in keys(notes.recall("the puppy is sick")) and len(computed) == 6


def test_a_cached_result_sees_what_another_process_wrote(notes, open_memory):
    notes.recall("the puppy is sick")
    with open_memory() as other:
        other.store("The puppy has a fever", key="fever")
    assert "fever" in keys(notes.recall("the puppy is sick"))


def test_a_cached_result_ends_with_the_validity_of_a_note(clock, notes, monkeypatch):
    notes.store("The puppy stays at the clinic", key="clinic", valid_to="2026-06-01")
    notes.recall("the puppy is sick")
    computed = count_rankings(monkeypatch)
    assert "clinic" in keys(notes.recall("the puppy is sick")) and not computed
    clock.forward(days=40)
    assert "clinic" not in keys(notes.recall("the puppy is sick")) and computed


def test_a_caller_that_changes_an_answer_does_not_change_the_next(notes):
    first = notes.recall("the puppy is sick", explain=True)
    first.hits[0].why.clear()
    assert notes.recall("the puppy is sick", explain=True).hits[0].why


def test_turns_need_no_multilingual_model(memory, monkeypatch):
    memory.log([{"role": "user", "text": "My dog is ill and must see the vet"}], session="s")
    memory.embed()
    multi = memory._context.hybrid_search().vectorizer.by_role["multi"]
    asked = []
    monkeypatch.setattr(multi, "questions", lambda texts: asked.append(texts) or multi.passages(texts))
    assert memory.recall("what is wrong with the puppy").hits[0].session == "s" and not asked
    memory.recall("was ist mit dem Hund los")
    assert ["was ist mit dem Hund los"] in asked  # to tell whether its hits are strong


# --- explanations ----------------------------------------------------------------------------------------------------


def test_explain_says_what_each_signal_added(notes):
    answer = notes.recall("the puppy is sick", explain=True)
    why = answer[0].why
    assert {"c_sentence", "c_multi"} <= set(why)
    assert all(len(pair) == 2 for pair in why.values())
    assert [(hit.key, hit.score) for hit in answer] == [(hit.key, hit.score) for hit in notes.recall("the puppy is sick")]
    assert notes.recall("the puppy is sick")[0].why is None


def test_what_the_signals_added_makes_the_score(notes):
    for hit in notes.recall("the machine and the database", explain=True):
        assert sum(part for _, part in hit.why.values()) == pytest.approx(hit.score, abs=2e-3)


# --- filters ---------------------------------------------------------------------------------------------------------


def test_every_signal_has_a_description():
    names = {name for rows in scoring.WEIGHTS.values() for weights in rows.values() for name in weights}
    assert names | set(scoring.ADJUSTMENTS) <= set(SIGNALS)
    page = (Path(__file__).parents[2] / "docs/search.md").read_text()
    assert [name for name, meaning in SIGNALS.items() if f"| `{name}` | {meaning} |" not in page] == []


def test_one_kind_alone(notes):
    notes.files.create("/memories/pets.md", "The cat is ill and needs a doctor")
    notes.log([{"role": "user", "text": "My rabbit is ill, call the doctor"}], session="s")
    assert {hit.kind for hit in notes.recall("sick animal")} == {"note", "file", "turn"}
    for kind in ("note", "file", "turn"):
        for mode in ("hybrid", "semantic"):
            answer = notes.recall("sick animal", kind=kind, mode=mode)
            assert {hit.kind for hit in answer} == {kind}


def test_type_and_tags_filter_what_is_meant(memory):
    memory.store("My dog is ill", key="a", type="user", tags="pets")
    memory.store("My cat is ill", key="b", type="feedback", tags="pets, cats")
    memory.store("My rabbit is ill", key="c", type="user")
    assert set(keys(memory.recall("sick animal", type="user"))) == {"a", "c"}
    assert set(keys(memory.recall("sick animal", tags="pets"))) == {"a", "b"}
    assert keys(memory.recall("sick animal", type="user", tags="pets")) == ["a"]


def test_a_filter_finds_the_one_among_many_that_are_nearer(memory):
    memory.store_many(
        [{"key": f"k{number}", "text": f"The harbour is full of boats, says report {number}"} for number in range(300)]
    )
    memory.store("Some boats were seen far away", key="rare", tags="rare")
    assert keys(memory.recall("harbour full of boats", tags="rare", limit=5)) == ["rare"]


@pytest.mark.promise("T1")
def test_as_of_answers_with_what_was_true(memory):
    memory.store("The ferry leaves from the old harbour", key="ferry", valid_from="2026-01-01")
    memory.store("The ferry leaves from the new harbour", key="ferry", valid_from="2026-03-01")
    assert [hit.text for hit in memory.recall("ferry harbour")] == ["The ferry leaves from the new harbour"]
    assert [hit.text for hit in memory.recall("ferry harbour", as_of="2026-04-01")] == ["The ferry leaves from the new harbour"]


def test_as_of_finds_what_is_no_longer_true(memory):
    memory.store("Boats are moored in the bay", key="boats", valid_from="2025-01-01")
    memory.store("The ferry leaves from the old harbour", key="ferry", valid_from="2026-01-01")
    memory.store("The bakery opens at six", key="ferry", valid_from="2026-03-01")
    hit = memory.recall("ferry harbour", as_of="2026-02-01")[0]
    assert (hit.kind, hit.text) == ("past", "The ferry leaves from the old harbour")


# --- sessions --------------------------------------------------------------------------------------------------------

TALK = [
    ("one", "Ana", "2026-01-10T10:00:00Z", "I adopted a puppy from the shelter"),
    ("one", "Ben", "2026-01-10T10:01:00Z", "How lovely! I am more of a cat person"),
    ("two", "Ana", "2026-03-12T10:00:00Z", "I started to learn the violin"),
    ("two", "Ben", "2026-03-12T10:01:00Z", "I used to play the drums when I was young"),
    ("three", "Ben", "2026-04-27T10:00:00Z", "I went hiking in the mountains with my brother"),
    ("three", "Ana", "2026-04-27T10:01:00Z", "I stayed home and baked bread"),
]


@pytest.fixture
def talk(memory):
    for session in ("one", "two", "three"):
        said = [{"speaker": who, "time": when, "text": text} for of, who, when, text in TALK if of == session]
        memory.log(said, session=session)
    memory.embed()
    return memory


def test_turns_are_grouped_by_session(talk):
    answer = talk.recall("which instrument do they play")
    assert next(iter(answer.sessions)) == "two"
    assert sum(map(len, answer.sessions.values())) == len(answer)
    assert answer.sessions["two"][0].session == "two"


@pytest.mark.parametrize(
    ("who", "text"), [("Ana", "I started to learn the violin"), ("Ben", "I used to play the drums when I was young")]
)
def test_the_person_who_is_named_is_heard_first(talk, who, text):
    answer = talk.recall(f"Which instrument does {who} play?")
    assert (answer[0].speaker, answer[0].text) == (who, text)


def test_a_time_in_the_question_moves_up_what_was_said_then_and_hides_nothing(talk):
    without = talk.recall("what did they do last week", limit=100, now="2020-05-01")
    answer = talk.recall("what did they do last week", limit=100, now="2026-05-01")
    assert answer[0].session == "three"
    assert {hit.key for hit in without} <= {hit.key for hit in answer}
    then = talk.recall("what did they do last week", limit=100, now="2026-01-15")
    assert then[0].session == "one"
    dated = talk.recall("what did they do in March 2026", limit=100)
    assert dated[0].session == "two"


def test_what_was_said_after_the_asker_asks_moves_down_and_is_not_hidden(memory):
    said = "The kitchen tap drips and the plumber comes on Friday"
    for month in ("03", "09"):
        memory.log([{"id": month, "speaker": "Ann", "text": said, "time": f"2023-{month}-01T10:00:00Z"}], session=month)
    memory.embed()

    def told(**asked):
        return {hit.key: hit for hit in memory.recall("when does the plumber come", explain=True, **asked)}

    before = told(now="2023-05-01")
    assert before["03"].score > before["09"].score and before["09"].why["later"] == [1.0, scoring.ADJUSTMENTS["later"]]
    for anytime in (told(), told(now="2023-08-25")):
        assert not any("later" in hit.why for hit in anytime.values())


# --- scopes stay apart -----------------------------------------------------------------------------------------------


@pytest.mark.promise("N8")
@pytest.mark.parametrize("mode", ["hybrid", "semantic", "keyword"])
def test_another_projects_notes_files_and_turns_are_never_seen(memory, open_memory, mode):
    other = open_memory(project="other")
    other.store("My dog is ill and must see the vet", key="dog")
    other.files.create("/memories/dog.md", "The dog eats only in the evening")
    other.log([{"speaker": "Ana", "text": "My dog is ill"}, {"speaker": "Ben", "text": "Poor dog"}], session="s")
    other.embed()
    assert keys(memory.recall("dog is ill", mode=mode)) == []
    memory.store("The cat is ill", key="cat")
    assert keys(memory.recall("dog is ill", mode=mode, limit=100)) == ["cat"]
    assert {hit.scope.id for hit in other.recall("dog is ill", mode=mode, limit=100)} == {"other"}


def test_sessions_and_agents_keep_to_themselves(open_memory):
    ana, ben = open_memory(session="s1", agent="ana"), open_memory(session="s2", agent="ben")
    ana.store("My dog is ill", key="a", scope="agent")
    ana.store("The dog sleeps", key="s", scope="session")
    ana.log([{"role": "user", "text": "The dog barks"}], scope="session")
    assert len(ana.recall("dog")) == 3
    assert keys(ben.recall("dog")) == []


@pytest.mark.promise("N8")
def test_another_projects_words_do_not_change_the_order_of_mine(memory, open_memory):
    memory.store_many([{"key": key, "text": text} for key, text in NOTES.items()])
    memory.embed()
    before = [(hit.key, hit.score) for hit in memory.recall("the broken machine in Paris")]
    other = open_memory(project="other")
    other.store_many([{"key": f"k{number}", "text": f"machine {number} in Paris is broken"} for number in range(50)])
    other.log([{"speaker": "Paris", "text": "I am a person"}], session="s")
    other.embed()
    assert [(hit.key, hit.score) for hit in memory.recall("the broken machine in Paris")] == before


def test_a_compound_is_found_by_its_part_whatever_longer_words_others_wrote(memory, open_memory):
    memory.store("Die Datenbankverbindung fällt aus", key="long")
    others = [f"{chr(97 + one)}{chr(97 + two)}leitungsverbindung" for one in range(13) for two in range(2)]
    open_memory(project="other").store_many([{"text": " ".join(others), "key": key} for key in "ab"])
    assert keys(memory.recall("Verbindung", mode="keyword")) == ["long"]


_AS_IT_STANDS = pytest.mark.xfail(strict=True, reason="a word that somebody wrote here is looked for only as it stands")


@pytest.mark.parametrize("project", ["other", pytest.param("demo", marks=_AS_IT_STANDS)])
def test_a_compound_is_found_by_its_part_though_somebody_wrote_the_part_alone(memory, open_memory, project):
    memory.store("Die Datenbankverbindung fällt aus", key="long")
    assert keys(memory.recall("Verbindung", mode="keyword")) == ["long"]
    open_memory(project=project).store("Verbindung", key="short")
    assert "long" in keys(memory.recall("Verbindung", mode="keyword"))


# --- the same result again -------------------------------------------------------------------------------------------


def test_two_fresh_homes_give_the_same_order_and_scores(open_memory, tmp_path):
    answers = []
    for name in ("one", "two"):
        memory = open_memory(home=tmp_path / name)
        memory.store_many([{"key": key, "text": text} for key, text in NOTES.items()])
        for session in ("one", "two", "three"):
            said = [{"speaker": who, "time": when, "text": text} for of, who, when, text in TALK if of == session]
            memory.log(said, session=session)
        memory.embed()
        queries = ("sick puppy", "what did Ana do last week", "machine", "database in Paris", "perro")
        answers.append(
            [[(hit.key, hit.score, hit.text) for hit in memory.recall(query, now="2026-05-01")] for query in queries]
        )
    assert answers[0] == answers[1]


def test_embedding_at_once_or_bit_by_bit_gives_the_same(open_memory, tmp_path):
    once, by_and_by = open_memory(home=tmp_path / "once"), open_memory(home=tmp_path / "by")
    for key, text in NOTES.items():
        once.store(text, key=key)
        by_and_by.store(text, key=key)
        by_and_by.recall("anything")
    once.embed()
    for query in ("sick puppy", "machine", "database in Paris"):
        one, two = once.recall(query), by_and_by.recall(query)
        assert keys(one) == keys(two)
        assert [hit.score for hit in one] == pytest.approx([hit.score for hit in two], abs=0.01)


def test_a_rebuilt_catalogue_gives_the_same(notes):
    before = [(hit.key, hit.score) for hit in notes.recall("sick puppy in the kitchen")]
    notes.reindex()
    notes.embed()
    assert [(hit.key, hit.score) for hit in notes.recall("sick puppy in the kitchen")] == before


def test_threads_may_ask_at_the_same_time(notes):
    expected = keys(notes.recall("sick puppy"))
    answers, errors = [], []

    def ask():
        try:
            answers.append(keys(notes.recall("sick puppy")))
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and answers == [expected] * 8


@pytest.mark.parametrize(
    "query", ["'", '"', "?", "🚀", "\u0e31", "a" * 5000, "NOT AND OR", "in1 in2", "* ^ : ()", "_", "the of"]
)
@pytest.mark.parametrize("mode", ["hybrid", "semantic", "keyword"])
def test_any_query_is_answered(notes, query, mode):
    answer = notes.recall(query, mode=mode)
    assert answer.mode == mode
    assert len(answer) <= 10


def test_a_query_with_half_a_character_is_answered(notes):
    assert keys(notes.recall("coffee \ud800"))[0] == "coffee"


def test_a_file_that_is_not_utf8_is_found(notes, home):
    notes.files.create("/memories/plain.md", "x")
    (home / "shelf/projects/demo/files/latin.md").write_bytes(b"The lighthouse keeper is called Andr\xe9\n")
    assert notes.recall("lighthouse")[0].kind == "file"


def test_names_with_odd_signs_are_only_names(talk):
    talk.log([{"speaker": "A.* (x)", "text": "I like tea"}], session="four")
    assert talk.recall("What does A.* (x) like?")[0] is not None
    assert to_first_person("What is A.* (x)'s tea?", ["A.* (x)"])


def test_what_is_remembered_of_words_and_passages_changes_no_answer(notes, monkeypatch):
    queries = ("the broken machine", "dog", "office in Paris", "water the tomatoes", "tape")
    before = [[(hit.key, hit.score) for hit in notes.recall(query)] for query in queries]
    monkeypatch.setattr(passage_cache, "_MAX_PASSAGES", 4)
    notes._context.hybrid_search()._vocabulary = None
    assert [[(hit.key, hit.score) for hit in notes.recall(query)] for query in queries] == before


def test_where_words_are_too_common_to_rate_the_rarest_still_choose(memory, monkeypatch):
    memory.log([{"text": f"the weather of day {number} was fine"} for number in range(20)], session="days")
    memory.log([{"text": "the weather spoiled the regatta"}], session="boats")
    memory.embed()
    rated = memory.recall("weather regatta", limit=3).hits
    monkeypatch.setattr(hybrid, "_MAX_RANKED", 0)
    monkeypatch.setattr(hybrid, "_KEYWORD_CANDIDATES", 5)
    monkeypatch.setattr(hybrid, "_NEAREST_CANDIDATES", 1)
    assert memory.recall("weather regatta", limit=3).hits[0].text == rated[0].text == "the weather spoiled the regatta"
    assert len(memory.recall("weather", limit=3)) == 3


def test_how_common_a_word_is_is_counted_again_when_something_was_written(memory, open_memory):
    def counted():
        return memory._context.index.count_terms(["heron", "otter"], SearchFilter(("projects/demo",)))

    memory.store("a heron by the lake", key="one")
    assert counted() == {"heron": 1}
    open_memory().store("an otter and a heron", key="two")
    assert counted() == {"heron": 2, "otter": 1}
    memory.forget("one")
    assert counted() == {"heron": 1, "otter": 1}


def test_the_last_notes_may_go_while_words_are_counted(memory, open_memory, monkeypatch):
    memory.store("a heron", key="one")
    open_memory(project="other").store("a heron", key="two")
    index = memory._context.index
    one = index._row
    monkeypatch.setattr(index, "_match_folders", lambda _: "place : (nowhere) AND ")
    monkeypatch.setattr(index, "_row", lambda name, **values: (0,) if name == "count_current" else one(name, **values))
    assert index.count_terms(["heron"], SearchFilter(("projects/demo",))) == {}


@pytest.mark.parametrize("most", [5_000, 3], ids=["counted", "too many to count"])
def test_how_common_a_word_is_is_counted_where_one_looks(memory, open_memory, monkeypatch, most):
    monkeypatch.setattr(sqlite, "_EXACT_COUNT", most)
    memory.store_many([{"text": f"heron {number}"} for number in range(10)])
    other = open_memory(project="other")
    other.store_many([{"text": f"heron and otter {number}"} for number in range(30)])
    counted = memory._context.index.count_terms
    assert counted(["heron", "otter"], SearchFilter(("projects/demo", "projects/other"))) == {"heron": 40, "otter": 30}
    assert counted(["heron", "otter"], SearchFilter(("projects/demo",))) == (
        {"heron": 10} if most > 30 else {"heron": 10, "otter": 7}
    )
    assert counted(["heron"], SearchFilter(("projects/nobody",))) == {}


def test_a_caller_that_was_closed_goes_on_where_it_was(notes, monkeypatch):
    monkeypatch.setattr(vectorize, "_MAX_DURING_QUERY", {"static": 20_000, "sentence": 2, "multi": 2})
    notes.store_many([{"key": f"k{number}", "text": f"sentence number {number}"} for number in range(40)])
    notes.recall("sentence")
    notes.close()
    notes.recall("sentence")
    with notes._context.hybrid_search().vectorizer._background:
        pass
    assert not notes.recall("sentence").degraded


def test_trouble_behind_the_answers_is_told_until_it_is_over(notes, monkeypatch):
    monkeypatch.setattr(vectorize, "_MAX_DURING_QUERY", {"static": 20_000, "sentence": 0, "multi": 0})
    work = notes._context.hybrid_search().vectorizer
    notes.store("one more sentence", key="more")
    with monkeypatch.context() as patch:
        patch.setattr(work, "_embed", lambda model, role, *rest: 1 / 0 if role == "sentence" else 0)
        notes.recall("sentence")
        with work._background:
            pass
        assert notes.recall("sentence").degraded
    notes.embed()
    assert not notes.recall("sentence").degraded


def test_a_catalogue_that_cannot_be_kept_answers_from_memory(memory, home, monkeypatch):
    memory.store("the harbour is full", key="h")
    memory.close()
    for path in home.glob("index.db*"):
        path.unlink()

    def refused(self):
        raise DiskTrouble("cannot make index.db: Read-only file system")

    monkeypatch.setattr(Database, "_create_file", refused)
    answer = memory.recall("harbour")
    assert keys(answer) == ["h"] and answer.degraded and "memory" in answer.reason


@pytest.mark.xdist_group("models")
def test_a_memory_that_is_closed_while_threads_ask_answers_them_all(open_memory, monkeypatch):
    import threading

    monkeypatch.setenv("HOLDFAST_EMBEDDER", "static")
    memory, failed, asking = open_memory(), [], threading.Semaphore(0)
    memory.store_many([{"text": f"Boat {number} lies in the harbour.", "key": f"boat-{number}"} for number in range(300)])
    memory.embed()

    def ask():
        try:
            for number in range(25):
                asking.release()
                assert memory.recall(f"where does boat {number} lie?", limit=1).hits
        except Exception as error:  # noqa: BLE001
            failed.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        asking.acquire(timeout=0.2)
        memory.close()  # as a server does when it stops
    assert failed == []


# --- models with other cosines --------------------------------------------------------------------------------------------


def test_cosines_count_from_the_range_of_their_model_and_a_missing_vector_counts_as_0():
    cosines = np.array([0.7, 0.5, 0], np.float32)
    found = FoundCosines(np.zeros(3, np.int64), np.zeros(3, np.int64), cosines)
    vectors = np.array([[0.7, 0], [0.5, 0], [0, 0]], np.float32)
    question = np.array([1, 0], np.float32)
    plain = scoring.Similarity(found, question, lambda: vectors)
    ranged = scoring.Similarity(found, question, lambda: vectors, 0.5, 0.9)
    assert np.allclose(plain.cosines, [0.7, 0.5, 0])
    assert np.allclose(plain.compare(vectors), [0.7, 0.5, 0])
    assert np.allclose(ranged.cosines, [0.5, 0, 0])
    assert np.allclose(ranged.compare(vectors), [0.5, 0, 0])


def test_the_range_of_a_model_changes_its_scores_and_no_vector(notes, monkeypatch):
    def score():
        hit = notes.recall("When do we ship software?", explain=True).hits[0]
        assert hit.key == "deploy"
        return hit.why["c_sentence"][0]

    plain = score()
    monkeypatch.setattr(minilm.MiniLM, "similarity_range", (-1.0, 1.0), raising=False)
    assert score() == pytest.approx((plain + 1) / 2, abs=0.001)
    assert notes.status().waiting == 0
