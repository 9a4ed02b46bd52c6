"""The peers that search by words and by vectors, and Holdfast, with as many passages: how long a warm question takes each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.base.record import Record
from holdfast_bench import floors, metrics
from holdfast_bench.retrieval import USUAL
from peers.roster import Failed, Peer, said

PATIENCE = 600  # seconds of processor time a peer may take to be filled; then it is measured with what it has
_SEED = 1
_SESSION = 200  # docs
_WARM = 10
_ASKED = 40
_HEADS = (
    "system", "passages", "writes/s", "query p50 ms", "p95 ms", "× Holdfast's p50", "CPU ms", "× Holdfast's CPU", "finds it",
    "peak MB", "how",
)  # fmt: skip


class Row(Record):
    """What one peer measured at one size, or why it could not."""

    name: str
    version: str
    how: str
    docs: int
    docs_per_s: float
    p50_ms: float
    p95_ms: float
    cpu_ms: float  # processor time a question
    found: float  # the share of questions whose source is among the ten
    peak_mb: float
    failed: str = ""
    run: str = ""


def measured(peer: Peer, python: str, cache: Path, size: int) -> Row:
    """One peer, filled and asked."""
    answers = list(said(peer, python, cache, ["scale", str(USUAL), str(PATIENCE)], data(size)))
    if len(answers) != 1:
        raise Failed("did not run: it gave no answer")
    return _row(peer, answers[0])


def failed(peer: Peer, reason: str) -> Row:
    """A peer that could not."""
    return Row(peer.name, "", peer.at_scale, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, reason)


def data(size: int) -> Iterator[str]:
    """The questions, then the sessions, a line each: the same from run to run."""
    prose = floors.Prose(_SEED)
    texts = [prose.text() for _ in range(size)]
    step = max(1, min(size, _SESSION * 25) // (_WARM + _ASKED))  # from the first bulk write: whoever stops early has them
    places = [step * number for number in range(min(_WARM + _ASKED, size))]
    queries = [{"id": _id(place), "text": prose.query(texts[place])} for place in places]
    yield json.dumps({"warm": queries[:_WARM], "queries": queries[_WARM:] or queries}) + "\n"
    for first in range(0, size, _SESSION):
        places_here = range(first, min(first + _SESSION, size))
        yield json.dumps([_doc(place, texts[place], f"session-{first}") for place in places_here]) + "\n"


def _id(place: int) -> str:
    return f"turn-{place}"


def _doc(place: int, text: str, session: str) -> dict[str, str]:
    speaker = "assistant" if place % 2 else "user"
    return {"id": _id(place), "session": session, "speaker": speaker, "date": "", "text": text}


def _row(peer: Peer, answer: dict[str, Any]) -> Row:
    times = answer["times_ms"]
    return Row(
        peer.name, answer["version"], peer.at_scale, answer["docs"], round(answer["docs"] / answer["stored_s"], 1),
        round(metrics.percentile(times, 0.5), 2), round(metrics.percentile(times, 0.95), 2),
        round(1000 * answer["cpu_s"] / len(times), 2), answer["found"] / len(times), round(answer["peak_mb"]),
    )  # fmt: skip


def as_markdown(title: str, rows: list[Row], earlier: set[str]) -> str:
    """The table as docs/benchmarks.md shows it. Only what was measured with as many passages is compared."""
    ours = next((row for row in rows if row.name == "holdfast" and not row.failed), None)
    lines = [title, "", f"| {' | '.join(_HEADS)} |", "|" + "---|" * len(_HEADS)]
    for row in rows:
        cells = [f"{row.name} {row.version}".strip() + ("†" if row.name in earlier else "")]
        if row.failed:
            cells += [""] * (len(_HEADS) - 2) + [row.failed.replace("|", "/")]
        else:
            same = ours if ours and ours.docs == row.docs else None
            cells += [f"{row.docs:,}", f"{row.docs_per_s:,.0f}", f"{row.p50_ms:,.1f}", f"{row.p95_ms:,.1f}"]
            cells += [f"{row.p50_ms / same.p50_ms:,.1f}" if same else "", f"{row.cpu_ms:,.1f}"]
            cells += [f"{row.cpu_ms / same.cpu_ms:,.1f}" if same else "", f"{100 * row.found:.0f} %"]
            cells += [f"{row.peak_mb:,.0f}", row.how]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
