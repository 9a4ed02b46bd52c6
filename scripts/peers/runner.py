"""`scripts/bench-peers`: run the same cases, or the same passages at scale, through every peer and print tables."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from holdfast.base.record import Record
from holdfast.errors import HoldfastError, UsageError
from holdfast_bench.ranking_metrics import Mean, percentile
from holdfast_bench.retrieval import ALL, DEPTH, LIMIT, score_query, show_status, summarize_kinds
from holdfast_bench.retrieval_cases import Case, read_cases, select_half
from peers import scale
from peers.registry import PEERS, InstallPeer, Peer, PeerError, install_peer, run_driver

_VALUE_OPTIONS = ("--scale", "--only", "--rows", "--cache", "--half", "--limit-cases")
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


class QualityRow(Record):
    """The figures of one peer on one file, or the reason there are none; the field names are keys of --json."""

    name: str
    version: str
    how: str
    questions: int
    docs: dict[str, Mean]
    sessions: dict[str, Mean]
    docs_per_s: float
    p50_ms: float
    p95_ms: float
    cpu_ms: float  # CPU time per question
    peak_mb: float
    failed: str = ""
    run: str = ""


class Options(Record):
    """The options of the command."""

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
SaveRow = Callable[[Any], None]


def main(argv: list[str]) -> int:
    """Parse the arguments, measure every peer, print the tables and return the exit status."""
    try:
        options = parse_args(argv)
        if options.help:
            print(_format_usage())
            return 0
        files = [(path, select_half(read_cases(path), options.half)[: options.cases]) for path in options.files]
        saved = _SavedRows(options.rows)
        for path, cases in files:
            compare(cases, options, save_row=saved.make_saver(_make_title(path, cases)))
        for size in options.scale:
            compare_at_scale(size, options, save_row=saved.make_saver(f"{size:,} passages"))
    except HoldfastError as error:
        print(f"{error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    print(json.dumps(_to_json(saved.tables), indent=2) if options.json else format_tables(saved.tables, saved.run))
    return 0


def parse_args(argv: list[str]) -> Options:
    """Parse the arguments of `scripts/bench-peers`; raise UsageError."""
    arguments, files = list(argv), list[Path]()
    values: dict[str, Any] = {}
    while arguments:
        argument = arguments.pop(0)
        name, _, value = argument.partition("=")
        if argument in ("-h", "--help"):
            return Options(help=True)
        if argument == "--json":
            values["json"] = True
        elif not argument.startswith("--"):
            files.append(Path(argument))
        elif name not in _VALUE_OPTIONS:
            raise UsageError(f"there is no option {name}", _format_usage())
        elif not value and not arguments:
            raise UsageError(f"{name} needs a value", _format_usage())
        else:
            values |= _parse_option(name, value or arguments.pop(0))
    if not files and "scale" not in values:  # --scale generates its own data
        raise UsageError("name at least one file of cases", _format_usage())
    return Options(files=tuple(files), **values)


def _parse_option(name: str, value: str) -> dict[str, Any]:
    """Return the field of Options that an option sets."""
    items = value.split(",")
    if name == "--half" and value.upper() in ("A", "B"):
        return {"half": value.upper()}
    if name == "--limit-cases" and value.isascii() and value.isdigit() and int(value) > 0:
        return {"cases": int(value)}
    if name == "--only" and set(items) <= {peer.name for peer in PEERS}:
        return {"only": tuple(items)}
    if name == "--cache":
        return {"cache": Path(value).absolute()}
    if name == "--rows":
        return {"rows": Path(value)}
    if name == "--scale" and all(item.isascii() and item.isdigit() and int(item) for item in items):
        return {"scale": tuple(map(int, items))}
    raise UsageError(f"cannot follow {name} {value}", _format_usage())


def _format_usage() -> str:
    return _USAGE.format(names=", ".join(peer.name for peer in PEERS))


def _make_title(path: Path, cases: list[Case]) -> str:
    docs, questions = sum(len(case.docs) for case in cases), sum(len(case.queries) for case in cases)
    return f"{path.name}: cases {len(cases):,}, docs {docs:,}, questions {questions:,}"


class _SavedRows:
    """The rows measured so far, and those of earlier runs if there is a file to save them in."""

    def __init__(self, file: Path | None) -> None:
        self.run = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.tables: Tables = {}
        self._file = file
        if file and file.exists():
            self.tables = _read_tables(file)

    def make_saver(self, title: str) -> SaveRow:
        """Return a function that replaces the row of the same peer in this table and writes the file."""
        order = [peer.name for peer in PEERS]

        def save_row(row: Any) -> None:
            others = [other for other in self.tables.get(title, []) if other.name != row.name]
            rows = [*others, row.replace(run=self.run)]
            self.tables[title] = sorted(rows, key=lambda row: order.index(row.name))
            if self._file:
                self._file.write_text(json.dumps(_to_json(self.tables), indent=2), encoding="utf-8")

        return save_row


def _to_json(tables: Tables) -> dict[str, list[dict[str, Any]]]:
    return {title: [row.as_dict() for row in rows] for title, rows in tables.items()}


def _read_tables(file: Path) -> Tables:
    """Read the rows of known peers from a file that --rows wrote; raise UsageError."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        known = {peer.name for peer in PEERS}
        return {title: [_parse_row(row) for row in rows if row["name"] in known] for title, rows in data.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"{file} holds no rows: {error}", "Name a file that --rows wrote, or one that is not there") from None


def _parse_row(row: dict[str, Any]) -> Any:
    if "questions" not in row:
        return scale.ScaleRow(**row)
    means = {part: {name: Mean(**mean) for name, mean in row[part].items()} for part in ("docs", "sessions")}
    return QualityRow(**(row | means))


def compare(
    cases: list[Case], options: Options, install: InstallPeer = install_peer, save_row: SaveRow | None = None
) -> list[QualityRow]:
    """Measure one peer after the other, since they must not share the machine while they are timed."""
    rows = []
    for peer in _select_peers(PEERS, options):
        try:
            row = _make_row(peer, cases, _run_cases(peer, install(peer, _cache_folder(options)), _cache_folder(options), cases))
        except PeerError as error:
            row = QualityRow(
                name=peer.name, version="", how=peer.how, questions=0, docs={}, sessions={}, docs_per_s=0.0, p50_ms=0.0,
                p95_ms=0.0, cpu_ms=0.0, peak_mb=0.0, failed=str(error),
            )  # fmt: skip
        rows.append(row)
        if save_row:
            save_row(row)
    return rows


def compare_at_scale(
    size: int, options: Options, install: InstallPeer = install_peer, save_row: SaveRow | None = None
) -> list[scale.ScaleRow]:
    """Measure the peers that search by keywords and by vectors, one after the other, at this number of passages."""
    rows = []
    for peer in _select_peers(tuple(peer for peer in PEERS if peer.at_scale), options):
        try:
            python = install(peer, _cache_folder(options))
            show_status(f"{peer.name}: {size:,} passages")
            row = scale.measure_peer(peer, python, _cache_folder(options), size)
        except PeerError as error:
            row = scale.make_failed_row(peer, str(error))
        rows.append(row)
        if save_row:
            save_row(row)
    return rows


def _select_peers(peers: tuple[Peer, ...], options: Options) -> Iterator[Peer]:
    """Yield the peers chosen with --only, Holdfast last: if it fails, the others have been measured."""
    for peer in sorted(peers, key=lambda peer: peer.name == "holdfast"):
        if not options.only or peer.name in options.only:
            show_status(f"{peer.name}: installing")
            yield peer
    show_status("")


def _cache_folder(options: Options) -> Path:
    return options.cache or Path.home() / ".cache" / "holdfast-bench"


def _run_cases(peer: Peer, python: str, cache: Path, cases: list[Case]) -> list[dict[str, Any]]:
    """Return the driver's result for each case; raise PeerError if some are missing."""
    results: list[dict[str, Any]] = []
    for result in run_driver(peer, python, cache, "cases", (DEPTH, LIMIT), lines=map(_encode_case, cases)):
        results.append(result)
        show_status(f"{peer.name}: {len(results)} of {len(cases)} cases")
    if len(results) != len(cases):
        raise PeerError("did not run: it ended early")
    return results


def _encode_case(case: Case) -> str:
    """Return a case as a JSON line without the gold documents."""
    queries = [{"text": query.text, "date": query.date} for query in case.queries]
    return json.dumps({"name": case.name, "docs": [doc.as_dict() for doc in case.docs], "queries": queries}) + "\n"


def _make_row(peer: Peer, cases: list[Case], results: list[dict[str, Any]]) -> QualityRow:
    scores = [
        score_query(case, query, [id for id in ranking if id in case.session_by_doc])
        for case, result in zip(cases, results, strict=True)
        for query, ranking in zip(case.queries, result["rankings"], strict=True)
    ]
    if not scores:
        raise PeerError("there is no question to ask")
    means = summarize_kinds(scores)[ALL]
    times = [time for result in results for time in result["times_ms"]]
    docs, seconds = sum(len(case.docs) for case in cases), sum(result["stored_s"] for result in results)
    return QualityRow(
        name=peer.name, version=results[0]["version"], how=peer.how, questions=len(scores), docs=means.docs,
        sessions=means.sessions, docs_per_s=round(docs / seconds, 1), p50_ms=round(percentile(times, 0.5), 2),
        p95_ms=round(percentile(times, 0.95), 2),
        cpu_ms=round(1000 * sum(result["cpu_s"] for result in results) / len(times), 2),
        peak_mb=round(max(result["peak_mb"] for result in results)),
    )  # fmt: skip


def format_tables(tables: Tables, run: str) -> str:
    """Return the tables as in docs/benchmarks.md, with a mark on rows of an earlier run."""
    formatted, has_earlier = [], False
    for title, rows in tables.items():
        earlier = {row.name for row in rows if row.run != run}
        has_earlier = has_earlier or bool(earlier)
        format_table = scale.format_table if isinstance(rows[0], scale.ScaleRow) else _format_quality
        formatted.append(format_table(title, rows, earlier))
    return "\n\n".join([*formatted, *(["† measured in an earlier run"] if has_earlier else [])])


def _format_quality(title: str, rows: list[QualityRow], earlier: set[str]) -> str:
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
