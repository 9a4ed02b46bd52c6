"""UTC timestamps `YYYY-MM-DDTHH:MM:SSZ` and days `YYYY-MM-DD`; both sort as text. The audit's have milliseconds."""

from __future__ import annotations

import time

from holdfast.base.lazy_re import pattern
from holdfast.errors import Template, UsageError, field

clock = time.time  # tests replace it

DAY = r"\d{4}-\d\d-\d\d"
TIMESTAMP = DAY + r"T\d\d:\d\d:\d\dZ"
_DATE_TIME = pattern(rf"(?ai)({DAY})(?:[T ](\d\d:\d\d)(?::(\d\d)(?:\.(\d{{1,9}}))?)?\s*(Z|[+-]\d\d(?::?[0-5]\d)?)?)?\Z")
_DAY = pattern(rf"(?a){DAY}\Z")
_YEAR_1, _YEAR_9999 = -62135596800, 253402300799  # their first and last second, since 1970
_FIX = "Write a day (2026-03-27) or a time (2026-03-27T10:00:00Z)"


def format_timestamp(seconds: float) -> str:
    """Return the UTC timestamp of some seconds since 1970; outside the years 1 to 9999, the nearest in them."""
    then = time.gmtime(min(max(seconds, _YEAR_1), _YEAR_9999))
    return f"{then.tm_year:04d}{time.strftime('-%m-%dT%H:%M:%SZ', then)}"


def now() -> str:
    """Return the current timestamp."""
    return format_timestamp(clock())


def format_milliseconds(seconds: float) -> str:
    """Return the UTC timestamp with milliseconds, `2026-05-02T09:00:00.123Z`."""
    milliseconds = int(seconds * 1000)
    return f"{format_timestamp(milliseconds // 1000)[:-1]}.{milliseconds % 1000:03d}Z"


def now_milliseconds() -> str:
    """Return the current timestamp with milliseconds."""
    return format_milliseconds(clock())


def parse_moment(value: object, name: str) -> str:
    """Return a day or a moment in any zone as a UTC timestamp; without a zone it is UTC, and a day is its first second."""
    return _parse_utc(value, name, "00:00:00")[0]


def parse_moment_milliseconds(value: object, name: str) -> str:
    """Return a day or a moment like `parse_moment`, with milliseconds.

    As text it sorts before a timestamp of the same second without milliseconds, such as older rows of the audit have."""
    moment, fraction = _parse_utc(value, name, "00:00:00")
    return f"{moment[:-1]}.{fraction:0<3.3}Z"


def parse_as_of(value: object, name: str) -> str:
    """Return a day or a moment like `parse_moment`, but a day as its last second, so that changes of that day are included."""
    return _parse_utc(value, name, "23:59:59")[0]


def parse_day_or_moment(value: object, name: str) -> str:
    """Return a day as it is, and a moment as a UTC timestamp, as facts are dated."""
    text = _to_text(value)
    return text if _DAY.match(text) and parse_moment(text, name) else parse_moment(text, name)


def is_moment(text: str) -> bool:
    """Return whether a text is a real day or moment."""
    try:
        _parse_utc(text, "", "00:00:00")
    except UsageError:
        return False
    return True


def days_before(moment: str, days: int) -> str:
    """Return the timestamp some days earlier."""
    from datetime import datetime

    return format_timestamp(datetime.fromisoformat(moment).timestamp() - 86400 * days)


def _to_text(value: object) -> str:
    if isinstance(value, str):
        return value.strip()
    format = getattr(value, "isoformat", None)
    return str(format()) if format and not isinstance(value, type) else repr(value)


def _parse_utc(value: object, name: str, time_of_day: str) -> tuple[str, str]:
    """Return the timestamp, and the digits of the fraction of its second."""
    text = _to_text(value)
    match = _DATE_TIME.match(text)
    if not match:
        raise UsageError(Template(field(name), f": {text[:60]!r} is not a date"), _FIX)
    from datetime import UTC, datetime

    day, minutes, seconds, fraction, zone = match.groups()
    clock_text = f"{minutes}:{seconds or '00'}" if minutes else time_of_day
    zone = "+00:00" if zone in (None, "Z", "z") else zone
    try:
        then = datetime.fromisoformat(f"{day}T{clock_text}{zone}").astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(Template(field(name), f": {text[:60]!r} is not a date that exists"), _FIX) from None
    moment = f"{then.year:04d}-{then.month:02d}-{then.day:02d}T{then.hour:02d}:{then.minute:02d}:{then.second:02d}Z"
    return moment, fraction or ""
