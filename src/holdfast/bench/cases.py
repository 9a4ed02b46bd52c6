"""The data of a retrieval benchmark: JSON lines, plain or gzip, one case a line; a case is one haystack with its questions."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.errors import NotFound, UsageError
from holdfast.note import Record

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
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{path}, line {number}: not a case: {type(error).__name__}: {error}", _FIX) from None


def _case(given: dict[str, Any]) -> Case:
    docs = tuple(_doc(doc) for doc in given["docs"])
    queries = tuple(_query(query) for query in given["queries"])
    ids = {doc.id for doc in docs}
    if len(ids) != len(docs):
        raise ValueError("two docs have the same id")
    for query in queries:
        if not query.gold or not ids.issuperset(query.gold):
            raise ValueError(f"query {query.id!r} has no gold, or gold that is not among the docs")
    return Case(str(given["name"]), docs, queries)


def _doc(given: dict[str, Any]) -> Doc:
    id = str(given["id"])
    return Doc(id, str(given["text"]), str(given.get("session") or id), given.get("speaker") or "", given.get("date") or "")


def _query(given: dict[str, Any]) -> Query:
    gold = tuple(dict.fromkeys(str(id) for id in given["gold"]))
    return Query(str(given["id"]), str(given["text"]), gold, given.get("kind") or "question", given.get("date") or "")
