"""Run by a peer's own Python: cases as JSON lines on stdin, and for each a line with rankings, times and memory on stdout.

An adapter is a module beside this one with a class Peer: Peer(folder, embed), .version, .add(sessions) and .search(text, k),
which gives doc ids. A session is a list of docs: id, session, speaker, date, text, and `said`, which is the text with the name
of its speaker before it, where there is one.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import tempfile
import time
from typing import Any


def main(adapter: str, depth: int, usual: int) -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a peer prints goes to stderr: stdout is ours
    peer = importlib.import_module(adapter)
    embed = importlib.import_module("minilm").embed if getattr(peer, "EMBEDS", True) else None
    if embed:
        embed(["warm"])  # loading the model is not the peer's work
    for line in sys.stdin:
        case = json.loads(line)
        with tempfile.TemporaryDirectory(prefix="holdfast-peer-") as folder:
            out.write(json.dumps(_case(peer.Peer, folder, embed, case, depth, usual)) + "\n")
            out.flush()


def _case(make: Any, folder: str, embed: Any, case: dict[str, Any], depth: int, usual: int) -> dict[str, Any]:
    peer = make(folder, embed)
    sessions = _sessions(case["docs"])
    start = time.perf_counter()
    peer.add(sessions)
    stored = time.perf_counter() - start
    peer.search("is everything here yet", usual)
    rankings, times = [], []
    for query in case["queries"]:
        given = {"now": query["date"]} if getattr(peer, "dated", False) else {}
        start = time.perf_counter()
        peer.search(query["text"], usual, **given)
        times.append((time.perf_counter() - start) * 1000)
        rankings.append(peer.search(query["text"], depth, **given))
    peak = _peak()
    close = getattr(peer, "close", None)
    if close:
        close()
    return {
        "name": case["name"], "version": peer.version, "stored_s": stored, "rankings": rankings, "times_ms": times,
        "peak_mb": peak,
    }  # fmt: skip


def _peak() -> float:
    """The most megabytes this process and its children ever held. The kernel's own count of a process starts anew with its
    program, which that of getrusage does not."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            processes = ["self", *file.read().split()]
        return sum(_held(process) for process in processes) / 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _held(process: str) -> int:
    with open(f"/proc/{process}/status", encoding="utf-8") as file:
        return next((int(line.split()[1]) for line in file if line.startswith("VmHWM")), 0)


def _sessions(docs: list[dict[str, str]]) -> list[list[dict[str, str]]]:
    """The docs by session, in the order they came."""
    sessions: dict[str, list[dict[str, str]]] = {}
    for doc in docs:
        named = doc["speaker"] not in ("", "user", "assistant", "system", "tool")
        said = f"{doc['speaker']}: {doc['text']}" if named else doc["text"]
        sessions.setdefault(doc["session"], []).append({**doc, "said": said})
    return list(sessions.values())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
