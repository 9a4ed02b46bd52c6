"""Capture, which is off by default: a client's transcript is stored word for word, without Holdfast's own text."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from test_hook import configure
from test_importers import claude_lines

from holdfast import Memory
from holdfast.base import failure_log
from holdfast.verbs.brief.render import Budget, FactView, NoteView, ScopeView, compose_start


@pytest.fixture
def transcript(tmp_path, folder):
    path = tmp_path / "transcript.jsonl"
    path.write_bytes(b"".join(json.dumps({**row, "cwd": str(folder)}).encode() + b"\n" for row in claude_lines()))
    return path


def turns(home, folder):
    with Memory(home, cwd=folder) as memory:
        return [hit.text for hit in memory.recall(mode="recent", kind="turn", limit=100)]


@pytest.mark.promise("H1")
@pytest.mark.parametrize("event", ["PreCompact", "Stop", "SessionEnd"])
def test_capture_is_off_unless_asked_for(hook, note, home, folder, transcript, event):
    note("We deploy on Tuesdays.", "deploys")
    assert hook("claude-code", event, transcript_path=str(transcript)) == ""
    assert turns(home, folder) == []


@pytest.mark.promise("H1")
@pytest.mark.parametrize("event", ["PreCompact", "Stop", "SessionEnd"])
def test_asked_for_it_keeps_the_session_and_says_nothing(hook, home, folder, transcript, event):
    configure(home, "[hooks]\ncapture = true\n")
    assert hook("claude-code", event, transcript_path=str(transcript)) == ""
    kept = turns(home, folder)
    assert kept
    assert hook("claude-code", event, transcript_path=str(transcript)) == ""
    assert turns(home, folder) == kept
    assert not (home / "run" / failure_log.NAME).exists()


def test_a_stop_that_a_hook_caused_is_not_captured_again(hook, home, folder, transcript):
    configure(home, "[hooks]\ncapture = true\n")
    hook("claude-code", "Stop", transcript_path=str(transcript), stop_hook_active=True)
    assert turns(home, folder) == []


@pytest.mark.promise("H3")
def test_what_we_told_is_not_kept(hook, home, folder, tmp_path):
    configure(home, "[hooks]\ncapture = true\n")
    told = NoteView("project", "k", "2026-05-01", "user", "the harbour note")
    brief = compose_start([ScopeView("project", (told,), 1)], FactView(), Budget()).brief
    rows = [
        {"type": "user", "sessionId": "s1", "uuid": "u1", "timestamp": "2026-05-01T10:00:00Z",
         "message": {"role": "user", "content": f"{brief.text}\nWhere is the boat?"}},
    ]  # fmt: skip
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    hook("claude-code", "Stop", transcript_path=str(path))
    assert turns(home, folder) == ["Where is the boat?"]


@pytest.mark.promise("B6")
@pytest.mark.parametrize("what", ["missing", "folder", "garbage", "binary", "number"])
def test_a_transcript_that_is_none_hinders_nobody(hook, home, tmp_path, what):
    configure(home, "[hooks]\ncapture = true\n")
    path = tmp_path / "t.jsonl"
    {
        "missing": lambda: None, "folder": path.mkdir, "garbage": lambda: path.write_text("no transcript at all\n" * 100),
        "binary": lambda: path.write_bytes(bytes(range(256)) * 100), "number": lambda: None,
    }[what]()  # fmt: skip
    for event in ("PreCompact", "Stop", "SessionEnd"):
        assert hook("claude-code", event, transcript_path=7 if what == "number" else str(path)) == ""
    said = failure_log.read(str(home))
    assert bool(said) == (what in ("garbage", "binary"))
    assert all("no transcript at all" not in one.message for one in said)


def test_a_client_whose_transcripts_we_cannot_read_is_left_alone(hook, home, folder, transcript):
    configure(home, "[hooks]\ncapture = true\n")
    assert hook("kimi", "Stop", transcript_path=str(transcript)) == ""
    assert turns(home, folder) == []


def test_a_capture_that_takes_too_long_is_called_off(home, folder, tmp_path):
    """The transcript is a file that never ends."""
    configure(home, "[hooks]\ncapture = true\n")
    code = (
        "import sys; from holdfast.verbs import history; from holdfast import hooks;"
        "hooks._EVENT_SECONDS['stop'] = 0.3; hooks._read_stdin = lambda: sys.argv[1].encode();"
        "rows = iter(int, 1); history.import_history = lambda *_, **__: [None for _ in rows];"
        "sys.exit(hooks.main(['gemini', 'AfterAgent'], enforce_deadline=True))"
    )
    path = tmp_path / "t.json"
    path.write_text("{}")
    data = json.dumps({"session_id": "s1", "cwd": str(folder), "transcript_path": str(path)})
    done = subprocess.run(
        [sys.executable, "-c", code, data], capture_output=True, cwd=folder, timeout=60,
        env={"PATH": "/usr/bin", "HOME": str(tmp_path), "HOLDFAST_HOME": str(home)},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, b"{}", b"")
    assert ["too long" in one.message for one in failure_log.read(str(home))] == [True]


def test_a_client_that_writes_like_another_is_read_in_that_dialect_and_kept_under_its_own_name(memory, home, tmp_path):
    from holdfast.verbs.history import import_history

    path = tmp_path / "t.jsonl"
    noise = [{"role": "user", "content": "not this"}] * 60  # the dialect cannot be detected from the first lines
    path.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in [*noise, *claude_lines()]))
    import_history(memory._context, str(path), client="another", scope="project", written="claude")
    texts = [hit.text for hit in memory.recall(mode="recent", kind="turn", limit=100)]
    assert "Thanks" in texts and "not this" not in texts
    assert [path.parent.name for path in (home / "shelf").rglob("transcripts/*/*.jsonl")] == ["another"]


@pytest.mark.parametrize("client", ["claude-code", "codex", "gemini"])
def test_the_dialect_that_a_client_names_is_there(client):
    from holdfast.clients import load
    from holdfast.formats.importers.detect import find_dialect

    assert find_dialect(None, load(client).transcripts) is not None


@pytest.mark.promise("N8")
def test_a_session_is_kept_in_the_project_that_its_transcript_names(hook, home, folder, transcript, tmp_path):
    configure(home, "[hooks]\ncapture = true\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    hook("claude-code", "Stop", transcript_path=str(transcript), cwd=str(elsewhere))
    assert turns(home, folder) and turns(home, elsewhere) == []
