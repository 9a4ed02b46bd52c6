"""The days that a question or a passage speaks of, as numbers: "in May 2023", "last Tuesday", "two weeks before 5 June". Pure.

English, with the months, weekdays and common turns of German, French and Spanish. What an expression means here:

- A weekday alone ("on Tuesday") and "last Tuesday" are the last Tuesday before today, "this Tuesday" is the one of this week,
  "next Tuesday" the first after today. Weeks run from Monday to Sunday.
- "Last week", "last month", "last year" are the calendar ones before this one; "the past month" and "in the last month" are the
  month up to today. "Last weekend" is the one before this week. "Last May" and "last summer" are the last that are over.
- "Two weeks ago" and "two weeks before 5 June" are that day, give or take half a unit: three days for weeks, fifteen for
  months, half a year for years, none for days. A couple is 2 to 3, a few 2 to 5, several 3 to 8.
- Without a year ("in May"), a question means the last that has begun, if the memory has that year; else that of each year which
  the memory has. A passage means the one nearest to the day it was said.
- Early, mid and late are thirds, of whole months where they can be. Spring is March to May, and so on; winter 2022 ends in
  February 2023.
- With slashes or dashes the month comes first (5/8/2023 is 8 May) unless it cannot be one; with dots the day does.
"""

from __future__ import annotations

from holdfast.base.lazy_re import pattern
from holdfast.base.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.search.time_expressions.absolute import Read

_WORD = pattern(
    r"[^\W\d_年月日]+|[0-9]{1,4}-[0-9]{1,2}-[0-9]{1,4}(?![0-9])|[0-9]{1,4}/[0-9]{1,2}/[0-9]{1,4}(?![0-9])"
    r"|[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4}(?![0-9])|[0-9]{4}\.[0-9]{1,2}\.[0-9]{1,2}(?![0-9])"
    r"|[0-9]{4}-[0-9]{1,2}(?![0-9])|[0-9]{1,2}/[0-9]{1,2}(?![0-9/])|[0-9]+|[年月日]|[^\w\s]"
)
_FIGURES = pattern(r"[0-9]{4}|[0-9]/[0-9]")
_COMPACT = pattern(r"([12][0-9]{3})([01][0-9])([0-3][0-9])(?:[Tt][0-9]{4,6}[Zz]?)?\Z")
_SECONDS = pattern(r"[0-9]{10}(?:[0-9]{3})?(?:\.[0-9]{1,9})?\Z")
_ACCENTS = str.maketrans(
    dict(zip("àâäáãåçéèêëíìîïñóòôöõúùûüýÿ", "aaaaaaceeeeiiiinooooouuuuyy", strict=True)) | dict.fromkeys(range(0x300, 0x370))
)
_LONGEST = 31  # days of a time that `dates_in` still spells out
_MOST = 366  # days that it gives at most
_1970 = 719163


class Span(Record):
    """From a day to a day, both in it, and how it was told.

    Kinds: day, week, weekend, month, quarter, season, year, half, holiday; part (early, mid, late); about (two weeks ago);
    range (from, to); past and coming (the past, the next two months); since, after, before, until (open at one end).
    """

    start_day: int
    end_day: int
    kind: str


def spans(text: str, now: str | None, years: tuple[int, ...] = ()) -> list[Span]:
    """The times that a question asks about, in the order it names them. `years` are those which the memory covers."""
    return _spans(text, day_of(now) if now else None, years, passage=False)


def spans_in(text: str, said_on: int | None) -> list[Span]:
    """The times that a passage speaks of, which was said on a day."""
    return _spans(text, said_on, (), passage=True)


def dates_in(text: str, said_on: int | None) -> list[int]:
    """The days that a passage speaks of, of times no longer than a month; `spans_in` has the longer ones too."""
    named = [span for span in spans_in(text, said_on) if span.end_day - span.start_day < _LONGEST]
    every = dict.fromkeys([day for span in named for day in range(span.start_day, span.end_day + 1)])
    return list(every)[:_MOST]


def day_of(text: str) -> int | None:
    """The day of a transcript's date, however it is written; nothing if it names no day of a year."""
    from holdfast.search.time_expressions import days

    text = text.strip()
    if compact := _COMPACT.match(text):
        year, month, day = compact.groups()
        return days.day(int(year), int(month), int(day))
    if _SECONDS.match(text):
        return _1970 + int(text[:10]) // 86400
    reads = _reads(text, None, (), passage=False)
    return next((read.days[0][0] for read in reads if read.kind == "day" and read.days), None)


def _spans(text: str, now: int | None, years: tuple[int, ...], passage: bool) -> list[Span]:
    found = [
        Span(start, end, read.kind) for read in _reads(text, now, years, passage) for start, end in read.days if start <= end
    ]
    return list(dict.fromkeys(found))


def _reads(text: str, now: int | None, years: tuple[int, ...], passage: bool) -> list[Read]:
    small = text.casefold()
    words = _WORD.findall(small if small.isascii() else small.translate(_ACCENTS))
    from holdfast.search.time_expressions import vocabulary

    if vocabulary.HINTS.isdisjoint(words) and not _FIGURES.search(text) and "年" not in words:
        return []
    from holdfast.search.time_expressions import days
    from holdfast.search.time_expressions.relative import Reader

    known = now if now is not None and days.FIRST <= now <= days.LAST else None
    return Reader(words, known, years, passage).read()
