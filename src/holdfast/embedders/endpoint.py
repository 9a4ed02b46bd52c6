"""An OpenAI-compatible endpoint: the one embedder that sends text to another service, which the user named."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from urllib.parse import SplitResult

from holdfast.base import http_client
from holdfast.base.http_client import HttpClient, RequestFailed, Timeout
from holdfast.embedders.native_lock import NATIVE_LOCK
from holdfast.errors import ConfigError, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.embedders import Vectors

REQUEST_TEXTS = 64
REQUEST_CHARS = 200_000
MAX_CHARS = 8000  # of one text: most models read 512 tokens, and many reject longer texts
MAX_BYTES = 64 * 1024 * 1024
_URL_HINT = "Write it like http://localhost:8080/v1, and put the key into HOLDFAST_EMBED_KEY"
MAX_TRIES = 4
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
RETRY_STATUSES = {408, 425, 429, 500, 502, 503, 504}
_HINT = "Check that the endpoint runs and knows the model, or set another embedder"

_SETTING = re.compile(r"(?P<model>.+)@(?P<url>[A-Za-z]+://.*)", re.S)


class Endpoint:
    """Request embeddings in batches, with a time limit and retries, and check every answer."""

    def __init__(self, model: str, url: str, *, key: str | None = None, seconds: float = 30, tries: int | None = None) -> None:
        self._url = _embeddings_url(url)
        self._model = model
        self._key = http_client.check_token(key, "the endpoint's key", "Correct HOLDFAST_EMBED_KEY")
        self._seconds = seconds
        self._tries = MAX_TRIES if tries is None else tries
        self._dim = 0
        self._lock = threading.Lock()
        self.name = f"endpoint-{model}@{self._url.netloc}{self._url.path}"
        self.setting = f"endpoint:{model}@{self._url.geturl()}"

    @classmethod
    def from_setting(cls, setting: str, *, key: str | None, seconds: float, tries: int | None = None) -> Endpoint:
        """Open `MODEL@URL`; the name of the model may contain an @."""
        match = _SETTING.fullmatch(setting)
        if not match:
            raise ConfigError(
                "an endpoint is written endpoint:MODEL@URL", "For example endpoint:bge-m3@http://localhost:8080/v1"
            )
        return cls(match["model"], match["url"], key=key, seconds=seconds, tries=tries)

    @classmethod
    def reopen(cls, setting: str, current: list[Endpoint], seconds: float) -> Endpoint:
        """Open an endpoint of an earlier setting; raise ConfigError unless it is on this machine or on the host set now."""
        older = cls.from_setting(setting, key=None, seconds=seconds, tries=1)
        same = next((endpoint for endpoint in current if endpoint._url[:2] == older._url[:2]), None)
        if same is None and not _is_this_machine(older._url.hostname or ""):
            raise ConfigError("the endpoint is no longer configured", "Set it again")
        older._key = same._key if same else ""
        return older

    def ping(self) -> None:
        """Request one vector, to see whether the endpoint answers."""
        self._request(["how long is a vector"])

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
        rows[filled] = np.asarray(found, np.float32)
        return normalise(rows)

    questions = passages

    def _request(self, texts: list[str]) -> list[list[float]]:
        body = json.dumps({"model": self._model, "input": texts, "encoding_format": "float"}).encode()
        return self._parse_response(self._post(body), len(texts))

    def _post(self, body: bytes) -> bytes:
        """Return the body of an answer with status 200; retry what may be temporary."""
        reason = ""
        for attempt in range(1, self._tries + 1):
            pause = min(FIRST_PAUSE * 2 ** (attempt - 1), LONGEST_PAUSE)
            try:
                status, wait, data = self._post_once(body)
            except RequestFailed as error:
                reason = error.named_reason
            else:
                if status == 200:
                    return data
                reason = f"status {status}"
                if status not in RETRY_STATUSES:
                    raise self._error(reason, _status_hint(status))
                pause = pause if wait is None else min(wait, LONGEST_PAUSE)
            if attempt < self._tries:
                time.sleep(pause)
        raise self._error(reason if self._tries == 1 else f"{reason}, {self._tries} times", _HINT)

    def _post_once(self, body: bytes) -> tuple[int, float | None, bytes]:
        """Send one request; return the status, the seconds that the server asks us to wait, and the body."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        timeout = Timeout(connect=self._seconds, read=self._seconds, total=self._seconds)
        with HttpClient(self._url, timeout, max_bytes=MAX_BYTES) as client:
            response = client.request("POST", self._url.path, body, headers)
        return response.status, _retry_seconds(response.headers.get("retry-after")), response.data

    def _parse_response(self, data: bytes, count: int) -> list[list[float]]:
        """Return the vectors of an answer in the order of the texts; raise Trouble if the answer is not valid."""
        try:
            items = json.loads(data)["data"]
            rows = [item["embedding"] for item in sorted(items, key=lambda item: int(item["index"]))]
            positions = [int(item["index"]) for item in items]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise self._error("the answer is not a list of embeddings", _HINT) from None
        if sorted(positions) != list(range(count)):
            raise self._error(f"{len(positions)} vectors were returned for {count} texts", _HINT)
        if not all(isinstance(row, list) and row and all(map(_is_number, row)) for row in rows):
            raise self._error("a vector contains a value that is not a finite number", _HINT)
        with NATIVE_LOCK, self._lock:
            self._dim = self._dim or len(rows[0])
            if wrong := next((len(row) for row in rows if len(row) != self._dim), 0):
                raise self._error(f"a vector has {wrong} numbers, previous ones {self._dim}", _HINT)
        return rows

    def _error(self, reason: str, fix: str) -> Trouble:
        return Trouble(f"the embedding endpoint {self._url.netloc} failed: {reason}", fix)


def _embeddings_url(url: str) -> SplitResult:
    """Return the URL that embeddings are requested from."""
    parts = http_client.parse_url(url, "the embedding endpoint", _URL_HINT)
    path = parts.path.rstrip("/") or "/v1"
    return parts._replace(path=path if path.endswith("/embeddings") else f"{path}/embeddings")


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


def _retry_seconds(header: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks us to wait; it holds a number of seconds or a date."""
    if not header:
        return None
    try:
        wait = float(header)
    except ValueError:
        wait = _seconds_until(header)
    return max(wait, 0.0) if math.isfinite(wait) else None


def _seconds_until(date: str) -> float:
    from email.utils import mktime_tz, parsedate_tz

    parsed = parsedate_tz(date)
    return mktime_tz(parsed) - time.time() if parsed else math.nan


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _status_hint(status: int) -> str:
    if status in (401, 403):
        return "Set HOLDFAST_EMBED_KEY to a key that the endpoint accepts"
    if status in (404, 405) or 300 <= status < 400:
        return "Check the URL and the model of the setting: endpoint:MODEL@URL"
    return _HINT
