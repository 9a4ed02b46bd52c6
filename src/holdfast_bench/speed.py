"""`holdfast bench speed`: ratios to the floors of the same run, and how things grow with the number of notes."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.api.memory import Memory
from holdfast.base.record import Record
from holdfast_bench import floors, scale
from holdfast_bench.progress import folder, teller

_ROUNDS = 15
_IMPORT, _BULK = "bulk import", 20  # times as fast as single stores
QUICK = (1_000, 10_000)
USUAL = (*QUICK, 100_000)


class Ratio(Record):
    """Something of ours against its floor, each the median of rounds that took turns."""

    name: str
    ours_ms: float
    floor_ms: float
    ratio: float
    target: str
    met: bool


class Flush(Record):
    """What a flush costs on this disk, and what it costs on one where an import is as much faster as it should be."""

    here_ms: float
    enough_ms: float


class Size(Record):
    """How things stand at one number of notes."""

    notes: int
    import_per_s: float
    store_ms: float
    recall_p50_ms: float
    recall_p95_ms: float
    cold_recall_ms: float
    cold_peak_mb: float
    index_bytes_per_note: int
    rebuild_per_s: float


def run(sizes: tuple[int, ...], passages: tuple[int, ...], seed: int, as_json: bool) -> int:
    """Measure, print."""
    say = teller(as_json)
    with folder("bench") as base:
        floors.compiled()
        homes = {size: _filled(base, size, seed, say) for size in sizes}
        main_size = max((size for size in sizes if size <= 10_000), default=sizes[0])
        ratios = _ratios(base, homes[main_size], say)
        flush = _flush(base, next(one for one in ratios if one.name.startswith(_IMPORT)))
        grown = [_size(home, say) for home in homes.values()]
        scaled = [scale.measure(base, size, seed, say) for size in passages]
    _show(ratios, flush, grown, scaled, as_json)
    return 0


class _Home(Record):
    folder: str
    notes: int
    texts: tuple[str, ...]
    prose: floors.Prose
    import_seconds: float


def _filled(base: Path, size: int, seed: int, say: Callable[[str], None]) -> _Home:
    say(f"importing {size:,} notes")
    prose = floors.Prose(seed)
    texts = [prose.text() for _ in range(size)]
    folder = str(base / f"home-{size}")
    return _Home(folder, size, tuple(texts), prose, _imported(base, folder, texts))


def _imported(base: Path, folder: str, texts: Sequence[str]) -> float:
    """The seconds that it takes."""
    with Memory(folder, project="bench", cwd=base) as memory:
        start = time.perf_counter()
        memory.store_many([{"text": text, "key": f"note-{number}"} for number, text in enumerate(texts)])
        return time.perf_counter() - start


def _ratios(base: Path, home: _Home, say: Callable[[str], None]) -> list[Ratio]:
    say(f"measuring against the floors at {home.notes:,} notes")
    with Memory(home.folder, project="bench", cwd=base) as memory:
        stores, single, light = _stores(base, memory, home)
        recall = _recalls(memory, home)
    imports, loops = [home.import_seconds], []
    for number in range(2):  # in turn, and near to the single stores in time: a machine is not always as fast
        imports.append(_imported(base, str(base / f"import-{number}"), home.texts))
        loops.append(floors.bare_bulk(base / f"bulk-{number}" / "notes", list(home.texts)))
    bulk, bare = (statistics.median(some) * 1000 / home.notes for some in (imports, loops))
    faster = single / bulk
    return [
        *stores,
        Ratio(f"{_IMPORT} of {home.notes:,}: times faster than single stores", bulk, single, faster, "≥ 20", faster >= _BULK),
        Ratio("a bare bulk loop: times faster than light writes", bare, light, light / bare, "", True),
        Ratio("import against that loop", bulk, bare, bulk / bare, "", True),
        recall,
        _cold(home),
        *_hooks(home),
        _handshake(home),
    ]


def _flush(base: Path, bulk: Ratio) -> Flush:
    """A single store waits for two flushes, an import for two in all: how much an import gains is the disk's to say."""
    here = floors.flush(base)
    return Flush(here, max(0.0, here + (_BULK * bulk.ours_ms - bulk.floor_ms) / 2))


def _stores(base: Path, memory: Memory, home: _Home) -> tuple[list[Ratio], float, float]:
    """Durable stores in turn with bare writes into folders that are as full; and what one takes on average, as a light write
    does."""
    bare, light = floors.BareWriter(base / "bare" / "notes"), floors.BareWriter(base / "light" / "notes", light=True)
    for number, text in enumerate(home.texts[:2000]):
        for kind in ("bare", "light"):
            (base / kind / "notes" / f"{number}.md").write_text(text)
    ours, theirs, lighter = [], [], []
    for number in range(400):
        text = home.prose.text()
        theirs.append(floors.milliseconds(bare.write, f"bare-{number}.md", text))
        lighter.append(floors.milliseconds(light.write, f"bare-{number}.md", text))
        ours.append(floors.milliseconds(memory.store, text, key=f"single-{number}"))
    bare.close()
    light.close()
    store = _against("durable store", ours, theirs, 2.0)
    against_light = _against("durable store, the floor's row not flushed", ours, lighter, 0)
    return [store, against_light], statistics.mean(ours), statistics.mean(lighter)


def _recalls(memory: Memory, home: _Home) -> Ratio:
    bare = floors.BareSearch(list(home.texts))
    for _ in range(3):
        memory.recall(home.prose.query(home.texts[0]), mode="keyword")
    ours, theirs = [], []
    for text in home.texts[:300]:
        query = home.prose.query(text)
        theirs.append(floors.milliseconds(bare.search, query))
        ours.append(floors.milliseconds(memory.recall, query, mode="keyword"))
    return _against(f"keyword recall at {home.notes:,}", ours, theirs, 3.0)


def _cold(home: _Home) -> Ratio:
    ours, theirs = [], []
    for text in home.texts[: _ROUNDS * 2]:
        theirs.append(floors.process(floors.bare_python(), home.folder))
        ours.append(floors.process(floors.cold_recall(home.prose.query(text)), home.folder))
    return _against(f"cold `holdfast recall` at {home.notes:,}", ours, theirs, 6.0)


def _hooks(home: _Home) -> list[Ratio]:
    """What an agent waits for when a session starts, and at every prompt."""
    start, prompt, theirs = [], [], []
    for number, text in enumerate(home.texts[: _ROUNDS * 2]):
        told = {"session_id": f"bench-{number}", "cwd": home.folder, "source": "startup", "prompt": home.prose.query(text)}
        said = json.dumps(told).encode()
        theirs.append(floors.process(floors.bare_python(), home.folder))
        start.append(floors.process(floors.hook("start"), home.folder, said))
        prompt.append(floors.process(floors.hook("prompt"), home.folder, said))
    return [
        _against(f"hook start at {home.notes:,}", start, theirs, 6.0),
        _against(f"hook prompt at {home.notes:,}", prompt, theirs, 6.0),
    ]


def _handshake(home: _Home) -> Ratio:
    """What an agent waits for when it starts its MCP server: the handshake and the list of tools."""
    ours, theirs = [], []
    for _ in range(_ROUNDS):
        theirs.append(floors.process(floors.bare_python(), home.folder))
        ours.append(floors.answered([*floors.program(), "mcp"], home.folder, floors.handshake(), 2))
    mine, floor = statistics.median(ours), statistics.median(theirs)
    return Ratio("MCP handshake, cold", mine, floor, mine / floor, "≤ 1 s", mine <= 1000)


def _size(home: _Home, say: Callable[[str], None]) -> Size:
    say(f"measuring at {home.notes:,} notes")
    with Memory(home.folder, project="bench") as memory:
        store = [floors.milliseconds(memory.store, home.prose.text(), key=f"size-{n}") for n in range(60)]
        queries = [home.prose.query(text) for text in home.texts[:200]]
        recall = sorted([floors.milliseconds(memory.recall, query, mode="keyword") for query in queries])
        start = time.perf_counter()
        notes = memory.reindex().notes
        rebuild = notes / (time.perf_counter() - start)
    cold = [floors.process(floors.cold_recall(query), home.folder) for query in queries[:7]]
    return Size(
        home.notes, round(home.notes / home.import_seconds), statistics.median(store), statistics.median(recall),
        recall[int(len(recall) * 0.95)], statistics.median(cold), _peak(queries[0], home.folder),
        floors.index_bytes(home.folder) // notes, round(rebuild),
    )  # fmt: skip


def _peak(query: str, home: str) -> float:
    """The most megabytes a recall ever holds, as the kernel tells the process itself."""
    code = (
        "import sys; from holdfast.cli import main; main(sys.argv[1:]);"
        "print([l for l in open('/proc/self/status') if l.startswith('VmHWM')][0].split()[1])"
    )
    command = [sys.executable, "-c", code, *floors.cold_recall(query)[len(floors.program()) :]]
    environment = floors.plain_environment() | {"HOLDFAST_HOME": home, "HOME": home}
    told = subprocess.run(command, capture_output=True, text=True, env=environment, check=False).stdout.split()
    return int(told[-1]) / 1024 if told and told[-1].isdigit() else 0.0


def _against(name: str, ours: list[float], theirs: list[float], most: float) -> Ratio:
    """Where nothing is aimed at, `most` is nought."""
    mine, floor = statistics.median(ours), statistics.median(theirs)
    return Ratio(name, mine, floor, mine / floor, f"≤ {most:g}" if most else "", not most or mine / floor <= most)


def _show(ratios: list[Ratio], flush: Flush, grown: list[Size], scaled: list[scale.Scale], as_json: bool) -> None:
    if as_json:
        told: dict[str, list[Record]] = {"ratios": [*ratios], "flush": [flush], "sizes": [*grown], "passages": [*scaled]}
        print(json.dumps({name: [row.as_dict() for row in rows] for name, rows in told.items()}, indent=2))
        return
    print(f"\n{'against its floor':<52}{'ours':>11}{'floor':>11}{'ratio':>9}  target")
    for row in ratios:
        mark = "" if row.met else "   missed"
        print(f"{row.name:<52}{row.ours_ms:>8.3f} ms{row.floor_ms:>8.3f} ms{row.ratio:>8.2f}×  {row.target}{mark}")
    print(
        f"a flush of this disk takes {flush.here_ms:.2f} ms, a single store waits for two, an import for two in all: where one"
        f" takes {flush.enough_ms:.2f} ms or more, {_IMPORT} would be {_BULK} times faster, by calculation"
    )
    names = f"{'notes':>9}{'import/s':>10}{'store':>10}{'recall p50':>12}{'p95':>10}{'cold':>9}{'peak':>8}"
    print(f"\n{names}{'index/note':>12}{'rebuild/s':>11}")
    for size in grown:
        print(
            f"{size.notes:>9,}{size.import_per_s:>10,.0f}{size.store_ms:>7.2f} ms{size.recall_p50_ms:>9.2f} ms"
            f"{size.recall_p95_ms:>7.2f} ms{size.cold_recall_ms:>6.0f} ms{size.cold_peak_mb:>5.0f} MB"
            f"{size.index_bytes_per_note:>10,} B{size.rebuild_per_s:>11,.0f}"
        )
    if scaled:
        scale.show(scaled)
