"""MemPalace: verbatim drawers, one write per session of documents, its own search with its own re-ranking."""

from __future__ import annotations

import os
from importlib.metadata import version
from typing import Any

os.environ["MEMPALACE_EMBEDDING_MODEL"] = "minilm"  # read when it is imported

from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2
from mempalace.palace import get_collection
from mempalace.searcher import search_memories

_FILED_AT = "2026-01-01T00:00:00"


class Peer:
    """A palace with one collection of drawers."""

    version = version("mempalace")
    strategy = "vector"  # its default: candidates from vectors, re-ranked by keywords

    def __init__(self, folder: str, embed: Any) -> None:
        # It would download MiniLM: use the weights of the same model from a package instead.
        ONNXMiniLM_L6_V2._download_model_if_not_exists = lambda self: None
        ONNXMiniLM_L6_V2.__call__ = lambda self, input: list(embed(list(input)))
        self._palace = os.path.join(folder, "palace")
        self._drawers = get_collection(self._palace, create=True)

    def add(self, sessions: list[list[dict[str, str]]]) -> None:
        for session in sessions:
            metadata = [_make_metadata(doc, number) for number, doc in enumerate(session)]
            ids = [f"drawer_{doc['id']}" for doc in session]
            self._drawers.upsert(documents=[doc["spoken_text"] for doc in session], ids=ids, metadatas=metadata)

    def bulk_add(self, sessions: list[list[dict[str, str]]]) -> None:
        self.add([[doc for session in sessions for doc in session]])

    def search(self, text: str, k: int) -> list[str]:
        answer = search_memories(text, self._palace, n_results=k, candidate_strategy=self.strategy)
        if "error" in answer:
            raise RuntimeError(str(answer["error"]))
        return [result["drawer_id"].removeprefix("drawer_") for result in answer["results"]]


BulkPeer = Peer


def _make_metadata(doc: dict[str, str], number: int) -> dict[str, Any]:
    return {
        "wing": "bench", "room": "chat", "source_file": f"session-{doc['session']}", "chunk_index": number, "added_by": "bench",
        "filed_at": _FILED_AT, "ingest_mode": "convos",
    }  # fmt: skip
