"""`demo`: a guided tour on a temporary home, which runs every command that it shows."""

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
    """`holdfast demo`."""
    import tempfile

    if call.output.json:
        raise UsageError("demo does not support --json", "Leave out --json")
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        return _Tour(call.output, os.path.join(folder, "home"), ["--no-color"] * bool(call["no_color"])).run()


class _Tour:
    """Print and run the commands of the tour, in order."""

    def __init__(self, output: Output, home: str, options: list[str]) -> None:
        self._output = output
        self._home = home
        self._global_args = ["--home", home, "--project", _PROJECT, *options]

    def run(self) -> int:
        """Run the tour and return its exit code."""
        earlier, later = _days_ago(90), _days_ago(30)
        self._output.print_line("Holdfast in two minutes, in a temporary home that is deleted at the end.")
        self._print_title("Store a note and find it again")
        self._run_command("store", "We deploy on Fridays.", "--key", "deploys", "--tag", "ci-cd", "--valid-from", earlier)
        self._run_command("store", "Answer in short sentences.", "--scope", "global", "--type", "feedback")
        self._run_command("recall", "deploy")
        self._print_title("A new value closes the old one, which stays in the history")
        self._run_command("store", "We deploy on Tuesdays, never on Fridays.", "--key", "deploys", "--valid-from", later)
        self._run_command("recall", "deploy")
        self._run_command("recall", "deploy", "--as-of", _days_ago(60))
        self._run_command("get", "deploys", "--history")
        self._print_title("Facts: dated lines, with one current value each")
        self._run_command("fact", "Telegram", "status", "disabled", "--on", earlier)
        self._run_command("fact", "Telegram", "status", "enabled", "--on", later)
        self._run_command("facts", "Telegram")
        self._run_command("facts", "Telegram", "--as-of", _days_ago(60))
        self._print_title("Forgetting can be undone")
        self._run_command("forget", "deploys")
        self._run_command("recall", "deploy")
        self._run_command("restore", "deploys")
        self._print_title("What an agent is shown when it starts")
        self._run_command("brief")
        self._print_title("Everything is stored in plain files that you own")
        self._print_tree()
        self._print_file("projects/demo/notes/deploys.md")
        self._print_file("projects/demo/notes/telegram.md")
        self._print_title("Next steps")
        self._output.print_line('holdfast store "..."     stores your first note in ~/.holdfast')
        self._output.print_line("holdfast status          shows where memory for this folder is stored")
        self._output.print_line("holdfast --help          lists every command")
        self._output.print_line("holdfast completion bash prints a completion script (also for zsh and fish)")
        return 0

    def _run_command(self, *args: str) -> None:
        import shlex

        self._print_prompt(f"holdfast {shlex.join(args)}")
        code = main([*self._global_args, *args])
        if code == 130:
            raise KeyboardInterrupt
        if code:
            raise Trouble(
                f"the demo stopped: `holdfast {shlex.join(args)}` exited with {code}",
                "Fix the error above, then run the demo again",
            )

    def _print_tree(self) -> None:
        self._print_prompt("find ~/.holdfast -type f")
        for path in sorted(_list_files(self._home)):
            self._output.print_line(f"~/.holdfast/{path}")

    def _print_file(self, path: str) -> None:
        self._print_prompt(f"cat ~/.holdfast/shelf/{path}")
        with open(os.path.join(self._home, "shelf", path), encoding="utf-8") as file:
            self._output.print_text(file.read())

    def _print_title(self, text: str) -> None:
        self._output.print_line(f"\n{self._output.style(text, 'bold')}")

    def _print_prompt(self, command: str) -> None:
        self._output.print_line("\n" + self._output.style(f"$ {command}", "green"))
        sys.stdout.flush()


def _list_files(home: str) -> Iterator[str]:
    """Yield the files of the home, without sockets, locks and the helper files of SQLite."""
    for folder, inner, names in os.walk(home):
        inner[:] = [name for name in inner if name != "run"]
        kept = [name for name in names if not name.endswith(("-wal", "-shm"))]
        yield from [os.path.relpath(os.path.join(folder, name), home) for name in kept]


def _days_ago(count: int) -> str:
    from holdfast.base import dates

    return dates.days_before(dates.now(), count)[:10]
