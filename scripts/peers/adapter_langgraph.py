"""LangGraph's InMemoryStore with an index, one put per document; nothing is on disk."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from langgraph.store.memory import InMemoryStore


class Peer:
    """A store with an index of the texts."""

    version = version("langgraph")

    def __init__(self, folder: str, embed: Any) -> None:
        def embed_texts(texts: list[str]) -> list[list[float]]:
            rows: list[list[float]] = embed(texts).tolist()
            return rows

        self._store = InMemoryStore(index={"dims": 384, "embed": embed_texts, "fields": ["text"]})

    def add(self, sessions: list[list[dict[str, str]]]) -> None:
        for session in sessions:
            for doc in session:
                self._store.put(
                    ("docs",), doc["id"], {"text": doc["spoken_text"], "session": doc["session"], "date": doc["date"]}
                )

    def search(self, text: str, k: int) -> list[str]:
        return [item.key for item in self._store.search(("docs",), query=text, limit=k)]
