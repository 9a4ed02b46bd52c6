"""A gateway in a watched child, and somebody outside who asks for every route of it once."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import threading
from typing import IO, Any
from urllib.parse import urlsplit

_SECONDS = 120
_ASKS = {"entity": "Ada", "from": "Ada", "to": "Bob", "of": "t1", "path": "x.md", "kind": "triage", "subject": "x"}
_NAMES = {"{scope}": "agent", "{key}": "k", "{name}": "nobody", "{id}": "01", "{code}": "busy"}


def judged(child: list[str], environment: dict[str, str], cwd: str) -> dict[str, Any]:
    """What the child says of itself at its end, and what is wrong as seen from here."""
    with subprocess.Popen(
        child, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=cwd,
        start_new_session=True,
    ) as process:  # fmt: skip
        late = threading.Timer(_SECONDS, lambda: os.killpg(process.pid, signal.SIGKILL))  # whoever watches it too
        late.start()
        said: list[str] = []
        hears = threading.Thread(target=lambda: said.append(_all(process.stderr)))
        hears.start()
        assert process.stdin and process.stdout
        try:
            wrong = _asked(_document(process.stdout))
            process.stdin.close()  # it stops by itself: a signal would be for whoever watches it
            lines = process.stdout.read().splitlines()
            code = process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            late.cancel()
            hears.join()
    if code != 0 or not lines:
        return {"attempts": [], "bound": [], "wrong": [*wrong, f"it ended with {code}: {''.join(said)[-600:]}"]}
    told: dict[str, Any] = json.loads(lines[-1])
    return {**told, "wrong": [*wrong, *told["wrong"]]}


def _all(stream: IO[str] | None) -> str:
    return stream.read() if stream else ""


def _document(stream: IO[str]) -> dict[str, str]:
    """The address and the token, as `serve --json` tells them."""
    text = ""
    for line in stream:
        text += line
        try:
            told: dict[str, str] = json.loads(text)
        except ValueError:
            continue
        return told
    raise AssertionError(f"it did not begin to answer: {text[-300:]}")


def _asked(where: dict[str, str]) -> list[str]:
    """Every route once; one that fails is wrong, and so is a walk that got nowhere."""
    from holdfast.server.routes import ROUTES

    at = urlsplit(where["url"])
    answers = {route.name: _status(at.hostname or "", at.port or 0, where["token"], route) for route in ROUTES}
    failed = [f"{name}: {status}" for name, status in answers.items() if status in (401, 403) or status == 500]
    done = sum(200 <= status < 300 for status in answers.values())
    return failed if done > len(ROUTES) // 2 else [*failed, f"only {done} of {len(ROUTES)} routes were done: {answers}"]


def _status(host: str, port: int, token: str, route: Any) -> int:
    path = route.path
    for name, value in _NAMES.items():
        path = path.replace(name, value)
    query = "&".join([f"{name}={_ASKS[name]}" for name in route.required_fields if name in route.query_fields])
    body = None if route.reads is None else json.dumps(route.example)
    sent = {"Authorization": f"Bearer {token}", "X-Holdfast-Project": "demo", "X-Holdfast-Session": "s1"}
    connection = http.client.HTTPConnection(host, port, timeout=_SECONDS)
    try:
        connection.request(route.method, f"{path}?{query}", body, sent | ({"Content-Type": route.reads} if body else {}))
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()
