"""Secrets in a text: which rule finds one and where, never what it is (S2). Pure, but for the rules, which are read once.

A rule is compiled only when one of its anchors stands in the text, and tried only there: an ordinary note costs next to
nothing, and no text can make a rule run away.
"""

from __future__ import annotations

from holdfast.base.record import Record
from holdfast.errors import TooLarge
from holdfast.safety.secrets.rules import ANYWHERE, Rule, present, ranks

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

_AHEAD = 800  # characters after an anchor that a rule looks at which starts before it
_BEFORE = 300  # how far before it the word stands that some rules ask for
_RUN = 2000
_ROUNDS = 4
_LONG = 128 * 1024  # characters: beyond, places that read alike are looked at once
_AROUND = 20, 120
_WORK = 1_000_000  # what may be done for a long text: one is to pass by a place that reads like another,
_LOOK, _SEARCH = 10, 80  # what it costs to look at a place, and to look for a rule that may start before it
MARK = "[REDACTED:"


class Found(Record):
    """A rule, and the characters it means."""

    rule: str
    start: int
    end: int


def plain(text: str) -> bool:
    """Whether no rule has anything to look at."""
    return not present(text.lower())


def found(text: str) -> tuple[Found, ...]:
    """What looks like a secret, in the order it stands there; of those that overlap, the longest."""
    lower, places = _lower(text), _Places(text)
    hits = [hit for anchor, rules in present(lower) for rule in rules for hit in _hits(rule, anchor, text, lower, places)]
    return tuple(_apart(hits)) if hits else ()


def exposes(text: str) -> bool:
    """Whether a text seems to hold a secret, also one that hidden characters split; or is too long to tell."""
    from holdfast.safety.hidden_chars import remove_hidden

    seen = remove_hidden(text)
    try:
        return bool(found(seen))
    except TooLarge:
        return True


def redacted(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with each secret's rule in its place, and the rules; the same text if there is none."""
    names: dict[str, None] = {}
    for _ in range(_ROUNDS):  # what stood beside one may be found now that it is gone
        hits = found(text)
        if not hits:
            break
        pieces, last = [], 0
        for hit in hits:
            pieces += [text[last : hit.start], f"{MARK}{hit.rule}]"]
            last = hit.end
            names[hit.rule] = None
        text = "".join([*pieces, text[last:]])
    return text, tuple(names)


def named(text: str, hits: tuple[Found, ...]) -> str:
    """Which rules, and on which lines: what may be said of them."""
    said: dict[str, None] = {}
    line, last = 1, 0
    for hit in hits:  # which come in order
        line += text.count("\n", last, hit.start)
        last = hit.start
        said[f"{hit.rule} on line {line}"] = None
    more = f" and {len(said) - 5} more" if len(said) > 5 else ""
    return ", ".join(list(said)[:5]) + more


def _apart(hits: list[Found]) -> list[Found]:
    """In order, none over another: what overlaps is one, under the name of the rule that knows best what it is."""
    known = ranks()
    kept: list[Found] = []
    for hit in sorted(hits, key=lambda one: (one.start, -one.end)):
        last = kept[-1] if kept else None
        if last is None or hit.start >= last.end:
            kept.append(hit)
        else:
            best = max(last.rule, hit.rule, key=lambda id: known[id])
            kept[-1] = Found(best, last.start, max(last.end, hit.end))
    return kept


def _lower(text: str) -> str:
    """In small letters, each character still in its place."""
    lower = text.lower()
    if len(lower) != len(text):  # one letter became two, as İ does
        lower = "".join([low if len(low := char.lower()) == 1 else char for char in text])
    return lower


class _Places:
    """The places of a long text where a rule found nothing: those that read alike are passed by, and there may not be many."""

    def __init__(self, text: str) -> None:
        self.seen: set[tuple[str, str]] | None = set() if len(text) > _LONG else None
        self._left = _WORK

    def spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0 and self.seen is not None:
            raise TooLarge("a text with too many places where a secret may stand", "Split it")


def _hits(rule: Rule, anchor: str, text: str, lower: str, places: _Places) -> Iterator[Found]:
    if rule.near and rule.near not in lower:
        return
    if rule.back == ANYWHERE:
        for one in rule.regex.finditer(text):
            places.spend(_LOOK)
            if rule.holds(text, one):
                yield Found(rule.id, *rule.value(one))
        return
    id, seen, (before, behind), cost = rule.id, places.seen, _AROUND, _SEARCH if rule.back > 0 else _LOOK
    place = lower.find(anchor)
    while place >= 0:
        after = place + 1
        around = (id, text[place - before if place > before else 0 : place + behind]) if seen is not None else ("", "")
        if seen is None or around not in seen:
            match = _match(rule, text, lower, place)
            if match is not None and rule.holds(text, match):
                places.spend(_SEARCH)
                yield Found(id, *rule.value(match))
                after = max(match.end(), after)
            elif seen is not None:
                places.spend(cost)
                seen.add(around)
        else:
            places.spend(1)
        place = lower.find(anchor, after)


def _match(rule: Rule, text: str, lower: str, place: int) -> re.Match[str] | None:
    if rule.near and rule.near not in lower[max(0, place - _BEFORE) : place]:
        return None
    if rule.back == 0:
        return rule.regex.match(text, place)
    if rule.back < 0:
        start = place
        while start > 0 and place - start < _RUN and text[start - 1].isalnum():
            start -= 1
        return rule.regex.match(text, start)
    return rule.regex.search(text, max(0, place - rule.back), place + _AHEAD)
