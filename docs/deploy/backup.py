"""Back up a home while it is in use: python3 backup.py HOME COPY. Needs only Python; nothing has to be stopped.

The order matters. First `audit.head`, so that the copied ledger is never older than it. Then the shelf, where every file is
complete at any time. Then the ledger, with SQLite's backup function, so that the copy knows purges that ran meanwhile.
The shelf is copied twice, so that a file that is moved between two folders meanwhile is in at least one of them. The index is
not copied: the next call on the copy rebuilds it.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys

DONE = ("shelf", "audit.head", "ledger.db", "ledger.db-wal", "ledger.db-shm", "run")  # copied separately, or not at all
REBUILT = ("index.db",)
OTHERS = (".cache", ".local")  # models, where the home is also the user's home directory; they can be made or installed again


def copy_file(source: str, target: str) -> None:
    """Copy a regular file if it exists. Links are not followed."""
    if os.path.islink(source) or not os.path.isfile(source):
        return
    beside = f"{target}.part"
    try:
        shutil.copy2(source, beside)
    except FileNotFoundError:
        return
    os.replace(beside, target)


def copy_tree(source: str, target: str) -> None:
    """Copy a folder with its files, without links and unfinished writes."""
    for folder, folders, names in os.walk(source):
        there = os.path.join(target, os.path.relpath(folder, source))
        os.makedirs(there, 0o700, exist_ok=True)
        folders[:] = [name for name in folders if not os.path.islink(os.path.join(folder, name))]
        for name in names:
            if not name.startswith(".holdfast-"):  # an unfinished write
                copy_file(os.path.join(folder, name), os.path.join(there, name))


def copy_ledger(source: str, target: str) -> None:
    """Copy the database with SQLite's backup function, which gives a consistent copy."""
    if not os.path.exists(source):
        return
    ours, theirs = sqlite3.connect(source, timeout=30), sqlite3.connect(target)
    with theirs:
        ours.backup(theirs)
    ours.close()
    theirs.close()


def backup(home: str, copy: str) -> None:
    """Copy everything of a home except the index, `run/` and models into a new folder."""
    os.umask(0o077)
    os.makedirs(copy, 0o700)  # must be new: files deleted since an earlier backup must not stay in it
    copy_file(os.path.join(home, "audit.head"), os.path.join(copy, "audit.head"))
    for _ in range(2):
        copy_tree(os.path.join(home, "shelf"), os.path.join(copy, "shelf"))
    copy_ledger(os.path.join(home, "ledger.db"), os.path.join(copy, "ledger.db"))
    for name in sorted(os.listdir(home)):
        path = os.path.join(home, name)
        if name in (*DONE, *OTHERS) or name.startswith(REBUILT):
            continue
        (copy_tree if os.path.isdir(path) else copy_file)(path, os.path.join(copy, name))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python3 backup.py HOME COPY")
    if not os.path.isdir(os.path.join(sys.argv[1], "shelf")):
        sys.exit(f"{sys.argv[1]} is not a home: it has no folder `shelf`. Give the folder that `holdfast path` prints.")
    if os.path.lexists(sys.argv[2]):
        sys.exit(f"{sys.argv[2]} exists already. Give a new folder for each backup.")
    backup(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]))
