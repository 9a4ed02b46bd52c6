"""LlamaIndex with Holdfast as a memory block: the model sees the briefing, and what leaves the chat history is kept.

No model is called, so that the example runs offline: it prints what a model would be sent.

Install:  pip install 'holdfast[llama-index]'
Run:      python examples/llama_index_memory.py
"""

import asyncio

from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory as ChatMemory
from sqlalchemy.ext.asyncio import create_async_engine

from holdfast import Memory
from holdfast.adapters.llama_index import HoldfastMemoryBlock, memory_tools


async def main() -> None:
    engine = create_async_engine("sqlite+aiosqlite:///:memory:")  # of LlamaIndex, for the newest messages
    with Memory(project="demo") as memory:
        memory.store("We deploy on Tuesdays.", key="deploys")
        block = HoldfastMemoryBlock(memory=memory)
        chat = ChatMemory.from_defaults(
            session_id="ann-1", memory_blocks=[block], async_engine=engine, tokenizer_fn=str.split,
            token_limit=300, chat_history_token_ratio=0.1, token_flush_size=20,
        )  # fmt: skip
        for number in range(1, 7):
            await chat.aput(ChatMessage(role="user", content=f"My favourite tea number {number} comes from Japan."))
            await chat.aput(ChatMessage(role="assistant", content="I see."))
        sent = await chat.aget(input="When do we deploy?")
        print("system message has the note:", "We deploy on Tuesdays." in sent[0].content)
        print("dropped from the chat:", not any("number 1 " in message.content for message in sent[1:]))
        found = memory.recall("favourite tea number 1", kind="turn", limit=1)
        print("found:", found[0].text)
        print("tools:", ", ".join(tool.metadata.name for tool in memory_tools(memory)))
    await engine.dispose()


asyncio.run(main())
