"""The memory service of Google ADK, with ADK's Runner and tools: sessions word for word, one project for each user."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from frameworks import need_framework

need_framework("google-adk")

from google.adk.agents import LlmAgent
from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.session import Session
from google.adk.tools import load_memory, preload_memory
from google.genai import types
from pydantic import PrivateAttr
from test_readme import blocks

from holdfast import Memory, SecretFound, UsageError
from holdfast.adapters.google_adk import HoldfastMemoryService, TurnNotDeleted, project_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adapters" / "google-adk.md"


class ScriptedLlm(BaseLlm):
    """A model that replies with each step of a script: a text, or a pair of a tool and its arguments."""

    _steps: list = PrivateAttr()
    _requests: list = PrivateAttr(default_factory=list)

    @classmethod
    def of(cls, *steps):
        made = cls(model="scripted")
        made._steps = list(steps)
        return made

    async def generate_content_async(self, llm_request, stream=False):
        self._requests.append(llm_request.model_copy(deep=True))
        step = self._steps.pop(0)
        part = types.Part(text=step) if isinstance(step, str) else types.Part.from_function_call(name=step[0], args=step[1])
        yield LlmResponse(content=types.Content(role="model", parts=[part]))

    @property
    def last_contents(self):
        return str(self._requests[-1].contents)

    @property
    def tool_answers(self):
        parts = [part for content in self._requests[-1].contents for part in content.parts]
        return [part.function_response.response for part in parts if part.function_response]


@pytest.fixture
def service(home):
    opened = HoldfastMemoryService(str(home))
    yield opened
    opened.close()


def say(text, author="user", **options):
    role = "user" if author == "user" else "model"
    return Event(author=author, content=types.Content(role=role, parts=[types.Part(text=text)]), **options)


def session_of(*events, id="s1", user="ann", app="shop"):
    return Session(id=id, app_name=app, user_id=user, events=list(events))


def search(service, query, user="ann", app="shop"):
    return asyncio.run(service.search_memory(app_name=app, user_id=user, query=query)).memories


def texts(memories):
    return [part.text for memory in memories for part in memory.content.parts]


async def chat(service, model, *prompts, tools=(), user="ann", session_id="s1"):
    """Run an agent on prompts in one session, and add the session to the memory."""
    sessions = InMemorySessionService()
    agent = LlmAgent(name="clerk", model=model, instruction="Help.", tools=list(tools))
    runner = Runner(app_name="shop", agent=agent, session_service=sessions, memory_service=service)
    await sessions.create_session(app_name="shop", user_id=user, session_id=session_id)
    for prompt in prompts:
        message = types.Content(role="user", parts=[types.Part(text=prompt)])
        async for _ in runner.run_async(user_id=user, session_id=session_id, new_message=message):
            pass
    session = await sessions.get_session(app_name="shop", user_id=user, session_id=session_id)
    await service.add_session_to_memory(session)
    return session


def test_an_agent_finds_an_earlier_session_with_the_tools_of_adk(service):
    asyncio.run(chat(service, ScriptedLlm.of("Noted."), "My favourite project is Project Alpha."))
    model = ScriptedLlm.of(("load_memory", {"query": "favourite project"}), "It is Project Alpha.")
    asyncio.run(chat(service, model, "What is my favourite project?", tools=[load_memory], session_id="s2"))
    assert "My favourite project is Project Alpha." in str(model.tool_answers)
    model = ScriptedLlm.of("Project Alpha.")
    asyncio.run(chat(service, model, "What is my favourite project?", tools=[preload_memory], session_id="s3"))
    assert "My favourite project is Project Alpha." in model.last_contents


def test_an_agent_stores_and_forgets_memories_of_its_user_only(service):
    model = ScriptedLlm.of(("store_memory", {"text": "Ann lives in Oslo.", "key": "home-town"}), "Stored.")
    asyncio.run(chat(service, model, "I live in Oslo.", tools=service.tools()))
    assert model.tool_answers == [{"result": "created: home-town"}]
    assert "Ann lives in Oslo." in texts(search(service, "Ann lives in Oslo"))
    model = ScriptedLlm.of(("forget_memory", {"memory_id": "home-town"}), "Done.")
    asyncio.run(chat(service, model, "Forget it.", tools=service.tools(), user="bob"))
    assert "Ann lives in Oslo." in texts(search(service, "Ann lives in Oslo"))
    model = ScriptedLlm.of(("forget_memory", {"memory_id": "home-town"}), "Done.")
    asyncio.run(chat(service, model, "Forget it.", tools=service.tools(), session_id="s2"))
    assert "Ann lives in Oslo." not in texts(search(service, "Ann lives in Oslo"))


def test_a_tool_answers_with_the_error_so_that_the_model_can_correct_its_call(service):
    model = ScriptedLlm.of(("store_memory", {"text": "Hello", "key": "Not A Key"}), "Sorry.")
    asyncio.run(chat(service, model, "Hello", tools=service.tools()))
    assert "Error invalid_key" in str(model.tool_answers)


def test_a_session_that_is_added_again_adds_only_its_new_turns(service, home):
    first, second = say("We deploy on Tuesdays."), say("  Noted,\n\n word   for word. ", author="clerk")
    asyncio.run(service.add_session_to_memory(session_of(first)))
    asyncio.run(service.add_session_to_memory(session_of(first, second)))
    asyncio.run(service.add_events_to_memory(app_name="shop", user_id="ann", events=[second], session_id="s1"))
    with Memory(home, project=project_of("shop", "ann")) as memory:
        turns = memory.expand(memory.recall("deploy", kind="turn")[0].citation, before=9, after=9)
    assert [(turn.text, turn.speaker, turn.role) for turn in turns] == [
        ("We deploy on Tuesdays.", "user", "user"), ("  Noted,\n\n word   for word. ", "clerk", "assistant"),
    ]  # fmt: skip
    assert {turn.client for turn in turns} == {"google-adk"}


def test_a_memory_names_its_event_author_and_time(service):
    event = say("We deploy on Tuesdays.", timestamp=1767603600.0)
    asyncio.run(service.add_session_to_memory(session_of(event)))
    [found] = search(service, "deploy")
    assert (found.id, found.author, found.content.role, found.timestamp[:19]) == (
        event.id,
        "user",
        "user",
        "2026-01-05T09:00:00",
    )


def test_thoughts_calls_and_parts_of_a_stream_are_left_out(service):
    thought = types.Part(text="Secretly I prefer Fridays.", thought=True)
    call = types.Part.from_function_call(name="deploy", args={"day": "Friday"})
    said = types.Part(text="We deploy on Tuesdays.")
    event = Event(author="clerk", content=types.Content(role="model", parts=[thought, call, said]))
    silent = Event(author="clerk", content=types.Content(role="model", parts=[call]))
    asyncio.run(
        service.add_session_to_memory(
            session_of(event, silent, say("We dep", author="clerk", partial=True), Event(author="user"))
        )
    )
    assert texts(search(service, "deploy Friday Fridays Tuesdays")) == ["We deploy on Tuesdays."]


PEOPLE = [
    ("shop", "ann"),
    ("shop", "Ann"),
    ("shop.ann", "x"),
    ("shop", "ann.x"),
    ("shop", "../ann"),
    ("shop", "*"),
    ("x", "u" * 300),
]


def test_no_user_and_no_app_finds_what_another_one_stored(service):
    for app, user in PEOPLE:
        asyncio.run(
            service.add_session_to_memory(session_of(say(f"The password of {app} {user} is mango."), app=app, user=user))
        )
        entry = MemoryEntry(content=types.Content(parts=[types.Part(text=f"A note about mango of {app} {user}.")]))
        asyncio.run(service.add_memory(app_name=app, user_id=user, memories=[entry]))
    for app, user in PEOPLE:
        assert sorted(texts(search(service, "mango", user=user, app=app))) == [
            f"A note about mango of {app} {user}.", f"The password of {app} {user} is mango.",
        ]  # fmt: skip


def test_memories_are_notes_with_author_metadata_and_versions(service, home):
    entry = MemoryEntry(
        content=types.Content(parts=[types.Part(text="Ann likes tea.")]), id="drink", author="clerk",
        timestamp="2026-01-05T09:00:00", custom_metadata={"a": 1},
    )  # fmt: skip
    asyncio.run(service.add_memory(app_name="shop", user_id="ann", memories=[entry], custom_metadata={"b": 2}))
    [found] = search(service, "tea")
    assert (found.id, found.author, found.timestamp, found.custom_metadata) == (
        "drink",
        "clerk",
        "2026-01-05T09:00:00",
        {"a": 1, "b": 2},
    )
    assert texts([found]) == ["Ann likes tea."]
    changed = MemoryEntry(content=types.Content(parts=[types.Part(text="Ann likes coffee.")]), id="drink")
    asyncio.run(service.add_memory(app_name="shop", user_id="ann", memories=[changed]))
    with Memory(home, project=project_of("shop", "ann")) as memory:
        assert len(memory.history("drink")) == 2 and memory.get("drink").text == "Ann likes coffee."


def test_deleting_forgets_a_note_or_a_session_and_refuses_a_single_turn(service):
    event = say("We deploy on Tuesdays.")
    asyncio.run(service.add_session_to_memory(session_of(event)))
    where = {"app_name": "shop", "user_id": "ann"}
    with pytest.raises(TurnNotDeleted, match="delete_session") as raised:
        asyncio.run(service.delete_memory(**where, memory_id=event.id))
    assert isinstance(raised.value, NotImplementedError)
    asyncio.run(service.delete_memory(**where, memory_id="unknown"))
    assert asyncio.run(service.delete_session(**where, session_id="s1"))
    assert not asyncio.run(service.delete_session(**where, session_id="s1"))
    assert search(service, "deploy") == []


def test_secrets_in_turns_are_masked(service):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    asyncio.run(service.add_session_to_memory(session_of(say(f"The deploy token is {token}"))))
    [found] = texts(search(service, "deploy token"))
    assert token not in found and "[REDACTED:" in found


JWT = (
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6y"
)
SECRETS_BESIDE_QUOTES = [
    (f'{{"token": "{JWT}"}}', '{"token": "[REDACTED:jwt]"}'),
    ('password = Hunter2!x"quoted"', 'password = [REDACTED:password-assignment]"quoted"'),
    ('export API_KEY="q9Zx8Yw7Vu6Ts5Rq4Po3Nm2"', 'export API_KEY="[REDACTED:generic-api-key]"'),
]


@pytest.mark.parametrize(("value", "masked"), SECRETS_BESIDE_QUOTES)
def test_a_secret_beside_a_quote_in_metadata_is_masked_and_the_metadata_is_kept(service, value, masked):
    entry = MemoryEntry(content=types.Content(parts=[types.Part(text="Deploy it.")]), custom_metadata={"env": value, "step": 1})
    asyncio.run(service.add_memory(app_name="shop", user_id="ann", memories=[entry]))
    [found] = search(service, "deploy")
    assert (texts([found]), found.custom_metadata) == (["Deploy it."], {"env": masked, "step": 1})


def test_metadata_that_would_be_unreadable_when_masked_is_rejected(service):
    metadata = {"password": 'Hunter2!x"9'}
    entry = MemoryEntry(content=types.Content(parts=[types.Part(text="Deploy it.")]), custom_metadata=metadata)
    with pytest.raises(SecretFound, match="cannot be masked"):
        asyncio.run(service.add_memory(app_name="shop", user_id="ann", memories=[entry]))
    assert search(service, "deploy") == []


def test_a_search_returns_at_most_the_limit(home):
    service = HoldfastMemoryService(str(home), limit=3)
    asyncio.run(service.add_session_to_memory(session_of(*[say(f"Apple number {number}") for number in range(20)])))
    assert len(search(service, "apple")) == 3 and search(service, " ") == []
    service.close()


def test_concurrent_sessions_of_many_users_are_all_stored(service):
    async def run():
        users = [f"user{number}" for number in range(40)]  # more than the memories that stay open
        await asyncio.gather(*[service.add_session_to_memory(session_of(say(f"I am {user}."), user=user)) for user in users])
        return [(await service.search_memory(app_name="shop", user_id=user, query=user)).memories for user in users]

    assert [texts(found) for found in asyncio.run(run())] == [[f"I am user{number}."] for number in range(40)]


def check_service(service):
    test_no_user_and_no_app_finds_what_another_one_stored(service)
    test_an_agent_finds_an_earlier_session_with_the_tools_of_adk(service)
    service.close()


def test_the_service_works_on_postgresql(postgres_url):
    check_service(HoldfastMemoryService(postgres_url))


def test_the_service_works_over_http(any_gateway):
    any_gateway.add_role("app", ("agent.memory.read", "agent.memory.write"), ("project",))
    token = any_gateway.agent("app", "app").token
    check_service(HoldfastMemoryService(f"http://127.0.0.1:{any_gateway.port}", token=token))


def test_the_code_of_the_page_makes_an_agent_that_remembers(home, monkeypatch):
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    names = {"model": ScriptedLlm.of("Noted.", "At nine.")}
    for block in blocks(PAGE, "python"):
        exec(compile(block, PAGE.name, "exec"), names)  # noqa: S102  # our own page

    async def run():
        for session_id, prompt in (("s1", "My flight leaves at nine."), ("s2", "When does my flight leave?")):
            await names["runner"].session_service.create_session(app_name="shop", user_id="ann", session_id=session_id)
            message = types.Content(role="user", parts=[types.Part(text=prompt)])
            async for _ in names["runner"].run_async(user_id="ann", session_id=session_id, new_message=message):
                pass

    asyncio.run(run())
    assert "My flight leaves at nine." in names["model"].last_contents
    names["memory_service"].close()


def test_the_example_runs(run_example):
    assert run_example("google_adk_memory.py").splitlines() == [
        "monday: Noted.", "tuesday: You said: My flight to Oslo leaves at nine.", "found for bob: 0",
    ]  # fmt: skip


def test_wrong_arguments_are_rejected_with_what_to_do(service):
    for limit in (0, 101, "3", True):
        with pytest.raises(UsageError, match="limit must be 1 to 100"):
            HoldfastMemoryService(limit=limit)
    entry = MemoryEntry(content=types.Content(parts=[types.Part(text="x")]), id="../x")
    with pytest.raises(UsageError, match="not a valid id"):
        asyncio.run(service.add_memory(app_name="shop", user_id="ann", memories=[entry]))
    with pytest.raises(UsageError, match="no text"):
        asyncio.run(service.add_memory(app_name="shop", user_id="ann", memories=[MemoryEntry(content=types.Content())]))
    with pytest.raises(UsageError, match="user_id"):
        search(service, "x", user="")
