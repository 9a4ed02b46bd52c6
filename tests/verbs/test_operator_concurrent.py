"""Messages of several processes at once: none is lost, on every store."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from holdfast import Memory

SENDERS, MESSAGES = 3, 25
SEND = """
import sys
from holdfast import Memory
home, number, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
sys.stdin.readline()
with Memory(home, project="demo", origin="user") as person, Memory(home, project="demo", agent="reviewer") as agent:
    for turn in range(count):
        person.operator_send(f"order {number}.{turn}", agent="reviewer")
        agent.operator_send(f"answer {number}.{turn}", to="operator")
"""
BOOT = """
import json, re, sys
from holdfast import Memory
home, wanted = sys.argv[1], int(sys.argv[2])
sys.stdin.readline()
told = []
with Memory(home, project="demo", agent="reviewer") as agent, Memory(home, project="demo", origin="user") as person:
    answers = []
    while person.operator_list(agent="reviewer", unread=True) or len(person.operator_list(agent="reviewer")) < wanted:
        told += re.findall(r"order \\d+\\.\\d+", agent.boot().text)
        answers += [message.text for message in person.operator_read(agent="reviewer")]
print(json.dumps([told, answers]))
"""


@pytest.fixture(params=["folder", "postgres"])
def store(request, monkeypatch):
    if request.param == "postgres":
        monkeypatch.setenv("HOLDFAST_STORE", request.getfixturevalue("postgres_url"))
    return request.param


@pytest.fixture
def start(tmp_path):
    """Start processes that wait for a signal, and end those that still run."""
    started = []

    def run(code, *words):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [sys.executable, "-c", code, *map(str, words)]
        started.append(subprocess.Popen(command, cwd=tmp_path, text=True, env=os.environ.copy(), **pipes))
        return started[-1]

    yield run
    for one in started:
        one.kill()
        one.communicate()


def finish(processes):
    """Let all processes begin, and return what each of them printed."""
    for one in processes:
        one.stdin.write("\n")
        one.stdin.flush()
    answers = [one.communicate(timeout=300) for one in processes]
    assert [(one.returncode, errors) for one, (_, errors) in zip(processes, answers, strict=True)] == [(0, "")] * len(processes)
    return [output for output, _ in answers]


@pytest.mark.promise("F7", "promise-2")
def test_processes_that_send_and_boot_at_once_lose_no_message(store, home, start):
    total = SENDERS * MESSAGES
    readers = [start(BOOT, home, 2 * total) for _ in range(2)]
    senders = [start(SEND, home, number, MESSAGES) for number in range(SENDERS)]
    told = [json.loads(output) for output in finish([*readers, *senders])[:2]]
    wanted = {f"{number}.{turn}" for number in range(SENDERS) for turn in range(MESSAGES)}
    assert {text.removeprefix("order ") for orders, _ in told for text in orders} == wanted
    assert {text.removeprefix("answer ") for _, answers in told for text in answers} == wanted
    with Memory(home, project="demo", origin="user") as person:
        messages = person.operator_list(agent="reviewer")
        assert len(messages) == 2 * total
        assert all(message.read for message in messages)
        for path in ("operator-inbox.jsonl", "operator-outbox.jsonl"):
            content = person._context.store.tree("agents/reviewer").read((path,))
            assert all(isinstance(json.loads(line), dict) for line in content.text().splitlines())


def test_a_shell_that_appends_while_boot_marks_loses_no_line(home, start, open_memory):
    agent, person = open_memory(agent="reviewer"), open_memory(origin="user")
    person.operator_send("order first", agent="reviewer")
    inbox = home / "shelf/agents/reviewer/files/operator-inbox.jsonl"
    shell = subprocess.Popen(["sh", "-c", f"for n in $(seq 400); do echo '{{\"text\": \"by hand '$n'\"}}' >> {inbox}; done"])
    while shell.poll() is None:
        agent.boot()
        person.operator_send("order", agent="reviewer")
    assert shell.returncode == 0
    texts = [message.text for message in agent.operator_list()]
    assert {text for text in texts if text.startswith("by hand")} == {f"by hand {number}" for number in range(1, 401)}
