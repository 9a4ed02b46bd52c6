"""demo: a guided tour on a temporary home. Every command is really run, and its real answer shown."""

from __future__ import annotations

import os
import sys

from holdfast.cli import main
from holdfast.errors import Trouble, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation

_PROJECT = "demo"


def demo(call: Invocation) -> int:
    import tempfile

    if call.screen.json:
        raise UsageError("the demo is for people", "Leave out --json; every single command takes it")
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        return Tour(call.screen, os.path.join(folder, "home"), ["--no-color"] * bool(call["no_color"])).run()


class Tour:
    """The commands in their order, with a word on each."""

    def __init__(self, screen: Output, home: str, options: list[str]) -> None:
        self._screen = screen
        self._home = home
        self._always = ["--home", home, "--project", _PROJECT, *options]

    def run(self) -> int:
        then, later = _day(90), _day(30)
        self._say("Holdfast in two minutes, on a temporary home that is gone again at the end.")
        self._title("Keep something, and find it again")
        self._holdfast("store", "We deploy on Fridays.", "--key", "deploys", "--tag", "ci-cd", "--valid-from", then)
        self._holdfast("store", "Answer in short sentences.", "--scope", "global", "--type", "feedback")
        self._holdfast("recall", "deploy")
        self._title("A new value closes the old one, and nothing is lost")
        self._holdfast("store", "We deploy on Tuesdays, never on Fridays.", "--key", "deploys", "--valid-from", later)
        self._holdfast("recall", "deploy")
        self._holdfast("recall", "deploy", "--as-of", _day(60))
        self._holdfast("get", "deploys", "--history")
        self._title("Facts: dated lines, with one current value each")
        self._holdfast("fact", "Telegram", "status", "disabled", "--on", then)
        self._holdfast("fact", "Telegram", "status", "enabled", "--on", later)
        self._holdfast("facts", "Telegram")
        self._holdfast("facts", "Telegram", "--as-of", _day(60))
        self._title("Forgetting can be undone")
        self._holdfast("forget", "deploys")
        self._holdfast("recall", "deploy")
        self._holdfast("restore", "deploys")
        self._title("What an agent is told when it starts")
        self._holdfast("brief")
        self._title("And all of it is plain files that you own")
        self._show_tree()
        self._show_file("projects/demo/notes/deploys.md")
        self._show_file("projects/demo/notes/telegram.md")
        self._title("How to go on")
        self._say('holdfast store "..."     keeps your first note, in ~/.holdfast')
        self._say("holdfast status          shows where memory for this folder lives")
        self._say("holdfast --help          lists every command")
        self._say("holdfast completion bash teaches your shell (or zsh, or fish)")
        return 0

    def _holdfast(self, *words: str) -> None:
        import shlex

        self._prompt(f"holdfast {shlex.join(words)}")
        code = main([*self._always, *words])
        if code == 130:
            raise KeyboardInterrupt
        if code:
            raise Trouble(f"the demo ended at `holdfast {shlex.join(words)}`, which answered {code}", "See above")

    def _show_tree(self) -> None:
        self._prompt("find ~/.holdfast -type f")
        for path in sorted(_files(self._home)):
            self._screen.say(f"~/.holdfast/{path}")

    def _show_file(self, path: str) -> None:
        self._prompt(f"cat ~/.holdfast/shelf/{path}")
        with open(os.path.join(self._home, "shelf", path), encoding="utf-8") as file:
            self._screen.text(file.read())

    def _title(self, text: str) -> None:
        self._screen.say(f"\n{self._screen.paint(text, 'bold')}")

    def _say(self, text: str) -> None:
        self._screen.say(text)

    def _prompt(self, command: str) -> None:
        self._screen.say("\n" + self._screen.paint(f"$ {command}", "green"))
        sys.stdout.flush()


def _files(home: str) -> Iterator[str]:
    """Every file of the home but what only runs it."""
    for folder, inner, names in os.walk(home):
        inner[:] = [name for name in inner if name != "run"]
        kept = [name for name in names if not name.endswith(("-wal", "-shm"))]
        yield from [os.path.relpath(os.path.join(folder, name), home) for name in kept]


def _day(ago: int) -> str:
    from holdfast.base import dates

    return dates.days_before(dates.now(), ago)[:10]
