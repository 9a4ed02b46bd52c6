"""Relations in the frontmatter of a note."""

from __future__ import annotations

import pytest

from holdfast.formats import note_file
from holdfast.formats.relations import MAX_RELATIONS, StatedRelation, format_relations
from holdfast.formats.versions import parse_note, state_relations

STATED = StatedRelation("supersedes", "note:01KPAXEB201VA8X6", "accepted", "agent", "2026-05-02T09:00:00Z")
WRITTEN = "relations: [supersedes note:01KPAXEB201VA8X6 accepted agent 2026-05-02T09:00:00Z]\n"


def header_of(field):
    return note_file.parse_header(note_file.parse(f"---\nid: a1\n{field}---\nText.\n"))


def test_what_is_written_is_read_back_without_a_yaml_parser(monkeypatch):
    assert format_relations((STATED,)) == WRITTEN.removeprefix("relations: ").strip()
    monkeypatch.setattr("holdfast.formats.frontmatter._parse_yaml", None)
    assert header_of(WRITTEN).relations == (STATED,)


@pytest.mark.parametrize(
    "field",
    [
        "relations: [supersedes old-deploys]\n",
        "relations: supersedes old-deploys\n",
        "relations:\n  - supersedes old-deploys\n",
    ],
)
def test_a_person_may_write_only_the_kind_and_a_key(field):
    (relation,) = header_of(field).relations
    assert (relation.kind, relation.target, relation.target_id) == ("supersedes", "old-deploys", "")
    assert (relation.status, relation.origin) == ("accepted", "user")


@pytest.mark.parametrize(
    "field",
    [
        "relations: [eats old-deploys]\n", "relations: [supersedes]\n", "relations: [supersedes ../x]\n",
        "relations: [supersedes note:a done user 2026-05-02T09:00:00Z]\n", "relations: {a: b}\n",
        "relations: [supersedes note:a accepted user yesterday]\n",
        f"relations: [{', '.join(['relates_to a'] * (MAX_RELATIONS + 1))}]\n",
    ],
)  # fmt: skip
def test_what_cannot_be_read_counts_as_absent_and_is_named(field):
    header = header_of(field)
    assert header.relations == () and header.problems[0].startswith("relations: ")


def test_an_unknown_origin_counts_as_the_least_trusted():
    assert header_of(WRITTEN.replace("agent", "oracle")).relations[0].origin == "web"


def test_stating_a_relation_keeps_every_other_byte():
    data = b"---\nid: a1\nreviewer: {name: Ada}   # theirs\n---\nText.\n"
    stated = state_relations(parse_note(data, 0), (STATED,), "unused")
    assert stated.data.startswith(data[:11]) and b"reviewer: {name: Ada}   # theirs\n" in stated.data
    assert WRITTEN.encode() in stated.data and stated.data.endswith(b"---\nText.\n")
    assert parse_note(stated.data, 0).header.relations == (STATED,)
    removed = state_relations(parse_note(stated.data, 0), (), "unused")
    assert b"relations" not in removed.data


def test_a_note_without_an_id_gets_one():
    assert state_relations(parse_note(b"Text.\n", 0), (STATED,), "new-id").header.id == "new-id"
