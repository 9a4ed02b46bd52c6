"""Sign in with a token or a one-time link, and sign out."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response

from holdfast.access import sessions
from holdfast.errors import Denied, Unauthenticated
from holdfast.server.pipeline import record
from holdfast.server.problem import Problem
from holdfast.server.web.page import (
    Page,
    Visit,
    describe_problem,
    find_session,
    is_same_site,
    read_small_form,
    redirect,
    render_page,
    set_cookie,
)

_OWN_PATH = re.compile(r"/(?:[A-Za-z0-9?][\x21-\x5b\x5d-\x7e]*)?")  # neither `//host` nor `/\host`, which leave this server


async def get_sign_in(request: Request) -> Response:
    """Show the form; with the code of a one-time link, a form that a script sends at once."""
    if await find_session(request) is not None:
        return redirect(_own_path(request.query_params.get("next", "")))
    values = {"code": request.query_params.get("code", ""), "next": request.query_params.get("next", ""), "problem": None}
    return await render_page(request, "sign-in.html", values)


async def post_sign_in(request: Request) -> Response:
    """Begin a session; one that the browser had before ends, so that its cookie is of no more use."""
    if not is_same_site(request):
        raise Problem("wrong_origin", "this form is not from a page of this server", "Open the sign-in page, and send its form")
    form, address = await read_small_form(request), record(request).address
    pipeline, previous = request.app.state.pipeline, await find_session(request)
    code, token = form.get("code", ""), form.get("token", "").strip()

    def begin() -> sessions.Session:
        gate = pipeline.gateway.gate
        session = sessions.sign_in_by_code(gate, code, address) if code else sessions.sign_in(gate, token, address)
        if previous is not None:
            sessions.sign_out(gate, previous)
        return session

    try:
        session = await pipeline.threads(begin)
    except (Unauthenticated, Denied) as error:
        found = describe_problem(request, error, False)
        values = {"code": "", "next": form.get("next", ""), "problem": found}
        return await render_page(request, "sign-in.html", values, found["status"])
    record(request).caller = session.caller
    response = redirect(_own_path(form.get("next", "")))
    set_cookie(request, response, session.cookie)
    return response


async def post_sign_out(visit: Visit) -> Response:
    pipeline = visit.pipeline
    await pipeline.threads(lambda: sessions.sign_out(pipeline.gateway.gate, visit.session))
    response = redirect("/sign-in")
    set_cookie(visit.request, response, "")
    return response


def _own_path(path: str) -> str:
    """Return a path of this server to go on to; `/` for anything else."""
    return path if _OWN_PATH.fullmatch(path) else "/"


PAGES = (
    Page("GET", "/sign-in", get_sign_in, is_public=True),
    Page("POST", "/sign-in", post_sign_in, is_public=True),
    Page("POST", "/sign-out", post_sign_out),
)
