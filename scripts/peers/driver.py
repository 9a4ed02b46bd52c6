"""Run one peer in its own Python: read tasks from stdin, write rankings, times and memory use to stdout, a JSON line each.

`driver.py cases ADAPTER DEPTH LIMIT` reads a case per line and writes a line per case.
`driver.py scale ADAPTER LIMIT SECONDS` reads the queries from the first line and a session of documents from each further line.

An adapter is a module beside this one with a class `Peer(folder, embed)`: `version`, `add(sessions)` and `search(text, k)`,
which returns document ids. A session is a list of documents: id, session, speaker, date, text, and `spoken_text`, the text
after the speaker's name if there is one. The class for `scale` is `BulkPeer`: `bulk_add(sessions)`, the peer's fastest public
bulk write, and optionally `finish_indexing()`, which returns when all documents can be found.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

_SESSIONS_PER_WRITE = 25


def main(arguments: list[str]) -> None:
    """Load the adapter, run the task and write its results."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # stdout is for results only: send a peer's own output to stderr
    task, adapter, *numbers = arguments
    module = importlib.import_module(adapter)
    embed = None
    if getattr(module, "NEEDS_EMBEDDER", True):
        embed = importlib.import_module("hash_embedder" if task == "scale" else "minilm_embedder").embed
        embed(["warm"])  # load the model before a peer is timed
    run_task = _run_scale if task == "scale" else _run_cases
    for result in run_task(module, embed, *map(int, numbers)):
        out.write(json.dumps(result) + "\n")
        out.flush()


def _run_cases(module: Any, embed: Any, depth: int, limit: int) -> Iterator[dict[str, Any]]:
    """Yield the result of each case, in a folder of its own."""
    for line in sys.stdin:
        with tempfile.TemporaryDirectory(prefix="holdfast-peer-") as folder:
            yield _run_case(module.Peer(folder, embed), json.loads(line), depth, limit)


def _run_case(peer: Any, case: dict[str, Any], depth: int, limit: int) -> dict[str, Any]:
    """Add the documents, time the queries with the usual limit, then rank to the full depth."""
    sessions = _group_by_session(case["docs"])
    start = time.perf_counter()
    peer.add(sessions)
    stored_s = time.perf_counter() - start
    peer.search("is everything here yet", limit)
    accepts_now = getattr(peer, "accepts_now", False)
    queries = [(query["text"], {"now": query["date"]} if accepts_now else {}) for query in case["queries"]]
    times, cpu_start = [], _cpu_seconds()
    for text, options in queries:
        start = time.perf_counter()
        peer.search(text, limit, **options)
        times.append((time.perf_counter() - start) * 1000)
    cpu_s = _cpu_seconds() - cpu_start
    rankings = [peer.search(text, depth, **options) for text, options in queries]
    peak_mb = _peak_megabytes()
    _close(peer)
    return {
        "name": case["name"], "version": peer.version, "stored_s": stored_s, "rankings": rankings, "times_ms": times,
        "cpu_s": cpu_s, "peak_mb": peak_mb,
    }  # fmt: skip


def _run_scale(module: Any, embed: Any, limit: int, seconds: int) -> Iterator[dict[str, Any]]:
    """Fill the peer for at most this much CPU time, then time new queries and count those that find their source text."""
    queries = json.loads(sys.stdin.readline())
    with tempfile.TemporaryDirectory(prefix="holdfast-peer-") as folder:
        peer = module.BulkPeer(folder, embed)
        docs, stored_s = _fill(peer, seconds)
        for query in queries["warm"]:
            peer.search(query["text"], limit)
        times, found, cpu_start = [], 0, _cpu_seconds()
        for query in queries["queries"]:
            start = time.perf_counter()
            ranking = peer.search(query["text"], limit)
            times.append((time.perf_counter() - start) * 1000)
            found += query["id"] in ranking
        cpu_s = _cpu_seconds() - cpu_start
        peak_mb = _peak_megabytes()
        _close(peer)
        yield {
            "version": peer.version, "docs": docs, "stored_s": stored_s, "times_ms": times, "cpu_s": cpu_s, "found": found,
            "peak_mb": peak_mb,
        }  # fmt: skip


def _fill(peer: Any, seconds: int) -> tuple[int, float]:
    """Add sessions for at most this much CPU time; return the number of documents and the seconds until all can be found."""
    docs, taken, cpu_start = 0, 0.0, _cpu_seconds()
    while _cpu_seconds() - cpu_start < seconds:
        lines = zip(range(_SESSIONS_PER_WRITE), sys.stdin, strict=False)
        sessions = [_group_by_session(json.loads(line))[0] for _, line in lines]
        if not sessions:
            break
        start = time.perf_counter()
        peer.bulk_add(sessions)
        taken += time.perf_counter() - start
        docs += sum(map(len, sessions))
    start = time.perf_counter()
    finish_indexing = getattr(peer, "finish_indexing", None)
    if finish_indexing:
        finish_indexing()
    return docs, taken + time.perf_counter() - start


def _close(peer: Any) -> None:
    close = getattr(peer, "close", None)
    if close:
        close()


def _peak_megabytes() -> float:
    """Return the peak memory of this process and its children.

    /proc counts from the start of a program; getrusage also counts the process that started it.
    """
    try:
        return sum(_peak_kilobytes(process) for process in ("self", *_child_pids())) / 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _cpu_seconds() -> float:
    """Return the CPU time of this process and its children, which does not depend on other processes."""
    try:
        return time.process_time() + sum(_child_cpu_seconds(pid) for pid in _child_pids())
    except OSError:
        return time.process_time()


def _child_pids() -> list[str]:
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        return file.read().split()


def _child_cpu_seconds(pid: str) -> float:
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        user, system = file.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _peak_kilobytes(process: str) -> int:
    with open(f"/proc/{process}/status", encoding="utf-8") as file:
        return next((int(line.split()[1]) for line in file if line.startswith("VmHWM")), 0)


def _group_by_session(docs: list[dict[str, str]]) -> list[list[dict[str, str]]]:
    """Return the documents of each session, in their order."""
    sessions: dict[str, list[dict[str, str]]] = {}
    for doc in docs:
        has_name = doc["speaker"] not in ("", "user", "assistant", "system", "tool")
        spoken_text = f"{doc['speaker']}: {doc['text']}" if has_name else doc["text"]
        sessions.setdefault(doc["session"], []).append({**doc, "spoken_text": spoken_text})
    return list(sessions.values())


if __name__ == "__main__":
    main(sys.argv[1:])
