"""Several worker processes on one port, and the parent that starts a worker again when it dies."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable

from holdfast.errors import Trouble

_PR_SET_PDEATHSIG = 1  # prctl: send a signal when the parent dies
_MAX_DEATHS, _DEATHS_SECONDS = 10, 10.0  # more deaths within that time: starting again does not help
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Workers:
    """Fork workers before anything is open, so that no process shares another's database or thread."""

    def __init__(
        self, count: int, work: Callable[[int], None], died: Callable[[int], object], stopped: Callable[[], object] = int
    ) -> None:
        self._count, self._work, self._died, self._stopped = count, work, died, stopped
        self._children: dict[int, int] = {}  # process id: number of the worker; its successor gets the same number
        self._deaths: list[float] = []
        self._stopping = False

    def run(self) -> None:
        """Run until SIGTERM or Ctrl-C, and until all workers have finished their requests."""
        for one in _SIGNALS:
            signal.signal(one, self._stop)
        for number in range(self._count):
            self._start(number)
        while self._children:
            child, status = os.waitpid(-1, 0)
            number = self._children.pop(child, -1)
            if number >= 0 and not self._stopping:  # as process 1 we also inherit children of others
                self._died(os.waitstatus_to_exitcode(status))
                self._restart(number)

    def _start(self, number: int) -> None:
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # no signal between the fork and `_children`
        if not self._stopping:
            child = os.fork()
            if child == 0:
                self._run_worker(number, blocked)
            self._children[child] = number
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def _run_worker(self, number: int, blocked: set[signal.Signals] | set[int]) -> None:
        """Run in the child, and never return."""
        code = 1
        try:
            for one in _SIGNALS:
                signal.signal(one, signal.SIG_DFL)
            _end_with_parent()
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            self._work(number)
            code = 0
        finally:
            os._exit(code)

    def _restart(self, number: int) -> None:
        now = time.monotonic()
        self._deaths = [one for one in self._deaths if now - one < _DEATHS_SECONDS] + [now]
        if len(self._deaths) >= _MAX_DEATHS:
            self._stop()
            raise Trouble("its workers stop as soon as they are started", "See the log for the reason")
        self._start(number)

    def _stop(self, *_: object) -> None:
        self._stopping = True
        self._stopped()
        for child in self._children:
            try:
                os.kill(child, signal.SIGTERM)
            except ProcessLookupError:
                pass  # it has ended and was not waited for yet


def _end_with_parent() -> None:
    """Ask the kernel (Linux) to send SIGTERM when the parent dies."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
