"""Platform keys: keys of any printable text, and the note key that each one is stored under.

A valid note key stands for itself. Any other key, such as `BuildCmd` or `repo:x`, gets a derived note key: a readable slug,
two hyphens and 32 letters that encode a SHA-256 digest of the exact key. The file of the note keeps the exact key as `name`.
"""

from __future__ import annotations

from holdfast.base.ids import KEY_PATTERN, to_ascii
from holdfast.base.lazy_re import pattern

MAX_CHARS = 200
_SLUG_CHARS = 26  # with two hyphens and 32 letters of the digest: the 60 characters of a key
_OTHERS = pattern(r"[^a-z0-9]+")
_ALPHABET = "abcdefghijklmnop"
_LETTERS = str.maketrans("0123456789abcdef", _ALPHABET)  # no digits: a check for secrets takes them for a token


def normalize(text: str) -> str:
    """Return the text in Unicode's form NFC, so that two spellings of the same characters are one key."""
    if text.isascii():
        return text
    import unicodedata

    return unicodedata.normalize("NFC", text)


def to_note_key(name: str) -> str:
    """Return the note key of a platform key in the form NFC; two keys never have the same one."""
    if KEY_PATTERN.match(name) and not is_derived(name):
        return name
    from hashlib import sha256

    slug = _OTHERS.sub("-", to_ascii(name).lower()).strip("-")[:_SLUG_CHARS].strip("-")
    return f"{slug or 'key'}--{sha256(name.encode()).hexdigest()[:32].translate(_LETTERS)}"


def is_derived(key: str) -> bool:
    """Return whether a text is a note key in the form of a derived one; most keys are told apart without a pattern."""
    has_form = len(key) > 34 and key[-34:-32] == "--" and not key[-32:].strip(_ALPHABET)
    return has_form and bool(KEY_PATTERN.match(key))


def is_name_of(name: str, key: str) -> bool:
    """Return whether a note key was derived from this platform key; a name that people changed by hand does not count."""
    return is_derived(key) and _is_text(name) and normalize(name) == name and to_note_key(name) == key


def _is_text(name: str) -> bool:
    """Return whether the name is text: a file may hold bytes that are not UTF-8."""
    return name.isascii() or name == name.encode("utf-8", "replace").decode()
