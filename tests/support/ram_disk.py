"""A RAM disk for the folders of tests: most tests flush files, and their data is temporary."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

RAM_DISK = Path("/dev/shm")
MIN_FREE_BYTES = 1 << 30  # a run with several workers and PostgreSQL clusters uses a few hundred MB
PREFIX = "hft-"  # short: the name of a socket has at most about 100 bytes


def find_ram_disk() -> Path | None:
    """Return the RAM disk, or None if there is no usable one."""
    try:
        space = os.statvfs(RAM_DISK)
    except OSError:
        return None
    usable = os.access(RAM_DISK, os.W_OK | os.X_OK) and not space.f_flag & os.ST_NOEXEC  # tests run scripts from their folders
    return RAM_DISK if usable and space.f_bavail * space.f_frsize >= MIN_FREE_BYTES else None


def make_folder(prefix: str = PREFIX) -> Path:
    """Create a folder on the RAM disk, or on the disk if there is none; delete it when this process ends."""
    parent = find_ram_disk() or Path(tempfile.gettempdir())
    delete_leftovers(parent, prefix)
    folder = Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=parent))
    atexit.register(_delete, folder, os.getpid())
    return folder


def delete_leftovers(parent: Path, prefix: str) -> None:
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
