"""mem0 without its LLM: infer=False keeps messages as they are; Qdrant on disk, a session of messages a call."""

from __future__ import annotations

import os
from importlib.metadata import version
from typing import Any

os.environ["MEM0_TELEMETRY"] = "False"  # read when it is imported

from mem0 import Memory
from mem0.embeddings.base import EmbeddingBase

USER = {"user_id": "bench"}


class Embedding(EmbeddingBase):  # type: ignore[misc,unused-ignore]
    """The shared model in mem0's own shape."""

    def __init__(self, embed: Any) -> None:
        self._embed = embed

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        vector: list[float] = self._embed([text])[0].tolist()
        return vector


class Peer:
    version = version("mem0ai")

    def __init__(self, folder: str, embed: Any) -> None:
        nobody = {"api_key": "none", "openai_base_url": "http://127.0.0.1:9"}  # it wants an LLM and never asks it
        self._memory = Memory.from_config({
            "vector_store": {"provider": "qdrant", "config": self.place(folder)},
            "llm": {"provider": "openai", "config": nobody},
            "embedder": {"provider": "openai", "config": nobody},
            "history_db_path": os.path.join(folder, "history.db"),
        })
        self._memory.embedding_model = Embedding(embed)
        self._doc_of: dict[str, str] = {}

    def place(self, folder: str) -> dict[str, Any]:
        """The settings of its vector store."""
        return {"path": os.path.join(folder, "qdrant"), "on_disk": True, "embedding_model_dims": 384}

    def add(self, sessions: list[list[dict[str, str]]]) -> None:
        for session in sessions:
            messages = [_message(doc) for doc in session]
            labels = {"session": session[0]["session"], "date": session[0]["date"]}
            kept = self._memory.add(messages, **USER, metadata=labels, infer=False)["results"]
            if len(kept) != len(session):
                raise RuntimeError(f"mem0 kept {len(kept)} of {len(session)} messages")
            self._doc_of |= {one["id"]: doc["id"] for one, doc in zip(kept, session, strict=True)}

    def search(self, text: str, k: int) -> list[str]:
        found = self._memory.search(text, filters=USER, top_k=k)["results"]
        return [self._doc_of[one["id"]] for one in found]

    def close(self) -> None:
        self._memory.vector_store.client.close()


def _message(doc: dict[str, str]) -> dict[str, str]:
    role = doc["speaker"] if doc["speaker"] in ("user", "assistant") else "user"
    return {"role": role, "content": doc["said"]}
