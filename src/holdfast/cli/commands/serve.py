"""`serve`: run the gateway."""

from __future__ import annotations

import gc
import os
import shlex
import sys
from contextlib import closing

from holdfast import home
from holdfast.base.record import Record
from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.access.operator_token import OperatorToken
    from holdfast.cli.runner import Invocation
    from holdfast.server.logs import Logs

_MAX_WORKERS = 64
_EXAMPLE = (  # shell commands
    "Try it in another terminal:",
    "  export HOLDFAST_URL=URL HOLDFAST_TOKEN=TOKEN",
    '  curl -sS -H "Authorization: Bearer $HOLDFAST_TOKEN" -H "Content-Type: application/json" '
    """-d '{"key": "deploys", "value": "We deploy on Tuesdays."}' "$HOLDFAST_URL/gateway/memory\"""",
    '  curl -sS -H "Authorization: Bearer $HOLDFAST_TOKEN" "$HOLDFAST_URL/gateway/memory"',
)
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve(call: Invocation) -> int:
    """`holdfast serve`: answer requests until it is stopped."""
    gc.enable()  # a single command runs without
    from holdfast import sqlite
    from holdfast.cli.remote import report_local_home
    from holdfast.server import serve as server
    from holdfast.server.logs import Logs

    port = call["port"] if call["port"] is not None else server.PORT
    if not 0 <= port <= 65535:
        raise UsageError(f"--port must be 0 to 65535, not {port}", "Give a port from 1 to 65535, or 0 for any free port")
    workers = call["workers"] if call["workers"] is not None else 1
    if not 1 <= workers <= _MAX_WORKERS:
        raise UsageError(f"--workers must be 1 to {_MAX_WORKERS}, not {workers}", "Give a number in that range")
    sqlite.stop_counting_memory()
    host = call["host"] or server.HOST
    logs = Logs(sys.stderr, as_json=bool(call["json_logs"]) or not sys.stderr.isatty())
    report_local_home(call, call.load_settings())

    def report_ready(url: str) -> None:
        start = _ensure_operator(call)
        _print_start(call, url, start)
        if logs.as_json:
            logs.log("info", event="listening", url=url)
        else:
            call.output.print_message(f"listening on {url} (web console: open it in a browser); stop with Ctrl-C")
        _report_token(call, logs, start)
        if host not in _LOOPBACK:
            call.output.print_message("other machines can reach this address: put a TLS proxy in front of it", "yellow")

    hosts, origins = _list_hosts(call, host), tuple(call["allow_origin"] or ())
    given = {**call.parse_store_options(), **_parse_proxies(call)}
    server.serve(
        lambda shared, worker: server.app_of(
            call["home"], hosts=hosts, origins=origins, logs=logs, given=given, shared=shared, worker=worker
        ),
        host=host, port=port, logs=logs, ready=report_ready, workers=workers, home=call.load_settings().home,
    )  # fmt: skip
    return 0


def _parse_proxies(call: Invocation) -> dict[str, tuple[str, ...]]:
    """Return the proxies that the command line trusts, as a field of the settings; they replace those of config.toml."""
    from holdfast import config

    if not call["trusted_proxy"]:
        return {}
    setting = config.find_setting("serve.trusted_proxies")
    return {setting.field: config.check_value(setting, list(call["trusted_proxy"]), "--trusted-proxy")}


def _list_hosts(call: Invocation, host: str) -> tuple[str, ...]:
    """Return the host names that the gateway answers to besides those of loopback."""
    own = [] if host in (*_LOOPBACK, "0.0.0.0", "::") else [f"[{host}]" if ":" in host else host]
    return (*(call["allow_host"] or ()), *own)


class _Start(Record):
    """What to report at the start about the operator's token: the token, or the file that holds it."""

    token: str | None = None
    file: OperatorToken | None = None


def _ensure_operator(call: Invocation) -> _Start:
    """Create the first operator if there is no agent. Its token is for a terminal or a file, never for a log."""
    from holdfast.access import AccessGate
    from holdfast.access.operator_token import FILE, ensure_operator

    settings = call.load_settings()
    path = call["operator_token_file"] or settings.operator_token_file
    with closing(AccessGate(settings)) as gate:
        if path is None and sys.stdout.isatty():
            return _Start(token=gate.first_token())
        if path is None:
            path = os.path.join(settings.home, FILE)
            if not gate.has_agents():
                home.check_owner(settings.home, create=True)
        return _Start(file=ensure_operator(gate, os.path.abspath(path)))


def _print_start(call: Invocation, url: str, start: _Start) -> None:
    """Print the first operator's token on stdout, if that is a terminal; with --json also the URL."""
    token = start.token
    if call.output.json:
        written = start.file is not None and start.file.written
        made = {"agent": "operator", "token": token} if token else {}
        made |= {"agent": "operator", "token_file": start.file.path} if start.file and written else {}
        call.output.print_json({"url": url, **made})
    elif token is not None:
        call.output.print_line(f"operator token (shown only once): {token}")
        for line in _EXAMPLE:
            call.output.print_line(line.replace("=TOKEN", f"={token}").replace("=URL", f"={url}"))
    sys.stdout.flush()


def _report_token(call: Invocation, logs: Logs, start: _Start) -> None:
    """Say on stderr where the operator's token is, and how to get another one."""
    again = f"run `{_program()} agent rotate operator{_home_option(call)}` for a new one"
    if start.file is None:
        if start.token is None:
            call.output.print_message(f"the operator token was shown at the first start; {again}")
    elif start.file.written:
        _say(call, logs, "info", f"the operator token is in {start.file.path}", "Do not write it to logs")
    elif not start.file.valid and (call["operator_token_file"] or call.load_settings().operator_token_file):
        _say(call, logs, "warning", f"{start.file.path} contains no valid token, and agents exist already", again)


def _say(call: Invocation, logs: Logs, level: str, message: str, fix: str) -> None:
    if logs.as_json:
        logs.log(level, event="operator token", message=message, fix=fix)
    else:
        call.output.print_message(f"{message}. {fix}.")


def _program() -> str:
    """Return how this program was called: in a clone, `.venv/bin/holdfast`."""
    name = sys.argv[0]
    return shlex.quote(name) if os.path.basename(name) == "holdfast" else "holdfast"


def _home_option(call: Invocation) -> str:
    return f" --home {shlex.quote(call['home'])}" if call["home"] else ""
