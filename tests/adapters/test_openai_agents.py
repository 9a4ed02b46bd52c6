"""The session of the OpenAI Agents SDK: items come back as they were, after a restart and with several writers."""

from __future__ import annotations

import asyncio
import json
import random
import string
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from frameworks import need_framework

need_framework("openai-agents")

from agents import Agent, RunConfig, Runner, Session, SessionSettings, SQLiteSession, function_tool
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_model import ScriptedModel

from holdfast import Memory, SecretFound, UsageError
from holdfast.adapters.openai_agents import (
    HoldfastSession,
    memory_tools,
    parse_lines,
    render_lines,
    session_folder,
    with_briefing,
)
from holdfast.home import Lock

ITEMS = [
    {"role": "user", "content": "When do we deploy? \u202e \x00 \ud800 ⟦U+200B⟧\r\n<b>größer</b>"},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAABn" + "Zm9vYmFy" * 200},
    {"type": "function_call", "call_id": "call_1", "id": "fc_1", "name": "find", "arguments": '{"q": "deploy", "n": 1.0}'},
    {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "a\nb"}]},
    {"role": "assistant", "type": "message", "content": [{"type": "output_text", "text": "On Tuesdays.", "annotations": []}]},
    {"role": "user", "content": "yes"},
    {"role": "user", "content": "yes"},
]


@pytest.fixture
def model(monkeypatch):
    """Return a function that starts a model with a script, to which the SDK connects."""
    started = []

    def start(*steps):
        model = ScriptedModel(*steps)
        started.append(model.__enter__())
        monkeypatch.setenv("OPENAI_BASE_URL", f"{model.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "of-a-test")
        return model

    yield start
    for model in started:
        model.__exit__()


def run(*coroutines):
    """Run coroutines one after another and return the result of the last."""

    async def main():
        return [await coroutine for coroutine in coroutines][-1]

    return asyncio.run(main())


# --- items ----------------------------------------------------------------------------------------------------------------


def test_items_come_back_as_they_were_from_every_kind_of_memory(any_memory):
    session = HoldfastSession("user_123", any_memory)
    assert isinstance(session, Session)
    assert run(session.get_items()) == []
    run(session.add_items(ITEMS[:3]), session.add_items([]), session.add_items(ITEMS[3:]))
    assert json.dumps(run(session.get_items())) == json.dumps(ITEMS)
    assert run(session.get_items(2)) == ITEMS[-2:]
    assert run(session.pop_item()) == ITEMS[-1]
    assert run(session.get_items()) == ITEMS[:-1]
    run(session.clear_session(), session.clear_session())
    assert run(session.get_items()) == []
    assert run(session.pop_item()) is None


def test_another_process_continues_the_session(home, memory):
    code = (
        "import asyncio, sys\nfrom holdfast import Memory\nfrom holdfast.adapters.openai_agents import HoldfastSession\n"
        "with Memory(sys.argv[1], project='shop') as memory:\n"
        "    asyncio.run(HoldfastSession('user_123', memory).add_items([{'role': 'user', 'content': 'Hello'}]))\n"
    )
    subprocess.run([sys.executable, "-c", code, str(home)], check=True, timeout=60)
    session = HoldfastSession("user_123", memory)
    run(session.add_items([{"role": "assistant", "content": "Hi"}]))
    assert [item["content"] for item in run(session.get_items())] == ["Hello", "Hi"]


def test_a_search_finds_what_was_said(memory, home):
    run(HoldfastSession("user_123", memory).add_items(ITEMS))
    with Memory(home, project="shop", session="another") as other:
        [hit] = other.recall("when do we deploy")
    assert hit.kind == "file" and hit.key.startswith("openai-agents/user_123/") and "On Tuesdays." in hit.text


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200)
@given(st.lists(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), max_size=4))
def test_any_json_survives_the_lines_of_a_segment(items):
    text = render_lines(items)
    text.encode()
    assert text.count("\n") == len(items)
    assert json.dumps(list(parse_lines(text))[::-1]) == json.dumps(items)


@pytest.mark.parametrize("seed", range(4))
def test_every_sequence_of_calls_gives_what_the_session_of_the_sdk_gives(memory, seed):
    chance = random.Random(seed)
    ours, theirs = HoldfastSession("one", memory), SQLiteSession("one")

    async def main():
        for number in range(40):
            choice = chance.random()
            if choice < 0.5:
                size = 40_000 if chance.random() < 0.2 else 10  # several segments
                items = [{"n": number, "m": one, "text": "x" * size} for one in range(chance.randint(0, 3))]
                await ours.add_items(items)
                await theirs.add_items(items)
            elif choice < 0.75:
                assert await ours.pop_item() == await theirs.pop_item()
            elif choice < 0.8:
                await ours.clear_session()
                await theirs.clear_session()
            else:
                limit = chance.choice([None, 0, 1, 3, -1, 1000])
                assert await ours.get_items(limit) == await theirs.get_items(limit)
        assert await ours.get_items() == await theirs.get_items()

    asyncio.run(main())
    theirs.close()


def test_the_settings_limit_the_items(memory):
    run(HoldfastSession("one", memory).add_items(ITEMS))
    assert run(HoldfastSession("one", memory, session_settings={"limit": 2}).get_items()) == ITEMS[-2:]
    limited = HoldfastSession("one", memory, session_settings=SessionSettings(limit=3))
    assert run(limited.get_items()) == ITEMS[-3:]
    assert run(limited.get_items(1)) == ITEMS[-1:]


@pytest.mark.parametrize("session_id", ["../../etc", "a/b", "Ann", "ann ", "größe", "x" * 2000, "~", ".git", "a\nb", "\ud800"])
def test_any_session_id_has_a_folder_of_its_own(memory, session_id):
    session, other = HoldfastSession(session_id, memory), HoldfastSession("ann", memory)
    run(session.add_items(ITEMS[:1]), other.add_items(ITEMS[1:2]))
    assert run(session.get_items()) == ITEMS[:1]
    assert run(other.get_items()) == ITEMS[1:2]
    assert memory.files.view("/memories") == "openai-agents/"
    run(session.clear_session())
    assert run(other.get_items()) == ITEMS[1:2]


def test_plain_ids_are_the_names_of_their_folders():
    assert session_folder("user_123") == "/memories/openai-agents/user_123"
    assert session_folder("User 123").startswith("/memories/openai-agents/user-123.")


def test_wrong_arguments_are_rejected(memory):
    for session_id in ("", " ", None, 3):
        with pytest.raises(UsageError, match="session_id"):
            HoldfastSession(session_id, memory)
    with pytest.raises(UsageError, match="memory must be a Memory"):
        HoldfastSession("one", "~/.holdfast")
    with pytest.raises(UsageError, match="an item is not JSON"):
        run(HoldfastSession("one", memory).add_items([{"n": float("nan")}]))
    with pytest.raises(UsageError, match="an item is not JSON"):
        run(HoldfastSession("one", memory).add_items([{"n": object()}]))


# --- secrets, edits and purges --------------------------------------------------------------------------------------------


def test_a_secret_is_masked_and_the_item_is_still_an_item(memory):
    token = "ghp_" + "a1B2c3D4e" * 4
    items = [
        {"role": "user", "content": f"use {token}"},
        {"password": "hunter2secretX9", "n": 1},
        {"role": "user", "content": "ok"},
    ]
    session = HoldfastSession("one", memory)
    run(session.add_items(items))
    masked = [{"role": "user", "content": "use [REDACTED:github-pat]"}, {"password": "[REDACTED:password-assignment]", "n": 1}]
    assert run(session.get_items()) == [*masked, items[2]]
    assert [run(session.pop_item()) for _ in range(3)] == [items[2], masked[1], masked[0]]
    with pytest.raises(SecretFound):
        run(HoldfastSession("one", memory, redact=False).add_items(items))
    assert run(session.get_items()) == []


JWT = (
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6y"
)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f'{{"token": "{JWT}"}}', '{"token": "[REDACTED:jwt]"}'),
        ('password = Hunter2!x"quoted"', 'password = [REDACTED:password-assignment]"quoted"'),
        ('export API_KEY="q9Zx8Yw7Vu6Ts5Rq4Po3Nm2"', 'export API_KEY="[REDACTED:generic-api-key]"'),
    ],
)
def test_a_secret_beside_a_quote_is_masked_and_no_item_is_lost(memory, text, masked):
    session = HoldfastSession("one", memory)
    run(session.add_items([{"role": "user", "content": text}, {"role": "user", "content": "ok"}]))
    assert [item["content"] for item in run(session.get_items())] == [masked, "ok"]
    with pytest.raises(SecretFound):
        run(HoldfastSession("two", memory, redact=False).add_items([{"role": "user", "content": text}]))


def test_an_item_that_would_be_unreadable_when_masked_is_rejected(memory):
    session = HoldfastSession("one", memory)
    with pytest.raises(SecretFound, match="cannot be masked"):
        run(session.add_items([{"password": 'Hunter2!x"9'}]))
    assert run(session.get_items()) == []


def test_a_line_that_is_not_an_item_is_left_out_and_logged(memory, caplog):
    session = HoldfastSession("one", memory)
    run(session.add_items(ITEMS[:2]))
    [name] = memory.files.view(session_folder("one")).split("\n")
    memory.files.insert(f"{session_folder('one')}/{name}", 0, "\nedited by hand\n[]\n{}")
    assert run(session.get_items()) == ITEMS[:2]
    assert "not an item" in caplog.text
    assert run(session.pop_item()) == ITEMS[1]


@pytest.mark.parametrize(
    "text",
    [
        "I live at 12 Elm Street.",
        'They call me "Blue Falcon" there.',
        "Große Straße 12\nC:\\door\tcode 4219",
        "12 Elm 🌳 Street",
    ],
)
def test_a_purge_of_a_text_leaves_the_other_items(memory, home, text):
    session = HoldfastSession("one", memory)
    items = [
        {"role": "user", "content": f"Note this: {text}"},
        {"type": "function_call", "call_id": "call_1", "name": "note", "arguments": json.dumps({"text": text})},
        {
            "type": "function_call",
            "call_id": "call_2",
            "name": "note",
            "arguments": json.dumps({"text": text}, ensure_ascii=False),
        },
    ]
    run(session.add_items([*items, *ITEMS[4:6]]))
    with Memory(home, project="shop", origin="user") as person:
        person.purge(text=text, files=True)
    found = run(session.get_items())
    assert found[0] == {"role": "user", "content": "Note this: [purged]"}
    assert [json.loads(item["arguments"]) for item in found[1:3]] == [{"text": "[purged]"}] * 2
    assert found[3:] == ITEMS[4:6]


# --- several writers ------------------------------------------------------------------------------------------------------


def in_parallel(home, count, work):
    def one(number):
        with Memory(home, project="shop") as memory:
            return asyncio.run(work(HoldfastSession("one", memory), number))

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_no_item_of_several_writers_is_lost_and_batches_stay_together(home, memory):
    async def add(session, number):
        for batch in range(4):
            await session.add_items([{"by": number, "batch": batch, "part": part} for part in range(3)])

    in_parallel(home, 5, add)
    items = run(HoldfastSession("one", memory).get_items())
    batches = [items[start : start + 3] for start in range(0, len(items), 3)]
    assert len(batches) == 20
    assert all([item["part"] for item in batch] == [0, 1, 2] for batch in batches)
    assert all(len({(item["by"], item["batch"]) for item in batch}) == 1 for batch in batches)
    assert all([batch[0]["batch"] for batch in batches if batch[0]["by"] == number] == [0, 1, 2, 3] for number in range(5))


def test_several_readers_that_pop_get_each_item_once(home, memory):
    run(HoldfastSession("one", memory).add_items([{"n": number} for number in range(12)]))

    async def pop(session, number):
        return [await session.pop_item() for _ in range(3)]

    popped = [item["n"] for items in in_parallel(home, 4, pop) for item in items]
    assert sorted(popped) == list(range(12))
    assert run(HoldfastSession("one", memory).get_items()) == []


def test_a_call_does_not_block_the_event_loop_and_ends_before_its_cancellation(memory, home):
    session = HoldfastSession("one", memory)

    async def main():
        with Lock(str(home), "projects+shop", 10):  # the write waits for this lock, and the loop goes on
            task = asyncio.create_task(session.add_items(ITEMS))
            await asyncio.sleep(0.1)
            assert not task.done()
            task.cancel()
            await asyncio.sleep(0)
            assert not task.done()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await session.get_items()

    assert asyncio.run(main()) == ITEMS


# --- programs -------------------------------------------------------------------------------------------------------------


def without_ids(body):
    return json.loads(body)["input"]


def test_a_program_sends_the_model_what_it_sends_with_the_session_of_the_sdk(memory, model):
    @function_tool
    def get_weather(city: str) -> str:
        """Return the weather of a city."""
        return f"The weather in {city} is sunny."

    async def converse(session):
        agent = Agent(name="Assistant", instructions="Reply very concisely.", tools=[get_weather])
        first = await Runner.run(agent, "What is the weather in Oslo?", session=session)
        second = await Runner.run(agent, "And what did I ask?", session=session)
        return first.final_output, second.final_output, await session.get_items()

    script = (("get_weather", {"city": "Oslo"}), "Sunny.", "The weather.")
    sent, answers = [], []
    for session in (SQLiteSession("conversation_123"), HoldfastSession("conversation_123", memory)):
        server = model(*script)
        answers.append(asyncio.run(converse(session)))
        sent.append([without_ids(request.body) for request in server.requests if request.parsed])
    assert sent[0] == sent[1] and len(sent[0]) == 3
    assert json.dumps(answers[0]) == json.dumps(answers[1])
    assert answers[1][:2] == ("Sunny.", "The weather.")
    assert [item.get("type", item.get("role")) for item in answers[1][2]] == [
        "user", "function_call", "function_call_output", "message", "user", "message",
    ]  # fmt: skip


def test_a_run_can_limit_the_history(memory, model):
    server = model("one", "two")
    session = HoldfastSession("one", memory)
    agent = Agent(name="Assistant")

    async def main():
        await Runner.run(agent, "first", session=session)
        await Runner.run(agent, "second", session=session, run_config=RunConfig(session_settings=SessionSettings(limit=1)))

    asyncio.run(main())
    assert server.texts("user") == ["second"] and server.texts("assistant") == ["one"]


def test_a_streamed_run_stores_its_items(memory, model):
    model("On Tuesdays.")
    session = HoldfastSession("one", memory)

    async def main():
        result = Runner.run_streamed(Agent(name="Assistant"), "When do we deploy?", session=session)
        async for _ in result.stream_events():
            pass
        return [item.get("role") for item in await session.get_items()]

    assert asyncio.run(main()) == ["user", "assistant"]


def test_an_agent_uses_the_tools_and_is_briefed(memory, model):
    memory.store("The staging database is db-2.", key="staging")
    server = model(
        ("memory_store", {"text": "We deploy on Tuesdays.", "key": "deploys"}),
        ("memory_recall", {"query": "when do we deploy", "limit": 1}),
        ("memory_fact", {"subject": "Atlas", "label": "status", "value": "paused", "on": ""}),
        ("memory_get", {"key": "missing"}),
        ("memory_forget", {"key": "deploys"}),
        "Done.",
    )
    agent = Agent(name="Assistant", instructions=with_briefing(memory, "Reply very concisely."), tools=memory_tools(memory))
    assert asyncio.run(Runner.run(agent, "Remember that we deploy on Tuesdays.")).final_output == "Done."
    stored, found, stated, missing, forgotten = server.tool_results
    assert (stored, stated, forgotten) == ("created: deploys", "created: status: paused", "forgotten: deploys")
    assert found.endswith("We deploy on Tuesdays.") and missing.startswith("Error not_found: ")
    system = server.model_requests[0].messages[0].text
    assert system.startswith("Reply very concisely.\n\n<holdfast-memory") and "db-2" in system
    assert memory.facts("Atlas")[0].value == "paused"


def test_without_notes_the_instructions_are_those_of_the_program(memory):
    assert run(with_briefing(memory, "Be brief.")(None, None)) == "Be brief."


def test_the_example_runs(run_example):
    assert "found by search: openai-agents/demo/" in run_example("openai_agents_session.py")


def test_the_mark_of_a_secret_within_a_text_is_not_quoted():
    text = json.dumps({"id": "1", "item": {"content": f"{string.ascii_letters}: [REDACTED:github-pat]"}}) + "\n"
    assert list(parse_lines(text)) == [{"content": f"{string.ascii_letters}: [REDACTED:github-pat]"}]


def test_the_code_of_the_page_prints_what_the_page_shows(run_page):
    with ScriptedModel("Noted.") as server:
        disable = {"OPENAI_AGENTS_DISABLE_TRACING": "true"}
        run_page("openai-agents.md", OPENAI_BASE_URL=f"{server.url}/v1", OPENAI_API_KEY="of-a-test", **disable)
