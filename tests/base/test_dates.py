"""Dates: moments in any zone become UTC, a day is its first or last second, and other values are rejected."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, timezone

import pytest
import strategies as some
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.base import dates
from holdfast.errors import UsageError

STAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


@pytest.mark.promise("N13", "T1")
@pytest.mark.parametrize(
    ("given_", "utc"),
    [
        ("2026-03-27", "2026-03-27T00:00:00Z"),
        ("2026-03-27T10:00", "2026-03-27T10:00:00Z"),
        ("2026-03-27 10:00", "2026-03-27T10:00:00Z"),
        ("2026-03-27T10:00:30", "2026-03-27T10:00:30Z"),
        ("2026-03-27T10:00:30Z", "2026-03-27T10:00:30Z"),
        ("2026-03-27t10:00:30z", "2026-03-27T10:00:30Z"),
        ("2026-03-27T10:00:30.999999Z", "2026-03-27T10:00:30Z"),
        ("2026-03-27T00:30:00+02:00", "2026-03-26T22:30:00Z"),
        ("2026-03-27T00:30:00+0200", "2026-03-26T22:30:00Z"),
        ("2026-03-27T00:30:00+02", "2026-03-26T22:30:00Z"),
        ("2026-03-27 00:30 +02:00", "2026-03-26T22:30:00Z"),
        ("2026-12-31T23:30:00-01:00", "2027-01-01T00:30:00Z"),
        ("2026-03-27T10:00:00+05:45", "2026-03-27T04:15:00Z"),
        ("  2026-03-27\n", "2026-03-27T00:00:00Z"),
        ("0001-01-01", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
        ("2024-02-29", "2024-02-29T00:00:00Z"),
        (date(2026, 3, 27), "2026-03-27T00:00:00Z"),
        (datetime(2026, 3, 27, 10), "2026-03-27T10:00:00Z"),
        (datetime(2026, 3, 27, 10, 0, 0, 5, UTC), "2026-03-27T10:00:00Z"),
        (datetime(2026, 3, 27, 10, tzinfo=timezone(timedelta(hours=-7))), "2026-03-27T17:00:00Z"),
    ],
)
def test_days_and_moments_of_any_zone_become_utc(given_, utc):
    assert dates.parse_moment(given_, "on") == utc
    assert dates.is_moment(dates._to_text(given_))


@pytest.mark.promise("T1")
def test_a_day_starts_as_a_moment_ends_as_a_question_and_stays_a_day_as_a_fact():
    assert dates.parse_moment("2026-03-27", "x") == "2026-03-27T00:00:00Z"
    assert dates.parse_as_of("2026-03-27", "x") == "2026-03-27T23:59:59Z"
    assert dates.parse_day_or_moment("2026-03-27", "x") == "2026-03-27"
    assert dates.parse_day_or_moment(date(2026, 3, 27), "x") == "2026-03-27"
    assert dates.parse_as_of("2026-03-27T10:00:00Z", "x") == "2026-03-27T10:00:00Z"
    assert dates.parse_day_or_moment("2026-03-27T12:00:00+02:00", "x") == "2026-03-27T10:00:00Z"
    assert dates.parse_as_of("9999-12-31", "x") == "9999-12-31T23:59:59Z"


NO_DATES = [
    "", " ", "yesterday", "2026", "2026-03", "2026-3-27", "27.03.2026", "03/27/2026", "20260327", "2026-02-30",
    "2026-02-29",
    "2026-13-01", "2026-00-01", "2026-01-00", "2026-01-32", "0000-01-01", "-2026-01-01", "10000-01-01", "2026-03-27T",
    "2026-03-27T25:00:00Z", "2026-03-27T24:00:01Z", "2026-03-27T10:60:00Z", "2026-03-27T10:00:61Z", "2026-03-27T10",
    "2026-03-27T10:00:00+25:00", "2026-03-27T10:00:00+02:99", "2026-03-27T10:00:00 CET", "2026-03-27T10:00:00ZZ",
    "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "٢٠٢٦-٠٣-٢٧", "２０２６-03-27", "2026–03–27",
    "2026-03-27\0",
    "2026-03-27\u200b", "'2026-03-27'", "2026-03-27; DROP TABLE", "2026-W13-5", "1e9", "now", "x" * 100_000,
    None, 0, 20260327, 1.5, True, b"2026-03-27", ["2026-03-27"], time(10, 0), timedelta(1), datetime, date,
    pytest.param(object(), id="an object"),
]  # fmt: skip


@pytest.mark.parametrize("value", NO_DATES, ids=lambda value: repr(value)[:30])
def test_what_is_not_a_date_that_exists_is_refused_with_what_to_write(value):
    for read in (dates.parse_moment, dates.parse_as_of, dates.parse_day_or_moment):
        with pytest.raises(UsageError) as caught:
            read(value, "valid_from")
        assert caught.value.message.startswith("valid_from: ")
        assert "2026-03-27T10:00:00Z" in caught.value.fix
        assert len(caught.value.message) < 200


@given(some.raw_texts | some.broken_texts | st.from_regex(dates.DAY + r"([T ]\d\d:\d\d(:\d\d)?\s?(Z|[+-]\d\d:?\d\d)?)?"))
@example("0001-01-01T00:00:00+23:59")
@example("9999-12-31 23:59:59.999999999 -23:59")
def test_any_text_is_a_stamp_or_a_usage_error(text):
    for read in (dates.parse_moment, dates.parse_as_of, dates.parse_day_or_moment):
        try:
            answer = read(text, "on")
        except UsageError:
            assert not dates.is_moment(text)
        else:
            assert STAMP.fullmatch(answer) or (read is dates.parse_day_or_moment and len(answer) == 10)
            assert dates.is_moment(text)
            assert read(answer, "on") == answer


@given(st.datetimes(timezones=st.timezones() | st.none()))
def test_any_datetime_means_what_python_says_it_means(value):
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    try:
        expected = aware.astimezone(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")
        answer = dates.parse_moment(value, "on")
    except (OverflowError, UsageError):  # zones whose offset has seconds, and the ends of time
        return
    assert answer == expected


@given(st.dates())
def test_any_day_begins_at_midnight_and_ends_a_second_before_the_next(day):
    assert dates.parse_moment(day, "on") == f"{day.isoformat()}T00:00:00Z"
    assert dates.parse_as_of(day, "on") == f"{day.isoformat()}T23:59:59Z"
    assert dates.parse_day_or_moment(day, "on") == day.isoformat()


@given(st.integers(-62135596800, 253402300799))
def test_stamps_sort_as_the_moments_do_and_name_them_exactly(seconds):
    stamp = dates.format_timestamp(seconds)
    assert STAMP.fullmatch(stamp)
    assert datetime.fromisoformat(stamp) == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    assert dates.parse_moment(stamp, "x") == stamp


@pytest.mark.parametrize("seconds", [-(10**11), -(10**18), 253402300800, 10**12, 10**18, 1e30, -1e30])
def test_a_clock_or_file_from_another_age_still_gives_a_stamp(seconds):
    assert dates.format_timestamp(seconds) in ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z")


@given(some.stamps, st.integers(0, 10**9))
def test_days_before_counts_days_and_never_leaves_the_calendar(moment, days):
    earlier = dates.days_before(moment, days)
    assert STAMP.fullmatch(earlier)
    assert earlier <= moment
    if days < 700_000:
        assert datetime.fromisoformat(moment) - datetime.fromisoformat(earlier) == timedelta(days=days)


def test_now_is_what_the_clock_says(monkeypatch):
    monkeypatch.setattr(dates, "clock", lambda: 1_800_000_000.9)
    assert dates.now() == "2027-01-15T08:00:00Z"
