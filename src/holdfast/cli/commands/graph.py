"""graph: what is linked with what, drawn."""

from __future__ import annotations

from holdfast.cli.runner import only_one
from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.cli.runner import Invocation
    from holdfast.verbs.graph import Edge, Graph


def graph(call: Invocation) -> int:
    only_one(call, "depth", "to")
    only_one(call, "format", "json")
    draw = _drawing(call["format"] or "text")
    if call["to"] is not None:
        return _path(call, draw)
    found = call.memory.graph(call["entity"], **call.given("depth", "as_of", "scope"))
    return _drawn(call, found, found, draw, f"nothing is known about {found.start}")


def _path(call: Invocation, draw: Callable[[Graph], str]) -> int:
    """The way from one to the other, drawn as a graph that has nothing else."""
    when = call.given("as_of", "scope")
    edges = call.memory.path(call["entity"], call["to"], **when)
    start = call.memory.graph(call["entity"], depth=0, **when).start  # as it is called, by whichever name it was asked for
    return _drawn(call, edges, along(start, edges), draw, f"no way leads from {call['entity']} to {call['to']}")


def _drawn(call: Invocation, answer: object, shown: Graph, draw: Callable[[Graph], str], otherwise: str) -> int:
    if not shown.entities and not call.screen.json:
        call.screen.nothing(otherwise)
        return 0
    return call.answer(answer, lambda screen, _: screen.text(draw(shown)))


def along(start: str, edges: list[Edge]) -> Graph:
    """A path as a graph."""
    from holdfast.verbs.graph import Entity, Graph

    names = [start]
    for edge in edges:
        names.append(edge.target if edge.source == names[-1] else edge.source)
    entities = [Entity(name, (), steps) for steps, name in enumerate(names)] if edges else []
    return Graph(start, tuple(entities), tuple(edges))


def _drawing(name: str) -> Callable[[Graph], str]:
    from holdfast.verbs import graph

    drawings = {"text": graph.as_text, "mermaid": graph.as_mermaid, "dot": graph.as_dot}
    if name not in drawings:
        raise UsageError(f"unknown format {name!r}", f"One of: {', '.join(drawings)}")
    return drawings[name]
