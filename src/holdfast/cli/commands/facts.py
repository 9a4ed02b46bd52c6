"""fact, facts."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.models import Fact, FactSet


_STALE_SHOWN = 10  # places named below a list of facts


def fact(call: Invocation) -> int:
    stated = call.memory.fact(
        call["subject"],
        call["label"],
        call["value"],
        many=bool(call["many"]),
        made_from=call["from"],
        **call.given("on", "scope", "origin", "redact"),
    )
    return call.answer(stated, _tell_stated)


def facts(call: Invocation) -> int:
    found = call.memory.facts(call["subject"], history=bool(call["history"]), **call.given("label", "as_of", "scope"))
    return call.answer(found, _tell_facts)


def _tell_stated(screen: Output, stated: FactSet) -> None:
    from holdfast.cli.output import one_line
    from holdfast.safety.hidden_chars import make_name_visible

    fact = stated.fact
    style = {"created": "green", "updated": "yellow"}.get(stated.action, "dim")
    until = f", until {fact.valid_to}" if fact.valid_to else ""
    said = f"{make_name_visible(fact.subject)}: {fact.label}: {fact.value} (since {fact.valid_from}{until})"
    screen.say(f"{screen.paint(stated.action, style)} {one_line(said)} in {stated.note.scope}")
    if stated.redacted:
        screen.aside(f"left out what looks like a secret: {', '.join(stated.redacted)}", "yellow")
    for old in stated.retired:
        screen.say("  " + screen.paint(one_line(f"retired {old.label}: {old.value} (since {old.valid_from})"), "dim"))
    _tell_stale(screen, [fact])


def _tell_facts(screen: Output, facts: list[Fact]) -> None:
    if not facts:
        screen.nothing("nothing is stated")
        return
    from holdfast.base import dates
    from holdfast.safety.hidden_chars import make_name_visible

    now = dates.now()
    rows = [
        (
            make_name_visible(one.subject),
            make_name_visible(one.label),
            one.valid_from,
            _end(one, now),
            one.scope.kind,
            _value(one),
        )
        for one in facts
    ]
    screen.table(("SUBJECT", "LABEL", "FROM", "TO", "SCOPE", "VALUE"), rows, ("bold", "", "dim", "dim", "cyan", ""))
    _tell_stale(screen, facts)


def _tell_stale(screen: Output, facts: list[Fact]) -> None:
    """Name the files that still state an older value."""
    from holdfast.cli.output import one_line
    from holdfast.safety.hidden_chars import make_name_visible

    told = dict.fromkeys([(one.subject, one.label, place) for one in facts for place in one.stale_in])
    for subject, label, place in list(told)[:_STALE_SHOWN]:
        about = f"{make_name_visible(subject)}, {make_name_visible(label)}"
        screen.aside(one_line(f"{make_name_visible(place)} still states an older value of {about}"), "yellow")
    if len(told) > _STALE_SHOWN:
        screen.aside(f"and {len(told) - _STALE_SHOWN} more places state older values", "yellow")


def _value(fact: Fact) -> str:
    marks = [mark for mark, on in (("(in quarantine)", fact.quarantined), ("(archived)", fact.archived)) if on]
    return " ".join([*marks, fact.value])


def _end(fact: Fact, now: str) -> str:
    """Until when; what is only going to be true has not lasted until now."""
    return fact.valid_to or ("" if fact.valid_from > now else "now")
