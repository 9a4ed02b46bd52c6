"""Child of the part `paths`: pass paths to every verb of one interface that takes a path, a key, a name or an id.

`python paths_child.py INTERFACE HOME < PATHS`, where PATHS is a JSON list. It prints a JSON line for each call: the verb, the
number of the path and what is wrong. A result or an error of Holdfast is fine; any other exception is not.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator

CANARY = "zqcanary7d1e"
_TIMEOUT = 20  # seconds for one call
Verb = Callable[[str], object]


class Hung(BaseException):
    """A call takes too long; not an `Exception`, so that the code under test does not catch it."""


def library_verbs(home: str) -> dict[str, Verb]:
    """Return the verbs of Memory: first those that read, last those that delete."""
    from holdfast import Memory

    def open_memory(**caller: str) -> Memory:
        settings = {"cwd": "/", "project": "demo", "agent": "smith", "session": "s1", **caller}
        return Memory(home, **settings)  # type: ignore[arg-type]

    def store_as(**caller: str) -> object:
        with open_memory(**caller) as other:
            return [other.store("zq a text of somebody", key="whose", scope=scope) for scope in ("project", "session", "agent")]

    memory = open_memory()
    files = memory.files
    files.create("have.md", "zqhave a file to move\n")
    turn = [{"role": "user", "text": "zqsaid before"}]
    return {
        "view": files.view,
        "read": memory.read,
        "get": memory.get,
        "history": memory.history,
        "expand": memory.expand,
        "recall": lambda path: memory.recall(path, mode="keyword"),
        "search": memory.search,
        "facts": memory.facts,
        "scope": lambda path: memory.list(scope=path),
        "read as cited": lambda path: memory.read(f"projects/demo/files/{path}"),
        "project": lambda path: store_as(project=path),
        "session": lambda path: store_as(session=path),
        "agent": lambda path: store_as(agent=path),
        "client": lambda path: store_as(client=path),
        "log": lambda path: memory.log(turn, session=path, client="chat"),
        "log of a client": lambda path: memory.log(turn, session="s2", client=path),
        "scaffold": memory.scaffold,
        "fact": lambda path: memory.fact(path, "is", "zq stated"),
        "store": lambda path: memory.store("zq a text", key=path),
        "forget": memory.forget,
        "restore": memory.restore,
        "restore as": lambda path: memory.restore("whose", under=path),
        "create": lambda path: files.create(path, f"# zq\n{len(path)}\n"),
        "str_replace": lambda path: files.str_replace(path, "zq", "qz"),
        "insert": lambda path: files.insert(path, 0, "zqinsert"),
        "rename to": lambda path: files.rename("have.md", path),
        "rename from": lambda path: files.rename(path, "moved.md"),
        "delete": files.delete,
        "purge": memory.purge,
        "check": lambda path: memory.check() if path == "" else None,
    }


_COMMANDS: dict[str, tuple[str, ...]] = {
    "file view": ("file", "view", "{}"),
    "read": ("read", "{}"),
    "get": ("get", "{}"),
    "expand": ("expand", "{}"),
    "path": ("path", "{}"),
    "list in a project": ("list", "--project", "{}"),
    "list in a session": ("list", "--scope", "session", "--session", "{}"),
    "list of an agent": ("list", "--scope", "agent", "--agent", "{}"),
    "store under a key": ("store", "zq a text", "--key", "{}"),
    "store for an agent": ("store", "zq a text", "--scope", "agent", "--agent", "{}"),
    "forget": ("forget", "{}"),
    "restore": ("restore", "{}"),
    "scaffold": ("scaffold", "{}"),
    "file create": ("file", "create", "{}", "zq text"),
    "file str-replace": ("file", "str-replace", "{}", "zq", "qz"),
    "file insert": ("file", "insert", "{}", "0", "zq"),
    "file rename": ("file", "rename", "have.md", "{}"),
    "file rename away": ("file", "rename", "{}", "moved.md"),
    "file delete": ("file", "delete", "{}"),
    "purge": ("purge", "{}", "--yes"),
    "config": ("config", "{}"),
}
_IMPORT_COMMANDS: dict[str, tuple[str, ...]] = {
    "import": ("import", "{}"),
    "import-history": ("import-history", "{}"),
    "log": ("log", "{}", "--session", "s1"),
}


def cli_verbs(home: str, commands: dict[str, tuple[str, ...]] = _COMMANDS) -> dict[str, Verb]:
    """Return functions that run a command in this process; "{}" is the path."""

    def make_verb(words: tuple[str, ...]) -> Verb:
        options = ["--home", home, "--project", "demo", "--json"]
        return lambda path: _run_command([*options, *[path if word == "{}" else word for word in words]])

    return {name: make_verb(words) for name, words in commands.items()}


def import_verbs(home: str) -> dict[str, Verb]:
    """Return functions that run a command which reads a named file."""
    return cli_verbs(home, _IMPORT_COMMANDS)


def hook_verbs(home: str) -> dict[str, Verb]:
    """Return functions that run a hook with the path in one field of its input."""

    def make_verb(field: str, event: str) -> Verb:
        def run_hook(path: str) -> object:
            fields = {"session_id": "s1", "cwd": "/", "source": "startup", "prompt": "how do we deploy"}
            with tempfile.TemporaryFile(dir=home) as stdin:
                stdin.write(json.dumps({**fields, field: path}).encode())
                stdin.seek(0)
                os.dup2(stdin.fileno(), 0)
            return _run_command(["--home", home, "hook", "claude-code", event])

        return run_hook

    fields = ("cwd", "transcript_path", "session_id")
    events = ("SessionStart", "UserPromptSubmit", "SessionEnd")
    return {f"{field} of {event}": make_verb(field, event) for field in fields for event in events}


def _run_command(words: list[str]) -> str:
    """Return what a command printed; raise `AssertionError` for an exit code that no command has, and for a crash."""
    from holdfast.cli import main

    real = sys.stdout, sys.stderr
    data = io.BytesIO(), io.BytesIO()
    out, err = (io.TextIOWrapper(stream, encoding="utf-8") for stream in data)
    sys.stdout, sys.stderr = out, err
    try:
        code = main(words)
        out.flush()
        err.flush()
        printed = b"".join([stream.getvalue() for stream in data]).decode("utf-8", "surrogateescape")
    finally:
        sys.stdout, sys.stderr = real
    if code not in (0, 1, 2, 3, 4, 5) or "Traceback" in printed or "Run it again with --debug" in printed:
        raise AssertionError(f"exit {code}: {printed[-500:]}")
    return printed


INTERFACES = {"library": library_verbs, "cli": cli_verbs, "imports": import_verbs, "hook": hook_verbs}


def call_verbs(interface: str, home: str, paths: list[str]) -> Iterator[tuple[str, int, str]]:
    """Pass every path to every verb; yield the verb, the number of the path and what is wrong, or an empty string."""
    for name, verb in INTERFACES[interface](home).items():
        for number, path in enumerate(paths):
            yield name, number, _call(verb, path)


def _call(verb: Verb, path: str) -> str:
    from holdfast import HoldfastError

    signal.setitimer(signal.ITIMER_REAL, _TIMEOUT)
    try:
        answer = repr(verb(path))
    except HoldfastError as error:
        answer = f"{error} {error.fix}"
    except Hung:
        return f"hung for {_TIMEOUT} s"
    except Exception as error:  # noqa: BLE001 - what this program looks for
        return f"{type(error).__name__}: {error} | {' | '.join(traceback.format_exc().splitlines()[-5:])}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return "it shows text from outside" if CANARY in answer and CANARY not in path else ""


def _raise_hung(*_: object) -> None:
    raise Hung


def main(interface: str, home: str) -> None:
    paths = json.load(sys.stdin)
    signal.signal(signal.SIGALRM, _raise_hung)
    results = sys.stdout
    sys.stdin = open(os.devnull)  # noqa: SIM115 - until this process ends
    for verb, number, problem in call_verbs(interface, home, paths):
        results.write(json.dumps([verb, number, problem]) + "\n")
    results.write(json.dumps(["done", 0, ""]) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
