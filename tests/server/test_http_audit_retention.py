"""Old rows of the audit are removed with a signed checkpoint, and what is left is still proven, on a home and on PostgreSQL."""

from __future__ import annotations

import io
import json
import subprocess
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from http_gateway import run_gateway
from mcp_raw import HOLDFAST
from test_http_audit_trail import change, opened, rows, store  # noqa: F401
from wait import wait_until

from holdfast import config
from holdfast.access import AccessGate
from holdfast.access.gate import LOCAL
from holdfast.errors import Conflict, Damaged, UsageError
from holdfast.ledger.audit import AuditMark, Decision
from holdfast.ledger.audit_checkpoint import Checkpoint, prune
from holdfast.ledger.audit_verify import compare_ends, verify, verify_lines, verify_newest
from holdfast.server.audit_tasks import AuditTasks
from holdfast.server.gateway import Gateway
from holdfast.server.logs import Logs
from holdfast.verbs.copy import copy

OLD, NEWER = "2020-01-01T00:00:00Z", "2020-03-01T00:00:00Z"


@pytest.fixture
def audit(home, store, clock):  # noqa: F811
    """An audit with thirty rows of January 2020, thirty of March, and the present clock."""
    with opened(home) as ledger:
        for moment in (OLD, NEWER):
            clock.set(moment)
            for number in range(30):
                clock.forward(0.25)
                ledger.audit.append(Decision("agent", "agent.memory.read", "allowed", {"role": "r", "number": number}))
        ledger.audit.save_mark()
        clock.set("2026-05-01T12:00:00Z")
        yield ledger.audit


def holdfast(home, *words, code=0):
    done = subprocess.run(
        [*HOLDFAST, *words, "--home", str(home), "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == code, (done.stdout, done.stderr)
    return json.loads(done.stdout)


def test_what_is_left_after_a_removal_is_proven_and_goes_on(audit, home, clock):
    whole, head = list(audit.export()), audit.read_head()
    with closing(AccessGate(config.load(home))) as gate:
        pruned = gate.prune_audit("2020-02-01T00:00:00.000Z")
        assert (pruned.removed, pruned.kept) == (30, 31)  # the removal itself is a row
        again = gate.prune_audit("2020-02-01T00:00:00.000Z")
        assert (again.removed, again.kept, again.checkpoint) == (0, 31, pruned.checkpoint)
    checkpoint = pruned.checkpoint
    assert (checkpoint.number, checkpoint.hash) == (30, whole[29].hash)
    assert (checkpoint.first_time, checkpoint.last_time) == ("2020-01-01T00:00:00.250Z", "2020-01-01T00:00:07.500Z")
    verdict = verify(audit, known=head)
    assert (verdict.ok, verdict.rows, verdict.removed, verdict.problems) == (True, 31, 30, ())
    assert compare_ends(audit) == "" and verify_newest(audit) == "" and verify_newest(audit, 10) == ""
    audit.append(Decision("agent", "dispatch", "allowed", {"role": "r"}))
    assert verify(audit).ok and [row.number for row in audit.list(limit=100)[0]] == list(range(62, 30, -1))
    assert [row.number for row in audit.export()] == list(range(31, 63))
    assert next(audit.export()).previous == checkpoint.hash
    (last,) = [row for row in audit.list()[0] if row.action == "audit.prune"]
    assert (last.agent, last.metadata["before"]) == ("(local)", "2020-02-01T00:00:00.000Z")
    assert not verify(audit, AuditMark(29, whole[28].hash)).ok  # what was removed cannot be compared
    assert verify(audit, AuditMark(30, whole[29].hash)).ok
    assert not verify(audit, AuditMark(30, "0" * 64)).ok


def test_a_removal_goes_through_many_rows_a_portion_at_a_time(audit, monkeypatch):
    monkeypatch.setattr("holdfast.ledger.audit_checkpoint._ROWS_PER_TRANSACTION", 7)
    assert prune(audit, "2026-01-01T00:00:00.000Z").removed == 59  # the newest row stays
    assert (verify(audit).ok, verify(audit).rows) == (True, 1)


def test_the_rows_of_the_last_days_stay_whatever_is_asked(audit, clock):
    with pytest.raises(UsageError) as refused:
        prune(audit, "2026-04-28T00:00:00.000Z")
    assert "7 days" in refused.value.message
    clock.set("2020-03-02T00:00:00Z")
    with pytest.raises(UsageError):
        prune(audit, "2020-03-01T00:00:00.000Z")
    assert verify(audit).rows == 60


def test_rows_that_were_changed_are_not_removed(audit, home, store):  # noqa: F811
    change(home, store, "UPDATE TABLE SET outcome = 'denied' WHERE number = 12")
    with pytest.raises(Damaged) as refused:
        prune(audit, "2020-02-01T00:00:00.000Z")
    assert "row 12 or the row before it was changed" in refused.value.message and audit.read_checkpoint() is None
    assert verify(audit).rows == 60


def test_a_forged_changed_or_missing_checkpoint_is_found(audit, home, store):  # noqa: F811
    checkpoint = prune(audit, "2020-02-01T00:00:00.000Z").checkpoint
    table = "holdfast.audit_checkpoint" if store else "audit_checkpoint"
    for name, value in (
        ("signature", "0" * 64), ("last_time", "2020-01-09T00:00:00.000Z"), ("first_time", "2019-01-09T00:00:00.000Z"),
        ("made", "2020-01-09T00:00:00.000Z"),
    ):  # fmt: skip
        change(home, store, f"UPDATE {table} SET {name} = '{value}'")
        assert verify(audit).problems == ("the checkpoint at row 30 has a wrong signature",), name
        assert compare_ends(audit) == "the checkpoint at row 30 has a wrong signature"
        with pytest.raises(Damaged):
            prune(audit, "2021-01-01T00:00:00.000Z")
        change(home, store, f"UPDATE {table} SET {name} = '{getattr(checkpoint, name)}'")
    assert verify(audit).ok
    # an intruder who removes more rows cannot sign where they ended
    hash = next(row.hash for row in audit.iterate_rows() if row.number == 40)
    change(home, store, "DELETE FROM TABLE WHERE number <= 40", f"UPDATE {table} SET number = 40, hash = '{hash}'")
    assert verify(audit).problems == ("the checkpoint at row 40 has a wrong signature",)
    change(home, store, f"DELETE FROM {table}")
    assert verify(audit).problems == ("rows 1 to 40 are missing",)


def test_without_its_key_a_checkpoint_is_not_believed(audit, home, store):  # noqa: F811
    prune(audit, "2020-02-01T00:00:00.000Z")
    if store:
        change(home, store, "DELETE FROM holdfast.keys WHERE name = 'audit'")
    else:
        assert (home / "audit.key").stat().st_mode & 0o777 == 0o600
        (home / "audit.key").unlink()
    assert verify(audit).problems == ("the checkpoint at row 30 cannot be verified: the key that signed it is missing",)


def test_a_mark_from_before_a_removal_does_no_harm(home, clock):
    """As in a backup, which copies the mark before the ledger."""
    clock.set(OLD)
    with opened(home) as ledger:
        audit = ledger.audit
        audit.append(Decision("agent", "dispatch", "allowed", {"role": "r"}))
        audit.save_mark()
        old = (home / "audit.head").read_bytes()
        for _ in range(9):
            audit.append(Decision("agent", "dispatch", "allowed", {"role": "r"}))
        clock.set("2026-05-01T12:00:00Z")
        assert prune(audit, "2021-01-01T00:00:00.000Z").removed == 9
        (home / "audit.head").write_bytes(old)
        assert verify(audit).ok and compare_ends(audit) == ""
        audit.append(Decision("agent", "dispatch", "allowed", {"role": "r"}))
        audit.save_mark()
        assert audit.read_mark() == audit.read_head() and verify(audit).marked == 11


def test_the_role_of_the_application_cannot_remove_rows_or_write_checkpoints_by_itself(audit, home, store, request):  # noqa: F811
    if not store:
        pytest.skip("a home has no roles")
    rest = "VALUES (3, 'x', 'x', 'x', 'x', 'x')"
    with psycopg.connect(store, autocommit=True) as db:
        db.execute("SET ROLE holdfast_app")
        db.execute("SELECT set_config('holdfast.tenant', 'default', false), set_config('holdfast.agent', '*', false)")
        for statement in (
            "DELETE FROM holdfast.agent_action_log", "DELETE FROM holdfast.audit_checkpoint",
            f"INSERT INTO holdfast.audit_checkpoint (number, hash, first_time, last_time, made, signature) {rest}",
            "UPDATE holdfast.audit_checkpoint SET number = 9",
        ):  # fmt: skip
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(statement)
        row = list(audit.iterate_rows())[9]
        ask = "SELECT holdfast.prune_audit(%s, %s, 'x', %s, 'x', 'x')"
        assert db.execute(ask, (row.number, "0" * 64, row.time)).fetchone() == (False,)  # not the row's hash
        newest = list(audit.iterate_rows())[-1]
        assert db.execute(ask, (newest.number, newest.hash, newest.time)).fetchone() == (False,)  # the newest stays
        db.execute("SELECT set_config('holdfast.tenant', 'other', false)")
        assert db.execute(ask, (row.number, row.hash, row.time)).fetchone() == (False,)  # another tenant's
    assert verify(audit).rows == 60


def test_the_database_itself_keeps_rows_of_the_last_days(home, postgres_url, monkeypatch):
    monkeypatch.setenv("HOLDFAST_STORE", postgres_url)
    with opened(home) as ledger:
        for number in range(3):
            ledger.audit.append(Decision("agent", "dispatch", "allowed", {"role": "r", "number": number}))
        ledger.audit.save_mark()
        row = next(ledger.audit.iterate_rows())
        with pytest.raises(Conflict):
            ledger.audit.remove_through(
                Checkpoint(row.number, row.hash, row.time, row.time, row.time).sign(ledger.audit.secret.load())
            )
        assert verify(ledger.audit).rows == 3 and ledger.audit.read_checkpoint() is None


def test_the_gateway_removes_what_is_older_than_the_setting_says(audit, home, store):  # noqa: F811
    (home / "config.toml").write_text("[audit]\nkeep_days = 7\n")
    with run_gateway(home) as gateway:
        wait_until(lambda: audit.read_checkpoint() is not None)
        wait_until(lambda: gateway.operator.get("/audit/verify").json["removed"] == 60)
        said = gateway.operator.get("/audit/verify").json
        assert said["ok"] is True
        assert rows(gateway.operator, "action=audit.prune")[0]["metadata"]["before"].startswith("2026-04-24")


def test_a_broken_audit_of_one_tenant_keeps_the_rows_of_no_other(home, postgres_url, clock, monkeypatch):
    monkeypatch.setenv("HOLDFAST_STORE", postgres_url)
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.toml").write_text("[audit]\nkeep_days = 7\n")
    gateway, log = Gateway(str(home)), io.StringIO()
    with closing(gateway):
        tenants = ("a", "b", "c", "default")
        ledgers = [gateway.gate.for_caller(LOCAL.replace(tenant=tenant)).ledger for tenant in tenants]
        clock.set(OLD)
        for ledger in ledgers:
            for number in range(3):
                ledger.audit.append(Decision("x", "dispatch", "allowed", {"number": number}, ledger.tenant))
            ledger.audit.save_mark(always=True)
        with psycopg.connect(postgres_url) as db:
            db.execute("UPDATE holdfast.agent_action_log SET agent = 'y' WHERE tenant IN ('a', 'b') AND number = 2")
        clock.set("2026-05-01T12:00:00Z")
        AuditTasks(gateway, Logs(log, as_json=True)).keep()
        removed = {ledger.tenant: bool(ledger.audit.read_checkpoint()) for ledger in ledgers}
        assert removed == {"a": False, "b": False, "c": True, "default": True}
        lines = [json.loads(line) for line in log.getvalue().splitlines()]
        assert sorted(line["tenant"] for line in lines if line["event"] == "audit not pruned") == ["a", "b"]


def test_commands_remove_export_and_verify(audit, home, tmp_path):
    exported = tmp_path / "all.jsonl"
    assert holdfast(home, "audit", "export", "--output", str(exported))["rows"] == 60
    assert exported.stat().st_mode & 0o777 == 0o600
    assert holdfast(home, "audit", "export", "--output", str(exported), code=2)["error"] == "usage"
    assert holdfast(home, "audit", "prune", "--before", "2020-02-01", code=3)["error"] == "refused"
    removed = holdfast(home, "audit", "prune", "--before", "2020-02-01", "--yes")
    assert removed["removed"] == 30 and removed["checkpoint"]["number"] == 30
    said = holdfast(home, "audit", "verify")
    assert (said["ok"], said["removed"], said["rows"]) == (True, 30, 31)
    known = str(AuditMark(60, json.loads(exported.read_text().splitlines()[-1])["hash"]))
    assert holdfast(home, "audit", "verify", "--known", known)["ok"]
    march = tmp_path / "march.jsonl"
    period = ("--since", "2020-03-01", "--until", "2020-03-01T00:00:05Z", "--format", "jsonl")
    assert holdfast(home, "audit", "export", *period, "--output", str(march))["rows"] == 19
    for file, count in ((exported, 60), (march, 19)):
        checked = holdfast(home, "audit", "verify", "--file", str(file))
        assert (checked["ok"], checked["rows"]) == (True, count)
    assert holdfast(home, "audit", "verify", "--file", str(exported), "--known", known)["ok"]
    assert not holdfast(home, "audit", "verify", "--file", str(march), "--known", known, code=1)["ok"]
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_text(march.read_text().replace('"number":3,', '"number":4,', 1))
    assert not holdfast(home, "audit", "verify", "--file", str(damaged), code=1)["ok"]


@pytest.mark.parametrize(
    ("name", "change_lines", "problem"),
    [
        ("changed", lambda lines: [*lines[:9], lines[9].replace(b"allowed", b"denied"), *lines[10:]], "was changed"),
        ("taken out", lambda lines: [*lines[:9], *lines[10:]], "row 10 is missing"),
        ("moved", lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], "row 2 is missing"),
        ("no row", lambda lines: [*lines[:9], b"{}\n", *lines[9:]], "is not a row of an audit"),
        ("another first", lambda lines: [lines[0].replace(b'"previous":""', b'"previous":"00"'), *lines[1:]], ""),
        ("twice", lambda lines: [*lines[:9], *lines[4:]], ""),
        ("the middle", lambda lines: lines[5:20], ""),
        ("another chain", lambda lines: [*lines[:9], lines[9].replace(b'"hash":"', b'"hash":"0'), *lines[9:]], "was changed"),
    ],
)  # fmt: skip
def test_a_file_is_verified_without_the_ledger(audit, store, name, change_lines, problem):  # noqa: F811
    lines = [json.dumps(entry.as_dict(), separators=(",", ":")).encode() + b"\n" for entry in audit.export()]
    verdict = verify_lines(change_lines(lines))
    assert verdict.ok is (not problem) and problem in " ".join(verdict.problems)


def test_a_pruned_audit_is_copied_with_its_checkpoint(audit, home, tmp_path, store, postgres_databases):  # noqa: F811
    prune(audit, "2020-02-01T00:00:00.000Z")
    settings = config.load(home)
    url = postgres_databases.fresh()
    source, places = store or str(home), [url, str(tmp_path / "copy")]
    for number, target in enumerate(places):
        for _ in range(2):  # the second one finds everything there
            copied = copy(source, target, settings)
        assert copied.audit_rows == 30
        given = {"store": target} if number == 0 else {"home": target, "store": None}
        with closing(AccessGate(settings.replace(**given))) as gate:
            verdict = verify(gate.ledger.audit)
            assert (verdict.ok, verdict.rows, verdict.removed) == (True, 30, 30), verdict
            gate.ledger.audit.append(Decision("agent", "dispatch", "allowed", {"role": "r"}))
            assert verify(gate.ledger.audit).ok
    assert (Path(places[1]) / "audit.key").exists()
