"""Calculate days from other days: some weeks before, the Sunday after, the last third, the second half."""

from __future__ import annotations

from holdfast.search.time_expressions import days
from holdfast.search.time_expressions import vocabulary as v
from holdfast.search.time_expressions.days import DayRange


def to_basic_unit(unit: str, count: int) -> tuple[str, int]:
    """Convert fortnights, quarters and decades to weeks, months and years."""
    plain, times = v.MADE_OF.get(unit, (unit, 1))
    return plain, count * times


def offset_range(base: int, unit: str, low: int, high: int) -> DayRange:
    """Return the days that are `low` to `high` units from a day, plus or minus half a unit."""
    unit = "week" if unit == "weekend" else unit
    (plain, near), (_, far) = to_basic_unit(unit, low), to_basic_unit(unit, high)
    if plain == "hour":
        return base, base
    ends = sorted((days.shift(base, plain, near), days.shift(base, plain, far)))
    return days.clamp(ends[0] - v.SLACK[plain]), days.clamp(ends[1] + v.SLACK[plain])


def adjacent_range(base: DayRange, unit: str, weekday: int | None, sign: int, count: int) -> DayRange:
    """Return the unit directly before (sign -1) or after (sign 1) a range of days."""
    edge = base[0] if sign < 0 else base[1]
    if weekday is not None:
        day = find_weekday(edge, weekday, sign)
        return days.clamp(day), days.clamp(day)
    if unit == "weekend":
        day = weekday_before(edge, 6) - 1 if sign < 0 else find_weekday(edge, 5, 1)
        return days.clamp(day), days.clamp(day + 1)
    plain, count = to_basic_unit(unit, count)
    far = days.shift(edge, plain, sign * count)
    return (far, days.clamp(edge - 1)) if sign < 0 else (days.clamp(edge + 1), far)


def unit_within(base: DayRange, unit: str, weekday: int | None) -> DayRange | None:
    """Return the week or weekend of the range's first day, or the first such weekday in the range."""
    if weekday is None:
        return days.unit_around(base[0], unit)
    day = base[0] + (weekday - days.weekday(base[0])) % 7
    return (day, day) if day <= base[1] else None


def split(whole: DayRange, count: int) -> list[DayRange]:
    """Split a range of days into equal parts.

    Whole months stay whole if possible; otherwise the odd days go to the part before the last. If there are fewer days than
    parts, each part is the whole range."""
    start, end = whole
    (year, month, first), (last_year, last_month, last) = days.date(start), days.date(end)
    months = (last_year - year) * 12 + last_month - month + 1
    if first == 1 and last == days.month_length(last_year, last_month) and months % count == 0:
        size = months // count
        edges = [days.shift(start, "month", size * part) for part in range(count)]
    else:
        size = (end - start + 1) // count
        if not size:
            return [whole] * count
        edges = [start + size * part for part in range(count - 1)] + [end - size + 1]
    return [(edge, after - 1) for edge, after in zip(edges, [*edges[1:], end + 1], strict=True)]


def find_nth(whole: DayRange, number: int, count: int, unit: str | None, weekday: int | None) -> DayRange | None:
    """Return the n-th unit or weekday of a range, counted from the end if n is -1; None if the range has fewer."""
    start, end = whole
    if unit == "half":
        return split(whole, 2)[0 if number == 1 else 1]
    if unit in (None, "weekend"):
        wanted = 5 if weekday is None else weekday
        day = weekday_before(end + 1, wanted) if number < 0 else start + (wanted - days.weekday(start)) % 7 + 7 * (number - 1)
        return (day, min(day + (1 if weekday is None else 0), days.LAST)) if start <= day <= end else None
    plain, size = to_basic_unit(unit or "", 1)
    if plain not in ("day", "week", "month", "year"):
        return None
    if number < 0:
        return max(start, days.shift(end + 1, plain, -size * count)), end
    first = days.shift(start, plain, size * (number - 1))
    last = days.shift(first, plain, size * count) - 1
    return (first, max(first, min(last, end))) if first <= end else None


def weekday_before(day: int, weekday: int) -> int:
    """Return the last such weekday before a day."""
    return day - ((days.weekday(day) - weekday) % 7 or 7)


def find_weekday(day: int, weekday: int, sign: int) -> int:
    """Return such a weekday: the last before a day (sign -1), that of its week (0), or the next after it (1)."""
    if sign < 0:
        return weekday_before(day, weekday)
    if sign > 0:
        return day + ((weekday - days.weekday(day)) % 7 or 7)
    return day - days.weekday(day) + weekday


def choose_range(latest_first: list[DayRange], now: int, sign: int) -> DayRange | None:
    """Return the last range that is over (sign -1), the current one or else that of this year (0), or the next to begin (1)."""
    if sign < 0:
        return next((day_range for day_range in latest_first if day_range[1] < now), None)
    if sign > 0:
        return next((day_range for day_range in reversed(latest_first) if day_range[0] > now), None)
    running = next((day_range for day_range in latest_first if day_range[0] <= now <= day_range[1]), None)
    year = days.date(now)[0]
    return running or next((day_range for day_range in latest_first if days.date(day_range[0])[0] == year), None)
