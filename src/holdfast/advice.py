"""One advice for two kinds of readers: as a command where there is a command line, as a request where there is only HTTP."""

from __future__ import annotations

import re

_SAME = (  # the same said both ways; X and Y are names
    ("`holdfast list`", "`GET /v1/notes`"),
    ("`holdfast list --trash`", "`GET /v1/trash`"),
    ("`holdfast get X --history`", "`GET /v1/notes/SCOPE/X/history`"),
    ("`holdfast recall`", "`POST /v1/recall`"),
    ("`holdfast restore X`", "`POST /v1/notes/SCOPE/X/restore`"),
    ("`holdfast restore X --as Y`", '`POST /v1/notes/SCOPE/X/restore {"under": "Y"}`'),
    ("`holdfast purge X`", "`POST /v1/notes/SCOPE/X/purge`"),
    ("`holdfast receipts`", "`GET /v1/receipts`"),
    ("`holdfast receipts X`", "`GET /v1/receipts/X`"),
    ("`holdfast store TEXT --again`", '`POST /v1/notes {"text": TEXT, "again": true}`'),
    ("`holdfast store --allow-secret WHY`", '`POST /v1/notes {"allow_secret": WHY}`'),
    ("`--redact` (redact=True)", '`{"redact": true}`'),
    ('`holdfast review` in a terminal of their own, or Memory(origin="user")', "`GET /v1/review` with the operator's token"),
    (
        '`holdfast recall --scope all` in a terminal of their own, or Memory(origin="user")',
        '`POST /v1/recall {"scope": "all"}` with the operator\'s token',
    ),
    ("`holdfast review`", "`GET /v1/review`"),
    ("`holdfast agent list`", "`GET /agents`"),
    ("`holdfast agent add`", "`POST /agents`"),
    ("`holdfast agent add X`", '`POST /agents {"name": "X"}`'),
    ("`holdfast agent rotate X`", "`POST /agents/X/token`"),
    ("`holdfast agent revoke X`", "`DELETE /agents/X`"),
    ("`holdfast role list`", "`GET /roles`"),
    ("`holdfast audit verify`", "`GET /audit/verify`"),
    ("`holdfast embed`", "`POST /v1/embed`"),
    ("`holdfast reindex`", "`POST /v1/reindex`"),
    ("`holdfast doctor`", "`GET /v1/check`"),
    (
        "Give one: log(turns, session=...), Memory(session=...), --session or HOLDFAST_SESSION",
        "Send X-Holdfast-Session, or name it as `session`",
    ),
    ("Give one: Memory(session=...), --session or HOLDFAST_SESSION", "Send X-Holdfast-Session, or use another scope"),
)
_IN_QUERY = (("`--redact` (redact=True)", "`?redact=true`"),)  # where what is sent is many, and each of them has fields
_PLACE = re.compile(r"\b[XY]\b(?!-)")  # and no header


def as_request(text: str) -> str:
    """The text with requests in the place of commands."""
    return _said(text, _REQUESTS) if "holdfast " in text or "--" in text else text


def as_query(text: str) -> str:
    """The text with fields of the query in the place of options that are meant for all that is sent at once."""
    return _said(text, _FIELDS)


def as_command(text: str) -> str:
    """The text with commands in the place of requests."""
    return _said(text, _COMMANDS) if any(sign in text for sign in ("/", "{", "?", "X-")) else text


def _said(text: str, pairs: list[tuple[re.Pattern[str], str]]) -> str:
    for found, instead in pairs:
        text = found.sub(instead, text)
    return text


def _pairs(same: tuple[tuple[str, str], ...], way: int) -> list[tuple[re.Pattern[str], str]]:
    """Patterns that find what is said one way, and what says it the other way."""
    made = []
    for pair in same:
        found = r"([^\s`/\"]+)".join([re.escape(part) for part in _PLACE.split(pair[way])])
        places = iter((r"\1", r"\2"))
        made.append((re.compile(found), _PLACE.sub(lambda _: next(places), pair[1 - way])))  # noqa: B023
    return made


_REQUESTS, _FIELDS, _COMMANDS = _pairs(_SAME, 0), _pairs(_IN_QUERY, 0), _pairs((*_SAME, *_IN_QUERY), 1)
