"""A page of the console: find the session, check the form, call the API, and render a template with strict headers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote

import starlette.routing
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from holdfast.access.policy import ACTIONS
from holdfast.server import body, problem
from holdfast.server.client_address import came_by_https
from holdfast.server.pipeline import record
from holdfast.server.problem import Problem

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from holdfast.access.policy import Caller
    from holdfast.access.sessions import Session
    from holdfast.server.pipeline import Pipeline

FORM = "application/x-www-form-urlencoded"
FORM_TOKEN = "form_token"
_MAX_FIELDS = 64
_COOKIE_SECONDS = 7 * 86400
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
# `same-origin`, not `no-referrer`: with that browsers send `Origin: null` with a form, which the check of origins refuses.
_HEADERS = {
    "content-security-policy": _CSP, "referrer-policy": "same-origin", "cross-origin-opener-policy": "same-origin",
    **problem.fixed_headers("text/html; charset=utf-8"), "vary": "HX-Request, Cookie",
}  # fmt: skip
_DONE = (  # what an address may say was just done
    "saved", "unchanged", "pinned", "unpinned", "moved", "forgotten", "restored", "reverted", "revoked", "granted", "ungranted",
    "reindexed", "embedded", "retained",
)  # fmt: skip


@dataclass(kw_only=True)
class Visit:
    """A request of a person who is signed in."""

    request: Request
    session: Session
    permissions: frozenset[str]  # the actions that the person's role allows
    form: Mapping[str, str] = field(default_factory=dict)

    @property
    def caller(self) -> Caller:
        return self.session.caller

    @property
    def is_fragment(self) -> bool:
        """Return whether htmx asks for a part of the page."""
        headers = self.request.headers
        return headers.get("hx-request") == "true" and headers.get("hx-history-restore-request") != "true"

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query_params

    async def call(self, name: str, fields: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None) -> Any:
        """Return the answer of a route of the API, asked in this person's name."""
        return (await self.pipeline.call(self.request, self.caller, name, fields, headers)).body

    @property
    def pipeline(self) -> Pipeline:
        found: Pipeline = self.request.app.state.pipeline
        return found

    @property
    def everywhere(self) -> dict[str, bool]:
        """Return the field that asks for the notes of all scopes, if the person may."""
        return {"everywhere": True} if self.caller.is_person and "agents.manage" in self.permissions else {}

    def paging(self, limit: int) -> dict[str, Any]:
        """Return the fields that ask for the page of a list which the address names."""
        cursor = self.query.get("cursor")
        return {"limit": limit, **({"cursor": cursor} if cursor else {})}

    def describe(self, error: Exception) -> dict[str, Any]:
        """Return a problem as the API would tell it to this person."""
        return describe_problem(self.request, error, self.caller.is_person)

    async def render(self, template: str, /, http_status: int = 200, **values: Any) -> Response:
        """Return a page."""
        done = self.query.get("done", "")
        known = {
            "person": self.caller, "may": self.permissions, "form_token": self.session.form_token,
            "path": self.request.url.path, "done": done if done in _DONE else "", **values,
        }  # fmt: skip
        return await render_page(self.request, template, known, http_status)


PageHandler = Callable[..., Awaitable[Response]]


class Page(starlette.routing.Route):
    """One method of one address. `handler` takes a `Visit`; that of a public page, which needs no session, the request."""

    def __init__(self, method: str, path: str, handler: PageHandler, *, is_public: bool = False) -> None:
        super().__init__(path, handler, methods=[method], name=f"{method} {path}")
        self.method, self.handler, self.is_public = method, handler, is_public

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with HTML. What is not a browser gets what it would get where there is no page."""
        request, pipeline = Request(scope, receive, send), scope["app"].state.pipeline
        if scope["method"] not in (self.methods or ()) or not (self.is_public or _is_browser(request)):
            await pipeline.refuse_path(scope, receive, send)
            return
        record(request).route = self.name
        try:
            response = await self._answer(request, pipeline)
        except ClientDisconnect:
            raise
        except Exception as error:
            response = await _render_problem(request, pipeline, error)
        await response(scope, receive, send)

    async def _answer(self, request: Request, pipeline: Pipeline) -> Response:
        if self.is_public:
            return await self.handler(request)
        session = await find_session(request)
        if session is None:
            return _to_sign_in(request)
        permissions = await pipeline.threads(lambda: _list_permissions(pipeline, session.caller))
        request.state.visit = visit = Visit(request=request, session=session, permissions=permissions)
        if request.method == "POST":
            visit.form = parse_form(request, await pipeline.read_body(request))
            check_form(request, session, visit.form)
        return await self.handler(visit)


# --- sessions and forms ---------------------------------------------------------------------------------------------------


async def find_session(request: Request) -> Session | None:
    """Return the session of the request's cookie."""
    cookie = request.cookies.get(_cookie_name(request), "")
    pipeline: Pipeline = request.app.state.pipeline
    return await pipeline.find_session(request, cookie) if cookie else None


def set_cookie(request: Request, response: Response, cookie: str) -> None:
    """Let the browser keep a session; with "" it removes the cookie."""
    settings = request.app.state.pipeline.gateway.settings
    peer = request.client.host if request.client else ""
    response.set_cookie(
        _cookie_name(request), cookie, max_age=_COOKIE_SECONDS if cookie else 0, path="/", httponly=True, samesite="strict",
        secure=came_by_https(request.scope["scheme"], peer, request.headers, settings.trusted_proxies),
    )  # fmt: skip


def _cookie_name(request: Request) -> str:
    """Return the name of the cookie: browsers send cookies to every port of a host, and each server has its own session."""
    port = request.headers.get("host", "").rpartition(":")[2]
    return f"holdfast_{port}" if port.isascii() and port.isdecimal() else "holdfast"


def parse_form(request: Request, data: bytes) -> dict[str, str]:
    """Return the fields of a form; lines end as they do in files."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != FORM:
        raise Problem("wrong_type", f"this page reads {FORM}", "Send the form of the page")
    try:
        pairs = parse_qsl(data.decode("ascii"), keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict")
    except ValueError:
        raise Problem("invalid_request", "the form cannot be read", "Load the page again") from None
    return {name: value.replace("\r\n", "\n") for name, value in pairs}


def check_form(request: Request, session: Session, form: Mapping[str, str]) -> None:
    """Raise unless a form comes from a page of this session: the token in it, and the site that the browser names."""
    if not is_same_site(request) or not session.accepts(form.get(FORM_TOKEN, "")):
        raise Problem("wrong_origin", "this form does not belong to your session", "Load the page again, and send its form")


def is_same_site(request: Request) -> bool:
    """Return whether a form comes from a page of this server, as far as the browser says; `Origin` was checked before."""
    return request.headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")


async def read_small_form(request: Request) -> dict[str, str]:
    """Return the fields of a form from a person who is not signed in: a few kilobytes at most."""
    return parse_form(request, await body.read_body(request.headers, request.receive, 8192))


def _is_browser(request: Request) -> bool:
    """Return whether a browser asks, which takes HTML; a request with a token of its own never gets a page."""
    headers = request.headers
    return "authorization" not in headers and ("text/html" in headers.get("accept", "") or "hx-request" in headers)


def _to_sign_in(request: Request) -> Response:
    """Send a person who is not signed in to the page for that, and back to where they were."""
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    back = f"?next={quote(path, safe='/')}" if request.method == "GET" and path != "/" else ""
    if request.headers.get("hx-request"):
        return Response(status_code=401, headers={**_HEADERS, "hx-redirect": "/sign-in"})
    return redirect(f"/sign-in{back}")


def _list_permissions(pipeline: Pipeline, caller: Caller) -> frozenset[str]:
    gate = pipeline.gateway.gate
    allowed = {action for action in ACTIONS if gate.would_allow(caller, action, None)}
    if not pipeline.gateway.is_own_tenant(caller):
        allowed.discard("metrics.read")  # the figures are about every tenant, and the API refuses them to this one
    return frozenset(allowed)


# --- answers --------------------------------------------------------------------------------------------------------------


async def render_page(request: Request, template: str, values: dict[str, Any], status: int = 200) -> Response:
    """Return a template as a page, rendered in a thread: a long note takes a while."""
    from holdfast.server.web import templates

    known = {"person": None, "may": frozenset(), "form_token": "", "path": request.url.path, "done": "", **values}
    html = await request.app.state.pipeline.threads(lambda: templates.render(template, known))
    return Response(html.encode("utf-8", "replace"), status, _HEADERS)


def redirect(url: str) -> Response:
    """Send the browser to another page of ours, with GET."""
    return Response(status_code=303, headers={**_HEADERS, "location": url})


def read_number(text: str | None, default: int) -> int:
    """Return a number of at most 9 digits from a form or an address; the default for anything else."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) <= 9 else default


def describe_problem(request: Request, error: Exception, is_person: bool) -> dict[str, Any]:
    """Return a problem as the API would tell it to this caller."""
    pipeline: Pipeline = request.app.state.pipeline
    status, found, headers = problem.of(error, record(request).id)
    record(request).outcome = found["code"]
    if status == 500:
        record(request).failure = [type(error).__name__, *problem.where(error)]
    return {**problem.for_caller(found, pipeline.gateway.home, is_person), "headers": headers}


async def _render_problem(request: Request, pipeline: Pipeline, error: Exception) -> Response:
    """Return an error as a page."""
    caller = record(request).caller
    found = describe_problem(request, error, bool(caller and caller.is_person))
    visit: Visit | None = getattr(request.state, "visit", None)
    if visit is not None:
        response = await visit.render("problem.html", http_status=found["status"], problem=found)
    else:
        response = await render_page(request, "problem.html", {"problem": found}, found["status"])
    response.headers.update({name: value for name, value in found["headers"].items() if name == "retry-after"})
    return response
