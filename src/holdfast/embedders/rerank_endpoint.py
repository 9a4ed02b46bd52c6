"""A rerank endpoint: the one reranker that sends text to another service, which the user named.

The request is that of Cohere and Jina, which vLLM, llama.cpp and others offer too. Scores of some of them are from 0 to 1, of
others any number.
"""

from __future__ import annotations

import json

from holdfast.embedders.model_server import ModelServer, is_number, split_address
from holdfast.embedders.rerankers import logit_to_relevance

_SECONDS = 5.0  # a question waits for the answer
_TRIES = 1


class RerankEndpoint(ModelServer):
    """Request the relevance of passages once, with a time limit, and check the answer."""

    title, path, key_variable = "the rerank endpoint", "/rerank", "HOLDFAST_RERANK_KEY"
    fix = "Check that the endpoint runs and knows the model, or set another reranker"
    english_only = False

    @classmethod
    def from_setting(cls, setting: str, *, key: str | None, seconds: float = _SECONDS, tries: int = _TRIES) -> RerankEndpoint:
        """Open `MODEL@URL`."""
        model, url = split_address(setting, "endpoint:bge-reranker-v2-m3@http://localhost:8080/v1")
        return cls(model, url, key=key, seconds=seconds, tries=tries)

    def relevance(self, question: str, passages: list[str]) -> list[float]:
        """Return for each passage how well it answers the question, from 0 to 1.

        Where a score is outside of 0 to 1, all of them are taken as logits; the order is the endpoint's either way.
        """
        if not passages:
            return []
        request = {"model": self._model, "query": question, "documents": passages, "top_n": len(passages)}
        scores = self._parse_response(self._post(request), len(passages))
        return scores if all(0 <= score <= 1 for score in scores) else [logit_to_relevance(score) for score in scores]

    def _parse_response(self, data: bytes, count: int) -> list[float]:
        """Return the scores of an answer in the order of the passages; raise Trouble if the answer is not valid."""
        try:
            scores = [(item["index"], item["relevance_score"]) for item in json.loads(data)["results"]]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise self._error("the answer is not a list of results") from None
        if not all(type(index) is int for index, _ in scores) or sorted([index for index, _ in scores]) != list(range(count)):
            raise self._error(f"the {len(scores)} results are not those of the {count} passages")
        if not all(is_number(score) for _, score in scores):
            raise self._error("a score is not a finite number")
        return [float(score) for _, score in sorted(scores)]
