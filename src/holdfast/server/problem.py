"""Errors as problem+json (RFC 9457): a stable code, a fix and the request's id; never the text of a request."""

from __future__ import annotations

import json
import os
import traceback
from functools import lru_cache
from shlex import quote
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast import errors
from holdfast.errors import HoldfastError, Template, Term, default_words
from holdfast.safety.validate import redact_or_withhold

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.errors import Wording

MEDIA_TYPE = "application/problem+json"
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
TITLES = {  # status and title of the codes that only HTTP has, beside those of errors.py
    "not_json": (400, "The body is not JSON"),
    "bad_target": (400, "The path of the request is not valid"),
    "no_route": (404, "No such route"),
    "wrong_method": (405, "The route does not support this method"),
    "too_slow": (408, "The request body arrived too slowly"),
    "precondition": (412, "The condition in If-Match or If-None-Match is not met"),
    "too_deep": (413, "The JSON is nested too deeply"),
    "wrong_type": (415, "The route does not accept this content type"),
    "wrong_host": (421, "The Host header is not an allowed name of this server"),
    "wrong_origin": (403, "Requests from this origin are not allowed"),
    "invalid_request": (422, "The request does not match the schema of the route"),
    "reused_key": (422, "The idempotency key was used for a different request"),
    "upstream": (502, "An upstream service failed"),
    "unforeseen": (500, "Unexpected error in the server"),
}
REQUESTS = {  # the HTTP request for each command that a hint may name
    "list": "`GET /v1/notes`",
    "list --trash": "`GET /v1/trash`",
    "get {} --history": "`GET /v1/notes/SCOPE/{}/history`",
    "recall": "`POST /v1/recall`",
    "restore {}": "`POST /v1/notes/SCOPE/{}/restore`",
    "restore {} --as {}": '`POST /v1/notes/SCOPE/{}/restore {{"under": "{}"}}`',
    "purge {}": "`POST /v1/notes/SCOPE/{}/purge`",
    "receipts": "`GET /v1/receipts`",
    "receipts {}": "`GET /v1/receipts/{}`",
    "store TEXT --again": '`POST /v1/notes {{"text": TEXT, "again": true}}`',
    "store --allow-secret WHY": '`POST /v1/notes {{"allow_secret": WHY}}`',
    "review": "`GET /v1/review`",
    "facts": "`GET /v1/facts`",
    "read {}": "`GET /v1/read?path={}`",
    "forget {}": "`DELETE /v1/notes/SCOPE/{}`",
    "embed": "`POST /v1/embed`",
    "agent list": "`GET /agents`",
    "agent add": "`POST /agents`",
    "agent add {}": '`POST /agents {{"name": "{}"}}`',
    "agent rotate {}": "`POST /agents/{}/token`",
    "agent revoke {}": "`DELETE /agents/{}`",
    "agent grants {}": "`GET /agents/{}/grants`",
    "agent grant {} project PATTERN": '`POST /agents/{}/grants {{"kind": "project", "pattern": PATTERN}}`',
    "agent grant {} session PATTERN": '`POST /agents/{}/grants {{"kind": "session", "pattern": PATTERN}}`',
    "agent grant {} repository PATTERN": '`POST /agents/{}/grants {{"kind": "repository", "pattern": PATTERN}}`',
    "role list": "`GET /roles`",
    "audit verify": "`GET /audit/verify`",
    "doctor": "`GET /v1/check`",
    "relate --list {}": "`GET /v1/notes/SCOPE/{}/relations`",
    "relate --remove KEY KIND TARGET": "`DELETE /v1/notes/SCOPE/KEY/relations`",
    "operator list": "`GET /v1/operator/messages`",
    "operator send --to-operator TEXT": '`POST /v1/operator/messages {{"to": "operator", "text": TEXT}}`',
}
PHRASES = {
    "redact": '`{"redact": true}`',
    "recall a query": "`POST /v1/recall`",
    "get a note": "`GET /v1/notes/SCOPE/KEY`",
    "list all notes": "`GET /v1/notes`",
    "view the files": '`POST /v1/files/view {"path": "/memories"}`',
    "config": "it in config.toml",
    "migrate": "Migrate the database",
    "review as a person": "`GET /v1/review` with the operator's token",
    "recall --scope all as a person": '`POST /v1/recall {"scope": "all"}` with the operator\'s token',
    "list --all as a person": "`GET /v1/notes?everywhere=true` with the operator's token",
    "operator send TEXT as a person": "`POST /v1/operator/messages` with the operator's token",
    "operator list as a person": "`GET /v1/operator/messages` with the operator's token",
    "session of turns": "Send X-Holdfast-Session, or name it as `session`",
    "session of scope": "Send X-Holdfast-Session, or use another scope",
}
IN_QUERY = {"redact": "`?redact=true`"}  # for an import: its body holds many notes
REPLAYED_HEADER = "idempotency-replayed"
PARTS = "x-holdfast-hints"  # header: with `parts`, messages are also sent as data, for another interface to word
PURGED_BY_OTHERS = {"detail": "this text was purged", "fix": "Only the operator can allow it again"}


class Problem(Exception):
    """An error that only HTTP has."""

    def __init__(
        self, code: str, detail: str | Template, fix: str | Template = "", headers: dict[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(str(detail))
        self.code, self.detail, self.fix, self.more = code, detail, fix, more
        self.headers = headers or {}

    @property
    def status(self) -> int:
        return TITLES[self.code][0]


class Replayed(Exception):
    """An error instead of a repeated answer: the request was done before, and its answer cannot be given again."""

    def __init__(self, error: HoldfastError | Problem) -> None:
        super().__init__(str(error))
        self.error = error


def kinds() -> dict[str, tuple[int, str]]:
    """Return the status and the title of every code."""
    return {**_of_errors(errors.HoldfastError), **TITLES}


def of(error: BaseException, request_id: str, parts: bool = False) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Return status, body and headers for an error; with `parts` also its messages as data."""
    if isinstance(error, Replayed):
        status, body, headers = of(error.error, request_id, parts)
        return status, {**body, "replayed": True}, {**headers, REPLAYED_HEADER: "true"}
    if isinstance(error, Problem):
        detail = Template(f"line {error.more['line']}: ", error.detail) if "line" in error.more else error.detail
        body = _body(error.status, error.code, title=TITLES[error.code][1], detail=detail, fix=error.fix, request_id=request_id)
        more = {"parts": {**_parts(error.detail, error.fix), "done_before": 0}} if parts else {}
        return error.status, {**body, **error.more, **more}, error.headers
    if isinstance(error, HoldfastError):
        status, wording = error.http_status, in_query if error.item == "line" else in_request
        title = kinds()[error.code][1]
        fix = Template("On the server: ", error.hint) if error.hint and error.operator_fixes else error.hint
        body = _body(status, error.code, title=title, detail=error.whole(), fix=fix, request_id=request_id, wording=wording)
        if error.item == "line":  # of an import
            body["line"] = error.number
        if parts:
            body["parts"] = {**_parts(error.text, fix), "done_before": error.done_before}
        return status, body, _headers(error)
    fix = "Try again. If the error persists, give the request id to the administrator of the server"
    title, detail = TITLES["unforeseen"][1], type(error).__name__
    return 500, _body(500, "unforeseen", title=title, detail=detail, fix=fix, request_id=request_id), {}


def in_request(term: Term) -> str:
    """Return the HTTP words for a term of a message."""
    if term.kind == "command":
        return REQUESTS.get(term.name, "").format(*term.args)
    return PHRASES.get(term.name, "") if term.kind == "phrase" else ""


def in_query(term: Term) -> str:
    """Return the HTTP words for a term of an import's message: its options are in the query."""
    return (term.kind == "phrase" and IN_QUERY.get(term.name)) or in_request(term)


def words_for(headers: Mapping[str, str]) -> Wording:
    """Return the words for a caller: requests, but commands for Holdfast's own client, which may be a command line."""
    return default_words if wants_parts(headers) else in_request


def wants_parts(headers: Mapping[str, str]) -> bool:
    """Return whether a request asks for messages as data, as Holdfast's own client does."""
    return headers.get(PARTS, "").strip() == "parts"


def without_home(body: dict[str, Any], home: str) -> dict[str, Any]:
    """Return a problem without the path of the home and without secrets that a message may quote."""
    errors = {"errors": [without_home(one, home) for one in body["errors"]]} if "errors" in body else {}
    texts = {name: plain(body[name], home) for name in body if name in ("detail", "fix", "pointer", "message")}
    parts = {"parts": _plain_parts(body["parts"], home)} if "parts" in body else {}
    return {**body, **texts, **errors, **parts}


def for_caller(body: dict[str, Any], home: str, is_person: bool) -> dict[str, Any]:
    """Return a problem as the caller may see it: only a person learns which receipt names a purged text."""
    if body["code"] == "purged" and not is_person:
        line = f"line {body['line']}: " if "line" in body else ""
        parts = {"parts": {**body["parts"], **_parts(**PURGED_BY_OTHERS)}} if "parts" in body else {}
        body = {**body, **PURGED_BY_OTHERS, "detail": line + PURGED_BY_OTHERS["detail"], **parts}
    return without_home(body, home)


def plain(text: str, home: str) -> str:
    """Return a message without the path of the home and without secrets, for an operator too: the log has the path."""
    return redact_or_withhold(hide_home(text, home))[0]


def hide_home(text: str, home: str) -> str:
    """Return a text with `HOME` for the path of the home, however it is written."""
    for form in _home_forms(home):
        text = text.replace(form, "HOME")
    return text


@lru_cache(maxsize=8)
def _home_forms(home: str) -> tuple[str, ...]:
    """Return the path of the home as it was given, without links, and as commands and JSON write both; longest first."""
    paths = {home, os.path.realpath(home)}
    forms = {form for path in paths for form in (path, quote(path).strip("'"), json.dumps(path)[1:-1], repr(path)[1:-1])}
    return tuple(sorted(forms, key=len, reverse=True))


def where(error: BaseException) -> list[str]:
    """Return the last frames of an error: file, line and function, and no values."""
    frames = traceback.extract_tb(error.__traceback__)
    return [f"{frame.filename.rpartition('holdfast/')[2]}:{frame.lineno} {frame.name}" for frame in frames[-8:]]


def fixed_headers(media_type: str) -> dict[str, str]:
    """Return the headers of every answer: no cache may store it, and no browser may guess another type."""
    return {"content-type": media_type, "cache-control": "no-store", "x-content-type-options": "nosniff"}


def encode_json(body: Any) -> bytes:
    """Return JSON as UTF-8; an unpaired surrogate becomes a question mark."""
    try:
        return msgspec.json.encode(body)
    except (UnicodeEncodeError, TypeError):
        return _encode(body).encode("utf-8", "replace")


def _headers(error: HoldfastError) -> dict[str, str]:
    if error.http_status == 401:
        return {"www-authenticate": 'Bearer realm="holdfast"'}
    after = getattr(error, "retry_after", None)
    if after is None and error.http_status != 503:
        return {}
    return {"retry-after": str(max(1, round(after or 1)))}


def _body(
    status: int, code: str, *, title: str, detail: str | Template, fix: str | Template, request_id: str,
    wording: Wording = in_request,
) -> dict[str, Any]:  # fmt: skip
    """Return the members of a problem, with commands as HTTP requests: a caller may have no command line."""
    return {
        "type": f"/problems/{code}", "title": title, "status": status, "detail": Template(detail).render(wording),
        "code": code, "fix": Template(fix).render(wording), "request_id": request_id,
    }  # fmt: skip


def _parts(detail: str | Template, fix: str | Template) -> dict[str, list[object]]:
    return {"detail": Template(detail).as_list(), "fix": Template(fix).as_list()}


def _plain_parts(parts: dict[str, Any], home: str) -> dict[str, Any]:
    """Return the messages as data; one that contains a secret or the home becomes a single redacted string."""
    redacted = {}
    for name in ("detail", "fix"):
        text = str(Template.from_list(parts[name]))
        redacted[name] = parts[name] if plain(text, home) == text else [plain(text, home)]
    return {**parts, **redacted}


def _of_errors(kind: type[HoldfastError]) -> dict[str, tuple[int, str]]:
    found = {kind.code: (kind.http_status, (kind.__doc__ or "").split("\n")[0].rstrip("."))}
    for below in kind.__subclasses__():
        if below.__module__ == errors.__name__:  # other modules' own errors never leave them
            found |= _of_errors(below)
    return found
