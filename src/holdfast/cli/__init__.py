"""The command line. This module is what the `holdfast` script loads first, so it holds only the way in and out."""

from __future__ import annotations

import sys

alone = False  # whether this process runs one command and nothing else

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit code says how it went. With no words given, this is the whole program."""
    if argv is None:
        _program()
    return _run(argv)


def _run(words: list[str]) -> int:
    try:
        if words[-3:-2] == ["hook"] and (len(words) == 3 or (len(words) == 5 and words[0] == "--home")):
            from holdfast.hooks import main as hook  # before any table is read: an agent waits for it at every prompt

            return hook(words[-2:], words[1] if len(words) == 5 else None, enforce_deadline=alone)
        from holdfast.cli.runner import run

        return run(words)
    except KeyboardInterrupt:
        return 130


def _program() -> NoReturn:
    """One command and out: what lives this short needs no garbage collector, and nobody to tidy up after it."""
    import gc
    import os

    global alone
    alone = True
    gc.disable()
    code = _run(sys.argv[1:])
    if "atexit" in sys.modules or "threading" in sys.modules:
        sys.exit(code)  # somebody asked to be told, or still runs
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)
