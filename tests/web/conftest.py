"""Fixtures of tests in a browser."""

from __future__ import annotations

import pytest
from browser import Console, open_browser
from http_gateway import run_gateway


@pytest.fixture(scope="module")
def chromium():
    with open_browser() as browser:
        yield browser


@pytest.fixture
def gateway(home):
    """A gateway without a rate limit: a page of a test may be loaded often."""
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[serve]\nrate = 0\n")
    with run_gateway(home) as one:
        yield one


@pytest.fixture
def open_console(chromium, gateway):
    """Open the console in a new browser context, signed in as the owner of the home."""
    opened = []

    def open_(**options):
        opened.append(Console(chromium, gateway, **options).sign_in())
        return opened[-1]

    yield open_
    for console in opened:
        console.context.close()
