"""mem0 with its BM25 extra: fastembed's BM25 with English stop words from a package, as its own list is on a model hub."""

from __future__ import annotations

import hashlib
import uuid
from importlib import import_module
from typing import Any

import with_mem0  # type: ignore[import-not-found]  # beside this file, where the peer's own Python looks first

_NOW = "2026-01-01T00:00:00+00:00"


class Peer(with_mem0.Peer):  # type: ignore[misc]
    def __init__(self, folder: str, embed: Any) -> None:
        super().__init__(folder, embed)
        words = set(import_module("stop_words").get_stop_words("english"))
        make = import_module("fastembed").SparseTextEmbedding
        store = self._memory.vector_store
        store._bm25_encoder = make(model_name="Qdrant/bm25", specific_model_path=folder, stopwords=words)
        if store.keyword_search("is it there", filters=with_mem0.USER) is None:
            raise RuntimeError("mem0 does not search by words")


class Scaled(Peer):
    """The payloads that `add` makes, put into its vector store by the thousand; no history is kept. Qdrant is in memory, which
    is a setting of mem0: on disk it flushes every point, which takes an hour, and it is searched in memory all the same."""

    def __init__(self, folder: str, embed: Any) -> None:
        super().__init__(folder, embed)
        self._vectors = embed

    def place(self, folder: str) -> dict[str, Any]:
        return {"client": import_module("qdrant_client").QdrantClient(":memory:"), "embedding_model_dims": 384}

    def load(self, sessions: list[list[dict[str, str]]]) -> None:
        docs = [doc for session in sessions for doc in session]
        texts = [doc["said"] for doc in docs]
        ids = [str(uuid.uuid5(uuid.NAMESPACE_OID, doc["id"])) for doc in docs]
        self._memory.vector_store.insert(self._vectors(texts).tolist(), [_payload(text) for text in texts], ids)
        self._doc_of |= {id: doc["id"] for id, doc in zip(ids, docs, strict=True)}


def _payload(text: str) -> dict[str, str]:
    digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    times = {"created_at": _NOW, "updated_at": _NOW}
    return {**with_mem0.USER, "role": "user", "data": text, "hash": digest, **times, "text_lemmatized": text}
