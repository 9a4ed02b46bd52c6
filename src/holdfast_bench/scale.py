"""How hybrid recall grows with the number of passages: turns through `Memory.log`, static vectors, floors beside.

Hybrid recall and its floor are told in CPU time: what else a machine does then counts less. `fresh` is a question that nobody
asked before in this process, `hybrid` one whose passages it has seen."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import numpy as np

from holdfast import config
from holdfast.api.memory import Memory
from holdfast.base.record import Record
from holdfast_bench import floors

_SESSION = 200  # turns
_ASKED = 60
_DIM = 256


class Scale(Record):
    """How things stand at one number of passages."""

    passages: int
    build_per_s: float
    keyword_p50_ms: float
    fresh_p50_ms: float  # CPU, of questions asked for the first time,
    hybrid_p50_ms: float  # and again
    hybrid_p95_ms: float
    floor_ms: float  # a bare FTS5 query and a bare scan of as many vectors
    ratio: float
    cold_ms: float  # a new process, keyword
    peak_mb: float  # of the measuring process until then
    bytes_per_passage: int


def measure(base: Path, size: int, seed: int, say: Callable[[str], None]) -> Scale:
    """Build, ask, compare."""
    say(f"logging {size:,} turns")
    prose = floors.Prose(seed)
    texts = [prose.text() for _ in range(size)]
    home = base / f"turns-{size}"
    settings = config.load(home).replace(embedder="static")
    with Memory(config=settings, project="bench", cwd=base) as memory:
        start = time.perf_counter()
        for first in range(0, size, _SESSION):
            said = [{"role": _role(place), "text": text} for place, text in enumerate(texts[first : first + _SESSION])]
            memory.log(said, session=f"session-{first}")
        memory.embed()
        built = time.perf_counter() - start
        queries = [prose.query(text) for text in texts[:_ASKED]]
        keyword = [floors.milliseconds(memory.recall, query, mode="keyword") for query in queries]
        memory.recall(prose.query(texts[-1]))  # what is loaded once in a process is not the price of a question
        fresh = [floors.cpu_milliseconds(memory.recall, query) for query in queries]
        hybrid = sorted([floors.cpu_milliseconds(memory.recall, query) for query in queries])
    peak = _peak()
    floor = _floor(texts, queries, seed)
    cold = statistics.median([floors.process(floors.cold_recall(query), str(home)) for query in queries[:7]])
    p50 = statistics.median(hybrid)
    return Scale(
        size, round(size / built), statistics.median(keyword), statistics.median(fresh), p50,
        hybrid[int(len(hybrid) * 0.95)], floor, p50 / floor, cold, peak, floors.index_bytes(str(home)) // size,
    )  # fmt: skip


def _role(place: int) -> str:
    return "assistant" if place % 2 else "user"


def _floor(texts: list[str], queries: list[str], seed: int) -> float:
    """The two things that hybrid search cannot do without, bare."""
    bare = floors.BareSearch(texts)
    vectors = np.random.default_rng(seed).standard_normal((len(texts), _DIM), dtype=np.float32)
    taken = []
    for query in queries:
        start = time.process_time()
        bare.search(query)
        np.argpartition(-np.vecdot(vectors, vectors[0]), min(150, len(texts) - 1))
        taken.append((time.process_time() - start) * 1000)
    return statistics.median(taken)


def _peak() -> float:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


def show(rows: list[Scale]) -> None:
    """A table, and how the time of an answer grows."""
    names = f"{'passages':>10}{'build/s':>10}{'keyword p50':>13}{'fresh':>10}{'hybrid p50':>12}{'p95':>10}{'floor':>10}"
    print(f"\n{names}{'ratio':>8}{'cold':>9}{'peak':>9}{'bytes each':>12}")
    for row in rows:
        print(
            f"{row.passages:>10,}{row.build_per_s:>10,.0f}{row.keyword_p50_ms:>10.2f} ms{row.fresh_p50_ms:>7.2f} ms"
            f"{row.hybrid_p50_ms:>9.2f} ms"
            f"{row.hybrid_p95_ms:>7.2f} ms{row.floor_ms:>7.2f} ms{row.ratio:>7.2f}×{row.cold_ms:>6.0f} ms"
            f"{row.peak_mb:>6.0f} MB{row.bytes_per_passage:>12,}"
        )
    if len(rows) > 1:
        widest = max(row.hybrid_p50_ms for row in rows)
        print("\nhybrid p50 (CPU) as the number of passages grows (static vectors)")
        for row in rows:
            bar = "█" * max(1, round(40 * row.hybrid_p50_ms / widest))
            print(f"{row.passages:>10,} {bar} {row.hybrid_p50_ms:.1f} ms")
        more, longer = rows[-1].passages / rows[0].passages, rows[-1].hybrid_p50_ms / rows[0].hybrid_p50_ms
        print(f"{more:,.0f} times as many passages take {longer:.1f} times as long")
    print(f"SQLite {apsw.sqlite_lib_version()}, numpy {np.__version__}")
