"""The project of an MCP call: found from the client, named in every answer, and never another project."""

from __future__ import annotations

import json
import subprocess
import threading

import pytest
from mcp_sdk import Agent, run

from holdfast import clients
from holdfast.mcp import project_resolution
from holdfast.mcp.project_resolution import LaunchOptions, client_name, from_call_metadata, from_roots

META = "x-some-turn-metadata"


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """Work in a folder, and with an environment, that name no project."""
    folder = tmp_path / "nowhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in clients.names():
        for variable in (*clients.load(name).folder_env, *clients.load(name).session_env, "PLUGIN_ROOT"):
            monkeypatch.delenv(variable, raising=False)
    return folder


@pytest.fixture
def repository(tmp_path):
    """Create repositories."""

    def make(name, url=None):
        folder = tmp_path / name
        folder.mkdir()
        git(folder, "init", "-q")
        git(folder, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "--allow-empty", "-m", "begin")
        if url:
            git(folder, "remote", "add", "origin", url)
        return folder

    return make


def git(folder, *words):
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


async def used(agent, **given):
    return (await agent("memory_recall", query="harbour", **given)).project


@pytest.mark.promise("N1")
def test_where_nothing_tells_the_project_its_writes_are_refused_and_global_works(home, nowhere, truth):
    async def talk():
        async with Agent(home) as agent:
            for tool, given in [
                ("memory_store", {"text": "A note."}), ("memory_store", {"text": "A note.", "scope": "project"}),
                ("memory_fact", {"subject": "A", "label": "b", "value": "c"}),
                ("memory_file", {"command": "create", "path": "a.md", "file_text": "a"}),
                ("memory_get", {"key": "a", "scope": "project"}), ("memory_recall", {"query": "a", "scope": "project"}),
            ]:  # fmt: skip
                told = await agent.refused(tool, **given)
                assert "no project is known" in told and "folder" in told and "global" in told
            assert truth() == {}
            stored = await agent("memory_store", text="Harbour for all.", key="k", scope="global")
            assert "id" not in stored.project and stored.endswith(f"No project is known. {project_resolution.FIX}.")
            assert (await agent("memory_recall", query="harbour")).keys == ["k"]

    run(talk)


def test_every_answer_names_the_project_and_how_it_was_found(home, nowhere, tmp_path):
    async def talk():
        async with Agent(home, roots=[tmp_path]) as agent:
            answers = [
                await agent("memory_store", text="Harbour.", key="k"), await agent("memory_recall", query="harbour"),
                await agent("memory_search", query="harbour"), await agent("memory_get", key="k"),
                await agent("memory_history", key="k"), await agent("memory_fact", subject="A", label="b", value="c"),
                await agent("memory_file", command="create", path="a.md", file_text="a"), await agent("memory_forget", key="k"),
            ]  # fmt: skip
            assert {json.dumps(answer.project, sort_keys=True) for answer in answers} == {
                json.dumps({"id": answers[0].project["id"], "found_by": "roots", "folder": str(tmp_path)}, sort_keys=True)
            }
            assert {answer.split("\n")[-1] for answer in answers} == {f"Project: {answers[0].project['id']}, found by roots."}
            read = await agent.client.read_resource("holdfast://briefing")
            assert read.meta["holdfast/project"]["found_by"] == "roots"
            told = await agent.refused("memory_get", key="no-such-note")
            assert f"Project: {tmp_path}, found by roots" in told

    run(talk)


def test_the_order_is_argument_setting_metadata_roots_environment_and_last_the_working_folder(
    home, nowhere, tmp_path, monkeypatch, repository
):
    places = {name: repository(name) for name in ("argued", "sent", "rooted", "told", "here")}
    meta = {META: {"workspaces": {str(places["sent"]): {}}, "session_id": "s1"}}
    monkeypatch.chdir(places["here"])

    async def talk():
        async with Agent(home, roots=[places["rooted"]]) as agent:
            monkeypatch.setenv("HOLDFAST_PROJECT_DIR", str(places["told"]))
            assert (await used(agent, meta=meta, folder=str(places["argued"])))["folder"] == str(places["argued"])
            assert await used(agent, meta=meta, project="mine") == {"id": "mine", "found_by": "argument"}
            assert (await used(agent, meta=meta))["found_by"] == "call metadata"
            assert (await used(agent))["folder"] == str(places["rooted"])
            monkeypatch.setenv("HOLDFAST_PROJECT", "set")
            assert await used(agent, meta=meta) == {"id": "set", "found_by": "setting"}
            assert (await used(agent, folder=str(places["argued"])))["id"] != "set"
            monkeypatch.delenv("HOLDFAST_PROJECT")
        async with Agent(home) as agent:
            told = await used(agent)
            assert told["found_by"] == "environment" and told["folder"] == str(places["told"]) and told["id"]
            monkeypatch.delenv("HOLDFAST_PROJECT_DIR")
            assert (await used(agent))["found_by"] == "working directory"
        async with Agent(home, surroundings=False) as agent:
            assert "id" not in await used(agent)  # over HTTP our own folder says nothing about the client

    run(talk)


def test_a_folder_below_or_a_marker_is_found_and_a_plain_working_folder_or_a_plugins_is_none(
    home, nowhere, monkeypatch, repository, open_memory, tmp_path
):
    inside = repository("app") / "deep" / "down"
    inside.mkdir(parents=True)
    marked = tmp_path / "marked"
    marked.mkdir()
    id = open_memory(project=None, cwd=marked).mark()

    async def talk():
        async with Agent(home) as agent:
            assert "id" not in await used(agent)
            monkeypatch.chdir(inside)
            assert (await used(agent))["found_by"] == "working directory"
            monkeypatch.chdir(marked)
            assert (await used(agent))["id"] == id
            monkeypatch.chdir(inside)
            monkeypatch.setenv("SOME_PLUGIN_ROOT", str(inside.parent))
            assert "id" not in await used(agent)  # a client that starts its servers in the plugin's own folder

    run(talk)


def test_a_known_clients_variables_tell_the_folder_and_the_session_and_a_strangers_do_not(home, nowhere, monkeypatch, tmp_path):
    client = next(client for client in map(clients.load, clients.names()) if client.folder_env and client.session_env)
    monkeypatch.setenv(client.folder_env[0], str(tmp_path))
    monkeypatch.setenv(client.session_env[0], "their-session")

    async def talk():
        async with Agent(home, client=client.name) as agent:
            stored = await agent("memory_store", text="Harbour.", key="k", scope="session")
            assert stored.project["folder"] == str(tmp_path)
            kept = await agent("memory_get", key="k", scope="session")
            assert "sessions/their-session/notes/k.md" in kept and f"agent {client.name} their-session" in kept
        async with Agent(home, name="somebody-else") as agent:
            assert "id" not in await used(agent)
        monkeypatch.setenv(client.folder_env[0], "${UNEXPANDED}")
        async with Agent(home, client=client.name) as agent:
            assert "id" not in await used(agent)

    run(talk)


def test_roots_are_asked_for_once_and_again_when_they_have_changed(home, nowhere, repository):
    first, second = repository("first"), repository("second")

    async def talk():
        async with Agent(home, roots=[first]) as agent:
            assert agent.roots_requests == 0
            assert (await used(agent))["folder"] == str(first)
            agent.roots = [second]
            assert (await used(agent))["folder"] == str(first) and agent.roots_requests == 1
            with pytest.warns(Warning):
                await agent.client.send_roots_list_changed()
            assert (await used(agent))["folder"] == str(second) and agent.roots_requests == 2

    run(talk)


def test_roots_that_change_while_they_are_told_are_asked_for_again(home, nowhere, repository):
    first, second = repository("first"), repository("second")

    async def talk():
        async with Agent(home, roots=[first]) as agent:

            async def change():
                agent.roots, agent.before_roots = [second], None
                with pytest.warns(Warning):
                    await agent.client.send_roots_list_changed()

            agent.before_roots = change
            assert (await used(agent))["folder"] == str(first)
            assert (await used(agent))["folder"] == str(second) and agent.roots_requests == 2

    run(talk)


def test_who_calls_is_found_out_beside_the_other_calls(home, nowhere, monkeypatch):
    threads = set()
    for name in ("from_call_metadata", "from_environment", "from_working_folder", "pop_arguments"):
        real = getattr(project_resolution, name)

        def noted(*given, real=real):
            threads.add(threading.current_thread())
            return real(*given)

        monkeypatch.setattr(project_resolution, name, noted)

    async def talk():
        async with Agent(home) as agent:
            await used(agent)

    run(talk)
    assert threads and threading.main_thread() not in threads


@pytest.mark.parametrize("roots", [[], ["broken"], ["https://example.com/x", "file:///no/such/folder", "file://elsewhere/tmp"]])
def test_roots_that_lead_nowhere_are_no_project(home, nowhere, roots):
    async def talk():
        async with Agent(home, roots=roots) as agent:
            assert "id" not in await used(agent)

    run(talk)


def test_paths_with_spaces_and_other_scripts_are_understood_as_roots(tmp_path):
    folder = tmp_path / "mit Leerzeichen und ü 漢字 %41"
    folder.mkdir()
    assert from_roots(["junk", "file://[", folder.as_uri()]) == str(folder)


def test_what_a_client_sends_along_is_understood_in_every_shape_and_nonsense_is_nothing(tmp_path):
    here = str(tmp_path)
    for workspaces in ({here: {}}, [here], [{"path": here}], [{"root": here}], ["/no/such", here]):
        assert from_call_metadata({"other": 1, META: {"workspaces": workspaces, "session_id": "s"}}) == (here, "s")
    assert from_call_metadata({META: json.dumps({"workspaces": {here: None}, "session_id": "s"})}) == (here, "s")
    broken = [{META: None}, {META: "{"}, {META: {"workspaces": 5}}, {META: {"workspaces": [None, 5]}}]
    for nonsense in (None, [], "x", {}, *broken):
        assert from_call_metadata(nonsense) == ("", "")
    for empty in ({"workspaces": {}}, {"workspaces": None}, {}):
        assert from_call_metadata({"callId": "c", META: {**empty, "session_id": "s"}}) == ("", "s")


@pytest.mark.promise("N13")
def test_a_note_says_which_client_wrote_it_in_plain_characters(home, nowhere):
    assert client_name(LaunchOptions(client="installed"), "Told") == "installed"
    assert client_name(LaunchOptions(), "Claude Code (v2)\n\0✓") == "claude-code--v2"
    assert client_name(LaunchOptions(), "漢字") is None and client_name(LaunchOptions(), None) is None
    assert len(client_name(LaunchOptions(), "x" * 500)) == 60

    async def talk():
        async with Agent(home, name="Some Client/2") as agent:
            await agent("memory_store", text="A note.", key="k", scope="global", origin="web")
            assert ", web some-client-2," in await agent("memory_get", key="k")

    run(talk)


# --- whose notes they are -------------------------------------------------------------------------------------------------


@pytest.mark.promise("N8")
def test_two_projects_never_see_each_others_notes(home, nowhere, repository):
    ours, theirs = repository("ours", "https://git.example.com/a/ours.git"), repository("theirs")

    async def talk():
        async with Agent(home, roots=[ours]) as one, Agent(home, roots=[theirs]) as two:
            await one("memory_store", text="Harbour secret of ours.", key="plan")
            await one("memory_fact", subject="Harbour", label="owner", value="ours")
            await one("memory_file", command="create", path="harbour.md", file_text="harbour of ours")
            citation = (await one("memory_search", query="secret")).places[0]
            assert (await two("memory_recall", query="harbour")).keys == []
            assert (await two("memory_search", query="harbour")).startswith("Nothing found")
            assert (await two("memory_fact", subject="Harbour")).startswith("No such fact")
            assert (await two("memory_get", path=citation)).startswith("No file")
            assert "nothing was forgotten" in await two("memory_forget", key="plan")
            for tool, given in [("memory_get", {"key": "plan"}), ("memory_history", {"key": "plan"}),
                                ("memory_file", {"command": "view", "path": "harbour.md"})]:  # fmt: skip
                assert "harbour of ours" not in await two.refused(tool, **given)
            assert "ours" not in (await two.client.read_resource("holdfast://briefing")).contents[0].text
            listed = (await two.client.list_resources()).resources
            assert [one_.uri for one_ in listed] == ["holdfast://briefing"]
            assert (await one("memory_recall", query="harbour")).keys != []

    run(talk)


@pytest.mark.promise("P2")
def test_a_clone_and_a_worktree_share_their_projects_notes(home, nowhere, repository, tmp_path):
    url = "https://git.example.com/team/app.git"
    app, clone = repository("app", url), repository("clone", "git@git.example.com:team/app.git")
    git(app, "worktree", "add", "-q", str(tmp_path / "tree"))

    async def talk():
        async with Agent(home, roots=[app]) as agent:
            project = (await agent("memory_store", text="Harbour of the app.", key="k")).project["id"]
        for folder in (clone, tmp_path / "tree"):
            async with Agent(home, name="another", roots=[folder]) as agent:
                answer = await agent("memory_recall", query="harbour")
                assert answer.keys == ["k"] and answer.project["id"] == project

    run(talk)


def test_two_clients_in_one_project_see_each_others_notes_and_a_sessions_stay_in_it(home, nowhere, repository):
    app = repository("app")

    def said_by(session):
        return {META: {"workspaces": {str(app): {}}, "session_id": session}}

    async def talk():
        async with Agent(home, name="one") as one, Agent(home, name="two") as two:
            await one("memory_store", said_by("s1"), text="Harbour for the project.", key="shared")
            await one("memory_store", said_by("s1"), text="Harbour for this session.", key="own", scope="session")
            for agent, session, sees in [(one, "s1", {"shared", "own"}), (two, "s2", {"shared"}), (one, "../x", {"shared"})]:
                assert set((await agent("memory_recall", said_by(session), query="harbour")).keys) == sees

    run(talk)


def test_an_agent_has_notes_of_its_own_if_the_server_was_started_for_it(home, nowhere):
    async def talk():
        async with Agent(home, agent="reviewer") as one, Agent(home, agent="writer") as two:
            await one("memory_store", text="Harbour first.", key="own", scope="agent")
            assert (await one("memory_recall", query="harbour")).keys == ["own"]
            assert (await two("memory_recall", query="harbour")).keys == []

    run(talk)
