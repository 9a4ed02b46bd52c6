"""Command line interface. The `holdfast` script imports this module first, so it imports nothing heavy."""

from __future__ import annotations

import sys

owns_process = False  # whether this process runs one command and then exits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code; without `argv`, run the command of this process and exit."""
    if argv is None:
        _run_and_exit()
    return _run(argv)


def _run(argv: list[str]) -> int:
    try:
        if argv[-3:-2] == ["hook"] and (len(argv) == 3 or (len(argv) == 5 and argv[0] == "--home")):
            from holdfast.hooks import main as run_hook  # before the command table: an agent waits for it at every prompt

            return run_hook(argv[-2:], argv[1] if len(argv) == 5 else None, enforce_deadline=owns_process)
        from holdfast.cli.runner import run

        return run(argv)
    except KeyboardInterrupt:
        return 130


def _run_and_exit() -> NoReturn:
    """Run the command of this process without garbage collection and interpreter shutdown: a short process needs neither."""
    import gc
    import os

    global owns_process
    owns_process = True
    gc.disable()
    code = _run(sys.argv[1:])
    if "atexit" in sys.modules or "threading" in sys.modules:
        sys.exit(code)  # an exit handler or a thread may need the regular shutdown
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)
