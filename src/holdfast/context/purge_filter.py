"""Keep purged text out: refuse to write it, and recognise it where it came back."""

from __future__ import annotations

from holdfast.base import dates
from holdfast.errors import Busy, HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.ledger.interface import Ledger


class PurgeFilter:
    """Lookup of purged and rejected texts in a ledger.

    The ledger's flags are read first: in a home where nothing was purged, a check costs one look at a file name.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def any_purged(self) -> bool:
        """Return whether anything was ever purged."""
        return self._ledger.purge_flags.any_purged()

    def any_rejected(self) -> bool:
        """Return whether a person ever rejected a note."""
        return self._ledger.purge_flags.any_rejected()

    def refuse_purged(self, texts: list[tuple[str, str]]) -> None:
        """Raise `Purged` if one of these texts was purged; each comes with the path of its note, or with an empty path.

        Writers check once more under the store's lock: they see a purge that began before, and a purge that begins later finds
        their text.
        """
        if self.any_purged():
            self._ledger.purges.check_new_texts(texts)

    def refuse_returned(self, path: str, texts: list[str]) -> None:
        """Raise `Purged` if one of the texts of a file was purged and is in the store again."""
        if self.any_purged():
            self._ledger.purges.check_stored_texts(texts, path)

    def find_receipt(self, path: str, texts: list[str]) -> str:
        """Return the receipt of the purge that removed one of these texts, or an empty string.

        A ledger that cannot be read counts as empty. Raises `Busy` if it cannot be read now.
        """
        if not self.any_purged():
            return ""
        try:
            receipts = [self._ledger.purges.find_receipt(text, ended=True, path=path) for text in texts]
            return next(filter(None, receipts), "")
        except Busy:
            raise
        except HoldfastError:
            return ""

    def find_purged_turns(self, turns: list[tuple[str, str, str]], stored: bool = True) -> set[int]:
        """Return the positions of the turns (session, id, text) that were purged; see `Purges.find_purged_turns`."""
        return set(self._ledger.purges.find_purged_turns(turns, stored)) if self.any_purged() else set()

    def allow_again(self, path: str, text: str) -> None:
        """Let a purged text be stored again, because a person wants it."""
        if self.any_purged():
            self._ledger.purges.allow_again(path, text, dates.now())
