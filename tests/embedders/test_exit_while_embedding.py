"""A program that ends without closing its memory while a model runs: in the background, or in a thread of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast

_PROGRAM = """
import sys
from holdfast import Memory

memory = Memory(sys.argv[1])
notes = [{"text": f"Note {number}: the harbour opens at six and closes at ten.", "key": f"k{number}"} for number in range(200)]
memory.store_many(notes)
memory.recall("When does the port open?")
"""

_NO_THREADS = """
import threading

def start(self):
    raise RuntimeError("can't start new thread")

threading.Thread.start = start
"""

_CLOSES = """
import atexit

atexit.register(lambda: memory.close())  # before a model is there: so it is called after all that is registered for one
"""

_ASKS = """
import atexit
import sys
from holdfast import Memory

def ask():
    answer = memory.recall("When does the port open?")
    print(len(answer), answer.degraded)

atexit.register(ask)
memory = Memory(sys.argv[1])
memory.store("The harbour opens at six.", key="harbour")
memory.recall("When does the port open?")
"""

_THREADS = """
import os
import sys
import threading
import time
from holdfast import Memory

class Last:
    def __del__(self, sleep=time.sleep):
        sleep(1)  # Python ends for so long: every thread comes back from its model while it does

last = Last()
LONG = "When does the port open for the ships that come in from the sea at night? " * 20  # all its time is the model's
answered = threading.Semaphore(0)

def ask(place):
    memory = Memory(os.path.join(sys.argv[1], place))
    memory.store("The harbour opens at six.", key="harbour")
    while True:
        memory.recall(LONG)
        answered.release()

for place in "abcd":
    threading.Thread(target=ask, args=(place,), daemon=True).start()
for _ in range(12):
    answered.acquire()
"""

_SILENT = """
import socket
import sys
import threading
from holdfast import Memory
from holdfast.embedders import native_lock

native_lock._WAIT_SECONDS = 3600.0  # who waits for the endpoint waits for ever
memory = Memory(sys.argv[1])
memory.store("The harbour opens at six.", key="harbour")
threading.Thread(target=lambda: memory.recall("When does the port open?"), daemon=True).start()
asked, _ = LISTENING.accept()
"""


def run(program, tmp_path, embedder="default", files=()):
    environment = {**os.environ, "HOLDFAST_EMBEDDER": embedder}
    words = [sys.executable, "-c", program, str(tmp_path / "home")]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, env=environment, pass_fds=files, check=False)


@pytest.mark.parametrize(("end", "code"), [("", 0), ("sys.exit(3)", 3), ("raise ValueError('my own')", 1)])
def test_it_ends_as_it_would_without_us(tmp_path, end, code):
    done = run(_PROGRAM + end, tmp_path)
    assert done.returncode == code, done.stderr
    assert done.stderr.splitlines()[-1:] == (["ValueError: my own"] if code == 1 else [])


def test_a_child_that_was_forked_ends_too(tmp_path):
    end = "import os\nchild = os.fork()\nif child:\n    assert os.waitpid(child, 0)[1] == 0"
    done = run(_PROGRAM + end, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_program_that_may_start_no_thread_still_answers_and_ends(tmp_path):
    done = run(_NO_THREADS + _PROGRAM, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("end", ["", "sys.exit(3)"])
def test_threads_of_its_own_that_are_in_a_model_do_not_take_it_down(tmp_path, end):
    done = run(_THREADS + end, tmp_path, "minilm")
    assert (done.returncode, done.stderr) == (3 if end else 0, "")


def test_one_that_closes_its_memory_at_the_very_end_ends(tmp_path):
    done = run(_CLOSES + _PROGRAM, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_one_that_asks_at_the_very_end_is_answered(tmp_path):
    done = run(_ASKS, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 False\n", "")


def test_an_endpoint_that_does_not_answer_is_not_waited_for(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        program = _SILENT.replace("LISTENING", f"socket.socket(fileno={listening.fileno()})")
        place = f"endpoint:m@http://127.0.0.1:{listening.getsockname()[1]}/v1"
        done = run(program, tmp_path, place, [listening.fileno()])
    assert (done.returncode, done.stderr) == (0, "")


def test_nothing_of_ours_asks_numpy_for_what_would_take_a_program_down():
    """`np.unique` of values alone lets go of the interpreter where no thread may be ended: see embedders/native_lock.py."""
    source = Path(holdfast.__file__).parent
    used = [line for path in source.rglob("*.py") for line in path.read_text().splitlines() if "np.unique(" in line]
    assert [line for line in used if "return_in" not in line] == []  # inverse or index
