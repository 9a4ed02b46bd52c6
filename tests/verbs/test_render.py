"""The briefing in a file that a client reads: a block of Holdfast in a person's text (B5)."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from holdfast.errors import Damaged, Disabled, DiskTrouble, Refused
from holdfast.file_edit import markdown_block


@pytest.fixture
def page(tmp_path):
    """A person's file."""
    path = tmp_path / "AGENTS.md"
    path.write_bytes("# Ours\r\n\r\nUse tabs. Ä\r\n".encode())
    return path


@pytest.mark.promise("B5")
def test_a_briefing_is_rendered_into_a_file_and_leaves_without_a_trace(memory, page):
    before = page.read_bytes()
    memory.store("We deploy on Tuesdays.", key="deploys")
    rendered = memory.render(page)
    assert (rendered.action, rendered.project) == ("written", "demo")
    assert page.read_bytes().startswith(before)
    assert "We deploy on Tuesdays." in page.read_bytes().decode().split(markdown_block.BEGIN)[1].split(markdown_block.END)[0]
    assert memory.render(page).action == "unchanged"
    assert memory.render(page, remove=True).action == "removed"
    assert page.read_bytes() == before


@pytest.mark.promise("B5", "N10")
def test_what_is_forgotten_is_gone_from_rendered_files_at_once(memory, page):
    before = page.read_bytes()
    memory.store("We deploy on Tuesdays.", key="deploys")
    memory.store("The cat is called Mia.", key="cat")
    memory.render(page)
    memory.forget("deploys")
    assert "deploy" not in page.read_text()
    assert "Mia" in page.read_text()
    receipt = memory.purge("cat")
    assert page.read_bytes() == before
    assert any(str(page) in check for check in receipt.checks)


@pytest.mark.promise("B5", "N10")
def test_a_global_note_is_gone_from_the_files_of_every_project(open_memory, tmp_path):
    pages = {name: tmp_path / name / "AGENTS.md" for name in ("one", "two")}
    for name, path in pages.items():
        memory = open_memory(project=name)
        memory.store("Prefers short answers.", key="short", scope="global")
        memory.store(f"Only of {name}.", key="own")
        memory.render(path)
    open_memory(project="one").forget("short")
    for name, path in pages.items():
        assert "Prefers" not in path.read_text()
        assert f"Only of {name}." in path.read_text()


@pytest.mark.promise("B5")
def test_an_empty_briefing_removes_the_block_and_the_file_that_only_held_it(memory, page, tmp_path):
    memory.store("We deploy on Tuesdays.", key="deploys")
    made = tmp_path / "rules" / "deep" / "holdfast.md"
    memory.render(made)
    memory.render(page)
    memory.clear("project")
    assert not made.exists()
    assert not (tmp_path / "rules").exists()
    assert markdown_block.BEGIN not in page.read_text()


@pytest.mark.promise("B5")
def test_a_page_that_cannot_be_written_does_not_hinder_forgetting_and_is_told_by_a_purge(memory, page):
    memory.store("We deploy on Tuesdays.", key="deploys")
    memory.store("The cat is called Mia.", key="cat")
    memory.render(page)
    page.chmod(0o444)
    forgotten = memory.forget("deploys")
    assert forgotten.deleted
    assert [str(page) in one for one in forgotten.beyond_reach] == [True]
    assert [str(page) in one.message for one in memory.check()] == [True]
    assert any(str(page) in one for one in memory.purge("cat").beyond_reach)


def test_files_that_cannot_hold_a_block_are_refused(memory, tmp_path):
    memory.store("We deploy on Tuesdays.", key="deploys")
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    with pytest.raises(Refused):
        memory.render(tmp_path / "latin")
    assert (tmp_path / "latin").read_bytes() == b"caf\xe9"
    (tmp_path / "closed").mkdir(mode=0o555)
    with pytest.raises(DiskTrouble):
        memory.render(tmp_path / "closed" / "a.md")


def test_switched_off_nothing_is_rendered(open_memory, home, page):
    from holdfast import config

    before = page.read_bytes()
    off = open_memory(config=config.load(home, {"HOME": "/nowhere", "HOLDFAST_ENABLED": "0"}))
    with pytest.raises(Disabled):
        off.render(page)
    assert page.read_bytes() == before


@pytest.mark.promise("B5")
def test_several_holdfasts_that_render_never_lose_each_others_work(memory, home, page):
    memory.store("We deploy on Tuesdays.", key="deploys")
    code = (
        "import sys; from holdfast import Memory\n"
        "with Memory(sys.argv[1], project='demo') as memory:\n"
        "    for number in range(15):\n"
        "        memory.store(f'Number {number} of {sys.argv[3]}', key=f'n-{sys.argv[3]}')\n"
        "        memory.render(sys.argv[2])\n"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", code, str(home), str(page), name], stdin=subprocess.DEVNULL) for name in "abc"
    ]
    assert [child.wait(timeout=120) for child in children] == [0, 0, 0]
    text = page.read_bytes().decode()
    assert text.startswith("# Ours\r\n\r\nUse tabs. Ä\r\n")
    assert text.count(markdown_block.BEGIN) == text.count(markdown_block.END) == 1
    memory.render(page)
    assert all(f"Number 14 of {name}" in page.read_text() for name in "abc")


@pytest.mark.promise("B5")
def test_what_somebody_else_writes_meanwhile_is_not_lost(memory, page, monkeypatch):
    """Another program adds a line whenever ours is about to take the file's place."""
    memory.store("We deploy on Tuesdays.", key="deploys")
    append = "import sys; open(sys.argv[1], 'a', newline='').write('theirs\\r\\n')"
    writes, flush = [], os.fsync

    def interfere(fd):
        if os.readlink(f"/proc/self/fd/{fd}").rpartition("/")[2].startswith(".AGENTS.md.") and len(writes) < 3:
            writes.append(subprocess.run([sys.executable, "-c", append, str(page)], check=True, timeout=60))
        flush(fd)

    monkeypatch.setattr(os, "fsync", interfere)
    assert memory.render(page).action == "written"
    text = page.read_bytes().decode()
    assert (len(writes), text.count("theirs\r\n"), text.count(markdown_block.BEGIN)) == (3, 3, 1)


@pytest.mark.promise("B4", "B5")
def test_a_file_that_many_read_shows_nothing_of_one_session_or_one_agent(open_memory, page):
    memory = open_memory(project="demo", session="s1", agent="reviewer")
    for scope in ("session", "agent", "project", "global"):
        memory.store(f"Known to the {scope}.", key=scope, scope=scope)
    memory.render(page)
    text = page.read_text()
    shown = [scope for scope in ("session", "agent", "project", "global") if f"Known to the {scope}." in text]
    assert shown == ["project", "global"]
    memory.store("Another.", key="another", scope="session")
    memory.forget("another", scope="session")  # which renders again
    assert page.read_text() == text


@pytest.mark.promise("B5", "N10")
def test_what_is_cleared_or_archived_is_gone_from_rendered_files_and_what_cannot_be_reached_is_told(memory, clock, page):
    memory.store("We deploy on Tuesdays.", key="deploys")
    memory.render(page)
    clock.forward(days=91)
    assert [note.key for note in memory.retain()] == ["deploys"]
    assert "Tuesdays" not in page.read_text()
    memory.store("The cat is called Mia.", key="cat")
    memory.render(page)
    page.chmod(0o444)
    cleared = memory.clear("project")
    assert cleared == 2  # with the archived one
    assert [str(page) in one for one in cleared.beyond_reach] == [True]


@pytest.mark.promise("B5", "N10")
def test_a_rendered_file_that_was_moved_is_told(memory, page):
    memory.store("We deploy on Tuesdays.", key="deploys")
    memory.render(page)
    page.rename(page.with_name("moved.md"))
    (told,) = memory.forget("deploys").beyond_reach
    assert str(page) in told
    assert "moved or deleted" in told


@pytest.mark.promise("B5", "N10", "D1")
def test_a_list_of_rendered_files_that_cannot_be_read_is_told_and_not_written_over(memory, home, page):
    memory.store("We deploy on Tuesdays.", key="deploys")
    memory.render(page)
    known = home / "rendered.json"
    known.write_text("{ broken")
    with pytest.raises(Damaged):
        memory.render(page)
    (told,) = memory.forget("deploys").beyond_reach
    assert "rendered.json" in told
    (problem,) = memory.check()
    assert "rendered.json" in problem.message
    assert "holdfast render" in problem.fix
    assert known.read_text() == "{ broken"


def test_the_command_line_tells_where_what_is_forgotten_may_still_stand(memory, home, page, tmp_path):
    memory.store("We deploy on Tuesdays.", key="deploys")
    memory.store("The cat is called Mia.", key="cat")
    memory.render(page)
    page.chmod(0o444)
    options = {"capture_output": True, "text": True, "timeout": 60, "cwd": tmp_path, "stdin": subprocess.DEVNULL}
    words = [sys.executable, "-m", "holdfast", "--home", str(home), "--project", "demo"]
    assert str(page) in subprocess.run([*words, "forget", "deploys"], **options).stderr
    done = subprocess.run([*words, "clear", "--scope", "project", "--yes"], **options)
    assert str(page) in done.stderr


def test_the_command_line_renders(memory, home, page, tmp_path):
    memory.store("We deploy on Tuesdays.", key="deploys")
    options = {"capture_output": True, "text": True, "timeout": 60, "cwd": tmp_path, "stdin": subprocess.DEVNULL}
    words = [sys.executable, "-m", "holdfast", "--home", str(home), "--project", "demo", "render", str(page), "--json"]
    done = subprocess.run(words, **options)
    assert json.loads(done.stdout)["action"] == "written"
    done = subprocess.run([*words, "--remove"], **options)
    assert json.loads(done.stdout)["action"] == "removed"
