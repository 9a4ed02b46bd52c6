"""Holdfast itself, through its public verbs, in a process of its own like every peer."""

from __future__ import annotations

from typing import Any

import holdfast
from holdfast import Memory, config
from holdfast_bench.cases import Case, Doc
from holdfast_bench.ingest import feed, moment, ranking
from holdfast_bench.retrieval import open_home

EMBEDS = False  # it brings its own


class Peer:
    dated = True

    def __init__(self, folder: str, embed: Any) -> None:
        self.version = holdfast.__version__
        self._memory = self._open(folder)
        self._memory.recall("warm", limit=1)  # loading its models is not counted, as for the others
        self._doc_of: dict[str, str] = {}

    def _open(self, folder: str) -> Memory:
        return open_home(folder)

    def add(self, sessions: list[list[dict[str, str]]]) -> None:
        docs = [Doc(**{name: doc[name] for name in Doc._fields}) for session in sessions for doc in session]
        case = Case("peer", tuple(docs), ())
        self._doc_of = feed(self._memory, case, "hybrid").doc_of

    def search(self, text: str, k: int, now: str = "") -> list[str]:
        when = moment(now)
        given: dict[str, Any] = {"now": when} if when else {}
        answer = self._memory.recall(text, limit=k, **given)
        if answer.degraded:
            raise RuntimeError(f"a degraded answer: {answer.reason}")
        return ranking(answer, self._doc_of)

    def close(self) -> None:
        self._memory.close()


class Scaled(Peer):
    """Turns in their sessions, with static vectors: those that turns have until a sentence model has been over them."""

    def _open(self, folder: str) -> Memory:
        return Memory(config=config.load(folder).replace(embedder="static"), project="bench", cwd=folder)

    def load(self, sessions: list[list[dict[str, str]]]) -> None:
        for session in sessions:
            turns = [{"id": doc["id"], "role": doc["speaker"], "text": doc["text"]} for doc in session]
            self._memory.log(turns, session=session[0]["session"])
            self._doc_of |= {doc["id"]: doc["id"] for doc in session}

    def settle(self) -> None:
        self._memory.embed()
