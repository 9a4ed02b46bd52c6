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
    by_key = sorted(found, key=lambda candidate: candidate.key)  # so that ties are the same after every rebuild of the index
    by_key.sort(key=lambda candidate: candidate.note_id, reverse=True)  # ids increase with time, finer than seconds
    newest = sorted(by_key, key=lambda candidate: candidate.recorded, reverse=True)
    by_precedence = sorted(newest, key=lambda candidate: precedence.get(candidate.scope, len(precedence)))
    by_relevance = sorted(by_precedence, key=lambda candidate: -_round_score(candidate.score))
    if sort == "recency":
        by_relevance.sort(key=lambda candidate: candidate.recorded, reverse=True)
    elif sort == "usage":
        by_relevance.sort(key=lambda candidate: -usage.get(usage_id(candidate), 0))
    return _put_nearest_scope_first(by_relevance, precedence)


def _round_score(score: float) -> float:
    """Return a score rounded to three digits, whatever its size: words that most notes have score in millionths."""
    return float(f"{score:.3g}")


def _put_nearest_scope_first(ranked: list[C], precedence: Mapping[str, int]) -> list[C]:
    """If several scopes have a note of the same key, put that of the nearest scope in the first of their positions."""
    positions: dict[str, list[int]] = {}
    for number, candidate in enumerate(ranked):
        if candidate.kind == "note" and not candidate.archived:
            positions.setdefault(candidate.key, []).append(number)
    result = list(ranked)
    for numbers in positions.values():
        if len(numbers) > 1:
            group = sorted(
                (ranked[number] for number in numbers), key=lambda candidate: precedence.get(candidate.scope, len(precedence))
            )
            for number, candidate in zip(numbers, group, strict=True):
                result[number] = candidate
    return result
