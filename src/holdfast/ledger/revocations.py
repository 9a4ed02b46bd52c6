"""Revocations on a full disk: a small file that was allocated before, so that an entry needs no space.

The ledger cannot grow on a full disk, so the row of a revocation cannot be written. The revocation is then written into this
file in place. It takes effect at once, for every process, because each looks into the file when it looks up a token. The next
change of agents, or the gateway as soon as there is space, moves it into the ledger with its row in the audit.
"""

from __future__ import annotations

import fcntl
import json
import os

from holdfast.base.record import Record
from holdfast.errors import DiskTrouble, from_os
from holdfast.home import Lock
from holdfast.ledger.audit import Decision
from holdfast.ledger.secret_file import sync_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

FILE = "ledger.revoked"
_SLOT_BYTES, _SLOTS = 2048, 64
_FILE_BYTES = _SLOT_BYTES * _SLOTS
_USED = b"+"  # the first byte of the file while it has entries; the other slots hold one entry each
_LOCK_SECONDS = 5
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class PendingRevocation(Record):
    """An agent whose tokens up to a time (seconds since 1970) are revoked, and the row of the audit that says so."""

    agent: str
    time: int
    decision: Decision


class RevocationFile:
    """The file in a home. Without it, nothing is pending and nothing can be added."""

    def __init__(self, home: str) -> None:
        self._home, self._path = home, os.path.join(home, FILE)

    def reserve(self) -> None:
        """Allocate the file if it is missing; on a disk without space that is not possible, and nothing is left behind."""
        if os.path.lexists(self._path):
            return
        temporary = f"{self._path}.{os.urandom(8).hex()}"
        try:
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
            try:
                _write(
                    fd, bytes(_FILE_BYTES), 0
                )  # written, not only allocated: some file systems need space at the first write
                os.fsync(fd)
                os.link(temporary, self._path)
            except FileExistsError:
                pass  # another process changed it first
            finally:
                os.close(fd)
                os.unlink(temporary)
            sync_folder(self._home)
        except OSError as error:
            raise from_os(error, f"cannot allocate {self._path}") from error

    def read(self) -> list[PendingRevocation]:
        """Return what is pending; most often nothing, which one byte says."""
        try:
            fd = os.open(self._path, os.O_RDONLY | _FLAGS)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise from_os(error, f"cannot read {self._path}") from error
        try:
            return [] if os.pread(fd, 1, 0) != _USED else [entry for _, entry in _read_entries(fd) if entry is not None]
        finally:
            os.close(fd)

    def add(self, revocation: PendingRevocation) -> None:
        """Write an entry in place, flushed; raises DiskTrouble if the file is missing or all its slots are taken."""
        data = _encode(revocation)
        with _LockedFile(self._path) as fd:
            free = [number for number, entry in _read_entries(fd) if entry is None]
            if not free:
                message = f"{FILE} has no space for another revocation"
                raise DiskTrouble(message, "Free some space on the disk and run it again")
            _write(fd, data.ljust(_SLOT_BYTES, b"\0"), free[0] * _SLOT_BYTES)
            _write(fd, _USED, 0)
            os.fsync(fd)

    def turn(self) -> Lock:
        """Return the lock of the process that moves entries into the ledger; entering it raises Busy after some seconds."""
        return Lock(self._home, FILE, _LOCK_SECONDS)

    def remove(self, revocations: Iterable[PendingRevocation]) -> None:
        """Free the slots of entries that are in the ledger."""
        done = list(revocations)
        with _LockedFile(self._path) as fd:
            entries = _read_entries(fd)
            for number, entry in entries:
                if entry in done:
                    _write(fd, bytes(_SLOT_BYTES), number * _SLOT_BYTES)
            if all(entry is None or entry in done for _, entry in entries):
                _write(fd, b"\0", 0)
            os.fsync(fd)


class _LockedFile:
    """The descriptor of the file, locked against other processes and threads."""

    def __init__(self, path: str) -> None:
        self._path, self._fd = path, -1

    def __enter__(self) -> int:
        try:
            self._fd = os.open(self._path, os.O_RDWR | _FLAGS)
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        except OSError as error:
            raise from_os(error, f"cannot write {self._path}") from error
        return self._fd

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        os.close(self._fd)
        if isinstance(error, OSError):
            raise from_os(error, f"cannot write {self._path}") from error


def _read_entries(fd: int) -> list[tuple[int, PendingRevocation | None]]:
    """Return the slots by number, with their entries; a slot that was torn by a crash is free."""
    data = os.pread(fd, _FILE_BYTES, 0)
    slots = [(number, data[number * _SLOT_BYTES : (number + 1) * _SLOT_BYTES]) for number in range(1, _SLOTS)]
    return [(number, _decode(slot.rstrip(b"\0"))) for number, slot in slots if len(slot) == _SLOT_BYTES]


def _encode(revocation: PendingRevocation) -> bytes:
    """Return the entry as JSON; metadata that does not fit is left out, from its end on."""
    fields = revocation.as_dict()
    metadata = list(revocation.decision.metadata.items())
    while True:
        fields["decision"]["metadata"] = dict(metadata)
        data = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        if len(data) < _SLOT_BYTES:
            return data
        metadata.pop()


def _decode(data: bytes) -> PendingRevocation | None:
    if not data:
        return None
    try:
        fields: dict[str, Any] = json.loads(data)
        decision = Decision(**fields["decision"])
        return PendingRevocation(agent=str(fields["agent"]), time=int(fields["time"]), decision=decision)
    except (ValueError, TypeError, KeyError):
        return None


def _write(fd: int, data: bytes, offset: int) -> None:
    """Write all of the data at an offset."""
    while data:
        written = os.pwrite(fd, data, offset)
        data, offset = data[written:], offset + written
