"""The LangGraph store: items are readable notes, found by namespace, filter and search, and they expire."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import uuid
from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest
from frameworks import need_framework

need_framework("langgraph")

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from holdfast import Damaged, InvalidText, Memory, NoScope, SecretFound, UsageError
from holdfast.adapters.langgraph import HoldfastStore, add_briefing, namespace_tags, note_key, parse_note, render_text

ANN, BEN = ("users", "ann"), ("users", "ben")


@pytest.fixture
def store(memory):
    return HoldfastStore(memory, scope="project")


@pytest.fixture
def any_store(any_memory):
    return HoldfastStore(any_memory, scope="project")


def keys(items):
    return [item.key for item in items]


# --- items --------------------------------------------------------------------------------------------------------------


def test_an_item_is_read_back_on_every_kind_of_memory(any_store):
    value = {"text": "Größe <b>\n```json\n{}\n```", "n": [1, 2.5, None, True], "deep": {"a": {"b": "c"}}}
    any_store.put(ANN, "profile", value)
    item = any_store.get(ANN, "profile")
    assert (item.value, item.key, item.namespace) == (value, "profile", ANN)
    assert datetime.now(UTC) - item.created_at < timedelta(minutes=1)
    any_store.put(ANN, "profile", {"text": "new"})
    assert any_store.get(ANN, "profile").value == {"text": "new"}
    any_store.delete(ANN, "profile")
    any_store.delete(ANN, "profile")
    assert any_store.get(ANN, "profile") is None
    assert any_store.search(ANN) == []


def test_the_same_key_in_two_namespaces_names_two_items(any_store):
    any_store.put(ANN, "food", {"likes": "pizza"})
    any_store.put(BEN, "food", {"likes": "soup"})
    assert any_store.get(ANN, "food").value == {"likes": "pizza"}
    assert [item.value["likes"] for item in any_store.search(BEN)] == ["soup"]


def test_a_batch_reads_the_items_as_they_were_before_it_and_the_last_put_wins(any_store):
    any_store.put(ANN, "a", {"n": 0})
    results = any_store.batch(
        [
            PutOp(ANN, "a", {"n": 1}),
            GetOp(ANN, "a"),
            PutOp(ANN, "a", {"n": 2}),
            PutOp(ANN, "b", {"n": 3}),
            SearchOp(("users",)),
            ListNamespacesOp(),
        ]
    )
    assert [results[1].value, keys(results[4]), results[5]] == [{"n": 0}, ["a"], [ANN]]
    assert results[0] is results[2] is results[3] is None
    assert any_store.get(ANN, "a").value == {"n": 2}
    assert any_store.get(ANN, "b").value == {"n": 3}


def test_the_async_methods_do_the_same(any_store):
    async def run():
        await asyncio.gather(*(any_store.aput(ANN, f"k{number}", {"n": number}) for number in range(8)))
        await any_store.adelete(ANN, "k7")
        found = await any_store.asearch(ANN, filter={"n": {"$gte": 5}})
        return await any_store.aget(ANN, "k3"), found, await any_store.alist_namespaces(prefix=("users",))

    item, found, namespaces = asyncio.run(run())
    assert (item.value, sorted(keys(found)), namespaces) == ({"n": 3}, ["k5", "k6"], [ANN])


PUT_TEN = """
import sys
from holdfast import Memory
from holdfast.adapters.langgraph import HoldfastStore
with Memory(sys.argv[1], project="shop") as memory:
    for number in range(10):
        HoldfastStore(memory, scope="project").put(("log", sys.argv[2]), str(number), {"n": number})
"""


def test_no_put_of_concurrent_processes_is_lost(home):
    writers = [subprocess.Popen([sys.executable, "-c", PUT_TEN, home, f"w{number}"]) for number in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    with Memory(home, project="shop") as memory:
        store = HoldfastStore(memory, scope="project")
        assert {(item.namespace[1], item.value["n"]) for item in store.search(("log",), limit=100)} == {
            (f"w{number}", n) for number in range(3) for n in range(10)
        }


def test_an_archived_item_is_still_an_item(store, memory, clock):
    for key in ("a", "b", "c"):
        store.put(ANN, key, {"text": "tea"})
    clock.forward(days=1000)
    memory.retain()
    assert len(memory.list(archived=True)) == 3
    assert sorted(keys(store.search(ANN))) == ["a", "b", "c"]
    store.put(ANN, "a", {"text": "soup"})
    store.delete(ANN, "b")
    assert [store.get(ANN, key) and store.get(ANN, key).value["text"] for key in "abc"] == ["soup", None, "tea"]
    assert sorted(keys(store.search(ANN))) == ["a", "c"]


def test_a_person_can_read_and_edit_an_item(store, memory, home):
    store.put(ANN, "food", {"likes": "pizza"})
    note = memory.get(note_key(ANN, "food"))
    assert note.text.startswith('# users / ann / food\n\n```json\n{\n  "likes": "pizza"\n}\n```\n')
    assert note.tags == ("langgraph", "users", "users/ann")
    file = home / "shelf" / note.path
    file.write_text(file.read_text(encoding="utf-8").replace("pizza", "soup"), encoding="utf-8")
    assert store.get(ANN, "food").value == {"likes": "soup"}


def test_an_unreadable_edit_is_named_by_get_and_left_out_of_a_search(store, memory, caplog):
    store.put(ANN, "a", {"n": 1})
    store.put(ANN, "b", {"n": 2})
    key = note_key(ANN, "a")
    text = memory.get(key).text
    for edit in ("no block of JSON", text.replace("{", "[" * 50_000, 1), text.replace("-->", ""), text.replace("ann", "ben")):
        memory.store(edit, key=key)
        with pytest.raises(Damaged):
            store.get(ANN, "a")
    with pytest.raises(Damaged, match=f"is not an item of LangGraph. Edit it with `holdfast edit {key}`"):
        store.get(ANN, "a")
    assert keys(store.search(ANN)) == ["b"]
    assert "is not an item of LangGraph" in caplog.text


def test_a_copy_of_a_note_under_another_key_is_no_second_item(store, memory):
    store.put(ANN, "a", {"n": 1})
    note = memory.get(note_key(ANN, "a"))
    memory.store(note.text, key="copy", tags=note.tags)
    assert keys(store.search(ANN)) == ["a"]


def test_forgetting_the_note_deletes_the_item_and_restoring_it_brings_it_back(store, memory):
    store.put(ANN, "food", {"likes": "pizza"})
    memory.forget(note_key(ANN, "food"))
    assert store.get(ANN, "food") is None
    memory.restore(note_key(ANN, "food"))
    assert store.get(ANN, "food").value == {"likes": "pizza"}


def test_without_arguments_items_are_in_the_scope_of_an_agent_of_their_own(home, monkeypatch):
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    with HoldfastStore() as store:
        store.put(ANN, "food", {"likes": "pizza"})
    with Memory(home, agent="langgraph") as memory:
        assert memory.get(note_key(ANN, "food")).path.startswith("agents/langgraph/notes/")
    with Memory(home, project="shop") as other:
        assert other.brief().text == "" and list(other.recall("pizza")) == []


def test_a_memory_without_an_agent_needs_another_scope(memory):
    with pytest.raises(NoScope):
        HoldfastStore(memory).put(ANN, "food", {"likes": "pizza"})


def test_closing_the_store_leaves_the_callers_memory_open(memory):
    HoldfastStore(memory).close()
    assert memory.list() == []


# --- hostile and invalid input ------------------------------------------------------------------------------------------

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
LABELS = st.text(st.characters(codec="utf-8", exclude_characters=".\0"), min_size=1, max_size=30)


@given(st.lists(LABELS, min_size=1, max_size=4).map(tuple), LABELS, st.dictionaries(st.text(max_size=10), st.text(max_size=50)))
def test_any_namespace_key_and_value_are_read_back_from_the_text(namespace, key, value):
    value = {name.replace("\ud800", ""): text for name, text in value.items()}

    class Note:
        text = render_text(namespace, key, value, ["a"], 5)
        path = "a path"

    Note.key = note_key(namespace, key)
    item = parse_note(Note)
    assert (item.namespace, item.key, item.value, item.index, item.ttl) == (namespace, key, value, ["a"], 5)


@pytest.mark.parametrize(
    "namespace",
    [
        ("..", "x"), ("a/b", "../../etc"), ("<!-- holdfast:history -->",), ("--> <script>", "x\ny"), ("ü" * 200, "日本"),
        tuple("abcdefgh" * 10), ("a,b", " a  b "), ("\u202e", "\x1b[31m"),
    ],
    ids=range(8),
)  # fmt: skip
def test_hostile_labels_are_kept_exactly_or_rejected_by_langgraph(store, memory, namespace):
    if any("." in label for label in namespace):
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "k", {"n": 1})
        namespace = tuple(label.replace(".", "") or "dots" for label in namespace)
    store.put(namespace, "../k\n```\n", {"n": 1, "x": "<!-- langgraph {} -->"})
    assert store.list_namespaces() == [namespace]
    (item,) = store.search(namespace)
    assert (item.namespace, item.key) == (namespace, "../k\n```\n")
    (note,) = memory.list()
    assert note.versions == 1


def test_labels_that_look_alike_are_different_namespaces():
    names = [("a", "b"), ("a/b",), ("a%2f.b",), ("A", "b"), ("a-b",), ("a", "b", "c")]
    assert len({note_key(name, "k") for name in names}) == len(names)
    assert len({tuple(namespace_tags(name)) for name in names}) == len(names)
    assert note_key(("a",), "b") != note_key(("a", "b"), "")


ENDLESS: dict = {}
ENDLESS["n"] = ENDLESS


@pytest.mark.parametrize("value", [{"n": float("nan")}, {"n": {1, 2}}, {"n": object()}, ENDLESS], ids=range(4))
def test_a_value_that_is_not_json_is_rejected_before_anything_is_written(store, value):
    with pytest.raises(UsageError, match="is not JSON"):
        store.batch([PutOp(ANN, "a", {"n": 1}), PutOp(ANN, "b", value)])
    assert store.search(ANN) == []


def test_a_value_that_is_not_unicode_is_rejected(store):
    with pytest.raises(InvalidText):
        store.put(ANN, "a", {"text": "\ud800"})


def test_a_secret_is_rejected_or_replaced_by_the_name_of_its_rule(store, memory):
    secret = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7" + "abc/DEF+" * 20 + "\n-----END RSA PRIVATE KEY-----"
    with pytest.raises(SecretFound):
        store.put(ANN, "key", {"pem": secret})
    assert store.get(ANN, "key") is None
    redacting = HoldfastStore(memory, scope="project", redact=True)
    redacting.put(ANN, "key", {"pem": secret, "n": 1})
    assert redacting.get(ANN, "key").value == {"pem": "[REDACTED:private-key]", "n": 1}


@pytest.mark.parametrize("names", [(TOKEN, "k"), ("users", TOKEN)])
@pytest.mark.parametrize("redact", [False, True])
def test_a_secret_in_a_namespace_or_key_is_rejected(memory, names, redact):
    store = HoldfastStore(memory, scope="project", redact=redact)
    with pytest.raises(SecretFound):
        store.put(names[:1], names[1], {"n": 1})
    assert memory.list() == []


def test_a_secret_beside_a_quote_is_found(store, memory):
    value = {"env": 'export API_KEY="q9Zx8Yw7Vu6Ts5Rq4Po3Nm2"'}
    with pytest.raises(SecretFound):
        store.put(ANN, "k", value)
    redacting = HoldfastStore(memory, scope="project", redact=True)
    redacting.put(ANN, "k", value)
    assert redacting.get(ANN, "k").value == {"env": 'export API_KEY="[REDACTED:generic-api-key]"'}
    with pytest.raises(SecretFound, match="cannot be masked"):
        redacting.put(ANN, "k", {"password": 'Hunter2!x"9'})


def test_random_ids_as_keys_are_no_secrets(store):
    ids = [uuid.uuid4().hex for _ in range(30)] + [b64encode(sha256(bytes([n])).digest()).decode() for n in range(30)]
    store.batch([PutOp(ANN, key, {"id": key}) for key in ids])
    assert {item.key for item in store.search(ANN, limit=100)} == set(ids)


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), True, "5"])
def test_an_invalid_ttl_is_rejected(store, ttl):
    with pytest.raises(UsageError, match="ttl must be a number of minutes"):
        store.put(ANN, "a", {"n": 1}, ttl=ttl)


def test_wrong_arguments_have_typed_errors(store):
    with pytest.raises(UsageError, match="memory must be a Memory"):
        HoldfastStore("home")
    with pytest.raises(UsageError, match="unknown operation"):
        store.batch(["get"])
    with pytest.raises(UsageError, match="must be strings"):
        store.batch([GetOp((1,), "a")])


# --- namespaces ---------------------------------------------------------------------------------------------------------


def test_namespaces_are_listed_by_prefix_suffix_wildcard_and_depth(any_store):
    for namespace in [("a", "b", "c"), ("a", "b", "d", "e"), ("a", "c"), ("x", "b", "c")]:
        any_store.put(namespace, "k", {"n": 1})
    listed = any_store.list_namespaces
    assert listed() == [("a", "b", "c"), ("a", "b", "d", "e"), ("a", "c"), ("x", "b", "c")]
    assert listed(prefix=("a", "b")) == [("a", "b", "c"), ("a", "b", "d", "e")]
    assert listed(suffix=("b", "c")) == [("a", "b", "c"), ("x", "b", "c")]
    assert listed(prefix=("*", "b"), suffix=("c",)) == [("a", "b", "c"), ("x", "b", "c")]
    assert listed(prefix=("a",), max_depth=2) == [("a", "b"), ("a", "c")]
    assert listed(limit=2, offset=1) == [("a", "b", "d", "e"), ("a", "c")]
    condition = MatchCondition(match_type="infix", path=("a",))
    with pytest.raises(UsageError, match="unknown match type"):
        any_store.batch([ListNamespacesOp(match_conditions=(condition,))])


# --- search -------------------------------------------------------------------------------------------------------------


def test_filters_compare_values_and_operators(any_store):
    any_store.put(ANN, "a", {"n": 1, "at": "2026-01-01", "who": {"name": "Ann", "age": 3}, "tags": ["x", "y"]})
    any_store.put(ANN, "b", {"n": 2.5, "at": "2026-02-01", "who": {"name": "Ben"}})
    any_store.put(ANN, "c", {"n": "text"})

    def found(**conditions):
        return sorted(keys(any_store.search(("users",), filter=conditions)))

    assert found(n=1) == found(n={"$eq": 1}) == ["a"]
    assert found(n={"$ne": 1}) == ["b", "c"]
    assert (found(n={"$gt": 1}), found(n={"$gte": 1}), found(n={"$lt": 2}), found(n={"$lte": 2.5})) == (
        ["b"], ["a", "b"], ["a"], ["a", "b"]
    )  # fmt: skip
    assert found(at={"$gte": "2026-01-15", "$lt": "2026-03-01"}) == ["b"]
    assert (found(who={"name": "Ann"}), found(tags=["x", "y"]), found(tags=["x"]), found(missing=None)) == (
        ["a"], ["a"], [], ["a", "b", "c"]
    )  # fmt: skip
    with pytest.raises(UsageError, match=r"unknown operator '\$in'"):
        found(n={"$in": [1]})


def test_a_query_ranks_the_items_of_a_namespace_by_their_text(any_store):
    any_store.put(ANN, "deploy", {"text": "We deploy the website on Tuesdays."})
    any_store.put(ANN, "food", {"text": "Ann likes pizza with mushrooms."})
    any_store.put(BEN, "food", {"text": "Ben likes pizza with pineapple."})
    best, other = any_store.search(ANN, query="Which pizza?")
    assert (best.key, other.key) == ("food", "deploy")
    assert best.score > other.score == 0
    assert keys(any_store.search(ANN, query="pizza", filter={"text": {"$gt": "B"}})) == ["deploy"]
    assert {item.namespace for item in any_store.search(("users",), query="pizza", limit=2)} == {ANN, BEN}


def test_a_search_by_meaning_finds_other_words(home, monkeypatch):
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "default")
    with Memory(home, project="shop") as memory:
        store = HoldfastStore(memory, scope="project")
        store.put(ANN, "pet", {"text": "She owns a small dog named Rex."})
        store.put(ANN, "work", {"text": "The invoice was paid by bank transfer."})
        memory.embed()
        found = store.search(ANN, query="Which animals live with her?")
    assert (found[0].key, found[0].score > found[1].score) == ("pet", True)


def test_pages_of_a_search_are_parts_of_one_order(any_store):
    for number in range(7):
        any_store.put(ANN, f"k{number}", {"text": "a pizza" if number % 2 else "a soup"})
    for query in (None, "pizza"):
        whole = keys(any_store.search(ANN, query=query, limit=20))
        assert len(whole) == 7
        assert [keys(any_store.search(ANN, query=query, limit=3, offset=start)) for start in (0, 3, 6)] == [
            whole[:3], whole[3:6], whole[6:]
        ]  # fmt: skip


def test_an_item_without_index_is_read_and_listed_but_not_ranked(store):
    store.put(ANN, "hidden", {"text": "pizza pizza pizza"}, index=False)
    store.put(ANN, "other", {"text": "We deploy on Tuesdays."})
    assert store.get(ANN, "hidden").value
    found = store.search(ANN, query="pizza")
    assert [(item.key, item.score) for item in found] == [("other", 0), ("hidden", None)]


def test_only_the_indexed_fields_count_in_a_search(memory):
    store = HoldfastStore(memory, scope="project", index={"dims": 3, "embed": None, "fields": ["text", "parts[*].say"]})
    store.put(ANN, "a", {"text": "We deploy on Tuesdays.", "comment": "pizza"})
    store.put(ANN, "b", {"comment": "none", "parts": [{"say": "soup"}, {"say": "pizza"}]})
    store.put(ANN, "c", {"text": "x", "comment": "pizza"}, index=["comment"])
    scores = {item.key: item.score for item in store.search(ANN, query="pizza")}
    assert scores["b"] > 0 and scores["c"] > 0 and scores["a"] == 0


# --- time to live -------------------------------------------------------------------------------------------------------


def test_an_item_expires_after_its_ttl(any_store, clock):
    any_store.put(ANN, "code", {"n": 1}, ttl=10)
    any_store.put(ANN, "name", {"n": 2})
    clock.forward(minutes=9)
    assert any_store.get(ANN, "code", refresh_ttl=False).value == {"n": 1}
    clock.forward(minutes=2)
    assert any_store.get(ANN, "code") is None
    assert keys(any_store.search(ANN)) == keys(any_store.search(ANN, query="n")) == ["name"]
    assert any_store.sweep_ttl() == 1
    assert any_store.sweep_ttl() == 0


def test_a_namespace_whose_items_have_expired_is_not_listed(store, clock):
    store.put(ANN, "code", {"n": 1}, ttl=10)
    clock.forward(minutes=11)
    assert store.list_namespaces() == []


@pytest.mark.parametrize("read", [lambda store: store.get(ANN, "code"), lambda store: store.search(ANN)], ids=["get", "search"])
def test_reading_an_item_extends_its_ttl(store, clock, read):
    store.put(ANN, "code", {"n": 1}, ttl=10)
    written = store.get(ANN, "code", refresh_ttl=False).updated_at
    for _ in range(5):
        clock.forward(minutes=6)
        assert read(store)
    item = store.get(ANN, "code")
    assert item.value == {"n": 1} and item.updated_at == written
    clock.forward(minutes=11)
    assert not read(store)


def test_frequent_reads_write_few_versions(store, memory, clock):
    store.put(ANN, "code", {"n": 1}, ttl=10)
    for _ in range(60):
        clock.forward(10)
        store.get(ANN, "code")
    assert memory.get(note_key(ANN, "code")).versions <= 11


def test_the_configuration_has_the_defaults_of_ttl(memory, clock):
    store = HoldfastStore(memory, scope="project", ttl={"default_ttl": 10, "refresh_on_read": False})
    store.put(ANN, "short", {"n": 1})
    store.put(ANN, "long", {"n": 2}, ttl=None)
    clock.forward(minutes=6)
    assert store.get(ANN, "short")
    clock.forward(minutes=6)
    assert (store.get(ANN, "short"), store.get(ANN, "long").value) == (None, {"n": 2})


def test_a_put_without_ttl_removes_the_end(store, clock):
    store.put(ANN, "code", {"n": 1}, ttl=10)
    store.put(ANN, "code", {"n": 1}, ttl=None)
    clock.forward(minutes=60)
    assert store.get(ANN, "code").value == {"n": 1}


# --- graphs -------------------------------------------------------------------------------------------------------------


def test_a_graph_stores_an_item_in_one_run_and_reads_it_in_the_next(store):
    def remember(state, *, store):
        said = state["messages"][-1].content
        known = store.search(ANN, query=said)
        store.put(ANN, f"said-{len(known)}", {"text": said})
        return {"messages": [AIMessage(f"known: {len(known)}")]}

    graph = StateGraph(MessagesState).add_node("remember", remember).add_edge(START, "remember").compile(store=store)
    assert graph.invoke({"messages": [HumanMessage("I like tea.")]})["messages"][-1].content == "known: 0"
    assert graph.invoke({"messages": [HumanMessage("Is it tea?")]})["messages"][-1].content == "known: 1"


@dataclass
class Caller:
    """The context of a run: whose memories its nodes use."""

    user: str


async def keep_what_was_said(state, runtime: Runtime[Caller]):
    namespace = ("memories", runtime.context.user)
    said = state["messages"][-1].content
    known = await runtime.store.asearch(namespace, query=said, limit=3)
    await runtime.store.aput(namespace, str(uuid.uuid4()), {"data": said})
    return {"messages": [AIMessage("; ".join(item.value["data"] for item in known))]}


def test_users_of_a_graph_are_separated_by_the_namespace_of_their_context(store):
    builder = StateGraph(MessagesState, context_schema=Caller)
    builder.add_node("keep", keep_what_was_said)
    builder.add_edge(START, "keep")
    graph = builder.compile(checkpointer=InMemorySaver(), store=store)

    def ask(user, thread, text):
        config = {"configurable": {"thread_id": thread}}
        state = graph.ainvoke({"messages": [HumanMessage(text)]}, config, context=Caller(user))
        return asyncio.run(state)["messages"][-1].content

    assert ask("ann", "1", "My name is Ann.") == ""
    assert ask("ann", "2", "What is my name?") == "My name is Ann."
    assert ask("ben", "3", "What is my name?") == ""


def test_a_node_shows_the_briefing_to_its_model_and_to_no_checkpoint(memory):
    memory.store("We deploy on Tuesdays.", key="deploys")
    shown = []

    def call_model(state):
        shown.extend(add_briefing(memory, state["messages"]))
        return {"messages": [AIMessage("ok")]}

    saver = InMemorySaver()
    graph = StateGraph(MessagesState).add_node("model", call_model).add_edge(START, "model").compile(checkpointer=saver)
    config = {"configurable": {"thread_id": "1"}}
    graph.invoke({"messages": [SystemMessage("You are Ada."), HumanMessage("Hello")]}, config)
    assert [message.type for message in shown] == ["system", "human"]
    assert shown[0].content.startswith("You are Ada.\n\n<holdfast-memory") and "Tuesdays" in shown[0].content
    assert "Tuesdays" not in repr(list(saver.list(config)))


def test_a_briefing_is_a_first_system_message_or_part_of_it(memory):
    question = [HumanMessage("when do we deploy?")]
    assert add_briefing(memory, question) == question
    memory.store("We deploy on Tuesdays.", key="deploys")
    assert [message.type for message in add_briefing(memory, question)] == ["system", "human"]
    blocks = SystemMessage(content=[{"type": "text", "text": "You are Ada."}])
    first, _ = add_briefing(memory, [blocks, *question], with_prompt=False)
    assert [block["text"][:12] for block in first.content] == ["You are Ada.", "<holdfast-me"]
    assert "You are Ada." in blocks.text and "Tuesdays" not in blocks.text


def test_a_failing_briefing_is_logged_and_the_messages_stay(home, caplog):
    home.write_text("not a folder")
    question = [HumanMessage("Hello")]
    assert add_briefing(Memory(home, project="shop"), question) == question
    assert "no briefing" in caplog.text
