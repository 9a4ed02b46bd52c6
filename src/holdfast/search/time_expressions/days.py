"""Days as numbers: day 1 is 1 January of the year 1, as in `date.toordinal`.

Integers only: importing `datetime` would cost a cold start 4 ms.
"""

from __future__ import annotations

FIRST, LAST = 1, 3652059  # the days of the years 1 to 9999
_DAYS_BEFORE = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
_MONTH_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

DayRange = tuple[int, int]  # the first and the last day


def day(year: int, month: int, day_of_month: int) -> int | None:
    """Return the number of a day; None if there is no such day."""
    if not (1 <= year <= 9999 and 1 <= month <= 12 and 1 <= day_of_month <= month_length(year, month)):
        return None
    past = year - 1
    leap_day = 1 if month > 2 and _is_leap(year) else 0
    return past * 365 + past // 4 - past // 100 + past // 400 + _DAYS_BEFORE[month - 1] + leap_day + day_of_month


def date(number: int) -> tuple[int, int, int]:
    """Return the year, month and day of the month of a day's number."""
    year = min(9999, number * 400 // 146097 + 2)  # never too early; at most two years too late
    while (day(year, 1, 1) or 0) > number:
        year -= 1
    left = number - (day(year, 1, 1) or 0)
    month = 1
    while left >= month_length(year, month):
        left -= month_length(year, month)
        month += 1
    return year, month, left + 1


def month_length(year: int, month: int) -> int:
    """Return the number of days of a month."""
    return 29 if month == 2 and _is_leap(year) else _MONTH_LENGTHS[month - 1]


def weekday(number: int) -> int:
    """Return the weekday of a day; 0 is Monday."""
    return (number + 6) % 7


def month_range(year: int, first: int, count: int = 1) -> DayRange | None:
    """Return the days of some whole months, which may run into the next year; None after the year 9999."""
    start = day(year, first, 1)
    last = first + count - 2
    end_year, end_month = year + last // 12, last % 12 + 1
    end = day(end_year, end_month, month_length(end_year, end_month)) if end_year <= 9999 else None
    return (start, end) if start and end else None


def shift(number: int, unit: str, count: int) -> int:
    """Return the day `count` units later (or earlier, if negative); if the month is too short, its last day."""
    if unit in ("day", "week"):
        return clamp(number + count * (7 if unit == "week" else 1))
    year, month, day_of_month = date(number)
    month_count = year * 12 + month - 1 + count * (12 if unit == "year" else 1)
    year, month = month_count // 12, month_count % 12 + 1
    if not 1 <= year <= 9999:
        return FIRST if year < 1 else LAST
    return day(year, month, min(day_of_month, month_length(year, month))) or LAST


def clamp(number: int) -> int:
    """Return the nearest day between FIRST and LAST."""
    return min(max(number, FIRST), LAST)


def unit_around(number: int, unit: str) -> DayRange:
    """Return the calendar unit that contains a day; a week begins on Monday."""
    year, month, _ = date(number)
    if unit == "week":
        monday = number - weekday(number)
        return clamp(monday), clamp(monday + 6)
    if unit == "weekend":
        monday = number - weekday(number)
        return clamp(monday + 5), clamp(monday + 6)
    if unit == "month":
        return month_range(year, month) or (number, number)
    if unit == "quarter":
        return month_range(year, (month - 1) // 3 * 3 + 1, 3) or (number, number)
    if unit == "year":
        return month_range(year, 1, 12) or (number, number)
    return number, number


def easter(year: int) -> int | None:
    """Return Easter Sunday, by the Gregorian rule."""
    golden, century = year % 19, year // 100
    moon = (19 * golden + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    sunday = (32 + 2 * (century % 4) + 2 * (year % 100 // 4) - moon - year % 100 % 4) % 7
    late = (golden + 11 * moon + 22 * sunday) // 451
    month, day_of_month = divmod(moon + sunday - 7 * late + 114, 31)
    return day(year, month, day_of_month + 1)


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
