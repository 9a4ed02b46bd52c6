"""A token is revoked on a really full disk, at once and in every process, and the row that says so follows."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from http_gateway import run_gateway
from mcp_raw import HOLDFAST
from test_http_audit_trail import opened, rows
from wait import wait_until

from holdfast import config
from holdfast.access import AccessGate
from holdfast.base import dates
from holdfast.errors import DiskTrouble, Unauthenticated
from holdfast.ledger.audit import Decision
from holdfast.ledger.audit_verify import verify
from holdfast.ledger.revocations import FILE, PendingRevocation, RevocationFile
from holdfast.ledger.sqlite import SqliteLedger


class Disk:
    """A small file system of its own."""

    def __init__(self, folder):
        self.folder, self.home = folder, folder / "home"
        self._fill = folder / "fill"

    def fill(self):
        """Leave not one byte."""
        room = os.statvfs(self.folder)
        with open(self._fill, "ab", buffering=0) as file:
            os.posix_fallocate(file.fileno(), 0, os.fstat(file.fileno()).st_size + room.f_bavail * room.f_frsize)

    def free(self):
        self._fill.unlink()


@pytest.fixture
def disk():
    folder = Path(tempfile.mkdtemp(prefix="hf-disk-"))  # PostgreSQL's user cannot enter pytest's own folders
    folder.chmod(0o755)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=777", "tmpfs", folder], capture_output=True).returncode:
        folder.rmdir()
        pytest.skip("no file system can be mounted here")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        folder.rmdir()


def fill_ledger(gate, disk):
    """Fill the disk, and then the space that the ledger's log still has: the next row cannot be written."""
    disk.fill()
    for number in range(20_000):
        try:
            gate.ledger.audit.append(Decision("filler", "dispatch", "allowed", {"role": "r", "number": number}), durable=True)
        except DiskTrouble:
            return
    raise AssertionError("the disk is not full")


def test_an_agent_is_shut_out_on_a_full_disk_and_the_row_follows_when_there_is_space(disk):
    with run_gateway(disk.home) as gateway:
        agent, other = gateway.agent("leaked"), gateway.agent("other")
        assert agent.get("/gateway/memory").status == other.get("/gateway/memory").status == 200
        fill_ledger(gateway.gate, disk)
        assert gateway.operator.post("/agents", {"name": "new", "role": "secretary"}).status in (503, 507)
        said = gateway.operator("DELETE", "/agents/leaked")
        assert (said.status, said.json["state"]) == (200, "revoked")
        assert agent.get("/gateway/memory").code == "unauthenticated"
        assert other.get("/gateway/memory").status == 200
        with closing(AccessGate(config.load(disk.home))) as another_process:
            with pytest.raises(Unauthenticated) as refused:
                another_process.identify(agent.token)
            assert "revoked" in refused.value.message
            states = {one.name: one.state(dates.clock()) for one in another_process.agents()}
            assert states == {"leaked": "revoked", "operator": "active", "other": "active"}
        assert RevocationFile(str(disk.home)).read()
        disk.free()
        wait_until(lambda: not RevocationFile(str(disk.home)).read())  # the gateway does that by itself
        (row,) = [
            row
            for row in rows(gateway.operator, "action=agents.manage&agent=operator")
            if row["metadata"].get("name") == "leaked"
        ]
        assert row["metadata"]["verb"] == "revoke" and row["metadata"]["request"] == said.headers["x-request-id"]
        assert row["metadata"]["revoked_at"] and row["metadata"]["address"] == "127.0.0.1"
        assert agent.get("/gateway/memory").code == "unauthenticated"
        assert gateway.operator.get("/audit/verify").json["ok"] is True
        again = gateway.agent("leaked")  # let in again: the old revocation does not reach the new token
        assert again.get("/gateway/memory").status == 200 and agent.get("/gateway/memory").status == 401


def test_a_command_revokes_on_a_full_disk_and_the_next_change_writes_the_row(disk):
    with closing(AccessGate(config.load(disk.home))) as gate:
        tokens = [gate.add(name, "secretary")[1] for name in ("a", "b")]
        fill_ledger(gate, disk)
    done = subprocess.run(
        [*HOLDFAST, "agent", "revoke", "a", "--home", str(disk.home), "--json"], capture_output=True, text=True, timeout=120,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] == "revoked"
    with closing(AccessGate(config.load(disk.home))) as gate:
        with pytest.raises(Unauthenticated):
            gate.identify(tokens[0])
        assert gate.identify(tokens[1]).agent == "b"
        disk.free()
        gate.revoke("b")
        assert RevocationFile(str(disk.home)).read() == []
        told = [(row.metadata.get("verb"), row.metadata.get("name")) for row in gate.ledger.audit.list()[0]]
        assert told[:2] == [("revoke", "b"), ("revoke", "a")] and verify(gate.ledger.audit).ok


def test_the_space_is_reserved_with_the_first_agent_and_in_homes_that_had_none(home):
    with closing(AccessGate(config.load(home))) as gate:
        gate.add("a", "secretary")
    found = home / FILE
    assert found.stat().st_mode & 0o777 == 0o600 and found.stat().st_blocks * 512 >= found.stat().st_size > 0
    found.unlink()
    with run_gateway(home):
        wait_until(found.exists)


def test_slots_are_used_again_and_an_unreadable_one_is_free(home):
    home.mkdir(mode=0o700)
    file = RevocationFile(str(home))
    decision = Decision("operator", "agents.manage", "allowed", {"role": "operator", **{f"n{n}": "x" * 200 for n in range(20)}})
    with pytest.raises(DiskTrouble):
        file.add(PendingRevocation("a", 1, decision))  # nothing is allocated
    file.reserve()
    size = (home / FILE).stat().st_size
    for turn in range(3):
        for number in range(63):
            file.add(PendingRevocation(f"agent-{number}", turn, decision))
        with pytest.raises(DiskTrouble):
            file.add(PendingRevocation("one more", turn, decision))
        pending = file.read()
        assert [one.agent for one in pending] == [f"agent-{number}" for number in range(63)]
        assert all(one.decision.metadata["role"] == "operator" for one in pending)
        file.remove(pending[1:])
        assert file.read() == pending[:1]
        file.remove(pending)
        assert file.read() == [] and (home / FILE).stat().st_size == size
    file.add(PendingRevocation("a", 1, decision))
    with open(home / FILE, "r+b") as torn:
        torn.seek(2048)
        torn.write(b"{torn")
    file.add(PendingRevocation("b", 1, decision))
    assert [one.agent for one in file.read()] == ["b"]


def test_a_token_stays_revoked_while_another_process_moves_its_revocation_into_the_ledger(home):
    with closing(AccessGate(config.load(home))) as gate, closing(SqliteLedger(str(home))) as other:
        token = gate.add("leaked", "secretary")[1]
        decision = Decision("(local)", "agents.manage", "allowed", {"verb": "revoke", "name": "leaked"})
        RevocationFile(str(home)).add(PendingRevocation("leaked", int(dates.clock()), decision))
        database = gate.ledger.agents._database
        read = database.read_any_tenant

        def read_then_let_the_other_move_it(statement, **values):
            rows = read(statement, **values)
            other.agents.apply_pending()
            return rows

        database.read_any_tenant = read_then_let_the_other_move_it
        with pytest.raises(Unauthenticated):
            gate.identify(token)
        assert RevocationFile(str(home)).read() == []


def test_of_several_processes_that_find_space_again_one_writes_the_row(home):
    with closing(AccessGate(config.load(home))) as gate:
        gate.add("leaked", "secretary")
        decision = Decision("(local)", "agents.manage", "allowed", {"verb": "revoke", "name": "leaked"})
        RevocationFile(str(home)).add(PendingRevocation("leaked", int(dates.clock()), decision))
        start = threading.Barrier(8)

        def apply(ledger):
            start.wait(60)
            ledger.agents.apply_pending()
            ledger.close()

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(apply, [SqliteLedger(str(home)) for _ in range(8)]))
        found = [entry for entry in gate.ledger.audit.list()[0] if entry.metadata.get("verb") == "revoke"]
        assert len(found) == 1 and RevocationFile(str(home)).read() == []


def test_a_change_that_is_kept_does_not_fail_because_a_slot_cannot_be_freed(home, monkeypatch):
    with closing(AccessGate(config.load(home))) as gate:
        gate.add("leaked", "secretary")
        decision = Decision("(local)", "agents.manage", "allowed", {"verb": "revoke", "name": "leaked"})
        RevocationFile(str(home)).add(PendingRevocation("leaked", int(dates.clock()), decision))

        def fail(*_):
            raise DiskTrouble("no space", "Free some")

        with monkeypatch.context() as patch:
            patch.setattr(RevocationFile, "remove", fail)
            _, token = gate.add("new", "secretary")
        assert gate.identify(token).agent == "new"
        gate.ledger.agents.apply_pending()
        assert RevocationFile(str(home)).read() == []


def test_without_the_reserved_file_a_full_disk_is_the_error_it_was(disk):
    with closing(SqliteLedger(str(disk.home), 1)) as ledger, closing(AccessGate(config.load(disk.home))) as gate:
        gate.add("a", "secretary")
        (disk.home / FILE).unlink()
        fill_ledger(gate, disk)
        with pytest.raises(DiskTrouble) as refused:
            gate.revoke("a")
        assert refused.value.full
        assert ledger.agents.get("a").tokens[0].revoked is None


def test_rows_that_wait_for_space_are_written_at_the_latest_when_a_ledger_is_closed(home, postgres_url, monkeypatch):
    monkeypatch.setenv("HOLDFAST_STORE", postgres_url)
    with opened(home) as ledger:
        ledger.audit.defer(Decision("operator", "agents.manage", "allowed", {"verb": "revoke"}))
        assert ledger.audit.list()[0] == []
    with opened(home) as ledger:
        assert [entry.metadata for entry in ledger.audit.list()[0]] == [{"verb": "revoke"}]


def test_a_table_that_cannot_grow_keeps_no_token_alive_on_postgresql(home, postgres_url, disk, monkeypatch):
    """The audit's table is on a disk that is full: the token is revoked, and its row follows when there is space."""
    monkeypatch.setenv("HOLDFAST_STORE", postgres_url)
    home.mkdir(mode=0o700)
    space = disk.folder / "space"
    space.mkdir()
    if os.geteuid() == 0:
        subprocess.run(["chown", "nobody", space], check=True)
    name = f"full_{os.getpid()}"
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute(f"CREATE TABLESPACE {name} LOCATION '{space}'")
        try:
            db.execute(f"ALTER TABLE holdfast.agent_action_log SET TABLESPACE {name}")
            with run_gateway(home) as gateway:
                agent = gateway.agent("leaked")
                assert agent.get("/gateway/memory").status == 200
                fill_ledger(gateway.gate, disk)
                said = gateway.operator("DELETE", "/agents/leaked")
                assert (said.status, said.json["state"]) == (200, "revoked"), said
                assert agent.get("/gateway/memory").code == "unauthenticated"
                disk.free()
                found = wait_until(
                    lambda: [
                        row for row in rows(gateway.operator, "action=agents.manage&agent=operator")
                        if row["metadata"].get("revoked_at")
                    ]
                )  # fmt: skip
                assert found[0]["metadata"]["name"] == "leaked" and found[0]["metadata"]["verb"] == "revoke"
                assert gateway.operator.get("/audit/verify").json["ok"] is True
        finally:
            db.execute("ALTER TABLE holdfast.agent_action_log SET TABLESPACE pg_default")
            db.execute(f"DROP TABLESPACE {name}")
