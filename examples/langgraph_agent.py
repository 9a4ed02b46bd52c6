"""A LangChain agent with two kinds of memory: a briefing from notes, and items of single users in a LangGraph store.

A scripted model takes the place of an LLM, so that the example runs offline. With a real one, pass its name to `create_agent`.

Install:  pip install 'holdfast[langgraph,langchain]'
Run:      python examples/langgraph_agent.py
"""

from langchain.agents import create_agent
from langchain.tools import ToolRuntime, tool
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from holdfast import Memory
from holdfast.adapters.langchain import HoldfastMiddleware
from holdfast.adapters.langgraph import HoldfastStore

ANSWERS = [
    AIMessage("", tool_calls=[{"id": "1", "name": "remember_taste", "args": {"text": "Ann drinks green tea."}}]),
    AIMessage("Noted. And we deploy on Tuesdays."),
]


class ScriptedModel(GenericFakeChatModel):
    """Answers from a list, and shows the system message it was given."""

    def bind_tools(self, tools, **options):
        return self

    def _generate(self, messages, *args, **options):
        print("system message has the note:", "We deploy on Tuesdays." in messages[0].text)
        return super()._generate(messages, *args, **options)


@tool
def remember_taste(text: str, runtime: ToolRuntime) -> str:
    """Remember what the user likes."""
    runtime.store.put(("users", "ann"), "taste", {"text": text})
    return "remembered"


def main() -> None:
    with Memory(project="demo") as memory, HoldfastStore() as store:
        memory.store("We deploy on Tuesdays.", key="deploys")
        agent = create_agent(
            ScriptedModel(messages=iter(ANSWERS)),
            tools=[remember_taste],
            middleware=[HoldfastMiddleware(memory)],
            store=store,
        )
        result = agent.invoke({"messages": [("user", "I am Ann and like green tea. When do we deploy?")]})
        print("assistant:", result["messages"][-1].text)
    with HoldfastStore() as store:  # another process finds it too
        for item in store.search(("users", "ann"), query="What does she drink?", limit=1):
            print("found:", item.key, item.value)


main()
