"""Puts a case into a home through the public verbs, as a user's sessions and notes, and finds its docs in the answers."""

from __future__ import annotations

import time
from typing import Any

from holdfast.base import dates
from holdfast.base.record import Record
from holdfast.errors import UsageError
from holdfast.formats.transcript import ROLES
from holdfast.models import Answer
from holdfast_bench.cases import Case, Doc

_PROBE = "is everything here yet"


class Fed(Record):
    """How long it took until every doc was searchable in full, and the doc behind each key."""

    seconds: float
    doc_of: dict[str, str]


def feed(memory: Any, case: Case, mode: str) -> Fed:
    """Log what was said, store what was noted, and give all of it vectors where the mode compares them. Public texts hold
    what looks like a secret now and then: it is redacted, as an import does."""
    turns, notes = _parted(case)
    memory.recall(_PROBE, mode=mode, limit=1)  # what is loaded once is not the price of storing
    start = time.perf_counter()
    for session, said in turns.items():
        memory.log([_turn(doc) for doc in said], session=session, redact=True)
    if notes:
        memory.store_many([_note(key, doc) for key, doc in notes.items()], redact=True)
    if mode in ("hybrid", "semantic"):
        memory.embed()
    memory.recall(_PROBE, mode=mode, limit=1)
    ready = time.perf_counter()
    doc_of = {doc.id: doc.id for said in turns.values() for doc in said} | {key: doc.id for key, doc in notes.items()}
    return Fed(ready - start, doc_of)


def ranking(answer: Answer, doc_of: dict[str, str]) -> list[str]:
    """The docs of an answer, best first, each once."""
    return list(dict.fromkeys(doc_of[hit.key] for hit in answer.hits if hit.key in doc_of))


def moment(date: str) -> str | None:
    """The date of a doc or a question as a moment; None where it says none that we can read."""
    if not date:
        return None
    try:
        return dates.parse_moment(date, "date")
    except UsageError:
        return _day(date)


def _day(date: str) -> str | None:
    from datetime import date as calendar

    from holdfast.search import time_expressions

    day = time_expressions.parse_day(date)
    return f"{calendar.fromordinal(day).isoformat()}T00:00:00Z" if day else None


def _parted(case: Case) -> tuple[dict[str, list[Doc]], dict[str, Doc]]:
    """Turns by session, and notes by key. What has a speaker was said; the rest is a note, true from its date on."""
    turns: dict[str, list[Doc]] = {}
    notes: dict[str, Doc] = {}
    for number, doc in enumerate(case.docs):
        if doc.speaker:
            turns.setdefault(doc.session, []).append(doc)
        else:
            notes[f"doc-{number}"] = doc
    return turns, notes


def _note(key: str, doc: Doc) -> dict[str, Any]:
    said = moment(doc.date)
    return {"key": key, "text": doc.text, **({"valid_from": said} if said else {})}


def _turn(doc: Doc) -> dict[str, str]:
    role = doc.speaker.lower()
    turn = {"id": doc.id, "text": doc.text, "role": role if role in ROLES else "user"}
    if doc.speaker and role not in ROLES:
        turn["speaker"] = doc.speaker
    if said := moment(doc.date):
        turn["time"] = said
    return turn
