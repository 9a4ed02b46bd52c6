"""Order search results: by relevance, then by scope precedence and recency. Pure."""

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
    """Return the candidates in the order `sort`: relevance, recency or usage. `scopes` is in order of precedence."""
    precedence = {scope: number for number, scope in enumerate(scopes)}
    by_key = sorted(found, key=lambda one: one.key)  # so that ties are the same after every rebuild of the index
    by_key.sort(key=lambda one: one.note_id, reverse=True)  # ids increase with time, finer than seconds
    newest = sorted(by_key, key=lambda one: one.recorded, reverse=True)
    by_precedence = sorted(newest, key=lambda one: precedence.get(one.scope, len(precedence)))
    by_relevance = sorted(by_precedence, key=lambda one: -_relevance(one.score))
    if sort == "recency":
        by_relevance.sort(key=lambda one: one.recorded, reverse=True)
    elif sort == "usage":
        by_relevance.sort(key=lambda one: -usage.get(usage_id(one), 0))
    return _put_nearest_scope_first(by_relevance, precedence)


def _relevance(score: float) -> float:
    """Return a score rounded to three digits, whatever its size: words that most notes have score in millionths."""
    return float(f"{score:.3g}")


def _put_nearest_scope_first(ranked: list[C], precedence: Mapping[str, int]) -> list[C]:
    """Where several scopes have a note of the same key, put that of the nearest scope in the first of their positions."""
    positions: dict[str, list[int]] = {}
    for number, one in enumerate(ranked):
        if one.kind == "note" and not one.archived:
            positions.setdefault(one.key, []).append(number)
    result = list(ranked)
    for numbers in positions.values():
        if len(numbers) > 1:
            group = sorted((ranked[number] for number in numbers), key=lambda one: precedence.get(one.scope, len(precedence)))
            for number, one in zip(numbers, group, strict=True):
                result[number] = one
    return result
