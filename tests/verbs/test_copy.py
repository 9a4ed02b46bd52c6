"""Copy: everything from one store to another and back, byte for byte, even if it is interrupted repeatedly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import pytest
from mcp_raw import HOLDFAST

from holdfast import Conflict, Memory, NotFound, Purged, UsageError, config
from holdfast.access import AccessGate
from holdfast.config import hide_password
from holdfast.errors import Disabled
from holdfast.ledger.audit_verify import verify
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.ledger.transfer import TABLES
from holdfast.models import Progress
from holdfast.postgres.pool import close_pools
from holdfast.store import atomic
from holdfast.verbs import copy

WORDS = "zanzibarqvx7 is the word that must be gone for good"
MIRROR = "the safe is behind the mirror in the hall"


@pytest.fixture
def settings(home):
    return config.load(home)


@pytest.fixture
def full(home, tmp_path):
    """A home with data of every kind."""
    with Memory(home, project="demo", agent="reviewer", session="s1", client="cli", cwd=tmp_path) as memory:
        memory.store("The harbour opens at six.", key="harbour", tags="hours", pinned=True)
        memory.store("The harbour opens at seven.\n\n- [2026-01-01] colour: red", key="harbour")
        memory.store_many([{"text": f"note number {n} 東京 🚀", "key": f"n{n}"} for n in range(30)])
        for scope in ("global", "agent", "session"):
            memory.store(f"words of {scope}", key="k", scope=scope)
            memory.files.create("deep/page.md", f"# Page of {scope}\n", scope=scope)
        for number in range(25):  # more versions than a note file keeps
            memory.store(f"the tide is {number} feet high", key="tide")
        memory.store("forgotten words", key="forgotten")
        memory.forget("forgotten")
        memory.store(WORDS, key="gone")
        memory.purge("gone")
        memory.store("from the web", key="web", origin="web")
        memory.log([{"role": "user", "text": f"turn {n} of the harbour"} for n in range(40)], session="talk", client="c")
        memory.log([{"role": "user", "text": "soon forgotten"}], session="over", client="c")
        memory.forget_session("over")
        memory.brief()
        memory.brief(prompt="when does the harbour open?")
        memory.recall("harbour")
        memory.scaffold("wiki")
    with Memory(home, project="demo", origin="user", cwd=tmp_path) as person:
        person.approve("web")
    notes = home / "shelf" / "projects" / "demo" / "notes"
    (notes / "by-hand.md").write_bytes(b"\xef\xbb\xbfno front matter, \xff no UTF-8\r\n")
    os.utime(notes / "by-hand.md", (1_700_000_000, 1_700_000_000))
    gate = AccessGate(config.load(home))
    gate.first_token()
    gate.grant("operator", "project", "demo")
    gate.close()
    ledger = SqliteLedger(str(home))
    ledger.projects.link("old-name", "demo")
    ledger.sessions.count_prompt("s1", "a digest", 5)
    ledger.projects.put_location("m1", "nonce", "/some/where")
    ledger.done.record("reviewer", "deploy", "v1", 1)
    ledger.done.record("reviewer", "deploy", "v2", 2)
    ledger.done.record("reviewer", "call", "the number 555-0199", 3)
    ledger.done.mask(lambda text: "555" in text)
    ledger.reviews.claim("reviewer", "o", "r", 7, holder="me", now=1005)
    ledger.reviews.claim("reviewer", "o", "r", 8, holder="me", now=1005)
    ledger.reviews.record("reviewer", "o", "r", 7, holder="me", now=1006)
    ledger.idempotency_keys.begin("reviewer", "key-1", "d", 10)
    ledger.close()
    return home


def trees(home):
    """Return the bytes and times of every document, the lines of every transcript, and the folders of every tree."""
    store = home / "shelf"
    folders = {str(path.relative_to(store)): b"" for path in store.glob("*/*/files/**") if path.is_dir()}
    return folders | {
        str(path.relative_to(store)): (path.read_bytes(), 0 if path.suffix == ".jsonl" else int(path.stat().st_mtime))
        for path in store.rglob("*")
        if path.is_file() and not (path.name == "index.md" and "files" not in path.relative_to(store).parts)
    }


def documents(home):
    return len([path for path, told in trees(home).items() if told and not path.endswith(".jsonl")])


def records(home):
    """Return every row of a ledger, and whether its audit is valid."""
    ledger = SqliteLedger(str(home))
    try:
        tables = {table.name: ledger.transfer.rows(table) for table in TABLES}
        return tables, list(ledger.audit.iterate_rows()), verify(ledger.audit).ok
    finally:
        ledger.close()


@pytest.fixture(params=["folder", "postgres"])
def between(request, tmp_path):
    """The folder that it is copied back to."""
    return request.getfixturevalue("postgres_url") if request.param == "postgres" else str(tmp_path / "between")


def test_there_and_back_is_byte_identical(full, between, tmp_path, settings):
    there = copy.copy(str(full), between, settings)
    back = copy.copy(between, str(tmp_path / "back"), settings)
    assert trees(tmp_path / "back") == trees(full)
    assert records(tmp_path / "back") == records(full)
    assert records(full)[2]
    assert there.left == back.left == ()
    assert (there.documents, there.documents_copied) == (back.documents, back.documents_copied) == (documents(full),) * 2
    assert (there.transcripts, there.lines_copied, there.lines) == (2, 43, 43)
    assert there.verified == there.documents + there.transcripts + there.records + there.audit_rows


@pytest.mark.parametrize("count", [3, 30])
def test_what_is_brought_is_flushed_before_it_stands_in_its_place(tmp_path, settings, monkeypatch, count):
    with Memory(tmp_path / "some", project="demo", cwd=tmp_path) as memory:
        memory.store_many([{"text": f"note number {n}", "key": f"n{n}"} for n in range(count)])
    steps, fsync, sync_all, link = [], os.fsync, atomic.sync_filesystem, os.link
    monkeypatch.setattr(os, "fsync", lambda fd: steps.append("flush") or fsync(fd))
    monkeypatch.setattr(atomic, "sync_filesystem", lambda folder: steps.append("flush all") or sync_all(folder))
    monkeypatch.setattr(os, "link", lambda *given, **named: steps.append("link") or link(*given, **named))
    copy.copy(str(tmp_path / "some"), str(tmp_path / "there"), settings)
    before = steps[: steps.index("link")]
    assert "flush all" in before if count > 4 else before[-count:] == ["flush"] * count
    assert steps.count("link") == count and steps[steps.index("link") + count] == "flush"


def test_the_writers_of_files_come_along(full, between, tmp_path, settings):
    def writers(home):
        with Memory(home, project="demo", agent="reviewer", session="s1", cwd=tmp_path) as memory:
            found = {path: memory.read(path).source for path in trees(home) if "/files/" in path and path.endswith(".md")}
            return found, [one.replace(file_id=None) for one in memory._context.ledger.file_sources.list()]

    page = full / "shelf" / "global" / "files" / "deep" / "page.md"
    page.write_text("# By hand\n")
    there = copy.copy(str(full), between, settings)
    assert there.verified == there.documents + there.transcripts + there.records + there.audit_rows
    again = copy.copy(str(full), between, settings)
    assert (again.records, again.records_copied) == (there.records, 0)
    copy.copy(between, str(tmp_path / "back"), settings)
    (found, kept), (found_back, kept_back) = writers(full), writers(tmp_path / "back")
    assert found_back == found and found["agents/reviewer/files/deep/page.md"].agent == "reviewer"
    assert found["global/files/deep/page.md"] is None
    assert kept_back == [one for one in kept if one.scope != "global"]  # what is not about the file any more stays behind


def test_every_kind_of_record_is_in_the_test(full):
    rows, audit, _ = records(full)
    assert [name for name, some in rows.items() if not some] == [] and audit


def test_what_is_known_by_a_secret_is_known_wherever_it_was_copied(full, between, tmp_path, settings):
    def masked(ledger):
        try:
            return ledger.done.exists("reviewer", "call", "the number 555-0199"), ledger.reviews.secret()
        finally:
            ledger.close()

    copy.copy(str(full), between, settings)
    copy.copy(between, str(tmp_path / "back"), settings)
    with copy.endpoints.open_endpoint(between, settings) as end:
        told = masked(end.ledger)
    assert told == masked(SqliteLedger(str(full))) == masked(SqliteLedger(str(tmp_path / "back"))) and told[0]
    assert (tmp_path / "back" / "review.key").stat().st_mode & 0o777 == 0o600


def test_another_secret_in_the_target_is_refused(full, between, settings):
    if "://" not in between:
        os.mkdir(between, 0o700)
    with copy.endpoints.open_endpoint(between, settings) as end:
        end.ledger.reviews.secret()
    with pytest.raises(Conflict, match="keys review"):
        copy.copy(str(full), between, settings)


def test_what_was_purged_in_the_target_does_not_come_back(full, between, tmp_path, settings):
    with Memory(full, project="demo", session="s1", cwd=tmp_path) as memory:
        memory.store("The vault opens with seven silver herrings.", key="vault")
        memory.store("The cellar opens with nine golden herrings.", key="cellar")
        memory.forget("cellar")
        memory.log([{"role": "user", "text": f"a whisper, number {n}"} for n in range(3)], session="quiet", client="c")
        memory.log([{"role": "user", "text": one} for one in ("at first", MIRROR)], session="mixed", client="c")
    copy.copy(str(full), between, settings)
    where = settings.replace(store=between) if "://" in between else config.load(between)
    with Memory(config=where, project="demo", session="s1", origin="user", cwd=tmp_path) as memory:
        for one in ({"key": "vault"}, {"key": "cellar"}, {"session": "quiet"}, {"text": MIRROR}):
            memory.purge(**one)
    for _ in range(2):
        again = copy.copy(str(full), between, settings)
        assert sorted([one.partition(": ")[0].partition("--")[0] for one in again.left]) == [
            "projects/demo/notes/vault.md", "projects/demo/transcripts/c/mixed.jsonl",
            "projects/demo/transcripts/c/quiet.jsonl", "projects/demo/trash/cellar",
        ]  # fmt: skip
        assert (again.documents_copied, again.lines_copied) == (0, 0)
    copy.copy(between, str(tmp_path / "back"), settings)
    everything = b"".join([path.read_bytes() for path in (tmp_path / "back").rglob("*") if path.is_file()])
    assert b"at first" in everything
    for gone in (b"silver", b"golden", b"whisper", b"mirror"):
        assert gone not in everything


def test_what_was_copied_answers_the_same(full, between, tmp_path, settings, monkeypatch):
    def told(memory):
        hits = [(hit.citation, hit.text) for hit in memory.recall("harbour", limit=100)]
        return sorted(hits), memory.list(), memory.facts(), memory.trash(), memory.receipts(), memory.history("harbour")

    given = {"project": "demo", "agent": "reviewer", "session": "s1", "cwd": tmp_path}
    with Memory(full, **given) as memory:
        before = told(memory)
    copy.copy(str(full), between, settings)
    if "://" in between:
        monkeypatch.setenv("HOLDFAST_STORE", between)
    with Memory(tmp_path / "elsewhere" if "://" in between else between, **given) as memory:
        assert told(memory) == before
        with pytest.raises(Purged):
            memory.store(WORDS, key="again")
        assert not memory.get("web").quarantined
        assert [one.path for one in memory.check()] == ["projects/demo/notes/by-hand.md"]  # not UTF-8, in both stores


def test_a_second_time_nothing_is_brought(full, between, settings):
    first = copy.copy(str(full), between, settings)
    again = copy.copy(str(full), between, settings)
    assert (again.documents_copied, again.lines_copied, again.records_copied) == (0, 0, 0)
    assert (again.documents, again.lines, again.records, again.verified) == (
        first.documents, first.lines, first.records, first.verified,
    )  # fmt: skip


def test_what_is_new_since_is_brought_and_what_the_target_has_besides_stays(full, between, tmp_path, settings, monkeypatch):
    copy.copy(str(full), between, settings)
    with Memory(full, project="demo", cwd=tmp_path) as memory:
        memory.store("said later", key="later")
        memory.log([{"role": "user", "text": f"turn {n} of the harbour"} for n in range(45)], session="talk", client="c")
    again = copy.copy(str(full), between, settings)
    assert (again.documents_copied, again.lines_copied) == (1, 5)


def test_another_note_under_the_same_name_is_refused_by_name_and_nothing_is_written(full, tmp_path, settings):
    target = tmp_path / "target"
    with Memory(target, project="demo", cwd=tmp_path) as memory:
        memory.store("another harbour", key="harbour")
        memory.store("only here", key="mine")
    before = trees(target)
    with pytest.raises(Conflict, match=r"projects/demo/notes/harbour\.md") as refused:
        copy.copy(str(full), str(target), settings)
    assert "n1.md" not in str(refused.value) and "nothing was written" in refused.value.fix
    assert trees(target) == before and not (target / "ledger.db").exists()


def test_another_transcript_of_the_same_session_is_refused(full, tmp_path, settings):
    target = tmp_path / "target"
    with Memory(target, project="demo", cwd=tmp_path) as memory:
        memory.log([{"role": "user", "text": "quite another talk"}], session="talk", client="c")
    before = trees(target)
    with pytest.raises(Conflict, match=r"transcripts/c/talk\.jsonl"):
        copy.copy(str(full), str(target), settings)
    assert trees(target) == before


def test_two_audits_do_not_become_one(full, tmp_path, settings):
    target = tmp_path / "target"
    gate = AccessGate(config.load(target))
    gate.first_token()
    gate.close()
    with pytest.raises(Conflict, match="audit row 1"):
        copy.copy(str(full), str(target), settings)


def test_an_audit_goes_to_its_own_tenant_only_and_memory_without_one_to_any(full, postgres_url, tmp_path, settings):
    other = settings.replace(tenant="acme")
    with pytest.raises(Conflict, match="tenant 'default'") as refused:
        copy.copy(str(full), postgres_url, other)
    assert refused.value.fix == "Copy to that tenant with HOLDFAST_TENANT=default"
    with Memory(tmp_path / "plain", project="demo", cwd=tmp_path) as memory:
        memory.store("the harbour opens at six", key="harbour")
    assert copy.copy(str(tmp_path / "plain"), postgres_url, other).documents_copied == 1
    assert copy.copy(str(full), postgres_url, settings).documents_copied > 30
    back = copy.copy(postgres_url, str(tmp_path / "acme"), other)
    assert (back.documents, back.records, back.audit_rows) == (1, 0, 0)


@pytest.mark.parametrize("may", [True, False], ids=["owner", "clerk"])
def test_what_was_brought_is_counted_where_the_login_may_so_that_the_first_questions_are_planned_well(
    full, postgres_url, postgres_databases, settings, may
):
    server, name = postgres_databases.server, postgres_url.rpartition("/")[2]
    counted = "SELECT min(reltuples), max(reltuples) FROM pg_class WHERE relname IN ('document', 'line', 'receipts')"
    if not may:
        server.sql("DROP ROLE IF EXISTS copyist")
        server.sql("CREATE ROLE copyist LOGIN IN ROLE holdfast_app")
        server.sql("REVOKE MAINTAIN ON ALL TABLES IN SCHEMA holdfast FROM holdfast_app", name)
    before = server.sql(counted, name)
    try:
        copy.copy(str(full), postgres_url if may else server.url(name, "copyist"), settings)
    finally:
        if not may:
            close_pools(server.url(name, "copyist"))
            server.sql("DROP ROLE copyist")
    ((least, most),) = after = server.sql(counted, name)
    assert (least >= 1 and most >= 40) if may else after == before


def test_another_note_in_postgres_under_the_same_name_is_refused_too(full, postgres_url, tmp_path, settings):
    with Memory(config=settings.replace(store=postgres_url), project="demo", cwd=tmp_path) as memory:
        memory.store("another harbour", key="harbour")
    with pytest.raises(Conflict, match=r"projects/demo/notes/harbour\.md"):
        copy.copy(str(full), postgres_url, settings)
    with Memory(config=settings.replace(store=postgres_url), project="demo", cwd=tmp_path) as memory:
        assert [note.key for note in memory.list()] == ["harbour"]
    assert "password" not in str(hide_password("postgresql://me:password@host/db"))


def test_what_cannot_be_read_is_named_and_the_rest_is_copied(full, tmp_path, settings):
    with open(full / "shelf/global/files/huge.bin", "wb") as file:
        file.truncate(11 * 1024 * 1024)
    os.symlink("/etc/passwd", full / "shelf/projects/demo/notes/link.md")
    (full / "shelf" / "stray").mkdir()
    (full / "shelf/global/loose.md").write_text("nobody finds this")
    (full / "shelf/projects/demo/files/deep").mkdir(exist_ok=True, parents=True)
    os.symlink("/etc", full / "shelf/projects/demo/files/deep/x")
    os.symlink("/etc/passwd", full / "shelf/projects/demo/transcripts/c/y.jsonl")
    with open(os.fsencode(full) + b"/shelf/global/notes/\xff.md", "w") as file:
        file.write("nobody can ask for this")
    done = copy.copy(str(full), str(tmp_path / "target"), settings)
    assert [one.rpartition(": ")[2] for one in done.left] == [
        "no scope", "a name that is not UTF-8", "is not in a folder of memory",
        *["not a regular file"] * 3, "cannot be read",
    ]  # fmt: skip
    named = ["stray", "b'", "global/loose.md", "projects/demo/files/deep/x", "projects/demo/notes/link.md"]
    named += ["projects/demo/transcripts/c/y.jsonl", "global/files/huge.bin"]
    assert all(one.startswith((name, "'")) for one, name in zip(done.left, named, strict=True))
    assert (tmp_path / "target/shelf/projects/demo/notes/harbour.md").exists()
    assert not (tmp_path / "target/shelf/projects/demo/notes/link.md").exists()


def test_a_last_line_that_lacks_its_newline_is_a_line(full, tmp_path, settings):
    path = full / "shelf/projects/demo/transcripts/c/talk.jsonl"
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    assert copy.copy(str(full), str(tmp_path / "target"), settings).lines == 43
    path.write_bytes(path.read_bytes() + b'\n{"id": "torn')
    assert copy.copy(str(full), str(tmp_path / "other"), settings).lines == 43


@pytest.mark.parametrize("source", ["", "nothing-there", "https://example.com/x"])
def test_what_is_no_store_is_refused(tmp_path, settings, source, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((NotFound, UsageError)):
        copy.copy(source, str(tmp_path / "target"), settings)
    assert not (tmp_path / "target").exists()


def test_a_store_is_not_copied_onto_itself_nor_anything_while_memory_is_off(full, settings):
    with pytest.raises(Conflict, match="the same"):
        copy.copy(str(full), f"{full}/../{full.name}", settings)
    with pytest.raises(Disabled):
        copy.copy(str(full), str(full), settings.replace(enabled=False))


def test_progress_is_told(full, tmp_path, settings):
    class Told(Progress):
        def __init__(self):
            self.said = {}

        def start(self, what, total):
            self.what = what
            self.said[what] = [total, 0]

        def step(self, count=1):
            self.said[self.what][1] += count

    told = Told()
    copy.copy(str(full), str(tmp_path / "target"), settings, told)
    assert {"copying documents", "copying transcripts", "verifying documents"} <= set(told.said)
    assert all(total == steps for total, steps in told.said.values())


def test_the_command_says_what_it_did(full, tmp_path):
    words = [*HOLDFAST, "copy", str(full), str(tmp_path / "target")]
    told = subprocess.run([*words, "--json"], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["verified"] > 40
    again = subprocess.run(words, capture_output=True, text=True, check=False)
    assert again.returncode == 0 and "0 copied" in again.stdout and "verified" in again.stdout


@pytest.mark.battery
def test_a_copy_that_is_killed_again_and_again_ends_as_if_it_never_was(full, between, tmp_path, settings):
    with Memory(full, project="demo", cwd=tmp_path) as memory:
        memory.store_many([{"text": f"many {n} " + "words " * 50, "key": f"many-{n}"} for n in range(1200)])
        memory.log([{"role": "user", "text": f"line {n}"} for n in range(2500)], session="long", client="c")
    words, env = [*HOLDFAST, "copy", str(full), between, "--json"], os.environ.copy()
    began = time.monotonic()
    subprocess.run([*HOLDFAST, "--version"], capture_output=True, check=True)
    start, kills = time.monotonic() - began, 0
    for number in range(30):
        running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        try:
            _, err = running.communicate(timeout=start + 0.1 * 1.4**number)
            assert running.returncode == 0, err.decode()
            break
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGKILL)
            running.communicate()
            kills += 1
    else:
        subprocess.run(words, check=True, capture_output=True)
    assert kills >= 1, "it was never interrupted"
    back = copy.copy(between, str(tmp_path / "back"), settings)
    assert trees(tmp_path / "back") == trees(full) and records(tmp_path / "back") == records(full)
    assert back.left == ()
