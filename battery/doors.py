"""The child that carries hostile paths through one door: every verb that takes a path, a key, a name or an id.

`python doors.py DOOR HOME < plan`: the plan is a JSON list of paths, the answer a JSON line for each try: verb, number of
the path, how it ended. An answer, or an error of Holdfast's own, is a good end; anything else is told with its traceback.
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
SECONDS = 20  # after which a try counts as hung
Verb = Callable[[str], object]


class Hung(BaseException):
    """No error that anything on the way may swallow."""


def library(home: str) -> dict[str, Verb]:
    """Memory, by its verbs: those that read come first, those that take away last."""
    from holdfast import Memory

    def caller(**who: str) -> Memory:
        return Memory(home, **{"cwd": "/", "project": "demo", "agent": "smith", "session": "s1",
            **who})  # type: ignore[arg-type]

    def asked(**who: str) -> object:
        with caller(**who) as other:
            return [other.store("zq a text of somebody", key="whose", scope=scope) for scope in ("project", "session", "agent")]

    memory = caller()
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
        "project": lambda path: asked(project=path),
        "session": lambda path: asked(session=path),
        "agent": lambda path: asked(agent=path),
        "client": lambda path: asked(client=path),
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
_SOURCES: dict[str, tuple[str, ...]] = {
    "import": ("import", "{}"),
    "import-history": ("import-history", "{}"),
    "log": ("log", "{}", "--session", "s1"),
}


def cli(home: str, commands: dict[str, tuple[str, ...]] = _COMMANDS) -> dict[str, Verb]:
    """The command line, in this process: the words go in as the shell would hand them over."""

    def typed(words: tuple[str, ...]) -> Verb:
        return lambda path: _said(["--home", home, "--project", "demo", "--json",
            *[path if one == "{}" else one for one in words]])

    return {name: typed(words) for name, words in commands.items()}


def imports(home: str) -> dict[str, Verb]:
    """What a person names to be read: that file, and no other."""
    return cli(home, _SOURCES)


def hook(home: str) -> dict[str, Verb]:
    """What a client's hook is told on stdin."""

    def told(field: str, event: str) -> Verb:
        def tell(path: str) -> object:
            sound = {"session_id": "s1", "cwd": "/", "source": "startup", "prompt": "how do we deploy"}
            with tempfile.TemporaryFile(dir=home) as stdin:
                stdin.write(json.dumps({**sound, field: path}).encode())
                stdin.seek(0)
                os.dup2(stdin.fileno(), 0)
            return _said(["--home", home, "hook", "claude-code", event])

        return tell

    fields = ("cwd", "transcript_path", "session_id")
    events = ("SessionStart", "UserPromptSubmit", "SessionEnd")
    return {f"{field} of {event}": told(field, event) for field in fields for event in events}


def _said(words: list[str]) -> str:
    """One command; what it printed. A code that no command has is a failure."""
    from holdfast.cli import main

    real = sys.stdout, sys.stderr
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    sys.stdout, sys.stderr = out, err
    try:
        code = main(words)
        out.flush()
        err.flush()
    finally:
        sys.stdout, sys.stderr = real
    said = (out.buffer.getvalue() + err.buffer.getvalue()).decode("utf-8", "surrogateescape")  # type: ignore[attr-defined]
    if code not in (0, 1, 2, 3, 4, 5) or "Traceback" in said or "Run it again with --debug" in said:
        raise AssertionError(f"exit {code}: {said[-500:]}")
    return said


DOORS = {"library": library, "cli": cli, "imports": imports, "hook": hook}


def tries(door: str, home: str, paths: list[str]) -> Iterator[tuple[str, int, str]]:
    """Every path through every verb: the verb, the path's number, and what is wrong; nothing if nothing is."""
    for name, verb in DOORS[door](home).items():
        for number, path in enumerate(paths):
            yield name, number, tried(verb, path)


def tried(verb: Verb, path: str) -> str:
    """How one try ended; empty if well."""
    from holdfast import HoldfastError

    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        said = repr(verb(path))
    except HoldfastError as error:
        said = f"{error} {error.fix}"
    except Hung:
        return f"hung for {SECONDS} s"
    except Exception as error:  # noqa: BLE001 - this is what is looked for
        return f"{type(error).__name__}: {error} | {' | '.join(traceback.format_exc().splitlines()[-5:])}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return "it told what stands outside" if CANARY in said and CANARY not in path else ""


def _ring(*_: object) -> None:
    raise Hung


def main(door: str, home: str) -> None:
    paths = json.load(sys.stdin)
    signal.signal(signal.SIGALRM, _ring)
    answers = sys.stdout
    sys.stdin = open(os.devnull)  # noqa: SIM115 - for as long as this process lives
    for verb, number, wrong in tries(door, home, paths):
        answers.write(json.dumps([verb, number, wrong]) + "\n")
    answers.write(json.dumps(["done", 0, ""]) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
