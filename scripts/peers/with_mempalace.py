"""MemPalace: verbatim drawers, a session of docs a write, its own search with its own re-rank."""

from __future__ import annotations

import os
from importlib.metadata import version
from typing import Any

os.environ["MEMPALACE_EMBEDDING_MODEL"] = "minilm"  # read when it is imported

from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2
from mempalace.palace import get_collection
from mempalace.searcher import search_memories

_FILED = "2026-01-01T00:00:00"


class Peer:
    version = version("mempalace")
    strategy = "vector"  # its default: what vectors find, re-ranked by words

    def __init__(self, folder: str, embed: Any) -> None:
        # Its MiniLM would be fetched from the network: these are the same model's weights from a package.
        ONNXMiniLM_L6_V2._download_model_if_not_exists = lambda self: None
        ONNXMiniLM_L6_V2.__call__ = lambda self, input: list(embed(list(input)))
        self._palace = os.path.join(folder, "palace")
        self._drawers = get_collection(self._palace, create=True)

    def add(self, sessions: list[list[dict[str, str]]]) -> None:
        for session in sessions:
            labels = [_label(doc, number) for number, doc in enumerate(session)]
            ids = [f"drawer_{doc['id']}" for doc in session]
            self._drawers.upsert(documents=[doc["said"] for doc in session], ids=ids, metadatas=labels)

    def load(self, sessions: list[list[dict[str, str]]]) -> None:
        self.add([[doc for session in sessions for doc in session]])

    def search(self, text: str, k: int) -> list[str]:
        answer = search_memories(text, self._palace, n_results=k, candidate_strategy=self.strategy)
        if "error" in answer:
            raise RuntimeError(str(answer["error"]))
        return [one["drawer_id"].removeprefix("drawer_") for one in answer["results"]]


Scaled = Peer


def _label(doc: dict[str, str], number: int) -> dict[str, Any]:
    return {
        "wing": "bench", "room": "chat", "source_file": f"session-{doc['session']}", "chunk_index": number, "added_by": "bench",
        "filed_at": _FILED, "ingest_mode": "convos",
    }  # fmt: skip
