"""Find secrets in a text: the rule and the position, never the secret itself.

A rule is compiled only when one of its anchors is in the text, and tried only there. So an ordinary note costs little, and no
text can make a rule run for long.
"""

from __future__ import annotations

from holdfast.base.record import Record
from holdfast.errors import TooLarge
from holdfast.safety.secrets.rules import ANYWHERE, Rule, find_anchors, get_rule_ranks

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

_CHARS_AFTER = 800  # after an anchor, for a rule that may match from before it
_NEAR_CHARS = 300  # before an anchor, where the word must be that some rules require
_MAX_RUN = 2000
_MAX_ROUNDS = 4
_LONG_CHARS = 128 * 1024  # in a longer text, positions with the same characters around them are tried once
_AROUND = 20, 120  # characters before and after an anchor that count for that
_MAX_WORK = 1_000_000  # for a long text, in units of skipping one position
_MATCH_COST, _SEARCH_COST = 10, 80  # of trying a rule at a position, and of searching before it
MARK = "[REDACTED:"


class SecretMatch(Record):
    """A rule, and the characters that it found."""

    rule: str
    start: int
    end: int


def find_secrets(text: str) -> tuple[SecretMatch, ...]:
    """Return the secrets of a text in order; overlapping ones are merged. Raise TooLarge if that takes too long."""
    lower, limit = _lower_in_place(text), _WorkLimit(text)
    matches = [
        match
        for anchor, rules in find_anchors(lower)
        for rule in rules
        for match in _find_matches(rule, anchor, text, lower, limit)
    ]
    return tuple(_merge_overlaps(matches)) if matches else ()


def has_secret(text: str) -> bool:
    """Return whether a text seems to contain a secret, even one split by hidden characters, or is too long to tell."""
    from holdfast.safety.hidden_chars import remove_hidden

    seen = remove_hidden(text)
    try:
        return bool(find_secrets(seen))
    except TooLarge:
        return True


def redact(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text with the name of its rule in place of each secret, and those names."""
    names: dict[str, None] = {}
    for _ in range(_MAX_ROUNDS):  # removing one secret may uncover another beside it
        matches = find_secrets(text)
        if not matches:
            break
        pieces, last = [], 0
        for match in matches:
            pieces += [text[last : match.start], f"{MARK}{match.rule}]"]
            last = match.end
            names[match.rule] = None
        text = "".join([*pieces, text[last:]])
    return text, tuple(names)


def describe(text: str, matches: tuple[SecretMatch, ...]) -> str:
    """Return the rules and lines of secrets for a message, without the secrets."""
    found: dict[str, None] = {}
    line, last = 1, 0
    for match in matches:  # in order
        line += text.count("\n", last, match.start)
        last = match.start
        found[f"{match.rule} on line {line}"] = None
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    return ", ".join(list(found)[:5]) + more


def _merge_overlaps(matches: list[SecretMatch]) -> list[SecretMatch]:
    """Return the matches in order; overlapping ones become one with the name of the most specific rule."""
    ranks = get_rule_ranks()
    kept: list[SecretMatch] = []
    for match in sorted(matches, key=lambda each: (each.start, -each.end)):
        last = kept[-1] if kept else None
        if last is None or match.start >= last.end:
            kept.append(match)
        else:
            best = max(last.rule, match.rule, key=lambda id: ranks[id])
            kept[-1] = SecretMatch(best, last.start, max(last.end, match.end))
    return kept


def _lower_in_place(text: str) -> str:
    """Return the text in lower case with every character at its position."""
    lower = text.lower()
    if len(lower) != len(text):  # one letter became two, such as İ
        lower = "".join([low if len(low := char.lower()) == 1 else char for char in text])
    return lower


class _WorkLimit:
    """Limits the work for one long text; `seen` are the rules and surroundings that were tried without a match."""

    def __init__(self, text: str) -> None:
        self.seen: set[tuple[str, str]] | None = set() if len(text) > _LONG_CHARS else None
        self._left = _MAX_WORK

    def spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0 and self.seen is not None:
            raise TooLarge("the text has too many places that could contain a secret", "Split it")


def _find_matches(rule: Rule, anchor: str, text: str, lower: str, limit: _WorkLimit) -> Iterator[SecretMatch]:
    if rule.near and rule.near not in lower:
        return
    if rule.back == ANYWHERE:
        for match in rule.regex.finditer(text):
            limit.spend(_MATCH_COST)
            if rule.is_secret(text, match):
                yield SecretMatch(rule.id, *rule.value_span(match))
        return
    id, seen, (before, behind), cost = rule.id, limit.seen, _AROUND, _SEARCH_COST if rule.back > 0 else _MATCH_COST
    at = lower.find(anchor)
    while at >= 0:
        after = at + 1
        around = (id, text[at - before if at > before else 0 : at + behind]) if seen is not None else ("", "")
        if seen is None or around not in seen:
            found = _match_at(rule, text, lower, at)
            if found is not None and rule.is_secret(text, found):
                limit.spend(_SEARCH_COST)
                yield SecretMatch(id, *rule.value_span(found))
                after = max(found.end(), after)
            elif seen is not None:
                limit.spend(cost)
                seen.add(around)
        else:
            limit.spend(1)
        at = lower.find(anchor, after)


def _match_at(rule: Rule, text: str, lower: str, at: int) -> re.Match[str] | None:
    if rule.near and rule.near not in lower[max(0, at - _NEAR_CHARS) : at]:
        return None
    if rule.back == 0:
        return rule.regex.match(text, at)
    if rule.back < 0:
        start = at
        while start > 0 and at - start < _MAX_RUN and text[start - 1].isalnum():
            start -= 1
        return rule.regex.match(text, start)
    return rule.regex.search(text, max(0, at - rule.back), at + _CHARS_AFTER)
