"""An OpenAI-compatible endpoint: the one embedder that sends text to another service, which the user named."""

from __future__ import annotations

import json
import threading

from holdfast.embedders.model_server import ModelServer, is_number, split_address
from holdfast.embedders.native_lock import NATIVE_LOCK
from holdfast.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.embedders import Vectors

REQUEST_TEXTS = 64
REQUEST_CHARS = 200_000
MAX_CHARS = 8000  # of one text: most models read 512 tokens, and many reject longer texts


class Endpoint(ModelServer):
    """Request embeddings in batches, with a time limit and retries, and check every answer."""

    title, path, key_variable = "the embedding endpoint", "/embeddings", "HOLDFAST_EMBED_KEY"
    fix = "Check that the endpoint runs and knows the model, or set another embedder"

    def __init__(self, model: str, url: str, *, key: str | None = None, seconds: float = 30, tries: int | None = None) -> None:
        super().__init__(model, url, key=key, seconds=seconds, tries=tries)
        self._dim = 0
        self._lock = threading.Lock()
        self.name = f"endpoint-{model}@{self._url.netloc}{self._url.path}"

    @classmethod
    def from_setting(cls, setting: str, *, key: str | None, seconds: float, tries: int | None = None) -> Endpoint:
        """Open `MODEL@URL`."""
        model, url = split_address(setting, "endpoint:bge-m3@http://localhost:8080/v1")
        return cls(model, url, key=key, seconds=seconds, tries=tries)

    @classmethod
    def reopen(cls, setting: str, current: list[Endpoint], seconds: float) -> Endpoint:
        """Open an endpoint of an earlier setting; raise ConfigError unless it is on this machine or on the host set now."""
        older = cls.from_setting(setting, key=None, seconds=seconds, tries=1)
        same = next((endpoint for endpoint in current if endpoint._url[:2] == older._url[:2]), None)
        if same is None and not _is_this_machine(older._url.hostname or ""):
            raise ConfigError("the endpoint is no longer configured", "Set it again")
        older._key = same._key if same else ""
        return older

    @property
    def dim(self) -> int:
        """Return the length of a vector, which the first answer shows."""
        return self._dim or int(self.questions(["how long is a vector"]).shape[1])

    def passages(self, texts: list[str]) -> Vectors:
        """Return one row per text."""
        import numpy as np

        from holdfast.embedders.vectors import normalise

        filled = [position for position, text in enumerate(texts) if text and not text.isspace()]
        if not filled:
            return np.zeros((len(texts), self.dim), np.float32)
        requests = _split_requests([texts[position][:MAX_CHARS] for position in filled])
        found = [row for request in requests for row in self._request(request)]
        rows = np.zeros((len(texts), self._dim), np.float32)
        with np.errstate(over="ignore"):
            rows[filled] = np.asarray(found, np.float32)
        if not np.isfinite(rows).all() or not rows[filled].any(axis=1).all():
            raise self._error("a vector has numbers that are too large, or only zeros")
        return normalise(rows)

    questions = passages

    def _request(self, texts: list[str]) -> list[list[float]]:
        return self._parse_response(self._post({"model": self._model, "input": texts, "encoding_format": "float"}), len(texts))

    def _parse_response(self, data: bytes, count: int) -> list[list[float]]:
        """Return the vectors of an answer in the order of the texts; raise Trouble if the answer is not valid."""
        try:
            items = json.loads(data)["data"]
            rows = [item["embedding"] for item in sorted(items, key=lambda item: int(item["index"]))]
            positions = [int(item["index"]) for item in items]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise self._error("the answer is not a list of embeddings") from None
        if sorted(positions) != list(range(count)):
            raise self._error(f"{len(positions)} vectors were returned for {count} texts")
        if not all(isinstance(row, list) and row and all(map(is_number, row)) for row in rows):
            raise self._error("a vector contains a value that is not a finite number")
        with NATIVE_LOCK, self._lock:
            self._dim = self._dim or len(rows[0])
            if wrong := next((len(row) for row in rows if len(row) != self._dim), 0):
                raise self._error(f"a vector has {wrong} numbers, previous ones {self._dim}")
        return rows


def _is_this_machine(host: str) -> bool:
    """Return whether a host is a loopback address."""
    import ipaddress

    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _split_requests(texts: list[str]) -> list[list[str]]:
    """Split the texts into requests of a bounded size."""
    parts: list[list[str]] = []
    size = 0
    for text in texts:
        size += len(text)
        if not parts or len(parts[-1]) == REQUEST_TEXTS or size > REQUEST_CHARS:
            parts.append([])
            size = len(text)
        parts[-1].append(text)
    return parts
