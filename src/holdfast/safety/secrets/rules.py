"""The rules of rules.tsv, which scripts/secret-rules generates, and what must be true besides a match."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

_FILE = os.path.join(os.path.dirname(__file__), "rules.tsv")
_SEPARATOR = "\x1f"
_SHORT_TEXT_BYTES = 32 * 1024  # texts up to this size are compared as one set of numbers
_GRAMS_AT_ONCE = 16 * 1024  # numbers of a longer text that are compared at a time
ANYWHERE = -2  # as `back`: a match may be anywhere in the text
_MIN_VALUE_CHARS = 3  # of a group that counts as the secret
_NAME_CHARS = 50  # before a keyword, that may belong to the same name


class Rule:
    """One rule; its regular expressions are compiled when first used."""

    __slots__ = ("_allow", "_regex", "anchors", "back", "check", "entropy", "fixed", "id", "near")

    def __init__(self, line: str) -> None:
        id, fixed, entropy, back, near, anchors, regex, check, allow = line.split("\t")
        self.id, self.fixed, self.entropy, self.back, self.near = id, fixed == "1", float(entropy), int(back), near
        self.anchors = tuple(anchors.replace("\\t", "\t").replace("\\n", "\n").split(_SEPARATOR))
        self.check = check
        self._regex: str | re.Pattern[str] = regex
        self._allow: tuple[str | re.Pattern[str], ...] = tuple(allow.split(_SEPARATOR)) if allow else ()

    @property
    def regex(self) -> re.Pattern[str]:
        if isinstance(self._regex, str):
            self._regex = _compile(self._regex)
        return self._regex

    def value_span(self, match: re.Match[str]) -> tuple[int, int]:
        """Return where the secret is: the longest group, or the whole match if every group is short."""
        spans = [match.span(number) for number in range(1, match.re.groups + 1)]
        start, end = max(spans, key=lambda span: span[1] - span[0], default=(0, 0))
        return (start, end) if end - start >= _MIN_VALUE_CHARS else match.span()

    def is_secret(self, text: str, match: re.Match[str]) -> bool:
        """Return whether a match is a secret: random enough and not allowed by the rule."""
        start, end = self.value_span(match)
        value = text[start:end]
        if self.entropy and _entropy(value) <= self.entropy:
            return False
        if self._allow:
            self._allow = tuple([_compile(one) if isinstance(one, str) else one for one in self._allow])
            if any(one.search(value) for one in self._allow if not isinstance(one, str)):
                return False
        if any(one.search(value) for one in _allow_patterns()):
            return False
        if self.check:
            from holdfast.safety.secrets import checks

            return checks.CHECKS[self.check](_name_before(text, match.start()) + text[match.start() : start], value)
        return True


_rules: list[Rule] = []
_lists: dict[str, list[str]] = {}
_long_anchors: dict[int, list[tuple[str, list[Rule]]]] = {}  # by the first four bytes
_long_starts: set[int] = set()  # the same four bytes as numbers
_short_starts: set[int] = set()
# the first three bytes of four, without a Python call for each number
first_three = (0xFFFFFF).__and__ if sys.byteorder == "little" else (8).__rrshift__
_anchor_ends: dict[str, int] = {}  # last four bytes of each longer anchor
_all_grams: set[int] = set()  # all starts and ends; three bytes with each possible fourth
_short_anchors: dict[int, list[tuple[str, list[Rule]]]] = {}  # anchors of three bytes
_common_allow: list[re.Pattern[str]] = []
_ranks: dict[str, int] = {}


def load_rules() -> list[Rule]:
    """Return the rules; the file is read once."""
    if not _rules:
        with open(_FILE, encoding="utf-8") as file:
            lines = file.read().split("\n")
        for line in lines:
            if line.startswith("!"):
                name, _, rest = line.partition("\t")
                _lists[name] = rest.split(_SEPARATOR)
        _rules[:] = [Rule(line) for line in lines if line and line[0] not in "#!"]
    return _rules


def rule_ranks() -> dict[str, int]:
    """Return how specific each rule is: 2 for a distinct format, 1 for a vendor's name nearby, 0 for any word for a secret."""
    if not _ranks:
        _ranks.update({rule.id: 2 if rule.fixed else 0 if rule.check else 1 for rule in load_rules()})
        _ranks["hashicorp-tf-password"] = -1  # it matches any password in quotes
    return _ranks


def find_anchors(lower: str) -> list[tuple[str, list[Rule]]]:
    """Return the anchors in a lower-case text, each with the rules that may match there.

    Comparing four bytes at a time as numbers is up to six times as fast as searching for 400 anchors: an import of transcripts
    checks hundreds of megabytes.
    """
    if not _long_anchors:
        _build_anchor_tables()
    data = lower.encode("utf-8", "surrogatepass") + b"    "
    if len(data) >= _SHORT_TEXT_BYTES:
        return _find_anchors_in_long_text(lower, data)
    grams: set[int] = set()
    for offset in range(4):
        grams.update(memoryview(data)[offset : offset + (len(data) - offset) // 4 * 4].cast("I"))
    first = [anchor for gram in _long_starts & grams for anchor in _long_anchors[gram]]
    first += [anchor for gram in _short_starts.intersection(map(first_three, grams)) for anchor in _short_anchors[gram]]
    return [one for one in first if one[0] in lower]


def _find_anchors_in_long_text(lower: str, data: bytes) -> list[tuple[str, list[Rule]]]:
    """Do the same for a long text in pieces; search the whole text only for anchors whose start and end were found."""
    if not _all_grams:
        ends = [end << 24 for end in range(256)] if sys.byteorder == "little" else range(256)
        up = 0 if sys.byteorder == "little" else 8
        anchors = [anchor for some in _long_anchors.values() for anchor, _ in some]
        _anchor_ends.update({anchor: _gram(end[-4:]) for anchor in anchors if len(end := anchor.encode()) > 4})
        _all_grams.update(_long_starts, _anchor_ends.values(), [three << up | end for three in _short_starts for end in ends])
    found: set[int] = set()
    for offset in range(4):
        grams = memoryview(data)[offset : offset + (len(data) - offset) // 4 * 4].cast("I")
        for start in range(0, len(grams), _GRAMS_AT_ONCE):
            found |= _all_grams.intersection(grams[start : start + _GRAMS_AT_ONCE].tolist())
    first = [anchor for gram in found & _long_starts for anchor in _long_anchors[gram]]
    first += [anchor for three in _short_starts.intersection(map(first_three, found)) for anchor in _short_anchors[three]]
    return [one for one in first if one[0] not in _anchor_ends or (_anchor_ends[one[0]] in found and one[0] in lower)]


def _build_anchor_tables() -> None:
    """Group the rules by the start of their anchors; concurrent threads build the same tables."""
    found: dict[str, list[Rule]] = {}
    for rule in load_rules():
        for anchor in rule.anchors:
            found.setdefault(anchor, []).append(rule)
    anchored: dict[int, list[tuple[str, list[Rule]]]] = {}
    short: dict[int, list[tuple[str, list[Rule]]]] = {}
    for anchor, rules in found.items():
        start = anchor.encode()[:4]
        gram = _gram(start)
        where, key = (anchored, gram) if len(start) == 4 else (short, first_three(gram))
        where.setdefault(key, []).append((anchor, rules))
    _short_anchors.update(short)
    _long_starts.update(anchored)
    _short_starts.update(short)
    _long_anchors.update(anchored)  # last: its presence means that the others are complete


def _gram(start: bytes) -> int:
    return int.from_bytes(start.ljust(4), sys.byteorder)


def common_list(name: str) -> list[str]:
    """Return a list that is common to all rules: `!allow`, `!names` or `!stop`."""
    load_rules()
    return _lists[name]


def _allow_patterns() -> list[re.Pattern[str]]:
    if not _common_allow:
        _common_allow.extend([_compile(one) for one in common_list("!allow")])
    return _common_allow


def _name_before(text: str, start: int) -> str:
    """Return the part of a name before a keyword that is its end or middle."""
    first = start
    while first > 0 and start - first < _NAME_CHARS and (text[first - 1].isalnum() or text[first - 1] in "_.-"):
        first -= 1
    return text[first:start]


def _compile(regex: str) -> re.Pattern[str]:
    import re

    return re.compile(f"(?a){regex}")


def _entropy(value: str) -> float:
    """Return the Shannon entropy in bits per character."""
    from math import log2

    counts = [value.count(char) for char in set(value)]
    return -sum([count / len(value) * log2(count / len(value)) for count in counts])
