"""Without a server Holdfast opens no connection: every verb and plain command runs in a process that refuses sockets.

The gateway runs in such a process too, where it may listen on loopback.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


def run_everything(home, interface, **env):
    """Run every verb or command in a process that refuses sockets and return its report."""
    command = [sys.executable, "-m", "battery.everything", interface, str(home)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=home.parent, env=environment)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def run_code(code, home):
    """Run code that can import the battery and return the lines it prints."""
    result = subprocess.run(
        [sys.executable, "-c", code, str(home)], capture_output=True, text=True, timeout=60, cwd=home.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


@pytest.mark.promise("promise-6")
def test_no_verb_of_the_library_tries_to_open_a_connection(home):
    assert run_everything(home, "library") == {"attempts": [], "wrong": []}


@pytest.mark.promise("promise-6")
def test_no_plain_command_tries_to_open_a_connection(home):
    assert run_everything(home, "cli") == {"attempts": [], "wrong": []}


@pytest.mark.promise("promise-6")
def test_a_gateway_listens_on_loopback_only_and_opens_no_connection(home):
    from battery import gateway

    command = [sys.executable, "-m", "battery.everything", "gateway", str(home)]
    report = gateway.judged(command, {**os.environ, "PYTHONPATH": str(ROOT)}, str(home.parent))
    assert report == {"attempts": [], "bound": ["127.0.0.1"], "wrong": []}


def test_a_gateway_that_listens_elsewhere_or_connects_is_found(home):
    home.mkdir()
    code = (
        "import socket, sys; from battery import everything; everything.listen(sys.argv[1], serves=True)\n"
        "socket.socket().bind(('127.0.0.1', 0)); socket.getaddrinfo('127.0.0.1', 80)\n"
        "acts = (lambda: socket.socket().bind(('0.0.0.0', 0)), lambda: socket.socket().bind(('', 0)),\n"
        "    lambda: socket.socket().connect(('127.0.0.1', 9)), lambda: socket.getaddrinfo('example.com', 80))\n"
        "for act in acts:\n"
        "    try: act()\n"
        "    except everything.NoNetwork as error: print('refused', error)\n"
        "print(everything.bound, len(everything.attempts))\n"
    )
    assert run_code(code, home) == ["refused socket.bind", "refused socket.bind", "refused socket.connect",
                                 "refused socket.getaddrinfo", "['127.0.0.1'] 4"]  # fmt: skip


def test_an_attempt_to_connect_is_found_and_refused(home):
    home.mkdir()
    code = (
        "import socket, sys; from battery import everything; everything.listen(sys.argv[1])\n"
        "inside = socket.socket(socket.AF_UNIX); inside.bind(sys.argv[1] + '/s')\n"
        "for act in (lambda: socket.create_connection(('127.0.0.1', 9)), lambda: socket.getaddrinfo('example.com', 80)):\n"
        "    try: act()\n"
        "    except everything.NoNetwork as error: print('refused', error)\n"
        "print(len(everything.attempts))\n"
    )
    assert run_code(code, home) == ["refused socket.getaddrinfo", "refused socket.getaddrinfo", "2"]


def test_only_commands_that_serve_or_start_another_program_are_not_run():
    from battery.everything import SERVES

    from holdfast.cli.command_table import COMMANDS

    assert set(SERVES) <= set(COMMANDS)
    assert set(SERVES) == {
        "mcp", "resident", "serve", "prove", "bench speed", "bench retrieval", "bench context", "bench load", "demo",
        "edit", "hook",
    }  # fmt: skip
