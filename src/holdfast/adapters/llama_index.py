"""LlamaIndex: a memory block with the briefing, which keeps what the chat history drops, and tools for agents."""

from __future__ import annotations

from holdfast.adapters import require

require("llama-index")

import asyncio
from typing import Any
from uuid import uuid4

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import Field
from llama_index.core.memory import BaseMemoryBlock
from llama_index.core.tools import FunctionTool

from holdfast import HoldfastError, Memory
from holdfast.adapters.tools import check_memory, compose_briefing, make_tools

CLIENT = "llama-index"  # recorded as the program that wrote, and the folder of transcripts
_ROLES = {MessageRole.CHATBOT: "assistant"}  # `log` accepts the others as they are
_TOKEN_CHARS = 4  # about as many characters as a token has in English


class HoldfastMemoryBlock(BaseMemoryBlock[str]):
    """What an agent is shown when it starts, and the notes and turns that match the last message of the user.

    Messages that no longer fit into the chat history are stored word for word as a transcript of the session, which every later
    session can search.
    """

    name: str = "holdfast"
    description: str | None = "Notes and conversations from earlier sessions."
    priority: int = 1  # it may be shortened if the token limit is reached
    memory: Memory = Field(default_factory=lambda: Memory(client=CLIENT), exclude=True)
    with_prompt: bool = True
    redact: bool = Field(default=True, description="Store the names of rules instead of secrets that are in messages.")

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        prompt = next((one.content for one in reversed(messages or ()) if one.role.value == "user"), None)
        return await asyncio.to_thread(compose_briefing, self.memory, (prompt or "") if self.with_prompt else "")

    async def _aput(self, messages: list[ChatMessage]) -> None:
        by_session: dict[str, list[dict[str, str]]] = {}
        for message in messages:
            if message.content:  # calls of tools have no text
                session = message.additional_kwargs.get("session_id") or self.memory.session or "default"
                # the id is new: two equal messages are two turns
                turn = {"id": uuid4().hex, "role": _ROLES.get(message.role, message.role.value), "text": message.content}
                by_session.setdefault(str(session), []).append(turn)
        errors: list[HoldfastError] = []
        for session, turns in by_session.items():
            errors += await asyncio.to_thread(self._log, turns, session)
        if errors:
            raise errors[0]

    def _log(self, turns: list[dict[str, str]], session: str) -> list[HoldfastError]:
        """Store the turns of a session and return the errors of those that are rejected: the chat history no longer has the
        others, and gives them to the block only once."""
        errors: list[HoldfastError] = []
        for turn in turns:
            try:
                self.memory.log([turn], session=session, client=CLIENT, redact=self.redact)
            except HoldfastError as error:
                errors.append(error)
        return errors

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Return the briefing in fewer characters; None if nothing fits."""
        cap = len(content) - tokens_to_truncate * _TOKEN_CHARS
        return await asyncio.to_thread(compose_briefing, self.memory, "", cap) or None if cap > 0 else None


def memory_tools(memory: Memory | None = None, scope: str = "project") -> list[FunctionTool]:
    """Return the tools memory_recall, memory_get, memory_store, memory_fact and memory_forget; the last three write to this
    scope."""
    return [FunctionTool.from_defaults(fn=tool) for tool in make_tools(check_memory(memory, CLIENT), scope)]
