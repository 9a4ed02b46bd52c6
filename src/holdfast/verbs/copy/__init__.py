"""Copy: everything that is memory from one store to another, a folder or a PostgreSQL, byte for byte.

First both are compared, and where anything stands in the target under the same name and is another, nothing is written.
Then what is missing is brought, then all of it is compared again. So it can be ended at any moment and run again: what is
there already is not brought twice.
"""

from __future__ import annotations

from holdfast.base.record import Record
from holdfast.errors import Conflict, Disabled, Trouble
from holdfast.models import Progress
from holdfast.verbs.copy.documents import Documents
from holdfast.verbs.copy.endpoints import opened
from holdfast.verbs.copy.purged import Purged
from holdfast.verbs.copy.records import Records
from holdfast.verbs.copy.transcripts import Sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.config import Config

_SHOWN = 20


class Copied(Record):
    """How much there is, how much of it was brought just now, and what could not be."""

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
    left: tuple[str, ...]  # what could not be read where it stands or was purged, each with why


def copy(source: str, target: str, config: Config, progress: Progress | None = None) -> Copied:
    """The steps of `holdfast copy`."""
    if not config.enabled:
        raise Disabled
    bar = progress or Progress()
    with opened(source, config, must_exist=True) as old, opened(target, config) as new:
        if old.same_as(new):
            raise Conflict("source and target are the same", "Name another target")
        gone = Purged(old, new)
        documents, sessions, records = Documents(old, new, bar, gone), Sessions(old, new, bar, gone), Records(old, new, bar)
        parts = (records, documents, sessions)
        _refuse(new.name, [one for part in parts for one in part.compare()])
        records.bring()
        documents.bring()
        sessions.bring()
        wrong = [one for part in parts for one in part.verify()]
        if wrong:
            raise Trouble(f"{_told(wrong)} in {new.name} are not what was copied", "Copy again when nobody writes to either")
        if documents.copied or sessions.copied or records.copied:
            new.settle()
        verified = documents.verified + sessions.verified + records.verified
        return Copied(
            old.name, new.name, documents.total, documents.copied, sessions.total, sessions.lines, sessions.copied,
            records.total, records.copied, records.audit, verified, (*documents.left, *sessions.left),
        )  # fmt: skip


def _refuse(target: str, others: list[str]) -> None:
    if others:
        fix = "Nothing was written. Copy into an empty one, or take those away first"
        raise Conflict(f"{target} has others under the same names: {_told(others)}", fix)


def _told(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - _SHOWN:,} more" if len(every) > _SHOWN else ""
    return ", ".join(every[:_SHOWN]) + more
