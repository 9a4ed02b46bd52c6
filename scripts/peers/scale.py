"""Query times of Holdfast and of the peers that search by keywords and by vectors, with the same number of passages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.base.record import Record
from holdfast_bench.floors import TextGenerator
from holdfast_bench.ranking_metrics import percentile
from holdfast_bench.retrieval import LIMIT
from peers.registry import Peer, PeerError, run_driver

FILL_SECONDS = 600  # CPU time to fill a peer; it is then measured with the passages it has
_SEED = 1
_DOCS_PER_SESSION = 200
_WARM_QUERIES = 10
_TIMED_QUERIES = 40
_HEADS = (
    "system", "passages", "writes/s", "query p50 ms", "p95 ms", "× Holdfast's p50", "CPU ms", "× Holdfast's CPU", "finds it",
    "peak MB", "how",
)  # fmt: skip


class ScaleRow(Record):
    """The figures of one peer at one number of passages, or the reason there are none; field names are keys of --json."""

    name: str
    version: str
    how: str
    docs: int
    docs_per_s: float
    p50_ms: float
    p95_ms: float
    cpu_ms: float  # CPU time per query
    found: float  # share of queries whose source text is among the ten results
    peak_mb: float
    failed: str = ""
    run: str = ""


def measure_peer(peer: Peer, python: str, cache: Path, size: int) -> ScaleRow:
    """Fill one peer and time its queries; raise PeerError if it fails."""
    results = list(run_driver(peer, python, cache, "scale", (LIMIT, FILL_SECONDS), lines=generate_input(size)))
    if len(results) != 1:
        raise PeerError("did not run: it gave no answer")
    return _make_row(peer, results[0])


def make_failed_row(peer: Peer, reason: str) -> ScaleRow:
    """Return the row of a peer that could not be measured."""
    return ScaleRow(
        name=peer.name, version="", how=peer.at_scale, docs=0, docs_per_s=0.0, p50_ms=0.0, p95_ms=0.0, cpu_ms=0.0, found=0.0,
        peak_mb=0.0, failed=reason,
    )  # fmt: skip


def generate_input(size: int) -> Iterator[str]:
    """Yield a JSON line with the queries, then one per session; the same in every run."""
    generator = TextGenerator(_SEED)
    texts = [generator.text() for _ in range(size)]
    step = max(
        1, min(size, _DOCS_PER_SESSION * 25) // (_WARM_QUERIES + _TIMED_QUERIES)
    )  # from the first bulk write: a peer that stops early has them
    places = [step * number for number in range(min(_WARM_QUERIES + _TIMED_QUERIES, size))]
    queries = [{"id": _make_id(place), "text": generator.query(texts[place])} for place in places]
    yield json.dumps({"warm": queries[:_WARM_QUERIES], "queries": queries[_WARM_QUERIES:] or queries}) + "\n"
    for first in range(0, size, _DOCS_PER_SESSION):
        places_here = range(first, min(first + _DOCS_PER_SESSION, size))
        yield json.dumps([_make_doc(place, texts[place], f"session-{first}") for place in places_here]) + "\n"


def _make_id(place: int) -> str:
    return f"turn-{place}"


def _make_doc(place: int, text: str, session: str) -> dict[str, str]:
    speaker = "assistant" if place % 2 else "user"
    return {"id": _make_id(place), "session": session, "speaker": speaker, "date": "", "text": text}


def _make_row(peer: Peer, result: dict[str, Any]) -> ScaleRow:
    times = result["times_ms"]
    return ScaleRow(
        name=peer.name, version=result["version"], how=peer.at_scale, docs=result["docs"],
        docs_per_s=round(result["docs"] / result["stored_s"], 1), p50_ms=round(percentile(times, 0.5), 2),
        p95_ms=round(percentile(times, 0.95), 2), cpu_ms=round(1000 * result["cpu_s"] / len(times), 2),
        found=result["found"] / len(times), peak_mb=round(result["peak_mb"]),
    )  # fmt: skip


def format_table(title: str, rows: list[ScaleRow], earlier: set[str]) -> str:
    """Return the table as in docs/benchmarks.md; a peer is compared with Holdfast only at the same number of passages."""
    ours = next((row for row in rows if row.name == "holdfast" and not row.failed), None)
    lines = [title, "", f"| {' | '.join(_HEADS)} |", "|" + "---|" * len(_HEADS)]
    for row in rows:
        cells = [f"{row.name} {row.version}".strip() + ("†" if row.name in earlier else "")]
        if row.failed:
            cells += [""] * (len(_HEADS) - 2) + [row.failed.replace("|", "/")]
        else:
            comparable = ours if ours and ours.docs == row.docs else None
            cells += [f"{row.docs:,}", f"{row.docs_per_s:,.0f}", f"{row.p50_ms:,.1f}", f"{row.p95_ms:,.1f}"]
            cells += [f"{row.p50_ms / comparable.p50_ms:,.1f}" if comparable else "", f"{row.cpu_ms:,.1f}"]
            cells += [f"{row.cpu_ms / comparable.cpu_ms:,.1f}" if comparable else "", f"{100 * row.found:.0f} %"]
            cells += [f"{row.peak_mb:,.0f}", row.how]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
