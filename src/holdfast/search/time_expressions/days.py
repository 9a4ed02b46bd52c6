"""Calculate with days as numbers: day 1 is 1 January of the year 1, as in `date.toordinal`.

The first part is the calendar; the second finds days from other days: some weeks before, the Sunday after, the last third.
Integers only: importing `datetime` would cost a cold start 4 ms.
"""

from __future__ import annotations

from holdfast.search.time_expressions.vocabulary import MADE_OF, SLACK

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


def day_of_week(number: int) -> int:
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
        monday = number - day_of_week(number)
        return clamp(monday), clamp(monday + 6)
    if unit == "weekend":
        monday = number - day_of_week(number)
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


# --- days from other days ----------------------------------------------------------------------------------------------------


def to_basic_unit(unit: str, count: int) -> tuple[str, int]:
    """Convert fortnights, quarters and decades to weeks, months and years."""
    plain, times = MADE_OF.get(unit, (unit, 1))
    return plain, count * times


def offset_range(base: int, unit: str, low: int, high: int) -> DayRange:
    """Return the days that are `low` to `high` units from a day, plus or minus half a unit."""
    unit = "week" if unit == "weekend" else unit
    (plain, near), (_, far) = to_basic_unit(unit, low), to_basic_unit(unit, high)
    if plain == "hour":
        return base, base
    ends = sorted((shift(base, plain, near), shift(base, plain, far)))
    return clamp(ends[0] - SLACK[plain]), clamp(ends[1] + SLACK[plain])


def adjacent_range(base: DayRange, unit: str, weekday: int | None, sign: int, count: int) -> DayRange:
    """Return the unit directly before (sign -1) or after (sign 1) a range of days."""
    edge = base[0] if sign < 0 else base[1]
    if weekday is not None:
        day = find_weekday(edge, weekday, sign)
        return clamp(day), clamp(day)
    if unit == "weekend":
        day = weekday_before(edge, 6) - 1 if sign < 0 else find_weekday(edge, 5, 1)
        return clamp(day), clamp(day + 1)
    plain, count = to_basic_unit(unit, count)
    far = shift(edge, plain, sign * count)
    return (far, clamp(edge - 1)) if sign < 0 else (clamp(edge + 1), far)


def unit_within(base: DayRange, unit: str, weekday: int | None) -> DayRange | None:
    """Return the week or weekend of the range's first day, or the first such weekday in the range."""
    if weekday is None:
        return unit_around(base[0], unit)
    day = base[0] + (weekday - day_of_week(base[0])) % 7
    return (day, day) if day <= base[1] else None


def split(day_range: DayRange, count: int) -> list[DayRange]:
    """Split a range of days into equal parts.

    Whole months stay whole if possible; otherwise the odd days go to the part before the last. If there are fewer days than
    parts, each part is the whole range."""
    start, end = day_range
    (year, month, first), (last_year, last_month, last) = date(start), date(end)
    months = (last_year - year) * 12 + last_month - month + 1
    if first == 1 and last == month_length(last_year, last_month) and months % count == 0:
        size = months // count
        edges = [shift(start, "month", size * part) for part in range(count)]
    else:
        size = (end - start + 1) // count
        if not size:
            return [day_range] * count
        edges = [start + size * part for part in range(count - 1)] + [end - size + 1]
    return [(edge, after - 1) for edge, after in zip(edges, [*edges[1:], end + 1], strict=True)]


def find_nth(day_range: DayRange, number: int, count: int, unit: str | None, weekday: int | None) -> DayRange | None:
    """Return the n-th unit or weekday of a range, counted from the end if n is -1; None if the range has fewer."""
    start, end = day_range
    if unit == "half":
        return split(day_range, 2)[0 if number == 1 else 1]
    if unit in (None, "weekend"):
        wanted = 5 if weekday is None else weekday
        day = weekday_before(end + 1, wanted) if number < 0 else start + (wanted - day_of_week(start)) % 7 + 7 * (number - 1)
        return (day, min(day + (1 if weekday is None else 0), LAST)) if start <= day <= end else None
    plain, size = to_basic_unit(unit or "", 1)
    if plain not in ("day", "week", "month", "year"):
        return None
    if number < 0:
        return max(start, shift(end + 1, plain, -size * count)), end
    first = shift(start, plain, size * (number - 1))
    last = shift(first, plain, size * count) - 1
    return (first, max(first, min(last, end))) if first <= end else None


def weekday_before(day: int, weekday: int) -> int:
    """Return the last such weekday before a day."""
    return day - ((day_of_week(day) - weekday) % 7 or 7)


def find_weekday(day: int, weekday: int, sign: int) -> int:
    """Return such a weekday: the last before a day (sign -1), that of its week (0), or the next after it (1)."""
    if sign < 0:
        return weekday_before(day, weekday)
    if sign > 0:
        return day + ((weekday - day_of_week(day)) % 7 or 7)
    return day - day_of_week(day) + weekday


def choose_range(latest_first: list[DayRange], now: int, sign: int) -> DayRange | None:
    """Return the last range that is over (sign -1), the current one or else that of this year (0), or the next to begin (1)."""
    if sign < 0:
        return next((day_range for day_range in latest_first if day_range[1] < now), None)
    if sign > 0:
        return next((day_range for day_range in reversed(latest_first) if day_range[0] > now), None)
    running = next((day_range for day_range in latest_first if day_range[0] <= now <= day_range[1]), None)
    year = date(now)[0]
    return running or next((day_range for day_range in latest_first if date(day_range[0])[0] == year), None)
