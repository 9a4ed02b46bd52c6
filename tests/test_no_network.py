"""Nothing embedded opens a connection: every verb and every plain command runs in a child in which sockets are refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def everything(home, door, **env):
    """What the battery's child says of itself; models are left out, but where the test asks for them."""
    child = [sys.executable, "-m", "battery.everything", door, str(home)]
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    done = subprocess.run(child, capture_output=True, text=True, timeout=120, cwd=home.parent, env=surroundings)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.promise("promise-6")
def test_no_verb_of_the_library_tries_to_open_a_connection(home):
    assert everything(home, "library") == {"attempts": [], "wrong": []}


@pytest.mark.promise("promise-6")
def test_no_plain_command_tries_to_open_a_connection(home):
    assert everything(home, "cli") == {"attempts": [], "wrong": []}


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
    done = subprocess.run(
        [sys.executable, "-c", code, str(home)], capture_output=True, text=True, timeout=60, cwd=home.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout.splitlines() == ["refused socket.getaddrinfo", "refused socket.getaddrinfo", "2"], done.stderr


def test_every_command_that_is_left_out_serves_or_starts_another_program():
    sys.path.insert(0, str(ROOT))
    from battery.everything import SERVES

    from holdfast.doors.cli.table import COMMANDS

    assert set(SERVES) <= set(COMMANDS)
    assert set(SERVES) == {"mcp", "resident", "prove", "bench", "demo", "edit", "hook"}
