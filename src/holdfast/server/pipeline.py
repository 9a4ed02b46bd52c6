"""The pipeline of a request between its route and its handler, in this order:

the token (the server waits for no byte of the body before the caller is known, and parses none); how often and how much at a
time the token may ask; whether its role has the action at all; the body, within limits; whether the role allows the action in
the scope that the request names, which the audit records either way; the request's fields against their model; and the
handler, in a thread.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import ExitStack, aclosing
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from holdfast.access import NamedResources, sessions
from holdfast.access.grants import reachable_scopes
from holdfast.access.policy import may_try
from holdfast.access.tokens import RejectedToken
from holdfast.base.ids import KEY_PATTERN, is_name
from holdfast.errors import Busy, Denied, TooLarge, Trouble, Unauthenticated
from holdfast.models import SCOPES
from holdfast.safety.validate import ALIASES, find_conflict, resolve_aliases
from holdfast.server import body, idempotency, redaction
from holdfast.server.gateway import Gateway, Target
from holdfast.server.known_scrapers import KnownScrapers
from holdfast.server.limits import ConcurrencyLimit, RateLimit
from holdfast.server.problem import Problem, encode_json, fixed_headers
from holdfast.server.route import ALL_SCOPES, NDJSON, NO_SCOPE, AuthorizedRequest, PendingReply, Reply, Route, Rows
from holdfast.server.threads import ThreadPool
from holdfast.server.validation import decode, request_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Receive, Scope, Send

    from holdfast.access import AccessGate, Caller
    from holdfast.access.sessions import Session
    from holdfast.server.logs import RequestRecord

MAX_UPLOAD_BYTES = 4 * 1024**3
_ROWS_PER_CHUNK = 64
_TOKEN_THREADS = 2  # check tokens before bodies are read; never occupied by a handler
_TOKEN_THREADS_POSTGRES = 8  # a lookup in PostgreSQL may take longer
_SPARE_THREADS = 16  # beside those of running handlers: they check tokens of requests without a body and refuse requests
_RUNNING = 2  # handlers that compute at the same time
_RUNNING_POSTGRES = 8  # they mostly wait for the database
_FEW_WAITING = 32  # requests; if more wait, tokens are checked in threads of their own, which refuse a caller at once
_METRICS_READ = "metrics.read"
_TARGET_HEADERS = ("project", "session")


class _OpenResponse(StreamingResponse):
    """A streaming response that leaves `receive` alone: the body of an upload still arrives while its answer is sent."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.stream_response(send)


class Pipeline:
    """Run requests of one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        settings = gateway.config()
        self.gateway = gateway
        self.concurrency = ConcurrencyLimit(settings.serve_at_once)
        at_once = _RUNNING_POSTGRES if settings.store else _RUNNING
        self.threads = ThreadPool(settings.serve_at_once + _SPARE_THREADS, at_once)
        self._token_threads = ThreadPool(_TOKEN_THREADS_POSTGRES if settings.store else _TOKEN_THREADS)
        self._rates = RateLimit(settings.serve_rate)
        self._scrapers = KnownScrapers()

    async def close(self) -> None:
        """Close the gateway; what a thread has begun is finished first."""
        await self.threads(self.gateway.close)
        self.threads.close()
        self._token_threads.close()

    async def run(self, route: Route, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that has a route."""
        request = Request(scope, receive, send)
        record(request).route = route.name
        if not route.action:
            await self._send(route, idempotency.to_reply(await route.handler(request)), request, send)
            return
        with ExitStack() as stack:  # counts as one of the token's requests until it is answered
            run = self.threads if route.is_slow else self.threads.run_briefly
            if route.reads is None or self._takes_one_step(route, request):
                data = b"" if route.reads is None else await self.read_body(request)
                reply = await run(lambda: self._authenticate_and_handle(route, request, stack, data))
                await self._send(route, await self._complete(reply), request, send)
                return
            caller, has_action = await self._token_threads(lambda: self._authenticate_for(route, request, stack))
            if not has_action:  # in a thread that checks no tokens: writing the audit may take long
                await self.threads(lambda: self._decide_by_head(route, request, caller, route.action))
            if route.is_upload:
                await self._run_upload(route, request, caller, send)
            else:
                data = await self.read_body(request)
                reply = await run(lambda: self._handle(route, request, caller, data))
                await self._send(route, await self._complete(reply), request, send)

    def _takes_one_step(self, route: Route, request: Request) -> bool:
        """Return whether the token is checked and the handler run in one call of a thread, although there is a body: it is in
        memory already, and few requests wait. The token is still checked before the body is parsed."""
        if route.is_upload or self.threads.count_waiting() > _FEW_WAITING:
            return False
        return body.has_arrived(request, self.gateway.settings.serve_body_bytes)

    async def call(
        self, request: Request, caller: Caller, name: str, fields: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:  # fmt: skip
        """Call a route of the API by its name, such as `GET /v1/notes/{scope}/{key}`, in the name of a known caller.

        A page of the console calls this: `request` is the page's, and `fields` are those of the path, the query or the body.
        All steps of an API request run, and raise what they raise there: the limits of the token, the decision with its row
        in the audit, the check of the fields, the handler, and the redaction of its answer.
        """
        route = _find_route(request, name)
        inner, data = _make_request(route, request, fields or {}, headers or {})
        with ExitStack() as stack:
            run = self.threads if route.is_slow else self.threads.run_briefly
            reply = await run(lambda: self._admit_and_handle(route, inner, caller, data, stack))
            return await self._complete(reply)

    async def _complete(self, reply: Reply | PendingReply) -> Reply:
        """Wait for what a reply waits for."""
        if isinstance(reply, Reply):
            return reply
        pending = reply
        done = asyncio.wrap_future(pending.future)
        await asyncio.wait([done])
        done.exception()  # `build` raises it; unread, asyncio would log it too
        if pending.blocks:
            return await self.threads(lambda: pending.build(pending.future))
        built: Reply = pending.build(pending.future)
        return built

    async def refuse_path(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a path without a route: only callers with a token learn that there is none."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        request = Request(scope, receive, send)
        with ExitStack() as stack:
            await self.authenticate_early(request, stack)
            raise Problem("no_route", "this path does not exist", "See /openapi.json for all paths")

    async def refuse_method(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a path with other methods."""
        request = Request(scope, receive, send)
        with ExitStack() as stack:
            await self.authenticate_early(request, stack)
            allowed = ", ".join([one.method for one in request.app.routes if isinstance(one, Route) and one.path == path])
            raise Problem("wrong_method", f"this path supports {allowed}", f"Use {allowed}", {"allow": allowed})

    async def authenticate_early(self, request: Request, stack: ExitStack) -> Caller:
        """Authenticate before a body is read, in the threads that do nothing else."""
        return await self._token_threads(lambda: self._authenticate(self.gateway.gate, request, stack))

    async def find_session(self, request: Request, cookie: str) -> Session | None:
        """Return the session of a person in the console, looked up where tokens are; None if it has ended."""
        seen = record(request)

        def find() -> Session | None:
            gate = self.gateway.gate
            session = sessions.find_session(gate, cookie, seen.address)
            if session is not None:
                seen.caller, seen.tenant = session.caller, session.caller.tenant if gate.config.store else ""
            return session

        return await self._token_threads(find)

    async def read_body(self, request: Request) -> bytes:
        return await body.read_body(request.headers, request.receive, self.gateway.settings.serve_body_bytes)

    # --- in a thread --------------------------------------------------------------------------------------------------

    def _authenticate(self, gate: AccessGate, request: Request, stack: ExitStack) -> Caller:
        """Return the caller; raise `Unauthenticated`, or `TooMany` if the token asks too often or too much at a time, or
        `QuotaExceeded` if its agent has made as many requests today as it may."""
        seen = record(request)
        try:
            caller = gate.identify(bearer_token(request), seen.address)
        except RejectedToken as error:
            seen.rejected_token, seen.reason = error.id, error.reason
            raise
        seen.caller, seen.tenant = caller, caller.tenant if gate.config.store else ""
        self._admit(gate, caller, stack)
        return caller

    def _admit(self, gate: AccessGate, caller: Caller, stack: ExitStack) -> None:
        """Count a request of a caller; raise `TooMany` or `QuotaExceeded` if that is more than it may make."""
        self._rates.take(caller.token)
        gate.count_request(caller)
        stack.enter_context(self.concurrency.enter(caller.token))

    def _admit_and_handle(
        self, route: Route, request: Request, caller: Caller, data: bytes, stack: ExitStack
    ) -> Reply | PendingReply:
        self._admit(self.gateway.gate, caller, stack)
        return self._handle(route, request, caller, data)

    def _authenticate_for(self, route: Route, request: Request, stack: ExitStack) -> tuple[Caller, bool]:
        """Return the caller, and whether its role has the route's action, whatever the body says."""
        gate = self.gateway.gate
        caller = self._authenticate(gate, request, stack)
        return caller, may_try(gate.role(caller.role), route.action)

    def _authenticate_and_handle(self, route: Route, request: Request, stack: ExitStack, data: bytes) -> Reply | PendingReply:
        """Do both in one thread: there is no body to wait for in between."""
        if route.action == _METRICS_READ:
            return self._handle_scrape(route, request, stack)
        return self._handle(route, request, self._authenticate(self.gateway.gate, request, stack), data)

    def _handle_scrape(self, route: Route, request: Request, stack: ExitStack) -> Reply | PendingReply:
        """Answer with the metrics; while the database is away, also a caller that was allowed to read them shortly before."""
        token = bearer_token(request)
        try:
            caller = self._authenticate(self.gateway.gate, request, stack)
            reply = self._handle(route, request, caller, b"")
        except (Unauthenticated, Denied):
            self._scrapers.forget(token)
            raise
        except (Busy, Trouble):
            known = self._scrapers.find(token)
            if known is None:
                raise
            self._rates.take(known.token)
            record(request).caller = known
            return self._handle(route, request, known, b"")
        self._scrapers.remember(token, caller)
        return reply

    def _decide_by_head(self, route: Route, request: Request, caller: Caller, action: str) -> None:
        """Decide by the path and the query alone, and record it: the body is refused or cannot be read."""
        try:
            named = {**_query(route, request), **request.path_params}.get("scope")
        except Problem:
            named = request.path_params.get("scope")
        scope = named if route.scope != NO_SCOPE and named in SCOPES else None
        about = _audit_details(route, request.path_params)
        resources = _named_resources(route, request, {})
        self.gateway.gate.allow(caller, action, scope, named=resources, route=route.name, request=record(request).id, **about)

    def _handle(self, route: Route, request: Request, caller: Caller, data: bytes) -> Reply | PendingReply:
        """Parse, decide, check the fields, and run the handler. A role's refusal comes before a mistake in a field."""
        with self.concurrency.work(), ExitStack() as stack:
            try:
                given = _parse(route, request, data)
            except (Problem, TooLarge):
                self._decide_by_head(route, request, caller, route.action_of({}))
                raise
            authorized = self._authorize(route, request, caller, given, stack)
            _reject_conflict(given, route.body_fields)
            params = decode(route.params, given, route.fields)
            reply = idempotency.run_once(authorized, params, _head(request) + data)
            if isinstance(reply, PendingReply):
                build, role, home = reply.build, authorized.role, self.gateway.home
                return replace(
                    reply, build=lambda future: redaction.redact(route, idempotency.to_reply(build(future)), role, home)
                )
            if isinstance(reply.body, Iterator):
                return replace(reply, body=_closing(reply.body, stack.pop_all()))
            return redaction.redact(route, reply, authorized.role, self.gateway.home)

    def _authorize(
        self, route: Route, request: Request, caller: Caller, given: dict[str, Any], stack: ExitStack
    ) -> AuthorizedRequest:
        """Return the request once the gate has allowed it; the decision is recorded either way."""
        scope, gate, id = _scope(route, given), self.gateway.gate, record(request).id
        action, named = route.action_of(given), _named_resources(route, request, given)
        about, permit = {"route": route.name, "request": id, **_audit_details(route, given)}, None
        if route.records_decision:
            permit = stack.enter_context(gate.permit(caller, action, scope, named=named, **about))
            role = permit.role
        else:
            role = gate.allow(caller, action, scope, named=named, **about)
        target = self._target(route, request, caller, given)
        target.must_name(scope)
        return AuthorizedRequest(
            route=route, gateway=self.gateway, caller=caller, role=role, id=id, headers=request.headers, target=target,
            action=action, scope=scope, named=named, scopes=reachable_scopes(role, caller, target.project, target.session),
            permit=permit, stack=stack,
        )  # fmt: skip

    def _target(self, route: Route, request: Request, caller: Caller, given: dict[str, Any]) -> Target:
        """Return the project, session and agent that the request is about. Callers that manage agents may name any agent,
        because they could issue a token for it anyway."""
        project, session = [_name_or_header(route, name, request, given) for name in _TARGET_HEADERS]
        agent = _name_of(route, "agent", given.get("agent")) if route.may_name_agent else None
        if agent is not None and agent != caller.agent:
            about: dict[str, Any] = {"name": agent} if is_name(agent) else {}  # the audit keeps names, not any text
            self.gateway.gate.allow(caller, "agents.manage", route=route.name, request=record(request).id, **about)
        return Target(project, session, agent)

    # --- answers and uploads ------------------------------------------------------------------------------------------

    async def _send(self, route: Route, reply: Reply, request: Request, send: Send) -> None:
        headers = {**fixed_headers(route.media_type), **reply.headers}
        content: Any = reply.body
        if isinstance(content, Iterator):
            content = self._rows(content)
        if isinstance(content, AsyncGenerator):
            async with aclosing(content):
                first = await anext(content, b"")  # an error before the first chunk has a status of its own
                response = _OpenResponse(_prepend(first, content), reply.status or route.status, headers)
                await response(request.scope, request.receive, send)
        else:
            data = content if isinstance(content, bytes) else b"" if content is None else encode_json(content)
            await Response(data, reply.status or route.status, headers)(request.scope, request.receive, send)

    async def _rows(self, rows: Rows) -> AsyncGenerator[bytes]:
        """Yield rows as lines of JSON, a few at a time, so that an export of any size takes little memory."""

        def encode_some() -> list[bytes]:
            return [encode_json(row) + b"\n" for row in islice(rows, _ROWS_PER_CHUNK)]

        try:
            while lines := await self.threads(encode_some):
                yield b"".join(lines)
        finally:
            close = getattr(rows, "close", None)
            if close is not None:
                await self.threads(close)

    async def _run_upload(self, route: Route, request: Request, caller: Caller, send: Send) -> None:
        """Run a handler that reads its body in chunks and may answer meanwhile."""
        stack = ExitStack()
        try:
            given = _query(route, request)
            authorized = await self.threads(lambda: self._authorize(route, request, caller, given, stack))
            if _content_type(request) not in (NDJSON, "application/json"):  # a single line may call itself JSON
                raise Problem("wrong_type", f"this route reads {NDJSON}", f"Send Content-Type: {NDJSON}")
            params = decode(route.params, given, route.fields)
            chunks = body.read_chunks(request.receive, MAX_UPLOAD_BYTES)
            upload = idempotency.Upload(authorized, _head(request), chunks, self.threads)
            await upload.begin()
            try:
                await self._send(route, await route.handler(authorized, params, upload), request, send)
            except BaseException as error:
                await upload.drop(error)
                raise
        finally:
            await self.threads(stack.close)  # it may close a memory, which blocks


def record(request: Request) -> RequestRecord:
    """Return what the log and the metrics will say about the request."""
    found: RequestRecord = request.scope["holdfast.record"]
    return found


def bearer_token(request: Request) -> str:
    """Return the one bearer token of a request; "" if there is none."""
    given = request.headers.getlist("authorization")
    scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return token.strip() if scheme.lower() == "bearer" else ""


def _find_route(request: Request, name: str) -> Route:
    """Return the route of the API with this name; uploads have no caller inside the process."""
    return next(one for one in request.app.routes if isinstance(one, Route) and one.name == name and not one.is_upload)


def _make_request(route: Route, outer: Request, fields: Mapping[str, Any], headers: Mapping[str, str]) -> tuple[Request, bytes]:
    """Return a request for a route as HTTP would bring it, with the id of the `outer` request, and its body."""
    path_params = {name: str(value) for name, value in fields.items() if name in route.path_fields}
    others = {name: value for name, value in fields.items() if name not in route.path_fields}
    query, data = b"", b""
    sent = {name.lower(): value for name, value in headers.items()}
    if route.reads is not None:
        data, sent = encode_json(others), {**sent, "content-type": route.reads}
    else:
        query = urlencode({name: _query_text(value) for name, value in others.items()}, doseq=True).encode()
    scope = {
        "type": "http", "method": route.method, "path": route.path.format(**path_params), "path_params": path_params,
        "query_string": query, "headers": [(name.encode(), value.encode("latin-1")) for name, value in sent.items()],
        "app": outer.app, "holdfast.record": record(outer),
    }  # fmt: skip
    return Request(scope), data


def _query_text(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _parse(route: Route, request: Request, data: bytes) -> dict[str, Any]:
    """Return all fields of the request by name: in the path, the query and the JSON body."""
    given = _query(route, request)
    unknown = [name for name in given if name not in route.query_fields]
    if unknown:
        mistakes = [{"pointer": f"/{name[:80]}", "detail": "is unknown in the query", "code": "unknown"} for name in unknown]
        raise Problem("invalid_request", "the query has unknown fields", "See /openapi.json", errors=mistakes)
    if route.reads is not None and (data or any(name not in route.path_fields for name in route.required_fields)):
        if _content_type(request) != route.reads:
            raise Problem("wrong_type", f"this route reads {route.reads}", f"Send Content-Type: {route.reads}")
        parsed = body.parse_json(data)
        if not isinstance(parsed, dict):
            mistakes = [{"pointer": "/", "detail": "must be an object"}]
            raise Problem("invalid_request", "the body must be an object", "Send one JSON object", errors=mistakes)
        has_conflict = find_conflict(parsed, route.body_fields)  # rejected after the decision about the caller
        given |= parsed if has_conflict else resolve_aliases(parsed, route.body_fields)
    repeated = [name for name in route.path_fields if name in given]
    if repeated:
        mistakes = [{"pointer": f"/{name}", "detail": "is already given in the path"} for name in repeated]
        fix = "Remove it from the query and the body"
        raise Problem("invalid_request", "a field of the path is repeated", fix, errors=mistakes)
    return {**given, **request.path_params}


def _query(route: Route, request: Request) -> dict[str, Any]:
    if not request.scope["query_string"]:
        return {}
    fields = request_fields(route.params)
    found = body.parse_query(request.scope["query_string"], {name: fields[name] for name in route.query_fields})
    _reject_conflict(found, route.query_fields)
    return resolve_aliases(found, route.query_fields)


def _reject_conflict(given: dict[str, Any], known: tuple[str, ...]) -> None:
    """Raise `invalid_request` for a field that is given beside its alias with another value."""
    if alias := find_conflict(given, known):
        mistakes = [{"pointer": f"/{alias}", "detail": f"differs from `{ALIASES[alias]}`, of which it is an alias"}]
        what, fix = f"a field and its alias `{alias}` differ", f"Give only `{ALIASES[alias]}`"
        raise Problem("invalid_request", what, fix, errors=mistakes)


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _head(request: Request) -> bytes:
    """Return what a request asks for before its body, to tell it from others."""
    path, query = request.scope["path"].encode("utf-8", "replace"), request.scope["query_string"]
    method = "GET" if request.method == "HEAD" else request.method
    return b"\n".join([method.encode(), path, query, b""])


def _scope(route: Route, given: dict[str, Any]) -> str | None:
    """Return the scope that is meant; None for all that the caller may see."""
    named = given.get("scope")
    if route.scope == NO_SCOPE:
        return None
    if named is not None:  # validation reports an unknown one, after the decision
        return named if isinstance(named, str) and named in SCOPES else None
    return None if route.scope == ALL_SCOPES else route.scope


def _audit_details(route: Route, given: dict[str, Any]) -> dict[str, str]:
    """Return which agent, role or setting a change is about; of other requests the audit keeps only the action."""
    if route.action not in ("agents.manage", "settings.manage"):
        return {}
    name, role = given.get("name"), given.get("role")
    details = {"name": name} if isinstance(name, str) and is_name(name) else {}
    return {**details, "of_role": role} if isinstance(role, str) and KEY_PATTERN.match(role) else details


def _named_resources(route: Route, request: Request, given: dict[str, Any]) -> NamedResources:
    """Return the project, session and repository that the request reaches by naming them.

    A session that is only the subject of a request (to forget its transcript, say) is not reached as a scope.
    """
    if route.scope == NO_SCOPE:
        return NamedResources(repository=route.repository_of(given))
    project = _name_or_header(route, "project", request, given)
    session = None if _is_subject(route, "session") else _name_or_header(route, "session", request, given)
    return NamedResources(project=project, session=session, repository=route.repository_of(given))


def _name_or_header(route: Route, name: str, request: Request, given: dict[str, Any]) -> str | None:
    """Return the project or session that a field or else a header names; a header must be valid even if it does not count."""
    from_header = _header_name(request, name)
    return _name_of(route, name, given.get(name)) or from_header


def _header_name(request: Request, name: str) -> str | None:
    """Return the project or session that a header names; raise `invalid_request` if it is not a name."""
    value = request.headers.get(f"x-holdfast-{name}", "").strip()
    if value and not is_name(value):
        fix = "Use 1 to 128 of A-Z a-z 0-9 . _ - that do not start with a dot"
        raise Problem("invalid_request", f"the header X-Holdfast-{name.capitalize()} is not a name", fix)
    return value or None


def _name_of(route: Route, name: str, value: object) -> str | None:
    """Return a project, session or agent as it was named; validation decides whether it may be.

    Where a request is about a session (to forget it, say), that may have a name which no caller's session may have.
    """
    return value if isinstance(value, str) and value and (is_name(value) or not _is_subject(route, name)) else None


def _is_subject(route: Route, name: str) -> bool:
    """Return whether a field says what a request is about, and not whose memory it uses: the route declares it itself."""
    return route.reads is not None and name in inspect.get_annotations(route.params)


def _closing(rows: Rows, stack: ExitStack) -> Rows:
    """Yield the rows and then close what they are read from."""
    with stack:
        yield from rows


async def _prepend(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in rest:
        yield chunk
