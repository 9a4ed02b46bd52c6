"""Where a note came from, where it was shown, and everything that one source affected (N13, S3)."""

from __future__ import annotations

import json

import pytest

from holdfast import Memory
from holdfast.cli import main
from holdfast.errors import Refused, UsageError

URL = "https://evil.example/page"


def keys(touched):
    return sorted(one.key for one in touched)


@pytest.fixture
def person(open_memory):
    return open_memory(origin="user")


@pytest.fixture
def chain(memory, clock):
    """A page became a note, that note another, and that one a third; beside them an unrelated note."""
    memory.store("a page says so", key="first", made_from=[URL])
    clock.forward(minutes=1)
    memory.store("which means", key="second", made_from=["note:first"])
    clock.forward(minutes=1)
    memory.store("so do this", key="third", made_from=["second"])
    memory.store("something else", key="other")
    return memory


@pytest.mark.promise("N13")
def test_a_note_is_traced_up_to_its_roots_and_down_to_what_was_made_from_it(chain):
    up = chain.trace("third").versions[0]
    assert (up.trust, up.came_from[0].note, up.came_from[0].trust) == ("web", "project/second", "web")
    assert up.came_from[0].came_from[0].came_from[0].what == URL
    down = chain.trace("first").led_to
    assert (down[0].note, down[0].current, down[0].led_to[0].note) == ("project/second", True, "project/third")
    assert chain.trace("other").led_to == ()


@pytest.mark.promise("N13")
def test_to_whom_a_note_was_told_is_known(open_memory, clock):
    teller = open_memory(session="s1", client="claude-code")
    note = teller.store("harbour opens", key="tide").note
    teller.brief()
    assert [(one.version, one.session, one.client, one.time) for one in teller.trace("tide").briefed] == [
        (note.version, "s1", "claude-code", clock.now)
    ]
    clock.forward(days=401)
    open_memory(session="s2").brief()
    assert [one.session for one in teller.trace("tide").briefed] == ["s2"]


def test_notes_that_name_each_other_do_not_go_round_for_ever(memory, home):
    for key, other in (("a", "b"), ("b", "a")):
        folder = home / "shelf/projects/demo/notes"
        memory.store(f"text {key}", key=key)
        text = (folder / f"{key}.md").read_text().replace("{origin: agent}", f'{{origin: agent, from: ["note:{other}"]}}')
        (folder / f"{key}.md").write_text(text)
    assert memory.trace("a").versions[0].came_from[0].note == "project/b"
    assert keys(memory.forget_source("note:a", dry_run=True).forgotten) == ["a", "b"]


@pytest.mark.promise("S3")
@pytest.mark.parametrize("source", [URL, "https://evil.example", "https://evil.example/pa", "note:first"])
def test_everything_a_source_touched_is_forgotten_at_once(chain, person, source):
    assert {note.key for note in chain.list(source=source)} == {"first", "second", "third"}
    dry = chain.forget_source(source, dry_run=True)
    assert keys(dry.forgotten) == ["first", "second", "third"]
    assert len(chain.list()) == 4
    assert keys(person.forget_source(source).forgotten) == ["first", "second", "third"]
    assert [note.key for note in chain.list()] == ["other"]
    assert person.restore("third").text == "so do this"


@pytest.mark.parametrize("source", ["https://evil.exam", "https://good.example", "session:none", "client:x", "origin:import"])
def test_what_did_not_come_from_it_stays(chain, source):
    assert chain.forget_source(source).forgotten == ()
    assert len(chain.list()) == 4


@pytest.mark.parametrize(
    ("source", "who"),
    [("session:bad", {"session": "bad"}), ("client:bad", {"client": "bad"}), ("agent:bad", {"agent": "bad"})],
)
def test_a_session_a_client_and_an_agent_are_sources(open_memory, source, who):
    open_memory().store("good", key="good")
    open_memory(**who).store("bad", key="bad")
    assert keys(open_memory().forget_source(source).forgotten) == ["bad"]


def test_where_only_an_older_version_came_from_it_the_note_is_named_and_stays(memory, clock):
    memory.store("of a page", key="k", made_from=[URL])
    clock.forward(days=1)
    memory.store("a person's own", key="k", origin="user")
    swept = memory.forget_source(URL)
    assert (keys(swept.forgotten), keys(swept.older)) == ([], ["k"])
    assert memory.get("k").text == "a person's own"


@pytest.mark.promise("S3")
def test_the_last_clean_text_can_be_taken_back(memory, person, clock):
    memory.store("clean", key="k", tags="x")
    clock.forward(days=1)
    person.store("poisoned", key="k", made_from=[URL])
    clock.forward(days=1)
    swept = person.forget_source(URL, revert=True)
    assert (keys(swept.forgotten), keys(swept.reverted)) == ([], ["k"])
    note = memory.get("k")
    assert (note.text, note.tags, note.quarantined, note.versions) == ("clean", ("x",), False, 3)


def test_what_was_made_before_the_poison_or_after_it_was_gone_stays(memory, person, clock):
    memory.store("clean", key="k")
    clock.forward(days=1)
    memory.store("from the clean text", key="before", made_from="note:k")
    clock.forward(days=1)
    person.store("poisoned", key="k", made_from=[URL])
    clock.forward(days=1)
    memory.store("from the poison", key="during", made_from="note:k")
    clock.forward(days=1)
    memory.store("mine again", key="k", origin="user")
    clock.forward(days=1)
    memory.store("from mine", key="after", made_from="note:k")
    assert keys(person.forget_source(URL).forgotten) == ["during"]


def test_a_fact_that_is_added_does_not_wash_a_source_off(memory, person, clock):
    memory.store("# Tide\n\npoison", key="tide", made_from=[URL])
    clock.forward(days=1)
    memory.fact("Tide", "height", "3 m", origin="user")
    assert keys(person.forget_source(URL).forgotten) == ["tide"]


def test_it_stays_in_what_the_caller_may_see_unless_a_person_says_everywhere(open_memory):
    open_memory(project="other").store("of a page", key="theirs", made_from=[URL])
    memory = open_memory()
    assert memory.forget_source(URL).forgotten == ()
    with pytest.raises(Refused, match="only a person"):
        memory.forget_source(URL, everywhere=True)
    assert keys(open_memory(origin="user").forget_source(URL, everywhere=True).forgotten) == ["theirs"]


def test_the_transcript_of_a_session_is_named_with_what_removes_it(home, tmp_path, capsys):
    with Memory(home, project="demo", cwd=tmp_path, session="bad") as memory:
        memory.store("note", key="k")
        memory.log([{"role": "user", "text": "words"}], client="c")
    words = ["--home", str(home), "--project", "demo", "forget", "--source", "session:bad"]
    assert main([*words, "--yes"]) == 0
    assert "holdfast purge --session bad" in capsys.readouterr().err
    assert main([*words, "--dry-run", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["transcripts"] == ["projects/demo/transcripts/c/bad.jsonl"]


def test_not_without_being_sure(home, tmp_path, capsys):
    with Memory(home, project="demo", cwd=tmp_path) as memory:
        memory.store("note", key="k", made_from=[URL])
    assert main(["--home", str(home), "--project", "demo", "forget", "--source", URL]) == 3
    with pytest.raises(UsageError), Memory(home, project="demo", cwd=tmp_path) as memory:
        memory.forget_source("origin:nobody")


def test_the_command_draws_the_trace(chain, home, capsys):
    assert main(["--home", str(home), "--project", "demo", "trace", "third"]) == 0
    said = capsys.readouterr().out
    assert "└ project/second, trusted as web" in said
    assert f"└ {URL}" in said
    assert main(["--home", str(home), "--project", "demo", "list", "--source", URL, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 3


# --- many paths to one note, and notes in the trash ---------------------------------------------------------------------


def nodes(steps, below):
    return sum(1 + nodes(getattr(one, below), below) for one in steps)


def test_a_trace_tells_each_note_once_however_many_ways_lead_to_it(memory):
    levels = 20
    rows = [{"text": f"at the root {side}", "key": f"n-0-{side}"} for side in "ab"]
    memory.store_many(rows)
    for level in range(1, levels):
        made = [f"note:n-{level - 1}-{side}" for side in "ab"]
        memory.store_many([{"text": f"{level} {side}", "key": f"n-{level}-{side}", "made_from": made} for side in "ab"])
    up = memory.trace(f"n-{levels - 1}-a").versions[0].came_from
    assert nodes(up, "came_from") <= 4 * levels  # two to the twentieth, if each path were listed
    assert [one.note for one in up] == ["project/n-18-a", "project/n-18-b"]
    down = memory.trace("n-0-a").led_to
    assert nodes(down, "led_to") <= 4 * levels
    assert {one.note for one in down} == {"project/n-1-a", "project/n-1-b"}


@pytest.mark.promise("N13")
def test_what_lies_in_trash_and_archive_is_found_too_and_what_was_made_from_it(chain, person, home, capsys):
    person.forget("first")
    person.forget("third")
    swept = chain.forget_source(URL, dry_run=True)
    assert keys(swept.forgotten) == ["second"]  # made from one that is in the trash
    assert keys(swept.binned) == ["first", "third"]
    assert all("/trash/" in one.path for one in swept.binned)
    assert keys(chain.forget_source("note:first", dry_run=True).binned) == ["first", "third"]
    assert main(["--home", str(home), "--project", "demo", "forget", "--source", URL, "--yes"]) == 0
    assert "delete it permanently with `holdfast purge first`" in " ".join(capsys.readouterr().err.split())


def test_a_decision_about_a_note_without_an_id_is_found_where_trace_looks(open_memory, home):
    person = open_memory(origin="user")
    person.store("a first note, so that there is a folder", key="other")
    (home / "shelf/projects/demo/notes/plain.md").write_text(
        '---\nsource: {origin: web, from: ["https://evil.example/page"]}\n---\nwords\n'
    )
    person.forget_source(URL)
    person.restore("plain")
    assert [one.action for one in person.trace("plain").decisions] == ["forgotten-by-source"]


def test_a_secret_in_what_is_asked_for_is_not_kept_with_the_decision(open_memory, home):
    person = open_memory(origin="user")
    person.store("words", key="k")
    note = home / "shelf/projects/demo/notes/k.md"
    source = "https://bob:S3cr3tPassw0rd@evil.example/x"
    note.write_text(note.read_text().replace("{origin: user}", f'{{origin: user, from: ["{source}"]}}'))
    assert keys(person.forget_source(source).forgotten) == ["k"]
    person.restore("k")
    assert person.trace("k").decisions[0].detail["source"].startswith("https://bob:[REDACTED:")
