"""Write the golden files again, after an intended change of a public interface:

    python tests/golden/write.py            help, API, MCP, settings, errors, wire requests, answers
    python tests/golden/write.py --homes    also the stores in `home/` and `postgres.jsonl`

The stores were written by version 0.1.0. They show that its data can still be read, so write them again only for a change of
the format that comes with a migration, and keep the old ones beside the new. Look at `git diff tests/golden` afterwards.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent


def main(arguments: list[str]) -> int:
    """Run the golden tests so that they write their files, and return the exit status."""
    if arguments not in ([], ["--homes"]):
        print(__doc__)
        return 2
    files = sorted(str(path) for path in TESTS.rglob("test_golden_*.py"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *files]
    env = {**os.environ, "GOLDEN_WRITE": "homes" if arguments else "texts"}
    code = subprocess.run(command, env=env, cwd=TESTS.parent).returncode
    subprocess.run(["git", "status", "--short", "--", str(TESTS / "golden")], cwd=TESTS.parent)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
