"""The real programs for tests: which versions, where they are, and a private home with one of them set up in it."""

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
from holdfast_prove.model_server import Model
from holdfast_prove.sandbox import Stage, write

HOLDFAST = str(Path(sys.executable).parent / "holdfast")
NATIVE = f"{npm.KIND}-{npm.CHIP}"
VERSIONS = {
    "claude-code": "2.1.325", "codex": "0.166.0", "gemini": "0.61.0", "copilot": "1.0.102", "opencode": "1.18.33",
    "kimi": "2.1.0", "qwen": "0.24.4",
}  # fmt: skip
NOWHERE = "http://127.0.0.1:9"
PROMPT = "What is the code word of the harbour?"  # which the briefing answers


def program(name):
    """Where a client's program is, once it is there. Native ones are called without the script that looks for them."""
    version = VERSIONS[name]
    if name == "claude-code":
        return npm.package(f"@anthropic-ai/claude-code-{NATIVE}", version) / "claude"
    if name == "codex":
        inside = npm.package("@openai/codex", f"{version}-{NATIVE}", alias=f"@openai/codex-{NATIVE}")
        return next(path for path in inside.rglob("codex") if path.is_file())
    if name == "opencode":
        return npm.package(f"opencode-{NATIVE}", version) / "bin" / "opencode"
    packages = {"gemini": "@google/gemini-cli", "copilot": "@github/copilot", "kimi": "@moonshot-ai/kimi-code"}
    inside = npm.package(packages.get(name, "@qwen-code/qwen-code"), version)
    return inside.parents[1] / ".bin" / name


def each(*names):
    """A test for each of these clients; the slow programs in two groups, so that not all of them run at once."""
    early = ("claude-code", "codex", "gemini", "copilot")
    return [pytest.param(name, marks=pytest.mark.xdist_group(f"programs-{name in early}"), id=name) for name in names]


def surroundings():
    return {"PATH": os.pathsep.join([str(npm.node().parent), os.environ["PATH"]])}


class Prepared:
    """A client in a private home, installed there unless that is not wanted."""

    def __init__(self, name, root, *, install=True, beside=None):
        self.stage = beside.stage if beside else Stage(str(root))
        if not beside:
            self.stage.build("briefed", "buried")
        self.client = clients.load(name)
        self.url = NOWHERE
        self.base = run._environment(surroundings(), self.stage, NOWHERE)
        self.place = InstallTarget(home=self.stage.home, environ=self.base, command=(HOLDFAST,), memory=self.stage.memory)
        self.session = self._session(NOWHERE, "hi")
        for path, text in self.session.files.items():
            write(path, text)
        if install:
            install_module.install(self.client, self.place)

    def _session(self, url, prompt):
        return self.client.session(self.place, url, prompt, str(program(self.client.name)))

    @property
    def plugin(self):
        """A folder with the plugin, for one session."""
        return install_module.write_plugin(self.client, self.place)

    def ask(self, *words, env=None, cwd=None):
        """Run the program with these words; what it says."""
        done = subprocess.run(
            [self.session.argv[0], *words], env={**self.base, **self.session.env, **(env or {})},
            cwd=cwd or self.stage.project, capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def talk(self, *words, prompt=PROMPT, tool="memory_recall", arguments=None, cwd=None):
        """A headless session with these words besides; what the model was asked, and what the program said."""
        with Model(run.QUERY, tool, arguments) as model:
            session = self._session(model.url, prompt)
            for path in map(Path, session.files):  # the model is at another place each time
                path.write_text(path.read_text().replace(self.url, model.url))
            self.url = model.url
            said = self.ask(*session.argv[1:], *words, env={**session.env, "HTTPS_PROXY": model.url}, cwd=cwd)
        return model.asks, said


def told(asks, word):
    """How often a word stands in what the model was asked last, tools' answers aside."""
    return sum(one.text.count(word) for one in asks[-1].said if one.role != "tool")


def session_of(said):
    """The session's id, as programs that speak JSON lines say it."""
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    return next(line[name] for line in lines for name in ("session_id", "thread_id") if name in line)
