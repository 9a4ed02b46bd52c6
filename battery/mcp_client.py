"""A minimal MCP client: `holdfast mcp` in a process of its own, one request at a time over its pipes."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Self

from battery import access_trace

PROTOCOL = "2025-11-25"


class McpServer:
    """A running `holdfast mcp`; a `with` block initializes the session and ends the process. `log` traces its files."""

    def __init__(self, *arguments: str, environment: dict[str, str], cwd: Path, log: Path | None = None) -> None:
        child = [sys.executable, "-m", "holdfast", "mcp", *arguments]
        self._stderr = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed in __exit__
        self._process = subprocess.Popen(
            access_trace.trace_command(log, child) if log else child, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._stderr, env=environment, cwd=cwd,
        )  # fmt: skip
        self._number = 0

    def __enter__(self) -> Self:
        client = {"name": "battery", "version": "1"}
        self.request("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client})
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the response to a request; if the server has ended, its exit code and the end of its stderr."""
        self._number += 1
        try:
            self._write({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
            assert self._process.stdout is not None
            while line := self._process.stdout.readline():
                message: dict[str, Any] = json.loads(line)
                if message.get("id") == self._number and "method" not in message:
                    return message
        except BrokenPipeError:
            pass
        self._stderr.seek(0)
        return {"exit code": self._process.poll(), "stderr": self._stderr.read()[-500:]}

    def call_tool(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a tool; raise `AssertionError` if there is none."""
        response = self.request("tools/call", {"name": tool, "arguments": arguments})
        assert "result" in response, response
        result: dict[str, Any] = response["result"]
        return result

    def _write(self, message: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.close()
            self._process.wait(30)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._stderr.close()
