"""Folders and files of a home that its user may not use: doctor names each with its fix, and checks the rest."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = os.geteuid() == 0
ME = 65534 if ROOT else os.geteuid()  # the user of the other process
NOTES = "shelf/projects/demo/notes"
LOOK = """
    from holdfast import Memory
    from holdfast.errors import HoldfastError
    try:
        with Memory(args[0], project="demo", cwd="/") as memory:
            answer = [[one.code, one.message, one.fix] for one in memory.check()]
    except HoldfastError as error:
        answer = [type(error).__name__, error.message, error.fix]
"""
STORE = """
    from holdfast import Memory
    from holdfast.errors import HoldfastError
    with Memory(args[0], project="demo", cwd="/") as memory:
        try:
            answer = memory.store("something new", key="new").note.key
        except HoldfastError as error:
            answer = type(error).__name__
"""
only_root = pytest.mark.skipif(not ROOT, reason="only root can give a file to somebody else")


@pytest.fixture
def theirs(open_memory):
    """A home of the user of the other process, where that user can reach it, unlike pytest's own folder."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    memory = open_memory(home=folder / "home", origin="user")
    memory.store("the harbour opens at six", key="opening")
    memory.store("the mill is closed", key="mill", scope="global")
    memory.store("to be purged, for a receipt", key="gone")
    memory.purge("gone")
    memory.close()
    for one in [folder, *folder.rglob("*")]:
        os.chown(one, ME, -1)
    yield folder / "home"
    for one in [folder, *folder.rglob("*")]:
        one.chmod(0o700)
    shutil.rmtree(folder)


def opened_by(fix):
    """Run a fix as a user who may."""
    done = subprocess.run(
        fix.replace("sudo ", "").replace("$(id -u)", str(ME)), shell=True, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.promise("D1")
@pytest.mark.parametrize("mode", [0o500, 0o000])
@pytest.mark.parametrize("place", [NOTES, "shelf/projects/demo", "shelf/projects", "shelf", "run", "run/locks"])
def test_a_folder_that_is_shut_is_named_with_what_opens_it(child, theirs, place, mode):
    (theirs / place).chmod(mode)
    problems = child(LOOK, theirs, as_nobody=True)
    [[_, message, fix]] = [one for one in problems if one[0] == "owner"]
    assert message.startswith(f"{place} is not accessible to its owner") and fix.startswith("chmod u+rwX")
    opened_by(fix)
    assert child(LOOK, theirs, as_nobody=True) == []
    assert child(STORE, theirs, as_nobody=True) == "new"


@pytest.mark.promise("D1")
@only_root
@pytest.mark.parametrize("mode", [0o755, 0o700])
@pytest.mark.parametrize("place", [NOTES, "run"])
def test_a_folder_of_another_user_is_to_be_taken_over(child, theirs, place, mode):
    os.chown(theirs / place, 12345, -1)
    (theirs / place).chmod(mode)
    stored = child(STORE, theirs, as_nobody=True)
    assert stored == ("new" if (place, mode) == ("run", 0o755) else "DiskTrouble")  # the locks in it are the user's own
    [[code, message, fix]] = child(LOOK, theirs, as_nobody=True)
    assert code == "owner" and "belongs to user 12345" in message and fix.startswith("sudo chown -R")
    opened_by(fix)
    (theirs / place).chmod(0o700)
    assert child(LOOK, theirs, as_nobody=True) == []


@pytest.mark.promise("D1")
def test_a_folder_that_cannot_be_read_does_not_hide_what_else_is_wrong(child, theirs):
    bad = theirs / "shelf/global/notes/Bad Key.md"
    bad.write_text("text")
    os.chown(bad, ME, -1)
    (theirs / NOTES).chmod(0o000)
    assert sorted(one[0] for one in child(LOOK, theirs, as_nobody=True)) == ["file", "owner"]


@only_root
@pytest.mark.parametrize("file", [f"{NOTES}/opening.md", "run/locks/projects+demo.lock", "ledger.db", "index.db"])
def test_a_file_of_another_user_is_to_be_taken_over_not_opened_for_its_owner(child, theirs, file):
    os.chown(theirs / file, 12345, -1)
    (theirs / file).chmod(0o600)
    fixes = [fix for _, _, fix in child(LOOK, theirs, as_nobody=True)]
    assert any(fix.startswith("sudo chown") for fix in fixes)
    assert not any("chmod" in fix for fix in fixes)
    for fix in fixes:
        if fix.startswith("sudo chown"):
            opened_by(fix)
    assert child(LOOK, theirs, as_nobody=True) == []


@pytest.mark.promise("N10")
def test_receipts_of_a_ledger_that_cannot_be_read_are_an_error_and_never_none(child, theirs):
    (theirs / "ledger.db").chmod(0o000)
    told = child(LOOK.replace("memory.check()", "memory.receipts()"), theirs, as_nobody=True)
    assert told[0] == "DiskTrouble" and "ledger.db" in told[1]


@only_root
def test_a_home_of_another_user_is_named_as_theirs_though_it_cannot_be_entered(child, theirs):
    os.chown(theirs, 12345, -1)
    theirs.chmod(0o700)
    kind, message, fix = child(LOOK, theirs, as_nobody=True)
    assert kind == "DiskTrouble" and "belongs to user 12345" in message and "config.toml" not in message + fix


def test_a_home_that_its_owner_shut_is_named_with_what_opens_it(child, theirs):
    theirs.chmod(0o000)
    kind, message, fix = child(LOOK, theirs, as_nobody=True)
    assert kind == "DiskTrouble" and "cannot open the home" in message and "chmod u+rwx" in fix
    theirs.chmod(0o700)


def test_a_home_below_a_folder_that_is_shut_is_said_to_be_out_of_reach(child, theirs):
    theirs.parent.chmod(0o000)
    kind, message, _ = child(LOOK, theirs, as_nobody=True)
    assert kind == "DiskTrouble" and "cannot access the home" in message
    theirs.parent.chmod(0o755)


def test_a_config_file_that_cannot_be_read_is_named_itself(child, theirs):
    config = theirs / "config.toml"
    config.write_text("")
    os.chown(config, ME, -1)
    config.chmod(0o000)
    assert child(LOOK, theirs, as_nobody=True)[0] == "ConfigError"
    assert stat.S_IMODE(config.stat().st_mode) == 0


def test_too_many_open_files_are_said_to_be_that(child, theirs):
    kind, message, fix = child(
        """
        import resource
        from holdfast import config
        from holdfast.errors import HoldfastError
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        taken = []
        try:
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        try:
            config.load(args[0], {})
        except HoldfastError as error:
            answer = [type(error).__name__, error.message, error.fix]
        for one in taken:
            os.close(one)
        """,
        theirs,
        first="import holdfast.config, holdfast.errors, resource, errno\n",
    )
    assert kind == "DiskTrouble" and "open files" in message and "limit" in fix
