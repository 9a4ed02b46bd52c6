"""Dates that say themselves which day, month, season or year they mean, read word by word."""

from __future__ import annotations

from holdfast.base.record import Record
from holdfast.search.time_expressions import days
from holdfast.search.time_expressions import vocabulary as v
from holdfast.search.time_expressions.days import Stretch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[[int], Stretch | None]  # the days that something yearly has in a year

_BEYOND = 16


class Read(Record):
    """What was read: days, what they are, the next word, and whether the year had to be guessed."""

    days: tuple[Stretch, ...]
    kind: str
    end: int
    yearless: bool = False


class Dated:
    """Reads dates out of words. No rule looks further than a few words, so reading a text takes time in proportion to it."""

    def __init__(self, words: list[str], now: int | None, years: tuple[int, ...], passage: bool) -> None:
        self.count, self.now, self.years, self.passage = len(words), now, years, passage
        self.words = words + [""] * _BEYOND
        self.word = self.words.__getitem__  # beyond either end there is nothing, as far as a rule looks

    def date(self, place: int, year: int | None = None) -> Read | None:
        """A date at this place; `year` is the one to take where none is written."""
        word = self.word(place)
        if word[:1].isdigit():
            return self._numeric(place, word) or self._signs(place) or self._day_first(place, year) or self._year(place)
        if word in v.ORDINALS and self.word(place + 1) in v.ARTICLES:
            return self._day_first(place, year)
        if word in v.MONTHS:
            return self._month_first(place, year)
        return self._quarter(place, year) or self._season(place, year) or self._holiday(place, year)

    # --- what is written in figures

    def _numeric(self, place: int, word: str) -> Read | None:
        for mark in "-/.":
            parts = word.split(mark)
            if len(parts) == 3:
                day = day_of_parts(parts, mark)
                return Read(((day, day),), "day", place + 1) if day else None
            if len(parts) == 2 and len(parts[0]) == 4:
                month = days.months(int(parts[0]), int(parts[1])) if 1 <= int(parts[1]) <= 12 else None
                return Read((month,), "month", place + 1) if month else None
            if len(parts) == 2 and self._is_day(place, int(parts[0]), int(parts[1])):
                return self._yearly("day", place + 1, _same_day(int(parts[0]), int(parts[1])), None)
        return None

    def _is_day(self, place: int, month: int, day: int) -> bool:
        """Whether 7/22 is meant as a day: where a word says so, and 1/4 only on it."""
        before = self.word(place - 1)
        fraction = month < day and day in (2, 3, 4, 8)
        return before == "on" or (not fraction and (before == "the" or before in v.BEFORE_WEEKDAY))

    def _signs(self, place: int) -> Read | None:
        """2023年5月8日, with or without its later parts."""
        year, month, day = self._figure(place), self._figure(place + 2), self._figure(place + 4)
        if self.word(place + 1) != "年" or year is None:
            return None
        if month is None or self.word(place + 3) != "月":
            return self._yearly("year", place + 2, _whole_year, year)
        if day is None or self.word(place + 5) != "日":
            return self._yearly("month", place + 4, _month_days(month), year)
        return self._yearly("day", place + 6, _same_day(month, day), year)

    def _year(self, place: int) -> Read | None:
        """A year alone, where a word before it says that it is one."""
        year = self._figure(place) or 0
        if not 1900 <= year < 2100 or len(self.word(place)) != 4:
            return None
        ranged = self.word(place - 1) in v.JOINS and 1900 <= (self._figure(place - 2) or 0) < 2100
        of_time = self.word(place - (2 if self.word(place - 1) in v.ARTICLES else 1)) in v.PARTS_AND_UNITS
        joined = self.word(place + 1) in v.RANGES and 1900 <= (self._figure(place + 2) or 0) < 2100
        if ranged or of_time or joined or self._marked(place, v.YEAR_MARKERS):
            return self._yearly("year", place + 1, _whole_year, year)
        return None

    # --- days and months

    def _day_first(self, place: int, year: int | None) -> Read | None:
        """8 May 2023, 8th of May, 8-10 May, 8. Mai, 1er mai, 8 de mayo de 2023."""
        found = self._days_of_month(place, v.JOINS)
        if not found:
            return None
        first, last, at = found
        bare = at == place + 1
        for _ in range(2):
            if self.word(at) in (".", "-", "’", "'") or self.word(at) in v.ARTICLES:
                at += 1
        name = self.word(at)
        if name not in v.MONTHS:
            return None
        written, end = self._year_after(at + 1)
        if name in v.UNSURE_AFTER_NUMBER and bare and not written and not self._marked(place, v.MARKERS):
            return None
        return self._yearly("day" if first == last else "range", end, _same_days(v.MONTHS[name], first, last), written or year)

    def _month_first(self, place: int, year: int | None) -> Read | None:
        """May 8th 2023, May 8-10, May 2023, in May."""
        name = self.word(place)
        month, at = v.MONTHS[name], place + 1
        if self.word(at) in (".", "-") and self.word(at + 1)[:1].isdigit():
            at += 1
        ranges = v.JOINS if self.word(place - 1) in v.BETWEEN else v.RANGES
        found = self._days_of_month(at, ranges)
        if found and self.word(found[2]) not in (":", "%"):
            first, last, at = found
            written, end = self._year_after(at)
            return self._yearly("day" if first == last else "range", end, _same_days(month, first, last), written or year)
        written, end = self._year_after(place + 1)
        if not written and name in v.UNSURE_MONTHS and not self._marked(place, v.MARKERS) and not self._beside_month(place):
            return None
        return self._yearly("month", end, _month_days(month), written or year)

    def _beside_month(self, place: int) -> bool:
        """Whether another month stands on the other side of "to" or "and"."""
        ends = self.word(place - 1) in v.JOINS and self.word(place - 2) in v.MONTHS
        return ends or (self.word(place + 1) in v.RANGES and self.word(place + 2) in v.MONTHS)

    def _days_of_month(self, place: int, joins: frozenset[str]) -> tuple[int, int, int] | None:
        """One or two days of a month, and the place after them."""
        first, at = self._day_of_month(place)
        if first is None:
            return None
        if self.word(at) in joins:
            last, after = self._day_of_month(at + 1)
            if last is not None and last > first:
                return first, last, after
        return first, first, at

    def _day_of_month(self, place: int) -> tuple[int | None, int]:
        number = self._figure(place) if len(self.word(place)) < 3 else None
        if number is None:
            number = v.ORDINALS.get(self.word(place))
        if number is None or not 1 <= number <= 31:
            return None, place
        suffixed = self.word(place + 1) in v.ORDINAL_ENDS and self.word(place)[:1].isdigit()
        return number, place + 2 if suffixed else place + 1

    def _year_after(self, place: int) -> tuple[int | None, int]:
        """The year that follows a day or month, and the place after it."""
        if self.word(place + 1) == ":" and self.word(place + 3) == ":":  # May 8 13:56:00 2023
            year = self._figure(place + 5)
            return (year, place + 6) if year and len(self.word(place + 5)) == 4 else (None, place)
        at = place + 1 if self.word(place) in v.A_YEAR_FOLLOWS else place
        year = self._figure(at)
        if year and 1000 <= year < 3000 and len(self.word(at)) == 4:
            return year, at + 1
        if self.word(at) in ("'", "’") and len(self.word(at + 1)) == 2 and (year := self._figure(at + 1)) is not None:
            return 2000 + year, at + 2
        return None, place

    # --- longer times

    def _quarter(self, place: int, year: int | None) -> Read | None:
        """Q3 2024."""
        number = self._figure(place + 1) if self.word(place) == "q" else None
        if number is None or not 1 <= number <= 4:
            return None
        written, end = self._year_after(place + 2)
        return self._yearly("quarter", end, _quarter_days(number), written or year)

    def _season(self, place: int, year: int | None) -> Read | None:
        """Spring 2022, in the summer."""
        name = v.SEASONS.get(self.word(place))
        if not name:
            return None
        written, end = self._year_after(place + 1)
        if not written and not self._marked(place, v.SEASON_MARKERS):
            return None
        return self._yearly("season", end, _season_days(name), written or year)

    def _holiday(self, place: int, year: int | None) -> Read | None:
        """Christmas, Valentine's Day, Easter 2022, New Year's Eve."""
        name, at = v.HOLIDAYS.get(self.word(place)), place + 1
        if self.word(place) == "new" and self.word(place + 1) in ("year", "years"):
            name, at = "newyear", place + 2
        if not name:
            return None
        while at < place + 4 and self.word(at) in ("'", "’", "s"):
            at += 1
        part = self.word(at) if self.word(at) in ("day", "eve") else ""
        written, end = self._year_after(at + 1 if part else at)
        return self._yearly("holiday", end, _holiday_days(name, part), written or year)

    def yearly(self, place: int) -> tuple[Make, str, int] | None:
        """A month, season or holiday by its name alone: its days in any year, what it is, and the place after it."""
        word = self.word(place)
        if word in v.MONTHS:
            return _month_days(v.MONTHS[word]), "month", place + 1
        if word in v.SEASONS:
            return _season_days(v.SEASONS[word]), "season", place + 1
        if word in v.HOLIDAYS:
            return _holiday_days(v.HOLIDAYS[word], ""), "holiday", place + 1
        return None

    # --- which year

    def _yearly(self, kind: str, end: int, make: Make, year: int | None) -> Read:
        if year is None:
            return Read(self._likely(make), kind, end, True)
        stretch = make(year)
        return Read((stretch,) if stretch else (), kind, end)

    def _likely(self, make: Make) -> tuple[Stretch, ...]:
        """The days meant where no year is written. A passage means the nearest to its own day. A question means the last
        that has begun, if the memory has that year; else that of every year which the memory has."""
        if self.passage:
            return self._nearest(make)
        begun = [stretch for stretch in self.lately(make) if self.now and stretch[0] <= self.now]
        if begun and (not self.years or days.date(begun[0][0])[0] in self.years):
            return (begun[0],)
        return tuple([stretch for year in self.years if (stretch := make(year))])

    def _nearest(self, make: Make) -> tuple[Stretch, ...]:
        if self.now is None:
            return ()
        now = self.now
        year = days.date(now)[0]
        there = [stretch for near in (year - 1, year, year + 1) if (stretch := make(near))]
        return tuple(sorted(there, key=lambda one: max(one[0] - now, now - one[1], 0))[:1])

    def lately(self, make: Make) -> list[Stretch]:
        """Its days in the years around now, the latest first; nine years, since 29 February may be eight away."""
        year = days.date(self.now)[0] if self.now else 0
        return [stretch for back in range(-1, 9) if (stretch := make(year - back))] if year else []

    def _marked(self, place: int, markers: frozenset[str]) -> bool:
        """Whether a word before this place, articles passed over, says that a time follows."""
        for back in (1, 2, 3):
            word = self.word(place - back)
            if word in markers:
                return True
            if word not in v.ARTICLES and word != "-":
                return False
        return False

    def _figure(self, place: int) -> int | None:
        word = self.word(place)
        return int(word) if 0 < len(word) < 5 and word.isascii() and word.isdigit() else None


def day_of_parts(parts: list[str], mark: str) -> int | None:
    """The day of a numeric date: a year of four figures may come first; with dots the day does, else the month if it can."""
    first, second, third = (int(part) for part in parts)
    if len(parts[0]) == 4:
        return days.day(first, second, third)
    if len(parts[2]) == 2 and mark == "/":
        third += 2000 if third < 70 else 1900
    elif len(parts[2]) != 4:
        return None
    month_first = days.day(third, first, second) if mark != "." else None
    return month_first or days.day(third, second, first)


def _whole_year(year: int) -> Stretch | None:
    return days.months(year, 1, 12)


def _same_day(month: int, day: int) -> Make:
    return _same_days(month, day, day)


def _same_days(month: int, first: int, last: int) -> Make:
    def make(year: int) -> Stretch | None:
        start, end = days.day(year, month, first), days.day(year, month, last)
        return (start, end) if start and end else None

    return make


def _month_days(month: int) -> Make:
    return lambda year: days.months(year, month) if 1 <= month <= 12 else None


def _quarter_days(number: int) -> Make:
    return lambda year: days.months(year, number * 3 - 2, 3)


def _season_days(name: str) -> Make:
    return lambda year: days.months(year, v.SEASON_STARTS[name], 3)


def _holiday_days(name: str, part: str) -> Make:
    def make(year: int) -> Stretch | None:
        if name == "easter":
            sunday = days.easter(year) if 1583 <= year <= 9999 else None
            return (sunday - 2, sunday + 1) if sunday else None
        if name == "thanksgiving":
            november = days.day(year, 11, 1)
            fourth = november + (3 - days.weekday(november)) % 7 + 21 if november else None
            return (fourth, fourth) if fourth else None
        month, first, last = v.HOLIDAY_DATES[name, part] if (name, part) in v.HOLIDAY_DATES else v.HOLIDAY_DATES[name, ""]
        return _same_days(month, first, last)(year)

    return make
