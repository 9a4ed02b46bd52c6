"""The data of a retrieval benchmark: JSON lines, plain or gzip, one case a line; a case is one haystack with its questions."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.base.record import Record
from holdfast.errors import NotFound, UsageError

_FIX = 'Give a case a line: {"name", "docs": [{"id", "text", ...}], "queries": [{"id", "text", "gold": [doc ids]}]}'


class Doc(Record):
    """Something that was said or written down."""

    id: str
    text: str
    session: str
    speaker: str = ""
    date: str = ""


class Query(Record):
    """A question, and the docs that carry the evidence for its answer."""

    id: str
    text: str
    gold: tuple[str, ...]
    kind: str = "question"
    date: str = ""


class Case(Record):
    """One haystack: its docs go into a home of their own, and its questions are asked there."""

    name: str
    docs: tuple[Doc, ...]
    queries: tuple[Query, ...]

    @property
    def session_of(self) -> dict[str, str]:
        """The session of every doc."""
        return {doc.id: doc.session for doc in self.docs}


def read(path: Path) -> list[Case]:
    """Every case of a file."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            return list(_cases(file, path))
    except FileNotFoundError:
        raise NotFound(f"{path} is not there", "Name a file of cases, .jsonl or .jsonl.gz") from None
    except (OSError, UnicodeDecodeError, EOFError) as error:
        raise UsageError(f"{path} cannot be read: {error}", _FIX) from None


def half(cases: list[Case], which: str | None) -> list[Case]:
    """The even cases (A) or the odd ones (B); of a file that is a single case, its even or odd questions."""
    if which is None:
        return cases
    first = 0 if which == "A" else 1
    if len(cases) == 1:
        return [cases[0].replace(queries=cases[0].queries[first::2])]
    return cases[first::2]


def _cases(file: Iterator[str], path: Path) -> Iterator[Case]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            yield _case(json.loads(line))
        except ValueError as error:
            said = f"no JSON: {error}" if isinstance(error, json.JSONDecodeError) else f"not a case: {error}"
            raise UsageError(f"{path}, line {number}: {said}", _FIX) from None


def _case(given: object) -> Case:
    name = str(_field("it", given, "name"))
    docs = tuple([_doc(f"doc {number}", doc) for number, doc in enumerate(_list("it", given, "docs"), 1)])
    queries = tuple([_query(f"query {number}", query) for number, query in enumerate(_list("it", given, "queries"), 1)])
    ids = {doc.id for doc in docs}
    if len(ids) != len(docs):
        raise ValueError("two docs have the same id")
    for query in queries:
        if not query.gold or not ids.issuperset(query.gold):
            raise ValueError(f"query {query.id!r} has no gold, or gold that is not among the docs")
    return Case(name, docs, queries)


def _doc(which: str, given: object) -> Doc:
    id, text = str(_field(which, given, "id")), str(_field(which, given, "text"))
    return Doc(id, text, _word(given, "session") or id, _word(given, "speaker"), _word(given, "date"))


def _query(which: str, given: object) -> Query:
    id, text = str(_field(which, given, "id")), str(_field(which, given, "text"))
    gold = tuple(dict.fromkeys(map(str, _list(which, given, "gold"))))
    return Query(id, text, gold, _word(given, "kind") or "question", _word(given, "date"))


def _field(which: str, given: object, name: str) -> Any:
    """What a field says that must be there."""
    if not isinstance(given, dict):
        raise ValueError(f"{which} is no object with fields")
    if name not in given:
        raise ValueError(f"{which} has no field `{name}`")
    return given[name]


def _list(which: str, given: object, name: str) -> list[Any]:
    found = _field(which, given, name)
    if not isinstance(found, list):
        raise ValueError(f"{which} has no list in its field `{name}`")
    return found


def _word(given: Any, name: str) -> str:
    """What a field says that may be left out, or be null."""
    return str(given.get(name) or "")
