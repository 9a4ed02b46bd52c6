"""`holdfast bench load`: what the gateway answers in a second, against its framework without it and against bare writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, cycle
from pathlib import Path

from holdfast.api.memory import Memory
from holdfast.base.record import Record
from holdfast.errors import Trouble
from holdfast_bench import floors
from holdfast_bench.load_client import Pressed, press, request
from holdfast_bench.progress import crowd, folder, started, teller

_AGENT = "operator"
_CLIENTS = 16
_SETTINGS = '[serve]\nrate = 0\nat_once = 256\n[search]\nembedder = "static"\n'


class Load(Record):
    """One kind of request, answered by so many processes over so many notes."""

    what: str
    notes: int
    workers: int
    per_second: float
    p50_ms: float
    p99_ms: float
    refused: int
    floor: str
    floor_per_second: float
    share: float  # of the floor
    target: str
    met: bool


class Options(Record):
    """What was asked for."""

    notes: tuple[int, ...] = (10_000,)
    workers: tuple[int, ...] = (1, 2)
    seconds: float = 4.0
    store: str = ""
    json: bool = False


def run(options: Options) -> int:
    """Measure, print."""
    say = teller(options.json)
    with folder("load") as base:
        floors.compiled()
        measured = [one for notes in options.notes for one in _at(base, notes, options, say)]
    _show(measured, options.json)
    return 0


def _at(base: Path, notes: int, options: Options, say: Callable[[str], None]) -> list[Load]:
    """All of it at one number of notes."""
    home, prose = base / f"home-{notes}", floors.Prose(1)
    home.mkdir(0o700)
    (home / "config.toml").write_text(_SETTINGS + _on(options.store, notes))
    texts = [prose.text() for _ in range(notes)]
    say(f"importing {notes:,} notes")
    with Memory(str(home), project="bench", cwd=base) as memory:
        memory.store_many([{"text": text, "key": f"note-{number}"} for number, text in enumerate(texts)])
        memory.embed()
    queries = [prose.query(text) for text in texts[:300]]
    say("measuring the floors")
    with _bare(str(home)) as address:
        hello = _pressed(address, "/hello", [json.dumps({"query": queries[0], "mode": "keyword"}).encode()], "", options)
        bare = {mode: _pressed(address, "/recall", _asked(queries, mode), "", options) for mode in ("keyword", "hybrid")}
    bare_writes = _written(base / f"bare-{notes}", prose, options)
    measured = []
    for workers in options.workers:
        say(f"pressing on {workers} {'process' if workers == 1 else 'processes'} at {notes:,} notes")
        with _gateway(str(home), workers) as (address, token):
            for mode, floor in bare.items():
                found = _pressed(address, "/v1/recall", _asked(queries, mode), token, options)
                measured.append(_load(f"recall, {mode}", notes, workers, found, "the same verb, bare", floor.per_second, 0.5))
                idle = "an endpoint that does nothing"
                measured.append(_load(f"recall, {mode}", notes, workers, found, idle, hello.per_second, 0))
            stores = _stores(prose, token, workers)
            press(address, stores, _CLIENTS, min(1.0, options.seconds))  # as before recalls
            stored = press(address, stores, _CLIENTS, options.seconds)
            measured += [_load("store", notes, workers, stored, *floor) for floor in bare_writes]
    return measured


def _on(store: str, notes: int) -> str:
    """The settings for a tenant of its own."""
    return f'[store]\nurl = {json.dumps(store)}\ntenant = "load-{os.getpid()}-{notes}"\n' if store else ""


def _written(folder: Path, prose: floors.Prose, options: Options) -> list[tuple[str, float, float]]:
    """What a store is measured against, how many of those there are in a second, and the share of them that is aimed at."""
    if not options.store:
        durable = _durable(folder / "flushed", prose, options.seconds)
        light = _durable(folder / "light", prose, options.seconds, light=True)
        return [
            ("bare durable writes of 16 processes into one folder", durable, 0.5),
            ("the same, their rows not flushed", light, 0),
        ]
    from holdfast_bench import postgres_floor

    done = postgres_floor.per_second(options.store, _CLIENTS, prose.text(), options.seconds)
    return [("bare transactions of 16 processes", done, 0.5)]


def _load(what: str, notes: int, workers: int, found: Pressed, floor: str, per_second: float, least: float) -> Load:
    share = found.per_second / per_second
    target = f"≥ {least:.0%}" if least else ""
    return Load(
        what, notes, workers, found.per_second, found.p50_ms, found.p99_ms, found.refused, floor, per_second, share, target,
        share >= least and not found.refused,
    )  # fmt: skip


def _asked(queries: list[str], mode: str) -> list[bytes]:
    return [json.dumps({"query": query, "mode": mode}).encode() for query in queries]


def _pressed(address: tuple[str, int], path: str, bodies: list[bytes], token: str, options: Options) -> Pressed:
    asked = [request("POST", path, body, token) for body in bodies]
    press(address, cycle(asked), _CLIENTS, min(1.0, options.seconds))  # until models are open and caches warm
    pressed = press(address, cycle(asked), _CLIENTS, options.seconds)
    if not pressed.answers:
        raise Trouble(f"{path} gave no answer in {pressed.seconds:.0f} seconds", "Measure with fewer notes")
    return pressed


def _stores(prose: floors.Prose, token: str, round: int) -> Iterator[bytes]:
    for number in count():
        body = json.dumps({"text": prose.text(), "key": f"load-{round}-{number}", "scope": "project"}).encode()
        yield request("POST", "/v1/notes", body, token)


@contextmanager
def _bare(home: str) -> Iterator[tuple[str, int]]:
    with _started([sys.executable, "-m", "holdfast_bench.bare_server", home, _AGENT], home) as process:
        assert process.stdout is not None
        yield "127.0.0.1", int(process.stdout.readline())


@contextmanager
def _gateway(home: str, workers: int) -> Iterator[tuple[tuple[str, int], str]]:
    """The gateway as a user starts it, and a token of its operator."""
    environment = floors.plain_environment() | {"HOLDFAST_HOME": home, "HOME": home}
    made = [*floors.program(), "agent", "add", f"load-{workers}", "--role", "operator", "--json"]
    token = json.loads(subprocess.run(made, capture_output=True, check=True, env=environment).stdout)["token"]
    command = [*floors.program(), "serve", "--port", "0", "--workers", str(workers), "--json"]
    with _started(command, home) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        yield ("127.0.0.1", int(url.rpartition(":")[2])), token


@contextmanager
def _started(command: list[str], home: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = floors.plain_environment() | {"HOLDFAST_HOME": home, "HOME": home}
    with started(command, True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as process:
        yield process


def _durable(folder: Path, prose: floors.Prose, seconds: float, light: bool = False) -> float:
    """Bare durable writes in a second, by so many processes as there are clients, all to one place as notes of a home are."""
    text = prose.text()
    floors.BareWriter(folder / "notes", light).close()
    with crowd(_CLIENTS) as writers:
        counts = writers.starmap(_write, [(folder, text, seconds, light)] * _CLIENTS, chunksize=1)
    return sum(counts) / seconds


def _write(folder: Path, text: str, seconds: float, light: bool) -> int:
    bare, done, end = floors.BareWriter(folder / "notes", light), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        bare.write(f"{os.getpid()}-{done}.md", text)
        done += 1
    bare.close()
    return done


def _show(measured: list[Load], as_json: bool) -> None:
    if as_json:
        print(json.dumps({"load": [one.as_dict() for one in measured]}, indent=2))
        return
    print(f"\n{'16 clients':<18}{'notes':>9}{'workers':>9}{'a second':>10}{'p50':>10}{'p99':>10}{'share':>8}  of")
    for one in measured:
        mark = "" if one.met else f"   missed ({one.target})" if not one.refused else f"   {one.refused} refused"
        print(
            f"{one.what:<18}{one.notes:>9,}{one.workers:>9}{one.per_second:>10,.0f}{one.p50_ms:>7.1f} ms{one.p99_ms:>7.1f} ms"
            f"{one.share:>8.0%}  {one.floor} ({one.floor_per_second:,.0f}/s){mark}"
        )
