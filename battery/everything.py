"""The child that does everything an embedded memory can do, once: every verb of Memory, or every plain command; or that is a
gateway until it is told to stop.

`python -m battery.everything library|cli|gateway HOME`; it says what went wrong, and listens for every use of a network on the
way (`sys.addaudithook`), which it refuses. A gateway may listen on loopback, and where it does is said.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

EVENTS = ("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname",
          "socket.gethostbyaddr", "socket.getnameinfo", "socket.gethostname", "urllib.Request",
          "http.client.connect")  # fmt: skip
LOOPBACK = ("127.0.0.1", "::1")
attempts: list[str] = []
bound: list[str] = []  # where a gateway listens


class NoNetwork(Exception):
    """Somebody tried."""


def listen(home: str, serves: bool = False) -> None:
    """From now on every attempt is written down and refused; a unix socket in the home is no network. Who `serves` may listen
    on loopback, and look up that address and no other."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in EVENTS:
            return
        place = arguments[1] if len(arguments) > 1 else None
        if event in ("socket.connect", "socket.bind") and isinstance(place, str | bytes):
            path = os.fsdecode(place)
            if path.startswith((home, "\0")) or not os.path.isabs(path):
                return
        if serves and _may_serve(event, arguments):
            return
        attempts.append(f"{event} {arguments[1:]!r}"[:200])
        raise NoNetwork(event)

    sys.addaudithook(hook)


def _may_serve(event: str, arguments: tuple[Any, ...]) -> bool:
    if event == "socket.getaddrinfo":
        return arguments[0] in LOOPBACK
    if event == "socket.bind" and isinstance(arguments[1], tuple) and arguments[1][0] in LOOPBACK:
        bound.append(arguments[1][0])
        return True
    return False


def library(home: str) -> list[str]:
    """Every public verb of Memory, by its name: one that is not in the list below is a failure."""
    from holdfast import Memory

    with Memory(home, cwd=home, project="demo", agent="smith", session="s1", origin="user") as memory:
        acts = _verbs(memory, home)
        public = {name for name in dir(Memory) if not name.startswith("_")} - {"close", "config"}
        for act in acts.values():
            act()
    return [f"no act for Memory.{name}" for name in sorted(public - set(acts))]


def _adopted(memory: Any, home: str) -> object:
    from holdfast import Memory

    with Memory(home, cwd=home, project="other", origin="user") as other:
        other.store("of another project", key="other")
    return memory.adopt("other")


def _verbs(memory: Any, home: str) -> dict[str, Callable[[], object]]:
    said = [{"role": "user", "text": "how do we deploy"}, {"role": "assistant", "text": "on Tuesdays"}]
    file = os.path.join(home, "said.jsonl")
    with open(file, "w") as out:
        out.write('{"role": "user", "content": "a transcript to import"}\n')
    acts: dict[str, Callable[[], object]] = {
        "store": lambda: memory.store("We deploy on Tuesdays.", key="deploys"),
        "store_many": lambda: memory.store_many([{"text": "one of many"}, {"text": "another of many"}]),
        "fact": lambda: memory.fact("Telegram", "status", "[[Enabled]]"),
        "log": lambda: memory.log(said, session="s1", client="chat"),
        "import_history": lambda: memory.import_history(file),
        "recall": lambda: [memory.recall("deploy", mode=mode) for mode in ("hybrid", "keyword", "semantic", "recent")],
        "get": lambda: memory.get("deploys"),
        "list": memory.list,
        "history": lambda: memory.history("deploys"),
        "facts": memory.facts,
        "brief": lambda: [memory.brief(), memory.brief(prompt="how do we deploy", mode="hybrid")],
        "render": lambda: memory.render(os.path.join(home, "AGENTS.md")),
        "expand": lambda: memory.expand(next(hit.citation for hit in memory.recall("Tuesdays", kind="turn", mode="keyword"))),
        "graph": lambda: memory.graph("Telegram"),
        "path": lambda: memory.path("Telegram", "Enabled"),
        "embed": memory.embed,
        "search": lambda: memory.search("deploy"),
        "read": lambda: memory.read("projects/demo/notes/deploys.md"),
        "files": lambda: (memory.files.create("plan.md", "# Plan\n"), memory.files.view("/memories")),
        "scaffold": lambda: memory.scaffold("continuity"),
        "boot": memory.boot,
        "status": memory.status,
        "check": memory.check,
        "forget": lambda: memory.forget("deploys"),
        "trash": memory.trash,
        "restore": lambda: memory.restore("deploys"),
        "retain": memory.retain,
        "reindex": memory.reindex,
        "mark": memory.mark,
        "projects": memory.projects,
        "adopt": lambda: _adopted(memory, home),
        "home": lambda: memory.home, "project": lambda: memory.project, "session": lambda: memory.session,
        "agent": lambda: memory.agent, "origin": lambda: memory.origin,
    }  # fmt: skip
    return acts | {
        "review": lambda: (memory.store("from the web", key="web", origin="web"), memory.review()),
        "approve": lambda: memory.approve("web"),
        "trace": lambda: memory.trace("web"),
        "reject": lambda: (memory.store("from the web, too", key="web-too", origin="web"), memory.reject("web-too")),
        "export": lambda: list(memory.export()),
        "forget_source": lambda: memory.forget_source("web", dry_run=True),
        "forget_session": lambda: memory.forget_session("s1"),
        "restore_session": lambda: memory.restore_session("s1"),
        "purge": lambda: memory.purge("deploys"),
        "receipts": memory.receipts,
        "clear": lambda: memory.clear("project"),
    }


def cli(home: str) -> list[str]:
    """Every command of the table, with words that make it do something; those that serve or fetch by their nature are named."""
    from holdfast.cli import main
    from holdfast.cli.command_table import COMMANDS

    notes = os.path.join(home, "notes.jsonl")
    with open(notes, "w") as out:
        out.write('{"text": "an imported note", "key": "imported"}\n')
    wrong = []
    for name in (*FIRST, *[name for name in COMMANDS if name not in FIRST and name not in LAST], *LAST):
        if name in SERVES or name not in COMMANDS:
            continue
        words = WORDS.get(name, ())
        real = sys.stdout, sys.stderr, sys.stdin
        sys.stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        sys.stderr, sys.stdin = sys.stdout, io.TextIOWrapper(io.BytesIO())
        try:
            code = main(["--home", home, "--project", "demo", "--session", "s1", *name.split(), *[one.replace("NOTES",
                notes) for one in words]])
        finally:
            sys.stdout, sys.stderr, sys.stdin = real
        if code not in (0, 1, 2, 3):
            wrong.append(f"{name} {' '.join(words)}: exit {code}")
    return wrong


def _stop_at_the_end_of_input() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


def gateway(home: str) -> list[str]:
    """Serve until somebody outside has asked for everything."""
    from holdfast.cli import main

    threading.Thread(target=_stop_at_the_end_of_input, daemon=True).start()
    code = main(["--home", home, "serve", "--port", "0", "--json", "--json-logs"])
    return [] if code == 0 else [f"serve: exit {code}"]


FIRST = ("init", "store", "fact", "log", "import")
LAST = ("forget", "restore", "purge", "clear")
SERVES = (  # they listen, start other programs, or read their own words; `gateway` is for `serve`
    "mcp", "resident", "serve", "prove", "bench speed", "bench retrieval", "bench context", "bench load", "demo",
    "edit", "hook",
)  # fmt: skip
WORDS: dict[str, tuple[str, ...]] = {
    "store": ("We deploy on Tuesdays.", "--key", "deploys"), "recall": ("deploy", "--mode", "hybrid"), "get": ("deploys",),
    "import": ("NOTES",),
    "fact": ("Telegram", "status", "enabled"), "graph": ("Telegram",), "log": ("NOTES",), "import-history": ("NOTES",),
    "forget": ("deploys",), "restore": ("deploys",), "purge": ("deploys", "--yes"), "clear": ("--scope", "project", "--yes"),
    "search": ("deploy",), "read": ("projects/demo/notes/deploys.md",), "file view": ("/memories",),
    "file create": ("plan.md", "# Plan"),
    "file str-replace": ("plan.md", "Plan", "Goals"), "file insert": ("plan.md", "1", "- rest"),
    "file rename": ("plan.md", "goals.md"),
    "file delete": ("goals.md",), "scaffold": ("wiki",), "install": ("--dry-run",), "uninstall": ("--dry-run",),
    "render": ("AGENTS.md",),
    "expand": ("x",), "brief": ("--prompt", "how do we deploy"), "completion": ("bash",), "trace": ("deploys",),
    "config": ("notes.max_bytes",),
    "export": (), "review": ("--json",),
}  # fmt: skip


def main(what: str, home: str) -> None:
    os.makedirs(home, exist_ok=True)
    os.chdir(home)
    listen(os.path.realpath(home), serves=what == "gateway")
    try:
        wrong = {"library": library, "cli": cli, "gateway": gateway}[what](home)
    except Exception as error:  # noqa: BLE001 - said, and judged by the parent
        import traceback

        wrong = [f"{type(error).__name__}: {error}", *traceback.format_exc().splitlines()[-4:]]
    print(json.dumps({"attempts": attempts, **({"bound": bound} if what == "gateway" else {}), "wrong": wrong}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
