"""A client of the SDK's own, to a server of ours in the same process: real tools on a real home."""

from __future__ import annotations

from pathlib import Path

import anyio
import mcp_types as types
from mcp.client.client import Client
from mcp_result import Result

from holdfast.mcp.project_resolution import LaunchOptions
from holdfast.mcp.server import build_server


class Told(Exception):
    """A tool's error, as the agent reads it."""


class Agent:
    """One connection, for the length of a `with` in an async test."""

    def __init__(self, home: Path, *, roots: list[Path | str] | None = None, name: str = "sdk", mode="legacy", **started):
        self.roots = roots
        self.asked = 0
        self.meanwhile = None  # done while the roots are on their way
        listing = self._list_roots if roots is not None else None
        info = types.Implementation(name=name, version="1")
        server = build_server(LaunchOptions(home=str(home), **started))
        self.client = Client(server, mode=mode, list_roots_callback=listing, client_info=info)

    async def _list_roots(self, context) -> types.ListRootsResult | types.ErrorData:
        self.asked += 1
        if self.roots == ["broken"]:
            return types.ErrorData(code=-32603, message="no roots today")
        uris = [root if isinstance(root, str) else root.as_uri() for root in self.roots]
        if self.meanwhile is not None:
            await self.meanwhile()
        return types.ListRootsResult(roots=[types.Root(uri=uri) for uri in uris])

    async def __aenter__(self) -> Agent:
        await self.client.__aenter__()
        return self

    async def __aexit__(self, *failed) -> None:
        await self.client.__aexit__(*failed)

    async def __call__(self, tool: str, /, meta: dict | None = None, **arguments):
        """What a tool answers."""
        said = await self.client.call_tool(tool, arguments, meta=meta)
        if said.is_error:
            raise Told(said.content[0].text)
        return result_of(said)

    async def refused(self, tool: str, /, **arguments) -> str:
        try:
            answer = await self(tool, **arguments)
        except Told as told:
            return str(told)
        raise AssertionError(f"it was not refused: {answer}")


def result_of(said: types.CallToolResult) -> Result:
    """A result of the SDK's client."""
    return Result.of(said.model_dump(by_alias=True, exclude_none=True, mode="json"))


def run(work, *given):
    """Run an async test."""
    return anyio.run(work, *given)
