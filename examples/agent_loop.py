"""An agent loop with memory as a tool. A scripted model takes the place of an LLM, so that the example runs offline.

The loop is the same with a real model: send the messages, run the tools that the model calls, send the results back.

Run:  python examples/agent_loop.py
"""

import json

from holdfast import HoldfastError, Memory

# What the model "decides" in each turn. A real model returns the same: a tool call, or the final text.
SCRIPT = [
    {"tool": "remember", "arguments": {"key": "deploys", "text": "We deploy on Tuesdays."}},
    {"tool": "recall", "arguments": {"query": "when do we deploy"}},
    {"text": "You deploy on Tuesdays."},
]


def remember(memory: Memory, key: str, text: str) -> str:
    return f"{memory.store(text, key=key).action} {key}"


def recall(memory: Memory, query: str) -> str:
    return "\n".join(f"{hit.key}: {hit.text}" for hit in memory.recall(query, limit=3)) or "no notes"


TOOLS = {"remember": remember, "recall": recall}


def run_tool(memory: Memory, name: str, arguments: dict[str, str]) -> str:
    """Run a tool. An error goes back to the model, which can correct its call."""
    try:
        return TOOLS[name](memory, **arguments)
    except HoldfastError as error:
        return f"error {error.code}: {error}"


def main() -> None:
    messages = [{"role": "user", "text": "Remember that we deploy on Tuesdays. When do we deploy?"}]
    with Memory(project="demo", agent="example", client="agent-loop", session="1", origin="agent") as memory:
        for step in SCRIPT:  # with a real model: while True, step = model(messages)
            if "tool" not in step:
                messages.append({"role": "assistant", "text": step["text"]})
                break
            result = run_tool(memory, step["tool"], step["arguments"])
            print(f"{step['tool']}({json.dumps(step['arguments'])}) -> {result}")
            messages.append({"role": "tool", "name": step["tool"], "text": result})
        memory.log(messages)  # keep the session word for word
        print("assistant:", messages[-1]["text"])


main()
