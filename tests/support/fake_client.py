"""A minimal coding agent for the tests of `holdfast prove`: it runs hooks, the MCP server and a model, and can fail on demand.

`fake_client.py URL PROMPT CONFIG MODE`: the mode names the failure; an empty mode works.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path


def main(url: str, prompt: str, config: str, mode: str) -> int:
    """Run one session and return the exit status."""
    if mode == "fails":
        print("fake client: no such option")
        return 3
    if mode == "hangs":
        stray = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
        pid_file = os.path.join(os.environ["TMPDIR"], "stray")
        subprocess.Popen([sys.executable, "-I", "-S", "-c", stray, pid_file], start_new_session=True)
        while not (os.path.exists(pid_file) and Path(pid_file).read_text()):
            time.sleep(0.01)
        time.sleep(600)
    settings = json.loads(Path(config).read_text())
    context = "" if mode == "untrusting" else _run_hook(settings["hooks"]["start"])
    escaped = context.replace("<", "&lt;").replace(">", "&gt;")
    context = {"cuts": context[:5000], "drops": "", "escapes": escaped}.get(mode, context)
    if mode not in ("untrusting", "drops"):
        prompt += "\n\n" + _run_hook(settings["hooks"]["prompt"], prompt=prompt)
    server = None if mode == "serverless" else Server(settings["server"])
    tools = [] if mode in ("serverless", "toolless") else server.tools()
    system = "" if mode == "mute" else (server.instructions if server else "")
    messages = [{"role": "system", "content": f"{system}\n{context}"}, {"role": "user", "content": prompt}]
    while calls := _request_tool_calls(url, messages, tools):
        for call in calls:
            result = "denied" if mode == "denies" else server.call(call["function"]["name"].removeprefix("fake_"), call)
            messages.append({"role": "assistant", "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    return 0


def _run_hook(command: str, **fields: str) -> str:
    """Run a hook and return its text for the model."""
    data = {"session_id": "s1", "cwd": os.getcwd(), "source": "startup", **fields}
    done = subprocess.run(command, shell=True, input=json.dumps(data), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"] if done.stdout else ""


def _request_tool_calls(url: str, messages: list, tools: list) -> list:
    """Send the conversation to the model and return the tool calls of its reply."""
    body = json.dumps({"model": "any", "messages": messages, "tools": tools}).encode()
    request = urllib.request.Request(f"{url}/v1/chat/completions", body, {"Content-Type": "application/json"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as response:
        return json.load(response)["choices"][0]["message"].get("tool_calls") or []


class Server:
    """A connection to the MCP server of Holdfast."""

    def __init__(self, command: list) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.number = 0
        client = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "fake-client", "version": "1.0.0"},
        }
        self.instructions = self.request("initialize", client)["instructions"]
        self.send({"method": "notifications/initialized"})

    def send(self, message: dict) -> None:
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def request(self, method: str, params: dict) -> dict:
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        for line in self.process.stdout:
            if json.loads(line).get("id") == self.number:
                return json.loads(line)["result"]
        raise SystemExit("the server has ended")

    def tools(self) -> list:
        offered = self.request("tools/list", {})["tools"]
        return [{"type": "function", "function": {"name": f"fake_{tool['name']}"}} for tool in offered]

    def call(self, name: str, call: dict) -> str:
        arguments = json.loads(call["function"]["arguments"])
        return self.request("tools/call", {"name": name, "arguments": arguments})["content"][0]["text"]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
