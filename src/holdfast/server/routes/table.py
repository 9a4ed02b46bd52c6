"""Every route in one table, and how a path finds its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.base.record import Record
from holdfast.errors import Denied, HoldfastError
from holdfast.server import openapi, problem
from holdfast.server.problem import Problem
from holdfast.server.route import NOWHERE, Reply, Route
from holdfast.server.routes import (
    admin,
    agents,
    bulk,
    dispatch,
    done,
    facts,
    files,
    github_reviews,
    history,
    notes,
    purges,
    recall,
    scaffolds,
    trust,
)
from holdfast.server.routes import (
    gateway_memory as pairs,
)
from holdfast.server.schema import answer, text

if TYPE_CHECKING:
    from holdfast.server.app import App
    from holdfast.server.route import Asked

_STATUS = answer(status={"type": "string"})


def metrics(asked: Asked) -> Reply:
    if asked.gateway.config_of(asked.caller) != asked.gateway.config():
        raise Denied("what this process counts is about every tenant", "Whoever runs it asks with a token of their own")
    return Reply(asked.gateway.metrics.text(asked.gateway.gate.unrecorded).encode())


def _nothing(asked: Asked) -> None:
    """What everybody may ask is answered by OPEN, which needs no caller."""


_OPEN_ROUTES = (
    Route("GET", "/healthz", "", _nothing, "whether the process lives", answers=_STATUS, shows={"status": "ok"}),
    Route("GET", "/readyz", "", _nothing, "whether it can answer: its ledger can be read", answers=_STATUS),
    Route("GET", "/openapi.json", "", _nothing, "this API, as OpenAPI 3.1", answers={"type": "object"}),
    Route(
        "GET", "/problems/{code}", "", _nothing, "what a problem's type means", query={"code": text("The code.")},
        answers=answer(code={"type": "string"}, status={"type": "integer"}, title={"type": "string"}),
    ),
)  # fmt: skip
_METRICS = Route(
    "GET", "/metrics", "metrics.read", metrics, "counts and times, as Prometheus reads them", NOWHERE, kind="text/plain",
    answers={"type": "string"},
)  # fmt: skip

ROUTES: tuple[Route, ...] = (
    *notes.ROUTES, *purges.ROUTES, *trust.ROUTES, *recall.ROUTES, *facts.ROUTES, *history.ROUTES, *files.ROUTES,
    *scaffolds.ROUTES, *bulk.ROUTES, *admin.ROUTES, *pairs.ROUTES, *dispatch.ROUTES, *github_reviews.ROUTES, *done.ROUTES,
    *agents.ROUTES, _METRICS, *_OPEN_ROUTES,
)  # fmt: skip


def healthz(app: App) -> Reply:
    return Reply({"status": "ok"})


def readyz(app: App) -> Reply:
    """503 while the ledger cannot be read, so that a balancer sends its callers elsewhere."""
    try:
        app.gateway.check()
    except HoldfastError as error:
        return Reply({"status": error.code}, 503, {"retry-after": "1"})
    return Reply({"status": "ok"})


def document(app: App) -> Reply:
    return Reply(openapi.document(ROUTES))


def meaning(app: App, code: str) -> Reply:
    known = problem.kinds().get(code)
    if known is None:
        raise Problem("no_route", "there is no such problem", "Ask for the `type` that an answer has, as it is")
    return Reply({"code": code, "status": known[0], "title": known[1]})


OPEN: dict[str, Callable[..., Reply]] = {
    "/healthz": healthz, "/readyz": readyz, "/openapi.json": document, "/problems/{code}": meaning,
}  # fmt: skip


class Found(Record):
    """The route of a request, or why there is none: which methods the path knows."""

    route: Route | None
    places: dict[str, str]
    methods: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.route.name if self.route else ""

    def refusal(self) -> Problem:
        if not self.methods:
            return Problem("no_route", "there is nothing at this path", "See /openapi.json for what there is")
        allowed = ", ".join(self.methods)
        return Problem("wrong_method", f"this path knows {allowed}", f"Use {allowed}", {"allow": allowed})


class Routes:
    """Finds the route: by its whole path where that has no names in it, else by its parts."""

    def __init__(self, routes: tuple[Route, ...] = ROUTES) -> None:
        self._plain: dict[str, dict[str, Route]] = {}
        self._named: dict[int, list[tuple[list[str], dict[str, Route]]]] = {}
        for route in routes:
            self._methods(route.path)[route.method] = route

    def _methods(self, path: str) -> dict[str, Route]:
        if "{" not in path:
            return self._plain.setdefault(path, {})
        parts = path.split("/")
        known = self._named.setdefault(len(parts), [])
        for there, methods in known:
            if there == parts:
                return methods
        known.append((parts, {}))
        return known[-1][1]

    def find(self, method: str, path: str) -> Found:
        places: dict[str, str] = {}
        methods = self._plain.get(path) or self._by_parts(path.split("/"), places)
        route = methods.get(method)
        return Found(route, places, () if route else tuple(methods))

    def _by_parts(self, given: list[str], places: dict[str, str]) -> dict[str, Route]:
        for parts, methods in self._named.get(len(given), ()):
            pairs = list(zip(parts, given, strict=True))
            if all(part == one or (part.startswith("{") and one) for part, one in pairs):
                places.update({part[1:-1]: one for part, one in pairs if part.startswith("{")})
                return methods
        return {}


def group_of(routes: tuple[Route, ...]) -> dict[str, list[Route]]:
    """The routes by the noun they are about."""
    groups: dict[str, list[Route]] = {}
    for route in routes:
        groups.setdefault(route.group, []).append(route)
    return groups


