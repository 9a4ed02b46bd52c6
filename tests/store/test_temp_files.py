"""The next reader deletes temp files of dead writers, even with other readers; those of living writers stay."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from holdfast.store import atomic
from holdfast.store.files import FileStore

PARTS = 300


def _make_abandoned_batch(home: Path) -> Path:
    """Write a batch as a killed writer leaves it: its first file, without a lock, and the others."""
    notes = home / "shelf" / "global" / "notes"
    notes.mkdir(parents=True, exist_ok=True)
    for ending in ("", *[f".{number}" for number in range(PARTS)]):
        (notes / f".holdfast-1-dead.tmp{ending}").write_bytes(b"half")
    return notes


def _list_notes(home: Path) -> None:
    FileStore(str(home), 1).fingerprint("global", "notes")


FORKS_WHILE_IT_SWEEPS = """
import os, sys
from holdfast.store.files import FileStore

children = []

def fork_once(event, arguments):
    if event == "os.remove" and not children:
        reader, writer = os.pipe()
        children.append(os.fork())
        if children[0] == 0:
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)

sys.addaudithook(fork_once)
FileStore(sys.argv[1], 1).fingerprint("global", "notes")
print(len(children), os.listdir(sys.argv[2]))
"""


def test_nothing_is_left_when_the_sweeping_process_forks_meanwhile(tmp_path):
    # between fork and exec, a child of another thread has every descriptor of the cleaner, and so keeps its locks
    notes = _make_abandoned_batch(tmp_path)
    command = [sys.executable, "-c", FORKS_WHILE_IT_SWEEPS, str(tmp_path), str(notes)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "1 []\n"


def test_nothing_is_left_when_several_sweep_at_once(tmp_path):
    with ThreadPoolExecutor(4) as sweepers:  # a lock belongs to the open file, so threads are as separate as processes
        for _ in range(8):
            notes = _make_abandoned_batch(tmp_path)
            list(sweepers.map(_list_notes, [tmp_path] * 4))
            assert os.listdir(notes) == []


def test_a_batch_stays_while_its_writer_lives(tmp_path):
    notes = _make_abandoned_batch(tmp_path)
    before = sorted(os.listdir(notes))
    with open(notes / ".holdfast-1-dead.tmp", "rb+") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        _list_notes(tmp_path)
        assert sorted(os.listdir(notes)) == before
    _list_notes(tmp_path)
    assert os.listdir(notes) == []


def test_a_single_temp_file_stays_while_its_writer_lives(tmp_path):
    with atomic.Folder(os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY), "notes") as folder:
        fd, name = atomic.write_temp(folder, b"whole")
        try:
            assert not atomic.remove_abandoned(folder, name)
            assert (tmp_path / name).read_bytes() == b"whole"
        finally:
            atomic.discard_temp(folder, fd, name)
