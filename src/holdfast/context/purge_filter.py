"""Keep purged text out: reject writes of it, and detect it in files that were put back"""

from __future__ import annotations

from holdfast.base import dates
from holdfast.errors import Busy, HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.ledger.interface import Ledger


class PurgeFilter:
    """Lookup of purged and rejected texts in a ledger.

    The ledger's flags are read first: in a home where nothing was purged, a check costs one look at a file name.
    """

    def __init__(self, ledger: Ledger, related: Callable[[str], Iterable[str]] = lambda folder: ()) -> None:
        self._ledger = ledger
        self.related = related  # other folders of the same scope: a project may have had other ids

    def with_related(self, place: str) -> list[str]:
        """Return the place of a text and the other folders where a purge covers it too."""
        return [place, *self.related(place.partition("/notes/")[0])]

    def any_purged(self) -> bool:
        """Return whether anything was ever purged."""
        return self._ledger.purge_flags.any_purged()

    def any_rejected(self) -> bool:
        """Return whether a person ever rejected a note."""
        return self._ledger.purge_flags.any_rejected()

    def refuse_purged(self, texts: list[tuple[str, str]]) -> None:
        """Raise `Purged` if one of these texts was purged; each comes with the path of its note, or the folder of its scope.

        Writers check once more under the store's lock: they see a purge that began before, and a purge that begins later finds
        their text.
        """
        if self.any_purged():
            self._ledger.purges.check_new_texts([(each, text) for place, text in texts for each in self.with_related(place)])

    def refuse_returned(self, place: str, texts: list[str]) -> None:
        """Raise `Purged` if one of the texts of a note or file was purged and is in the store again; see `refuse_purged`."""
        if self.any_purged():
            for each in self.with_related(place):
                self._ledger.purges.check_stored_texts(texts, each)

    def find_receipt(self, place: str, texts: list[str]) -> str:
        """Return the receipt of the purge that removed one of these texts from this place, or an empty string.

        A ledger that cannot be read counts as empty. Raises `Busy` if it cannot be read now.
        """
        if not self.any_purged():
            return ""
        try:
            places, purges = self.with_related(place), self._ledger.purges
            receipts = [purges.find_receipt(text, ended=True, place=each) for each in places for text in texts]
            return next(filter(None, receipts), "")
        except Busy:
            raise
        except HoldfastError:
            return ""

    def find_purged_turns(self, turns: list[tuple[str, str, str]], new_in: str = "") -> set[int]:
        """Return the positions of the turns (session, id, text) that were purged: of stored ones, or of turns that would be
        `new_in` the scope with this folder; see `Purges.find_purged_turns`."""
        if not self.any_purged():
            return set()
        find = self._ledger.purges.find_purged_turns
        return {position for folder in self.with_related(new_in) for position in find(turns, not new_in, folder)}

    def allow_again(self, path: str, text: str) -> None:
        """Let a purged text be stored again, because a person wants it."""
        if self.any_purged():
            self._ledger.purges.allow_again(path, text, dates.now())
