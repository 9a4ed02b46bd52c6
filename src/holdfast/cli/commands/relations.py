"""`relate`, and the proposed relations of `review`: state, remove, list and decide about relations between notes."""

from __future__ import annotations

import sys

from holdfast.cli.output import format_count, join_lines
from holdfast.cli.runner import check_exclusive
from holdfast.errors import NotFound, UsageError
from holdfast.models import RELATION_KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.models import Related, Relation

_MENU = "[a]pprove  [r]eject  [s]kip  [q]uit"


def relate(call: Invocation) -> int:
    """`holdfast relate`: state or remove a relation, or list those of a note."""
    check_exclusive(call, "list", "remove")
    if call["list"] or call["kind"] is None:
        if call["kind"] is not None:
            raise UsageError("--list takes only the key of a note", "Leave out KIND and TARGET")
        return call.answer(call.memory.relations(call["key"], scope=call["scope"]), _print_relations)
    if call["target"] is None:
        raise UsageError("the other note is missing", f"Use `holdfast relate {call['key']} {call['kind']} TARGET`")
    change = call.memory.unrelate if call["remove"] else call.memory.relate
    done = change(call["key"], call["kind"], call["target"], **call.pick("scope", "target_scope"))
    return call.answer(done, _print_related)


# --- for review -------------------------------------------------------------------------------------------------------


def list_proposed(call: Invocation) -> int:
    """List the relations that wait for a person; at a terminal, ask about each."""
    proposed = _find_proposed(call)
    if proposed and not call.output.json and call.output.is_terminal and sys.stdin.isatty():
        return review_each(call)
    return call.answer(proposed, _print_proposed)


def names_relation(name: str) -> bool:
    """Return whether an argument names a relation: a key has no spaces."""
    return len(name.split()) > 1


def decide(call: Invocation) -> int:
    """Accept or reject the relation that `KEY KIND TARGET` names."""
    name = call["approve"] or call["reject"]
    relation = _find_relation(call, name)
    return call.answer(_decide(call, relation, accept=bool(call["approve"])), _print_related)


def review_each(call: Invocation) -> int:
    """Show each proposed relation and ask what to do with it."""
    from holdfast.cli.commands.review import ask_key

    proposed = _find_proposed(call)
    for number, relation in enumerate(proposed, 1):
        call.output.print_line(f"{join_lines(_describe(relation))}  {number} of {len(proposed)}")
        choice = ask_key(call, _MENU, "arsq")
        if choice == "q":
            break
        if choice in "ar":
            _print_related(call.output, _decide(call, relation, accept=choice == "a"))
    return 0


def print_count(call: Invocation) -> None:
    """Say how many relations wait for a person, if there are any."""
    if count := len(_find_proposed(call)):
        call.output.print_message(f"{format_count(count, 'proposed relation')}: `holdfast review --relations`")


def _find_proposed(call: Invocation) -> list[Relation]:
    return call.memory.relations(scope=call["scope"], status="proposed", everywhere=bool(call["everywhere"]))


def _find_relation(call: Invocation, name: str) -> Relation:
    words = name.split()
    if len(words) != 3 or words[1] not in RELATION_KINDS:
        raise UsageError(f"not a relation: {name!r}", f"Write `KEY KIND TARGET`; KIND is one of {', '.join(RELATION_KINDS)}")
    key, kind, target = words
    every = call.memory.relations(scope=call["scope"], everywhere=bool(call["everywhere"]))
    found = [
        one for one in every
        if key in (one.key, f"{one.scope}/{one.key}") and (kind, target) == (one.kind, one.target)
    ]  # fmt: skip
    if not found:
        raise NotFound(f"no relation {name!r}", "Run `holdfast review --relations` for the list")
    if len({one.scope for one in found}) > 1:
        names = ", ".join([f"{one.scope}/{one.key} {kind} {target}" for one in found])
        raise UsageError(f"{name!r} exists in several scopes", f"Add --scope, or with --everywhere name one of: {names}")
    return found[0]


def _decide(call: Invocation, relation: Relation, *, accept: bool) -> Related:
    everywhere = bool(call["everywhere"])
    places: dict[str, Any] = {
        "scope": relation.scope if everywhere else relation.scope.kind,
        "target_scope": relation.target_scope if everywhere else relation.target_scope.kind,
    }
    change = call.memory.accept_relation if accept else call.memory.reject_relation
    return change(relation.key, relation.kind, relation.target, **places)


# --- output -----------------------------------------------------------------------------------------------------------


def _describe(relation: Relation) -> str:
    target = relation.target
    if relation.target_scope != relation.scope:
        target = f"{target} ({relation.target_scope})"
    return f"{relation.key} {relation.kind} {target} in {relation.scope}, by {relation.origin}, {relation.time[:10]}"


def _print_related(output: Output, related: Related) -> None:
    style = {"created": "green", "updated": "yellow"}.get(related.action, "dim")
    relation = related.relation
    line = f"{relation.key} {relation.kind} {relation.target} in {relation.scope}: {relation.status}"
    output.print_line(f"{output.style(related.action, style)} {join_lines(line)}")
    if relation.status == "proposed" and related.action != "removed":
        output.print_message("a person accepts or rejects it with `holdfast review --relations`")


def _print_relations(output: Output, relations: list[Relation]) -> None:
    if not relations:
        output.print_empty("No relations.")
        return
    rows = [(one.key, one.kind, one.target, one.scope.kind, one.status, one.origin, one.time[:10]) for one in relations]
    output.print_table(
        ("KEY", "KIND", "TARGET", "SCOPE", "STATUS", "BY", "SINCE"), rows, ("bold", "", "bold", "cyan", "yellow", "dim", "dim")
    )


def _print_proposed(output: Output, relations: list[Relation]) -> None:
    if not relations:
        output.print_empty("No proposed relations.")
        return
    _print_relations(output, relations)
    output.print_message("decide with `holdfast review --approve 'KEY KIND TARGET'` or `--reject 'KEY KIND TARGET'`")
