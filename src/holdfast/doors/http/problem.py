"""What went wrong, as problem+json (RFC 9457): a stable code, what to do, and the request's id; never a request's text."""

from __future__ import annotations

import json
import traceback
from typing import Any

from holdfast import advice, errors
from holdfast.errors import HoldfastError
from holdfast.guard import withheld

KIND = b"application/problem+json"
_written = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
TITLES = {  # what only HTTP can get wrong, beside the errors of errors.py
    "not_json": (400, "The body is not JSON"),
    "no_route": (404, "There is no such route"),
    "wrong_method": (405, "The route knows other methods"),
    "too_slow": (408, "The body took too long to come"),
    "precondition": (412, "The note is not as If-Match or If-None-Match says"),
    "too_deep": (413, "The JSON is nested too deeply"),
    "wrong_type": (415, "The body is of another kind than the route reads"),
    "wrong_host": (421, "The request names a host that this server does not go by"),
    "wrong_origin": (403, "A page of that origin may not ask"),
    "invalid_request": (422, "The request does not fit the route's schema"),
    "reused_key": (422, "The idempotency key came with another request before"),
    "upstream": (502, "The service behind this one failed"),
    "unforeseen": (500, "Something failed that should not have"),
}
_HIS_TO_MEND = ("config", "damaged", "disabled", "disk", "trouble")  # of who runs the gateway, whoever asks
SOMEBODY_PURGED = {"detail": "this says what was purged", "fix": "Whoever runs this gateway can take it back"}


class Problem(Exception):
    """A refusal that is HTTP's own."""

    def __init__(self, code: str, detail: str, fix: str = "", headers: dict[str, str] | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.code, self.detail, self.fix, self.more = code, detail, fix, more
        self.headers = headers or {}

    @property
    def status(self) -> int:
        return TITLES[self.code][0]


def kinds() -> dict[str, tuple[int, str]]:
    """Every code with its status and its title."""
    return {**_of_errors(errors.HoldfastError), **TITLES}


def of(error: BaseException, request_id: str) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Status, body and headers for whatever was raised."""
    if isinstance(error, Problem):
        body = _body(error.status, error.code, TITLES[error.code][1], error.detail, error.fix, request_id)
        return error.status, {**body, **error.more}, error.headers
    if isinstance(error, HoldfastError):
        status = error.http_status
        title = (type(error).__doc__ or "").split("\n")[0].rstrip(".")
        line = {"line": error.number} if error.counted == "line" else {}  # of an import
        body = _body(status, error.code, title, error.message, error.fix, request_id)
        return status, {**body, **line}, _headers(error)
    fix = "Try again; if it stays, give the request id to whoever runs this server"
    return 500, _body(500, "unforeseen", TITLES["unforeseen"][1], type(error).__name__, fix, request_id), {}


def without_home(body: dict[str, Any], home: str) -> dict[str, Any]:
    """The same where anybody may read it: where the home stands is nobody's business, and a message may quote what was sent."""
    errors = {"errors": [without_home(one, home) for one in body["errors"]]} if "errors" in body else {}
    told = {name: plain(body[name], home) for name in body if name in ("detail", "fix", "pointer", "message")}
    return {**body, **told, **errors}


def for_caller(body: dict[str, Any], home: str, is_person: bool) -> dict[str, Any]:
    """The same; and whose receipt it is, is not every agent's to know. Which line says what was purged, is."""
    if body["code"] == "purged" and not is_person:
        line = f"line {body['line']}: " if "line" in body else ""
        body = {**body, **SOMEBODY_PURGED, "detail": line + SOMEBODY_PURGED["detail"]}
    return without_home(body, home)


def plain(said: str, home: str) -> str:
    """One such text."""
    return withheld(said.replace(home, "HOME"))[0]


def where(error: BaseException) -> list[str]:
    """The frames it came through: file, line and function, and nothing that was being worked on."""
    frames = traceback.extract_tb(error.__traceback__)
    return [f"{frame.filename.rpartition('holdfast/')[2]}:{frame.lineno} {frame.name}" for frame in frames[-8:]]


def encoded(body: Any) -> bytes:
    """JSON that anything can read; half a character is shown as unknown."""
    return _written(body).encode("utf-8", "replace")


def _headers(error: HoldfastError) -> dict[str, str]:
    if error.http_status == 401:
        return {"www-authenticate": 'Bearer realm="holdfast"'}
    after = getattr(error, "retry_after", None)
    if after is None and error.http_status != 503:
        return {}
    return {"retry-after": str(max(1, round(after or 1)))}


def _body(status: int, code: str, title: str, detail: str, fix: str, request_id: str) -> dict[str, Any]:
    """Whoever asks over HTTP may have no command line, and no hands on the gateway's machine."""
    his = fix and code in _HIS_TO_MEND and not fix.startswith("Try again")  # which anybody can
    whose = "Whoever runs this gateway: " if his else ""
    told, todo = advice.as_request(detail), whose + advice.as_request(fix)
    said = {"type": f"/problems/{code}", "title": title, "status": status, "detail": told, "code": code}
    return {**said, "fix": todo, "request_id": request_id}


def _of_errors(kind: type[HoldfastError]) -> dict[str, tuple[int, str]]:
    found = {kind.code: (kind.http_status, (kind.__doc__ or "").split("\n")[0].rstrip("."))}
    for below in kind.__subclasses__():
        if below.__module__ == errors.__name__:  # a room may have one of its own, which never leaves it
            found |= _of_errors(below)
    return found
