"""A session of the OpenAI Agents SDK that every later search finds. A scripted server takes the place of the model.

With an API key in OPENAI_API_KEY, the program calls OpenAI instead.

Run:  python examples/openai_agents_session.py
"""

import asyncio
import os
from contextlib import ExitStack

from agents import Agent, Runner, set_default_openai_client, set_tracing_disabled
from openai import AsyncOpenAI

from holdfast import Memory
from holdfast.adapters.openai_agents import HoldfastSession, memory_tools, with_briefing


async def main() -> None:
    with ExitStack() as stack:
        memory = stack.enter_context(Memory(project="demo", client="openai-agents"))
        if "OPENAI_API_KEY" not in os.environ:
            from holdfast_prove.model_server import ModelServer

            server = stack.enter_context(ModelServer("when do we deploy"))
            client = AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none")
            set_default_openai_client(client, use_for_tracing=False)
            set_tracing_disabled(True)
        agent = Agent(name="Assistant", instructions=with_briefing(memory, "Reply concisely."), tools=memory_tools(memory))
        session = HoldfastSession("demo", memory)
        result = await Runner.run(agent, "We deploy on Tuesdays. What did we say about it before?", session=session)
        print("assistant:", result.final_output)
        print("items:", len(await session.get_items()))
        for hit in memory.recall("when do we deploy", kind="file", limit=1):
            print(f"found by search: {hit.key}")


asyncio.run(main())
