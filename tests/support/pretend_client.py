"""A coding agent's program in a page, for tests of the proof itself: hooks, an MCP server, a model, and every way to fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path


def main(url: str, prompt: str, config: str, mode: str) -> int:
    if mode == "fails":
        print("pretend: no such option")
        return 3
    if mode == "hangs":
        stray = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
        where = os.path.join(os.environ["TMPDIR"], "stray")
        subprocess.Popen([sys.executable, "-I", "-S", "-c", stray, where], start_new_session=True)
        while not (os.path.exists(where) and Path(where).read_text()):
            time.sleep(0.01)
        time.sleep(600)
    told = json.loads(Path(config).read_text())
    context = "" if mode == "untrusting" else _hook(told["hooks"]["start"])
    escaped = context.replace("<", "&lt;").replace(">", "&gt;")
    context = {"cuts": context[:5000], "drops": "", "escapes": escaped}.get(mode, context)
    if mode not in ("untrusting", "drops"):
        prompt += "\n\n" + _hook(told["hooks"]["prompt"], prompt=prompt)
    server = None if mode == "serverless" else Server(told["server"])
    tools = [] if mode in ("serverless", "toolless") else server.tools()
    system = "" if mode == "mute" else (server.instructions if server else "")
    messages = [{"role": "system", "content": f"{system}\n{context}"}, {"role": "user", "content": prompt}]
    while calls := _ask(url, messages, tools):
        for call in calls:
            said = "denied" if mode == "denies" else server.call(call["function"]["name"].removeprefix("pretend_"), call)
            messages.append({"role": "assistant", "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": said})
    return 0


def _hook(command: str, **more: str) -> str:
    data = {"session_id": "s1", "cwd": os.getcwd(), "source": "startup", **more}
    done = subprocess.run(command, shell=True, input=json.dumps(data), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"] if done.stdout else ""


def _ask(url: str, messages: list, tools: list) -> list:
    body = json.dumps({"model": "any", "messages": messages, "tools": tools}).encode()
    asked = urllib.request.Request(f"{url}/v1/chat/completions", body, {"Content-Type": "application/json"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked) as answer:
        return json.load(answer)["choices"][0]["message"].get("tool_calls") or []


class Server:
    def __init__(self, words: list) -> None:
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.number = 0
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "pretend", "version": "1.0.0"}}
        self.instructions = self.ask("initialize", about)["instructions"]
        self.say({"method": "notifications/initialized"})

    def say(self, what: dict) -> None:
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **what}) + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict) -> dict:
        self.number += 1
        self.say({"id": self.number, "method": method, "params": params})
        for line in self.process.stdout:
            if json.loads(line).get("id") == self.number:
                return json.loads(line)["result"]
        raise SystemExit("the server is gone")

    def tools(self) -> list:
        offered = self.ask("tools/list", {})["tools"]
        return [{"type": "function", "function": {"name": f"pretend_{one['name']}"}} for one in offered]

    def call(self, name: str, call: dict) -> str:
        arguments = json.loads(call["function"]["arguments"])
        return self.ask("tools/call", {"name": name, "arguments": arguments})["content"][0]["text"]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
