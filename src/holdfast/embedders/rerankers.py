"""Rerankers: models that read a question and a passage together and say how well the passage answers, loaded when first used.

An embedder reads each text alone, so it can read all passages in advance. A reranker must read each pair when the question is
asked. That is slow and more exact, so it only reads the best passages of a search.
"""

from __future__ import annotations

from math import tanh

from holdfast.embedders import MODEL
from holdfast.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Reranker(Protocol):
        """A model that judges passages for a question."""

        @property
        def setting(self) -> str:
            """Return the setting that opens it again, without keys and passwords."""

        @property
        def english_only(self) -> bool:
            """Return whether it only understands English."""

        def relevance(self, question: str, passages: list[str]) -> list[float]:
            """Return for each passage how well it answers the question, from 0 to 1."""


NONE = "none"
CHOICES = {
    "model:NAME": "a reranker that `holdfast models install` has fetched",
    "endpoint:MODEL@URL": "a rerank endpoint",
    "onnx:FOLDER": "an ONNX cross-encoder in a folder",
}

_installed: dict[tuple[str, int], Reranker] = {}  # by folder and threads, so that a process loads each of them once


def open_reranker(setting: str = NONE, *, key: str | None = None, threads: int = 1) -> Reranker | None:
    """Return the reranker that a setting names, or None; nothing is loaded and no request sent before the first question."""
    kind, _, rest = setting.strip().partition(":")
    kind, rest = kind.strip().lower(), rest.strip()
    if kind == NONE and not rest:
        return None
    if f"{kind}:" == MODEL:
        return open_installed(rest.lower(), threads)
    if kind == "onnx":
        from holdfast.embedders.cross_encoder import CrossEncoder

        return CrossEncoder(rest, threads)
    if kind == "endpoint":
        from holdfast.embedders.rerank_endpoint import RerankEndpoint

        return RerankEndpoint.from_setting(rest, key=key)
    raise ConfigError(f"unknown kind of reranker {kind!r}", f"Choose {', '.join((NONE, *CHOICES))}")


def open_installed(name: str, threads: int = 1) -> Reranker:
    """Return the installed reranker of a name, the same object each time."""
    from holdfast.embedders.installed import InstalledReranker

    reranker = InstalledReranker(name, threads)
    return _installed.setdefault((reranker.folder, threads), reranker)


def logit_to_relevance(logit: float) -> float:
    """Return sigmoid(logit / 2), from 0 to 1: half the slope, because models are surer than they should be."""
    return (1 + tanh(logit / 4)) / 2
