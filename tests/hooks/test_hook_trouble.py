"""A hook never breaks a session: exit 0 and valid output for its client, whatever happens; `doctor` shows the failure."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time

import apsw
import pytest
from test_hook import configure, context_text

from holdfast import Memory
from holdfast.base import dates, failure_log

START = ("claude-code", "SessionStart")
PROMPT = ("claude-code", "UserPromptSubmit")


@pytest.fixture
def deploys(note):
    return note("We deploy on Tuesdays.", "deploys")


def log(home):
    return failure_log.read(str(home))


def doctor(home):
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "doctor", "--json", "--home", str(home), "--project", "demo"],
        capture_output=True, text=True, cwd=home.parent, timeout=60,
    )  # fmt: skip
    return [one for one in json.loads(done.stdout)["problems"] if one["code"] == "hook"]


# --- input ------------------------------------------------------------------------------------------------------------


@pytest.mark.promise("B6")
@pytest.mark.parametrize(
    "raw",
    [b"", b"  \n", b"\xef\xbb\xbf{}", b"{}", b'\xef\xbb\xbf{"session_id": "s1"} trailing',
     b'{"session_id": 7, "cwd": [], "source": {}}',
     b'{"a": NaN, "b": -Infinity, "c": 1e999, "d": ' + b"9" * 6000 + b"}", b'{"\\ud800": "\\udc00"}'],
    ids=["empty", "blank", "bom", "object", "bom and more", "wrong types", "odd numbers", "surrogates"],
)  # fmt: skip
def test_odd_but_sound_input_is_taken_as_it_is(hook, deploys, home, folder, raw):
    assert "Tuesdays" in context_text(hook(*START, raw=raw, env={"HOLDFAST_PROJECT": deploys.scope.id}))
    assert log(home) == []


@pytest.mark.promise("B6")
@pytest.mark.parametrize(
    "raw",
    [b"{", b"not json", b"[1, 2]", b'"text"', b"null", b"\xff\xfe\x00", b'{"a": "' + b"x" * 11_000_000 + b'"}', b"[" * 200_000,
     b'{"prompt": "secret words"'],
    ids=["cut", "words", "list", "string", "null", "bytes", "too long", "too deep", "cut prompt"],
)  # fmt: skip
def test_what_is_no_json_object_is_noted_and_the_hook_does_what_it_can(hook, deploys, home, raw):
    assert "Tuesdays" in context_text(hook(*START, raw=raw, env={"HOLDFAST_PROJECT": deploys.scope.id}))
    assert [(one.client, one.event, "JSON" in one.message) for one in log(home)] == [("claude-code", "SessionStart", True)]
    assert "secret" not in (home / "run" / failure_log.NAME).read_text()


@pytest.mark.promise("B6")
def test_without_any_stdin_or_stdout_it_leaves_quietly(home, folder, deploys):
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        done = subprocess.run(
            ["sh", "-c", f'exec "{sys.executable}" -m holdfast hook claude-code SessionStart {closed}'],
            stdin=subprocess.DEVNULL, capture_output=True, cwd=folder, timeout=60,
            env={**os.environ, "HOLDFAST_HOME": str(home)},
        )  # fmt: skip
        assert done.returncode == 0 and done.stderr == b"", closed
        assert (b"Tuesdays" in done.stdout) == (">&-" not in closed.replace("2>&-", ""))


@pytest.mark.promise("B6")
def test_a_client_that_does_not_read_the_answer_is_no_trouble(home, folder, deploys):
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "hook", "claude-code", "SessionStart"], stdin=subprocess.DEVNULL, cwd=folder,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "HOLDFAST_HOME": str(home)},
        )  # fmt: skip
        process.stdout.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait(60) == 0


@pytest.mark.promise("B6")
def test_a_client_that_never_finishes_telling_is_not_waited_for(home, folder, deploys):
    code = (
        "import sys; from holdfast import hooks; hooks._MAX_SECONDS = 0.3;"
        "sys.exit(hooks.main(['gemini', 'SessionStart'], enforce_deadline=True))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder,
        env={**os.environ, "HOLDFAST_HOME": str(home)},
    )  # fmt: skip
    process.stdin.write(b'{"session_id": ')
    process.stdin.flush()
    assert process.stdout.read() == b"{}"
    assert process.wait(60) == 0
    process.stdin.close()
    process.stdout.close()
    assert ["too long" in one.message for one in log(home)] == [True]


# --- arguments --------------------------------------------------------------------------------------------------------


@pytest.mark.promise("B6")
@pytest.mark.parametrize("client", ["claude", "nobody", "../../x", "os", "shape", "claude_code", "__init__", "CODEX", "é"])
def test_a_client_that_we_do_not_know_is_noted(hook, deploys, home, client):
    assert hook(client, "SessionStart") == ""
    assert len(log(home)) == 1 and "unknown client" in log(home)[0].message


def test_called_otherwise_it_says_how_and_leaves_with_0(home):
    for words in ([], ["claude-code"], ["claude-code", "Stop", "more"], ["--help"]):
        done = subprocess.run([sys.executable, "-m", "holdfast", "hook", *words], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "") and "usage: holdfast hook" in done.stdout


@pytest.mark.parametrize(
    "before", [["--home", "HOME"], ["--home=HOME"], ["--home", "HOME", "--no-color"], ["--no-color", "--home", "HOME"]]
)
def test_global_options_may_stand_before_it(home, folder, deploys, before):
    words = [word.replace("HOME", str(home)) for word in before]
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", *words, "hook", "claude-code", "SessionStart"], input=b"{}", capture_output=True,
        cwd=folder, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0 and "Tuesdays" in context_text(done.stdout.decode())


# --- the home ---------------------------------------------------------------------------------------------------------


@pytest.mark.promise("B6")
def test_where_there_is_no_home_nothing_is_told_and_none_is_made(hook, home):
    assert hook(*START) == "" and hook("gemini", "BeforeAgent", prompt="hello there") == "{}"
    assert hook("nobody", "SessionStart") == ""
    assert not home.exists()


@pytest.mark.promise("N12", "B6")
@pytest.mark.parametrize("how", ["environment", "config"])
def test_switched_off_nothing_is_told_and_nothing_is_written(hook, deploys, home, how):
    env = {"HOLDFAST_ENABLED": "0"} if how == "environment" else {}
    if how == "config":
        configure(home, "[memory]\nenabled = false\n")
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    assert hook(*START, env=env) == ""
    assert hook(*PROMPT, prompt="when do we deploy?", env=env) == ""
    assert hook("gemini", "SessionStart", env=env) == "{}"
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before


def _garbage(name):
    def plant(home):
        for path in home.glob(f"{name}*"):
            path.unlink()
        (home / name).write_bytes(b"garbage" * 3000)

    return plant


@pytest.mark.promise("B6", "promise-8")
@pytest.mark.parametrize("name", ["index.db", "ledger.db"])
def test_a_damaged_database_keeps_nobody_from_being_told(hook, deploys, home, name):
    _garbage(name)(home)
    assert "Tuesdays" in context_text(hook(*START, env={"HOLDFAST_PROJECT": deploys.scope.id}))


@pytest.mark.promise("B6")
def test_settings_that_cannot_be_read_are_noted_with_the_fix(hook, deploys, home):
    configure(home, "[brief\n")
    assert hook(*START) == "" and hook("gemini", "SessionStart") == "{}"
    assert [one.client for one in log(home)] == ["claude-code", "gemini"]
    assert "TOML" in log(home)[0].message and "Correct" in log(home)[0].fix


@pytest.mark.promise("B6")
@pytest.mark.parametrize("what", ["file", "dangling link", "not a folder above"])
def test_a_home_that_is_none_is_no_trouble(hook, home, what):
    if what == "file":
        home.write_text("precious")
    elif what == "dangling link":
        home.symlink_to(home.parent / "gone")
    else:
        home.parent.joinpath("plain").write_text("x")
    env = {"HOLDFAST_HOME": str(home.parent / "plain" / "home")} if what.startswith("not") else {}
    assert hook(*START, env=env) == "" and hook(*PROMPT, prompt="when do we deploy?", env=env) == ""
    assert not home.is_file() or home.read_text() == "precious"


@pytest.mark.promise("B6")
def test_a_home_that_cannot_be_written_is_told_from_and_left_alone(child, deploys, home, folder):
    said = child(
        """
        import contextlib, io
        from holdfast import hooks
        out = io.StringIO()
        os.environ["HOLDFAST_HOME"], os.environ["HOLDFAST_PROJECT"] = args[0], args[1]
        for event, data in (("SessionStart", b'{"session_id": "s1"}'),
                            ("UserPromptSubmit", b'{"session_id": "s1", "prompt": "when do we deploy?"}')):
            hooks._read_stdin = lambda: data
            with contextlib.redirect_stdout(out):
                assert hooks.main(["claude-code", event]) == 0
        answer = out.getvalue()
        """,
        read_only(home), deploys.scope.id,
        first="import holdfast.hooks, holdfast.clients.claude_code, "
        "holdfast.verbs.brief.relevance, holdfast.verbs.brief.select\n",
        as_nobody=True, HOME=str(folder),
    )  # fmt: skip
    os.chmod(home, 0o700)
    assert said == "" or "Tuesdays" in said
    assert log(home) == []


def read_only(home):
    for where, _, names in os.walk(home):
        os.chmod(where, 0o555)
        for name in names:
            os.chmod(os.path.join(where, name), 0o444)
    return home


@pytest.mark.promise("B6")
def test_a_ledger_that_somebody_holds_delays_it_a_moment_and_no_more(hook, deploys, home):
    hook(*START)
    holder = apsw.Connection(str(home / "ledger.db"))
    holder.execute("BEGIN IMMEDIATE")
    start = time.monotonic()
    assert "Tuesdays" in context_text(hook(*PROMPT, session_id="other", prompt="when do we deploy?"))
    assert time.monotonic() - start < 25  # lock.seconds would be 30 for each of several writes
    holder.execute("ROLLBACK")
    holder.close()


@pytest.mark.promise("B6", "promise-8")
def test_a_full_disk_is_no_trouble(home, folder, deploys):
    """No file may grow: every write fails with EFBIG."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0));"
        "from holdfast import cli; cli.alone = True; sys.exit(cli.main(['hook', *sys.argv[1:]]))"
    )
    for event in ("SessionStart", "UserPromptSubmit"):
        done = subprocess.run(
            [sys.executable, "-c", code, "claude-code", event], input=b'{"session_id": "s9", "prompt": "when do we deploy?"}',
            capture_output=True, cwd=folder, timeout=60, env={**os.environ, "HOLDFAST_HOME": str(home)},
        )  # fmt: skip
        assert done.returncode == 0 and done.stderr == b""
        assert b"Tuesdays" in done.stdout


# --- the log ----------------------------------------------------------------------------------------------------------


@pytest.mark.promise("B6", "D1")
def test_doctor_shows_what_went_wrong_when_in_which_hook_and_what_to_do(hook, deploys, home):
    for _ in range(3):
        hook("nobody", "SessionStart")
    (problem,) = doctor(home)
    assert "nobody" in problem["message"] and "SessionStart" in problem["message"] and "3 times" in problem["message"]
    assert log(home)[-1].time in problem["message"]
    assert "rm -f" in problem["fix"] and str(home / "run" / failure_log.NAME) in problem["fix"]
    os.unlink(home / "run" / failure_log.NAME)
    assert doctor(home) == []


def test_doctor_does_not_tell_old_stories(home, open_memory, clock):
    home.mkdir(mode=0o700)
    failure_log.write(str(home), client="claude-code", event="Stop", message="something", fix="do something")
    memory = open_memory()
    assert [one.code for one in memory.check()] == ["hook"]
    clock.forward(days=8)
    assert memory.check() == []


def test_the_log_is_the_users_alone_and_stays_small(home):
    home.mkdir(mode=0o700)
    for number in range(1200):
        message = f"trouble {number} " + "x" * 100
        failure_log.write(str(home), client="claude-code", event="Stop", message=message, fix="fix\tit\nnow")
    path = home / "run" / failure_log.NAME
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert path.stat().st_size <= failure_log.MAX_BYTES
    last = log(home)[-1]
    assert last.message.startswith("trouble 1199 ") and last.fix == "fix it now" and last.time <= dates.now()
    assert [name.name for name in path.parent.iterdir()] == [failure_log.NAME]


def test_a_long_mishap_is_cut_and_still_read(home):
    home.mkdir(mode=0o700)
    failure_log.write(str(home), client="claude-code", event="Stop", message="m" * 5000, fix="f" * 5000)
    (last,) = log(home)
    assert 300 <= len(last.message) < 1000 and 300 <= len(last.fix) < 1000


def test_an_event_that_we_do_not_know_is_noted_once(hook, deploys, home):
    for _ in range(3):
        assert hook("claude-code", "TeaTime") == ""
    (mishap,) = log(home)
    assert mishap.event == "TeaTime" and "does not know this event" in mishap.message and mishap.fix


def test_too_much_on_stdin_is_said_as_that(hook, deploys, home):
    hook(*PROMPT, raw=b'{"prompt": "' + b"x" * (11 * 1024 * 1024) + b'"}')
    (mishap,) = log(home)
    assert "more than 10 MiB" in mishap.message


def test_a_transcript_that_cannot_be_read_is_named_in_words(hook, deploys, home, tmp_path):
    configure(home, "[hooks]\ncapture = true\n")
    (tmp_path / "t.json").write_text('{"messages": [{"role": "user", "content": "secret words"}')
    hook("gemini", "AfterAgent", transcript_path=str(tmp_path / "t.json"))
    (mishap,) = log(home)
    assert "transcript" in mishap.message and "cannot be read" in mishap.message and "hooks.capture" in mishap.fix
    assert "secret" not in mishap.message + mishap.fix


@pytest.mark.promise("N8")
@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit"])
def test_a_folder_that_is_not_there_is_not_taken_for_the_one_the_hook_runs_in(hook, note, home, folder, event):
    note("The secret of where the hook runs: deploy on Tuesdays.", "deploys", where=folder.parent)
    assert hook("claude-code", event, cwd=str(folder / "gone"), prompt="when do we deploy?") == ""
    (mishap,) = log(home)
    assert "folder" in mishap.message and "does not exist" in mishap.message
    named = {"HOLDFAST_PROJECT": "demo"}
    with Memory(home, project="demo") as memory:
        memory.store("We deploy on Mondays.", key="deploys")
    assert "Mondays" in hook("claude-code", event, cwd=str(folder / "gone"), prompt="when do we deploy?", env=named)


@pytest.mark.parametrize("what", ["link", "folder", "fifo"])
def test_something_else_in_the_logs_place_is_left_alone(home, what):
    (home / "run").mkdir(parents=True, mode=0o700)
    os.chmod(home, 0o700)
    path, outside = home / "run" / failure_log.NAME, home.parent / "outside"
    outside.write_text("precious")
    {"link": lambda: path.symlink_to(outside), "folder": path.mkdir, "fifo": lambda: os.mkfifo(path)}[what]()
    failure_log.write(str(home), client="c", event="e", message="m", fix="f")
    assert log(home) == [] and outside.read_text() == "precious"


@pytest.mark.promise("B6")
def test_the_log_never_holds_what_a_person_or_a_note_says(home, folder, deploys, child):
    """An error that nobody foresaw, with the prompt in its message."""
    child(
        """
        from holdfast import hooks
        os.environ["HOLDFAST_HOME"] = args[0]
        hooks._read_stdin = lambda: b'{"session_id": "s1", "prompt": "my secret harbour"}'
        def broken(desk, client, heard):
            raise ValueError(heard.prompt)
        hooks._STEPS["prompt"] = broken
        answer = hooks.main(["claude-code", "UserPromptSubmit"])
        """,
        home,
    )
    (mishap,) = log(home)
    assert mishap.message.startswith("ValueError at ") and "secret" not in (home / "run" / failure_log.NAME).read_text()


def test_a_memory_can_still_be_used_after_all_this(hook, deploys, home, folder):
    _garbage("ledger.db")(home)
    hook(*START)
    with Memory(home, project=deploys.scope.id, cwd=folder) as memory:
        assert memory.recall("deploy", mode="keyword")[0].key == "deploys"
