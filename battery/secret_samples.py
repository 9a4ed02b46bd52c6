"""A sample for every published rule for secrets, made from its own regular expression. Seeded."""

from __future__ import annotations

import random
import re._constants as op
import re._parser as parser
import string
from math import log2
from pathlib import Path

_PUBLISHED = Path(__file__).with_name("published-rules.tsv")
_ALNUM = string.ascii_letters + string.digits
_TRIES = 400
FORMS = (  # how people write a password down; {} is where it stands
    "**Password:** `{}`", "**Password**: {}", "- **password**: `{}`", "**password: {}**", "*Password:* {}",
    "| password | {} |", "| DB password | `{}` |", "| **password** | **{}** |", "| pass | {} |",
    "DB_PASS={}", "SMTP_PASS: '{}'", "redis_pass = \"{}\"", "pass: {}", "pw: {}", "user: admin, pass: {}", "**pw:** `{}`",
    "password (prod): {}", "credentials: admin:{}", "creds for staging: bob / {}", "<password>{}</password>",
    "wifi password → {}", "the password for admin is {}", "Password for prod DB is: {}", "Password for the staging box: {}",
    "password is now {} again", "the root password was changed to {} today", "admin password {}",
    "our password is `{}`, do not tell",
    "tool login --password {}", "tool --db-password '{}' -v", "tool --pass {}", "docker login -u bob -p {} hub.local",
    "mysql -uroot -p{}", "mysqldump -h db -u root -p'{}' app > x.sql", "sshpass -p {} ssh root@box",
    "redis-cli -h db -a {} ping",
    "machine box login bob password {}", "login bob password {}",
    "CREATE USER bob IDENTIFIED BY '{}';", "ALTER USER bob IDENTIFIED WITH caching_sha2_password BY '{}';",
    "ALTER ROLE bob WITH PASSWORD '{}';",
)  # fmt: skip
_SIGNS = "!@#%^?+"


class Published:
    """One rule as it was published."""

    def __init__(self, line: str) -> None:
        self.id, entropy, keywords, self.regex = line.split("\t")
        self.entropy = float(entropy)
        self.keywords = keywords.split(" ")

    def sample(self, chance: random.Random) -> str:
        """A text that the rule finds, random enough for it."""
        tree = parser.parse(f"(?a){self.regex}")
        flags = tree.state.flags
        for _ in range(_TRIES):
            text = _made(tree, chance, flags, {})
            if not any(word in text.lower() for word in self.keywords):
                text = f"{self.keywords[0]} {text}"  # a rule is only tried where one of its keywords stands
            found = re_search(self.regex, text)
            if found and _entropy(found) > self.entropy:
                return text
        raise AssertionError(f"no sample for {self.id}")


def password(chance: random.Random) -> str:
    """One as a generator of passwords makes it: letters of both kinds, digits, a sign."""
    kinds = (string.ascii_lowercase, string.ascii_uppercase, string.digits, _SIGNS)
    rest = [chance.choice(kind) for kind in kinds] + chance.choices(_ALNUM + _SIGNS, k=chance.randint(4, 14))
    chance.shuffle(rest)
    return "".join([chance.choice(string.ascii_letters), *rest, chance.choice(_ALNUM)])


def published() -> list[Published]:
    lines = _PUBLISHED.read_text(encoding="utf-8").splitlines()
    return [Published(line) for line in lines if line and not line.startswith("#")]


def re_search(regex: str, text: str) -> str:
    """The secret that the rule itself finds there."""
    import re

    found = re.compile(f"(?a){regex}").search(text)
    if found is None:
        return ""
    return max([one for one in found.groups() if one and len(one) > 5], key=len, default=found[0])


def _made(tree: object, chance: random.Random, flags: int, groups: dict[int, str]) -> str:
    return "".join([_piece(kind, given, chance, flags, groups) for kind, given in tree])  # type: ignore[attr-defined]


def _piece(kind: object, given: object, chance: random.Random, flags: int, groups: dict[int, str]) -> str:
    if kind is op.LITERAL:
        return chr(given)  # type: ignore[arg-type]
    if kind is op.ANY:
        return "."  # as in `hooks.slack.com`
    if kind is op.NOT_LITERAL:
        return chance.choice(_ALNUM)
    if kind is op.IN:
        return chance.choice(_choices(given))
    if kind is op.BRANCH:
        return _made(chance.choice(given[1]), chance, flags, groups)  # type: ignore[index]
    if kind is op.SUBPATTERN:
        return _made(given[3], chance, flags, groups)  # type: ignore[index]
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT):
        least, most, what = given  # type: ignore[misc]
        count = chance.randint(least, min(int(most), least + 8))
        if [one for one, _ in what] == [op.ANY]:
            return "".join(chance.choices(_ALNUM, k=count))
        return "".join([_made(what, chance, flags, groups) for _ in range(count)])
    return ""  # a place, not a character


def _choices(given: object) -> str:
    """The characters of a class; letters and digits before others, as real keys have them."""
    wanted, negated = set(), False
    for kind, value in given:  # type: ignore[attr-defined]
        if kind is op.NEGATE:
            negated = True
        elif kind is op.LITERAL:
            wanted.add(chr(value))
        elif kind is op.RANGE:
            wanted.update([chr(one) for one in range(value[0], value[1] + 1)])
        else:
            wanted.update(_category(value))
    if negated:
        wanted = set(_ALNUM) - wanted
    letters = "".join(sorted(wanted & set(_ALNUM)))
    return letters or "".join(sorted(wanted & set(string.printable))) or " "


def _category(value: object) -> str:
    return {op.CATEGORY_DIGIT: string.digits, op.CATEGORY_WORD: _ALNUM + "_", op.CATEGORY_SPACE: " "}.get(value, _ALNUM)  # type: ignore[call-overload,no-any-return]


def _entropy(value: str) -> float:
    counts = [value.count(char) for char in set(value)]
    return -sum(count / len(value) * log2(count / len(value)) for count in counts)
