"""Holdfast itself, through its public verbs, in a process of its own like every peer."""

from __future__ import annotations

from typing import Any

import holdfast
from holdfast.bench.cases import Case, Doc
from holdfast.bench.feeding import feed, moment, ranking
from holdfast.bench.retrieval import open_home

EMBEDS = False  # it brings its own


class Peer:
    dated = True

    def __init__(self, folder: str, embed: Any) -> None:
        self.version = holdfast.__version__
        self._memory = open_home(folder)
        self._doc_of: dict[str, str] = {}

    def add(self, sessions: list[list[dict[str, str]]]) -> None:
        docs = [Doc(**{name: doc[name] for name in Doc._fields}) for session in sessions for doc in session]
        case = Case("peer", tuple(docs), ())
        self._doc_of = feed(self._memory, case, "hybrid").doc_of

    def search(self, text: str, k: int, now: str = "") -> list[str]:
        when = moment(now)
        given: dict[str, Any] = {"now": when} if when else {}
        return ranking(self._memory.recall(text, limit=k, **given), self._doc_of)

    def close(self) -> None:
        self._memory.close()
