"""A client of the MCP SDK connected to Holdfast's server in the same process."""

from __future__ import annotations

from pathlib import Path

import anyio
import mcp_types as types
from mcp.client.client import Client
from mcp_result import Result

from holdfast.mcp.project_resolution import LaunchOptions
from holdfast.mcp.server import build_server


class ToolError(Exception):
    """The error message of a tool."""


class Agent:
    """One connection, open inside an `async with` block."""

    def __init__(self, home: Path, *, roots: list[Path | str] | None = None, name: str = "sdk", mode="legacy", **started):
        self.roots = roots
        self.roots_requests = 0
        self.before_roots = None  # awaited before the roots are returned
        list_roots = self._list_roots if roots is not None else None
        info = types.Implementation(name=name, version="1")
        server = build_server(LaunchOptions(home=str(home), **started))
        self.client = Client(server, mode=mode, list_roots_callback=list_roots, client_info=info)

    async def _list_roots(self, context) -> types.ListRootsResult | types.ErrorData:
        self.roots_requests += 1
        if self.roots == ["broken"]:
            return types.ErrorData(code=-32603, message="no roots today")
        uris = [root if isinstance(root, str) else root.as_uri() for root in self.roots]
        if self.before_roots is not None:
            await self.before_roots()
        return types.ListRootsResult(roots=[types.Root(uri=uri) for uri in uris])

    async def __aenter__(self) -> Agent:
        await self.client.__aenter__()
        return self

    async def __aexit__(self, *failed) -> None:
        await self.client.__aexit__(*failed)

    async def __call__(self, tool: str, /, meta: dict | None = None, **arguments):
        """Call a tool and return its result; raise ToolError."""
        result = await self.client.call_tool(tool, arguments, meta=meta)
        if result.is_error:
            raise ToolError(result.content[0].text)
        return parse_result(result)

    async def refused(self, tool: str, /, **arguments) -> str:
        """Call a tool that must fail and return its error message."""
        try:
            result = await self(tool, **arguments)
        except ToolError as error:
            return str(error)
        raise AssertionError(f"it did not fail: {result}")


def parse_result(result: types.CallToolResult) -> Result:
    """Return a result of the SDK's client."""
    return Result.parse(result.model_dump(by_alias=True, exclude_none=True, mode="json"))


def run(function, *arguments):
    """Run an async function of a test."""
    return anyio.run(function, *arguments)
