"""`scripts/bench-peers`: the same cases through every peer, one after the other, and one table; the same at scale."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.base.record import Record
from holdfast.errors import HoldfastError, UsageError
from holdfast_bench import metrics
from holdfast_bench.cases import Case, half, read
from holdfast_bench.metrics import Mean
from holdfast_bench.retrieval import ALL, DEPTH, USUAL, by_kind, judge, tell
from peers import scale
from peers.roster import PEERS, Failed, Peer, Python, installed, said

_TAKE_A_VALUE = ("--scale", "--only", "--rows", "--cache", "--half", "--limit-cases")
_COLUMNS = ("any@5", "recall@5", "recall@10", "recall@20", "ndcg@10", "mrr")
_USAGE = """usage: scripts/bench-peers [FILE...] [--scale N,...] [--only NAME,...] [--rows FILE.json] [--cache FOLDER]
                           [--half A|B] [--limit-cases N] [--json]

  FILE           cases as JSON lines, plain or .gz; docs/benchmarks.md describes them
  --scale        how many passages each peer that searches by words and by vectors is filled with, then asked
  --only         some of: {names}
  --rows         keeps each row in this file as soon as it is measured; rows of peers that are not run now come from there
  --cache        where their environments are kept; otherwise ~/.cache/holdfast-bench
  --half         only the even cases (A) or the odd ones (B); of a single case, its even or odd questions
  --limit-cases  only the first N cases of each file
  --json         one JSON document on stdout"""


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
    cpu_ms: float  # processor time a question
    peak_mb: float
    failed: str = ""
    run: str = ""


class Options(Record):
    """What was asked for on the command line."""

    files: tuple[Path, ...] = ()
    only: tuple[str, ...] = ()
    cache: Path | None = None
    half: str | None = None
    cases: int | None = None
    json: bool = False
    help: bool = False
    scale: tuple[int, ...] = ()
    rows: Path | None = None


Tables = dict[str, list[Any]]  # the rows under each title


def main(argv: list[str]) -> int:
    """Parse, install, run, print."""
    try:
        options = parse(argv)
        if options.help:
            print(_usage())
            return 0
        cases = [(path, half(read(path), options.half)[: options.cases]) for path in options.files]
        kept = _Kept(options.rows)
        for path, some in cases:
            compare(some, options, put=kept.put(_title(path, some)))
        for size in options.scale:
            at_scale(size, options, put=kept.put(f"{size:,} passages"))
    except HoldfastError as error:
        print(f"{error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    print(json.dumps(_plain(kept.tables), indent=2) if options.json else as_markdown(kept.tables, kept.now))
    return 0


def parse(argv: list[str]) -> Options:
    """The words after `scripts/bench-peers`."""
    words, files = list(argv), list[Path]()
    given: dict[str, Any] = {}
    while words:
        word = words.pop(0)
        name, _, value = word.partition("=")
        if word in ("-h", "--help"):
            return Options(help=True)
        if word == "--json":
            given["json"] = True
        elif not word.startswith("--"):
            files.append(Path(word))
        elif name not in _TAKE_A_VALUE:
            raise UsageError(f"there is no option {name}", _usage())
        elif not value and not words:
            raise UsageError(f"{name} needs a value", _usage())
        else:
            given |= _option(name, value or words.pop(0))
    if not files and "scale" not in given:  # which brings its own data
        raise UsageError("name at least one file of cases", _usage())
    return Options(files=tuple(files), **given)


def _option(name: str, value: str) -> dict[str, Any]:
    words = value.split(",")
    if name == "--half" and value.upper() in ("A", "B"):
        return {"half": value.upper()}
    if name == "--limit-cases" and value.isascii() and value.isdigit() and int(value) > 0:
        return {"cases": int(value)}
    if name == "--only" and set(words) <= {peer.name for peer in PEERS}:
        return {"only": tuple(words)}
    if name == "--cache":
        return {"cache": Path(value).absolute()}
    if name == "--rows":
        return {"rows": Path(value)}
    if name == "--scale" and all(word.isascii() and word.isdigit() and int(word) for word in words):
        return {"scale": tuple(map(int, words))}
    raise UsageError(f"cannot follow {name} {value}", _usage())


def _usage() -> str:
    return _USAGE.format(names=", ".join(peer.name for peer in PEERS))


def _title(path: Path, cases: list[Case]) -> str:
    docs, questions = sum(len(case.docs) for case in cases), sum(len(case.queries) for case in cases)
    return f"{path.name}: cases {len(cases):,}, docs {docs:,}, questions {questions:,}"


Put = Callable[[Any], None]


class _Kept:
    """The rows measured so far, in the file where they are kept between runs, if there is one."""

    def __init__(self, file: Path | None) -> None:
        self.now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.tables: Tables = {}
        self._file = file
        if file and file.exists():
            self.tables = _read(file)

    def put(self, title: str) -> Put:
        """Takes a row, in place of what the same peer measured before, and writes all of them down."""
        order = [peer.name for peer in PEERS]

        def put(row: Any) -> None:
            others = [one for one in self.tables.get(title, []) if one.name != row.name]
            self.tables[title] = sorted([*others, row.replace(run=self.now)], key=lambda one: order.index(one.name))
            if self._file:
                self._file.write_text(json.dumps(_plain(self.tables), indent=2), encoding="utf-8")

        return put


def _plain(tables: Tables) -> dict[str, list[dict[str, Any]]]:
    return {title: [row.as_dict() for row in rows] for title, rows in tables.items()}


def _read(file: Path) -> Tables:
    try:
        given = json.loads(file.read_text(encoding="utf-8"))
        known = {peer.name for peer in PEERS}
        return {title: [_one(row) for row in rows if row["name"] in known] for title, rows in given.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"{file} holds no rows: {error}", "Name a file that --rows wrote, or one that is not there") from None


def _one(row: dict[str, Any]) -> Any:
    if "questions" not in row:
        return scale.Row(**row)
    means = {part: {name: Mean(**mean) for name, mean in row[part].items()} for part in ("docs", "sessions")}
    return Row(**(row | means))


def compare(cases: list[Case], options: Options, python: Python | None = None, put: Put | None = None) -> list[Row]:
    """A row a peer, one after the other: they must not share the machine while they are timed."""
    rows = []
    for peer, there in _ready(PEERS, options, python):
        try:
            row = _row(peer, cases, _answers(peer, there(), _cache(options), cases))
        except Failed as error:
            row = Row(peer.name, "", peer.how, 0, {}, {}, 0.0, 0.0, 0.0, 0.0, 0.0, str(error))
        rows.append(row)
        if put:
            put(row)
    return rows


def at_scale(size: int, options: Options, python: Python | None = None, put: Put | None = None) -> list[scale.Row]:
    """The same at one number of passages, for those that search by words and by vectors."""
    rows = []
    for peer, there in _ready(tuple(peer for peer in PEERS if peer.at_scale), options, python):
        try:
            python_there = there()
            tell(f"{peer.name}: {size:,} passages")
            row = scale.measured(peer, python_there, _cache(options), size)
        except Failed as error:
            row = scale.failed(peer, str(error))
        rows.append(row)
        if put:
            put(row)
    return rows


def _ready(peers: tuple[Peer, ...], options: Options, python: Python | None) -> Any:
    """Each peer asked for, with what gives its Python once it is installed."""
    for peer in sorted(peers, key=lambda peer: peer.name == "holdfast"):  # ours last: its failure costs nobody's hour
        if not options.only or peer.name in options.only:
            tell(f"{peer.name}: installing")
            yield peer, lambda peer=peer: (python or installed)(peer, _cache(options))
    tell("")


def _cache(options: Options) -> Path:
    return options.cache or Path.home() / ".cache" / "holdfast-bench"


def _answers(peer: Peer, python: str, cache: Path, cases: list[Case]) -> list[dict[str, Any]]:
    """What the peer's process said of each case."""
    answers: list[dict[str, Any]] = []
    for answer in said(peer, python, cache, ["cases", str(DEPTH), str(USUAL)], map(_asked, cases)):
        answers.append(answer)
        tell(f"{peer.name}: {len(answers)} of {len(cases)} cases")
    if len(answers) != len(cases):
        raise Failed("did not run: it ended early")
    return answers


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
        round(1000 * sum(answer["cpu_s"] for answer in answers) / len(times), 2),
        round(max(answer["peak_mb"] for answer in answers)),
    )  # fmt: skip


def as_markdown(tables: Tables, now: str) -> str:
    """The tables as docs/benchmarks.md shows them, with a mark on rows of an earlier run."""
    shown, marked = [], False
    for title, rows in tables.items():
        earlier = {row.name for row in rows if row.run != now}
        marked = marked or bool(earlier)
        show = scale.as_markdown if isinstance(rows[0], scale.Row) else _quality
        shown.append(show(title, rows, earlier))
    return "\n\n".join([*shown, *(["† measured in an earlier run"] if marked else [])])


def _quality(title: str, rows: list[Row], earlier: set[str]) -> str:
    heads = ("system", *_COLUMNS, "session recall@5", "writes/s", "query p50 ms", "p95 ms", "CPU ms", "peak MB", "how")
    lines = [title, "", f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for row in rows:
        cells = [f"{row.name} {row.version}".strip() + ("†" if row.name in earlier else "")]
        if row.failed:
            cells += [""] * (len(heads) - 2) + [row.failed.replace("|", "/")]
        else:
            cells += [f"{100 * row.docs[column].mean:.1f}" for column in _COLUMNS]
            cells += [f"{100 * row.sessions['recall@5'].mean:.1f}", f"{row.docs_per_s:,.0f}", f"{row.p50_ms:.1f}"]
            cells += [f"{row.p95_ms:.1f}", f"{row.cpu_ms:.1f}", f"{row.peak_mb:,.0f}", row.how]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
