"""Metrics, and the routes that need no token: health, readiness, the OpenAPI document and the meaning of a problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from holdfast.errors import Denied
from holdfast.server import gauges, metrics, openapi, problem
from holdfast.server.models import RequestModel, ResponseModel
from holdfast.server.problem import Problem
from holdfast.server.route import AuthorizedRequest, Reply, Route

if TYPE_CHECKING:
    from starlette.requests import Request


class GetProblem(RequestModel, kw_only=True):
    code: Annotated[str, Meta(description="The code.", pattern="^[a-z_]+$")]


class Health(ResponseModel, kw_only=True):
    status: str


class ProblemMeaning(ResponseModel, kw_only=True):
    code: str
    status: int
    title: str


def get_metrics(request: AuthorizedRequest, params: RequestModel) -> Reply:
    gateway = request.gateway
    if gateway.config_of(request.caller) != gateway.config():
        raise Denied("what this process counts is about every tenant", "Whoever runs it asks with a token of their own")
    return Reply(body=gauges.render(gateway).encode(), headers={"content-type": metrics.MEDIA_TYPE})


async def get_health(request: Request) -> Health:
    return Health(status="ok")


async def get_readiness(request: Request) -> Any:
    """Answer 503 while no token can be looked up or no memory written, so that a load balancer sends requests elsewhere."""
    pipeline = request.app.state.pipeline
    problems = await pipeline.threads(pipeline.gateway.health.find_problems)
    if problems:
        first = next(iter(problems.values()))
        return Reply(body={"status": first.code}, status=503, headers={"retry-after": "1"})
    return Health(status="ok")


async def get_openapi(request: Request) -> Any:
    state = request.app.state
    if not hasattr(state, "openapi"):
        state.openapi = openapi.build_document([route for route in request.app.routes if isinstance(route, Route)])
    return state.openapi


async def get_problem(request: Request) -> ProblemMeaning:
    code = request.path_params["code"]
    known = problem.kinds().get(code)
    if known is None:
        raise Problem("no_route", "there is no such problem", "Ask for the `type` that an answer has, as it is")
    status, title = known
    return ProblemMeaning(code=code, status=status, title=title)


ROUTES = (
    Route(
        "GET", "/metrics", get_metrics,
        action="metrics.read", summary="counts and times, as Prometheus reads them", answers=str, media_type="text/plain",
    ),
    Route(
        "GET", "/healthz", get_health,
        action="", summary="whether the process lives", answers=Health, answer_example={"status": "ok"},
    ),
    Route(
        "GET", "/readyz", get_readiness,
        action="", summary="whether it can answer: tokens can be looked up, and memory can be written", answers=Health,
        other_status=503,
    ),
    Route("GET", "/openapi.json", get_openapi, action="", summary="this API, as OpenAPI 3.1", answers=dict),
    Route(
        "GET", "/problems/{code}", get_problem,
        action="", summary="what a problem's type means", params=GetProblem, answers=ProblemMeaning,
        problems=("no_route",),
    ),
)  # fmt: skip
