"""A copy of a home that is in use: python3 backup.py HOME COPY. Needs nothing but Python; nobody has to stop.

The order matters. The audit's mark first, so that the copied ledger is never behind it; then the shelf, where every file is
complete at any moment; then the ledger, by SQLite's own backup, so that what was purged meanwhile is known in the copy. The
shelf is gone through twice: what was moved from one folder to another behind our back is then in one of them or in both. The
index is not copied: the next call on the copy builds it from the shelf.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys

DONE = ("shelf", "audit.head", "ledger.db", "ledger.db-wal", "ledger.db-shm", "run")  # copied already, or of this machine only
MADE_ANEW = ("index.db",)


def copy_file(source: str, target: str) -> None:
    """A file, unless it is gone by now or is no file: links are not followed."""
    if os.path.islink(source) or not os.path.isfile(source):
        return
    beside = f"{target}.part"
    try:
        shutil.copy2(source, beside)
    except FileNotFoundError:
        return
    os.replace(beside, target)


def copy_tree(source: str, target: str) -> None:
    for folder, folders, names in os.walk(source):
        there = os.path.join(target, os.path.relpath(folder, source))
        os.makedirs(there, 0o700, exist_ok=True)
        folders[:] = [name for name in folders if not os.path.islink(os.path.join(folder, name))]
        for name in names:
            if not name.startswith(".holdfast-"):  # a write under way
                copy_file(os.path.join(folder, name), os.path.join(there, name))


def copy_ledger(source: str, target: str) -> None:
    if not os.path.exists(source):
        return
    ours, theirs = sqlite3.connect(source, timeout=30), sqlite3.connect(target)
    with theirs:
        ours.backup(theirs)
    ours.close()
    theirs.close()


def backup(home: str, copy: str) -> None:
    os.umask(0o077)
    os.makedirs(copy, 0o700)  # a new one each time: what was forgotten since must not stay in it
    copy_file(os.path.join(home, "audit.head"), os.path.join(copy, "audit.head"))
    for _ in range(2):
        copy_tree(os.path.join(home, "shelf"), os.path.join(copy, "shelf"))
    copy_ledger(os.path.join(home, "ledger.db"), os.path.join(copy, "ledger.db"))
    for name in sorted(os.listdir(home)):
        path = os.path.join(home, name)
        if name in DONE or name.startswith(MADE_ANEW):
            continue
        (copy_tree if os.path.isdir(path) else copy_file)(path, os.path.join(copy, name))


if __name__ == "__main__":
    if len(sys.argv) != 3 or not os.path.isdir(os.path.join(sys.argv[1], "shelf")) or os.path.lexists(sys.argv[2]):
        sys.exit("usage: python3 backup.py HOME COPY (a home that has a shelf, and a folder that is not there yet)")
    backup(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]))
