"""The gateway on a home and on PostgreSQL: a test module that imports `gateway` runs its tests on both stores."""

from __future__ import annotations

import pytest
from http_gateway import run_gateway


@pytest.fixture(params=["home", "postgres"])
def gateway(request, home, monkeypatch):
    """The gateway of the test's home, without a rate limit; its memory is in the home or in a new database."""
    if request.param == "postgres":
        monkeypatch.setenv("HOLDFAST_STORE", request.getfixturevalue("postgres_url"))
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[serve]\nrate = 0\n")  # read at the start: no request of a test is refused as too many
    with run_gateway(home) as one:
        one.store = request.param
        yield one
