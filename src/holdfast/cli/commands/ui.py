"""`ui`: open the web console of this home in a browser."""

from __future__ import annotations

import gc
import sys
from contextlib import closing

from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.runner import Invocation

_HOST = "127.0.0.1"


def ui(call: Invocation) -> int:
    """`holdfast ui`: use the server of this home that runs, or start one until Ctrl-C, and open a one-time sign-in link."""
    gc.enable()  # a single command runs without
    from holdfast import sqlite
    from holdfast.cli.remote import report_local_home
    from holdfast.server import running
    from holdfast.server import serve as server
    from holdfast.server.logs import Logs

    port = call["port"]
    if port is not None and not 0 <= port <= 65535:
        raise UsageError(f"--port must be 1 to 65535, not {port}", "Leave out --port for any free port")
    settings = call.load_settings()
    report_local_home(call, settings)
    found = running.find_server(settings.home) if port is None else None
    if found is not None:
        _open_link(call, found.url, "server already running")
        return 0
    sqlite.stop_counting_memory()
    logs = Logs(sys.stderr, as_json=not sys.stderr.isatty(), requests=False)
    given = call.parse_store_options()
    server.serve(
        lambda shared, worker: server.app_of(
            call["home"], hosts=(), origins=(), logs=logs, given=given, shared=shared, worker=worker
        ),
        host=_HOST, port=port or 0, logs=logs, ready=lambda url: _open_link(call, url, "stop with Ctrl-C"),
        home=settings.home,
    )  # fmt: skip
    return 0


def _open_link(call: Invocation, url: str, note: str) -> None:
    """Make a sign-in link that works once within a minute, and open or print it."""
    from holdfast.access import AccessGate, sessions

    with closing(AccessGate(call.load_settings())) as gate:
        link = f"{url}/sign-in?code={sessions.make_code(gate)}"
    if call.output.json:
        call.output.print_json({"url": url, "link": link, "seconds": sessions.CODE_SECONDS})
    elif call["no_browser"]:
        call.output.print_line(link)
    sys.stdout.flush()
    call.output.print_message(f"the console is at {url} ({note})")
    if call["no_browser"]:
        call.output.print_message(f"the link works once, within {sessions.CODE_SECONDS} seconds")
    elif not call.output.json:
        _open_browser(call, link)


def _open_browser(call: Invocation, link: str) -> None:
    import webbrowser

    if not webbrowser.open(link):
        call.output.print_line(link)
        call.output.print_message("no browser found: open the link above within a minute")
        sys.stdout.flush()
