"""S2: an excerpt of a file shows no part of a secret, even if only the rest of the file identifies it."""

from __future__ import annotations

import json
import random
import string

import pytest

from holdfast.mcp import handlers
from holdfast.safety import validate
from holdfast.safety.model_text import show_hidden

SIGNS = random.Random(7)
ROWS = ["".join(SIGNS.choices(string.ascii_letters + string.digits + "+/", k=64)) for _ in range(50)]
KEY = ["-----BEGIN RSA PRIVATE KEY-----", *ROWS, "-----END RSA PRIVATE KEY-----"]
PASSWORD = "Xk93!mmQ2zLp"
ABOVE = [f"harbour line {number}" for number in range(20)]
NAME = "projects/demo/files/ops.md"


@pytest.fixture
def pasted(memory, home):
    """A file with a pasted key: the index splits it every forty lines."""
    memory.files.create("ops.md", "harbour")
    file = home / "shelf" / NAME
    below = ["harbour below the key", *ABOVE[:17], "password:", f"  {PASSWORD}", "harbour end"]
    file.write_text("\n".join([*ABOVE, *KEY, *below]))
    return memory


def has_secret_part(told):
    return [row for row in (*ROWS, PASSWORD) if row[:20] in told]


@pytest.mark.promise("S2")
def test_a_key_across_a_cut_is_not_told_by_any_tool(pasted):
    hits = pasted.recall("harbour", mode="keyword").hits
    assert len(hits) >= 3 and any(has_secret_part(hit.text) for hit in hits)  # a program gets the exact text
    answers = [
        handlers.recall(pasted, {"query": "harbour", "mode": "keyword"}),
        handlers.search(pasted, {"query": "harbour"}),
        *[handlers.get(pasted, {"path": hit.citation}) for hit in hits],
        *[handlers.get(pasted, {"path": NAME, "from": first, "lines": 7}) for first in range(1, 98, 7)],
        *[handlers.file(pasted, {"command": "view", "path": "ops.md", "view_range": [first, first]}) for first in range(1, 94)],
        handlers.file(pasted, {"command": "view", "path": "ops.md", "view_range": [30, -1]}),
    ]
    for answer in answers:
        assert not has_secret_part(json.dumps(show_hidden(answer)))
    assert "harbour below the key" in json.dumps(show_hidden(answers[0]))
    assert "REDACTED:private-key" in json.dumps(show_hidden(answers[0]))


@pytest.mark.promise("S2")
def test_nor_over_http_to_a_role_that_may_not_export(pasted, home, gateway):
    gateway.add_role("reader", ["agent.memory.read"], ["project"])
    agent = gateway.agent("reading", "reader")
    whose = {"X_Holdfast_Project": "demo"}
    asked = [
        agent.post("/v1/recall", {"query": "harbour", "mode": "keyword"}, **whose),
        agent.post("/v1/search", {"query": "harbour"}, **whose),
        *[agent.get(f"/v1/read?path={NAME}&from={first}&lines=9", **whose) for first in range(1, 98, 9)],
        agent.post("/v1/files/view", {"path": "ops.md", "view_range": [30, 60]}, **whose),
    ]
    assert {one.status for one in asked} == {200}
    assert "harbour" in asked[0].data.decode()
    for one in asked:
        assert not has_secret_part(one.data.decode()), one


@pytest.mark.parametrize("hide", ["", "\u200b", "\u00ad"])
def test_what_reaches_into_a_piece_is_known_also_where_hidden_characters_split_it(hide):
    text = "\n".join([*ABOVE, *[hide.join([row[:30], row[30:]]) for row in KEY], "the end"])
    for start in range(0, len(text), 900):
        piece = validate.make_excerpt(text[start : start + 900], text[:start], text[start + 900 :])
        assert not has_secret_part(validate.hide_secrets(piece).replace(hide, "") if hide else validate.hide_secrets(piece))


def test_a_piece_without_a_secret_is_told_as_it_is():
    piece = validate.make_excerpt("the harbour is deep", "password: Xk93!mmQ2zLp\n", "\nthe end")
    assert validate.redact_or_withhold(piece) == ("the harbour is deep", ())
    assert validate.make_excerpt("all of it", "", "") == "all of it"
