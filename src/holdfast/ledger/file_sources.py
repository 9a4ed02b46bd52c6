"""Records of who last wrote each file of an agent's tree, and which file that was.

A record holds for one version of a file: if the file has another id, something else wrote it since, such as a person's editor.
The path of a file may say as much as a text, so a record has a digest of it.
"""

from __future__ import annotations

from holdfast.base.ids import FileId, digest, signed, unsigned
from holdfast.base.record import Record
from holdfast.ledger.usage import json_list
from holdfast.models import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from builtins import list as List  # `list` is a method here
    from collections.abc import Iterable, Sequence
    from typing import Any

    from holdfast.ledger.interface import LedgerDatabase, Transaction


class FileVersion(Record):
    """One version of a file: the folder of its scope, its path in the tree, and its id."""

    scope: str
    path: str
    file_id: FileId


class FileSource(Record):
    """Who wrote a version of a file, and when, in seconds since 1970; `file` is the digest of its path."""

    scope: str
    file: str
    file_id: FileId
    source: Source
    time: int


class FileSources:
    """The last writers of files."""

    def __init__(self, database: LedgerDatabase) -> None:
        self._database = database

    def record(self, records: Sequence[FileSource]) -> None:
        """Keep the writers of these files instead of those who wrote them before."""
        if records:
            self._database.write(lambda transaction: _put(transaction, records))

    def find(self, files: Sequence[FileVersion]) -> List[FileSource | None]:
        """Return the record of each of these versions; None where another version or nothing is on record."""
        keys = [(one.scope, digest_path(one.path)) for one in files]
        values = {"scopes": json_list([scope for scope, _ in keys]), "files": json_list([file for _, file in keys])}
        rows = self._database.read_or_empty("file_sources.find", **values) if keys else []
        known = {(one.scope, one.file): one for one in map(_from_row, rows)}
        found = [known.get(key) for key in keys]
        return [one if one and one.file_id == file.file_id else None for one, file in zip(found, files, strict=True)]

    def list(self) -> List[FileSource]:
        """Return all records, scope by scope; raises where the ledger cannot be read."""
        return [_from_row(row) for row in self._database.read("file_sources.list")]

    def remove(self, scope: str, paths: Iterable[str], replacements: Sequence[FileSource] = ()) -> None:
        """Delete the records of these files of a scope, and add others in the same transaction."""
        rows = [{"scope": scope, "file": digest_path(path)} for path in paths]

        def replace_rows(transaction: Transaction) -> None:
            transaction.run_many("file_sources.remove", rows)
            _put(transaction, replacements)

        if rows or replacements:
            self._database.write(replace_rows)

    def remove_records(self, records: Iterable[FileSource]) -> None:
        """Delete these records."""
        rows = [{"scope": one.scope, "file": one.file} for one in records]
        if rows:
            self._database.write(lambda transaction: transaction.run_many("file_sources.remove", rows), checkpoint=True)


def digest_path(path: str) -> str:
    """Return the digest by which a record knows a file of a scope."""
    return digest(path.encode("utf-8", "surrogateescape"))


def _put(transaction: Transaction, records: Iterable[FileSource]) -> None:
    rows = [
        {
            "scope": one.scope, "file": one.file, "inode": signed(one.file_id.inode), "changed": one.file_id.changed,
            "size": one.file_id.size, "origin": one.source.origin, "agent": one.source.agent, "client": one.source.client,
            "session": one.source.session, "trust": one.source.trust, "time": one.time,
        }
        for one in records
    ]  # fmt: skip
    transaction.run_many("file_sources.put", rows)


def _from_row(row: tuple[Any, ...]) -> FileSource:
    scope, file, inode, changed, size, origin, agent, client, session, trust, time = row
    source = Source(origin=origin, agent=agent, client=client, session=session, trust=trust)
    return FileSource(scope=scope, file=file, file_id=FileId(unsigned(inode), changed, size), source=source, time=time)
