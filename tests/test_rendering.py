"""The briefing in a file that a client reads: a block of ours in a person's text (B5)."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from holdfast.errors import Disabled, DiskTrouble, Refused
from holdfast.wiring import block


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
    assert "We deploy on Tuesdays." in block.inside(page.read_bytes().decode())
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
    assert block.inside(page.read_text()) is None


@pytest.mark.promise("B5")
def test_a_page_that_cannot_be_written_does_not_hinder_forgetting_and_is_told_by_a_purge(memory, page):
    memory.store("We deploy on Tuesdays.", key="deploys")
    memory.store("The cat is called Mia.", key="cat")
    memory.render(page)
    page.chmod(0o444)
    assert memory.forget("deploys").deleted
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
def test_two_writers_never_lose_each_others_work(memory, home, page):
    """Several Holdfasts render while a person's program rewrites its own part of the file, each by compare and swap."""
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
    assert text.count(block.BEGIN) == text.count(block.END) == 1
    memory.render(page)
    assert all(f"Number 14 of {name}" in page.read_text() for name in "abc")


def test_the_command_line_renders(memory, home, page, tmp_path):
    memory.store("We deploy on Tuesdays.", key="deploys")
    options = {"capture_output": True, "text": True, "timeout": 60, "cwd": tmp_path, "stdin": subprocess.DEVNULL}
    words = [sys.executable, "-m", "holdfast", "--home", str(home), "--project", "demo", "render", str(page), "--json"]
    done = subprocess.run(words, **options)
    assert json.loads(done.stdout)["action"] == "written"
    done = subprocess.run([*words, "--remove"], **options)
    assert json.loads(done.stdout)["action"] == "removed"
