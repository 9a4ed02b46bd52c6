"""Notes that are relevant to a prompt, what each session was shown, and `brief --explain`: why each note is in or out."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import apsw
import pytest
from test_cold_start import HEAVY
from test_hook import context_text

from holdfast import Memory, UsageError
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.verbs.brief import relevance

CASES = tomllib.loads((Path(__file__).parents[1] / "data" / "prompts.toml").read_text(encoding="utf-8"))


@pytest.fixture
def session(open_memory):
    return open_memory(session="s")


def reasons(brief):
    return {one.name: (one.told, one.reason) for one in brief.why}


# --- relevance --------------------------------------------------------------------------------------------------------


def measure_precision(memory, mode):
    """Return precision and recall over the prompts of tests/data/prompts.toml."""
    hits = wrong = missed = 0
    for case in CASES["prompts"]:
        matches = relevance.find_matches(memory._context, case["text"], mode)
        found = {match.name.removesuffix(".md") for match in matches if match.kind == "note"}
        wanted = set(case["keys"])
        hits += len(found & wanted)
        wrong += len(found - wanted - set(case.get("maybe", ())))
        missed += len(wanted - found)
    return hits / (hits + wrong), hits / (hits + missed)


@pytest.fixture
def cases(memory):
    memory.store_many([{"key": key, "text": text} for key, text in CASES["notes"].items()])
    return memory


@pytest.mark.promise("B2")
def test_by_words_little_is_told_that_does_not_bear_on_the_prompt(cases):
    precision, found = measure_precision(cases, "keyword")
    assert precision >= 0.45 and found >= 0.9  # docs/adr/0016


@pytest.mark.battery
@pytest.mark.promise("B2")
def test_among_thousands_of_other_notes_it_is_nearly_the_same(cases):
    from holdfast_bench.floors import TextGenerator

    prose = TextGenerator(1)
    cases.store_many([{"key": f"other-{number}", "text": prose.text()} for number in range(2000)])
    precision, found = measure_precision(cases, "keyword")
    assert precision >= 0.38 and found >= 0.9


@pytest.mark.xdist_group("models")
def test_by_meaning_more_is_found_and_hardly_more_is_wrong(open_memory, monkeypatch):
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "default")
    memory = open_memory()
    memory.store_many([{"key": key, "text": text} for key, text in CASES["notes"].items()])
    memory.embed()
    precision, found = measure_precision(memory, "hybrid")
    assert precision >= 0.65 and found >= 0.95
    assert "Tuesdays" in memory.brief(prompt="can we ship this on friday afternoon?", mode="hybrid").text


def test_without_models_hybrid_is_by_words(cases):
    asked = "when do we deploy, is Friday fine?"
    assert cases.brief(prompt=asked, mode="hybrid").text == cases.brief(prompt=asked).text != ""


@pytest.mark.xdist_group("models")
def test_where_a_process_stays_the_hook_asks_it_for_what_is_meant(hook, begun, home, tmp_path):
    env = {**os.environ, "HOLDFAST_EMBEDDER": "default"}
    command = [sys.executable, "-m", "holdfast", "resident", "--home", str(home)]
    asked = {"prompt": "rollout schedule: which weekdays?"}
    assert hook("claude-code", "UserPromptSubmit", session_id="before", **asked) == ""
    staying = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=env)
    try:
        assert "answering" in staying.stderr.readline()
        warm = ["recall", "deploy", "--home", str(home)]  # as long as loading the models takes
        subprocess.run([sys.executable, "-m", "holdfast", *warm], cwd=tmp_path, capture_output=True, check=True, env=env)
        sessions = (f"after-{number}" for number in range(20))  # a busy machine may take longer than a hook waits
        printed = (hook("claude-code", "UserPromptSubmit", session_id=session, **asked) for session in sessions)
        assert any("Fridays" in context_text(text) for text in printed)
    finally:
        staying.send_signal(signal.SIGINT)
        staying.wait(30)
        staying.stderr.close()


def test_the_hook_looks_for_a_process_that_stays_where_that_one_listens(home):
    from holdfast import hooks as door
    from holdfast.api import resident

    (home / "run").mkdir(parents=True)
    assert not door._has_resident(str(home)) and not resident.is_running(str(home))
    (home / "run" / resident.SOCKET_NAME).touch()
    assert door._has_resident(str(home)) and resident.is_running(str(home))


@pytest.mark.promise("B6")
def test_a_socket_that_nobody_listens_at_hinders_no_hook(hook, begun, home):
    (home / "run" / "resident.sock").touch()
    assert "Tuesdays" in context_text(hook("claude-code", "UserPromptSubmit", prompt="when do we deploy?"))
    assert not (home / "run" / "hooks.log").exists()


# --- what each session was shown --------------------------------------------------------------------------------------


@pytest.mark.promise("B2")
def test_a_library_caller_with_a_session_is_told_each_note_once(session, open_memory):
    session.store("We deploy on Tuesdays.", key="deploys")
    asked = "when do we deploy?"
    assert session.brief(prompt=asked).shown == ("project/deploys",)
    assert session.brief(prompt=asked).text == ""
    assert session.brief(prompt=asked, again=True).shown == ("project/deploys",)
    nobody = open_memory()
    assert nobody.brief(prompt=asked).shown == nobody.brief(prompt=asked).shown == ("project/deploys",)


@pytest.mark.promise("B4")
def test_a_start_is_the_same_however_often_it_is_asked_for(session):
    session.store("We deploy on Tuesdays.", key="deploys")
    assert session.brief() == session.brief() and session.brief().shown == ("project/deploys",)
    assert session.brief(prompt="when do we deploy?").text == ""


def test_who_only_looks_was_told_nothing(session):
    session.store("We deploy on Tuesdays.", key="deploys")
    session.status()
    session.brief(explain=True)
    session.brief(prompt="when do we deploy?", explain=True)
    assert session.brief(prompt="when do we deploy?").shown == ("project/deploys",)


def test_what_finds_no_room_comes_with_a_later_prompt(session):
    for number in range(8):
        session.store(f"Deploy rule {number}: the harbour crane.", key=f"rule-{number}")
    first = session.brief(prompt="our deploy rule for the harbour crane?")
    second = session.brief(prompt="our deploy rule for the harbour crane?")
    assert len(first.shown) == 7 and first.left_out == 1
    assert len(second.shown) == 1 and second.left_out == 0
    assert not set(first.shown) & set(second.shown)


@pytest.mark.promise("B1")
def test_a_prompt_brings_no_more_than_its_budget(session, home):
    for number in range(8):
        session.store(f"Deploy rule {number} of the harbour crane: " + "words " * 500, key=f"rule-{number}")
    brief = session.brief(prompt="the harbour crane's deploy rule")
    assert len(brief.text) <= 1500 and not brief.shown and len(brief.listed) == 7
    for number in range(8):
        session.store(f"Deploy rule {number} of the harbour crane: " + "words " * 60, key=f"rule-{number}")
    brief = session.brief(prompt="the harbour crane's deploy rule", cap=900)
    assert 0 < len(brief.text) <= 900 and brief.shown


def test_a_note_that_a_person_wrote_without_an_id_is_told_once_too(session, note_file):
    session.store("Something else.", key="other")
    note_file("deploys").write_text("We deploy on Tuesdays.\n")
    assert session.brief(prompt="when do we deploy?").shown == ("project/deploys",)
    assert session.brief(prompt="when do we deploy?").text == ""


@pytest.mark.promise("N10")
def test_a_purge_takes_along_to_whom_a_note_was_shown(session, home):
    id = session.store("We deploy on Tuesdays.", key="deploys").note.id
    session.brief()
    assert read_shown_rows(home) == [("s", id)]
    session.purge("deploys")
    assert read_shown_rows(home) == []
    assert read_shown_rows(home, "briefed") == []


def read_shown_rows(home, table="told"):
    db = apsw.Connection(str(home / "ledger.db"))
    rows = db.execute(f"SELECT session, note FROM {table}").fetchall()
    db.close()
    return rows


def test_what_a_session_was_shown_a_month_ago_is_forgotten(open_memory, clock, home):
    with_session = open_memory(session="old")
    with_session.store("We deploy on Tuesdays.", key="deploys", type="user")
    with_session.brief()
    clock.forward(days=31)
    open_memory(session="new").brief()
    assert [row[0] for row in read_shown_rows(home)] == ["new"]


def test_a_prompt_is_counted_once_however_many_hear_it(tmp_path):
    ledger = SqliteLedger(str(tmp_path / "home"))
    assert [ledger.sessions.count_prompt("s", digest, 1) for digest in ("a", "a", "b", "a")] == [1, 0, 2, 3]
    assert ledger.sessions.count_prompt("t", "a", 1) == 1
    ledger.sessions.begin("s", 2)
    assert ledger.sessions.count_prompt("s", "a", 3) == 1
    ledger.close()


def test_versions_are_told_once_each(tmp_path):
    ledger = SqliteLedger(str(tmp_path / "home"))
    assert ledger.sessions.record_shown("s", [("n", "1"), ("m", "1")], 1) == ["m", "n"]
    assert ledger.sessions.record_shown("s", [("n", "1"), ("m", "2")], 2) == ["m"]
    assert ledger.sessions.list_shown("s") == {"n": "1", "m": "2"}
    assert ledger.sessions.record_shown("s", [("n", "1")], 3, new_context=True) == ["n"]
    assert ledger.sessions.list_shown("s") == {"n": "1"} and ledger.sessions.list_shown("t") == {}
    ledger.close()


def test_a_ledger_of_the_version_before_is_brought_up_to_date_and_keeps_what_it_knew(tmp_path):
    home = tmp_path / "home"
    ledger = SqliteLedger(str(home))
    ledger.projects.link("old", "new")
    fresh = schema(home)
    ledger.close()
    db = apsw.Connection(str(home / "ledger.db"))
    db.execute("".join(f"DROP TABLE {name};" for name in NEWER) + "PRAGMA user_version = 1").fetchall()
    db.close()
    several = [SqliteLedger(str(home)) for _ in range(3)]
    assert [one.projects.find_project("old") for one in several] == ["new"] * 3
    assert several[0].sessions.record_shown("s", [("n", "1")], 1) == ["n"]
    assert schema(home) == fresh
    assert [name for name in os.listdir(home) if "damaged" in name] == []
    for one in several:
        one.close()


NEWER = (  # than version 1
    "told", "prompts", "briefed", "decisions", "receipts", "purged", "keys", "tokens", "agents", "audit", "audit_head",
    "done", "reviewed_prs", "claims", "idempotency", "audit_checkpoint", "audit_shipped", "grants", "request_count",
    "file_sources", "web_sessions", "sign_in_codes",
)  # fmt: skip


def schema(home):
    db = apsw.Connection(str(home / "ledger.db"))
    rows = db.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()
    db.close()
    return [(name, " ".join(line.partition("--")[0].strip() for line in (sql or "").split("\n"))) for name, sql in rows]


# --- explanations -----------------------------------------------------------------------------------------------------


@pytest.mark.promise("B1")
def test_a_start_is_explained_note_by_note(open_memory, clock):
    memory = open_memory()
    for number in range(12):
        clock.forward(minutes=1)
        memory.store(f"Note {number}: " + "words " * (2000 if number == 11 else 1), key=f"k{number}")
    memory.store("Always first.", key="pinned", pinned=True)
    memory.store("Once true.", key="past", valid_from="2020-01-01", valid_to="2021-01-01")
    memory.store("To come.", key="future", valid_from="2027-01-01")
    why = reasons(memory.brief(explain=True))
    assert why["project/pinned"] == (True, "shown whole: pinned, updated 2026-05-01")
    assert why["project/past"] == (False, "ended on 2021-01-01")
    assert why["project/future"][0] and "not true before 2027-01-01" in why["project/future"][1]
    assert not why["project/k11"][0] and "listed by title" in why["project/k11"][1]
    assert why["project/k0"] == (True, "shown whole: among the most useful notes, updated 2026-05-01")
    assert len(why) == 15
    assert memory.brief().why == ()


def test_a_note_without_room_is_explained(open_memory, home):
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[brief]\nscope_chars = 200\n")
    memory = open_memory()
    for number in range(5):
        memory.store("words " * 50, key=f"k{number}")
    told, why = reasons(memory.brief(explain=True))["project/k0"]
    assert not told and "listed by title" in why


def test_a_prompt_is_explained_note_by_note(session):
    session.store("We deploy on Tuesdays.", key="deploys")
    session.store("Use pytest.", key="testing")
    session.store("We deployed on Mondays.", key="past", valid_from="2020-01-01", valid_to="2021-01-01")
    session.brief(prompt="we deploy on tuesdays?")
    session.store("Deploy windows are short.", key="windows")
    why = reasons(session.brief(prompt="when do we deploy?", explain=True))
    assert why["project/windows"][0] and re.fullmatch(r"matches the prompt \(score [1-9e.0-]+\)", why["project/windows"][1])
    told, reason = why["project/deploys"]
    assert not told and reason.startswith("this session was already shown it (score ")
    assert why["project/testing"] == (False, "does not match the prompt")
    assert why["project/past"] == (False, "ended on 2021-01-01")


@pytest.mark.parametrize("words", [("--cap", "10"), ("--cap", "9001"), ("--again",)])
def test_the_command_line_refuses_what_makes_no_sense(home, words):
    done = command(home, *words)
    assert done.returncode == 2 and done.stderr


def test_the_command_line_explains(memory, home):
    memory.store("We deploy on Tuesdays.", key="deploys")
    memory.store("Use pytest.", key="testing")
    done = command(home, "--prompt", "when do we deploy?", "--explain")
    assert "project/deploys  matches the prompt" in done.stdout
    assert "project/testing  does not match the prompt" in done.stdout and "1 note of 2" in done.stderr
    assert json.loads(command(home, "--explain", "--json").stdout)["why"][0]["told"] is True
    assert "Tuesdays" in command(home, "--prompt", "when do we deploy?").stdout


def command(home, *words):
    return subprocess.run(
        [sys.executable, "-m", "holdfast", "brief", *words, "--home", str(home), "--project", "demo"],
        capture_output=True, text=True, cwd=home.parent, timeout=60,
    )  # fmt: skip


def test_an_unknown_mode_is_refused(memory):
    with pytest.raises(UsageError, match="mode"):
        memory.brief(prompt="x", mode="recent")


# --- how little a hook imports ----------------------------------------------------------------------------------------

REPORT = """
import sys
before = set(sys.modules)
from holdfast.cli import main
code = main(sys.argv[1:])
print("\\n".join(sorted(set(sys.modules) - before)), file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize("client", ["claude-code", "codex", "gemini", "kimi", "copilot"])
@pytest.mark.parametrize("event", ["start", "prompt", "stop"])
def test_a_hook_imports_nothing_heavy(home, folder, note, client, event):
    note("We deploy on Tuesdays.", "deploys")
    data = json.dumps({"session_id": "s", "cwd": str(folder), "prompt": "when do we deploy?"})
    done = subprocess.run(
        [sys.executable, "-I", "-c", REPORT, "--home", str(home), "hook", client, event], input=data, capture_output=True,
        text=True, cwd=folder, timeout=60,
    )  # fmt: skip
    loaded = set(done.stderr.split())
    heavy = {name for name in HEAVY if any(one == name or one.startswith(f"{name}.") for one in loaded)}
    assert heavy <= ({"ctypes"} if (client, event) == ("kimi", "prompt") else set())  # its first prompt searches twice
    assert not any(name.startswith("holdfast.cli.") for name in loaded)
    if event != "prompt":
        assert "re" not in loaded


def test_a_home_of_another_caller_is_not_needed_for_an_answer(tmp_path, folder):
    with Memory(tmp_path / "h", cwd=folder, session="s") as memory:
        assert memory.brief(prompt="anything at all").text == "" and not (tmp_path / "h").exists()


@pytest.mark.promise("B1")
@pytest.mark.parametrize("prompt", [None, "when do we deploy?"])
def test_a_cap_is_a_cap_and_what_does_not_fit_is_not_counted_as_told(open_memory, prompt):
    memory = open_memory(session="s", agent="a")
    for scope in ("session", "project", "agent", "global"):
        memory.store("We deploy on Tuesdays, never on Fridays: " + "x " * 300, key="deploys", scope=scope)
    for cap in (-5, 0, 1, 100, 300, 500, 700):
        assert len(memory.brief(prompt=prompt, cap=cap).text) <= max(cap, 0)
    assert memory.brief(prompt="when do we deploy?", cap=10).shown == ()
    assert memory.brief(prompt="when do we deploy?", again=True).shown


def test_what_did_not_fit_comes_later(open_memory):
    memory = open_memory(session="s")
    memory.store("We deploy on Tuesdays.", key="deploys")
    told = memory.brief(prompt="when do we deploy?", cap=0)
    assert (told.text, told.shown) == ("", ())
    told = memory.brief(prompt="when do we deploy?", cap=100)
    assert (told.text, told.shown, told.left_out) == ("", (), 1)
    assert memory.brief(prompt="when do we deploy?").shown == ("project/deploys",)


# --- a client that sends the start and the first prompt at the same time -----------------------------------------------------


@pytest.mark.promise("B2")
def test_what_the_first_prompt_was_shown_is_not_shown_again_by_a_start_that_comes_late(hook, note):
    note("We deploy on Tuesdays, never on Fridays.", "deploys")
    note("The lighthouse keeper is called Ada.", "keeper")
    first = hook("copilot", "userPromptSubmitted", sessionId="s", prompt="when do we deploy?")
    start = hook("copilot", "sessionStart", sessionId="s", source="new")
    assert "Tuesdays" in first and "Ada" not in first
    assert "Ada" in start and "Tuesdays" not in start
    assert hook("copilot", "userPromptSubmitted", sessionId="s", prompt="and when do we deploy, keeper?") == "{}"


@pytest.mark.promise("B2")
def test_of_a_start_and_a_first_prompt_at_once_one_shows_a_note(home, folder, note):
    note("We deploy on Tuesdays, never on Fridays.", "deploys")
    for number in range(6):
        said = {"sessionId": f"s{number}", "cwd": str(folder), "source": "new", "prompt": "when do we deploy?"}
        both = [
            subprocess.Popen(
                [sys.executable, "-m", "holdfast", "hook", "copilot", event], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                env={**os.environ, "HOLDFAST_HOME": str(home)}, cwd=folder.parent,
            )
            for event in ("sessionStart", "userPromptSubmitted")
        ]  # fmt: skip
        for one in both:
            one.stdin.write(json.dumps(said).encode())
            one.stdin.close()
        told_by = [b"Tuesdays" in one.stdout.read() for one in both]
        for one in both:
            one.stdout.close()
            assert one.wait(60) == 0
        assert sorted(told_by) == [False, True]


@pytest.mark.promise("B2")
@pytest.mark.parametrize("source", ["clear", "compact"])
def test_another_context_is_told_everything_again(hook, note, source):
    note("We deploy on Tuesdays, never on Fridays.", "deploys")
    assert "Tuesdays" in context_text(hook("claude-code", "UserPromptSubmit", prompt="when do we deploy?"))
    assert "Tuesdays" in context_text(hook("claude-code", "SessionStart", source=source))


@pytest.mark.promise("B2")
def test_a_session_that_starts_up_again_is_told_everything_again(hook, note):
    note("We deploy on Tuesdays, never on Fridays.", "deploys")
    for _ in range(3):  # a program that always names the same session
        assert "Tuesdays" in context_text(hook("claude-code", "SessionStart", source="startup"))
        assert hook("claude-code", "UserPromptSubmit", prompt="when do we deploy?") == ""
    for _ in range(2):
        hook("kimi", "SessionStart", session_id="k", source="startup")
        prompt = [{"type": "text", "text": "hello there"}]
        assert "Tuesdays" in hook("kimi", "UserPromptSubmit", session_id="k", prompt=prompt)


@pytest.mark.promise("B2")
@pytest.mark.parametrize("seconds", [60, -60])
def test_a_prompt_of_another_time_was_not_of_this_start(open_memory, clock, seconds):
    from holdfast.verbs.brief import select

    memory = open_memory(session="s")
    memory.store("We deploy on Tuesdays.", key="deploys")
    select.count_prompt(memory._context, "when do we deploy?")
    assert "Tuesdays" in memory.brief(prompt="when do we deploy?").text
    clock.forward(seconds)
    assert "Tuesdays" in select.brief(memory._context, first=True).text


def test_a_late_start_counts_what_it_leaves_out(open_memory):
    from holdfast.verbs.brief import select

    memory = open_memory(session="s")
    for number in range(60):
        memory.store(f"Topic {number:02} is about the lighthouse, its keeper and his cat. " * 4, key=f"n{number}")
    memory.store("We deploy on Tuesdays, never on Fridays. " * 4, key="deploys")
    whole = select.brief(memory._context, remember=False)
    assert "Tuesdays" in whole.text and whole.left_out > 0
    select.count_prompt(memory._context, "when do we deploy?")
    assert "Tuesdays" in memory.brief(prompt="when do we deploy?").text
    late = select.brief(memory._context, first=True)
    shown = {f"Topic {number:02} is" for number in range(60) if f"project/n{number}" in late.shown}
    assert "Tuesdays" not in late.text and shown
    assert late.left_out == 60 - len(shown) - len(late.listed)
    again = memory.brief(prompt="tell me about the lighthouse, its keeper and his cat").text
    assert not any(one in again for one in shown)


@pytest.mark.promise("B2")
def test_a_late_start_does_not_make_the_first_prompt_first_again(hook, note):
    note("We deploy on Tuesdays, never on Fridays.", "deploys")
    assert "Tuesdays" in hook("kimi", "UserPromptSubmit", prompt=[{"type": "text", "text": "hello there"}])
    assert hook("kimi", "SessionStart", source="startup") == ""
    assert "Tuesdays" not in hook("kimi", "UserPromptSubmit", prompt=[{"type": "text", "text": "and hello again"}])
