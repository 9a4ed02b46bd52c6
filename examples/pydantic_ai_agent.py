"""A Pydantic AI agent with memory: a briefing when a run starts, and tools. A scripted model takes the place of an LLM.

With a name such as openai:gpt-5 in MODEL, the program calls that model instead.

Run:  python examples/pydantic_ai_agent.py
"""

import os

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from holdfast import Memory
from holdfast.adapters.pydantic_ai import HoldfastToolset


def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Store a note when asked to remember something; otherwise answer with what the briefing says."""
    if "Tuesdays" in (info.instructions or ""):
        return ModelResponse(parts=[TextPart("You deploy on Tuesdays.")])
    last = messages[-1]
    if isinstance(last, ModelRequest) and last.parts[-1].part_kind == "tool-return":
        return ModelResponse(parts=[TextPart("Noted.")])
    return ModelResponse(parts=[ToolCallPart("memory_store", {"text": "We deploy on Tuesdays.", "key": "deploys"})])


def main() -> None:
    with Memory(project="demo", client="pydantic-ai") as memory:
        agent = Agent(os.environ.get("MODEL") or FunctionModel(script), toolsets=[HoldfastToolset(memory)])
        print("first run:", agent.run_sync("Remember that we deploy on Tuesdays.").output)
        print("second run:", agent.run_sync("When do we deploy?").output)


main()
