"""The toolset of Pydantic AI: tools of memory, and a briefing that is the same for each request of a run."""

from __future__ import annotations

import asyncio

import pytest
from frameworks import need_framework

need_framework("pydantic-ai")

from openai import AsyncOpenAI
from pydantic_ai import Agent, FunctionToolset, ImageUrl, capture_run_messages
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.openai import OpenAIProvider
from scripted_model import ScriptedModel

from holdfast import Memory, UsageError
from holdfast.adapters.pydantic_ai import HoldfastToolset
from holdfast.home import Lock

TOOLS = ["memory_recall", "memory_get", "memory_store", "memory_fact", "memory_forget"]


def run(agent, *prompt):
    return asyncio.run(agent.run(*prompt))


class Script:
    """A model of Pydantic AI that calls each of these tools in turn, then ends; it keeps the instructions it was sent."""

    def __init__(self, *calls):
        self._steps = [[ToolCallPart(name, arguments)] for name, arguments in calls]
        self.instructions = []

    def reply(self, messages, info):
        self.instructions.append(info.instructions or "")
        return ModelResponse(parts=self._steps.pop(0) if self._steps else [TextPart("Done.")])

    def run(self, toolset, prompt="Go on.", **options):
        """Run an agent and return the answers of the tools."""
        result = run(Agent(FunctionModel(self.reply), toolsets=[toolset], **options), prompt)
        assert result.output == "Done."
        return [part.content for message in result.all_messages() for part in message.parts if part.part_kind == "tool-return"]


def test_the_test_model_can_call_every_tool(memory):
    model = TestModel()
    with capture_run_messages() as messages:
        run(Agent(model, toolsets=[HoldfastToolset(memory)]), "Try every tool.")
    assert [tool.name for tool in model.last_model_request_parameters.function_tools] == TOOLS
    returned = [part for message in messages for part in message.parts if part.part_kind == "tool-return"]
    assert [part.tool_name for part in returned] == TOOLS


def test_an_agent_stores_finds_and_forgets_on_every_kind_of_memory(any_memory):
    script = Script(
        ("memory_store", {"text": "We deploy on Tuesdays.", "key": "deploys"}),
        ("memory_recall", {"query": "when do we deploy"}),
        ("memory_get", {"key": "deploys"}),
        ("memory_fact", {"subject": "Atlas", "label": "status", "value": "paused"}),
        ("memory_forget", {"key": "deploys"}),
        ("memory_get", {"key": "deploys"}),
    )
    stored, found, text, stated, forgotten, missing = script.run(HoldfastToolset(any_memory))
    assert (stored, stated) == ("created: deploys", "created: status: paused")
    assert text.endswith("\n\nWe deploy on Tuesdays.")
    assert "\n- deploys (" in found and forgotten == "forgotten: deploys"
    assert missing.startswith("Error not_found: ")
    assert any_memory.facts("Atlas")[0].value == "paused"


def test_the_briefing_is_composed_once_for_each_run(memory):
    memory.store("The staging database is db-2.", key="staging")
    script = Script(("memory_store", {"text": "We deploy on Tuesdays.", "key": "deploys"}))
    toolset = HoldfastToolset(memory)
    script.run(toolset, instructions="Be brief.")
    first, second = script.instructions
    assert first == second and first.startswith("Be brief.\n\n<holdfast-memory") and "db-2" in first
    assert "Tuesdays" not in first
    script.run(toolset)
    assert "Tuesdays" in script.instructions[-1]


def test_notes_that_match_the_prompt_are_part_of_the_briefing(memory):
    memory.store("We deploy on Tuesdays.", key="deploys")
    prompt = ["When do we deploy?", ImageUrl("https://example.com/plan.png")]
    with_prompt, without = Script(), Script()
    with_prompt.run(HoldfastToolset(memory), prompt)
    without.run(HoldfastToolset(memory, with_prompt=False), prompt)
    assert with_prompt.instructions[0].count("We deploy on Tuesdays.") == 2
    assert without.instructions[0].count("We deploy on Tuesdays.") == 1


def test_the_briefing_can_be_left_out_and_the_tools_can_be_read_only(memory):
    memory.store("We deploy on Tuesdays.", key="deploys")
    model = TestModel(call_tools=[])
    agent = Agent(model, toolsets=[HoldfastToolset(memory, with_briefing=False, read_only=True)])
    result = run(agent, "Hello")
    assert [tool.name for tool in model.last_model_request_parameters.function_tools] == TOOLS[:2]
    assert result.all_messages()[0].instructions is None


def test_an_empty_or_failing_memory_adds_no_instructions(home, memory, tmp_path, caplog):
    script = Script()
    script.run(HoldfastToolset(memory))
    blocked = tmp_path / "blocked"
    blocked.write_text("not a folder")
    with Memory(blocked, project="shop") as failing:
        script.run(HoldfastToolset(failing))
    assert script.instructions == ["", ""]
    assert "no briefing" in caplog.text


def test_two_runs_at_once_have_briefings_of_their_own(memory):
    for name in ("tea", "coffee"):
        memory.store(f"Ann brews {name} at noon.", key=name)
    script, toolset = Script(), HoldfastToolset(memory)
    agent = Agent(FunctionModel(script.reply), toolsets=[toolset])

    async def main():
        await asyncio.gather(*(agent.run(f"Who brews {name}?") for name in ("tea", "coffee")))

    asyncio.run(main())
    matches = sorted(text.rpartition("<holdfast-memory")[2].count("brews") for text in script.instructions)
    assert len(set(script.instructions)) == 2 and matches[0] >= 1


def test_the_toolset_composes_with_those_of_the_framework(memory):
    own = FunctionToolset([lambda: "sunny"], id="own")
    model = TestModel(call_tools=[])
    agent = Agent(model, toolsets=[HoldfastToolset(memory).prefixed("project"), own])
    run(agent, "Hello")
    names = [tool.name for tool in model.last_model_request_parameters.function_tools]
    assert names[:5] == [f"project_{name}" for name in TOOLS] and len(names) == 6


def test_a_tool_does_not_block_the_event_loop(memory, home):
    script = Script(("memory_store", {"text": "We deploy on Tuesdays.", "key": "deploys"}))
    agent = Agent(FunctionModel(script.reply), toolsets=[HoldfastToolset(memory)])

    async def main():
        with Lock(str(home), "projects+shop", 10):  # the tool waits for this lock, and the loop goes on
            task = asyncio.create_task(agent.run("Remember it."))
            await asyncio.sleep(0.3)
            assert not task.done()
        return await task

    assert asyncio.run(main()).output == "Done."
    assert memory.get("deploys").text == "We deploy on Tuesdays."


def test_wrong_arguments_are_rejected(memory):
    with pytest.raises(UsageError, match="memory must be a Memory"):
        HoldfastToolset("~/.holdfast")
    with pytest.raises(UsageError, match="tools and instructions are those of Holdfast"):
        HoldfastToolset(memory, instructions="mine")


def test_an_agent_of_a_model_on_loopback_uses_the_tools(memory):
    memory.store("The staging database is db-2.", key="staging")

    async def main(url):
        async with AsyncOpenAI(base_url=f"{url}/v1", api_key="of-a-test") as client:
            model = OpenAIChatModel("gpt-5", provider=OpenAIProvider(openai_client=client))
            agent = Agent(model, instructions="Be concise.", toolsets=[HoldfastToolset(memory)])
            return await agent.run("Which is the staging database?")

    with ScriptedModel(("memory_recall", {"query": "staging database"}), "It is db-2.") as server:
        assert asyncio.run(main(server.url)).output == "It is db-2."
        assert server.tool_results[0].endswith("The staging database is db-2.")
        assert "<holdfast-memory" in "\n".join(server.texts("system"))


def test_the_example_runs(run_example):
    assert run_example("pydantic_ai_agent.py") == "first run: Noted.\nsecond run: You deploy on Tuesdays.\n"


def test_the_code_of_the_page_prints_what_the_page_shows(run_page):
    run_page("pydantic-ai.md", "from pydantic_ai.models.test import TestModel\nmodel = TestModel(call_tools=[])")
