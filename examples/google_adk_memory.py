"""Google ADK with Holdfast as its memory service: a later session knows what was said in an earlier one.

The model is a script, so that the example runs offline: use a model such as "gemini-2.5-flash" instead.

Install:  pip install 'holdfast[google-adk]'
Run:      python examples/google_adk_memory.py
"""

import asyncio
import logging

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import load_memory
from google.genai import types

from holdfast.adapters.google_adk import HoldfastMemoryService

logging.getLogger("google_adk").setLevel(logging.ERROR)  # the script counts no tokens


class Script(BaseLlm):
    """Search the memory when asked a question, and answer with the first memory that was found."""

    async def generate_content_async(self, llm_request, stream=False):
        last = llm_request.contents[-1].parts[-1]
        if last.function_response:
            memories = last.function_response.response["result"].memories
            part = types.Part(text=f"You said: {memories[0].content.parts[0].text}")
        elif (last.text or "").endswith("?"):
            part = types.Part.from_function_call(name="load_memory", args={"query": last.text})
        else:
            part = types.Part(text="Noted.")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


async def ask(memory_service: HoldfastMemoryService, session_id: str, text: str) -> None:
    sessions = InMemorySessionService()

    async def save_session(callback_context):
        await callback_context.add_session_to_memory()

    agent = LlmAgent(name="assistant", model=Script(model="script"), tools=[load_memory], after_agent_callback=save_session)
    runner = Runner(app_name="demo", agent=agent, session_service=sessions, memory_service=memory_service)
    await sessions.create_session(app_name="demo", user_id="ann", session_id=session_id)
    message = types.Content(role="user", parts=[types.Part(text=text)])
    async for event in runner.run_async(user_id="ann", session_id=session_id, new_message=message):
        if event.is_final_response():
            print(f"{session_id}:", event.content.parts[0].text)


async def main() -> None:
    memory_service = HoldfastMemoryService()
    await ask(memory_service, "monday", "My flight to Oslo leaves at nine.")
    await ask(memory_service, "tuesday", "When does my flight leave?")
    others = await memory_service.search_memory(app_name="demo", user_id="bob", query="flight")
    print("found for bob:", len(others.memories))
    memory_service.close()


asyncio.run(main())
