"""Around all native code of models: a program neither ends nor forks while one of its threads is in there.

Python ends a daemon thread that comes back from native code by unwinding it, and what a model's library is written in takes
the whole program down then. What forks copies the locks of such a library as they are, with nobody to open them again.
numpy's `unique`, where only the values are asked for, does the same: nothing of ours uses it.
A lock of ours around a model is taken inside the gate, so that a fork finds it free.
"""

from __future__ import annotations

import atexit
import time
from _thread import RLock, get_ident

from holdfast.base.fork import on_fork
from holdfast.errors import Trouble

_PATIENCE = 30.0  # seconds that an end or a fork waits for a model
_LOOK = 0.001


class Gate:
    """Counts who is inside; whoever closes it waits for the others."""

    def __init__(self) -> None:
        self._door = RLock()  # held by who closes, who may come in himself
        self._inside: list[int] = []
        self._ends = 0  # the thread that ends the program

    def __enter__(self) -> None:
        me = get_ident()
        if me in self._inside:  # whoever closes waits for us: he must not be waited for
            self._inside.append(me)
            return
        with self._door:
            if self._ends not in (0, me):  # to wait here for ever would keep locks that a last `close` needs
                raise Trouble("the program is ending", "Ask before it ends")
            self._inside.append(me)

    def __exit__(self, *_: object) -> None:
        self._inside.remove(get_ident())

    def end(self) -> None:
        """Let those inside come out, and no other thread in any more."""
        self._ends = get_ident()
        if self._door.acquire(timeout=_PATIENCE):
            self._wait()
            self._door.release()

    def hold(self) -> None:
        """Let those inside come out, and others wait."""
        self._door.acquire(timeout=_PATIENCE)
        self._wait()

    def let_go(self) -> None:
        """Let them in again."""
        try:
            self._door.release()
        except RuntimeError:
            pass  # it could not be had in time

    def begin_anew(self) -> None:
        """In a child, which has one thread."""
        self._door = RLock()
        self._inside = [one for one in self._inside if one == get_ident()]

    def _wait(self) -> None:
        me, until = get_ident(), time.monotonic() + _PATIENCE
        while set(self._inside) - {me} and time.monotonic() < until:
            time.sleep(_LOOK)


GATE = Gate()
atexit.register(GATE.end)
on_fork(before=GATE.hold, parent=GATE.let_go, child=GATE.begin_anew)
