"""Company: what several do on one thread at once is done once for all of them.

A thread that works on one thing at a time has no company: `wait` returns at once, `once` and `of_all` ask. One that goes from
one to the next of several (the gateway's) says how the one that waits gives way to the others. Nobody may hold a lock while
waiting: another on the same thread may want it.
"""

from __future__ import annotations

from _thread import _local
from copy import copy

from holdfast.errors import HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping
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


def of_all(what: Hashable, one: str, ask: Callable[[list[str]], Mapping[str, T]]) -> T | None:
    """What `ask` knows of this one: asked once, of all that anybody of the company wants to know. What speaks against
    asking is told to each of them."""
    known = _here.known
    if known is None:
        return ask([one]).get(one)
    wanted, answers = known.setdefault(("of all", what), ({}, {}))
    if one not in answers:
        wanted[one] = None
    wait()
    if wanted:
        names = [*wanted]
        try:
            found = ask(names)
            answers.update({name: found.get(name) for name in names})
        except HoldfastError as error:
            answers.update(dict.fromkeys(names, error))
        wanted.clear()  # not before: what is no error of ours is told to who asked, and the next asks again
    answer = answers[one]
    if isinstance(answer, HoldfastError):
        raise copy(answer).with_traceback(answer.__traceback__) from answer.__cause__
    told: T | None = answer
    return told


def begin(give_way: Callable[[], object]) -> None:
    """From now on there is company on this thread."""
    _here.give_way, _here.known = give_way, {}


def end() -> None:
    _here.give_way = _here.known = None
