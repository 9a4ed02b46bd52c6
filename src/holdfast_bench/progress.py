"""While a benchmark runs: it says how far it is, and its folder and the processes it started go with it, however it ends."""

from __future__ import annotations

import os
import signal
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

_ENDS = (signal.SIGTERM, signal.SIGHUP)
_ALL = (signal.SIGINT, *_ENDS)
_ONCE_SECONDS = 2.0
_PARTING_SECONDS = 30.0  # for a process that is ended gently: a gateway takes 20 for the requests under way
_heard = -_ONCE_SECONDS
_noted: list[int] = []


def teller(quiet: bool) -> Callable[[str], None]:
    """Says how far it is, unless nobody is to hear it."""
    return (lambda _: None) if quiet else (lambda text: print(f"  … {text}", file=sys.stderr, flush=True))


@contextmanager
def folder(name: str) -> Iterator[Path]:
    """One for as long as it runs. Whoever ends the process, or closes its terminal, ends it as Ctrl-C does: all is cleared,
    whatever else they say meanwhile."""
    with _answering(_interrupt, _ALL):
        made = TemporaryDirectory(prefix=f"holdfast-{name}-")
        try:
            yield Path(made.name)
        finally:
            with _answering(lambda *_: None, _ALL):
                made.cleanup()


@contextmanager
def started(command: list[str], gently: bool = False, **given: Any) -> Iterator[subprocess.Popen[Any]]:
    """A process that has ended by itself by the end, or is ended then; gently, if it has others to end. Whoever ends us
    while it parts is heard when it is gone."""
    with _unbroken() as hear, subprocess.Popen(command, **given) as process:
        try:
            hear()
            yield process
        finally:
            try:
                with _unbroken() as hear:
                    _end(process, gently)
                    hear()
            finally:
                process.kill()  # nothing, unless somebody was faster than we were deaf


def _end(process: subprocess.Popen[Any], gently: bool) -> None:
    if gently:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PARTING_SECONDS)
    process.kill()
    process.wait()


@contextmanager
def crowd(size: int) -> Iterator[Pool]:
    """So many processes, which end when this one says so, and by no Ctrl-C of their own."""
    with _unbroken() as hear, get_context("fork").Pool(size, _follow) as pool:
        hear()
        yield pool


def _follow() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for sign in _ENDS:
        signal.signal(sign, signal.SIG_DFL)
    if _noted:  # by the process that was forked, or by this one since then
        os._exit(1)


@contextmanager
def _unbroken() -> Iterator[Callable[[], None]]:
    """Whoever ends us meanwhile is heard when we ask: a process that is just being started is not lost sight of."""
    with ExitStack() as stack:
        stack.enter_context(_answering(lambda sign, _: _noted.append(sign), _ALL))

        def hear() -> None:
            global _heard
            stack.close()
            if _noted:
                _noted.clear()
                _heard = time.monotonic()
                raise KeyboardInterrupt

        yield hear


@contextmanager
def _answering(answer: Callable[[int, Any], object], signs: tuple[signal.Signals, ...]) -> Iterator[None]:
    """Answer these signals so, but not those that nobody is to answer, as under nohup."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only that one is told of signals
        return
    before = {sign: known for sign in signs if (known := signal.getsignal(sign)) != signal.SIG_IGN}
    for sign in before:
        signal.signal(sign, answer)
    try:
        yield
    finally:
        for sign, known in before.items():
            signal.signal(sign, known or signal.SIG_DFL)


def _interrupt(*_: object) -> None:
    """As Ctrl-C; people press it twice, and a shell that goes away with its terminal says so a second time."""
    global _heard
    before, _heard = _heard, time.monotonic()
    if _heard - before > _ONCE_SECONDS:
        raise KeyboardInterrupt
