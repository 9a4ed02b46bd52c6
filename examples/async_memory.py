"""Use memory in asyncio code: AsyncMemory has the methods of Memory, each as a coroutine.

Run:  python examples/async_memory.py
"""

import asyncio

from holdfast import AsyncMemory

NOTES = {
    "testing": "Use pytest, never unittest.",
    "database": "Production runs PostgreSQL 18.",
    "deploys": "We deploy on Tuesdays.",
}


async def main() -> None:
    async with AsyncMemory(project="demo") as memory:
        await asyncio.gather(*(memory.store(text, key=key) for key, text in NOTES.items()))
        questions = ["which test runner", "which database", "when do we deploy"]
        answers = await asyncio.gather(*(memory.recall(question, limit=1) for question in questions))
        for question, answer in zip(questions, answers, strict=True):
            print(f"{question}: {answer[0].text}")


asyncio.run(main())
