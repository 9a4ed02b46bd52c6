"""Company: what several do on one thread at once is done once for all of them.

A thread that works on one thing at a time has no company: `wait` returns at once, and `once` asks. One that goes from one
to the next of several (the gateway's) says how the one that waits gives way to the others. Nobody may hold a lock while
waiting: another on the same thread may want it.
"""

from __future__ import annotations

from _thread import _local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Any, TypeVar

    T = TypeVar("T")


class _Here(_local):
    give_way: Callable[[], object] | None = None
    known: dict[Hashable, Any] | None = None


_here = _Here()


def wait() -> None:
    """Come to a step that can be done for many at once: let the others on this thread come as far."""
    if _here.give_way is not None:
        _here.give_way()


def once(what: Hashable, ask: Callable[[], T]) -> T:
    """The answer that one of the company had: all of them came before it was asked, so it is no older than they are."""
    known = _here.known
    if known is None:
        return ask()
    if what not in known:
        known[what] = ask()
    answer: T = known[what]
    return answer


def begin(give_way: Callable[[], object]) -> None:
    """From now on there is company on this thread."""
    _here.give_way, _here.known = give_way, {}


def end() -> None:
    _here.give_way = _here.known = None
