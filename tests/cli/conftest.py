"""Fixtures that run a command: in this process, in a process of its own, and in a terminal."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest
from cli_result import CliResult

from holdfast.cli import main


@pytest.fixture
def holdfast(home, capsys, monkeypatch, tmp_path):
    """Run a command in this process, on a home and in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*words, stdin=None, project="demo"):
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = main(["--home", str(home), *(["--project", project] if project else []), *words])
        said = capsys.readouterr()
        return CliResult(code, said.out, said.err)

    return run


@pytest.fixture
def program(home, tmp_path):
    """Run a command in a process of its own."""

    def command(*words):
        return [sys.executable, "-m", "holdfast", "--home", str(home), "--project", "demo", *words]

    def run(*words, stdin=b"", **more):
        more["env"] = {**os.environ, **more.get("env", {})}
        done = subprocess.run(command(*words), input=stdin, capture_output=True, cwd=tmp_path, timeout=60, **more)
        return CliResult(done.returncode, done.stdout.decode(), done.stderr.decode())

    run.command = command
    return run


@pytest.fixture
def terminal(home, tmp_path):
    """Run the program in a terminal of its own; return its exit code and everything it showed."""

    def run(*words, typed="", columns=80, **env):
        controller, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        command = [sys.executable, "-m", "holdfast", "--home", str(home), "--project", "demo", *words]
        clean = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        running = subprocess.Popen(
            command, stdin=terminal, stdout=terminal, stderr=terminal, cwd=tmp_path, env={**clean, "TERM": "xterm", **env}
        )
        os.close(terminal)
        try:
            os.write(controller, typed.encode())
            shown = b"".join(iter(lambda: _read_terminal(controller), b""))
        finally:
            os.close(controller)
        return running.wait(60), shown.decode().replace("\r\n", "\n")

    return run


def _read_terminal(fd):
    try:
        return os.read(fd, 65536)
    except OSError:  # how a terminal ends when the program has closed it
        return b""
