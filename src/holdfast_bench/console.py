"""`holdfast bench console`: server time of each page of the console as a ratio to the API call that it rests on."""

from __future__ import annotations

import http.client
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, urlencode

from holdfast import config
from holdfast.access import AccessGate
from holdfast.api.memory import Memory
from holdfast.base.record import Record
from holdfast_bench.floors import TextGenerator
from holdfast_bench.load import start_gateway
from holdfast_bench.processes import compile_bytecode, make_progress_printer, temporary_folder

# The bench sends more requests than a person. Without an embedder a recall is fastest, which is the hardest case for its page.
_SETTINGS = '[serve]\nrate = 0\n[search]\nembedder = "none"\n'
_ROUNDS = 15
_PAGE_TARGET, _SEARCH_TARGET = 3.0, 2.0
_VERSIONS = 20  # of the note whose page is measured
_LISTED = 60  # forgotten notes, notes that wait for review, and sessions: more than a page of each
_TURNS = 60
_SESSION = "session-7"
_WAITING = "waiting"
_QUERY_CHARS = 400  # of the note that similar ones are looked for
_LIVE = {"HX-Request": "true"}
_KEY = "note-7"
_NOTE_PAGE, _NOTE_CALL = f"/ui/notes/project/bench/{_KEY}", f"/v1/notes/project/{_KEY}"


class Ratio(Record):
    """A page against its API call: medians of measurements that alternate. Field names are keys of the JSON report."""

    page: str
    call: str
    notes: int
    page_ms: float
    call_ms: float
    ratio: float
    target: float
    met: bool


class Case(Record):
    """A page, the headers of its request, and the API call that it rests on."""

    name: str
    page: Callable[[int], str]
    headers: dict[str, str]
    call: str
    method: str
    path: Callable[[int], str]
    body: Callable[[int], dict[str, object] | None]
    target: float = _PAGE_TARGET


def run(notes: tuple[int, ...], as_json: bool) -> int:
    """Measure, print the report and return the exit status."""
    print_progress = make_progress_printer(as_json)
    rows: list[Ratio] = []
    with temporary_folder("console") as base:
        compile_bytecode()
        for number in notes:
            home = base / f"home-{number}"
            print_progress(f"importing {number:,} notes")
            texts = _fill(home, number)
            token = _make_token(home)
            with start_gateway(str(home), 1) as (address, _):
                print_progress(f"measuring at {number:,} notes")
                rows += _measure(_Client(address[1], token), texts, number)
    _print_report(rows, as_json)
    return 0


def _make_token(home: Path) -> str:
    """Return the token of the operator of a new home."""
    gate = AccessGate(config.load(str(home)))
    try:
        return gate.first_token() or ""
    finally:
        gate.close()


def _fill(home: Path, notes: int) -> list[str]:
    """Store notes, and what the other pages show, in a new home; return the texts of the first notes."""
    home.mkdir(0o700)
    (home / "config.toml").write_text(_SETTINGS)
    generator = TextGenerator(1)
    texts = [generator.text() for _ in range(notes)]
    with Memory(str(home), project="bench", cwd=home, origin="user") as memory:
        memory.store_many([{"text": text, "key": f"note-{number}"} for number, text in enumerate(texts)])
        for version in range(_VERSIONS):
            memory.store(f"{texts[7]}\n{version}", key=_KEY)
        memory.store_many([_make_entity(number) for number in range(notes // 20)])
        for number in range(_LISTED):
            memory.store(texts[number], key=f"forgotten-{number}", again=True)
            memory.forget(f"forgotten-{number}")
            turns = [{"role": "user", "text": f"{generator.text()} {turn}"} for turn in range(_TURNS)]
            memory.log(turns, session=f"session-{number}", client="bench")
    with Memory(str(home), project="bench", cwd=home) as agent:
        notes_of_web = [
            {"text": f"{text} {_WAITING}", "key": f"{_WAITING}-{number}"} for number, text in enumerate(texts[:_LISTED])
        ]
        agent.store_many([{**note, "origin": "web"} for note in notes_of_web])
    return texts[: _ROUNDS * 4]


def _make_entity(number: int) -> dict[str, object]:
    """Return a note that states two facts about an entity, of which one links to the entity before it."""
    text = f"# Entity {number}\n\n- [2026-01-02] owner: [[Entity {number // 2}]]\n- [2026-01-03] status: open\n"
    return {"text": text, "key": f"entity-{number}"}


def _cases(texts: list[str]) -> list[Case]:
    """Return the pages to measure; `texts` are those of the first notes. A search asks for the same hits as its recall."""
    generator = TextGenerator(2)
    queries = [generator.query(text) for text in texts]

    def query(round: int) -> str:
        return queries[round % len(queries)]

    def similar(_: int) -> dict[str, object]:
        return {"query": f"{_WAITING} 3 {texts[3]}"[:_QUERY_CHARS], "limit": 8, "scope": "all", "kind": "note"}

    def recall(round: int) -> dict[str, object]:
        return {"query": query(round), "limit": 20, "scope": "all", "explain": True}

    def read(name: str, page: str, call: str, path: str) -> Case:
        return Case(name, lambda _: page, {}, call, "GET", lambda _: path, lambda _: None)

    def search(round: int) -> str:
        return f"/ui/search?q={quote(query(round))}"

    def brief(_: int) -> dict[str, object]:
        return {"project": "bench", "explain": True, "remember": False}

    entity, all_notes = quote("Entity 7"), "everywhere=true"
    turns = quote(f"projects/bench/transcripts/bench/{_SESSION}.jsonl:2-51")
    return [
        read("overview", "/", "status", "/v1/status"),
        Case("search", search, {}, "recall", "POST", lambda _: "/v1/recall", recall),
        Case("search as you type", search, _LIVE, "recall", "POST", lambda _: "/v1/recall", recall, _SEARCH_TARGET),
        read("note", _NOTE_PAGE, "get", f"{_NOTE_CALL}?project=bench"),
        read("trace of a note", f"{_NOTE_PAGE}/trace", "trace", f"/v1/trace/project/{_KEY}?project=bench"),
        read("subjects of facts", "/ui/facts", "subjects", "/v1/facts/subjects?scope=all"),
        read("one subject", f"/ui/facts/subject?name={entity}", "facts", f"/v1/facts?scope=all&history=true&subject={entity}"),
        read("graph", f"/ui/graph?entity={entity}&depth=2", "graph", f"/v1/graph?scope=all&entity={entity}&depth=2"),
        read("sessions", "/ui/sessions", "sessions", f"/v1/history/sessions?limit=30&{all_notes}"),
        read(
            "turns of a session",
            f"/ui/sessions/project/bench/bench/{_SESSION}",
            "history",
            f"/v1/history?project=bench&of={turns}&before=3&after=3",
        ),
        Case("briefing", lambda _: "/ui/briefing?project=bench", {}, "brief", "POST", lambda _: "/v1/brief", brief),
        read("review", "/ui/review", "review", f"/v1/review?limit=20&{all_notes}"),
        Case(
            "comparison in review",
            lambda _: f"/ui/review/project/bench/{_WAITING}-3/compare",
            {},
            "recall",
            "POST",
            lambda _: "/v1/recall",
            similar,
        ),
        read("trash", "/ui/trash", "trash", f"/v1/trash?limit=50&part=trash&{all_notes}"),
        read("archive", "/ui/archive", "notes", f"/v1/notes?limit=50&archived=true&{all_notes}"),
        read("receipts", "/ui/receipts", "receipts", "/v1/receipts?limit=50"),
        read("agents", "/ui/agents", "agents", "/agents?limit=25"),
        read("roles", "/ui/roles", "roles", "/roles"),
        read("audit", "/ui/audit", "audit", "/audit?limit=50"),
        read("settings", "/ui/settings", "settings", "/v1/settings"),
        read("traffic", "/ui/traffic", "traffic", "/traffic"),
    ]


def _measure(client: _Client, texts: list[str], notes: int) -> list[Ratio]:
    client.sign_in()
    rows = []
    for case in _cases(texts):
        pages, calls = [], []
        for round in range(_ROUNDS + 2):
            calls.append(client.time_call(case.method, case.path(round), case.body(round)))
            pages.append(client.time_page(case.page(round), case.headers))
        page_ms, call_ms = statistics.median(pages[2:]) * 1000, statistics.median(calls[2:]) * 1000
        ratio = page_ms / call_ms
        rows.append(
            Ratio(
                page=case.name, call=case.call, notes=notes, page_ms=round_ms(page_ms), call_ms=round_ms(call_ms),
                ratio=round_ms(ratio), target=case.target, met=ratio <= case.target,
            )
        )  # fmt: skip
    return rows


def round_ms(value: float) -> float:
    """Return a figure with two decimals."""
    return round(value, 2)


class _Client:
    """A person with a browser and a token, on one connection."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        self._token, self._cookie, self._host = token, "", f"127.0.0.1:{port}"

    def sign_in(self) -> None:
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"}
        self._connection.request("POST", "/sign-in", urlencode({"token": self._token}), headers)
        answer = self._connection.getresponse()
        answer.read()
        self._cookie = (answer.headers["set-cookie"] or "").partition(";")[0]

    def time_page(self, path: str, headers: dict[str, str]) -> float:
        return self._time("GET", path, None, {"Accept": "text/html", "Cookie": self._cookie, **headers})

    def time_call(self, method: str, path: str, body: dict[str, object] | None) -> float:
        return self._time(method, path, body, {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"})

    def _time(self, method: str, path: str, body: dict[str, object] | None, headers: dict[str, str]) -> float:
        start = time.perf_counter()
        self._connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = self._connection.getresponse()
        answer.read()
        elapsed = time.perf_counter() - start
        assert answer.status == 200, (path, answer.status)
        return elapsed


def _print_report(rows: list[Ratio], as_json: bool) -> None:
    if as_json:
        print(json.dumps({"console": [row.as_dict() for row in rows]}, indent=2))
        return
    print(f"\n{'page':<22}{'notes':>9}{'page':>12}{'API call':>12}{'ratio':>8}  target")
    for row in rows:
        mark = "" if row.met else "   missed"
        print(
            f"{row.page:<22}{row.notes:>9,}{row.page_ms:>9.1f} ms{row.call_ms:>9.1f} ms{row.ratio:>7.2f}x  "
            f"{row.target:.0f}x of {row.call}{mark}"
        )
