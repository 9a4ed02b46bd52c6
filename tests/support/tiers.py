"""Which parameters of a test are fast enough for `make test`."""

from __future__ import annotations

import pytest


def tiered(values, fast):
    """Return the parameters of a test; those that are not in `fast` run in the battery tier only."""
    values, fast = list(values), list(fast)
    assert [value for value in fast if value not in values] == [], "a parameter that does not exist"
    return [value if value in fast else pytest.param(*_parts(value), marks=pytest.mark.battery) for value in values]


def _parts(value):
    return value if isinstance(value, tuple) else (value,)
