"""Transcripts of other programs: each dialect, and files made to break a parser. All of them are invented."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.errors import NotFound, Refused, TooLarge, UsageError
from holdfast.formats.importers import json_source as source_
from holdfast.formats.importers.detect import find_dialect
from holdfast.formats.importers.json_source import TranscriptSource

UUID = "610cc996-000a-4690-b67e-{:012d}".format


def claude_lines():
    head = {"sessionId": "s-1", "cwd": "/x", "version": "2.1.0", "isSidechain": False}

    def line(number, type, content, **more):
        stamp = f"2026-02-01T14:59:{number:02d}.592Z"
        message = {"role": type, "content": content}
        return {**head, "type": type, "uuid": UUID(number), "timestamp": stamp, "message": message, **more}

    tool = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls harbour"}}
    ours = {"type": "tool_use", "id": "toolu_2", "name": "mcp__holdfast__recall", "input": {"query": "boats"}}
    image = {"type": "image", "source": {"type": "base64", "data": "AAAA"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "boat.md"}, image]}
    said = {"type": "tool_result", "tool_use_id": "toolu_2", "content": "a remembered boat"}
    pictured = {"type": "tool_result", "tool_use_id": "toolu_9", "content": [image]}
    return [
        {"type": "file-history-snapshot", "messageId": UUID(0), "snapshot": {}},
        {"type": "summary", "summary": "Boats", "leafUuid": UUID(9), "sessionId": "s-1"},
        line(1, "user", "Caveat: made by the client", isMeta=True),
        line(2, "user", "Which boats are there?"),
        line(3, "assistant", [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Let me look."}, tool]),
        line(4, "user", [result]),
        line(5, "assistant", [ours]),
        line(6, "user", [said, pictured]),
        line(7, "assistant", [{"type": "text", "text": "One boat."}, {"type": "text", "text": "It is blue."}]),
        line(8, "user", [{"type": "text", "text": "Thanks"}, image]),
        line(9, "assistant", [{"type": "text", "text": "Searched."}], isSidechain=True),
        {"type": "attachment", "attachment": {"type": "hook_additional_context"}, "uuid": UUID(10), "sessionId": "s-1"},
    ]


def codex_lines():
    def line(second, outer, /, **payload):
        return {"timestamp": f"2026-03-01T10:00:{second:02d}.100Z", "type": outer, "payload": payload}

    def message(second, role, text):
        kind = "output_text" if role == "assistant" else "input_text"
        return line(second, "response_item", type="message", role=role, content=[{"type": kind, "text": text}])

    call = {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "call_1"}
    return [
        line(0, "session_meta", id="c-1", cwd="/x", cli_version="0.166.0"),
        message(1, "developer", "Permissions: none."),
        message(1, "user", "<environment_context><cwd>/x</cwd></environment_context>"),
        message(2, "user", "Where is the crane?"),
        line(2, "event_msg", type="user_message", message="Where is the crane?"),
        line(3, "turn_context", model="gpt-5"),
        line(4, "response_item", type="reasoning", encrypted_content="gAAA"),
        line(5, "response_item", **call),
        line(6, "response_item", type="function_call_output", call_id="call_1", output="crane.md"),
        message(7, "assistant", "By the pier."),
        line(7, "event_msg", type="agent_message", message="By the pier."),
        line(8, "session_meta", id="another"),
        message(9, "user", "Where is the crane?"),
    ]


def gemini_messages():
    response = [{"functionResponse": {"id": "t-1", "name": "read_file", "response": {"output": "buoy text"}}}]
    call = {"id": "t-1", "name": "read_file", "args": {"path": "buoy.md"}, "status": "success", "result": response}
    waiting = {"id": "t-2", "name": "write_file", "args": {}, "status": "executing"}
    return [
        {"id": "m-1", "timestamp": "2026-04-01T08:00:00.000Z", "type": "user", "content": "Read the buoy file"},
        {"id": "m-2", "timestamp": "2026-04-01T08:00:05.000Z", "type": "gemini", "content": "", "toolCalls": [call, waiting]},
        {"id": "m-3", "timestamp": "2026-04-01T08:00:09.000Z", "type": "gemini", "content": [{"text": "It is red."}]},
    ]


TIDE = {"id": "k", "type": "function", "function": {"name": "tide", "arguments": "{}"}}
GEMINI = {"sessionId": "g-1", "projectHash": "abc", "startTime": "2026-04-01T08:00:00.000Z"}
CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Is it tide?"}, {"type": "image_url", "image_url": {"url": "x"}}]},
    {"role": "assistant", "content": None, "tool_calls": [TIDE]},
    {"role": "tool", "tool_call_id": "k", "content": "low"},
    {"role": "assistant", "content": "Low tide.", "created_at": 1769958000},
]


@pytest.fixture
def write_file(tmp_path):
    def write(rows, name="t.jsonl"):
        path = tmp_path / name
        path.write_bytes(rows if isinstance(rows, bytes) else b"".join(json.dumps(row).encode() + b"\n" for row in rows))
        return str(path)

    return write


def read(path, client=None):
    """Return the detected client, every turn and the number of broken lines."""
    with TranscriptSource(path) as source:
        found = find_dialect(source, client)
        assert found, "not recognised"
        return found.CLIENT, list(found.parse_turns(source.read_rows(), source.stem)), source.broken


def summarize(turns):
    return [(one.role, one.text) for one in turns]


# --- dialects ---------------------------------------------------------------------------------------------------------


@pytest.mark.promise("H1")
def test_claude_code(write_file):
    client, turns, broken = read(write_file(claude_lines()))
    assert (client, broken) == ("claude-code", 0)
    assert summarize(turns) == [
        ("user", "Which boats are there?"),
        ("assistant", "Let me look."),
        ("tool", 'Bash {"command": "ls harbour"}'),
        ("tool", "boat.md"),
        ("assistant", "One boat.\n\nIt is blue."),
        ("user", "Thanks"),
        ("assistant", "Searched."),
    ]
    assert {one.session for one in turns} == {"s-1"}
    assert turns[0].id == UUID(2) and turns[0].time == "2026-02-01T14:59:02Z"
    assert [turns[2].id, turns[3].id, turns[3].speaker] == ["toolu_1", "toolu_1.result", "Bash"]
    assert turns[-1].speaker == "subagent"


def test_a_subagent_of_claude_code_with_a_file_of_its_own_is_a_session_of_its_own(write_file):
    rows = [{**row, "agentId": "a7"} for row in claude_lines() if row["type"] == "user"]
    assert {one.session for one in read(write_file(rows))[1]} == {"s-1.a7"}


@pytest.mark.promise("H1")
def test_codex(write_file):
    client, turns, broken = read(write_file(codex_lines()))
    assert (client, broken) == ("codex", 0)
    assert summarize(turns) == [
        ("user", "<environment_context><cwd>/x</cwd></environment_context>"),
        ("user", "Where is the crane?"),
        ("tool", 'shell {"command":["ls"]}'),
        ("tool", "crane.md"),
        ("assistant", "By the pier."),
        ("user", "Where is the crane?"),
    ]
    assert {one.session for one in turns} == {"c-1"}
    assert turns[1].time != turns[5].time  # so they are two turns


@pytest.mark.promise("H3")
def test_our_own_tools_in_codex_are_known_by_their_namespace(write_file):
    def lines(id, namespace, name):
        call = {"type": "function_call", "call_id": id, "namespace": namespace, "name": name, "arguments": "{}"}
        result = {"type": "function_call_output", "call_id": id, "output": f"{name} said"}
        return [{"timestamp": "2026-02-01T15:00:00Z", "type": "response_item", "payload": one} for one in (call, result)]

    rows = [*codex_lines(), *lines("1", "mcp__holdfast", "memory_recall"), *lines("2", "mcp__files", "read")]
    before = summarize(read(write_file(codex_lines(), "before.jsonl"))[1])
    assert summarize(read(write_file(rows))[1])[len(before) :] == [("tool", "mcp__files__read {}"), ("tool", "read said")]


def test_codex_as_it_was_before_its_lines_had_a_payload(write_file):
    rows = [
        {"id": "old-1", "timestamp": "2025-07-01T10:00:00.000Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "id": None, "role": "user", "content": [{"type": "input_text", "text": "Hello crane"}]},
    ]
    client, turns, _ = read(write_file(rows))
    assert client == "codex" and summarize(turns) == [("user", "Hello crane")] and turns[0].session == "old-1"


GEMINI_SAYS = [
    ("user", "Read the buoy file"),
    ("tool", 'read_file {"path": "buoy.md"}'),
    ("tool", "buoy text"),
    ("assistant", "It is red."),
]


@pytest.mark.promise("H1")
@pytest.mark.parametrize("indent", [None, 2])
def test_gemini_chats_as_one_document(write_file, indent):
    document = json.dumps({**GEMINI, "messages": gemini_messages(), "summary": "x"}, indent=indent).encode()
    client, turns, broken = read(write_file(document, "session-1.json"))
    assert (client, broken) == ("gemini", 0)
    assert summarize(turns) == GEMINI_SAYS
    assert {one.session for one in turns} == {"g-1"} and turns[0].id == "m-1"


def test_gemini_chats_as_lines(write_file):
    rows = [GEMINI, *gemini_messages(), {"$set": {"lastUpdated": "x", "messages": gemini_messages()}}, {"$rewindTo": "m-3"}]
    client, turns, _ = read(write_file(rows))
    assert client == "gemini" and summarize(turns) == GEMINI_SAYS


def test_gemini_logs_have_the_words_of_several_sessions(write_file):
    rows = [
        {"sessionId": f"g-{number % 2}", "messageId": number, "type": "user", "message": f"word {number}"}
        for number in range(4)
    ]
    client, turns, _ = read(write_file(json.dumps(rows, indent=2).encode(), "logs.json"))
    assert client == "gemini" and [(one.session, one.id) for one in turns][:2] == [("g-0", "log-0"), ("g-1", "log-1")]


def test_gemini_saved_chats(write_file):
    parts = [{"text": "Hm", "thought": True}, {"text": "Hello"}]
    rows = [{"role": "user", "parts": [{"text": "Hi buoy"}]}, {"role": "model", "parts": parts}]
    client, turns, _ = read(write_file(json.dumps(rows).encode(), "checkpoint-a.json"))
    assert client == "gemini" and summarize(turns) == [("user", "Hi buoy"), ("assistant", "Hello")]


CHAT_SAYS = [("system", "Be brief."), ("user", "Is it tide?"), ("tool", "tide {}"), ("tool", "low"), ("assistant", "Low tide.")]


@pytest.mark.promise("H1")
@pytest.mark.parametrize("form", ["lines", "list", "document", "line of messages"])
def test_plain_chats(write_file, form):
    forms = {
        "lines": CHAT,
        "list": json.dumps(CHAT, indent=1).encode(),
        "document": json.dumps({"id": "q", "messages": CHAT}, indent=1).encode(),
        "line of messages": [{"id": "q", "messages": CHAT}],
    }
    client, turns, broken = read(write_file(forms[form]))
    assert (client, broken) == ("chat", 0)
    assert summarize(turns) == CHAT_SAYS
    assert turns[-1].time == "2026-02-01T15:00:00Z"
    assert {one.session for one in turns} == {"q" if form in ("document", "line of messages") else None}


def test_lists_of_messages_without_a_name_are_sessions_by_their_line(write_file):
    turns = read(write_file([{"messages": CHAT[:2]}, {"messages": CHAT[:2]}], "fine.jsonl"))[1]
    assert [one.session for one in turns] == ["fine-1", "fine-1", "fine-2", "fine-2"]


def test_chats_that_name_only_their_speakers(write_file):
    turns = read(write_file([{"speaker": "Ana", "text": "Hi"}, {"speaker": "assistant", "text": "Hello", "session": "z"}]))[1]
    assert [(one.role, one.speaker, one.session) for one in turns] == [("user", "Ana", None), ("assistant", "assistant", "z")]


@pytest.mark.parametrize("rows", [claude_lines(), codex_lines(), [GEMINI, *gemini_messages()], CHAT])
def test_a_dialect_is_known_also_after_broken_lines_and_by_its_name(write_file, rows):
    path = write_file(b'{"a": 1}\nnot json\n' + b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    client, turns, broken = read(path)
    assert broken == 1 and turns
    assert read(path, client)[:2] == (client, turns)


def test_what_is_no_transcript_is_not_recognised(write_file):
    for data in (b'{"a": 1}\n{"b": 2}\n', b"[1, 2]", b"[]", b"{}"):
        with TranscriptSource(write_file(data)) as source:
            assert find_dialect(source, None) is None
    for data in (b"just words\nand more\n", b"\x89PNG\0\0", b"12"):
        with TranscriptSource(write_file(data)) as source, pytest.raises(Refused):
            find_dialect(source, None)


# --- hostile input ----------------------------------------------------------------------------------------------------

HELLO = b'{"role": "user", "content": "hello"}\n'


@pytest.mark.parametrize(
    ("line", "broken"),
    [
        (b"{broken\n", 1), (b"[" * 200_000 + b"\n", 1), (b'{"role":' * 50_000 + b"\n", 1), (b"\n", 0),
        (b"\0\0\0\n", 1), (b"17\n", 1),
        (b'{"role": "user", "content": ' + b"1" * 5000 + b"}\n", 1), (b'{"role": 7, "content": "x"}\n', 0),
        (b'{"role": "user", "content": 7}\n', 0), (b'{"role": "king", "content": "x"}\n', 0), (b'{"role": "user"}\n', 0),
        (b'{"role": "user", "content": [[["x"]]]}\n', 0), (b"\xff\xfe\n", 1),
    ],
)  # fmt: skip
def test_a_line_that_says_nothing_is_passed_over_and_counted_if_it_is_broken(write_file, line, broken):
    _, turns, counted = read(write_file(HELLO + line + HELLO))
    assert (summarize(turns), counted) == ([("user", "hello")] * 2, broken)


def test_bytes_that_are_not_utf_8_nul_and_half_characters_become_marks(write_file):
    _, turns, broken = read(write_file(b'{"role": "user", "content": "a\xffb\\u0000c\\ud800d"}\n'))
    assert (turns[0].text, broken) == ("a\ufffdb\ufffdc\ufffdd", 0)


def test_a_line_that_is_too_long_is_passed_over_in_bounded_memory(write_file, child, tmp_path):
    path = write_file(b"")
    with open(path, "wb") as file:
        file.write(HELLO)
        file.write(b'{"role": "user", "content": "')
        for _ in range(100):
            file.write(b"x" * 1024 * 1024)
        file.write(b'"}\n' + HELLO)
    code = """
    import resource
    from holdfast.formats.importers.detect import find_dialect
    from holdfast.formats.importers.json_source import TranscriptSource
    with TranscriptSource(args[0]) as source:
        found = find_dialect(source, None)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        turns = list(found.parse_turns(source.read_rows(), "x"))
        answer = [len(turns), source.broken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before]
    """
    turns, broken, grown = child(code, path)
    assert (turns, broken) == (2, 1) and grown < 64 * 1024


def test_a_long_text_is_cut_with_a_mark_and_a_tools_sooner(write_file):
    rows = [{"role": "user", "content": "é" * 2**20}, {"role": "tool", "content": "é" * 2**20}]
    user, tool = read(write_file(rows))[1]
    assert len(user.text.encode()) <= 2**20 and user.text.endswith("é […]")
    assert len(tool.text.encode()) <= 2**14 and tool.text.endswith("é […]")


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_a_document_is_read_alike_whatever_the_size_of_its_chunks(write_file, monkeypatch, chunk):
    rows = [{"role": "user", "content": f'é{{[\\"{number}', "id": number} for number in range(20)]
    document = json.dumps({"n": 12345, "messages": rows, "z": [1]}, ensure_ascii=False).replace(",", " ,\n")
    path = write_file(b"\xef\xbb\xbf" + document.encode())
    whole = read(path)
    monkeypatch.setattr(source_, "_CHUNK", chunk)
    assert read(path) == whole and len(whole[1]) == 20


@pytest.mark.parametrize("cut", [1, 30, 75, 130])
def test_a_document_that_ends_early_says_so_after_what_could_be_read(write_file, cut):
    data = json.dumps({"messages": CHAT}, indent=1).encode()
    with TranscriptSource(write_file(data[:-cut])) as source:
        found = find_dialect(source, "chat")
        got = []
        with pytest.raises(Refused):
            got.extend(iter(found.parse_turns(source.read_rows(), "x")))


def test_a_message_of_a_document_that_is_too_long_is_a_typed_error(write_file, monkeypatch):
    monkeypatch.setattr(source_, "MAX_ITEM_BYTES", 1000)
    path = write_file(json.dumps([CHAT[0], {"role": "user", "content": "x" * 300_000}], indent=1).encode())
    with TranscriptSource(path) as source, pytest.raises(TooLarge):
        list(find_dialect(source, "chat").parse_turns(source.read_rows(), "x"))


def test_a_path_that_is_no_file_is_a_typed_error(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, error in {"nothing": NotFound, "pipe": UsageError, ".": UsageError}.items():
        with pytest.raises(error):
            TranscriptSource(str(tmp_path / name))
