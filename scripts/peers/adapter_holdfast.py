"""Holdfast itself through its public API, in a process of its own like every peer."""

from __future__ import annotations

from typing import Any

import holdfast
from holdfast import Memory
from holdfast.embedders import open_embedders
from holdfast_bench.retrieval import ingest, open_home, rank_docs
from holdfast_bench.retrieval_cases import Case, Doc, parse_date
from holdfast_bench.reused_vectors import reuse_vectors

NEEDS_EMBEDDER = False  # it has its own


class Peer:
    """A memory with default settings."""

    accepts_now = True

    def __init__(self, folder: str, embed: Any) -> None:
        self.version = holdfast.__version__
        self._memory: Memory = open_home(folder)
        for model in open_embedders():  # load the models before it is timed, as for the others
            model.questions(["warm"])
        self._memory.recall("warm", limit=1)
        self._doc_by_key: dict[str, str] = {}

    def add(self, sessions: list[list[dict[str, str]]]) -> None:
        docs = [Doc(**{name: doc[name] for name in Doc._fields}) for session in sessions for doc in session]
        case = Case("peer", tuple(docs), ())
        self._doc_by_key = ingest(self._memory, case, "hybrid").doc_by_key

    def search(self, text: str, k: int, now: str = "") -> list[str]:
        timestamp = parse_date(now)
        options: dict[str, Any] = {"now": timestamp} if timestamp else {}
        answer = self._memory.recall(text, limit=k, **options)
        if answer.degraded:
            raise RuntimeError(f"a degraded answer: {answer.reason}")
        return rank_docs(answer, self._doc_by_key)

    def close(self) -> None:
        self._memory.close()


class BulkPeer(Peer):
    """Turns logged by session, with the default models. After the first texts, vectors are changed copies of earlier ones."""

    def __init__(self, folder: str, embed: Any) -> None:
        self._reused = reuse_vectors()
        self._reused.__enter__()
        super().__init__(folder, embed)

    def bulk_add(self, sessions: list[list[dict[str, str]]]) -> None:
        for session in sessions:
            turns = [{"id": doc["id"], "role": doc["speaker"], "text": doc["text"]} for doc in session]
            self._memory.log(turns, session=session[0]["session"])
            self._doc_by_key |= {doc["id"]: doc["id"] for doc in session}

    def finish_indexing(self) -> None:
        self._memory.embed()
