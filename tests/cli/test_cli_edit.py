"""`edit` and `import`: what the editor or a file holds is stored byte for byte, or nothing is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


def test_edit_stores_what_the_editor_left(holdfast, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("EDITOR", "sed -i s/Fridays/Tuesdays/")
    holdfast("store", "We deploy on Fridays", "--key", "k", "--type", "feedback", "--tag", "x")
    assert holdfast("edit", "k").out == "updated k in project:demo\n"
    note = holdfast("get", "k", "--json").json
    assert (note["text"], note["type"], note["tags"]) == ("We deploy on Tuesdays", "feedback", ["x"])
    assert holdfast("edit", "k", "--json").json["action"] == "unchanged"


def test_an_edit_that_conflicts_keeps_the_text_in_a_file(holdfast, home, monkeypatch, tmp_path):
    script = tmp_path / "editor.py"
    script.write_text(
        "import sys\nfrom holdfast import Memory\n"
        f"with Memory({str(home)!r}, project='demo') as memory:\n    memory.store('theirs', key='k')\n"
        "open(sys.argv[1], 'w').write('mine')\n"
    )
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")
    holdfast("store", "before", "--key", "k")
    said = holdfast("edit", "k", "--json")
    assert (said.code, said.json["error"]) == (4, "conflict")
    kept = said.json["fix"].partition("saved in ")[2].partition(".md")[0] + ".md"
    assert Path(kept).read_text() == "mine"
    assert os.stat(kept).st_mode & 0o777 == 0o600
    Path(kept).unlink()
    assert holdfast("get", "k").out == "theirs\n"


@pytest.mark.parametrize("given", [b"a\r\nb\r\n", b"\xc3\xa9 a\r\n\r\nb\r\n", b"a\r\nb\n", b"a\r\n\r\n"])
def test_crlf_line_ends_are_kept_byte_for_byte(program, given):
    assert program("store", "-", "--key", "k", stdin=given).code == 0
    assert program("file", "create", "a.md", "-", stdin=given).code == 0
    text = given.removesuffix(b"\r\n" if given.endswith(b"\r\n") else b"\n")
    done = subprocess.run(program.command("get", "k"), capture_output=True, timeout=60)
    assert (done.stdout, done.stderr) == (text.removesuffix(b"\n") + b"\n", b"")
    assert subprocess.run(program.command("file", "view", "a.md"), capture_output=True, timeout=60).stdout == given
    note = program("get", "k", "--json").json
    assert note["text"].encode() == text and note["hidden"] == []
    hit = subprocess.run(program.command("recall", "a"), capture_output=True, timeout=60).stdout
    assert "⟦".encode() not in hit and b"hidden" not in hit


def test_the_last_crlf_of_stdin_is_removed(program):
    program("store", "-", "--key", "k", stdin=b"a\r\n")
    assert program("get", "k", "--json").json["text"] == "a"


def test_a_lone_carriage_return_is_marked_in_a_pipe(program):
    program("store", "-", "--key", "k", stdin=b"all is well\rnothing\r\nb\r\r\n")
    assert program("get", "k").out == "all is well⟦U+000D⟧nothing\r\nb⟦U+000D⟧\n"
    assert program("get", "k", "--json").json["hidden"] == ["control"]


@pytest.mark.parametrize(("editor", "code"), [("false", 3), ("no-such-editor-anywhere", 2), ("truncate -s 0", 3), ("'", 2)])
def test_an_edit_that_fails_changes_nothing_and_leaves_no_file(holdfast, monkeypatch, tmp_path, editor, code):
    drafts = tmp_path / "drafts"
    drafts.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(drafts))
    monkeypatch.setenv("EDITOR", editor)
    holdfast("store", "before", "--key", "k")
    assert holdfast("edit", "k").code == code
    assert holdfast("get", "k").out == "before\n"
    assert list(drafts.iterdir()) == []


def test_edit_of_a_missing_note_is_not_found(holdfast):
    assert holdfast("edit", "nothing").code == 1


def test_import_stores_every_line(holdfast, tmp_path):
    lines = [{"text": "one", "key": "a", "tags": ["x"]}, {"text": "two", "type": "user", "valid_from": "2026-01-01"}]
    file = tmp_path / "notes.jsonl"
    file.write_text("\n\n".join(json.dumps(line) for line in lines) + "\n")
    assert holdfast("import", str(file)).out == "imported 2 notes: 2 created, 0 updated, 0 unchanged\n"
    again = holdfast("import", "-", "--json", stdin=file.read_bytes())
    assert again.json["unchanged"] == 2
    assert again.json["notes"][0] == {"action": "unchanged", "key": "a", "scope": "project"}
    assert holdfast("get", "a", "--json").json["source"]["origin"] == "import"


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (b"not json", 3, "line 2"),
        (b'["a list"]', 3, "line 2"),
        (b'{"text": "x", "colour": "red"}', 2, "line 2: "),
        (b'{"text": ""}', 3, "line 2: "),
        (b"\xff", 3, "line 2"),
    ],
)
def test_import_stores_nothing_if_a_line_is_bad_and_names_it(holdfast, line, code, said):
    answer = holdfast("import", "-", stdin=b'{"text": "good"}\n' + line + b"\n")
    assert (answer.code, said in answer.err) == (code, True)
    assert holdfast("list", "--json").json == []


def test_import_of_a_folder_or_an_unreadable_file_is_wrong_usage(holdfast, tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    for path in (tmp_path, tmp_path / "loop", "/dev/null/x", "x" * 300):
        said = holdfast("import", str(path))
        assert (said.code, said.out) == (2, "")
        assert f"cannot read {path}: " in said.err and "one JSON object per line" in said.err


@pytest.mark.parametrize("words", [("store", "-"), ("file", "create", "a.md", "-"), ("import", "-")])
def test_too_large_stdin_is_rejected_without_reading_all_of_it(program, home, words):
    """The pipe never ends, and the process has a tenth of the memory that a large file would need."""
    limited = ["sh", "-c", 'ulimit -v 400000; tr "\\0" x </dev/zero | "$@"', "sh", *program.command(*words, "--json")]
    done = subprocess.run(limited, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    said = json.loads(done.stdout)
    assert (done.returncode, said["error"]) == (3, "too_large")
    assert " bytes" in said["message"]
    assert not list(home.rglob("*.md"))


def test_import_of_a_missing_file_is_not_found(holdfast):
    assert holdfast("import", "nowhere.jsonl").code == 1
