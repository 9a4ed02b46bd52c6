"""Count how often notes are used. A count that fails never fails the call that used the note."""

from __future__ import annotations

from holdfast.base import dates
from holdfast.base.ids import digest
from holdfast.errors import HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.index.results import FoundPassage
    from holdfast.ledger.interface import Ledger
    from holdfast.models import Scope


def passage_usage_id(found: FoundPassage) -> str:
    """Return the id under which uses of a found passage are counted. A note keeps it when it is archived."""
    part, name = ("notes", f"{found.key}.md") if found.archived else (found.part, found.name)
    return found.note_id or path_usage_id(found.scope, part, name)


def note_usage_id(scope: Scope, key: str, id: str) -> str:
    """Return the id under which uses of a note are counted: its own id, or a digest of its path if it has none."""
    return id or path_usage_id(scope.folder, "notes", f"{key}.md")


def path_usage_id(scope: str, part: str, name: str) -> str:
    """Return the id under which uses of a file without an id are counted."""
    return digest(f"{scope}/{part}/{name}".encode("utf-8", "surrogateescape"))[:16]


def count_uses(ledger: Ledger, ids: list[str]) -> None:
    """Count one use of each of these notes."""
    try:
        ledger.usage.record_use(ids, int(dates.clock()))
    except HoldfastError:
        pass


def record_shown(ledger: Ledger, ids: list[str]) -> None:
    """Record that notes were shown to a caller without a session; what a session was shown, the ledger records itself."""
    try:
        ledger.usage.record_shown(ids, int(dates.clock()))
    except HoldfastError:
        pass


def get_usage(ledger: Ledger, found: list[FoundPassage]) -> Mapping[str, int]:
    """Return the number of uses of each of these passages' files, by usage id."""
    try:
        return ledger.usage.get_counts([passage_usage_id(passage) for passage in found])
    except HoldfastError:
        return {}
