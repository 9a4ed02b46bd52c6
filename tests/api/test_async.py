"""AsyncMemory: the same verbs, awaited."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import AsyncMemory, Conflict, NotFound
from holdfast.errors import Trouble


def run(life, home, **given):
    """Run an async function with one AsyncMemory."""

    async def main():
        async with AsyncMemory(home, project="demo", cwd=home.parent, **given) as memory:
            return await life(memory)

    return asyncio.run(main())


def test_each_verb_can_be_awaited_and_answers_as_memory_does(home, open_memory):
    async def life(memory):
        assert (await memory.store("harbour words", key="k", tags="a")).action == "created"
        assert (await memory.store("harbour words two", key="k")).action == "updated"
        assert len(await memory.store_many([{"text": "many one"}, {"text": "many two"}])) == 2
        assert (await memory.get("k")).text == "harbour words two"
        assert len(await memory.history("k")) == 2
        assert [hit.key for hit in await memory.recall("harbour")] == ["k"]
        assert len(await memory.list()) == 3
        assert (await memory.fact("Harbour", "state", "open", on="2026-01-01")).action == "created"
        assert [fact.value for fact in await memory.facts("Harbour")] == ["open"]
        assert (await memory.fact("Harbour", "town", "[[Lisbon]]", on="2026-01-01")).action == "created"
        assert [one.name for one in (await memory.graph("Lisbon")).entities] == ["Lisbon", "Harbour"]
        assert [edge.label for edge in await memory.path("Lisbon", "Harbour")] == ["town"]
        assert (await memory.log([{"id": "t", "role": "user", "text": "said once"}], session="s")).added == 1
        (home.parent / "chat.jsonl").write_text('{"role": "user", "content": "said twice"}\n')
        assert [one.added for one in await memory.import_history(home.parent / "chat.jsonl")] == [1]
        assert [turn.text for turn in await memory.expand("t")] == ["said once"]
        assert await memory.embed() == {}
        assert (await memory.forget("k")).deleted
        assert (await memory.restore("k")).versions == 2
        assert (await memory.purge("k")).deleted
        assert [one.state for one in await memory.receipts()] == ["done"]
        assert (await memory.forget_session("s")).deleted
        assert (await memory.restore_session("s")).added == 1
        assert "Harbour" in (await memory.brief()).text
        assert (await memory.scaffold("continuity")).created
        assert "Heartbeat" in (await memory.boot()).text
        assert (await memory.status()).project == "demo"
        assert await memory.check() == []
        assert (await memory.reindex()).notes == 3
        assert await memory.retain(dry_run=True) == []
        assert len(await memory.search("many")) == 2
        assert (await memory.read("nothing.md")).text == ""
        assert await memory.clear("project") == 3
        return "done"

    assert run(life, home) == "done"
    assert open_memory().list() == []


@pytest.mark.promise("F3")
def test_the_file_verbs_are_there_too(home):
    async def life(memory):
        await memory.files.create("page.md", "one\ntwo\n")
        await memory.files.insert("page.md", 1, "between")
        await memory.files.str_replace("page.md", "two", "harbour")
        await memory.files.rename("page.md", "deep/page.md")
        assert await memory.files.view("deep/page.md") == "one\nbetween\nharbour\n"
        assert len(await memory.recall("harbour")) == 1
        await memory.files.delete("deep")
        return await memory.files.view("/memories")

    assert run(life, home) == ""


def test_many_at_once_all_go_through(home, open_memory):
    async def life(memory):
        stored = await asyncio.gather(*[memory.store(f"harbour number {n}", key=f"k{n}") for n in range(40)])
        assert {one.action for one in stored} == {"created"}
        shared = await asyncio.gather(*[memory.store(f"shared {n}", key="shared") for n in range(20)])
        assert sorted(one.action for one in shared) == ["created"] + ["updated"] * 19
        answers = await asyncio.gather(
            *[memory.recall(f"number {n}", limit=1) for n in range(40)], memory.brief(), memory.list()
        )
        assert all(len(answer) == 1 for answer in answers[:40])
        mixed = await asyncio.gather(
            *[memory.forget(f"k{n}") for n in range(20)],
            *[memory.fact("Harbour", f"label {n}", "x") for n in range(10)],
            memory.recall("harbour", limit=100),
            memory.reindex(),
            memory.check(),
        )
        assert all(one.deleted for one in mixed[:20])

    run(life, home)
    memory = open_memory()
    assert len(memory.list()) == 22
    assert len(memory.history("shared")) == 20
    assert len(memory.facts("Harbour")) == 10
    assert memory.check() == []


def test_errors_are_raised_where_they_are_awaited(home):
    async def life(memory):
        seen = (await memory.store("one", key="k")).note.version
        await memory.store("two", key="k")
        with pytest.raises(Conflict):
            await memory.store("three", key="k", expected=seen)
        with pytest.raises(NotFound):
            await memory.get("nothing")
        with pytest.raises(TypeError):
            await memory.recall("x", colour="red")

    run(life, home)


class Ended(StopIteration):
    """A subclass of StopIteration."""


@pytest.mark.parametrize("error", [StopIteration, Ended])
def test_what_says_that_it_has_nothing_more_is_an_error_and_no_endless_wait(home, error):
    class Items:
        def __iter__(self):
            raise error("no more")

    async def life(memory):
        with pytest.raises(Trouble, match="store_many failed with StopIteration") as caught:
            await asyncio.wait_for(memory.store_many(Items()), 20)
        assert type(caught.value.__cause__) is error
        assert (await memory.store("goes on", key="k")).action == "created"

    run(life, home)


def test_the_loop_goes_on_while_a_verb_works(home):
    async def life(memory):
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        await memory.store_many([{"text": f"harbour number {n}", "key": f"k{n}"} for n in range(300)])
        ticking.cancel()
        return ticks

    assert run(life, home) > 1


def test_who_asks_and_where_it_lives_is_known_without_waiting(home):
    memory = AsyncMemory(home, project="demo", session="s1", agent="a1", cwd=home.parent)
    assert (memory.project, memory.session, memory.agent, memory.home) == ("demo", "s1", "a1", str(home))
    assert not home.exists()


def test_two_loops_one_after_the_other_may_use_one_memory(home):
    memory = AsyncMemory(home, project="demo", cwd=home.parent)
    asyncio.run(memory.store("harbour words", key="k"))
    assert len(asyncio.run(memory.recall("harbour"))) == 1
    asyncio.run(memory.close())


def test_an_export_is_iterated_without_holding_the_loop(home):
    async def life(memory):
        await memory.store_many([{"text": f"note {number}", "key": f"k-{number}"} for number in range(3)])
        keys = [row["key"] async for row in memory.export()]
        rows = memory.export()
        first = await anext(rows)
        await rows.aclose()  # a caller that stops early
        return keys, first["key"], memory.origin

    assert run(life, home) == (["k-0", "k-1", "k-2"], "k-0", "agent")


def test_an_export_says_what_it_left_out(home, note_file):
    async def told():
        async with AsyncMemory(home, project="demo") as memory:
            await memory.store("one", key="one")
            note_file("empty").write_bytes(b"")
            rows = memory.export()
            return [row["key"] async for row in rows], rows.left_out.as_dict()

    keys, left_out = asyncio.run(told())
    assert keys == ["one"] and [one["name"] for one in left_out["notes"]] == ["empty.md"]


def test_an_export_works_in_another_thread(home, monkeypatch):
    import threading

    from holdfast.verbs import export

    threads = []
    real = export._export_note

    def export_note(*given, **named):
        threads.append(threading.current_thread())
        return real(*given, **named)

    monkeypatch.setattr(export, "_export_note", export_note)

    async def life(memory):
        await memory.store("note", key="k")
        return [one["key"] async for one in memory.export()]

    assert run(life, home) == ["k"]
    assert threads and threading.main_thread() not in threads
