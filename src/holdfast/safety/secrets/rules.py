"""Load the rules of rules.tsv, which scripts/secret-rules generates, find their anchors and check their matches.

Loose rules also name a check in `CHECKS`, so that code, prose, hashes and placeholders pass.
"""

from __future__ import annotations

import os
import sys

from holdfast.base.lazy_re import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable

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
        if self.entropy and _compute_entropy(value) <= self.entropy:
            return False
        if self._allow:
            self._allow = tuple([_compile(regex) if isinstance(regex, str) else regex for regex in self._allow])
            if any(regex.search(value) for regex in self._allow if not isinstance(regex, str)):
                return False
        if any(regex.search(value) for regex in _allow_patterns()):
            return False
        if self.check:
            return CHECKS[self.check](_find_name_before(text, match.start()) + text[match.start() : start], value)
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


def get_rule_ranks() -> dict[str, int]:
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
    return [(anchor, rules) for anchor, rules in first if anchor in lower]


def _find_anchors_in_long_text(lower: str, data: bytes) -> list[tuple[str, list[Rule]]]:
    """Return the anchors of a long text, read in pieces; search all of it only for anchors whose start and end were found."""
    if not _all_grams:
        ends = [end << 24 for end in range(256)] if sys.byteorder == "little" else range(256)
        up = 0 if sys.byteorder == "little" else 8
        anchors = [anchor for some in _long_anchors.values() for anchor, _ in some]
        _anchor_ends.update({anchor: _to_gram(end[-4:]) for anchor in anchors if len(end := anchor.encode()) > 4})
        _all_grams.update(_long_starts, _anchor_ends.values(), [three << up | end for three in _short_starts for end in ends])
    found: set[int] = set()
    for offset in range(4):
        grams = memoryview(data)[offset : offset + (len(data) - offset) // 4 * 4].cast("I")
        for start in range(0, len(grams), _GRAMS_AT_ONCE):
            found |= _all_grams.intersection(grams[start : start + _GRAMS_AT_ONCE].tolist())
    first = [anchor for gram in found & _long_starts for anchor in _long_anchors[gram]]
    first += [anchor for three in _short_starts.intersection(map(first_three, found)) for anchor in _short_anchors[three]]
    return [
        (anchor, rules)
        for anchor, rules in first
        if anchor not in _anchor_ends or (_anchor_ends[anchor] in found and anchor in lower)
    ]


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
        gram = _to_gram(start)
        where, key = (anchored, gram) if len(start) == 4 else (short, first_three(gram))
        where.setdefault(key, []).append((anchor, rules))
    _short_anchors.update(short)
    _long_starts.update(anchored)
    _short_starts.update(short)
    _long_anchors.update(anchored)  # last: its presence means that the others are complete


def _to_gram(start: bytes) -> int:
    return int.from_bytes(start.ljust(4), sys.byteorder)


def get_common_list(name: str) -> list[str]:
    """Return a list that is common to all rules: `!allow`, `!names` or `!stop`."""
    load_rules()
    return _lists[name]


def _allow_patterns() -> list[re.Pattern[str]]:
    if not _common_allow:
        _common_allow.extend([_compile(regex) for regex in get_common_list("!allow")])
    return _common_allow


def _find_name_before(text: str, start: int) -> str:
    """Return the part of a name before a keyword that is its end or middle."""
    first = start
    while first > 0 and start - first < _NAME_CHARS and (text[first - 1].isalnum() or text[first - 1] in "_.-"):
        first -= 1
    return text[first:start]


def _compile(regex: str) -> re.Pattern[str]:
    import re

    return re.compile(f"(?a){regex}")


def _compute_entropy(value: str) -> float:
    """Return the Shannon entropy in bits per character."""
    from math import log2

    counts = [value.count(char) for char in set(value)]
    return -sum([count / len(value) * log2(count / len(value)) for count in counts])


# --- checks ---------------------------------------------------------------------------------------------------------------
#
# Each check gets the text before a value and the value, and returns whether the value is a secret.

_PLACEHOLDER = pattern(
    r"(?i)example|your[_-]?|x{4}|\*{2}|\.{3}|…|placeholder|change_?me|redacted|dummy|insert|<|\$\{|\{\{|^\$|^%\w+%$|^@\w+@$|^env[.:]|process\.env|os\.environ"
)
_HASH = pattern(
    r"(?i)^(?:[0-9a-f]{40}|[0-9a-f]{64}|(?:sha\d{1,3}|md5)[-:].*|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$"
)
_SECRET_WORD = pattern(r"(?i)secret|token|passw|api|private|encrypt|signing|master|creds|credential|bearer|client")
_IDENTIFIER = pattern(  # of a variable or a function
    r"^(?:[A-Za-z_$][\w$]*(?:(?:\.|::|->)[A-Za-z_$][\w$]*)+|[a-z]+(?:_[a-z0-9]+)+|[A-Z]+(?:_[A-Z0-9]+)+"
    r"|[a-z]+(?:[A-Z][a-z]+)+\d?|[A-Za-z_]\w*=[A-Za-z_][\w.]*)[.!?:]*$"
)
_PROSE = pattern(  # a number with a word, a version, a date, the name of a method
    r"(?i)^(?:\d+[-+]?[a-z]+(?:-[a-z]+)*|v?\d+(?:\.\d+)+\w*|[\d.:/_-]+\w{0,2}"
    r"|(?:bcrypt|scrypt|argon2|sha-?\d|md5|pbkdf2|oauth|utf-?\d|base\d\d|aes|rsa|hmac|totp|ed25519|x509|pkcs|windows|python|http).*)[.!?:%]*$"
)
_SLUG = pattern(r"^(?:[A-Za-z]+\d{0,2}|\d+)(?:[-_.](?:[A-Za-z]+\d{0,2}|\d+))+[.!?:]*$")  # words and numbers, joined
_PATH = pattern(r"^(?:[~.]{0,2}/|[A-Za-z]:\\|[a-z][a-z0-9+.-]*://)|^[\w.-]+(?:/[\w.-]+)+$")
_NOT_SECRET = pattern(r"(?i)fingerprint|(?:sha\d{1,3}|md5)[:=]?\s*$")  # of values that need not be secret
_WORD_WITH_NUMBER = pattern(r"^[A-Za-z]+[-_(]?[\d,]{1,6}\)?$")  # as `varchar(255)`
_ADDRESS_OR_SETTING = pattern(  # an address, a package with its version, an issue, a setting
    r"^(?:[\w.+-]+@[\w.-]+\.[a-z]{2,}|@?[\w./-]+@[\^~v]?\d+\.\d.*|(?:[\w.-]+/[\w.-]+|[A-Z]*|[a-z]*)#\d+|[A-Za-z_][\w.-]*=[\w.]+|[\d.]+%.*)$"
)
_WORDS_AND_NUMBERS = pattern(r"[A-Z]?[a-z]{2,}|[A-Z]{3,}|\d{4,}")  # within a value
_ONE_WORD = pattern(r"^[\w+=~-]+$")
_PASS_NAME = pattern(r"[A-Z]_?(?:PASS|PW)\b")
_OTHER_PASS = pattern(r"(?i)(?:by|com|tres|sur|over|under|en|im)pass\b")
_OTHER_OPTION = pattern(r"(?i)^-+(?:no|ask|prompt)-")
_LONG_RUN = pattern(r"[A-Za-z0-9]{16,}")
_PLACEHOLDER_WORDS = frozenset(("password", "passwd", "pass", "pwd", "secret", "token", "user", "username", "none", "null"))
_public_names: list[re.Pattern[str]] = []  # compiled once


def _is_placeholder(value: str) -> bool:
    return bool(_PLACEHOLDER.search(value)) or value.strip("[]{}.:").lower() in _PLACEHOLDER_WORDS


def is_assigned_secret(before: str, value: str) -> bool:
    """Accept a value assigned to a name such as `api_key`, unless the name or the value shows that it is not a secret."""
    if not _public_names:
        import re

        _public_names.append(re.compile(f"(?a){get_common_list('!names')[0]}"))
    lower = value.lower()
    if _public_names[0].search(before) or _is_placeholder(value):
        return False
    if _NOT_SECRET.search(before) or (_HASH.search(value) and not _SECRET_WORD.search(before)):
        return False
    if _IDENTIFIER.search(value) or _PATH.search(value) or _PROSE.search(value) or _SLUG.search(value):
        return False
    return not any(word in lower for word in get_common_list("!stop"))


def is_password(before: str, value: str) -> bool:
    """Accept a word of letters and other characters that is not a variable, a placeholder or a password policy."""
    value = value.strip("\"'").rstrip(".!?:")
    if len(value) < 6 or _is_placeholder(value) or not any(char.isalpha() for char in value):
        return False
    if not any(char.isdigit() or char in "!@#$%^&*+=?~|" for char in value):
        return False
    return not (_IDENTIFIER.search(value) or _PROSE.search(value) or _PATH.search(value) or value[0] in "|&=$%{[*")


def is_password_in_cell(before: str, value: str) -> bool:
    """Accept a password in a table cell, but not the type of a column."""
    return is_password(before, value) and not (_WORD_WITH_NUMBER.search(value) or _SLUG.search(value))


def is_strong_password(before: str, value: str) -> bool:
    """Accept only a value that is certainly a password, for positions where other words are common."""
    value = value.rstrip(".!?:")
    if len(value) < 8 or not is_password_in_cell(before, value) or _ADDRESS_OR_SETTING.search(value):
        return False
    if not any(char.isdigit() for char in value):
        return False
    if any(char in "!@#$%^&*?" for char in value):
        return True
    has_both_cases = any(char.islower() for char in value) and any(char.isupper() for char in value)
    rest = _WORDS_AND_NUMBERS.sub("", value)
    return has_both_cases and bool(_ONE_WORD.search(value)) and sum([char.isalnum() for char in rest]) >= 5


def is_password_after_word(before: str, value: str) -> bool:
    """Accept any password as an option or in quotes, but in a sentence only a strong one."""
    if (before.startswith("-") and not _OTHER_OPTION.search(before)) or before.endswith(("'", '"')):
        return is_password(before, value)
    return is_strong_password(before, value)


def is_password_after_short_name(before: str, value: str) -> bool:
    """Accept a value after `pass` or `pw`, which are ambiguous unless they end a name such as DB_PASS."""
    if _OTHER_PASS.search(before):
        return False
    return is_password(before, value) if _PASS_NAME.search(before) else is_strong_password(before, value)


def is_signature(before: str, value: str) -> bool:
    """Accept the signature of a signed URL."""
    return has_letters_and_digits(before, value) and not _HASH.search(value) and not (value.islower() or value.isupper())


def is_secret_near_word(before: str, value: str) -> bool:
    """Accept a long run of letters and digits near a word for a secret, but not git hashes and ids with many parts."""
    run = max(_LONG_RUN.findall(value), key=len, default="")
    if not run or _HASH.search(value) or _is_placeholder(value) or _PATH.search(value) or _IDENTIFIER.search(value):
        return False
    if not _SECRET_WORD.search(before) or _NOT_SECRET.search(before):
        return False
    digit_count = sum([char.isdigit() for char in run])
    return digit_count >= 2 and any(char.isalpha() for char in run) and not run.isdigit()


def is_url_password(before: str, value: str) -> bool:
    """Accept the password of a connection string, unless it is a placeholder."""
    return not _is_placeholder(value) and not value.startswith(("$", "%", "[", "{", ":", "<")) and value != "x-oauth-basic"


def has_letters_and_digits(before: str, value: str) -> bool:
    """Accept a value with letters and digits, unless it is a placeholder."""
    return any(char.isdigit() for char in value) and any(char.isalpha() for char in value) and not _is_placeholder(value)


def is_not_a_word(before: str, value: str) -> bool:
    """Accept any value but a plain word."""
    return any(char.isdigit() for char in value) or not (value.islower() or value.isupper() or value.istitle())


# by the names in rules.tsv
CHECKS: dict[str, Callable[[str, str], bool]] = {
    "assigned": is_assigned_secret,
    "password": is_password,
    "beside": is_secret_near_word,
    "url": is_url_password,
    "digits": has_letters_and_digits,
    "mixed": is_not_a_word,
    "cell": is_password_in_cell,
    "strong": is_strong_password,
    "after": is_password_after_word,
    "short": is_password_after_short_name,
    "signed": is_signature,
}
