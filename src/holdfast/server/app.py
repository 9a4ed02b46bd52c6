"""Build the Starlette app of the gateway: middleware, routes, MCP, and the resources that open and close with the process."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import getrandbits
from typing import TYPE_CHECKING

import starlette.routing
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from holdfast.server import problem
from holdfast.server.audit_tasks import AuditTasks
from holdfast.server.client_address import find_client_address
from holdfast.server.hosts import HostMiddleware
from holdfast.server.logs import Logs, RequestRecord
from holdfast.server.mcp import PATH as MCP_PATH
from holdfast.server.mcp import McpEndpoint
from holdfast.server.pipeline import Pipeline
from holdfast.server.routes import ROUTES

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from holdfast.server.gateway import Gateway

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def create_app(
    gateway: Gateway, *, hosts: tuple[str, ...] = (), origins: tuple[str, ...] = (), logs: Logs | None = None
) -> Starlette:
    """Return the gateway as an ASGI app."""
    logs = logs or Logs(None)
    pipeline = Pipeline(gateway)
    mcp = McpEndpoint(pipeline, hosts, origins, logs)
    audit_tasks = AuditTasks(gateway, logs)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with mcp.lifespan(), audit_tasks.run():
            yield
        await pipeline.close()

    app = Starlette(
        routes=[*ROUTES, starlette.routing.Route(MCP_PATH, mcp)],
        middleware=[
            Middleware(RequestMiddleware, gateway=gateway, logs=logs),
            Middleware(HostMiddleware, hosts=hosts, origins=origins),
        ],
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.router.default = pipeline.refuse_path
    app.state.pipeline = pipeline
    return app


class RequestMiddleware:
    """Give each request an id, answer every error as problem+json, and log and count each answer."""

    def __init__(self, app: ASGIApp, gateway: Gateway, logs: Logs) -> None:
        self._app, self._gateway, self._logs = app, gateway, logs

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
        with_parts = headers.get(problem.PARTS, "").strip() == "parts"
        status, body, more = problem.of(error, record.id, with_parts)
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
