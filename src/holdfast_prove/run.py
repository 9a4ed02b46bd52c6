"""Run a real client program once in a private home and collect what it did.

Of the user's files only the program itself is read. The private home is set up by the code of `holdfast install`; the client
starts Holdfast through `recorder.py` and calls the model server on loopback.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import BinaryIO

from holdfast.clients.base import Client, InstallTarget
from holdfast.errors import NotFound, UsageError
from holdfast_prove.model_server import ModelServer, ReceivedRequest
from holdfast_prove.sandbox import HoldfastCall, Sandbox

PROMPT = "What is the code word of the harbour? And what share of traffic does the canary get?"
QUERY = "How is the lighthouse keeper's cat called?"
DEFAULT_SECONDS = 120
_PROGRAM_FIX = "Give the path of the client's own program: --program PATH"
_GRACE_SECONDS = 3  # for a program to end after SIGTERM
_OUTPUT_CHARS = 4000  # of the end of a program's output
_INHERITED_VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ", "SYSTEMROOT")  # of the user's environment


@dataclass(frozen=True)
class Run:
    """One run of a client."""

    client: str
    program: str
    exit_code: int | None  # None if it had to be stopped
    seconds: float
    output: str  # its end
    briefing_word: str  # in a note that every briefing shows
    recall_word: str  # in a note that only a recall finds
    requests: tuple[ReceivedRequest, ...] = ()
    calls: tuple[HoldfastCall, ...] = ()
    refused_hosts: tuple[str, ...] = ()


def find_program(client: Client, place: InstallTarget, path: str | None) -> str:
    """Return the client's program at this path, or on the PATH; raise NotFound, or UsageError if it cannot be run."""
    program = os.path.abspath(path) if path else place.program(*client.programs)
    if not program:
        raise NotFound(f"{client.title} was not found on the PATH", "Install it, or use --program PATH")
    if not os.access(program, os.X_OK):
        raise UsageError(f"{program} is not an executable program", _PROGRAM_FIX)
    return program


def read_version(program: str, environ: dict[str, str], root: str) -> str:
    """Return the version that the program prints for --version; empty if it prints none."""
    inherited = {name: environ[name] for name in _INHERITED_VARIABLES if environ.get(name)}
    try:
        result = subprocess.run(
            [program, "--version"], env={**inherited, "HOME": root, "TERM": "dumb", "CI": "1"}, cwd=root, capture_output=True,
            stdin=subprocess.DEVNULL, timeout=30,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    version = re.search(rb"\d+\.\d+\.\d+\S*", result.stdout + result.stderr)
    return version[0].decode("ascii", "replace") if version else ""


def run_client(
    client: Client, program: str, *, command: tuple[str, ...], environ: dict[str, str], root: str, seconds: float
) -> Run:
    """Run the client once in an empty folder for at most this many seconds; `command` starts Holdfast.

    Raise UsageError if the client cannot be run headless.
    """
    briefing_word, recall_word = secrets.token_hex(6), secrets.token_hex(6)
    sandbox = Sandbox(root)
    sandbox.create(briefing_word, recall_word)
    with ModelServer(QUERY) as model:
        env = make_environment(environ, sandbox, model.url)
        recorder = os.path.join(os.path.dirname(__file__), "recorder.py")
        recorded_command = (sys.executable, "-I", recorder, sandbox.calls, *command)
        place = InstallTarget(
            home=sandbox.home, environ=env, command=recorded_command, memory=sandbox.memory, project=sandbox.project
        )
        session = client.session(place, model.url, PROMPT, program)
        if session is None:
            raise UsageError(f"{client.title} cannot run without a person", "`holdfast doctor` says what it can see")
        sandbox.install_client(client, place, session.files)
        start = time.monotonic()
        exit_code = _run_program(list(session.argv), {**env, **session.env}, sandbox, seconds)
        return Run(
            client=client.name, program=program, exit_code=exit_code, seconds=round(time.monotonic() - start, 1),
            output=sandbox.read_output(_OUTPUT_CHARS), briefing_word=briefing_word, recall_word=recall_word,
            requests=tuple(model.requests), calls=tuple(sandbox.read_calls()),
            refused_hosts=tuple(dict.fromkeys(model.refused_hosts)),
        )  # fmt: skip


def make_environment(environ: dict[str, str], sandbox: Sandbox, url: str) -> dict[str, str]:
    """Return an environment without the user's keys and settings, with the model server as proxy to all other hosts."""
    inherited = {name: environ[name] for name in _INHERITED_VARIABLES if environ.get(name)}
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"), url)
    loopback = "127.0.0.1,localhost,::1"
    return {
        **inherited, **proxies, "NO_PROXY": loopback, "no_proxy": loopback, "HOME": sandbox.home, "TMPDIR": sandbox.temp,
        "TERM": "dumb", "CI": "1",
    }  # fmt: skip


def _run_program(argv: list[str], env: dict[str, str], sandbox: Sandbox, seconds: float) -> int | None:
    """Run the program in a process group of its own, end all its processes, and return its exit status; None if stopped."""
    child = None
    try:
        with open(sandbox.output, "wb") as output:
            child = _start(argv, env, sandbox.project, output)
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if child is not None:
            _end(child)
        _end_strays(sandbox.home)


def _start(argv: list[str], env: dict[str, str], folder: str, output: BinaryIO) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            argv, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    except OSError as error:
        raise UsageError(f"{argv[0]} cannot be run: {error.strerror}", _PROGRAM_FIX) from None


def _end(child: subprocess.Popen[bytes]) -> None:
    """Terminate the process group, then kill whatever is left of it."""
    _signal_group(child.pid, signal.SIGTERM)
    try:
        child.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    _signal_group(child.pid, signal.SIGKILL)
    child.wait()


def _end_strays(home: str) -> None:
    """Kill the processes that left the group, found by the private home in their environment."""
    end = time.monotonic() + _GRACE_SECONDS
    while (pids := _find_strays(home)) and time.monotonic() < end:  # a process may start another before it ends
        for pid in pids:
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


def _find_strays(home: str) -> list[int]:
    """Return the processes with this home in their environment; none on systems without /proc."""
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
