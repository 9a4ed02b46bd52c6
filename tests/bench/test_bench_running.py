"""What a benchmark started goes with it, whoever says that it is to end, and however often."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

BENCH = """
import signal, sys, time
from holdfast_bench import progress

progress._ONCE_SECONDS, progress._PARTING_SECONDS = 0.0, float(sys.argv[1])  # no two signals count as one
signal.set_wakeup_fd(int(sys.argv[3]))
try:
    with progress.folder("trial") as place, progress.started([sys.executable, "-c", sys.argv[2], str(place)], True) as process:
        while sys.argv[4] == "waits" or not (place / "up").exists():
            time.sleep(0.01)
    print("went on", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""

STUBBORN = """
import os, signal, sys

for sign in (signal.SIGTERM, signal.SIGINT):
    signal.signal(sign, lambda *_: print("told", flush=True))
print(os.getpid(), flush=True)
open(os.path.join(sys.argv[1], "up"), "w").close()
sys.stdin.readline()
print("its folder is", "there" if os.path.isdir(sys.argv[1]) else "gone", flush=True)
"""


class Bench:
    """One that runs, with a process that ends when it is let go, and not when it is told to."""

    def __init__(self, process, delivered):
        self.process, self._delivered = process, delivered
        self.child = int(self.says())

    def says(self):
        assert select.select([self.process.stdout], [], [], 30)[0], "it says nothing"
        return self.process.stdout.readline().decode().strip()

    def says_nothing(self):
        return not select.select([self.process.stdout], [], [], 0.5)[0]

    def hears(self, sign):
        """It is sent a signal, and has it when this returns."""
        self.process.send_signal(sign)
        assert os.read(self._delivered, 1) == bytes([sign])

    def lets_go(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def has_a_child(self):
        return os.path.exists(f"/proc/{self.child}")


@contextmanager
def bench(body, seconds=600):
    delivered, tell = os.pipe()
    os.set_blocking(tell, False)
    command = [sys.executable, "-uc", BENCH, str(seconds), STUBBORN, str(tell), body]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0, pass_fds=[tell]) as process:
        os.close(tell)  # so that what was not delivered is not waited for when the bench has ended
        try:
            yield Bench(process, delivered)
        finally:
            process.kill()
            os.close(delivered)


@pytest.mark.parametrize("again", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_whoever_ends_it_again_and_again_while_what_it_started_still_stops_waits_for_that(again):
    with bench("waits") as running:
        running.hears(signal.SIGTERM)
        assert running.says() == "told"  # from here on it waits for its child to part
        for _ in range(3):
            running.hears(again)
        assert running.says_nothing() and running.has_a_child()
        running.lets_go()
        assert running.says() == "its folder is there"
        assert running.says() == "interrupted" and not running.has_a_child()


def test_what_does_not_stop_in_time_is_killed():
    with bench("waits", seconds=0.2) as running:
        running.hears(signal.SIGTERM)
        assert [running.says(), running.says()] == ["told", "interrupted"]
        assert not running.has_a_child()


def test_a_signal_that_comes_while_what_it_started_is_stopped_as_usual_is_heard_when_that_is_gone():
    with bench("ends") as running:
        assert running.says() == "told"
        running.hears(signal.SIGINT)
        assert running.says_nothing()
        running.lets_go()
        assert [running.says(), running.says()] == ["its folder is there", "interrupted"]
