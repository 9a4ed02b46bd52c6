"""Days reckoned from other days: so many weeks before, the Sunday after, the last third, the second half."""

from __future__ import annotations

from holdfast.search.time_expressions import days
from holdfast.search.time_expressions import vocabulary as v
from holdfast.search.time_expressions.days import Stretch


def simple(unit: str, count: int) -> tuple[str, int]:
    """Fortnights, quarters and decades as weeks, months and years."""
    plain, times = v.MADE_OF.get(unit, (unit, 1))
    return plain, count * times


def away(base: int, unit: str, low: int, high: int) -> Stretch:
    """So many units from a day, give or take half a unit."""
    unit = "week" if unit == "weekend" else unit
    (plain, near), (_, far) = simple(unit, low), simple(unit, high)
    if plain == "hour":
        return base, base
    ends = sorted((days.shifted(base, plain, near), days.shifted(base, plain, far)))
    return days.clipped(ends[0] - v.SLACK[plain]), days.clipped(ends[1] + v.SLACK[plain])


def beside(base: Stretch, unit: str, weekday: int | None, sign: int, count: int) -> Stretch:
    """The unit right before or after some days."""
    edge = base[0] if sign < 0 else base[1]
    if weekday is not None:
        day = weekday_near(edge, weekday, sign)
        return days.clipped(day), days.clipped(day)
    if unit == "weekend":
        day = weekday_before(edge, 6) - 1 if sign < 0 else weekday_near(edge, 5, 1)
        return days.clipped(day), days.clipped(day + 1)
    plain, count = simple(unit, count)
    far = days.shifted(edge, plain, sign * count)
    return (far, days.clipped(edge - 1)) if sign < 0 else (days.clipped(edge + 1), far)


def within(base: Stretch, unit: str, weekday: int | None) -> Stretch | None:
    """The week, weekend or weekday of some days."""
    if weekday is None:
        return days.around(base[0], unit)
    day = base[0] + (weekday - days.weekday(base[0])) % 7
    return (day, day) if day <= base[1] else None


def split(whole: Stretch, count: int) -> list[Stretch]:
    """Some days in equal parts: of whole months where that is possible, else of days, the odd ones in the part before the last;
    of very few days each part is all."""
    start, end = whole
    (year, month, first), (last_year, last_month, last) = days.date(start), days.date(end)
    months = (last_year - year) * 12 + last_month - month + 1
    if first == 1 and last == days.length(last_year, last_month) and months % count == 0:
        size = months // count
        edges = [days.shifted(start, "month", size * part) for part in range(count)]
    else:
        size = (end - start + 1) // count
        if not size:
            return [whole] * count
        edges = [start + size * part for part in range(count - 1)] + [end - size + 1]
    return [(edge, after - 1) for edge, after in zip(edges, [*edges[1:], end + 1], strict=True)]


def nth_of(whole: Stretch, number: int, count: int, unit: str | None, weekday: int | None) -> Stretch | None:
    """The n-th unit or weekday of some days, counted from the end if n is -1; nothing if there are not so many."""
    start, end = whole
    if unit == "half":
        return split(whole, 2)[0 if number == 1 else 1]
    if unit in (None, "weekend"):
        wanted = 5 if weekday is None else weekday
        day = weekday_before(end + 1, wanted) if number < 0 else start + (wanted - days.weekday(start)) % 7 + 7 * (number - 1)
        return (day, min(day + (1 if weekday is None else 0), days.LAST)) if start <= day <= end else None
    plain, size = simple(unit or "", 1)
    if plain not in ("day", "week", "month", "year"):
        return None
    if number < 0:
        return max(start, days.shifted(end + 1, plain, -size * count)), end
    first = days.shifted(start, plain, size * (number - 1))
    last = days.shifted(first, plain, size * count) - 1
    return (first, max(first, min(last, end))) if first <= end else None


def weekday_before(day: int, weekday: int) -> int:
    """The last such weekday before a day."""
    return day - ((days.weekday(day) - weekday) % 7 or 7)


def weekday_near(day: int, weekday: int, sign: int) -> int:
    """The last one before a day, the one in its week, or the next one after it."""
    if sign < 0:
        return weekday_before(day, weekday)
    if sign > 0:
        return day + ((weekday - days.weekday(day)) % 7 or 7)
    return day - days.weekday(day) + weekday


def chosen(latest_first: list[Stretch], now: int, sign: int) -> Stretch | None:
    """The last that is over, the one that is now or else of this year, or the next to begin."""
    if sign < 0:
        return next((one for one in latest_first if one[1] < now), None)
    if sign > 0:
        return next((one for one in reversed(latest_first) if one[0] > now), None)
    running = next((one for one in latest_first if one[0] <= now <= one[1]), None)
    year = days.date(now)[0]
    return running or next((one for one in latest_first if days.date(one[0])[0] == year), None)
