"""A benchmark ends the processes it started and removes its folder, whichever signals it gets and however often."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

BENCH_CODE = """
import signal, sys, time
from holdfast_bench import processes

processes._REPEAT_SECONDS, processes._GRACE_SECONDS = 0.0, float(sys.argv[1])  # every signal counts
signal.set_wakeup_fd(int(sys.argv[3]))
try:
    with (
        processes.temporary_folder("trial") as folder,
        processes.start_process([sys.executable, "-c", sys.argv[2], str(folder)], graceful=True),
    ):
        while sys.argv[4] == "wait" or not (folder / "started").exists():
            time.sleep(0.01)
    print("completed", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""

CHILD_CODE = """
import os, signal, sys

for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda *_: os.write(1, b"child got a signal\\n"))  # print may be interrupted by itself
print(os.getpid(), flush=True)
open(os.path.join(sys.argv[1], "started"), "w").close()
sys.stdin.readline()
print("folder exists" if os.path.isdir(sys.argv[1]) else "folder is removed", flush=True)
"""


class RunningBench:
    """A benchmark whose child process ignores signals and ends when it reads a line."""

    def __init__(self, process, delivered):
        self.process, self._delivered = process, delivered
        self.child = int(self.read_line())

    def read_line(self):
        assert select.select([self.process.stdout], [], [], 30)[0], "no output within 30 seconds"
        return self.process.stdout.readline().decode().strip()

    def is_silent(self):
        return not select.select([self.process.stdout], [], [], 0.5)[0]

    def send_signal(self, number):
        """Send a signal and wait until it is delivered."""
        self.process.send_signal(number)
        assert os.read(self._delivered, 1) == bytes([number])

    def end_child(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def has_child(self):
        return os.path.exists(f"/proc/{self.child}")


@contextmanager
def run_bench(action, grace_seconds=600):
    """Start a benchmark that waits for signals (`wait`) or ends by itself (`end`)."""
    delivered, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    command = [sys.executable, "-uc", BENCH_CODE, str(grace_seconds), CHILD_CODE, str(wakeup), action]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0, pass_fds=[wakeup]) as process:
        os.close(wakeup)  # so that a read fails, rather than blocks, when the benchmark has ended
        try:
            yield RunningBench(process, delivered)
        finally:
            process.kill()
            os.close(delivered)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_repeated_signals_wait_until_the_child_process_has_ended(number):
    with run_bench("wait") as running:
        running.send_signal(signal.SIGTERM)
        assert running.read_line() == "child got a signal"  # from here on it waits for its child to end
        for _ in range(3):
            running.send_signal(number)
        assert running.is_silent() and running.has_child()
        running.end_child()
        assert running.read_line() == "folder exists"
        assert running.read_line() == "interrupted" and not running.has_child()


def test_a_child_that_does_not_end_in_time_is_killed():
    with run_bench("wait", grace_seconds=0.2) as running:
        running.send_signal(signal.SIGTERM)
        assert [running.read_line(), running.read_line()] == ["child got a signal", "interrupted"]
        assert not running.has_child()


def test_a_signal_during_the_regular_end_of_the_child_takes_effect_when_it_has_ended():
    with run_bench("end") as running:
        assert running.read_line() == "child got a signal"
        running.send_signal(signal.SIGINT)
        assert running.is_silent()
        running.end_child()
        assert [running.read_line(), running.read_line()] == ["folder exists", "interrupted"]
