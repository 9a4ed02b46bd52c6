"""Real client programs for tests: their versions, where they are, and a private home with one of them installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import npm
import pytest

from holdfast import clients
from holdfast.clients import install as install_module
from holdfast.clients.base import InstallTarget
from holdfast_prove import run
from holdfast_prove.model_server import ModelServer
from holdfast_prove.sandbox import Sandbox, write_private_file

HOLDFAST = str(Path(sys.executable).parent / "holdfast")
PLATFORM = f"{npm.SYSTEM}-{npm.PROCESSOR}"
VERSIONS = {
    "claude-code": "2.1.325", "codex": "0.166.0", "gemini": "0.61.0", "copilot": "1.0.102", "opencode": "1.18.33",
    "kimi": "2.1.0", "qwen": "0.24.4",
}  # fmt: skip
UNUSED_URL = "http://127.0.0.1:9"
PROMPT = "What is the code word of the harbour?"  # the briefing contains the answer


def find_program(name):
    """Download a client if necessary and return the path of its program, without the launcher script if it is native."""
    version = VERSIONS[name]
    if name == "claude-code":
        return npm.install_package(f"@anthropic-ai/claude-code-{PLATFORM}", version) / "claude"
    if name == "codex":
        package = npm.install_package("@openai/codex", f"{version}-{PLATFORM}", alias=f"@openai/codex-{PLATFORM}")
        return next(path for path in package.rglob("codex") if path.is_file())
    if name == "opencode":
        return npm.install_package(f"opencode-{PLATFORM}", version) / "bin" / "opencode"
    packages = {"gemini": "@google/gemini-cli", "copilot": "@github/copilot", "kimi": "@moonshot-ai/kimi-code"}
    package = npm.install_package(packages.get(name, "@qwen-code/qwen-code"), version)
    return package.parents[1] / ".bin" / name


def client_params(*names):
    """Return a test parameter per client, in two groups that each run on one worker: the programs are slow."""
    first_group = ("claude-code", "codex", "gemini", "copilot")
    return [pytest.param(name, marks=pytest.mark.xdist_group(f"programs-{name in first_group}"), id=name) for name in names]


def program_environment():
    """Return the environment to run the programs in: a PATH with Node.js first."""
    return {"PATH": os.pathsep.join([str(npm.find_node().parent), os.environ["PATH"]])}


class SandboxedClient:
    """A client in a private home of its own or of another client, with Holdfast installed in it unless `install` is false."""

    def __init__(self, name, root, *, install=True, share_home_with=None):
        self.sandbox = share_home_with.sandbox if share_home_with else Sandbox(str(root))
        if not share_home_with:
            self.sandbox.create("briefed", "buried")
        self.client = clients.load(name)
        self.url = UNUSED_URL
        self.base = run.make_environment(program_environment(), self.sandbox, UNUSED_URL)
        self.place = InstallTarget(home=self.sandbox.home, environ=self.base, command=(HOLDFAST,), memory=self.sandbox.memory)
        self.session = self._make_session(UNUSED_URL, "hi")
        for path, text in self.session.files.items():
            write_private_file(path, text)
        if install:
            install_module.install(self.client, self.place)

    def _make_session(self, url, prompt):
        return self.client.session(self.place, url, prompt, str(find_program(self.client.name)))

    def write_plugin(self):
        """Write the plugin for one session and return its folder."""
        return install_module.write_plugin(self.client, self.place)

    def run(self, *arguments, env=None, cwd=None):
        """Run the program with these arguments and return its output; it must succeed."""
        result = subprocess.run(
            [self.session.argv[0], *arguments], env={**self.base, **self.session.env, **(env or {})},
            cwd=cwd or self.sandbox.project, capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
        return result.stdout + result.stderr

    def run_session(self, *options, prompt=PROMPT, tool="memory_recall", arguments=None, cwd=None):
        """Run a headless session with further options; return the requests to the model and the program's output."""
        with ModelServer(run.QUERY, tool, arguments) as model:
            session = self._make_session(model.url, prompt)
            for path in map(Path, session.files):  # each model server has another port
                path.write_text(path.read_text().replace(self.url, model.url))
            self.url = model.url
            output = self.run(*session.argv[1:], *options, env={**session.env, "HTTPS_PROXY": model.url}, cwd=cwd)
        return model.model_requests, output


def count_in_last_request(requests, word):
    """Return how often a word is in the last request, without results of tools."""
    return sum(message.text.count(word) for message in requests[-1].messages if message.role != "tool")


def parse_session_id(output):
    """Return the session's id from a program's output of JSON lines."""
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return next(line[name] for line in lines for name in ("session_id", "thread_id") if name in line)
