"""Install, use and uninstall: every file of the user has the same bytes afterwards, whatever it contained."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import clients
from holdfast.clients import edits, health, install
from holdfast.clients.base import InstallTarget
from holdfast.errors import Conflict, DiskTrouble, HoldfastError, Refused
from holdfast.file_edit import file, jsonc

NAMES = clients.names()


@pytest.fixture
def target(tmp_path):
    user, project = tmp_path / "user", tmp_path / "project"
    user.mkdir()
    project.mkdir()
    return InstallTarget(str(user), {"PATH": "/nowhere"}, ("/bin/holdfast",), str(tmp_path / "memory"), str(project))


def tree(target):
    """Return every file, folder and link of the user, with bytes and permissions."""
    found = {}
    for root in (target.home, target.project):
        for path in sorted(Path(root).rglob("*")):
            info = path.lstat()
            what = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
            found[str(path)] = (info.st_mode, what)
    return found


def paths(client, target):
    """Return the files of the user that an install changes, and how."""
    touched = {}
    for change in client.changes(target):
        if not edits.is_within(change.path, target.memory) and change.kind != "trace":
            touched.setdefault(change.path, change.kind)
    return touched


# Contents of such files as people write them, almost never in the format that we would write.
JSONS = {
    "absent": None,
    "empty": b"",
    "bare": b"{}",
    "comments": b'{\n  // mine\n  "model": "x", /* why */\n  "mcpServers": {\n    "other": {"command": "o"} // keep\n  }\n}\n',
    "trailing commas": b'{\n\t"a": [1, 2,],\n\t"hooks": {"SessionStart": [{"hooks": [{"command": "theirs"}]},],},\n}\n',
    "crlf": b'{\r\n    "a": 1,\r\n    "hooks": {\r\n    }\r\n}\r\n',
    "bom": b'\xef\xbb\xbf{\n  "a": "\xc3\xa4"\n}',
    "one line": b'{"a":1,"mcpServers":{"other":{"command":"o"}},"enabledPlugins":{"x@y":true}}',
    "duplicate keys": b'{"a": 1, "mcpServers": {"lost": {}}, "mcpServers": {"other": {}}, "a": 2}\n',
    "other hooks": b'{"version": 1, "hooks": {"stop": [{"command": "t"}], "Stop": [{"hooks": [{"command": "t"}]}]}}\n',
    "markers": b'{"a": "<!-- holdfast:begin -->", "b": "# holdfast:end"}\n',
    "a comment without an end": b"// mine",
}
COMMENTED = ("comments", "trailing commas", "a comment without an end")  # which some clients reject
TOMLS = {
    "absent": None,
    "empty": b"",
    "comments": b'# mine\nmodel = "x"  # why\n\n[tui]\na = 1\n',
    "crlf": b'model = "x"\r\n\r\n[tui]\r\na = 1',
    "other": b'[[hooks]]\nevent = "Stop"\ncommand = "theirs"\n\n[mcp_servers.other]\ncommand = "o"\n',
    "markers": b'a = """\n# holdfast:begin\n"""\n# holdfast:end\n',
}
TEXTS = {
    "absent": None,
    "empty": b"",
    "text": "# Mine\n\nUse tabs. Ä\n".encode(),
    "crlf without an end": b"# Mine\r\n\r\nUse tabs.",
    "markers": b"see <!-- holdfast:begin -->\n<!-- holdfast:begin -->\nmine\n",
    "a briefing": b"# Mine\n\n<!-- holdfast:begin -->\nknown\n<!-- holdfast:end -->\n",
}


def contents_for(kind):
    kinds = {"entry": JSONS, "item": JSONS, "default": JSONS, "toml": TOMLS, "block": TEXTS}
    return kinds.get(kind, {"absent": None})


def cases():
    """Yield every client with every variant of each of its files."""
    sample = InstallTarget("/u", {}, ("/bin/holdfast",), "/m", "/p")
    for name in NAMES:
        kinds = set(paths(clients.load(name), sample).values())
        for look in sorted({look for kind in kinds for look in contents_for(kind)}):
            if not (clients.load(name).strict_json and look in COMMENTED):
                yield name, look


def write_files(client, target, look):
    """Write this variant into each file of the client that can have it."""
    for path, kind in paths(client, target).items():
        content = contents_for(kind).get(look)
        if content is not None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(content)
            Path(path).chmod(0o640)


@pytest.mark.parametrize(("name", "look"), [*cases()])
def test_an_install_and_an_uninstall_leave_every_file_as_it_was(name, look, target):
    client = clients.load(name)
    write_files(client, target, look)
    before = tree(target)
    steps = install.install(client, target)
    assert [step.path for step in steps if not edits.is_within(step.path, target.memory)] == list(paths(client, target))
    installed = tree(target)
    assert installed != before
    assert install.install(client, target) == []  # once is enough
    assert tree(target) == installed
    assert install.list_installed(target) == [name]
    install.uninstall(client, target)
    assert tree(target) == before
    assert install.list_installed(target) == []
    assert sorted(os.listdir(target.memory)) == ["run"]


@pytest.mark.parametrize(("name", "look"), [*cases()])
def test_what_the_user_changed_meanwhile_stays_and_only_ours_goes(name, look, target):
    client = clients.load(name)
    write_files(client, target, look)
    before = tree(target)
    install.install(client, target)
    edited = {}
    for path, kind in paths(client, target).items():
        if kind == "file":
            continue
        content = Path(path).read_bytes()
        added = b"\n# more of mine\n" if kind in ("toml", "block") else b"\n// more of mine\n"
        Path(path).write_bytes(content + added)
        edited[path] = added
    install.uninstall(client, target)
    for path, added in edited.items():
        content = Path(path).read_bytes()
        assert content.endswith(added)
        assert b"bin/holdfast" not in content
        was = (before.get(path, (0, b""))[1] or b"").strip()
        rest = content.removesuffix(added).strip()
        nothing_there = not was or was.startswith(b"//")
        assert rest == was or (nothing_there and rest in (b"{}", was + b"\n{}"))


@pytest.mark.parametrize("name", NAMES)
def test_a_linked_config_is_edited_at_its_target_and_stays_a_link(name, target, tmp_path):
    client = clients.load(name)
    linked_files = {}
    for number, (path, kind) in enumerate(paths(client, target).items()):
        if kind == "file":
            continue
        linked = tmp_path / "dotfiles" / f"{number}-{Path(path).name}"
        linked.parent.mkdir(exist_ok=True)
        content = list(contents_for(kind).values())[2]
        linked.write_bytes(content)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).symlink_to(linked)
        linked_files[linked] = content
    before = tree(target)
    install.install(client, target)
    assert all(linked.read_bytes() != content for linked, content in linked_files.items())
    install.uninstall(client, target)
    assert tree(target) == before
    assert all(linked.read_bytes() == content for linked, content in linked_files.items())


@pytest.mark.parametrize("look", COMMENTED)
def test_settings_that_the_client_would_refuse_are_not_called_installed(look, target):
    client = clients.load("claude-code")
    settings = Path(target.home) / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_bytes(JSONS[look])
    before = tree(target)
    with pytest.raises(Refused, match=r"Claude Code rejects such a file as a whole: .*line \d"):
        install.install(client, target)
    assert tree(target) == before
    settings.unlink()
    install.install(client, target)
    settings.write_bytes(settings.read_bytes().replace(b"{", b"{ // mine", 1))
    (problem,) = health.find_problems(target)
    assert "comments" in problem.message
    assert "Remove them" in problem.fix
    install.uninstall(client, target)
    assert b"holdfast" not in settings.read_bytes()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("look", JSONS)
def test_what_is_written_can_be_read(name, look, target):
    client = clients.load(name)
    if client.strict_json and look in COMMENTED:
        return
    write_files(client, target, look)
    install.install(client, target)
    for path, kind in paths(client, target).items():
        if kind in ("entry", "item", "default"):
            assert isinstance(jsonc.parse(Path(path).read_bytes().decode()).value, dict)


BROKEN = {"json": b'{"a": 1,, }', "toml": b"a = = 1\n", "md": b"caf\xe9\n"}


@pytest.mark.parametrize("name", NAMES)
def test_a_config_that_cannot_be_read_is_refused_and_nothing_is_touched(name, target):
    client = clients.load(name)
    for path, kind in paths(client, target).items():
        kind = "toml" if kind == "toml" else "md" if kind == "block" else "json"
        content = BROKEN[kind] if kind != "file" else b"somebody else's\n"
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(content)
        before = tree(target)
        with pytest.raises(Refused) as caught:
            install.install(client, target)
        assert path in caught.value.message
        assert caught.value.fix
        assert tree(target) == before
        assert install.list_installed(target) == []
        Path(path).unlink()


@pytest.mark.parametrize("what", ["file", "folder"])
def test_where_one_file_cannot_be_written_none_is(what, target):
    client = clients.load("codex")
    hooks = Path(target.home) / ".codex" / "hooks.json"
    hooks.parent.mkdir()
    hooks.write_text("{}")
    (hooks if what == "file" else hooks.parent).chmod(0o444 if what == "file" else 0o555)
    before = tree(target)
    with pytest.raises(DiskTrouble, match="read-only"):
        install.install(client, target)
    assert tree(target) == before
    hooks.parent.chmod(0o755)


def test_a_failure_midway_is_rolled_back(target):
    """The last file turns into a folder after everything was checked: as if a disk failed there."""
    client = clients.load("copilot")
    config = Path(target.home) / ".copilot" / "mcp-config.json"
    config.parent.mkdir()
    config.write_text('{"mine": true}')
    before = tree(target)
    steps = install.plan_install(client, target, client.changes(target))
    broken = file.FileSnapshot(steps[-1].path, str(Path(target.home) / "missing" / "\0"), None)
    with pytest.raises((HoldfastError, ValueError)):
        install.apply(client, target, [*steps[:-1], steps[-1].replace(found=broken)], 5)
    assert tree(target) == before
    assert install.list_installed(target) == [] or install.load_record(target, "copilot") == {}


def test_an_edit_between_showing_and_writing_is_a_conflict(target):
    client = clients.load("qwen")
    settings = Path(target.home) / ".qwen" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"a": 1}')
    steps = install.plan_install(client, target, client.changes(target))
    settings.write_text('{"a": 2}')
    before = tree(target)
    with pytest.raises(Conflict):
        install.apply(client, target, steps, 5)
    assert tree(target) == before


def test_an_entry_that_moved_is_renewed_in_its_place(target):
    client = clients.load("claude-code")
    settings = Path(target.home) / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{\n  "a": 1\n}\n')
    install.install(client, target)
    moved = target.replace(command=("/new/holdfast",))
    assert [Path(step.path).name for step in install.install(client, moved)] == ["hooks.json", ".mcp.json"]
    qwen = clients.load("qwen")
    install.install(qwen, target)
    (step,) = install.install(qwen, moved)
    text = Path(step.path).read_text()
    assert "/bin/holdfast" not in text
    assert text.count("/new/holdfast hook qwen SessionStart") == 1
    install.uninstall(qwen, moved)
    install.uninstall(client, moved)
    assert settings.read_text() == '{\n  "a": 1\n}\n'


def test_what_was_installed_can_be_taken_out_without_the_record(target):
    """The home was removed since: what is ours is told apart by what it says."""
    client = clients.load("codex")
    folder = Path(target.home) / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text('model = "x"\n')
    (folder / "hooks.json").write_text('{"hooks": {"Stop": [{"hooks": [{"command": "theirs"}]}]}}')
    install.install(client, target)
    (Path(target.memory) / "installed" / "codex.json").unlink()
    install.uninstall(client, target)
    assert (folder / "config.toml").read_text() == 'model = "x"\n'
    hooks = json.loads((folder / "hooks.json").read_text())["hooks"]
    assert {name: groups for name, groups in hooks.items() if groups} == {"Stop": [{"hooks": [{"command": "theirs"}]}]}


def test_a_file_of_ours_that_the_user_made_theirs_is_kept_aside(target):
    client = clients.load("copilot")
    install.install(client, target)
    hooks = Path(target.home) / ".copilot" / "hooks" / "holdfast.json"
    hooks.write_text('{"version": 1, "hooks": {"mine": []}}')
    install.uninstall(client, target)
    assert not hooks.exists()
    assert hooks.with_name("holdfast.json.kept").read_text() == '{"version": 1, "hooks": {"mine": []}}'


def test_what_the_user_made_of_a_file_of_ours_survives_every_install(target):
    client = clients.load("copilot")
    install.install(client, target)
    hooks = Path(target.home) / ".copilot" / "hooks" / "holdfast.json"
    ours = hooks.read_bytes()
    for number in (1, 2):
        hooks.write_text(f"mine {number}")
        (step,) = install.plan_install(client, target, client.changes(target))
        assert step.as_dict()["kept"] == step.kept
        install.install(client, target)
        assert hooks.read_bytes() == ours
    hooks.write_text("mine 3")
    install.uninstall(client, target)
    kept = [hooks.with_name(f"holdfast.json.{end}").read_text() for end in ("kept", "kept-2", "kept-3")]
    assert kept == ["mine 1", "mine 2", "mine 3"]
    assert not hooks.exists()


def test_a_copy_goes_again_when_what_it_was_made_for_fails(target):
    client = clients.load("copilot")
    install.install(client, target)
    (Path(target.home) / ".copilot" / "hooks" / "holdfast.json").write_text("mine")
    before = tree(target)
    steps = install.plan_install(client, target.replace(command=("/new/holdfast",)), client.changes(target))
    broken = steps[0].replace(found=file.FileSnapshot("/x", str(Path(target.home) / "missing" / "\0"), None), kept="")
    with pytest.raises((HoldfastError, ValueError)):
        install.apply(client, target, [*steps, broken], 5)
    assert tree(target) == before


def test_an_install_and_a_briefing_in_one_file_leave_each_other_alone(target, memory):
    client, page = clients.load("generic"), Path(target.project) / "AGENTS.md"
    page.write_text("# Mine\n")
    memory.store("We deploy on Tuesdays.", key="deploys")
    install.install(client, target)
    memory.render(page)
    assert clients.usage_guide().strip() in page.read_text()
    assert "Tuesdays" in page.read_text()
    assert health.find_problems(target) == []
    install.uninstall(client, target)
    assert "Tuesdays" in page.read_text()
    assert clients.usage_guide().strip() not in page.read_text()
    memory.render(page, remove=True)
    assert page.read_text() == "# Mine\n"


@pytest.mark.promise("D1")
def test_what_is_installed_in_one_project_is_no_matter_of_another(target, tmp_path):
    client = clients.load("generic")
    others = [target.replace(project=str(tmp_path / name)) for name in ("one", "two", "three")]
    for other in others:
        Path(other.project).mkdir()
    for other in others[:2]:
        install.install(client, other)
    (Path(others[2].project) / "AGENTS.md").write_bytes(b"caf\xe9\n")
    assert [health.find_problems(other) for other in others] == [[], [], []]
    pages = [Path(other.project) / "AGENTS.md" for other in others[:2]]
    install.uninstall(client, others[0])
    assert [page.exists() for page in pages] == [False, True]
    assert install.list_installed(target) == ["generic"]
    (Path(others[2].project) / "AGENTS.md").unlink()
    install.uninstall(client, others[2], everywhere=True)
    assert [page.exists() for page in pages] == [False, False]
    assert install.list_installed(target) == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("installs", [True, False])
def test_a_plugin_that_was_made_goes_with_an_uninstall(name, installs, target):
    client = clients.load(name)
    if not client.plugin(target):
        return
    folder = Path(install.write_plugin(client, target))
    if installs:
        install.install(client, target)
    (folder / "own.txt").write_text("somebody's")
    install.uninstall(client, target)
    assert [path.name for path in folder.rglob("*")] == ["own.txt"]
    (folder / "own.txt").unlink()
    install.write_plugin(client, target)
    install.uninstall(client, target)
    assert not folder.parent.exists()


def test_what_was_never_installed_is_not_uninstalled(target):
    for name in NAMES:
        client = clients.load(name)
        for path, kind in paths(client, target).items():
            if kind == "file":
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                Path(path).write_text('{"somebody": "else"}')
        before = tree(target)
        install.uninstall(client, target)
        assert tree(target) == before
    assert not os.path.exists(target.memory)


def test_what_a_client_wrote_down_because_of_us_goes_too(target):
    client = clients.load("claude-code")
    install.install(client, target)
    known = Path(target.home) / ".claude" / "plugins" / "known_marketplaces.json"
    known.parent.mkdir()
    ours = {"source": {"source": "directory", "path": f"{target.memory}/plugins/claude-code"}}
    known.write_text(json.dumps({"holdfast": ours, "other": {"source": {}}}, indent=2))
    install.uninstall(client, target)
    assert json.loads(known.read_text()) == {"other": {"source": {}}}
    known.write_text(json.dumps({"holdfast": {"source": {"path": "/somebody/elses"}}}))
    install.uninstall(client, target)
    assert "/somebody/elses" in known.read_text()


def test_two_clients_in_one_home_do_not_disturb_each_other(target):
    install.install(clients.load("claude-code"), target)
    before = tree(target)
    install.install(clients.load("gemini"), target)
    install.uninstall(clients.load("gemini"), target)
    assert tree(target) == before
    assert install.list_installed(target) == ["claude-code"]


def test_what_is_kept_for_the_way_back_is_for_the_owner_only(target):
    settings = Path(target.home) / ".qwen" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"key": "very secret"}')
    install.install(clients.load("qwen"), target)
    record = Path(target.memory) / "installed" / "qwen.json"
    assert record.stat().st_mode & 0o777 == 0o600
    assert record.parent.stat().st_mode & 0o777 == 0o700


# --- doctor ---------------------------------------------------------------------------------------------------------------


@pytest.mark.promise("D1")
def test_doctor_says_which_clients_do_not_hear_us(target):
    assert health.find_problems(target) == []
    install.install(clients.load("claude-code"), target)
    assert health.find_problems(target) == []
    (Path(target.home) / ".claude" / "settings.json").write_text("{}")
    (problem,) = health.find_problems(target)
    assert "settings.json" in problem.message
    assert problem.fix == "holdfast install claude-code"


@pytest.mark.promise("D1")
def test_doctor_says_that_codex_skips_hooks_nobody_trusts(target):
    client = clients.load("codex")
    install.install(client, target)
    (problem,) = health.find_problems(target)
    assert "trust" in problem.message
    config = Path(target.home) / ".codex" / "config.toml"
    key = f"{target.home}/.codex/hooks.json:session_start:0:0"
    config.write_text(config.read_text() + f'\n[hooks.state."{key}"]\ntrusted_hash = "sha256:x"\n')
    assert health.find_problems(target) == []


def test_doctor_does_not_speak_of_trust_where_codex_has_no_hooks(target):
    client = clients.load("codex")
    install.install(client, target)
    (Path(target.home) / ".codex" / "hooks.json").unlink()
    (problem,) = health.find_problems(target)
    assert "changed or removed" in problem.message and problem.fix == "holdfast install codex"


# --- the command line -----------------------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the program with a home directory of its own."""
    user = tmp_path / "user"
    user.mkdir()
    (user / ".qwen").mkdir()
    (user / ".qwen" / "settings.json").write_text('{\n  // mine\n  "a": 1\n}\n')
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.setenv("PATH", "/nowhere")

    def run_(*words, code=0, typed=None):
        command = [sys.executable, "-m", "holdfast", *words]
        if typed is not None:
            return _at_a_terminal(command, typed, tmp_path, code)
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path, stdin=subprocess.DEVNULL)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    run_.settings = user / ".qwen" / "settings.json"
    return run_


def _at_a_terminal(command, typed, folder, code=0):
    ours, theirs = pty.openpty()
    running = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder)
    os.close(theirs)
    os.write(ours, typed.encode())
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:
        pass  # how a terminal ends
    os.close(ours)
    assert running.wait(60) == code, shown
    return shown.decode()


def test_where_nobody_can_be_asked_it_is_refused_with_what_to_type(run):
    before = run.settings.read_bytes()
    said = run("install", "qwen", code=3)
    assert "+++" in said  # what it would have changed
    assert "holdfast install qwen --yes" in said
    assert run.settings.read_bytes() == before


def test_a_dry_run_and_a_print_change_nothing(run):
    before = run.settings.read_bytes()
    assert "+++" in run("install", "qwen", "--dry-run")
    pasted = run("install", "qwen", "--print")
    assert "mcpServers" in pasted
    assert "// mine" not in pasted
    parts = json.loads(run("install", "qwen", "--print", "--json"))["parts"]
    assert json.loads(parts[0]["text"])["mcpServers"]["holdfast"]
    shown = json.loads(run("install", "qwen", "--dry-run", "--json"))
    assert [one["action"] for one in shown["changes"]] == ["change", "create"]
    assert run.settings.read_bytes() == before


def test_installed_with_yes_and_taken_out_again(run):
    before = run.settings.read_bytes()
    assert "installed" in run("install", "qwen", "--yes")
    assert "nothing to change" in run("install", "qwen", "--yes")
    assert "// mine" in run.settings.read_text()
    assert "uninstalled" in run("uninstall", "qwen", "--yes")
    assert run.settings.read_bytes() == before
    assert "nothing to change" in run("uninstall", "qwen", "--yes")


def test_a_person_is_asked_and_may_say_no(run):
    before = run.settings.read_bytes()
    said = run("install", "qwen", typed="n\n", code=3)
    assert "[y/N]" in said
    assert "Nothing was changed." in said and "holdfast:" not in said
    assert run.settings.read_bytes() == before
    assert "installed" in run("install", "qwen", typed="y\n")
    assert run.settings.read_bytes() != before


def test_alone_it_says_what_is_there_and_asks_for_each(run):
    assert [(one["client"], one["installed"]) for one in json.loads(run("install", "--json"))] == [("qwen", False)]
    assert "qwen" in run("install")
    assert "Qwen Code" in run("install", typed="y\n")
    assert json.loads(run("install", "--json"))[0]["installed"] is True


def test_to_decline_is_not_a_failure(run, tmp_path):
    (tmp_path / "user" / ".codex").mkdir()
    said = run("install", typed="n\nn\n", code=3)
    assert said.count("[y/N]") == 2
    assert said.count("Nothing was changed.") == 1
    assert "failed" not in said
    some = run("install", typed="n\ny\n")
    assert "1 installed, 1 declined" in some
    assert "failed" not in some
    assert [one["installed"] for one in json.loads(run("install", "--json"))] == [False, True]
    assert "Nothing was changed." in run("uninstall", "qwen", typed="n\n", code=3)


def test_changes_to_files_that_are_there_come_first_and_new_files_are_a_line_each(run, tmp_path):
    skill = tmp_path / "user" / ".qwen" / "skills" / "holdfast-memory" / "SKILL.md"
    shown = run("install", "qwen", "--dry-run")
    assert shown.index('+    "holdfast"') < shown.index(f"create  {skill} (")
    assert shown.count("+++") == 1
    assert "--diff" in shown
    full = run("install", "qwen", "--dry-run", "--diff")
    assert full.count("+++") == 2
    assert "+name: holdfast-memory" in full
    run("install", "qwen", "--yes")
    gone = run("uninstall", "qwen", "--dry-run")
    assert f"remove  {skill}\n" in gone
    assert '-    "holdfast"' in gone
    assert "-name: holdfast-memory" in run("uninstall", "qwen", "--dry-run", "--diff")
    skill.write_text("mine\n")
    assert "-mine" in run("install", "qwen", "--dry-run")  # a file of ours that the user changed belongs to the user


def test_the_skill_of_the_gateway_is_installed_only_where_there_is_one(run, tmp_path, monkeypatch):
    skill = tmp_path / "user" / ".qwen" / "skills" / "update-memory" / "SKILL.md"
    run("install", "qwen", "--yes")
    assert not skill.exists()
    run("install", "qwen", "--yes", "--gateway")
    assert skill.exists()
    run("uninstall", "qwen", "--yes")
    assert not skill.parent.exists()
    monkeypatch.setenv("HOLDFAST_URL", "https://memory.example")
    run("install", "qwen", "--yes")
    assert skill.exists()
    monkeypatch.delenv("HOLDFAST_URL")
    run("install", "qwen", "--yes")
    assert "no problems" in run("doctor")
    run("uninstall", "qwen", "--yes")
    assert not skill.parent.exists()


def test_an_uninstall_takes_the_skill_of_the_gateway_out_without_the_record(target):
    client = clients.load("qwen")
    install.install(client, target.replace(gateway=True))
    (Path(target.memory) / "installed" / "qwen.json").unlink()
    install.uninstall(client, target)
    assert not (Path(target.home) / ".qwen" / "skills" / "update-memory" / "SKILL.md").exists()


def test_alone_with_yes_it_does_all_it_can_and_says_what_failed(run, tmp_path):
    """Settings that cannot be edited, of one of three clients."""
    codex, copilot = tmp_path / "user" / ".codex", tmp_path / "user" / ".copilot"
    codex.mkdir()
    copilot.mkdir()
    (codex / "config.toml").write_text("a = 1\n")
    (codex / "config.toml").chmod(0o444)
    shown = json.loads(run("install", "--dry-run", "--json"))
    assert [(one["client"], one["action"]) for one in shown] == [(name, "dry_run") for name in ("codex", "copilot", "qwen")]
    assert "+++" in run("install", "--dry-run")
    assert "mcpServers" in run("install", "--print")
    said = run("install", "--yes", code=5)
    assert "2 installed, 1 failed: codex" in said
    assert "read-only" in said
    again = json.loads(run("install", "--yes", "--json", code=5))
    assert [one["action"] for one in again] == ["failed", "nothing", "nothing"]
    assert again[0]["exit_code"] == 5
    (codex / "config.toml").chmod(0o644)
    done = json.loads(run("install", "--yes", "--json", "--auto-memory"))
    assert [one["action"] for one in done] == ["install", "nothing", "nothing"]


def test_alone_an_uninstall_takes_everything_out(run, tmp_path):
    before = run.settings.read_bytes()
    (tmp_path / "AGENTS.md").write_text("# Mine\n")
    assert "Nothing is installed." in run("uninstall")
    run("install", "qwen", "--yes")
    run("install", "generic", "--yes")
    assert "--yes" in run("uninstall", code=3)
    assert run.settings.read_bytes() != before
    assert "2 uninstalled" in run("uninstall", "--yes")
    assert run.settings.read_bytes() == before
    assert (tmp_path / "AGENTS.md").read_text() == "# Mine\n"


def test_an_uninstall_of_a_file_that_cannot_be_read_offers_what_there_is(run):
    run("install", "qwen", "--yes")
    run.settings.write_text("{ broken")
    said = run("uninstall", "qwen", "--yes", code=3)
    assert "Fix the file" in said
    assert "--print" not in said


def test_a_place_that_is_none_is_told_with_those_there_are(run):
    assert "notes, files, plugin CLIENT" in run("path", "nope", code=1)


def test_the_path_of_no_clients_plugin_says_which_there_are(run):
    said = run("path", "plugin", code=2)
    assert "`holdfast path plugin CLIENT` with one of: claude-code, codex," in said
    assert "Other names are" not in said
    run("store", "How we package it.", "--key", "plugin", "--project", "demo")
    assert run("path", "plugin", "--project", "demo").endswith("/notes/plugin.md\n")


def test_an_unknown_client_is_told_with_the_nearest(run):
    assert "claude-code" in run("install", "claude-cod", code=2)


def test_the_path_of_a_plugin_is_printed_and_the_plugin_is_there(run):
    path = Path(run("path", "plugin", "claude-code").strip())
    assert (path / ".claude-plugin" / "plugin.json").is_file()
    command = json.loads((path / ".mcp.json").read_text())["mcpServers"]["holdfast"]["command"]
    assert os.path.isabs(command)


def test_the_memory_that_claude_keeps_itself_can_live_on_our_shelf(run, tmp_path):
    run("install", "claude-code", "--auto-memory", "--yes", "--project", "demo")
    local = tmp_path / ".claude" / "settings.local.json"
    folder = json.loads(local.read_text())["autoMemoryDirectory"]
    assert folder.endswith("/shelf/projects/demo/files/auto-memory")
    Path(folder).mkdir(parents=True)
    Path(folder, "MEMORY.md").write_text("- [Lighthouse](light.md): the keeper's cat is Mia\n")
    assert "Mia" in run("recall", "lighthouse", "--project", "demo")
    run("uninstall", "claude-code", "--yes")
    assert not local.exists()
    assert Path(folder, "MEMORY.md").exists()
    assert "no setting for the folder of its own memory" in run("install", "qwen", "--auto-memory", "--yes", code=2)
