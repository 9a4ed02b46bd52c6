"""The ledger: aliases, locations and usage in one file that any number of processes open at once."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from holdfast import config, sqlite
from holdfast.access import AccessGate
from holdfast.base.ids import FileId
from holdfast.errors import Busy, Damaged, DiskTrouble, Trouble
from holdfast.home import Lock
from holdfast.ledger import sqlite as room
from holdfast.ledger import usage
from holdfast.ledger.done import NEW, TAKEN
from holdfast.ledger.file_sources import FileSource, FileVersion, digest_path
from holdfast.ledger.projects import Location
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.ledger.transfer import TABLES
from holdfast.models import Source

NOW = 1_800_000_000


@pytest.fixture
def home(tmp_path):
    return str(tmp_path / "home")


@pytest.fixture
def ledger(home):
    ledger = SqliteLedger(home, lock_seconds=5)
    yield ledger
    ledger.close()


def files_of(home):
    return sorted(name for name in os.listdir(home) if name.startswith("ledger.db"))


def set_aside(home):
    return [name for name in files_of(home) if "damaged" in name and not name.endswith(("-wal", "-shm"))]


def run_python(code, *args, stdin=None):
    return subprocess.Popen(
        [sys.executable, "-c", code, *args], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


# ── SQL by name ──


def test_statements_are_found_by_name_in_the_file_beside_the_module(tmp_path):
    text = "-- about it all\n\n-- name: one\nSELECT 1; -- why\n\n-- name: two\nSELECT\n  2;\n"
    (tmp_path / "room.sql").write_text(text)
    assert sqlite.load_statements(str(tmp_path / "room.py")) == {"one": "SELECT 1; -- why", "two": "SELECT\n  2;"}


def test_every_statement_of_the_ledger_is_used_and_every_used_one_is_there():
    source = "".join([path.read_text(encoding="utf-8") for path in sorted(Path(room.__file__).parent.glob("*.py"))])
    by_table = {f"transfer.{prefix}{table.name}" for table in TABLES for prefix in ("", "add_")}
    any_agent = {name for name in room.SQL if name.endswith("_any")}
    assert [name for name in set(room.SQL) - by_table - any_agent if f'"{name}"' not in source] == []
    assert by_table <= set(room.SQL) and all(f'"{name.removesuffix("_any")}"' in source for name in any_agent)


# ── opening ──


def test_making_a_ledger_object_touches_nothing(tmp_path):
    SqliteLedger(str(tmp_path / "home"))
    assert list(tmp_path.iterdir()) == []


def test_reads_on_an_absent_home_answer_empty_and_make_nothing(ledger, tmp_path):
    assert ledger.projects.find_project("a") is None
    assert ledger.projects.find_location("a") is None
    assert ledger.usage.get_counts(["a"]) == {}
    assert ledger.usage.forget(["a"]) == 0
    ledger.scrub()
    assert ledger.problem is None
    assert list(tmp_path.iterdir()) == []


def test_everything_it_makes_is_private(ledger, home):
    ledger.projects.link("a", "b")
    assert stat.S_IMODE(os.stat(home).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(f"{home}/run").st_mode) == 0o700
    for name in [*files_of(home), "run/locks/ledger.db.lock"]:
        assert stat.S_IMODE(os.stat(f"{home}/{name}").st_mode) == 0o600, name


def test_the_file_says_what_it_is_and_keeps_a_write_ahead_log(ledger, home):
    ledger.projects.link("a", "b")
    db = apsw.Connection(f"{home}/ledger.db")
    assert db.pragma("application_id") == int.from_bytes(b"HofL", "big")
    assert db.pragma("user_version") == 9
    assert db.pragma("journal_mode") == "wal"
    db.close()


def test_what_was_written_is_there_after_reopening(ledger, home):
    ledger.projects.link("a", "b")
    ledger.projects.put_location("m", "n", "/somewhere")
    ledger.close()
    again = SqliteLedger(home)
    assert again.projects.find_project("a") == "b"
    assert again.projects.find_location("m") == Location("m", "n", "/somewhere")
    again.close()


def test_a_closed_ledger_opens_again_when_asked(ledger):
    ledger.projects.link("a", "b")
    ledger.close()
    assert ledger.projects.find_project("a") == "b"


RACE = """
import sys
from holdfast.ledger.sqlite import SqliteLedger
home, me = sys.argv[1:]
sys.stdin.readline()
ledger = SqliteLedger(home)
ledger.projects.link("shared", "project-" + me)
ledger.projects.link("alias-" + me, "project-x")
ledger.usage.record_use(["note", "note-" + me], 1_800_000_000)
print(ledger.projects.find_project("shared"), ledger.problem)
ledger.close()
"""


@pytest.mark.battery
def test_thirty_two_processes_open_an_empty_home_at_once(tmp_path):
    for round in range(2):
        home = str(tmp_path / f"home{round}")
        crowd = [run_python(RACE, home, str(number), stdin=subprocess.PIPE) for number in range(32)]
        for process in crowd:  # all are started before any continues
            process.stdin.write("go\n")
            process.stdin.flush()
        results = [process.communicate(timeout=120) for process in crowd]
        assert [err for _, err in results if err] == []
        assert len({out for out, _ in results}) == 1  # the first writer won, and every process sees that
        ledger = SqliteLedger(home)
        assert [ledger.projects.find_project(f"alias-{number}") for number in range(32)] == ["project-x"] * 32
        assert ledger.usage.get_counts(["note", *(f"note-{number}" for number in range(32))]) == {
            "note": 1,
            **{f"note-{number}": 1 for number in range(32)},
        }
        assert set_aside(home) == []
        ledger.close()


@pytest.mark.disk
def test_a_process_killed_while_making_the_ledger_leaves_nothing_in_the_way(home):
    code = """
import os, signal, sys
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.ledger import sqlite as room
room.SQL["schema"] = "SELECT die()"
tune = room._LedgerFile._tune
def deadly(self, db):
    tune(self, db)
    db.create_scalar_function("die", lambda: os.kill(os.getpid(), signal.SIGKILL))
room._LedgerFile._tune = deadly
SqliteLedger(sys.argv[1]).projects.link("a", "b")
"""
    process = run_python(code, home)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    ledger = SqliteLedger(home, lock_seconds=5)
    assert ledger.projects.find_project("a") is None
    ledger.projects.link("a", "b")
    assert ledger.projects.find_project("a") == "b"
    assert set_aside(home) == []
    ledger.close()


def test_a_maker_that_never_finishes_is_named_busy(home):
    import fcntl

    os.makedirs(f"{home}/run/locks")
    holder = os.open(f"{home}/run/locks/ledger.db.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(holder, fcntl.LOCK_EX)
    with pytest.raises(Busy):
        SqliteLedger(home, lock_seconds=0.05).projects.link("a", "b")
    os.close(holder)
    assert not os.path.exists(f"{home}/ledger.db")


def test_a_writer_that_holds_the_file_too_long_is_named_busy(ledger, home):
    ledger.projects.link("a", "b")
    other = apsw.Connection(f"{home}/ledger.db")
    other.execute("BEGIN IMMEDIATE")
    hurried = SqliteLedger(home, lock_seconds=0.05)
    with pytest.raises(Busy):
        hurried.projects.link("c", "d")
    assert hurried.projects.find_project("a") == "b"  # readers do not wait
    other.execute("ROLLBACK")
    other.close()
    hurried.projects.link("c", "d")
    assert hurried.projects.find_project("c") == "d"
    hurried.close()


# ── damage ──


def damage(path, how):
    if how == "garbage":
        path.write_bytes(os.urandom(9000))
    elif how == "text":
        path.write_text("these are not the rows you are looking for\n" * 300)
    elif how == "truncated":
        os.truncate(path, 5000)
    elif how == "overwritten":
        with open(path, "r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * (path.stat().st_size - 4096))
    elif how == "foreign":
        path.unlink()
        db = apsw.Connection(str(path))
        db.execute("CREATE TABLE theirs (x); INSERT INTO theirs VALUES ('treasure')").fetchall()
        db.close()
    elif how == "tables gone":
        db = apsw.Connection(str(path))
        db.execute("DROP TABLE links").fetchall()
        db.close()
    elif how == "symlink":
        path.rename(path.parent.parent / "elsewhere.db")
        path.symlink_to(path.parent.parent / "elsewhere.db")
    elif how == "pipe":
        path.unlink()
        os.mkfifo(path)
    elif how == "folder":
        path.unlink()
        path.mkdir()


WAYS = ["garbage", "text", "truncated", "overwritten", "foreign", "tables gone", "symlink", "pipe", "folder"]


def damaged_home(home, how):
    ledger = SqliteLedger(home)
    for number in range(60):
        ledger.projects.put_location(f"place-{number}", "nonce", "/some/where/" * 20)
    ledger.scrub()
    ledger.close()
    for suffix in ("-wal", "-shm"):
        Path(f"{home}/ledger.db{suffix}").unlink(missing_ok=True)
    damage(Path(home, "ledger.db"), how)
    return os.lstat(f"{home}/ledger.db").st_ino


@pytest.mark.parametrize("how", WAYS)
def test_a_damaged_ledger_is_set_aside_and_reported_and_writing_goes_on(home, how):
    inode = damaged_home(home, how)
    ledger = SqliteLedger(home, lock_seconds=5)
    ledger.projects.link("a", "b")
    for number in range(60):
        ledger.projects.put_location(f"place-{number}", "new", "/new")
    assert ledger.projects.find_project("a") == "b"
    (aside,) = set_aside(home)
    assert os.lstat(f"{home}/{aside}").st_ino == inode  # the same file: moved, neither copied nor deleted
    assert aside in ledger.problem
    assert aside in SqliteLedger(home).problem  # and later readers get the message as well
    ledger.close()


@pytest.mark.parametrize("how", [how for how in WAYS if how != "tables gone"])
def test_reading_a_damaged_ledger_answers_empty(home, how):
    damaged_home(home, how)
    ledger = SqliteLedger(home, lock_seconds=5)
    answers = [ledger.projects.find_location(f"place-{number}") for number in range(60)]
    assert {answer and (answer.nonce, answer.path) for answer in answers} <= {None, ("nonce", "/some/where/" * 20)}
    assert answers[-1] is None
    assert len(set_aside(home)) == 1
    ledger.close()


@pytest.mark.promise("A6")
@pytest.mark.parametrize("how", [how for how in WAYS if how != "tables gone"])
def test_what_a_damaged_ledger_knew_as_done_is_never_said_to_be_undone(home, how):
    ledger = SqliteLedger(home)
    for number in range(60):
        ledger.done.record("a", "kind", f"subject-{number}", NOW)
    ledger.close()
    damaged_home(home, how)
    asked = [
        SqliteLedger(home, lock_seconds=5),
        SqliteLedger(home, lock_seconds=5),
    ]  # the process that finds the damage, and a later one
    for one in asked:
        for number in range(60):
            try:
                assert one.done.exists("a", "kind", f"subject-{number}") is True
            except (Damaged, DiskTrouble):
                pass
    for one in asked:
        with pytest.raises(Damaged, match="moved aside"):
            one.done.record("a", "kind", "another", NOW)
        with pytest.raises(Damaged, match="moved aside"):
            one.done.exists("a", "kind", "another")
    for name in files_of(home):  # as `holdfast doctor` says
        if "damaged" in name:
            os.rename(f"{home}/{name}", f"{home}/taken-away-{name}")
    for one in asked:
        assert one.done.exists("a", "kind", "another") is False
        one.close()


@pytest.mark.promise("A6")
@pytest.mark.parametrize(
    "ask",
    [
        lambda ledger: ledger.done.exists("a", "kind", "subject"),
        lambda ledger: ledger.done.record("a", "kind", "subject", NOW),
        lambda ledger: ledger.reviews.exists("a", "o", "r", 7),
        lambda ledger: ledger.reviews.claim("a", "o", "r", 7, holder="holder", now=NOW),
        lambda ledger: ledger.idempotency_keys.begin("a", "key", "digest", NOW),
        lambda ledger: ledger.agents.find_tokens(["id"]),
    ],
    ids=["done", "record", "review", "claim", "key", "token"],
)
def test_a_question_that_meets_the_damage_is_not_asked_of_the_new_ledger(home, ask):
    ledger = SqliteLedger(home, lock_seconds=5)
    ledger.projects.link("a", "b")
    stranger = apsw.Connection(f"{home}/ledger.db")
    for table in ("done", "reviewed_prs", "claims", "idempotency", "tokens"):
        stranger.execute(f"DROP TABLE {table}").fetchall()
    stranger.close()
    with pytest.raises(Damaged, match="moved aside"):
        ask(ledger)
    assert len(set_aside(home)) == 1
    ledger.close()


def test_a_claim_is_not_given_away_right_after_the_ledger_was_lost(home):
    damaged_home(home, "garbage")
    ledger = SqliteLedger(home, lock_seconds=5)
    now = int(time.time())
    assert ledger.reviews.claim("a", "o", "r", 7, holder="holder", now=now) == TAKEN
    assert ledger.reviews.claim("a", "o", "r", 7, holder="holder", now=now + 200) == NEW
    ledger.close()


def test_two_damaged_ledgers_in_one_second_are_both_kept(home):
    for _ in range(3):
        damaged_home(home, "garbage")
        ledger = SqliteLedger(home)
        ledger.projects.link("a", "b")
        ledger.close()
    assert len(set_aside(home)) == 3


def test_the_log_of_a_damaged_ledger_goes_with_it(home):
    ledger = SqliteLedger(home)
    ledger.usage.record_use(["a"], NOW)
    ledger.scrub()
    ledger.usage.record_use(["b"], NOW)
    ledger.close()
    Path(home, "ledger.db").write_bytes(b"x" * 8192)
    log = Path(home, "ledger.db-wal").read_bytes()
    assert log
    ledger = SqliteLedger(home)
    ledger.projects.link("a", "b")
    (aside,) = set_aside(home)
    assert Path(home, aside + "-wal").read_bytes() == log
    assert ledger.usage.get_counts(["a"]) == {}
    ledger.close()


def test_an_open_ledger_notices_that_its_file_was_replaced(ledger, home):
    ledger.projects.link("a", "b")
    for name in files_of(home):
        os.rename(f"{home}/{name}", f"{home}/old-{name}")
    assert ledger.projects.find_project("a") is None
    ledger.projects.link("a", "c")
    other = SqliteLedger(home)
    assert other.projects.find_project("a") == "c"
    other.close()


def test_a_ledger_from_a_newer_holdfast_is_left_alone(ledger, home):
    ledger.projects.link("a", "b")
    ledger.close()
    db = apsw.Connection(f"{home}/ledger.db")
    db.execute("PRAGMA user_version = 99").fetchall()
    db.close()
    with pytest.raises(Trouble, match="newer"):
        ledger.projects.find_project("a")
    with pytest.raises(Trouble, match="newer"):
        ledger.projects.link("c", "d")
    assert set_aside(home) == []


def test_each_error_of_sqlite_becomes_one_of_ours():
    kinds = {
        apsw.BusyError: Busy,
        apsw.LockedError: Busy,
        apsw.FullError: DiskTrouble,
        apsw.IOError: DiskTrouble,
        apsw.ReadOnlyError: DiskTrouble,
        apsw.CantOpenError: DiskTrouble,
        apsw.CorruptError: Damaged,
        apsw.NotADBError: Damaged,
        apsw.SQLError: Damaged,
    }
    for theirs, ours in kinds.items():
        made = sqlite.translate_error(theirs("what it said"), "ledger.db")
        assert type(made) is ours
        assert "what it said" in made.message
        assert made.fix


# ── a home that cannot be written to ──


@pytest.fixture
def open_place():
    """A folder that another user can reach, unlike pytest's own folders."""
    place = Path(tempfile.mkdtemp(prefix="holdfast-test-"))
    place.chmod(0o755)
    yield place
    for folder in [place, *place.rglob("*")]:
        if folder.is_dir():
            folder.chmod(0o755)
    shutil.rmtree(place)


READ_ONLY = """
import apsw, fcntl, os, sys
from holdfast.errors import DiskTrouble
from holdfast.ledger.sqlite import SqliteLedger
if os.getuid() == 0:  # for whom nothing is read-only
    os.setgid(65534)
    os.setuid(65534)
ledger = SqliteLedger(sys.argv[1])
print(ledger.projects.find_project("a"), ledger.projects.find_location("m"), ledger.usage.get_counts(["x"]))
for write in (
    lambda: ledger.projects.link("c", "d"), lambda: ledger.projects.put_location("p", "n", "/"),
    lambda: ledger.usage.record_use(["x"], 0),
):
    try:
        write()
    except DiskTrouble as error:
        print(type(error).__name__, bool(error.fix))
print(ledger.projects.find_project("a"), ledger.projects.find_project("c"))
"""


def read_only(home):
    for path in [*Path(home).rglob("*"), Path(home)]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def test_a_read_only_home_without_a_ledger_reads_empty_and_refuses_writes(open_place):
    home = open_place / "home"
    home.mkdir()
    read_only(home)
    out, err = run_python(READ_ONLY, str(home)).communicate(timeout=60)
    assert err == ""
    assert out.splitlines() == ["None None {}", *["DiskTrouble True"] * 3, "None None"]


@pytest.mark.parametrize("log_is_there", [True, False])
def test_a_read_only_home_with_a_ledger_still_tells_what_it_knows(open_place, log_is_there):
    home = open_place / "a home? 100%#"
    ledger = SqliteLedger(str(home))
    ledger.projects.link("a", "b")
    ledger.projects.put_location("m", "n", "/p")
    ledger.close()
    if not log_is_there:
        (home / "ledger.db-wal").unlink()
        (home / "ledger.db-shm").unlink()
    read_only(home)
    out, err = run_python(READ_ONLY, str(home)).communicate(timeout=60)
    assert err == ""
    assert out.splitlines() == ["b Location(id='m', nonce='n', path='/p') {}", *["DiskTrouble True"] * 3, "b None"]


@pytest.mark.parametrize("version", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("log_is_there", [True, False])
def test_a_read_only_home_with_a_ledger_of_a_version_before_tells_what_it_knows(open_place, log_is_there, version):
    home = open_place / "home"
    ledger = SqliteLedger(str(home))
    ledger.projects.link("a", "b")
    ledger.projects.put_location("m", "n", "/p")
    ledger.close()
    as_version(home, version)
    if not log_is_there:
        for suffix in ("-wal", "-shm"):
            (home / f"ledger.db{suffix}").unlink(missing_ok=True)
    read_only(home)
    code = "import holdfast.ledger.file_sources\n" + READ_ONLY  # imported by who may read the standard library
    code += 'print(ledger.sessions.list_shown("s"), ledger.file_sources.list(), ledger.problem)'
    out, err = run_python(code, str(home)).communicate(timeout=60)
    assert err == ""
    first, last = "b Location(id='m', nonce='n', path='/p') {}", "{} [] None"
    assert out.splitlines() == [first, *["DiskTrouble True"] * 3, "b None", last]


def test_bringing_a_ledger_up_to_date_is_all_or_nothing_and_waits_for_whoever_makes_one(ledger, home):
    ledger.projects.link("a", "b")
    ledger.close()
    as_version(home, 1)
    with Lock(str(home), "ledger.db", 1), pytest.raises(Busy):
        SqliteLedger(str(home), lock_seconds=0.1).projects.link("c", "d")
    ledger.projects.link("c", "d")
    assert (ledger.projects.find_project("a"), ledger.projects.find_project("c")) == ("b", "d")
    ledger.close()
    as_version(home, 1)
    db = apsw.Connection(os.path.join(home, "ledger.db"))
    db.execute("CREATE TABLE prompts (in_the_way)").fetchall()  # so that it fails in the middle
    db.close()
    ledger.projects.link("e", "f")
    assert ledger.projects.find_project("e") == "f"
    (aside,) = [name for name in os.listdir(home) if ".damaged-" in name and name[-4:] not in ("-wal", "-shm")]
    db = apsw.Connection(os.path.join(home, aside))
    assert db.execute("SELECT name FROM sqlite_schema WHERE name = 'told'").fetchall() == []
    assert db.execute("SELECT count(*) FROM links").fetchall() == [(2,)]
    db.close()


NEW_IN = {
    2: ("told", "prompts"),
    3: ("briefed", "decisions", "receipts", "purged", "keys"),
    4: ("tokens", "agents", "audit", "audit_head", "done", "reviewed_prs", "claims", "idempotency"),
    5: ("grants",),
    6: ("request_count",),
    7: ("audit_checkpoint", "audit_shipped"),
    8: ("file_sources",),
    9: ("web_sessions", "sign_in_codes"),
}


def as_version(home, version):
    db = apsw.Connection(os.path.join(home, "ledger.db"))
    newer = [table for since, tables in reversed(NEW_IN.items()) if since > version for table in tables]
    db.execute("".join(f"DROP TABLE {table};" for table in newer)).fetchall()
    db.execute(f"PRAGMA user_version = {version}; PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.close()


@pytest.mark.parametrize("version", [1, 2, 3, 4, 7])
def test_a_ledger_of_a_version_before_is_brought_up_with_all_it_has(ledger, home, version):
    from holdfast.ledger.audit import Decision
    from holdfast.ledger.audit_verify import verify

    ledger.projects.link("a", "b")
    ledger.close()
    as_version(home, version)
    ledger.audit.append(Decision("agent", "dispatch", "allowed", {"role": "r"}))
    assert ledger.done.record("agent", "kind", "subject", NOW)
    assert (ledger.projects.find_project("a"), ledger.agents.list(), verify(ledger.audit).rows) == ("b", [], 1)
    assert set_aside(home) == []


def test_a_ledger_from_before_there_were_writers_of_files_learns_them(ledger, home):
    ledger.projects.link("a", "b")
    ledger.close()
    as_version(home, 7)
    file = FileVersion("global", "a.md", FileId(2**64 - 1, 5, 7))
    written = FileSource(file.scope, digest_path(file.path), file.file_id, Source("agent", "mallory"), NOW)
    assert ledger.file_sources.find([file]) == [None]
    ledger.file_sources.record([written])
    assert ledger.file_sources.list() == [written] and ledger.projects.find_project("a") == "b"
    others = [file.replace(path="b.md"), file.replace(scope="x"), file.replace(file_id=FileId(1, 5, 7))]
    assert ledger.file_sources.find([*others, file]) == [None, None, None, written]
    assert set_aside(home) == []


def test_agents_from_before_there_were_grants_go_on_and_new_ones_have_none(home):
    settings = config.load(home)
    with closing(AccessGate(settings)) as gate:
        for name, role in (("old", "secretary"), ("chief", "operator")):
            gate.add(name, role)
    as_version(home, 4)
    with closing(AccessGate(settings)) as gate:
        _, token = gate.add("new", "secretary")
        kept = {agent.name: [(grant.kind, grant.pattern) for grant in agent.grants] for agent in gate.agents()}
        assert kept == {"old": [("project", "*"), ("repository", "*/*"), ("session", "*")], "chief": [], "new": []}
        assert gate.identify(token).grants == ()
    assert set_aside(home) == []


def test_a_home_that_is_a_file_is_trouble_with_a_name(tmp_path):
    (tmp_path / "home").write_text("not a folder")
    ledger = SqliteLedger(str(tmp_path / "home"))
    assert ledger.projects.find_project("a") is None
    with pytest.raises(Trouble):
        ledger.projects.link("a", "b")


# ── links and locations ──


@pytest.mark.promise("P2")
def test_a_link_leads_from_an_alias_to_its_project(ledger):
    ledger.projects.link("old", "new")
    assert ledger.projects.find_project("old") == "new"
    assert ledger.projects.find_project("new") is None


@pytest.mark.promise("P2")
def test_the_first_writer_of_a_link_wins(ledger):
    ledger.projects.link("old", "first")
    ledger.projects.link("old", "second")
    ledger.projects.link("old", "first")
    assert ledger.projects.find_project("old") == "first"


def test_a_link_can_be_changed_by_who_names_what_it_says(ledger):
    ledger.projects.link("old", "first")
    ledger.projects.link("old", "second", instead="something else")
    assert ledger.projects.find_project("old") == "first"
    ledger.projects.link("old", "second", instead="first")
    assert ledger.projects.find_project("old") == "second"


def test_a_chain_of_links_is_always_one_step_long(ledger):
    ledger.projects.link("a", "b")
    ledger.projects.link("b", "c")
    assert ledger.projects.find_project("a") == "c"
    ledger.projects.link("z", "a")
    assert ledger.projects.find_project("z") == "c"


def test_links_never_make_a_circle(ledger):
    ledger.projects.link("a", "a")
    assert ledger.projects.find_project("a") is None
    ledger.projects.link("a", "b")
    ledger.projects.link("b", "a")
    assert ledger.projects.find_project("a") == "b"
    assert ledger.projects.find_project("b") is None


@pytest.mark.promise("P3")
def test_a_place_is_what_was_last_put_even_if_it_is_not_text(ledger):
    ledger.projects.put_location("m", "n", "/one")
    assert ledger.projects.find_location("m") == Location("m", "n", "/one")
    odd = os.fsdecode(b"/two/\xff\xfe")
    ledger.projects.put_location("m", "n2", odd)
    assert ledger.projects.find_location("m") == Location("m", "n2", odd)


def test_links_and_places_are_in_the_main_file_when_the_call_returns(ledger, home, tmp_path):
    ledger.projects.link("a", "b")
    ledger.projects.put_location("m", "n", "/p")
    shutil.copy(f"{home}/ledger.db", tmp_path / "copy.db")
    db = apsw.Connection(str(tmp_path / "copy.db"))
    assert db.execute("SELECT project FROM links").fetchall() == [("b",)]
    assert db.execute("SELECT nonce, path FROM places").fetchall() == [("n", b"/p")]
    db.close()


# ── usage ──


@pytest.mark.promise("N9")
def test_a_note_counts_at_most_once_a_minute(ledger, home):
    ledger.usage.record_use(["a", "b", "a"], NOW)
    ledger.usage.record_use(["a"], NOW + 59)
    assert ledger.usage.get_counts(["a", "b", "c"]) == {"a": 1, "b": 1}
    ledger.usage.record_use(["a"], NOW + 60)
    assert ledger.usage.get_counts(["a", "b"]) == {"a": 2, "b": 1}


@pytest.mark.promise("N9")
def test_the_minute_holds_between_processes(ledger, home):
    ledger.usage.record_use(["a"], NOW)
    other = SqliteLedger(home)
    other.usage.record_use(["a", "b"], NOW + 30)
    other.usage.record_use(["a"], NOW + 61)
    assert ledger.usage.get_counts(["a", "b"]) == {"a": 2, "b": 1}
    other.close()


@pytest.mark.promise("N9")
def test_within_the_minute_the_file_is_not_touched_again(ledger, home):
    ledger.usage.record_use(["a"], NOW)
    ledger.close()
    for name in files_of(home):
        os.unlink(f"{home}/{name}")
    ledger.usage.record_use(["a"], NOW + 30)
    assert files_of(home) == []


@pytest.mark.promise("N9")
def test_a_count_that_fails_can_be_made_up_for(ledger, home):
    ledger.projects.link("x", "y")
    other = apsw.Connection(f"{home}/ledger.db")
    other.execute("BEGIN IMMEDIATE")
    hurried = SqliteLedger(home, lock_seconds=0.05)
    with pytest.raises(Busy):
        hurried.usage.record_use(["a"], NOW)
    other.execute("ROLLBACK")
    other.close()
    hurried.usage.record_use(["a"], NOW)
    assert hurried.usage.get_counts(["a"]) == {"a": 1}
    hurried.close()


def test_a_clock_that_went_back_does_not_stop_the_count(ledger):
    ledger.usage.record_use(["a"], NOW)
    ledger.usage.record_use(["a"], NOW - 3600)
    assert ledger.usage.get_counts(["a"]) == {"a": 2}


def test_counting_very_many_notes_keeps_its_own_memory_small(ledger):
    ids = [f"note-{number}" for number in range(usage._MAX_CACHED + 5)]
    ledger.usage.record_use(ids[:-5], NOW)
    ledger.usage.record_use(ids[-5:], NOW)
    assert len(ledger.usage._counted) == 5
    ledger.usage.record_use(ids, NOW + 1)
    assert set(ledger.usage.get_counts(ids).values()) == {1}


@pytest.mark.promise("N10")
def test_forgetting_removes_the_rows_and_says_how_many(ledger):
    ledger.usage.record_use(["a", "b", "c"], NOW)
    assert ledger.usage.forget(["a", "b", "nobody"]) == 2
    assert ledger.usage.get_counts(["a", "b", "c"]) == {"c": 1}
    assert ledger.usage.forget(["a"]) == 0
    ledger.usage.record_use(["a"], NOW + 1)  # a new use, not within the minute of the old one
    assert ledger.usage.get_counts(["a"]) == {"a": 1}


@pytest.mark.promise("N10")
def test_after_a_scrub_no_byte_of_a_forgotten_id_is_left(ledger, home):
    ids = [f"conspicuous-{number:04}" for number in range(500)]
    ledger.usage.record_use(ids, NOW)
    ledger.usage.record_use(["keep"], NOW)
    ledger.scrub()
    assert b"conspicuous-" in b"".join(Path(home, name).read_bytes() for name in files_of(home))
    assert ledger.usage.forget(ids) == 500
    ledger.scrub()
    assert b"conspicuous-" not in b"".join(Path(home, name).read_bytes() for name in files_of(home))
    assert os.path.getsize(f"{home}/ledger.db-wal") == 0
    assert ledger.usage.get_counts(["keep"]) == {"keep": 1}


@pytest.mark.promise("N10")
def test_a_scrub_that_a_reader_holds_up_says_so(ledger, home):
    ledger.usage.record_use(["a"], NOW)
    reader = apsw.Connection(f"{home}/ledger.db")
    reader.execute("BEGIN; SELECT * FROM usage").fetchall()
    hurried = SqliteLedger(home, lock_seconds=0.05)
    hurried.usage.forget(["a"])
    with pytest.raises(Busy):
        hurried.scrub()
    reader.close()
    hurried.scrub()
    hurried.close()


# ── threads and forks ──


def test_many_threads_share_one_ledger(ledger):
    def work(me):
        for number in range(20):
            ledger.projects.link(f"alias-{me}-{number}", "p")
            ledger.usage.record_use([f"note-{me}-{number}", "shared"], NOW)
            assert ledger.projects.find_project(f"alias-{me}-{number}") == "p"

    threads = [threading.Thread(target=work, args=(me,)) for me in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = [f"note-{me}-{number}" for me in range(8) for number in range(20)]
    assert ledger.usage.get_counts([*ids, "shared"]) == dict.fromkeys([*ids, "shared"], 1)


FORK = """
import os, sys, threading
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.ledger import sqlite as room
ledger = SqliteLedger(sys.argv[1])
ledger.projects.link("before", "p")
assert ledger.database.file._db is not None
stop = threading.Event()
def busy():
    number = 0
    while not stop.is_set():
        ledger.projects.link(f"thread-{number}", "p")
        number += 1
worker = threading.Thread(target=busy)
worker.start()
for child in range(10):
    pid = os.fork()
    if pid == 0:
        try:
            assert ledger.database.file._db is None
            assert ledger.projects.find_project("before") == "p"
            ledger.projects.link(f"child-{child}", "p")
            ledger.close()
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    ledger.projects.link(f"parent-{child}", "p")
    assert os.waitpid(pid, 0)[1] == 0
stop.set()
worker.join()
assert all(ledger.projects.find_project(f"{who}-{n}") == "p" for who in ("child", "parent") for n in range(10))
ledger.close()
print("fine", ledger.problem)
"""


def test_a_fork_carries_no_connection_and_both_sides_go_on(home):
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", FORK, home], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    out, err = process.communicate(timeout=120)
    assert (out.strip(), err) == ("fine None", "")


def test_a_ledger_that_is_gone_is_not_remembered(home):
    ledger = SqliteLedger(home)
    ledger.projects.link("a", "b")
    before = len(sqlite.databases)
    del ledger
    assert len(sqlite.databases) == before - 1


# --- requests that are done once --------------------------------------------------------------------------------------------

BEGINS = """
import sys, time
from holdfast.ledger.sqlite import SqliteLedger
ledger = SqliteLedger(sys.argv[1], lock_seconds=5)
for key in sys.argv[3:]:
    assert ledger.idempotency_keys.begin("a", key, "digest", int(sys.argv[2])) is None
print("begun", flush=True)
sys.stdin.read()
"""


def start_requests(home, *keys):
    """A process that started requests with these keys."""
    words = [sys.executable, "-c", BEGINS, home, str(NOW), *keys]
    doer = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert doer.stdout.readline() == "begun\n"
    return doer


@pytest.mark.promise("A6")
def test_requests_whose_process_was_killed_may_be_done_again_at_once_and_not_before(home, ledger):
    with start_requests(home, "one", "two") as doer:
        with pytest.raises(Busy, match="in progress"):
            ledger.idempotency_keys.begin("a", "one", "digest", NOW + 1)
        doer.kill()
    for key in ("one", "two"):
        assert ledger.idempotency_keys.begin("a", key, "digest", NOW + 2) is None
        with pytest.raises(Busy, match="in progress"):  # because it is ours now, and this process is alive
            ledger.idempotency_keys.begin("a", key, "digest", NOW + 3)
    ledger.idempotency_keys.finish("a", "one", "digest", status=201, answer="{}")
    assert ledger.idempotency_keys.begin("a", "one", "digest", NOW + 4).status == 201


@pytest.mark.promise("A6")
def test_a_process_that_starts_after_another_was_killed_may_do_its_requests(home):
    with start_requests(home, "one") as doer:
        doer.kill()
    with start_requests(home, "one") as next_one:  # which would raise Busy
        next_one.kill()


def test_signs_of_the_long_dead_are_swept(home, ledger):
    with start_requests(home, "one") as doer:
        doer.kill()
    (left,) = [name for name in os.listdir(f"{home}/run/locks") if name.startswith("alive+")]
    os.utime(f"{home}/run/locks/{left}", (NOW, NOW - 10**9))
    with start_requests(home, "two") as other:
        assert left not in os.listdir(f"{home}/run/locks")
        other.kill()


def test_a_child_does_not_keep_its_parents_sign(home):
    program = """
import os, sys
from holdfast.ledger import idempotency
idempotency.process_name(sys.argv[1])
if os.fork() == 0:
    idempotency.process_name(sys.argv[1])
    print("there", flush=True)
    sys.stdin.read()
    os._exit(0)
os._exit(0)
"""
    parent = subprocess.Popen([sys.executable, "-c", program, home], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    from holdfast.ledger import idempotency

    with parent:
        assert parent.stdout.readline() == "there\n"
        parent.wait(30)
        signs = [name.removesuffix(".lock") for name in os.listdir(f"{home}/run/locks")]
        assert sorted(idempotency.has_ended(home, name) for name in signs) == [False, True]


def test_a_process_whose_sign_was_taken_away_is_not_taken_for_dead(home, ledger):
    ledger.idempotency_keys.begin("a", "key", "digest", NOW)
    for name in os.listdir(f"{home}/run/locks"):
        os.unlink(f"{home}/run/locks/{name}")
    with pytest.raises(Busy, match="in progress"):
        ledger.idempotency_keys.begin("a", "key", "digest", NOW + 119)
    assert ledger.idempotency_keys.begin("a", "key", "digest", NOW + 121) is None


@pytest.mark.parametrize("name", ["", "alive", "../../alive+1-000000000000", "alive+1-00000000000g", "projects+bench"])
def test_nothing_but_a_sign_is_taken_for_one(home, ledger, name):
    from holdfast.ledger import idempotency

    ledger.idempotency_keys.begin("a", "key", "digest", NOW)
    before = sorted(os.listdir(f"{home}/run/locks"))
    assert idempotency.has_ended(home, name) is False
    assert sorted(os.listdir(f"{home}/run/locks")) == before


def test_deferred_uses_are_written_together_and_before_anything_is_read(ledger, home):
    ledger.usage.record_use(["a"], NOW)
    ledger.usage.defer()
    ledger.usage.record_use(["a", "b"], NOW + 61)
    ledger.usage.record_use(["b", "c"], NOW + 62)  # b was used within this minute
    other = SqliteLedger(home, lock_seconds=5)
    assert other.usage.get_counts(["a", "b", "c"]) == {"a": 1}
    assert ledger.usage.get_counts(["a", "b", "c"]) == {"a": 2, "b": 1, "c": 1}
    assert other.usage.get_counts(["a", "b", "c"]) == {"a": 2, "b": 1, "c": 1}
    ledger.usage.record_use(["d", "e"], NOW + 63)
    assert ledger.usage.forget(["d"]) == 1
    ledger.close()
    assert other.usage.last_used(["d", "e"]) == {"e": NOW + 63}
    other.close()
