"""`forget`, `restore`, `purge`, `clear` and `retain`."""

from __future__ import annotations

import subprocess

import pytest


@pytest.mark.promise("N10")
def test_forget_moves_to_the_trash_and_restore_brings_back(holdfast):
    holdfast("store", "text", "--key", "k")
    said = holdfast("forget", "k")
    assert (said.code, said.out) == (0, "forgotten k in project:demo\n")
    assert "holdfast restore k" in said.err
    assert holdfast("get", "k").code == 1
    assert [one["key"] for one in holdfast("list", "--trash", "--json").json] == ["k"]
    assert holdfast("list", "--trash").out.splitlines()[1].split()[:3] == ["k", "project", "trash"]
    assert holdfast("restore", "k").out == "restored k in project:demo\n"
    assert holdfast("list", "--trash").err == "Nothing to restore.\n"
    assert holdfast("restore", "k").code == 1


@pytest.mark.promise("N10")
def test_forget_of_a_missing_note_exits_1(holdfast):
    said = holdfast("forget", "nothing")
    assert (said.code, said.out) == (1, "no note nothing; nothing was forgotten\n")
    assert holdfast("forget", "nothing", "--json").json["deleted"] is False
    assert holdfast("purge", "nothing", "--yes", "--json").json["deleted"] is False
    assert holdfast("purge", "nothing", "--yes").code == 1


@pytest.mark.promise("N10")
def test_purge_needs_yes_and_prints_a_receipt(holdfast):
    holdfast("store", "a secret of some length", "--key", "k")
    refused = holdfast("purge", "k", "--json")
    assert (refused.code, refused.json["fix"]) == (3, "Add --yes to confirm")
    assert holdfast("get", "k").code == 0
    said = holdfast("purge", "k", "--yes")
    assert said.out.startswith("purged the note k in project:demo at ")
    assert "projects/demo/notes/k.md" in said.out and "checked" in said.out and "not reached" in said.out
    assert holdfast("get", "k").code == 1


@pytest.mark.promise("N10")
def test_a_purged_text_is_rejected_until_a_person_stores_it_with_again(holdfast):
    holdfast("store", "the harbour code is forty-two", "--key", "k")
    receipt = holdfast("purge", "k", "--yes", "--json").json
    refused = holdfast("store", "the harbour code is forty-two", "--json")
    assert (refused.code, refused.json["error"]) == (3, "purged")
    assert receipt["id"] in refused.json["message"] and "forty" not in refused.out
    listed = holdfast("receipts").out
    assert receipt["id"] in listed and "done" in listed
    assert holdfast("receipts", receipt["id"], "--json").json == receipt
    assert holdfast("receipts", "nothing").code == 1
    assert holdfast("store", "the harbour code is forty-two", "--again").code == 0
    assert "taken back" in holdfast("receipts", receipt["id"]).out


@pytest.mark.promise("N10")
def test_a_text_to_purge_is_read_only_from_stdin(holdfast):
    holdfast("store", "the harbour code is zanzibarqvx7", "--key", "k")
    assert (holdfast("purge", "--text", "zanzibarqvx7", "--yes").code, holdfast("purge", "--yes").code) == (2, 2)
    assert holdfast("purge", "--text", "-", stdin=b"zanzibarqvx7\n").code == 3
    said = holdfast("purge", "--text", "-", "--yes", stdin=b"zanzibarqvx7\n")
    assert said.code == 0 and "zanzibar" not in said.out + said.err
    assert holdfast("get", "k").code == 1


@pytest.mark.promise("N10", "H1")
def test_forget_restore_and_purge_take_a_session(holdfast):
    holdfast("log", "-", "--session", "s", stdin=b'{"role": "user", "text": "said once and for all"}\n')
    assert holdfast("forget", "--session", "s").code == 0
    assert holdfast("forget", "--session", "s").code == 1
    assert holdfast("restore", "--session", "s", "--json").json["added"] == 1
    assert holdfast("purge", "--session", "s").code == 3
    assert holdfast("purge", "--session", "s", "--yes").code == 0
    again = holdfast("log", "-", "--session", "s", "--json", stdin=b'{"role": "user", "text": "said once and for all"}\n')
    assert (again.json["added"], again.json["purged"]) == (0, 1)


@pytest.mark.promise("N10")
def test_a_pending_purge_exits_4(holdfast, home):
    import apsw

    holdfast("store", "the harbour code is forty-two", "--key", "k")
    holdfast("config", "lock.seconds", "1")
    reader = apsw.Connection(str(home / "index.db"))
    reader.execute("BEGIN").fetchall()
    reader.execute("SELECT count(*) FROM passage").fetchall()
    said = holdfast("purge", "k", "--yes")
    assert said.code == 4 and said.out.startswith("not yet purged") and "to do" in said.out
    doctor = holdfast("doctor", "--json")
    assert (doctor.code, [one["code"] for one in doctor.json["problems"]]) == (1, ["purge"])
    reader.close()
    assert holdfast("doctor").code == 0


def test_purge_asks_only_if_there_is_a_note(holdfast):
    assert holdfast("purge", "Not A Key", "--json").json["error"] == "invalid_key"
    assert holdfast("purge", "k", "--scope", "session", "--json").json["error"] == "no_scope"
    assert holdfast("purge", "k", "--scope", "moon", "--json").json["error"] == "usage"
    said = holdfast("purge", "k")
    assert (said.code, said.out) == (1, "no note k; nothing was purged\n")
    holdfast("store", "text", "--key", "k")
    holdfast("forget", "k")
    assert (holdfast("purge", "k").code, holdfast("restore", "k").code, holdfast("purge", "k").code) == (3, 0, 3)


def test_clear_checks_the_scope_before_it_asks(holdfast):
    assert holdfast("clear", "--scope", "session", "--json").json["error"] == "no_scope"
    assert holdfast("clear", "--scope", "moon", "--json").json["error"] == "usage"
    holdfast("store", "one")
    assert "(1)?" in holdfast("clear", "--scope", "project").err


@pytest.mark.promise("N3")
@pytest.mark.parametrize("words", [("get",), ("get", "--history"), ("forget",), ("purge",), ("edit",), ("path",)])
def test_a_file_whose_name_is_not_a_key_is_rejected_with_its_new_name(holdfast, home, words):
    holdfast("init")
    notes = home / "shelf/global/notes"
    notes.mkdir(parents=True)
    (notes / "My Note.md").write_text("by hand")
    shown = holdfast("list", "--json").json[0]["key"]
    said = holdfast(words[0], shown, *words[1:])
    assert (said.code, "`holdfast doctor` prints the `mv`" in said.err) == (3, True)
    assert holdfast("store", "text", "--key", shown).err.endswith("or leave it out to get one\n")
    (problem,) = holdfast("doctor", "--json").json["problems"]
    subprocess.run(problem["fix"], shell=True, check=True)
    (note,) = holdfast("list", "--json").json
    assert holdfast("get", note["key"]).out == "by hand\n"


@pytest.mark.promise("N10")
def test_a_cleared_file_whose_name_is_not_a_key_is_restored_under_a_key(holdfast, home):
    holdfast("init")
    notes = home / "shelf/global/notes"
    notes.mkdir(parents=True)
    (notes / "My Note.md").write_text("by hand")
    holdfast("clear", "--scope", "global", "--yes")
    (binned,) = holdfast("list", "--trash", "--json").json
    said = holdfast("restore", binned["key"])
    assert (said.code, "--as KEY" in said.err) == (3, True)
    assert holdfast("restore", binned["key"], "--as", "my-note").code == 0
    assert holdfast("get", "my-note").out == "by hand\n"


def test_doctor_prints_a_fix_with_its_exact_spaces(holdfast, home):
    holdfast("store", "one", "--key", "a")
    odd = home / "shelf/projects/demo/notes/two  spaces.md"
    odd.write_text("text")
    assert f"fix: mv -n '{odd}' " in holdfast("doctor").out


def test_clear_needs_a_scope_and_yes(holdfast):
    holdfast("store", "one")
    holdfast("store", "two")
    assert holdfast("clear", "--yes").code == 2
    assert holdfast("clear", "--scope", "project").code == 3
    said = holdfast("clear", "--scope", "project", "--yes", "--json")
    assert said.json == {"scope": "project", "forgotten": 2, "beyond_reach": []}
    assert holdfast("clear", "--scope", "project", "--yes").out == "forgot 0 notes of the scope project\n"
    assert len(holdfast("list", "--trash", "--json").json) == 2


@pytest.mark.promise("N11")
def test_retain_lists_and_archives_expired_notes(holdfast, clock):
    holdfast("store", "old", "--key", "k")
    clock.forward(days=91)
    dry = holdfast("retain", "--dry-run")
    assert dry.out.splitlines()[-1] == "1 note would be archived: not updated or used for 90 days (project)"
    assert holdfast("retain", "--json").json["archived"][0]["key"] == "k"
    assert holdfast("list").out == ""
    assert holdfast("restore", "k").code == 0
