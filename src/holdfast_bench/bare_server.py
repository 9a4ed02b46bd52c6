"""The gateway's web framework without the gateway: the floor of `holdfast bench load`.

`python -m holdfast_bench.bare_server HOME AGENT` prints its port. `/hello` answers at once; `/recall` calls the memory in a
thread, without token, role, audit, limits or schema.
"""

from __future__ import annotations

import sys

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from holdfast.api.memory import Memory
from holdfast_bench.processes import listen_on_loopback


def make_app(home: str, agent: str) -> Starlette:
    """Return the application with its two routes."""
    memory = Memory(home, project="bench", agent=agent)

    async def hello(request: Request) -> JSONResponse:
        await request.json()
        return JSONResponse({"hits": []})

    async def recall(request: Request) -> JSONResponse:
        body = await request.json()
        answer = await run_in_threadpool(memory.recall, body["query"], mode=body["mode"])
        return JSONResponse(answer.as_dict())

    return Starlette(routes=[Route("/hello", hello, methods=["POST"]), Route("/recall", recall, methods=["POST"])])


def main(home: str, agent: str) -> None:
    """Listen on a free port of loopback, print the port, and serve until the process is ended."""
    with listen_on_loopback() as listener:
        print(listener.getsockname()[1], flush=True)
        config = uvicorn.Config(make_app(home, agent), log_config=None, access_log=False)
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:])
