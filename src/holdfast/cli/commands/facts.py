"""`fact`, `facts` and `graph`: state dated facts, list them, and show the links between their subjects."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.models import Fact, FactSet
    from holdfast.verbs.graph import Edge, Graph

_MAX_STALE = 10  # places with older values that are named below a list of facts


def fact(call: Invocation) -> int:
    """`holdfast fact`."""
    stated = call.memory.fact(
        call["subject"], call["label"], call["value"], many=bool(call["many"]), made_from=call["from"],
        **call.pick("on", "scope", "origin", "redact")
    )  # fmt: skip
    return call.answer(stated, _print_stated)


def facts(call: Invocation) -> int:
    """`holdfast facts`."""
    found = call.memory.facts(call["subject"], history=bool(call["history"]), **call.pick("label", "as_of", "scope"))
    return call.answer(found, _print_facts)


def graph(call: Invocation) -> int:
    """`holdfast graph`."""
    from holdfast.cli.runner import check_exclusive

    check_exclusive(call, "depth", "to")
    check_exclusive(call, "format", "json")
    draw = _choose_format(call["format"] or "text")
    if call["to"] is not None:
        return _show_path(call, draw)
    found = call.memory.graph(call["entity"], **call.pick("depth", "as_of", "scope"))
    return _show_graph(call, found, found, draw=draw, if_empty=f"no facts about {found.start}")


def _show_path(call: Invocation, draw: Callable[[Graph], str]) -> int:
    """Show the shortest path between two entities as a graph of its own."""
    filters = call.pick("as_of", "scope")
    edges = call.memory.path(call["entity"], call["to"], **filters)
    start = call.memory.graph(call["entity"], depth=0, **filters).start  # the entity may be given by another of its names
    if_empty = f"no path from {call['entity']} to {call['to']}"
    return _show_graph(call, edges, _build_path_graph(start, edges), draw=draw, if_empty=if_empty)


def _show_graph(call: Invocation, result: object, graph: Graph, *, draw: Callable[[Graph], str], if_empty: str) -> int:
    if not graph.entities and not call.output.json:
        call.output.print_empty(if_empty)
        return 0
    return call.answer(result, lambda output, _: output.print_text(draw(graph)))


def _build_path_graph(start: str, edges: list[Edge]) -> Graph:
    from holdfast.verbs.graph import Entity, Graph

    names = [start]
    for edge in edges:
        names.append(edge.target if edge.source == names[-1] else edge.source)
    entities = [Entity(name, (), steps) for steps, name in enumerate(names)] if edges else []
    return Graph(start, tuple(entities), tuple(edges))


def _choose_format(name: str) -> Callable[[Graph], str]:
    from holdfast.errors import UsageError
    from holdfast.verbs import graph

    formats = {"text": graph.as_text, "mermaid": graph.as_mermaid, "dot": graph.as_dot}
    if name not in formats:
        raise UsageError(f"unknown value for --format: {name!r}", f"Use one of: {', '.join(formats)}")
    return formats[name]


def _print_stated(output: Output, stated: FactSet) -> None:
    from holdfast.cli.output import join_lines
    from holdfast.safety.hidden_chars import make_name_visible

    fact = stated.fact
    style = {"created": "green", "updated": "yellow"}.get(stated.action, "dim")
    until = f", until {fact.valid_to}" if fact.valid_to else ""
    line = f"{make_name_visible(fact.subject)}: {fact.label}: {fact.value} (since {fact.valid_from}{until})"
    output.print_line(f"{output.style(stated.action, style)} {join_lines(line)} in {stated.note.scope}")
    if stated.redacted:
        output.print_message(f"removed what looks like a secret: {', '.join(stated.redacted)}", "yellow")
    for old in stated.retired:
        line = join_lines(f"closed {old.label}: {old.value} (since {old.valid_from})")
        output.print_line("  " + output.style(line, "dim"))
    _print_stale(output, [fact])


def _print_facts(output: Output, facts: list[Fact]) -> None:
    if not facts:
        output.print_empty("No facts found.")
        return
    from holdfast.base import dates
    from holdfast.safety.hidden_chars import make_name_visible

    now = dates.now()
    rows = [
        (
            make_name_visible(fact.subject), make_name_visible(fact.label), fact.valid_from,
            _format_end(fact, now), fact.scope.kind, _format_value(fact),
        )
        for fact in facts
    ]  # fmt: skip
    output.print_table(("SUBJECT", "LABEL", "FROM", "TO", "SCOPE", "VALUE"), rows, ("bold", "", "dim", "dim", "cyan", ""))
    _print_stale(output, facts)


def _print_stale(output: Output, facts: list[Fact]) -> None:
    """Name the files that still state an older value."""
    from holdfast.cli.output import join_lines
    from holdfast.safety.hidden_chars import make_name_visible

    stale = list(dict.fromkeys([(fact.subject, fact.label, path) for fact in facts for path in fact.stale_in]))
    for subject, label, path in stale[:_MAX_STALE]:
        about = f"{make_name_visible(subject)}, {make_name_visible(label)}"
        message = f"{make_name_visible(path)} still states an older value of {about}"
        output.print_message(join_lines(message), "yellow")
    if len(stale) > _MAX_STALE:
        output.print_message(f"and {len(stale) - _MAX_STALE} more places with older values", "yellow")


def _format_value(fact: Fact) -> str:
    marks = [mark for mark, applies in (("(in quarantine)", fact.quarantined), ("(archived)", fact.archived)) if applies]
    return " ".join([*marks, fact.value])


def _format_end(fact: Fact, now: str) -> str:
    """Return the end of a fact's validity: `now` if it is open, nothing if the fact is not valid yet."""
    return fact.valid_to or ("" if fact.valid_from > now else "now")
