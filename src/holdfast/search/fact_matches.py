"""Search by facts: the facts about the things that a query names, by any of their names, now or at a moment."""

from __future__ import annotations

from holdfast.base.record import Record
from holdfast.formats.facts import ALIAS_LABELS, alias_names, normalize_name
from holdfast.index import tokenizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.index.filters import SearchFilter
    from holdfast.index.interface import Index
    from holdfast.index.results import FoundFact

_NAME_WORDS = 4  # that a name has at most
_MOST_PASSAGES = 200  # that this search returns
_MATCHED_PASSAGES = 40  # whose facts are rated
_MOST_FACTS = 2000  # that are rated
_SUBJECT, _SUBJECT_AND_LABEL = 0.5, 1.0  # how well a fact answers whose subject, or subject and label, are in the query
_LEAST, _NEAR_BEST = 0.5, 0.75  # the lowest rating of an answer: absolute, and relative to the best
_FULL_MATCH, _SUBJECT_MATCH, _LABEL_MATCH = 1.0, 0.6, 0.4  # signals of a passage by what its fact shares with the query


class RatedFact(Record):
    """A fact, how well it answers a query (0 to 1), and the share of the query's terms that it has."""

    found: FoundFact
    rating: float
    share: float


def match_facts(index: Index, query: str, filter: SearchFilter, now: str) -> dict[int, float]:
    """Return the passages that state a fact which the query names, and how much of the fact it names (0 to 1)."""
    if not index.has_facts():
        return {}
    names = expand_names(index, filter.scopes, find_names(query))
    terms = set(tokenizer.query_terms(query))
    found: dict[int, float] = {}
    for row in index.find_stating_passages(names, filter, now, _MOST_PASSAGES):
        if normalize_name(row.subject) in names:
            strength = _FULL_MATCH if terms.intersection(tokenizer.query_terms(row.label)) else _SUBJECT_MATCH
        else:
            strength = _LABEL_MATCH
        found[row.passage] = max(found.get(row.passage, 0.0), strength)
    return found


def find_answers(index: Index, query: str, filter: SearchFilter, at: str, most: int) -> list[RatedFact]:
    """Return the facts that held at a moment and answer a query, best first.

    A fact answers if it has most words of the query, or if the query names its subject. Facts that answer less well than the
    best are left out.
    """
    terms = set(tokenizer.query_terms(query))
    if not terms or not index.has_facts():
        return []
    current = filter.replace(part="notes files", as_of=None, known_at=None)
    matched = index.match_passages(tokenizer.rarest_terms(*index.resolve_terms(query, current)), current, _MATCHED_PASSAGES)
    named = expand_names(index, filter.scopes, find_names(query))
    names = sorted(named.union(index.find_subjects(matched, filter.scopes)))
    found = index.find_facts_at(names, filter, at, _MOST_FACTS)
    newest = sorted(found, key=lambda found_fact: found_fact.fact.valid_from, reverse=True)
    rated = [_rate(found_fact, terms, named) for found_fact in newest]
    min_rating = max(_LEAST, _NEAR_BEST * max([one.rating for one in rated], default=0.0))
    best = sorted(rated, key=lambda one: (-one.rating, -one.share))[:most]  # stable: of equal ratings the newest first
    return [one for one in best if one.rating >= min_rating]


def _rate(found: FoundFact, terms: set[str], named: set[str]) -> RatedFact:
    fact = found.fact
    has_label = not terms.isdisjoint(tokenizer.query_terms(fact.label))
    share = len(terms.intersection(tokenizer.query_terms(f"{fact.subject} {fact.label} {fact.value}"))) / len(terms)
    if normalize_name(fact.subject) not in named:
        return RatedFact(found, share, share)
    return RatedFact(found, max(share, _SUBJECT_AND_LABEL if has_label else _SUBJECT), share)


def find_names(query: str) -> set[str]:
    """Return every run of up to four words, folded like a name, except those that are too common to be a name."""
    words = normalize_name("".join([char if char.isalnum() or char in "-_./+#'" else " " for char in query])).split()
    words = [word.strip("-_./'") for word in words]
    lengths = range(1, _NAME_WORDS + 1)
    runs = {" ".join(words[first : first + length]) for length in lengths for first in range(len(words) - length + 1)}
    return {run for run in runs if run and run not in tokenizer.COMMON}


def expand_names(index: Index, scopes: tuple[str, ...], names: Iterable[str]) -> set[str]:
    """Return these names and all their aliases, also aliases of aliases, folded."""
    expanded = {normalize_name(name) for name in names}
    groups = [
        {normalize_name(fact.subject), *[normalize_name(name) for name in alias_names(fact.value, fact.links)]}
        for fact in index.find_labelled_facts(scopes, sorted(ALIAS_LABELS))
    ]
    while joined := [group for group in groups if group & expanded and not group <= expanded]:
        expanded.update(*joined)
    return expanded
