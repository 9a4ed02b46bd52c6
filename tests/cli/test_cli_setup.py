"""`init`, `config` and `path`."""

from __future__ import annotations

import json
import subprocess

import pytest


def test_init_creates_a_home_that_only_its_owner_can_read(holdfast, home):
    said = holdfast("init")
    assert said.code == 0 and str(home) in said.out and "demo" in said.out
    assert home.stat().st_mode & 0o777 == 0o700


@pytest.mark.promise("P3")
def test_init_with_marker_gives_the_folder_a_permanent_id(holdfast, tmp_path):
    said = holdfast("init", "--marker", "--json", project=None)
    marker = tmp_path / ".holdfast/project.json"
    assert said.json["marker"] == str(marker)
    assert said.json["project"] == json.loads(marker.read_text())["id"]
    assert (marker.parent.stat().st_mode & 0o777, marker.stat().st_mode & 0o777) == (0o700, 0o600)
    assert holdfast("init", "--marker", "--json", project=None).json == said.json


def test_config_lists_every_setting_with_its_source(holdfast, home, monkeypatch):
    monkeypatch.setenv("HOLDFAST_AGENT", "bob")
    holdfast("config", "brief.entries", "7")
    listed = {one["name"]: (one["value"], one["from"]) for one in holdfast("config", "--json").json}
    assert listed["brief.entries"] == (7, "config.toml")
    assert listed["agent.name"] == ("bob", "HOLDFAST_AGENT")
    assert listed["lock.seconds"] == (30, "default")
    assert "Maximum number of whole notes per scope" in holdfast("config").out


def test_config_never_prints_the_key_of_an_endpoint(holdfast, home, monkeypatch):
    told = [holdfast("config", "search.key", "sesame-open", *words) for words in ((), ("--json",))]
    told += [holdfast("config", *words) for words in ((), ("--json",), ("search.key",), ("search.key", "--json"))]
    monkeypatch.setenv("HOLDFAST_EMBED_KEY", "sesame-close")
    told += [holdfast("config", *words) for words in ((), ("--json",), ("search.key",))]
    told += [holdfast("status", "--json"), holdfast("doctor", "--json")]
    assert {said.code for said in told} == {0}
    assert not [said for said in told if "sesame" in said.out + said.err]
    assert told[0].out == "********\n"
    assert "sesame-open" in (home / "config.toml").read_text()
    monkeypatch.delenv("HOLDFAST_EMBED_KEY")
    assert holdfast("config", "search.key", "--unset", "--json").json["value"] is None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("word2vec", "unknown embedder 'word2vec'"), ("gpt:4", "unknown kind of embedder 'gpt'"),
        ("default,use", "default is a list itself (static,minilm,use)"), ("minilm,none", "none means no embedder"),
        ("minilm,", "an empty name"), ("", "names no embedder"), ("onnx:/nowhere", "no model.onnx in the folder"),
        ("minilm,endpoint:m@http://h/v1", "part of a list"), ("endpoint:m@http://h/v1,minilm", "part of a list"),
        ("endpoint:m@http://user:hunter2@h/v1", "without user"), ("endpoint:m", "endpoint:MODEL@URL"),
        ("fastembed:", "the name"),
    ],
)  # fmt: skip
def test_config_rejects_an_invalid_embedder(holdfast, home, value, said):
    refused = holdfast("config", "search.embedder", value)
    assert refused.code == 2 and said in refused.err and "hunter2" not in refused.err
    assert refused.err.count("\n") == 2  # the problem and the fix
    assert not (home / "config.toml").exists()


@pytest.mark.parametrize("text", ["garbage = [", "= 1", "[a", "a = \x00"])
def test_config_names_a_file_that_is_not_toml(holdfast, home, text):
    home.mkdir()
    (home / "config.toml").write_text(text)
    refused = holdfast("config", "hooks.reminder", "3", "--json")
    assert (refused.code, refused.json["error"]) == (2, "config") and "config.toml is not valid TOML" in refused.json["message"]
    assert (home / "config.toml").read_text() == text


@pytest.mark.parametrize("url", ["localhost:8710", "notaurl", "http:/127.0.0.1:8710", "postgresql://x"])
def test_an_address_that_is_no_gateway_is_refused_and_no_local_home_is_used(holdfast, home, url):
    refused = holdfast("--url", url, "store", "x", "--json")
    assert (refused.code, refused.json["error"]) == (2, "config") and not home.exists()
    assert holdfast("config", "gateway.url", url).code == 0
    assert holdfast("list", "--json").json["error"] == "config"


def test_a_removed_folder_belongs_to_no_project(holdfast, tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    refused = holdfast("store", "x", "--json", project=None)
    assert refused.json["error"] == "no_scope" and "was deleted" in refused.json["message"]
    assert holdfast("store", "x", project="named").code == 0


def test_config_describes_the_embedders(holdfast):
    told = holdfast("config", "search.embedder", "word2vec").err
    for choice in ("default", "none", "static", "minilm", "use", "endpoint:MODEL@URL", "onnx:FOLDER", "fastembed:NAME"):
        assert choice in told
    assert holdfast("config", "search.embedder", "Static, use").code == 0


@pytest.mark.parametrize(
    "setting",
    [
        "endpoint:m@http://me:hunter2@h/v1", "endpoint:m@http://me:hun@ter2/hunter2@h/v1", "endpoint:m@http://h/v1?key=hunter2",
        "endpoint:m@me:hunter2@h/v1", "http://me:hunter2@h/v1", "endpoint:m@http://h/v1#hunter2", "endpoint:hunter2@h",
    ],
)  # fmt: skip
def test_a_password_in_the_embedder_setting_is_never_printed(holdfast, home, monkeypatch, setting):
    from holdfast import config

    holdfast("store", "the harbour opens at six", "--key", "k")
    (home / "config.toml").write_text(f'[search]\nembedder = "{setting}"\n')
    monkeypatch.delenv("HOLDFAST_EMBEDDER")
    told = []
    for words in (
        ("config",), ("config", "search.embedder"), ("status",), ("doctor",), ("embed",), ("recall", "harbour", "--explain"),
        ("recall", "harbour", "--mode", "hybrid", "--debug"),
    ):  # fmt: skip
        told += [holdfast(*words), holdfast(*words, "--json")]
    assert [said for said in told if "hunter2" in said.out + said.err] == []
    assert "hunter2" not in repr(config.load(home)) and "********" in repr(config.load(home))
    assert "********" in told[0].out and "********" in holdfast("status").out


@pytest.mark.parametrize("setting", ["default", "minilm,use", "onnx:/a@b", "endpoint:a@b@http://h:1/v1", "fastembed:BAAI/x@2"])
def test_an_embedder_setting_without_a_password_is_printed_unchanged(setting):
    from holdfast.config import hide_password

    assert hide_password(setting) == setting


def test_config_changes_one_value_and_keeps_comments(holdfast, home):
    home.mkdir(mode=0o700)
    file = home / "config.toml"
    file.write_text("# mine\n[brief]\nentries = 5 # enough\n\n[other]\nx = 1\n")
    assert holdfast("config", "brief.entries").out == "5\n"
    assert holdfast("config", "brief.entries", "9").out == "9\n"
    assert holdfast("config", "memory.enabled", "no").out == "false\n"
    assert holdfast("config", "memory.enabled", "true").code == 0
    text = file.read_text()
    assert "# mine\n[brief]\nentries = 9 # enough\n\n[other]\nx = 1\n" in text
    assert "enabled = true" in text
    assert holdfast("config", "brief.entries", "--unset").out == "0\n"
    assert "entries" not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_config_follows_a_symbolic_link(holdfast, home, tmp_path):
    home.mkdir(mode=0o700)
    (tmp_path / "dotfile.toml").write_text("# dots\n")
    (home / "config.toml").symlink_to(tmp_path / "dotfile.toml")
    assert holdfast("config", "brief.entries", "9").code == 0
    assert (home / "config.toml").is_symlink()
    assert "entries = 9" in (tmp_path / "dotfile.toml").read_text()


@pytest.mark.parametrize(
    "words",
    [
        ("brief.entrys",), ("brief.entries", "many"), ("brief.entries", "-1"), ("memory.enabled", "perhaps"),
        ("brief.entries", "5", "--unset"),
    ],
)  # fmt: skip
def test_an_invalid_setting_is_wrong_usage_and_writes_nothing(holdfast, home, words):
    assert holdfast("config", *words).code == 2
    assert not (home / "config.toml").exists()


def test_config_rejects_a_file_with_a_value_in_place_of_a_table(holdfast, home):
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("brief = 3\n")
    assert holdfast("config", "brief.entries", "5").code == 2
    assert (home / "config.toml").read_text() == "brief = 3\n"


def test_a_removed_folder_cannot_be_marked(holdfast, tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert holdfast("init", "--marker").code == 1


def test_config_suggests_a_similar_setting(holdfast):
    assert "Did you mean brief.entries?" in holdfast("config", "brief.entrys").err


def test_concurrent_changes_of_settings_are_all_kept(program, home, tmp_path):
    names = ["brief.entries", "notes.max_bytes", "lock.seconds", "retention.trash_days", "retention.project_days"]
    running = [subprocess.Popen(program.command("config", name, "33"), stdout=subprocess.DEVNULL) for name in names]
    assert [one.wait(60) for one in running] == [0] * len(names)
    text = (home / "config.toml").read_text()
    assert text.count("= 33") == len(names)


def test_path_prints_the_parts_of_the_home(holdfast, home):
    holdfast("store", "text", "--key", "k")
    assert holdfast("path").out == f"{home}\n"
    assert holdfast("path", "index").out == f"{home}/index.db\n"
    assert holdfast("path", "notes").out == f"{home}/shelf/projects/demo/notes\n"
    assert holdfast("path", "files", "--scope", "global").out == f"{home}/shelf/global/files\n"
    assert holdfast("path", "k").out == f"{home}/shelf/projects/demo/notes/k.md\n"
    assert holdfast("path", "config", "--json").json == {
        "what": "config", "path": f"{home}/config.toml", "exists": False
    }  # fmt: skip
    assert holdfast("path", "nothing").code == 1
    assert holdfast("path", "notes", "--scope", "session").code == 3
    assert holdfast("path", "notes", "--scope", "moon").code == 2


@pytest.mark.parametrize("words", [("trust.quarantine", ""), ("trust.quarantine", "--unset"), ("memory.enabled", "false")])
def test_an_agent_cannot_change_settings_that_limit_agents(holdfast, home, monkeypatch, words):
    holdfast("config", "trust.quarantine", "web")
    before = (home / "config.toml").read_text()
    monkeypatch.setenv("CLAUDECODE", "1")
    refused = holdfast("config", *words)
    assert refused.code == 3
    assert "agents cannot change" in refused.err
    assert (home / "config.toml").read_text() == before
    assert holdfast("config", "brief.entries", "7").code == 0  # other settings are allowed
    assert holdfast("config", "trust.quarantine").code == 0
