"""Checks that loose rules make besides their pattern, so that code, prose, hashes and placeholders pass.

Each check gets the text before a value and the value, and returns whether the value is a secret.
"""

from __future__ import annotations

from holdfast.base.lazy_re import pattern
from holdfast.safety.secrets.rules import common_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable

_PLACEHOLDER = pattern(
    r"(?i)example|your[_-]?|x{4}|\*{2}|\.{3}|…|placeholder|change_?me|redacted|dummy|insert|<|\$\{|\{\{|^\$|^%\w+%$|^@\w+@$|^env[.:]|process\.env|os\.environ"
)
_HASH = pattern(
    r"(?i)^(?:[0-9a-f]{40}|[0-9a-f]{64}|(?:sha\d{1,3}|md5)[-:].*|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$"
)
_TOLD = pattern(r"(?i)secret|token|passw|api|private|encrypt|signing|master|creds|credential|bearer|client")
_NAME = pattern(  # of a variable or a function
    r"^(?:[A-Za-z_$][\w$]*(?:(?:\.|::|->)[A-Za-z_$][\w$]*)+|[a-z]+(?:_[a-z0-9]+)+|[A-Z]+(?:_[A-Z0-9]+)+"
    r"|[a-z]+(?:[A-Z][a-z]+)+\d?|[A-Za-z_]\w*=[A-Za-z_][\w.]*)[.!?:]*$"
)
_PROSE = pattern(  # a number with a word, a version, a date, the name of a method
    r"(?i)^(?:\d+[-+]?[a-z]+(?:-[a-z]+)*|v?\d+(?:\.\d+)+\w*|[\d.:/_-]+\w{0,2}"
    r"|(?:bcrypt|scrypt|argon2|sha-?\d|md5|pbkdf2|oauth|utf-?\d|base\d\d|aes|rsa|hmac|totp|ed25519|x509|pkcs|windows|python|http).*)[.!?:%]*$"
)
_SLUG = pattern(r"^(?:[A-Za-z]+\d{0,2}|\d+)(?:[-_.](?:[A-Za-z]+\d{0,2}|\d+))+[.!?:]*$")  # words and numbers, joined
_PATH = pattern(r"^(?:[~.]{0,2}/|[A-Za-z]:\\|[a-z][a-z0-9+.-]*://)|^[\w.-]+(?:/[\w.-]+)+$")
_PUBLIC = pattern(r"(?i)fingerprint|(?:sha\d{1,3}|md5)[:=]?\s*$")  # what may be known to all
_NUMBERED = pattern(r"^[A-Za-z]+[-_(]?[\d,]{1,6}\)?$")  # as `varchar(255)`
_THING = pattern(  # an address, a package with its version, an issue, a setting
    r"^(?:[\w.+-]+@[\w.-]+\.[a-z]{2,}|@?[\w./-]+@[\^~v]?\d+\.\d.*|(?:[\w.-]+/[\w.-]+|[A-Z]*|[a-z]*)#\d+|[A-Za-z_][\w.-]*=[\w.]+|[\d.]+%.*)$"
)
_LETTERS = pattern(r"[A-Z]?[a-z]{2,}|[A-Z]{3,}|\d{4,}")  # what words and numbers are made of
_JOINED = pattern(r"^[\w+=~-]+$")
_SHORT_NAME = pattern(r"[A-Z]_?(?:PASS|PW)\b")
_OTHER_PASS = pattern(r"(?i)(?:by|com|tres|sur|over|under|en|im)pass\b")
_NO_OPTION = pattern(r"(?i)^-+(?:no|ask|prompt)-")
_WORDY = pattern(r"[A-Za-z0-9]{16,}")
_WORDS = frozenset(("password", "passwd", "pass", "pwd", "secret", "token", "user", "username", "none", "null"))
_names: list[re.Pattern[str]] = []


def _is_placeholder(value: str) -> bool:
    return bool(_PLACEHOLDER.search(value)) or value.strip("[]{}.:").lower() in _WORDS


def assigned(before: str, value: str) -> bool:
    """Accept a value assigned to a name such as `api_key`, unless the name or the value shows that it is not a secret."""
    if not _names:
        import re

        _names.append(re.compile(f"(?a){common_list('!names')[0]}"))
    lower = value.lower()
    if _names[0].search(before) or _is_placeholder(value):
        return False
    if _PUBLIC.search(before) or (_HASH.search(value) and not _TOLD.search(before)):
        return False
    if _NAME.search(value) or _PATH.search(value) or _PROSE.search(value) or _SLUG.search(value):
        return False
    return not any(word in lower for word in common_list("!stop"))


def password(before: str, value: str) -> bool:
    """Accept a word of letters and other characters that is not a variable, a placeholder or a password policy."""
    value = value.strip("\"'").rstrip(".!?:")
    if len(value) < 6 or _is_placeholder(value) or not any(char.isalpha() for char in value):
        return False
    if not any(char.isdigit() or char in "!@#$%^&*+=?~|" for char in value):
        return False
    return not (_NAME.search(value) or _PROSE.search(value) or _PATH.search(value) or value[0] in "|&=$%{[*")


def cell(before: str, value: str) -> bool:
    """Accept a password in a table cell, but not the type of a column."""
    return password(before, value) and not (_NUMBERED.search(value) or _SLUG.search(value))


def strong(before: str, value: str) -> bool:
    """Accept only what is certainly a password, for positions where other words are common."""
    value = value.rstrip(".!?:")
    if len(value) < 8 or not cell(before, value) or _THING.search(value) or not any(char.isdigit() for char in value):
        return False
    if any(char in "!@#$%^&*?" for char in value):
        return True
    both = any(char.islower() for char in value) and any(char.isupper() for char in value)
    mixed_up = _LETTERS.sub("", value)
    return both and bool(_JOINED.search(value)) and sum([char.isalnum() for char in mixed_up]) >= 5


def after(before: str, value: str) -> bool:
    """Accept a password after the word for it: as an option or in quotes any, in a sentence only a strong one."""
    if (before.startswith("-") and not _NO_OPTION.search(before)) or before.endswith(("'", '"')):
        return password(before, value)
    return strong(before, value)


def short(before: str, value: str) -> bool:
    """Accept a value after `pass` or `pw`, which are ambiguous unless they end a name such as DB_PASS."""
    if _OTHER_PASS.search(before):
        return False
    return password(before, value) if _SHORT_NAME.search(before) else strong(before, value)


def signed(before: str, value: str) -> bool:
    """Accept the signature of a signed URL."""
    return digits(before, value) and not _HASH.search(value) and not (value.islower() or value.isupper())


def beside(before: str, value: str) -> bool:
    """Accept a long run of letters and digits near a word for a secret, but not git hashes and ids with many parts."""
    run = max(_WORDY.findall(value), key=len, default="")
    if not run or _HASH.search(value) or _is_placeholder(value) or _PATH.search(value) or _NAME.search(value):
        return False
    if not _TOLD.search(before) or _PUBLIC.search(before):
        return False
    digits = sum([char.isdigit() for char in run])
    return digits >= 2 and any(char.isalpha() for char in run) and not run.isdigit()


def url(before: str, value: str) -> bool:
    """Accept the password of a connection string, unless it is a placeholder."""
    return not _is_placeholder(value) and not value.startswith(("$", "%", "[", "{", ":", "<")) and value != "x-oauth-basic"


def digits(before: str, value: str) -> bool:
    return any(char.isdigit() for char in value) and any(char.isalpha() for char in value) and not _is_placeholder(value)


def mixed(before: str, value: str) -> bool:
    """Accept anything but a plain word."""
    return any(char.isdigit() for char in value) or not (value.islower() or value.isupper() or value.istitle())


CHECKS: dict[str, Callable[[str, str], bool]] = {
    "assigned": assigned, "password": password, "beside": beside, "url": url, "digits": digits, "mixed": mixed,
    "cell": cell, "strong": strong, "after": after, "short": short, "signed": signed,
}  # fmt: skip
