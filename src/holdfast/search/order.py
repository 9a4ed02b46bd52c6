"""Candidates in, order out: relevance first, then scope precedence and recency as tie-breakers. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Protocol, TypeVar

    class Candidate(Protocol):
        @property
        def scope(self) -> str: ...
        @property
        def key(self) -> str: ...
        @property
        def kind(self) -> str: ...
        @property
        def score(self) -> float: ...
        @property
        def recorded(self) -> str: ...
        @property
        def note_id(self) -> str: ...
        @property
        def archived(self) -> bool: ...

    C = TypeVar("C", bound=Candidate)


def order(
    found: list[C], scopes: tuple[str, ...], sort: str, usage: Mapping[str, int], usage_id: Callable[[C], str]
) -> list[C]:
    """The candidates as asked for. `scopes` is in order of precedence."""
    place = {scope: number for number, scope in enumerate(scopes)}
    by_name = sorted(found, key=lambda one: one.key)  # so that ties fall alike after every rebuild;
    by_name.sort(key=lambda one: one.note_id, reverse=True)  # ids count up in time, finer than seconds
    newest = sorted(by_name, key=lambda one: one.recorded, reverse=True)
    by_precedence = sorted(newest, key=lambda one: place.get(one.scope, len(place)))
    by_relevance = sorted(by_precedence, key=lambda one: -_relevance(one.score))
    if sort == "recency":
        by_relevance.sort(key=lambda one: one.recorded, reverse=True)
    elif sort == "usage":
        by_relevance.sort(key=lambda one: -usage.get(usage_id(one), 0))
    return _nearest_scope_first(by_relevance, place)


def _relevance(score: float) -> float:
    """Three digits of a score count, whatever its size: words that most notes have score in millionths."""
    return float(f"{score:.3g}")


def _nearest_scope_first(ranked: list[C], place: Mapping[str, int]) -> list[C]:
    """Where several scopes have a note of the same key, the nearer scope's stands in the first of their places."""
    places: dict[str, list[int]] = {}
    for number, one in enumerate(ranked):
        if one.kind == "note" and not one.archived:
            places.setdefault(one.key, []).append(number)
    result = list(ranked)
    for numbers in places.values():
        if len(numbers) > 1:
            group = sorted((ranked[number] for number in numbers), key=lambda one: place.get(one.scope, len(place)))
            for number, one in zip(numbers, group, strict=True):
                result[number] = one
    return result
