"""A route of the API: a Starlette route that also says which action it needs, what it takes and what it answers.

The request pipeline, the OpenAPI document, docs/api.md and the tests all read these attributes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import starlette.routing

from holdfast.access.policy import denial_reason
from holdfast.errors import UsageError
from holdfast.models import Stored
from holdfast.server.models import TARGET_FIELDS, RequestModel
from holdfast.server.problem import words_for
from holdfast.server.validation import request_fields

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.types import Receive, Scope, Send

    from holdfast.access import AccessGate, Caller, NamedResources, Role
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
    `handler` takes an `AuthorizedRequest` and the request's fields (`params`), and runs in a thread; it may return a
    `PendingReply`. A handler of a route that
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
        line: Any = None,  # the type of one line of an NDJSON body, for the document only
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
        choose_action: Callable[[dict[str, Any]], str] | None = None,  # the part of `action` that the request's fields need
        find_repository: Callable[[dict[str, Any]], str | None] | None = None,  # the repository that the fields name
        for_model: bool = False,  # whether a model reads its answer as it is
        is_slow: bool = False,  # whether it may take seconds: then it does not count among the requests that run at once
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
        self.is_slow = is_slow
        self._choose_action, self._find_repository = choose_action, find_repository

    def action_of(self, given: dict[str, Any]) -> str:
        """Return the action that a request with these fields needs."""
        return self._choose_action(given) if self._choose_action else self.action

    def repository_of(self, given: dict[str, Any]) -> str | None:
        """Return the repository that these fields name, as `OWNER/NAME`; None if the route is not about one."""
        return self._find_repository(given) if self._find_repository else None

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


@dataclass(kw_only=True)
class PendingReply:
    """An answer that waits for something outside of the handler's thread, such as a note in the write queue.

    `build` makes the reply from `future` once it is done, or raises its error. It runs in the event loop unless it `blocks`.
    """

    future: Future[Any]
    build: Callable[[Future[Any]], Any]
    blocks: bool = False


def check_everywhere(request: AuthorizedRequest, everywhere: bool) -> None:
    """Check a request for the notes of every scope: it needs `agents.manage` too, and names no agent."""
    if not everywhere:
        return
    if request.target.agent is not None:
        raise UsageError("`everywhere` and `agent` cannot be used together", "Give one of them")
    request.gate.allow(request.caller, "agents.manage", route=request.route.name, request=request.id)


def reply_when_stored(
    stored: Stored | Future[Stored], build: Callable[[Stored], Any], errors: Callable[[], Any] = nullcontext
) -> PendingReply:
    """Return the reply to a store, which may wait in the write queue. `errors` converts its errors."""

    def build_when_done(future: Future[Stored]) -> Any:
        with errors():
            return build(future.result())

    if isinstance(stored, Stored):
        done: Future[Stored] = Future()
        done.set_result(stored)
        return PendingReply(future=done, build=build_when_done)
    return PendingReply(future=stored, build=build_when_done)


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
    action: str  # what was allowed: the route's action, or a part of it
    scope: str | None  # the scope that the request is about; None for all that it reaches
    named: NamedResources  # the project, session and repository that it names
    scopes: tuple[str, ...]  # those of the role whose project and session are granted to the caller
    permit: Permit | None = None
    stack: ExitStack  # closes the memory when the request has been answered

    @functools.cached_property
    def memory(self) -> Memory:
        """Open the caller's memory; it stays open to the end of the request."""
        read_only = bool(denial_reason(self.role, WRITE, None))
        return self.stack.enter_context(
            self.gateway.open_memory(
                self.caller, self.role, self.target, self.scopes, read_only=read_only, words=words_for(self.headers)
            )
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
        """Check a scope that the request does not name itself; raise and record `Denied` if the caller does not reach it."""
        gate = self.gate
        if not gate.would_allow(self.caller, self.action, scope, self.named):
            gate.allow(self.caller, self.action, scope, named=self.named, route=self.route.name, request=self.id)
        self.target.must_name(scope)

    def recheck(self) -> None:
        """Check during a long upload that the token is still valid and that its role and grants still allow the action."""
        gate = self.gate
        self.caller = gate.identify(self.header("authorization").partition(" ")[2].strip(), self.caller.address)
        if not gate.would_allow(self.caller, self.action, self.scope, self.named):
            gate.allow(self.caller, self.action, self.scope, named=self.named, route=self.route.name, request=self.id)
