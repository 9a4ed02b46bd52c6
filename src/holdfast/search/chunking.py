"""A text cut for comparing: into even chunks whose words are counted, and what people say into sentences besides. Pure.

A long text seldom answers a question as a whole: one sentence of it does. A vector of that sentence finds it, a vector of
the whole does not.
"""

from __future__ import annotations

from holdfast.base.lazy_re import pattern
from holdfast.base.record import Record

SIZE = 80  # words of a chunk
_SENTENCE = 60  # words of a sentence that are looked at
_MOST = 40  # sentences of one turn
_BOUNDARY = pattern(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n+")
_IMAGE = pattern(r"(?i)\[image:\s*(?:an? (?:photo|photography|picture|image) of )?([^\]\n]*)\]")
_I = pattern(r"(?i)\b(?:i|i'm|i've|i'd|i'll|my|mine|myself|me|we|we're|we've|our|us)\b")
_YOU = pattern(r"(?i)\b(?:you|your|you're|you'll|you've|yourself|yours)\b")
_LISTED = pattern(r"\s*(?:[-*•#|>]|\d+[.)])")
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
OTHERS = ("assistant", "system", "tool", "ai")  # speakers who are no people
NAMELESS = ("user", "human", *OTHERS)  # speakers that are no names
NOTE_WORDS = 160  # of a text that counts as short

PEOPLE, TIME, NUMBER, DIRECTIVE = 1, 2, 4, 8
QUESTIONS = 16  # times the eighths of its sentences that are questions, if it ends in one
LENGTHS = 64  # words of a unit that are told apart


def numbered(number: int, unit: str) -> int:
    """One number for a unit: its piece's, and how many words it has."""
    return min(number, 255) * LENGTHS + min(len(unit.split()), LENGTHS - 1)


class Piece(Record):
    """A chunk, which of the marks above it bears, and the units of it that get vectors: its sentences, or itself."""

    text: str
    marks: int
    units: tuple[str, ...]


def cut(text: str, speaker: str = "", names: tuple[str, ...] = ()) -> list[Piece]:
    """The pieces of what somebody said (or of a text nobody in particular said), without the speakers' `names`."""
    text = text.replace("’", "'")
    if speaker:
        people = speaker.casefold() not in OTHERS
        return [_piece(chunk, people, people, names) for chunk in chunks(text)]
    short = len(text.split()) <= SIZE
    runs = [(" ".join(text.split()), is_personal(text))] if short else _runs(text)
    return [_piece(chunk, personal, personal or short, ()) for chunk, personal in runs]


def chunks(text: str, size: int = SIZE) -> list[str]:
    """Whole sentences and lines, packed into even pieces of about `size` words at most."""
    total = len(text.split())
    if total <= size:
        return [" ".join(text.split())]
    target = total / -(-total // size)
    done: list[str] = []
    now: list[str] = []
    for sentence in _BOUNDARY.split(text):
        words = sentence.split()
        while len(words) > size * 1.5:
            done.extend([" ".join(now)] if now else [])
            done.append(" ".join(words[:size]))
            now, words = [], words[size:]
        if now and len(now) + len(words) / 2 > target:
            done.append(" ".join(now))
            now = []
        now.extend(words)
    return [*done, " ".join(now)] if now else done


def sentences(text: str, names: tuple[str, ...] = ()) -> list[str]:
    """Sentences and lines of three words or more; of a text that has none, the text."""
    if names and any(name in text for name in names):
        text = _without(text, names)
    found = []
    for sentence in _BOUNDARY.split(_IMAGE.sub(r". \1", text)):
        words = sentence.split()
        if len(words) >= 3 or (len(sentence) > 6 and not sentence.isascii()):  # who does not space words has long ones
            found.append(" ".join(words[:_SENTENCE]))
    return found[:_MOST] or [" ".join(text.split()[:_SENTENCE])]


def _without(text: str, names: tuple[str, ...]) -> str:
    """Names as whole words: Ann is not in an Anniversary."""
    import re

    return re.sub(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?:'s)?(?!\w)", " ", text)


def _runs(text: str) -> list[tuple[str, bool]]:
    """Chunks of a text whose speakers are not told apart, cut first where it turns personal or back."""
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
    """Said in the first person: I and my at least as often as you and your, and no item of a list."""
    mine = len(_I.findall(line))
    return bool(mine > 0 and mine >= len(_YOU.findall(line)) and not _LISTED.match(line))


def _piece(text: str, people: bool, apart: bool, names: tuple[str, ...]) -> Piece:
    marks = PEOPLE if people else 0
    marks |= TIME if _TIME.search(text) else 0
    marks |= NUMBER if _NUMBER.search(text) else 0
    marks |= DIRECTIVE if _DIRECTIVE.search(text) else 0
    marks |= QUESTIONS * round(8 * _asking(text))
    return Piece(text, marks, tuple(sentences(text, names)) if apart else (text,))


def _asking(text: str) -> float:
    """The share of questions among the sentences of a text that ends in one."""
    bare = _IMAGE.sub("", text).strip()
    if not bare.endswith("?"):
        return 0.0
    said = [sentence for sentence in _BOUNDARY.split(bare) if sentence]
    return float(sum([sentence.endswith("?") for sentence in said]) / len(said))
