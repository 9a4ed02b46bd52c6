"""Match dates that name their day, month, season or year themselves ("8 May 2023", "Q3 2024"), word by word."""

from __future__ import annotations

from holdfast.base.record import Record
from holdfast.search.time_expressions import days
from holdfast.search.time_expressions import vocabulary as v
from holdfast.search.time_expressions.days import DayRange

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    YearlyDays = Callable[[int], DayRange | None]  # the days of something yearly in one year

_PADDING = 16


class TimeMatch(Record):
    """A time that was matched: its ranges of days, its kind, the position after it, and whether the year was guessed."""

    days: tuple[DayRange, ...]
    kind: str
    end: int
    yearless: bool = False


class DateParser:
    """Match dates in a list of words. No rule looks further than a few words, so the time is linear in the text's length."""

    def __init__(self, words: list[str], now: int | None, years: tuple[int, ...], passage: bool) -> None:
        self.count, self.now, self.years, self.passage = len(words), now, years, passage
        self.words = words + [""] * _PADDING
        self.word = self.words.__getitem__  # the padding also answers positions before the start

    def match_date(self, position: int, year: int | None = None) -> TimeMatch | None:
        """Match a date at this position; `year` is used where none is written."""
        word = self.word(position)
        if word[:1].isdigit():
            return (
                self._match_numeric(position, word)
                or self._match_cjk(position)
                or self._match_day_first(position, year)
                or self._match_year(position)
            )
        if word in v.ORDINALS and self.word(position + 1) in v.ARTICLES:
            return self._match_day_first(position, year)
        if word in v.MONTHS:
            return self._match_month_first(position, year)
        return self._match_quarter(position, year) or self._match_season(position, year) or self._match_holiday(position, year)

    # --- numeric dates

    def _match_numeric(self, position: int, word: str) -> TimeMatch | None:
        for separator in "-/.":
            parts = word.split(separator)
            if len(parts) == 3:
                day = parse_date_parts(parts, separator)
                return TimeMatch(((day, day),), "day", position + 1) if day else None
            if len(parts) == 2 and len(parts[0]) == 4:
                month = days.month_range(int(parts[0]), int(parts[1])) if 1 <= int(parts[1]) <= 12 else None
                return TimeMatch((month,), "month", position + 1) if month else None
            if len(parts) == 2 and self._is_day(position, int(parts[0]), int(parts[1])):
                return self._make_match("day", position + 1, _date_days(int(parts[0]), int(parts[1])), None)
        return None

    def _is_day(self, position: int, month: int, day: int) -> bool:
        """Return whether 7/22 is meant as a day: only after certain words; 1/4, which may be a fraction, only after "on"."""
        previous = self.word(position - 1)
        fraction = month < day and day in (2, 3, 4, 8)
        return previous == "on" or (not fraction and (previous == "the" or previous in v.BEFORE_WEEKDAY))

    def _match_cjk(self, position: int) -> TimeMatch | None:
        """Match 2023年5月8日, with or without its later parts."""
        year, month, day = self._parse_digits(position), self._parse_digits(position + 2), self._parse_digits(position + 4)
        if self.word(position + 1) != "年" or year is None:
            return None
        if month is None or self.word(position + 3) != "月":
            return self._make_match("year", position + 2, _year_days, year)
        if day is None or self.word(position + 5) != "日":
            return self._make_match("month", position + 4, _month_days(month), year)
        return self._make_match("day", position + 6, _date_days(month, day), year)

    def _match_year(self, position: int) -> TimeMatch | None:
        """Match a year alone, if a word beside it shows that it is a year."""
        year = self._parse_digits(position) or 0
        if not 1900 <= year < 2100 or len(self.word(position)) != 4:
            return None
        ends_range = self.word(position - 1) in v.JOINS and 1900 <= (self._parse_digits(position - 2) or 0) < 2100
        follows_unit = self.word(position - (2 if self.word(position - 1) in v.ARTICLES else 1)) in v.PARTS_AND_UNITS
        starts_range = self.word(position + 1) in v.RANGES and 1900 <= (self._parse_digits(position + 2) or 0) < 2100
        if ends_range or follows_unit or starts_range or self._has_marker_before(position, v.YEAR_MARKERS):
            return self._make_match("year", position + 1, _year_days, year)
        return None

    # --- days and months

    def _match_day_first(self, position: int, year: int | None) -> TimeMatch | None:
        """Match 8 May 2023, 8th of May, 8-10 May, 8. Mai, 1er mai, 8 de mayo de 2023."""
        month_days = self._parse_month_days(position, v.JOINS)
        if not month_days:
            return None
        first, last, at = month_days
        bare = at == position + 1
        for _ in range(2):
            if self.word(at) in (".", "-", "’", "'") or self.word(at) in v.ARTICLES:
                at += 1
        name = self.word(at)
        if name not in v.MONTHS:
            return None
        written_year, end = self._parse_year_after(at + 1)
        if name in v.UNSURE_AFTER_NUMBER and bare and not written_year and not self._has_marker_before(position, v.MARKERS):
            return None
        return self._make_match(
            "day" if first == last else "range", end, _date_range_days(v.MONTHS[name], first, last), written_year or year
        )

    def _match_month_first(self, position: int, year: int | None) -> TimeMatch | None:
        """Match May 8th 2023, May 8-10, May 2023, in May."""
        name = self.word(position)
        month, at = v.MONTHS[name], position + 1
        if self.word(at) in (".", "-") and self.word(at + 1)[:1].isdigit():
            at += 1
        ranges = v.JOINS if self.word(position - 1) in v.BETWEEN else v.RANGES
        month_days = self._parse_month_days(at, ranges)
        if month_days and self.word(month_days[2]) not in (":", "%"):
            first, last, at = month_days
            written_year, end = self._parse_year_after(at)
            return self._make_match(
                "day" if first == last else "range", end, _date_range_days(month, first, last), written_year or year
            )
        written_year, end = self._parse_year_after(position + 1)
        if (
            not written_year
            and name in v.UNSURE_MONTHS
            and not self._has_marker_before(position, v.MARKERS)
            and not self._is_next_to_month(position)
        ):
            return None
        return self._make_match("month", end, _month_days(month), written_year or year)

    def _is_next_to_month(self, position: int) -> bool:
        """Return whether another month is on the other side of "to" or "and"."""
        ends = self.word(position - 1) in v.JOINS and self.word(position - 2) in v.MONTHS
        return ends or (self.word(position + 1) in v.RANGES and self.word(position + 2) in v.MONTHS)

    def _parse_month_days(self, position: int, joins: frozenset[str]) -> tuple[int, int, int] | None:
        """Return one or two days of a month, as first and last, and the position after them."""
        first, at = self._parse_month_day(position)
        if first is None:
            return None
        if self.word(at) in joins:
            last, after = self._parse_month_day(at + 1)
            if last is not None and last > first:
                return first, last, after
        return first, first, at

    def _parse_month_day(self, position: int) -> tuple[int | None, int]:
        number = self._parse_digits(position) if len(self.word(position)) < 3 else None
        if number is None:
            number = v.ORDINALS.get(self.word(position))
        if number is None or not 1 <= number <= 31:
            return None, position
        suffixed = self.word(position + 1) in v.ORDINAL_ENDS and self.word(position)[:1].isdigit()
        return number, position + 2 if suffixed else position + 1

    def _parse_year_after(self, position: int) -> tuple[int | None, int]:
        """Return the year that follows a day or month, and the position after it."""
        if self.word(position + 1) == ":" and self.word(position + 3) == ":":  # May 8 13:56:00 2023
            year = self._parse_digits(position + 5)
            return (year, position + 6) if year and len(self.word(position + 5)) == 4 else (None, position)
        at = position + 1 if self.word(position) in v.A_YEAR_FOLLOWS else position
        year = self._parse_digits(at)
        if year and 1000 <= year < 3000 and len(self.word(at)) == 4:
            return year, at + 1
        if self.word(at) in ("'", "’") and len(self.word(at + 1)) == 2 and (year := self._parse_digits(at + 1)) is not None:
            return 2000 + year, at + 2
        return None, position

    # --- longer times

    def _match_quarter(self, position: int, year: int | None) -> TimeMatch | None:
        """Match Q3 2024."""
        number = self._parse_digits(position + 1) if self.word(position) == "q" else None
        if number is None or not 1 <= number <= 4:
            return None
        written_year, end = self._parse_year_after(position + 2)
        return self._make_match("quarter", end, _quarter_days(number), written_year or year)

    def _match_season(self, position: int, year: int | None) -> TimeMatch | None:
        """Match spring 2022, in the summer."""
        name = v.SEASONS.get(self.word(position))
        if not name:
            return None
        written_year, end = self._parse_year_after(position + 1)
        if not written_year and not self._has_marker_before(position, v.SEASON_MARKERS):
            return None
        return self._make_match("season", end, _season_days(name), written_year or year)

    def _match_holiday(self, position: int, year: int | None) -> TimeMatch | None:
        """Match Christmas, Valentine's Day, Easter 2022, New Year's Eve."""
        name, at = v.HOLIDAYS.get(self.word(position)), position + 1
        if self.word(position) == "new" and self.word(position + 1) in ("year", "years"):
            name, at = "newyear", position + 2
        if not name:
            return None
        while at < position + 4 and self.word(at) in ("'", "’", "s"):
            at += 1
        part = self.word(at) if self.word(at) in ("day", "eve") else ""
        written_year, end = self._parse_year_after(at + 1 if part else at)
        return self._make_match("holiday", end, _holiday_days(name, part), written_year or year)

    def find_yearly(self, position: int) -> tuple[YearlyDays, str, int] | None:
        """Return, for the bare name of a month, season or holiday: its days in any year, its kind, the position after it."""
        word = self.word(position)
        if word in v.MONTHS:
            return _month_days(v.MONTHS[word]), "month", position + 1
        if word in v.SEASONS:
            return _season_days(v.SEASONS[word]), "season", position + 1
        if word in v.HOLIDAYS:
            return _holiday_days(v.HOLIDAYS[word], ""), "holiday", position + 1
        return None

    # --- which year

    def _make_match(self, kind: str, end: int, days_in_year: YearlyDays, year: int | None) -> TimeMatch:
        if year is None:
            return TimeMatch(self._guess_years(days_in_year), kind, end, True)
        day_range = days_in_year(year)
        return TimeMatch((day_range,) if day_range else (), kind, end)

    def _guess_years(self, days_in_year: YearlyDays) -> tuple[DayRange, ...]:
        """Return the days meant where no year is written.

        A passage means those nearest to its own day. A question means the last that have begun, if the memory has that year;
        otherwise those of every year that the memory has."""
        if self.passage:
            return self._find_nearest(days_in_year)
        begun = [day_range for day_range in self.list_recent(days_in_year) if self.now and day_range[0] <= self.now]
        if begun and (not self.years or days.date(begun[0][0])[0] in self.years):
            return (begun[0],)
        return tuple([day_range for year in self.years if (day_range := days_in_year(year))])

    def _find_nearest(self, days_in_year: YearlyDays) -> tuple[DayRange, ...]:
        if self.now is None:
            return ()
        now = self.now
        year = days.date(now)[0]
        ranges = [day_range for candidate in (year - 1, year, year + 1) if (day_range := days_in_year(candidate))]
        return tuple(sorted(ranges, key=lambda day_range: max(day_range[0] - now, now - day_range[1], 0))[:1])

    def list_recent(self, days_in_year: YearlyDays) -> list[DayRange]:
        """Return its days in the years around now, latest first; ten years, since 29 February may be eight years away."""
        year = days.date(self.now)[0] if self.now else 0
        return [day_range for back in range(-1, 9) if (day_range := days_in_year(year - back))] if year else []

    def _has_marker_before(self, position: int, markers: frozenset[str]) -> bool:
        """Return whether a word before this position, articles skipped, shows that a time follows."""
        for back in (1, 2, 3):
            word = self.word(position - back)
            if word in markers:
                return True
            if word not in v.ARTICLES and word != "-":
                return False
        return False

    def _parse_digits(self, position: int) -> int | None:
        word = self.word(position)
        return int(word) if 0 < len(word) < 5 and word.isascii() and word.isdigit() else None


def parse_date_parts(parts: list[str], mark: str) -> int | None:
    """Return the day of a numeric date. A year of four digits may come first; with dots the day does, else the month if
    possible."""
    first, second, third = (int(part) for part in parts)
    if len(parts[0]) == 4:
        return days.day(first, second, third)
    if len(parts[2]) == 2 and mark == "/":
        third += 2000 if third < 70 else 1900
    elif len(parts[2]) != 4:
        return None
    month_first = days.day(third, first, second) if mark != "." else None
    return month_first or days.day(third, second, first)


def _year_days(year: int) -> DayRange | None:
    return days.month_range(year, 1, 12)


def _date_days(month: int, day: int) -> YearlyDays:
    return _date_range_days(month, day, day)


def _date_range_days(month: int, first: int, last: int) -> YearlyDays:
    def days_in_year(year: int) -> DayRange | None:
        start, end = days.day(year, month, first), days.day(year, month, last)
        return (start, end) if start and end else None

    return days_in_year


def _month_days(month: int) -> YearlyDays:
    return lambda year: days.month_range(year, month) if 1 <= month <= 12 else None


def _quarter_days(number: int) -> YearlyDays:
    return lambda year: days.month_range(year, number * 3 - 2, 3)


def _season_days(name: str) -> YearlyDays:
    return lambda year: days.month_range(year, v.SEASON_STARTS[name], 3)


def _holiday_days(name: str, part: str) -> YearlyDays:
    def days_in_year(year: int) -> DayRange | None:
        if name == "easter":
            sunday = days.easter(year) if 1583 <= year <= 9999 else None
            return (sunday - 2, sunday + 1) if sunday else None
        if name == "thanksgiving":
            november = days.day(year, 11, 1)
            fourth = november + (3 - days.day_of_week(november)) % 7 + 21 if november else None
            return (fourth, fourth) if fourth else None
        month, first, last = v.HOLIDAY_DATES[name, part] if (name, part) in v.HOLIDAY_DATES else v.HOLIDAY_DATES[name, ""]
        return _date_range_days(month, first, last)(year)

    return days_in_year
