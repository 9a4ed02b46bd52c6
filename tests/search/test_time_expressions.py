"""Times in questions and passages: the meaning of each expression, and that no text breaks the parser."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import date, timedelta

import pytest
import strategies as some
from hypothesis import given
from hypothesis import strategies as st

from holdfast.search.time_expressions import (
    Span,
    days,
    find_passage_spans,
    find_spans,
    parse_day,
    vocabulary,
)

NOW = "2023-05-18T10:00:00Z"  # a Thursday


def format_spans(found: list[Span]) -> str:
    """Return spans as `first..last kind`, and a single day as itself."""
    texts = []
    for span in found:
        first, last = date.fromordinal(span.start_day), date.fromordinal(span.end_day)
        texts.append(f"{first}{'' if first == last else f'..{last}'} {span.kind}")
    return "; ".join(texts)


ABSOLUTE = """
What did we do on 8 May 2023?              | 2023-05-08 day
on the 8th of May, 2023                    | 2023-05-08 day
on May 8th, 2023                           | 2023-05-08 day
on May 8, 2023                             | 2023-05-08 day
on December 1,2023                         | 2023-12-01 day
on 8th December, 2023                      | 2023-12-08 day
on Monday, 8 May 2023                      | 2023-05-08 day
the evening of 7 July, 2023                | 2023-07-07 day
May '22                                    | 2022-05-01..2022-05-31 month
the first of May 2022                      | 2022-05-01 day
2023-05-08                                 | 2023-05-08 day
2023/5/8                                   | 2023-05-08 day
2023.05.08                                 | 2023-05-08 day
5/8/2023                                   | 2023-05-08 day
25/8/2023                                  | 2023-08-25 day
5/8/23                                     | 2023-05-08 day
08.05.2023                                 | 2023-05-08 day
2023-05                                    | 2023-05-01..2023-05-31 month
2023年5月8日                                | 2023-05-08 day
2023年5月に                                 | 2023-05-01..2023-05-31 month
in May 2023                                | 2023-05-01..2023-05-31 month
in February 2024                           | 2024-02-01..2024-02-29 month
May of 2022                                | 2022-05-01..2022-05-31 month
in 2021                                    | 2021-01-01..2021-12-31 year
spring 2022                                | 2022-03-01..2022-05-31 season
in the summer of 2022                      | 2022-06-01..2022-08-31 season
fall 2022                                  | 2022-09-01..2022-11-30 season
winter 2022                                | 2022-12-01..2023-02-28 season
Q3 2024                                    | 2024-07-01..2024-09-30 quarter
the third quarter of 2024                  | 2024-07-01..2024-09-30 quarter
the first quarter 2024                     | 2024-01-01..2024-03-31 quarter
early June 2022                            | 2022-06-01..2022-06-10 part
mid-June 2022                              | 2022-06-11..2022-06-20 part
late June 2022                             | 2022-06-21..2022-06-30 part
in the beginning of November 2022          | 2022-11-01..2022-11-10 part
at the end of June 2022                    | 2022-06-21..2022-06-30 part
the end of 2022                            | 2022-09-01..2022-12-31 part
late summer 2022                           | 2022-08-01..2022-08-31 part
early this week                            | 2023-05-15..2023-05-16 part
the first half of September 2022           | 2022-09-01..2022-09-15 half
the second half of 2022                    | 2022-07-01..2022-12-31 half
the first week of June 2022                | 2022-06-01..2022-06-07 week
the last week of May 2022                  | 2022-05-25..2022-05-31 week
the last Friday of May 2022                | 2022-05-27 day
the second Monday of May 2022              | 2022-05-09 day
the first three months of 2022             | 2022-01-01..2022-03-31 month
the weekend of 5 June 2022                 | 2022-06-04..2022-06-05 weekend
the week of 8 June 2022                    | 2022-06-06..2022-06-12 week
Christmas 2022                             | 2022-12-24..2022-12-26 holiday
New Year's Eve 2022                        | 2022-12-31 holiday
Easter 2022                                | 2022-04-15..2022-04-18 holiday
Thanksgiving 2023                          | 2023-11-23 holiday
on 30 February 2023                        |
on 2023-13-45                              |
"""

RANGES = """
between 3 May 2022 and 5 June 2022         | 2022-05-03..2022-06-05 range
between August 11 and August 15 2023       | 2023-08-11..2023-08-15 range
between 3 and 5 May 2022                   | 2022-05-03..2022-05-05 range
between December and February 2023         | 2022-12-01..2023-02-28 range
from 3 to 5 May 2022                       | 2022-05-03..2022-05-05 range
from 2019 to 2021                          | 2019-01-01..2021-12-31 range
2019-2021                                  | 2019-01-01..2021-12-31 range
May 8-10, 2022                             | 2022-05-08..2022-05-10 range
8-10 May 2022                              | 2022-05-08..2022-05-10 range
June to September 2022                     | 2022-06-01..2022-09-30 range
since May 2022                             | 2022-05-01..2023-05-18 since
after 8 May 2022                           | 2022-05-09..2023-05-18 after
before 8 May 2022                          | 0001-01-01..2022-05-07 before
until 8 May 2022                           | 0001-01-01..2022-05-08 until
by July 10, 2022                           | 0001-01-01..2022-07-10 until
since yesterday                            | 2023-05-17..2023-05-18 since
after the road trip                        |
"""

RELATIVE = """
today                                      | 2023-05-18 day
this morning                               | 2023-05-18 day
tonight                                    | 2023-05-18 day
yesterday                                  | 2023-05-17 day
yesterday evening                          | 2023-05-17 day
last night                                 | 2023-05-17 day
the day before yesterday                   | 2023-05-16 day
tomorrow                                   | 2023-05-19 day
the day after tomorrow                     | 2023-05-20 day
the other day                              | 2023-05-11..2023-05-17 about
last Tuesday                               | 2023-05-16 day
on Tuesday                                 | 2023-05-16 day
last Thursday                              | 2023-05-11 day
on Thursday                                | 2023-05-11 day
this Tuesday                               | 2023-05-16 day
this Friday                                | 2023-05-19 day
this past Friday                           | 2023-05-12 day
next Friday                                | 2023-05-19 day
next Thursday                              | 2023-05-25 day
last fri                                   | 2023-05-12 day
Tuesday last week                          | 2023-05-09 day
Tuesday of last week                       | 2023-05-09 day
two Fridays ago                            | 2023-05-05 day
last week                                  | 2023-05-08..2023-05-14 week
this week                                  | 2023-05-15..2023-05-21 week
next week                                  | 2023-05-22..2023-05-28 week
the week before last                       | 2023-05-01..2023-05-07 week
last weekend                               | 2023-05-13..2023-05-14 weekend
this past weekend                          | 2023-05-13..2023-05-14 weekend
over the weekend                           | 2023-05-13..2023-05-14 weekend
this weekend                               | 2023-05-20..2023-05-21 weekend
two weekends ago                           | 2023-05-06..2023-05-07 weekend
last month                                 | 2023-04-01..2023-04-30 month
this month                                 | 2023-05-01..2023-05-31 month
last quarter                               | 2023-01-01..2023-03-31 quarter
last year                                  | 2022-01-01..2022-12-31 year
last May                                   | 2022-05-01..2022-05-31 month
last April                                 | 2023-04-01..2023-04-30 month
last summer                                | 2022-06-01..2022-08-31 season
last Christmas                             | 2022-12-24..2022-12-26 holiday
next summer                                | 2023-06-01..2023-08-31 season
early last year                            | 2022-01-01..2022-04-30 part
5 days ago                                 | 2023-05-13 about
a couple of days ago                       | 2023-05-15..2023-05-16 about
a few days ago                             | 2023-05-13..2023-05-16 about
a week ago                                 | 2023-05-08..2023-05-14 about
two weeks ago                              | 2023-05-01..2023-05-07 about
a fortnight ago                            | 2023-05-01..2023-05-07 about
twenty-one days ago                        | 2023-04-27 about
thirty days ago                            | 2023-04-18 about
two months ago                             | 2023-03-03..2023-04-02 about
half a year ago                            | 2022-11-03..2022-12-03 about
a year and a half ago                      | 2021-11-03..2021-12-03 about
four years ago                             | 2018-11-17..2019-11-16 about
an hour ago                                | 2023-05-18 about
a week from now                            | 2023-05-22..2023-05-28 about
the past three months                      | 2023-02-18..2023-05-18 past
in the last 3 months                       | 2023-02-18..2023-05-18 past
in the past few months                     | 2022-12-18..2023-05-18 past
in the last month                          | 2023-04-18..2023-05-18 past
over the past year                         | 2022-05-18..2023-05-18 past
the next two weeks                         | 2023-05-18..2023-06-01 coming
two weeks before 5 June 2022               | 2022-05-19..2022-05-25 about
three days after 5 June 2022               | 2022-06-08 about
a month before Christmas 2022              | 2022-11-09..2022-12-09 about
the day before 5 June 2022                 | 2022-06-04 day
the week before August 3, 2023             | 2023-07-27..2023-08-02 week
the weekend before August 3, 2023          | 2023-07-29..2023-07-30 weekend
the Sunday before October 25, 2022         | 2022-10-23 day
the Friday after 5 June 2022               | 2022-06-10 day
the two weeks before 5 June 2022           | 2022-05-22..2022-06-04 week
How many weeks ago did I buy it?           |
every Tuesday                              |
on Saturday mornings                       |
I go there on Tuesdays                     |
"""

LANGUAGES = """
am 8. Mai 2023                             | 2023-05-08 day
im März 2023                               | 2023-03-01..2023-03-31 month
Anfang Juni 2022                           | 2022-06-01..2022-06-10 part
zwischen dem 3. Mai 2022 und dem 5. Juni 2022 | 2022-05-03..2022-06-05 range
gestern Abend                              | 2023-05-17 day
vorgestern                                 | 2023-05-16 day
heute Morgen                               | 2023-05-18 day
morgen                                     | 2023-05-19 day
Guten Morgen                               |
letzte Woche                               | 2023-05-08..2023-05-14 week
letzten Dienstag                           | 2023-05-16 day
vor zwei Wochen                            | 2023-05-01..2023-05-07 about
vor ein paar Tagen                         | 2023-05-15..2023-05-16 about
in den letzten drei Monaten                | 2023-02-18..2023-05-18 past
am Wochenende                              | 2023-05-13..2023-05-14 weekend
Was war hier los?                          |
le 1er mai 2023                            | 2023-05-01 day
en février 2023                            | 2023-02-01..2023-02-28 month
en août 2022                               | 2022-08-01..2022-08-31 month
qu'ai-je fait hier ?                       | 2023-05-17 day
avant-hier                                 | 2023-05-16 day
aujourd'hui                                | 2023-05-18 day
la semaine dernière                        | 2023-05-08..2023-05-14 week
l'année dernière                           | 2022-01-01..2022-12-31 year
mardi dernier                              | 2023-05-16 day
il y a deux semaines                       | 2023-05-01..2023-05-07 about
les trois derniers mois                    | 2023-02-18..2023-05-18 past
le week-end dernier                        | 2023-05-13..2023-05-14 weekend
el 8 de mayo de 2023                       | 2023-05-08 day
en diciembre de 2022                       | 2022-12-01..2022-12-31 month
ayer                                       | 2023-05-17 day
la semana pasada                           | 2023-05-08..2023-05-14 week
el mes pasado                              | 2023-04-01..2023-04-30 month
el martes pasado                           | 2023-05-16 day
hace tres meses                            | 2023-02-03..2023-03-05 about
los últimos tres meses                     | 2023-02-18..2023-05-18 past
el fin de semana pasado                    | 2023-05-13..2023-05-14 weekend
"""

NO_TIME = """
I may go
option 3 may work
and may not provide more
march on
Mars is a planet
1/2 cup of the flour
about 3/4 of it
version 1.2.3
a fall from the roof
2000 people
she is 29 years old
24/7
5 pm
I sat in the sun
on ¹ May
٢٠٢٣-٠٥-٠٨
"""


def table(text: str) -> list[tuple[str, str]]:
    rows = [row.partition("|") for row in text.strip().splitlines()]
    return [(question.strip(), meant.strip()) for question, _, meant in rows]


CASES = table(ABSOLUTE) + table(RANGES) + table(RELATIVE) + table(LANGUAGES) + table(NO_TIME)


@pytest.mark.parametrize(("question", "meant"), CASES, ids=[question for question, _ in CASES])
def test_what_a_question_asks_about(question, meant):
    assert format_spans(find_spans(question, NOW)) == meant


def test_there_are_cases_enough():
    assert len(CASES) >= 120


@pytest.mark.parametrize(
    ("question", "now", "years", "meant"),
    [
        ("in May", None, (2021, 2023), "2021-05-01..2021-05-31 month; 2023-05-01..2023-05-31 month"),
        ("in May", None, (), ""),
        ("in May", NOW, (), "2023-05-01..2023-05-31 month"),
        ("in June", NOW, (), "2022-06-01..2022-06-30 month"),
        ("in May", NOW, (2021, 2022), "2021-05-01..2021-05-31 month; 2022-05-01..2022-05-31 month"),
        ("in June", NOW, (2023,), "2023-06-01..2023-06-30 month"),
        ("on May 8th", None, (2022,), "2022-05-08 day"),
        ("on 29 February", NOW, (), "2020-02-29 day"),
        ("before the 7/22 trip", "2023/12/12 (Tue) 20:12", (2021, 2023), "2021-01-01..2023-07-21 before"),
        ("since May", None, (2022,), "2022-05-01..2022-12-31 since"),
        ("between April and June", None, (2022,), "2022-04-01..2022-06-30 range"),
        ("between November and January", None, (2022,), "2022-11-01..2023-01-31 range"),
        ("two weeks before 5 June", None, (2022,), "2022-05-19..2022-05-25 about"),
        ("the week before August 3", None, (2022,), "2022-07-27..2022-08-02 week"),
        ("yesterday", None, (2022,), ""),
        ("last week", "no date", (), ""),
        ("in May 2022 or in June 2022", None, (), "2022-05-01..2022-05-31 month; 2022-06-01..2022-06-30 month"),
        ("in May 2022, yes, in May 2022", None, (), "2022-05-01..2022-05-31 month"),
        ("last weekend", "2023-05-20", (), "2023-05-13..2023-05-14 weekend"),
        ("over the weekend", "2023-05-20", (), "2023-05-20..2023-05-21 weekend"),
        ("this winter", "2023-01-10", (), "2022-12-01..2023-02-28 season"),
    ],
)
def test_years_that_nobody_wrote_and_other_nows(question, now, years, meant):
    assert format_spans(find_spans(question, now, years)) == meant


@pytest.mark.parametrize(
    ("passage", "meant"),
    [
        ("I went there yesterday.", "2023-05-07 day"),
        ("Last Friday I did it.", "2023-05-05 day"),
        ("We meet on 3 June.", "2023-06-03 day"),
        ("It was on December 30.", "2022-12-30 day"),
        ("I have lived here since 1 May.", "2023-05-01 day"),
        ("Great party last weekend!", "2023-05-06..2023-05-07 weekend"),
        ("I may go, yesterday or not: yesterday.", "2023-05-07 day"),
        ("It was last month.", "2023-04-01..2023-04-30 month"),
        ("We moved last year.", "2022-01-01..2022-12-31 year"),
        ("Nothing of the kind.", ""),
    ],
)
def test_the_times_that_a_passage_speaks_of(passage, meant):
    assert format_spans(find_passage_spans(passage, date(2023, 5, 8).toordinal())) == meant


def test_a_passage_without_a_day_still_has_its_dates():
    assert format_spans(find_passage_spans("yesterday, and on 8 May 2023", None)) == "2023-05-08 day"


@pytest.mark.parametrize(
    ("written", "day"),
    [
        ("1:56 pm on 8 May, 2023", "2023-05-08"),
        ("2023/04/10 (Mon) 17:50", "2023-04-10"),
        ("March-15-2024", "2024-03-15"),
        ("15-Mar-2024", "2024-03-15"),
        ("2023-05-08", "2023-05-08"),
        ("2023-05-08T10:00:00Z", "2023-05-08"),
        ("2023-05-08 10:00:00.123456+02:00", "2023-05-08"),
        ("Mon May  8 13:56:00 2023", "2023-05-08"),
        ("Mon, 08 May 2023 13:56:00 +0000", "2023-05-08"),
        ("20230508", "2023-05-08"),
        ("20230508T135600Z", "2023-05-08"),
        ("1683554160", "2023-05-08"),
        ("1683554160123", "2023-05-08"),
        ("08.05.2023, 13:56", "2023-05-08"),
        ("5/8/23, 1:56 PM", "2023-05-08"),
        ("8 mai 2023", "2023-05-08"),
        ("8. März 2023", "2023-03-08"),
        ("2023年5月8日", "2023-05-08"),
        ("May 2023", None),
        ("yesterday", None),
        ("", None),
        ("2023-02-30", None),
        ("99999999", None),
    ],
)
def test_the_day_of_a_transcript(written, day):
    found = parse_day(written)
    assert (str(date.fromordinal(found)) if found else None) == day


# --- days


@given(st.dates())
def test_days_are_those_of_the_calendar(day):
    number = day.toordinal()
    assert days.day(day.year, day.month, day.day) == number
    assert days.date(number) == (day.year, day.month, day.day)
    assert days.day_of_week(number) == day.weekday()


def test_every_year_begins_and_ends_where_it_should():
    for year in range(1, 10000):
        for day in (date(year, 1, 1), date(year, 12, 31)):
            assert days.date(day.toordinal()) == (day.year, day.month, day.day)
            assert days.day(day.year, day.month, day.day) == day.toordinal()


@given(st.dates(), st.sampled_from(["day", "week", "month", "year"]), st.integers(-9999, 9999))
def test_shifting_stays_in_the_calendar(day, unit, count):
    moved = days.shift(day.toordinal(), unit, count)
    assert days.FIRST <= moved <= days.LAST
    if unit == "week" and days.FIRST < moved < days.LAST:
        assert date.fromordinal(moved) == day + timedelta(weeks=count)


def test_easter():
    known = {1961: "1961-04-02", 2000: "2000-04-23", 2023: "2023-04-09", 2024: "2024-03-31", 2038: "2038-04-25"}
    assert {year: str(date.fromordinal(days.easter(year))) for year in known} == known


# --- arbitrary text

WORDS = sorted(vocabulary.BEGINNINGS | vocabulary.JOINS | vocabulary.MARKERS | vocabulary.ARTICLES | vocabulary.AGO)
PIECES = st.sampled_from(WORDS) | st.sampled_from(
    ["8", "31", "2023", "9999", "1", "0001", "0", "99999", "2023-05-08", "0000-00-00", "5/8", "7/22/23", ".", ",",
     "'", "-", ":", "年", "月", "日", "half", "th", "s", "eve", "day", "last", "week", "before", "ago", "past", "of", "the"]
)  # fmt: skip
CLAUSES = st.lists(PIECES, max_size=14).map(" ".join)
NOWS = st.none() | st.dates().map(str) | st.sampled_from(["0001-01-01", "9999-12-31", "nonsense", ""])
YEARS = st.lists(st.integers(-5, 10005), max_size=3).map(tuple)


def check(found: list[Span]) -> None:
    for span in found:
        assert days.FIRST <= span.start_day <= span.end_day <= days.LAST


@given(CLAUSES | some.raw_texts, NOWS, YEARS)
def test_no_question_hurts(text, now, years):
    check(find_spans(text, now, years))


@given(CLAUSES | some.raw_texts, st.none() | st.integers(-10, 3652100))
def test_no_passage_hurts(text, said_on):
    check(find_passage_spans(text, said_on))


@given(CLAUSES | some.raw_texts | some.broken_texts)
def test_no_date_of_a_transcript_hurts(text):
    found = parse_day(text)
    assert found is None or days.FIRST <= found <= days.LAST


HOSTILE = [
    "two weeks before ", "between ", "between May and ", "since ", "the ", "since the ", "last ", "early ", "first week of ",
    "May ", "1", "1/", "1-", "1.", "2023-", "2023-05-08", "2023-05-", "20", "8 ", "a", "á", "e\u0301", "\u0301\u0315", "hier ",
    "il y a ", "half a ", "the day before ", "half of ", "2019-2021 ", "May 8-10 ", "'", "年", "2023年5月", "\ufdfa", "ß",
    "twenty-", "in May ", "the the first ", " ", "\n", "_", "-", "half ", "one ", "from now ", "Christmas ", "new year ",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_long_hostile_text_is_parsed(piece):
    text = piece * (20_000 // len(piece))
    check(find_spans(text, NOW, (2021, 2022)))
    check(find_passage_spans(text, date(2023, 5, 8).toordinal()))
    parse_day(text)


@pytest.mark.battery
@pytest.mark.parametrize("piece", HOSTILE)
def test_a_long_text_takes_time_in_proportion(piece):
    short, long = (piece * (size // len(piece)) for size in (20_000, 100_000))
    assert measure_seconds(long) < 12 * measure_seconds(short) + 0.5, "five times as long"


def measure_seconds(text: str) -> float:
    """Return the shortest of three times; this thread's, so that nothing else counts."""
    times = []
    for _ in range(3):
        begin = time.thread_time()
        check(find_spans(text, NOW, (2021, 2022)))
        times.append(time.thread_time() - begin)
    return min(times)


def test_importing_is_light():
    code = "import sys; import holdfast.search.time_expressions; "
    code += "print(*(set(sys.modules) & {'re', 'datetime', 'numpy', 'unicodedata'}))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
                          capture_output=True, text=True, timeout=60, check=True)  # fmt: skip
    assert done.stdout.strip() == ""
