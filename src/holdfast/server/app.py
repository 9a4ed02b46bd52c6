"""The app: what becomes of a request, in this order.

An id; whether it names a host of ours; which route it is; who asks (and nothing of the body is read before that is known);
whether that token may ask this often and this much at a time; whether its role has this action at all; the body, within its
limits; whether the role allows it there; the verb, in a thread. Everything that goes wrong on the way is answered as
problem+json, logged and counted.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from itertools import islice
from typing import Any

from holdfast.access import AccessGate, Caller
from holdfast.access.policy import why_not
from holdfast.api.memory import Memory
from holdfast.base.ids import KEY_PATTERN, is_name
from holdfast.errors import Template, TooLarge, Unauthenticated, command
from holdfast.models import SCOPES
from holdfast.server import body as body_module
from holdfast.server import idempotency, mcp, problem, redaction
from holdfast.server.body import Gone, Message, Receive
from holdfast.server.gateway import Gateway, Target
from holdfast.server.hosts import Hosts, preflight
from holdfast.server.limits import ConcurrencyLimit, RateLimit
from holdfast.server.logs import Logs
from holdfast.server.problem import Problem
from holdfast.server.request import Request
from holdfast.server.route import EVERYWHERE, NOWHERE, WRITE, Asked, Lines, Reply, Route
from holdfast.server.routes import bulk
from holdfast.server.routes.table import OPEN, Found, Routes
from holdfast.server.schema import Schema, fields, mistakes
from holdfast.server.threads import ThreadPool

Send = Callable[[Message], Awaitable[None]]
_WHOSE = ("project", "session")
_METHODS = ("GET", "POST", "PUT", "DELETE")
_LINES_AT_ONCE = 64
_ONCE = "Leave it out of the query and the body"
_TOKEN_THREADS = 2  # that check the token of a request before its body is read; never occupied by a verb
_TOKEN_THREADS_STORE = 8  # the same where the tokens are in PostgreSQL and an answer may take its time
_SPARE_THREADS = 16  # beside those of the requests at work: these check a token or refuse a request


class App:
    """The whole gateway, as an ASGI app."""

    def __init__(
        self, gateway: Gateway, *, hosts: tuple[str, ...] = (), origins: tuple[str, ...] = (), logs: Logs | None = None,
    ) -> None:  # fmt: skip
        settings = gateway.config()
        self.gateway = gateway
        self._hosts = Hosts(hosts, origins)
        self._routes = Routes()
        self._rates, self.crowd = RateLimit(settings.serve_rate), ConcurrencyLimit(settings.serve_at_once)
        self._logs = logs or Logs(None)
        self._threads = ThreadPool(settings.serve_at_once + _SPARE_THREADS)
        self._token_threads = ThreadPool(_TOKEN_THREADS_STORE if settings.store else _TOKEN_THREADS)
        self._mcp = mcp.Mounted(gateway, hosts, origins, self._logs)
        self._life = AsyncExitStack()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._http(Request(scope), receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    # --- from the first byte to the last ------------------------------------------------------------------------------

    async def _http(self, request: Request, receive: Receive, send: Send) -> None:
        """Whatever happens is one answer, one line of the log, and one count."""
        begun, answering = time.monotonic(), _Answering(request, send)
        try:
            await self._answer(request, receive, answering)
        except Gone:
            request.outcome = "gone"
        except Exception as error:
            status, body, headers = problem.of(error, request.id, request.header(problem.PARTS) == "parts")
            if status == 500:
                request.trouble = [type(error).__name__, *problem.where(error)]
            request.outcome = body["code"]
            told = problem.for_caller(body, self.gateway.home, bool(request.caller and request.caller.is_person))
            await answering.whole(status, headers, problem.encoded(told), problem.KIND)
        finally:
            seconds = time.monotonic() - begun
            self.gateway.metrics.count(request, answering.status, seconds)
            self._logs.request(request, answering.status, answering.bytes, seconds)

    async def _answer(self, request: Request, receive: Receive, answering: _Answering) -> None:
        request.allows = self._hosts.check(request.raw)
        if request.method == "OPTIONS" and request.allows and request.header("access-control-request-method"):
            await answering.whole(204, preflight(_METHODS), b"", b"text/plain")
            return
        found = self._routes.find(request.method, request.path)
        request.route = found.name
        if found.route is not None and not found.route.action:
            await self._open(found.route, found.places, answering)
            return
        with ExitStack() as held:  # its place in the crowd, until it is answered
            if found.route is not None and found.route.takes is None:
                reply = await self._threads(lambda: self._identified(found, request, held))
                await self._reply(found.route, reply, answering)
                return
            caller, may = await self._token_threads(lambda: self._let_read(found, request, held))
            if not may:
                await self._threads(lambda: self._refuse(found, request, caller))
            await self._read_on(found, request, caller, receive, answering)

    def _identified(self, found: Found, request: Request, held: ExitStack) -> Reply:
        """Check the token and run the verb in one go: there is no body to wait for in between."""
        caller = self._let_in(self.gateway.gate, request, held)
        return self._worked_on(found, request, caller, b"")

    def _let_in(self, gate: AccessGate, request: Request, held: ExitStack) -> Caller:
        """Who asks, if they may ask this often and this much at a time. In a thread: it is looked up anew each time."""
        caller = gate.identify(token_of(request))
        request.caller, request.tenant = caller, caller.tenant if gate.config.store else ""
        self._rates.take(caller.token)
        held.enter_context(self.crowd.enter(caller.token))
        return caller

    def _let_read(self, found: Found, request: Request, held: ExitStack) -> tuple[Caller, bool]:
        """The same, and whether its role may do this at all, whatever the body would say."""
        gate, route = self.gateway.gate, found.route
        caller = self._let_in(gate, request, held)
        return caller, route is None or not why_not(gate.role(caller.role), route.action, None)

    def _refuse(self, found: Found, request: Request, caller: Caller) -> None:
        """Write the refusal down; not in a thread that checks tokens, because the audit may take long."""
        if (route := found.route) is not None:
            scope, about = _scope_of_head(found, request), _about(route, found.places)
            self.gateway.gate.allow(caller, route.action, scope, route=route.name, request=request.id, **about)

    async def _read_on(
        self, found: Found, request: Request, caller: Caller, receive: Receive, answering: _Answering
    ) -> None:
        """What has a body, now that it may be read."""
        if mcp.is_at(request.path):
            mcp.must_be_a_call(request)
            data = await self._body(request, receive)
            await self._threads(lambda: body_module.must_be_small(data))
            await self._mcp(request, caller, data, receive, answering.send)
        elif (route := found.route) is None:
            raise found.refusal()
        elif route.reads == bulk.KIND:
            await self._streamed(route, request, caller, receive, answering)
        else:
            data = await self._body(request, receive)
            reply = await self._threads(lambda: self._worked_on(found, request, caller, data))
            await self._reply(route, reply, answering)

    async def _open(self, route: Route, places: dict[str, str], answering: _Answering) -> None:
        """What everybody may ask: none of it reads a body or a memory."""
        answer = OPEN[route.path]
        told = await self._threads(lambda: answer(self)) if route.path == "/readyz" else answer(self, **places)
        await self._reply(route, told, answering)

    async def _body(self, request: Request, receive: Receive) -> bytes:
        most = self.gateway.settings.serve_body_bytes
        body_module.declared(request.headers, most)
        return await body_module.body(receive, most)

    # --- in the thread ------------------------------------------------------------------------------------------------

    def _worked_on(self, found: Found, request: Request, caller: Caller, data: bytes) -> Reply:
        with self.crowd.work():
            return self._done(found, request, caller, data)

    def _done(self, found: Found, request: Request, caller: Caller, data: bytes) -> Reply:
        """What was asked, whether it may be, and the verb. A role's no comes before a schema's."""
        assert found.route is not None
        route = found.route
        with ExitStack() as stack:
            given, wrong = _given(route, request, found.places, data)
            if wrong is not None:  # where it was to go may stand in what cannot be read
                scope, about = _scope_of_head(found, request), _about(route, found.places)
                self.gateway.gate.allow(caller, route.action, scope, route=route.name, request=request.id, **about)
                raise wrong
            asked = self.asked(route, request, caller, given, stack)
            _must_fit(route.shape, given)
            reply = idempotency.run(asked, route.again, _head(request) + data)
            if isinstance(reply.body, Lines):
                lent = stack.pop_all()  # until the last line is told
                return reply.replace(body=Lines(_closing(reply.body.rows, lent)))
            return redaction.shown(route, reply, asked.role)

    def asked(self, route: Route, request: Request, caller: Caller, given: dict[str, Any], stack: ExitStack) -> Asked:
        """The request, once the porter has let it pass; the decision is written down either way."""
        scope = _scope(route, given)
        gate = self.gateway.gate
        about, permit = {"route": route.name, "request": request.id, **_about(route, given)}, None
        if route.permits:
            permit = stack.enter_context(gate.permit(caller, route.action, scope, **about))
            role = permit.role
        else:
            role = gate.allow(caller, route.action, scope, **about)
        whose = self._whose(route, request, caller, given)
        whose.must_name(scope)
        sees, read_only = role.scopes, bool(why_not(role, WRITE, None))
        lent = list[Memory]()

        def memory() -> Memory:
            if not lent:
                lent.append(stack.enter_context(self.gateway.lend(caller, whose, sees, read_only=read_only)))
            return lent[0]

        return Asked(route, self.gateway, caller, role, request.id, given, request.headers, memory, whose, permit)

    def _whose(self, route: Route, request: Request, caller: Caller, given: dict[str, Any]) -> Target:
        """Whose memory is meant. Who may let agents in and out could give themselves any agent's token: they may name one."""
        named = [_named(route, name, given.get(name)) or request.header(f"x-holdfast-{name}") or None for name in _WHOSE]
        agent = _named(route, "agent", given.get("agent")) if route.others else None
        if agent is not None and agent != caller.agent:
            about = {"name": agent} if is_name(agent) else {}  # the audit is no place for a text
            self.gateway.gate.allow(caller, "agents.manage", route=route.name, request=request.id, **about)
        return Target(named[0], named[1], agent)

    # --- answering ----------------------------------------------------------------------------------------------------

    async def _reply(self, route: Route, reply: Reply, answering: _Answering) -> None:
        status = reply.status or route.status
        if isinstance(reply.body, Lines):
            await self._lines(reply.body.rows, answering)
        elif isinstance(reply.body, bytes):
            await answering.whole(status, reply.headers, reply.body, route.kind.encode())
        else:
            data = b"" if reply.body is None else problem.encoded(reply.body)
            await answering.whole(status, reply.headers, data, route.kind.encode())

    async def _lines(self, rows: Iterator[dict[str, Any]], answering: _Answering) -> None:
        """A few at a time, so that however many there are, few are held. The first are found before the status is said."""

        def some() -> list[bytes]:
            return [problem.encoded(row) + b"\n" for row in islice(rows, _LINES_AT_ONCE)]

        try:
            lines = await self._threads(some)
            await answering.begin(200, {}, bulk.KIND.encode())
            while lines:
                await answering.piece(b"".join(lines))
                lines = await self._threads(some)
            await answering.end()
        finally:
            close = getattr(rows, "close", None)
            if close is not None:
                await self._threads(close)

    async def _streamed(
        self, route: Route, request: Request, caller: Caller, receive: Receive, answering: _Answering
    ) -> None:
        """A body that is worked on while it comes, and may be answered meanwhile."""
        with ExitStack() as stack:
            given = body_module.asked(request.query, route.asks)
            asked = await self._threads(lambda: self.asked(route, request, caller, given, stack))
            bulk.must_be_lines(request.header("content-type"))
            _must_fit(fields(route.asks), given)  # the rest is in the body
            once_ = idempotency.Streamed(asked, _head(request))
            await self._threads(once_.begin)
            try:
                await route.verb(asked, once_, body_module.pieces(receive, bulk.MOST_BYTES), answering, self._threads)
            except BaseException as error:
                await self._threads(partial(once_.drop, error))
                raise

    # --- beginning and end --------------------------------------------------------------------------------------------

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self._life.enter_async_context(self._mcp.life())
                await send({"type": "lifespan.startup.complete"})
            else:
                await self._life.aclose()
                await self._threads(self.gateway.close)
                for threads in (self._threads, self._token_threads):
                    threads.close()
                await send({"type": "lifespan.shutdown.complete"})
                return


class _Answering:
    """The way back: every answer has the request's id, and what was sent is known."""

    def __init__(self, request: Request, send: Send) -> None:
        self._request, self._send = request, send
        self.status, self.bytes = 0, 0

    async def send(self, message: Message) -> None:
        """What an app inside says, with the request's id on it."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            told = {"x-request-id": self._request.id, **self._request.allows}
            added = [(name.encode(), value.encode("latin-1")) for name, value in told.items()]
            message = {**message, "headers": [*message.get("headers", []), *added]}
        self.bytes += len(message.get("body", b""))
        await self._send(message)

    async def begin(self, status: int, headers: dict[str, str], kind: bytes) -> None:
        said = [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
        fixed = [(b"content-type", kind), (b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
        await self.send({"type": "http.response.start", "status": status, "headers": [*fixed, *said]})

    async def piece(self, data: bytes) -> None:
        await self.send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, data: bytes = b"") -> None:
        await self.send({"type": "http.response.body", "body": data})

    async def whole(self, status: int, headers: dict[str, str], data: bytes, kind: bytes) -> None:
        if self.status:  # it was begun already: the connection ends, and whoever reads it notices
            raise Gone
        length = {} if status == 304 else {"content-length": str(len(data))}
        await self.begin(status, {**headers, **length}, kind)
        await self.end(data)


def _head(request: Request) -> bytes:
    """What a request asks for, before its body."""
    return b"\n".join([request.method.encode(), request.path.encode("utf-8", "replace"), request.query, b""])


def token_of(request: Request) -> str:
    """The one bearer token of a request."""
    given = [value for name, value in request.raw if name == b"authorization"]
    scheme, _, token = given[0].decode("latin-1").partition(" ") if len(given) == 1 else ("", "", "")
    if scheme.lower() != "bearer" or not token.strip():
        fix = Template("Send `Authorization: Bearer TOKEN`; ", command("agent add"), " makes one")
        raise Unauthenticated("this needs a token", fix)
    return token.strip()


def _given(route: Route, request: Request, places: dict[str, str], data: bytes) -> tuple[dict[str, Any], Exception | None]:
    """All that was given, by name: in the path, in the query, in the body. What cannot be read is told after the decision."""
    given: dict[str, Any] = {}
    try:
        given |= body_module.asked(request.query, route.asks)
        unknown = [name for name in given if name not in route.asks]
        if unknown:
            detail = [{"pointer": f"/{name[:80]}", "detail": "is unknown in the query", "code": "unknown"} for name in unknown]
            raise Problem("invalid_request", "the query has unknown fields", "See /openapi.json", errors=detail)
        if route.takes is not None and (data or route.takes.get("required")):
            if not request.header("content-type").partition(";")[0].strip().lower() == route.reads:
                raise Problem("wrong_type", f"this route reads {route.reads}", f"Send Content-Type: {route.reads}")
            body = body_module.parsed(data)
            if not isinstance(body, dict):
                detail = [{"pointer": "/", "detail": "must be an object"}]
                raise Problem("invalid_request", "the body must be an object", "Send one JSON object", errors=detail)
            given |= body
    except (Problem, TooLarge) as wrong:
        return {**given, **places}, wrong
    clash = [name for name in places if name in given]
    if clash:
        detail = [{"pointer": f"/{name}", "detail": "stands in the path already"} for name in clash]
        return {**given, **places}, Problem("invalid_request", "a field of the path is given again", _ONCE, errors=detail)
    return {**given, **places}, None


def _must_fit(shape: Schema, given: dict[str, Any]) -> None:
    found = mistakes(shape, given)
    if found:
        told = "; ".join([f"{one['pointer']} {one['detail']}" for one in found[:3]])
        raise Problem("invalid_request", told, "See /openapi.json for what it takes", errors=found)


def _scope(route: Route, given: dict[str, Any]) -> str | None:
    """The scope that is meant; None for all that the caller may see."""
    named = given.get("scope")
    if route.scope == NOWHERE:
        return None
    if named is not None:
        return named if isinstance(named, str) and named in SCOPES else None  # what is none is said once the role is looked at
    return None if route.scope == EVERYWHERE else route.scope


def _scope_of_head(found: Found, request: Request) -> str | None:
    """The scope that a request names before its body."""
    assert found.route is not None
    try:
        named = {**body_module.asked(request.query, found.route.asks), **found.places}.get("scope")
    except Problem:
        named = found.places.get("scope")
    return named if found.route.scope != NOWHERE and named in SCOPES else None


def _about(route: Route, given: dict[str, Any]) -> dict[str, str]:
    """Whom a change of agents is about; of all else the audit says no more than the action."""
    if route.action != "agents.manage":
        return {}
    name, role = given.get("name"), given.get("role")
    told = {"name": name} if isinstance(name, str) and is_name(name) else {}
    return {**told, "of_role": role} if isinstance(role, str) and KEY_PATTERN.match(role) else told


def _named(route: Route, name: str, value: object) -> str | None:
    """A project or session as it was named; the gate says if it may be. Where a request is about a session, that may have a
    name that no caller's has: what another program called it."""
    about = route.takes is not None and name in route.takes.get("properties", {})
    return value if isinstance(value, str) and value and (is_name(value) or not about) else None


def _closing(rows: Iterator[dict[str, Any]], lent: ExitStack) -> Iterator[dict[str, Any]]:
    with lent:
        yield from rows


