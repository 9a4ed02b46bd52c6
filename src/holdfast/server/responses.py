"""Which statuses, problems and headers a route can answer with, derived from its attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.models import Note, Stored
from holdfast.server import problem

if TYPE_CHECKING:
    from holdfast.server.route import Route

# Codes of problems, by the step of the pipeline that raises them.
_BEFORE_TOKEN = ("wrong_host", "wrong_origin", "invalid_request", "unforeseen")
_PATH = ("bad_target",)  # only what stands for a field of the path can be encoded in a wrong way
_TOKEN = (
    "unauthenticated", "denied", "too_many", "quota_exceeded", "unrecorded", "busy", "unsure", "trouble", "damaged", "config",
    "disk",
)  # fmt: skip
_BODY = ("not_json", "too_slow", "too_large", "too_deep", "wrong_type")
_ARGUMENTS = ("usage", "invalid_key", "invalid_path", "no_scope")
_TEXT = ("refused", "invalid_text", "secret", "purged", "disabled")
_ONCE = ("contended", "conflict", "reused_key")
_CONDITION = ("precondition",)

RETRY_STATUSES = (409, 429, 502, 503)  # whose answers may have the header Retry-After
NOT_MODIFIED = 304


def problem_codes(route: Route) -> tuple[str, ...]:
    """Return the codes of all problems that the route can answer with."""
    codes = [*_BEFORE_TOKEN, *route.problems]
    codes += _PATH if route.path_fields else ()
    if route.action:
        codes += _TOKEN
        codes += _ARGUMENTS if route.fields else ()
    if route.reads is not None:
        codes += _BODY
    if route.replay is not None:  # every route that writes
        codes += [*_ONCE, *_TEXT]
    if "made_from" in [*route.fields, *(line_fields(route))]:  # it may name a note or a turn
        codes.append("not_found")
    if takes_precondition(route):
        codes += _CONDITION
    return tuple(sorted(set(codes)))


def line_fields(route: Route) -> tuple[str, ...]:
    """Return the names of the fields in a line of an NDJSON body."""
    return getattr(route.line, "__struct_fields__", ())


def problem_statuses(route: Route) -> dict[int, tuple[str, ...]]:
    """Return the codes by their statuses, the lowest status first."""
    kinds = problem.kinds()
    found: dict[int, tuple[str, ...]] = {}
    for code in problem_codes(route):
        status = kinds[code][0]
        found[status] = (*found.get(status, ()), code)
    return dict(sorted(found.items()))


def success_statuses(route: Route) -> tuple[int, ...]:
    """Return the statuses of answers that have the schema of the route."""
    return tuple(sorted({route.status, *([route.other_status] if route.other_status else [])}))


def all_statuses(route: Route) -> tuple[int, ...]:
    """Return every status that the route can answer with."""
    unchanged = [NOT_MODIFIED] if takes_if_changed(route) else []
    return tuple(sorted({*success_statuses(route), *unchanged, *problem_statuses(route)}))


def takes_precondition(route: Route) -> bool:
    """Return whether the route changes a note only if that is as If-Match or If-None-Match says."""
    return route.has_etag and route.method != "GET"


def takes_if_changed(route: Route) -> bool:
    """Return whether the route answers 304 for the version that If-None-Match names."""
    return route.has_etag and route.method == "GET"


def sends_etag(route: Route) -> bool:
    """Return whether the answer is about one note, whose version the ETag names."""
    return route.answers in (Note, Stored)
