"""The memory tool of the Anthropic SDK: six commands with the documented answers, on files that everything else finds."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from frameworks import need_framework

need_framework("anthropic")

from anthropic import Anthropic, AsyncAnthropic
from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_model import ScriptedModel

from holdfast import Memory, UsageError
from holdfast.adapters.anthropic import AsyncHoldfastMemoryTool, HoldfastMemoryTool
from holdfast.home import Lock

EDITED = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
FOLDER = "Here're the files and directories up to 2 levels deep in {}, excluding hidden items and node_modules:"


@pytest.fixture
def tool(memory):
    return HoldfastMemoryTool(memory)


@pytest.fixture
def model(monkeypatch):
    """Return a function that starts a model with a script, to which the SDK connects."""
    with_model = []

    def start(*steps):
        model = ScriptedModel(*steps)
        with_model.append(model.__enter__())
        monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "of-a-test")
        return model

    yield start
    for model in with_model:
        model.__exit__()


def call(tool, command, **arguments):
    return tool.call({"command": command, **arguments})


def error_of(tool, command, **arguments):
    with pytest.raises(ToolError) as raised:
        call(tool, command, **arguments)
    return raised.value.content


# --- the commands ---------------------------------------------------------------------------------------------------------


def test_the_six_commands_answer_as_documented_on_every_kind_of_memory(any_memory):
    tool = HoldfastMemoryTool(any_memory)
    assert call(tool, "view", path="/memories") == f"{FOLDER.format('/memories')}\n0B\t/memories"
    plan = "/memories/plans/deploys.md"
    assert (
        call(tool, "create", path=plan, file_text="# Deploys\nWe deploy on Mondays.\n")
        == f"File created successfully at: {plan}"
    )
    numbered = f"Here's the content of {plan} with line numbers:\n     1\t# Deploys\n     2\tWe deploy on Mondays.\n     3\t"
    assert call(tool, "view", path=plan) == numbered
    replaced = call(tool, "str_replace", path=plan, old_str="Mondays", new_str="Tuesdays")
    assert replaced == f"{EDITED}\n     1\t# Deploys\n     2\tWe deploy on Tuesdays.\n     3\t"
    assert (
        call(tool, "insert", path=plan, insert_line=2, insert_text="Never on Fridays.\n") == f"The file {plan} has been edited."
    )
    lines = call(tool, "view", path=plan, view_range=[2, 3]).split("\n")
    assert lines[1:] == ["     2\tWe deploy on Tuesdays.", "     3\tNever on Fridays."]
    moved = "/memories/deploys.md"
    assert call(tool, "rename", old_path=plan, new_path=moved) == f"Successfully renamed {plan} to {moved}"
    listing = call(tool, "view", path="/memories")
    assert listing == f"{FOLDER.format('/memories')}\n51B\t/memories\n51B\t/memories/deploys.md\n0B\t/memories/plans/"
    assert [hit.key for hit in any_memory.recall("when do we deploy")] == ["deploys.md"]
    assert call(tool, "delete", path=moved) == f"Successfully deleted {moved}"
    assert call(tool, "delete", path="/memories/plans") == "Successfully deleted /memories/plans"
    assert call(tool, "view", path="/memories") == f"{FOLDER.format('/memories')}\n0B\t/memories"


@pytest.mark.parametrize(
    ("command", "arguments", "error"),
    [
        ("view", {"path": "/memories/no"}, "The path /memories/no does not exist. Please provide a valid path."),
        ("view", {"path": "/memories/a.md/b"}, "The path /memories/a.md/b does not exist. Please provide a valid path."),
        ("create", {"path": "/memories/a.md", "file_text": "x"}, "Error: File /memories/a.md already exists"),
        ("create", {"path": "/memories/folder", "file_text": "x"}, "Error: File /memories/folder already exists"),
        ("create", {"path": "/memories//x", "file_text": "x"}, "Error: The path /memories//x has an empty part"),
        (
            "str_replace", {"path": "/memories/no", "old_str": "a", "new_str": "b"},
            "Error: The path /memories/no does not exist. Please provide a valid path.",
        ),
        (
            "str_replace", {"path": "/memories/folder", "old_str": "a", "new_str": "b"},
            "Error: The path /memories/folder does not exist. Please provide a valid path.",
        ),
        (
            "str_replace", {"path": "/memories/a.md", "old_str": "four", "new_str": "b"},
            "No replacement was performed, old_str `four` did not appear verbatim in /memories/a.md.",
        ),
        (
            "str_replace", {"path": "/memories/a.md", "old_str": "", "new_str": "b"},
            "No replacement was performed, old_str `` did not appear verbatim in /memories/a.md.",
        ),
        (
            "str_replace", {"path": "/memories/a.md", "old_str": "one", "new_str": "b"},
            "No replacement was performed. Multiple occurrences of old_str `one` in lines: 1, 3. Please ensure it is unique",
        ),
        (
            "insert", {"path": "/memories/no", "insert_line": 0, "insert_text": "x"},
            "Error: The path /memories/no does not exist",
        ),
        (
            "insert", {"path": "/memories/a.md", "insert_line": 4, "insert_text": "x"},
            "Error: Invalid `insert_line` parameter: 4. It should be within the range of lines of the file: [0, 3]",
        ),
        ("delete", {"path": "/memories/no"}, "Error: The path /memories/no does not exist"),
        ("rename", {"old_path": "/memories/no", "new_path": "/memories/b"}, "Error: The path /memories/no does not exist"),
        (
            "rename", {"old_path": "/memories/a.md", "new_path": "/memories/folder"},
            "Error: The destination /memories/folder already exists",
        ),
    ],
)  # fmt: skip
def test_each_documented_error_has_its_text_and_changes_nothing(tool, command, arguments, error):
    call(tool, "create", path="/memories/a.md", file_text="one\ntwo\none\n")
    call(tool, "create", path="/memories/folder/b.md", file_text="b")
    before = call(tool, "view", path="/memories")
    assert error_of(tool, command, **arguments) == error
    assert call(tool, "view", path="/memories") == before


@pytest.mark.parametrize(
    "path",
    [
        "",
        "memories",
        "/memories2/x",
        "/etc/passwd",
        "/memories/../x",
        "/memories/a/../../b",
        "/memories/%2e%2e/b",
        "/memories/.git",
    ],
)
def test_a_path_outside_of_the_tree_is_an_error(tool, path):
    assert error_of(tool, "view", path=path).startswith(("Error: ", "The path "))
    assert error_of(tool, "create", path=path, file_text="x").startswith("Error: ")
    assert error_of(tool, "delete", path=path).startswith("Error: ")
    assert error_of(tool, "rename", old_path=path, new_path="/memories/x").startswith("Error: ")


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("view", {}),
        ("view", {"path": 3}),
        ("view", {"path": "/memories/a.md", "view_range": [1]}),
        ("view", {"path": "/memories/a.md", "view_range": [9, 12]}),
        ("view", {"path": "/memories/a.md", "view_range": [2, 1]}),
        ("create", {"path": "/memories/x"}),
        ("create", {"path": "/memories/x", "file_text": None}),
        ("insert", {"path": "/memories/a.md", "insert_line": "one", "insert_text": "x"}),
        ("insert", {"path": "/memories/a.md", "insert_text": "x"}),
        ("rename", {"old_path": "/memories/a.md"}),
        ("delete", {"path": "/memories"}),
    ],
)
def test_a_wrong_argument_is_an_error_for_the_model(tool, command, arguments):
    call(tool, "create", path="/memories/a.md", file_text="one\n")
    assert error_of(tool, command, **arguments).startswith("Error: ")


def test_a_view_shows_two_levels_with_sizes_and_without_node_modules(tool, memory):
    for path in ("a/b/c/d.md", "a/node_modules/x.js", "z.md"):
        memory.files.create(path, "x" * 1536)
    rows = [
        f"{FOLDER.format('/memories')}",
        "3K\t/memories",
        "1.5K\t/memories/a/",
        "1.5K\t/memories/a/b/",
        "1.5K\t/memories/z.md",
    ]
    assert call(tool, "view", path="/memories").split("\n") == rows
    assert call(tool, "view", path="/memories/a/b/").split("\n")[1:] == [
        "1.5K\t/memories/a/b", "1.5K\t/memories/a/b/c/", "1.5K\t/memories/a/b/c/d.md",
    ]  # fmt: skip


def test_a_secret_is_rejected_with_an_error_or_masked(memory):
    text = "The key is ghp_" + "a1B2c3D4e" * 4
    error = error_of(HoldfastMemoryTool(memory), "create", path="/memories/a.md", file_text=text)
    assert "github-pat" in error and "a1B2c3D4e" not in error
    tool = HoldfastMemoryTool(memory, redact=True)
    call(tool, "create", path="/memories/a.md", file_text=text)
    assert memory.files.view("/memories/a.md") == "The key is [REDACTED:github-pat]"
    assert memory.files.view("/memories") == "a.md"


@settings(max_examples=30, deadline=None)
@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0\r"), max_size=40))
def test_a_text_is_viewed_as_it_was_created(tmp_path_factory, text):
    with Memory(tmp_path_factory.mktemp("home"), project="shop") as memory:
        tool = HoldfastMemoryTool(memory)
        call(tool, "create", path="/memories/a.md", file_text=text)
        lines = [f"{number:>6}\t{line}" for number, line in enumerate(text.split("\n"), 1)]
        assert call(tool, "view", path="/memories/a.md").split("\n", 1)[1] == "\n".join(lines)


def test_a_scope_has_files_of_its_own(home):
    with Memory(home, project="shop", agent="reviewer") as memory:
        call(HoldfastMemoryTool(memory, scope="agent"), "create", path="/memories/a.md", file_text="mine")
        assert memory.files.view("/memories", scope="agent") == "a.md"
        assert memory.files.view("/memories") == ""


def test_clearing_deletes_every_file_of_the_scope(tool, memory):
    for path in ("a.md", "b/c.md"):
        memory.files.create(path, "x")
    assert tool.clear_all_memory() == "All memory cleared"
    assert memory.files.view("/memories") == ""


def test_a_memory_of_another_kind_is_rejected():
    with pytest.raises(UsageError, match="memory must be a Memory, not str"):
        HoldfastMemoryTool("~/.holdfast")


# --- several writers ------------------------------------------------------------------------------------------------------


def in_parallel(home, count, work):
    """Run a function with a tool of its own and a number in several threads; return the results, errors included."""

    def run(number):
        with Memory(home, project="shop") as memory:
            try:
                return work(HoldfastMemoryTool(memory), number)
            except ToolError as error:
                return error.content

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def test_of_several_writers_that_create_a_file_one_succeeds(home, memory):
    answers = in_parallel(home, 6, lambda tool, number: call(tool, "create", path="/memories/a.md", file_text=f"by {number}"))
    winner = answers.index("File created successfully at: /memories/a.md")
    assert [answer for number, answer in enumerate(answers) if number != winner] == [
        "Error: File /memories/a.md already exists"
    ] * 5
    assert memory.files.view("/memories/a.md") == f"by {winner}"
    assert memory.files.view("/memories") == "a.md"


def test_no_edit_of_several_writers_is_lost(home, memory):
    memory.files.create("a.md", "".join(f"old{number}\n" for number in range(4)))

    def edit(tool, number):
        call(tool, "str_replace", path="/memories/a.md", old_str=f"old{number}", new_str=f"new{number}")
        return call(tool, "insert", path="/memories/a.md", insert_line=0, insert_text=f"first{number}")

    assert in_parallel(home, 4, edit) == ["The file /memories/a.md has been edited."] * 4
    lines = memory.files.view("a.md").split("\n")
    assert sorted(lines) == ["", *[f"first{number}" for number in range(4)], *[f"new{number}" for number in range(4)]]


# --- programs -------------------------------------------------------------------------------------------------------------

STEPS = (
    ("memory", {"command": "view", "path": "/memories"}),
    ("memory", {"command": "create", "path": "/memories/customer.md", "file_text": "Ann prefers tea.\n"}),
    ("memory", {"command": "create", "path": "/memories/customer.md", "file_text": "Ann prefers coffee.\n"}),
    ("memory", {"command": "str_replace", "path": "/memories/customer.md", "old_str": "tea", "new_str": "coffee"}),
    "Noted.",
)
RESULTS = [
    f"{FOLDER.format('/memories')}\n0B\t/memories",
    "File created successfully at: /memories/customer.md",
    "Error: File /memories/customer.md already exists",
    f"{EDITED}\n     1\tAnn prefers coffee.\n     2\t",
]


def test_the_tool_runner_of_the_sdk_uses_the_tool(memory, model):
    server = model(*STEPS)
    client = Anthropic()
    runner = client.beta.messages.tool_runner(
        model="claude-sonnet-5-5",
        max_tokens=1024,
        messages=[{"role": "user", "content": "Remember that I like coffee"}],
        tools=[HoldfastMemoryTool(memory, cache_control={"type": "ephemeral"})],
    )
    message = runner.until_done()
    assert message.content[0].text == "Noted."
    assert server.tool_results == RESULTS
    assert b'"type":"memory_20250818","name":"memory"' in server.requests[0].body.replace(b'": ', b'":').replace(b", ", b",")
    assert [hit.key for hit in memory.recall("what does Ann prefer")] == ["customer.md"]
    client.close()


def test_the_async_tool_runner_uses_the_async_tool(memory, model):
    server = model(*STEPS)

    async def main():
        async with AsyncAnthropic() as client:
            runner = client.beta.messages.tool_runner(
                model="claude-sonnet-5-5",
                max_tokens=1024,
                messages=[{"role": "user", "content": "Remember that I like coffee"}],
                tools=[AsyncHoldfastMemoryTool(memory)],
            )
            return await runner.until_done()

    assert asyncio.run(main()).content[0].text == "Noted."
    assert server.tool_results == RESULTS


def test_the_async_tool_has_every_command(memory):
    tool = AsyncHoldfastMemoryTool(memory)

    async def main():
        await tool.call({"command": "create", "path": "/memories/a.md", "file_text": "one\n"})
        await tool.call({"command": "insert", "path": "/memories/a.md", "insert_line": 1, "insert_text": "two"})
        await tool.call({"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/b.md"})
        text = await tool.call({"command": "view", "path": "/memories/b.md"})
        await tool.call({"command": "delete", "path": "/memories/b.md"})
        memory.files.create("c.md", "c")
        return text, await tool.clear_all_memory()

    text, cleared = asyncio.run(main())
    assert text.endswith("     1\tone\n     2\ttwo\n     3\t") and cleared == "All memory cleared"
    assert memory.files.view("/memories") == ""


def test_the_async_tool_does_not_block_the_event_loop(memory, home):
    memory.files.create("a.md", "one")
    tool = AsyncHoldfastMemoryTool(memory)

    async def main():
        with Lock(str(home), "projects+shop", 10):  # the command waits for this lock, and the loop goes on
            task = asyncio.create_task(tool.call({"command": "delete", "path": "/memories/a.md"}))
            await asyncio.sleep(0.1)
            assert not task.done()
        return await task

    assert asyncio.run(main()) == "Successfully deleted /memories/a.md"


def test_the_tools_implement_every_method_of_the_sdk(memory):
    assert isinstance(HoldfastMemoryTool(memory), BetaAbstractMemoryTool)
    assert isinstance(AsyncHoldfastMemoryTool(memory), BetaAsyncAbstractMemoryTool)
    assert HoldfastMemoryTool(memory).to_dict() == {"type": "memory_20250818", "name": "memory"}


def test_the_example_runs(run_example):
    assert "found by search: customer.md" in run_example("anthropic_memory_tool.py")


def test_the_code_of_the_page_prints_what_the_page_shows(run_page):
    note = {"command": "create", "path": "/memories/customer.md", "file_text": "Ann prefers coffee."}
    with ScriptedModel(("memory", note), "Noted.") as server:
        run_page("anthropic.md", ANTHROPIC_BASE_URL=server.url, ANTHROPIC_API_KEY="of-a-test")
