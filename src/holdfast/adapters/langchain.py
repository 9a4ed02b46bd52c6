"""LangChain: a middleware that shows an agent of `create_agent` its briefing, whichever checkpointer the agent has."""

from __future__ import annotations

from holdfast.adapters import require

require("langchain")

import asyncio
from collections.abc import Awaitable, Callable

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse

from holdfast import Memory
from holdfast.adapters.langgraph import CLIENT, append_to_system, last_prompt
from holdfast.adapters.tools import check_memory, compose_briefing


class HoldfastMiddleware(AgentMiddleware):
    """Add a briefing to the system message of each call of the model.

    It has what an agent is shown when it starts, and `with_prompt` also the notes that match the last message of the user.
    Nothing is added to the state of the agent, so no checkpoint and no stream contains the briefing. Without a `memory`, open
    the home and the project of the current folder.
    """

    def __init__(self, memory: Memory | None = None, *, with_prompt: bool = True) -> None:
        super().__init__()
        self.memory = check_memory(memory, CLIENT)
        self.with_prompt = with_prompt

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
        return handler(self._add_briefing(request))

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        return await handler(await asyncio.to_thread(self._add_briefing, request))

    def _add_briefing(self, request: ModelRequest) -> ModelRequest:
        text = compose_briefing(self.memory, last_prompt(request.messages) if self.with_prompt else "")
        return request.override(system_message=append_to_system(request.system_message, text))
