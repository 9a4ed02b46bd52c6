"""Index entries as rows, and what to do with the rows that are there; the same for SQLite and PostgreSQL."""

from __future__ import annotations

from holdfast.base.ids import signed
from holdfast.formats.facts import normalize_name
from holdfast.index.results import encode_source, encode_tags, relation_path
from holdfast.index.tokenizer import index_terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.base.ids import FileId
    from holdfast.formats.relations import StatedRelation
    from holdfast.index.entries import IndexEntry, Passage
    from holdfast.index.results import IndexedFile
    from holdfast.models import Fact

# What an entry changes:
SKIP = "skip"  # nothing: it is indexed already, or the rows it continues are not there
ADD = "add"  # a file that was not indexed
APPEND = "append"  # turns at the end of a transcript
NEXT_VERSION = "next version"  # the current passage of a note becomes the past one, and a new one is added
REPLACE_NEWEST = "replace newest"  # the versions in a note's own file; those in history files stay
REPLACE = "replace"  # every row of the file


def plan_update(entry: IndexEntry, known: IndexedFile | None, replaced: FileId | None) -> str:
    """Return what an entry changes, given the indexed file and the id of the file that the writer replaced, if known.

    An entry may hold only the newest versions of a note or the newest turns of a transcript. Where the rows before those are
    missing, it is skipped: the next refresh of its folder indexes the whole file.
    """
    new = len(entry.passages)
    continues = known is not None and known.versions == entry.versions - new
    if entry.kind == "session" and new < entry.versions and not continues:
        return SKIP
    if known is None:
        return SKIP if entry.first_seq else ADD
    if known.file_id == entry.file_id and known.digest == entry.digest:
        return SKIP
    if replaced is not None and known.file_id == replaced and known.versions + 1 == entry.versions:
        return NEXT_VERSION
    if entry.first_seq and has_older_rows(known, entry.note_id, entry.first_seq):
        return REPLACE_NEWEST
    if entry.is_partial:
        return SKIP
    return APPEND if entry.kind == "session" and known.digest and continues else REPLACE


def has_older_rows(known: IndexedFile | None, note_id: str, count: int) -> bool:
    """Return whether the first `count` versions of this note are indexed: they are the same for as long as the note is."""
    return known is not None and bool(known.digest) and known.note_id == note_id and known.versions > count


def first_replaced(plan: str, entry: IndexEntry, known: IndexedFile) -> int:
    """Return the number of the first passage that a plan removes."""
    return known.versions - 1 if plan == NEXT_VERSION else entry.first_seq if plan == REPLACE_NEWEST else 0


def passage_fields(id: int, doc: int, passage: Passage) -> dict[str, Any]:
    """Return the columns of a passage, and its terms: `name_terms` and `text_terms`, separated by spaces."""
    terms = index_terms(passage.text)
    return {
        "id": id, "doc": doc, "seq": passage.seq, "past": passage.past, "names": passage.names, "text": passage.text,
        "first_line": passage.lines[0], "last_line": passage.lines[1], "type": passage.type,
        "tags": encode_tags(passage.tags), "source": encode_source(passage.source), "recorded": passage.recorded,
        "valid_from": passage.valid_from, "valid_to": passage.valid_to, "closed": passage.closed,
        "replaced": passage.replaced, "words": len(terms), "turn": passage.turn, "speaker": passage.speaker,
        "offset": passage.offset, "name_terms": " ".join(index_terms(passage.names)), "text_terms": " ".join(terms),
    }  # fmt: skip


def doc_fields(id: int, entry: IndexEntry, folder: int, mix: int) -> dict[str, Any]:
    """Return the columns of a file."""
    ino, ctime, size = entry.file_id
    return {
        "id": id, "folder": folder, "name": entry.name, "mix": mix, "digest": entry.digest, "kind": entry.kind,
        "key": entry.key, "note_id": entry.note_id, "title": entry.title, "type": entry.type,
        "tags": encode_tags(entry.tags), "created": entry.created, "updated": entry.updated,
        "source": encode_source(entry.source), "valid_from": entry.valid_from, "valid_to": entry.valid_to,
        "pinned": entry.pinned, "touched": entry.touched, "first_line": entry.lines[0], "last_line": entry.lines[1],
        "versions": entry.versions, "trust": entry.trust, "exposed": entry.exposed, "facts": len(entry.facts),
        "prose": entry.prose, "platform_key": entry.platform_key, "problem": entry.problem, "ino": signed(ino),
        "ctime": ctime, "size": size, "agent": find_owner(entry), "bytes": size + entry.history_bytes,
        "relations": len(entry.relations), "mentions": "\n".join(entry.mentions),
    }  # fmt: skip


def find_owner(entry: IndexEntry) -> str:
    """Return the agent whose quota a file counts for: the one that wrote it last, or the one that its scope belongs to."""
    kind, _, name = entry.scope.partition("/")
    return entry.source.agent or (name if kind == "agents" else "")


def relation_fields(doc: int, scope: str, relation: StatedRelation) -> dict[str, Any]:
    """Return the columns of a relation; `target` is the id of a note, or the folder of the scope and a key."""
    return {
        "doc": doc, "kind": relation.kind, "target": relation.target_id or relation_path(scope, relation.target),
        "status": relation.status, "origin": relation.origin, "stated": relation.time,
    }  # fmt: skip


def fact_fields(doc: int, fact: Fact) -> dict[str, Any]:
    """Return the columns of a fact; `about` and `named` are its subject and label, folded."""
    return {
        "doc": doc, "subject": fact.subject, "label": fact.label, "value": fact.value, "about": normalize_name(fact.subject),
        "named": normalize_name(fact.label), "valid_from": fact.valid_from, "valid_to": fact.valid_to,
        "retired_by": fact.retired_by, "links": "\n".join(fact.links), "line": fact.line,
    }  # fmt: skip
