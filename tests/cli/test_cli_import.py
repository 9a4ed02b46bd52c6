"""Import and export as lines of JSON: on the command line, with --url, over HTTP and with `store_many`."""

from __future__ import annotations

import array
import fcntl
import io
import json
import os
import signal
import subprocess
import sys
import termios

import pytest
from cli_result import CliResult
from http_gateway import run_gateway
from wait import wait_until

from holdfast import Busy, Conflict, Memory, Purged, Refused
from holdfast.api.remote import bulk
from holdfast.cli import main
from holdfast.config import load
from holdfast.home import Lock
from holdfast.models import Interrupted

LINES = "application/x-ndjson"
BOM = b"\xef\xbb\xbf"
PURGED = "The combination of the safe is on the back of the clock."


def lines(*rows):
    return b"".join(row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows)


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run a command in this process for the project `demo`."""
    monkeypatch.chdir(tmp_path)

    def run(*words, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = main(["--project", "demo", *words])
        return CliResult(code, *capsys.readouterr())

    return run


@pytest.fixture
def gateway(tmp_path):
    home = tmp_path / "gateway"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[serve]\nrate = 0\n")
    with run_gateway(home) as gateway:
        yield gateway


@pytest.fixture(params=["here", "gateway"])
def holdfast(request, run, home, monkeypatch):
    """Run a command as the agent `ada`: on a home, and on a gateway."""
    if request.param == "here":
        return lambda *words, **given: run("--home", str(home), "--agent", "ada", *words, **given)
    gateway = request.getfixturevalue("gateway")
    monkeypatch.setenv("HOLDFAST_TOKEN", gateway.agent("ada", "operator").token)
    return lambda *words, **given: run("--url", f"http://127.0.0.1:{gateway.port}", *words, **given)


def kinds(holdfast, *words):
    """Return the kind of each note's scope, by its text."""
    return {note["text"]: note["scope"]["kind"] for note in holdfast(*words, "list", "--json").json}


# --- scopes -----------------------------------------------------------------------------------------------------------

EVERY = {"of the session": "session", "of the project": "project", "of the agent": "agent", "of all": "global"}


def test_an_exported_note_is_imported_into_the_same_kind_of_scope(run, home, tmp_path):
    there, elsewhere = ("--home", str(home)), ("--home", str(tmp_path / "elsewhere"))
    whose = ("--agent", "ada", "--session", "s1")
    for text, scope in EVERY.items():
        run(*there, *whose, "store", text, "--key", "same", "--scope", scope)
    out = run(*there, *whose, "export").out.encode()
    whose = ("--agent", "bo", "--session", "s2")
    assert run(*elsewhere, *whose, "import", "-", "--json", stdin=out).json["created"] == 4
    assert kinds(run, *elsewhere, *whose) == EVERY
    assert run(*elsewhere, *whose, "import", "-", "--json", stdin=out).json["unchanged"] == 4


# --- export -----------------------------------------------------------------------------------------------------------

HAND_MADE = {
    "Bad Name.md": b"kept by hand", "bad-name.md": b"another", "BAD NAME.md": b"and another", "dots.in.it.md": b"dots",
    "\u65e5\u672c.md": b"far east", "quote'\"$(rm).md": b"hostile", "new\nline.md": b"two lines", "caf.md": b"caf\xe9",
}  # fmt: skip
NO_IMPORT_TAKES = {
    "h7.md": (b"", "empty content"), "spaces.md": (b" \n\n", "empty content"), "nul.md": (b"a\0b", "a NUL byte"),
    "big.md": (b"x" * 70_000, "a note can have at most 65,536 bytes"),
    "tagged.md": (b"---\ntags: [" + b"t" * 101 + b"]\n---\ntext\n", "a tag can have at most 100 characters"),
    "over.md": (b"---\nvalid_to: 2020-01-01\n---\ntext\n", "is not after valid_from"),
}  # fmt: skip


def hand_made(home, scope, files):
    notes = home / "shelf" / scope / "notes"
    notes.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, data in files.items():
        (notes / name).write_bytes(data)


def test_a_note_whose_name_is_not_a_key_is_exported_under_a_key(run, home, tmp_path):
    hand_made(home, "projects/demo", HAND_MADE)
    out = run("--home", str(home), "export")
    rows = [json.loads(line) for line in out.out.splitlines()]
    assert (len(rows), out.err) == (len(HAND_MADE), f"exported {len(HAND_MADE)} notes\n")
    assert len({row["key"] for row in rows}) == len(rows)
    named = {row["text"]: row.get("name", row["key"]) for row in rows}
    assert {f"{name}.md" for name in named.values()} == set(HAND_MADE)
    assert {row["key"] for row in rows} >= {"bad-name", "caf"} and named["another"] == "bad-name"
    there = run("--home", str(tmp_path / "elsewhere"), "import", "-", "--json", stdin=out.out.encode())
    assert there.json["created"] == len(rows)


def test_the_key_in_an_export_is_the_one_that_doctor_suggests(memory, home):
    hand_made(home, "projects/demo", {"Bad Name.md": b"kept by hand"})
    (row,) = memory.export()
    problem = memory.check()[-1]
    assert (row["key"], row["name"]) == ("bad-name", "Bad Name") and problem.fix.endswith("/bad-name.md")


def test_a_secret_in_a_file_name_is_not_exported(memory, home):
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    hand_made(home, "projects/demo", {f"{secret}.md": b"text", f"x {secret}.md": b""})
    rows = memory.export()
    (row,) = rows
    assert secret not in json.dumps(row) and row["redacted"] and secret not in json.dumps(rows.left_out.as_dict())
    assert memory.store_many([row], scope="global")[0].note.text == "text"


@pytest.mark.parametrize("where", ["lines", "json", "file"])
def test_an_export_leaves_out_and_names_notes_that_no_import_takes(run, home, tmp_path, where):
    hand_made(home, "projects/demo", {"good.md": b"good", **{name: data for name, (data, _) in NO_IMPORT_TAKES.items()}})
    file = tmp_path / "out.jsonl"
    words = {"lines": (), "json": ("--json",), "file": ("--output", str(file), "--json")}[where]
    said = run("--home", str(home), "export", *words)
    assert said.code == 0
    if where == "file":
        told = said.json["left_out"]
        assert (said.json["notes"], told["count"], said.err) == (1, len(NO_IMPORT_TAKES), "")
        told = {one["name"]: f"{one['scope']} {one['why']}" for one in told["notes"]}
    else:
        first, *rest = said.err.splitlines()[1 if where == "lines" else 0 :]
        assert first == "left out 6 notes that `holdfast import` would reject; fix the file or back it up:"
        told = dict(zip(sorted(NO_IMPORT_TAKES), rest, strict=True))
    for name, (_, why) in NO_IMPORT_TAKES.items():
        assert "project:demo" in told[name] and why in told[name]
    data = file.read_bytes() if where == "file" else said.out.encode()
    rows = data if where != "json" else lines(*json.loads(data))
    there = run("--home", str(tmp_path / "elsewhere"), "import", "-", "--json", stdin=rows)
    assert there.json["created"] == 1


def test_an_export_names_files_that_are_not_notes(run, home):
    hand_made(home, "projects/demo", {"good.md": b"good"})
    notes = home / "shelf" / "projects" / "demo" / "notes"
    (notes / "link.md").symlink_to("good.md")
    with open(os.fsencode(notes) + b"/caf\xe9.md", "wb") as file:
        file.write(b"never found")
    told = run("--home", str(home), "export", "--output", os.devnull, "--json").json
    assert told["notes"] == 1
    assert {(one["name"], one["why"]) for one in told["left_out"]["notes"]} == {
        ("link.md", "a link or special file; never followed"), ("caf\\udce9.md", "its name is not UTF-8"),
    }  # fmt: skip


def test_an_export_counts_what_it_leaves_out_and_names_some(run, home):
    hand_made(home, "projects/demo", {f"empty{number:03}.md": b"" for number in range(70)})
    said = run("--home", str(home), "export").err.splitlines()
    assert said[1].startswith("left out 70 notes") and len(said) == 13 and said[-1] == "  and 60 more"


def test_a_gateway_names_what_it_left_out_in_a_last_line_that_import_skips(gateway, run, tmp_path, monkeypatch):
    ask = gateway.operator
    hand_made(gateway.home, "projects/demo", {"Bad Name.md": b"kept", "h7.md": b"", "too.md": b"too"})
    out = ask.get("/v1/export?project=demo")
    kept, too, last = out.lines
    assert (kept["key"], kept["name"], too["key"]) == ("bad-name", "Bad Name", "too")
    assert last == {"left_out": {"count": 1, "notes": [{"scope": "project:demo", "name": "h7.md", "why": "empty content"}]}}
    rows = out.data + lines({"text": "more"})
    done = ask("POST", "/v1/import?scope=agent", raw=rows, Content_Type=LINES).lines[-1]["done"]
    assert done == {"line": 4, "created": 3, "updated": 0, "unchanged": 0}
    bad = ask("POST", "/v1/import?scope=agent", raw=out.data + lines({"text": ""}), Content_Type=LINES)
    assert bad.json["detail"] == "line 4: empty content"
    assert run("--home", str(tmp_path / "elsewhere"), "import", "-", "--json", stdin=rows).json["created"] == 3
    monkeypatch.setenv("HOLDFAST_TOKEN", ask.token)
    asked = run("--url", f"http://127.0.0.1:{gateway.port}", "export", "--scope", "project")
    assert [json.loads(line)["key"] for line in asked.out.splitlines()] == ["bad-name", "too"]
    assert asked.err.endswith("left out 1 note that `holdfast import` would reject; fix the file or back it up:\n"
                              "  project:demo h7.md: empty content\n")  # fmt: skip


def test_an_export_to_a_full_disk_or_a_bad_path_says_which(run, home, tmp_path):
    run("--home", str(home), "store", "text", "--key", "k")
    full = run("--home", str(home), "export", "--output", "/dev/full", "--json")
    assert (full.code, full.json["error"]) == (5, "disk") and "cannot write /dev/full" in full.json["message"]
    assert full.json["fix"].startswith("Free some space on that disk")
    for wrong in (tmp_path / "no/such", tmp_path):
        assert run("--home", str(home), "export", "--output", str(wrong), "--json").json["error"] == "usage"


NAMED = lines(
    {"text": "of all", "scope": "global"}, {"text": "of the agent", "scope": "agent:somebody"}, {"text": "unsaid"},
    {"text": "of the project", "scope": "project"}, {"text": "unsaid, too", "scope": None},
)  # fmt: skip


def test_a_line_goes_to_its_own_scope_and_others_to_the_project(holdfast):
    assert holdfast("import", "-", "--json", stdin=NAMED).json["created"] == 5
    assert kinds(holdfast) == {
        "of all": "global", "of the agent": "agent", "unsaid": "project", "of the project": "project", "unsaid, too": "project",
    }  # fmt: skip
    again = holdfast("import", "-", "--json", stdin=NAMED).json
    assert [one["action"] for one in again["notes"]] == ["unchanged"] * 5


def test_the_scope_option_applies_to_all_lines(holdfast):
    assert holdfast("import", "-", "--scope", "agent", "--json", stdin=NAMED).json["created"] == 5
    assert set(kinds(holdfast).values()) == {"agent"}


def test_an_unknown_scope_of_a_line_is_rejected_also_with_the_scope_option(holdfast):
    said = holdfast("import", "-", "--scope", "agent", "--json", stdin=lines({"text": "a"}, {"text": "b", "scope": "nowhere"}))
    assert said.json["message"] == "line 2: unknown scope" and kinds(holdfast) == {}


def test_one_key_may_be_in_two_scopes(holdfast):
    rows = lines({"text": "one", "key": "k", "scope": "global"}, {"text": "two", "key": "k"})
    assert holdfast("import", "-", "--json", stdin=rows).json["created"] == 2
    assert kinds(holdfast) == {"one": "global", "two": "project"}


@pytest.mark.parametrize("scope", ["nowhere", "", "Global", "projects/demo", 0, 5, True, ["project"], {"kind": "x"}], ids=str)
def test_an_unknown_scope_is_rejected_with_its_line_and_nothing_is_stored(holdfast, scope):
    said = holdfast("import", "-", "--json", stdin=lines({"text": "a"}, b"\n", {"text": "b", "scope": scope}))
    assert (said.code, said.json["error"]) == (3, "refused")
    assert said.json["message"] == "line 3: unknown scope" and "session, project, agent" in said.json["fix"]
    assert kinds(holdfast) == {}


@pytest.mark.parametrize("scope", ["agent", "session"])
def test_a_scope_without_an_id_is_rejected_with_its_line_and_nothing_is_stored(run, home, scope):
    rows = lines({"text": "of all", "scope": "global"}, b"\n", {"text": "whose", "scope": f"{scope}:x"})
    said = run("--home", str(home), "import", "-", "--json", stdin=rows)
    assert (said.code, said.json["error"]) == (3, "no_scope") and f"--{scope}" in said.json["fix"]
    assert said.json["message"].startswith(f"line 3: no {scope} is known")
    assert not home.exists()


def test_a_line_for_the_session_needs_a_session(holdfast):
    said = holdfast("import", "-", "--json", stdin=lines({"text": "a"}, {"text": "b", "scope": "session"}))
    assert said.json["message"].startswith("line 2: no session is known") and kinds(holdfast) == {}


def test_store_many_writes_several_scopes_or_nothing(memory):
    stored = memory.store_many([{"text": "a", "scope": "global"}, {"text": "b"}, {"text": "c", "scope": "project:other"}])
    assert [str(one.note.scope) for one in stored] == ["global", "project:demo", "project:demo"]
    old = memory.get("b").version
    memory.store("later", key="b")
    with pytest.raises(Conflict, match=r"^note 3: the note 'b' has changed"):
        memory.store_many([{"text": "d", "scope": "global"}, {"text": "e"}, {"text": "f", "key": "b", "expected": old}])
    assert sorted(note.key for note in memory.list()) == ["a", "b", "c"]


# --- invalid notes ----------------------------------------------------------------------------------------------------

WRONG = {
    "an empty text": ({"text": ""}, "invalid_text"),
    "a field that is none": ({"text": "x", "colour": "red"}, "usage"),
    "no text": ({"key": "k"}, "usage"),
    "a type that is none": ({"text": "x", "type": "odd"}, "usage"),
    "a source that is none": ({"text": "x", "made_from": 5}, "usage"),
    "a key twice": ({"text": "another", "key": "good"}, "usage"),
    "was changed or deleted": ({"text": "x", "key": "old", "expected": "0" * 32}, "conflict"),
    "a version of nothing": ({"text": "x", "key": "new", "expected": "0" * 32}, "conflict"),
    "what was purged": ({"text": PURGED, "key": "back"}, "purged"),
    "what was purged as a tag": ({"text": "x", "tags": [PURGED]}, "purged"),
    "a short text that was purged": ({"text": "brief", "key": "brief"}, "purged"),
    "a key that is a number": ({"text": "x", "key": 5}, "invalid_key"),
    "a source that is an empty text": ({"text": "x", "made_from": ""}, "invalid_text"),
    "a tag that is true": ({"text": "x", "tags": [True]}, "usage"),
    **{
        f"{field} {value!r}": ({"text": "x", field: value}, "usage")
        for field, values in {
            "type": ([], 0, False, ""), "origin": ("", [], 0, {}), "made_from": (0, False, {}), "expected": (False, 0, []),
            "tags": (0, False, {}), "pinned": (0, "", []),
        }.items()
        for value in values
    },
}  # fmt: skip


@pytest.mark.parametrize("why", WRONG)
def test_an_invalid_note_is_named_by_its_line_and_nothing_is_stored(holdfast, why):
    row, code = WRONG[why]
    for key, text in (("old", "old"), ("gone", PURGED), ("brief", "brief")):
        holdfast("store", text, "--key", key)
    for key in ("gone", "brief"):
        assert holdfast("purge", key, "--yes").code == 0
    good = [{"text": f"good {number}"} for number in range(5)]
    rows = lines(b"\n", {"text": "good", "key": "good"}, b" \n\n", *good, b"\n", row, b"\n", {"text": "fine"}, row)
    said = holdfast("import", "-", "--json", stdin=rows)
    assert said.json["error"] == code and said.json["message"].startswith("line 11: "), said.out
    assert "note 7" not in said.out
    assert [note["key"] for note in holdfast("list", "--json").json] == ["old"]


def test_null_and_empty_lists_count_as_not_given(holdfast):
    row = {"text": "x", **dict.fromkeys(("key", "type", "origin", "expected", "scope", "valid_to", "pinned"))}
    rows = lines({**row, "tags": None, "made_from": None}, {"text": "y", "tags": [], "made_from": []})
    assert holdfast("import", "-", "--json", stdin=rows).json["created"] == 2


def test_a_key_that_is_a_number_is_rejected(memory, gateway):
    with pytest.raises(Refused, match="note 1: a key must be a string, not a number"):
        memory.store_many([{"text": "x", "key": 5}])
    with pytest.raises(Refused, match="a key must be a string, not a list"):
        memory.get(["k"])
    said = gateway.operator("POST", "/v1/import?scope=agent", raw=b'{"text": "x", "key": 5}\n', Content_Type=LINES)
    assert (said.code, said.json["detail"]) == ("invalid_key", "line 1: a key must be a string, not a number")


@pytest.mark.parametrize("why", [why for why, (_, code) in WRONG.items() if code in ("usage", "invalid_key", "invalid_text")])
def test_a_wrong_type_is_rejected_over_http_too(gateway, why):
    rows = lines({"text": "good", "key": "good"}, WRONG[why][0])
    said = gateway.operator("POST", "/v1/import?scope=agent", raw=rows, Content_Type=LINES)
    assert said.status == 422 and said.json["detail"].startswith("line 2: "), said
    assert gateway.operator.get("/v1/notes?scope=agent").json["notes"] == []


def test_the_first_invalid_note_is_named_whatever_its_error(memory, open_memory):
    memory.store("old", key="old")
    memory.store(PURGED, key="gone")
    open_memory(origin="user").purge("gone")  # a person's purge counts in every scope
    conflict, purged = {"text": "x", "key": "old", "expected": "0" * 32}, {"text": PURGED}
    bad, elsewhere = {"text": ""}, {"text": PURGED, "scope": "global"}
    for rows, kind in (
        ([conflict, purged, bad], Conflict), ([purged, conflict, bad], Purged), ([elsewhere, conflict], Purged),
        ([{"text": "of the project"}, elsewhere, purged], Purged), ([conflict, elsewhere, purged], Conflict),
        ([bad, conflict], Refused),
    ):  # fmt: skip
        first = 2 if "project" in rows[0].get("text", "") else 1
        with pytest.raises(kind, match=f"^note {first}: ") as caught:
            memory.store_many(rows)
        assert (caught.value.item, caught.value.number) == ("note", first)
    assert [note.key for note in memory.list()] == ["old"]


def test_a_busy_scope_is_reported_with_what_other_scopes_have_stored(open_memory, home):
    with open_memory(config=load(home).replace(lock_seconds=0.2)) as memory:
        memory.store("there", scope="global")
        with Lock(str(home), "global", 5), pytest.raises(Busy, match="1 other note was stored"):
            memory.store_many([{"text": "of the project"}, {"text": "of all", "scope": "global"}])
        stored = memory.store_many([{"text": "of the project"}, {"text": "of all", "scope": "global"}])
    assert [one.action for one in stored] == ["unchanged", "created"]


def test_a_gateway_stores_nothing_if_a_line_of_one_scope_is_rejected(gateway, run, monkeypatch):
    monkeypatch.setenv("HOLDFAST_TOKEN", gateway.agent("ada", "operator").token)
    url = ("--url", f"http://127.0.0.1:{gateway.port}")
    bad = {"text": "x", "key": "k", "expected": "0" * 32, "scope": "global"}
    rows = lines({"text": "of the project"}, bad, {"text": "more", "scope": "agent"})
    said = run(*url, "import", "-", "--json", stdin=rows)
    assert said.json["error"] == "conflict" and said.json["message"].startswith("line 2: ")
    assert run(*url, "list", "--json").json == []
    many = [{"text": f"good {number}"} for number in range(600)]
    said = run(*url, "import", "-", "--json", stdin=lines(*many, bad))
    assert said.json["message"].endswith("; 500 other notes were stored")


def test_duplicate_lines_count_as_one_after_the_other(holdfast):
    said = holdfast("import", "-", "--json", stdin=lines({"text": "a", "key": "k"}, {"text": "a", "key": "k"})).json
    assert (said["created"], said["unchanged"]) == (1, 1)
    assert said["notes"] == [{"action": action, "key": "k", "scope": "project"} for action in ("created", "unchanged")]


def test_a_line_of_an_export_may_have_many_versions(memory, holdfast, home):
    line = {"text": "now", "key": "k", "versions": [{"text": "x" * 60_000}] * 300}
    assert holdfast("import", "-", "--json", stdin=lines(line)).json["created"] == 1


def test_a_gateway_names_the_line_also_in_the_second_batch_and_in_another_scope(gateway, run, monkeypatch):
    monkeypatch.setenv("HOLDFAST_TOKEN", gateway.agent("ada", "operator").token)
    url = ("--url", f"http://127.0.0.1:{gateway.port}")
    good = [{"text": f"good {number}", "scope": ("global", "project")[number % 2]} for number in range(1200)]
    bad = {"text": "x", "key": "k", "expected": "0" * 32, "scope": "global"}
    said = run(*url, "import", "-", "--json", stdin=lines(b"\n", *good, b"\n", bad))
    assert said.json["error"] == "conflict" and said.json["message"].startswith("line 1203: the note 'k' "), said.out


def test_the_first_bad_line_is_named_also_where_a_later_one_cannot_be_read(holdfast):
    holdfast("store", "old", "--key", "old")
    for bad in (b"{nonsense\n", b"[]\n", b'{"text": "x", "text": "y"}\n'):
        said = holdfast("import", "-", "--json", stdin=lines({"text": "good"}, b"\n", {"text": ""}, bad))
        assert said.json["message"].startswith("line 3: ") and said.json["error"] == "invalid_text"
        said = holdfast("import", "-", "--json", stdin=lines({"text": "good"}, b"\n", bad, {"text": ""}))
        assert said.json["message"].startswith("line 3: ") and said.json["error"] != "invalid_text"
    assert [note["key"] for note in holdfast("list", "--json").json] == ["old"]


def test_an_agent_sees_the_line_with_purged_text_but_not_the_receipt(gateway, run, monkeypatch):
    with Memory(gateway.home, agent="other", origin="user") as memory:
        memory.store(PURGED, key="gone", scope="agent")
        receipt = memory.purge("gone", scope="agent").id
    agent = gateway.agent("ada")
    monkeypatch.setenv("HOLDFAST_TOKEN", agent.token)
    rows = lines({"text": "a", "scope": "agent"}, b"\n", {"text": PURGED, "scope": "agent"})
    said = run("--url", f"http://127.0.0.1:{gateway.port}", "import", "-", "--json", stdin=rows)
    assert (said.json["error"], said.json["message"]) == ("purged", "line 3: this text was purged")
    asked = agent("POST", "/v1/import", raw=rows, Content_Type=LINES)
    assert (asked.json["detail"], asked.json["line"]) == ("line 3: this text was purged", 3)
    assert receipt not in said.out + asked.data.decode()
    person = gateway.operator("POST", "/v1/import", raw=rows, Content_Type=LINES)
    assert person.json["detail"] == f"line 3: this text was purged; see receipt {receipt}"


# --- parsing lines ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "field"),
    [
        (b'{"text": "a", "text": "b"}', "text"),
        (b'{"text": "a", "\\u0074ext": "b"}', "text"),
        (b'{"text": "a", "source": {"a": 1, "a": 2}}', "a"),
        (b"{" + b"".join([b'"k%d":1,' % n for n in range(9000)]) + b'"k8999":1}', "k8999"),
    ],
    ids=["plain", "spelled otherwise", "within", "among many"],
)
def test_a_duplicate_field_is_rejected_by_every_interface_with_one_message(run, home, gateway, row, field):
    data = lines({"text": "good"}, b"\n", row + b"\n")
    said = run("--home", str(home), "import", "-", "--json", stdin=data)
    asked = gateway.operator("POST", "/v1/import?scope=agent", raw=data, Content_Type=LINES)
    assert (said.code, asked.code) == (2, "invalid_request")
    assert said.json["message"] == asked.json["detail"] == f"line 3: the field {field!r} occurs twice"
    assert said.json["fix"] == asked.json["fix"] and asked.json["line"] == 3
    assert not home.exists() and gateway.operator.get("/v1/notes").json["notes"] == []
    logged = run("--home", str(home), "log", "-", "--session", "s", "--json", stdin=data)
    assert logged.json["message"] == f"line 3: the field {field!r} occurs twice"


@pytest.mark.parametrize("source", [{"origin": "web"}, {"origin": "agent", "trust": "web"}, {"origin": "divine"}, {}])
def test_a_line_cannot_raise_the_trust_of_its_export(holdfast, source):
    holdfast("import", "-", "--origin", "agent", stdin=lines({"text": "x", "key": "x", "origin": "agent", "source": source}))
    assert holdfast("get", "x", "--json").json["source"]["origin"] == "web"


def test_a_byte_order_mark_before_a_line_is_ignored(run, home, gateway):
    data = BOM + lines({"text": "one"}, BOM + b"\n", BOM, {"text": "two"}, b"\n")
    assert run("--home", str(home), "import", "-", "--json", stdin=data).json["created"] == 2
    asked = gateway.operator("POST", "/v1/import?scope=agent", raw=data, Content_Type=LINES)
    assert asked.lines[-1]["done"]["created"] == 2
    for empty in (BOM, BOM + b"\n"):
        assert run("--home", str(home), "import", "-", "--json", stdin=empty).json["notes"] == []
        asked = gateway.operator("POST", "/v1/import?scope=agent", raw=empty, Content_Type=LINES)
        assert asked.lines[-1]["done"]["created"] == 0


def test_a_line_that_is_not_an_object_has_one_message_in_every_interface(run, home, gateway):
    for wrong, what in ((b"{nonsense", "not JSON"), (b"[]", "not a JSON object"), (b"\xff", "not JSON"), (b"[" * 20_000, "")):
        data = lines({"text": "good"}, wrong + b"\n")
        said = run("--home", str(home), "import", "-", "--json", stdin=data)
        asked = gateway.operator("POST", "/v1/import?scope=agent", raw=data, Content_Type=LINES)
        for message in (said.json["message"], asked.json["detail"]):
            assert message.startswith(f"line 2: {what}"), message
        assert asked.json["line"] == 2


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"\xff", "it is not UTF-8"), (b"[" * 20_000, "it is nested too deeply"),
        (b'{"text": ' + b"1" * 10_000 + b"}", "a number has too many digits"), (b'{"text": "x"', "Expecting ',' delimiter"),
    ],
)  # fmt: skip
def test_a_line_that_is_not_json_has_a_plain_message(run, home, line, why):
    said = run("--home", str(home), "import", "-", "--json", stdin=lines({"text": "good"}, line + b"\n")).json
    assert said["message"].startswith(f"line 2: not JSON: {why}"), said


# --- over HTTP --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["nowhere", "", 0, False, [], {"kind": "agent"}], ids=str)
def test_an_unknown_scope_of_a_line_is_rejected_also_if_the_request_has_a_scope(gateway, scope):
    rows = lines({"text": "a"}, {"text": "b", "scope": scope})
    for path in ("/v1/import?scope=agent", "/v1/import?project=demo"):
        said = gateway.operator("POST", path, raw=rows, Content_Type=LINES)
        assert (said.code, said.json["detail"]) == ("refused", "line 2: unknown scope")
    assert gateway.operator.get("/v1/notes").json["notes"] == []


def test_the_first_bad_line_is_named_whatever_the_errors_of_others(gateway):
    ask = gateway.operator
    assert ask("PUT", "/v1/notes/agent/old", {"text": "old"}).status == 201
    good, nowhere = {"text": "good"}, {"text": "x", "scope": "nowhere"}
    empty, conflict = {"text": "", "scope": "global"}, {"text": "x", "key": "old", "scope": "agent", "expected": "0" * 32}
    deep, long = b'{"text": "x", "tags": ' + b"[" * 100 + b"]" * 100 + b"}\n", b"x" * 20_000_000 + b"\n"
    for bad in (
        [empty, b"{nonsense\n"], [{"text": "x", "colour": "red"}, nowhere], [empty, {**good, "text": ""}], [conflict, empty],
        [conflict, nowhere], [conflict, b"{nonsense\n"], [nowhere, conflict], [b"{nonsense\n", empty], [empty, conflict],
        [conflict, b'{"text": "x", "text": "y"}\n'], [conflict, deep], [empty, deep], [conflict, long], [empty, long],
        [deep, empty],
    ):  # fmt: skip
        said = ask("POST", "/v1/import?project=demo", raw=lines(good, b"\n", *bad), Content_Type=LINES)
        assert said.json["line"] == 3 and said.json["detail"].startswith("line 3: "), (bad, said)
    assert [note["key"] for note in ask.get("/v1/notes?project=demo").json["notes"]] == ["old"]


def test_scope_is_a_known_field(gateway, memory):
    with pytest.raises(Refused.__base__) as caught:
        memory.store_many([{"text": "x", "colour": "red"}])
    said = gateway.operator("POST", "/v1/import?scope=agent", raw=b'{"text": "x", "colour": "red"}\n', Content_Type=LINES)
    assert said.json["fix"] == caught.value.fix and "scope" in caught.value.fix and "expected" in caught.value.fix


# --- Ctrl-C -----------------------------------------------------------------------------------------------------------

TWO = lines({"text": "one"}, {"text": "two"})


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["holdfast.cli.runner.Invocation.answer", "holdfast.cli.runner.to_json", "json.dumps"])
def test_an_import_interrupted_after_storing_says_that_all_notes_are_stored(run, home, monkeypatch, where):
    import holdfast.cli.commands.import_notes  # loaded before monkeypatch replaces anything
    import holdfast.safety.hidden_chars  # noqa: F401

    dumps, said = json.dumps, []

    def once(data, **given):
        said.append(data)
        return interrupt() if len(said) == 1 else dumps(data, **given)

    with monkeypatch.context() as patched:
        patched.setattr(where, once if where == "json.dumps" else interrupt)
        told = run("--home", str(home), "import", "-", "--json", stdin=TWO)
    assert told.code == 130
    assert (told.json["error"], told.json["stored"]) == ("interrupted", 2)
    assert told.json["message"] == "interrupted while 2 notes were imported: all of them are stored"


@pytest.mark.parametrize(
    ("where", "stored", "known"),
    [
        ("holdfast.api.remote.caller.RemoteCaller.make_draft", 0, "before anything was imported"),
        ("holdfast.api.remote.bulk._import", 0, "none, some or all"),
        ("holdfast.api.remote.bulk._stored", 2, "all of them are stored"),
    ],
)  # fmt: skip
def test_an_import_to_a_gateway_interrupted_at_any_step_says_what_is_known(gateway, run, monkeypatch, where, stored, known):
    monkeypatch.setenv("HOLDFAST_TOKEN", gateway.agent("ada", "operator").token)
    with monkeypatch.context() as patched:
        patched.setattr(where, interrupt)
        told = run("--url", f"http://127.0.0.1:{gateway.port}", "import", "-", "--json", stdin=TWO)
    assert told.code == 130 and told.json["stored"] == stored and known in told.json["message"], told.out


def test_an_interrupted_store_many_says_how_many_notes_are_stored(gateway, monkeypatch):
    token = gateway.agent("ada", "operator").token
    send, sent = bulk._import, []

    def second(*given):
        sent.append(given)
        return interrupt() if len(sent) == 2 else send(*given)

    monkeypatch.setattr(bulk, "_import", second)
    url = f"http://127.0.0.1:{gateway.port}"
    with Memory(url, token=token, project="demo") as memory, pytest.raises(Interrupted) as caught:
        memory.store_many([{"text": f"note {number}"} for number in range(501)])
    assert caught.value.stored == 500


def test_an_interrupted_import_of_one_note_uses_the_singular(run, home):
    said = run("--home", str(home), "import", "-", stdin=lines({"text": "one"}))
    assert said.out == "imported 1 note: 1 created, 0 updated, 0 unchanged\n"


@pytest.mark.parametrize("size", [3000, 1500])
def test_an_import_interrupted_while_its_answer_is_stuck_reports_on_stderr(home, tmp_path, size):
    rows = tmp_path / "rows.jsonl"
    rows.write_bytes(lines(*[{"text": f"note {number}", "key": f"n{number}"} for number in range(size)]))
    ours = ("--home", str(home), "--project", "demo")
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "holdfast", *ours, "import", str(rows), "--json"]
    running = subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    try:
        wait_until(lambda: pipe_is_full(reading))
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
    finally:
        os.close(reading)
    assert running.returncode == 130
    assert f"interrupted while {size:,} notes were imported: all of them are stored" in err.decode()


def pipe_is_full(reading):
    waiting = array.array("i", [0])
    fcntl.ioctl(reading, termios.FIONREAD, waiting)
    return waiting[0] >= 65536
