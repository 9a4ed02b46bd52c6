"""The LlamaIndex memory block: the briefing, and what the chat history drops; and the tools of agents."""

from __future__ import annotations

import asyncio

import pytest
from frameworks import need_framework

need_framework("llama-index")

from llama_index.core.llms import ChatMessage, MessageRole
from llama_index.core.memory import Memory as ChatMemory
from sqlalchemy.ext.asyncio import create_async_engine

from holdfast import InvalidText, Memory
from holdfast.adapters.llama_index import HoldfastMemoryBlock, memory_tools


def say(role, text):
    return ChatMessage(role=role, content=text)


async def chat(block, *messages, question="when do we deploy?", **options):
    """Put messages into a chat memory that is counted in words, and return what a model would be sent."""
    engine = create_async_engine("sqlite+aiosqlite:///:memory:")
    defaults = {"session_id": "s1", "token_limit": 300, "chat_history_token_ratio": 0.2, "token_flush_size": 20}
    history = ChatMemory.from_defaults(
        memory_blocks=[block], tokenizer_fn=str.split, async_engine=engine, **{**defaults, **options}
    )
    try:
        for message in messages:
            await history.aput(message)
        return await history.aget(input=question)
    finally:
        await engine.dispose()


def stored_turns(memory, text):
    return [hit.text for hit in memory.recall(text, kind="turn", mode="keyword", limit=100)]


def test_the_block_adds_the_briefing_to_the_system_message(any_memory):
    any_memory.store("We deploy on Tuesdays.", key="deploys")
    first, *_ = asyncio.run(chat(HoldfastMemoryBlock(memory=any_memory), say("user", "Hello")))
    assert first.role == "system"
    assert "<holdfast-memory" in first.content and "We deploy on Tuesdays." in first.content


def test_the_notes_that_match_the_question_are_added_unless_that_is_switched_off(memory):
    memory.store("We deploy on Tuesdays.", key="deploys")
    for with_prompt, count in ((True, 2), (False, 1)):
        first, *_ = asyncio.run(chat(HoldfastMemoryBlock(memory=memory, with_prompt=with_prompt), say("user", "Hello")))
        assert first.content.count("We deploy on Tuesdays.") == count


def test_messages_that_leave_the_chat_history_are_found_in_every_later_session(any_memory):
    block = HoldfastMemoryBlock(memory=any_memory)
    messages = []
    for number in range(12):
        messages += [say("user", f"question number{number} " + "word " * 10), say("assistant", "yes")]
    sent = asyncio.run(chat(block, *messages))
    kept = {message.content for message in sent}
    dropped = [message for message in messages if message.content not in kept]
    assert dropped
    assert messages[0].content in stored_turns(any_memory, "number0")
    hit = any_memory.recall("number0", kind="turn", mode="keyword")[0]
    assert (hit.session, hit.speaker) == ("s1", "user")


def test_a_message_that_cannot_be_stored_is_an_error_and_the_others_are_stored(memory):
    block = HoldfastMemoryBlock(memory=memory)
    messages = [say("user", "green tea"), say("tool", "bytes \0 of tea"), say("assistant", "more tea")]
    with pytest.raises(InvalidText, match="a NUL byte"):
        asyncio.run(block.aput(messages, session_id="s1"))
    assert sorted(stored_turns(memory, "tea")) == ["green tea", "more tea"]


def test_a_message_of_every_role_is_stored(memory):
    messages = [ChatMessage(role=role, content=f"tea of {role.value}") for role in MessageRole]
    asyncio.run(HoldfastMemoryBlock(memory=memory).aput(messages, session_id="s1"))
    assert sorted(stored_turns(memory, "tea")) == sorted(message.content for message in messages)
    assert memory.recall("chatbot", kind="turn", mode="keyword")[0].speaker == "assistant"


def test_two_equal_messages_are_two_turns(memory):
    block = HoldfastMemoryBlock(memory=memory)
    for _ in range(2):
        asyncio.run(block.aput([say("user", "yes please"), say("assistant", "done")], session_id="s1"))
    assert stored_turns(memory, "yes please") == ["yes please"] * 2


def test_a_secret_in_a_message_is_replaced_by_the_name_of_its_rule(memory):
    secret = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7" + "abc/DEF+" * 20 + "\n-----END RSA PRIVATE KEY-----"
    asyncio.run(HoldfastMemoryBlock(memory=memory).aput([say("user", f"our certificate {secret}")], session_id="s1"))
    (text,) = stored_turns(memory, "certificate")
    assert text == "our certificate [REDACTED:private-key]"


@pytest.mark.parametrize("session", ["../../etc", "a b", "ü" * 300, ""])
def test_any_session_id_is_stored(memory, session):
    asyncio.run(HoldfastMemoryBlock(memory=memory).aput([say("user", "a sentence about tea")], session_id=session))
    assert stored_turns(memory, "tea") == ["a sentence about tea"]


def test_messages_without_text_are_left_out(memory):
    block = HoldfastMemoryBlock(memory=memory)
    asyncio.run(block.aput([ChatMessage(role="assistant", blocks=[])], session_id="s1"))
    assert list(memory.recall(mode="recent", kind="turn")) == []


def test_a_briefing_that_is_too_long_is_shortened(memory):
    for number in range(30):
        memory.store(
            f"Rule {number}: " + "keep the tests green and the pages short " * 3, key=f"rule-{number}", type="feedback"
        )
    block = HoldfastMemoryBlock(memory=memory)
    text = asyncio.run(block.aget([]))
    shorter = asyncio.run(block.atruncate(text, len(text) // 8))
    assert 0 < len(shorter) <= len(text) - len(text) // 8 * 4
    assert asyncio.run(block.atruncate(text, len(text))) is None


def test_a_failing_memory_gives_an_empty_block(home, caplog):
    home.write_text("not a folder")
    assert asyncio.run(HoldfastMemoryBlock(memory=Memory(home, project="shop")).aget([say("user", "Hello")])) == ""
    assert "no briefing" in caplog.text


def test_the_tools_store_find_read_and_forget_a_note(any_memory):
    tools = {tool.metadata.name: tool for tool in memory_tools(any_memory)}
    assert sorted(tools) == ["memory_fact", "memory_forget", "memory_get", "memory_recall", "memory_store"]
    assert tools["memory_store"].call(text="We deploy on Tuesdays.", key="deploys").content == "created: deploys"
    found = asyncio.run(tools["memory_recall"].acall(query="when do we deploy")).content
    assert "\n- deploys (" in found and found.endswith("agent): We deploy on Tuesdays.")
    assert tools["memory_get"].call(key="deploys").content.endswith("\n\nWe deploy on Tuesdays.")
    assert tools["memory_forget"].call(key="deploys").content == "forgotten: deploys"
    assert tools["memory_forget"].call(key="deploys").content == "There is no note deploys."
    assert tools["memory_recall"].call(query="deploy").content.startswith("Nothing matches.")


def test_an_error_of_a_tool_is_its_answer(memory):
    tools = {tool.metadata.name: tool for tool in memory_tools(memory)}
    assert tools["memory_get"].call(key="missing").content.startswith("Error not_found: ")
    assert tools["memory_store"].call(text=" ").content.startswith("Error invalid_text: ")
    assert tools["memory_recall"].call(query="tea", limit=1000).content.startswith("Error usage: ")


def test_a_tool_describes_its_arguments(memory):
    store = next(tool for tool in memory_tools(memory) if tool.metadata.name == "memory_store")
    schema = store.metadata.get_parameters_dict()
    assert schema["required"] == ["text"]
    assert "without secrets" in str(store.metadata.description) + str(schema)
