"""A whole memory in PostgreSQL: every verb from end to end, and with several processes and servers."""

from __future__ import annotations

import os
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import postgres_server
import psycopg
import pytest
from tiers import tiered

from holdfast import Memory, postgres
from holdfast.config import load
from holdfast.context.sync import PARTS
from holdfast.formats import transcript
from holdfast.models import Scope
from holdfast.postgres.connection import Connection
from holdfast.postgres.pool import close_pools

HERE = Scope("project", "demo")
HEADER = transcript.TranscriptHeader("s", "c", "2026-01-01T00:00:00Z", transcript.LIVE)
SAID = [transcript.render_header(HEADER), transcript.render_line(transcript.TranscriptLine("user", "words"))]
SECRET = "The vault opens with seven silver herrings."


@pytest.fixture
def open_hosted(postgres_url, tmp_path):
    """Open callers of one store."""
    opened = []

    def open_(origin="user", project="demo", agent=None, session=None, **settings):
        config = load(tmp_path / "home").replace(**{"store": postgres_url, **settings})
        opened.append(Memory(config=config, project=project, agent=agent, session=session, origin=origin, cwd=tmp_path))
        return opened[-1]

    yield open_
    for memory in opened:
        memory.close()


@pytest.fixture
def hosted(open_hosted):
    return open_hosted()


def said(answer):
    return [hit.text for hit in answer.hits]


def all_texts(url):
    """Return every row of every table and tenant, as the owner sees it."""
    found = {}
    with psycopg.connect(url) as db:
        tables = db.execute("SELECT relname FROM pg_class WHERE relnamespace = 'holdfast'::regnamespace AND relkind = 'r'")
        for (name,) in tables.fetchall():
            rows = db.execute(f"SELECT to_jsonb(t)::text FROM holdfast.{name} t").fetchall()
            found[name] = "\n".join(row[0] for row in rows)
    return found


# --- every verb -------------------------------------------------------------------------------------------------------


@pytest.mark.promise("A7")
def test_a_note_is_stored_recalled_forgotten_restored_and_purged(hosted, postgres_url):
    assert hosted.store(SECRET, key="vault").action == "created"
    assert said(hosted.recall("herrings", mode="keyword")) == [SECRET]
    assert hosted.forget("vault").deleted
    assert said(hosted.recall("herrings", mode="keyword")) == []
    assert hosted.restore("vault").text == SECRET
    receipt = hosted.purge("vault")
    assert receipt.deleted and receipt.state == "done" and not receipt.pending
    assert any("every row of" in check for check in receipt.checks)
    assert any("write-ahead log" in one for one in receipt.beyond_reach)
    assert [name for name, text in all_texts(postgres_url).items() if "herrings" in text or SECRET.encode().hex() in text] == []
    with pytest.raises(Exception, match="purged"):
        hosted.store(SECRET, key="again")


@pytest.mark.promise("A7")
def test_what_a_purge_leaves_behind_is_found_told_and_finished_later(open_hosted, postgres_url):
    hosted = open_hosted(lock_seconds=1)  # how long it is searched for again
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute("CREATE TABLE holdfast.stray (tenant text, said text)")
        db.execute("SELECT holdfast.protect('holdfast.stray')")
        db.execute("INSERT INTO holdfast.stray VALUES ('default', 'copied: ' || %s)", (SECRET,))
        hosted.store(SECRET, key="vault")
        receipt = hosted.purge("vault")
        assert receipt.state == "pending"
        assert [one for one in receipt.pending if one.startswith("table stray: ")]
        assert [problem.code for problem in hosted.check()] == ["purge"]
        db.execute("DELETE FROM holdfast.stray")
    assert hosted.check() == []
    assert hosted.receipts(receipt.id)[0].state == "done"


@pytest.mark.promise("A7")
def test_a_text_is_purged_from_notes_sessions_and_files(open_hosted, postgres_url):
    memory = open_hosted(session="s1")
    memory.store("Harmless words about ships.", key="ships")
    memory.store(SECRET, key="vault")
    memory.store(f"{SECRET}\nAnd more.", key="more", scope="global")
    memory.log([{"role": "user", "text": SECRET}, {"role": "assistant", "text": "Noted, thank you."}])
    memory.files.create("deep/plan.md", f"# Plan\n\n{SECRET}\n")
    receipt = memory.purge(text=SECRET, files=True)
    assert receipt.state == "done", receipt.pending
    assert receipt.turns == 1 and len(receipt.removed) == 3
    left = all_texts(postgres_url)
    assert [name for name, text in left.items() if "herrings" in text or b"herrings".hex() in text] == []
    assert memory.files.view("deep/plan.md") == "# Plan\n\n[purged]\n"
    assert memory.get("ships").text == "Harmless words about ships."
    assert said(memory.recall("thank", kind="turn")) == ["Noted, thank you."]


@pytest.mark.promise("A7")
def test_a_purge_leaves_another_tenant_alone(open_hosted):
    one, other = open_hosted(tenant="one"), open_hosted(tenant="other")
    for memory in (one, other):
        memory.store(SECRET, key="vault")
    assert one.purge("vault").state == "done"
    assert one.receipts() and not other.receipts()
    assert other.get("vault").text == SECRET
    assert said(other.recall("herrings", mode="keyword")) == [SECRET]
    other.store(SECRET + " Still.", key="vault")


@pytest.mark.promise("A7")
def test_nothing_is_wrong_with_a_sound_store_and_it_says_where_it_is(open_hosted, tmp_path):
    memory = open_hosted(session="s1", agent="ada")
    memory.store("Ships sail.", key="ships")
    memory.store("Mine.", key="mine", scope="agent")
    memory.log([{"role": "user", "text": "The tide is out."}])
    memory.files.create("plan.md", "# Plan\n\nSail.")
    assert memory.check() == []
    status = memory.status()
    assert status.shelf.startswith("postgresql://") and status.shelf.endswith("(tenant default)")
    assert {one.scope: (one.notes, one.files, one.sessions) for one in status.scopes} == {
        "projects/demo": (1, 1, 1), "agents/ada": (1, 0, 0),
    }  # fmt: skip
    assert memory.reindex().notes == 2
    assert said(memory.recall("ships", mode="keyword")) == ["Ships sail."]
    assert [row["key"] for row in memory.export()] == ["ships", "mine"]
    assert memory.retain() == []
    assert not (tmp_path / "home").exists() or os.listdir(tmp_path / "home") == []  # the home contains nothing of it


@pytest.mark.promise("A7")
def test_a_secret_in_the_store_is_reported_with_what_takes_it_out(hosted):
    key = "AKIA" + "Q3EXAMPLEKEY7XYZ"[:16].upper()
    note = f"---\nid: 01K9Z6V0M4Q2\n---\naws_access_key_id = {key}\n".encode()
    hosted._context.store.write_note(HERE, "creds", note, None)
    hosted._context.store.tree("projects/demo").write(("creds.md",), f"aws_access_key_id = {key}\n".encode(), None)
    fixes = {problem.path.partition(":")[0]: problem.fix for problem in hosted.check() if problem.code == "secret"}
    assert "purge creds --scope project --project demo" in fixes["projects/demo/notes/creds.md"]
    assert "purge --text - --files" in fixes["projects/demo/files/creds.md"]


@pytest.mark.promise("A7")
def test_a_store_that_cannot_be_reached_is_told_and_nothing_breaks(open_hosted):
    memory = open_hosted(store="postgresql://nobody@127.0.0.1:1/nowhere", lock_seconds=0.2)
    assert "store" in [problem.code for problem in memory.check()]


# --- the number of round trips ----------------------------------------------------------------------------------------


@pytest.fixture
def sent(monkeypatch):
    """Record the statements of every round trip to the server from here on, each a list."""
    trips, run = [], Connection.run
    monkeypatch.setattr(Connection, "run", lambda self, batch: trips.append([text for text, _, _ in batch]) or run(self, batch))
    return trips


@pytest.mark.promise("A7")
def test_the_lines_of_all_turns_that_are_found_are_read_with_one_question(open_hosted, sent):
    memory = open_hosted(session="s1")
    memory.log([{"role": "user", "text": f"The tide is out, said one of {number}."} for number in range(40)])
    memory.log([{"role": "user", "text": "The tide is in."}], session="s2", client="other")
    memory.recall("tide", kind="turn", mode="keyword", limit=3)
    trips = {}
    for limit in (1, 20):
        sent.clear()
        hits = memory.recall("tide", kind="turn", mode="keyword", limit=limit).hits
        assert len(hits) == limit and all("tide" in hit.text for hit in hits)
        trips[limit] = len(sent)
    assert trips[1] == trips[20] <= 8, sent


@pytest.mark.promise("A7")
def test_a_scope_is_cleared_with_as_many_statements_however_many_notes_it_has(hosted, sent):
    told = {}
    for count in (5, 300):
        hosted.store_many([{"text": f"The harbour is {number} feet deep.", "key": f"n{number}"} for number in range(count)])
        sent.clear()
        assert hosted.clear("project") == count
        told[count] = len(sent), sum(map(len, sent))
        assert said(hosted.recall("harbour", mode="keyword")) == [] and hosted.check() == []
    assert told[5] == told[300]


# --- concurrent users -------------------------------------------------------------------------------------------------


@pytest.mark.promise("A7")
def test_what_another_process_stored_is_found_by_the_next_question(hosted, child, postgres_url, tmp_path):
    assert said(hosted.recall("lighthouse", mode="keyword")) == []
    child(
        """
        with Memory(args[0], project="demo") as memory:
            memory.store("The lighthouse is red.", key="light")
        answer = 1
        """,
        tmp_path / "another", HOLDFAST_STORE=postgres_url,
    )  # fmt: skip
    assert said(hosted.recall("lighthouse", mode="keyword")) == ["The lighthouse is red."]


@pytest.mark.promise("A7")
def test_what_was_kept_and_never_catalogued_is_found(hosted):
    """As a crash between the two leaves it: the document is there, and nothing else."""
    hosted.store("Ships sail.", key="ships")
    store = hosted._context.store
    store.write_note(HERE, "lost", b"The harbour is deep.\n", None)
    assert said(hosted.recall("harbour", mode="keyword")) == ["The harbour is deep."]
    store.move_notes(HERE, ["ships"], "trash", 1000.0)
    assert said(hosted.recall("ships", mode="keyword")) == []
    hosted._context.index.reset()
    assert said(hosted.recall("harbour", mode="keyword")) == ["The harbour is deep."]
    assert hosted.check() == []


@pytest.mark.promise("A7")
@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_note_that_is_kept_is_acknowledged_though_nobody_heard_whether_it_was_catalogued(
    open_hosted, postgres_databases, postgres_url, monkeypatch, cut
):
    wire = postgres_server.CommitCutter(postgres_databases.server)
    url = f"postgresql://{postgres_server.OWNER}@127.0.0.1:{wire.port}/{postgres_server.database_name(postgres_url)}"
    try:
        far = open_hosted(store=url, lock_seconds=0.5)
        far.store("Ships sail.", key="ships")
        notes = far._context.sync.index_notes

        def cut_off(written):
            wire.cut = cut
            try:
                notes(written)
            finally:
                wire.cut = ""

        monkeypatch.setattr(far._context.sync, "index_notes", cut_off)
        assert far.store("The harbour is deep.", key="harbour").action == "created"
        assert said(far.recall("harbour", mode="keyword")) == ["The harbour is deep."]
        assert [version.text for version in far.history("harbour")] == ["The harbour is deep."] and far.check() == []
    finally:
        close_pools(url)
        wire.close()


@pytest.mark.promise("A7")
@pytest.mark.parametrize("seed", tiered(range(3), fast=[0]))
def test_whatever_changes_on_the_shelf_the_catalogue_follows(hosted, seed):
    """A few changes at a time, many at a time, and none of them catalogued by who made them."""
    chance, store, index = random.Random(seed), hosted._context.store, hosted._context.index
    tree, transcript_files = store.tree("projects/demo"), store.transcripts("projects/demo")

    def change():
        key = f"k{chance.randint(0, 40)}"
        transcript_file = transcript_files.open(f"c/{key}.jsonl")
        steps = [
            lambda: store.write_note(
                HERE, key, chance.randbytes(9).hex().encode(), store.file_id("projects/demo", "notes", f"{key}.md")
            ),
            lambda: store.move_notes(HERE, [key], "trash", 1000.0),
            lambda: tree.write((key, "a.md"), b"# Plan\n", tree.file_id((key, "a.md"))),
            lambda: tree.is_folder((key,)) and tree.delete((key,)),
            lambda: transcript_file.append(lambda others, empty: SAID),
            lambda: transcript_file.erase(),
        ]  # fmt: skip
        chance.choice(steps)()

    for times in (1, 3, 10, 60, 2, 1, 80, 1):
        for _ in range(times):
            change()
        hosted.recall("words", mode="keyword")
        known = index.known_folders(("projects/demo",))
        assert {part: one.fingerprint for (_, part), one in known.items()} == {
            part: store.fingerprint("projects/demo", part) for part in PARTS if store.has_folder("projects/demo", part)
        }
    assert hosted.check() == []


@pytest.mark.promise("A7")
def test_more_writers_than_connections_wait_and_lose_nothing(open_hosted):
    def work(number):
        memory = open_hosted(origin="agent", store_connections=2)
        for turn in range(5):
            memory.store(f"writer {number} says {turn}", key=f"shared-{turn}")
            memory.recall("writer", mode="keyword")

    with ThreadPoolExecutor(8) as workers:
        list(workers.map(work, range(8)))
    memory = open_hosted()
    for turn in range(5):
        texts = {version.text for version in memory.history(f"shared-{turn}")}
        assert texts == {f"writer {number} says {turn}" for number in range(8)}
    assert memory.check() == []


@pytest.mark.promise("A7")
def test_a_replica_is_asked_only_when_it_has_everything(open_hosted, postgres_databases, postgres_url):
    """One that is always up to date is the primary itself; one that never is, an empty database."""
    open_hosted().store("The lighthouse is red.", key="light")
    stale = postgres_databases.fresh()
    try:
        for read_url in (postgres_url, stale):
            memory = open_hosted(store_read=read_url)
            assert len(memory.recall("lighthouse", mode="keyword").hits) == 1
            memory.store(f"The lighthouse was painted, says {read_url}.", key="light")
            assert said(memory.recall("painted", mode="keyword")) == [f"The lighthouse was painted, says {read_url}."]
            asked_there = memory._context.sync.changes.thread_state.used_replica
            assert asked_there is (read_url == postgres_url)
            memory.close()
    finally:
        close_pools(stale)
        postgres_databases.drop(stale)


@pytest.mark.promise("A7")
def test_of_several_replicas_behind_one_address_the_one_that_is_fresh_answers(open_hosted, postgres_databases, postgres_url):
    """Every new transaction may reach another one: here each that follows a fresh one reaches one that has nothing."""
    from holdfast.postgres.pool import get_pool

    open_hosted().store("The lighthouse is red.", key="light")
    stale = postgres_databases.fresh()
    memory = open_hosted(store_read=f"{postgres_url}?application_name=replica")
    settings = memory._context.store.settings
    fresh, other = get_pool(settings, "read"), get_pool(settings.replace(read_url=stale), "read")
    acquire, lent = fresh.acquire, []

    def in_turn(end, tenant):
        lent.append(other.acquire(end, tenant) if len(lent) % 2 else acquire(end, tenant))
        return lent[-1]

    fresh.acquire, fresh.release = in_turn, lambda line: line.close()
    try:
        for _ in range(4):
            assert said(memory.recall("lighthouse", mode="keyword")) == ["The lighthouse is red."]
        assert len(lent) >= 4
    finally:
        memory.close()
        close_pools(stale)
        close_pools(settings.read_url)
        postgres_databases.drop(stale)


@pytest.mark.promise("A7")
def test_whoever_changes_or_purges_asks_the_primary(open_hosted, postgres_url, monkeypatch):
    """The replica is always fresh here, so only what it may not be asked for keeps questions away from it."""

    memory = open_hosted(store_read=f"{postgres_url}?application_name=replica")
    sync, asked = memory._context.sync, []
    find_orphaned_terms = memory._context.index.find_orphaned_terms

    def watched(*given):
        asked.append(sync.changes.thread_state.used_replica)
        return find_orphaned_terms(*given)

    monkeypatch.setattr(memory._context.index, "find_orphaned_terms", watched)
    memory.store(SECRET, key="vault")
    memory.store("The lighthouse is red.", key="light")
    memory.recall("lighthouse", mode="keyword")
    assert sync.changes.thread_state.used_replica is True
    memory.files.create("page.md", "# A page")
    assert memory._context.query(lambda: sync.changes.thread_state.used_replica) is False
    memory.recall("lighthouse", mode="keyword")
    memory.forget("light")
    assert memory._context.query(lambda: sync.changes.thread_state.used_replica) is False
    assert memory.purge("vault").state == "done"
    assert asked and not any(asked)


@pytest.mark.promise("A7")
def test_an_agent_sees_its_own_scope_and_a_person_all(open_hosted):
    for name in ("ada", "bob"):
        open_hosted(origin="agent", agent=name).store(f"{name} was here.", key="here", scope="agent")
    ada = open_hosted(origin="agent", agent="ada")
    assert said(ada.recall("here", mode="keyword")) == ["ada was here."]
    assert ada._context.store.list_scopes() == ["agents/ada"]
    assert open_hosted()._context.store.list_scopes() == ["agents/ada", "agents/bob"]


@pytest.mark.promise("A7")
def test_an_agents_purge_tells_nothing_of_what_another_keeps_and_leaves_its_words(open_hosted):
    ada, bob = (open_hosted(origin="agent", agent=agent, lock_seconds=1) for agent in ("ada", "bob"))
    bob.store(SECRET, key="vault", scope="agent")
    bob.store("Unguessable-9f3c71e2", key="word", scope="agent")
    for guess in (SECRET, "Unguessable-9f3c71e2", "The vault opens with nine golden herrings."):
        ada.store(guess, key="guess", scope="agent")
        receipt = ada.purge("guess", scope="agent")
        assert receipt.state == "done" and receipt.pending == () and receipt.also_said_by == ()
    assert said(bob.recall("silver", mode="keyword")) == [SECRET]
    assert bob._context.index.find_terms_by_prefix("herr") == ["herring"]


@pytest.mark.promise("A7")
@pytest.mark.parametrize("trashed", [False, True])
def test_a_purge_leaves_no_key_that_was_made_of_the_first_words(hosted, postgres_url, trashed):
    key = hosted.store(SECRET).note.key
    assert "silver" in key or "vault" in key
    hosted.forget(key)
    if not trashed:
        hosted.restore(key)
    assert key in all_texts(postgres_url)["shelf_folder"]
    receipt = hosted.purge(key)
    assert receipt.state == "done"
    assert [name for name, text in all_texts(postgres_url).items() if key in text] == []


@pytest.mark.promise("A7")
def test_a_writer_between_its_two_steps_does_not_catalogue_what_was_purged_meanwhile(open_hosted, postgres_url, monkeypatch):
    slow, other = open_hosted(), open_hosted()
    notes = slow._context.sync.index_notes

    def overtaken(written):
        assert other.purge("vault").state == "done"
        notes(written)

    monkeypatch.setattr(slow._context.sync, "index_notes", overtaken)
    slow.store(SECRET, key="vault")
    left = all_texts(postgres_url)
    assert [name for name, text in left.items() if "herring" in text or SECRET.encode().hex() in text] == []


def test_an_upgrade_embeds_every_passage_again(open_hosted, postgres_url, monkeypatch):
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "default")
    hosted = open_hosted(embedder="default")
    migration = Path(postgres.__file__).parent / "migrations" / "0015_openings.sql"
    turns = [{"role": "user", "text": "my battery is empty"}, {"role": "assistant", "text": "dim the screen"}]
    hosted.log(turns, session="one")
    hosted.embed()
    before = [(hit.text, hit.score) for hit in hosted.recall("what did you say about the display")]
    with psycopg.connect(postgres_url) as db:
        db.execute(migration.read_text())
    waiting = hosted.recall("what did you say about the display", mode="hybrid")
    hosted.embed()
    after = [(hit.text, hit.score) for hit in hosted.recall("what did you say about the display")]
    assert len(waiting) and after == before and len(after) == 2
