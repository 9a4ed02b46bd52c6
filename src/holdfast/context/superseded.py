"""Superseded notes: which notes are not current because another note supersedes them, and by which note.

A relation `supersedes` counts while it is accepted and the note that states it is visible, valid and not in quarantine.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from holdfast.index.interface import Index
    from holdfast.index.results import FoundPassage, Superseding


def find_successors(index: Index, docs: Iterable[int], scopes: tuple[str, ...], now: str) -> dict[int, list[Superseding]]:
    """Return, for each of these notes that was superseded and for each of its successors, the notes that superseded it; the one
    that was stated last is the first."""
    found: dict[int, list[Superseding]] = {}
    wanted, known = set(docs), set[int]()
    while wanted:
        rows = index.find_superseding(sorted(wanted), scopes, now)
        for row in sorted(rows, key=lambda row: (row.stated, row.note_id), reverse=True):
            found.setdefault(row.superseded, []).append(row)
        known |= wanted
        wanted = {row.doc for row in rows} - known
    return found


def choose_current(successors: Mapping[int, list[Superseding]]) -> dict[int, Superseding]:
    """Return, for each note that was superseded, the note that is current instead: the last one of the chain."""
    next_of = {doc: rows[0] for doc, rows in successors.items()}
    found = {doc: _follow(next_of, doc) for doc in next_of}
    return {doc: last for doc, last in found.items() if last is not None}


def find_paths(index: Index, scopes: tuple[str, ...], now: str) -> dict[str, Superseding]:
    """Return, by path, the note that is current instead of each note of some scopes that was superseded."""
    paths = index.list_superseded(scopes, now)
    found = choose_current(find_successors(index, paths, scopes, now)) if paths else {}
    return {path: found[doc] for doc, path in paths.items() if doc in found}


def rank_current_first(
    ranked: list[FoundPassage], successors: Mapping[int, list[Superseding]], added: Mapping[int, FoundPassage]
) -> list[FoundPassage]:
    """Return the passages with each superseded note below the note that is current instead.

    A current note that ranked lower, or not at all, comes directly before the best note that it superseded, with its score;
    `added` are those that may be added, by id. If several current notes superseded a note, it is below all that were found.
    """
    current = choose_current(successors)
    placed: set[int] = set()
    result: list[FoundPassage] = []
    position = {passage.passage: passage for passage in ranked}
    for passage in ranked:
        if passage.passage in placed:
            continue
        last = current.get(passage.doc)
        others = [row.passage for row in successors[passage.doc] if row.doc not in current] if last is not None else []
        for id in dict.fromkeys([last.passage, *others]) if last is not None else ():
            first = position.get(id) or added.get(id)
            if first is not None and id not in placed:
                result.append(first.replace(score=max(first.score, passage.score)))
                placed.add(id)
        result.append(passage)
        placed.add(passage.passage)
    return result


def _follow(next_of: Mapping[int, Superseding], doc: int) -> Superseding | None:
    """Return the last note of a chain; of notes that supersede each other in a circle, which only edits by hand can make, each
    is current."""
    path = [doc]
    last: Superseding | None = None
    while (row := next_of.get(path[-1])) is not None:
        if row.doc in path:
            start = path.index(row.doc)
            return None if start == 0 else next_of[path[start - 1]]
        path.append(row.doc)
        last = row
    return last
