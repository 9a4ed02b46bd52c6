"""Child of the part `network`: call every verb of Memory, or run every command, or serve a gateway, without a network.

`python -m battery.network_child library|cli|gateway HOME` refuses and records every use of a network (`sys.addaudithook`) and
prints the result as JSON. A gateway may listen on loopback; it runs until the end of its input.
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

_EVENTS = ("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname",
          "socket.gethostbyaddr", "socket.getnameinfo", "socket.gethostname", "urllib.Request",
          "http.client.connect")  # fmt: skip
_LOOPBACK = ("127.0.0.1", "::1")
attempts: list[str] = []
bound: list[str] = []  # the addresses a gateway listens on


class NetworkRefused(Exception):
    """The process tried to use a network."""


def refuse_network(home: str, serves: bool = False) -> None:
    """Refuse and record every use of a network from now on, except unix sockets in the home.

    A process that `serves` may listen on loopback and look up that address.
    """

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _EVENTS:
            return
        address = arguments[1] if len(arguments) > 1 else None
        if event in ("socket.connect", "socket.bind") and isinstance(address, str | bytes):
            path = os.fsdecode(address)
            if path.startswith((home, "\0")) or not os.path.isabs(path):
                return
        if serves and _is_loopback(event, arguments):
            return
        attempts.append(f"{event} {arguments[1:]!r}"[:200])
        raise NetworkRefused(event)

    sys.addaudithook(hook)


def _is_loopback(event: str, arguments: tuple[Any, ...]) -> bool:
    if event == "socket.getaddrinfo":
        return arguments[0] in _LOOPBACK
    if event == "socket.bind" and isinstance(arguments[1], tuple) and arguments[1][0] in _LOOPBACK:
        bound.append(arguments[1][0])
        return True
    return False


def call_library(home: str) -> list[str]:
    """Call every public verb of Memory and return those that have no call below."""
    from holdfast import Memory

    with Memory(home, cwd=home, project="demo", agent="smith", session="s1", origin="user") as memory:
        calls = _calls(memory, home)
        public = {name for name in dir(Memory) if not name.startswith("_")} - {"close", "config"}
        for call in calls.values():
            call()
    return [f"no call of Memory.{name}" for name in sorted(public - set(calls))]


def _adopt(memory: Any, home: str) -> object:
    from holdfast import Memory

    with Memory(home, cwd=home, project="other", origin="user") as other:
        other.store("of another project", key="other")
    return memory.adopt("other")


def _calls(memory: Any, home: str) -> dict[str, Callable[[], object]]:
    turns = [{"role": "user", "text": "how do we deploy"}, {"role": "assistant", "text": "on Tuesdays"}]
    file = os.path.join(home, "said.jsonl")
    with open(file, "w") as out:
        out.write('{"role": "user", "content": "a transcript to import"}\n')
    calls: dict[str, Callable[[], object]] = {
        "store": lambda: memory.store("We deploy on Tuesdays.", key="deploys"),
        "store_many": lambda: memory.store_many([{"text": "one of many"}, {"text": "another of many"}]),
        "fact": lambda: memory.fact("Telegram", "status", "[[Enabled]]"),
        "log": lambda: memory.log(turns, session="s1", client="chat"),
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
        "operator_send": lambda: memory.operator_send("done", to="operator"),
        "operator_list": memory.operator_list,
        "operator_read": memory.operator_read,
        "status": memory.status,
        "check": memory.check,
        "forget": lambda: memory.forget("deploys"),
        "trash": memory.trash,
        "restore": lambda: memory.restore("deploys"),
        "retain": memory.retain,
        "reindex": memory.reindex,
        "mark": memory.mark,
        "projects": memory.projects,
        "adopt": lambda: _adopt(memory, home),
        "home": lambda: memory.home, "project": lambda: memory.project, "session": lambda: memory.session,
        "agent": lambda: memory.agent, "origin": lambda: memory.origin,
    }  # fmt: skip
    return calls | {
        "review": lambda: (memory.store("from the web", key="web", origin="web"), memory.review()),
        "approve": lambda: memory.approve("web"),
        "quarantine": lambda: memory.quarantine("web"),
        "trace": lambda: memory.trace("web"),
        "relate": lambda: memory.relate("web", "relates_to", "deploys"),
        "relations": lambda: memory.relations("web"),
        "accept_relation": lambda: memory.accept_relation("web", "relates_to", "deploys"),
        "reject_relation": lambda: memory.reject_relation("web", "relates_to", "deploys"),
        "unrelate": lambda: memory.unrelate("web", "relates_to", "deploys"),
        "reject": lambda: (memory.store("from the web, too", key="web-too", origin="web"), memory.reject("web-too")),
        "export": lambda: list(memory.export()),
        "forget_source": lambda: memory.forget_source("web", dry_run=True),
        "forget_session": lambda: memory.forget_session("s1"),
        "restore_session": lambda: memory.restore_session("s1"),
        "purge": lambda: memory.purge("deploys"),
        "receipts": memory.receipts,
        "clear": lambda: memory.clear("project"),
    }


def run_commands(home: str) -> list[str]:
    """Run every command except `NOT_RUN` with arguments that make it do something; return unexpected exit codes."""
    from holdfast.cli import main
    from holdfast.cli.command_table import COMMANDS

    notes = os.path.join(home, "notes.jsonl")
    with open(notes, "w") as out:
        out.write('{"text": "an imported note", "key": "imported"}\n')
    problems = []
    for name in (*_FIRST, *[name for name in COMMANDS if name not in _FIRST and name not in _LAST], *_LAST):
        if name in NOT_RUN or name not in COMMANDS:
            continue
        words = [word.replace("NOTES", notes) for word in _ARGUMENTS.get(name, ())]
        real = sys.stdout, sys.stderr, sys.stdin
        sys.stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        sys.stderr, sys.stdin = sys.stdout, io.TextIOWrapper(io.BytesIO())
        try:
            code = main(["--home", home, "--project", "demo", "--session", "s1", *name.split(), *words])
        finally:
            sys.stdout, sys.stderr, sys.stdin = real
        if code not in (0, 1, 2, 3):
            problems.append(f"{name} {' '.join(words)}: exit {code}")
    return problems


def _stop_at_end_of_input() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


def serve_gateway(home: str) -> list[str]:
    """Serve until the end of the input; return an unexpected exit code."""
    from holdfast.cli import main

    threading.Thread(target=_stop_at_end_of_input, daemon=True).start()
    code = main(["--home", home, "serve", "--port", "0", "--json", "--json-logs"])
    return [] if code == 0 else [f"serve: exit {code}"]


_FIRST = ("init", "store", "fact", "log", "import")
_LAST = ("forget", "restore", "purge", "clear")
NOT_RUN = (  # they listen, start other programs or read their own input; `serve_gateway` runs `serve`
    "mcp", "resident", "serve", "ui", "prove", "bench speed", "bench retrieval", "bench context", "bench load",
    "bench console", "demo", "edit", "hook", "models install",
)  # fmt: skip
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "store": ("We deploy on Tuesdays.", "--key", "deploys"), "recall": ("deploy", "--mode", "hybrid"), "get": ("deploys",),
    "import": ("NOTES",),
    "fact": ("Telegram", "status", "enabled"), "graph": ("Telegram",), "log": ("NOTES",), "import-history": ("NOTES",),
    "forget": ("deploys",), "restore": ("deploys",), "purge": ("deploys", "--yes"), "clear": ("--scope", "project", "--yes"),
    "search": ("deploy",), "read": ("projects/demo/notes/deploys.md",), "file view": ("/memories",),
    "file create": ("plan.md", "# Plan"),
    "file str-replace": ("plan.md", "Plan", "Goals"), "file insert": ("plan.md", "1", "- rest"),
    "file rename": ("plan.md", "goals.md"),
    "operator send": ("done", "--to-operator"),
    "file delete": ("goals.md",), "scaffold": ("wiki",), "install": ("--dry-run",), "uninstall": ("--dry-run",),
    "render": ("AGENTS.md",),
    "expand": ("x",), "brief": ("--prompt", "how do we deploy"), "completion": ("bash",), "trace": ("deploys",),
    "relate": ("deploys",),
    "config": ("notes.max_bytes",),
    "export": (), "review": ("--json",),
}  # fmt: skip


def main(interface: str, home: str) -> None:
    os.makedirs(home, exist_ok=True)
    os.chdir(home)
    refuse_network(os.path.realpath(home), serves=interface == "gateway")
    run = {"library": call_library, "cli": run_commands, "gateway": serve_gateway}[interface]
    try:
        problems = run(home)
    except Exception as error:  # noqa: BLE001 - reported to the parent
        import traceback

        problems = [f"{type(error).__name__}: {error}", *traceback.format_exc().splitlines()[-4:]]
    addresses = {"bound": bound} if interface == "gateway" else {}
    print(json.dumps({"attempts": attempts, **addresses, "problems": problems}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
