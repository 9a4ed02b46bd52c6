"""A route as data: what it is called, who may ask, what it takes and answers, and the verb that does it. The app, the OpenAPI
document, docs/api.md and the tests are all made from these."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from holdfast.access.policy import why_not
from holdfast.base.record import Record
from holdfast.models import SCOPES
from holdfast.server.schema import Schema, fields, number, text

if TYPE_CHECKING:
    from holdfast.access import AccessGate, Caller, Role
    from holdfast.access.gate import Permit
    from holdfast.api.memory import Memory
    from holdfast.ledger import SqliteLedger
    from holdfast.server.gateway import Gateway, Target
    from holdfast.server.idempotency import Replay

READ, WRITE = "agent.memory.read", "agent.memory.write"
EVERYWHERE, NOWHERE = "*", ""  # a route that reads all the caller may see, and one that has nothing to do with scopes
NDJSON = "application/x-ndjson"

SCOPE = text("Where it belongs; otherwise to the project.", *SCOPES)
SCOPED = text("Only there; otherwise everything you may see.", *SCOPES)

_NAME = "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$"
WHOSE = {
    "project": text("The project that is meant; or send X-Holdfast-Project.", pattern=_NAME),
    "session": text("The session that is meant; or send X-Holdfast-Session.", pattern=_NAME),
}
PAGE = {"limit": number("So many; otherwise 50.", 1, 500), "cursor": text("Where the page before ended.", minLength=1)}
OTHERS = {"agent": text("Whose scope `agent` is meant, if not yours; takes `agents.manage` too.", pattern=_NAME)}


class Route(Record):
    """One line of the API. `scope` is the one that is meant where a request names none."""

    method: str
    path: str
    action: str  # "" for what everybody may ask, without a token
    verb: Callable[..., Any]
    summary: str
    scope: str = NOWHERE
    query: dict[str, Schema] = {}
    needs: tuple[str, ...] = ()  # what the query must have
    takes: Schema | None = None
    answers: Schema = fields({}, closed=False)
    status: int = 200
    example: Any = None
    shows: Any = None  # an example of the answer
    kind: str = "application/json"  # of the answer
    reads: str = "application/json"  # of the body
    again: Replay | None = None  # whether an Idempotency-Key counts, and how the answer is told again
    tagged: bool = False  # whether it goes by ETag and If-Match
    others: bool = False  # whether it may be about another agent's memory
    permits: bool = False  # whether its verb writes the row of the decision, together with what it changes
    for_model: bool = False  # whether a model reads its answer as it is
    does: tuple[str, ...] = ()  # the verbs of Memory that it is; every verb has a route, or a reason in holdfast.api.remote

    @functools.cached_property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @functools.cached_property
    def places(self) -> tuple[str, ...]:
        """The names in its path."""
        return tuple([part[1:-1] for part in self.path.split("/") if part.startswith("{")])

    @functools.cached_property
    def asks(self) -> dict[str, Schema]:
        """What may stand in its query: not what stands in its path, nor what its body says."""
        whose = self._whose if self.scope != NOWHERE and not self._says_whose else {}
        return {name: one for name, one in {**self.query, **whose}.items() if name not in self.places}

    @property
    def body(self) -> Schema | None:
        """What its body may say."""
        if self.takes is None or not self._says_whose:
            return self.takes
        return {**self.takes, "properties": {**self._whose, **self.takes.get("properties", {})}}

    @property
    def _whose(self) -> dict[str, Schema]:
        return {**WHOSE, **OTHERS} if self.others else WHOSE

    @property
    def _says_whose(self) -> bool:
        """Whether its body names project and session: where it is one object, it does."""
        return self.scope != NOWHERE and self.takes is not None and self.reads != NDJSON

    @functools.cached_property
    def shape(self) -> Schema:
        """All that may be given, wherever it stands."""
        body = self.body or {}
        needed = (*self.places, *self.needs, *body.get("required", ()))
        return fields({**self.query, **self.asks, **body.get("properties", {})}, *needed)

    @property
    def group(self) -> str:
        """The noun it is about."""
        parts = [part for part in self.path.split("/") if part]
        return parts[1] if parts[0] in ("v1", "gateway") else parts[0]


class Reply(Record):
    """An answer that is more than its body."""

    body: Any = None
    status: int = 0
    headers: dict[str, str] = {}


class Lines(Record):
    """An answer that is told line by line, as it is found."""

    rows: Iterator[dict[str, Any]]


class Asked:
    """One request, once it is known who asks and that they may: what was given, and the caller's memory."""

    def __init__(
        self, route: Route, gateway: Gateway, caller: Caller, role: Role, request_id: str, given: dict[str, Any],
        headers: dict[bytes, bytes], memory: Callable[[], Memory], whose: Target, permit: Permit | None = None,
    ) -> None:  # fmt: skip
        self.route, self.gateway, self.caller, self.id, self.whose = route, gateway, caller, request_id, whose
        self.given, self.headers, self.permit = given, headers, permit
        self.role = role  # as it was when this was allowed
        self._memory = memory

    @property
    def memory(self) -> Memory:
        return self._memory()

    @property
    def gate(self) -> AccessGate:
        """As the caller's tenant has it."""
        return self.gateway.gate.of(self.caller)

    @property
    def ledger(self) -> SqliteLedger:
        return self.gateway.ledger_of(self.caller)

    def must_reach(self, scope: str) -> None:
        """Of a scope that the request does not name itself: whether the role reaches it. A no is written down."""
        gate = self.gate
        if scope not in gate.role(self.caller.role).scopes:
            gate.allow(self.caller, self.route.action, scope, route=self.route.name, request=self.id)
        self.whose.must_name(scope)

    def must_still_be_let_in(self) -> None:
        """Of a request that takes long: whether its token is good, and its role may do this, even now."""
        gate = self.gate
        caller = gate.identify(self.header("authorization").partition(" ")[2].strip())
        if why_not(gate.role(caller.role), self.route.action, None):
            gate.allow(caller, self.route.action, route=self.route.name, request=self.id)

    def __getitem__(self, name: str) -> Any:
        return self.given[name]

    @property
    def page(self) -> tuple[int, str]:
        """How many are wanted of a list, and where the page before ended."""
        return self.given.get("limit", 50), self.given.get("cursor", "")

    def only(self, *names: str) -> dict[str, Any]:
        """Those of the fields that were given, as keyword arguments: what was not keeps the verb's own default."""
        return {name: self.given[name] for name in names if name in self.given}

    def header(self, name: str) -> str:
        return self.headers.get(name.encode(), b"").decode("latin-1").strip()
