"""Cut a text into pieces of even size, and what people say also into sentences. Pure.

A long text seldom answers a question as a whole: one sentence of it does. A vector of that sentence finds it, a vector of
the whole does not.
"""

from __future__ import annotations

from holdfast.base.lazy_re import pattern
from holdfast.base.record import Record

PIECE_WORDS = 80  # words of a piece
_SENTENCE_WORDS = 60  # words of a sentence that are embedded
_MAX_SENTENCES = 40  # sentences of one turn
_OPENING_WORDS = 45  # words that show what a message of an assistant is about
_BOUNDARY = pattern(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n+")
_IMAGE = pattern(r"(?i)\[image:\s{0,9}(?:an? (?:photo|photography|picture|image) of )?([^\[\]\n]*)\]")
_FIRST_PERSON = pattern(r"(?i)\b(?:i|i'm|i've|i'd|i'll|my|mine|myself|me|we|we're|we've|our|us)\b")
_SECOND_PERSON = pattern(r"(?i)\b(?:you|your|you're|you'll|you've|yourself|yours)\b")
_LIST_ITEM = pattern(r"\s*(?:[-*•#|>]|\d+[.)])")
_TIME = pattern(
    r"(?i)\b(?:yesterday|today|tonight|tomorrow|ago|last|next|this (?:week|month|year|morning|weekend|summer|spring|fall)"
    r"|week(?:end)?s?|months?|years?|days?|january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|(?:mon|tues|wednes|thurs|fri|satur|sun)day|mon|tue|wed|thu|thurs|fri|sat|sun"
    r"|since|recently|just|soon|\d{4}|\d{1,2}(?:st|nd|rd|th)|birthday|anniversary)\b"
)
_NUMBER = pattern(
    r"(?i)\b(?:\d[\d.,]*|one|two|three|four|five|six|seven|eight|nine|ten|dozen|twice|once|couple|several|both|first|second|third)\b"
)
_DIRECTIVE = pattern(
    r"(?i)^\W*(?:please\s+)?(?:always|never|from now on|remember to|make sure (?:to|you))\b|\bwhen(?:ever)? i ask\b"
    r"|\bi(?:'d| would)? prefer\b|\bi always\b|\bi never\b|\bi (?:don't|do not) (?:like|want)\b"
)
# A capitalised word within a sentence, apart from I and days and months; the first word of a sentence is always capitalised.
_NAME = pattern(
    r"(?<=[a-z,;:'\"] )[\"“]?(?!(?:I|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|January|February|March|April|May|June|July"
    r"|August|September|October|November|December)\b)[A-Z][a-zA-Z]+"
)
ASSISTANTS = ("assistant", "ai")
MACHINES = (*ASSISTANTS, "system", "tool")  # speakers that are not people
NAMELESS = ("user", "human", *MACHINES)  # speakers that are not names
NOTE_WORDS = 160  # up to which a text is short

PEOPLE, TIME, NUMBER, DIRECTIVE, NAME = 1, 2, 4, 8, 16  # marks of a piece: bits,
QUESTIONS = 32  # and above these, in eighths, the share of questions among its sentences
LENGTHS = 64  # lengths of a unit, in words, that its number distinguishes


def unit_number(number: int, unit: str) -> int:
    """Return one number for a unit: the number of its piece and its length in words."""
    return min(number, 255) * LENGTHS + min(len(unit.split()), LENGTHS - 1)


class Piece(Record):
    """A piece of a text, its marks, and the units of it that get vectors: its sentences, or itself."""

    text: str
    marks: int
    units: tuple[str, ...]


def cut(text: str, speaker: str = "", names: tuple[str, ...] = ()) -> list[Piece]:
    """Return the pieces of a turn, or of a text without a speaker; units leave out the `names` of speakers."""
    text = text.replace("’", "'")
    if speaker:
        people = speaker.casefold() not in MACHINES
        return [_make_piece(chunk, people, people, names) for chunk in chunks(text)]
    short = len(text.split()) <= PIECE_WORDS
    runs = [(" ".join(text.split()), is_personal(text))] if short else _split_personal(text)
    return [_make_piece(chunk, personal, personal or short, ()) for chunk, personal in runs]


def chunks(text: str, size: int = PIECE_WORDS) -> list[str]:
    """Return whole sentences and lines, packed into even chunks of at most about `size` words."""
    total = len(text.split())
    if total <= size:
        return [" ".join(text.split())]
    target = total / -(-total // size)
    finished: list[str] = []
    current: list[str] = []
    for sentence in _BOUNDARY.split(text):
        words = sentence.split()
        while len(words) > size * 1.5:
            finished.extend([" ".join(current)] if current else [])
            finished.append(" ".join(words[:size]))
            current, words = [], words[size:]
        if current and len(current) + len(words) / 2 > target:
            finished.append(" ".join(current))
            current = []
        current.extend(words)
    return [*finished, " ".join(current)] if current else finished


def sentences(text: str, names: tuple[str, ...] = ()) -> list[str]:
    """Return the sentences and lines of three words or more; the text itself if it has none."""
    text = _remove_names(text, names)
    found = []
    for sentence in _BOUNDARY.split(_IMAGE.sub(r". \1", text)):
        words = sentence.split()
        if len(words) >= 3 or (len(sentence) > 6 and not sentence.isascii()):  # scripts without spaces have long words
            found.append(" ".join(words[:_SENTENCE_WORDS]))
    return found[:_MAX_SENTENCES] or [" ".join(text.split()[:_SENTENCE_WORDS])]


def find_opening(piece: str) -> str:
    """Return the opening of a text, given its first piece."""
    return " ".join(piece.split()[:_OPENING_WORDS])


def _remove_names(text: str, names: tuple[str, ...]) -> str:
    """Return the text without these names, as whole words: Ann is not in an Anniversary."""
    if not any(name in text for name in names):
        return text
    import re

    return re.sub(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?:'s)?(?!\w)", " ", text)


def _split_personal(text: str) -> list[tuple[str, bool]]:
    """Return chunks of a text without known speakers, each personal or not as a whole."""
    runs: list[tuple[list[str], bool]] = []
    for line in text.split("\n"):
        if not line.strip():
            continue
        personal = is_personal(line)
        if not runs or runs[-1][1] != personal:
            runs.append(([], personal))
        runs[-1][0].append(line)
    return [(chunk, personal) for lines, personal in runs for chunk in chunks("\n".join(lines))]


def is_personal(line: str) -> bool:
    """Return whether a line is in the first person: I and my at least as often as you and your, and not a list item."""
    first_person = len(_FIRST_PERSON.findall(line))
    return bool(first_person > 0 and first_person >= len(_SECOND_PERSON.findall(line)) and not _LIST_ITEM.match(line))


def _make_piece(text: str, people: bool, by_sentence: bool, names: tuple[str, ...]) -> Piece:
    marks = PEOPLE if people else 0
    marks |= TIME if _TIME.search(text) else 0
    marks |= NUMBER if _NUMBER.search(text) else 0
    marks |= DIRECTIVE if _DIRECTIVE.search(text) else 0
    marks |= NAME if _NAME.search(_remove_names(text, names)) else 0
    marks |= QUESTIONS * round(8 * _share_of_questions(text))
    return Piece(text, marks, tuple(sentences(text, names)) if by_sentence else (text,))


def _share_of_questions(text: str) -> float:
    """Return the share of questions among the sentences of a text that ends in one, else 0."""
    bare = _IMAGE.sub("", text).strip()
    if not bare.endswith("?"):
        return 0.0
    parts = [part for part in _BOUNDARY.split(bare) if part]
    return float(sum([part.endswith("?") for part in parts]) / len(parts))
