"""The command line. This module is what the `holdfast` script loads first, so it holds nothing but the way in."""

from __future__ import annotations

import sys


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit code says how it went."""
    try:
        from holdfast.doors.cli.call import run

        return run(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        return 130
