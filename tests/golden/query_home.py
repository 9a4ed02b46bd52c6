"""Print the results of all queries on a home of `fill_home.py` as JSON: `python query_home.py HOME FOLDER`.

The order of the queries matters: reading a note counts as use, and restores an archived one.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from typing import Any

import deterministic
from fill_home import run_command

from holdfast import HoldfastError, Memory

SIZES = {"index_bytes", "ledger_bytes"}  # of databases; they differ after each rebuild
QUERIES: dict[str, Callable[[Memory], Any]] = {
    "list": lambda m: m.list(),
    "list, archived": lambda m: m.list(archived=True),
    "list, global": lambda m: m.list(scope="global"),
    "list, agent": lambda m: m.list(scope="agent"),
    "list, session": lambda m: m.list(scope="session"),
    "list by tag and type": lambda m: [m.list(tags="berths"), m.list(type="feedback")],
    "list by source": lambda m: m.list(source="https://port.example"),
    "recall a note": lambda m: m.recall("deploy on Tuesdays", mode="keyword"),
    "recall with reasons": lambda m: m.recall("lighthouse keeper", mode="keyword", explain=True),
    "recall an archived note": lambda m: m.recall("winter timetable", mode="keyword"),
    "recall as of": lambda m: m.recall("deploy", mode="keyword", as_of="2026-01-05"),
    "recall known at": lambda m: m.recall("deploy", mode="keyword", known_at="2026-01-06"),
    "recall a turn": lambda m: m.recall("pilots crossing", mode="keyword", kind="turn"),
    "recall a file": lambda m: m.recall("depth north quay", mode="keyword", kind="file"),
    "recall a fact": lambda m: m.recall("harbour master", mode="keyword", kind="fact"),
    "recall by tag": lambda m: m.recall("metres deep", mode="keyword", tags=["berths"]),
    "recall recent": lambda m: m.recall(mode="recent", limit=5),
    "recall, everywhere": lambda m: m.recall("crane breakwater style", mode="keyword", scope="all", sort="recency"),
    "recall by usage": lambda m: m.recall("pytest deploy", mode="keyword", sort="usage"),
    "recall a time": lambda m: m.recall("what happened last week", mode="keyword", now="2026-01-12"),
    "recall, other scripts": lambda m: m.recall("日本語 Größe", mode="keyword"),
    "recall without meaning": lambda m: m.recall("deploy on Tuesdays"),
    "search": lambda m: m.search("berth metres", mode="keyword"),
    "facts": lambda m: m.facts(),
    "facts, all": lambda m: m.facts(history=True),
    "facts as of": lambda m: m.facts("Harbour", as_of="2025-12-31"),
    "facts by label": lambda m: m.facts("Harbour", label="town"),
    "graph": lambda m: m.graph("Harbour", depth=2),
    "graph as of": lambda m: m.graph("Harbour", as_of="2025-12-31"),
    "path": lambda m: m.path("Portugal", "Ben"),
    "trash": lambda m: m.trash(),
    "review": lambda m: m.review(),
    "review, everywhere": lambda m: m.review(everywhere=True),
    "receipts": lambda m: m.receipts(),
    "projects": lambda m: m.projects(),
    "brief": lambda m: m.brief(remember=False).text,
    "brief, explained": lambda m: m.brief(explain=True),
    "brief with a prompt": lambda m: [
        m.brief(prompt=prompt, remember=False).text for prompt in ("When do we deploy?", "Who is the lighthouse keeper?")],
    "boot": lambda m: m.boot().text,
    "export": lambda m: list(m.export()),
    "files": lambda m: [m.files.view("/memories"), m.files.view("/memories/plan.md"), m.files.view("/memories/charts"),
                        m.files.view("/memories/charts/north quay.txt", (1, -1)), m.files.view("/memories", scope="agent")],
    "read": lambda m: [m.read("projects/harbour/notes/awkward.md"), m.read("projects/harbour/files/plan.md", 2, 1)],
    "expand": lambda m: m.expand("t2"),
    "trace": lambda m: [m.trace("storms"), m.trace("fog"), m.trace("deploys")],
    "status": lambda m: m.status(),
    "check": lambda m: m.check(),
    "get": lambda m: [
        m.get(key) for key in ("deploys", "awkward", "testing", "dates", "style", "today", "came-back", "script")],
    "get as of": lambda m: [m.get("deploys", as_of="2026-01-05"), m.get("deploys", known_at="2026-01-06")],
    "get before": lambda m: m.get("deploys", as_of="2020-01-01"),
    "get nothing": lambda m: m.get("nothing"),
    "get a purged note": lambda m: m.get("combination"),
    "store a purged text": lambda m: m.store(
        "A note that will be purged: the combination lock opens with the year of the flood.", key="again"),
    "history": lambda m: [m.history("deploys"), m.history("pilots"), m.history("harbour")],
    "get an archived note": lambda m: m.get("regatta"),
    "list afterwards": lambda m: [note.key for note in m.list()],
    "restore": lambda m: m.restore("binned"),
    "restore a session": lambda m: m.restore_session("s7", client="chat"),
    "reindex": lambda m: m.reindex().replace(seconds=0.0),
}  # fmt: skip
COMMANDS = [
    ("list",), ("list", "--json"), ("list", "--archived"), ("recall", "berth metres", "--mode", "keyword"), ("get", "deploys"),
    ("get", "deploys", "--history"), ("facts", "Harbour"), ("graph", "Harbour"), ("receipts",), ("review", "--json"),
    ("brief",), ("audit", "verify"), ("audit", "verify", "--json"), ("audit", "list"), ("audit", "export"), ("agent", "list"),
    ("role", "list"), ("done", "list"), ("project", "list", "--json"), ("trace", "storms"), ("export",),
    ("config", "--json"), ("doctor", "--json"), ("status",),
]  # fmt: skip


def main(home: str, folder: str) -> None:
    deterministic.clock.set("2026-01-12T09:00:00Z")
    os.chdir(folder)
    results: dict[str, Any] = {}
    for arguments in COMMANDS:
        options = ["--project", "harbour", "--session", "s1"]
        results[f"holdfast {' '.join(arguments)}"] = run_command(home, *options, *arguments, status=None).splitlines()
    caller = {"project": "harbour", "session": "s1", "agent": "ada", "client": "chat", "origin": "user"}
    with Memory(home, cwd=folder, **caller) as memory:  # type: ignore[arg-type]
        for name, query in QUERIES.items():
            results[name] = run_query(query, memory)
    text = json.dumps(results, ensure_ascii=False, indent=1).replace(home, "HOME").replace(folder, "FOLDER")
    text = re.sub(r"postgresql://[^ \\\"]+", "STORE", text)
    text = re.sub(r'(last_write\\?": \\?")[^"\\]*', r"\1TIME", text)  # of files, whose times come from the system
    print(re.sub(r"\b[\d.,]+ [KM]iB(  +[\d:TZ-]+)?", "SIZE", text))


def run_query(query: Callable[[Memory], Any], memory: Memory) -> Any:
    """Return the result of a query, or its error, as JSON."""
    try:
        return to_json(query(memory))
    except HoldfastError as error:
        return {"error": type(error).__name__, "code": error.code, "message": error.message, "fix": error.fix}


def to_json(value: Any) -> Any:
    """Return a value as JSON, without the sizes of databases."""
    if hasattr(value, "as_dict"):
        return to_json(value.as_dict())
    if isinstance(value, dict):
        return {name: "SIZE" if name in SIZES else to_json(item) for name, item in value.items()}
    return [to_json(item) for item in value] if isinstance(value, list | tuple) else value


if __name__ == "__main__":
    main(*sys.argv[1:])
