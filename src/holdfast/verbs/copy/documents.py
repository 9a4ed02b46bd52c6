"""Copy documents: notes, files, trash and archive, byte for byte."""

from __future__ import annotations

from holdfast.errors import HoldfastError
from holdfast.store.interface import Document
from holdfast.store.layout import DOCUMENT_PARTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.models import Progress
    from holdfast.store.interface import FileContent, FileRef
    from holdfast.verbs.copy.endpoints import Endpoint
    from holdfast.verbs.copy.purged import PurgedContent

_READ_BATCH, _READ_BATCH_FILES = 100, 10  # documents read at once: a file may have 10 MiB
_WRITE_BATCH, _WRITE_BATCH_BYTES = 500, 16 * 1024 * 1024  # documents written with one flush


class DocumentsCopy:
    """Copies the documents of every scope."""

    def __init__(self, old: Endpoint, new: Endpoint, progress: Progress, purged: PurgedContent) -> None:
        self._old, self._new, self._progress, self._purged = old.store, new.store, progress, purged
        self._missing: dict[tuple[str, str], list[str]] = {}
        self._digests: dict[tuple[str, str], dict[str, str]] = {}  # of what the target must have in the end
        self.left: list[str] = []
        self.total = self.copied = self.verified = 0

    def find_conflicts(self) -> Iterator[str]:
        """Yield the documents that the target has with other bytes; note those that are missing or cannot be copied."""
        scopes = self._old.list_scopes()
        self.left += [f"{path}: no scope" for path in self._old.list_strays()]
        self.left += [f"{path!a}: a name that is not UTF-8" for scope in scopes for path in self._old.list_misnamed(scope)]
        self.left += [f"{scope}/{path}: {why}" for scope in scopes for path, why in self._old.list_unknown_files(scope)]
        self._progress.start("comparing documents", len(scopes) * len(DOCUMENT_PARTS))
        for scope in scopes:
            for part in DOCUMENT_PARTS:
                mine = dict(self._old.list_digests(scope, part))
                for name in [name for name, digest in mine.items() if not digest]:
                    self.left.append(f"{scope}/{part}/{name}: cannot be read")
                    del mine[name]
                theirs = dict(self._new.list_digests(scope, part)) if mine else {}
                yield from [f"{scope}/{part}/{name}" for name in mine if name in theirs and theirs[name] != mine[name]]
                self._digests[scope, part] = mine
                self._missing[scope, part] = [name for name in mine if name not in theirs]
                self.total += len(mine)
                self._progress.step()
        self._progress.end()

    def copy_missing(self) -> None:
        """Copy what is missing, with the times of its last change, and empty folders."""
        self._progress.start("copying documents", sum(map(len, self._missing.values())))
        for (scope, part), names in self._missing.items():
            for batch in self._read_batches(scope, part, names):
                self._new.add_documents(scope, part, batch)
                self.copied += len(batch)
                self._progress.step(len(batch))
        for scope in self._old.list_scopes():
            for path in self._old.list_empty_folders(scope):
                self._new.tree(scope).create_folder(tuple(path.split("/")))
        self._progress.end()

    def _read_batches(self, scope: str, part: str, names: list[str]) -> Iterator[list[Document]]:
        batch: list[Document] = []
        size = 0
        step = _READ_BATCH_FILES if part == "files" else _READ_BATCH
        for start in range(0, len(names), step):
            some = names[start : start + step]
            ahead = self._old.read_batch([(scope, part, name) for name in some])  # with one question, where it is a server
            for one in filter(None, [self._read(scope, part, name, ahead) for name in some]):
                batch.append(one)
                size += len(one.data)
                if len(batch) == _WRITE_BATCH or size > _WRITE_BATCH_BYTES:
                    yield batch
                    batch, size = [], 0
        if batch:
            yield batch

    def _read(self, scope: str, part: str, name: str, ahead: dict[FileRef, FileContent]) -> Document | None:
        try:
            content = ahead.get((scope, part, name)) or self._old.read_document(scope, part, name)
        except HoldfastError as error:
            self._leave_out(scope, part, name, error.message)
            return None
        if content is None:
            self._leave_out(scope, part, name, "deleted while copying")
            return None
        receipt = self._purged.receipt_of(scope, part, name, content)
        if receipt:
            self._leave_out(scope, part, name, f"purged: see receipt {receipt}")
            return None
        return Document(name, content.data, content.modified)

    def _leave_out(self, scope: str, part: str, name: str, why: str) -> None:
        self.left.append(f"{scope}/{part}/{name}: {why}")
        self._digests[scope, part].pop(name, None)
        self.total -= 1

    def find_differences(self) -> Iterator[str]:
        """Yield the documents whose bytes in the target are not those of the source."""
        self._progress.start("verifying documents", self.total)
        for (scope, part), wanted in self._digests.items():
            there = dict(self._new.list_digests(scope, part)) if wanted else {}
            for name, digest in wanted.items():
                if there.get(name) != digest:
                    yield f"{scope}/{part}/{name}"
                self.verified += 1
            self._progress.step(len(wanted))
        self._progress.end()
