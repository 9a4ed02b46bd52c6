"""The ledger in PostgreSQL: the same behaviour as in a home, and separate for each tenant."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import closing

import psycopg
import pytest
from test_access import (  # noqa: F401
    gate,
    open_gate,
    reviewer,
    test_a_revoked_agent_can_be_let_in_again_and_its_old_token_stays_dead,
    test_a_rotated_token_ends_the_old_one_at_once_or_after_a_grace,
    test_a_token_ends_when_its_days_are_over,
    test_a_token_is_checked_to_its_last_character,
    test_an_agent_is_added_once_and_only_with_a_name_and_a_role_that_there_are,
    test_every_action_in_every_scope_is_allowed_or_denied_as_the_role_says,
    test_every_change_of_tokens_is_in_the_audit_with_who_did_what,
    test_the_token_alone_says_who_calls,
    test_what_is_no_token_is_refused_with_how_to_get_one,
    write_role,
)

# The tests of both ledgers are written once, for the fixtures of a ledger or an access gate: here they use PostgreSQL.
from test_audit import (  # noqa: F401
    NOW,
    decision,
    filled,
    test_a_claim_whose_holder_went_away_is_doubtful_and_one_that_was_let_go_is_new,
    test_a_decision_is_one_row_with_agent_action_outcome_role_and_time,
    test_a_deed_is_recorded_once_and_found_by_agent_kind_and_subject,
    test_a_request_that_failed_or_was_left_may_be_tried_again,
    test_a_request_with_a_key_is_done_once_and_then_answered_the_same,
    test_anybody_can_follow_the_chain_from_an_export,
    test_of_many_who_record_a_deed_at_once_one_is_told_that_it_is_new,
    test_of_ten_who_claim_a_review_one_gets_it_and_after_it_is_recorded_nobody_does,
    test_rows_are_listed_newest_first_by_filter_and_page,
    test_what_any_agent_did_is_found_also_after_a_purge,
    test_what_is_told_of_a_decision_is_short_and_plain,
)
from test_ledger import (  # noqa: F401
    test_a_chain_of_links_is_always_one_step_long,
    test_a_clock_that_went_back_does_not_stop_the_count,
    test_a_link_can_be_changed_by_who_names_what_it_says,
    test_a_link_leads_from_an_alias_to_its_project,
    test_a_note_counts_at_most_once_a_minute,
    test_a_place_is_what_was_last_put_even_if_it_is_not_text,
    test_counting_very_many_notes_keeps_its_own_memory_small,
    test_forgetting_removes_the_rows_and_says_how_many,
    test_links_never_make_a_circle,
    test_many_threads_share_one_ledger,
    test_the_first_writer_of_a_link_wins,
)

from holdfast import config
from holdfast.access import AccessGate
from holdfast.context import ledgers
from holdfast.errors import Busy, Conflict, Damaged, Denied, HoldfastError, NotFound, Trouble, Unauthenticated
from holdfast.ledger.audit import AuditMark, Decision, parse_mark
from holdfast.ledger.audit_verify import compare_ends, verify
from holdfast.ledger.usage import PersonDecision
from holdfast.postgres import PostgresSettings, migrations
from holdfast.postgres.ledger import SQL, PostgresLedger
from holdfast.postgres.pool import close_pools


@pytest.fixture
def settings(home, postgres_url):
    return config.load(home).replace(lock_seconds=2, store=postgres_url)


@pytest.fixture
def open_ledger(postgres_url):
    """Ledgers of the test's database, by tenant and agent; they are closed after the test."""
    opened = []

    def open_(tenant="default", agent="*", seconds=10):
        opened.append(PostgresLedger(PostgresSettings(url=postgres_url, tenant=tenant, agent=agent), seconds))
        return opened[-1]

    yield open_
    for ledger in opened:
        ledger.close()


@pytest.fixture
def ledger(open_ledger):
    return open_ledger()


@pytest.fixture
def audit(ledger):
    return ledger.audit


@pytest.fixture
def intruder(postgres_url):
    """Change the database as an attacker who can write all of it."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("SET search_path = holdfast")
        yield connection


# --- the audit --------------------------------------------------------------------------------------------------------


@pytest.mark.promise("A7")
@pytest.mark.promise("A3")
@pytest.mark.parametrize("outcome", ["perhaps", "ALLOWED", "", "allowed "])
def test_nothing_but_allowed_and_denied_can_be_stored(filled, intruder, outcome):  # noqa: F811
    with pytest.raises(psycopg.errors.CheckViolation):
        intruder.execute("UPDATE agent_action_log SET outcome = %s WHERE number = 3", (outcome,))
    with pytest.raises(Trouble):
        filled.append(decision(1, outcome))
    assert len(filled.list()[0]) == 12
    assert verify(filled).ok


def test_an_empty_ledger_answers_empty(audit):
    assert audit.list() == ([], None)
    assert (audit.read_head(), audit.read_last(), audit.read_mark()) == (None, None, None)
    verdict = verify(audit)
    assert (verdict.ok, verdict.rows, verdict.head) == (True, 0, "")
    assert compare_ends(audit) == ""


MEMBER = """
import sys, threading
from holdfast.ledger.audit import Decision
from holdfast.postgres.ledger import PostgresLedger as Ledger
from holdfast.postgres import PostgresSettings, migrations
from holdfast.postgres.pool import close_pools
ledger = Ledger(PostgresSettings(url=sys.argv[1], tenant=sys.argv[4]), 60)
sys.stdin.readline()
def work(me):
    for number in range(int(sys.argv[3])):
        told = {"role": "r", "who": f"{sys.argv[2]}-{me}-{number}"}
        ledger.audit.append(Decision("reviewer", "dispatch", "allowed", told, sys.argv[4]), durable=number % 10 == 0)
threads = [threading.Thread(target=work, args=(me,)) for me in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
ledger.close()
print("done")
"""


def start(url, name, count, tenant="default"):
    return subprocess.Popen(
        [sys.executable, "-c", MEMBER, url, str(name), str(count), tenant],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


@pytest.mark.battery
@pytest.mark.promise("A3")
def test_eight_writers_append_to_two_chains_at_once_and_neither_forks(open_ledger, postgres_url):
    members = [start(postgres_url, name, 20, ("red", "blue")[name % 2]) for name in range(8)]
    said = [member.communicate("go\n", timeout=120)[0] for member in members]
    assert said == ["done\n"] * 8
    for tenant in ("red", "blue"):
        audit = open_ledger(tenant).audit
        verdict = verify(audit)
        assert (verdict.ok, verdict.rows, verdict.problems) == (True, 160, ())
        assert len({row.metadata["who"] for row in audit.iterate_entries()}) == 160
        assert {row.tenant for row in audit.iterate_entries()} == {tenant}
        assert verdict.marked > 0


@pytest.mark.promise("A3")
def test_a_writer_that_is_killed_leaves_a_sound_chain(audit, postgres_url):
    audit.append(decision())
    member = start(postgres_url, "doomed", 100_000)
    member.stdin.write("go\n")
    member.stdin.flush()
    while audit.read_head().count < 20:
        assert member.poll() is None
    member.kill()
    member.communicate()
    verdict = verify(audit)
    assert verdict.ok, verdict.problems
    audit.append(decision())
    assert verify(audit).ok


@pytest.mark.promise("A3")
@pytest.mark.parametrize("column", ["number", "time", "agent", "action", "outcome", "metadata", "hash"])
def test_whatever_is_changed_in_a_row_is_found(filled, intruder, column):  # noqa: F811
    before = intruder.execute(f"SELECT {column} FROM agent_action_log WHERE number = 5").fetchone()[0]
    after = 99 if column == "number" else {"allowed": "denied"}.get(before, f"{before} ")
    intruder.execute(f"UPDATE agent_action_log SET {column} = %s WHERE number = 5", (after,))
    verdict = verify(filled)
    assert not verdict.ok and verdict.broken >= 1


@pytest.mark.promise("A3")
def test_a_gap_and_a_row_put_in_are_named(filled, intruder):  # noqa: F811
    intruder.execute("DELETE FROM agent_action_log WHERE number IN (4, 5, 6)")
    assert verify(filled).problems == ("rows 4 to 6 are missing",)
    intruder.execute("INSERT INTO agent_action_log SELECT tenant, 13, time, agent, action, outcome, metadata, hash "
                     "FROM agent_action_log WHERE number = 12")  # fmt: skip
    assert any("13" in problem for problem in verify(filled).problems)


@pytest.mark.promise("A3")
def test_a_cut_tail_is_missed_by_the_head_by_the_mark_and_by_a_head_kept_elsewhere(filled, intruder):  # noqa: F811
    kept = parse_mark(verify(filled).head)
    intruder.execute("DELETE FROM agent_action_log WHERE number > 9")
    assert "rows 10 to 12 are missing at the end" in verify(filled).problems
    assert compare_ends(filled) == "the audit ends with row 9, and its head says 12"
    intruder.execute("UPDATE audit_head SET count = 9, hash = (SELECT hash FROM agent_action_log WHERE number = 9)")
    assert verify(filled).problems == ("row 12 is missing, but the row in audit_mark refers to it",)
    assert compare_ends(filled) == "the audit has 9 rows, and the row in audit_mark knows of 12"
    for _ in range(5):  # later writers do not repair it, and the mark stays as evidence
        filled.append(decision())
    filled.save_mark()
    assert filled.read_mark() == AuditMark(12, kept.hash)
    assert not verify(filled).ok
    intruder.execute("UPDATE audit_mark SET count = 14, hash = (SELECT hash FROM agent_action_log WHERE number = 14)")
    assert verify(filled).ok  # an attacker with the whole database can do this
    assert not verify(filled, kept).ok  # but not this


def test_an_audit_without_its_head_takes_no_more_rows(filled, intruder):  # noqa: F811
    intruder.execute("DELETE FROM audit_head")
    with pytest.raises(Damaged):
        filled.append(decision())
    assert verify(filled).problems[0] == "the head of the audit is missing"
    assert compare_ends(filled) == "the head of the audit is missing"


@pytest.mark.promise("A7")
@pytest.mark.parametrize("statement", [
    "UPDATE agent_action_log SET outcome = 'allowed'", "DELETE FROM agent_action_log", "TRUNCATE agent_action_log",
    "DELETE FROM audit_head", "DELETE FROM audit_mark",
])  # fmt: skip
def test_the_application_itself_cannot_take_back_what_it_wrote(filled, ledger, statement):  # noqa: F811
    with pytest.raises(Denied):
        ledger.database.connection.write(lambda db: db.execute(statement))
    assert verify(filled).rows == 12


@pytest.mark.promise("A3")
def test_a_failure_is_told_to_all_who_waited_and_nobody_hangs(open_ledger, audit, postgres_url):
    audit.append(decision())
    hurried = open_ledger(seconds=0.3).audit
    failed = []

    def work():
        with pytest.raises(Busy):
            hurried.append(decision())
        failed.append(1)

    with psycopg.connect(postgres_url) as other:
        other.execute("SELECT * FROM holdfast.audit_head FOR UPDATE")
        threads = [threading.Thread(target=work) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert len(failed) == 5
    hurried.append(decision())
    assert verify(audit).rows == 2


# --- tenants ----------------------------------------------------------------------------------------------------------


def fill(ledger, tenant, word):
    """Insert a row into every table of a ledger."""
    ledger.projects.link("alias", f"project-{word}")
    ledger.projects.put_location("place", word, f"/{word}")
    ledger.usage.record_use([f"note-{word}"], NOW)
    ledger.sessions.record_shown("session", [(f"note-{word}", "v1")], NOW, client="c")
    ledger.sessions.count_prompt("session", word, NOW)
    ledger.decisions.record("approved", f"note-{word}", {"word": word}, NOW)
    purged = ledger.purges.digests([f"words of {word} here"])
    ledger.purges.save_receipt(f"receipt-{word}", {"id": f"receipt-{word}", "state": "done"}, purged)
    ledger.audit.append(Decision("a", "dispatch", "allowed", {"role": word}, tenant), durable=True)
    ledger.done.record("a", "kind", word, NOW)
    ledger.reviews.claim("a", "o", word, 1, holder="h", now=NOW)
    ledger.reviews.record("a", "o", word, 2, holder="h", now=NOW)
    ledger.idempotency_keys.begin("a", word, "digest", NOW)


def everything(ledger, word):
    """Return what the ledger shows of that word."""
    location = ledger.projects.find_location("place")
    return [
        ledger.projects.find_project("alias"), location and location.as_dict(),
        ledger.usage.get_counts([f"note-{word}"]),
        ledger.sessions.list_shown("session"),
        [one.as_dict() for one in ledger.sessions.list_history(f"note-{word}")],
        [one.as_dict() for one in ledger.decisions.list(f"note-{word}")], ledger.purges.list_receipts(),
        ledger.purges.find_receipt(f"words of {word} here"), [row.metadata for row in ledger.audit.iterate_entries()],
        [one.subject for one in ledger.done.list()[0]], [one.repo for one in ledger.reviews.list()[0]],
        [one.name for one in ledger.agents.list()], ledger.purges.has_purges(),
    ]  # fmt: skip


@pytest.mark.promise("A7")
def test_a_tenant_sees_nothing_of_another_and_changes_nothing_there(open_ledger):
    red, blue = open_ledger("red"), open_ledger("blue")
    empty = everything(blue, "red")
    fill(red, "red", "red")
    assert everything(blue, "red") == empty == everything(open_ledger("green"), "red")
    fill(blue, "blue", "blue")
    assert "blue" not in json.dumps(everything(red, "red")) and "red" not in json.dumps(everything(blue, "blue"))
    assert blue.usage.forget(["note-red"]) == 0 and red.usage.get_counts(["note-red"]) == {"note-red": 1}
    assert [verify(one.audit).rows for one in (red, blue)] == [1, 1]
    assert red.idempotency_keys.begin("a", "blue", "digest", NOW) is None  # the key is free here


@pytest.mark.promise("A7")
def test_a_row_cannot_be_written_into_another_tenants_audit(open_ledger):
    open_ledger("blue").audit.append(Decision("a", "dispatch", "allowed", {}, "blue"))
    with pytest.raises(HoldfastError):
        open_ledger("red").audit.append(Decision("a", "dispatch", "allowed", {}, "blue"))
    assert [verify(open_ledger(name).audit).rows for name in ("red", "blue")] == [0, 1]


@pytest.mark.promise("A7")
def test_what_an_agent_has_done_is_seen_by_that_agent_and_by_a_person_alone(open_ledger):
    open_ledger(agent="a").done.record("a", "kind", "subject", NOW)
    open_ledger(agent="a").reviews.record("a", "o", "r", 1, holder="h", now=NOW)
    for other in (open_ledger(agent="b"), open_ledger(agent="")):
        assert other.done.list("a") == ([], None) and not other.done.exists("a", "kind", "subject")
        assert other.reviews.get("a", "o", "r", 1) is None
        with pytest.raises(HoldfastError):
            other.done.record("a", "kind", "forged", NOW)
        assert other.done.list_page("a") == ([], None) and not other.done.exists("a", "github.review", "o/r#1")
    assert [one.subject for one in open_ledger().done.list()[0]] == ["subject"]
    first, cursor = open_ledger().done.list_page(limit=1)
    rest, end = open_ledger().done.list_page(limit=1, cursor=cursor)
    assert [one.kind for one in first + rest] == ["github.review", "kind"] and first[0].subject == "o/r#1" and end is None
    assert open_ledger(agent="a").done.exists("a", "github.review", "O/R#1")
    assert [one.agent for one in open_ledger().done.list_page(None, "github.review", "O/R#1")[0]] == ["a"]


@pytest.mark.promise("A7")
@pytest.mark.promise("A9")
def test_grants_are_a_tenants_own_and_no_agents_transaction_sees_them(open_gate, open_ledger):  # noqa: F811
    red, blue = open_gate(tenant="red"), open_gate(tenant="blue")
    tokens = [one.add("ada", "secretary")[1] for one in (red, blue)]
    red.grant("ada", "project", "acme-*")
    assert [[grant.pattern for grant in red.identify(token).grants] for token in tokens] == [["acme-*"], []]
    assert [[grant.pattern for grant in one.agent("ada").grants] for one in (red, blue)] == [["acme-*"], []]
    with pytest.raises(NotFound):
        blue.ungrant("ada", "project", "acme-*")
    assert open_ledger(tenant="red", agent="ada").database.read("agents.grants", agent=None) == []
    red.ungrant("ada", "project", "acme-*")
    assert red.identify(tokens[0]).grants == ()


@pytest.mark.promise("A7")
@pytest.mark.promise("A9")
def test_agents_from_before_there_were_grants_go_on_after_the_migration(empty_postgres_url, monkeypatch, home):
    with monkeypatch.context() as before:
        older = [one for one in migrations.list_migrations() if one.number < 8]
        before.setattr(migrations, "list_migrations", lambda: older)
        before.setattr(migrations, "_make_views", lambda connection: False)  # a later migration has the function for it
        migrations.migrate(empty_postgres_url)
    with psycopg.connect(empty_postgres_url) as db:
        for tenant, name, role in (("red", "old", "secretary"), ("red", "chief", "operator"), ("blue", "old", "secretary")):
            db.execute("INSERT INTO holdfast.agents (tenant, name, role, created) VALUES (%s, %s, %s, 1)", (tenant, name, role))
    assert "0008_grants" in migrations.migrate(empty_postgres_url)
    everything = [("project", "*"), ("repository", "*/*"), ("session", "*")]
    for tenant, agents in (("red", {"old": everything, "chief": []}), ("blue", {"old": everything})):
        with closing(AccessGate(config.load(home).replace(store=empty_postgres_url, tenant=tenant))) as access:
            assert {one.name: [(grant.kind, grant.pattern) for grant in one.grants] for one in access.agents()} == agents
            assert access.add("new", "secretary")[0].grants == ()


@pytest.mark.promise("A7")
@pytest.mark.promise("A1")
def test_a_token_says_its_tenant_and_nothing_else_tells_of_it(open_gate, settings):  # noqa: F811
    red, blue = open_gate(tenant="red"), open_gate(tenant="blue")
    _, mine = red.add("reviewer", "operator")
    _, theirs = blue.add("reviewer", "secretary")
    for one in (red, blue):  # whichever replica is used
        assert (one.identify(mine).tenant, one.identify(mine).role) == ("red", "operator")
        assert (one.identify(theirs).tenant, one.identify(theirs).role) == ("blue", "secretary")
        found = one.ledger.agents.find_tokens([mine[3:11], "unknown0", theirs[3:11], mine[3:11]])  # with one query
        assert {id: (kept.tenant, kept.role) for id, kept in found.items()} == {
            mine[3:11]: ("red", "operator"), theirs[3:11]: ("blue", "secretary"),
        }  # fmt: skip
    assert [agent.role for agent in red.agents()] == ["operator"]
    assert red.for_caller(red.identify(theirs)).agents() == blue.agents()
    red.for_caller(red.identify(theirs)).revoke("reviewer")
    assert red.identify(mine)
    with pytest.raises(Unauthenticated, match="revoked"):
        blue.identify(theirs)
    red.allow(red.identify(mine), "audit.read")
    assert [row.metadata.get("verb") for row in red.ledger.audit.iterate_entries()] == ["add", None]
    assert [row.metadata.get("verb") for row in blue.ledger.audit.iterate_entries()] == ["add", "revoke"]


@pytest.mark.promise("A7")
def test_without_its_exact_id_no_token_can_be_looked_up_and_no_setting_is_left_behind(open_gate, ledger):  # noqa: F811
    _, token = open_gate(tenant="red").add("reviewer", "operator")
    for statement in ("SELECT * FROM tokens", "SELECT * FROM agents", "SELECT * FROM presented('')",
                      "SELECT * FROM presented(NULL)", "SELECT * FROM presented('%%')"):  # fmt: skip
        assert ledger.database.connection.query(statement, ()) == []
    found = ledger.database.connection.query("SELECT agent, tenant FROM presented(%s)", (token[3:11],))
    assert found == [("reviewer", "red")]
    after = ledger.database.connection.write(lambda db: (
        db.execute("SELECT * FROM presented(%s)", (token[3:11],)).fetchall(),
        db.execute("SELECT current_setting('holdfast.shown'), holdfast.tenant()").fetchall(),
    ))  # fmt: skip
    assert after[1] == [("", "default")]


@pytest.fixture
def plain_owner(postgres_databases):
    """A database whose owner has no special rights: forced row-level security applies to the owner too."""
    server, name = postgres_databases.server, f"keeper_{os.urandom(4).hex()}"
    postgres_databases.fresh()  # creates holdfast_app if necessary, which belongs to the server
    server.sql(f"CREATE ROLE {name} LOGIN")
    server.sql(f"GRANT holdfast_app TO {name}")
    server.sql(f"CREATE DATABASE {name} OWNER {name}")
    yield server.url(name, name)
    close_pools(server.url(name, name))
    server.sql(f"DROP DATABASE {name} WITH (FORCE)")
    server.sql(f"DROP ROLE {name}")


@pytest.mark.promise("A7")
def test_an_owner_who_may_not_pass_by_row_security_can_let_agents_in_and_sees_no_token(plain_owner, settings):
    gate = AccessGate(settings.replace(store=plain_owner, tenant="red"))  # noqa: F811
    _, token = gate.add("reviewer", "operator")
    assert AccessGate(settings.replace(store=plain_owner)).identify(token).tenant == "red"
    with psycopg.connect(plain_owner, autocommit=True) as owner:
        for table in ("tokens", "agents", "agent_action_log"):
            assert owner.execute(f"SELECT count(*) FROM holdfast.{table}").fetchone() == (0,)


@pytest.mark.promise("A1")
def test_of_two_who_add_the_same_agent_at_once_one_gets_a_token(open_gate):  # noqa: F811
    gates, said = [open_gate() for _ in range(6)], []

    def work(one):
        try:
            said.append(one.add("reviewer", "secretary")[1])
        except Conflict:
            said.append(None)

    threads = [threading.Thread(target=work, args=(one,)) for one in gates]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    (token,) = [one for one in said if one]
    assert len(said) == 6 and gates[0].identify(token)
    assert len(gates[0].agent("reviewer").tokens) == 1


# --- locks, and concurrent claims -------------------------------------------------------------------------------------


def at_once(count, work):
    said, barrier = [], threading.Barrier(count)

    def run(number):
        barrier.wait()
        try:
            said.append(work(number))
        except HoldfastError as error:
            said.append(type(error))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return said


@pytest.mark.promise("A1")
def test_of_many_who_ask_at_once_for_the_first_token_one_is_told(open_gate):  # noqa: F811
    gates = [open_gate() for _ in range(8)]
    (token,) = [one for one in at_once(8, lambda number: gates[number].first_token()) if one]
    assert gates[0].identify(token).agent == "operator" and gates[0].first_token() is None
    assert verify(gates[0].ledger.audit).rows == 1


@pytest.mark.promise("A6")
def test_of_many_who_claim_a_review_at_once_one_gets_it(open_ledger):
    ledgers = [open_ledger() for _ in range(8)]
    said = at_once(8, lambda number: ledgers[number].reviews.claim("a", "o", "r", 7, holder=f"h{number}", now=NOW))
    assert sorted(said) == ["new"] + ["taken"] * 7


def test_of_many_requests_with_one_key_at_once_one_goes_ahead(open_ledger):
    ledgers = [open_ledger() for _ in range(8)]
    said = at_once(8, lambda number: ledgers[number].idempotency_keys.begin("a", "key", "digest", NOW))
    assert sorted(said, key=str) == [Busy] * 7 + [None]


def test_a_named_lock_is_one_processes_at_a_time_and_each_tenants_own(open_ledger):
    with open_ledger().named_lock("review-ab", 5):
        with pytest.raises(Busy):
            open_ledger().named_lock("review-ab", 0.1).__enter__()
        with open_ledger("red").named_lock("review-ab", 0.5), open_ledger().named_lock("review-cd", 0.5):
            pass
    with open_ledger().named_lock("review-ab", 0.5):
        pass


# --- purged, shown and decided ----------------------------------------------------------------------------------------


def test_what_was_purged_is_known_by_digests_until_it_is_taken_back(ledger, open_ledger):
    purges, other = ledger.purges, open_ledger().purges
    text = "The harbour office moves in May.\nAnd a second line that is long enough."
    assert not purges.has_purges() and purges.list_receipts() == [] and purges.list_unfinished() == []
    purges.save_receipt("r1", {"id": "r1", "state": "begun"}, purges.digests([text]), time=NOW)
    assert other.has_purges() and other.find_receipt(text) == "r1"
    assert other.find_receipt("Another text, as long as that one.") == ""
    assert other.find_receipt(text, ended=True) == ""
    assert [one["id"] for one in other.list_unfinished()] == ["r1"]
    purges.save_receipt("r1", {"id": "r1", "state": "done"}, time=NOW)
    assert other.find_receipt(text, ended=True) == "r1" and other.list_unfinished() == []
    assert other.allow_again("projects/p/notes/k", text, "2026-05-01T12:00:00Z") == ["r1"]
    assert purges.find_receipt(text) == "" and purges.list_receipts("r1")[0]["taken_back"] == "2026-05-01T12:00:00Z"


def test_what_a_session_was_told_is_remembered_until_its_context_begins_anew(ledger):
    assert ledger.sessions.record_shown("s", [("a", "1"), ("b", "1")], NOW, client="c") == ["a", "b"]
    assert ledger.sessions.record_shown("s", [("a", "1"), ("b", "2")], NOW + 1) == ["b"]
    assert ledger.sessions.list_shown("s") == {"a": "1", "b": "2"}
    assert ledger.sessions.count_shown(["a", "b", "nobody"]) == (3, ["s"])
    assert [ledger.sessions.count_prompt("s", one, NOW) for one in ("x", "x", "y")] == [1, 0, 2]
    ledger.sessions.begin("s", NOW + 2)
    assert ledger.sessions.list_shown("s") == {} and ledger.sessions.count_prompt("s", "x", NOW) == 1
    found = ledger.sessions.list_history("b")
    assert [(one.version, one.session, one.client) for one in found] == [("2", "s", ""), ("1", "s", "c")]
    ledger.decisions.record("approved", "b", {"key": "k\0é"}, NOW)
    assert ledger.decisions.list("b") == [PersonDecision("approved", {"key": "k\0é"}, NOW)]
    assert ledger.usage.forget(["b"]) == 0
    assert (ledger.sessions.list_history("b"), ledger.decisions.list("b")) == ([], [])
    assert ledger.sessions.count_shown(["b"]) == (0, [])


def test_what_cannot_be_text_is_kept_as_far_as_it_can(ledger):
    assert ledger.done.record("a", "kind", "half \ud800 and \0", NOW)
    assert ledger.done.exists("a", "kind", "half \ud800 and \0")
    ledger.audit.append(Decision("a\ud800", "dispatch\0", "allowed", {"odd": "\ud800\0"}))
    assert verify(ledger.audit).ok


def test_a_database_that_is_not_there_is_an_error_and_no_empty_answer(home):
    from postgres_server import free_port

    away = config.load(home).replace(store=f"postgresql://nobody@127.0.0.1:{free_port()}/x", lock_seconds=1)
    ledger = ledgers.open_ledger(away, 0.2)
    for ask in (lambda: ledger.done.exists("a", "k", "s"), lambda: ledger.agents.find_tokens(["x"]),
                lambda: ledger.audit.list(),
                lambda: ledger.audit.append(decision()), lambda: ledger.purges.list_receipts()):  # fmt: skip
        with pytest.raises(Busy):
            ask()
    assert ledger.projects.find_project("a") is None and ledger.problem  # records that are only helpful may be missing
    with pytest.raises(Busy):
        AccessGate(away).identify("hf_12345678_" + "a" * 43)


def test_both_databases_have_the_same_statements():
    from holdfast.ledger import sqlite

    of_a_file = {
        "schema", "checkpoint", "audit.move_head", "audit.is_removable", "audit.put_checkpoint", "audit.remove",
        "agents.revoke_older",
    }  # fmt: skip
    files = {name for name in sqlite.SQL if not name.startswith(("from_version", "as_version"))} - of_a_file
    of_a_server = {
        "any_purged", "accepts_writes", "lock", "audit.begin", "audit.put_mark", "audit.mark", "audit.prune",
        "audit.unshipped_tenants",
    }  # fmt: skip
    assert set(SQL) - of_a_server == files
