"""A RAM disk for the tests' folders: most tests flush files, and no test needs them tomorrow."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

PLACE = Path("/dev/shm")
LEAST_FREE = 1 << 30  # bytes: a run with several workers and PostgreSQL clusters uses a few hundred MB
PREFIX = "hft-"  # short: the name of a socket has at most about 100 bytes


def place() -> Path | None:
    """Return the RAM disk, or None where there is no usable one."""
    try:
        room = os.statvfs(PLACE)
    except OSError:
        return None
    usable = os.access(PLACE, os.W_OK | os.X_OK) and not room.f_flag & os.ST_NOEXEC  # tests run scripts from their folders
    return PLACE if usable and room.f_bavail * room.f_frsize >= LEAST_FREE else None


def folder(prefix: str = PREFIX) -> Path:
    """Make a folder on the RAM disk, or on the disk where there is none; delete it when this process ends."""
    parent = place() or Path(tempfile.gettempdir())
    sweep(parent, prefix)
    made = Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=parent))
    atexit.register(_delete, made, os.getpid())
    return made


def sweep(parent: Path, prefix: str) -> None:
    """Delete the folders of processes that were killed."""
    if not Path("/proc/self").exists():
        return
    for path in parent.glob(f"{prefix}*"):
        process = path.name.removeprefix(prefix).partition("-")[0]
        if process.isdigit() and not Path(f"/proc/{process}").exists():
            shutil.rmtree(path, ignore_errors=True)


def _delete(path: Path, process: int) -> None:
    if os.getpid() == process:  # a forked child does not delete the folder of its parent
        shutil.rmtree(path, ignore_errors=True)
