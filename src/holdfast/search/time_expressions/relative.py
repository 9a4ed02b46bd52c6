"""Match times that are given relative to another time: to now, to a date, or from one to the other; word by word."""

from __future__ import annotations

from holdfast.search.time_expressions import days
from holdfast.search.time_expressions import vocabulary as v
from holdfast.search.time_expressions.absolute import DateParser, TimeMatch
from holdfast.search.time_expressions.days import DayRange

_MAX_DEPTH = 3  # "two weeks before the day before the end of May"

_MAX_LEAD_WORDS = 6  # words between the first word of a time and the first that names one


class TimeParser(DateParser):
    """Match all times that a text names."""

    _french: bool | None = None

    def parse(self) -> list[TimeMatch]:
        """Return all times, in order of appearance; they do not overlap."""
        matches, next_free = [], 0
        for position in self._list_starts():
            match = self._match_time(position) if position >= next_free else None
            if match:
                matches.append(match)
                next_free = match.end
        return matches

    def _list_starts(self) -> list[int]:
        """Return the positions where a time may begin: at a word that can begin one, close before a word that names one."""
        beginnings = v.BEGINNINGS
        possible = [position for position, word in enumerate(self.words) if word in beginnings or "0" <= word < ":"]
        positions, nearest_hint = [], self.count + _MAX_LEAD_WORDS
        for position in reversed(possible):
            word = self.words[position]
            if word in v.HINTS or (len(word) == 4 and word[0] in "12") or (len(word) > 2 and not word.isalnum()):
                nearest_hint = position
            if nearest_hint - position <= _MAX_LEAD_WORDS:
                positions.append(position)
        return positions[::-1]

    def _match_time(self, position: int) -> TimeMatch | None:
        return self._match_between(position) or self._match_open(position) or self._match_range(position)

    def match_moment(self, position: int, year: int | None = None, depth: int = 0) -> TimeMatch | None:
        """Match one day or one named time; `year` is used where none is written."""
        if depth > _MAX_DEPTH:
            return None
        for _ in range(3 if depth else 0):
            position += self.word(position) in v.LEADING
        return (
            self._match_offset(position, depth)
            or self._match_nth(position, depth)
            or self.match_date(position, year)
            or self._match_part(position, year, depth)
            or self._match_day_word(position)
            or self._match_ago(position)
            or self._match_rolling(position)
            or self._match_near(position)
            or self._match_weekday(position)
        )

    # --- ranges

    def _match_between(self, position: int) -> TimeMatch | None:
        """Match between X and Y, from X to Y."""
        if self.word(position) not in v.BETWEEN:
            return None
        first = self.match_moment(position + 1, depth=1)
        if not first or self.word(first.end) not in v.JOINS:
            return first if first and first.kind == "range" else None
        return self._join_range(position + 1, first)

    def _match_range(self, position: int) -> TimeMatch | None:
        """Match X, or X to Y."""
        first = self.match_moment(position)
        if not first or self.word(first.end) not in v.RANGES:
            return first
        return self._join_range(position, first) or first

    def _join_range(self, position: int, first: TimeMatch) -> TimeMatch | None:
        """Return both ends as one range; a year that only one end names counts for the other too."""
        second = self.match_moment(first.end + 1, depth=1)
        if not second:
            return None
        if first.yearless and not second.yearless:
            first = self._match_start_before(position, first, second)
        pairs = []
        for start in first.days:
            last = self._match_end_after(first.end + 1, second, start) if second.yearless else second
            pairs.extend([(start[0], end[1]) for end in last.days if start[0] <= end[1]])
        return TimeMatch(tuple(pairs), "range", second.end, first.yearless) if pairs or first.yearless else None

    def _match_start_before(self, position: int, first: TimeMatch, second: TimeMatch) -> TimeMatch:
        """Match the first end again in the year of the second, or in the year before."""
        if not second.days:
            return first
        year = days.date(second.days[0][0])[0]
        match = self.match_moment(position, year, depth=1)
        if match and match.days and match.days[0][0] > second.days[0][1]:
            match = self.match_moment(position, year - 1, depth=1)
        return match or first

    def _match_end_after(self, position: int, second: TimeMatch, start: DayRange) -> TimeMatch:
        """Match the second end again in the year of the first, or in the year after."""
        year = days.date(start[0])[0]
        match = self.match_moment(position, year, depth=1)
        if match and match.days and match.days[0][1] < start[0]:
            match = self.match_moment(position, year + 1, depth=1)
        return match or second

    def _match_open(self, position: int) -> TimeMatch | None:
        """Match since, after, before or until a time. A passage with such words is about that time itself."""
        word = self.word(position)
        kind = next((name for name, words in v.OPEN.items() if word in words), None)
        if not kind or self.passage or (word in v.AGO_BEFORE and self._match_ago(position)):
            return None
        at = position + 2 if self.word(position + 1) in ("to", "a") else position + 1
        moment = self.match_moment(at, depth=1)
        if not moment:
            return None
        ranges = [self._open_range(kind, day_range) for day_range in moment.days]
        return TimeMatch(
            tuple([day_range for day_range in ranges if day_range[0] <= day_range[1]]), kind, moment.end, moment.yearless
        )

    def _open_range(self, kind: str, day_range: DayRange) -> DayRange:
        start, end = day_range
        if kind in ("since", "after"):
            begin = start if kind == "since" else end + 1
            newest = self.now or (days.day(max(self.years), 12, 31) if self.years else None) or days.LAST
            return begin, newest if begin <= newest else days.LAST
        oldest = (days.day(min(self.years), 1, 1) if self.years else None) or days.FIRST
        finish = start - 1 if kind == "before" else end
        return oldest if oldest <= finish else days.FIRST, finish

    # --- parts of a time

    def _match_part(self, position: int, year: int | None, depth: int) -> TimeMatch | None:
        """Match early June, the end of 2022, as thirds."""
        word = self.word(position)
        third = 0 if word in v.EARLY else 1 if word in v.MIDDLE else 2 if word in v.LATE else None
        if third is None or self._parse_unit(position)[0]:
            return None
        at = position + 1
        while at < position + 4 and (self.word(at) == "-" or self.word(at) in v.LEADING):
            at += 1
        match = self.match_moment(at, year, depth + 1)
        if not match or match.kind not in v.HAVE_PARTS:
            return None
        return TimeMatch(
            tuple([days.split(day_range, 3)[third] for day_range in match.days]), "part", match.end, match.yearless
        )

    def _match_nth(self, position: int, depth: int) -> TimeMatch | None:
        """Match the first week of June, the last Friday of May, the second half of 2022, the first three months of 2023."""
        word = self.word(position)
        number = -1 if word in v.LAST else v.ORDINALS.get(word)
        if number is None:
            return None
        count, at = 1, position + 1
        if counted := self._parse_number(at):
            count, _, at = counted
        unit, after = ("half", at + 1) if self.word(at) in v.HALVES else self._parse_unit(at)
        weekday = v.WEEKDAYS.get(self.word(at))
        if unit is None and weekday is None:
            return None
        after = at + 1 if unit is None else after
        if self.word(after) not in v.ARTICLES and self.word(after) != "in":
            if unit != "quarter" or not self.word(after).isdigit():
                return None
            after -= 1
        match = self.match_moment(after + 1, depth=depth + 1) or self._match_year(after + 1)
        if not match or match.kind == "day":
            return None
        ranges = [days.find_nth(day_range, number, count, unit, weekday) for day_range in match.days]
        return TimeMatch(tuple([day_range for day_range in ranges if day_range]), unit or "day", match.end, match.yearless)

    # --- relative to now

    def _match_day_word(self, position: int) -> TimeMatch | None:
        """Match yesterday, today, the day before yesterday, the other day."""
        word = self.word(position)
        if self.now is None:
            return None
        if word == "other" and self.word(position + 1) == "day" and self.word(position - 1) == "the":
            return TimeMatch(((days.clamp(self.now - 7), days.clamp(self.now - 1)),), "about", position + 2)
        for rest, offset in v.PHRASES.get(word, ()):
            if tuple(self.words[position + 1 : position + 1 + len(rest)]) == rest:
                return self._make_day_match(self.now + offset, position + 1 + len(rest))
        if word in v.MORNINGS and self.word(position - 1) not in v.OF_A_MORNING and self.word(position + 1) not in v.MORNINGS:
            return self._make_day_match(self.now + 1, position + 1)
        if word == "hier" and self._is_french():
            return self._make_day_match(self.now - 1, position + 1)
        if word not in v.DAY_WORDS:
            return None
        end = position + 2 if self.word(position + 1) in v.PARTS_OF_DAY else position + 1
        return self._make_day_match(self.now + v.DAY_WORDS[word], end)

    def _is_french(self) -> bool:
        """Return whether "hier" is French for yesterday, and not German for "here"."""
        if self._french is None:
            self._french = len(v.FRENCH.intersection(self.words)) > len(v.GERMAN.intersection(self.words))
        return self._french

    def _match_ago(self, position: int) -> TimeMatch | None:
        """Match two weeks ago, two Fridays ago, a week from now, vor zwei Wochen, il y a deux ans, hace un mes."""
        if self.now is None:
            return None
        if self.word(position) in v.AGO_BEFORE:
            counted = self._parse_count(position + 1)
            sign, end = -1, counted[3] if counted else 0
        elif self.word(position) == "y" and self.word(position + 1) == "a":
            counted = self._parse_count(position + 2)
            sign, end = -1, counted[3] if counted else 0
        else:
            counted = self._parse_count(position)
            sign, end = self._parse_ago_suffix(counted[3]) if counted else (0, 0)
        if not counted or not sign:
            return None
        low, high, unit, _ = counted
        if unit == "weekend":
            monday = self.now - days.day_of_week(self.now) - 7 * high
            return TimeMatch(((days.clamp(monday + 5), days.clamp(monday + 6)),), "weekend", end)
        if unit in v.MANY_WEEKDAYS:
            return self._make_day_match(days.weekday_before(self.now, v.MANY_WEEKDAYS[unit]) - 7 * (high - 1), end)
        return TimeMatch((days.offset_range(self.now, unit, sign * low, sign * high),), "about", end)

    def _parse_ago_suffix(self, position: int) -> tuple[int, int]:
        if self.word(position) in v.AGO:
            return -1, position + 1
        return (1, position + 2) if self.word(position) == "from" and self.word(position + 1) == "now" else (0, 0)

    def _match_rolling(self, position: int) -> TimeMatch | None:
        """Match the past three months, in the last week, les trois derniers mois, the next two weeks: up to or from now."""
        at, sign = position, -1
        if self.word(at) in v.NEXT:
            sign = 1
        if self.now is None:
            return None
        if self.word(at) in v.LAST or sign > 0:
            counted = self._parse_count(at + 1)
            if not counted and sign < 0:
                counted = self._parse_single_unit(at)
        else:
            number = self._parse_number(at)
            unit, end = self._parse_unit(number[2] + 1) if number and self.word(number[2]) in v.LAST else (None, 0)
            counted = (number[0], number[1], unit, end) if number and unit else None
        if not counted or counted[2] in ("weekend", "hour", *v.MANY_WEEKDAYS):
            return None
        _, high, unit, end = counted
        unit, high = days.to_basic_unit(unit, high)
        other = days.shift(self.now, unit, sign * high)
        return TimeMatch(((min(other, self.now), max(other, self.now)),), "past" if sign < 0 else "coming", end)

    def _parse_single_unit(self, position: int) -> tuple[int, int, str, int] | None:
        """Parse "the past month" and "in the last month", which differ from "last month"."""
        unit, end = self._parse_unit(position + 1)
        in_the = self.word(position) == "last" and self.word(position - 1) == "the" and self.word(position - 2) in v.OVER
        return (1, 1, unit, end) if unit and (self.word(position) == "past" or in_the) else None

    def _match_near(self, position: int) -> TimeMatch | None:
        """Match last week, this morning, next Friday, last summer, la semana pasada."""
        if self.now is None:
            return None
        word, at = self.word(position), position + 1
        if word in v.THIS:
            sign, at = (-1, at + 1) if self.word(at) in v.LAST else (0, at)
        elif word in v.LAST or word in v.NEXT:
            sign = -1 if word in v.LAST else 1
        else:
            return self._match_noun_first(position)
        if self.word(at) in v.PARTS_OF_DAY:
            return self._make_day_match(self.now + sign, at + 1) if sign <= 0 else None
        return self._match_noun(at, sign, short=True)

    def _match_noun_first(self, position: int) -> TimeMatch | None:
        """Match a noun followed by its "last" or "next", as in French and Spanish; and the weekend."""
        unit, after = self._parse_unit(position)
        if unit == "weekend" and self.now and self._has_marker_before(position, v.AT_WEEKEND):
            sign = 0 if days.day_of_week(self.now) > 4 else -1
            return self._match_noun(position, sign).replace(end=after)  # type: ignore[union-attr]
        if not unit:
            after = position + 1
        sign_after = v.AFTER_NOUN.get(self.word(after))
        match = self._match_noun(position, sign_after) if sign_after else None
        return match.replace(end=after + 1) if match else None

    def _match_noun(self, position: int, sign: int, short: bool = False) -> TimeMatch | None:
        """Match a unit, weekday, month or season before (sign -1), at (0) or after (1) now."""
        now = self.now or 0
        unit, end = self._parse_unit(position)
        if unit in ("week", "month", "quarter", "year"):
            basic_unit, count = days.to_basic_unit(unit, sign)
            return TimeMatch((days.unit_around(days.shift(now, basic_unit, count), unit),), unit, end)
        if unit == "weekend":
            return TimeMatch((days.unit_around(days.clamp(now + 7 * sign), unit),), unit, end)
        word = self.word(position)
        weekday = v.WEEKDAYS.get(word, v.SHORT_WEEKDAYS.get(word) if short else None)
        if weekday is not None:
            return self._make_day_match(days.find_weekday(now, weekday, sign), position + 1)
        yearly = self.find_yearly(position)
        if not yearly or self._parse_year_after(yearly[2])[0]:
            return None
        days_in_year, kind, end = yearly
        day_range = days.choose_range(self.list_recent(days_in_year), now, sign)
        return TimeMatch((day_range,), kind, end) if day_range else None

    def _match_weekday(self, position: int) -> TimeMatch | None:
        """Match "on Tuesday": the last one before today. "Tuesday 8 May" is that date, and "on Tuesdays" is not a time."""
        word = self.word(position)
        if word not in v.WEEKDAYS:
            return None
        at = position + 2 if self.word(position + 1) == "," else position + 1
        dated = self.match_date(at)
        if dated and dated.kind == "day":
            return dated
        last_week = self._match_near(at) if self.now and self.word(at) in v.WEEK_WORDS else None
        if last_week and last_week.kind == "week":
            start = last_week.days[0][0]
            return self._make_day_match(start + v.WEEKDAYS[word], last_week.end)
        following = self.word(position + 1)
        if self.now is None or following in v.MANY_PARTS or self.word(position - 1) in v.EVERY:
            return None
        if following in v.PARTS_OF_DAY or self.word(position - 1) in v.BEFORE_WEEKDAY:
            return self._make_day_match(days.weekday_before(self.now, v.WEEKDAYS[word]), position + 1)
        return None

    # --- relative to another time

    def _match_offset(self, position: int, depth: int) -> TimeMatch | None:
        """Match two weeks before 5 June, the week after Easter, the Sunday before 25 October, the weekend of 3 May."""
        weekday = v.WEEKDAYS.get(self.word(position))
        unit, end = self._parse_unit(position) if weekday is None else ("weekday", position + 1)
        low = high = 1
        is_whole_unit = unit is not None
        if not unit:
            counted = self._parse_count(position)
            if not counted:
                return None
            low, high, unit, end = counted
            is_whole_unit = self.word(position - 1) in v.LEADING and self.word(position - 1) != "of"
        word = self.word(end)
        sign = -1 if word in v.BEFORE else 1 if word in v.AFTER else 0
        if not sign and not (word == "of" and is_whole_unit and unit in ("week", "weekend", "weekday")):
            return None
        if sign < 0 and self.word(end + 1) == "last" and is_whole_unit:
            return self._match_before_last(unit, weekday, end + 2)
        at = end + 2 if self.word(end + 1) in ("to", "de", "del") else end + 1
        base = self.match_moment(at, depth=depth + 1)
        if not base or unit in ("hour", *v.MANY_WEEKDAYS):
            return None
        if not sign:
            ranges = [days.unit_within(day_range, unit, weekday) for day_range in base.days]
        elif is_whole_unit:
            ranges = [days.adjacent_range(day_range, unit, weekday, sign, high) for day_range in base.days]
        else:
            ranges = [
                days.offset_range(day_range[0] if sign < 0 else day_range[1], unit, sign * low, sign * high)
                for day_range in base.days
            ]
        kind = "about" if not is_whole_unit else "day" if weekday is not None else unit
        return TimeMatch(tuple([day_range for day_range in ranges if day_range]), kind, base.end, base.yearless)

    def _match_before_last(self, unit: str, weekday: int | None, end: int) -> TimeMatch | None:
        """Match the week before last."""
        if self.now is None:
            return None
        if weekday is not None:
            return self._make_day_match(days.weekday_before(self.now, weekday) - 7, end)
        if unit not in ("week", "weekend", "month", "year"):
            return None
        basic_unit = "week" if unit == "weekend" else unit
        return TimeMatch((days.unit_around(days.shift(self.now, basic_unit, -2), unit),), unit, end)

    # --- counting

    def _parse_count(self, position: int) -> tuple[int, int, str, int] | None:
        """Parse "two weeks": return the least and greatest number, the unit, and the position after it."""
        if (
            self.word(position) == "half"
            and self.word(position + 1) in ("a", "an")
            and self._parse_unit(position + 2)[0] == "year"
        ):
            return 6, 6, "month", position + 3
        number = self._parse_number(position)
        if not number:
            return None
        low, high, at = number
        at = at + 1 if self.word(at) in ("of", "de") else at
        if self.word(at) in v.MANY_WEEKDAYS:
            return low, high, self.word(at), at + 1
        unit, end = self._parse_unit(at)
        if not unit:
            return None
        if unit == "year" and self.words[end : end + 3] == ["and", "a", "half"]:
            return low * 12 + 6, high * 12 + 6, "month", end + 3
        return low, high, unit, end

    def _parse_number(self, position: int) -> tuple[int, int, int] | None:
        """Parse a number in digits or words: return the least and greatest value, and the position after it."""
        word, following = self.word(position), self.word(position + 1)
        if word in v.NUMBERS and following in v.VAGUE:
            return (*v.VAGUE[following], position + 2)
        if word in v.VAGUE:
            return (*v.VAGUE[word], position + 1)
        figure = self._parse_digits(position)
        if figure is not None:
            return figure, figure, position + 1
        number = v.TENS.get(word, v.NUMBERS.get(word))
        if number is None:
            return None
        end = position + 1
        if number >= 10 and number % 10 == 0:
            dashed = end + 1 if following == "-" else end
            ones = v.NUMBERS.get(self.word(dashed), 0)
            if 0 < ones < 10 and self.word(dashed) not in ("a", "an"):
                number, end = number + ones, dashed + 1
        return number, number, end

    def _parse_unit(self, position: int) -> tuple[str | None, int]:
        """Parse a unit such as day, week, weekend or month: return it and the position after it."""
        if self.words[position : position + 3] in (["week", "-", "end"], ["fin", "de", "semana"]):
            return "weekend", position + 3
        unit = v.UNITS.get(self.word(position))
        return (unit, position + 1) if unit else (None, position)

    def _make_day_match(self, day: int, end: int) -> TimeMatch:
        return TimeMatch(((days.clamp(day), days.clamp(day)),), "day", end)
