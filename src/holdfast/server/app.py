"""Build the Starlette app of the gateway: middleware, routes, MCP, and the resources that open and close with the process."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from random import getrandbits
from typing import TYPE_CHECKING

import starlette.routing
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from holdfast.errors import DiskTrouble, HoldfastError
from holdfast.server import gauges, problem
from holdfast.server.audit_tasks import AuditTasks
from holdfast.server.client_address import find_client_address
from holdfast.server.health import OutageLog
from holdfast.server.hosts import HostMiddleware
from holdfast.server.logs import Logs, RequestRecord
from holdfast.server.mcp import PATH as MCP_PATH
from holdfast.server.mcp import McpEndpoint
from holdfast.server.pipeline import Pipeline
from holdfast.server.routes import ROUTES
from holdfast.server.web import PAGES

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from holdfast.server.gateway import Gateway
    from holdfast.server.otel import Tracing

_WATCH_SECONDS = 1.0
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def create_app(
    gateway: Gateway, *, hosts: tuple[str, ...] = (), origins: tuple[str, ...] = (), logs: Logs | None = None
) -> Starlette:
    """Return the gateway as an ASGI app."""
    logs = logs or Logs(None)
    pipeline = Pipeline(gateway)
    tracing = _start_tracing(gateway, logs)
    mcp = McpEndpoint(pipeline, hosts, origins, logs)
    audit_tasks = AuditTasks(gateway, logs)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(_watch(pipeline, logs)), asyncio.create_task(_write_deferred(pipeline, logs))]
        try:
            async with mcp.lifespan(), audit_tasks.run():
                yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        gauges.publish(gateway)
        await pipeline.close()
        if tracing is not None:
            tracing.close()

    app = _App(
        routes=[*ROUTES, *PAGES, starlette.routing.Route(MCP_PATH, mcp)],
        middleware=[
            Middleware(RequestMiddleware, gateway=gateway, logs=logs, tracing=tracing),
            Middleware(HostMiddleware, hosts=hosts, origins=origins),
        ],
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.router.default = pipeline.refuse_path
    app.state.pipeline = pipeline
    return app


class _App(Starlette):
    """Starlette without its own error middleware: RequestMiddleware answers every error."""

    def build_middleware_stack(self) -> ASGIApp:
        """Return the router inside our middleware."""
        app: ASGIApp = self.router
        for one in reversed(self.user_middleware):
            app = one.cls(app, *one.args, **one.kwargs)
        return app


def _start_tracing(gateway: Gateway, logs: Logs) -> Tracing | None:
    """Send traces to the collector that the settings name; without one, nothing of OpenTelemetry is imported."""
    if not gateway.settings.otel_endpoint:
        return None
    try:
        from holdfast.server import otel
    except ImportError:
        message = "traces are not sent, because OpenTelemetry is not installed"
        logs.log("warning", event="traces", message=message, fix="pip install 'holdfast[otel]'")
        return None
    return otel.start(gateway.settings)


async def _watch(pipeline: Pipeline, logs: Logs) -> None:
    """Publish the gauges and sample the traffic every second, and log outages; of several workers, the first logs for all."""
    gateway, outages = pipeline.gateway, OutageLog(logs)

    def look() -> None:
        gauges.publish(gateway)
        gateway.traffic.sample()
        if gateway.worker == 0:
            outages.update(gateway.health.find_problems())

    await _repeat(pipeline, look, logs, "watch")


async def _write_deferred(pipeline: Pipeline, logs: Logs) -> None:
    """Write every second which notes were used, and the index.md files of many stores."""
    await _repeat(pipeline, pipeline.gateway.write_deferred, logs, "write deferred")


async def _repeat(pipeline: Pipeline, work: Callable[[], None], logs: Logs, name: str) -> None:
    """Call `work` every second in a thread."""
    while True:
        await asyncio.sleep(_WATCH_SECONDS)
        try:
            await pipeline.threads(work)
        except HoldfastError:
            continue  # of the settings or the database: every request says so, and the next second tries again
        except Exception as error:  # the task must go on, whatever it is
            logs.log("error", event="task", task=name, trouble=type(error).__name__)


class RequestMiddleware:
    """Give each request an id, answer every error as problem+json, and log and count each answer."""

    def __init__(self, app: ASGIApp, gateway: Gateway, logs: Logs, tracing: Tracing | None) -> None:
        self._app, self._gateway, self._logs, self._tracing = app, gateway, logs, tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        address = find_client_address((scope.get("client") or ("",))[0], headers, self._gateway.settings.trusted_proxies)
        record = scope["holdfast.record"] = RequestRecord(_request_id(headers), scope["method"], address=address)

        async def send_recorded(message: Message) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
                MutableHeaders(scope=message).update({"x-request-id": record.id, **record.cors_headers})
            record.bytes_sent += len(message.get("body", b""))
            await send(message)

        begun = time.monotonic()
        trace = self._tracing.request(record, headers) if self._tracing else nullcontext()
        with trace:
            await self._answer(scope, receive, send_recorded, record, headers, begun)

    async def _answer(
        self, scope: Scope, receive: Receive, send_recorded: Send, record: RequestRecord, headers: Headers, begun: float
    ) -> None:
        try:
            await self._app(scope, receive, send_recorded)
        except ClientDisconnect:
            record.outcome = "gone"
        except Exception as error:
            response = self._problem(error, record, headers)
            if record.status:  # the answer has begun: end the connection, so that its reader notices
                raise
            await response(scope, receive, send_recorded)
        finally:
            seconds = time.monotonic() - begun
            self._gateway.metrics.count(record, seconds)
            self._logs.log_request(record, seconds)

    def _problem(self, error: Exception, record: RequestRecord, headers: Headers) -> Response:
        status, body, more = problem.of(error, record.id, problem.wants_parts(headers))
        if isinstance(error, DiskTrouble) and error.full:
            self._gateway.record_disk_trouble()
        if status == 500:
            record.failure = [type(error).__name__, *problem.where(error)]
        record.outcome = body["code"]
        is_person = bool(record.caller and record.caller.is_person)
        data = problem.encode_json(problem.for_caller(body, self._gateway.home, is_person))
        return Response(data, status, {**problem.fixed_headers(problem.MEDIA_TYPE), **more})


def _request_id(headers: Headers) -> str:
    """Return the id that the request brings, if it is safe to log; otherwise a new one."""
    given = headers.get("x-request-id", "").strip()
    return given if _REQUEST_ID.fullmatch(given) else f"{getrandbits(64):016x}"  # unique, not secret
