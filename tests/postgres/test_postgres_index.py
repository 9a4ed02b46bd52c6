"""The index in PostgreSQL gives the same answers as the SQLite index: every query, every order, after any changes."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import random_index
from random_index import QUARANTINED_ORIGINS, SCOPES, WORDS, WordHashEmbedder, fill, make_documents

from holdfast import config
from holdfast.api.memory import Memory
from holdfast.base.ids import FileId
from holdfast.context.sync import PARTS
from holdfast.index import tokenizer
from holdfast.index.entries import file_entry
from holdfast.index.filters import SearchFilter
from holdfast.index.results import Totals
from holdfast.index.sqlite import SqliteIndex as Embedded
from holdfast.models import Progress
from holdfast.postgres import vectors
from holdfast.search.hybrid import HybridSearch

psycopg = pytest.importorskip("psycopg")

from tiers import tiered  # noqa: E402

from holdfast.postgres import PostgresSettings  # noqa: E402
from holdfast.postgres.connection import Connection  # noqa: E402
from holdfast.postgres.index import SQL, PostgresIndex  # noqa: E402 (it needs the driver)
from holdfast.postgres.pool import close_pools  # noqa: E402

pytestmark = pytest.mark.xdist_group("postgres-index")
EVERYTHING = SearchFilter(SCOPES)
PARTLY = (
    SearchFilter(SCOPES[:1]),
    SearchFilter(SCOPES, part="notes"),
    SearchFilter(SCOPES[-1:], part="transcripts"),
    SearchFilter(("projects/nobody",)),
)
FACTS = ((None, None), ("harbour", None), ("Ada", "state"), (None, "OWNER"), ("x" * 3000, None), ("note-3", None))
QUERIES = (
    "harbour", "storm captain cargo", "Verbindung", "連 記憶", "camelCase snake_case", "What did Mara say about the tide?",
    "память", "the and of", "v1.2.3 deploy", "lantern 🧠", "nothingatall", "Crane Seven state", "harb",
    "Jürgen über die Straße",
)  # fmt: skip


@pytest.fixture(scope="module")
def both(tmp_path_factory, postgres_databases):
    """Two indexes with the same content: SQLite and PostgreSQL."""
    home, url = tmp_path_factory.mktemp("embedded"), postgres_databases.fresh()
    pair = (
        Embedded(str(home), 5, QUARANTINED_ORIGINS),
        PostgresIndex(PostgresSettings(url=url, agent="*"), 5, QUARANTINED_ORIGINS),
    )
    for index in pair:
        fill(index, make_documents(7))
    yield pair
    for index in pair:
        index.close()
    close_pools(url)
    postgres_databases.drop(url)


@pytest.fixture
def index(postgres_url):
    """An empty index in PostgreSQL."""
    return PostgresIndex(PostgresSettings(url=postgres_url, agent="*"), 5, QUARANTINED_ORIGINS)


def passage_key(one):
    """Return a passage by its content instead of the number that its index gave it."""
    return one.scope, one.part, one.name, one.seq, one.past


def named(index):
    """Return every passage by its number."""
    asked = EVERYTHING.replace(as_of="2026-12-01T00:00:00Z")
    rows = index._rows("recent_at", scopes=SCOPES, part=None, known_at="9")
    found = index.find_passages({row[0]: 0.0 for row in rows}, asked.replace(as_of=None))
    return {one.passage: passage_key(one) for one in found}


# --- every query ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("part", [None, "notes", "files transcripts"])
def test_keyword_search_finds_the_same_in_the_same_order_with_the_same_scores(both, query, part):
    here, there = [index.search(query, EVERYTHING.replace(part=part), 20) for index in both]
    assert sorted(map(passage_key, here)) == sorted(map(passage_key, there))
    assert [one.score for one in there] == pytest.approx([one.score for one in here], rel=1e-9)
    ties = [one.score for one in here]
    firm = [place for place in range(len(ties)) if ties.count(ties[place]) == 1]
    assert [passage_key(here[place]) for place in firm] == [passage_key(there[place]) for place in firm]


@pytest.mark.parametrize("query", QUERIES)
def test_keyword_search_in_the_past_finds_the_same(both, query):
    for when in ("2026-03-01T00:00:00Z", "2026-06-15T00:00:00Z", "2027-01-01T00:00:00Z"):
        for known in (None, "2026-07-01T00:00:00Z"):
            asked = EVERYTHING.replace(as_of=when, known_at=known)
            here, there = [index.search(query, asked, 20) for index in both]
            assert sorted(map(passage_key, here)) == sorted(map(passage_key, there))
            assert sorted([one.score for one in there]) == pytest.approx(sorted([one.score for one in here]), rel=1e-9)


def questions(index):
    """Yield every other public query of an index, and its answer in a form that can be compared."""
    ids = named(index)
    order = sorted(ids, key=ids.__getitem__)
    recent = [index.find_recent(EVERYTHING.replace(part=part), 30) for part in (None, "notes", "files")]
    page = index.list_notes(SCOPES, most=5)
    last = page[-1]
    yield "folder", [getattr(index.find_folder(scope, "notes"), "fingerprint", 0) for scope in (*SCOPES, "nowhere")]
    yield "known", sorted([(place, row.fingerprint) for place, row in index.known_folders((*SCOPES, "projects/empty")).items()])
    yield "stamps", [sorted(index.file_ids(scope, part).items()) for scope in SCOPES for part in PARTS]
    yield "mark", [index.file_digest(scope, "notes", "note-3.md") for scope in SCOPES]
    yield "stamp", [index.file_id(scope, "transcripts", "talk-1.jsonl") for scope in SCOPES]
    yield "recent", [[passage_key(one) for one in some] for some in recent]
    past = index.find_recent(EVERYTHING.replace(as_of="2026-06-01T00:00:00Z"), 30)
    yield "recent_at", sorted(map(passage_key, past))
    yield "rows", sorted([repr(row.replace(id=0, doc=0)) for row in index.find_rows(ids, EVERYTHING.replace(tags=("CI-CD",)))])
    yield "typed", sorted([repr(row.replace(id=0, doc=0)) for row in index.find_rows(ids, EVERYTHING.replace(type="feedback"))])
    yield "notes", [index.list_notes(SCOPES), index.list_notes(SCOPES, "user"), page]
    yield "tagged", index.list_notes(SCOPES, tags=("ümlaut",))
    yield "held", [index.list_notes(SCOPES, only=1), index.list_notes(SCOPES, only=0, most=3), index.has_quarantined()]
    yield "before", index.list_notes(SCOPES, before="2026-05-01T00:00:00Z", now="2026-05-01T00:00:00Z")
    yield "after", index.list_notes_after(last, SCOPES, type=None, tags=(), most=7)
    yield "by key", index.list_notes_by_key("projects/demo", "note-2.md", 4)
    yield "named", [index.find_note("projects/demo", name) for name in ("note-3.md", "note-5.md", "never.md")]
    yield "count", [index.count_notes(SCOPES), index.count_notes(SCOPES, only=1)]
    yield "count now", index.count_notes(("global",), now="2026-05-01")
    for about, label in FACTS:
        found = [index.find_facts(SCOPES, about, label, at) for at in (None, "2026-05-01")]
        yield f"facts {about} {label}", [sorted(some, key=repr) for some in found]
    yield "stale_lines", [sorted(index.find_stale_lines(SCOPES, at)) for at in ("2026-05-01", "2026-10-01")]
    yield "stating", [index.find_note_stating("projects/demo", name) for name in ("harbour", "crane seven", "x" * 3000, "none")]
    yield "has_facts", index.has_facts()
    yield "declared", sorted(index.find_labelled_facts(SCOPES, ["alias", "aliases"]), key=repr)
    said = index.find_stating_passages(["harbour", "ada", "open", "state"], EVERYTHING, "2026-10-01", 500)
    yield "stating_passages", sorted([(ids[row.passage], row.subject, row.label) for row in said])
    yield "counts", index.count_files()
    yield "totals", index.count_all()
    yield "exposed", index.find_exposed_notes(SCOPES)
    yield "problems", index.find_problems(SCOPES)
    yield "has_note", [index.has_note("projects/demo", name) for name in ("note-3.md", "never.md")]
    yield "note_of_id", [index.find_note_by_id(SCOPES, f"01IDglobalnote-{n}") for n in range(1, 15)]
    addresses = ("https://example.org/", "https://example.org/2", "no")
    yield "made_from", [index.find_notes_made_from(SCOPES, address) for address in addresses]
    yield "made_from_any", index.find_notes_made_from_any(SCOPES, lambda what: what.endswith("1"))
    texts = [note.text for note in index.list_notes(SCOPES)]
    yield "held_saying", sorted(index.find_quarantined_texts(SCOPES, texts), key=repr)
    yield "said_by", [index.find_notes_by_source(SCOPES, name) for name in ("web", "ada", "nobody")]
    yield "folders_of", sorted([(row.passages, row.words) for row in index.find_folders(EVERYTHING)])
    yield "lengths", sorted([(ids[id], count) for id, count in index.count_words(order).items()])
    yield "texts", sorted([(ids[row.id], row.names, row.text, row.speaker or "") for row in index.read_texts(order)])
    yield "beside", sorted({ids[id] for id in index.find_adjacent_turns(order[::3])})
    speakers = ["Mara", "MARA", "jürgen", "Jürgen", "User", "nobody"]
    yield "who_of", [sorted(index.find_speakers(speakers, asked)) for asked in (EVERYTHING, *PARTLY)]
    terms = list(tokenizer.query_terms(" ".join(WORDS)))
    yield "frequencies", [index.count_terms([*terms, "nobodysaysthis"], asked) for asked in (EVERYTHING, *PARTLY)]
    yield "beginning", [sorted(index.find_terms_by_prefix(start)) for start in ("harb", "dep", "_gnu", "記", "zzzz")]
    counted = index.count_terms(terms, EVERYTHING)
    every = index.find_postings(sorted(counted), EVERYTHING, 500)
    yield "having", [sorted([ids[int(id)] for id in some.split(",")]) for some in every]
    yield "unsaid", index.find_orphaned_terms(list(counted))
    yield "kept", sorted(index.list_texts(True))
    yield "verify", index.verify()


@pytest.mark.promise("A7")
def test_every_question_has_the_same_answer(both):
    here, there = [{name: _sound(answer) for name, answer in questions(index)} for index in both]
    assert {name: answer for name, answer in there.items() if answer != here[name]} == {}


def _sound(value):
    """Return an answer as text: PostgreSQL has U+FFFD for bytes that are not text, and booleans instead of numbers."""
    return repr(value).replace("True", "1").replace("False", "0").replace("\\x00", "\ufffd").replace("\\udcff", "\ufffd")


# --- vectors ----------------------------------------------------------------------------------------------------------


def open_searches(pair):
    return [
        HybridSearch(index, (WordHashEmbedder(), WordHashEmbedder("use", 512), WordHashEmbedder("sentence", 384)))
        for index in pair
    ]


def result(seeker, query, **more):
    asked = EVERYTHING.replace(**more)
    return seeker.search(query, asked, limit=10, now="2026-10-01T00:00:00Z", mode="hybrid", explain=False, progress=Progress())


def test_hybrid_search_gives_the_same_order_and_the_same_scores(both):
    here, there = open_searches(both)
    for seeker in (here, there):
        assert not any(seeker.vectorizer.catch_up(Progress(), everything=True).values())
    broken = make_documents(7).broken
    for query in QUERIES:
        for part in (None, "notes", "transcripts"):
            answers = [result(seeker, query, part=part) for seeker in (here, there)]
            assert {(answer.mode, answer.reason) for answer in answers} == {("hybrid", "")}
            one, other = [[hit for hit in answer.found if (hit.scope, hit.name) not in broken] for answer in answers]
            one, other = one[: len(other)], other[: len(one)]
            assert [hit.score for hit in other] == pytest.approx([hit.score for hit in one], abs=1e-4)
            ties = [round(hit.score, 3) for hit in one[:6]]
            firm = [place for place in range(min(5, len(ties))) if ties.count(ties[place]) == 1]
            assert [passage_key(one[place]) for place in firm] == [passage_key(other[place]) for place in firm], query


@pytest.fixture
def with_toy(index):
    """An index in PostgreSQL and a fake model that has embedded all of it."""
    fill(index, make_documents(3, 60))
    seeker = HybridSearch(index, (WordHashEmbedder(),))
    seeker.vectorizer.catch_up(Progress(), everything=True)
    return index, seeker


def model_of(index):
    (model,) = index.vectors.list_models()
    return model


def find_nearest_exactly(index, query, most):
    """Return the most similar passages of a folder by comparing all of its vectors."""
    rows = index._database.query("SELECT passage, folder, numbers::real[] FROM vectors", ())
    nearest: dict[int, list[tuple[float, int]]] = {}
    for passage, folder, numbers in rows:
        vector = np.array(numbers)
        nearest.setdefault(folder, []).append((-float(vector @ query) / float(np.linalg.norm(vector)), passage))
    return {folder: list(dict.fromkeys([passage for _, passage in sorted(some)]))[:most] for folder, some in nearest.items()}


@pytest.mark.parametrize(("most_exact", "few"), [(16_384, 0), (20, 0), (0, 0), (0, 10_000)])
def test_the_nearest_are_the_nearest_however_they_are_compared(index, monkeypatch, most_exact, few):
    monkeypatch.setattr(vectors, "EXACT", most_exact)
    monkeypatch.setattr(vectors, "_FEW_WIDE", few)
    fill(index, make_documents(5, 80))
    HybridSearch(index, (WordHashEmbedder(),)).vectorizer.catch_up(Progress(), everything=True)
    for query in WordHashEmbedder().questions(["harbour ship", "storm captain", "tide"]):
        for folder, wanted in find_nearest_exactly(index, query, 10).items():
            found = index.vectors.find_nearest(model_of(index), [folder], query, 10)
            assert set(found[:20]) >= set(wanted) and len(found) <= 20, (folder, found, wanted)


def test_a_copy_follows_what_others_put_in_and_take_out(with_toy, postgres_url):
    seeker = with_toy[1]
    other = PostgresIndex(PostgresSettings(url=postgres_url, agent="*"), 5, QUARANTINED_ORIGINS)
    asked = SearchFilter(("projects/demo",), "notes")

    def find_keepers(limit):
        result = seeker.search(
            "lighthouse keeper", asked, limit=limit, now=None, mode="semantic", explain=False, progress=Progress()
        )
        return {hit.key for hit in result.found}

    before = find_keepers(30)
    one = random_index.RandomDocuments(99)
    for number in range(40):
        one.sentence = lambda *_, number=number: f"lighthouse keeper {number}"
        one.random.choice = lambda some: some[0] if some != SCOPES else "projects/demo"
        one.random.randint = lambda low, high, number=number: number + 100 if (low, high) == (1, 14) else low
        one.add_note()
    other.put(one.puts, lambda _: True)
    after = find_keepers(60)
    assert {f"note-{number + 100}" for number in range(40)} <= after - before
    other.remove("projects/demo", "notes", [f"note-{number + 100}.md" for number in range(39)], lambda _: True)
    left = find_keepers(60)
    assert "note-139" in left and not left & {f"note-{number + 100}" for number in range(39)}


def test_vectors_of_what_was_taken_out_are_gone_and_are_missed_by_nobody(with_toy):
    index, _ = with_toy
    name = next(iter(index.file_ids("projects/demo", "notes")))
    held = index.read_vectors("projects/demo", "notes", [name])
    assert held and all(index.has_vector(vector) for vector in held)
    index.remove("projects/demo", "notes", [name], lambda _: True)
    assert not any(index.has_vector(vector) for vector in held)
    assert index.verify() == ""


def test_what_postgresql_takes_for_no_text_is_kept_as_a_sign_for_it(index):
    data = b"# odd \xff\x00 title\nharbour \xed\xa0\x80 tide\n- [2026-01-01] st\x00ate: \xfe\n"
    index.put([(file_entry("global", "odd.md", data, (1, 2, 3), 1_780_000_000), None)], lambda _: True)
    (found,) = index.search("harbour", SearchFilter(("global",)), 5)
    (read,) = index.read_texts([found.passage])
    assert "\ufffd" in read.text and "tide" in read.text and index.verify() == ""
    assert index.find_facts(("global",), "no \0 such \ud800 name", None, None) == []
    assert index.search("harbour \ud800 \0", SearchFilter(("global",)), 5) and index.find_note("global", "\ud800.md") is None


def test_words_that_nothing_says_any_more_go_with_the_scrub(index):
    one = random_index.RandomDocuments(1)
    one.sentence = lambda *_: "xylophonist harbour"
    one.add_note()
    doc = one.puts[0][0]
    index.put(one.puts, lambda _: True)
    terms = list(tokenizer.query_terms("xylophonist"))
    assert index.find_orphaned_terms(terms) == []
    with index._database.transaction() as db:  # other writers may be about to index such a text
        db.execute(SQL["lock_folder_rows"], {"scopes": ["projects/other"], "parts": ["notes"]}).fetchall()
        with ThreadPoolExecutor(1) as threads:
            threads.submit(index.remove, doc.scope, doc.part, [doc.name], lambda _: True).result(30)
    assert index.find_orphaned_terms(terms) == terms
    index.scrub(rewrite=True)
    assert index.find_orphaned_terms(terms) == [] and index.find_terms_by_prefix("xylo") == []


def test_words_that_nothing_says_any_more_go_with_the_last_that_said_them_whoever_said_them(index):
    one = random_index.RandomDocuments(1)
    one.sentence = lambda *_: "xylophonist harbour"
    one.add_note(), one.add_note()
    index.put(one.puts, lambda _: True)
    (first, _), (last, _) = one.puts
    everyone = PostgresIndex(index._database.settings, 5, QUARANTINED_ORIGINS)

    def known():
        return [term for (term,) in everyone._database.query("SELECT term FROM word ORDER BY term", ())]

    terms = list(tokenizer.query_terms("xylophonist"))
    assert set(terms) <= set(known())
    index.remove(first.scope, first.part, [first.name], lambda _: True)
    assert set(terms) <= set(known())
    index.remove(last.scope, last.part, [last.name], lambda _: True)
    assert known() == [] and index.verify() == ""


def test_a_catalogue_that_was_started_anew_is_empty_and_fills_again(with_toy):
    index, seeker = with_toy
    index.reset()
    assert index.count_all() == Totals(0, 0, 0, 0)
    assert index.find_folders(EVERYTHING) == [] and index.find_terms_by_prefix("harb") == []
    fill(index, make_documents(3, 60))
    assert index.verify() == "" and result(seeker, "harbour").found


def test_a_warm_question_is_a_handful_of_round_trips(both, monkeypatch):
    seeker = open_searches(both)[1]
    assert not any(seeker.vectorizer.catch_up(Progress(), everything=True).values())
    result(seeker, "storm captain"), result(seeker, "storm captain")
    asked = []
    ask = Connection.run
    monkeypatch.setattr(Connection, "run", lambda self, batch: asked.append(batch) or ask(self, batch))
    result(seeker, "storm captain", part="notes")
    assert len(asked) <= 9  # models, common words, mentions, facts (2), neighbours, passages, their pieces, the end
    asked.clear()
    both[1].search("storm captain", EVERYTHING, 10)
    assert len(asked) <= 5
    asked.clear()
    doc, _ = make_documents(7).puts[0]
    both[1].put([(doc.replace(file_id=FileId(1, 2, 3)), None)], lambda _: True)
    assert len(asked) == 2


# --- without pgvector -------------------------------------------------------------------------------------------------


def test_without_pgvector_words_are_searched_and_the_answer_says_why(postgres_url, tmp_path):
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("DROP EXTENSION vector CASCADE")
    settings = config.load(tmp_path / "home").replace(store=postgres_url, embedder="static")
    with Memory(config=settings, project="demo", cwd=tmp_path) as memory:
        memory.store("the harbour opens at seven", key="opening")
        memory.store("the harbour opens at eight", key="opening")
        answer = memory.recall("harbour")
        assert [hit.key for hit in answer] == ["opening"] and answer.mode == "keyword"
        assert answer.degraded and "pgvector" in answer.reason
        memory.forget("opening")
        assert not list(memory.recall("harbour"))


def test_pgvector_that_comes_later_is_used_from_then_on(postgres_url, tmp_path):
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("DROP EXTENSION vector CASCADE")
    index = PostgresIndex(PostgresSettings(url=postgres_url, agent="*"), 5)
    fill(index, make_documents(3, 20))
    assert result(HybridSearch(index, (WordHashEmbedder(),)), "harbour").mode == "keyword"
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        assert owner.execute("SELECT holdfast.make_vectors()").fetchone() == (True,)
    found = result(HybridSearch(index, (WordHashEmbedder(),)), "harbour")
    assert (found.mode, found.reason) == ("hybrid", "") and found.found


# --- concurrent use ---------------------------------------------------------------------------------------------------


CHILD = textwrap.dedent("""\
    import sys
    from holdfast.base.ids import FileId
    from holdfast.postgres.index import PostgresIndex as Index
    from holdfast.models import Progress
    from holdfast.postgres import PostgresSettings
    from holdfast.search.hybrid import HybridSearch
    from random_index import WordHashEmbedder, make_documents
    url, seed = sys.argv[1], int(sys.argv[2])
    index = Index(PostgresSettings(url=url, agent="*"), 30)
    seeker = HybridSearch(index, (WordHashEmbedder(),))
    for number, (doc, replaced) in enumerate(make_documents(7, 60).puts):
        changed = FileId(doc.file_id.inode, doc.file_id.changed + seed, doc.file_id.size)
        index.put([(doc.replace(file_id=changed), None)], lambda _: True)
        if number % 7 == seed:
            index.remove(doc.scope, doc.part, [doc.name], lambda _: True)
        if number % 10 == seed:
            seeker.vectorizer.catch_up(Progress(), everything=True)
        if number == 30 and seed == 2:
            index.scrub()
""")


@pytest.mark.battery
def test_writers_of_the_same_files_from_four_processes_leave_every_count_true(postgres_url):
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, postgres_url, str(seed)], stderr=subprocess.PIPE, text=True,
            env={"PYTHONPATH": str(Path(__file__).parents[1] / "support"), "HOME": "/nonexistent", "PATH": ""},
        )
        for seed in range(4)
    ]  # fmt: skip
    failed = [child.communicate(timeout=200)[1] for child in children]
    assert [child.returncode for child in children] == [0, 0, 0, 0], failed
    index = PostgresIndex(PostgresSettings(url=postgres_url, agent="*"), 5)
    assert index.verify() == ""
    there_are = "(SELECT count(*) FROM vectors v WHERE v.model = s.model AND v.folder = s.folder)"
    counted = index._database.query(f"SELECT s.narrow + s.wide, {there_are} FROM stock s", ())
    assert counted and all(said == there for said, there in counted)
    orphans = "SELECT count(*) FROM {} x WHERE NOT EXISTS (SELECT 1 FROM passage p WHERE p.id = x.passage)"
    for table in ("mention", "made", "piece", "lacking", "vectors"):
        assert index._database.query(orphans.format(table), ()) == [(0,)], table
    HybridSearch(index, (WordHashEmbedder(),)).vectorizer.catch_up(Progress(), everything=True)
    bare = (
        "SELECT count(*) FROM passage p WHERE NOT p.past AND p.words > 0"
        " AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.passage = p.id)"
    )
    assert index._database.query(bare, ()) == [(0,)]


@pytest.mark.promise("A7")
def test_another_agents_passages_are_in_no_answer(both, postgres_databases):
    everyone = both[1]
    ada, eve = [
        PostgresIndex(everyone._database.settings.replace(agent=name), 5, QUARANTINED_ORIGINS) for name in ("ada", "eve")
    ]
    asked = SearchFilter(("agents/ada",))
    found = [list(map(passage_key, index.search("harbour", asked, 5))) for index in (ada, everyone, eve)]
    assert found[0] == found[1] != [] and found[2] == []
    assert eve.list_notes(("agents/ada",)) == [] and eve.find_folder("agents/ada", "notes") is None
    ids = list(named(everyone))
    hidden = {id for id, place in named(everyone).items() if place[0] == "agents/ada"}
    assert hidden and not hidden & {*[row.id for row in eve.read_texts(ids)], *eve.count_words(ids)}


# --- quality ----------------------------------------------------------------------------------------------------------


SLICE = Path(__file__).parents[1] / "data" / "slice.jsonl"


@pytest.mark.promise("A7")
@pytest.mark.parametrize("mode", tiered(["hybrid", "keyword"], fast=["keyword"]))
def test_quality_is_that_of_the_embedded_index(postgres_databases, monkeypatch, mode):
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "default")
    from holdfast_bench import retrieval

    made_for, urls = {}, []

    def open_store(folder):
        urls.append(postgres_databases.fresh())
        made_for[folder] = config.load(Path(folder, "home")).replace(store=urls[-1])
        return Memory(config=made_for[folder], project="bench", cwd=folder)

    options = retrieval.Options(files=(SLICE,), mode=mode)
    here, there = retrieval.measure(SLICE, options), retrieval.measure(SLICE, options, open_store)
    for url in urls:
        close_pools(url)
        postgres_databases.drop(url)
    assert (there.ran, there.degraded) == ((mode,), 0)
    for measure in ("any@5", "ndcg@10"):
        one, other = [report.kinds["all"].docs[measure].mean for report in (here, there)]
        print(f"{mode} {measure}: embedded {100 * one:.2f}, PostgreSQL {100 * other:.2f}")
        assert other == pytest.approx(one, abs=0.01)
