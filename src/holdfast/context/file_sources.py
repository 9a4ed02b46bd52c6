"""Keep the record of who last wrote each file of an agent's tree. A record that fails never fails the call: then the writer
of the file is not known."""

from __future__ import annotations

from holdfast.base import dates
from holdfast.errors import HoldfastError
from holdfast.ledger.file_sources import FileSource, FileVersion, digest_path
from holdfast.models import Source, least_trusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.base.ids import FileId
    from holdfast.context.caller import Context
    from holdfast.ledger.interface import Ledger
    from holdfast.models import Hit
    from holdfast.store.interface import Tree


def find(ledger: Ledger, file: FileVersion) -> Source | None:
    """Return who wrote this version of a file; None where that is not known."""
    (record,) = _find_records(ledger, [file])
    return record.source if record else None


def _find_records(ledger: Ledger, files: list[FileVersion]) -> list[FileSource | None]:
    try:
        return ledger.file_sources.find(files)
    except HoldfastError:
        return [None] * len(files)


def add_to_hits(ledger: Ledger, hits: list[Hit], files: Mapping[int, tuple[str, str, FileId]]) -> None:
    """Add the source to each hit of a file; `files` has its scope, path and id by the position of the hit."""
    records = _find_records(ledger, [FileVersion(*file) for file in files.values()])
    for place, record in zip(files, records, strict=True):
        hits[place] = hits[place].replace(source=record.source if record else None)


def record_written(context: Context, scope: str, written: Mapping[str, FileId], edited: FileVersion | None = None) -> None:
    """Record the caller as the writer of these files of a scope, by path.

    `edited` is the version that the caller changed in part. The rest of it is trusted no more than its writer; if that is not
    known, a person who edits the file does not become the writer of the rest.
    """
    ledger, source = context.ledger, Source(context.origin, context.agent, context.client, context.session)
    before = find(ledger, edited) if edited else None
    if before and least_trusted(source.origin, before.trusted) != source.origin:
        source = source.replace(trust=before.trusted)
    if edited and not before and source.origin == "user":
        _try(lambda: ledger.file_sources.remove(scope, written))
        return
    time = int(dates.clock())
    records = [FileSource(scope, digest_path(path), file_id, source, time) for path, file_id in written.items()]
    _try(lambda: ledger.file_sources.record(records))


def record_rewritten(ledger: Ledger, old: FileVersion, file_id: FileId) -> None:
    """Let a file keep its writer after Holdfast itself rewrote it."""
    (record,) = _find_records(ledger, [old])
    if record is not None:
        renewed = record.replace(file_id=file_id)
        _try(lambda: ledger.file_sources.record([renewed]))


def list_versions(tree: Tree, scope: str, parts: tuple[str, ...]) -> list[FileVersion]:
    """Return a file of a tree, or the files below a folder, as they are now."""
    path = "/".join(parts)
    if tree.is_folder(parts):
        entries = [entry for entry in tree.entries() if entry.name.startswith(f"{path}/")]
        return [FileVersion(scope, entry.name, entry.file_id) for entry in entries]
    file_id = tree.file_id(parts)
    return [FileVersion(scope, path, file_id)] if file_id else []


def record_deleted(ledger: Ledger, scope: str, files: list[FileVersion]) -> None:
    """Delete the records of files that were deleted."""
    _try(lambda: ledger.file_sources.remove(scope, [one.path for one in files]))


def record_moved(
    ledger: Ledger, tree: Tree, scope: str, files: list[FileVersion], *, old: tuple[str, ...], new: tuple[str, ...]
) -> None:
    """Move the records of these files, after the path above them was renamed: the name is all that changed."""
    known = [(file, record) for file, record in zip(files, _find_records(ledger, files), strict=True) if record]
    ids = {one.path: one.file_id for one in list_versions(tree, scope, new)} if known else {}
    length, moved = len("/".join(old)), list[FileSource]()
    for file, record in known:
        path = "/".join(new) + file.path[length:]
        file_id = ids.get(path)
        if file_id and (file_id.inode, file_id.size) == (file.file_id.inode, file.file_id.size):
            moved.append(record.replace(file=digest_path(path), file_id=file_id))
    paths = [path for file in files for path in (file.path, "/".join(new) + file.path[length:])]
    _try(lambda: ledger.file_sources.remove(scope, paths, moved))


def _try(write: Callable[[], None]) -> None:
    try:
        write()
    except HoldfastError:
        pass
