"""Characters that nobody sees or that drive a terminal: which kinds a text has, and the text with each made visible. Pure.

What is stored stays as it is. Whatever shows it, to a model or at a terminal, shows it through `shown`: one rule for every
door. The same characters in honest use are left alone: joiners in an emoji or in Hindi, Sinhala and Persian, a selector after
an emoji or an ideograph, newlines and tabs.
"""

from __future__ import annotations

from holdfast.base.lazy_re import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Mark = tuple[int, int, str, str]  # from, to, kind, how it is shown

_CLASSES = {  # of characters, as they stand in a regular expression
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
# what follows ESC: parameters and a letter, a string up to its end, or one or two signs
_SEQUENCE = r"\[[0-?]*[ -/]*[@-~]|[\]PX^_k][\x20-\x7e]{0,200}(?:\x07|\x1b\\|\x9c)|[ -/]*[0-~]"
_HIDDEN = pattern(rf"[{_ANY}](?:(?<=\x1b)(?:{_SEQUENCE})|(?<=\x9b)[0-?]*[ -/]*[@-~])?")
_ASCII = bytes([9, 10, 13, *range(32, 127)])  # what a plain text of ASCII is made of
_LEADS = (  # how those begin in UTF-8 that Python counts as printable: selectors, fillers, a joiner of graphemes, blank Braille
    b"\xef\xb8", b"\xf3\xa0", b"\xcd\x8f", b"\xe1\x85", b"\xe1\x9e", b"\xe1\xa0", b"\xe2\xa0", b"\xe3\x85", b"\xef\xbe",
)  # fmt: skip
_OF_ASCII = pattern(rf"[\x00-\x08\x0b-\x1f\x7f](?:(?<=\x1b)(?:{_SEQUENCE}))?")  # the same where it can be nothing else
_EVERY = pattern(f"[{_ANY}]+")
_MOST = 10_000  # marks that are looked at one by one; a text that has more means no good, and nobody waits for it
_RUN = 8  # hidden characters in a row that are shown one by one; more are one mark

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
_FLAGS = tuple(["".join([chr(0xE0000 + ord(sign)) for sign in place]) + "\U000e007f" for place in ("gbeng", "gbsct", "gbwls")])

_WORD = pattern(r"[^\W\d_]+")
_GREEK = frozenset("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαικνορτυχ")  # those that pass for Latin ones; µs and Δx are nobody's trick


def plain(text: str) -> bool:
    """Whether nothing in it can be hidden, found out without looking closer; most texts are."""
    if "\r" in text and text.count("\r") != text.count("\r\n"):
        return False
    if text.isascii():
        return not text.encode().translate(None, _ASCII)
    if not text.replace("\n", "").replace("\t", "").replace("\r", "").isprintable():
        return False
    data = text.encode()
    return not any(lead in data for lead in _LEADS)


def kinds(text: str, *names: str | None) -> tuple[str, ...]:
    """Which kinds of hidden characters a text and the names beside it have; of a name also whether it mixes scripts."""
    found = {kind for one in (text, *names) if one and not plain(one) for kind in _kinds_of(one)}
    if any(mixed(name) for name in names if name):
        found.add("mixed-script")
    return tuple([kind for kind in KINDS if kind in found]) if found else ()


def shown(text: str) -> str:
    """The text with each hidden character as a mark such as ⟦U+202E⟧; the very same object if it has none."""
    if plain(text):
        return text
    pieces: list[str] = []
    done = 0
    for start, end, _, mark in _gathered(text):
        pieces += (text[done:start], mark)
        done = end
    return "".join([*pieces, text[done:]]) if done else text


def bare(text: str) -> str:
    """The text without what is hidden in it; the very same object if there is nothing."""
    return text if plain(text) else _HIDDEN.sub("", text)


def escaped(text: str) -> str:
    """JSON text with each hidden character as JSON spells it by its number: it still means the same."""
    if plain(text):
        return text
    pieces: list[str] = []
    done = 0
    for count, (start, end, _, _) in enumerate(_marks(text)):
        if count == _MOST:
            return _EVERY.sub(lambda match: "".join([_json(char) for char in match.group()]), text)
        pieces += (text[done:start], "".join([char if " " <= char <= "~" else _json(char) for char in text[start:end]]))
        done = end
    return "".join([*pieces, text[done:]])


def mixed(name: str) -> bool:
    """Whether a word of it is made of Latin letters and of Cyrillic or Greek ones that look the same."""
    if name.isascii():
        return False
    return any(len(_scripts(word)) > 1 for word in _WORD.findall(name) if not word.isascii())


def named(name: str) -> str:
    """A name as it is shown, with a word beside it if it mixes scripts."""
    return f"{shown(name)} ⟦mixed-script⟧" if mixed(name) else shown(name)


# --- finding a piece of the shown text in the text itself ----------------------------------------------------------------


def unmarked(text: str, old: str, new: str) -> tuple[str, str, int]:
    """What to replace and by what, for somebody who saw marks and wrote them in both; and how often it stands in the text."""
    places = spans(text, old)
    if len(places) != 1:
        return old, new, len(places)
    there = text[slice(*places[0])]
    return there, restored(there, new), text.count(there)


def spans(text: str, piece: str) -> list[tuple[int, int]]:
    """Where in the text a piece of its shown form stands, as far as it begins and ends beside marks and not within: the first
    place, and one more if there are several."""
    view, marks = shown(text), _map(text)
    found: list[tuple[int, int]] = []
    at = view.find(piece) if piece else -1
    while at >= 0 and len(found) < 2:
        start, end = _place(marks, at), _place(marks, at + len(piece))
        if start is not None and end is not None:
            found.append((start, end))
        at = view.find(piece, at + 1)
    return found


def restored(old: str, new: str) -> str:
    """A new text for an old one, written by somebody who saw marks: the marks it repeats are again what they stood for."""
    pieces: list[str] = []
    missing = {""}  # marks that do not come any more
    done = 0
    for start, end, _, mark in _gathered(old):
        at = new.find(mark, done) if mark not in missing else -1
        if at < 0:
            missing.add(mark)
        else:
            pieces += (new[done:at], old[start:end])
            done = at + len(mark)
    return "".join([*pieces, new[done:]])


def _map(text: str) -> list[tuple[int, int, int]]:
    """Of each mark: where it begins and ends in the shown form, and how much further that is than in the text by then."""
    marks, shift = [], 0
    for start, end, _, mark in _gathered(text):
        first = start + shift
        shift += len(mark) - (end - start)
        marks.append((first, first + len(mark), shift))
    return marks


def _place(marks: list[tuple[int, int, int]], wanted: int) -> int | None:
    """The place in the text of a place in its shown form; None within a mark."""
    from bisect import bisect_left

    before = bisect_left(marks, (wanted, -1, 0))  # how many marks begin before it
    if not before:
        return wanted
    _, end, shift = marks[before - 1]
    return None if wanted < end else wanted - shift


# --- what is hidden and what is honest -----------------------------------------------------------------------------------


def _gathered(text: str) -> Iterator[Mark]:
    """The marks, long runs of them as one."""
    run: list[Mark] = []
    for count, mark in enumerate(_marks(text)):
        if count == _MOST:
            yield from _run_of(run, text)
            rest = text[mark[0] :].replace("\r\n", "\n")
            yield mark[0], len(text), "", _EVERY.sub("⟦hidden⟧", rest)  # without looking closer
            return
        if run and run[-1][1] != mark[0]:
            yield from _run_of(run, text)
            run = []
        run.append(mark)
    yield from _run_of(run, text)


def _kinds_of(text: str) -> set[str]:
    found = set()
    for count, (_, _, kind, _) in enumerate(_marks(text)):
        found.add(kind)
        if count == _MOST:
            break
    return found - {""}


def _run_of(run: list[Mark], text: str) -> list[Mark]:
    if len(run) <= _RUN:
        return run
    start, end = run[0][0], run[-1][1]
    said = f"⟦{_number(text[start])} to {_number(text[run[-1][0]])}, {end - start} characters⟧"
    return [(start, end, run[0][2], said)]


def _marks(text: str) -> Iterator[Mark]:
    for match in (_OF_ASCII if text.isascii() else _HIDDEN).finditer(text):
        start, end = match.span()
        char = text[start]
        if start == 0 and char == "\ufeff":
            yield 0, 1, "", ""  # where a byte order mark belongs; it says nothing there
        elif end - start > 1:
            yield start, end, "ansi", _sequence(match.group())
        elif not _is_honest(text, start, char):
            yield start, end, _kind(char), f"⟦{_number(char)}⟧"


def _sequence(said: str) -> str:
    """An escape sequence as one mark that shows what it would do."""
    name = "ESC " if said[0] == "\x1b" else "CSI "
    body = said[1:].rstrip("\x07\x9c").removesuffix("\x1b\\")
    return f"⟦{name}{body}⟧"


def _number(char: str) -> str:
    code = ord(char)
    return f"byte {code - 0xDC00:02X}" if 0xDC80 <= code <= 0xDCFF else f"U+{code:04X}"  # of text that was no UTF-8


_kinds: dict[str, str] = {}


def _kind(char: str) -> str:
    if char not in _kinds:
        import re

        _kinds[char] = next(kind for kind, signs in _CLASSES.items() if re.match(f"[{signs}]", char))
    return _kinds[char]


def _is_honest(text: str, at: int, char: str) -> bool:
    """Whether the character does there what it is for."""
    before, after = text[at - 1] if at else "", text[at + 1 : at + 2]
    if char == "\r":
        return after == "\n"
    if char in "\u200c\u200d":
        return _joins(text, at, char, before, after)
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


def _joins(text: str, at: int, char: str, before: str, after: str) -> bool:
    """A joiner in an emoji, after a virama or before one, between Persian letters."""
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


def _scripts(word: str) -> set[str]:
    import unicodedata

    named = [(char, unicodedata.name(char, "").partition(" ")[0]) for char in word]
    return {script for char, script in named if script in ("LATIN", "CYRILLIC") or (script == "GREEK" and char in _GREEK)}


def _json(char: str) -> str:
    code = ord(char)
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + (code - 0x10000 >> 10):04x}\\u{0xDC00 + (code - 0x10000 & 0x3FF):04x}"
