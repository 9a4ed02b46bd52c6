"""The audit: one row for each decision, chained, written concurrently, and no change goes unnoticed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from hashlib import sha256
from pathlib import Path

import apsw
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the battery is beside the package, not in it

from battery import audit as battery_audit

from holdfast.errors import Busy, Conflict, Damaged, Trouble
from holdfast.ledger.audit import AuditMark, Decision, parse_mark
from holdfast.ledger.audit_chain import read_mark_file
from holdfast.ledger.audit_verify import compare_ends, verify, verify_newest
from holdfast.ledger.done import DOUBTFUL, NEW, REVIEWED, TAKEN
from holdfast.ledger.sqlite import SqliteLedger

NOW = 1_800_000_000


def decision(number=0, outcome="allowed", agent="reviewer", **meta):
    return Decision(agent, "agent.memory.read", outcome, {"role": "code-review-engineer", "request": number, **meta})


@pytest.fixture
def ledger(home):
    ledger = SqliteLedger(str(home), lock_seconds=5)
    yield ledger
    ledger.close()


@pytest.fixture
def audit(ledger):
    return ledger.audit


@pytest.fixture
def filled(audit):
    """An audit with twelve rows, all of them covered by the mark."""
    for number in range(1, 13):
        audit.append(decision(number, "denied" if number % 4 == 0 else "allowed", f"agent-{number % 3}"))
    audit.save_mark()
    return audit


@pytest.fixture
def intruder(filled, home):
    """Change the database as an attacker who can write it."""
    db = apsw.Connection(f"{home}/ledger.db")
    yield db
    db.close()


# --- what is written --------------------------------------------------------------------------------------------------


@pytest.mark.promise("A3")
def test_a_decision_is_one_row_with_agent_action_outcome_role_and_time(audit, clock):
    audit.append(decision(7, "denied"))
    (row,), more = audit.list()
    assert more is None
    assert (row.number, row.time, row.tenant, row.agent) == (1, "2026-05-01T12:00:00.000Z", "default", "reviewer")
    assert (row.action, row.outcome) == ("agent.memory.read", "denied")
    assert row.metadata == {"role": "code-review-engineer", "request": 7}


@pytest.mark.promise("A3")
@pytest.mark.parametrize("outcome", ["perhaps", "ALLOWED", "", "allowed "])
def test_nothing_but_allowed_and_denied_can_be_stored(filled, intruder, outcome):
    with pytest.raises(apsw.ConstraintError):
        intruder.execute("UPDATE audit SET outcome = ? WHERE number = 3", (outcome,)).fetchall()
    with pytest.raises(Trouble):
        filled.append(decision(1, outcome))
    assert len(filled.list()[0]) == 12
    assert verify(filled).ok


def test_what_is_told_of_a_decision_is_short_and_plain(audit):
    audit.append(decision(1, text="x" * 5000, odd=object(), none=None, yes=True, **{f"more-{n}": n for n in range(100)}))
    told = audit.list()[0][0].metadata
    assert len(told["text"]) == 200
    assert (told["none"], told["yes"]) == (None, True)
    assert len(told) == 24
    assert verify(audit).ok


def test_rows_are_listed_newest_first_by_filter_and_page(filled):
    assert [row.number for row in filled.list(limit=5)[0]] == [12, 11, 10, 9, 8]
    pages, cursor = [], None
    while True:
        rows, cursor = filled.list(limit=5, before=cursor)
        pages.append([row.number for row in rows])
        if cursor is None:
            break
    assert pages == [[12, 11, 10, 9, 8], [7, 6, 5, 4, 3], [2, 1]]
    assert [row.number for row in filled.list(outcome="denied")[0]] == [12, 8, 4]
    assert [row.number for row in filled.list(agent="agent-1", limit=2)[0]] == [10, 7]
    assert filled.list(action="dispatch") == ([], None)
    assert filled.list(since="2999-01-01T00:00:00Z")[0] == []
    assert len(filled.list(until="2999-01-01T00:00:00Z")[0]) == 12


def test_anybody_can_follow_the_chain_from_an_export(filled):
    """As docs/gateway.md says how, with nothing of ours."""
    previous = ""
    for row in map(json.loads, [json.dumps(row.as_dict()) for row in filled.iterate_entries()]):
        told = json.dumps(row["metadata"], sort_keys=True, separators=(",", ":"))
        fields = [row[name] for name in ("number", "time", "tenant", "agent", "action", "outcome")]
        text = json.dumps([previous, *fields, told], separators=(",", ":"))
        previous = sha256(text.encode()).hexdigest()
        assert row["hash"] == previous


def test_asking_an_absent_home_answers_empty_and_makes_nothing(audit, home):
    assert audit.list() == ([], None)
    assert (audit.read_head(), audit.read_last(), audit.read_mark()) == (None, None, None)
    verdict = verify(audit)
    assert (verdict.ok, verdict.rows, verdict.head) == (True, 0, "")
    assert compare_ends(audit) == verify_newest(audit) == ""
    assert not home.exists()


# --- concurrent writers -----------------------------------------------------------------------------------------------

MEMBER = """
import sys, threading
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.ledger.audit import Decision
ledger = SqliteLedger(sys.argv[1], lock_seconds=60)
sys.stdin.readline()
def work(me):
    for number in range(int(sys.argv[3])):
        told = {"role": "r", "who": f"{sys.argv[2]}-{me}-{number}"}
        ledger.audit.append(Decision("reviewer", "dispatch", "allowed", told), durable=number % 10 == 0)
threads = [threading.Thread(target=work, args=(me,)) for me in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
ledger.close()
print("done")
"""


def start(home, name, count):
    return subprocess.Popen(
        [sys.executable, "-c", MEMBER, str(home), str(name), str(count)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


@pytest.mark.promise("A3")
def test_many_processes_and_threads_append_at_once_and_the_chain_never_forks(audit, home):
    members = [start(home, name, 25) for name in range(5)]
    said = [member.communicate("go\n", timeout=120)[0] for member in members]
    assert said == ["done\n"] * 5
    verdict = verify(audit)
    assert (verdict.ok, verdict.rows, verdict.problems) == (True, 375, ())
    assert len({row.metadata["who"] for row in audit.iterate_entries()}) == 375
    assert verdict.marked > 0


@pytest.mark.battery
@pytest.mark.disk
@pytest.mark.promise("A3")
def test_writers_that_are_killed_leave_a_sound_chain(audit, home):
    audit.append(decision())
    for name in range(3):
        member = start(home, name, 100_000)
        member.stdin.write("go\n")
        member.stdin.flush()
        before = audit.read_head().count
        while audit.read_head().count < before + 20:
            assert member.poll() is None
        member.send_signal(signal.SIGKILL)
        member.communicate()
        verdict = verify(audit)
        assert verdict.ok, verdict.problems
        assert verdict.rows >= before + 20


def test_threads_that_wait_are_written_together(audit, home):
    """While one holds the file, the others queue up; then all go in one transaction."""
    audit.append(decision())
    db = apsw.Connection(f"{home}/ledger.db")
    db.execute("BEGIN IMMEDIATE")
    threads = [threading.Thread(target=audit.append, args=(decision(number),)) for number in range(6)]
    for thread in threads:
        thread.start()
    while len(audit._queue) < 5:  # the first of them waits for the file
        pass
    db.execute("ROLLBACK")
    for thread in threads:
        thread.join()
    db.close()
    assert verify(audit).rows == 7


def test_a_failure_is_told_to_all_who_waited_and_nobody_hangs(home):
    hurried = SqliteLedger(str(home), lock_seconds=0.3)
    hurried.audit.append(decision())
    db = apsw.Connection(f"{home}/ledger.db")
    db.execute("BEGIN IMMEDIATE")
    failed = []

    def work():
        with pytest.raises(Busy):
            hurried.audit.append(decision())
        failed.append(1)

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    db.execute("ROLLBACK")
    db.close()
    assert len(failed) == 5
    hurried.audit.append(decision())
    assert verify(hurried.audit).rows == 2
    hurried.close()


def test_verifying_while_others_append_is_no_false_alarm(audit, home):
    audit.append(decision())
    member = start(home, "busy", 100_000)
    member.stdin.write("go\n")
    member.stdin.flush()
    try:
        for _ in range(15):
            verdict = verify(audit)
            assert verdict.ok, verdict.problems
            assert compare_ends(audit) == ""
    finally:
        member.kill()
        member.communicate()


# --- tampering --------------------------------------------------------------------------------------------------------


@pytest.mark.promise("A3")
def test_whatever_is_done_to_any_row_is_found(home):
    """Each of 300 rows in one of twenty ways; `python -m battery audit` does the same with 1,000."""
    assert [problems for problems in battery_audit.attack_rows(home, 300) if problems] == []


@pytest.mark.promise("A3")
def test_a_thousand_changed_rows_are_a_thousand_findings(audit, home):
    for number in range(1000):
        audit.append(decision(number))
    db = apsw.Connection(f"{home}/ledger.db")
    db.execute("UPDATE audit SET agent = 'somebody-else'").fetchall()
    db.close()
    verdict = verify(audit)
    assert (verdict.ok, verdict.broken, len(verdict.problems)) == (False, 1000, 20)
    assert verdict.problems[0].startswith("row 1 or the row before it was changed")


@pytest.mark.promise("A3")
def test_the_verdict_names_the_place(filled, intruder):
    intruder.execute("DELETE FROM audit WHERE number IN (4, 5, 6)").fetchall()
    intruder.execute("UPDATE audit SET outcome = 'denied' WHERE number = 9").fetchall()
    verdict = verify(filled)
    assert verdict.problems == ("rows 4 to 6 are missing", "row 9 or the row before it was changed")
    assert compare_ends(filled) == ""  # both ends still agree; only reading the chain finds it
    assert verify_newest(filled) == "rows 4 to 6 are missing"
    assert "row 9" in verify_newest(filled, 4) and verify_newest(filled, 3) == ""


@pytest.mark.promise("A3")
@pytest.mark.parametrize("column", ["time", "agent", "action", "metadata", "hash"])
def test_bytes_that_are_no_text_are_found_and_shown(filled, intruder, column):
    intruder.execute(f"UPDATE audit SET {column} = CAST(x'ff41' AS TEXT) WHERE number = 7").fetchall()
    assert "row 7 or the row before it was changed" in verify(filled).problems
    assert [row.number for row in filled.iterate_entries()] == list(range(1, 13))
    assert "\\xffA" in str(filled.list(limit=12)[0][5])


@pytest.mark.promise("A3")
def test_rows_cut_off_at_the_end_are_missed_by_the_head_and_by_the_mark(filled, intruder, home):
    intruder.execute("DELETE FROM audit WHERE number > 9").fetchall()
    assert "rows 10 to 12 are missing at the end" in verify(filled).problems
    assert compare_ends(filled) == "the audit ends with row 9, and its head says 12"
    hash = intruder.execute("SELECT hash FROM audit WHERE number = 9").fetchall()[0][0]
    intruder.execute("UPDATE audit_head SET count = 9, hash = ?", (hash,)).fetchall()
    assert verify(filled).problems == ("row 12 is missing, but the file audit.head refers to it",)
    assert compare_ends(filled) == "the audit has 9 rows, and the file audit.head knows of 12"
    filled.append(decision())  # later writers do not repair it, and the mark stays as evidence
    filled.save_mark()
    assert read_mark_file(str(home)).count == 12
    assert not verify(filled).ok


@pytest.mark.promise("A3")
def test_a_chain_written_anew_contradicts_the_mark_and_a_head_that_was_kept_elsewhere(filled, intruder, home):
    kept = parse_mark(verify(filled).head)
    forged = SqliteLedger(str(home / "forgery"))
    for row in filled.iterate_entries():
        outcome = "allowed" if row.number == 4 else row.outcome
        forged.audit.append(Decision(row.agent, row.action, outcome, row.metadata))
    forged.audit.save_mark()
    assert verify(forged.audit).ok
    forged.close()
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
        (home / name).unlink(missing_ok=True)
        if (home / "forgery" / name).exists():
            shutil.copy(home / "forgery" / name, home / name)
    assert verify(filled).problems == ("row 12 does not match the file audit.head",)
    shutil.copy(home / "forgery" / "audit.head", home / "audit.head")  # an attacker with the whole home can do this
    assert verify(filled).ok
    assert verify(filled, kept).problems == ("row 12 does not match the head you gave",)


def test_a_mark_that_is_missing_or_broken_is_told(filled, home):
    (home / "audit.head").unlink()
    assert verify(filled).problems == ("the file audit.head is missing: rows cut off at the end would not be noticed",)
    filled.append(decision())
    filled.save_mark()
    assert verify(filled).ok
    (home / "audit.head").write_text("nonsense\n")
    verdict = verify(filled)
    assert not verdict.ok and "does not say where the audit ends" in verdict.problems[0]
    assert "does not say" in compare_ends(filled)
    (home / "audit.head").unlink()
    (home / "audit.head").symlink_to(home / "elsewhere")
    assert not verify(filled).ok


def test_a_ledger_that_is_started_anew_does_not_hide_what_is_gone(filled, ledger, home):
    ledger.close()
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
        (home / name).unlink(missing_ok=True)
    filled.append(decision())
    filled.save_mark()
    assert verify(filled).problems == ("row 12 is missing, but the file audit.head refers to it",)


def test_an_audit_without_its_head_takes_no_more_rows(filled, intruder):
    intruder.execute("DELETE FROM audit_head").fetchall()
    with pytest.raises(Damaged):
        filled.append(decision())
    assert verify(filled).problems[0] == "the head of the audit is missing"
    assert compare_ends(filled) == "the head of the audit is missing"


def test_the_mark_is_private_whole_and_moves_on_when_the_ledger_is_closed(home):
    ledger = SqliteLedger(str(home))
    for number in range(5):
        ledger.audit.append(decision(number))
    ledger.close()
    found = home / "audit.head"
    assert found.stat().st_mode & 0o777 == 0o600
    assert read_mark_file(str(home)) == AuditMark(5, verify(SqliteLedger(str(home)).audit).head.partition(":")[2])
    assert [name for name in os.listdir(home) if name.startswith("audit")] == ["audit.head"]


def test_a_mark_that_cannot_be_written_fails_no_decision(audit, home):
    audit.append(decision())
    (home / "audit.head").unlink()
    (home / "audit.head").mkdir()
    for number in range(300):
        audit.append(decision(number))
    assert audit.read_head().count == 301


@pytest.mark.parametrize("text", ["", "12", "12:", "x:" + "0" * 64, "-1:" + "0" * 64, "12:" + "ü" * 64, "12:" + "0" * 63])
def test_what_is_no_head_is_not_taken_for_one(text):
    assert parse_mark(text) is None


# --- what cannot be read never counts as empty ------------------------------------------------------------------------


@pytest.fixture
def read_only():
    """A read-only home that another user can reach, unlike pytest's own folders."""
    place = Path(tempfile.mkdtemp(prefix="holdfast-test-"))
    place.chmod(0o755)
    ledger = SqliteLedger(str(place / "home"))
    ledger.done.record("a", "review", "1", NOW)
    ledger.close()
    for suffix in ("-wal", "-shm"):  # what it would need to read the newest rows
        (place / "home" / f"ledger.db{suffix}").unlink()
    for path in [*place.rglob("*")]:
        if os.getuid() == 0:
            os.chown(path, 65534, 65534)
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield place / "home"
    for path in [place, *place.rglob("*")]:
        path.chmod(0o755)
    shutil.rmtree(place)


def test_a_ledger_that_cannot_be_read_is_an_error_and_no_empty_answer(child, read_only):
    code = """
        from holdfast.ledger.sqlite import SqliteLedger
        ledger = SqliteLedger(args[0], lock_seconds=1)
        answer = []
        for ask in (
            lambda: ledger.done.exists("a", "review", "1"), lambda: ledger.agents.find_tokens(["x"]),
            lambda: ledger.audit.list(),
            lambda: ledger.done.record("a", "review", "2", 1),
        ):
            try:
                answer.append(repr(ask()))
            except HoldfastError as error:
                answer.append(error.code)
    """
    assert child(code, read_only, as_nobody=True) == ["disk"] * 4


def test_a_full_disk_is_told_and_the_chain_stays_sound(child, home, ledger):
    """As a full disk is: no file may grow any more."""
    ledger.audit.append(decision())
    ledger.close()
    code = """
        import resource, signal
        from holdfast.ledger.sqlite import SqliteLedger
        from holdfast.ledger.audit import Decision
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        ledger = SqliteLedger(args[0], lock_seconds=1)
        ledger.audit.append(Decision("a", "dispatch", "allowed", {"role": "r"}))
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        answer = []
        for number in range(3):
            try:
                ledger.audit.append(Decision("a", "dispatch", "allowed", {"role": "r", "number": number}), durable=True)
                answer.append("written")
            except HoldfastError as error:
                answer.append(error.code)
    """
    assert child(code, home) == ["disk"] * 3
    verdict = verify(ledger.audit)
    assert (verdict.ok, verdict.rows) == (True, 2)


# --- requests that are done once --------------------------------------------------------------------------------------


@pytest.mark.promise("A6")
def test_a_deed_is_recorded_once_and_found_by_agent_kind_and_subject(ledger):
    done = ledger.done
    assert not done.exists("reviewer", "digest", "2026-05")
    assert done.record("reviewer", "digest", "2026-05", NOW) is True
    assert done.record("reviewer", "digest", "2026-05", NOW + 5) is False
    assert done.record("other", "digest", "2026-05", NOW) is True
    assert done.record("reviewer", "digest", "2026-06", NOW) is True
    assert done.exists("reviewer", "digest", "2026-05") and not done.exists("reviewer", "other", "2026-05")
    deeds, cursor = done.list("reviewer", limit=1)
    assert [(one.agent, one.kind, one.subject, one.time) for one in deeds] == [("reviewer", "digest", "2026-06", NOW)]
    assert [one.subject for one in done.list("reviewer", before=cursor)[0]] == ["2026-05"]
    assert len(done.list()[0]) == 3
    assert done.list(kind="nothing") == ([], None)


@pytest.mark.promise("A6")
def test_what_any_agent_did_is_found_also_after_a_purge(ledger):
    done = ledger.done
    done.record("ada", "call", "the number 555-0199", NOW)
    ledger.reviews.record("ben", "acme", "app", 7, holder="h", now=NOW)
    assert done.mask(lambda text: "555" in text) == 1
    for agent, expected in ((None, True), ("ada", True), ("ben", False)):
        assert done.exists(agent, "call", "the number 555-0199") is expected
    assert done.exists(None, "github.review", "Acme/App#7") and not done.exists(None, "github.review", "acme/app#8")
    assert not done.exists(None, "call", "the number 555-0100")


@pytest.mark.promise("A6")
def test_of_many_who_record_a_deed_at_once_one_is_told_that_it_is_new(ledger):
    told = []
    threads = [threading.Thread(target=lambda: told.append(ledger.done.record("a", "k", "s", NOW))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told) == [False] * 11 + [True]


PR = ("reviewer", "acme", "app", 7)


@pytest.mark.promise("A6")
def test_of_ten_who_claim_a_review_one_gets_it_and_after_it_is_recorded_nobody_does(ledger):
    reviews = ledger.reviews
    claims = [reviews.claim(*PR, holder=f"h{number}", now=NOW) for number in range(10)]
    assert claims == [NEW] + [TAKEN] * 9
    assert reviews.record(*PR, holder="h0", now=NOW + 3) is True
    assert reviews.claim(*PR, holder="h1", now=NOW + 4) == REVIEWED
    assert reviews.claim(*PR, holder="h1", now=NOW + 4, again=True) == NEW
    assert reviews.record(*PR, holder="h1", now=NOW + 5) is False
    found = reviews.get(*PR)
    assert (found.agent, found.owner, found.repo, found.pr_number, found.reviewed_at) == (*PR, NOW + 3)
    assert reviews.exists(*PR) and not reviews.exists("other", "acme", "app", 7)
    assert [one.pr_number for one in reviews.list("reviewer")[0]] == [7]


@pytest.mark.promise("A6")
def test_a_claim_whose_holder_went_away_is_doubtful_and_one_that_was_let_go_is_new(ledger):
    reviews = ledger.reviews
    assert reviews.claim(*PR, holder="dead", now=NOW) == NEW
    assert reviews.claim(*PR, holder="next", now=NOW + 60) == TAKEN
    assert reviews.claim(*PR, holder="next", now=NOW + 121) == DOUBTFUL
    reviews.release(*PR, holder="dead")  # late: it no longer holds the claim
    assert reviews.claim(*PR, holder="third", now=NOW + 122) == TAKEN
    reviews.release(*PR, holder="next")
    assert reviews.claim(*PR, holder="third", now=NOW + 123) == NEW


def test_a_request_with_a_key_is_done_once_and_then_answered_the_same(ledger):
    repeats = ledger.idempotency_keys
    assert repeats.begin("a", "key", "digest", NOW) is None
    with pytest.raises(Busy):
        repeats.begin("a", "key", "digest", NOW + 1)
    with pytest.raises(Conflict):
        repeats.begin("a", "key", "another", NOW + 1)
    assert repeats.begin("b", "key", "another", NOW + 1) is None  # each agent has its own keys
    repeats.finish("a", "key", "digest", status=201, answer='{"id": 1}')
    answered = repeats.begin("a", "key", "digest", NOW + 2)
    assert (answered.status, answered.answer) == (201, '{"id": 1}')
    assert repeats.begin("a", "key", "digest", NOW + 90_000) is None  # a day later it is deleted


def test_a_request_that_failed_or_was_left_may_be_tried_again(ledger):
    repeats = ledger.idempotency_keys
    assert repeats.begin("a", "key", "digest", NOW) is None
    repeats.drop("a", "key", "another")  # which has not started this one
    with pytest.raises(Busy):
        repeats.begin("a", "key", "digest", NOW + 1)
    repeats.drop("a", "key", "digest")
    assert repeats.begin("a", "key", "digest", NOW + 1) is None
    assert repeats.begin("a", "key", "digest", NOW + 200) is None  # the lease has expired
