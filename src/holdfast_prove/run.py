"""One run of a real client program in a private home: prepared, started, watched, stopped, and what was seen of it.

Nothing of the user's is read or written but the program itself. The private home is set up by the same code that an install
runs; between the client and Holdfast stands `recorder.py`, and for a model it has ours.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import sys
import time
from typing import BinaryIO

from holdfast.base.record import Record
from holdfast.clients.base import Client, InstallTarget
from holdfast.errors import NotFound, UsageError
from holdfast_prove import sandbox
from holdfast_prove.model_server import Model, Request

PROMPT = "What is the code word of the harbour? And what share of traffic does the canary get?"
QUERY = "How is the lighthouse keeper's cat called?"
SECONDS = 120
_OWN = "Give the path of the client's own program: --program PATH"
_PATIENCE = 3  # seconds for a program to end when it is told to
_TAIL = 4000  # characters of what a program printed that are worth showing
_PASSED = ("PATH", "LANG", "LC_ALL", "TZ", "SYSTEMROOT")  # all that a private run gets of the user's environment


class Run(Record):
    """What was seen of one run."""

    client: str
    program: str
    code: int | None  # None if it had to be stopped
    seconds: float
    printed: str  # the end of what it said
    briefed: str  # the word that only a briefing holds
    buried: str  # the word that only a recall brings up
    requests: tuple[Request, ...] = ()
    calls: tuple[sandbox.Called, ...] = ()  # of Holdfast
    refused: tuple[str, ...] = ()  # hosts it wanted to reach


def find_program(client: Client, place: InstallTarget, named: str | None) -> str:
    """The client's program: the one a person names, or the one on the PATH."""
    found = os.path.abspath(named) if named else place.program(*client.programs)
    if not found:
        raise NotFound(f"no program of {client.title} is on the PATH", "Install it, or say where it is: --program PATH")
    if not os.access(found, os.X_OK):
        raise UsageError(f"{found} is no program that can be run", _OWN)
    return found


def version_of(program: str, environ: dict[str, str], root: str) -> str:
    """What the program says its version is; nothing if it does not say."""
    kept = {name: environ[name] for name in _PASSED if environ.get(name)}
    try:
        done = subprocess.run(
            [program, "--version"], env={**kept, "HOME": root, "TERM": "dumb", "CI": "1"}, cwd=root, capture_output=True,
            stdin=subprocess.DEVNULL, timeout=30,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(rb"\d+\.\d+\.\d+\S*", done.stdout + done.stderr)
    return found[0].decode("ascii", "replace") if found else ""


def run(client: Client, program: str, command: tuple[str, ...], environ: dict[str, str], root: str, seconds: float) -> Run:
    """Run the client once in `root`, an empty folder, and tell what was seen."""
    briefed, buried = secrets.token_hex(6), secrets.token_hex(6)
    stage = sandbox.Stage(root)
    stage.build(briefed, buried)
    with Model(QUERY) as model:
        env = _environment(environ, stage, model.url)
        tee = (sys.executable, "-I", os.path.join(os.path.dirname(__file__), "recorder.py"), stage.calls, *command)
        place = InstallTarget(home=stage.home, environ=env, command=tee, memory=stage.memory, project=stage.project)
        session = client.session(place, model.url, PROMPT, program)
        if session is None:
            raise UsageError(f"{client.title} cannot be run without a person", "`holdfast doctor` says what it can see")
        stage.furnish(client, place, session.files)
        started = time.monotonic()
        code = _watch(list(session.argv), {**env, **session.env}, stage, seconds)
        return Run(
            client=client.name, program=program, code=code, seconds=round(time.monotonic() - started, 1),
            printed=stage.printed(_TAIL), briefed=briefed, buried=buried, requests=tuple(model.requests),
            calls=tuple(stage.called()), refused=tuple(dict.fromkeys(model.refused)),
        )  # fmt: skip


def _environment(environ: dict[str, str], stage: sandbox.Stage, url: str) -> dict[str, str]:
    """As good as none: no key, no setting and no way out of the machine comes along."""
    kept = {name: environ[name] for name in _PASSED if environ.get(name)}
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"), url)
    loopback = "127.0.0.1,localhost,::1"
    return {
        **kept, **proxies, "NO_PROXY": loopback, "no_proxy": loopback, "HOME": stage.home, "TMPDIR": stage.temp, "TERM": "dumb",
        "CI": "1",
    }  # fmt: skip


def _watch(argv: list[str], env: dict[str, str], stage: sandbox.Stage, seconds: float) -> int | None:
    """Start it as the head of a group, wait, and leave nobody of the group behind, nor what was just started when a person
    stops us."""
    child = None
    try:
        with open(stage.output, "wb") as output:
            child = _started(argv, env, stage.project, output)
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if child is not None:
            _end(child)
        _end_strays(stage.home)


def _started(argv: list[str], env: dict[str, str], folder: str, output: BinaryIO) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            argv, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    except OSError as error:
        raise UsageError(f"{argv[0]} cannot be run: {error.strerror}", _OWN) from None


def _end(child: subprocess.Popen[bytes]) -> None:
    _signal_group(child.pid, signal.SIGTERM)
    try:
        child.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        pass
    _signal_group(child.pid, signal.SIGKILL)
    child.wait()


def _end_strays(home: str) -> None:
    """Whoever left the group, known by the private home in their environment."""
    until = time.monotonic() + _PATIENCE
    while (left := _strays(home)) and time.monotonic() < until:  # one may start another before it is gone itself
        for pid in left:
            _signal(pid, signal.SIGKILL)
        time.sleep(0.02)


def _signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def _strays(home: str) -> list[int]:
    """Processes whose home is ours; where there is no /proc, none are known."""
    found = []
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    for pid in pids:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if f"HOME={home}".encode() in file.read().split(b"\0"):
                    found.append(pid)
        except OSError:
            continue
    return found
