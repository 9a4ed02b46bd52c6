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
SHOTS = {  # the name of the picture, and the URL of the page
    "overview": "/",
    "search": "/ui/search?q=how+are+payments+retried&mode=keyword",
    "note": "/ui/notes/project/shop/deploys",
    "facts": "/ui/facts/subject?name=Billing",
    "graph": "/ui/graph?entity=Billing&depth=3#graph",
    "review": "/ui/review",
    "briefing": "/ui/briefing?project=shop",
    "session": "/ui/sessions/project/shop/codex/2f61?turn=1#turn-1",
}
DARK = ("graph",)  # the pictures that are made in dark colours
MAX_BYTES = 200_000  # of a picture: readers of the docs load them
TURNS = [
    ("user", "Customers were charged twice this morning. What do we know about retries of payments?"),
    ("assistant", "The notes say that every retry has the same idempotency key. Checkout makes a new key for each retry."),
    ("user", "Good catch. Fix that in checkout, and add a test."),
    ("assistant", "Done: the key is made once per order, and a test retries the same order three times."),
]  # fmt: skip


@pytest.fixture
def example(gateway, clock):
    """A small home that looks like one in use for a month."""
    ask = gateway.operator
    clock.set("2026-03-03T09:00:00Z")
    ask("PUT", "/v1/notes/project/deploys", {"text": "We deploy on Fridays.", "project": "shop", "valid_from": "2026-01-05"})
    for day, (key, text, kind, tags) in zip((4, 5, 9, 12, 16, 20), NOTES, strict=True):
        clock.set(f"2026-03-{day:02}T10:20:00Z")
        note = {"text": text, "type": kind, "tags": tags, "project": "shop"}
        assert ask("PUT", f"/v1/notes/project/{key}", note).status < 300
    for number, (subject, label, value, on) in enumerate(FACTS):
        clock.set(f"2026-03-{20 + number // 3}T14:10:00Z")
        fact = {"subject": subject, "label": label, "value": value, "on": on, "scope": "project", "project": "shop"}
        fact["many"] = label == "calls"
        assert ask("POST", "/v1/facts", fact).status < 300
    for number, prompt in enumerate(("When do we deploy?", "How often is a payment retried?", "Where are prices cached?", "")):
        clock.set(f"2026-03-{24 + number}T11:00:00Z")
        for session in range(number + 1):
            told = {"project": "shop", "session": f"{number}{session}"}
            assert ask.post("/v1/brief", {**told, **({"prompt": prompt} if prompt else {})}).status == 200
    for key, text in WAITING:
        assert ask("PUT", f"/v1/notes/project/{key}", {"text": text, "origin": "web", "project": "shop"}).status < 300
    turns = [{"role": role, "text": text, "time": f"2026-03-28T09:0{n}:00Z"} for n, (role, text) in enumerate(TURNS)]
    kept = {"turns": turns, "session": "2f61", "client": "codex", "scope": "project", "project": "shop"}
    assert ask.post("/v1/history", kept).status == 200
    clock.set("2026-03-28T10:00:00Z")
    gateway.agent("reviewer")("PUT", "/v1/notes/agent/habits", {"text": "Read the whole change before commenting."})


@pytest.fixture
def folder(tmp_path):
    return Path(os.environ.get("PICTURES_FOLDER") or tmp_path)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_of_the_console_can_be_made(open_console, example, folder, scheme):
    console = open_console(viewport=SIZE, color_scheme=scheme, reduced_motion="reduce")
    names = [name for name in SHOTS if (name in DARK) == (scheme == "dark")]
    for name, path in [(name, SHOTS[name]) for name in names]:
        assert console.open(path) == 200, path
        console.page.wait_for_load_state("networkidle")
        file = folder / f"console-{name}{'-dark' if scheme == 'dark' else ''}.png"
        console.page.screenshot(path=file, animations="disabled")
        assert 10_000 < file.stat().st_size < MAX_BYTES, name
    console.check_nothing_happened()
