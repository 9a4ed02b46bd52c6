"""The data of the retrieval benchmark: JSON lines, plain or gzip; each line is a case with documents and questions."""

from __future__ import annotations

import datetime
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.base import dates
from holdfast.base.record import Record
from holdfast.errors import NotFound, UsageError

_FIX = 'Give a case a line: {"docs": [{"id", "text", ...}], "queries": [{"id", "text", "gold": [doc ids]}]}'


class Doc(Record):
    """A turn of a conversation, or a note if it has no speaker."""

    id: str
    text: str
    session: str
    speaker: str = ""
    date: str = ""


class Query(Record):
    """A question and the ids of the documents that contain its answer."""

    id: str
    text: str
    gold: tuple[str, ...]
    kind: str = "question"
    date: str = ""


class Case(Record):
    """Documents that go into one empty home, and the questions about them."""

    name: str
    docs: tuple[Doc, ...]
    queries: tuple[Query, ...]

    @property
    def session_by_doc(self) -> dict[str, str]:
        """Return the session of each document by its id."""
        return {doc.id: doc.session for doc in self.docs}


def read_cases(path: Path) -> list[Case]:
    """Read all cases of a file; raise NotFound, or UsageError with the number of the line that is not a case."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            return list(_parse_lines(file, path))
    except FileNotFoundError:
        raise NotFound(f"{path} is not there", "Name a file of cases, .jsonl or .jsonl.gz") from None
    except (OSError, UnicodeDecodeError, EOFError) as error:
        raise UsageError(f"{path} cannot be read: {error}", _FIX) from None


def select_half(cases: list[Case], half: str | None) -> list[Case]:
    """Return the cases with even (A) or odd (B) index, or of a single case its questions; all of them for None."""
    if half is None:
        return cases
    first = 0 if half == "A" else 1
    if len(cases) == 1:
        return [cases[0].replace(queries=cases[0].queries[first::2])]
    return cases[first::2]


def _parse_lines(file: Iterator[str], path: Path) -> Iterator[Case]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            yield _parse_case(json.loads(line), f"case {number}")
        except ValueError as error:
            reason = f"no JSON: {error}" if isinstance(error, json.JSONDecodeError) else f"not a case: {error}"
            raise UsageError(f"{path}, line {number}: {reason}", _FIX) from None


def _parse_case(data: object, name: str) -> Case:
    """Return the case in a JSON value, with this name if it has none; raise ValueError if it is not one."""
    docs = tuple([_parse_doc(f"doc {number}", doc) for number, doc in enumerate(_get_list("it", data, "docs"), 1)])
    queries = tuple(
        [_parse_query(f"query {number}", query) for number, query in enumerate(_get_list("it", data, "queries"), 1)]
    )
    ids = {doc.id for doc in docs}
    if len(ids) != len(docs):
        raise ValueError("two docs have the same id")
    for query in queries:
        if not query.gold or not ids.issuperset(query.gold):
            raise ValueError(f"query {query.id!r} has no gold, or gold that is not among the docs")
    return Case(_get_text(data, "name") or name, docs, queries)


def _parse_doc(subject: str, data: object) -> Doc:
    id, text, date = _get_common(subject, data)
    session, speaker = _get_text(data, "session"), _get_text(data, "speaker")
    return Doc(id=id, text=text, session=session or id, speaker=speaker, date=date)


def _parse_query(subject: str, data: object) -> Query:
    id, text, date = _get_common(subject, data)
    gold = tuple(dict.fromkeys(map(str, _get_list(subject, data, "gold"))))
    return Query(id=id, text=text, gold=gold, kind=_get_text(data, "kind") or "question", date=date)


def _get_common(subject: str, data: object) -> tuple[str, str, str]:
    """Return id, text and date of a doc or query; raise ValueError if the text is empty or the date cannot be read."""
    id, text = str(_get_field(subject, data, "id")), str(_get_field(subject, data, "text"))
    if not text.strip() or "\0" in text:
        raise ValueError(f"the text of {subject} is empty or contains NUL")
    date = _get_text(data, "date")
    if date and parse_date(date) is None:
        raise ValueError(f"the date of {subject} cannot be read: {date!r}")
    return id, text, date


def parse_date(text: str) -> str | None:
    """Return the date of a document or question as a timestamp; None if there is none or it cannot be read."""
    if not text:
        return None
    try:
        return dates.parse_moment(text, "date")
    except UsageError:
        from holdfast.search import time_expressions

        day = time_expressions.parse_day(text)
        return f"{datetime.date.fromordinal(day).isoformat()}T00:00:00Z" if day else None


def _get_field(subject: str, data: object, name: str) -> Any:
    """Return a required field; the error message names the subject."""
    if not isinstance(data, dict):
        raise ValueError(f"{subject} is no object with fields")
    if name not in data:
        raise ValueError(f"{subject} has no field `{name}`")
    return data[name]


def _get_list(subject: str, data: object, name: str) -> list[Any]:
    """Return a required field that must be a list."""
    value = _get_field(subject, data, name)
    if not isinstance(value, list):
        raise ValueError(f"{subject} has no list in its field `{name}`")
    return value


def _get_text(data: Any, name: str) -> str:
    """Return an optional field as text; missing and null are empty."""
    return str(data.get(name) or "")
