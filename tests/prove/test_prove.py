"""The proof itself: a pretend client that does everything right is all green, and each way to fail turns its own check red."""

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
from holdfast_prove.dialects.base import Ask, Said
from holdfast_prove.model_server import Request
from holdfast_prove.sandbox import Stage

HOLDFAST = str(Path(sys.executable).parent / "holdfast")
SCRIPT = Path(__file__).parents[1] / "support" / "pretend_client.py"
FACT = "a changed fact has its new value only"


class Pretend(Client):
    name = "claude-code"  # whose dialect it speaks
    title = "Pretend"
    programs = ("pretend",)
    events = {"SessionStart": "start", "UserPromptSubmit": "prompt"}

    def __init__(self, mode=""):
        self.mode = mode

    def changes(self, place):
        words = server_entry(self, place)
        hooks = {ours: place.shell("hook", self.name, own) for own, ours in self.events.items()}
        told = {"hooks": hooks, "server": [words["command"], *words["args"]]}
        return [Change(os.path.join(place.home, "pretend.json"), "file", to_json(told))]

    def session(self, place, url, prompt, program):
        return Session((program, str(SCRIPT), url, prompt, os.path.join(place.home, "pretend.json"), self.mode))


BATTERY = pytest.mark.battery


@pytest.fixture
def proof(tmp_path):
    """Runs the pretend client in one of its modes and judges what was seen."""

    def prove(mode="", seconds=60):
        root = tmp_path / (mode or "good")
        root.mkdir()
        client = Pretend(mode)
        seen = run.run(client, sys.executable, (HOLDFAST,), {"PATH": os.environ["PATH"]}, str(root), seconds)
        return checks.judge(client, seen), seen

    return prove


def red(proof):
    return [check.name for check in proof.checks if not check.ok]


def test_a_client_that_passes_everything_on_is_all_green(proof):
    good, seen = proof()
    assert (red(good), good.ok, good.printed) == ([], True, "")
    told = {check.name: check.seen for check in good.checks}
    assert told["the briefing reached the model"] == "in a system message"
    assert told["our tools are offered"] == "pretend_memory_recall"
    arrived, _, whole, _ = told["nothing of it was cut"].split()
    assert arrived == whole
    assert 8800 < int(whole.replace(",", "")) <= 9000  # as much as a briefing may ever have
    assert [("briefing" in str(one.pieces), "recalled note" in str(one.pieces)) for one in good.requests] == [
        (True, False), (True, True),
    ]  # fmt: skip
    assert told[FACT] == "Canary share of traffic: 10 %"
    assert seen.buried.encode() not in seen.requests[0].body
    assert seen.buried.encode() in seen.requests[-1].body


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
def test_each_failure_turns_its_own_check_red_and_has_a_fix(proof, mode, names):
    bad, _ = proof(mode)
    assert red(bad) == names
    assert all(bool(check.fix) != check.ok for check in bad.checks)


@pytest.mark.parametrize(
    ("told", "ok", "what"),
    [
        ("Canary, share of traffic: 10 % (since 2026-09-01)", True, "share of traffic: 10 %"),
        ("- ~~[2026-02-01] share of traffic: 5 %~~\n- [2026-09-01] share of traffic: 10 %", False, "old value 5 % reached"),
        ("Canary, share of traffic: 10 %, until then 5 %", False, "old value 5 % reached"),
        ("Canary, share of traffic: 25 %", False, "10 % reached the model in no request"),
        ("battery 10 %", False, "in no request"),
    ],
)
def test_a_fact_is_green_with_its_current_value_and_red_with_an_old_one(told, ok, what):
    def check(role):
        ask = Ask((Said("user", run.PROMPT), Said(role, told)))
        request = Request("POST", "/v1/messages", b"", ask)
        saw = run.Run(client="c", program="p", code=0, seconds=1, printed="", briefed="b", buried="d", requests=(request,))
        return next(check for check in checks.judge(Pretend(), saw).checks if check.name == FACT)

    assert check("system").ok == ok
    assert what in check("system").seen
    assert not check("tool").ok  # what the model had to ask for was not told


def test_a_client_that_does_not_start_the_server_is_told_so(proof):
    bad, _ = proof("serverless")
    assert {"MCP handshake", "our tools are offered", "a recall came back to the model"} <= set(red(bad))
    assert next(check for check in bad.checks if check.name == "MCP handshake").seen == "the client did not start the server"


def test_a_program_that_fails_is_red_and_its_last_words_are_shown(proof):
    bad, _ = proof("fails")
    assert red(bad)[:2] == ["the program ran", "it asked the model"]
    assert bad.checks[0].seen.startswith("exit code 3")
    assert "no such option" in bad.printed


def alive(pid):
    """Whether it still runs: what was killed may wait for somebody to notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.battery
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="what left its group is found through /proc")
def test_a_program_that_hangs_is_stopped_with_all_that_it_started(proof, tmp_path):
    bad, seen = proof("hangs", seconds=8)
    assert seen.code is None
    assert bad.checks[0].seen.startswith("stopped after")
    stray = int((tmp_path / "hangs" / "tmp" / "stray").read_text())
    assert not alive(stray)


def test_a_private_run_gets_nothing_of_the_users_environment_but_the_path(tmp_path):
    stage = Stage(str(tmp_path))
    env = run._environment({"PATH": "/bin", "OPENAI_API_KEY": "sk-1", "HOME": "/home/ada", "NODE_OPTIONS": "x"}, stage, "http://m")
    assert env["HOME"] == stage.home
    assert not {"OPENAI_API_KEY", "NODE_OPTIONS"} & set(env)
    assert {env["HTTPS_PROXY"], env["http_proxy"]} == {"http://m"}


def test_the_stage_holds_one_word_for_briefings_and_one_that_only_a_recall_finds(tmp_path):
    from holdfast import Memory, config

    stage = Stage(str(tmp_path))
    stage.build("a1b2c3", "d4e5f6")
    with Memory(config=config.load(stage.memory, {"HOME": stage.home}), cwd=stage.project) as memory:
        told = memory.brief().text
        found = memory.recall(run.QUERY, mode="keyword")
    assert ("a1b2c3" in told, "d4e5f6" in told) == (True, False)
    assert "d4e5f6" in found[0].text


def test_a_program_that_is_not_there_cannot_be_proven(tmp_path):
    place = InstallTarget(home=str(tmp_path), environ={"PATH": str(tmp_path)}, command=(HOLDFAST,))
    with pytest.raises(NotFound, match="--program"):
        run.find_program(Pretend(), place, None)
    with pytest.raises(UsageError, match="no program that can be run"):
        run.find_program(Pretend(), place, str(tmp_path / "none"))
    (tmp_path / "pretend").write_text("#!/bin/sh\n")
    (tmp_path / "pretend").chmod(0o755)
    assert run.find_program(Pretend(), place, None) == str(tmp_path / "pretend")


# --- the command ----------------------------------------------------------------------------------------------------------


def holdfast(*words, **env):
    return subprocess.run(
        [HOLDFAST, *words], capture_output=True, text=True, timeout=120, env={**os.environ, **env}, stdin=subprocess.DEVNULL
    )


def runnable():
    """A client that can be run without a person."""
    from holdfast import clients

    place = InstallTarget(home="/h", environ={}, command=("holdfast",))
    known = [(name, clients.load(name)) for name in clients.names()]
    yes = [name for name, client in known if client.session(place, "http://m", "hi", "p")]
    return yes, [name for name, _ in known if name not in yes]


def test_the_command_ends_with_1_where_something_is_red_and_tells_it_as_json(tmp_path):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho version 9.8.7\n")
    program.chmod(0o755)
    yes, _ = runnable()
    done = holdfast("prove", yes[0], "--program", str(program), "--json", "--keep", str(tmp_path / "kept"))
    told = json.loads(done.stdout)
    assert (done.returncode, told["ok"], told["version"]) == (1, False, "9.8.7")
    assert [check["ok"] for check in told["checks"]][:2] == [True, False]
    assert (tmp_path / "kept").is_dir()
    shown = holdfast("prove", yes[0], "--program", str(program))
    assert shown.returncode == 1
    assert "red    it asked the model" in shown.stdout
    assert "fix:" in shown.stdout


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="what left its group is found through /proc")
def test_the_command_takes_the_program_along_when_it_is_stopped(tmp_path):
    program, temp, pipe = tmp_path / "program", tmp_path / "temp", tmp_path / "pipe"
    temp.mkdir()
    os.mkfifo(pipe)
    program.write_text(f"#!/bin/sh\necho $$ > {pipe}\nexec sleep 600\n")
    program.chmod(0o755)
    words = [HOLDFAST, "prove", runnable()[0][0], "--program", str(program)]
    with open(tmp_path / "said", "w") as said:
        proving = subprocess.Popen(words, env={**os.environ, "TMPDIR": str(temp)}, stdout=said, stderr=said)
    pid = int(pipe.read_text())  # it runs
    proving.terminate()
    assert proving.wait(60) == 130
    assert not alive(pid)
    assert list(temp.iterdir()) == []


def test_the_command_refuses_what_it_cannot_run(tmp_path):
    yes, no = runnable()
    assert len(yes) >= 7
    assert holdfast("prove", "nobody").returncode == 2
    assert holdfast("prove", yes[0], PATH=str(tmp_path)).returncode == 1
    assert "cannot be run without a person" in holdfast("prove", no[0], "--program", sys.executable).stderr
    assert holdfast("prove", yes[0], "--program", sys.executable, "--keep", str(tmp_path)).returncode == 2


def test_a_proof_leaves_no_trace(tmp_path):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    temp, user = tmp_path / "temp", tmp_path / "user"
    temp.mkdir()
    user.mkdir()
    yes, _ = runnable()
    holdfast("prove", yes[0], "--program", str(program), TMPDIR=str(temp), HOME=str(user))
    assert (list(temp.iterdir()), list(user.iterdir())) == ([], [])
