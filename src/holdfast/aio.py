"""AsyncMemory: the verbs of Memory for `async` code, each run in a worker thread. Written once: see `_awaitable`."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from holdfast.memory import Memory

P = ParamSpec("P")
R = TypeVar("R")


def _awaitable(
    verb: Callable[Concatenate[Memory, P], R],
) -> Callable[Concatenate[AsyncMemory, P], Coroutine[Any, Any, R]]:
    """The same verb, with the same signature, to be awaited."""

    async def run(self: AsyncMemory, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(verb, self.memory, *args, **kwargs)

    functools.update_wrapper(run, verb)
    return run


class AsyncMemory:
    """Takes what Memory takes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.memory = Memory(*args, **kwargs)

    store = _awaitable(Memory.store)
    store_many = _awaitable(Memory.store_many)
    recall = _awaitable(Memory.recall)
    get = _awaitable(Memory.get)
    list = _awaitable(Memory.list)
    history = _awaitable(Memory.history)
    fact = _awaitable(Memory.fact)
    facts = _awaitable(Memory.facts)
    forget = _awaitable(Memory.forget)
    restore = _awaitable(Memory.restore)
    trash = _awaitable(Memory.trash)
    purge = _awaitable(Memory.purge)
    clear = _awaitable(Memory.clear)
    retain = _awaitable(Memory.retain)
    brief = _awaitable(Memory.brief)
    search = _awaitable(Memory.search)
    read = _awaitable(Memory.read)
    status = _awaitable(Memory.status)
    check = _awaitable(Memory.check)
    reindex = _awaitable(Memory.reindex)
    mark = _awaitable(Memory.mark)
    close = _awaitable(Memory.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
