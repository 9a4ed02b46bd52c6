"""`holdfast relate`, and the relations of `review`, `recall`, `graph`, `export` and `import`."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def notes(holdfast):
    holdfast("store", "Deploys run on Fridays.", "--key", "old-deploys")
    holdfast("store", "Deploys run on Tuesdays.", "--key", "deploys")
    return holdfast


def test_a_relation_is_stated_listed_and_removed(notes):
    assert "created deploys supersedes old-deploys" in notes("relate", "deploys", "supersedes", "old-deploys").out
    assert "unchanged" in notes("relate", "deploys", "supersedes", "old-deploys").out
    listed = json.loads(notes("relate", "--list", "old-deploys", "--json").out)
    assert [(one["key"], one["kind"], one["target"], one["status"]) for one in listed] == [
        ("deploys", "supersedes", "old-deploys", "accepted")
    ]
    assert "supersedes" in notes("relate", "--list", "deploys").out
    assert "removed" in notes("relate", "deploys", "supersedes", "old-deploys", "--remove").out
    assert json.loads(notes("relate", "--list", "deploys", "--json").out) == []


def test_recall_says_that_a_note_is_superseded(notes):
    notes("relate", "deploys", "supersedes", "old-deploys")
    shown = notes("recall", "Fridays").out
    assert shown.index("Tuesdays") < shown.index("superseded by deploys") < shown.index("Fridays")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("deploys", "supersedes", "deploys"), 2, "cannot be related to itself"),
        (("deploys", "supersedes", "nothing"), 1, "no note 'nothing'"),
        (("deploys", "eats", "old-deploys"), 2, "unknown kind of relation"),
        (("deploys", "supersedes"), 2, "the other note is missing"),
        (("deploys", "--list", "--remove"), 2, "--list and --remove"),
        (("deploys", "supersedes", "old-deploys", "--list"), 2, "--list takes only the key"),
    ],
)
def test_bad_relations_exit_with_their_codes(notes, words, code, message):
    done = notes("relate", *words)
    assert done.code == code and message in done.err


def test_a_person_decides_about_the_relations_that_agents_propose(notes, open_memory):
    agent = open_memory(origin="agent")
    agent.store("A finding.", key="finding")
    agent.relate("finding", "supersedes", "deploys")
    agent.relate("finding", "contradicts", "old-deploys")
    assert "2 proposed relations" in notes("review").err
    assert len(json.loads(notes("review", "--relations", "--json").out)) == 2
    assert "accepted" in notes("review", "--approve", "finding supersedes deploys").out
    assert "rejected" in notes("review", "--reject", "finding contradicts old-deploys").out
    assert "No proposed relations" in notes("review", "--relations").err
    for name, code in (("finding supersedes nothing", 1), ("finding eats deploys", 2)):
        assert notes("review", "--approve", name).code == code
    assert agent.relate("finding", "contradicts", "old-deploys").relation.status == "rejected"


def test_an_export_that_is_imported_has_its_relations_again(notes, tmp_path):
    notes("store", "House rules.", "--key", "rules", "--scope", "global")
    notes("relate", "deploys", "supersedes", "old-deploys")
    notes("relate", "deploys", "relates_to", "rules")
    exported = tmp_path / "notes.jsonl"
    exported.write_text(notes("export").out)
    notes("--project", "other", "import", str(exported), "--origin", "user")
    listed = json.loads(notes("--project", "other", "relate", "--list", "deploys", "--json").out)
    assert sorted((one["kind"], one["target"], one["scope"]["id"]) for one in listed) == [
        ("relates_to", "rules", "other"), ("supersedes", "old-deploys", "other"),
    ]  # fmt: skip


def test_an_import_changes_no_relation_that_the_home_has(notes, tmp_path):
    exported = tmp_path / "notes.jsonl"
    notes("relate", "deploys", "supersedes", "old-deploys")
    exported.write_text(notes("export").out)
    notes("review", "--reject", "deploys supersedes old-deploys")
    notes("import", str(exported), "--origin", "user")
    assert json.loads(notes("relate", "deploys", "--json").out)[0]["status"] == "rejected"


def test_an_imported_note_does_not_supersede_a_persons(notes, tmp_path):
    lines = [json.loads(line) for line in notes("export").out.splitlines()]
    relations = [{"kind": "supersedes", "target": target, "status": "accepted"} for target in ("deploys", ["deploys"], None)]
    lines.append({"key": "evil", "text": "Never deploy.", "relations": relations})
    imported = tmp_path / "notes.jsonl"
    imported.write_text("".join([json.dumps(line) + "\n" for line in lines]))
    told = notes("import", str(imported))
    assert told.code == 0 and "`evil supersedes deploys` was not imported: 'deploys' is trusted more" in told.err
    assert "No relations." in notes("relate", "evil").err


def test_a_plain_link_is_drawn_without_a_date(notes):
    notes("store", "Runs on [[Kubernetes]].", "--key", "platform")
    assert "mentions ← platform (undated)" in notes("graph", "Kubernetes").out
