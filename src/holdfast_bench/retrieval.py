"""`holdfast bench retrieval`: how well recall finds what answers a question, on files of cases, through the public API only."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.api.memory import Memory
from holdfast.base.record import Record
from holdfast.errors import UsageError
from holdfast_bench import metrics
from holdfast_bench.cases import Case, half, read
from holdfast_bench.ingest import feed, moment, ranking
from holdfast_bench.metrics import Mean
from holdfast_bench.progress import folder

DEPTH = 100  # deep enough to see many different sessions; a question is timed with the limit people use
USUAL = 10
ALL = "all"
_SHOWN = ("any@5", "all@5", "recall@5", "recall@10", "recall@20", "ndcg@10", "mrr")


class Options(Record):
    """What was asked for on the command line."""

    files: tuple[Path, ...] = ()
    mode: str = "hybrid"
    half: str | None = None
    cases: int | None = None
    json: bool = False
    plot: Path | None = None


class Kind(Record):
    """The figures of one kind of question: by doc, and by session."""

    questions: int
    docs: dict[str, Mean]
    sessions: dict[str, Mean]


class Report(Record):
    """What one file measured."""

    file: str
    mode: str
    ran: tuple[str, ...]  # the modes that really ran
    degraded: int  # how many answers were
    reason: str
    half: str | None
    cases: int
    docs: int
    questions: int
    docs_per_s: float
    recall_p50_ms: float
    recall_p95_ms: float
    kinds: dict[str, Kind]


class Asked(Record):
    """One question, what came back and how long that took."""

    kind: str
    ranking: list[str]
    docs: dict[str, float]
    sessions: dict[str, float]
    milliseconds: float
    ran: str
    reason: str


Open = Callable[[str], Any]


def run(options: Options) -> int:
    """Measure, print."""
    if options.plot:
        from holdfast_bench import plot

        plot.ready(options.plot)  # before hours of work, not after
    reports = [measure(path, options) for path in options.files]
    if options.json:
        print(json.dumps({"files": [report.as_dict() for report in reports]}, indent=2))
    else:
        print("\n\n".join(as_text(report) for report in reports))
    if options.plot:
        plot.draw(reports, options.plot)
    return 0


def open_home(folder: str) -> Memory:
    """A fresh home for one case."""
    return Memory(folder, project="bench", cwd=folder)


def measure(path: Path, options: Options, open: Open = open_home) -> Report:
    """Every case of a file in a home of its own, every question asked there."""
    cases = half(read(path), options.half)[: options.cases]
    if not any(case.queries for case in cases):
        raise UsageError(f"{path} leaves no question to ask", "Take the other half, or more cases")
    asked: list[Asked] = []
    seconds = 0.0
    for number, case in enumerate(cases, 1):
        tell(f"{path.name}: case {number} of {len(cases)}, {len(asked)} questions asked")
        took, answers = _case(case, options.mode, open)
        seconds += took
        asked += answers
    tell("")
    return _report(path, options, cases, seconds, asked)


def _case(case: Case, mode: str, open: Open) -> tuple[float, list[Asked]]:
    with folder("bench") as home, open(str(home)) as memory:
        fed = feed(memory, case, mode)
        return fed.seconds, [_ask(memory, case, query, fed.doc_of, mode) for query in case.queries]


def _ask(memory: Any, case: Case, query: Any, doc_of: dict[str, str], mode: str) -> Asked:
    now = moment(query.date)
    dated = {"now": now} if now else {}
    start = time.perf_counter()
    memory.recall(query.text, limit=USUAL, mode=mode, **dated)
    milliseconds = (time.perf_counter() - start) * 1000
    answer = memory.recall(query.text, limit=DEPTH, mode=mode, **dated)
    found = ranking(answer, doc_of)
    docs, by_session = judge(case, query, found)
    return Asked(query.kind, found, docs, by_session, milliseconds, answer.mode, answer.reason if answer.degraded else "")


def judge(case: Case, query: Any, found: list[str]) -> tuple[dict[str, float], dict[str, float]]:
    """The measures of a ranking by doc and by session."""
    session_of = case.session_of
    gold_sessions = {session_of[id] for id in query.gold}
    return metrics.score(found, query.gold), metrics.score(metrics.sessions(found, session_of), gold_sessions)


def _report(path: Path, options: Options, cases: list[Case], seconds: float, asked: list[Asked]) -> Report:
    times = [one.milliseconds for one in asked]
    reasons = [one.reason for one in asked if one.reason]
    docs = sum(len(case.docs) for case in cases)
    return Report(
        file=path.name, mode=options.mode, ran=tuple(sorted({one.ran for one in asked})), degraded=len(reasons),
        reason=reasons[0] if reasons else "", half=options.half, cases=len(cases), docs=docs, questions=len(asked),
        docs_per_s=round(docs / seconds, 1), recall_p50_ms=round(metrics.percentile(times, 0.5), 3),
        recall_p95_ms=round(metrics.percentile(times, 0.95), 3),
        kinds=by_kind([(one.kind, one.docs, one.sessions) for one in asked]),
    )  # fmt: skip


def by_kind(scores: list[tuple[str, dict[str, float], dict[str, float]]]) -> dict[str, Kind]:
    """The figures of all questions, then of each kind."""
    kinds = sorted({kind for kind, _, _ in scores})
    chosen = {ALL: scores} | ({kind: [one for one in scores if one[0] == kind] for kind in kinds} if len(kinds) > 1 else {})
    return {
        kind: Kind(len(some), metrics.summary([docs for _, docs, _ in some]), metrics.summary([by for _, _, by in some]))
        for kind, some in chosen.items()
    }


def as_text(report: Report) -> str:
    """The figures as people read them: percent, and the interval of all questions below their means."""
    part = f", half {report.half}" if report.half else ""
    lines = [
        f"{report.file}: cases {report.cases:,}, docs {report.docs:,}, questions {report.questions:,}{part}",
        f"mode {report.mode}, ran {', '.join(report.ran)}; stored {report.docs_per_s:,.0f} docs/s; "
        f"recall p50 {report.recall_p50_ms:.2f} ms, p95 {report.recall_p95_ms:.2f} ms",
    ]
    if report.degraded:
        lines.append(f"{report.degraded:,} answers were degraded: {report.reason}")
    lines += _table("by doc", {kind: (row.questions, row.docs) for kind, row in report.kinds.items()})
    if any(row.docs != row.sessions for row in report.kinds.values()):
        lines += _table("by session", {kind: (row.questions, row.sessions) for kind, row in report.kinds.items()})
    return "\n".join(lines)


def _table(title: str, rows: dict[str, tuple[int, dict[str, Mean]]]) -> list[str]:
    wide = max(len(title), *(len(kind) for kind in rows))
    lines = ["", f"{title:<{wide}}{'n':>7}" + "".join([f"{_spelled(name):>16}" for name in _SHOWN])]
    for kind, (count, means) in rows.items():
        lines.append(f"{kind:<{wide}}{count:>7,}" + "".join([f"{100 * means[name].mean:>16.1f}" for name in _SHOWN]))
        if kind == ALL:
            spread = [f"{100 * means[name].low:.1f} to {100 * means[name].high:.1f}" for name in _SHOWN]
            lines.append(f"{'  95 %':<{wide}}{'':>7}" + "".join([f"{one:>16}" for one in spread]))
    return lines


def _spelled(name: str) -> str:
    return name.upper() if name in ("mrr", "ndcg@10") else name


def tell(text: str) -> None:
    """How far it is, on a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
