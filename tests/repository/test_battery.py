"""The battery, small: the faults and crowds of `python -m battery`, and proof that its oracle sees what is wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the battery stands beside the package, not in it

from battery import __main__ as command
from battery import (
    advisories,
    corpus,
    crash,
    crowd,
    furnish,
    fuzz,
    fuzzing,
    kill,
    network,
    opens,
    oracle,
    outside,
    paths,
    race,
    rotten,
    slow_tests,
    spoil,
    strace,
)
from battery.lab import Lab, kind_of, real_disk
from battery.report import Report
from battery.strace import Line
from battery.verbs import VERBS, caller, steps
from tiers import tiered

needs_strace = pytest.mark.skipif(bool(strace.why_not()), reason=strace.why_not())


@pytest.fixture(scope="module")
def lab():
    with Lab.make() as lab:
        yield lab


@pytest.fixture(scope="module")
def template(lab):
    return crash.make_template(lab)


@pytest.fixture
def furnished(lab, template):
    home = lab.home("test")
    furnish.copy(template, home, VERBS["store"])
    yield home
    lab.away(home)


def wrong_after(lab, template, verb, fault, every=1):
    """Each call on the shelf that goes wrong when it is hit, and why."""
    trial = crash.rehearse(lab, template, verb)
    assert trial.wrong == ()
    calls = [call for call in trial.calls if "/shelf" in call.text][::every]
    assert calls
    found = {call.text: crash.attempt(lab, template, trial, crash.Case(fault, call)) for call in calls}
    return {text: problems for text, problems in found.items() if problems}


# --- crash ------------------------------------------------------------------------------------------------------------


@needs_strace
@pytest.mark.promise("N4")
@pytest.mark.parametrize("verb", tiered(["store", "update"], fast=["store"]))
def test_a_store_killed_at_any_call_on_the_shelf_is_wholly_there_or_wholly_absent(lab, template, verb):
    assert wrong_after(lab, template, verb, "SIGKILL") == {}


@needs_strace
@pytest.mark.promise("N10")
@pytest.mark.parametrize("verb", tiered(["forget", "restore"], fast=["forget"]))
def test_a_forget_or_restore_killed_at_any_call_on_the_shelf_loses_nothing(lab, template, verb):
    assert wrong_after(lab, template, verb, "SIGKILL") == {}


@pytest.mark.battery
@needs_strace
def test_a_bulk_store_killed_at_any_call_on_the_shelf_leaves_only_whole_notes(lab, template):
    assert wrong_after(lab, template, "store-many", "SIGKILL", every=3) == {}


@pytest.mark.battery
@needs_strace
@pytest.mark.promise("F3")
def test_a_file_written_while_the_process_is_killed_is_the_old_or_the_new_one(lab, template):
    assert wrong_after(lab, template, "file-replace", "SIGKILL") == {}


@needs_strace
@pytest.mark.parametrize("verb", tiered(["store", "forget"], fast=[]))
def test_a_disk_that_fails_at_any_call_on_the_shelf_is_a_named_error_and_nothing_is_half_written(lab, template, verb):
    assert wrong_after(lab, template, verb, "EIO") == {}


@needs_strace
@pytest.mark.parametrize("verb", tiered(["first-store", "reindex"], fast=["first-store"]))
def test_a_full_disk_is_a_named_error_or_harmless(lab, template, verb):
    trial = crash.rehearse(lab, template, verb)
    assert crash.attempt(lab, template, trial, crash.Case(crash.FULL)) == []


@pytest.mark.battery
@needs_strace
def test_what_is_acknowledged_has_been_flushed_with_its_folder(lab, template):
    assert {verb: crash.rehearse(lab, template, verb).wrong for verb in ("store", "store-many", "forget", "purge")} == {
        "store": (), "store-many": (), "forget": (), "purge": (),
    }  # fmt: skip


def test_writers_killed_at_random_moments_lose_nothing_they_acknowledged(lab):
    assert kill.live(lab, "test", 6) == [[]] * 6


# --- crowd ------------------------------------------------------------------------------------------------------------


@pytest.mark.battery
def test_a_crowd_of_writers_has_every_note_on_the_shelf_and_in_the_index(lab):
    assert crowd.store(lab, writers=6, count=40) == []


@pytest.mark.battery
def test_careful_edits_of_one_note_are_applied_or_named_conflicts(lab):
    assert crowd.edit(lab, writers=6, count=15, careful=True) == []


@pytest.mark.battery
def test_edits_that_name_no_version_are_all_in_the_history(lab):
    assert crowd.edit(lab, writers=6, count=8, careful=False) == []


@pytest.mark.battery
def test_processes_that_open_an_empty_home_at_once_all_succeed(lab):
    assert crowd.open_at_once(lab, openers=12, rounds=4) == [[]] * 4


# --- what is hostile --------------------------------------------------------------------------------------------------


def test_the_corpus_has_five_hundred_paths_and_each_once():
    found = corpus.corpus("/outside/secret.md", "../../../../../outside/secret.md")
    assert len(found) == len(set(found)) >= corpus.LEAST


@needs_strace
@pytest.mark.promise("promise-5", "F3")
@pytest.mark.parametrize("door", tiered(["library", "cli", "mcp", "hook", "imports"], fast=["library"]))
def test_hostile_paths_through_a_door_open_nothing_outside(lab, door):
    chosen, found, seen, wrong = paths.through(lab, door, 0.02, 3, watched=True)
    assert len(chosen) >= 7
    assert seen > 0
    assert [one for one in found if one[2]] == []
    assert wrong == []


@pytest.mark.battery
@pytest.mark.promise("promise-5")
def test_links_that_take_the_place_of_folders_meanwhile_are_never_followed(lab):
    swaps, figure, wrong = race.held(lab, 300, 5)
    assert (swaps, wrong) == (300, []), figure


def test_somebody_who_touches_what_is_outside_is_seen(tmp_path):
    with outside.Outside(tmp_path) as place:
        assert place.problems() == []
        place.secret.read_text()
        assert any("secret.md was read" in line for line in place.problems())
        (place.root / "new.md").write_text("x")
        assert any("the bytes of new.md changed" in line for line in place.problems())


def test_an_opened_file_outside_is_seen_and_what_python_needs_is_not_held_against_it(tmp_path):
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
    assert opens.judged(log, opens.Allowed("/home")) == [
        "opened outside: /outside/secret.md",
        "opened to write, outside: /etc/ld.so.cache",
        "unlinkat outside: /outside/secret.md",
    ]


def test_a_connection_is_seen_from_outside_and_a_socket_in_the_home_is_none(tmp_path):
    log = tmp_path / "trace"
    log.write_text(
        '1 connect(3<socket:[1]>, {sa_family=AF_UNIX, sun_path="/home/run/resident.sock"}, 110) = 0\n'
        "1 socket(AF_UNIX, SOCK_STREAM, 0) = 3<socket:[1]>\n"
        '1 connect(3<socket:[1]>, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("1.2.3.4")}, 16) = 0\n'
    )
    assert len(opens.connections(log, "/home")) == 1


@pytest.fixture(scope="module")
def sound(lab):
    home = lab.home("sound")
    rotten.furnish(home)
    return home


@pytest.mark.battery
def test_spoiled_index_files_crash_nothing_change_no_truth_and_are_reported(lab, sound):
    ended = list(rotten.tried(lab, "index", sound, 3, 16))
    assert len(ended) == 16
    assert [one for one in ended if one["problems"]] == []
    assert sum(one["reported"] for one in ended) > 4


def test_an_index_that_nobody_spoiled_is_reported_by_nobody(lab):
    home = lab.home("unspoiled")
    rotten.furnish(home)
    with_log, without = rotten.pristine(home)
    says = oracle.rows(home)
    assert set(with_log) == set(spoil.FILES) > set(without)
    for files in (with_log, without):
        assert rotten.spoiled(home, files, says, doctor_first=True) == {"problems": [], "reported": False}
        assert rotten.spoiled(home, files, says, doctor_first=False) == {"problems": [], "reported": False}


@pytest.mark.promise("D1")
def test_malformed_notes_crash_nothing_change_no_truth_and_hide_no_other_note(lab, sound):
    ended = list(rotten.tried(lab, "note", sound, 3, 20))
    assert len(ended) == 20
    assert [one for one in ended if one["problems"]] == []
    assert any(one["reported"] for one in ended)


def test_damage_is_the_same_for_the_same_seed_and_of_many_kinds():
    files = {name: bytes(range(256)) * 64 for name in spoil.FILES}
    assert spoil.index(files, b"foreign", "s") == spoil.index(files, b"foreign", "s")
    assert spoil.note("s", "zqtoken") == spoil.note("s", "zqtoken")
    assert len({spoil.index(files, b"foreign", f"s{number}")[0] for number in range(300)}) > 30
    assert len({spoil.note(f"s{number}", "zqtoken")[0] for number in range(300)}) > 20


def test_a_child_that_dies_of_a_case_is_a_failure_that_names_it(lab, tmp_path):
    ended = rotten._in_child(lab, "index", tmp_path / "nothing", 3, 0, 4)
    assert "CRASHED with 1" in ended[0]["problems"][0]


@pytest.mark.battery
@pytest.mark.parametrize("way", ["hypothesis", "atheris"])
def test_parsers_survive_a_few_inputs_of_each_kind(lab, way):
    if fuzz.why_not(way):
        pytest.skip(fuzz.why_not(way))
    tried, slowest, problems = fuzz.some(lab, way, ("frontmatter", "facts", "jsonc edits", "config.toml", "transcripts"), 3, 12)
    assert (tried, problems) == (60, [])
    assert slowest < fuzzing.LONGEST


def test_every_parser_that_is_fuzzed_is_there(tmp_path, monkeypatch):
    from battery.parsers import parsers

    assert tuple(parsers(tmp_path)) == fuzz.NAMES


def test_a_parser_that_fails_or_takes_too_long_is_found(capsys, monkeypatch):
    clock = iter((0.0, 0.1, 0.1, 1.9))
    monkeypatch.setattr(fuzzing.time, "thread_time", lambda: next(clock))
    trial = fuzzing.Trial({"divider": lambda data: 1 // len(data), "sleeper": len})
    trial.one("divider", b"")
    trial.one("sleeper", b"x")
    found = [json.loads(line)["found"] for line in capsys.readouterr().out.splitlines()]
    assert found[0].startswith("divider, ZeroDivisionError at test_battery.py:")
    assert found[1] == "sleeper, too slow: 1.8 s of work for 1 bytes"


@needs_strace
@pytest.mark.promise("promise-6")
@pytest.mark.parametrize("door", tiered(["library", "gateway"], fast=["library"]))
def test_no_connection_is_opened_seen_from_outside(lab, door):
    assert network.used(lab, door, watched=True) == []


def test_what_we_depend_on_is_found_out_and_an_index_that_knows_nothing_is_not_believed(monkeypatch):
    assert {"apsw", "numpy", "pyyaml", "mcp"} <= set(advisories.releases())
    monkeypatch.setattr(advisories, "by_pip_audit", lambda needed: {})
    monkeypatch.setattr(advisories, "by_index", lambda name, version: [])
    report = Report(quiet=True)
    advisories.run(None, report, 1.0, 1)
    assert "NOT TRIED" in report.text() and report.passed == 0
    known = {"requests": ["PYSEC-1"], "apsw": []}
    monkeypatch.setattr(advisories, "by_index", lambda name, version: known.get(name, []))
    monkeypatch.setattr(advisories, "releases", lambda: {"apsw": "3.1", "requests": "2.19.0"})
    report = Report(quiet=True)
    advisories.run(None, report, 1.0, 1)
    assert (report.passed, report.failed) == (1, 1)


# --- the oracle sees what is wrong ------------------------------------------------------------------------------------


def test_the_oracle_is_content_with_a_sound_home(furnished):
    state = oracle.read(furnished)
    assert oracle.torn(state) + oracle.differences(state, state, state, "key", True) == []
    assert oracle.reopened(furnished, state) == []


def test_the_oracle_sees_a_torn_file(furnished):
    note = furnished / "shelf/projects/demo/notes/alpha.md"
    for length in (0, 10, 60, note.stat().st_size - 1):
        state = {**oracle.read(furnished), "projects/demo/notes/alpha.md": note.read_bytes()[:length]}
        assert oracle.torn(state), length


def test_the_oracle_sees_a_lost_version_and_a_lost_acknowledgement(furnished):
    before = oracle.read(furnished)
    with caller(furnished) as memory:
        memory.store("zq900 a version more", key="alpha")
    after = oracle.read(furnished)
    item = "projects/demo/notes/alpha.md"
    assert oracle.differences(before, after, before, "key", acknowledged=False) == []
    lost = oracle.differences(before, after, before, "key", acknowledged=True)
    assert lost == [f"acknowledged, but not there: {item}"]
    mixed = {**after, item: after[item].split(b"<!-- holdfast:history")[0]}
    assert oracle.differences(before, after, mixed, "key", acknowledged=False) == [f"neither old nor new: {item}"]


def test_the_oracle_sees_a_note_that_is_in_two_places_or_in_none(furnished):
    before = oracle.read(furnished)
    with caller(furnished) as memory:
        memory.forget("beta")
    after = oracle.read(furnished)
    for half in ({**before, **after}, {item: data for item, data in before.items() if item in after}):
        found = oracle.differences(before, after, half, "key", acknowledged=False)
        assert [line.split(":")[0] for line in found] == ["neither old nor new"]


def test_the_oracle_sees_a_change_to_what_the_verb_did_not_touch(furnished):
    before = oracle.read(furnished)
    item = "projects/demo/notes/beta.md"
    other = {**before, item: before[item].replace(b"liking", b"loathing")}
    assert oracle.differences(before, before, other, "key", acknowledged=False) == [f"lost or changed: {item}"]


def test_the_oracle_sees_what_recall_does_not_find_and_what_is_left_over(furnished):
    state = oracle.read(furnished)
    (furnished / ".holdfast-1-abc.tmp").write_text("half")
    (furnished / "shelf/projects/demo/index.md").write_text("- [alpha](notes/alpha.md)\n")
    found = oracle.reopened(furnished, {**state, "global/notes/missing.md": state["global/notes/common.md"]})
    assert {line.split(":")[0].split(" ")[0] for line in found} >= {"recall", "list", "left", "projects/demo/index.md"}


def test_the_oracle_sees_an_index_that_was_not_mended(furnished):
    import apsw

    from holdfast.index.writer import sum_of

    with caller(furnished) as memory:
        memory.list()
    db = apsw.Connection(str(furnished / "index.db"))
    rows = db.execute("SELECT * FROM doc WHERE key = 'alpha'")
    row = {column[0]: value for column, value in zip(rows.get_description(), next(rows), strict=True)}
    row["title"] = "not its title"
    db.execute("UPDATE doc SET title = :title, sum = :sum WHERE id = :id", row | {"sum": sum_of(row)})
    db.close()
    assert any("the mended index differs" in line for line in oracle.reopened(furnished, oracle.read(furnished)))


def test_the_oracle_hears_what_doctor_says_of_a_damaged_index(furnished):
    import apsw

    with caller(furnished) as memory:
        memory.list()
    db = apsw.Connection(str(furnished / "index.db"))
    db.execute("UPDATE doc SET title = 'not its title' WHERE key = 'alpha'")
    db.close()
    assert any("check: index_damaged" in line for line in oracle.reopened(furnished, oracle.read(furnished)))


def test_a_rename_before_the_flush_and_a_folder_never_flushed_are_seen(tmp_path):
    notes = tmp_path / "shelf/global/notes"
    notes.mkdir(parents=True)
    write = Line("write", f'7<{notes}/.holdfast-1.tmp>, ""..., 9', "9")
    rename = Line("renameat", f'6<{notes}>, ".holdfast-1.tmp", 6<{notes}>, "a.md"', "0")
    fsync_file = Line("fsync", f"7<{notes}/.holdfast-1.tmp>", "0")
    fsync_folder = Line("fsync", f"6<{notes}>", "0")
    assert strace.unflushed([write, fsync_file, rename, fsync_folder], tmp_path) == []
    assert strace.unflushed([write, rename, fsync_folder], tmp_path) == [f"renamed before it was flushed: {notes}/a.md"]
    assert strace.unflushed([write, fsync_file, rename], tmp_path) == [f"not flushed: {notes}"]


def test_the_model_of_a_writer_forgets_and_brings_back_the_last_one():
    model = kill.Model()
    for step in ("store one", "store two", "forget", "store three", "forget", "restore"):
        kind, _, text = step.partition(" ")
        model = model.after((kind, (("key", text),)))
    assert model.says() == ({"key": ("three",)}, [("key", ("two", "one"))])


def test_a_writer_does_the_same_again_for_the_same_seed():
    assert [step for step, _ in zip(steps("s", "a"), range(50), strict=False)] == [
        step for step, _ in zip(steps("s", "a"), range(50), strict=False)
    ]


# --- the report -------------------------------------------------------------------------------------------------------


def test_a_failure_is_told_with_the_command_that_repeats_it():
    report = Report(quiet=True)
    case = crash.Case("SIGKILL", strace.Call(17, "fsync", 3, "fsync(7)"))
    with report.row("crash: store") as row:
        row.tried([], "never")
        row.tried(crash.told(case, ["torn: x"]), case.repeat("store"))
    assert "python -m battery crash --verb store --call 17 --fault SIGKILL" in report.text()
    assert report.text().splitlines()[-1] == "1 passed, 1 failed"
    assert json.loads(report.json())["rows"][0]["count"] == 2


@pytest.mark.battery
@needs_strace
def test_the_command_repeats_one_case_and_answers_in_json(capsys):
    code = command.main(["crash", "--verb", "forget", "--call", "1", "--fault", "EIO", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (code, told["passed"], told["failed"]) == (0, 1, 0)


@pytest.mark.battery
def test_where_strace_cannot_run_the_report_says_so_and_random_moments_remain(capsys, monkeypatch):
    monkeypatch.setattr(strace, "why_not", lambda: "strace is not installed here")
    assert command.main(["crash", "--moments", "1", "--seed", "5"]) == 0
    told = capsys.readouterr().out
    assert "NOT TRIED: faults at system calls, because strace is not installed here" in told
    assert "killed at random moments (seed 5)        1         0" in told


def test_the_slow_tests_are_a_row_with_every_failure_and_a_note_of_what_was_skipped(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\nmarkers = ['battery: slow']\n")
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\npytestmark = pytest.mark.battery\n\ndef test_good(): pass\n\ndef test_bad(): assert 1 == 2\n\n"
        "@pytest.mark.skip('no such program')\ndef test_absent(): pass\n"
    )
    monkeypatch.setattr(slow_tests, "ROOT", tmp_path)
    monkeypatch.setattr(slow_tests, "MORE", ())
    report = Report(quiet=True)
    slow_tests.run(report, jobs=1)
    (row,) = report.rows
    assert (row.count, len(row.failures), row.figure) == (2, 1, "1 NOT TRIED")
    assert "test_it::test_bad: assert 1 == 2" in row.failures[0] and "-k test_bad" in row.failures[0]
    assert report.notes == ["NOT TRIED: 1 slow tests that were skipped; the log above has the reasons"]


def test_the_battery_works_on_a_real_disk_and_cleans_up():
    with Lab.make() as lab:
        root = lab.root
        assert (lab.library / "holdfast" / "models.py").is_file()
    assert not root.exists()
    assert real_disk() and kind_of("/")
