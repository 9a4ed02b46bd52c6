"""Nothing embedded opens a connection: every verb and every plain command runs in a child in which sockets are refused, and so
does a gateway, which may listen on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


def everything(home, door, **env):
    """What the battery's child says of itself; models are left out, but where the test asks for them."""
    child = [sys.executable, "-m", "battery.everything", door, str(home)]
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    done = subprocess.run(child, capture_output=True, text=True, timeout=120, cwd=home.parent, env=surroundings)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def child(code, home):
    """What a few lines print that are run with the battery's ears open."""
    done = subprocess.run(
        [sys.executable, "-c", code, str(home)], capture_output=True, text=True, timeout=60, cwd=home.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.promise("promise-6")
def test_no_verb_of_the_library_tries_to_open_a_connection(home):
    assert everything(home, "library") == {"attempts": [], "wrong": []}


@pytest.mark.promise("promise-6")
def test_no_plain_command_tries_to_open_a_connection(home):
    assert everything(home, "cli") == {"attempts": [], "wrong": []}


@pytest.mark.promise("promise-6")
def test_a_gateway_listens_on_loopback_and_no_connection_leaves_whatever_is_asked_of_it(home):
    from battery import gateway

    child = [sys.executable, "-m", "battery.everything", "gateway", str(home)]
    told = gateway.judged(child, {**os.environ, "PYTHONPATH": str(ROOT)}, str(home.parent))
    assert told == {"attempts": [], "bound": ["127.0.0.1"], "wrong": []}


def test_a_gateway_may_listen_on_loopback_alone_and_connect_to_nobody(home):
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
    assert child(code, home) == ["refused socket.bind", "refused socket.bind", "refused socket.connect",
                                 "refused socket.getaddrinfo", "['127.0.0.1'] 4"]  # fmt: skip


def test_an_attempt_to_connect_would_be_seen_and_refused(home):
    home.mkdir()
    code = (
        "import socket, sys; from battery import everything; everything.listen(sys.argv[1])\n"
        "inside = socket.socket(socket.AF_UNIX); inside.bind(sys.argv[1] + '/s')\n"
        "for act in (lambda: socket.create_connection(('127.0.0.1', 9)), lambda: socket.getaddrinfo('example.com', 80)):\n"
        "    try: act()\n"
        "    except everything.NoNetwork as error: print('refused', error)\n"
        "print(len(everything.attempts))\n"
    )
    assert child(code, home) == ["refused socket.getaddrinfo", "refused socket.getaddrinfo", "2"]


def test_every_command_that_is_left_out_serves_or_starts_another_program():
    from battery.everything import SERVES

    from holdfast.cli.command_table import COMMANDS

    assert set(SERVES) <= set(COMMANDS)
    assert set(SERVES) == {
        "mcp", "resident", "serve", "prove", "bench speed", "bench retrieval", "bench context", "bench load", "demo",
        "edit", "hook",
    }  # fmt: skip
