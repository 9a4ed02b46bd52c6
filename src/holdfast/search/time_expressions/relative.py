"""Times that are told from another time: from now, from a date, from one to the other; read word by word."""

from __future__ import annotations

from holdfast.search.time_expressions import arithmetic, days
from holdfast.search.time_expressions import vocabulary as v
from holdfast.search.time_expressions.absolute import Dated, Read
from holdfast.search.time_expressions.days import Stretch

_DEEPEST = 3  # "two weeks before the day before the end of May"

_FURTHEST = 6  # words from the first word of a time to the first that names one


class Reader(Dated):
    """Reads every time that a text names."""

    _french: bool | None = None

    def read(self) -> list[Read]:
        """All of them, in the order they stand; what was read is not read again."""
        found, free = [], 0
        for place in self._beginnings():
            read = self._time(place) if place >= free else None
            if read:
                found.append(read)
                free = read.end
        return found

    def _beginnings(self) -> list[int]:
        """The places where a time may begin: at a word that can begin one, with a word that names one not far behind."""
        begins = v.BEGINNINGS
        able = [place for place, word in enumerate(self.words) if word in begins or "0" <= word < ":"]
        places, named = [], self.count + _FURTHEST
        for place in reversed(able):
            word = self.words[place]
            if word in v.HINTS or (len(word) == 4 and word[0] in "12") or (len(word) > 2 and not word.isalnum()):
                named = place
            if named - place <= _FURTHEST:
                places.append(place)
        return places[::-1]

    def _time(self, place: int) -> Read | None:
        return self._between(place) or self._open(place) or self._range(place)

    def moment(self, place: int, year: int | None = None, depth: int = 0) -> Read | None:
        """One day or one named time; `year` is the one to take where none is written."""
        if depth > _DEEPEST:
            return None
        for _ in range(3 if depth else 0):
            place += self.word(place) in v.LEADING
        return (
            self._offset(place, depth) or self._nth(place, depth) or self.date(place, year) or self._part(place, year, depth)
            or self._day_word(place) or self._ago(place) or self._rolling(place) or self._near(place) or self._weekday(place)
        )  # fmt: skip

    # --- from one to the other

    def _between(self, place: int) -> Read | None:
        """Between X and Y, from X to Y."""
        if self.word(place) not in v.BETWEEN:
            return None
        first = self.moment(place + 1, depth=1)
        if not first or self.word(first.end) not in v.JOINS:
            return first if first and first.kind == "range" else None
        return self._joined(place + 1, first)

    def _range(self, place: int) -> Read | None:
        """X, or X to Y."""
        first = self.moment(place)
        if not first or self.word(first.end) not in v.RANGES:
            return first
        return self._joined(place, first) or first

    def _joined(self, place: int, first: Read) -> Read | None:
        """Both ends as one; the year that one end names is the other's too."""
        second = self.moment(first.end + 1, depth=1)
        if not second:
            return None
        if first.yearless and not second.yearless:
            first = self._before(place, first, second)
        pairs = []
        for start in first.days:
            last = self._after(first.end + 1, second, start) if second.yearless else second
            pairs.extend([(start[0], end[1]) for end in last.days if start[0] <= end[1]])
        return Read(tuple(pairs), "range", second.end, first.yearless) if pairs or first.yearless else None

    def _before(self, place: int, first: Read, second: Read) -> Read:
        """The first end in the year of the second, or the year before."""
        if not second.days:
            return first
        year = days.date(second.days[0][0])[0]
        there = self.moment(place, year, depth=1)
        if there and there.days and there.days[0][0] > second.days[0][1]:
            there = self.moment(place, year - 1, depth=1)
        return there or first

    def _after(self, place: int, second: Read, start: Stretch) -> Read:
        """The second end in the year of the first, or the year after."""
        year = days.date(start[0])[0]
        there = self.moment(place, year, depth=1)
        if there and there.days and there.days[0][1] < start[0]:
            there = self.moment(place, year + 1, depth=1)
        return there or second

    def _open(self, place: int) -> Read | None:
        """Since, after, before or until a time. A passage that says so speaks of that time itself."""
        word = self.word(place)
        kind = next((name for name, words in v.OPEN.items() if word in words), None)
        if not kind or self.passage or (word in v.AGO_BEFORE and self._ago(place)):
            return None
        at = place + 2 if self.word(place + 1) in ("to", "a") else place + 1
        moment = self.moment(at, depth=1)
        if not moment:
            return None
        opened = [self._opened(kind, stretch) for stretch in moment.days]
        return Read(tuple([one for one in opened if one[0] <= one[1]]), kind, moment.end, moment.yearless)

    def _opened(self, kind: str, stretch: Stretch) -> Stretch:
        start, end = stretch
        if kind in ("since", "after"):
            begin = start if kind == "since" else end + 1
            newest = self.now or (days.day(max(self.years), 12, 31) if self.years else None) or days.LAST
            return begin, newest if begin <= newest else days.LAST
        oldest = (days.day(min(self.years), 1, 1) if self.years else None) or days.FIRST
        finish = start - 1 if kind == "before" else end
        return oldest if oldest <= finish else days.FIRST, finish

    # --- parts of a time

    def _part(self, place: int, year: int | None, depth: int) -> Read | None:
        """Early June, the end of 2022: thirds."""
        word = self.word(place)
        which = 0 if word in v.EARLY else 1 if word in v.MIDDLE else 2 if word in v.LATE else None
        if which is None or self._unit(place)[0]:
            return None
        at = place + 1
        while at < place + 4 and (self.word(at) == "-" or self.word(at) in v.LEADING):
            at += 1
        whole = self.moment(at, year, depth + 1)
        if not whole or whole.kind not in v.HAVE_PARTS:
            return None
        return Read(tuple([arithmetic.split(one, 3)[which] for one in whole.days]), "part", whole.end, whole.yearless)

    def _nth(self, place: int, depth: int) -> Read | None:
        """The first week of June, the last Friday of May, the second half of 2022, the first three months of 2023."""
        word = self.word(place)
        number = -1 if word in v.LAST else v.ORDINALS.get(word)
        if number is None:
            return None
        count, at = 1, place + 1
        if counted := self._number(at):
            count, _, at = counted
        unit, after = ("half", at + 1) if self.word(at) in v.HALVES else self._unit(at)
        weekday = v.WEEKDAYS.get(self.word(at))
        if unit is None and weekday is None:
            return None
        after = at + 1 if unit is None else after
        if self.word(after) not in v.ARTICLES and self.word(after) != "in":
            if unit != "quarter" or not self.word(after).isdigit():
                return None
            after -= 1
        whole = self.moment(after + 1, depth=depth + 1) or self._year(after + 1)
        if not whole or whole.kind == "day":
            return None
        inside = [arithmetic.nth_of(one, number, count, unit, weekday) for one in whole.days]
        return Read(tuple([one for one in inside if one]), unit or "day", whole.end, whole.yearless)

    # --- from now

    def _day_word(self, place: int) -> Read | None:
        """Yesterday, today, the day before yesterday, the other day."""
        word = self.word(place)
        if self.now is None:
            return None
        if word == "other" and self.word(place + 1) == "day" and self.word(place - 1) == "the":
            return Read(((days.clipped(self.now - 7), days.clipped(self.now - 1)),), "about", place + 2)
        for rest, offset in v.PHRASES.get(word, ()):
            if tuple(self.words[place + 1 : place + 1 + len(rest)]) == rest:
                return self._at(self.now + offset, place + 1 + len(rest))
        if word in v.MORNINGS and self.word(place - 1) not in v.OF_A_MORNING and self.word(place + 1) not in v.MORNINGS:
            return self._at(self.now + 1, place + 1)
        if word == "hier" and self._is_french():
            return self._at(self.now - 1, place + 1)
        if word not in v.DAY_WORDS:
            return None
        end = place + 2 if self.word(place + 1) in v.PARTS_OF_DAY else place + 1
        return self._at(self.now + v.DAY_WORDS[word], end)

    def _is_french(self) -> bool:
        """Whether "hier" is yesterday, and not German for "here"."""
        if self._french is None:
            self._french = len(v.FRENCH.intersection(self.words)) > len(v.GERMAN.intersection(self.words))
        return self._french

    def _ago(self, place: int) -> Read | None:
        """Two weeks ago, two Fridays ago, a week from now, vor zwei Wochen, il y a deux ans, hace un mes."""
        if self.now is None:
            return None
        if self.word(place) in v.AGO_BEFORE:
            counted = self._counted(place + 1)
            sign, end = -1, counted[3] if counted else 0
        elif self.word(place) == "y" and self.word(place + 1) == "a":
            counted = self._counted(place + 2)
            sign, end = -1, counted[3] if counted else 0
        else:
            counted = self._counted(place)
            sign, end = self._ago_after(counted[3]) if counted else (0, 0)
        if not counted or not sign:
            return None
        low, high, unit, _ = counted
        if unit == "weekend":
            monday = self.now - days.weekday(self.now) - 7 * high
            return Read(((days.clipped(monday + 5), days.clipped(monday + 6)),), "weekend", end)
        if unit in v.MANY_WEEKDAYS:
            return self._at(arithmetic.weekday_before(self.now, v.MANY_WEEKDAYS[unit]) - 7 * (high - 1), end)
        return Read((arithmetic.away(self.now, unit, sign * low, sign * high),), "about", end)

    def _ago_after(self, place: int) -> tuple[int, int]:
        if self.word(place) in v.AGO:
            return -1, place + 1
        return (1, place + 2) if self.word(place) == "from" and self.word(place + 1) == "now" else (0, 0)

    def _rolling(self, place: int) -> Read | None:
        """The past three months, in the last week, les trois derniers mois, the next two weeks: up to now, or from now."""
        at, sign = place, -1
        if self.word(at) in v.NEXT:
            sign = 1
        if self.now is None:
            return None
        if self.word(at) in v.LAST or sign > 0:
            counted = self._counted(at + 1)
            if not counted and sign < 0:
                counted = self._whole_unit(at)
        else:
            number = self._number(at)
            unit, end = self._unit(number[2] + 1) if number and self.word(number[2]) in v.LAST else (None, 0)
            counted = (number[0], number[1], unit, end) if number and unit else None
        if not counted or counted[2] in ("weekend", "hour", *v.MANY_WEEKDAYS):
            return None
        _, high, unit, end = counted
        unit, high = arithmetic.simple(unit, high)
        other = days.shifted(self.now, unit, sign * high)
        return Read(((min(other, self.now), max(other, self.now)),), "past" if sign < 0 else "coming", end)

    def _whole_unit(self, place: int) -> tuple[int, int, str, int] | None:
        """The past month; in the last month: which is not "last month"."""
        unit, end = self._unit(place + 1)
        in_the = self.word(place) == "last" and self.word(place - 1) == "the" and self.word(place - 2) in v.OVER
        return (1, 1, unit, end) if unit and (self.word(place) == "past" or in_the) else None

    def _near(self, place: int) -> Read | None:
        """Last week, this morning, next Friday, last summer, la semana pasada."""
        if self.now is None:
            return None
        word, at = self.word(place), place + 1
        if word in v.THIS:
            sign, at = (-1, at + 1) if self.word(at) in v.LAST else (0, at)
        elif word in v.LAST or word in v.NEXT:
            sign = -1 if word in v.LAST else 1
        else:
            return self._near_behind(place)
        if self.word(at) in v.PARTS_OF_DAY:
            return self._at(self.now + sign, at + 1) if sign <= 0 else None
        return self._noun(at, sign, short=True)

    def _near_behind(self, place: int) -> Read | None:
        """A noun with its "last" or "next" behind it, as in French and Spanish; the weekend."""
        unit, after = self._unit(place)
        if unit == "weekend" and self.now and self._marked(place, v.AT_WEEKEND):
            sign = 0 if days.weekday(self.now) > 4 else -1
            return self._noun(place, sign).replace(end=after)  # type: ignore[union-attr]
        if not unit:
            after = place + 1
        sign_behind = v.AFTER_NOUN.get(self.word(after))
        read = self._noun(place, sign_behind) if sign_behind else None
        return read.replace(end=after + 1) if read else None

    def _noun(self, place: int, sign: int, short: bool = False) -> Read | None:
        """What a unit, weekday, month or season is, before (-1), at (0) or after (1) now."""
        now = self.now or 0
        unit, end = self._unit(place)
        if unit in ("week", "month", "quarter", "year"):
            plain, count = arithmetic.simple(unit, sign)
            return Read((days.around(days.shifted(now, plain, count), unit),), unit, end)
        if unit == "weekend":
            return Read((days.around(days.clipped(now + 7 * sign), unit),), unit, end)
        word = self.word(place)
        weekday = v.WEEKDAYS.get(word, v.SHORT_WEEKDAYS.get(word) if short else None)
        if weekday is not None:
            return self._at(arithmetic.weekday_near(now, weekday, sign), place + 1)
        named = self.yearly(place)
        if not named or self._year_after(named[2])[0]:
            return None
        make, kind, end = named
        there = arithmetic.chosen(self.lately(make), now, sign)
        return Read((there,), kind, end) if there else None

    def _weekday(self, place: int) -> Read | None:
        """On Tuesday: the last one before today. "Tuesday 8 May" is that date, and "on Tuesdays" is no time at all."""
        word = self.word(place)
        if word not in v.WEEKDAYS:
            return None
        at = place + 2 if self.word(place + 1) == "," else place + 1
        dated = self.date(at)
        if dated and dated.kind == "day":
            return dated
        last_week = self._near(at) if self.now and self.word(at) in v.WEEK_WORDS else None
        if last_week and last_week.kind == "week":
            start = last_week.days[0][0]
            return self._at(start + v.WEEKDAYS[word], last_week.end)
        following = self.word(place + 1)
        if self.now is None or following in v.MANY_PARTS or self.word(place - 1) in v.EVERY:
            return None
        if following in v.PARTS_OF_DAY or self.word(place - 1) in v.BEFORE_WEEKDAY:
            return self._at(arithmetic.weekday_before(self.now, v.WEEKDAYS[word]), place + 1)
        return None

    # --- from another time

    def _offset(self, place: int, depth: int) -> Read | None:
        """Two weeks before 5 June, the week after Easter, the Sunday before 25 October, the weekend of 3 May."""
        weekday = v.WEEKDAYS.get(self.word(place))
        unit, end = self._unit(place) if weekday is None else ("weekday", place + 1)
        low = high = 1
        whole = unit is not None
        if not unit:
            counted = self._counted(place)
            if not counted:
                return None
            low, high, unit, end = counted
            whole = self.word(place - 1) in v.LEADING and self.word(place - 1) != "of"
        word = self.word(end)
        sign = -1 if word in v.BEFORE else 1 if word in v.AFTER else 0
        if not sign and not (word == "of" and whole and unit in ("week", "weekend", "weekday")):
            return None
        if sign < 0 and self.word(end + 1) == "last" and whole:
            return self._before_last(unit, weekday, end + 2)
        at = end + 2 if self.word(end + 1) in ("to", "de", "del") else end + 1
        base = self.moment(at, depth=depth + 1)
        if not base or unit in ("hour", *v.MANY_WEEKDAYS):
            return None
        if not sign:
            made = [arithmetic.within(one, unit, weekday) for one in base.days]
        elif whole:
            made = [arithmetic.beside(one, unit, weekday, sign, high) for one in base.days]
        else:
            made = [arithmetic.away(one[0] if sign < 0 else one[1], unit, sign * low, sign * high) for one in base.days]
        kind = "about" if not whole else "day" if weekday is not None else unit
        return Read(tuple([one for one in made if one]), kind, base.end, base.yearless)

    def _before_last(self, unit: str, weekday: int | None, end: int) -> Read | None:
        """The week before last."""
        if self.now is None:
            return None
        if weekday is not None:
            return self._at(arithmetic.weekday_before(self.now, weekday) - 7, end)
        if unit not in ("week", "weekend", "month", "year"):
            return None
        plain = "week" if unit == "weekend" else unit
        return Read((days.around(days.shifted(self.now, plain, -2), unit),), unit, end)

    # --- counting

    def _counted(self, place: int) -> tuple[int, int, str, int] | None:
        """Two weeks: how many at least and at most, of what, and the place after."""
        if self.word(place) == "half" and self.word(place + 1) in ("a", "an") and self._unit(place + 2)[0] == "year":
            return 6, 6, "month", place + 3
        number = self._number(place)
        if not number:
            return None
        low, high, at = number
        at = at + 1 if self.word(at) in ("of", "de") else at
        if self.word(at) in v.MANY_WEEKDAYS:
            return low, high, self.word(at), at + 1
        unit, end = self._unit(at)
        if not unit:
            return None
        if unit == "year" and self.words[end : end + 3] == ["and", "a", "half"]:
            return low * 12 + 6, high * 12 + 6, "month", end + 3
        return low, high, unit, end

    def _number(self, place: int) -> tuple[int, int, int] | None:
        """A number in figures or words: at least, at most, and the place after."""
        word, following = self.word(place), self.word(place + 1)
        if word in v.NUMBERS and following in v.VAGUE:
            return (*v.VAGUE[following], place + 2)
        if word in v.VAGUE:
            return (*v.VAGUE[word], place + 1)
        figure = self._figure(place)
        if figure is not None:
            return figure, figure, place + 1
        number = v.TENS.get(word, v.NUMBERS.get(word))
        if number is None:
            return None
        end = place + 1
        if number >= 10 and number % 10 == 0:
            dashed = end + 1 if following == "-" else end
            ones = v.NUMBERS.get(self.word(dashed), 0)
            if 0 < ones < 10 and self.word(dashed) not in ("a", "an"):
                number, end = number + ones, dashed + 1
        return number, number, end

    def _unit(self, place: int) -> tuple[str | None, int]:
        """Day, week, weekend, month and so on, and the place after."""
        if self.words[place : place + 3] in (["week", "-", "end"], ["fin", "de", "semana"]):
            return "weekend", place + 3
        unit = v.UNITS.get(self.word(place))
        return (unit, place + 1) if unit else (None, place)

    def _at(self, day: int, end: int) -> Read:
        return Read(((days.clipped(day), days.clipped(day)),), "day", end)
