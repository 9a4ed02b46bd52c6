"""The clients: one module each, their input and output formats as observed or documented, plugins and skills."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import unquote, urlsplit

import npm
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import clients
from holdfast.clients import edits, install, parts
from holdfast.clients.base import EVENTS, Client, HookInput, InstallTarget
from holdfast.errors import UsageError

SRC = Path(clients.__file__).resolve().parents[1]
NAMES = clients.names()
EXPECTED = {
    "amazon-q", "claude-code", "codex", "copilot", "cursor", "gemini", "generic", "kimi", "kiro", "openclaw", "opencode",
    "qwen", "windsurf",
}  # fmt: skip
WITH_GATEWAY = InstallTarget("/u", {}, ("holdfast",), gateway=True)


@pytest.fixture
def target(tmp_path):
    user, project = tmp_path / "user", tmp_path / "project"
    user.mkdir()
    project.mkdir()
    return InstallTarget(
        str(user), {"PATH": "/nowhere"}, ("/opt/hold fast/bin/holdfast",), str(tmp_path / "memory"), str(project)
    )


# --- the list of clients --------------------------------------------------------------------------------------------------


def test_every_client_of_the_issue_is_there():
    assert set(NAMES) == EXPECTED


@pytest.mark.parametrize("name", NAMES)
def test_a_client_is_one_file_that_bears_its_name(name):
    client = clients.load(name)
    assert (client.name, isinstance(client, Client), bool(client.title)) == (name, True, True)
    assert set(client.events.values()) <= set(EVENTS)
    assert set(client.injects) <= set(EVENTS)
    assert 0 < client.cap <= 9000


@pytest.mark.parametrize("name", ["claude", "claude_code", "", "shape", "../codex", "codex.py", "CODEX", "é", None, "a" * 999])
def test_a_name_that_is_none_is_refused_with_the_nearest(name):
    with pytest.raises(UsageError) as caught:
        clients.load(name)
    assert "claude-code" in caught.value.fix or "codex" in caught.value.fix


def test_a_client_is_added_by_adding_one_file(tmp_path):
    """In a copy of the package: a new file, and everything knows it."""
    copy = tmp_path / "copy" / "holdfast"
    shutil.copytree(SRC, copy, ignore=shutil.ignore_patterns("__pycache__"))
    source = (copy / "clients" / "kimi.py").read_text().replace('"kimi"', '"brand-new"').replace("Kimi", "BrandNew")
    (copy / "clients" / "brand_new.py").write_text(source)
    env = {"PYTHONPATH": str(copy.parent), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    words = [sys.executable, "-m", "holdfast", "install", "brand-new", "--dry-run", "--diff"]
    done = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    assert '"brand-new"' in done.stdout
    assert "hook brand-new SessionStart" in done.stdout


# where a cursor is the end of a page
PAGED = (
    "server/", "cli/commands/ledger.py", "cli/command_table.py", "api/pagination.py", "ledger/", "postgres/", "api/remote/"
)  # fmt: skip


def test_no_client_is_named_anywhere_else():
    """Transcripts have dialects and speakers that are called like clients; nothing else may know one, be it in an example."""
    word = re.compile(rf"(?<![\w-])({'|'.join(EXPECTED)})(?![\w-])")
    named = {
        (path.relative_to(SRC).as_posix(), node.value)
        for path in SRC.rglob("*.py")
        if not path.relative_to(SRC).as_posix().startswith(("clients/", "formats/importers/", "formats/transcript.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and word.search(node.value)
        if not (path.relative_to(SRC).as_posix().startswith(PAGED) and set(word.findall(node.value)) == {"cursor"})
    }
    assert named == set()


def test_a_client_is_noticed_by_its_program_or_its_folder(target, tmp_path):
    for name in NAMES:
        assert clients.load(name).detect(target) == ""
    (Path(target.home) / ".codex").mkdir()
    assert clients.load("codex").detect(target) == f"{target.home}/.codex"
    program = tmp_path / "bin" / "gemini"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert clients.load("gemini").detect(target.replace(environ={"PATH": str(program.parent)})) == str(program)


# --- input of hooks -------------------------------------------------------------------------------------------------------

COMMON = {"session_id": "s1", "cwd": "/w", "transcript_path": "/t.jsonl"}
TOLD = [
    ("claude-code", "SessionStart", {**COMMON, "source": "startup"}, HookInput("start", "s1", "/w", "startup", "", "/t.jsonl")),
    ("claude-code", "SessionStart", {**COMMON, "source": "resume"}, HookInput("start", "s1", "/w", "resume", "", "/t.jsonl")),
    ("claude-code", "UserPromptSubmit", {**COMMON, "prompt": "hi"},
     HookInput("prompt", "s1", "/w", "startup", "hi", "/t.jsonl")),
    ("claude-code", "Stop", {**COMMON, "stop_hook_active": True},
     HookInput("stop", "s1", "/w", "startup", "", "/t.jsonl", True)),
    ("codex", "SessionStart", {**COMMON, "source": "clear", "model": "m"},
     HookInput("start", "s1", "/w", "clear", "", "/t.jsonl")),
    ("gemini", "BeforeAgent", {**COMMON, "prompt": "<hook_context>a\nb</hook_context>\n\nhi"},
     HookInput("prompt", "s1", "/w", "startup", "hi", "/t.jsonl")),
    ("copilot", "sessionStart", {"sessionId": "s1", "cwd": "/w", "source": "new", "timestamp": 1},
     HookInput("start", "s1", "/w", "startup")),
    ("copilot", "userPromptSubmitted", {"sessionId": "s1", "cwd": "/w", "prompt": "hi"},
     HookInput("prompt", "s1", "/w", "startup", "hi")),
    ("kimi", "UserPromptSubmit", {"session_id": "s1", "cwd": "/w", "prompt": [{"type": "text", "text": "hi"}, {"type": "x"}]},
     HookInput("prompt", "s1", "/w", "startup", "hi")),
    ("qwen", "PreCompact", {**COMMON, "trigger": "auto"}, HookInput("compact", "s1", "/w", "startup", "", "/t.jsonl")),
    ("kiro", "agentSpawn", {"hook_event_name": "agentSpawn", "cwd": "/w"}, HookInput("start", "", "/w", "startup")),
    ("kiro", "UserPromptSubmit", {"cwd": "/w", "prompt": ""}, HookInput("prompt", "", "/w", "startup")),
    ("amazon-q", "userPromptSubmit", {"cwd": "/w", "prompt": "hi"}, HookInput("prompt", "", "/w", "startup", "hi")),
    ("cursor", "sessionStart", {"conversation_id": "c1", "workspace_roots": ["/w"]}, HookInput("start", "c1", "/w", "startup")),
    ("opencode", "start", {"session_id": "s1", "cwd": "/w", "source": "compact"}, HookInput("start", "s1", "/w", "compact")),
    ("generic", "nothing known", {"cwd": "/w"}, HookInput("", "", "/w", "startup")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "event", "data", "heard"), TOLD)
def test_what_a_client_tells_is_heard(name, event, data, heard):
    assert clients.load(name).parse_input(event, data) == heard


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
FIELDS = ["session_id", "sessionId", "cwd", "workspace_roots", "source", "prompt", "transcript_path", "stop_hook_active"]


@given(st.sampled_from(NAMES), st.text(max_size=12), st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_whatever_a_client_tells_is_taken(name, event, data):
    heard = clients.load(name).parse_input(event, data)
    assert [type(value) for value in heard.as_dict().values()] == [str, str, str, str, str, str, bool]


# --- output of hooks ------------------------------------------------------------------------------------------------------


def context_of(name, event, said):
    """Return the text that the client's model would see, parsed by the format that this client accepts."""
    if name in ("claude-code", "codex", "gemini", "qwen"):
        answer = json.loads(said)
        assert set(answer) == {"hookSpecificOutput"}
        assert set(answer["hookSpecificOutput"]) == {"hookEventName", "additionalContext"}
        assert answer["hookSpecificOutput"]["hookEventName"] == event
        return answer["hookSpecificOutput"]["additionalContext"]
    if name in ("copilot", "cursor"):
        ((field, text),) = json.loads(said).items()
        assert field == {"copilot": "additionalContext", "cursor": "additional_context"}[name]
        return text
    return said


@pytest.mark.parametrize("name", NAMES)
@given(text=st.text(min_size=1, max_size=200))
def test_a_text_reaches_the_model_only_where_it_can(name, text):
    client = clients.load(name)
    for event, ours in client.events.items():
        said = client.format_output(event, text)
        if ours in client.injects:
            assert context_of(name, event, said) == text
        else:
            assert said == client.format_output(event, "") in ("", "{}")


@pytest.mark.parametrize("name", NAMES)
def test_our_own_names_of_events_are_understood(name):
    client = clients.load(name)
    for own, ours in client.events.items():
        assert client.parse_input(ours, {}).event == ours
        if name not in ("kiro",):  # which has two names for each
            assert client.format_output(ours, "hi") == client.format_output(own, "hi")


def test_clients_that_lose_what_a_start_says_are_told_with_the_first_prompt():
    assert clients.load("kimi").format_output("SessionStart", "hi") == ""
    assert clients.load("kimi").format_output("UserPromptSubmit", "hi") == "hi"


# --- plugins and installs, by their documented formats -----------------------------------------------------------------------


def commands(value):
    """Return every hook command in a document."""
    if isinstance(value, dict):
        for name, one in value.items():
            if name in ("command", "bash") and isinstance(one, str) and " hook " in one:
                yield one
            yield from commands(one)
    elif isinstance(value, list):
        for one in value:
            yield from commands(one)


@pytest.mark.parametrize("name", NAMES)
def test_all_that_is_installed_calls_this_holdfast_by_its_absolute_path(name, target):
    client = clients.load(name)
    texts = dict(edits.render_for_paste(client, target, client.changes(target))) | client.plugin(target)
    hooks = []
    for path, text in texts.items():
        document = json.loads(text) if path.endswith(".json") else tomllib.loads(text) if path.endswith(".toml") else None
        hooks += commands(document)
        if document and "mcpServers" in document and "holdfast" in document["mcpServers"]:
            server = document["mcpServers"]["holdfast"]
            words = [word for word in (server["command"], *server["args"]) if word != "env"]  # with which one client starts it
            assert words == [*target.command, "mcp", "--client", name]
        if path.endswith(".js"):
            assert json.dumps(list(target.command)) in text
    for hook in hooks:
        assert hook.startswith(f"'/opt/hold fast/bin/holdfast' hook {name} ")
        assert hook.split()[-1] in client.events


@pytest.mark.parametrize("name", NAMES)
def test_a_home_of_ones_own_goes_along(name, target):
    client = clients.load(name)
    moved = target.replace(command=(*target.command, "--home", "/other home"))
    for text in dict(edits.render_for_paste(client, moved, client.changes(moved))).values():
        if "mcp" in text and "--client" in text:
            assert "/other home" in text


def test_claude_code_gets_a_plugin_whose_tools_are_always_loaded(target):
    files = clients.load("claude-code").plugin(target)
    assert json.loads(files[".mcp.json"])["mcpServers"]["holdfast"]["alwaysLoad"] is True
    hooks = json.loads(files["hooks/hooks.json"])["hooks"]
    assert hooks["SessionStart"][0]["matcher"] == "startup|clear|compact"
    assert {"PreCompact", "UserPromptSubmit", "Stop", "SessionEnd"} <= set(hooks)


@pytest.mark.parametrize("name", ["codex", "kimi"])
def test_a_path_of_any_letters_is_told_in_toml(name, target):
    odd = target.replace(command=("/opt/\U0001f980 é/holdfast",))
    (lines,) = [change.value for change in clients.load(name).changes(odd) if change.kind == "toml"]
    assert odd.command[0] in str(tomllib.loads(lines))


def test_opencode_gets_the_address_of_its_plugin_in_any_folder(target):
    odd = target.replace(memory="/me/a b#c%20?")
    (address,) = json.loads(clients.load("opencode").plugin(odd)["opencode.json"])["plugin"]
    assert unquote(urlsplit(address).path) == "/me/a b#c%20?/plugins/opencode/holdfast.js"


ASK = """
import plugin from "./index.mjs"
const hooks = {}
plugin.register({ on: (name, hook) => (hooks[name] = hook) })
const build = (sessionId, workspaceDir) => hooks.before_prompt_build({}, { sessionId, workspaceDir })
const told = []
const ask = async (...who) => told.push((await build(...who)).appendSystemContext)
for (const who of [["s", "/a"], ["s", "/a"], ["s", "/b"], ["", "/a"], ["", "/b"], [undefined, "/a"]]) await ask(...who)
await hooks.session_end({}, { sessionId: "s" })
await ask("s", "/a")
console.log(JSON.stringify(told))
"""


def test_openclaw_tells_each_session_in_each_folder_its_own(target, tmp_path):
    """The plugin, run by Node, asks a program that answers with what it was asked, and how often."""
    program = tmp_path / "holdfast"
    program.write_text(
        f"#!{sys.executable}\nimport json, sys\nasked = json.load(sys.stdin)\n"
        f"with open({str(tmp_path / 'asked')!r}, 'a+') as file:\n"
        "    file.write('x'); number = file.tell()\n"
        "print(*sys.argv[1:], asked['session_id'], asked['cwd'], number)\n"
    )
    program.chmod(0o755)
    files = clients.load("openclaw").plugin(target.replace(command=(str(program),)))
    (tmp_path / "index.mjs").write_text(files["index.js"])
    (tmp_path / "ask.mjs").write_text(ASK)
    words = [npm.find_node(), tmp_path / "ask.mjs"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    start = "hook openclaw start"
    assert json.loads(done.stdout) == [
        f"{start} s /a 1", f"{start} s /a 1", f"{start} s /b 2", f"{start}  /a 3", f"{start}  /b 4", f"{start}  /a 5",
        f"{start} s /a 7",
    ]  # fmt: skip


TITLED = """
import { Holdfast } from "./holdfast.mjs"
const hooks = await Holdfast({ directory: "/a" })
const said = []
const system = async (first) => {
  const output = { system: [first] }
  await hooks["experimental.chat.system.transform"]({ sessionID: "s" }, output)
  said.push(output.system.length)
}
const first = { id: "prt_1", messageID: "msg_1", type: "text", text: "Where is it?" }
const output = { parts: [first] }
await hooks["chat.message"]({ sessionID: "s" }, output)
await system("You are an agent.")
await system("You are a title generator. You output ONLY a thread title.")
await hooks.config({ agent: { title: { prompt: "Name this." } } })
await system("Name this.")
const kept = { info: {}, parts: output.parts }
const sent = { messages: [kept] }
await hooks["experimental.chat.messages.transform"]({}, sent)
const read = (message) => message.parts.filter((part) => !part.ignored).map((part) => part.text)
console.log(JSON.stringify([said, read(kept), read(sent.messages[0]), output.parts.map((part) => part.id)]))
"""


def test_opencode_tells_memory_to_the_agent_and_not_to_who_writes_a_title(target, tmp_path):
    program = tmp_path / "holdfast"
    program.write_text(f"#!{sys.executable}\nimport sys\nprint('memory of a', sys.argv[-1])\n")
    program.chmod(0o755)
    files = clients.load("opencode").plugin(target.replace(command=(str(program),)))
    (tmp_path / "holdfast.mjs").write_text(files["holdfast.js"])
    (tmp_path / "ask.mjs").write_text(TITLED)
    words = [npm.find_node(), tmp_path / "ask.mjs"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    systems, titled, agents, ids = json.loads(done.stdout)
    assert systems == [2, 1, 1]  # the agent's, the title agent's, and a title agent's whose prompt the user wrote
    assert titled == ["Where is it?"]
    assert agents == ["Where is it?", "memory of a prompt"]
    assert len(set(ids)) == 2


def test_codex_gives_an_end_three_seconds(target):
    changes = clients.load("codex").changes(target)
    (end,) = [change for change in changes if change.keys == ("hooks", "SessionEnd")]
    assert end.value["hooks"][0]["timeout"] <= 3


def test_gemini_counts_in_milliseconds_and_is_not_asked_before_every_call(target):
    hooks = json.loads(clients.load("gemini").plugin(target)["hooks/hooks.json"])["hooks"]
    assert hooks["SessionStart"][0]["hooks"][0]["timeout"] >= 1000
    assert "PreCompress" not in hooks


def test_kiro_gets_both_of_its_formats(target):
    changes = {Path(change.path).parent.name: change.value for change in clients.load("kiro").changes(target)}
    assert set(json.loads(changes["agents"])["hooks"]) == {"agentSpawn", "userPromptSubmit", "stop"}
    standalone = json.loads(changes["hooks"])
    assert standalone["version"] == "v1"
    assert {hook["trigger"] for hook in standalone["hooks"]} == {"SessionStart", "UserPromptSubmit", "Stop"}
    assert {hook["action"]["type"] for hook in standalone["hooks"]} == {"command"}


def test_windsurf_is_told_in_its_rules_because_its_hooks_tell_nothing(target):
    client = clients.load("windsurf")
    assert client.injects == ()
    (rules,) = [change for change in client.changes(target) if change.kind == "block"]
    assert rules.path.endswith("global_rules.md")
    assert len(rules.value) < client.cap


def test_the_bundle_of_agent_plugins_has_its_parts(target):
    files = clients.load("generic").plugin(target)
    assert json.loads(files["plugin.json"])["name"] == "holdfast"
    assert "holdfast" in json.loads(files["mcp.json"])["mcpServers"]
    assert "skills/holdfast-memory/SKILL.md" in files


def test_a_plugin_is_written_anew_where_it_is_asked_for(target):
    client = clients.load("claude-code")
    folder = Path(install.write_plugin(client, target))
    assert folder == Path(target.memory) / "plugins" / "claude-code"
    (folder / ".mcp.json").write_text("{}")
    install.write_plugin(client, target)
    assert "holdfast" in (folder / ".mcp.json").read_text()
    with pytest.raises(UsageError):
        install.write_plugin(clients.load("cursor"), target)


# --- skills ---------------------------------------------------------------------------------------------------------------


@pytest.mark.promise("D3")
@pytest.mark.parametrize("name", parts.SKILLS)
def test_skills_are_valid_by_the_rules_of_agent_skills(name, tmp_path):
    for path, text in parts.skill_files(WITH_GATEWAY).items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)
    validator = Path(sys.executable).parent / "agentskills"
    done = subprocess.run([validator, "validate", tmp_path / "skills" / name], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.promise("D3")
def test_the_rubric_stands_once_and_says_what_where_when_and_what_not():
    rubric = clients.usage_guide()
    assert len(rubric) < 2000  # what clients show of a server's own instructions
    for word in ("project", "global", "session", "agent", "feedback", "user", "reference", "Do not store", "secrets", "Recall"):
        assert word in rubric
    assert rubric.strip() in parts.skill_files(WITH_GATEWAY)["skills/holdfast-memory/SKILL.md"]
    assert "{rubric}" not in "".join(parts.skill_files(WITH_GATEWAY).values())


def test_the_skill_for_agents_with_a_token_says_how_to_write_with_it():
    text = parts.skill_files(WITH_GATEWAY)["skills/update-memory/SKILL.md"]
    for word in ("/gateway/memory", "Authorization: Bearer", '"key"', '"value"', "401", "403", "422"):
        assert word in text


@pytest.mark.parametrize("name", NAMES)
def test_the_skill_for_agents_with_a_token_is_installed_only_where_there_is_a_gateway(target, name):
    client = clients.load(name)
    for there in (False, True):
        where = target.replace(gateway=there)
        paths = [*[change.path for change in client.changes(where)], *client.plugin(where)]
        skilled = any("holdfast-memory/SKILL.md" in path for path in paths)
        assert any("update-memory/SKILL.md" in path for path in paths) == (skilled and there)


def test_a_gateway_is_known_by_its_address_its_token_or_a_store(tmp_path):
    from holdfast import config

    bare = config.Config(home=str(tmp_path))
    assert not clients.install_target(bare).gateway
    for setting in ({"url": "https://m.example"}, {"token": "t"}, {"store": "postgresql://localhost/memory"}):
        assert clients.install_target(bare.replace(**setting)).gateway
