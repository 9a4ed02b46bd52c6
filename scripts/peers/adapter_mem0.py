"""mem0 without its LLM: infer=False stores messages unchanged; Qdrant on disk, one call per session of messages."""

from __future__ import annotations

import os
from importlib.metadata import version
from typing import Any

os.environ["MEM0_TELEMETRY"] = "False"  # read when it is imported

from mem0 import Memory
from mem0.embeddings.base import EmbeddingBase

USER = {"user_id": "bench"}


class Embedding(EmbeddingBase):  # type: ignore[misc,unused-ignore]
    """The shared model as a mem0 embedder."""

    def __init__(self, embed: Any) -> None:
        self._embed = embed

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        vector: list[float] = self._embed([text])[0].tolist()
        return vector


class Peer:
    """A memory with Qdrant vectors."""

    version = version("mem0ai")

    def __init__(self, folder: str, embed: Any) -> None:
        unused = {"api_key": "none", "openai_base_url": "http://127.0.0.1:9"}  # it requires an LLM and never calls it
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": self.vector_store_settings(folder)},
                "llm": {"provider": "openai", "config": unused},
                "embedder": {"provider": "openai", "config": unused},
                "history_db_path": os.path.join(folder, "history.db"),
            }
        )
        self._memory.embedding_model = Embedding(embed)
        self._doc_by_id: dict[str, str] = {}

    def vector_store_settings(self, folder: str) -> dict[str, Any]:
        """Return the settings of the vector store."""
        return {"path": os.path.join(folder, "qdrant"), "on_disk": True, "embedding_model_dims": 384}

    def add(self, sessions: list[list[dict[str, str]]]) -> None:
        for session in sessions:
            messages = [_make_message(doc) for doc in session]
            metadata = {"session": session[0]["session"], "date": session[0]["date"]}
            stored = self._memory.add(messages, **USER, metadata=metadata, infer=False)["results"]
            if len(stored) != len(session):
                raise RuntimeError(f"mem0 stored {len(stored)} of {len(session)} messages")
            self._doc_by_id |= {result["id"]: doc["id"] for result, doc in zip(stored, session, strict=True)}

    def search(self, text: str, k: int) -> list[str]:
        results = self._memory.search(text, filters=USER, top_k=k)["results"]
        return [self._doc_by_id[result["id"]] for result in results]

    def close(self) -> None:
        self._memory.vector_store.client.close()


def _make_message(doc: dict[str, str]) -> dict[str, str]:
    role = doc["speaker"] if doc["speaker"] in ("user", "assistant") else "user"
    return {"role": role, "content": doc["spoken_text"]}
