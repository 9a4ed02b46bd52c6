"""Requests to a server that runs a model for us: JSON with a time limit, retries, and a key that is sent nowhere else."""

from __future__ import annotations

import json
import math
import re
import time

from holdfast.base import http_client
from holdfast.base.http_client import HttpClient, RequestFailed, Timeout
from holdfast.errors import ConfigError, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
    from urllib.parse import SplitResult

MAX_BYTES = 64 * 1024 * 1024
MAX_TRIES = 4
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
RETRY_STATUSES = {408, 425, 429, 500, 502, 503, 504}

_SETTING = re.compile(r"(?P<model>.+)@(?P<url>[A-Za-z]+://.*)", re.S)


class ModelServer:
    """One address of a model server. Subclasses say what it is called in messages, make requests and check the answers."""

    title = ""  # such as "the embedding endpoint"
    path = ""  # of the requests, added to that of the setting, such as "/embeddings"
    key_variable = ""  # the environment variable of the key
    fix = ""  # what to do if the server fails

    def __init__(self, model: str, url: str, *, key: str | None, seconds: float, tries: int | None = None) -> None:
        self._url = self._complete_url(url)
        self._model = model
        self._key = http_client.check_token(key, "the endpoint's key", f"Correct {self.key_variable}")
        self._seconds = seconds
        self._tries = MAX_TRIES if tries is None else tries
        self.setting = f"endpoint:{model}@{self._url.geturl()}"

    def _complete_url(self, url: str) -> SplitResult:
        """Return the URL that requests are sent to."""
        hint = f"Write it like http://localhost:8080/v1, and put the key into {self.key_variable}"
        parts = http_client.parse_url(url, self.title, hint)
        path = parts.path.rstrip("/") or "/v1"
        return parts._replace(path=path if path.endswith(self.path) else f"{path}{self.path}")

    def _post(self, request: dict[str, Any]) -> bytes:
        """Return the body of an answer with status 200; retry what may be temporary."""
        body, reason = json.dumps(request).encode(), ""
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
                    raise self._error(reason, self._status_hint(status))
                pause = pause if wait is None else min(wait, LONGEST_PAUSE)
            if attempt < self._tries:
                time.sleep(pause)
        raise self._error(reason if self._tries == 1 else f"{reason}, {self._tries} times")

    def _post_once(self, body: bytes) -> tuple[int, float | None, bytes]:
        """Send one request; return the status, the seconds that the server asks us to wait, and the body."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        timeout = Timeout(connect=self._seconds, read=self._seconds, total=self._seconds)
        with HttpClient(self._url, timeout, max_bytes=MAX_BYTES) as client:
            response = client.request("POST", self._url.path, body, headers)
        return response.status, _retry_seconds(response.headers.get("retry-after")), response.data

    def _status_hint(self, status: int) -> str:
        if status in (401, 403):
            return f"Set {self.key_variable} to a key that the endpoint accepts"
        if status in (404, 405) or 300 <= status < 400:
            return "Check the URL and the model of the setting: endpoint:MODEL@URL"
        return self.fix

    def _error(self, reason: str, fix: str = "") -> Trouble:
        return Trouble(f"{self.title} {self._url.netloc} failed: {reason}", fix or self.fix)


def split_address(setting: str, example: str) -> tuple[str, str]:
    """Return model and URL of `MODEL@URL`; the name of the model may contain an @."""
    match = _SETTING.fullmatch(setting)
    if not match:
        raise ConfigError("an endpoint is written endpoint:MODEL@URL", f"For example {example}")
    return match["model"], match["url"]


def is_number(value: Any) -> bool:
    """Return whether a value of an answer is a finite number."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an integer that is too large for a float
        return False


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
