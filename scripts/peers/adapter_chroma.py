"""Chroma: a collection on disk, one call per session of documents, the shared model as its embedding function."""

from __future__ import annotations

from typing import Any

import chromadb
from chromadb.config import Settings


class Embedding(chromadb.EmbeddingFunction):  # type: ignore[misc,type-arg,unused-ignore]
    """The shared model as a Chroma embedding function."""

    def __init__(self, embed: Any) -> None:
        self._embed = embed

    def __call__(self, input: Any) -> Any:
        return list(self._embed(list(input)))


class Peer:
    """A collection of documents with cosine distance."""

    version = chromadb.__version__

    def __init__(self, folder: str, embed: Any) -> None:
        client = chromadb.PersistentClient(folder, settings=Settings(anonymized_telemetry=False))
        configuration = {"hnsw": {"space": "cosine"}}
        self._docs = client.create_collection("docs", embedding_function=Embedding(embed), configuration=configuration)

    def add(self, sessions: list[list[dict[str, str]]]) -> None:
        for session in sessions:
            metadata = [{"session": doc["session"], "date": doc["date"]} for doc in session]
            self._docs.add(
                ids=[doc["id"] for doc in session], documents=[doc["spoken_text"] for doc in session], metadatas=metadata
            )

    def search(self, text: str, k: int) -> list[str]:
        ids: list[str] = self._docs.query(query_texts=[text], n_results=k)["ids"][0]
        return ids
