"""The MCP reference memory server over stdio, with one entity per document.

It finds only texts that contain the query literally, and no text contains a whole question. So each word of the question is a
query of its own, and the documents that contain most words rank first.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import Any

NEEDS_EMBEDDER = False
_SCRIPT = os.path.join("node_modules", "@modelcontextprotocol", "server-memory")


class Peer:
    """The server process and its JSON-RPC connection."""

    def __init__(self, folder: str, embed: Any) -> None:
        package = os.path.join(os.environ["PEER_NODE_HOME"], _SCRIPT)
        with open(os.path.join(package, "package.json"), encoding="utf-8") as file:
            self.version = json.load(file)["version"]
        self._server = subprocess.Popen(
            [os.environ["PEER_NODE"], os.path.join(package, "dist", "index.js")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "MEMORY_FILE_PATH": os.path.join(folder, "memory.jsonl")}, text=True,
        )  # fmt: skip
        self._number = 0
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self._request("initialize", client)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def add(self, sessions: list[list[dict[str, str]]]) -> None:
        for session in sessions:
            entities = [{"name": doc["id"], "entityType": "turn", "observations": [doc["spoken_text"]]} for doc in session]
            self._call_tool("create_entities", {"entities": entities})

    def search(self, text: str, k: int) -> list[str]:
        counts: dict[str, int] = {}
        for word in dict.fromkeys(re.findall(r"\w{3,}", text.lower())):
            for entity in self._call_tool("search_nodes", {"query": word})["entities"]:
                counts[entity["name"]] = counts.get(entity["name"], 0) + 1
        return sorted(counts, key=lambda name: -counts[name])[:k]

    def close(self) -> None:
        self._server.stdin.close()  # type: ignore[union-attr]
        self._server.wait()

    def _call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        answer = self._request("tools/call", {"name": name, "arguments": arguments})
        return json.loads(answer["content"][0]["text"])

    def _request(self, method: str, arguments: dict[str, Any]) -> Any:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": arguments})
        while True:
            line = self._server.stdout.readline()  # type: ignore[union-attr]
            if not line:
                raise RuntimeError("the server ended")
            message = json.loads(line)
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(str(message["error"]))
                return message["result"]

    def _send(self, message: dict[str, Any]) -> None:
        self._server.stdin.write(json.dumps(message) + "\n")  # type: ignore[union-attr]
        self._server.stdin.flush()  # type: ignore[union-attr]
