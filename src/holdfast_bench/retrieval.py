"""`holdfast bench retrieval`: how well recall finds the documents that answer a question, through the public API only."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.api.memory import Memory
from holdfast.base.record import Record
from holdfast.errors import NotFound, UsageError
from holdfast.formats.transcript import ROLES
from holdfast.models import Answer
from holdfast_bench.processes import temporary_folder
from holdfast_bench.ranking_metrics import Mean, percentile, rank_sessions, score_ranking, summarize
from holdfast_bench.retrieval_cases import Case, Doc, Query, parse_date, read_cases, select_half

DEPTH = 100  # results per question that are scored: enough to contain many sessions
LIMIT = 10  # results per question that is timed, as users ask for
ALL = "all"
_WARM_UP_QUERY = "is everything here yet"
_METRICS_SHOWN = ("any@5", "all@5", "recall@5", "recall@10", "recall@20", "ndcg@10", "mrr")
_BARS = (("any@5", "docs"), ("recall@10", "docs"), ("ndcg@10", "docs"), ("recall@5", "sessions"))
_BAR_COLOURS = ("#4477aa", "#66ccee", "#228833", "#ccbb44")  # distinct for colour-blind readers, too
_PLOT_SUFFIXES = (".png", ".svg", ".pdf")

OpenMemory = Callable[[str], Any]


class Options(Record):
    """The options of the command."""

    files: tuple[Path, ...] = ()
    mode: str = "hybrid"
    half: str | None = None
    cases: int | None = None
    json: bool = False
    plot: Path | None = None


class Kind(Record):
    """The figures of one kind of question, by document and by session."""

    questions: int
    docs: dict[str, Mean]
    sessions: dict[str, Mean]


class Report(Record):
    """The figures of one file; the field names are the keys of the JSON report."""

    file: str
    mode: str
    ran: tuple[str, ...]  # the modes of the answers
    degraded: int  # number of degraded answers
    reason: str
    half: str | None
    cases: int
    docs: int
    questions: int
    docs_per_s: float
    recall_p50_ms: float
    recall_p95_ms: float
    kinds: dict[str, Kind]


class Ingested(Record):
    """The seconds until every document of a case could be found, and the document of each key."""

    seconds: float
    doc_by_key: dict[str, str]


class Scores(Record):
    """The metrics of one ranking, by document and by session."""

    kind: str
    docs: dict[str, float]
    sessions: dict[str, float]


class QueryResult(Record):
    """The scores and the time of one question."""

    scores: Scores
    milliseconds: float
    mode: str  # of the answer
    reason: str  # why the answer is degraded; empty if it is not


def run(options: Options) -> int:
    """Measure every file, print the report and return the exit status."""
    if options.plot:
        check_plot(options.plot)  # before hours of work
    reports = [measure(path, options) for path in options.files]
    if options.json:
        print(json.dumps({"files": [report.as_dict() for report in reports]}, indent=2))
    else:
        print("\n\n".join(format_report(report) for report in reports))
    if options.plot:
        draw_plot(reports, options.plot)
    return 0


def open_home(folder: str) -> Memory:
    """Open a memory in a new folder."""
    return Memory(folder, project="bench", cwd=folder)


def measure(path: Path, options: Options, open_memory: OpenMemory = open_home) -> Report:
    """Store each case of a file in a home of its own and ask its questions there."""
    cases = select_half(read_cases(path), options.half)[: options.cases]
    if not any(case.queries for case in cases):
        raise UsageError(f"{path} leaves no question to ask", "Take the other half, or more cases")
    results: list[QueryResult] = []
    seconds = 0.0
    for number, case in enumerate(cases, 1):
        show_status(f"{path.name}: case {number} of {len(cases)}, {len(results)} questions asked")
        with temporary_folder("bench") as home, open_memory(str(home)) as memory:
            ingested = ingest(memory, case, options.mode)
            seconds += ingested.seconds
            results += [_ask(memory, case, query, ingested.doc_by_key, options.mode) for query in case.queries]
    show_status("")
    return _make_report(path, options, cases, seconds, results)


def _ask(memory: Any, case: Case, query: Query, doc_by_key: dict[str, str], mode: str) -> QueryResult:
    """Ask one question twice: timed with the usual limit, then scored with a deeper ranking."""
    now = parse_date(query.date)
    date_option = {"now": now} if now else {}
    start = time.perf_counter()
    memory.recall(query.text, limit=LIMIT, mode=mode, **date_option)
    milliseconds = (time.perf_counter() - start) * 1000
    answer = memory.recall(query.text, limit=DEPTH, mode=mode, **date_option)
    scores = score_query(case, query, rank_docs(answer, doc_by_key))
    return QueryResult(scores, milliseconds, answer.mode, answer.reason if answer.degraded else "")


def score_query(case: Case, query: Query, ranking: list[str]) -> Scores:
    """Score a ranking of documents against the question's gold documents, and their sessions likewise."""
    session_by_doc = case.session_by_doc
    gold_sessions = {session_by_doc[id] for id in query.gold}
    by_session = score_ranking(rank_sessions(ranking, session_by_doc), gold_sessions)
    return Scores(query.kind, score_ranking(ranking, query.gold), by_session)


def show_status(text: str) -> None:
    """Replace the status line on stderr if that is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


# --- documents in, rankings out ---------------------------------------------------------------------------------------


def ingest(memory: Any, case: Case, mode: str) -> Ingested:
    """Log turns, store notes, and make vectors if the mode needs them.

    Texts that look like secrets are redacted, as on import: public data sets contain some.
    """
    turns, notes = _split_docs(case)
    memory.recall(_WARM_UP_QUERY, mode=mode, limit=1)  # load the models before the clock starts
    start = time.perf_counter()
    for session, docs in turns.items():
        memory.log([_make_turn(doc) for doc in docs], session=session, redact=True)
    if notes:
        memory.store_many([_make_note(key, doc) for key, doc in notes.items()], redact=True)
    if mode in ("hybrid", "semantic"):
        memory.embed()
    memory.recall(_WARM_UP_QUERY, mode=mode, limit=1)
    seconds = time.perf_counter() - start
    doc_by_key = {doc.id: doc.id for docs in turns.values() for doc in docs} | {key: doc.id for key, doc in notes.items()}
    return Ingested(seconds, doc_by_key)


def rank_docs(answer: Answer, doc_by_key: dict[str, str]) -> list[str]:
    """Return the distinct documents of an answer, best first."""
    return list(dict.fromkeys(doc_by_key[hit.key] for hit in answer.hits if hit.key in doc_by_key))


def _split_docs(case: Case) -> tuple[dict[str, list[Doc]], dict[str, Doc]]:
    """Return the documents with a speaker (turns) by session, and the others (notes) by key."""
    turns: dict[str, list[Doc]] = {}
    notes: dict[str, Doc] = {}
    for number, doc in enumerate(case.docs):
        if doc.speaker:
            turns.setdefault(doc.session, []).append(doc)
        else:
            notes[f"doc-{number}"] = doc
    return turns, notes


def _make_note(key: str, doc: Doc) -> dict[str, Any]:
    valid_from = parse_date(doc.date)
    return {"key": key, "text": doc.text, **({"valid_from": valid_from} if valid_from else {})}


def _make_turn(doc: Doc) -> dict[str, str]:
    role = doc.speaker.lower()
    turn = {"id": doc.id, "text": doc.text, "role": role if role in ROLES else "user"}
    if doc.speaker and role not in ROLES:
        turn["speaker"] = doc.speaker
    if timestamp := parse_date(doc.date):
        turn["time"] = timestamp
    return turn


# --- report -----------------------------------------------------------------------------------------------------------


def _make_report(path: Path, options: Options, cases: list[Case], seconds: float, results: list[QueryResult]) -> Report:
    times = [result.milliseconds for result in results]
    reasons = [result.reason for result in results if result.reason]
    docs = sum(len(case.docs) for case in cases)
    return Report(
        file=path.name, mode=options.mode, ran=tuple(sorted({result.mode for result in results})), degraded=len(reasons),
        reason=reasons[0] if reasons else "", half=options.half, cases=len(cases), docs=docs, questions=len(results),
        docs_per_s=round(docs / seconds, 1), recall_p50_ms=round(percentile(times, 0.5), 3),
        recall_p95_ms=round(percentile(times, 0.95), 3), kinds=summarize_kinds([result.scores for result in results]),
    )  # fmt: skip


def summarize_kinds(scores: list[Scores]) -> dict[str, Kind]:
    """Return the figures of all questions, then of each kind if there are several."""
    kinds = sorted({row.kind for row in scores})
    groups = {ALL: scores} | ({kind: [row for row in scores if row.kind == kind] for kind in kinds} if len(kinds) > 1 else {})
    return {
        kind: Kind(len(rows), summarize([row.docs for row in rows]), summarize([row.sessions for row in rows]))
        for kind, rows in groups.items()
    }


def format_report(report: Report) -> str:
    """Return the figures as tables in percent, with the interval of all questions below their means."""
    part = f", half {report.half}" if report.half else ""
    lines = [
        f"{report.file}: cases {report.cases:,}, docs {report.docs:,}, questions {report.questions:,}{part}",
        f"mode {report.mode}, ran {', '.join(report.ran)}; stored {report.docs_per_s:,.0f} docs/s; "
        f"recall p50 {report.recall_p50_ms:.2f} ms, p95 {report.recall_p95_ms:.2f} ms",
    ]
    if report.degraded:
        lines.append(f"{report.degraded:,} answers were degraded: {report.reason}")
    lines += _format_table("by doc", {kind: (row.questions, row.docs) for kind, row in report.kinds.items()})
    if any(row.docs != row.sessions for row in report.kinds.values()):
        lines += _format_table("by session", {kind: (row.questions, row.sessions) for kind, row in report.kinds.items()})
    return "\n".join(lines)


def _format_table(title: str, rows: dict[str, tuple[int, dict[str, Mean]]]) -> list[str]:
    width = max(len(title), *(len(kind) for kind in rows))
    heads = [name.upper() if name in ("mrr", "ndcg@10") else name for name in _METRICS_SHOWN]
    lines = ["", f"{title:<{width}}{'n':>7}" + "".join([f"{head:>16}" for head in heads])]
    for kind, (count, means) in rows.items():
        lines.append(f"{kind:<{width}}{count:>7,}" + "".join([f"{100 * means[name].mean:>16.1f}" for name in _METRICS_SHOWN]))
        if kind == ALL:
            intervals = [f"{100 * means[name].low:.1f} to {100 * means[name].high:.1f}" for name in _METRICS_SHOWN]
            lines.append(f"{'  95 %':<{width}}{'':>7}" + "".join([f"{interval:>16}" for interval in intervals]))
    return lines


# --- plot -------------------------------------------------------------------------------------------------------------


def check_plot(path: Path) -> None:
    """Raise UsageError or NotFound if no plot can be written to this path."""
    import_pyplot()
    if path.suffix.lower() not in _PLOT_SUFFIXES:
        raise UsageError(f"cannot draw a {path.suffix or 'file without an ending'}", f"One of: {', '.join(_PLOT_SUFFIXES)}")
    if not path.absolute().parent.is_dir():
        raise NotFound(f"{path.absolute().parent} is not there", "Make the folder first")


def draw_plot(reports: list[Report], path: Path) -> None:
    """Draw a panel per file with a group of bars per kind of question."""
    pyplot = import_pyplot()
    groups = max(len(report.kinds) for report in reports)
    size = (3 + 1.5 * groups, 0.5 + 3.2 * len(reports))
    figure, panels = pyplot.subplots(len(reports), 1, squeeze=False, figsize=size, layout="constrained")
    for report, (panel,) in zip(reports, panels, strict=True):
        _draw_panel(panel, report)
    names = panels[0][0].get_legend_handles_labels()
    figure.legend(*names, loc="outside lower center", ncols=len(_BARS), fontsize="small")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _draw_panel(panel: Any, report: Report) -> None:
    width = 0.8 / len(_BARS)
    for number, ((name, level), colour) in enumerate(zip(_BARS, _BAR_COLOURS, strict=True)):
        means = [(kind.docs if level == "docs" else kind.sessions)[name] for kind in report.kinds.values()]
        positions = [group + (number - (len(_BARS) - 1) / 2) * width for group in range(len(means))]
        errors = [[100 * (mean.mean - mean.low) for mean in means], [100 * (mean.high - mean.mean) for mean in means]]
        label = name if level == "docs" else f"session {name}"
        heights = [100 * mean.mean for mean in means]
        panel.bar(positions, heights, width, yerr=errors, label=label, color=colour, error_kw={"linewidth": 0.8})
    panel.set_xticks(range(len(report.kinds)), [f"{kind}\n{row.questions:,}" for kind, row in report.kinds.items()])
    panel.tick_params(axis="x", labelsize="small")
    panel.set_ylim(0, 105)
    panel.set_ylabel("%")
    panel.set_title(f"{report.file}, {', '.join(report.ran)}", fontsize="medium", loc="left")


def import_pyplot() -> Any:
    """Import matplotlib, which is optional; raise UsageError if it is not installed."""
    try:
        import matplotlib
    except ImportError:
        raise UsageError("drawing needs matplotlib", "pip install 'holdfast[bench]'") from None
    matplotlib.use("Agg")  # works without a display
    from matplotlib import pyplot

    return pyplot
