"""How the time of a hybrid recall with the default models grows with the number of passages: part of `bench speed`."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

import apsw
import numpy as np

from holdfast.api.memory import Memory
from holdfast.base.record import Record
from holdfast_bench.floors import BareSearch, TextGenerator
from holdfast_bench.processes import (
    PrintProgress,
    holdfast_command,
    minimal_environment,
    recall_arguments,
    time_call,
    time_call_cpu,
    time_process,
    time_process_cpu,
)
from holdfast_bench.retrieval import import_pyplot
from holdfast_bench.reused_vectors import EMBEDDED

_TURNS_PER_SESSION = 200
_QUERIES = 60
_COLD_KEYWORD, _COLD_HYBRID = 7, 5  # new processes
_CHECKED_SECONDS = 2.5  # after which a process notes that it has checked the prepared weights
_DIMENSIONS = 384  # of the baseline's vectors: those of the sentence model
_BAR = 40  # characters


class Scale(Record):
    """Figures at one number of passages: turns stored with `Memory.log`, with vectors of the default models.

    Hybrid recall and its floor are CPU times, which depend less on other processes. Field names are keys of the JSON report.
    """

    passages: int
    log_per_s: float  # found by words; vectors follow
    keyword_p50_ms: float
    fresh_p50_ms: float  # CPU, each query for the first time in this process
    fresh_p95_ms: float
    again_p50_ms: float  # CPU, the same queries again
    floor_ms: float  # a bare FTS5 query and a bare scan of as many vectors
    ratio: float  # of a new query to the floor
    cold_ms: float  # a new process, keyword
    cold_hybrid_ms: float  # CPU, a new process that loads the models
    peak_mb: float  # of that process
    bytes_per_passage: int


def measure_scale(base: Path, size: int, seed: int, print_progress: PrintProgress) -> Scale:
    """Log this many turns into a new home and time recalls there."""
    print_progress(f"logging {size:,} turns")
    generator = TextGenerator(seed)
    texts = [generator.text() for _ in range(size)]
    home = base / f"turns-{size}"
    with Memory(home, project="bench", cwd=base) as memory:
        start = time.perf_counter()
        for first in range(0, size, _TURNS_PER_SESSION):
            session = texts[first : first + _TURNS_PER_SESSION]
            turns = [{"role": "assistant" if place % 2 else "user", "text": text} for place, text in enumerate(session)]
            memory.log(turns, session=f"session-{first}")
        log_seconds = time.perf_counter() - start
        print_progress(f"making the vectors of {size:,} turns")
        memory.embed()
        print_progress(f"asking {size:,} turns")
        queries = [generator.query(text) for text in texts[:_QUERIES]]
        keyword_ms = [time_call(memory.recall, query, mode="keyword") for query in queries]
        memory.recall(generator.query(texts[-1]))  # load the models before a query is timed
        fresh_ms = sorted([time_call_cpu(memory.recall, query) for query in queries])
        again_ms = [time_call_cpu(memory.recall, query) for query in queries]
    floor_ms = _measure_floor(texts, queries, seed)
    cold_ms = [time_process(holdfast_command(*recall_arguments(query)), str(home)) for query in queries[:_COLD_KEYWORD]]
    hybrid = [recall_arguments(query, "hybrid") for query in queries[:_COLD_HYBRID]]
    commands = [holdfast_command(*arguments) for arguments in hybrid]
    time_process(commands[0], str(home))  # prepare the weights, which a user has in the cache
    time.sleep(_CHECKED_SECONDS)
    time_process(commands[0], str(home))
    cold_hybrid_ms = [time_process_cpu(command, str(home)) for command in commands]
    fresh_p50_ms = statistics.median(fresh_ms)
    return Scale(
        passages=size, log_per_s=round(size / log_seconds), keyword_p50_ms=statistics.median(keyword_ms),
        fresh_p50_ms=fresh_p50_ms, fresh_p95_ms=fresh_ms[int(len(fresh_ms) * 0.95)],
        again_p50_ms=statistics.median(again_ms), floor_ms=floor_ms, ratio=fresh_p50_ms / floor_ms,
        cold_ms=statistics.median(cold_ms), cold_hybrid_ms=statistics.median(cold_hybrid_ms),
        peak_mb=measure_cold_peak(hybrid[0], str(home)), bytes_per_passage=count_index_bytes(str(home)) // size,
    )  # fmt: skip


def _measure_floor(texts: list[str], queries: list[str], seed: int) -> float:
    """Return the median CPU milliseconds of a bare FTS5 query plus a bare scan of all vectors."""
    bare = BareSearch(texts)
    vectors = np.random.default_rng(seed).standard_normal((len(texts), _DIMENSIONS), dtype=np.float32)
    times_ms = []
    for query in queries:
        start = time.process_time()
        bare.search(query)
        np.argpartition(-np.vecdot(vectors, vectors[0]), min(150, len(texts) - 1))
        times_ms.append((time.process_time() - start) * 1000)
    return statistics.median(times_ms)


def measure_cold_peak(arguments: list[str], home: str) -> float:
    """Return the peak memory of a command in megabytes as the kernel reports it to the process itself; 0 if unknown."""
    code = (
        "import sys; from holdfast.cli import main; main(sys.argv[1:]);"
        "print([l for l in open('/proc/self/status') if l.startswith('VmHWM')][0].split()[1])"
    )
    command = [sys.executable, "-c", code, *arguments]
    environment = minimal_environment(HOLDFAST_HOME=home, HOME=home)
    output = subprocess.run(command, capture_output=True, text=True, env=environment, check=False).stdout.split()
    return int(output[-1]) / 1024 if output and output[-1].isdigit() else 0.0


def count_index_bytes(home: str) -> int:
    """Return the size of the index on disk, including its write-ahead log."""
    files = [Path(home, name) for name in ("index.db", "index.db-wal")]
    return sum([file.stat().st_size for file in files if file.exists()])


# --- report -----------------------------------------------------------------------------------------------------------


def print_scale(rows: list[Scale]) -> None:
    """Print a table and a bar chart of the time of a hybrid recall."""
    names = f"{'passages':>10}{'log/s':>9}{'keyword p50':>13}{'new question':>14}{'p95':>10}{'asked again':>13}{'floor':>11}"
    print(f"\n{names}{'ratio':>8}{'cold':>9}{'cold hybrid':>13}{'its peak':>10}{'bytes each':>12}")
    for row in rows:
        print(
            f"{row.passages:>10,}{row.log_per_s:>9,.0f}{row.keyword_p50_ms:>10.2f} ms{row.fresh_p50_ms:>11.2f} ms"
            f"{row.fresh_p95_ms:>7.2f} ms{row.again_p50_ms:>10.2f} ms{row.floor_ms:>8.2f} ms{row.ratio:>7.2f}×"
            f"{row.cold_ms:>6.0f} ms{row.cold_hybrid_ms:>10.0f} ms{row.peak_mb:>7.0f} MB{row.bytes_per_passage:>12,}"
        )
    print(f"default models; texts after the first {EMBEDDED:,} have changed copies of the vectors of others")
    if len(rows) > 1:
        slowest = max(row.fresh_p50_ms for row in rows)
        print("\nCPU time of a new question as the number of passages grows")
        for row in rows:
            bar = "█" * max(1, round(_BAR * row.fresh_p50_ms / slowest))
            print(f"{row.passages:>10,} {bar} {row.fresh_p50_ms:.1f} ms")
        more, longer = rows[-1].passages / rows[0].passages, rows[-1].fresh_p50_ms / rows[0].fresh_p50_ms
        print(f"{more:,.0f} times as many passages take {longer:.1f} times as long")
    print(f"SQLite {apsw.sqlite_lib_version()}, numpy {np.__version__}")


def draw_growth(rows: list[Scale], path: Path) -> None:
    """Draw the CPU time of a question by the number of passages."""
    pyplot = import_pyplot()
    figure, panel = pyplot.subplots(figsize=(6, 3.6), layout="constrained")
    passages = [row.passages for row in rows]
    panel.plot(passages, [row.floor_ms for row in rows], "--", color="#777777", label="bare FTS5 and scan of vectors")
    panel.plot(passages, [row.fresh_p50_ms for row in rows], "o-", color="#4477aa", label="a new question")
    panel.plot(passages, [row.again_p50_ms for row in rows], "o-", color="#228833", label="the same again")
    for row in rows:
        panel.annotate(
            f"{row.fresh_p50_ms:.1f}", (row.passages, row.fresh_p50_ms), xytext=(0, 6), textcoords="offset points", ha="center",
            fontsize="small",
        )  # fmt: skip
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xticks(passages, [f"{count:,}" for count in passages])
    panel.yaxis.set_major_formatter("{x:g}")
    panel.minorticks_off()
    panel.set_xlabel("passages")
    panel.set_ylabel("CPU time of a question, ms")
    panel.legend(fontsize="small")
    panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
