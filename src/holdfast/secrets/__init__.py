"""Secrets in a text: which rule finds one and where, never what it is (S2). Pure, but for the rules, which are read once.

A rule is compiled only when one of its anchors stands in the text, and tried only there: an ordinary note costs next to
nothing, and no text can make a rule run away.
"""

from __future__ import annotations

from holdfast.errors import TooLarge
from holdfast.note import Record
from holdfast.secrets.rules import ANYWHERE, Rule, present, ranks

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
_PLACES = 100_000
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
    from holdfast.hidden import bare

    seen = bare(text)
    try:
        return not plain(seen) and bool(found(seen))
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
    said = dict.fromkeys([f"{hit.rule} on line {text.count(chr(10), 0, hit.start) + 1}" for hit in hits])
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
        self._text = text
        self._seen: set[tuple[str, str]] | None = set() if len(text) > _LONG else None

    def _around(self, rule: Rule, place: int) -> tuple[str, str]:
        return rule.id, self._text[max(0, place - _AROUND[0]) : place + _AROUND[1]]

    def known(self, rule: Rule, place: int) -> bool:
        return self._seen is not None and self._around(rule, place) in self._seen

    def nothing_at(self, rule: Rule, place: int) -> None:
        if self._seen is not None:
            if len(self._seen) >= _PLACES:
                raise TooLarge("a text with too many places where a secret may stand", "Split it")
            self._seen.add(self._around(rule, place))


def _hits(rule: Rule, anchor: str, text: str, lower: str, places: _Places) -> Iterator[Found]:
    if rule.near and rule.near not in lower:
        return
    if rule.back == ANYWHERE:
        for one in rule.regex.finditer(text):
            if rule.holds(text, one):
                yield Found(rule.id, *rule.value(one))
        return
    place = lower.find(anchor)
    while place >= 0:
        after = place + 1
        if not places.known(rule, place):
            match = _match(rule, text, lower, place)
            if match is not None and rule.holds(text, match):
                yield Found(rule.id, *rule.value(match))
                after = max(match.end(), after)
            else:
                places.nothing_at(rule, place)
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
