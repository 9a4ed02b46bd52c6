"""The memory tool of the Anthropic SDK on the files of a project. A scripted server takes the place of Claude.

With an API key in ANTHROPIC_API_KEY, the program calls Claude instead.

Run:  python examples/anthropic_memory_tool.py
"""

import os
from contextlib import ExitStack

from anthropic import Anthropic

from holdfast import Memory
from holdfast.adapters.anthropic import HoldfastMemoryTool

MODEL = "claude-sonnet-5-5"
NOTE = {"command": "create", "path": "/memories/customer.md", "file_text": "Ann prefers coffee.\n"}


def main() -> None:
    with ExitStack() as stack:
        memory = stack.enter_context(Memory(project="demo", client="anthropic"))
        arguments = {}
        if "ANTHROPIC_API_KEY" not in os.environ:
            from holdfast_prove.model_server import ModelServer

            server = stack.enter_context(ModelServer("", tool="memory", arguments=NOTE))
            arguments = {"base_url": server.url, "api_key": "none"}
        client = stack.enter_context(Anthropic(**arguments))
        runner = client.beta.messages.tool_runner(
            model=MODEL,
            max_tokens=1024,
            messages=[{"role": "user", "content": "I am Ann. Remember that I prefer coffee."}],
            tools=[HoldfastMemoryTool(memory)],
        )
        runner.until_done()
        for hit in memory.recall("what does Ann prefer", limit=1):
            print(f"found by search: {hit.key}: {hit.text}")


main()
