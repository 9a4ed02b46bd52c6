"""Run by a peer's own Python: what it is given on stdin goes through the peer; rankings, times and memory come out on stdout.

`cases`: a case a line in, a line a case out. `scale`: the questions in the first line, then a session of docs a line.

An adapter is a module beside this one with a class Peer: Peer(folder, embed), .version, .add(sessions) and .search(text, k),
which gives doc ids. A session is a list of docs: id, session, speaker, date, text, and `said`, which is the text with the name
of its speaker before it, where there is one. For `scale` the class is Scaled, with .load(sessions), its fastest public bulk
write, and perhaps .settle(), which returns when all of it can be found.
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

_AT_ONCE = 25  # sessions a bulk write


def main(words: list[str]) -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a peer prints goes to stderr: stdout is ours
    task, adapter, *numbers = words
    peer = importlib.import_module(adapter)
    embed = None
    if getattr(peer, "EMBEDS", True):
        embed = importlib.import_module("hashed" if task == "scale" else "minilm").embed
        embed(["warm"])  # loading the model is not the peer's work
    for answer in _scale(peer, embed, *map(int, numbers)) if task == "scale" else _cases(peer, embed, *map(int, numbers)):
        out.write(json.dumps(answer) + "\n")
        out.flush()


def _cases(module: Any, embed: Any, depth: int, usual: int) -> Any:
    for line in sys.stdin:
        with tempfile.TemporaryDirectory(prefix="holdfast-peer-") as folder:
            yield _case(module.Peer, folder, embed, json.loads(line), depth, usual)


def _scale(module: Any, embed: Any, usual: int, seconds: int) -> Any:
    """Fill it for as long as it may take, then ask: each question is new to it, and its source text should be found."""
    asked = json.loads(sys.stdin.readline())
    with tempfile.TemporaryDirectory(prefix="holdfast-peer-") as folder:
        peer = module.Scaled(folder, embed)
        docs, stored = _fill(peer, seconds)
        for query in asked["warm"]:
            peer.search(query["text"], usual)
        times, found, busy = [], 0, _busy()
        for query in asked["queries"]:
            start = time.perf_counter()
            answer = peer.search(query["text"], usual)
            times.append((time.perf_counter() - start) * 1000)
            found += query["id"] in answer
        busy = _busy() - busy
        peak = _peak()
        _close(peer)
        yield {
            "version": peer.version, "docs": docs, "stored_s": stored, "times_ms": times, "cpu_s": busy, "found": found,
            "peak_mb": peak,
        }  # fmt: skip


def _fill(peer: Any, seconds: int) -> tuple[int, float]:
    """How many docs went in, and how long it took until all of them could be found. What it may take is processor time."""
    docs, taken, begun = 0, 0.0, _busy()
    while _busy() - begun < seconds:
        sessions = [_sessions(json.loads(line))[0] for _, line in zip(range(_AT_ONCE), sys.stdin, strict=False)]
        if not sessions:
            break
        start = time.perf_counter()
        peer.load(sessions)
        taken += time.perf_counter() - start
        docs += sum(map(len, sessions))
    start = time.perf_counter()
    settle = getattr(peer, "settle", None)
    if settle:
        settle()
    return docs, taken + time.perf_counter() - start


def _case(make: Any, folder: str, embed: Any, case: dict[str, Any], depth: int, usual: int) -> dict[str, Any]:
    peer = make(folder, embed)
    sessions = _sessions(case["docs"])
    start = time.perf_counter()
    peer.add(sessions)
    stored = time.perf_counter() - start
    peer.search("is everything here yet", usual)
    asked = [(query["text"], {"now": query["date"]} if getattr(peer, "dated", False) else {}) for query in case["queries"]]
    times, busy = [], _busy()
    for text, given in asked:
        start = time.perf_counter()
        peer.search(text, usual, **given)
        times.append((time.perf_counter() - start) * 1000)
    busy = _busy() - busy
    rankings = [peer.search(text, depth, **given) for text, given in asked]
    peak = _peak()
    _close(peer)
    return {
        "name": case["name"], "version": peer.version, "stored_s": stored, "rankings": rankings, "times_ms": times,
        "cpu_s": busy, "peak_mb": peak,
    }  # fmt: skip


def _close(peer: Any) -> None:
    close = getattr(peer, "close", None)
    if close:
        close()


def _peak() -> float:
    """The most megabytes this process and its children ever held. The kernel's own count of a process starts anew with its
    program, which that of getrusage does not."""
    try:
        return sum(_held(process) for process in ("self", *_children())) / 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _busy() -> float:
    """The seconds of processor time this process and its children have used: the clock minus what neighbours take."""
    try:
        return time.process_time() + sum(_worked(child) for child in _children())
    except OSError:
        return time.process_time()


def _children() -> list[str]:
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        return file.read().split()


def _worked(process: str) -> float:
    with open(f"/proc/{process}/stat", encoding="utf-8") as file:
        user, system = file.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


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
    main(sys.argv[1:])
