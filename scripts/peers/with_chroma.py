"""Chroma: a collection on disk, a session of docs a call, the shared model as its embedding function."""

from __future__ import annotations

from typing import Any

import chromadb
from chromadb.config import Settings


class Embedding(chromadb.EmbeddingFunction):  # type: ignore[misc,type-arg,unused-ignore]
    """The shared model in Chroma's own shape."""

    def __init__(self, embed: Any) -> None:
        self._embed = embed

    def __call__(self, input: Any) -> Any:
        return list(self._embed(list(input)))


class Peer:
    version = chromadb.__version__

    def __init__(self, folder: str, embed: Any) -> None:
        client = chromadb.PersistentClient(folder, settings=Settings(anonymized_telemetry=False))
        space = {"hnsw": {"space": "cosine"}}
        self._docs = client.create_collection("docs", embedding_function=Embedding(embed), configuration=space)

    def add(self, sessions: list[list[dict[str, str]]]) -> None:
        for session in sessions:
            labels = [{"session": doc["session"], "date": doc["date"]} for doc in session]
            self._docs.add(ids=[doc["id"] for doc in session], documents=[doc["said"] for doc in session], metadatas=labels)

    def search(self, text: str, k: int) -> list[str]:
        found: list[str] = self._docs.query(query_texts=[text], n_results=k)["ids"][0]
        return found
