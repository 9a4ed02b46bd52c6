"""The stage of a proof: a private home with the client set up in it, a project, a memory that holds two words, and records.

One word stands in a note that every briefing shows; the other in a note that no briefing has room for, so that only a recall
can bring it up. A fact was stated twice, so that it has a current value and an old one.
"""

from __future__ import annotations

import json
import os
from typing import Any

from holdfast import config
from holdfast.api.memory import Memory
from holdfast.base.record import Record
from holdfast.clients.base import Client, InstallTarget
from holdfast.clients.install import install

FACT = ("Canary", "share of traffic")
VALUES = {"2026-02-01": "5 %", "2026-09-01": "10 %"}  # by the day since when; the last one is current
ENTRIES = 40  # of a briefing; with the texts below they fill it to its cap
_SETTINGS = f"""[brief]
entries = {ENTRIES}
scope_chars = 9000
total_chars = 9000

[search]
embedder = "none"
"""
_GIT = {
    "HEAD": "ref: refs/heads/main\n",
    "config": '[core]\n\trepositoryformatversion = 0\n[remote "origin"]\n\turl = https://proof.invalid/holdfast/proof.git\n',
    "objects/info/.keep": "",
    "refs/heads/.keep": "",
}
_FILLER = "It sleeps by day and hunts by night. " * 30  # longer than the room that a full briefing leaves
_LOG = "Log of ship {number}: she lay at berth {number}, took on coal and water, and left with the tide of the same evening."


class Called(Record):
    """One run of Holdfast by the client: the words, where, what went in and came out, and how it ended."""

    words: tuple[str, ...]
    cwd: str
    heard: str = ""
    said: str = ""
    code: int | None = None

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What was said line by line, where the lines are JSON-RPC."""
        return [one for line in self.said.splitlines() if isinstance(one := _json(line), dict)]

    @property
    def asked(self) -> list[dict[str, Any]]:
        """What was heard line by line, where the lines are JSON-RPC."""
        return [one for line in self.heard.splitlines() if isinstance(one := _json(line), dict)]


class Stage:
    """The folders of one proof, all under one root."""

    def __init__(self, root: str) -> None:
        root = os.path.realpath(root)
        self.home = os.path.join(root, "home")
        self.memory = os.path.join(self.home, ".holdfast")
        self.project = os.path.join(root, "project")
        self.calls = os.path.join(root, "calls")
        self.temp = os.path.join(root, "tmp")
        self.output = os.path.join(root, "output")

    def build(self, briefed: str, buried: str) -> None:
        """The folders, a repository that has a remote, and the notes."""
        for folder in (self.home, self.project, self.calls, self.temp):
            os.makedirs(folder, mode=0o700)
        for name, text in _GIT.items():
            write(os.path.join(self.project, ".git", name), text)
        os.mkdir(self.memory, 0o700)
        write(os.path.join(self.memory, "config.toml"), _SETTINGS)
        settings = config.load(self.memory, {"HOME": self.home})
        logs = [_LOG.format(number=number) * 2 for number in range(1, ENTRIES)]
        with Memory(config=settings, cwd=self.project, origin="user") as memory:
            for day, value in VALUES.items():
                memory.fact(*FACT, value, on=day)
            memory.store(f"The cat of the lighthouse keeper is called {buried}. {_FILLER}", key="cat")
            memory.store_many([{"text": text, "key": f"ship-{number}", "pinned": True} for number, text in enumerate(logs, 1)])
            memory.store(f"Code word of the harbour: {briefed}", key="harbour", pinned=True)

    def furnish(self, client: Client, place: InstallTarget, files: dict[str, str]) -> None:
        """What the client needs to start without a person, and on top of it what an install of ours does."""
        for name, text in files.items():
            write(os.path.join(self.home, name), text)
        install(client, place)

    def printed(self, most: int) -> str:
        """The end of what the program said."""
        with open(self.output, "rb") as file:
            return file.read().decode("utf-8", "replace")[-most:]

    def called(self) -> list[Called]:
        """Every run of Holdfast, in the order in which they began."""
        kept = [_lines(os.path.join(self.calls, name)) for name in os.listdir(self.calls)]
        return [_called(lines) for lines in sorted(filter(None, kept), key=lambda lines: float(lines[0]["at"]))]


def write(path: str, text: str) -> None:
    """A file that only its owner reads, with the folders above it."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def _lines(path: str) -> list[dict[str, Any]]:
    """What `recorder.py` kept; the last line may be missing its end, if it was stopped."""
    with open(path, encoding="utf-8") as file:
        return [line for line in map(_json, file) if isinstance(line, dict)]


def _called(lines: list[dict[str, Any]]) -> Called:
    whole = {name: "".join([line[name] for line in lines if name in line]) for name in ("heard", "said")}
    first, last = lines[0], lines[-1]
    return Called(tuple(first["run"]), first["cwd"], whole["heard"], whole["said"], last.get("code"))


def _json(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
