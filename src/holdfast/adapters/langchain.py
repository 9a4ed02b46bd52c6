"""LangChain: a middleware that shows an agent of `create_agent` its briefing, whichever checkpointer the agent has."""

from __future__ import annotations

from holdfast.adapters import require

require("langchain")

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr
from langgraph.channels.untracked_value import UntrackedValue

from holdfast import Memory
from holdfast.adapters.langgraph import CLIENT, append_to_system, last_prompt
from holdfast.adapters.tools import check_memory, compose_briefing


class BriefingState(AgentState, total=False):  # type: ignore[call-arg]  # a TypedDict, which mypy does not see here
    """The state of an agent with its briefing, which no checkpoint contains."""

    holdfast_briefing: Annotated[str, UntrackedValue, PrivateStateAttr]


class HoldfastMiddleware(AgentMiddleware):
    """Compose a briefing when a run starts, and add it to the system message of each call of the model.

    It has what an agent is shown when it starts, and `with_prompt` also the notes that match the last message of the user.
    Without a `memory`, open the home and the project of the current folder.
    """

    state_schema = BriefingState

    def __init__(self, memory: Memory | None = None, *, with_prompt: bool = True) -> None:
        super().__init__()
        self.memory = check_memory(memory, CLIENT)
        self.with_prompt = with_prompt

    def before_agent(self, state: BriefingState, runtime: Any) -> dict[str, Any]:
        return {"holdfast_briefing": self._compose(state)}

    async def abefore_agent(self, state: BriefingState, runtime: Any) -> dict[str, Any]:
        return {"holdfast_briefing": await asyncio.to_thread(self._compose, state)}

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
        text = request.state.get("holdfast_briefing")
        if text is None:  # a run that continues after an interrupt: the briefing was not in its checkpoint
            text = self._compose(request.state)
        return handler(request.override(system_message=append_to_system(request.system_message, text)))

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        text = request.state.get("holdfast_briefing")
        if text is None:
            text = await asyncio.to_thread(self._compose, request.state)
        return await handler(request.override(system_message=append_to_system(request.system_message, text)))

    def _compose(self, state: BriefingState) -> str:
        return compose_briefing(self.memory, last_prompt(state["messages"]) if self.with_prompt else "")
