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


def run_network_child(home, interface):
    """Return the result that the battery's child prints."""
    child = [sys.executable, "-m", "battery.network_child", interface, str(home)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(child, capture_output=True, text=True, timeout=120, cwd=home.parent, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def run_code(code, home):
    """Return the lines that a program prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, str(home)], capture_output=True, text=True, timeout=60, cwd=home.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.promise("promise-6")
def test_no_verb_of_the_library_tries_to_open_a_connection(home):
    assert run_network_child(home, "library") == {"attempts": [], "problems": []}


@pytest.mark.promise("promise-6")
def test_no_plain_command_tries_to_open_a_connection(home):
    assert run_network_child(home, "cli") == {"attempts": [], "problems": []}


@pytest.mark.promise("promise-6")
def test_a_gateway_listens_on_loopback_and_no_connection_leaves_whatever_is_asked_of_it(home):
    from battery import network

    child = [sys.executable, "-m", "battery.network_child", "gateway", str(home)]
    result = network.run_gateway(child, {**os.environ, "PYTHONPATH": str(ROOT)}, str(home.parent))
    assert result == {"attempts": [], "bound": ["127.0.0.1"], "problems": []}


def test_a_gateway_that_listens_elsewhere_or_connects_is_found(home):
    home.mkdir()
    code = (
        "import socket, sys; from battery import network_child; network_child.refuse_network(sys.argv[1], serves=True)\n"
        "socket.socket().bind(('127.0.0.1', 0)); socket.getaddrinfo('127.0.0.1', 80)\n"
        "acts = (lambda: socket.socket().bind(('0.0.0.0', 0)), lambda: socket.socket().bind(('', 0)),\n"
        "    lambda: socket.socket().connect(('127.0.0.1', 9)), lambda: socket.getaddrinfo('example.com', 80))\n"
        "for act in acts:\n"
        "    try: act()\n"
        "    except network_child.NetworkRefused as error: print('refused', error)\n"
        "print(network_child.bound, len(network_child.attempts))\n"
    )
    assert run_code(code, home) == ["refused socket.bind", "refused socket.bind", "refused socket.connect",
                                 "refused socket.getaddrinfo", "['127.0.0.1'] 4"]  # fmt: skip


def test_an_attempt_to_connect_is_found_and_refused(home):
    home.mkdir()
    code = (
        "import socket, sys; from battery import network_child; network_child.refuse_network(sys.argv[1])\n"
        "inside = socket.socket(socket.AF_UNIX); inside.bind(sys.argv[1] + '/s')\n"
        "for act in (lambda: socket.create_connection(('127.0.0.1', 9)), lambda: socket.getaddrinfo('example.com', 80)):\n"
        "    try: act()\n"
        "    except network_child.NetworkRefused as error: print('refused', error)\n"
        "print(len(network_child.attempts))\n"
    )
    assert run_code(code, home) == ["refused socket.getaddrinfo", "refused socket.getaddrinfo", "2"]


def test_every_command_that_is_left_out_serves_or_starts_another_program():
    from battery.network_child import NOT_RUN

    from holdfast.cli.command_table import COMMANDS

    assert set(NOT_RUN) <= set(COMMANDS)
    assert set(NOT_RUN) == {
        "mcp", "resident", "serve", "ui", "prove", "bench speed", "bench retrieval", "bench context", "bench load",
        "bench console", "demo", "edit", "hook", "models install",
    }  # fmt: skip
