"""The rules, as they stand in rules.tsv, and what must hold besides a match. scripts/secret-rules makes that file."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

_FILE = os.path.join(os.path.dirname(__file__), "rules.tsv")
_PART = "\x1f"
_SHORT_TEXT = 32 * 1024  # bytes: so many can be kept as numbers
_AT_ONCE = 16 * 1024  # numbers that a long one is looked at by
ANYWHERE = -2  # as `back`: a match may stand anywhere in the text
_VALUE = 3  # characters that a group has at least which is the secret
_NAME_CHARS = 50  # before a keyword, that are part of the name it stands in


class Rule:
    """One rule; its regular expressions are compiled when first used."""

    __slots__ = ("_allow", "_regex", "anchors", "back", "check", "entropy", "fixed", "id", "near")

    def __init__(self, line: str) -> None:
        id, fixed, entropy, back, near, anchors, regex, check, allow = line.split("\t")
        self.id, self.fixed, self.entropy, self.back, self.near = id, fixed == "1", float(entropy), int(back), near
        self.anchors = tuple(anchors.replace("\\t", "\t").replace("\\n", "\n").split(_PART))
        self.check = check
        self._regex: str | re.Pattern[str] = regex
        self._allow: tuple[str | re.Pattern[str], ...] = tuple(allow.split(_PART)) if allow else ()

    @property
    def regex(self) -> re.Pattern[str]:
        if isinstance(self._regex, str):
            self._regex = _compiled(self._regex)
        return self._regex

    def value(self, match: re.Match[str]) -> tuple[int, int]:
        """Where the secret stands: the longest group; where there is none worth the name, all of the match."""
        spans = [match.span(number) for number in range(1, match.re.groups + 1)]
        start, end = max(spans, key=lambda span: span[1] - span[0], default=(0, 0))
        return (start, end) if end - start >= _VALUE else match.span()

    def holds(self, text: str, match: re.Match[str]) -> bool:
        """Whether what matched is a secret: random enough, and nothing that the rule allows."""
        start, end = self.value(match)
        value = text[start:end]
        if self.entropy and _entropy(value) <= self.entropy:
            return False
        if self._allow:
            self._allow = tuple([_compiled(one) if isinstance(one, str) else one for one in self._allow])
            if any(one.search(value) for one in self._allow if not isinstance(one, str)):
                return False
        if any(one.search(value) for one in _allowed()):
            return False
        if self.check:
            from holdfast.safety.secrets import checks

            return checks.CHECKS[self.check](_name_at(text, match.start()) + text[match.start() : start], value)
        return True


_rules: list[Rule] = []
_lists: dict[str, list[str]] = {}
_anchored: dict[int, list[tuple[str, list[Rule]]]] = {}  # by the first four bytes of the anchor
_starts: set[int] = set()  # those four bytes as numbers: all of a text's are looked up in one go
_threes: set[int] = set()
three_of = (0xFFFFFF).__and__ if sys.byteorder == "little" else (8).__rrshift__  # the first three bytes of four; no Python
_ends: dict[str, int] = {}  # the last four bytes of each longer anchor
_wide: set[int] = set()  # all of these, the three with whatever comes behind them
_short: dict[int, list[tuple[str, list[Rule]]]] = {}  # by three, which is all that some have
_common: list[re.Pattern[str]] = []
_ranks: dict[str, int] = {}


def all_rules() -> list[Rule]:
    if not _rules:
        with open(_FILE, encoding="utf-8") as file:
            lines = file.read().split("\n")
        for line in lines:
            if line.startswith("!"):
                name, _, rest = line.partition("\t")
                _lists[name] = rest.split(_PART)
        _rules[:] = [Rule(line) for line in lines if line and line[0] not in "#!"]
    return _rules


def ranks() -> dict[str, int]:
    """How well each rule knows what it finds: a format of its own, a vendor's name beside it, or any word for a secret."""
    if not _ranks:
        _ranks.update({rule.id: 2 if rule.fixed else 0 if rule.check else 1 for rule in all_rules()})
        _ranks["hashicorp-tf-password"] = -1  # which means any password in quotes
    return _ranks


def present(lower: str) -> list[tuple[str, list[Rule]]]:
    """The anchors that stand in a text of small letters, each with the rules that may start there."""
    if not _anchored:
        _learn()
    data = lower.encode("utf-8", "surrogatepass") + b"    "
    if len(data) >= _SHORT_TEXT:
        return _present_in_long(lower, data)
    grams: set[int] = set()
    for offset in range(4):
        grams.update(memoryview(data)[offset : offset + (len(data) - offset) // 4 * 4].cast("I"))
    first = [anchor for gram in _starts & grams for anchor in _anchored[gram]]
    first += [anchor for gram in _threes.intersection(map(three_of, grams)) for anchor in _short[gram]]
    return [one for one in first if one[0] in lower]


def _present_in_long(lower: str, data: bytes) -> list[tuple[str, list[Rule]]]:
    """The same where every step counts: one look at each four bytes, and at the whole text only for anchors that are longer."""
    if not _wide:
        ends = [end << 24 for end in range(256)] if sys.byteorder == "little" else range(256)
        up = 0 if sys.byteorder == "little" else 8
        anchors = [anchor for some in _anchored.values() for anchor, _ in some]
        _ends.update({anchor: _gram(end[-4:]) for anchor in anchors if len(end := anchor.encode()) > 4})
        _wide.update(_starts, _ends.values(), [three << up | end for three in _threes for end in ends])
    found: set[int] = set()
    for offset in range(4):
        grams = memoryview(data)[offset : offset + (len(data) - offset) // 4 * 4].cast("I")
        for start in range(0, len(grams), _AT_ONCE):
            found |= _wide.intersection(grams[start : start + _AT_ONCE].tolist())
    first = [anchor for gram in found & _starts for anchor in _anchored[gram]]
    first += [anchor for three in _threes.intersection(map(three_of, found)) for anchor in _short[three]]
    return [one for one in first if one[0] not in _ends or (_ends[one[0]] in found and one[0] in lower)]


def _learn() -> None:
    """Sort the rules by how their anchors start. Several threads may do so at once: each puts the same."""
    found: dict[str, list[Rule]] = {}
    for rule in all_rules():
        for anchor in rule.anchors:
            found.setdefault(anchor, []).append(rule)
    anchored: dict[int, list[tuple[str, list[Rule]]]] = {}
    short: dict[int, list[tuple[str, list[Rule]]]] = {}
    for anchor, rules in found.items():
        start = anchor.encode()[:4]
        gram = _gram(start)
        where, key = (anchored, gram) if len(start) == 4 else (short, three_of(gram))
        where.setdefault(key, []).append((anchor, rules))
    _short.update(short)
    _starts.update(anchored)
    _threes.update(short)
    _anchored.update(anchored)  # the last: whoever finds it filled finds the others so


def _gram(start: bytes) -> int:
    return int.from_bytes(start.ljust(4), sys.byteorder)


def listed(name: str) -> list[str]:
    """What the set says of all its rules: `!allow`, `!names`, `!stop`."""
    all_rules()
    return _lists[name]


def _allowed() -> list[re.Pattern[str]]:
    if not _common:
        _common.extend([_compiled(one) for one in listed("!allow")])
    return _common


def _name_at(text: str, start: int) -> str:
    """The name that a keyword at this place is the end or the middle of."""
    first = start
    while first > 0 and start - first < _NAME_CHARS and (text[first - 1].isalnum() or text[first - 1] in "_.-"):
        first -= 1
    return text[first:start]


def _compiled(regex: str) -> re.Pattern[str]:
    import re

    return re.compile(f"(?a){regex}")


def _entropy(value: str) -> float:
    """Shannon's, in bits a character."""
    from math import log2

    counts = [value.count(char) for char in set(value)]
    return -sum([count / len(value) * log2(count / len(value)) for count in counts])
