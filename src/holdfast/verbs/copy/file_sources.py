"""Copy the records of who wrote the files of agents' trees."""

from __future__ import annotations

from itertools import groupby

from holdfast.ledger.file_sources import digest_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.base.ids import FileId
    from holdfast.ledger.file_sources import FileSource
    from holdfast.store.interface import Store
    from holdfast.verbs.copy.endpoints import Endpoint


class FileSourcesCopy:
    """Copies the records that are about the files as they are now: in the target the same files have other ids."""

    def __init__(self, old: Endpoint, new: Endpoint) -> None:
        self._old, self._new = old, new
        self.total = self.copied = self.verified = 0

    def find_conflicts(self) -> Iterator[str]:
        """Yield nothing: a file that the target has with other bytes is a conflict already."""
        yield from ()

    def copy_missing(self) -> None:
        """Copy the records of files whose writer the target does not know, after the files were copied."""
        missing = self._find_missing(self._list_wanted())
        self._new.ledger.file_sources.record(missing)
        self.copied += len(missing)

    def find_differences(self) -> Iterator[str]:
        """Yield the scopes with files whose writer the target does not know."""
        wanted = self._list_wanted()
        yield from dict.fromkeys([f"writers of files in {one.scope}" for one in self._find_missing(wanted)])
        self.total = self.verified = len(wanted)

    def _find_missing(self, wanted: list[FileSource]) -> list[FileSource]:
        there = {(one.scope, one.file): one.file_id for one in self._new.ledger.file_sources.list()}
        return [one for one in wanted if there.get((one.scope, one.file)) != one.file_id]

    def _list_wanted(self) -> list[FileSource]:
        """Return the records that the target must have, with the ids of its own files."""
        wanted = []
        for scope, records in groupby(self._old.ledger.file_sources.list(), key=lambda one: one.scope):
            old_ids, new_ids = _file_ids(self._old.store, scope), _file_ids(self._new.store, scope)
            for one in records:
                file_id = new_ids.get(one.file)
                if file_id and old_ids.get(one.file) == one.file_id:
                    wanted.append(one.replace(file_id=file_id))
        return wanted


def _file_ids(store: Store, scope: str) -> dict[str, FileId]:
    return {digest_path(entry.name): entry.file_id for entry in store.tree(scope, 0).entries()}
