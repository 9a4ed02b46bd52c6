"""`holdfast bench speed`: ratios to floors measured in the same run, and how times grow with notes; growth.py has passages."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from holdfast.api.memory import Memory
from holdfast.base.record import Record
from holdfast.errors import UsageError
from holdfast_bench.floors import BareSearch, BareWriter, TextGenerator, time_bulk_write, time_flush
from holdfast_bench.growth import (
    count_index_bytes,
    draw_growth,
    measure_cold_peak,
    measure_scale,
    print_scale,
)
from holdfast_bench.processes import (
    PrintProgress,
    bare_python_command,
    compile_bytecode,
    holdfast_command,
    make_progress_printer,
    recall_arguments,
    temporary_folder,
    time_call,
    time_mcp_handshake,
    time_process,
)
from holdfast_bench.retrieval import check_plot
from holdfast_bench.reused_vectors import reuse_vectors

QUICK = (1_000, 10_000)  # numbers of notes and of passages
USUAL = (*QUICK, 100_000)
_ROUNDS = 15
_IMPORT = "bulk import"
_IMPORT_TARGET = 20  # times as fast as single stores


class Ratio(Record):
    """Holdfast against a floor: medians of measurements that alternate. Field names are keys of the JSON report."""

    name: str
    ours_ms: float
    floor_ms: float
    ratio: float
    target: str
    met: bool


class Flush(Record):
    """The time of a flush on this disk, and the time from which on a bulk import would reach its target."""

    here_ms: float
    enough_ms: float


class Size(Record):
    """Figures at one number of notes."""

    notes: int
    import_per_s: float
    store_ms: float
    recall_p50_ms: float
    recall_p95_ms: float
    cold_recall_ms: float
    cold_peak_mb: float
    index_bytes_per_note: int
    rebuild_per_s: float


class _Home(Record):
    folder: str
    notes: int
    texts: tuple[str, ...]
    generator: TextGenerator
    import_seconds: float


def run(sizes: tuple[int, ...], passages: tuple[int, ...], seed: int, as_json: bool, plot: Path | None = None) -> int:
    """Measure at these numbers of notes and passages, print the report and return the exit status."""
    if plot:
        if not passages:
            raise UsageError("--plot draws the times by number of passages, and --passages names none", "Leave out one of them")
        check_plot(plot)  # before minutes of work
    print_progress = make_progress_printer(as_json)
    with temporary_folder("bench") as base:
        compile_bytecode()
        homes = {size: _fill_home(base, size, seed, print_progress) for size in sizes}
        main_size = max((size for size in sizes if size <= 10_000), default=sizes[0])
        ratios = _measure_ratios(base, homes[main_size], print_progress)
        flush = _measure_flush(base, next(ratio for ratio in ratios if ratio.name.startswith(_IMPORT)))
        size_rows = [_measure_size(home, print_progress) for home in homes.values()]
        with reuse_vectors():
            scale_rows = [measure_scale(base, size, seed, print_progress) for size in passages]
    if plot and scale_rows:
        draw_growth(scale_rows, plot)
    if as_json:
        report: dict[str, list[Record]] = {
            "ratios": [*ratios], "flush": [flush], "sizes": [*size_rows], "passages": [*scale_rows],
        }  # fmt: skip
        print(json.dumps({name: [row.as_dict() for row in rows] for name, rows in report.items()}, indent=2))
        return 0
    _print_ratios(ratios, flush)
    _print_sizes(size_rows)
    if scale_rows:
        print_scale(scale_rows)
    return 0


def _fill_home(base: Path, size: int, seed: int, print_progress: PrintProgress) -> _Home:
    """Import this many notes into a new home."""
    print_progress(f"importing {size:,} notes")
    generator = TextGenerator(seed)
    texts = [generator.text() for _ in range(size)]
    folder = str(base / f"home-{size}")
    return _Home(folder, size, tuple(texts), generator, _time_import(base, folder, texts))


def _time_import(base: Path, folder: str, texts: Sequence[str]) -> float:
    """Return the seconds of a bulk import."""
    with Memory(folder, project="bench", cwd=base) as memory:
        start = time.perf_counter()
        memory.store_many([{"text": text, "key": f"note-{number}"} for number, text in enumerate(texts)])
        return time.perf_counter() - start


# --- ratios to floors -------------------------------------------------------------------------------------------------


def _measure_ratios(base: Path, home: _Home, print_progress: PrintProgress) -> list[Ratio]:
    """Measure everything that has a floor."""
    print_progress(f"measuring against the floors at {home.notes:,} notes")
    with Memory(home.folder, project="bench", cwd=base) as memory:
        stores, store_ms, light_write_ms = _measure_stores(base, memory, home)
        recall = _measure_recall(memory, home)
    import_seconds, bulk_seconds = [home.import_seconds], []
    for number in range(2):  # alternating, and soon after the single stores: the speed of a machine varies
        import_seconds.append(_time_import(base, str(base / f"import-{number}"), home.texts))
        bulk_seconds.append(time_bulk_write(base / f"bulk-{number}" / "notes", list(home.texts)))
    import_ms, bulk_ms = (statistics.median(seconds) * 1000 / home.notes for seconds in (import_seconds, bulk_seconds))
    faster = store_ms / import_ms
    import_name = f"{_IMPORT} of {home.notes:,}: times faster than single stores"
    return [
        *stores,
        Ratio(import_name, import_ms, store_ms, faster, "≥ 20", faster >= _IMPORT_TARGET),
        Ratio("a bare bulk loop: times faster than light writes", bulk_ms, light_write_ms, light_write_ms / bulk_ms, "", True),
        Ratio("import against that loop", import_ms, bulk_ms, import_ms / bulk_ms, "", True),
        recall,
        _measure_cold_recall(home),
        *_measure_hooks(home),
        _measure_handshake(home),
    ]


def _measure_flush(base: Path, bulk_import: Ratio) -> Flush:
    """Measure a flush. A single store waits for two flushes, a whole import for two: its gain depends on the disk."""
    here = time_flush(base)
    return Flush(here, max(0.0, here + (_IMPORT_TARGET * bulk_import.ours_ms - bulk_import.floor_ms) / 2))


def _measure_stores(base: Path, memory: Memory, home: _Home) -> tuple[list[Ratio], float, float]:
    """Alternate stores and bare writes into equally full folders.

    Return the ratios, then the mean milliseconds of a store and of a bare write whose row is not flushed.
    """
    flushed = BareWriter(base / "bare" / "notes")
    light = BareWriter(base / "light" / "notes", flush_row=False)
    for number, text in enumerate(home.texts[:2000]):
        for kind in ("bare", "light"):
            (base / kind / "notes" / f"{number}.md").write_text(text)
    store_ms, flushed_ms, light_ms = [], [], []
    for number in range(400):
        text = home.generator.text()
        flushed_ms.append(time_call(flushed.write, f"bare-{number}.md", text))
        light_ms.append(time_call(light.write, f"bare-{number}.md", text))
        store_ms.append(time_call(memory.store, text, key=f"single-{number}"))
    flushed.close()
    light.close()
    ratios = [
        _compare("durable store", store_ms, flushed_ms, 2.0),
        _compare("durable store, the floor's row not flushed", store_ms, light_ms),
    ]
    return ratios, statistics.mean(store_ms), statistics.mean(light_ms)


def _measure_recall(memory: Memory, home: _Home) -> Ratio:
    bare = BareSearch(list(home.texts))
    for _ in range(3):
        memory.recall(home.generator.query(home.texts[0]), mode="keyword")
    recall_ms, floor_ms = [], []
    for text in home.texts[:300]:
        query = home.generator.query(text)
        floor_ms.append(time_call(bare.search, query))
        recall_ms.append(time_call(memory.recall, query, mode="keyword"))
    return _compare(f"keyword recall at {home.notes:,}", recall_ms, floor_ms, 3.0)


def _measure_cold_recall(home: _Home) -> Ratio:
    """Measure a recall by a process that starts for it."""
    recall_ms, floor_ms = [], []
    for text in home.texts[: _ROUNDS * 2]:
        floor_ms.append(time_process(bare_python_command(), home.folder))
        recall_ms.append(_time_cold_recall(home.generator.query(text), home.folder))
    return _compare(f"cold `holdfast recall` at {home.notes:,}", recall_ms, floor_ms, 6.0)


def _time_cold_recall(query: str, home: str) -> float:
    return time_process(holdfast_command(*recall_arguments(query)), home)


def _measure_hooks(home: _Home) -> list[Ratio]:
    """Measure the hooks an agent waits for: at the start of a session and at every prompt."""
    start_ms, prompt_ms, floor_ms = [], [], []
    for number, text in enumerate(home.texts[: _ROUNDS * 2]):
        query = home.generator.query(text)
        event = {"session_id": f"bench-{number}", "cwd": home.folder, "source": "startup", "prompt": query}
        stdin = json.dumps(event).encode()
        floor_ms.append(time_process(bare_python_command(), home.folder))
        start_ms.append(time_process(holdfast_command("hook", "generic", "start"), home.folder, stdin))
        prompt_ms.append(time_process(holdfast_command("hook", "generic", "prompt"), home.folder, stdin))
    return [
        _compare(f"hook start at {home.notes:,}", start_ms, floor_ms, 6.0),
        _compare(f"hook prompt at {home.notes:,}", prompt_ms, floor_ms, 6.0),
    ]


def _measure_handshake(home: _Home) -> Ratio:
    """Measure the start of the MCP server: handshake and list of tools."""
    handshake_ms, python_ms = [], []
    for _ in range(_ROUNDS):
        python_ms.append(time_process(bare_python_command(), home.folder))
        handshake_ms.append(time_mcp_handshake(home.folder))
    ours, floor = statistics.median(handshake_ms), statistics.median(python_ms)
    return Ratio("MCP handshake, cold", ours, floor, ours / floor, "≤ 1 s", ours <= 1000)


def _compare(name: str, ours_ms: list[float], floor_ms: list[float], most: float | None = None) -> Ratio:
    """Return the ratio of the medians, with the highest ratio allowed if there is a target."""
    ours, floor = statistics.median(ours_ms), statistics.median(floor_ms)
    ratio = ours / floor
    return Ratio(name, ours, floor, ratio, "" if most is None else f"≤ {most:g}", most is None or ratio <= most)


# --- growth with the number of notes ----------------------------------------------------------------------------------


def _measure_size(home: _Home, print_progress: PrintProgress) -> Size:
    print_progress(f"measuring at {home.notes:,} notes")
    with Memory(home.folder, project="bench") as memory:
        store_ms = [time_call(memory.store, home.generator.text(), key=f"size-{number}") for number in range(60)]
        queries = [home.generator.query(text) for text in home.texts[:200]]
        recall_ms = sorted([time_call(memory.recall, query, mode="keyword") for query in queries])
        start = time.perf_counter()
        notes = memory.reindex().notes
        rebuild_per_s = notes / (time.perf_counter() - start)
    cold_ms = [_time_cold_recall(query, home.folder) for query in queries[:7]]
    return Size(
        notes=home.notes, import_per_s=round(home.notes / home.import_seconds), store_ms=statistics.median(store_ms),
        recall_p50_ms=statistics.median(recall_ms), recall_p95_ms=recall_ms[int(len(recall_ms) * 0.95)],
        cold_recall_ms=statistics.median(cold_ms), cold_peak_mb=measure_cold_peak(recall_arguments(queries[0]), home.folder),
        index_bytes_per_note=count_index_bytes(home.folder) // notes, rebuild_per_s=round(rebuild_per_s),
    )  # fmt: skip


# --- report -----------------------------------------------------------------------------------------------------------


def _print_ratios(ratios: list[Ratio], flush: Flush) -> None:
    print(f"\n{'against its floor':<52}{'ours':>11}{'floor':>11}{'ratio':>9}  target")
    for row in ratios:
        mark = "" if row.met else "   missed"
        print(f"{row.name:<52}{row.ours_ms:>8.3f} ms{row.floor_ms:>8.3f} ms{row.ratio:>8.2f}×  {row.target}{mark}")
    print(
        f"a flush of this disk takes {flush.here_ms:.2f} ms, a single store waits for two, an import for two in all: where one"
        f" takes {flush.enough_ms:.2f} ms or more, {_IMPORT} would be {_IMPORT_TARGET} times faster, by calculation"
    )


def _print_sizes(rows: list[Size]) -> None:
    names = f"{'notes':>9}{'import/s':>10}{'store':>10}{'recall p50':>12}{'p95':>10}{'cold':>9}{'peak':>8}"
    print(f"\n{names}{'index/note':>12}{'rebuild/s':>11}")
    for row in rows:
        print(
            f"{row.notes:>9,}{row.import_per_s:>10,.0f}{row.store_ms:>7.2f} ms{row.recall_p50_ms:>9.2f} ms"
            f"{row.recall_p95_ms:>7.2f} ms{row.cold_recall_ms:>6.0f} ms{row.cold_peak_mb:>5.0f} MB"
            f"{row.index_bytes_per_note:>10,} B{row.rebuild_per_s:>11,.0f}"
        )
