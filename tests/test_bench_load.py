"""`holdfast bench load`: a gateway, its framework without it, and bare writes, pressed on in one run."""

from __future__ import annotations

import json

import pytest

from holdfast import UsageError
from holdfast.bench import main


def test_each_kind_of_request_is_measured_against_its_floors_and_none_is_refused(capsys):
    assert main(["load", "--notes", "40", "--seconds", "0.3", "--workers", "1", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["load"]
    assert [(row["what"], row["refused"]) for row in rows] == [
        ("recall, keyword", 0), ("recall, keyword", 0), ("recall, hybrid", 0), ("recall, hybrid", 0), ("store", 0),
        ("store", 0),
    ]  # fmt: skip
    assert all(row["per_second"] > 0 and row["floor_per_second"] > 0 and row["p99_ms"] >= row["p50_ms"] for row in rows)


def test_on_a_store_the_floor_is_a_bare_transaction(capsys, postgres_url):
    assert main(["load", "--notes", "40", "--seconds", "0.3", "--workers", "1", "--store", postgres_url, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["load"]
    assert rows[-1]["floor"].startswith("bare transactions") and not any(row["refused"] for row in rows)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--notes"], "--notes needs a value"), (["--bogus"], "unknown argument '--bogus'"),
        (["--notes", "many"], "--notes cannot be 'many'"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["load", "speed"])
def test_what_cannot_be_read_is_a_usage_error_that_says_where_to_look(name, words, said):
    given = [word.replace("notes", "sizes") if name == "speed" else word for word in words]
    with pytest.raises(UsageError) as error:
        main([name, *given])
    assert said.replace("notes", "sizes" if name == "speed" else "notes") in error.value.message
    assert f"`holdfast bench {name} --help`" in error.value.fix


def test_help_is_the_usage(capsys):
    assert main(["load", "--help"]) == 0
    assert "usage: holdfast bench load" in capsys.readouterr().out
