"""Metrics, and the routes that need no token: health, readiness, the OpenAPI document and the meaning of a problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from holdfast.base import dates
from holdfast.errors import Denied
from holdfast.server import gauges, metrics, openapi, problem
from holdfast.server.models import RequestModel, ResponseModel, Timestamp
from holdfast.server.problem import Problem
from holdfast.server.route import AuthorizedRequest, Reply, Route

if TYPE_CHECKING:
    from starlette.requests import Request


class GetProblem(RequestModel, kw_only=True):
    code: Annotated[str, Meta(description="The code of the problem.", pattern="^[a-z_]+$")]


class Health(ResponseModel, kw_only=True):
    status: str


_Percentile = Annotated[float | None, Meta(description="Estimated milliseconds, at most 5000; null if there were no requests.")]


class TrafficPoint(ResponseModel, kw_only=True):
    time: Annotated[Timestamp, Meta(description="The end of the interval.")]
    seconds: Annotated[float, Meta(description="The length of the interval in seconds, usually 10.")]
    succeeded: Annotated[int, Meta(description="Responses with a status below 400.")]
    client_errors: Annotated[int, Meta(description="Responses with a status from 400 to 499.")]
    server_errors: Annotated[int, Meta(description="Responses with a status of 500 or above.")]
    p50_ms: _Percentile
    p95_ms: _Percentile


class TrafficSeries(ResponseModel, kw_only=True):
    points: Annotated[list[TrafficPoint], Meta(description="The last hour, oldest first; at most 360.")]


class ProblemMeaning(ResponseModel, kw_only=True):
    code: str
    status: int
    title: str


def get_metrics(request: AuthorizedRequest, params: RequestModel) -> Reply:
    _check_tenant(request)
    return Reply(body=gauges.render(request.gateway).encode(), headers={"content-type": metrics.MEDIA_TYPE})


def get_traffic(request: AuthorizedRequest, params: RequestModel) -> TrafficSeries:
    _check_tenant(request)
    points = [
        TrafficPoint(
            time=dates.format_timestamp(point.time), seconds=round(point.seconds, 3), succeeded=point.succeeded,
            client_errors=point.client_errors, server_errors=point.server_errors,
            p50_ms=_milliseconds(point.p50_seconds), p95_ms=_milliseconds(point.p95_seconds),
        )
        for point in request.gateway.traffic.list_points()
    ]  # fmt: skip
    return TrafficSeries(points=points)


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 1)


def _check_tenant(request: AuthorizedRequest) -> None:
    """Raise for callers of another tenant than the gateway's own."""
    if not request.gateway.is_own_tenant(request.caller):
        raise Denied("metrics cover all tenants of this server", "Use a token of the server's own tenant")


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
        raise Problem("no_route", "there is no such problem", "Request the URL in the `type` of a problem")
    status, title = known
    return ProblemMeaning(code=code, status=status, title=title)


ROUTES = (
    Route(
        "GET", "/metrics", get_metrics,
        action="metrics.read", summary="return metrics in Prometheus text format", answers=str, media_type="text/plain",
    ),
    Route(
        "GET", "/traffic", get_traffic,
        action="metrics.read", summary="return request counts and latency of the last hour, for all workers",
        answers=TrafficSeries,
        answer_example={
            "points": [
                {
                    "time": "2026-05-02T09:00:10Z", "seconds": 10.0, "succeeded": 118, "client_errors": 2, "server_errors": 0,
                    "p50_ms": 3.1, "p95_ms": 22.4,
                }
            ]
        },
    ),
    Route(
        "GET", "/healthz", get_health,
        action="", summary="return 200 while the process runs", answers=Health, answer_example={"status": "ok"},
    ),
    Route(
        "GET", "/readyz", get_readiness,
        action="", summary="return 200 if tokens can be looked up and memory can be written, otherwise 503", answers=Health,
        other_status=503,
    ),
    Route("GET", "/openapi.json", get_openapi, action="", summary="return this API as an OpenAPI 3.1 document", answers=dict),
    Route(
        "GET", "/problems/{code}", get_problem,
        action="", summary="explain the code of a problem", params=GetProblem, answers=ProblemMeaning,
        problems=("no_route",),
    ),
)  # fmt: skip
