"""One kind of records in the ledger's file, for what is decided by them.

Unlike the rest of the ledger, what cannot be read is an error here and never an empty answer: a token that cannot be looked
up is not unknown, and work that cannot be looked up may have been done.
"""

from __future__ import annotations

import os

from holdfast.errors import DOCTOR, Damaged, DiskTrouble, Template, Trouble
from holdfast.sqlite import ERRORS, DatabaseReset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    import apsw

    from holdfast.sqlite import Database

    T = TypeVar("T")


class Records:
    """Named statements on the ledger's file. What subclasses say in SQL stands in the .sql beside them."""

    _sql: dict[str, str] = {}
    _begins_anew = False  # whether what was to be written into a damaged file may go into the new one

    def __init__(self, file: Database, path: str) -> None:
        self._file = file
        self._path = path

    def _rows(self, statement: str, **values: Any) -> list[Any]:
        """All rows; none where there is no ledger yet. A new file in the place of a damaged one is not asked."""
        if not os.path.lexists(self._path):
            return []
        with self._file.lock:
            try:
                db = self._file.opened()
                if self._file.reason:  # what stands in for it knows nothing, or not the newest
                    raise DiskTrouble(self._file.reason, self._file.fix or "Make the home writable for this user")
                return db.execute(self._sql[statement], values).fetchall()
            except ERRORS as error:
                failure = self._file.failed(error)
                raise (lost() if isinstance(failure, DatabaseReset) else failure) from error

    def _run(self, db: apsw.Connection, statement: str, **values: Any) -> list[Any]:
        """The same within a transaction."""
        return db.execute(self._sql[statement], values).fetchall()

    def _alone(self, db: apsw.Connection, name: str) -> None:
        """Nobody else is at this until the transaction ends; of one file, nobody is anyway."""

    def _write(self, work: Callable[[apsw.Connection], T], durable: bool = True) -> T:
        """Do it in one transaction; durable means on the disk before this returns."""

        for attempt in (1, 2):
            try:
                with self._file.transaction(durable) as db:
                    return work(db)
            except DatabaseReset as error:
                if not self._begins_anew:
                    raise lost() from None
                if attempt == 2:
                    raise Trouble(f"the ledger is damaged again and again: {error}", "Check the disk") from None
        raise AssertionError("unreachable")

    def _lost_at(self) -> float:
        """When a damaged ledger was last set aside, as long as it stands beside this one; nought where none does."""
        home, name = os.path.split(self._path)
        try:
            asides = [one for one in os.listdir(home or os.curdir) if one.startswith(f"{name}.damaged-")] if name else []
            return max([os.lstat(os.path.join(home, one)).st_ctime for one in asides], default=0.0)
        except OSError:
            return 0.0


def lost() -> Damaged:
    """What a damaged ledger knew is not known, which is not the same as no."""
    what = "the ledger is damaged and was set aside: what it knew is not known now"
    return Damaged(what, Template("Run ", DOCTOR))
