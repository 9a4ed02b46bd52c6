"""Part `network`: no verb, command or route of a gateway opens a connection; a gateway listens only on loopback.

Each interface runs in a child that refuses sockets from inside, and strace records its system calls from outside.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from battery import access_trace, strace
from battery.report import Report, repeat_command
from battery.workspace import Workspace

INTERFACES = ("library", "cli", "gateway")
_TIMEOUT = 300  # seconds for a child
_GATEWAY_TIMEOUT = 120  # seconds for a gateway and all requests to it
_QUERY = {
    "pattern": "demo", "entity": "Ada", "from": "Ada", "to": "Bob", "of": "t1", "path": "x.md", "kind": "project",
    "subject": "x", "target": "x",
}  # fmt: skip
_PATH_VALUES = {"{scope}": "agent", "{key}": "k", "{name}": "nobody", "{id}": "01", "{code}": "busy"}
ChildResult = dict[str, Any]  # attempts, problems; of a gateway also bound: the addresses it listens on


def run(workspace: Workspace, report: Report, share: float, seed: int) -> None:
    """Test all interfaces, whatever the share."""
    reason = strace.unavailable_reason()
    if reason:
        report.add_not_tried("network: connections, seen from outside with strace", reason)
    for interface in INTERFACES:
        with report.start_row(f"network: everything by the {interface}") as row:
            problems = find_connections(workspace, interface, traced=not reason)
            row.add(problems, repeat_command("network", share, seed))
            count = sum("network" in problem for problem in problems)
            row.set_figure(f"{count} connections" + ("" if reason else ", seen from outside"))


def find_connections(workspace: Workspace, interface: str, *, traced: bool) -> list[str]:
    """Return each use of a network, seen from inside or outside, and each verb or route that failed or was not called."""
    home = Path(os.path.realpath(workspace.new_home("network")))
    environment = {**workspace.full_environment(with_battery=True), "HOME": str(home.parent)}
    del environment["HOLDFAST_EMBEDDER"]  # use the models that are installed
    log = home.parent / "trace"
    child = [sys.executable, "-m", "battery.network_child", interface, str(home)]
    command = access_trace.trace_command(log, child, access_trace.NET_CALLS) if traced else child
    serves = interface == "gateway"
    result = run_gateway(command, environment, "/") if serves else _run_child(command, environment)
    seen = access_trace.find_connections(log, str(home), serves) if traced else []
    workspace.remove_home(home)
    problems = [f"network, from inside: {attempt}" for attempt in result["attempts"]]
    if serves and result["bound"] != ["127.0.0.1"]:
        problems.append(f"network, it listens on {result['bound']}")
    return [*problems, *[f"network, from outside: {line}" for line in seen], *result["problems"]]


def _run_child(command: list[str], environment: dict[str, str]) -> ChildResult:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd="/", timeout=_TIMEOUT)
    lines: list[ChildResult] = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return lines[-1] if lines else {"attempts": [], "problems": [f"it did not finish: {done.stderr[-600:]}"]}


# --- a gateway --------------------------------------------------------------------------------------------------------


def run_gateway(command: list[str], environment: dict[str, str], cwd: str) -> ChildResult:
    """Start a gateway, request every route once, stop it, and return its result with the failed requests."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=cwd,
        start_new_session=True,
    ) as process:  # fmt: skip
        timer = threading.Timer(_GATEWAY_TIMEOUT, lambda: os.killpg(process.pid, signal.SIGKILL))  # strace too
        timer.start()
        errors: list[str] = []
        reader = threading.Thread(target=lambda: errors.append(process.stderr.read() if process.stderr else ""))
        reader.start()
        assert process.stdin and process.stdout
        try:
            problems = _request_all_routes(_read_address(process.stdout))
            process.stdin.close()  # it stops by itself: strace would get a signal
            lines = process.stdout.read().splitlines()
            code = process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            timer.cancel()
            reader.join()
    if code != 0 or not lines:
        return {"attempts": [], "bound": [], "problems": [*problems, f"it ended with {code}: {''.join(errors)[-600:]}"]}
    result: ChildResult = json.loads(lines[-1])
    return {**result, "problems": [*problems, *result["problems"]]}


def _read_address(stream: IO[str]) -> dict[str, str]:
    """Return the URL that `serve --json` prints, and the token from the file that it names."""
    text = ""
    for line in stream:
        text += line
        try:
            address: dict[str, str] = json.loads(text)
        except ValueError:
            continue
        return {**address, "token": Path(address["token_file"]).read_text(encoding="utf-8").strip()}
    raise AssertionError(f"it did not begin to answer: {text[-300:]}")


def _request_all_routes(address: dict[str, str]) -> list[str]:
    """Request every route once; return those that fail, and say so if less than half succeed."""
    from holdfast.server.routes import ROUTES

    url = urlsplit(address["url"])
    statuses = {route.name: _request_route(url.hostname or "", url.port or 0, address["token"], route) for route in ROUTES}
    failed = [f"{name}: {status}" for name, status in statuses.items() if status in (401, 403, 500)]
    done = sum(200 <= status < 300 for status in statuses.values())
    return failed if done > len(ROUTES) // 2 else [*failed, f"only {done} of {len(ROUTES)} routes were done: {statuses}"]


def _request_route(host: str, port: int, token: str, route: Any) -> int:
    """Request one route and return the status."""
    path = route.path
    for name, value in _PATH_VALUES.items():
        path = path.replace(name, value)
    query = "&".join([f"{name}={_QUERY[name]}" for name in route.required_fields if name in route.query_fields])
    body = None if route.reads is None else json.dumps(route.example)
    headers = {"Authorization": f"Bearer {token}", "X-Holdfast-Project": "demo", "X-Holdfast-Session": "s1"}
    if body:
        headers["Content-Type"] = route.reads
    connection = http.client.HTTPConnection(host, port, timeout=_GATEWAY_TIMEOUT)
    try:
        connection.request(route.method, f"{path}?{query}", body, headers)
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()
