"""The leg of facts: what is stated about the things a question names, by any of their names, now or as of a moment."""

from __future__ import annotations

from holdfast.formats.facts import fold
from holdfast.index import tokenizer
from holdfast.verbs.graph import ALIAS, others_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.index.results import FoundFact
    from holdfast.index.sqlite import SearchFilter, SqliteIndex
    from holdfast.models import Fact

_LONGEST = 4  # words of a name
_MOST = 200  # passages that this leg brings
_MATCHED = 40  # passages whose facts are looked at
_MOST_STATED = 2000  # facts that are rated
_SUBJECT, _SUBJECT_AND_LABEL, _LEAST, _NEAR_BEST = 0.5, 1.0, 0.5, 0.75  # of how well a fact answers
_ASKED, _NAMED, _THING = 1.0, 0.6, 0.4  # a fact of the kind asked for; another of the same subject; a label so called


def find_stating_passages(index: SqliteIndex, query: str, asked: SearchFilter, now: str) -> dict[int, float]:
    """The passages that hold such facts, and how much they speak of what is asked."""
    if not index.has_facts():
        return {}
    names = expand_names(index, asked.scopes, names_in(query))
    about = set(tokenizer.query_terms(query))
    found: dict[int, float] = {}
    for passage, subject, label in index.find_stating_passages(names, asked, now, _MOST):
        if fold(subject) in names:
            strength = _ASKED if about.intersection(tokenizer.query_terms(label)) else _NAMED
        else:
            strength = _THING
        found[passage] = max(found.get(passage, 0.0), strength)
    return found


def find_answers(index: SqliteIndex, query: str, asked: SearchFilter, at: str, most: int) -> list[tuple[FoundFact, float]]:
    """The facts that held at a moment and answer a question, the best first, each with how well it does (0 to 1).

    A fact answers if it has most words of the question, or if its subject is named. Facts that answer less well than the best
    are left out.
    """
    about = set(tokenizer.query_terms(query))
    if not about or not index.has_facts():
        return []
    current = asked.replace(part="notes files", as_of=None, known_at=None)
    said = index.match_passages(tokenizer.rarest_terms(*index.resolve_terms(query, current)), current, _MATCHED)
    named = expand_names(index, asked.scopes, names_in(query))
    found = index.find_facts_at(sorted(named.union(index.find_subjects(said, asked.scopes))), asked, at, _MOST_STATED)
    newest = sorted(found, key=lambda one: one.fact.valid_from, reverse=True)
    rated = [(*_rated(one.fact, about, named), one) for one in newest]
    floor = max(_LEAST, _NEAR_BEST * max([rate for rate, _, _ in rated], default=0.0))
    best = sorted(rated, key=lambda row: (-row[0], -row[1]))[:most]  # else the newest first
    return [(one, rate) for rate, _, one in best if rate >= floor]


def _rated(fact: Fact, about: set[str], named: set[str]) -> tuple[float, float]:
    """How well a fact answers, and how many of the words that are asked for it has, as a share. One whose subject is named and
    whose label is asked for answers in full."""
    label = about.intersection(tokenizer.query_terms(fact.label))
    share = len(about.intersection(tokenizer.query_terms(f"{fact.subject} {fact.label} {fact.value}"))) / len(about)
    if fold(fact.subject) not in named:
        return share, share
    return max(share, _SUBJECT_AND_LABEL if label else _SUBJECT), share


def names_in(query: str) -> set[str]:
    """Every run of up to four words, as a name would be folded; what is too common to be a name is none."""
    said = fold("".join([mark if mark.isalnum() or mark in "-_./+#'" else " " for mark in query])).split()
    said = [word.strip("-_./'") for word in said]
    runs = {" ".join(said[first : first + size]) for size in range(1, _LONGEST + 1) for first in range(len(said) - size + 1)}
    return {run for run in runs if run and run not in tokenizer.COMMON}


def expand_names(index: SqliteIndex, scopes: tuple[str, ...], named: Iterable[str]) -> set[str]:
    """These names and all that facts declare to be the same, folded; also by way of each other."""
    names = {fold(name) for name in named}
    groups = [
        {fold(subject), *[fold(name) for name in others_of(value, links)]}
        for subject, value, links in index.find_labelled_facts(scopes, sorted(ALIAS))
    ]
    while joined := [group for group in groups if group & names and not group <= names]:
        names.update(*joined)
    return names
