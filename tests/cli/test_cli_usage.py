"""Arguments, help, error messages and exit codes of every command."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from holdfast import Memory
from holdfast.cli import main
from holdfast.cli.command import EXIT_CODES, GLOBAL_OPTIONS
from holdfast.cli.command_table import COMMANDS

# --- usage and errors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["stroe", "x"], "Did you mean `holdfast store`?"),
        (["remember", "x"], "Did you mean `holdfast store`?"),
        (["add", "x"], "Did you mean `holdfast store`?"),
        (["show", "k"], "Did you mean `holdfast get`?"),
        (["rm", "k"], "Did you mean `holdfast forget`?"),
        (["delete", "k"], "Did you mean `holdfast forget`?"),
        (["find", "x"], "Did you mean `holdfast recall`?"),
        (["file", "veiw", "x"], "Did you mean `holdfast file view`?"),
        (["file", "xyz"], "Use one of: view, create"),
        (["file"], "needs a command: view, create"),
        (["bench"], "holdfast bench retrieval FILE... [options]  Measure how well recall finds the answers to questions"),
        (["bench", "nope"], "Use one of: speed, retrieval, context, load"),
        (["bench", "lod"], "Did you mean `holdfast bench load`? Use one of: speed, retrieval, context, load"),
        (["bench", "retrieval", "--modes"], "Did you mean --mode?"),
        (["bench", "retrieval", "--xyzzy"], "unknown option --xyzzy"),
        (["recall", "x", "--limt", "3"], "Did you mean --limit?"),
        (["recall", "x", "--zzz"], "Run `holdfast recall --help`"),
        (["--scope", "global", "list"], "Write the command first"),
        (["store"], "Usage: holdfast store TEXT [options]"),
        (["store", "two", "words"], 'Put quotes around the text: "TEXT"'),
        (["get", "a", "b"], "Usage: holdfast get KEY [options]"),
        (["recall", "x", "--limit", "ten"], "needs a whole number"),
        (["recall", "x", "--limit"], "Add one: --limit N"),
        (["recall", "x", "--mode", "--no-color"], "--mode needs a value"),
        (["recall", "x", "--json=yes"], "Write only --json"),
        (["recall", "x", "--mode", "psychic"], "One of: hybrid, keyword"),
        (["recall", "x", "--limit", "0"], "--limit must be 1 to 100"),
        (["recall", "x", "--now", "soon"], "--now: 'soon' is not a date"),
        (["store", "x", "--valid-to", "2026-01-01", "--valid-from", "2026-02-01"], "an earlier --valid-from"),
        (["store", "x", "--allow-secret", ""], 'Such as --allow-secret "a test account"'),
        (["recall"], "the query is empty"),
        (["recall", "x", "--as-of", "soon"], "Write a day"),
        (["store", "x", "--scope", "moon"], "Use one of: session, project"),
        (["completion", "tcsh"], "Use one of: bash, zsh, fish"),
        ([], "holdfast --help"),
    ],
)
def test_wrong_usage_exits_2_with_what_to_type_instead(holdfast, words, hint):
    said = holdfast(*words)
    assert (said.code, said.out) == (2, "")
    assert hint in said.err
    assert "Traceback" not in said.err
    answer = holdfast("--json", *words)
    assert (answer.code, answer.json["error"], answer.err) == (2, "usage", "")
    assert set(answer.json) == {"error", "message", "fix", "exit_code"}


def test_messages_name_options_as_they_are_typed(holdfast, tmp_path):
    """Give an invalid value to each option of two words."""
    holdfast("store", "x", "--key", "k")
    words = {"SUBJECT": "a", "LABEL": "b", "FILE": str(tmp_path / "none"), "ENTITY": "a"}
    tried = 0
    for name, command in COMMANDS.items():
        if command.raw or name.startswith("bench") or name in ("serve", "mcp", "prove", "install", "uninstall", "copy"):
            continue
        for option in [one for one in command.options if one.value and "_" in one.field]:
            for bad in ("", "soon", "2026-99-99"):
                given = [words.get(arg.name, "k") for arg in command.args if arg.required]
                said = holdfast(*name.split(), *given, f"{option.name}={bad}")
                if said.code:
                    tried += 1
                    assert option.field not in said.err, said.err
                    assert option.name in said.err or not said.err.startswith(f"holdfast: {option.field}")
    assert tried >= 20


def test_messages_keep_the_words_of_the_user(holdfast):
    assert "'valid_from'" in holdfast("store", "x", "--key", "valid_from").err
    assert "named valid_from" in holdfast("recall", "x", "--as-of", "named valid_from").err
    said = holdfast("import", "-", stdin=b'{"text": "x", "valid_from": "soon"}')
    assert "valid_from: 'soon'" in said.err and "--valid-from" not in said.err  # a field of the JSON, not an option


def test_options_may_stand_before_or_after_the_command_and_take_an_equals_sign(home, capsys):
    for words in (
        ["--json", f"--home={home}", "store", "x", "--project", "p", "--key=k"],
        ["store", "--key", "k", "x", "--project=p", "--json", "--home", str(home)],
    ):
        assert main(words) == 0
        assert json.loads(capsys.readouterr().out)["note"]["scope"] == {"kind": "project", "id": "p"}


@pytest.mark.promise("N1")
def test_a_scope_without_an_id_is_rejected_with_the_option_that_gives_it(holdfast):
    said = holdfast("store", "x", "--scope", "session")
    assert said.code == 3
    assert "--session" in said.err
    assert holdfast("store", "x", "--scope", "session", "--session", "s1").out == "created x in session:s1\n"


@pytest.mark.parametrize(
    "words",
    [
        ("store", "--json", "--nope"), ("bench", "speed", "--json", "--nope"), ("bench", "speed", "--nope", "--json"),
        ("bench", "--json", "nope"), ("--json", "bench", "load", "--nope"), ("bench", "speed", "--json", "--seed", "x"),
        ("bench", "load", "--json", "--notes"), ("bench", "retrieval", "--json"), ("bench", "--json"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_wrong_usage_with_json_is_one_document_for_every_command(holdfast, words):
    said = holdfast(*words)
    assert (said.code, said.err, said.json["error"], said.json["exit_code"]) == (2, "", "usage", 2)
    assert said.json["message"] and said.json["fix"]


def test_every_exit_code_occurs(holdfast, home):
    holdfast("store", "text", "--key", "k")
    codes = {
        holdfast("get", "k").code,
        holdfast("get", "nothing").code,
        holdfast("nonsense").code,
        holdfast("store", "text", "--key", "Not A Key").code,
        holdfast("store", "other", "--key", "k", "--expected", "0" * 32).code,
        holdfast("--home", "/dev/null/x", "store", "text").code,
    }
    assert codes == {0, 1, 2, 3, 4, 5} == {code for code, _ in EXIT_CODES} - {130}


@pytest.mark.parametrize("words", [("store", "text"), ("recall", "text"), ("file", "create", "a.md", "text")], ids=" ".join)
@pytest.mark.parametrize("inside", ["", "/deeper", "/deeper/still"])
def test_a_home_that_is_a_file_is_named_by_every_command(holdfast, tmp_path, words, inside):
    file = tmp_path / "letter.txt"
    file.write_text("Dear reader")
    said = holdfast("--home", f"{file}{inside}", *words, "--json")
    assert (said.code, said.json["error"], said.json["message"]) == (5, "disk", f"the home {file}{inside} is not a folder")
    assert "--home" in said.json["fix"] and file.read_text() == "Dear reader"


def test_an_unexpected_error_is_one_line_without_a_traceback(holdfast, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("a bolt came loose")

    monkeypatch.setattr(Memory, "list", broken)
    said = holdfast("list")
    assert (said.code, said.out) == (5, "")
    assert said.err == "holdfast: RuntimeError: a bolt came loose\n  Run it again with --debug and report the traceback\n"
    assert "Traceback" in holdfast("list", "--debug").err
    assert holdfast("list", "--json").json["error"] == "trouble"


def test_debug_prints_the_traceback_of_expected_errors_too(holdfast):
    assert "Traceback" in holdfast("get", "nothing", "--debug").err
    said = holdfast("get", "nothing", "--debug", "--json")
    assert said.json["error"] == "not_found"


ONE_OF_EACH = [
    ["store", "text", "--key", "k"], ["recall", "text"], ["get", "k"], ["list"], ["edit", "k"], ["import", "-"],
    ["fact", "s", "l", "v"], ["facts"], ["graph", "s"], ["log", "-", "--session", "s1"], ["import-history", "."],
    ["expand", "projects/demo/transcripts/unknown/s1.jsonl:2"], ["embed"],
    ["review"], ["trace", "k"], ["relate", "k"], ["export"],
    ["forget", "k"], ["restore", "k"], ["purge", "k", "--yes"], ["receipts"],
    ["clear", "--scope", "project", "--yes"], ["retain"], ["search", "text"],
    ["file create", "a.md", "text"], ["read", "a.md"], ["file view", "a.md"], ["file str-replace", "a.md", "text", "other"],
    ["file insert", "a.md", "0", "text"], ["file rename", "a.md", "b.md"], ["file delete", "b.md"], ["brief"],
    ["scaffold", "wiki"], ["boot"], ["operator send", "text"], ["operator list"], ["operator read"],
    ["install"], ["install", "kimi", "--yes"], ["uninstall", "kimi", "--yes"],
    ["render", "AGENTS.md"],
    ["agent add", "reviewer", "--role", "secretary"], ["agent list"], ["agent rotate", "reviewer"],
    ["agent grant", "reviewer", "project", "acme-*"], ["agent grants", "reviewer"],
    ["agent ungrant", "reviewer", "project", "acme-*"],
    ["agent revoke", "reviewer"], ["role list"], ["role check"], ["audit list"], ["audit verify"], ["audit export"],
    ["audit prune", "--before", "2020-01-01", "--yes"],
    ["done list"], ["done exists", "github.review", "acme/shop#7"],
    ["status"], ["doctor"], ["project list"], ["project adopt", "demo", "newer"],
    ["reindex"], ["init"], ["config"], ["path"], ["completion", "bash"], ["help"],
    ["models list"], ["models test"], ["help", "store"], ["demo"], ["copy", "home", "copied"],
]  # fmt: skip


def test_every_command_answers_with_pure_json(holdfast, monkeypatch):
    monkeypatch.setenv("EDITOR", "true")
    assert {words[0] for words in ONE_OF_EACH} == set(COMMANDS) - {
        "bench speed", "bench retrieval", "bench context", "bench load", "bench console", "resident", "hook", "prove",
        "mcp", "serve", "migrate", "ui", "models install",
    }  # fmt: skip
    for words in ONE_OF_EACH:
        said = holdfast(*words[0].split(), *words[1:], "--json", stdin=b'{"text": "more"}\n')
        assert said.code == {"demo": 2, "done exists": 1, "project adopt": 1}.get(words[0], 0), (words, said.out)
        assert said.err == "", words
        assert said.json is not None, words


@pytest.mark.promise("A6")
def test_done_lists_and_checks_the_recorded_work_of_agents(holdfast, home):
    with Memory(home, project="demo") as memory:
        ledger = memory._context.ledger
        ledger.done.record("ada", "triage", "acme/shop#3", 1_772_000_000)
        for number in (7, 8):
            ledger.reviews.record("ben", "acme", "shop", number, holder="h", now=1_772_000_100)
    first = holdfast("done", "list", "--limit", "2", "--json").json
    assert [(one["agent"], one["kind"], one["subject"]) for one in first["done"]] == [
        ("ben", "github.review", "acme/shop#8"), ("ben", "github.review", "acme/shop#7")
    ]  # fmt: skip
    rest = holdfast("done", "list", "--cursor", first["next"], "--json").json
    assert [one["subject"] for one in rest["done"]] == ["acme/shop#3"] and rest["next"] is None
    assert "acme/shop#7" in holdfast("done", "list", "--kind", "github.review").out
    assert holdfast("done", "list", "--agent", "ada", "--kind", "github.review", "--json").json["done"] == []
    asked = ("done", "exists", "github.review", "Acme/Shop#7")
    assert [holdfast(*asked, *whose).code for whose in ((), ("--agent", "ben"), ("--agent", "ada"))] == [0, 0, 1]
    assert holdfast("done", "exists", "github.review", "acme/shop#9", "--json").json == {"exists": False}
    assert holdfast("done", "list", "--cursor", "x").code == 2
    with Memory(home, project="demo") as memory:
        memory._context.ledger.done.mask(lambda text: "#3" in text)
    assert holdfast("done", "exists", "triage", "acme/shop#3", "--json").json == {"exists": True}


def test_json_is_utf8_with_hidden_characters_escaped(program, home):
    with Memory(home, project="demo") as memory:
        memory.store("日本 \x1b[31m \x9b bidi \u202e", key="k")
    done = subprocess.run(program.command("get", "k", "--json"), capture_output=True, env={**os.environ, "LC_ALL": "C"})
    assert "日本".encode() in done.stdout
    assert all(byte >= 0x20 or byte == 0x0A for byte in done.stdout)
    assert b"\\u009b" in done.stdout and b"\\u202e" in done.stdout
    assert json.loads(done.stdout)["text"] == "日本 \x1b[31m \x9b bidi \u202e"


# --- help -------------------------------------------------------------------------------------------------------------


def test_help_names_every_command_option_and_exit_code(holdfast):
    said = holdfast("--help")
    assert said.code == 0
    for name in [name.split()[-1] for name in COMMANDS] + [option.name for option in GLOBAL_OPTIONS]:
        assert name in said.out
    for code, meaning in EXIT_CODES:
        assert f"  {code:<3}  {meaning}\n" in said.out
    assert holdfast("help").out == holdfast("-h").out == said.out
    assert max(map(len, said.out.splitlines())) <= 100


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"resident"}))
def test_each_command_has_help_with_its_options_and_an_example_that_parses(holdfast, name):
    import shlex

    from holdfast.cli.parser import parse_args

    said = holdfast(*name.split(), "--help")
    assert said.code == 0
    assert said.out.startswith(f"usage: holdfast {name}")
    assert all(option.name in said.out for option in COMMANDS[name].options)
    assert holdfast("help", *name.split()).out == said.out
    if "<(" not in COMMANDS[name].example:
        assert parse_args(shlex.split(COMMANDS[name].example)[1:]).command is COMMANDS[name]


def test_help_of_a_command_group_lists_its_commands(holdfast):
    assert "holdfast file str-replace PATH OLD NEW" in holdfast("file", "--help").out
    said = holdfast("bench", "--help").out
    assert holdfast("help", "bench").out == said
    for name in ("speed", "retrieval", "context", "load"):
        assert f"holdfast bench {name}" in said and COMMANDS[f"bench {name}"].summary in said


def test_version(holdfast):
    from holdfast import __version__

    assert holdfast("--version").out == f"holdfast {__version__}\n"
    assert holdfast("--version", "--json").json == {"version": __version__}
