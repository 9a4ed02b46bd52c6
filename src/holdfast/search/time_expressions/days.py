"""Days as numbers: day 1 is 1 January of the year 1, as in `date.toordinal`.

Integers only: importing `datetime` would cost a cold start 4 ms.
"""

from __future__ import annotations

FIRST, LAST = 1, 3652059  # the days of the years 1 to 9999
_BEFORE = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
_LENGTH = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

Stretch = tuple[int, int]  # the first and the last day


def day(year: int, month: int, of_month: int) -> int | None:
    """The number of a day, if there is such a day."""
    if not (1 <= year <= 9999 and 1 <= month <= 12 and 1 <= of_month <= length(year, month)):
        return None
    past = year - 1
    leap_day = 1 if month > 2 and _leap(year) else 0
    return past * 365 + past // 4 - past // 100 + past // 400 + _BEFORE[month - 1] + leap_day + of_month


def date(number: int) -> tuple[int, int, int]:
    """The year, month and day of month that a number stands for."""
    year = min(9999, number * 400 // 146097 + 2)  # never too early; too late by one or two
    while (day(year, 1, 1) or 0) > number:
        year -= 1
    left = number - (day(year, 1, 1) or 0)
    month = 1
    while left >= length(year, month):
        left -= length(year, month)
        month += 1
    return year, month, left + 1


def length(year: int, month: int) -> int:
    """How many days a month has."""
    return 29 if month == 2 and _leap(year) else _LENGTH[month - 1]


def weekday(number: int) -> int:
    """0 is Monday."""
    return (number + 6) % 7


def months(year: int, first: int, count: int = 1) -> Stretch | None:
    """Some whole months, which may run into the next year."""
    start = day(year, first, 1)
    last = first + count - 2
    end_year, end_month = year + last // 12, last % 12 + 1
    end = day(end_year, end_month, length(end_year, end_month)) if end_year <= 9999 else None
    return (start, end) if start and end else None


def shifted(number: int, unit: str, count: int) -> int:
    """The day so many units later, or earlier; a day that a month does not have is its last."""
    if unit in ("day", "week"):
        return clipped(number + count * (7 if unit == "week" else 1))
    year, month, of_month = date(number)
    month_count = year * 12 + month - 1 + count * (12 if unit == "year" else 1)
    year, month = month_count // 12, month_count % 12 + 1
    if not 1 <= year <= 9999:
        return FIRST if year < 1 else LAST
    return day(year, month, min(of_month, length(year, month))) or LAST


def clipped(number: int) -> int:
    """The nearest day that has a number."""
    return min(max(number, FIRST), LAST)


def around(number: int, unit: str) -> Stretch:
    """The calendar unit that a day is in; a week begins on Monday."""
    year, month, _ = date(number)
    if unit == "week":
        monday = number - weekday(number)
        return clipped(monday), clipped(monday + 6)
    if unit == "weekend":
        monday = number - weekday(number)
        return clipped(monday + 5), clipped(monday + 6)
    if unit == "month":
        return months(year, month) or (number, number)
    if unit == "quarter":
        return months(year, (month - 1) // 3 * 3 + 1, 3) or (number, number)
    if unit == "year":
        return months(year, 1, 12) or (number, number)
    return number, number


def easter(year: int) -> int | None:
    """Easter Sunday, by the Gregorian rule."""
    golden, century = year % 19, year // 100
    moon = (19 * golden + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    sunday = (32 + 2 * (century % 4) + 2 * (year % 100 // 4) - moon - year % 100 % 4) % 7
    late = (golden + 11 * moon + 22 * sunday) // 451
    month, of_month = divmod(moon + sunday - 7 * late + 114, 31)
    return day(year, month, of_month + 1)


def _leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
