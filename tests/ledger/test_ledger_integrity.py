"""A ledger that lost records of purges, or has a damaged receipt: it is reported, and everything else works."""

from __future__ import annotations

import json

import apsw
import pytest

from holdfast import Damaged, Memory, Purged

TEXT = "the vault stands behind the old mill of Kerrow"


@pytest.fixture
def memory(open_memory):
    """A memory of a person."""
    return open_memory(origin="user")


@pytest.fixture
def purged(memory):
    """A purged note and its receipt."""
    memory.store(TEXT, key="vault")
    memory.store("something else stays", key="other")
    return memory.purge("vault")


@pytest.fixture
def changed(home, memory, purged, open_memory):
    """Change the ledger by hand, and open the home again."""

    def change(statement, **values) -> Memory:
        memory.close()
        db = apsw.Connection(str(home / "ledger.db"))
        db.execute(statement, values).fetchall()
        db.close()
        return open_memory(origin="user")

    return change


def problems(memory):
    return [(problem.code, problem.path) for problem in memory.check()]


def refused(memory, text=TEXT, key="again"):
    try:
        memory.store(text, key=key)
    except Purged:
        return True
    return False


DAMAGE = ["{broken", "{}", "[1,2]", '"text"', "", "null", "[" * 100_000]


@pytest.mark.promise("D1")
@pytest.mark.promise("N10")
@pytest.mark.parametrize("receipt", DAMAGE, ids=["cut", "empty", "list", "string", "nothing", "null", "deep"])
def test_a_damaged_receipt_is_named_and_the_rest_goes_on(changed, purged, home, receipt):
    memory = changed("UPDATE receipts SET receipt = :receipt", receipt=receipt)
    [problem] = memory.check()
    assert problem.code == "receipt" and purged.id in problem.message and problem.fix
    assert refused(memory)
    assert [hit.key for hit in memory.recall("something else stays")] == ["other"]
    assert [(one.id, one.state, one.removed) for one in memory.receipts()] == [(purged.id, "damaged", ())]
    memory.retain()
    memory.store("another text to be purged", key="next")
    assert memory.purge("next").state == "done"
    assert [one.state for one in memory.receipts()] == ["done", "damaged"]
    assert not list(home.glob("ledger.db.damaged-*"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"removed": "text"}, {"removed": [1]}, {"left": [["path"]]}, {"scope": {"kind": 1}}, {"scope": {"what": "x"}},
        {"digests": "many"}, {"id": "another"}, {"state": None},
    ],
)  # fmt: skip
def test_a_receipt_with_fields_that_mean_nothing_is_damaged(changed, purged, home, wrong):
    db = apsw.Connection(str(home / "ledger.db"))
    told = json.loads(db.execute("SELECT receipt FROM receipts").fetchone()[0])
    db.close()
    memory = changed("UPDATE receipts SET receipt = :receipt", receipt=json.dumps({**told, **wrong}))
    assert problems(memory) == [("receipt", "ledger.db")]
    assert [one.state for one in memory.receipts()] == ["damaged"]
    assert refused(memory)


def test_a_receipt_that_is_no_text_any_more_is_damaged(changed):
    memory = changed("UPDATE receipts SET receipt = CAST(x'7b22ff227d' AS TEXT)")
    assert problems(memory) == [("receipt", "ledger.db")]
    assert refused(memory)


def test_a_damaged_receipt_is_mended_by_purging_the_same_text_again(memory, home, open_memory):
    memory.store(f"{TEXT} and more", key="vault")
    first = memory.purge(text=TEXT)
    memory.close()
    db = apsw.Connection(str(home / "ledger.db"))
    db.execute("UPDATE receipts SET receipt = '{broken'").fetchall()
    db.close()
    memory = open_memory(origin="user")
    assert problems(memory) == [("receipt", "ledger.db")]
    second = memory.purge(text=TEXT)
    assert second.id != first.id
    assert memory.check() == []


@pytest.mark.promise("D1")
@pytest.mark.promise("N10")
@pytest.mark.parametrize(
    ("statement", "lost"),
    [
        ("DELETE FROM purged", "digests of 1 purge are missing"),
        ("DELETE FROM purged WHERE digest = (SELECT min(digest) FROM purged)", "digests of 1 purge are missing"),
        ("DELETE FROM keys", "key"),
        ("UPDATE keys SET value = x'00'", "key"),
        ("UPDATE keys SET value = x''", "key"),
        ("UPDATE keys SET value = randomblob(32)", "key"),
    ],
)
def test_what_lets_purged_texts_come_back_is_said_by_doctor_and_status(changed, open_memory, statement, lost):
    memory = changed(statement)
    assert "no longer rejected" in memory.status().degraded
    assert not refused(memory, "an innocent text of some length", "innocent")
    for one in (memory, open_memory(origin="user")):  # a store does not hide it
        [problem] = [problem for problem in one.check() if problem.code == "purges_lost"]
        assert lost in problem.message and "no longer rejected" in problem.message
        assert "backup" in problem.fix


def test_receipts_that_are_gone_are_not_the_same_as_no_purge(changed):
    memory = changed("DELETE FROM receipts")
    assert problems(memory) == [("purges_lost", "ledger.db")]
    assert refused(memory)
    with pytest.raises(Damaged, match="something was purged"):
        memory.receipts()


def test_a_sign_without_a_ledger_says_that_something_was_purged(changed, home, open_memory):
    changed("SELECT 1").close()
    for path in home.glob("ledger.db*"):
        path.unlink()
    memory = open_memory(origin="user")
    [problem] = memory.check()
    assert problem.code == "purges_lost" and "ledger.purged" in problem.message
    with pytest.raises(Damaged):
        memory.receipts()
    memory.store("what must not come back ever", key="known")
    memory.purge("known")  # as the fix says
    assert memory.check() == []


def test_a_ledger_that_was_set_aside_is_named_with_all_that_went_with_it(changed, home, open_memory):
    changed("SELECT 1").close()
    (home / "ledger.db").write_bytes(b"garbage" * 1000)
    found = {problem.code: problem.message for problem in open_memory(origin="user").check()}
    assert set(found) == {"ledger", "purges_lost"}
    for word in ("receipts", "approvals", "agents, tokens", "the audit", "can still be read"):
        assert word in found["ledger"]


@pytest.mark.promise("N10")
def test_purging_again_taking_back_and_letting_pass_lose_nothing(memory, open_memory):
    line = "a line that two notes have, and that is long enough"
    memory.store(f"{TEXT}\n{line}", key="vault")
    memory.purge("vault")
    memory.store(f"{TEXT}\n{line}", key="vault", again=True)
    memory.purge("vault")
    memory.store(line, key="vault", again=True)
    memory.store(f"{line}\nmore of it stands here", key="second", again=True)
    memory.purge("second")
    memory.purge(text=TEXT)
    memory.purge(text=TEXT)
    memory.log([{"role": "user", "text": f"said: {line}", "id": "1"}], session="talk")
    memory.purge(session="talk")
    assert [problem for problem in open_memory(origin="user").check() if problem.code in ("purges_lost", "receipt")] == []
    assert open_memory(origin="user").status().degraded == ""


def test_a_receipt_from_before_digests_were_counted_is_sound_until_all_digests_are_gone(changed, open_memory, home):
    memory = changed("UPDATE receipts SET receipt = json_remove(receipt, '$.digests', '$.made_with')")
    assert memory.check() == []
    memory = changed("DELETE FROM purged")
    assert problems(memory) == [("purges_lost", "ledger.db")]
