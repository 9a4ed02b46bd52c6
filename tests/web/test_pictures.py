"""Pictures of the console for the README and the docs: `make pictures` writes them to docs/images.

Without the variable PICTURES_FOLDER they go to a temporary folder, so that every run shows that they can be made.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SIZE = {"width": 1280, "height": 800}
NOTES = [  # key, text, type, tags
    ("deploys", "We deploy on **Tuesdays**, never on Fridays. The release starts from `main`.", "project", ["ci-cd"]),
    ("tests", "Run the tests with `make test`; the integration tests need PostgreSQL 16 or newer.", "project", ["testing"]),
    ("answers", "Short answers first, then the reason. Show commands as code blocks.", "feedback", ["style"]),
    ("payments-retry", "Retry a payment at most 3 times, with the same idempotency key.", "project", ["payments"]),
    ("cache", "Prices are cached for 5 minutes. Clear them with `bin/cache clear prices`.", "project", ["payments", "cache"]),
    ("branching", "Branch names start with the ticket number: `PAY-118-refunds`.", "project", ["git"]),
]
FACTS = [  # subject, label, value, day
    ("Billing", "owner", "[[Ada]]", "2026-01-10"), ("Billing", "owner", "[[Grace]]", "2026-03-01"),
    ("Billing", "database", "[[Postgres]]", "2026-01-10"), ("Billing", "status", "in production", "2026-02-15"),
    ("Checkout", "calls", "[[Billing]]", "2026-02-02"), ("Checkout", "calls", "[[Prices]]", "2026-02-02"),
    ("Prices", "cached in", "[[Redis]]", "2026-02-20"), ("Grace", "team", "[[Payments]]", "2026-01-01"),
    ("Postgres", "hosted in", "[[Turin]]", "2026-02-01"), ("Redis", "hosted in", "[[Turin]]", "2026-02-01"),
]  # fmt: skip
WAITING = [
    ("deploys-friday", "Deploy on Fridays after 18:00, when traffic is low."),
    ("payments-limit", "The payment API allows 500 requests a minute."),
]
SHOTS = {  # the name of the picture, and the address of the page
    "overview": "/",
    "search": "/ui/search?q=when+do+we+deploy",
    "note": "/ui/notes/project/shop/deploys",
    "facts": "/ui/facts/subject?name=Billing",
    "graph": "/ui/graph?entity=Billing&depth=3",
    "review": "/ui/review",
    "briefing": "/ui/briefing?project=shop&prompt=When+do+we+deploy%3F",
}


@pytest.fixture
def example(gateway):
    """A small home that looks like one in use."""
    ask = gateway.operator
    first = {"text": "We deploy on Fridays.", "project": "shop", "valid_from": "2026-01-05"}
    ask("PUT", "/v1/notes/project/deploys", first)
    for key, text, kind, tags in NOTES:
        note = {"text": text, "type": kind, "tags": tags, "project": "shop"}
        assert ask("PUT", f"/v1/notes/project/{key}", note).status < 300
    for subject, label, value, on in FACTS:
        fact = {"subject": subject, "label": label, "value": value, "on": on, "scope": "project", "project": "shop"}
        assert ask("POST", "/v1/facts", fact).status < 300
    for key, text in WAITING:
        assert ask("PUT", f"/v1/notes/project/{key}", {"text": text, "origin": "web", "project": "shop"}).status < 300
    agent = gateway.agent("reviewer")
    agent("PUT", "/v1/notes/agent/habits", {"text": "Read the whole change before commenting."})


@pytest.fixture
def folder(tmp_path):
    return Path(os.environ.get("PICTURES_FOLDER") or tmp_path)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_of_the_console_can_be_made(open_console, example, folder, scheme):
    console = open_console(viewport=SIZE, color_scheme=scheme, reduced_motion="reduce")
    for name, path in SHOTS.items():
        assert console.open(path) == 200, path
        console.page.wait_for_load_state("networkidle")
        file = folder / f"console-{name}{'-dark' if scheme == 'dark' else ''}.png"
        console.page.screenshot(path=file, animations="disabled")
        assert file.stat().st_size > 10_000, "the picture is empty"
    console.check_nothing_happened()
