"""Small runs of the parts of `python -m battery`, and proof that its checks see what is wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the battery is beside the package, not in it

from battery import __main__ as command
from battery import (
    access_trace,
    advisories,
    concurrency,
    crash,
    damage,
    damaged_files,
    fuzz,
    fuzz_child,
    hostile_paths,
    invariants,
    kill,
    network,
    paths,
    slow_tests,
    strace,
    symlinks,
)
from battery.child_programs import VERBS, generate_steps, open_memory
from battery.report import Report
from battery.strace import SystemCall, TraceLine
from battery.watched_folder import WatchedFolder
from battery.workspace import Workspace, file_system_of, find_real_disk
from tiers import tiered

needs_strace = pytest.mark.skipif(bool(strace.unavailable_reason()), reason=strace.unavailable_reason())


@pytest.fixture(scope="module")
def workspace():
    with Workspace.create() as workspace:
        yield workspace


@pytest.fixture(scope="module")
def template(workspace):
    return crash.create_template(workspace)


@pytest.fixture
def home(workspace, template):
    home = workspace.new_home("test")
    crash.copy_template(template, home, VERBS["store"])
    yield home
    workspace.remove_home(home)


def find_failures(workspace, template, verb, fault, every=1):
    """Return the problems by system call on the store that leads to some when it gets a fault."""
    baseline = crash.record_baseline(workspace, template, verb)
    assert baseline.problems == ()
    calls = [call for call in baseline.calls if "/shelf" in call.text][::every]
    assert calls
    found = {call.text: crash.run_case(workspace, template, baseline, crash.Case(fault, call)) for call in calls}
    return {text: problems for text, problems in found.items() if problems}


# --- crash ------------------------------------------------------------------------------------------------------------


@needs_strace
@pytest.mark.promise("N4")
@pytest.mark.parametrize("verb", tiered(["store", "update"], fast=["store"]))
def test_a_store_killed_at_any_call_on_the_shelf_is_wholly_there_or_wholly_absent(workspace, template, verb):
    assert find_failures(workspace, template, verb, "SIGKILL") == {}


@needs_strace
@pytest.mark.promise("N10")
@pytest.mark.parametrize("verb", tiered(["forget", "restore"], fast=["forget"]))
def test_a_forget_or_restore_killed_at_any_call_on_the_shelf_loses_nothing(workspace, template, verb):
    assert find_failures(workspace, template, verb, "SIGKILL") == {}


@pytest.mark.battery
@needs_strace
def test_a_bulk_store_killed_at_any_call_on_the_shelf_leaves_only_whole_notes(workspace, template):
    assert find_failures(workspace, template, "store-many", "SIGKILL", every=3) == {}


@pytest.mark.battery
@needs_strace
@pytest.mark.promise("F3")
def test_a_file_written_while_the_process_is_killed_is_the_old_or_the_new_one(workspace, template):
    assert find_failures(workspace, template, "file-replace", "SIGKILL") == {}


@needs_strace
@pytest.mark.parametrize("verb", tiered(["store", "forget"], fast=[]))
def test_a_disk_that_fails_at_any_call_on_the_shelf_is_a_named_error_and_nothing_is_half_written(workspace, template, verb):
    assert find_failures(workspace, template, verb, "EIO") == {}


@needs_strace
@pytest.mark.parametrize("verb", tiered(["first-store", "reindex"], fast=["first-store"]))
def test_a_full_disk_is_a_named_error_or_harmless(workspace, template, verb):
    baseline = crash.record_baseline(workspace, template, verb)
    assert crash.run_case(workspace, template, baseline, crash.Case(crash.FULL)) == []


@pytest.mark.battery
@needs_strace
def test_what_is_acknowledged_has_been_flushed_with_its_folder(workspace, template):
    for verb in ("store", "store-many", "forget", "purge"):
        assert crash.record_baseline(workspace, template, verb).problems == (), verb


def test_writers_killed_at_random_moments_lose_nothing_they_acknowledged(workspace):
    assert kill.run_home(workspace, "test", 6) == [[]] * 6


# --- concurrency ------------------------------------------------------------------------------------------------------


@pytest.mark.battery
def test_a_crowd_of_writers_has_every_note_on_the_shelf_and_in_the_index(workspace):
    assert concurrency.store_notes(workspace, writers=6, count=40) == []


@pytest.mark.battery
def test_careful_edits_of_one_note_are_applied_or_named_conflicts(workspace):
    assert concurrency.edit_note(workspace, writers=6, count=15, versioned=True) == []


@pytest.mark.battery
def test_edits_that_name_no_version_are_all_in_the_history(workspace):
    assert concurrency.edit_note(workspace, writers=6, count=8, versioned=False) == []


@pytest.mark.battery
def test_processes_that_open_an_empty_home_at_once_all_succeed(workspace):
    assert concurrency.open_homes(workspace, openers=12, rounds=4) == [[]] * 4


# --- hostile input ----------------------------------------------------------------------------------------------------


def test_there_are_five_hundred_hostile_paths_and_each_once():
    found = hostile_paths.list_paths("/outside/secret.md", "../../../../../outside/secret.md")
    assert len(found) == len(set(found)) >= hostile_paths.MIN_PATHS


@needs_strace
@pytest.mark.promise("promise-5", "F3")
@pytest.mark.parametrize("interface", tiered(["library", "cli", "mcp", "hook", "imports"], fast=["library"]))
def test_hostile_paths_through_a_door_open_nothing_outside(workspace, interface):
    result = paths.run_interface(workspace, interface, 0.02, 3, traced=True)
    assert len(result.paths) >= 7
    assert result.opens > 0
    assert [call for call in result.calls if call[2]] == []
    assert result.outside == []


@pytest.mark.battery
@pytest.mark.promise("promise-5")
def test_links_that_take_the_place_of_folders_meanwhile_are_never_followed(workspace):
    result = symlinks.run_race(workspace, 300, 5)
    assert (result.swaps, result.problems) == (300, []), result.figure


def test_an_access_to_a_watched_folder_is_seen(tmp_path):
    with WatchedFolder(tmp_path) as folder:
        assert folder.find_changes() == []
        folder.secret.read_text()
        assert any("secret.md was read" in line for line in folder.find_changes())
        (folder.root / "new.md").write_text("x")
        assert any("the bytes of new.md changed" in line for line in folder.find_changes())


def test_a_file_opened_outside_is_seen_and_files_of_python_are_allowed(tmp_path):
    log = tmp_path / "trace"
    lines = (
        '7 openat(AT_FDCWD</>, "x.md", O_RDONLY|O_CLOEXEC) = 5</home/shelf/x.md>',
        '7 openat(5</home>, "to-file", O_RDONLY) = 6</outside/secret.md>',
        '7 openat(AT_FDCWD</>, "/etc/ld.so.cache", O_RDONLY) = 3</etc/ld.so.cache>',
        '7 openat(AT_FDCWD</>, "/etc/ld.so.cache", O_RDWR) = 3</etc/ld.so.cache>',
        '7 unlinkat(4</outside>, "secret.md", 0) = 0',
        '7 renameat(4</home/a>, "x", 4</home/b>, "y") = 0',
        '7 mkdir("/home/x", 0700) = -1 EEXIST (File exists)',
    )
    log.write_text("\n".join(lines))
    assert access_trace.find_violations(log, access_trace.AllowedPaths("/home")) == [
        "opened outside: /outside/secret.md",
        "opened to write, outside: /etc/ld.so.cache",
        "unlinkat outside: /outside/secret.md",
    ]


def test_a_connection_is_seen_and_a_socket_in_the_home_is_allowed(tmp_path):
    log = tmp_path / "trace"
    log.write_text(
        '1 connect(3<socket:[1]>, {sa_family=AF_UNIX, sun_path="/home/run/resident.sock"}, 110) = 0\n'
        "1 socket(AF_UNIX, SOCK_STREAM, 0) = 3<socket:[1]>\n"
        '1 connect(3<socket:[1]>, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("1.2.3.4")}, 16) = 0\n'
    )
    assert len(access_trace.find_connections(log, "/home")) == 1


@pytest.fixture(scope="module")
def sound_home(workspace):
    home = workspace.new_home("sound")
    damage.create_notes(home)
    return home


@pytest.mark.battery
def test_damaged_index_files_crash_nothing_change_no_note_and_are_reported(workspace, sound_home):
    ended = list(damage.run_cases(workspace, "index", sound_home, 3, 16))
    assert len(ended) == 16
    assert [one for one in ended if one["problems"]] == []
    assert sum(one["reported"] for one in ended) > 4


def test_an_undamaged_index_is_not_reported(workspace):
    home = workspace.new_home("undamaged")
    damage.create_notes(home)
    with_log, without = damage.read_index_files(home)
    rows = invariants.read_index_rows(home)
    assert set(with_log) == set(damaged_files.INDEX_FILES) > set(without)
    for files in (with_log, without):
        assert damage.check_damaged_index(home, files, rows, doctor_first=True) == {"problems": [], "reported": False}
        assert damage.check_damaged_index(home, files, rows, doctor_first=False) == {"problems": [], "reported": False}


@pytest.mark.promise("D1")
def test_malformed_notes_crash_nothing_change_no_truth_and_hide_no_other_note(workspace, sound_home):
    ended = list(damage.run_cases(workspace, "note", sound_home, 3, 20))
    assert len(ended) == 20
    assert [one for one in ended if one["problems"]] == []
    assert any(one["reported"] for one in ended)


def test_damage_is_the_same_for_the_same_seed_and_of_many_kinds():
    files = {name: bytes(range(256)) * 64 for name in damaged_files.INDEX_FILES}
    assert damaged_files.damage_index(files, b"foreign", "s") == damaged_files.damage_index(files, b"foreign", "s")
    assert damaged_files.make_malformed_note("s", "zqtoken") == damaged_files.make_malformed_note("s", "zqtoken")
    assert len({damaged_files.damage_index(files, b"foreign", f"s{number}")[0] for number in range(300)}) > 30
    assert len({damaged_files.make_malformed_note(f"s{number}", "zqtoken")[0] for number in range(300)}) > 20


def test_a_child_that_dies_of_a_case_is_a_failure_that_names_it(workspace, tmp_path):
    ended = damage.run_child(workspace, "index", tmp_path / "nothing", 3, 0, 4)
    assert "CRASHED with 1" in ended[0]["problems"][0]


@pytest.mark.battery
@pytest.mark.parametrize("fuzzer", ["hypothesis", "atheris"])
def test_parsers_survive_a_few_inputs_of_each_kind(workspace, fuzzer):
    if fuzz.unavailable_reason(fuzzer):
        pytest.skip(fuzz.unavailable_reason(fuzzer))
    parsers = ("frontmatter", "facts", "jsonc edits", "config.toml", "transcripts")
    result = fuzz.run_child(workspace, fuzzer, parsers, 3, 12)
    assert (result.inputs, result.problems) == (60, [])
    assert result.slowest < fuzz_child.MAX_SECONDS


def test_every_parser_that_is_fuzzed_is_there(tmp_path, monkeypatch):
    from battery.parsers import load_parsers

    assert tuple(load_parsers(tmp_path)) == fuzz.PARSERS


def test_a_parser_that_fails_or_takes_too_long_is_found(capsys, monkeypatch):
    clock = iter((0.0, 0.1, 0.1, 1.9))
    monkeypatch.setattr(fuzz_child.time, "thread_time", lambda: next(clock))
    fuzz_run = fuzz_child.FuzzRun({"divider": lambda data: 1 // len(data), "sleeper": len})
    fuzz_run.try_input("divider", b"")
    fuzz_run.try_input("sleeper", b"x")
    found = [json.loads(line)["problem"] for line in capsys.readouterr().out.splitlines()]
    assert found[0].startswith("divider, ZeroDivisionError at test_battery.py:")
    assert found[1] == "sleeper, too slow: 1.8 s of work for 1 bytes"


@needs_strace
@pytest.mark.promise("promise-6")
@pytest.mark.parametrize("interface", tiered(["library", "gateway"], fast=["library"]))
def test_no_connection_is_opened_seen_from_outside(workspace, interface):
    assert network.find_connections(workspace, interface, traced=True) == []


def test_dependencies_are_listed_and_a_service_that_knows_no_advisory_is_not_used(monkeypatch):
    assert {"apsw", "numpy", "pyyaml", "mcp"} <= set(advisories.list_releases())
    monkeypatch.setattr(advisories, "query_pip_audit", lambda releases: {})
    monkeypatch.setattr(advisories, "query_index", lambda name, version: [])
    report = Report(quiet=True)
    advisories.run(None, report, 1.0, 1)
    assert "NOT TRIED" in report.render_text() and report.passed == 0
    known = {"requests": ["PYSEC-1"], "apsw": []}
    monkeypatch.setattr(advisories, "query_index", lambda name, version: known.get(name, []))
    monkeypatch.setattr(advisories, "list_releases", lambda: {"apsw": "3.1", "requests": "2.19.0"})
    report = Report(quiet=True)
    advisories.run(None, report, 1.0, 1)
    assert (report.passed, report.failed) == (1, 1)


# --- the checks see what is wrong -------------------------------------------------------------------------------------


def test_the_invariants_hold_for_a_sound_home(home):
    state = invariants.read_store(home)
    assert invariants.find_torn(state) + invariants.find_differences(state, state, state, "key", True) == []
    assert invariants.check_reopened(home, state) == []


def test_a_torn_file_is_seen(home):
    note = home / "shelf/projects/demo/notes/alpha.md"
    for length in (0, 10, 60, note.stat().st_size - 1):
        state = {**invariants.read_store(home), "projects/demo/notes/alpha.md": note.read_bytes()[:length]}
        assert invariants.find_torn(state), length


def test_a_lost_version_and_a_lost_acknowledged_write_are_seen(home):
    before = invariants.read_store(home)
    with open_memory(home) as memory:
        memory.store("zq900 a version more", key="alpha")
    after = invariants.read_store(home)
    item = "projects/demo/notes/alpha.md"
    assert invariants.find_differences(before, after, before, "key", acknowledged=False) == []
    lost = invariants.find_differences(before, after, before, "key", acknowledged=True)
    assert lost == [f"acknowledged, but not there: {item}"]
    mixed = {**after, item: after[item].split(b"<!-- holdfast:history")[0]}
    assert invariants.find_differences(before, after, mixed, "key", acknowledged=False) == [f"neither old nor new: {item}"]


def test_a_note_that_is_in_two_places_or_in_none_is_seen(home):
    before = invariants.read_store(home)
    with open_memory(home) as memory:
        memory.forget("beta")
    after = invariants.read_store(home)
    for half in ({**before, **after}, {item: data for item, data in before.items() if item in after}):
        found = invariants.find_differences(before, after, half, "key", acknowledged=False)
        assert [line.split(":")[0] for line in found] == ["neither old nor new"]


def test_a_change_of_a_file_that_the_verb_did_not_touch_is_seen(home):
    before = invariants.read_store(home)
    item = "projects/demo/notes/beta.md"
    other = {**before, item: before[item].replace(b"liking", b"loathing")}
    assert invariants.find_differences(before, before, other, "key", acknowledged=False) == [f"lost or changed: {item}"]


def test_a_note_that_recall_does_not_find_and_a_leftover_are_seen(home):
    state = invariants.read_store(home)
    (home / ".holdfast-1-abc.tmp").write_text("half")
    (home / "shelf/projects/demo/index.md").write_text("- [alpha](notes/alpha.md)\n")
    found = invariants.check_reopened(home, {**state, "global/notes/missing.md": state["global/notes/common.md"]})
    assert {line.split(":")[0].split(" ")[0] for line in found} >= {"recall", "list", "left", "projects/demo/index.md"}


def test_an_index_that_was_not_repaired_is_seen(home):
    import apsw

    from holdfast.index.sqlite_writer import checksum

    with open_memory(home) as memory:
        memory.list()
    db = apsw.Connection(str(home / "index.db"))
    rows = db.execute("SELECT * FROM doc WHERE key = 'alpha'")
    row = {column[0]: value for column, value in zip(rows.get_description(), next(rows), strict=True)}
    row["title"] = "not its title"
    db.execute("UPDATE doc SET title = :title, sum = :sum WHERE id = :id", row | {"sum": checksum(row)})
    db.close()
    assert any("the repaired index differs" in line for line in invariants.check_reopened(home, invariants.read_store(home)))


def test_what_doctor_says_of_a_damaged_index_is_seen(home):
    import apsw

    with open_memory(home) as memory:
        memory.list()
    db = apsw.Connection(str(home / "index.db"))
    db.execute("UPDATE doc SET title = 'not its title' WHERE key = 'alpha'")
    db.close()
    assert any("check: index_damaged" in line for line in invariants.check_reopened(home, invariants.read_store(home)))


def test_a_rename_before_the_flush_and_a_folder_never_flushed_are_seen(tmp_path):
    notes = tmp_path / "shelf/global/notes"
    notes.mkdir(parents=True)
    write = TraceLine("write", f'7<{notes}/.holdfast-1.tmp>, ""..., 9', "9")
    rename = TraceLine("renameat", f'6<{notes}>, ".holdfast-1.tmp", 6<{notes}>, "a.md"', "0")
    fsync_file = TraceLine("fsync", f"7<{notes}/.holdfast-1.tmp>", "0")
    fsync_folder = TraceLine("fsync", f"6<{notes}>", "0")
    assert strace.find_unflushed([write, fsync_file, rename, fsync_folder], tmp_path) == []
    assert strace.find_unflushed([write, rename, fsync_folder], tmp_path) == [f"renamed before it was flushed: {notes}/a.md"]
    assert strace.find_unflushed([write, fsync_file, rename], tmp_path) == [f"not flushed: {notes}"]


def test_the_model_of_a_writer_forgets_and_restores_the_last_note():
    model = kill.Model()
    for step in ("store one", "store two", "forget", "store three", "forget", "restore"):
        kind, _, text = step.partition(" ")
        model = model.apply_step((kind, (("key", text),)))
    assert model.to_notes() == ({"key": ("three",)}, [("key", ("two", "one"))])


def test_a_writer_does_the_same_again_for_the_same_seed():
    assert [step for step, _ in zip(generate_steps("s", "a"), range(50), strict=False)] == [
        step for step, _ in zip(generate_steps("s", "a"), range(50), strict=False)
    ]


# --- the report -------------------------------------------------------------------------------------------------------


def test_a_failure_is_shown_with_the_command_that_repeats_it():
    report = Report(quiet=True)
    case = crash.Case("SIGKILL", SystemCall(17, "fsync", 3, "fsync(7)"))
    with report.start_row("crash: store") as row:
        row.add([], "never")
        row.add(case.describe(["torn: x"]), case.repeat_command("store"))
    assert "python -m battery crash --verb store --call 17 --fault SIGKILL" in report.render_text()
    assert report.render_text().splitlines()[-1] == "1 passed, 1 failed"
    assert json.loads(report.render_json())["rows"][0]["count"] == 2


@pytest.mark.battery
@needs_strace
def test_the_command_repeats_one_case_and_answers_in_json(capsys):
    code = command.main(["crash", "--verb", "forget", "--call", "1", "--fault", "EIO", "--json"])
    output = json.loads(capsys.readouterr().out)
    assert (code, output["passed"], output["failed"]) == (0, 1, 0)


@pytest.mark.battery
def test_without_strace_the_report_says_so_and_random_moments_remain(capsys, monkeypatch):
    monkeypatch.setattr(strace, "unavailable_reason", lambda: "strace is not installed here")
    assert command.main(["crash", "--moments", "1", "--seed", "5"]) == 0
    output = capsys.readouterr().out
    assert "NOT TRIED: faults at system calls, because strace is not installed here" in output
    assert "killed at random moments (seed 5)        1         0" in output


def test_the_slow_tests_are_a_row_with_every_failure_and_a_note_of_what_was_skipped(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\nmarkers = ['battery: slow']\n")
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\npytestmark = pytest.mark.battery\n\ndef test_good(): pass\n\ndef test_bad(): assert 1 == 2\n\n"
        "@pytest.mark.skip('no such program')\ndef test_absent(): pass\n"
    )
    monkeypatch.setattr(slow_tests, "ROOT", tmp_path)
    monkeypatch.setattr(slow_tests, "OPTIONS", ())
    report = Report(quiet=True)
    slow_tests.run(report, jobs=1)
    (row,) = report.rows
    assert (row.count, len(row.failures), row.figure) == (2, 1, "1 NOT TRIED")
    assert "test_it::test_bad: assert 1 == 2" in row.failures[0] and "-k test_bad" in row.failures[0]
    assert report.notes == ["NOT TRIED: 1 slow tests that were skipped; the log above has the reasons"]


def test_the_battery_works_on_a_real_disk_and_cleans_up():
    with Workspace.create() as workspace:
        root = workspace.root
        assert (workspace.package_root / "holdfast" / "models.py").is_file()
    assert not root.exists()
    assert find_real_disk() and file_system_of("/")
