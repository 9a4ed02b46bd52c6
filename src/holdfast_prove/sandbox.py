"""The sandbox of a run: a private home with the client set up in it, a project, a memory with two random words, and records.

One word is in a note that every briefing shows; the other is in a note that no briefing has space for, so that only a recall
finds it. A fact has a current value and an old one.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from holdfast import config
from holdfast.api.memory import Memory
from holdfast.clients.base import Client, InstallTarget
from holdfast.clients.install import install

FACT = ("Canary", "share of traffic")
FACT_VALUES = {"2026-02-01": "5 %", "2026-09-01": "10 %"}  # by first day; the last value is current
BRIEFING_ENTRIES = 40  # with the texts below they fill a briefing to its limit
_SETTINGS = f"""[brief]
entries = {BRIEFING_ENTRIES}
scope_chars = 9000
total_chars = 9000

[search]
embedder = "none"
"""
_GIT_FILES = {
    "HEAD": "ref: refs/heads/main\n",
    "config": '[core]\n\trepositoryformatversion = 0\n[remote "origin"]\n\turl = https://proof.invalid/holdfast/proof.git\n',
    "objects/info/.keep": "",
    "refs/heads/.keep": "",
}
_FILLER = "It sleeps by day and hunts by night. " * 30  # longer than the space left in a full briefing
_PINNED_TEXT = (
    "Log of ship {number}: she lay at berth {number}, took on coal and water, and left with the tide of the same evening."
)


@dataclass(frozen=True)
class HoldfastCall:
    """One run of Holdfast by the client."""

    command: tuple[str, ...]
    cwd: str
    stdin: str = ""
    stdout: str = ""
    exit_code: int | None = None

    @property
    def received_messages(self) -> list[dict[str, Any]]:
        """Return the JSON-RPC messages among the lines of the input."""
        return _parse_json_lines(self.stdin.splitlines())

    @property
    def sent_messages(self) -> list[dict[str, Any]]:
        """Return the JSON-RPC messages among the lines of the output."""
        return _parse_json_lines(self.stdout.splitlines())

    def as_dict(self) -> dict[str, Any]:
        """Return the content of a file of `holdfast prove --keep`, whose keys are public."""
        return {
            "words": list(self.command), "cwd": self.cwd, "heard": self.stdin, "said": self.stdout, "code": self.exit_code,
        }  # fmt: skip


class Sandbox:
    """The folders of one run, all under one root."""

    def __init__(self, root: str) -> None:
        root = os.path.realpath(root)
        self.home = os.path.join(root, "home")
        self.memory = os.path.join(self.home, ".holdfast")
        self.project = os.path.join(root, "project")
        self.calls = os.path.join(root, "calls")
        self.temp = os.path.join(root, "tmp")
        self.output = os.path.join(root, "output")

    def create(self, briefing_word: str, recall_word: str) -> None:
        """Create the folders, a Git repository with a remote, and the notes."""
        for folder in (self.home, self.project, self.calls, self.temp):
            os.makedirs(folder, mode=0o700)
        for name, text in _GIT_FILES.items():
            write_private_file(os.path.join(self.project, ".git", name), text)
        os.mkdir(self.memory, 0o700)
        write_private_file(os.path.join(self.memory, "config.toml"), _SETTINGS)
        settings = config.load(self.memory, {"HOME": self.home})
        texts = [_PINNED_TEXT.format(number=number) * 2 for number in range(1, BRIEFING_ENTRIES)]
        with Memory(config=settings, cwd=self.project, origin="user") as memory:
            for day, value in FACT_VALUES.items():
                memory.fact(*FACT, value, on=day)
            memory.store(f"The cat of the lighthouse keeper is called {recall_word}. {_FILLER}", key="cat")
            memory.store_many([{"text": text, "key": f"ship-{number}", "pinned": True} for number, text in enumerate(texts, 1)])
            memory.store(f"Code word of the harbour: {briefing_word}", key="harbour", pinned=True)

    def install_client(self, client: Client, place: InstallTarget, files: dict[str, str]) -> None:
        """Write the files that the client needs to run headless, then install Holdfast in it as a user does."""
        for name, text in files.items():
            write_private_file(os.path.join(self.home, name), text)
        install(client, place)

    def read_output(self, max_chars: int) -> str:
        """Return the end of the program's output."""
        with open(self.output, "rb") as file:
            return file.read().decode("utf-8", "replace")[-max_chars:]

    def read_calls(self) -> list[HoldfastCall]:
        """Return every run of Holdfast in the order of their start."""
        records = [_read_records(os.path.join(self.calls, name)) for name in os.listdir(self.calls)]
        return [_make_call(lines) for lines in sorted(filter(None, records), key=lambda lines: float(lines[0]["time"]))]


def write_private_file(path: str, text: str) -> None:
    """Write a file that only its owner can read, and create the folders above it."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def _read_records(path: str) -> list[dict[str, Any]]:
    """Return the lines that `recorder.py` wrote; the last one may be incomplete if it was stopped."""
    with open(path, encoding="utf-8") as file:
        return _parse_json_lines(list(file))


def _make_call(records: list[dict[str, Any]]) -> HoldfastCall:
    first, last = records[0], records[-1]
    stdin, stdout = ("".join([record[name] for record in records if name in record]) for name in ("stdin", "stdout"))
    return HoldfastCall(
        command=tuple(first["command"]), cwd=first["cwd"], stdin=stdin, stdout=stdout, exit_code=last.get("exit_code")
    )


def _parse_json_lines(lines: list[str]) -> list[dict[str, Any]]:
    """Return the JSON objects among the lines."""
    objects = []
    for line in lines:
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            objects.append(value)
    return objects
