"""The same framework with nothing of the gateway's in it: `python -m holdfast_bench.bare_server` says where it listens.

`/hello` answers at once, `/recall` asks a memory in a thread: no token, no role, no audit, no limits, no schema."""

from __future__ import annotations

import socket
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from holdfast.api.memory import Memory


def app(home: str, agent: str) -> Starlette:
    memory = Memory(home, project="bench", agent=agent)

    async def hello(request: Request) -> JSONResponse:
        await request.json()
        return JSONResponse({"hits": []})

    async def recall(request: Request) -> JSONResponse:
        asked = await request.json()
        found = await run_in_threadpool(memory.recall, asked["query"], mode=asked["mode"])
        return JSONResponse(found.as_dict())

    return Starlette(routes=[Route("/hello", hello, methods=["POST"]), Route("/recall", recall, methods=["POST"])])


def main(home: str, agent: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:  # so that answers do not wait
        listening.bind(("127.0.0.1", 0))
        listening.listen(1024)
        print(listening.getsockname()[1], flush=True)
        config = uvicorn.Config(app(home, agent), log_config=None, access_log=False)
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main(*sys.argv[1:])
