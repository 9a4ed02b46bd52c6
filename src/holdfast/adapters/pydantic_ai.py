"""Pydantic AI: a toolset with the tools of memory, whose instructions brief the agent when a run starts."""

from __future__ import annotations

from holdfast.adapters import require

require("pydantic-ai")

import asyncio
import copy
from collections.abc import Sequence
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import UserContent
from pydantic_ai.toolsets import FunctionToolset

from holdfast import Memory, UsageError
from holdfast.adapters.tools import check_memory, compose_briefing, in_thread, make_tools

CLIENT = "pydantic-ai"  # recorded as the program that wrote
_READERS = ("memory_recall", "memory_get")


class HoldfastToolset(FunctionToolset[Any]):
    """Memory for `Agent(toolsets=[...])`: tools, and a briefing as instructions.

    The briefing is composed once for each run: what an agent is shown when it starts and, `with_prompt`, the notes that match
    the prompt. The tools are memory_recall, memory_get, memory_store, memory_fact and memory_forget, of which the last three
    write to the scope; with `read_only`, the first two.
    """

    def __init__(
        self, memory: Memory | None = None, *, scope: str = "project", with_briefing: bool = True, with_prompt: bool = True,
        read_only: bool = False, id: str | None = "holdfast", **options: Any,
    ) -> None:  # fmt: skip
        if "tools" in options or "instructions" in options:
            raise UsageError("tools and instructions are those of Holdfast", "Pass yours to Agent(tools=..., instructions=...)")
        self.memory = check_memory(memory, CLIENT)
        self.with_briefing = with_briefing
        self.with_prompt = with_prompt
        self._briefing: str | None = None  # of the run that this copy is for
        tools = [tool for tool in make_tools(self.memory, scope) if not read_only or tool.__name__ in _READERS]
        super().__init__([in_thread(tool) for tool in tools], id=id, **options)

    async def for_run(self, ctx: RunContext[Any]) -> HoldfastToolset:
        """Return a copy with the briefing of this run, so that every request of the run has the same instructions."""
        briefed = copy.copy(self)
        briefed._briefing = await self._compose(ctx)
        return briefed

    async def get_instructions(self, ctx: RunContext[Any]) -> str | None:
        """Return the briefing; None if there is nothing to show."""
        briefing = self._briefing if self._briefing is not None else await self._compose(ctx)
        return briefing or None

    async def _compose(self, ctx: RunContext[Any]) -> str:
        if not self.with_briefing:
            return ""
        return await asyncio.to_thread(compose_briefing, self.memory, _prompt_text(ctx.prompt) if self.with_prompt else "")


def _prompt_text(prompt: str | Sequence[UserContent] | None) -> str:
    """Return the text of a prompt, which may also have images and files."""
    parts = [prompt] if isinstance(prompt, str) else prompt or ()
    texts = [part if isinstance(part, str) else getattr(part, "content", None) for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str))
