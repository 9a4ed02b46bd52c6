"""Generate a sample for every published rule for secrets from its regular expression, and passwords as people write them."""

from __future__ import annotations

import random
import re
import re._constants as op  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import string
from math import log2
from pathlib import Path
from typing import Any

_PUBLISHED = Path(__file__).with_name("published-rules.tsv")
_ALNUM = string.ascii_letters + string.digits
_MAX_ATTEMPTS = 400
PASSWORD_FORMS = (  # how people write a password; {} is the password
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
_PUNCTUATION = "!@#%^?+"


class PublishedRule:
    """One rule as it was published."""

    def __init__(self, line: str) -> None:
        self.id, entropy, keywords, self.regex = line.split("\t")
        self.entropy = float(entropy)
        self.keywords = keywords.split(" ")

    def make_sample(self, rng: random.Random) -> str:
        """Return a text that the rule finds, with enough entropy; raise `AssertionError` if none can be generated."""
        tree = parser.parse(f"(?a){self.regex}")
        for _ in range(_MAX_ATTEMPTS):
            text = _generate(tree, rng)
            if not any(word in text.lower() for word in self.keywords):
                text = f"{self.keywords[0]} {text}"  # a rule applies only to texts with one of its keywords
            found = find_secret(self.regex, text)
            if found and _compute_entropy(found) > self.entropy:
                return text
        raise AssertionError(f"no sample for {self.id}")


def make_password(rng: random.Random) -> str:
    """Return a random password with letters of both cases, digits and a punctuation character."""
    kinds = (string.ascii_lowercase, string.ascii_uppercase, string.digits, _PUNCTUATION)
    rest = [rng.choice(kind) for kind in kinds] + rng.choices(_ALNUM + _PUNCTUATION, k=rng.randint(4, 14))
    rng.shuffle(rest)
    return "".join([rng.choice(string.ascii_letters), *rest, rng.choice(_ALNUM)])


def load_published_rules() -> list[PublishedRule]:
    """Return all rules of published-rules.tsv."""
    lines = _PUBLISHED.read_text(encoding="utf-8").splitlines()
    return [PublishedRule(line) for line in lines if line and not line.startswith("#")]


def find_secret(regex: str, text: str) -> str:
    """Return the secret that a rule finds in a text, or an empty string."""
    found = re.compile(f"(?a){regex}").search(text)
    if found is None:
        return ""
    return max([group for group in found.groups() if group and len(group) > 5], key=len, default=found[0])


def _generate(tree: Any, rng: random.Random) -> str:
    return "".join([_generate_node(kind, given, rng) for kind, given in tree])


def _generate_node(kind: object, given: Any, rng: random.Random) -> str:
    if kind is op.LITERAL:
        return chr(given)
    if kind is op.ANY:
        return "."  # as in `hooks.slack.com`
    if kind is op.NOT_LITERAL:
        return rng.choice(_ALNUM)
    if kind is op.IN:
        return rng.choice(_class_characters(given))
    if kind is op.BRANCH:
        return _generate(rng.choice(given[1]), rng)
    if kind is op.SUBPATTERN:
        return _generate(given[3], rng)
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT):
        least, most, nodes = given
        count = rng.randint(least, min(int(most), least + 8))
        if [node for node, _ in nodes] == [op.ANY]:
            return "".join(rng.choices(_ALNUM, k=count))
        return "".join([_generate(nodes, rng) for _ in range(count)])
    return ""  # an anchor, not a character


def _class_characters(given: Any) -> str:
    """Return the characters of a class; only letters and digits if it has any, like real keys."""
    wanted, negated = set(), False
    for kind, value in given:
        if kind is op.NEGATE:
            negated = True
        elif kind is op.LITERAL:
            wanted.add(chr(value))
        elif kind is op.RANGE:
            wanted.update([chr(code) for code in range(value[0], value[1] + 1)])
        else:
            wanted.update(_category_characters(value))
    if negated:
        wanted = set(_ALNUM) - wanted
    letters = "".join(sorted(wanted & set(_ALNUM)))
    return letters or "".join(sorted(wanted & set(string.printable))) or " "


def _category_characters(value: object) -> str:
    categories: dict[object, str] = {op.CATEGORY_DIGIT: string.digits, op.CATEGORY_WORD: _ALNUM + "_", op.CATEGORY_SPACE: " "}
    return categories.get(value, _ALNUM)


def _compute_entropy(value: str) -> float:
    counts = [value.count(char) for char in set(value)]
    return -sum(count / len(value) * log2(count / len(value)) for count in counts)
