"""A client that speaks MCP by hand, line by line: what it sends is exactly what the test says."""

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


class Raw:
    """One server process, and the two ends of its pipe."""

    def __init__(self, home: Path, *words: str, cwd: Path, **env: str) -> None:
        cwd.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            [*HOLDFAST, "mcp", "--home", str(home), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env={**os.environ, **env},
        )
        self.heard: list[str] = []  # what it writes to stderr
        self._ear = threading.Thread(target=self._listen, daemon=True)
        self._ear.start()
        self.number = 0
        self.roots: list[str] | None = None  # what we say when we are asked
        self.asked_for_roots = 0

    def _listen(self) -> None:
        for line in self.process.stderr:
            self.heard.append(line.decode(errors="replace"))

    def write(self, data: bytes) -> None:
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: object) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def read(self) -> dict:
        """The next message that is meant for us; a question about our roots is answered on the way."""
        while True:
            line = self.process.stdout.readline()
            assert line, f"the server has gone: {self.process.wait(20)}\n{''.join(self.heard)}"
            said = json.loads(line)
            assert said["jsonrpc"] == "2.0"
            if said.get("method") != "roots/list":
                return said
            self.asked_for_roots += 1
            roots = [{"uri": uri} for uri in self.roots or []]
            self.send({"jsonrpc": "2.0", "id": said["id"], "result": {"roots": roots}})

    def ask(self, method: str, params: object = None, **more: object) -> dict:
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, **({"params": params} if params else {}), **more})
        said = self.read()
        assert said["id"] == self.number, said
        return said

    def notify(self, method: str) -> None:
        self.send({"jsonrpc": "2.0", "method": method})

    def greet(self, **said: object) -> dict:
        """The handshake."""
        answer = self.ask("initialize", {**INITIALIZE, **said})["result"]
        self.notify("notifications/initialized")
        return answer

    def call(self, tool: str, meta: dict | None = None, **arguments: object) -> Result:
        """A tool's answer; one that failed fails the test."""
        result = self.tool(tool, meta, **arguments)
        assert not result.get("isError"), result
        return Result.of(result)

    def refused(self, tool: str, **arguments: object) -> str:
        """What the agent is told where a call is refused."""
        result = self.tool(tool, None, **arguments)
        assert result["isError"] is True, result
        return result["content"][0]["text"]

    def tool(self, tool: str, meta: dict | None, **arguments: object) -> dict:
        extra = {"_meta": meta} if meta else {}
        said = self.ask("tools/call", {"name": tool, "arguments": arguments, **extra})
        assert "result" in said, said
        return said["result"]

    def close(self) -> int:
        """Hang up; the exit code."""
        try:
            self.process.stdin.close()
        except OSError:
            pass  # it has gone first
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        self._ear.join(60)
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.returncode
