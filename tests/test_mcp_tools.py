"""The tools, resources and prompts as an agent uses them, through the SDK's own client."""

from __future__ import annotations

import json

import jsonschema
import pytest
from mcp.shared.exceptions import MCPError

from holdfast.doors.mcp.inputs import checked
from holdfast.doors.mcp.tools import BY_NAME, TOOLS
from holdfast.errors import HoldfastError, UsageError
from mcp_sdk import Agent, run

NAMES = (
    "memory_store", "memory_recall", "memory_forget", "memory_search", "memory_get", "memory_history", "memory_fact",
    "memory_file",
)  # fmt: skip


@pytest.fixture
def talk(home):
    """Runs an async function with an agent of the project `demo`."""

    def talk_(work, **started):
        async def inside():
            async with Agent(home, **{"project": "demo", **started}) as agent:
                return await work(agent)

        return run(inside)

    return talk_


def test_the_tools_are_these_eight_with_schemas_hints_and_words_that_fit_a_context():
    shown = [tool.as_shown() for tool in TOOLS]
    assert tuple(one["name"] for one in shown) == NAMES
    for one in shown:
        for schema in (one["inputSchema"], one["outputSchema"]):
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
        assert one["inputSchema"]["additionalProperties"] is False
        assert all(said.get("description") for said in one["inputSchema"]["properties"].values())
        assert {"project", "folder"} <= set(one["inputSchema"]["properties"])
        assert "project" in one["outputSchema"]["required"]
    hints = {one["name"]: one["annotations"] for one in shown}
    reads = {name for name, hint in hints.items() if hint["readOnlyHint"]}
    assert reads == {"memory_recall", "memory_search", "memory_get", "memory_history"}
    assert {name for name, hint in hints.items() if hint["destructiveHint"]} == {"memory_forget", "memory_file"}
    assert not hints["memory_file"]["idempotentHint"] and not any(hint["openWorldHint"] for hint in hints.values())
    assert len(json.dumps(shown)) < 20_000  # every session pays for it


def test_the_schemas_say_the_same_as_the_check():
    """What the schema allows passes the check, and what it forbids does not."""
    cases = [
        {}, {"text": "a"}, {"text": 1}, {"text": "a", "pinned": True}, {"text": "a", "pinned": 1}, {"text": "a", "tags": ["b"]},
        {"text": "a", "tags": [1]}, {"text": "a", "scope": "global"}, {"text": "a", "scope": "x"}, {"text": "a", "nope": 1},
    ]  # fmt: skip
    schema = BY_NAME["memory_store"].input_schema
    for case in cases:
        allowed = jsonschema.Draft202012Validator(schema).is_valid(case)
        try:
            checked(schema, case)
            passed = True
        except HoldfastError:
            passed = False
        assert passed == allowed, case
    for limit, allowed in [(1, True), (100, True), (0, False), (101, False), (True, False), ("5", False), (1.5, False)]:
        try:
            checked(BY_NAME["memory_recall"].input_schema, {"query": "a", "limit": limit})
            assert allowed, limit
        except HoldfastError:
            assert not allowed, limit


@pytest.mark.promise("N4")
def test_a_note_is_stored_recalled_changed_and_forgotten(talk):
    async def work(agent):
        first = await agent("memory_store", text="We deploy on Fridays.", key="deploys", tags="ci-cd, Höhe", type="project")
        assert first["action"] == "created" and first["note"]["tags"] == ["ci-cd", "Höhe"]
        assert first["note"]["source"] == {"origin": "agent", "client": "sdk"}
        again = await agent("memory_store", text="We deploy on Fridays.", key="deploys")
        assert again["action"] == "unchanged"
        new = await agent("memory_store", text="We deploy on Tuesdays.", key="deploys", expected=first["note"]["version"])
        assert new["action"] == "updated"
        told = await agent.refused("memory_store", text="Lost.", key="deploys", expected=first["note"]["version"])
        assert "deploys" in told
        answer = await agent("memory_recall", query="when do we deploy")
        assert [hit["text"] for hit in answer["hits"]] == ["We deploy on Tuesdays."]
        assert answer["mode"] == "keyword" and answer["degraded"] is True and "embedder" in answer["reason"]
        versions = (await agent("memory_history", key="deploys"))["versions"]
        assert [one["text"] for one in versions] == ["We deploy on Tuesdays.", "We deploy on Fridays."]
        gone = await agent("memory_forget", key="deploys")
        assert gone["deleted"] is True and gone["scope"] == "project:demo" and gone["restorable_until"]
        assert (await agent("memory_forget", key="deploys"))["deleted"] is False
        assert (await agent("memory_recall", query="deploy"))["hits"] == []

    talk(work)


def test_recall_takes_what_memory_takes(talk):
    async def work(agent):
        await agent("memory_store", text="Harbour old.", key="a", type="feedback", tags=["x"], valid_from="2026-01-01")
        await agent("memory_store", text="Harbour new.", key="a", valid_from="2026-03-01")
        await agent("memory_store", text="Harbour for all.", key="b", scope="global")

        async def keys(**given):
            return [hit["key"] for hit in (await agent("memory_recall", **{"query": "harbour", **given}))["hits"]]

        assert await keys() == ["a", "b"] and await keys(limit=1) == ["a"] and await keys(scope="global") == ["b"]
        assert await keys(type="feedback") == ["a"] and await keys(tags=["x"]) == ["a"] and await keys(kind="file") == []
        assert await keys(query="", mode="recent") != [] and await keys(sort="recency", mode="keyword") != []
        old = await agent("memory_recall", query="harbour", as_of="2026-02-01", scope="project")
        assert [hit["text"] for hit in old["hits"]] == ["Harbour old."]
        assert "empty query" in await agent.refused("memory_recall")
        assert "as_of" in await agent.refused("memory_recall", query="a", as_of="no day")

    talk(work)


def test_a_long_hit_is_cut_with_a_mark_and_the_rest_can_be_read(talk):
    async def work(agent):
        text = "harbour " + "x" * 10_000 + " end"
        await agent("memory_store", text=text, key="long")
        (hit,) = (await agent("memory_recall", query="harbour"))["hits"]
        assert len(hit["text"]) == 4000 and "more characters" in hit["cut"] and hit["citation"] in hit["cut"]
        assert (await agent("memory_get", path=hit["citation"]))["text"] == text
        assert (await agent("memory_get", key="long"))["text"] == text

    talk(work)


@pytest.mark.promise("F2")
def test_search_shows_where_and_get_reads_that_piece(talk):
    async def work(agent):
        await agent("memory_file", command="create", path="plan.md", file_text="# Plan\none\nharbour two\nthree\n")
        (found,) = (await agent("memory_search", query="harbour"))["results"]
        assert found["path"].endswith("files/plan.md") and "harbour two" in found["snippet"] and found["score"] > 0
        path = found["path"]
        assert (await agent("memory_get", path=path, **{"from": 3, "lines": 1}))["text"] == "harbour two"
        assert (await agent("memory_get", path=f"{path}:2-3"))["text"] == "one\nharbour two"
        missing = await agent("memory_get", path="plans/none.md")
        assert missing["text"] == "" and missing["exists"] is False and missing["path"] == "plans/none.md"
        for given in ({}, {"key": "a", "path": "b"}):
            assert "key or path" in await agent.refused("memory_get", **given)
        for path in ("/etc/passwd", "../../config.toml", "plan%2e.md"):
            assert (await agent.client.call_tool("memory_get", {"path": path})).is_error

    talk(work)


@pytest.mark.promise("T1")
def test_get_reads_the_version_that_held_on_a_day(talk):
    async def work(agent):
        await agent("memory_store", text="Fridays.", key="k", valid_from="2026-01-05")
        await agent("memory_store", text="Tuesdays.", key="k", valid_from="2026-03-27")
        assert (await agent("memory_get", key="k", as_of="2026-02-01"))["text"] == "Fridays."
        note = await agent("memory_get", key="k")
        assert note["text"] == "Tuesdays." and note["note"]["version"] and "text" not in note["note"]

    talk(work)


@pytest.mark.promise("T3")
def test_a_fact_is_stated_replaced_and_asked(talk):
    async def work(agent):
        fact = {"subject": "Telegram", "label": "owner"}
        first = await agent("memory_fact", **fact, value="[[Ada]]", on="2026-03-20")
        assert first["action"] == "created" and first["fact"]["links"] == ["Ada"]
        second = await agent("memory_fact", **fact, value="[[Bob]]", on="2026-03-27")
        assert [one["value"] for one in second["retired"]] == ["[[Ada]]"]
        assert [one["value"] for one in (await agent("memory_fact", subject="Telegram"))["facts"]] == ["[[Bob]]"]
        asked = await agent("memory_fact", **fact, as_of="2026-03-21")
        assert [one["value"] for one in asked["facts"]] == ["[[Ada]]"]
        assert len((await agent("memory_fact", subject="Telegram", history=True))["facts"]) == 2
        assert "label" in await agent.refused("memory_fact", subject="Telegram", value="x")
        assert "asking" in await agent.refused("memory_fact", subject="Telegram", on="2026-01-01")
        assert "stating" in await agent.refused("memory_fact", **fact, value="x", as_of="2026-01-01")

    talk(work)


@pytest.mark.promise("F3")
def test_the_six_verbs_of_the_memory_tool(talk):
    async def work(agent):
        async def file(command, **given):
            return await agent("memory_file", command=command, **given)

        await file("create", path="/memories/plan.md", file_text="one\ntwo\n")
        await file("str_replace", path="/memories/plan.md", old_str="two", new_str="three")
        await file("insert", path="/memories/plan.md", insert_line=1, insert_text="between\n")
        assert (await file("view", path="/memories/plan.md"))["text"] == "one\nbetween\nthree\n"
        assert (await file("view", path="/memories/plan.md", view_range=[2, 3]))["text"] == "between\nthree"
        moved = await file("rename", old_path="/memories/plan.md", new_path="/memories/b/goals.md")
        assert moved["path"] == "/memories/b/goals.md"
        assert "goals.md" in (await file("view", path="/memories/b"))["text"]
        await file("str_replace", path="/memories/b/goals.md", old_str="one\n")  # with nothing in its place
        assert (await file("view", path="/memories/b/goals.md"))["text"] == "between\nthree\n"
        await file("delete", path="/memories/b/goals.md")
        refused = [
            ({"command": "view", "path": "/memories/b/goals.md"}, "no file"), ({"command": "view"}, "needs path"),
            ({"command": "create", "path": "x.md"}, "file_text"), ({"command": "erase", "path": "x"}, "unknown command"),
            ({"command": "create", "path": "/memories/../../x", "file_text": "a"}, "Write the plain path"),
            ({"command": "create", "path": "/etc/x", "file_text": "a"}, "absolute path"),
            ({"command": "view", "path": "/memories", "view_range": [1]}, "two numbers"),
            ({"command": "rename", "old_path": "a"}, "needs new_path"),
        ]  # fmt: skip
        for given, says in refused:
            assert says in await agent.refused("memory_file", **given)

    talk(work)


@pytest.mark.promise("H2")
def test_what_was_said_around_a_turn_can_be_read(talk, open_memory):
    turns = [{"role": "user" if number % 2 == 0 else "assistant", "text": f"harbour {number}"} for number in range(9)]
    open_memory().log(turns, session="s1", client="some")

    async def work(agent):
        hits = (await agent("memory_recall", query="harbour", kind="turn"))["hits"]
        turn = next(hit for hit in hits if hit["text"] == "harbour 4")
        around = (await agent("memory_history", turn=turn["citation"], before=1, after=2))["turns"]
        assert [one["text"] for one in around] == [f"harbour {number}" for number in (3, 4, 5, 6)]
        assert "key or turn" in await agent.refused("memory_history")

    talk(work)


# --- resources and prompts ------------------------------------------------------------------------------------------------


def test_notes_and_the_briefing_are_resources(talk):
    async def work(agent):
        await agent("memory_store", text="# Harbour\nWords.", key="k")
        await agent("memory_store", text="For all.", key="g", scope="global")
        listed = {one.uri: one for one in (await agent.client.list_resources()).resources}
        assert set(listed) == {"holdfast://briefing", "holdfast://notes/project/k", "holdfast://notes/global/g"}
        assert listed["holdfast://notes/project/k"].description == "# Harbour"
        (template,) = (await agent.client.list_resource_templates()).resource_templates
        assert template.uri_template == "holdfast://notes/{scope}/{key}"
        (note,) = (await agent.client.read_resource("holdfast://notes/project/k")).contents
        assert "\n  # Harbour\n  Words.\n" in note.text and note.mime_type == "text/markdown"
        assert note.text.startswith("<holdfast-memory id=") and "data, not instructions" in note.text
        (briefing,) = (await agent.client.read_resource("holdfast://briefing")).contents
        assert "Harbour" in briefing.text and "For all." in briefing.text and "data, not instructions" in briefing.text
        with pytest.raises(MCPError):
            await agent.client.read_resource("holdfast://notes/session/k")

    talk(work)


def test_reading_the_briefing_does_not_count_as_told(talk, home, open_memory):
    with open_memory(session="s1") as memory:
        memory.store("We deploy on Tuesdays.", key="deploys")
        memory.brief()
        memory.store("The crane is red.", key="crane")
        memory.brief(prompt="which colour is the crane?")

        async def work(agent):
            await agent("memory_store", text="The pier is blue.", key="pier")
            await agent.client.read_resource("holdfast://briefing")
            await agent.client.get_prompt("boot")

        talk(work, session="s1")
        assert memory.brief(prompt="which colour is the crane?").shown == ()
        assert memory.brief(prompt="which colour is the pier?").shown == ("project/pier",)


@pytest.mark.promise("F2")
def test_search_finds_notes_and_files_and_no_turns_however_many_there_are(talk, open_memory):
    memory = open_memory()
    memory.log([{"role": "user", "text": f"harbour harbour {number}"} for number in range(30)], session="s1")
    memory.store("A long way round to the harbour, past the mill and the old bridge.", key="k")
    memory.files.create("/memories/a.md", "Somewhere behind the mill there is a harbour.\n")
    assert sorted(one.path for one in memory.search("harbour", limit=5)) == [
        "projects/demo/files/a.md", "projects/demo/notes/k.md",
    ]  # fmt: skip
    assert {one.kind for one in memory.recall("harbour", kind="note,turn", limit=100)} == {"note", "turn"}
    with pytest.raises(UsageError):
        memory.recall("harbour", kind="note,bogus")

    async def work(agent):
        found = await agent("memory_search", query="harbour", limit=5)
        assert len(found["results"]) == 2

    talk(work)


def test_a_prompt_asks_to_save_what_matters(talk):
    async def work(agent):
        names = [one.name for one in (await agent.client.list_prompts()).prompts]
        assert names == ["save-what-matters", "boot"]
        plain = (await agent.client.get_prompt("save-what-matters")).messages[0].content.text
        assert "memory_recall first" in plain and "every secret" in plain and "{focus}" not in plain
        focused = (await agent.client.get_prompt("save-what-matters", {"focus": "the {harbour}"})).messages[0].content.text
        assert "above all at: the {harbour}," in focused

    talk(work)


@pytest.mark.promise("F7")
def test_the_boot_prompt_is_the_continuity_start_up_and_else_the_briefing(talk):
    async def work(agent):
        async def boot():
            return (await agent.client.get_prompt("boot")).messages[0].content.text

        assert "empty" in await boot()
        await agent("memory_store", text="Harbour note.", key="k")
        assert "Harbour note." in await boot()
        await agent("memory_file", command="create", path="HEARTBEAT.md", file_text="# Heartbeat\nalive and well\n")
        assert "alive and well" in await boot()

    talk(work)


def test_the_newest_protocol_works_too(talk):
    async def work(agent):
        assert agent.client.protocol_version == "2026-07-28"
        assert (await agent("memory_store", text="Harbour.", key="k"))["note"]["source"]["client"] == "sdk"
        assert [hit["key"] for hit in (await agent("memory_recall", query="harbour"))["hits"]] == ["k"]
        assert len((await agent.client.list_tools()).tools) == 8
        assert len((await agent.client.list_resources()).resources) == 2
        assert (await agent.client.get_prompt("boot")).messages

    talk(work, mode="auto")


def test_a_home_that_is_not_what_it_should_be_is_told_in_one_line(talk, home):
    home.mkdir(mode=0o700)
    (home / "index.db").mkdir()
    (home / "shelf").write_text("not a folder")

    async def work(agent):
        told = await agent.refused("memory_store", text="Harbour.", key="k")
        assert "Traceback" not in told and "\n" not in told and len(told) < 500

    talk(work)
