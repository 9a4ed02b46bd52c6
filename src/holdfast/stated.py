"""The leg of facts: what is stated now about the things a question names, by any of their names."""

from __future__ import annotations

from holdfast import words
from holdfast.facts import fold
from holdfast.graph import ALIAS, others_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.index.sqlite import Asked, Index

_LONGEST = 4  # words of a name
_MOST = 200  # passages that this leg brings
_ASKED, _NAMED, _THING = 1.0, 0.6, 0.4  # a fact of the kind asked for; another of the same subject; a label so called


def stated(index: Index, query: str, asked: Asked, now: str) -> dict[int, float]:
    """The passages that hold such facts, and how much they speak of what is asked."""
    if not index.has_facts():
        return {}
    names = names_of(index, asked.scopes, names_in(query))
    about = set(words.asked(query))
    found: dict[int, float] = {}
    for passage, subject, label in index.stating_passages(names, asked, now, _MOST):
        if fold(subject) in names:
            strength = _ASKED if about.intersection(words.asked(label)) else _NAMED
        else:
            strength = _THING
        found[passage] = max(found.get(passage, 0.0), strength)
    return found


def names_in(query: str) -> set[str]:
    """Every run of up to four words, as a name would be folded; what is too common to be a name is none."""
    said = fold("".join([mark if mark.isalnum() or mark in "-_./+#'" else " " for mark in query])).split()
    said = [word.strip("-_./'") for word in said]
    runs = {" ".join(said[first : first + size]) for size in range(1, _LONGEST + 1) for first in range(len(said) - size + 1)}
    return {run for run in runs if run and run not in words.COMMON}


def names_of(index: Index, scopes: tuple[str, ...], named: Iterable[str]) -> set[str]:
    """These names and all that facts declare to be the same, folded; also by way of each other."""
    names = {fold(name) for name in named}
    groups = [
        {fold(subject), *[fold(name) for name in others_of(value, links)]}
        for subject, value, links in index.declared(scopes, sorted(ALIAS))
    ]
    while joined := [group for group in groups if group & names and not group <= names]:
        names.update(*joined)
    return names
