"""`holdfast ui` finds the server of its home, and what a killed server left behind counts for nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

from holdfast.server import running


def start(home, *arguments):
    command = [sys.executable, "-m", "holdfast", "--home", str(home), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)


def test_a_server_is_found_while_it_runs(home):
    with running.announce(str(home), "http://127.0.0.1:1"):
        assert running.find_server(str(home)).url == "http://127.0.0.1:1"
        assert (home / "run" / "server.json").stat().st_mode & 0o777 == 0o600
    assert running.find_server(str(home)) is None and not (home / "run" / "server.json").exists()


def test_a_killed_server_is_not_found(home):
    process = start(home, "serve", "--port", "0", "--json")
    try:
        url = json.loads(process.stdout.readline())["url"]
        assert running.find_server(str(home)).url == url
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    assert (home / "run" / "server.json").exists() and running.find_server(str(home)) is None


def test_a_file_that_is_not_ours_to_read_counts_for_nothing(home):
    (home / "run").mkdir(parents=True, mode=0o700)
    broken = ("", "[]", '{"url": 1}', '{"url": "u", "pid": "x", "process": ""}', '{"url": "u", "pid": 1, "process": ""}')
    for text in broken:
        (home / "run" / "server.json").write_text(text)
        assert running.find_server(str(home)) is None, text


def test_a_second_server_of_the_home_does_not_remove_the_file_of_the_first(home):
    with running.announce(str(home), "http://127.0.0.1:1"):
        with running.announce(str(home), "http://127.0.0.1:2"):
            other = {"url": "http://127.0.0.1:3", "pid": os.getpid(), "process": "x"}
            (home / "run" / "server.json").write_text(json.dumps(other))
        assert (home / "run" / "server.json").exists()


def test_ui_answers_with_json_and_uses_the_server_that_runs(home):
    process = start(home, "serve", "--port", "0", "--json")
    try:
        url = json.loads(process.stdout.readline())["url"]
        second = start(home, "ui", "--json")
        said = json.loads(second.communicate(timeout=60)[0])
        assert said["url"] == url and said["link"].startswith(f"{url}/sign-in?code=") and said["seconds"] == 60
    finally:
        process.terminate()
        process.communicate(timeout=60)
