"""What to do next is said so that whoever is told can do it: as a request over HTTP, as a command to who has one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import holdfast
from holdfast import Conflict, Memory, NotFound, errors
from holdfast.advice import _SAME, as_command, as_request
from holdfast.doors.cli.table import COMMANDS
from holdfast.doors.http import problem
from holdfast.doors.http.table import Routes
from http_gateway import served


@pytest.fixture
def gateway(home):
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[serve]\nrate = 0\n")
    with served(home) as one:
        yield one


def test_every_error_that_is_raised_says_what_to_do():
    """Read in the source: the second word of an error is its fix. One of HTTP alone has its code before that."""
    known = {name for name, one in vars(errors).items() if isinstance(one, type)} - {"Disabled"}  # which has its own
    root, missing = Path(holdfast.__file__).parent, []
    for path in root.rglob("*.py"):
        room = str(path.relative_to(root))
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        for call in [] if room == "errors.py" else calls:
            name = getattr(call.func, "id", getattr(call.func, "attr", ""))
            place = 1 if name in known else 2 if name == "Problem" and room.startswith("doors/http") else None
            fix = [*call.args[place:], *[one.value for one in call.keywords if one.arg == "fix"]] if place else [True]
            if not fix or (isinstance(fix[0], ast.Constant) and not fix[0].value):
                missing.append(f"{room}:{call.lineno} {ast.unparse(call)}")
    assert missing == []


@pytest.mark.parametrize(("command", "request_"), _SAME)
def test_each_advice_is_said_both_ways_and_names_what_there_is(command, request_):
    named = re.sub(r"\bY\b", "other_1", re.sub(r"\bX\b", "some-name", command))
    asked = as_request(f"First, {named} and then {named}.")
    assert "holdfast" not in asked and as_command(asked) == f"First, {named} and then {named}."
    if command.startswith("`holdfast"):
        words = command.split("`")[1].split()[1:]
        assert words[0] in COMMANDS or " ".join(words[:2]) in COMMANDS
    if path := re.match(r"`([A-Z]+) (\S+)", request_.rstrip("`")):
        assert Routes().find(path[1], path[2].rstrip("`")).route is not None


def test_what_has_nothing_to_do_with_it_stays_as_it_is():
    for text in ("", "Try again", "See /openapi.json for what it takes", "`holdfast migrate`", "Did you mean 'holdfast list'?"):
        assert as_request(text) == as_command(text) == text


def test_no_answer_over_http_asks_for_a_command(gateway):
    operator, agent, secretary = gateway.operator, gateway.agent("a"), gateway.agent("typist", "secretary")
    operator("PUT", "/v1/notes/agent/gone", {"text": "Words to be forgotten."})
    operator("DELETE", "/v1/notes/agent/gone")
    operator("PUT", "/v1/notes/agent/k", {"text": "Words that stand."})
    agent("PUT", "/v1/notes/agent/web", {"text": "From a page.", "origin": "web"})
    gateway.porter.revoke("typist")
    told = {
        "no note": (operator.get("/v1/notes/agent/nothing"), "`GET /v1/notes`"),
        "forgotten": (operator.get("/v1/notes/agent/gone"), "`POST /v1/notes/SCOPE/gone/restore`"),
        "no version": (operator.get("/v1/notes/agent/k?as_of=2020-01-01"), "`GET /v1/notes/SCOPE/k/history`"),
        "nothing to restore": (operator.post("/v1/notes/agent/k/restore"), "`GET /v1/trash`"),
        "no receipt": (operator.get("/v1/receipts/01ABC"), "`GET /v1/receipts`"),
        "no agent": (operator("DELETE", "/agents/nobody"), "`GET /agents`"),
        "agent is there": (operator.post("/agents", {"name": "a", "role": "operator"}), "`POST /agents/a/token`"),
        "agent is revoked": (operator.post("/agents/typist/token"), '`POST /agents {"name": "typist"}`'),
        "oneself": (operator("DELETE", "/agents/operator"), "another"),
        "denied": (agent.get("/audit"), "`GET /roles`"),
        "no token": (secretary.get("/gateway/memory"), "`POST /agents`"),
        "no turn": (operator.get("/v1/history?of=nothing"), "`POST /v1/recall`"),
        "a person's": (agent.post("/v1/notes", {"text": "x", "scope": "agent", "again": True}), '"again": true'),
        "in quarantine": (agent("DELETE", "/v1/notes/agent/web"), "`GET /v1/review`"),
        "no such problem": (operator.get("/problems/none"), "`type`"),
    }
    for what, (said, needed) in told.items():
        assert said.code and said.status >= 400, what
        assert needed in said.json["fix"] and "`holdfast" not in said.json["fix"] + said.json["detail"], (what, said)
        assert said.json["title"] and said.json["detail"], what


def test_what_is_wrong_with_the_gateway_itself_is_said_to_be_whose_to_mend(gateway):
    (gateway.home / "config.toml").write_text("memory.enabled = false\n")
    said = gateway.operator.post("/v1/notes", {"text": "x", "scope": "agent"})
    assert said.code == "disabled" and said.json["fix"].startswith("Whoever runs this gateway: ")


def test_the_client_is_told_the_command_again(gateway):
    with Memory(f"http://127.0.0.1:{gateway.port}", token=gateway.operator.token, project="demo") as memory:
        with pytest.raises(NotFound) as missing:
            memory.get("nothing", scope="agent")
        assert missing.value.fix == "`holdfast list` shows what there is"
        memory.store("Words.", key="k", scope="agent")
        memory.forget("k")
        memory.store("Other words.", key="k", scope="agent")
        with pytest.raises(Conflict) as taken:
            memory.restore("k", scope="agent")
        assert taken.value.fix == "Bring it back under another: `holdfast restore k --as OTHER`"


def test_whoever_can_try_again_themselves_is_told_just_that():
    for kind in (errors.Trouble, errors.Damaged):
        told = [problem.of(kind("it failed", fix), "r")[1]["fix"] for fix in ("Try again", "Look into the log")]
        assert told == ["Try again", "Whoever runs this gateway: Look into the log"]
