"""An MCP client over stdio without the SDK: it sends exactly what the test says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from mcp_result import Result

HOLDFAST = [sys.executable, "-m", "holdfast"]
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "by hand", "version": "1"}}


class RawMcpClient:
    """A server process and its pipes."""

    def __init__(self, home: Path, *arguments: str, cwd: Path, **env: str) -> None:
        cwd.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            [*HOLDFAST, "mcp", "--home", str(home), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env={**os.environ, **env},
        )
        self.stderr_lines: list[str] = []
        self._stderr_reader = threading.Thread(target=self._read_stderr, daemon=True)
        self._stderr_reader.start()
        self.number = 0
        self.roots: list[str] | None = None  # the answer to roots/list
        self.roots_requests = 0

    def _read_stderr(self) -> None:
        for line in self.process.stderr:
            self.stderr_lines.append(line.decode(errors="replace"))

    def write(self, data: bytes) -> None:
        """Send these bytes."""
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: object) -> None:
        """Send a message."""
        self.write(json.dumps(message).encode() + b"\n")

    def read(self) -> dict:
        """Return the next message; answer requests for roots meanwhile."""
        while True:
            line = self.process.stdout.readline()
            assert line, f"the server has ended: {self.process.wait(20)}\n{''.join(self.stderr_lines)}"
            message = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            if message.get("method") != "roots/list":
                return message
            self.roots_requests += 1
            roots = [{"uri": uri} for uri in self.roots or []]
            self.send({"jsonrpc": "2.0", "id": message["id"], "result": {"roots": roots}})

    def ask(self, method: str, params: object = None, **fields: object) -> dict:
        """Send a request and return its response."""
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, **({"params": params} if params else {}), **fields})
        response = self.read()
        assert response["id"] == self.number, response
        return response

    def notify(self, method: str) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method})

    def initialize(self, **params: object) -> dict:
        """Do the handshake and return the server's result."""
        result = self.ask("initialize", {**INITIALIZE, **params})["result"]
        self.notify("notifications/initialized")
        return result

    def call(self, tool: str, meta: dict | None = None, **arguments: object) -> Result:
        """Call a tool and return its result; it must succeed."""
        result = self.call_tool(tool, meta, **arguments)
        assert not result.get("isError"), result
        return Result.parse(result)

    def refused(self, tool: str, **arguments: object) -> str:
        """Call a tool that must fail and return its error message."""
        result = self.call_tool(tool, None, **arguments)
        assert result["isError"] is True, result
        return result["content"][0]["text"]

    def call_tool(self, tool: str, meta: dict | None, **arguments: object) -> dict:
        """Call a tool and return its result as JSON."""
        extra = {"_meta": meta} if meta else {}
        response = self.ask("tools/call", {"name": tool, "arguments": arguments, **extra})
        assert "result" in response, response
        return response["result"]

    def close(self) -> int:
        """Close the input, wait for the server to end, and return its exit status."""
        try:
            self.process.stdin.close()
        except OSError:
            pass  # the server has ended already
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        self._stderr_reader.join(60)
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.returncode
