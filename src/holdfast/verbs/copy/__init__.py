"""Copy all memory from one store to another, a folder or PostgreSQL, byte for byte.

First compare both: if the target has something else under the same name, write nothing. Then copy what is missing, and
compare everything again. A copy may be interrupted at any moment and run again: it skips what is there already.
"""

from __future__ import annotations

from holdfast.base.record import Record
from holdfast.errors import Conflict, Disabled, Trouble
from holdfast.models import Progress
from holdfast.verbs.copy.documents import DocumentsCopy
from holdfast.verbs.copy.endpoints import open_endpoint
from holdfast.verbs.copy.file_sources import FileSourcesCopy
from holdfast.verbs.copy.purged import PurgedContent
from holdfast.verbs.copy.records import RecordsCopy
from holdfast.verbs.copy.transcripts import TranscriptsCopy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.config import Config

_MAX_NAMED = 20


class Copied(Record):
    """The result of a copy: how much there is, how much of it was copied now, and what could not be copied."""

    source: str
    target: str
    documents: int
    documents_copied: int
    transcripts: int
    lines: int
    lines_copied: int
    records: int
    records_copied: int
    audit_rows: int
    verified: int  # documents, transcripts, and records with the rows of the audit, each compared with what is there now
    left: tuple[str, ...]  # what could not be read or was purged, each with why


def copy(source: str, target: str, config: Config, progress: Progress | None = None) -> Copied:
    """Copy all memory as `holdfast copy` does; raise Conflict if the target has something else under the same names."""
    if not config.enabled:
        raise Disabled
    progress = progress or Progress()
    with open_endpoint(source, config, must_exist=True) as old, open_endpoint(target, config) as new:
        if old.is_same(new):
            raise Conflict("source and target are the same", "Choose another target")
        purged = PurgedContent(old, new)
        documents, transcripts = DocumentsCopy(old, new, progress, purged), TranscriptsCopy(old, new, progress, purged)
        records = RecordsCopy(old, new, progress)
        file_sources = FileSourcesCopy(old, new)
        parts = (records, documents, transcripts, file_sources)
        conflicts = [name for part in parts for name in part.find_conflicts()]
        if conflicts:
            fix = "Copy into an empty target, or delete those entries there first; nothing was written"
            raise Conflict(f"{new.name} contains different data under the same names: {_join_names(conflicts)}", fix)
        for part in parts:
            part.copy_missing()
        wrong = [name for part in parts for name in part.find_differences()]
        if wrong:
            what = f"{_join_names(wrong)} in {new.name} differ from what was copied"
            raise Trouble(what, "Stop all programs that write to either store, then copy again")
        if documents.copied or transcripts.copied or records.copied or file_sources.copied:
            new.finish_copy()
        return Copied(
            source=old.name,
            target=new.name,
            documents=documents.total,
            documents_copied=documents.copied,
            transcripts=transcripts.total,
            lines=transcripts.lines,
            lines_copied=transcripts.copied,
            records=records.total + file_sources.total,
            records_copied=records.copied + file_sources.copied,
            audit_rows=records.audit,
            verified=documents.verified + transcripts.verified + records.verified + file_sources.verified,
            left=(*documents.left, *transcripts.left),
        )


def _join_names(names: list[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more
