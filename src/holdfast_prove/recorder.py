"""Run a command of Holdfast for a client and record its input and output.

Started by its path with a bare interpreter: `python -I recorder.py FOLDER COMMAND...`. Each run writes one file of JSON lines.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any


def main(folder: str, command: list[str]) -> int:
    """Run the command between the client's pipes and return its exit status."""
    file = open(os.path.join(folder, f"{os.getpid()}.jsonl"), "a", encoding="utf-8")  # noqa: SIM115
    lock = threading.Lock()

    def record(**fields: Any) -> None:
        with lock:
            file.write(json.dumps(fields) + "\n")
            file.flush()

    record(command=command, cwd=os.getcwd(), time=time.time())
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin and child.stdout
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, _: child.send_signal(received))
    input_arguments = (0, child.stdin.fileno(), lambda text: record(stdin=text), child.stdin.close)
    threading.Thread(target=_copy, args=input_arguments, daemon=True).start()
    _copy(child.stdout.fileno(), 1, lambda text: record(stdout=text), lambda: None)
    exit_code = child.wait()
    record(exit_code=exit_code)
    return exit_code if exit_code >= 0 else 128 - exit_code


def _copy(source: int, target: int, record: Callable[[str], None], close: Callable[[], None]) -> None:
    """Copy data as it comes and record it, until either end is closed."""
    try:
        while data := os.read(source, 65536):
            record(data.decode("utf-8", "replace"))
            while data:
                data = data[os.write(target, data) :]
    except OSError:
        pass
    try:
        close()
    except OSError:
        pass


if __name__ == "__main__":
    status = main(sys.argv[1], sys.argv[2:])
    sys.stdout.flush()
    os._exit(status)  # the input thread may still wait for a client that keeps its end open
