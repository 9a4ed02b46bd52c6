"""Several processes that answer on one socket, and the one that looks after them: what dies is started again."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable

from holdfast.errors import Trouble

_ON_PARENTS_DEATH = 1  # what prctl is asked for
_DEATHS, _SECONDS = 10, 10.0  # so many within so long: something is wrong that starting again does not mend


class Workers:
    """Forks before anything is open, so that no process has another's database or thread."""

    def __init__(
        self, count: int, work: Callable[[int], None], died: Callable[[int], object], stopped: Callable[[], object] = int
    ) -> None:
        self._count, self._work, self._died, self._stopped = count, work, died, stopped
        self._children: dict[int, int] = {}  # and which of them each is: who takes its place takes its number
        self._deaths: list[float] = []
        self._stopping = False

    def run(self) -> None:
        """Until SIGTERM or Ctrl-C, and until all have finished what they were at."""
        for sign in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sign, self._stop)
        for number in range(self._count):
            self._start(number)
        while self._children:
            child, status = os.waitpid(-1, 0)
            number = self._children.pop(child, -1)
            if number >= 0 and not self._stopping:  # who is process 1 inherits others' children too
                self._died(os.waitstatus_to_exitcode(status))
                self._start_again(number)

    def _start(self, number: int) -> None:
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))  # not between fork and noting it
        if not self._stopping:  # what came before they were blocked has been heard by now
            child = os.fork()
            if child == 0:
                self._be_one(number, blocked)
            self._children[child] = number
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def _be_one(self, number: int, blocked: set[signal.Signals] | set[int]) -> None:
        """One of them, from here to its end."""
        code = 1
        try:
            for sign in (signal.SIGTERM, signal.SIGINT):
                signal.signal(sign, signal.SIG_DFL)
            _end_with_parent()
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            self._work(number)
            code = 0
        finally:
            os._exit(code)

    def _start_again(self, number: int) -> None:
        now = time.monotonic()
        self._deaths = [one for one in self._deaths if now - one < _SECONDS] + [now]
        if len(self._deaths) >= _DEATHS:
            self._stop()
            raise Trouble("its workers die as soon as they are started", "Look into the log for why")
        self._start(number)

    def _stop(self, *_: object) -> None:
        self._stopping = True
        self._stopped()
        for child in self._children:
            try:
                os.kill(child, signal.SIGTERM)
            except ProcessLookupError:
                pass  # it has ended, and is yet to be waited for


def _end_with_parent() -> None:
    """Where the kernel can tell (Linux): without the one that looks after it, a worker ends as if it were told to."""
    tell = getattr(ctypes.CDLL(None), "prctl", None)
    if tell is not None:
        tell(_ON_PARENTS_DEATH, signal.SIGTERM)
