"""Temporary folders, child processes, their timing, and progress messages.

Folders are removed and child processes ended however a benchmark ends: normally, by Ctrl-C, by SIGTERM or by SIGHUP.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.pool import Pool
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

PrintProgress = Callable[[str], None]

_END_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
_ALL_SIGNALS = (signal.SIGINT, *_END_SIGNALS)
_REPEAT_SECONDS = 2.0  # a further signal within this time belongs to the first one
_GRACE_SECONDS = 30.0  # for a process to end after SIGTERM: a gateway takes 20 for the requests under way
_last_signal = -_REPEAT_SECONDS
_deferred_signals: list[int] = []


def make_progress_printer(quiet: bool) -> PrintProgress:
    """Return a function that prints a progress message to stderr, or does nothing if quiet."""
    return (lambda _: None) if quiet else (lambda text: print(f"  … {text}", file=sys.stderr, flush=True))


@contextmanager
def temporary_folder(name: str) -> Iterator[Path]:
    """Yield a temporary folder; SIGTERM and SIGHUP act like Ctrl-C meanwhile, and signals are ignored during its removal."""
    with _signal_handler(_raise_interrupt):
        created = TemporaryDirectory(prefix=f"holdfast-{name}-")
        try:
            yield Path(created.name)
        finally:
            with _signal_handler(lambda *_: None):
                created.cleanup()


@contextmanager
def start_process(command: list[str], *, graceful: bool = False, **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a process with these options of Popen and end it on exit: by SIGTERM first if graceful, else by SIGKILL.

    Signals that arrive while the process ends take effect when it has ended.
    """
    with _defer_signals() as resume_signals, subprocess.Popen(command, **options) as process:
        try:
            resume_signals()
            yield process
        finally:
            try:
                with _defer_signals() as resume_signals:
                    _end(process, graceful)
                    resume_signals()
            finally:
                process.kill()  # a signal may arrive before they are deferred; after the regular end this does nothing


def _end(process: subprocess.Popen[Any], graceful: bool) -> None:
    """Terminate and wait if graceful; then kill whatever still runs."""
    if graceful:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
    process.kill()
    process.wait()


@contextmanager
def start_pool(size: int) -> Iterator[Pool]:
    """Start a pool of forked processes that ignore Ctrl-C and end with this process."""
    with _defer_signals() as resume_signals, get_context("fork").Pool(size, _initialize_pool_process) as pool:
        resume_signals()
        yield pool


def _initialize_pool_process() -> None:
    """Reset the signal handlers of a pool process; exit if a signal has already arrived."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in _END_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    if _deferred_signals:  # in the parent before the fork, or here since then
        os._exit(1)


@contextmanager
def _defer_signals() -> Iterator[Callable[[], None]]:
    """Defer signals until the yielded function is called; it raises KeyboardInterrupt if one has arrived.

    Without this, a signal between the start of a process and its registration would leave the process behind.
    """
    with ExitStack() as stack:
        stack.enter_context(_signal_handler(lambda number, _: _deferred_signals.append(number)))

        def resume_signals() -> None:
            global _last_signal
            stack.close()
            if _deferred_signals:
                _deferred_signals.clear()
                _last_signal = time.monotonic()
                raise KeyboardInterrupt

        yield resume_signals


@contextmanager
def _signal_handler(handle: Callable[[int, Any], object]) -> Iterator[None]:
    """Handle SIGINT, SIGTERM and SIGHUP with this function, except those that are ignored, as under nohup."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python delivers signals to the main thread only
        return
    before = {number: known for number in _ALL_SIGNALS if (known := signal.getsignal(number)) != signal.SIG_IGN}
    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, known in before.items():
            signal.signal(number, known or signal.SIG_DFL)


def _raise_interrupt(*_: object) -> None:
    """Raise KeyboardInterrupt, once for several signals in a row: people press Ctrl-C twice, a closing shell repeats SIGHUP."""
    global _last_signal
    before, _last_signal = _last_signal, time.monotonic()
    if _last_signal - before > _REPEAT_SECONDS:
        raise KeyboardInterrupt


def listen_on_loopback() -> socket.socket:
    """Return a socket that listens on a free port of loopback."""
    # IPPROTO_TCP given by name: asyncio sets TCP_NODELAY only then, and responses would wait otherwise.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    return listener


# --- commands and their timing ----------------------------------------------------------------------------------------


def minimal_environment(**variables: str) -> dict[str, str]:
    """Return an environment without the user's settings, plus these variables."""
    return {"PATH": os.defpath, "LANG": "C.UTF-8", **variables}


def compile_bytecode() -> None:
    """Compile the modules as an installer does; an editable checkout may lack the bytecode."""
    source = Path(__file__).parent.parent
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(source)], check=False, env=minimal_environment())


def bare_python_command() -> list[str]:
    """Return the command of a Python process that does nothing."""
    return [sys.executable, "-I", "-c", "pass"]


def holdfast_command(*arguments: str) -> list[str]:
    """Return the command of Holdfast as a user starts it."""
    script = Path(sys.executable).with_name("holdfast")
    program = [str(script)] if script.exists() else [sys.executable, "-m", "holdfast"]
    return [*program, *arguments]


def recall_arguments(query: str, mode: str = "keyword") -> list[str]:
    """Return the arguments of a recall in the benchmark's project."""
    return ["recall", "--mode", mode, "--project", "bench", query]


def time_process(command: list[str], home: str, stdin: bytes = b"") -> float:
    """Run a process with this input and return its time in milliseconds, from start to end."""
    environment = minimal_environment(HOLDFAST_HOME=home, HOME=home, HOLDFAST_PROJECT="bench")
    silent = subprocess.DEVNULL
    start = time.perf_counter()
    with start_process(command, stdin=subprocess.PIPE, stdout=silent, stderr=silent, env=environment) as process:
        process.communicate(stdin)
        return (time.perf_counter() - start) * 1000


def time_process_cpu(command: list[str], home: str) -> float:
    """Run a process and return its CPU time in milliseconds, which depends less on other processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    time_process(command, home)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1000


def time_mcp_handshake(home: str) -> float:
    """Start the MCP server and return the milliseconds until it has answered `initialize` and `tools/list`."""
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    environment, pipe = minimal_environment(HOLDFAST_HOME=home, HOME=home), subprocess.PIPE
    start = time.perf_counter()
    with start_process(holdfast_command("mcp"), stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"".join([json.dumps(message).encode() + b"\n" for message in messages]))
        process.stdin.flush()
        for _ in range(2):
            process.stdout.readline()
        return (time.perf_counter() - start) * 1000


def time_call(function: Callable[..., object], *arguments: object, **options: object) -> float:
    """Call the function and return its time in milliseconds."""
    start = time.perf_counter()
    function(*arguments, **options)
    return (time.perf_counter() - start) * 1000


def time_call_cpu(function: Callable[..., object], *arguments: object, **options: object) -> float:
    """Call the function and return the CPU time of this process in milliseconds, independent of other processes."""
    start = time.process_time()
    function(*arguments, **options)
    return (time.process_time() - start) * 1000
