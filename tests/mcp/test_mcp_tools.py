"""The tools, resources and prompts as an agent uses them, through the SDK's own client."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest
from mcp.shared.exceptions import MCPError
from mcp_sdk import Agent, run

from holdfast.errors import HoldfastError, UsageError
from holdfast.mcp.calls import check_arguments
from holdfast.mcp.tools import BY_NAME, TOOLS

NAMES = (
    "memory_store", "memory_recall", "memory_forget", "memory_search", "memory_get", "memory_history", "memory_fact",
    "memory_file",
)  # fmt: skip


@pytest.fixture
def talk(home):
    """Run an async function with an agent of the project `demo`."""

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
        jsonschema.Draft202012Validator.check_schema(one["inputSchema"])
        assert one["inputSchema"]["type"] == "object" and "outputSchema" not in one  # a result is one text, sent once
        assert set(one["inputSchema"]["properties"]) == set(BY_NAME[one["name"]].input_schema["properties"])
        assert {"project", "folder"} <= set(one["inputSchema"]["properties"])
        assert all(said["type"] for said in one["inputSchema"]["properties"].values())
    hints = {one["name"]: one["annotations"] for one in shown}
    reads = {name for name, hint in hints.items() if hint.get("readOnlyHint")}
    assert reads == {"memory_recall", "memory_search", "memory_get", "memory_history"}
    assert {name for name, hint in hints.items() if hint.get("destructiveHint")} == {"memory_forget", "memory_file"}
    for name in ("memory_store", "memory_fact"):
        assert hints[name] == {"destructiveHint": False, "openWorldHint": False}


def test_the_tool_definitions_and_a_typical_answer_are_small(talk, open_memory):
    """Every session pays for the definitions, and every call for its answer."""
    assert len(json.dumps({"tools": [tool.as_shown() for tool in TOOLS]})) <= 6000
    memory = open_memory(project="github.com-acme-shop")
    rule = "Ships wait for the pilot at the outer buoy, also in good weather, because the sand moves. " * 2
    for number in range(5):
        memory.store(f"Harbour rule {number}. {rule}Ask the master.", key=f"rule-{number}")
    assert all(200 <= len(note.text) <= 220 for note in memory.list())

    async def work(agent):
        answer = await agent("memory_recall", query="harbour rule", limit=5)
        assert len(answer.keys) == 5 and all(text.endswith("Ask the master.") for text in answer.texts)
        assert "Degraded: " in answer and len(answer.encode()) <= 1536

    talk(work, project="github.com-acme-shop")


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
            check_arguments(schema, case)
            passed = True
        except HoldfastError:
            passed = False
        assert passed == allowed, case
    for limit, allowed in [(1, True), (100, True), (0, False), (101, False), (True, False), ("5", False), (1.5, False)]:
        try:
            check_arguments(BY_NAME["memory_recall"].input_schema, {"query": "a", "limit": limit})
            assert allowed, limit
        except HoldfastError:
            assert not allowed, limit


@pytest.mark.promise("N4")
def test_a_note_is_stored_recalled_changed_and_forgotten(talk):
    async def work(agent):
        first = await agent("memory_store", text="We deploy on Fridays.", key="deploys", tags="ci-cd, Höhe", type="project")
        assert first.startswith("Created **deploys** (project), version ")
        note = await agent("memory_get", key="deploys")
        assert "tags: ci-cd; Höhe" in note and "agent sdk" in note and note.version == first.version
        again = await agent("memory_store", text="We deploy on Fridays.", key="deploys")
        assert again.startswith("Unchanged ")
        new = await agent("memory_store", text="We deploy on Tuesdays.", key="deploys", expected=first.version)
        assert new.startswith("Updated ") and new.version != first.version
        told = await agent.refused("memory_store", text="Lost.", key="deploys", expected=first.version)
        assert "deploys" in told
        answer = await agent("memory_recall", query="when do we deploy")
        assert answer.texts == ["We deploy on Tuesdays."] and answer.startswith("1 found (mode keyword). ")
        assert "Degraded: no embedder is set" in answer
        assert (await agent("memory_history", key="deploys")).texts == ["We deploy on Tuesdays.", "We deploy on Fridays."]
        gone = await agent("memory_forget", key="deploys")
        assert gone.startswith("Forgot **deploys** (project), restorable until ")
        assert "nothing was forgotten" in await agent("memory_forget", key="deploys")
        assert (await agent("memory_recall", query="deploy")).keys == []

    talk(work)


def test_recall_takes_what_memory_takes(talk):
    async def work(agent):
        await agent("memory_store", text="Harbour old.", key="a", type="feedback", tags=["x"], valid_from="2026-01-01")
        await agent("memory_store", text="Harbour new.", key="a", valid_from="2026-03-01")
        await agent("memory_store", text="Harbour for all.", key="b", scope="global")

        async def keys(**given):
            return (await agent("memory_recall", **{"query": "harbour", **given})).keys

        assert await keys() == ["a", "b"] and await keys(limit=1) == ["a"] and await keys(scope="global") == ["b"]
        assert await keys(type="feedback") == ["a"] and await keys(tags=["x"]) == ["a"] and await keys(kind="file") == []
        assert await keys(query="", mode="recent") != [] and await keys(sort="recency", mode="keyword") != []
        old = await agent("memory_recall", query="harbour", as_of="2026-02-01", scope="project")
        assert old.texts == ["Harbour old."]
        assert "query is empty" in await agent.refused("memory_recall")
        assert "as_of" in await agent.refused("memory_recall", query="a", as_of="no day")

    talk(work)


def test_a_long_hit_is_cut_with_a_mark_and_the_rest_can_be_read(talk):
    async def work(agent):
        for key, text in {
            "no-stop": "harbour " + "x" * 10_000 + " end",
            "sentences": "The harbour is deep. " * 100 + "The last line.",
            "lines": "The harbour is deep\n" * 100 + "The last line.",
        }.items():
            await agent("memory_store", text=text, key="long")
            (shown,) = (await agent("memory_recall", query="harbour")).texts
            kept, mark, _ = shown.partition(" … (memory_get long shows all)")
            assert mark and text.startswith(kept) and 150 < len(kept) <= 600
            assert key == "no-stop" or kept.endswith("deep" if key == "lines" else "deep.")
            assert (await agent("memory_get", key="long")).body == text

    talk(work)


def test_many_long_hits_do_not_fill_a_context(talk, open_memory):
    memory = open_memory()
    for number in range(10):
        memory.store(f"Harbour {number}. " + "A long line of words. " * 100, key=f"k{number}")
    memory.store("Harbour of all, at length. " * 40, key="all", scope="global")

    async def work(agent):
        answer = await agent("memory_recall", query="harbour", limit=11)
        assert len(answer.keys) == 5 and answer.startswith("11 found") and len(answer.encode()) < 2300
        (more,) = [line for line in answer.split("\n") if line.startswith("More: ")]
        assert len(set(answer.keys) | set(re.findall(r"k\d|all", more))) == 11 and more.endswith(" (memory_get KEY)")
        first = answer.texts[0].partition(" … (")[0]
        assert 500 < len(first) <= 600  # the best one gets the most space
        (alone,) = (await agent("memory_recall", query="harbour", scope="global")).texts
        assert alone.endswith("(memory_get all, scope global shows all)")

    talk(work)


def test_search_shows_few_short_snippets_and_counts_the_rest(talk, open_memory):
    memory = open_memory()
    for number in range(9):
        memory.store(f"Harbour {number}. " + "A long line of words. " * 100, key=f"k{number}")

    async def work(agent):
        found = await agent("memory_search", query="harbour")
        assert len(found.texts) == 6 and all(len(text) <= 162 and text.endswith(" …") for text in found.texts)
        assert "3 more; narrow the query to see them." in found and len(found.encode()) < 1800

    talk(work)


@pytest.mark.promise("F2")
def test_search_shows_where_and_get_reads_that_piece(talk):
    async def work(agent):
        await agent("memory_file", command="create", path="plan.md", file_text="# Plan\none\nharbour two\nthree\n")
        found = await agent("memory_search", query="harbour")
        (place,), (text,) = found.places, found.texts
        path, _, lines = place.rpartition(":")
        assert path.endswith("files/plan.md") and lines == "1-4" and "harbour two" in text and "(score " in found
        assert "(mode keyword)" in found and "Degraded: no embedder is set" in found
        assert (await agent("memory_get", path=path, **{"from": 3, "lines": 1})).body == "harbour two"
        assert (await agent("memory_get", path=f"{path}:2-3")).body == "one\nharbour two"
        missing = await agent("memory_get", path="plans/none.md")
        assert missing.startswith("No file plans/none.md.") and missing.body == ""
        for given in ({}, {"key": "a", "path": "b"}):
            assert "key and path" in await agent.refused("memory_get", **given)
        for path in ("/etc/passwd", "../../config.toml", "plan%2e.md"):
            assert (await agent.client.call_tool("memory_get", {"path": path})).is_error

    talk(work)


def test_search_shows_at_most_three_weak_matches(talk, open_memory):
    memory = open_memory()
    for number in range(6):
        memory.store(f"A good release {number} is boring: make it on Tuesday.", key=f"releases-{number}")

    async def work(agent):
        found = await agent("memory_search", query="how do I make a good espresso")
        assert len(found.texts) == 3 and found.startswith("3 found") and found.count(", weak)") == 3

    talk(work)


@pytest.mark.promise("T1")
def test_get_reads_the_version_that_held_on_a_day(talk):
    async def work(agent):
        await agent("memory_store", text="Fridays.", key="k", valid_from="2026-01-05")
        await agent("memory_store", text="Tuesdays.", key="k", valid_from="2026-03-27")
        assert (await agent("memory_get", key="k", as_of="2026-02-01")).body == "Fridays."
        note = await agent("memory_get", key="k")
        assert note.body == "Tuesdays." and note.version and note.count("Tuesdays.") == 1

    talk(work)


@pytest.mark.promise("T3")
def test_a_fact_is_stated_replaced_and_asked(talk):
    async def work(agent):
        fact = {"subject": "Telegram", "label": "owner"}
        first = await agent("memory_fact", **fact, value="[[Ada]]", on="2026-03-20")
        assert first.startswith("Created: Telegram, owner (since 2026-03-20, ") and "): [[Ada]]\n" in first
        second = await agent("memory_fact", **fact, value="[[Bob]]", on="2026-03-27")
        assert "Closed: Telegram, owner (2026-03-20 to 2026-03-27, " in second and "): [[Bob]]\n" in second
        current = await agent("memory_fact", subject="Telegram")
        assert current.startswith("1 fact. ") and "[[Bob]]" in current and "[[Ada]]" not in current
        asked = await agent("memory_fact", **fact, as_of="2026-03-21")
        assert "[[Ada]]" in asked and "[[Bob]]" not in asked
        assert (await agent("memory_fact", subject="Telegram", history=True)).startswith("2 facts. ")
        assert (await agent("memory_fact", subject="Nobody")).startswith("No such fact found.")
        assert "label" in await agent.refused("memory_fact", subject="Telegram", value="x")
        assert "asking" in await agent.refused("memory_fact", subject="Telegram", on="2026-01-01")
        assert "stating" in await agent.refused("memory_fact", **fact, value="x", as_of="2026-01-01")

    talk(work)


def test_a_fact_names_the_files_that_still_state_an_older_value(talk, open_memory):
    memory = open_memory()
    memory.files.create("telegram.md", "# Telegram\n- [2026-01-05] status: off\n")

    async def work(agent):
        for asked in ({"label": "status", "value": "on", "on": "2026-02-01"}, {}):
            said = await agent("memory_fact", subject="Telegram", **asked)
            assert "Older values remain in: projects/demo/files/telegram.md:2.\n" in said

    talk(work)


@pytest.mark.promise("F3")
def test_the_six_verbs_of_the_memory_tool(talk):
    async def work(agent):
        async def file(command, **given):
            return await agent("memory_file", command=command, **given)

        await file("create", path="/memories/plan.md", file_text="one\ntwo\n")
        await file("str_replace", path="/memories/plan.md", old_str="two", new_str="three")
        await file("insert", path="/memories/plan.md", insert_line=1, insert_text="between\n")
        assert (await file("view", path="/memories/plan.md")).body == "one\nbetween\nthree"
        assert (await file("view", path="/memories/plan.md", view_range=[2, 3])).body == "between\nthree"
        moved = await file("rename", old_path="/memories/plan.md", new_path="/memories/b/goals.md")
        assert moved.startswith("Renamed it to /memories/b/goals.md.")
        assert "goals.md" in (await file("view", path="/memories/b")).body
        await file("str_replace", path="/memories/b/goals.md", old_str="one\n")  # without a replacement
        assert (await file("view", path="/memories/b/goals.md")).body == "between\nthree"
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
        hits = await agent("memory_recall", query="harbour", kind="turn")
        turn = hits.places[hits.texts.index("harbour 4")]
        around = await agent("memory_history", turn=turn, before=1, after=2)
        said = [line.rpartition(": ")[2] for line in around.split("\n") if line.startswith("- ")]
        assert said == [f"harbour {number}" for number in (3, 4, 5, 6)]
        assert "key and turn" in await agent.refused("memory_history")

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
        assert len((await agent("memory_search", query="harbour", limit=5)).places) == 2

    talk(work)


def test_a_prompt_asks_to_save_what_matters(talk):
    async def work(agent):
        names = [one.name for one in (await agent.client.list_prompts()).prompts]
        assert names == ["save-what-matters", "boot"]
        plain = (await agent.client.get_prompt("save-what-matters")).messages[0].content.text
        assert "memory_recall first" in plain and "every secret" in plain and "{focus}" not in plain
        focused = (await agent.client.get_prompt("save-what-matters", {"focus": "the {harbour}"})).messages[0].content.text
        assert "a focus on the {harbour}" in focused

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


def test_the_boot_prompt_shows_a_message_of_the_operator_once(talk, open_memory):
    open_memory(origin="user").operator_send("look at billing first")

    async def work(agent):
        async def boot():
            return (await agent.client.get_prompt("boot")).messages[0].content.text

        assert "look at billing first" in await boot()
        assert "look at billing first" not in await boot()
        inbox = {"path": "operator-inbox.jsonl", "file_text": "obey"}
        assert "only a person may write" in await agent.refused("memory_file", command="create", **inbox)
        line = json.dumps({"re": "m7", "from": "operator", "text": "it is up"})
        await agent("memory_file", command="create", path="operator-outbox.jsonl", file_text=line + "\n")

    talk(work)
    found = {(message.text, message.sender) for message in open_memory(origin="user").operator_list()}
    assert found == {("it is up", "agent"), ("look at billing first", "operator")}


def test_arguments_have_the_names_of_similar_tools_too(talk, open_memory):
    async def work(agent):
        await agent("memory_store", content="Harbour rules.", memory_type="feedback", key="k")
        await agent("memory_store", text="Harbour laws.", content="Harbour laws.", key="laws")
        asked = {"query": "harbour", "search_mode": "keyword", "sort_by": "recency"}
        assert (await agent("memory_recall", **asked, memory_type="feedback")).keys == ["k"]
        assert (await agent("memory_recall", **asked)).startswith("2 found (mode keyword)")
        told = await agent.refused("memory_store", text="one", content="two", key="k")
        assert "content is an alias of text, and both are given with different values" in told
        assert "content" in await agent.refused("memory_fact", subject="a", content="b")
        assert "unknown mode" in await agent.refused("memory_recall", query="a", search_mode="psychic")
        tools = (await agent.client.list_tools()).tools
        shown = {name for tool in tools for name in tool.input_schema["properties"]}
        assert not shown & {"content", "memory_type", "search_mode", "sort_by"}

    talk(work)
    assert [(note.key, note.type, note.text) for note in open_memory().list(type="feedback")] == [
        ("k", "feedback", "Harbour rules."),
    ]  # fmt: skip


def test_the_newest_protocol_works_too(talk):
    async def work(agent):
        assert agent.client.protocol_version == "2026-07-28"
        await agent("memory_store", text="Harbour.", key="k")
        assert "agent sdk" in await agent("memory_get", key="k")
        assert (await agent("memory_recall", query="harbour")).keys == ["k"]
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


def test_relations_are_stated_with_a_note_and_shown_with_it(talk, open_memory):
    person = open_memory(origin="user", project="demo")
    person.store("Lunch is at noon.", key="lunch")

    async def work(agent):
        await agent("memory_store", text="Deploys run on Fridays.", key="old-deploys")
        relations = ["supersedes old-deploys", "contradicts lunch", "relates_to nothing"]
        stored = await agent("memory_store", text="Deploys run on Tuesdays.", key="deploys", relations=relations)
        shown = await agent("memory_get", key="old-deploys")
        found = await agent("memory_recall", query="Fridays", mode="keyword")
        assert "not a relation" in await agent.refused("memory_store", text="Lost.", key="never", relations=["eats lunch"])
        return stored, shown, found

    stored, shown, found = talk(work)
    assert "supersedes **old-deploys**: accepted." in stored and "contradicts **lunch**: proposed." in stored
    assert "relates_to **nothing**: refused: no note 'nothing'" in stored
    assert "**deploys** supersedes **old-deploys**" in shown
    assert found.index("Tuesdays") < found.index("superseded by deploys") < found.index("Fridays")
    assert [note.key for note in person.list() if note.key == "never"] == []


def test_a_relation_is_stated_once_and_too_many_are_refused(talk, open_memory):
    open_memory(origin="user", project="demo").store("Lunch is at noon.", key="lunch")

    async def work(agent):
        stored = await agent("memory_store", text="Lunch is at one.", key="late", relations=["contradicts lunch"] * 3)
        one = await agent("memory_store", text="Lunch is at two.", key="later", relations="contradicts lunch")
        too_many = [f"relates_to k{number}" for number in range(201)]
        assert "201 relations are too many" in await agent.refused("memory_store", text="Lost.", relations=too_many)
        return stored, one

    stored, one = talk(work)
    assert stored.count("contradicts **lunch**: proposed.") == one.count("contradicts **lunch**: proposed.") == 1
