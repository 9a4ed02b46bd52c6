"""The program in a process of its own: closed streams, full disks, Ctrl-C and the demo."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from holdfast import Memory
from holdfast.cli import error_report
from holdfast.cli.command_table import COMMANDS


def test_the_program_finds_its_home_and_project(tmp_path):
    env = {**os.environ, "HOLDFAST_HOME": str(tmp_path / "elsewhere")}
    run = [sys.executable, "-m", "holdfast"]
    folder = tmp_path / "my-project"
    folder.mkdir()
    subprocess.run([*run, "store", "found again"], cwd=folder, env=env, check=True, capture_output=True)
    said = subprocess.run([*run, "recall", "again"], cwd=folder, env=env, check=True, capture_output=True)
    assert b"found again" in said.stdout
    assert not list(Path(env["HOME"]).iterdir())


def test_a_closed_pipe_is_not_an_error(program, home):
    with Memory(home, project="demo") as memory:
        memory.store_many([{"text": f"note {number} " + "word " * 200} for number in range(300)])
    for words in (["list"], ["list", "--json"], ["get", "nothing"], ["--help"]):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(program.command(*words), stdout=writer, stderr=subprocess.PIPE, timeout=60)
        os.close(writer)
        assert b"Traceback" not in done.stderr and b"Broken" not in done.stderr
        assert done.returncode == (1 if "get" in words else 0)


def test_stdout_that_cannot_be_written_is_disk_trouble(program):
    with open("/dev/full", "w") as full:
        done = subprocess.run(program.command("--help"), stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 5
    assert b"No space left" in done.stderr and b"Traceback" not in done.stderr


@pytest.mark.parametrize("json", [(), ("--json",)])
def test_an_answer_that_cannot_be_written_says_that_it_is_done(program, json):
    with open("/dev/full", "w") as full:
        command = program.command("store", "text", "--key", "k", *json)
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 5 and (json or b"its output could not be written" in done.stderr)
    assert program("get", "k").out == "text\n"


def test_closed_streams_are_not_an_error(program):
    line = " ".join(f"'{word}'" for word in program.command("store", "text", "--key", "k"))
    assert subprocess.run(["sh", "-c", f"{line} >&- 2>&- <&-"], timeout=60).returncode == 0
    assert program("get", "k").out == "text\n"


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_ctrl_c_prints_no_traceback_and_with_json_one_document(program, tmp_path, words):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = program.command("log", str(pipe), "--session", "s1", *words)
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with open(pipe, "wb"):  # opens when the program has opened its end: it is waiting for us now
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    message, fix = (
        "interrupted; all, some or none of it may be stored",
        "Run it again; what is stored already is not stored twice",
    )
    if words:
        said = {"error": "interrupted", "message": message, "fix": fix, "exit_code": 130}
        assert (json.loads(out), err) == (said, b"")
    else:
        assert (out, err.decode()) == (b"", f"holdfast: {message}\n  {fix}\n")


def _interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_an_interrupted_purge_says_that_it_may_have_begun(holdfast, monkeypatch, words):
    holdfast("store", "text", "--key", "k")
    with monkeypatch.context() as patched:
        patched.setattr("holdfast.verbs.purge.job.PurgeJob.scrub", _interrupt)
        said = holdfast("purge", "k", "--yes", *words)
    told = said.json if words else {"message": said.err, "fix": said.err}
    assert said.code == 130 and "interrupted; the purge may have started" in told["message"]
    assert "Run `holdfast doctor` to finish it; if nothing was started, run the purge again" in told["fix"]
    assert holdfast("get", "k").code == 1 and holdfast("doctor").code == 0
    assert [receipt["state"] for receipt in holdfast("receipts", "--json").json] == ["done"]


@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "hook"])
def test_every_interrupted_command_says_what_to_do(monkeypatch, holdfast, command):
    monkeypatch.setattr("holdfast.cli.runner._load_handler", lambda _: _interrupt)
    args = [arg.name for arg in COMMANDS[command].args if arg.required]
    said = holdfast(*command.split(), *args, "--json")
    assert (said.code, said.json["error"], said.json["exit_code"]) == (130, "interrupted", 130) and said.json["fix"]
    said = holdfast(*command.split(), *args)
    assert said.code == 130 and (said.err == "") == (command not in error_report.CHANGING_COMMANDS)


@pytest.mark.parametrize("command", ["agent add", "agent rotate"])
def test_an_interrupted_answer_may_have_lost_the_token(command):
    said = error_report.describe_interrupt(command, KeyboardInterrupt(), answered=True)
    assert "may have been created" in said.message and "agent rotate" in said.fix
    assert (
        error_report.describe_interrupt("store", KeyboardInterrupt(), answered=True).fix == "There is no need to run it again"
    )


def test_every_changing_command_exists():
    assert error_report.CHANGING_COMMANDS.keys() <= COMMANDS.keys()


@pytest.mark.parametrize("words", [("store", "-"), ("purge", "--text", "-", "--yes")])
def test_an_interrupt_while_waiting_for_stdin_has_done_nothing(holdfast, monkeypatch, words):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=SimpleNamespace(read=_interrupt), isatty=lambda: False))
    said = holdfast(*words)
    assert (said.code, said.out, said.err) == (130, "", "holdfast: interrupted; nothing was changed\n  Run it again\n")


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_an_import_interrupted_while_reading_has_imported_nothing(program, tmp_path, words):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    running = subprocess.Popen(program.command("import", str(pipe), *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with open(pipe, "wb"):
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    said = {
        "error": "interrupted",
        "message": "interrupted before anything was imported",
        "fix": "Run it again",
        "exit_code": 130,
    }
    assert running.returncode == 130
    if words:
        assert (json.loads(out), err) == ({**said, "stored": 0}, b"")
    else:
        assert (out, err.decode()) == (b"", "holdfast: interrupted before anything was imported\n  Run it again\n")


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_an_import_interrupted_while_writing_can_be_run_again(holdfast, monkeypatch, words):
    lines = b"".join(b'{"text": "note %d"}\n' % number for number in range(40))
    rename, done = os.rename, []

    def interrupted(*given, **more):
        done.append(given)
        if len(done) == 20:
            raise KeyboardInterrupt
        return rename(*given, **more)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", interrupted)
        said = holdfast("import", "-", *words, stdin=lines)
    assert said.code == 130
    told = said.json if words else {"message": said.err, "fix": said.err, "stored": None}
    assert "interrupted while 40 notes were imported: none, some or all may be stored" in told["message"]
    assert "Run it again: stored notes stay unchanged" in told["fix"] and told["stored"] is None
    assert "Traceback" not in said.err and bool(said.err) != bool(words)
    again = holdfast("import", "-", "--json", stdin=lines).json
    assert 0 < again["created"] < 40 and again["created"] + again["unchanged"] == 40


def test_an_interrupt_during_the_answer_is_reported_on_stderr(holdfast, monkeypatch):
    def interrupted(call):
        call.close()
        raise KeyboardInterrupt

    holdfast("store", "text", "--key", "k")
    monkeypatch.setattr("holdfast.cli.runner._load_handler", lambda _: lambda call: call.answer({}, print) or interrupted(call))
    said = holdfast("list", "--json")
    assert (said.code, said.json, said.err) == (
        130,
        {},
        "holdfast: interrupted; the output may be incomplete\n  Run it again\n",
    )
    said = holdfast("store", "text", "--json")
    assert (
        said.err == "holdfast: interrupted; it is done, but the output may be incomplete\n  There is no need to run it again\n"
    )


def test_invalid_utf8_is_rejected_as_an_argument_and_kept_in_a_file(program, home):
    assert program("store", b"\xff\xfe".decode("utf-8", "surrogateescape")).code == 3
    notes = home / "shelf/projects/demo/notes"
    notes.mkdir(parents=True, mode=0o700)
    (notes / "hand.md").write_bytes(b"caf\xe9\n")
    assert program("get", "hand").out.startswith("caf")
    assert json.loads(program("get", "hand", "--json").out)["text"].startswith("caf")
    assert program("list").code == program("recall", "caf").code == 0
    assert (notes / "hand.md").read_bytes() == b"caf\xe9\n"


def test_the_demo_runs_its_commands_and_leaves_nothing_behind(program, tmp_path):
    said = program("demo", env={"TMPDIR": str(tmp_path)})
    assert said.code == 0, said.err
    for command in ("store", "recall", "fact", "facts", "forget", "restore", "brief"):
        assert f"$ holdfast {command} " in said.out or f"$ holdfast {command}\n" in said.out
    assert "updated deploys in project:demo" in said.out
    assert "<!-- holdfast:history -->" in said.out
    assert "~/.holdfast/shelf/projects/demo/notes/deploys.md" in said.out
    assert not list(tmp_path.glob("holdfast-demo-*"))
    assert not (Path(os.environ["HOME"]) / ".holdfast").exists()
