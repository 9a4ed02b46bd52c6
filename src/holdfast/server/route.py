"""A route of the API: a Starlette route that also says which action it needs, what it takes and what it answers.

The request pipeline, the OpenAPI document, docs/api.md and the tests all read these attributes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import starlette.routing

from holdfast.access.policy import denial_reason
from holdfast.server.models import TARGET_FIELDS, RequestModel
from holdfast.server.validation import request_fields

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.types import Receive, Scope, Send

    from holdfast.access import AccessGate, Caller, Role
    from holdfast.access.gate import Permit
    from holdfast.api.memory import Memory
    from holdfast.ledger.interface import Ledger
    from holdfast.server.gateway import Gateway, Target
    from holdfast.server.idempotency import Replay

READ, WRITE = "agent.memory.read", "agent.memory.write"
ALL_SCOPES, NO_SCOPE = "*", ""  # a route that reads every scope the caller may see, and one that is not about scopes
JSON, NDJSON = "application/json", "application/x-ndjson"


class Route(starlette.routing.Route):
    """One method of one path.

    `action` is what the caller's role must allow; "" for routes that need no token. `scope` is the default scope of a request.
    `handler` takes an `AuthorizedRequest` and the request's fields (`params`), and runs in a thread. A handler of a route that
    reads NDJSON is a coroutine and takes the upload too; a handler of a route without a token is a coroutine and takes
    Starlette's request.
    """

    def __init__(
        self, method: str, path: str, handler: Callable[..., Any], *,
        action: str,
        summary: str,
        answers: Any,  # a ResponseModel, a Record, or a plain type
        scope: str = NO_SCOPE,
        params: type[RequestModel] = RequestModel,
        reads: str | None = None,  # the media type of the body; None: there is none
        line: type[msgspec.Struct] | None = None,  # one line of an NDJSON body, for the document only
        status: int = 200,
        other_status: int | None = None,  # 200 for a write that made nothing new, 201 for one that did
        problems: tuple[str, ...] = (),  # codes that its handler adds to those which server/responses.py derives
        example: Any = None,  # of a body
        answer_example: Any = None,
        media_type: str = JSON,  # of the answer
        replay: Replay | None = None,  # how an answer is repeated for the same Idempotency-Key; None: the header is ignored
        has_etag: bool = False,
        may_name_agent: bool = False,  # whether it may be about another agent's memory
        records_decision: bool = False,  # whether the handler writes the audit row, together with what it changes
        for_model: bool = False,  # whether a model reads its answer as it is
        verbs: tuple[str, ...] = (),  # the methods of Memory that it offers
    ) -> None:  # fmt: skip
        super().__init__(path, handler, methods=[method], name=f"{method} {path}")
        self.method, self.handler = method, handler
        self.action, self.summary, self.scope = action, summary, scope
        self.params, self.reads, self.line = params, reads, line
        self.answers, self.status, self.other_status, self.media_type = answers, status, other_status, media_type
        self.problems = problems
        self.example, self.answer_example = example, answer_example
        self.replay, self.has_etag, self.may_name_agent = replay, has_etag, may_name_agent
        self.records_decision, self.for_model, self.verbs = records_decision, for_model, verbs

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request to the app's pipeline. Starlette calls this for the first route of a path, whatever the method."""
        pipeline = scope["app"].state.pipeline
        if scope["method"] in (self.methods or ()):
            await pipeline.run(self, scope, receive, send)
        else:
            await pipeline.refuse_method(self.path, scope, receive, send)

    @functools.cached_property
    def path_fields(self) -> tuple[str, ...]:
        return tuple(self.param_convertors)

    @functools.cached_property
    def fields(self) -> tuple[str, ...]:
        """Return the names of all fields, in the order that documents and errors use."""
        others = [name for name in request_fields(self.params) if name not in self.path_fields]
        if self.reads != JSON:  # a query names project and session last
            others.sort(key=lambda name: name in TARGET_FIELDS and self.scope != NO_SCOPE)
        return (*self.path_fields, *others)

    @functools.cached_property
    def query_fields(self) -> tuple[str, ...]:
        """Return the names that may be in the query: all but those of the path, unless they are in a JSON body."""
        return () if self.reads == JSON else tuple([name for name in self.fields if name not in self.path_fields])

    @functools.cached_property
    def body_fields(self) -> tuple[str, ...]:
        """Return the names that may be in a JSON body."""
        return tuple([name for name in self.fields if name not in self.path_fields]) if self.reads == JSON else ()

    @functools.cached_property
    def required_fields(self) -> tuple[str, ...]:
        fields = request_fields(self.params)
        return tuple([name for name in self.fields if fields[name].required])

    @property
    def is_upload(self) -> bool:
        """Return whether its body is read in chunks while the handler runs."""
        return self.reads == NDJSON

    @property
    def group(self) -> str:
        """Return the noun it is about, as documents group routes."""
        parts = [part for part in self.path.split("/") if part]
        return parts[1] if parts[0] in ("v1", "gateway") else parts[0]


@dataclass(kw_only=True)
class Reply:
    """An answer with a status or headers of its own. `body`: plain data, a model, bytes, or an iterator of lines."""

    body: Any = None
    status: int | None = None  # None: that of the route
    headers: dict[str, str] = field(default_factory=dict)


Rows = Iterator[dict[str, Any]]  # the body of a reply that is sent line by line


@dataclass(kw_only=True)
class AuthorizedRequest:
    """A request whose caller is known and allowed: the handler's view of it."""

    route: Route
    gateway: Gateway
    caller: Caller
    role: Role  # as it was when the request was allowed
    id: str
    headers: Headers
    target: Target
    permit: Permit | None = None
    stack: ExitStack  # closes the memory when the request has been answered

    @functools.cached_property
    def memory(self) -> Memory:
        """Open the caller's memory; it stays open to the end of the request."""
        read_only = bool(denial_reason(self.role, WRITE, None))
        return self.stack.enter_context(
            self.gateway.open_memory(self.caller, self.target, self.role.scopes, read_only=read_only)
        )

    @property
    def gate(self) -> AccessGate:
        """Return the access gate of the caller's tenant."""
        return self.gateway.gate.for_caller(self.caller)

    @property
    def ledger(self) -> Ledger:
        return self.gateway.ledger_of(self.caller)

    def header(self, name: str) -> str:
        return self.headers.get(name, "").strip()

    def must_reach(self, scope: str) -> None:
        """Check a scope that the request does not name itself; raise and record `Denied` if the role does not reach it."""
        gate = self.gate
        if scope not in gate.role(self.caller.role).scopes:
            gate.allow(self.caller, self.route.action, scope, route=self.route.name, request=self.id)
        self.target.must_name(scope)

    def recheck(self) -> None:
        """Check during a long upload that the token is still valid and that its role still allows the action."""
        gate = self.gate
        caller = gate.identify(self.header("authorization").partition(" ")[2].strip())
        if denial_reason(gate.role(caller.role), self.route.action, None):
            gate.allow(caller, self.route.action, route=self.route.name, request=self.id)
