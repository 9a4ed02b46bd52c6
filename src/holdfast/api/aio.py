"""AsyncMemory: the verbs of Memory for `async` code, each run in a worker thread. Written once: see `_awaitable`."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from holdfast.api.memory import Memory
from holdfast.config import Config
from holdfast.errors import Trouble
from holdfast.verbs.export import Export, LeftOut
from holdfast.verbs.files import Files

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class _Skin(Generic[T]):
    """Something sync, to be awaited."""

    def __init__(self, inside: T) -> None:
        self._inside = inside


def _awaitable(verb: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[_Skin[T], P], Coroutine[Any, Any, R]]:
    """The same verb, with the same signature, to be awaited."""

    def work(inside: T, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            answer: R = getattr(inside, verb.__name__)(*args, **kwargs)  # its own: it may be asked over HTTP
            return answer
        except StopIteration as error:  # no future can hold one: whoever awaits it would wait for ever
            what = f"{verb.__name__}: something it was given said that it has nothing more"
            raise Trouble(what, "See the cause: a `next` without a default, in what was given") from error

    async def run(self: _Skin[T], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(work, self._inside, *args, **kwargs)

    functools.update_wrapper(run, verb)
    return run


class AsyncExport(_Skin[Export], AsyncIterator[dict[str, Any]]):
    """The records, one by one; at their end `left_out` tells of the notes that are not among them."""

    async def __anext__(self) -> dict[str, Any]:
        row = await asyncio.to_thread(next, self._inside, None)
        if row is None:
            raise StopAsyncIteration
        return row

    async def aclose(self) -> None:
        await asyncio.to_thread(self._inside.close)

    @property
    def left_out(self) -> LeftOut:
        return self._inside.left_out


class AsyncFiles(_Skin[Files]):
    """The agent's own tree, awaited."""

    view = _awaitable(Files.view)
    create = _awaitable(Files.create)
    str_replace = _awaitable(Files.str_replace)
    insert = _awaitable(Files.insert)
    delete = _awaitable(Files.delete)
    rename = _awaitable(Files.rename)


class AsyncMemory(_Skin[Memory]):
    """Takes what Memory takes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(Memory(*args, **kwargs))

    store = _awaitable(Memory.store)
    store_many = _awaitable(Memory.store_many)
    recall = _awaitable(Memory.recall)
    get = _awaitable(Memory.get)
    list = _awaitable(Memory.list)
    history = _awaitable(Memory.history)
    log = _awaitable(Memory.log)
    import_history = _awaitable(Memory.import_history)
    expand = _awaitable(Memory.expand)
    fact = _awaitable(Memory.fact)
    facts = _awaitable(Memory.facts)
    graph = _awaitable(Memory.graph)
    path = _awaitable(Memory.path)
    forget = _awaitable(Memory.forget)
    restore = _awaitable(Memory.restore)
    trash = _awaitable(Memory.trash)
    forget_session = _awaitable(Memory.forget_session)
    restore_session = _awaitable(Memory.restore_session)
    purge = _awaitable(Memory.purge)
    receipts = _awaitable(Memory.receipts)
    forget_source = _awaitable(Memory.forget_source)
    review = _awaitable(Memory.review)
    approve = _awaitable(Memory.approve)
    reject = _awaitable(Memory.reject)
    trace = _awaitable(Memory.trace)
    clear = _awaitable(Memory.clear)
    retain = _awaitable(Memory.retain)
    brief = _awaitable(Memory.brief)
    boot = _awaitable(Memory.boot)
    render = _awaitable(Memory.render)
    scaffold = _awaitable(Memory.scaffold)
    search = _awaitable(Memory.search)
    read = _awaitable(Memory.read)
    status = _awaitable(Memory.status)
    check = _awaitable(Memory.check)
    reindex = _awaitable(Memory.reindex)
    embed = _awaitable(Memory.embed)
    projects = _awaitable(Memory.projects)
    adopt = _awaitable(Memory.adopt)
    mark = _awaitable(Memory.mark)
    close = _awaitable(Memory.close)

    def export(self, *, scope: str | None = None) -> AsyncExport:
        """Every note this caller may see, with all its versions, as plain data: `async for row in memory.export()`."""
        return AsyncExport(self._inside.export(scope=scope))

    @property
    def files(self) -> AsyncFiles:
        """The agent's own tree, by the six verbs of the memory tool."""
        return AsyncFiles(self._inside.files)

    @property
    def config(self) -> Config:
        return self._inside.config

    @property
    def home(self) -> str:
        return self._inside.home

    @property
    def project(self) -> str:
        return self._inside.project

    @property
    def session(self) -> str | None:
        return self._inside.session

    @property
    def agent(self) -> str | None:
        return self._inside.agent

    @property
    def origin(self) -> str:
        return self._inside.origin

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
