"""serve."""

from __future__ import annotations

import gc
import sys

from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.runner import Invocation

_MOST_WORKERS = 64
_TRY = (  # in a shell
    "try it in another terminal:",
    "  export HOLDFAST_URL=URL HOLDFAST_TOKEN=TOKEN",
    '  curl -sS -H "Authorization: Bearer $HOLDFAST_TOKEN" -H "Content-Type: application/json" '
    """-d '{"key": "deploys", "value": "We deploy on Tuesdays."}' "$HOLDFAST_URL/gateway/memory\"""",
    '  curl -sS -H "Authorization: Bearer $HOLDFAST_TOKEN" "$HOLDFAST_URL/gateway/memory"',
)
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve(call: Invocation) -> int:
    """Until it is told to stop."""
    gc.enable()  # a process that stays needs what one command does without
    from holdfast.cli.remote import say_where
    from holdfast.server import serve as server
    from holdfast.server.logs import Logs

    port = call["port"] if call["port"] is not None else server.PORT
    if not 0 <= port <= 65535:
        raise UsageError(f"there is no port {port}", "Give one of 1 to 65535, or 0 for any that is free")
    host, say = call["host"] or server.HOST, call.screen.aside
    logs = Logs(sys.stderr, as_json=bool(call["json_logs"]) or not sys.stderr.isatty())
    own = [] if host in (*_LOOPBACK, "0.0.0.0", "::") else [f"[{host}]" if ":" in host else host]
    named = (*(call["allow_host"] or ()), *own)
    workers = call["workers"] if call["workers"] is not None else 1
    if not 1 <= workers <= _MOST_WORKERS:
        raise UsageError(f"{workers} workers", f"Give 1 to {_MOST_WORKERS}")

    say_where(call, call.settings())

    def ready(where: str) -> None:
        _tell(call, where, _first_token(call))
        if logs.as_json:
            logs.log("info", event="listening", url=where)
        else:
            say(f"answering at {where}; stop with Ctrl-C")
        if host not in _LOOPBACK:
            say("whoever reaches this address can try a token: put TLS in front of it", "yellow")

    origins, store = tuple(call["allow_origin"] or ()), call.store_settings()
    server.serve(lambda: server.app_of(call["home"], named, origins, logs, store), host, port, logs, ready, workers)
    return 0


def _first_token(call: Invocation) -> str | None:
    from holdfast.access import AccessGate

    gate = AccessGate(call.settings())
    try:
        return gate.first_token()
    finally:
        gate.close()


def _tell(call: Invocation, where: str, token: str | None) -> None:
    """The first operator's token, on stdout, so that a log of stderr never has it; with --json the address too."""
    if call.screen.json:
        call.screen.document({"url": where, **({"agent": "operator", "token": token} if token else {})})
    elif token is not None:
        call.screen.say(f"operator's token, shown this once: {token}")
        for line in _TRY:
            call.screen.say(line.replace("=TOKEN", f"={token}").replace("=URL", f"={where}"))
    sys.stdout.flush()
