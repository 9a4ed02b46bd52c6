"""mem0 with its BM25 extra: fastembed's BM25, with English stop words from a package because its own list is on a model hub."""

from __future__ import annotations

import hashlib
import uuid
from importlib import import_module
from typing import Any

import adapter_mem0  # type: ignore[import-not-found]  # in the folder of driver.py, first on its path

_NOW = "2026-01-01T00:00:00+00:00"


class Peer(adapter_mem0.Peer):  # type: ignore[misc]
    """A memory that searches by keywords and by vectors."""

    def __init__(self, folder: str, embed: Any) -> None:
        super().__init__(folder, embed)
        words = set(import_module("stop_words").get_stop_words("english"))
        encoder_class = import_module("fastembed").SparseTextEmbedding
        store = self._memory.vector_store
        store._bm25_encoder = encoder_class(model_name="Qdrant/bm25", specific_model_path=folder, stopwords=words)
        if store.keyword_search("is it there", filters=adapter_mem0.USER) is None:
            raise RuntimeError("mem0 does not search by words")


class BulkPeer(Peer):
    """Insert the payloads that `add` makes into the vector store in bulk, without history.

    Qdrant is in memory, a setting of mem0: on disk it flushes every point, which takes an hour, and searches in memory anyway.
    """

    def __init__(self, folder: str, embed: Any) -> None:
        super().__init__(folder, embed)
        self._embed = embed

    def vector_store_settings(self, folder: str) -> dict[str, Any]:
        return {"client": import_module("qdrant_client").QdrantClient(":memory:"), "embedding_model_dims": 384}

    def bulk_add(self, sessions: list[list[dict[str, str]]]) -> None:
        docs = [doc for session in sessions for doc in session]
        texts = [doc["spoken_text"] for doc in docs]
        ids = [str(uuid.uuid5(uuid.NAMESPACE_OID, doc["id"])) for doc in docs]
        self._memory.vector_store.insert(self._embed(texts).tolist(), [_make_payload(text) for text in texts], ids)
        self._doc_by_id |= {id: doc["id"] for id, doc in zip(ids, docs, strict=True)}


def _make_payload(text: str) -> dict[str, str]:
    digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    times = {"created_at": _NOW, "updated_at": _NOW}
    return {**adapter_mem0.USER, "role": "user", "data": text, "hash": digest, **times, "text_lemmatized": text}
