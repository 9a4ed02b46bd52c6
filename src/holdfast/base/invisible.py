"""Find characters that are invisible or control a terminal.

Characters in ordinary use do not count: joiners in emoji and in Hindi, Sinhala and Persian, selectors after an emoji or an
ideograph, newlines and tabs.
"""

from __future__ import annotations

from holdfast.base.lazy_re import pattern
from holdfast.base.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_CLASSES = {  # character classes of regular expressions
    "bidi": "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069",
    "zero-width": "\u200b-\u200d\u2060\ufeff",
    "tag": "\U000e0000-\U000e007f",
    "variation": "\ufe00-\ufe0f\U000e0100-\U000e01ef",
    "annotation": "\ufff9-\ufffb",
    "separator": "\u2028\u2029",
    "surrogate": "\ud800-\udfff",
    "noncharacter": "\ufdd0-\ufdef" + "".join([chr(plane << 16 | 0xFFFE) + chr(plane << 16 | 0xFFFF) for plane in range(17)]),
    "private-use": "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd",
    "control": "\x00-\x08\x0b-\x1f\x7f-\x9f",
    "invisible": "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2061-\u2065\u206a-\u206f\u2800\u3164\uffa0\ufff0-\ufff8"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0080-\U000e00ff\U000e01f0-\U000e0fff",
}
KINDS = ("ansi", *_CLASSES, "mixed-script")
_ANY = "".join(_CLASSES.values())
# the text after ESC: parameters and a letter, a string up to its terminator, or one or two characters
_SEQUENCE = r"\[[0-?]*[ -/]*[@-~]|[\]PX^_k][\x20-\x7e]{0,200}(?:\x07|\x1b\\|\x9c)|[ -/]*[0-~]"
HIDDEN = pattern(rf"[{_ANY}](?:(?<=\x1b)(?:{_SEQUENCE})|(?<=\x9b)[0-?]*[ -/]*[@-~])?")
_PLAIN_ASCII = bytes([9, 10, 13, *range(32, 127)])
_PRINTABLE_LEADS = (  # first UTF-8 bytes of hidden characters that `str.isprintable` accepts, such as selectors and fillers
    b"\xef\xb8", b"\xf3\xa0", b"\xcd\x8f", b"\xe1\x85", b"\xe1\x9e", b"\xe1\xa0", b"\xe2\xa0", b"\xe3\x85", b"\xef\xbe",
)  # fmt: skip
_HIDDEN_ASCII = pattern(rf"[\x00-\x08\x0b-\x1f\x7f](?:(?<=\x1b)(?:{_SEQUENCE}))?")  # the same pattern for ASCII text
HIDDEN_RUN = pattern(f"[{_ANY}]+")
MAX_MARKS = 10_000  # marks examined one by one; a text with more is hostile and gets a coarse answer at once

_EMOJI = pattern(
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935\u2b00-\u2bff\u3030\u303d"
    "\u3297\u3299\U0001f000-\U0001faff]"
)
_HAN = pattern("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")
_ARABIC = pattern("[\u0610-\u061a\u0620-\u06ef\u06fa-\u06ff\u0750-\u077f\u0870-\u08ff\ufb50-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc]")
_VIRAMAS = "\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d3b\u0d3c\u0d4d\u0dca\u0f84\u1039\u17d2\u1a60\u1b44\u1baa\ua9c0"
_JOINERS = "\u200b\u200c\u200d\u2060\ufeff"
_SELECTORS = frozenset("\ufe0e\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")  # between an emoji and a joiner
_FLAG = "\U0001f3f4"
_REGIONS = ("gbeng", "gbsct", "gbwls")  # whose flags are spelled with tag characters
_FLAGS = tuple(["".join([chr(0xE0000 + ord(letter)) for letter in region]) + "\U000e007f" for region in _REGIONS])

# control and format characters, separators, and spaces other than the ordinary one: a class that JSON Schema has too
UNPRINTABLE = (
    r"\u0000-\u001f\u007f-\u00a0\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u1680\u180e\u2000-\u200f\u2028-\u202f"
    r"\u205f-\u2064\u2066-\u206f\u3000\ufeff\ufff9-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f"
)
_UNPRINTABLE = pattern(rf"[{UNPRINTABLE}\ud800-\udfff]")
_WORD = pattern(r"[^\W\d_]+")
_GREEK = frozenset("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαικνορτυχ")  # letters that look like Latin ones; µs and Δx are ordinary notation


class Mark(Record):
    """A hidden character or escape sequence at `text[start:end]`, and the label that shows it to a reader."""

    start: int
    end: int
    kind: str
    label: str


def is_plain(text: str) -> bool:
    """Return True if a quick check shows that the text has no hidden characters, as most texts do not."""
    if "\r" in text and text.count("\r") != text.count("\r\n"):
        return False
    if text.isascii():
        return not text.encode().translate(None, _PLAIN_ASCII)
    if not text.replace("\n", "").replace("\t", "").replace("\r", "").isprintable():
        return False
    data = text.encode()
    return not any(lead in data for lead in _PRINTABLE_LEADS)


def is_printable(text: str) -> bool:
    """Return whether a text is one line without control and format characters, whatever Unicode's version of this Python."""
    return text.isprintable() or not _UNPRINTABLE.search(text)


def find_kinds(text: str, *names: str | None) -> tuple[str, ...]:
    """Return the kinds of hidden characters in a text and in names; a name may also have the kind `mixed-script`."""
    found = {kind for part in (text, *names) if part and not is_plain(part) for kind in _find_kinds_in(part)}
    if any(mixes_scripts(name) for name in names if name):
        found.add("mixed-script")
    return tuple([kind for kind in KINDS if kind in found]) if found else ()


def mixes_scripts(name: str) -> bool:
    """Return whether a word mixes Latin letters with Cyrillic or Greek letters that look the same."""
    if name.isascii():
        return False
    return any(len(_find_scripts(word)) > 1 for word in _WORD.findall(name) if not word.isascii())


def find_marks(text: str) -> Iterator[Mark]:
    """Yield the hidden characters and escape sequences of a text in order."""
    for match in (_HIDDEN_ASCII if text.isascii() else HIDDEN).finditer(text):
        start, end = match.span()
        char = text[start]
        if start == 0 and char == "\ufeff":
            yield Mark(0, 1, "", "")  # a byte order mark at the start is dropped
        elif end - start > 1:
            yield Mark(start, end, "ansi", _label_sequence(match.group()))
        elif not _is_ordinary(text, start, char):
            yield Mark(start, end, _char_kind(char), f"⟦{char_number(char)}⟧")


def char_number(char: str) -> str:
    """Return `U+202E` for a character, or `byte FF` for a byte that was not UTF-8."""
    code = ord(char)
    return f"byte {code - 0xDC00:02X}" if 0xDC80 <= code <= 0xDCFF else f"U+{code:04X}"


def _find_kinds_in(text: str) -> set[str]:
    found = set()
    for count, mark in enumerate(find_marks(text)):
        found.add(mark.kind)
        if count == MAX_MARKS:
            break
    return found - {""}


def _label_sequence(sequence: str) -> str:
    """Return the label of an escape sequence, which shows its parameters."""
    name = "ESC " if sequence[0] == "\x1b" else "CSI "
    body = sequence[1:].rstrip("\x07\x9c").removesuffix("\x1b\\")
    return f"⟦{name}{body}⟧"


_kinds: dict[str, str] = {}


def _char_kind(char: str) -> str:
    if char not in _kinds:
        import re

        _kinds[char] = next(kind for kind, chars in _CLASSES.items() if re.match(f"[{chars}]", char))
    return _kinds[char]


def _is_ordinary(text: str, at: int, char: str) -> bool:
    """Return whether a character is in ordinary use, such as a joiner within an emoji."""
    before, after = text[at - 1] if at else "", text[at + 1 : at + 2]
    if char == "\r":
        return after == "\n"
    if char in "\u200c\u200d":
        return _is_ordinary_joiner(text, at, char, before, after)
    if char in "\ufe0e\ufe0f":
        return bool(_EMOJI.match(before)) or (before in "0123456789#*" and before != "" and after == "\u20e3")
    if "\ufe00" <= char <= "\ufe02" or "\U000e0100" <= char <= "\U000e010f":
        return bool(_HAN.match(before)) or (char == "\ufe00" and "\u2200" <= before <= "\u2aff")
    if "\u180b" <= char <= "\u180f":
        return "\u1820" <= before <= "\u18aa" and (char != "\u180e" or "\u1820" <= after <= "\u18aa")
    if char == "\u2800":
        return "\u2800" < before <= "\u28ff" or "\u2800" < after <= "\u28ff"
    if "\U000e0030" <= char <= "\U000e007f":
        flag = text.rfind(_FLAG, max(at - 6, 0), at)
        return flag >= 0 and text.startswith(_FLAGS, flag + 1)
    return False


def _is_ordinary_joiner(text: str, at: int, char: str, before: str, after: str) -> bool:
    """Return whether a joiner is within an emoji, next to a virama, or between Arabic letters."""
    if before and before in _VIRAMAS:
        return after == "" or after not in _JOINERS
    if char == "\u200c":
        return bool(_ARABIC.match(before) and _ARABIC.match(after))
    if after and after in _VIRAMAS:
        return "\u0900" <= before <= "\u0dff"
    if before == "\u0647":
        return not _ARABIC.match(after) and after not in _JOINERS
    base = text[at - 2] if before in _SELECTORS and at > 1 else before
    return bool(_EMOJI.match(base) and _EMOJI.match(after))


def _find_scripts(word: str) -> set[str]:
    import unicodedata

    chars = [(char, unicodedata.name(char, "").partition(" ")[0]) for char in word]
    return {script for char, script in chars if script in ("LATIN", "CYRILLIC") or (script == "GREEK" and char in _GREEK)}
