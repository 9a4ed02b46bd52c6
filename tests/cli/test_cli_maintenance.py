"""`brief`, `status`, `doctor` and `reindex`, and every command while memory is disabled."""

from __future__ import annotations

import os
import sys

import pytest

from holdfast import Memory


def test_brief_prints_the_exact_block(holdfast, home):
    holdfast("store", "Use pytest", "--key", "testing")
    with Memory(home, project="demo") as memory:
        told = memory.brief().text
    assert holdfast("brief").out == told
    assert holdfast("brief", "--json").json["shown"] == ["project/testing"]


def test_an_empty_brief_prints_nothing(holdfast):
    said = holdfast("brief")
    assert (said.code, said.out) == (0, "")


@pytest.mark.promise("D2")
def test_status_prints_the_home_and_its_counts(holdfast, home):
    holdfast("store", "one", "--key", "a")
    said = holdfast("status")
    assert f"home      {home}\n" in said.out and "project   demo\n" in said.out
    assert "projects/demo" in said.out and "project/a" in said.out
    scopes = {one["scope"]: one["notes"] for one in holdfast("status", "--json").json["scopes"]}
    assert scopes["projects/demo"] == 1


@pytest.mark.promise("D1")
def test_doctor_finds_no_problem_in_a_healthy_home(holdfast, home):
    holdfast("store", "one")
    said = holdfast("doctor")
    assert (said.code, said.out) == (0, f"no problems in {home}\n")
    assert holdfast("doctor", "--json").json == {
        "quarantined": 0, "ok": True, "home": str(home), "disabled": False, "problems": [],
        "transcripts": {"bytes": 0, "looked_at": 0}, "archived": [],
    }  # fmt: skip


@pytest.mark.promise("D1")
def test_doctor_names_each_problem_with_its_fix(holdfast, home):
    holdfast("store", "one")
    os.chmod(home, 0o755)
    said = holdfast("doctor")
    assert said.code == 1
    assert "problem other users can read the home (mode 755)" in said.out
    assert f"fix: chmod 700 {home}" in said.out
    report = holdfast("doctor", "--json")
    assert (report.code, report.json["ok"], report.json["problems"][0]["code"]) == (1, False, "permissions")


def test_reindex_prints_its_counts(holdfast):
    holdfast("store", "one")
    assert holdfast("reindex").out.startswith("indexed 1 note and 0 files: 1 passage, 0 facts, in ")
    assert holdfast("reindex", "--json").json["notes"] == 1


@pytest.mark.promise("N12")
def test_disabled_memory_rejects_writes_and_reads_nothing(holdfast, home, monkeypatch):
    holdfast("store", "one", "--key", "k")
    monkeypatch.setenv("HOLDFAST_ENABLED", "0")
    assert holdfast("store", "two").code == 3
    said = holdfast("recall", "one", "--json")
    assert (said.code, said.json["disabled"], said.json["hits"]) == (0, True, [])
    assert holdfast("recall", "one").err == "(memory is disabled)\n"
    for command in ("brief", "list", "facts"):
        assert holdfast(command).err == "memory is disabled\n"
    listed = holdfast("list", "--json")
    assert (listed.json, listed.err) == ([], "memory is disabled\n")
    assert holdfast("read", "a.md").err == holdfast("read", "a.md", "--json").err == "memory is disabled\n"


@pytest.mark.promise("N12")
def test_status_and_doctor_say_that_memory_is_disabled(holdfast, home, monkeypatch):
    holdfast("store", "one", "--key", "k")
    monkeypatch.setenv("HOLDFAST_ENABLED", "0")
    assert "enabled   no (memory is disabled)\n" in holdfast("status").out
    assert "project   unknown" in holdfast("status", project=None).out
    assert holdfast("status", "--json").json["enabled"] is False
    said = holdfast("doctor")
    assert (said.code, said.out) == (0, f"no problems in {home}\n")
    assert said.err.startswith("memory is disabled")
    assert holdfast("doctor", "--json").json["disabled"] is True


@pytest.mark.promise("N12")
@pytest.mark.parametrize(
    "words",
    [
        ("init",), ("reindex",), ("clear", "--scope", "session"), ("clear", "--scope", "moon"), ("purge", "Not A Key"),
        ("store", "-"), ("import", "-"), ("import", "/nowhere"), ("file", "create", "a.md", "-"), ("embed",),
        ("log", "-", "--session", "s"), ("log", "/nowhere", "--session", "s"), ("import-history", "/nowhere"),
    ],
)  # fmt: skip
def test_disabled_memory_rejects_a_write_before_it_asks_or_reads(holdfast, home, monkeypatch, words):
    monkeypatch.setenv("HOLDFAST_ENABLED", "0")
    monkeypatch.setattr(sys, "stdin", None)
    assert holdfast(*words, "--json").json["error"] == "disabled"
    assert not home.exists()


def test_doctor_reports_that_quarantine_is_switched_off(holdfast, home):
    holdfast("config", "trust.quarantine", "")
    (problem,) = [one for one in holdfast("doctor", "--json").json["problems"] if one["code"] == "quarantine-off"]
    assert problem["fix"].endswith("config trust.quarantine --unset")
    holdfast("config", "trust.quarantine", "--unset")
    assert "quarantine-off" not in holdfast("doctor", "--json").out
