"""Stands between a client and Holdfast during a proof: runs the command it is given, and keeps what goes in and comes out.

Run by its path with a bare interpreter: `python -I recorder.py FOLDER COMMAND...`. It keeps one file of JSON lines
for each run.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any


def main(folder: str, command: list[str]) -> int:
    kept = open(os.path.join(folder, f"{os.getpid()}.jsonl"), "a", encoding="utf-8")  # noqa: SIM115
    lock = threading.Lock()

    def keep(**what: Any) -> None:
        with lock:
            kept.write(json.dumps(what) + "\n")
            kept.flush()

    keep(run=command, cwd=os.getcwd(), at=time.time())
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin and child.stdout
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda sent, _: child.send_signal(sent))
    going_in = threading.Thread(target=_pour, args=(0, child.stdin.fileno(), keep, "heard", child.stdin.close), daemon=True)
    going_in.start()
    _pour(child.stdout.fileno(), 1, keep, "said", lambda: None)
    code = child.wait()
    keep(code=code)
    return code if code >= 0 else 128 - code


def _pour(source: int, target: int, keep: Any, name: str, after: Any) -> None:
    """Byte by byte as it comes, until one of the two ends is closed."""
    try:
        while data := os.read(source, 65536):
            keep(**{name: data.decode("utf-8", "replace")})
            while data:
                data = data[os.write(target, data) :]
    except OSError:
        pass
    try:
        after()
    except OSError:
        pass


if __name__ == "__main__":
    code = main(sys.argv[1], sys.argv[2:])
    sys.stdout.flush()
    os._exit(code)  # a thread may still wait for a client that keeps its end open
