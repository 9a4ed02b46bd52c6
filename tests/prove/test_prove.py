"""`holdfast prove`: a fake client that works passes every check, and each kind of failure fails its own check."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.clients.base import Change, Client, InstallTarget, Session
from holdfast.clients.parts import server_entry, to_json
from holdfast.errors import NotFound, UsageError
from holdfast_prove import checks, run
from holdfast_prove.model_apis import Message, ModelRequest
from holdfast_prove.model_server import ReceivedRequest
from holdfast_prove.sandbox import Sandbox

HOLDFAST = str(Path(sys.executable).parent / "holdfast")
SCRIPT = Path(__file__).parents[1] / "support" / "fake_client.py"
FACT = "a changed fact has its new value only"


class FakeClient(Client):
    name = "claude-code"  # it uses the hook format of Claude Code
    title = "Fake client"
    programs = ("fake-client",)
    events = {"SessionStart": "start", "UserPromptSubmit": "prompt"}

    def __init__(self, mode=""):
        self.mode = mode

    def changes(self, place):
        server = server_entry(self, place)
        hooks = {ours: place.shell("hook", self.name, own) for own, ours in self.events.items()}
        settings = {"hooks": hooks, "server": [server["command"], *server["args"]]}
        return [Change(os.path.join(place.home, "fake-client.json"), "file", to_json(settings))]

    def session(self, place, url, prompt, program):
        return Session((program, str(SCRIPT), url, prompt, os.path.join(place.home, "fake-client.json"), self.mode))


BATTERY = pytest.mark.battery


@pytest.fixture
def proof(tmp_path):
    """Return a function that runs the fake client in one of its modes and checks the run."""

    def prove(mode="", seconds=60):
        root = tmp_path / (mode or "good")
        root.mkdir()
        client = FakeClient(mode)
        environ = {"PATH": os.environ["PATH"]}
        done = run.run_client(client, sys.executable, command=(HOLDFAST,), environ=environ, root=str(root), seconds=seconds)
        return checks.check_run(client, done), done

    return prove


def failed_checks(proof):
    return [check.name for check in proof.checks if not check.ok]


def test_a_working_client_passes_every_check(proof):
    good, done = proof()
    assert (failed_checks(good), good.ok, good.printed) == ([], True, "")
    seen = {check.name: check.seen for check in good.checks}
    assert seen["the briefing reached the model"] == "in a system message"
    assert seen["our tools are offered"] == "fake_memory_recall"
    arrived, _, whole, _ = seen["nothing of it was cut"].split()
    assert arrived == whole
    assert 8800 < int(whole.replace(",", "")) <= 9000  # the most that a briefing may have
    assert [("briefing" in str(one.pieces), "recalled note" in str(one.pieces)) for one in good.requests] == [
        (True, False), (True, True),
    ]  # fmt: skip
    assert seen[FACT] == "Canary share of traffic: 10 %"
    assert done.recall_word.encode() not in done.requests[0].body
    assert done.recall_word.encode() in done.requests[-1].body


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        pytest.param("cuts", ["nothing of it was cut"], marks=BATTERY),
        pytest.param("escapes", [], marks=BATTERY),
        ("drops", ["the briefing reached the model", "nothing of it was cut", FACT]),
        pytest.param(
            "untrusting",
            ["our hooks were called", "the briefing reached the model", "nothing of it was cut", FACT],
            marks=BATTERY,
        ),
        ("toolless", ["our tools are offered", "a recall came back to the model"]),
        pytest.param("denies", ["a recall came back to the model"], marks=BATTERY),
        pytest.param("mute", ["the server's instructions reached the model"], marks=BATTERY),
    ],
)
def test_each_failure_fails_its_own_check_and_has_a_fix(proof, mode, names):
    bad, _ = proof(mode)
    assert failed_checks(bad) == names
    assert all(bool(check.fix) != check.ok for check in bad.checks)


@pytest.mark.parametrize(
    ("text", "ok", "seen"),
    [
        ("Canary, share of traffic: 10 % (since 2026-09-01)", True, "share of traffic: 10 %"),
        ("- ~~[2026-02-01] share of traffic: 5 %~~\n- [2026-09-01] share of traffic: 10 %", False, "old value 5 % reached"),
        ("Canary, share of traffic: 10 %, until then 5 %", False, "old value 5 % reached"),
        ("Canary, share of traffic: 25 %", False, "10 % did not reach the model"),
        ("battery 10 %", False, "did not reach"),
    ],
)
def test_the_fact_check_passes_with_the_current_value_and_fails_with_an_old_one(text, ok, seen):
    def check(role):
        parsed = ModelRequest((Message("user", run.PROMPT), Message(role, text)))
        request = ReceivedRequest("POST", "/v1/messages", b"", parsed)
        done = run.Run(
            client="c", program="p", exit_code=0, seconds=1, output="", briefing_word="b", recall_word="d", requests=(request,)
        )
        return next(check for check in checks.check_run(FakeClient(), done).checks if check.name == FACT)

    assert check("system").ok == ok
    assert seen in check("system").seen
    assert not check("tool").ok  # a value that the model had to ask for does not count


def test_a_client_that_does_not_start_the_server_fails_with_that_reason(proof):
    bad, _ = proof("serverless")
    assert {"MCP handshake", "our tools are offered", "a recall came back to the model"} <= set(failed_checks(bad))
    assert next(check for check in bad.checks if check.name == "MCP handshake").seen == "the client did not start the server"


def test_a_failing_program_fails_its_check_and_its_output_is_shown(proof):
    bad, _ = proof("fails")
    assert failed_checks(bad)[:2] == ["the program ran", "it asked the model"]
    assert bad.checks[0].seen.startswith("exit code 3")
    assert "no such option" in bad.printed


def is_running(pid):
    """Return whether a process runs and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.battery
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes outside their group are found through /proc")
def test_a_hanging_program_is_stopped_with_all_processes_it_started(proof, tmp_path):
    bad, done = proof("hangs", seconds=8)
    assert done.exit_code is None
    assert bad.checks[0].seen.startswith("stopped after")
    stray = int((tmp_path / "hangs" / "tmp" / "stray").read_text())
    assert not is_running(stray)


def test_a_run_inherits_only_the_path_from_the_users_environment(tmp_path):
    sandbox = Sandbox(str(tmp_path))
    environ = {"PATH": "/bin", "OPENAI_API_KEY": "sk-1", "HOME": "/home/ada", "NODE_OPTIONS": "x"}
    env = run.make_environment(environ, sandbox, "http://m")
    assert env["HOME"] == sandbox.home
    assert not {"OPENAI_API_KEY", "NODE_OPTIONS"} & set(env)
    assert {env["HTTPS_PROXY"], env["http_proxy"]} == {"http://m"}


def test_the_sandbox_has_one_word_in_briefings_and_one_that_only_a_recall_finds(tmp_path):
    from holdfast import Memory, config

    sandbox = Sandbox(str(tmp_path))
    sandbox.create("a1b2c3", "d4e5f6")
    with Memory(config=config.load(sandbox.memory, {"HOME": sandbox.home}), cwd=sandbox.project) as memory:
        briefing = memory.brief().text
        found = memory.recall(run.QUERY, mode="keyword")
    assert ("a1b2c3" in briefing, "d4e5f6" in briefing) == (True, False)
    assert "d4e5f6" in found[0].text


def test_a_missing_program_is_rejected(tmp_path):
    place = InstallTarget(home=str(tmp_path), environ={"PATH": str(tmp_path)}, command=(HOLDFAST,))
    with pytest.raises(NotFound, match="--program"):
        run.find_program(FakeClient(), place, None)
    with pytest.raises(UsageError, match="not an executable program"):
        run.find_program(FakeClient(), place, str(tmp_path / "none"))
    (tmp_path / "fake-client").write_text("#!/bin/sh\n")
    (tmp_path / "fake-client").chmod(0o755)
    assert run.find_program(FakeClient(), place, None) == str(tmp_path / "fake-client")


# --- the command ----------------------------------------------------------------------------------------------------------


def run_holdfast(*words, **env):
    return subprocess.run(
        [HOLDFAST, *words], capture_output=True, text=True, timeout=120, env={**os.environ, **env}, stdin=subprocess.DEVNULL
    )


def clients_by_headless_support():
    """Return the names of the clients that can be run headless, and of the others."""
    from holdfast import clients

    place = InstallTarget(home="/h", environ={}, command=("holdfast",))
    known = [(name, clients.load(name)) for name in clients.names()]
    headless = [name for name, client in known if client.session(place, "http://m", "hi", "p")]
    return headless, [name for name, _ in known if name not in headless]


def test_the_command_exits_with_1_if_a_check_fails_and_prints_json(tmp_path):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho version 9.8.7\n")
    program.chmod(0o755)
    headless, _ = clients_by_headless_support()
    done = run_holdfast("prove", headless[0], "--program", str(program), "--json", "--keep", str(tmp_path / "kept"))
    report = json.loads(done.stdout)
    assert (done.returncode, report["ok"], report["version"]) == (1, False, "9.8.7")
    assert [check["ok"] for check in report["checks"]][:2] == [True, False]
    assert (tmp_path / "kept").is_dir()
    shown = run_holdfast("prove", headless[0], "--program", str(program))
    assert shown.returncode == 1
    assert "red    it asked the model" in shown.stdout
    assert "fix:" in shown.stdout


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes outside their group are found through /proc")
def test_the_program_ends_when_the_command_is_stopped(tmp_path):
    program, temp, pipe = tmp_path / "program", tmp_path / "temp", tmp_path / "pipe"
    temp.mkdir()
    os.mkfifo(pipe)
    program.write_text(f"#!/bin/sh\necho $$ > {pipe}\nexec sleep 600\n")
    program.chmod(0o755)
    words = [HOLDFAST, "prove", clients_by_headless_support()[0][0], "--program", str(program)]
    with open(tmp_path / "said", "w") as said:
        proving = subprocess.Popen(words, env={**os.environ, "TMPDIR": str(temp)}, stdout=said, stderr=said)
    pid = int(pipe.read_text())  # it runs
    proving.terminate()
    assert proving.wait(60) == 130
    assert not is_running(pid)
    assert list(temp.iterdir()) == []


def test_the_command_rejects_what_it_cannot_run(tmp_path):
    headless, others = clients_by_headless_support()
    assert len(headless) >= 7
    assert run_holdfast("prove", "nobody").returncode == 2
    assert run_holdfast("prove", headless[0], PATH=str(tmp_path)).returncode == 1
    assert "cannot run without a person" in run_holdfast("prove", others[0], "--program", sys.executable).stderr
    assert run_holdfast("prove", headless[0], "--program", sys.executable, "--keep", str(tmp_path)).returncode == 2


def test_a_run_leaves_no_files_behind(tmp_path):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    temp, user = tmp_path / "temp", tmp_path / "user"
    temp.mkdir()
    user.mkdir()
    headless, _ = clients_by_headless_support()
    run_holdfast("prove", headless[0], "--program", str(program), TMPDIR=str(temp), HOME=str(user))
    assert (list(temp.iterdir()), list(user.iterdir())) == ([], [])
