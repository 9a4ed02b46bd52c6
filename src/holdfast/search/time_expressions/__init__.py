"""Parse the times that a question or a passage names: "in May 2023", "last Tuesday", "two weeks before 5 June". Pure.

Days are numbers, as in `date.toordinal`. It understands English, and the months, weekdays and common phrases of German, French
and Spanish. Meanings:

- A weekday alone ("on Tuesday") and "last Tuesday" are the last Tuesday before today, "this Tuesday" is the one of this week,
  "next Tuesday" the first after today. Weeks run from Monday to Sunday.
- "Last week", "last month", "last year" are the calendar units before the current one; "the past month" and "in the last month"
  are the month up to today. "Last weekend" is the weekend before this week. "Last May" and "last summer" are the last to end.
- "Two weeks ago" and "two weeks before 5 June" are that day, plus or minus half a unit: three days for weeks, fifteen for
  months, half a year for years, none for days. A couple is 2 to 3, a few 2 to 5, several 3 to 8.
- Without a year ("in May"), a question means the last that has begun, if the memory has that year; otherwise that of each year
  which the memory has. A passage means the one nearest to the day it was said.
- Early, mid and late are thirds, of whole months where possible. Spring is March to May, and so on; winter 2022 ends in
  February 2023.
- With slashes or dashes the month comes first (5/8/2023 is 8 May) unless it cannot be a month; with dots the day comes first.
"""

from __future__ import annotations

from holdfast.base.lazy_re import pattern
from holdfast.base.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.search.time_expressions.absolute import TimeMatch

_WORD = pattern(
    r"[^\W\d_年月日]+|[0-9]{1,4}-[0-9]{1,2}-[0-9]{1,4}(?![0-9])|[0-9]{1,4}/[0-9]{1,2}/[0-9]{1,4}(?![0-9])"
    r"|[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4}(?![0-9])|[0-9]{4}\.[0-9]{1,2}\.[0-9]{1,2}(?![0-9])"
    r"|[0-9]{4}-[0-9]{1,2}(?![0-9])|[0-9]{1,2}/[0-9]{1,2}(?![0-9/])|[0-9]+|[年月日]|[^\w\s]"
)
_NUMERIC_DATE = pattern(r"[0-9]{4}|[0-9]/[0-9]")
_COMPACT = pattern(r"([12][0-9]{3})([01][0-9])([0-3][0-9])(?:[Tt][0-9]{4,6}[Zz]?)?\Z")
_UNIX_SECONDS = pattern(r"[0-9]{10}(?:[0-9]{3})?(?:\.[0-9]{1,9})?\Z")
_ACCENTS = str.maketrans(
    dict(zip("àâäáãåçéèêëíìîïñóòôöõúùûüýÿ", "aaaaaaceeeeiiiinooooouuuuyy", strict=True)) | dict.fromkeys(range(0x300, 0x370))
)
_EPOCH_DAY = 719163


class Span(Record):
    """A range of days, both ends included, and the kind of expression that named it.

    Kinds: day, week, weekend, month, quarter, season, year, half, holiday; part (early, mid, late); about (two weeks ago);
    range (from, to); past and coming (the past, the next two months); since, after, before, until (open at one end).
    """

    start_day: int
    end_day: int
    kind: str


def find_spans(text: str, now: str | None, years: tuple[int, ...] = ()) -> list[Span]:
    """Return the times that a question asks about, in order of appearance; `years` are those that the memory covers."""
    return _list_spans(text, parse_day(now) if now else None, years, passage=False)


def find_passage_spans(text: str, said_on: int | None) -> list[Span]:
    """Return the times that a passage names, which was said on the day `said_on`."""
    return _list_spans(text, said_on, (), passage=True)


def parse_day(text: str) -> int | None:
    """Return the day of a transcript's date, in any notation; None if it names no day."""
    from holdfast.search.time_expressions import days

    text = text.strip()
    if compact := _COMPACT.match(text):
        year, month, day = compact.groups()
        return days.day(int(year), int(month), int(day))
    if _UNIX_SECONDS.match(text):
        return _EPOCH_DAY + int(text[:10]) // 86400
    matches = _match_times(text, None, (), passage=False)
    return next((match.days[0][0] for match in matches if match.kind == "day" and match.days), None)


def _list_spans(text: str, now: int | None, years: tuple[int, ...], passage: bool) -> list[Span]:
    spans = [
        Span(start, end, match.kind)
        for match in _match_times(text, now, years, passage)
        for start, end in match.days
        if start <= end
    ]
    return list(dict.fromkeys(spans))


def _match_times(text: str, now: int | None, years: tuple[int, ...], passage: bool) -> list[TimeMatch]:
    folded = text.casefold()
    words = _WORD.findall(folded if folded.isascii() else folded.translate(_ACCENTS))
    from holdfast.search.time_expressions import vocabulary

    if vocabulary.HINTS.isdisjoint(words) and not _NUMERIC_DATE.search(text) and "年" not in words:
        return []
    from holdfast.search.time_expressions import days
    from holdfast.search.time_expressions.relative import TimeParser

    today = now if now is not None and days.FIRST <= now <= days.LAST else None
    return TimeParser(words, today, years, passage).parse()
