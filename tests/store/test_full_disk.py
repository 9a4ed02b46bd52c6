"""A full disk: the advice of doctor and purge helps, and a purge that cannot finish does not start."""

from __future__ import annotations

import json
import os
import subprocess

import apsw
import pytest
from tiers import tiered

from holdfast import Busy, DiskTrouble, Memory, config
from holdfast.cli import main
from holdfast.errors import no_space
from holdfast.models import Problem
from holdfast.sqlite import translate_error
from holdfast.verbs.doctor import checks
from holdfast.verbs.purge.job import PurgeJob

ADVICE = "Free some space on the disk of {home}, then"


class Disk:
    """A small file system of its own, with a home on it."""

    def __init__(self, folder):
        self.folder, self.home = folder, folder / "home"
        self._fill = folder / "fill"

    def fill(self, left=0):
        """Fill the disk, except for this many bytes."""
        room = os.statvfs(self.folder)
        with open(self._fill, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, room.f_bavail * room.f_frsize - left)

    def free(self):
        self._fill.unlink()

    def open(self):
        settings = config.load(self.home).replace(lock_seconds=2)  # how long a purge tries
        return Memory(config=settings, project="demo", origin="user", cwd=self.folder)


@pytest.fixture
def disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        one = Disk(folder)
        with one.open() as memory:
            lorem = " lorem" * 40
            memory.store_many([{"text": f"Harbour words {number}." + lorem, "key": f"n{number}"} for number in range(30)])
            memory.recall("harbour", mode="keyword")
        yield one
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("left", tiered([0, 16 * 1024, 100 * 1024], fast=[0]))
@pytest.mark.parametrize("index", ["there", "gone"])
def test_doctor_says_of_a_full_disk_that_it_is_full_and_nothing_that_would_not_help(disk, index, left):
    for path in disk.home.glob("index.db*") if index == "gone" else ():
        path.unlink()
    for path in (disk.home / "shelf/projects/demo/notes").glob("n1*.md"):
        path.write_bytes(path.read_bytes() + b"More, by hand.\n")
    disk.fill(left)
    with disk.open() as memory:
        problems = memory.check()
    assert problems[0].code == "disk" and (left or len(problems) > 1)
    fix = f"{ADVICE.format(home=disk.home)} run `holdfast --home {disk.home} doctor` again"
    assert {problem.fix for problem in problems} == {fix}
    disk.free()
    with disk.open() as memory:
        assert {problem.code for problem in memory.check()} == {"disk"}  # eight MiB are not much


def test_a_ledger_that_a_full_disk_keeps_shut_is_told_once_with_what_helps(disk, capsys):
    words = ["--home", str(disk.home), "--project", "demo"]
    assert main([*words, "agent", "add", "bob", "--role", "operator"]) == 0
    for path in disk.home.glob("ledger.db-*"):
        path.unlink()  # it cannot be opened without them, and they cannot be created
    disk.fill()
    capsys.readouterr()
    assert main([*words, "doctor", "--json"]) == 1
    problems = json.loads(capsys.readouterr().out)["problems"]
    [told] = [problem for problem in problems if problem["path"] == "ledger.db"]
    fix = f"{ADVICE.format(home=disk.home)} run `holdfast --home {disk.home} doctor` again"
    assert (told["code"], told["fix"]) == ("ledger", fix)


def test_the_gateways_part_of_doctor_does_not_tell_of_a_full_disk_again(disk):
    disk.fill()
    with disk.open() as memory:
        found = memory.check()
    again = Problem("gateway", "ledger.db: disk I/O error", "Run it again", "ledger.db")
    assert "disk" in {problem.code for problem in found} and checks.merge_problems(found, [again]) == found
    disk.free()
    elsewhere = Problem("gateway", "a token", "Another", "tokens")
    assert checks.merge_problems([], [again, elsewhere]) == [again, elsewhere]


@pytest.mark.parametrize("left", tiered([0, 64 * 1024, 700 * 1024], fast=[0]))
def test_a_purge_that_the_disk_is_too_full_for_is_not_begun(disk, capsys, left):
    disk.fill(left)
    code = main(["--home", str(disk.home), "--project", "demo", "purge", "n1", "--yes"])
    said = capsys.readouterr()
    assert (code, said.out) == (5, "") and ADVICE.format(home=disk.home) in said.err
    with disk.open() as memory:
        assert memory.get("n1").text.startswith("Harbour words 1.") and memory.receipts() == []
    disk.free()
    with disk.open() as memory:
        assert memory.purge("n1").state == "done"


def test_a_purge_that_meets_a_full_disk_half_way_says_so_and_is_ended_by_running_it_again(disk, monkeypatch):
    scrub = PurgeJob.scrub

    def filled(*given):
        disk.fill()  # another process does, when the note is deleted already
        return scrub(*given)

    with monkeypatch.context() as patched:
        patched.setattr(PurgeJob, "scrub", filled)
        with disk.open() as memory, pytest.raises(DiskTrouble, match="the purge was started and is not complete") as caught:
            memory.purge("n1")
    assert ADVICE.format(home=disk.home) in caught.value.fix
    with disk.open() as memory:
        with pytest.raises(DiskTrouble, match="full") as again:  # not: no such note
            memory.purge("n1")
        assert ADVICE.format(home=disk.home) in again.value.fix
        told = [problem.fix for problem in memory.check() if problem.code == "purge"]
        assert told and all(ADVICE.format(home=disk.home) in fix for fix in told)
    disk.free()
    with disk.open() as memory:
        memory.purge("n1")
        assert [receipt.state for receipt in memory.receipts()] == ["done"]


def test_a_purge_that_was_cut_short_and_is_run_again_takes_the_note_out_of_files_that_show_a_briefing(
    open_memory, tmp_path, monkeypatch
):
    memory, shown = open_memory(origin="user"), tmp_path / "CLAUDE.md"
    memory.store("Harbour words of Aline.", key="aline")
    memory.store("Words of others.", key="others")
    memory.render(shown)
    assert "Aline" in shown.read_text()
    with monkeypatch.context() as patched:
        patched.setattr(PurgeJob, "scrub", _out_of_space)
        with pytest.raises(DiskTrouble):
            memory.purge("aline")
    memory.purge("aline")
    assert "Aline" not in shown.read_text() and [receipt.state for receipt in memory.receipts()] == ["done"]


def test_a_purge_that_was_cut_short_and_is_finished_by_a_check_shows_and_tells_nothing_of_the_note(
    open_memory, tmp_path, monkeypatch
):
    memory, shown, spoilt = open_memory(origin="user"), tmp_path / "CLAUDE.md", tmp_path / "SPOILT.md"
    text = "The words of the harbour that Aline left behind."
    memory.store(text, key="aline")
    memory.store("Words of others.", key="others")
    memory.render(shown)
    memory.render(spoilt)
    done = memory._context.ledger.done
    done.record("a", "call", f"Told: {text}", 1)
    done.record("a", "call", "something else", 2)
    with monkeypatch.context() as patched:
        patched.setattr(PurgeJob, "scrub", _out_of_space)
        with pytest.raises(DiskTrouble):
            memory.purge("aline")
    assert "Aline" in shown.read_text() and done.list()[0][1].subject == f"Told: {text}"
    spoilt.write_bytes(b"\xff" + spoilt.read_bytes())
    with monkeypatch.context() as patched:  # the rows that it removes before it is blocked again are recorded
        patched.setattr(type(memory._context.index), "scrub", _busy)
        assert [problem.code for problem in memory.check()] == ["purge"]
    assert [problem.code for problem in memory.check()] == []
    [receipt] = memory.receipts()
    assert receipt.state == "done" and f"rendered again: {shown}" in receipt.checks
    assert f"the block in {spoilt}, which cannot be written to" in receipt.beyond_reach
    assert "Aline" not in shown.read_text()
    assert receipt.usage_rows == 1 and "Aline" not in str(done.list())
    assert done.exists("a", "call", f"Told: {text}") and done.exists("a", "call", "something else")


def test_a_purge_of_a_note_that_is_gone_tells_which_files_may_still_show_it(open_memory, tmp_path, home, capsys):
    memory, shown = open_memory(origin="user"), tmp_path / "CLAUDE.md"
    memory.store("Harbour words of Aline.", key="aline")
    memory.store("Words of others.", key="others")
    memory.render(shown)
    (home / "shelf/projects/demo/notes/aline.md").unlink()  # by hand: the block still contains it
    theirs = shown.read_bytes()
    shown.write_bytes(b"\xff" + theirs)
    told = f"the block in {shown}, which cannot be written to"
    assert memory.purge("aline").beyond_reach == (told,)
    assert main(["--home", str(home), "--project", "demo", "purge", "aline", "--yes"]) == 1
    assert f"the text may remain in {told}" in capsys.readouterr().err
    shown.write_bytes(theirs)
    receipt = memory.purge("aline")
    assert (receipt.checks, receipt.beyond_reach) == ((f"rendered again: {shown}",), ()) and "Aline" not in shown.read_text()


def _busy(*_given, **_named):
    raise Busy("held")


def _out_of_space(*_given):
    raise no_space("full")


@pytest.mark.parametrize("error", [apsw.IOError("disk I/O error"), apsw.CantOpenError("cannot open"), apsw.FullError("full")])
def test_what_sqlite_says_of_a_full_disk_is_told_as_that(disk, error):
    disk.fill()
    told = translate_error(error, str(disk.home / "index.db"))
    assert isinstance(told, DiskTrouble) and told.full and ADVICE.format(home=disk.home) in told.fix
    disk.free()
    assert translate_error(apsw.IOError("disk I/O error"), str(disk.home / "index.db")).fix.startswith("Check the disk")
