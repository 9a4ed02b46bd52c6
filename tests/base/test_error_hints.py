"""Each interface shows the hint of an error in its own terms: requests over HTTP, commands and options on a terminal."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from http_gateway import run_gateway

import holdfast
from holdfast import Conflict, Memory, NotFound, UsageError, errors
from holdfast.cli.command_table import COMMANDS
from holdfast.cli.error_report import format_error
from holdfast.errors import Template, Trouble, argument, command, field, try_again
from holdfast.server import problem
from holdfast.server.routes import ROUTES

KINDS = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.HoldfastError)]


@pytest.fixture
def gateway(home):
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[serve]\nrate = 0\n")
    with run_gateway(home) as one:
        yield one


def test_every_error_that_is_raised_says_what_to_do():
    """Read in the source: the second word of an error is its fix. One of HTTP alone has its code before that."""
    known = {kind.__name__ for kind in KINDS} - {"Disabled"}  # which has its own
    root, missing = Path(holdfast.__file__).parent, []
    for path in root.rglob("*.py"):
        room = str(path.relative_to(root))
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        for call in [] if room == "errors.py" else calls:
            name = getattr(call.func, "id", getattr(call.func, "attr", ""))
            place = 1 if name in known else 2 if name == "Problem" and room.startswith("server") else None
            fix = [*call.args[place:], *[one.value for one in call.keywords if one.arg == "fix"]] if place else [True]
            if not fix or (isinstance(fix[0], ast.Constant) and not fix[0].value):
                missing.append(f"{room}:{call.lineno} {ast.unparse(call)}")
    assert missing == []


@pytest.mark.parametrize("form", problem.REQUESTS)
def test_each_command_of_a_hint_has_a_command_and_a_request_that_exist(form):
    words = form.split()
    assert words[0] in COMMANDS or " ".join(words[:2]) in COMMANDS
    method, path = re.match(r"`([A-Z]+) ([^\s`?]+)", problem.REQUESTS[form].format("name", "other")).groups()
    assert any(route.method == method and route.path_regex.match(path) for route in ROUTES)


def test_every_command_phrase_and_field_that_is_raised_is_known_by_its_name():
    """Read in the source: a misspelled name would silently show the default words."""
    root, used = Path(holdfast.__file__).parent, {"command": set(), "phrase": set()}
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
            if name in used and node.args and isinstance(node.args[0], ast.Constant) and "proof" not in path.parts:
                used[name].add(node.args[0].value)
    assert used["command"] == set(problem.REQUESTS)
    assert used["phrase"] <= set(problem.PHRASES)


def test_no_error_names_a_command_in_a_finished_sentence_where_http_has_a_request_for_it():
    """Read in the source: outside the command line and its neighbours such a sentence would be shown over HTTP as it is."""
    known = {kind.__name__ for kind in KINDS} | {"Problem"}
    forms = [f"`holdfast {form.partition('{}')[0].strip()}" for form in problem.REQUESTS]
    root, found = Path(holdfast.__file__).parent, []
    for path in root.rglob("*.py"):
        if path.relative_to(root).parts[0] == "cli":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in known:
                said = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
                found += [(path.name, node.lineno, one) for one in said for form in forms if re.search(f"{form}[ `]", one)]
    assert found == []


def test_one_error_is_shown_in_the_words_of_each_interface():
    both = Template(field("valid_to"), " is not after ", field("valid_from"))
    error = UsageError(both, Template("Run ", command("restore {}", "k"), ", or ", errors.REDACT))
    assert str(error) == "valid_to is not after valid_from. Run `holdfast restore k`, or `--redact` (redact=True)"
    message, fix = format_error(error, ["store", "x"])
    assert (message, fix) == ("--valid-to is not after --valid-from", "Run `holdfast restore k`, or `--redact`")
    assert format_error(error, ["status"])[0] == "valid_to is not after valid_from"  # a command without such options
    body = problem.of(error, "r")[1]
    assert body["detail"] == "valid_to is not after valid_from"
    assert body["fix"] == 'Run `POST /v1/notes/SCOPE/k/restore`, or `{"redact": true}`'
    assert problem.of(error.about("line", 2), "r")[1]["fix"] == "Run `POST /v1/notes/SCOPE/k/restore`, or `?redact=true`"


def test_what_a_user_wrote_is_never_taken_for_the_name_of_an_option():
    error = UsageError("no note valid_from", Template("Such as ", argument("allow_secret", "a valid_from")))
    assert format_error(error, ["store", "x"]) == ("no note valid_from", 'Such as --allow-secret "a valid_from"')


def test_an_error_says_once_which_item_it_is_about_and_what_was_done_before():
    error = Trouble("it is full", "Free some space").about("note", 3).about("line", 7)
    error.done_before, error.context = 1200, "the import was begun"
    assert error.message == "the import was begun: line 7: it is full; 1,200 other notes were stored"
    assert (error.item, error.number, error.text) == ("line", 7, "it is full")
    assert problem.of(error, "r")[1]["line"] == 7


def test_a_message_as_data_is_read_back_as_it_was_written_and_tells_no_secret():
    hint = Template("Run ", command("get {} --history", "k"), " in /home/me/memory")
    error = Trouble(Template(field("limit"), " must be 1"), hint)
    parts = problem.of(error, "r", parts=True)[1]["parts"]
    assert Template.from_list(parts["detail"]).as_list() == parts["detail"] == Template(error.text).as_list()
    told = problem.without_home(problem.of(error, "r", parts=True)[1], "/home/me/memory")["parts"]
    assert told["detail"] == parts["detail"]
    assert told["fix"] == ["On the server: Run `holdfast get k --history` in HOME"]


def test_no_answer_over_http_asks_for_a_command(gateway):
    operator, agent, secretary = gateway.operator, gateway.agent("a"), gateway.agent("typist", "secretary")
    operator("PUT", "/v1/notes/agent/gone", {"text": "Words to be forgotten."})
    operator("DELETE", "/v1/notes/agent/gone")
    operator("PUT", "/v1/notes/agent/k", {"text": "Words that stand."})
    agent("PUT", "/v1/notes/agent/web", {"text": "From a page.", "origin": "web"})
    gateway.gate.revoke("typist")
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
    assert said.code == "disabled" and said.json["fix"].startswith("On the server: ")


def test_the_client_shows_the_command_and_not_the_request(gateway):
    with Memory(f"http://127.0.0.1:{gateway.port}", token=gateway.operator.token, project="demo") as memory:
        with pytest.raises(NotFound) as missing:
            memory.get("nothing", scope="agent")
        assert missing.value.fix == "`holdfast list` shows the notes there are"
        memory.store("Words.", key="k", scope="agent")
        memory.forget("k")
        memory.store("Other words.", key="k", scope="agent")
        with pytest.raises(Conflict) as taken:
            memory.restore("k", scope="agent")
        with pytest.raises(UsageError) as shown:
            memory.recall("x", limit=10**6)
        assert format_error(shown.value, ["recall", "x"])[0].startswith("--limit ")
        assert taken.value.fix == "Restore it under another key: `holdfast restore k --as OTHER`"


def test_whoever_can_try_again_themselves_is_told_just_that():
    for kind in (errors.Trouble, errors.Damaged):
        told = problem.of(kind("it failed", "Look into the log"), "r")[1]["fix"]
        assert told == "On the server: Look into the log"
    assert problem.of(try_again("it failed"), "r")[1]["fix"] == "Try again"
