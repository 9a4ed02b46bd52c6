"""AsyncMemory: the verbs of `MemoryInterface` for `async` code, each run in a worker thread."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from holdfast.api.files_interface import FilesInterface
from holdfast.api.interface import MemoryInterface
from holdfast.api.memory import Memory
from holdfast.config import Config
from holdfast.errors import Trouble
from holdfast.verbs.export import Export, LeftOut

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class _Wrapper(Generic[T]):
    """An object whose methods run in worker threads."""

    def __init__(self, wrapped: T) -> None:
        self._wrapped = wrapped


def _async(verb: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[_Wrapper[T], P], Coroutine[Any, Any, R]]:
    """Return a coroutine function that runs the method of the same name in a worker thread, with the same signature."""

    def call(wrapped: T, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            answer: R = getattr(wrapped, verb.__name__)(*args, **kwargs)  # the implementation's
            return answer
        except StopIteration as error:  # a future cannot hold one: awaiting it would never end
            what = f"{verb.__name__} failed with StopIteration"
            raise Trouble(what, "Check the cause: an argument calls `next` without a default") from error

    async def run(self: _Wrapper[T], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(call, self._wrapped, *args, **kwargs)

    functools.update_wrapper(run, verb)
    run.__dict__.pop("__isabstractmethod__", None)
    return run


class AsyncExport(_Wrapper[Export], AsyncIterator[dict[str, Any]]):
    """The records one by one; at the end `left_out` names the notes that are not among them."""

    async def __anext__(self) -> dict[str, Any]:
        row = await asyncio.to_thread(next, self._wrapped, None)
        if row is None:
            raise StopAsyncIteration
        return row

    async def aclose(self) -> None:
        await asyncio.to_thread(self._wrapped.close)

    @property
    def left_out(self) -> LeftOut:
        return self._wrapped.left_out


class AsyncFiles(_Wrapper[FilesInterface]):
    """The agent's own files, with the six commands of the memory tool."""

    view = _async(FilesInterface.view)
    create = _async(FilesInterface.create)
    str_replace = _async(FilesInterface.str_replace)
    insert = _async(FilesInterface.insert)
    delete = _async(FilesInterface.delete)
    rename = _async(FilesInterface.rename)


class AsyncMemory(_Wrapper[MemoryInterface]):
    """A `Memory` or `RemoteMemory`, awaited. Takes the same arguments as `Memory`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(Memory(*args, **kwargs))

    store = _async(MemoryInterface.store)
    store_many = _async(MemoryInterface.store_many)
    recall = _async(MemoryInterface.recall)
    get = _async(MemoryInterface.get)
    list = _async(MemoryInterface.list)
    history = _async(MemoryInterface.history)
    log = _async(MemoryInterface.log)
    import_history = _async(MemoryInterface.import_history)
    expand = _async(MemoryInterface.expand)
    fact = _async(MemoryInterface.fact)
    facts = _async(MemoryInterface.facts)
    graph = _async(MemoryInterface.graph)
    path = _async(MemoryInterface.path)
    forget = _async(MemoryInterface.forget)
    restore = _async(MemoryInterface.restore)
    trash = _async(MemoryInterface.trash)
    forget_session = _async(MemoryInterface.forget_session)
    restore_session = _async(MemoryInterface.restore_session)
    purge = _async(MemoryInterface.purge)
    receipts = _async(MemoryInterface.receipts)
    forget_source = _async(MemoryInterface.forget_source)
    review = _async(MemoryInterface.review)
    approve = _async(MemoryInterface.approve)
    reject = _async(MemoryInterface.reject)
    quarantine = _async(MemoryInterface.quarantine)
    trace = _async(MemoryInterface.trace)
    relate = _async(MemoryInterface.relate)
    unrelate = _async(MemoryInterface.unrelate)
    relations = _async(MemoryInterface.relations)
    accept_relation = _async(MemoryInterface.accept_relation)
    reject_relation = _async(MemoryInterface.reject_relation)
    clear = _async(MemoryInterface.clear)
    retain = _async(MemoryInterface.retain)
    brief = _async(MemoryInterface.brief)
    boot = _async(MemoryInterface.boot)
    operator_send = _async(MemoryInterface.operator_send)
    operator_list = _async(MemoryInterface.operator_list)
    operator_read = _async(MemoryInterface.operator_read)
    render = _async(MemoryInterface.render)
    scaffold = _async(MemoryInterface.scaffold)
    search = _async(MemoryInterface.search)
    read = _async(MemoryInterface.read)
    status = _async(MemoryInterface.status)
    check = _async(MemoryInterface.check)
    reindex = _async(MemoryInterface.reindex)
    embed = _async(MemoryInterface.embed)
    projects = _async(MemoryInterface.projects)
    adopt = _async(MemoryInterface.adopt)
    mark = _async(MemoryInterface.mark)
    close = _async(MemoryInterface.close)

    def export(self, *, scope: str | None = None) -> AsyncExport:
        """Yield every note with all its versions as plain data: `async for row in memory.export()`."""
        return AsyncExport(self._wrapped.export(scope=scope))

    @property
    def files(self) -> AsyncFiles:
        """The agent's own files, with the six commands of the memory tool."""
        return AsyncFiles(self._wrapped.files)

    @property
    def config(self) -> Config:
        return self._wrapped.config

    @property
    def home(self) -> str:
        return self._wrapped.home

    @property
    def project(self) -> str:
        return self._wrapped.project

    @property
    def session(self) -> str | None:
        return self._wrapped.session

    @property
    def agent(self) -> str | None:
        return self._wrapped.agent

    @property
    def origin(self) -> str:
        return self._wrapped.origin

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
