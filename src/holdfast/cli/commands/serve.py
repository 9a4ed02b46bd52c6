"""`serve`: run the gateway."""

from __future__ import annotations

import gc
import sys
from contextlib import closing

from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.runner import Invocation

_MAX_WORKERS = 64
_EXAMPLE = (  # shell commands
    "try it in another terminal:",
    "  export HOLDFAST_URL=URL HOLDFAST_TOKEN=TOKEN",
    '  curl -sS -H "Authorization: Bearer $HOLDFAST_TOKEN" -H "Content-Type: application/json" '
    """-d '{"key": "deploys", "value": "We deploy on Tuesdays."}' "$HOLDFAST_URL/gateway/memory\"""",
    '  curl -sS -H "Authorization: Bearer $HOLDFAST_TOKEN" "$HOLDFAST_URL/gateway/memory"',
)
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve(call: Invocation) -> int:
    """`holdfast serve`: answer requests until it is stopped."""
    gc.enable()  # a single command runs without
    from holdfast.cli.remote import report_local_home
    from holdfast.server import serve as server
    from holdfast.server.logs import Logs

    port = call["port"] if call["port"] is not None else server.PORT
    if not 0 <= port <= 65535:
        raise UsageError(f"there is no port {port}", "Give one of 1 to 65535, or 0 for any that is free")
    workers = call["workers"] if call["workers"] is not None else 1
    if not 1 <= workers <= _MAX_WORKERS:
        raise UsageError(f"{workers} workers", f"Give 1 to {_MAX_WORKERS}")
    host = call["host"] or server.HOST
    logs = Logs(sys.stderr, as_json=bool(call["json_logs"]) or not sys.stderr.isatty())
    report_local_home(call, call.load_settings())

    def report_ready(url: str) -> None:
        _print_start(call, url, _create_first_token(call))
        if logs.as_json:
            logs.log("info", event="listening", url=url)
        else:
            call.output.print_message(f"answering at {url}; stop with Ctrl-C")
        if host not in _LOOPBACK:
            call.output.print_message("whoever reaches this address can try a token: put TLS in front of it", "yellow")

    hosts, origins = _list_hosts(call, host), tuple(call["allow_origin"] or ())
    given = {**call.parse_store_options(), **_parse_proxies(call)}
    server.serve(
        lambda: server.app_of(call["home"], hosts=hosts, origins=origins, logs=logs, given=given),
        host=host, port=port, logs=logs, ready=report_ready, workers=workers,
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


def _create_first_token(call: Invocation) -> str | None:
    """Return a token for a first operator, or None if there is an agent already."""
    from holdfast.access import AccessGate

    with closing(AccessGate(call.load_settings())) as gate:
        return gate.first_token()


def _print_start(call: Invocation, url: str, token: str | None) -> None:
    """Print the first operator's token on stdout, so that a log of stderr never has it; with --json also the URL."""
    if call.output.json:
        call.output.print_json({"url": url, **({"agent": "operator", "token": token} if token else {})})
    elif token is not None:
        call.output.print_line(f"operator's token, shown this once: {token}")
        for line in _EXAMPLE:
            call.output.print_line(line.replace("=TOKEN", f"={token}").replace("=URL", f"={url}"))
    sys.stdout.flush()
