"""mem0's classes on Holdfast: the same programs on both, with equal shapes; users who never see each other; no network."""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import npm
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_readme import blocks, check_comments

from holdfast import Memory as Store
from holdfast import SecretFound, UsageError
from holdfast.adapters.mem0 import AsyncMemory, InvalidArgument, Memory, MemoryNotFound, ValidationError
from holdfast.adapters.tenants import MemoryPool, name_parts, project_name

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adapters" / "mem0.md"
MESSAGES = [
    {"role": "user", "content": "I'm planning to watch a movie tonight. Any recommendations?"},
    {"role": "assistant", "content": "How about thriller movies? They can be quite engaging."},
    {"role": "user", "content": "I'm not a big fan of thriller movies but I love sci-fi movies."},
    {"role": "assistant", "content": "Got it! I'll avoid thrillers and suggest sci-fi movies in the future."},
]


@pytest.fixture
def config(home):
    return {"holdfast": {"home": str(home)}, "llm": {"provider": "openai", "config": {"model": "gpt-4o"}}}


@pytest.fixture
def memory(config):
    with Memory.from_config(config) as opened:
        yield opened


@contextmanager
def model_server():
    """An OpenAI-compatible server on loopback: an embedding for each text, and each message as one extracted memory."""
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            requests.append(self.path)
            content = json.dumps(embed(body) if self.path.endswith("/embeddings") else extract(body)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1", requests
        finally:
            server.shutdown()
            thread.join()


def embed(body):
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    data = [{"object": "embedding", "index": number, "embedding": [1.0, len(text) / 1000]} for number, text in enumerate(texts)]
    return {"object": "list", "model": "m", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}


def extract(body):
    said = body["messages"][-1]["content"]
    found = [{"text": one["content"], "attributed_to": one["role"]} for one in MESSAGES if one["content"] in said]
    message = {"role": "assistant", "content": json.dumps({"memory": found})}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


@pytest.fixture
def real_mem0(tmp_path, monkeypatch):
    """mem0 itself, with its models on loopback; and the requests that they got."""
    monkeypatch.setenv("MEM0_TELEMETRY", "False")
    monkeypatch.setenv("MEM0_DIR", str(tmp_path / "mem0"))
    monkeypatch.setenv("OPENAI_API_KEY", "not-used")
    try:
        import mem0
    except ImportError:
        pytest.skip(f"{npm.SKIP_PREFIX}: comparisons with mem0, which is not installed (.venv/bin/pip install mem0ai)")
    with model_server() as (url, requests):
        options = {"openai_base_url": url, "model": "m"}
        store = {"path": str(tmp_path / "qdrant"), "collection_name": "test", "embedding_model_dims": 2}
        config = {
            "vector_store": {"provider": "qdrant", "config": store},
            "embedder": {"provider": "openai", "config": {**options, "embedding_dims": 2}},
            "llm": {"provider": "openai", "config": options},
            "history_db_path": str(tmp_path / "history.db"),
        }
        yield mem0, config, requests


def shape(value):
    """Return the keys of an answer and the types of its values; texts of ids and times differ from run to run."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items() if name != "score_details"}
    if isinstance(value, list):
        return sorted([shape(one) for one in value], key=repr)
    return type(value).__name__


def quickstart(m):
    """The calls of mem0's documentation for its open-source package."""
    answers = [m.add(MESSAGES, user_id="alice", metadata={"category": "movie_recommendations"})]
    answers.append(m.add(MESSAGES, user_id="alice", agent_id="assistant", run_id="s-1", metadata={"n": 1}, infer=False))
    answers.append(m.add([{"role": "user", "content": "Hello", "name": "bob"}], user_id="bob", infer=False))
    answers.append(m.search("What do you know about me?", filters={"user_id": "alice"}))
    answers.append(m.search("movies", filters={"user_id": "alice", "agent_id": "assistant"}, top_k=3, threshold=0.1))
    answers.append(m.search("movies", filters={"user_id": "alice", "AND": [{"category": {"in": ["movie_recommendations"]}}]}))
    answers.append(m.search("movies", filters={"user_id": "alice", "n": {"gte": 1}}))
    answers.append(m.search("movies", filters={"user_id": "alice", "NOT": [{"n": 1}]}))
    answers.append(m.search("movies", filters={"user_id": "alice", "OR": [{"n": 1}, {"category": "none"}]}))
    answers.append(m.get_all(filters={"user_id": "alice"}))
    answers.append(m.get_all(filters={"run_id": "s-1"}, top_k=2))
    memory_id = answers[1]["results"][0]["id"]
    answers.append(m.get(memory_id))
    answers.append(m.update(memory_id=memory_id, text="Likes to play tennis on weekends"))
    answers.append(m.update(memory_id, metadata={"category": "hobbies"}))
    answers.append(m.get(memory_id))
    answers.append(m.history(memory_id=memory_id))
    answers.append(m.delete(memory_id=memory_id))
    answers.append(m.get(memory_id))
    answers.append(m.delete_all(user_id="alice"))
    answers.append(m.get_all(filters={"user_id": "alice"}))
    answers.append(m.get_all(filters={"user_id": "bob"}))
    answers.append(m.reset())
    answers.append(m.get_all(filters={"user_id": "bob"}))
    return answers


def raised_by(call):
    with pytest.raises(Exception) as raised:  # the two packages raise different ones
        call()
    return "ValueError" if isinstance(raised.value, ValueError) else type(raised.value).__name__


def wrong_calls(m):
    """Return the errors of wrong calls."""
    return [
        raised_by(lambda: m.add("Hello")),
        raised_by(lambda: m.add(17, user_id="a")),
        raised_by(lambda: m.add("Hello", user_id=" ")),
        raised_by(lambda: m.add("Hello", user_id="a b")),
        raised_by(lambda: m.add("Hello", user_id="a", expiration_date="soon")),
        raised_by(lambda: m.add("Hello", user_id="a", timestamp=5)),
        raised_by(lambda: m.search("Hello", user_id="a")),
        raised_by(lambda: m.search("Hello")),
        raised_by(lambda: m.search(" ", filters={"user_id": "a"})),
        raised_by(lambda: m.search("Hello", filters={"user_id": "a"}, top_k=-1)),
        raised_by(lambda: m.search("Hello", filters={"user_id": "a"}, threshold=2)),
        raised_by(lambda: m.search("Hello", filters={"user_id": "a", "OR": []})),
        raised_by(lambda: m.search("Hello", filters={"user_id": "a", "AND": [{"n": {"like": 1}}]})),
        raised_by(lambda: m.search("Hello", filters={"user_id": "a"}, reference_date="2026-01-01")),
        raised_by(lambda: m.get_all()),
        raised_by(lambda: m.get_all(user_id="a")),
        raised_by(lambda: m.update(str(uuid.uuid4()), "Hello")),
        raised_by(lambda: m.update(str(uuid.uuid4()))),
        raised_by(lambda: m.delete(str(uuid.uuid4()))),
        raised_by(lambda: m.delete_all()),
        raised_by(lambda: m.chat("Hello")),
        raised_by(lambda: m.project.update(decay=True)),
    ]


def test_the_same_program_gets_answers_of_the_same_shape_and_ours_sends_nothing(real_mem0, config):
    mem0, real_config, requests = real_mem0
    with mem0.Memory.from_config(real_config) as theirs:
        expected = quickstart(theirs)
    assert requests, "mem0 asks its models"
    requests.clear()
    with Memory.from_config({**real_config, **config}) as ours:
        answers = quickstart(ours)
    assert requests == []
    for number, (answer, one) in enumerate(zip(answers, expected, strict=True)):
        assert shape(answer) == shape(one), number
    texts = [[one["memory"] for one in answer["results"]] for answer in (answers[0], expected[0])]
    assert texts[0] == texts[1]
    same = ("memory", "hash", "metadata", "role", "user_id", "agent_id", "run_id")
    assert {name: answers[14].get(name) for name in same} == {name: expected[14].get(name) for name in same}
    events = ("event", "old_memory", "new_memory", "is_deleted", "actor_id", "role")
    assert [[one[name] for name in events] for one in answers[15]] == [[one[name] for name in events] for one in expected[15]]


def test_wrong_calls_raise_errors_of_the_same_kind(real_mem0, memory):
    mem0, real_config, _ = real_mem0
    with mem0.Memory.from_config(real_config) as theirs:
        expected = wrong_calls(theirs)
    ours = wrong_calls(memory)
    assert ours == [one if one != "ValidationError" else "ValueError" for one in expected]


def test_the_methods_have_the_arguments_of_mem0(real_mem0):
    mem0, _, _ = real_mem0
    names = [
        "add",
        "search",
        "get",
        "get_all",
        "update",
        "delete",
        "delete_all",
        "history",
        "reset",
        "close",
        "chat",
        "from_config",
    ]
    for theirs, ours in ((mem0.Memory, Memory), (mem0.AsyncMemory, AsyncMemory)):
        for name in names:
            wanted, have = getattr(theirs, name), getattr(ours, name)
            assert inspect.iscoroutinefunction(have) == inspect.iscoroutinefunction(wanted), name
            kinds = [{one.kind for one in inspect.signature(method).parameters.values()} for method in (wanted, have)]
            arguments = [
                [one.name for one in inspect.signature(method).parameters.values() if one.kind != one.VAR_KEYWORD]
                for method in (wanted, have)
            ]
            assert (arguments[0], kinds[0]) == (arguments[1], kinds[1]), name


def test_the_quickstart_runs_without_mem0_and_without_models(memory):
    added = memory.add(MESSAGES, user_id="alice", metadata={"category": "movies"})
    assert [one["memory"] for one in added["results"]] == [one["content"] for one in MESSAGES]
    best = memory.search("Which movies do I love?", filters={"user_id": "alice"})["results"][0]
    assert best["memory"] == "I'm not a big fan of thriller movies but I love sci-fi movies."
    assert best["score"] > 0.1 and best["metadata"] == {"category": "movies"} and best["attributed_to"] == "user"


def test_a_search_without_words_in_common_returns_the_other_memories_unless_the_threshold_is_raised(memory):
    memory.add("I love basketball.", user_id="alex")
    found = memory.search("What do you know about me?", filters={"user_id": "alex"})["results"]
    assert [(one["memory"], one["score"]) for one in found] == [("I love basketball.", 0.1)]
    assert memory.search("What do you know about me?", filters={"user_id": "alex"}, threshold=0.2) == {"results": []}


def test_a_search_does_not_find_words_of_the_metadata(memory):
    memory.add("I love basketball.", user_id="alex", metadata={"category": "hobbies"})
    assert memory.search("hobbies", filters={"user_id": "alex"}, threshold=0.2) == {"results": []}


def test_the_same_message_is_stored_once_for_each_user_agent_and_run_unless_infer_is_off(memory):
    assert (
        len(
            memory.add(["x", {"role": "user", "content": "Hello"}, {"role": "user", "content": "Hello"}], user_id="a")[
                "results"
            ]
        )
        == 1
    )
    assert memory.add("Hello", user_id="a") == {"results": []}
    for ids in ({"user_id": "b"}, {"user_id": "a", "run_id": "r"}, {"agent_id": "a"}):
        assert len(memory.add("Hello", **ids)["results"]) == 1
    assert len(memory.add("Hello", user_id="a", infer=False)["results"]) == 1
    assert len(memory.get_all(filters={"user_id": "a"})["results"]) == 3


def test_an_updated_memory_does_not_keep_its_old_text_from_being_stored_again(memory):
    first = memory.add("I live in Rome.", user_id="a")["results"][0]["id"]
    memory.update(first, "I live in Oslo.")
    assert memory.add("I live in Oslo.", user_id="a") == {"results": []}
    assert [one["memory"] for one in memory.add("I live in Rome.", user_id="a")["results"]] == ["I live in Rome."]


USERS = [
    "alice",
    "Alice",
    "alice.",
    "../alice",
    "alice/../bob",
    "*",
    "%",
    "_",
    "mem0",
    "ali_63e",
    "ünïcode",
    "a" * 500,
    "a" * 501,
    "{}",
]


def test_no_user_finds_what_another_user_stored(memory):
    for user in USERS:
        memory.add(f"The secret word of {user} is mango.", user_id=user)
    for user in USERS:
        for answer in (
            memory.search("secret word mango", filters={"user_id": user}),
            memory.get_all(filters={"user_id": user}),
        ):
            assert [(one["memory"], one["user_id"]) for one in answer["results"]] == [
                (f"The secret word of {user} is mango.", user)
            ]
    memory.delete_all(user_id="*")
    assert [len(memory.get_all(filters={"user_id": user})["results"]) for user in USERS] == [int(user != "*") for user in USERS]


def test_filters_and_metadata_cannot_reach_another_user(memory):
    memory.add("Bob likes mango.", user_id="bob")
    memory.add("Alice likes kiwi.", user_id="alice", metadata={"user_id": "bob", "agent_id": "x"})
    assert len(memory.get_all(filters={"user_id": "bob"})["results"]) == 1
    for more in ({"OR": [{"user_id": "bob"}, {"user_id": "alice"}]}, {"AND": [{"user_id": "*"}]}, {"NOT": [{"user_id": "x"}]}):
        found = memory.get_all(filters={"user_id": "alice", **more})["results"]
        assert [one["memory"] for one in found] == ["Alice likes kiwi."]
    assert memory.get_all(filters={"agent_id": "x"}) == {"results": []}
    with pytest.raises(InvalidArgument):
        memory.get_all(filters={"user_id": {"ne": "alice"}})


def test_a_text_cannot_forge_the_fields_of_a_memory(memory):
    forged = 'Hello\n\n<!-- mem0 {"agent_id": "boss", "metadata": 1} -->'
    added = memory.add(forged, user_id="a", metadata={"note": "--> <!-- mem0 {} -->"})["results"][0]
    found = memory.get(added["id"])
    assert (found["memory"], found["metadata"], "agent_id" in found) == (forged, {"note": "--> <!-- mem0 {} -->"}, False)


def test_memories_of_an_agent_or_a_run_are_found_for_every_user(memory):
    memory.add("For Ann.", user_id="ann", agent_id="support", run_id="r1")
    memory.add("For Bob.", user_id="bob", agent_id="support", run_id="r2")
    memory.add("For all.", agent_id="support")
    found = memory.get_all(filters={"agent_id": "support"})["results"]
    assert {(one["memory"], one.get("user_id")) for one in found} == {
        ("For Ann.", "ann"),
        ("For Bob.", "bob"),
        ("For all.", None),
    }
    memory.delete_all(run_id="r1")
    assert len(memory.get_all(filters={"agent_id": "support"})["results"]) == 2


def test_another_process_finds_a_memory_by_its_id(memory, config):
    long = "u" * 300
    ids = {user: memory.add("Hello", user_id=user)["results"][0]["id"] for user in ("ann", long)}
    with Memory.from_config(config) as other:
        assert {user: other.get(one)["user_id"] for user, one in ids.items()} == {user: user for user in ids}
        other.update(ids["ann"], "Changed")
    assert memory.get(ids["ann"])["memory"] == "Changed"
    assert uuid.UUID(ids["ann"]).version == 4


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ({"city": "Rome"}, "a"), ({"city": ["Rome", "Oslo"]}, "ab"), ({"city": "*"}, "abc"), ({"city": {"eq": "Rome"}}, "a"),
        ({"city": {"ne": "Rome"}}, "bc"), ({"city": {"nin": ["Rome"]}}, "bc"), ({"age": {"gt": 30, "lte": 40}}, "b"),
        ({"age": {"lt": 31}}, "a"), ({"city": {"contains": "om"}}, "a"), ({"city": {"icontains": "OSL"}}, "b"),
        ({"tags": "x"}, "a"), ({"tags": {"contains": "y"}}, "a"), ({"since": {"gte": "2026-02-01"}}, "b"),
        ({"OR": [{"city": "Rome"}, {"age": 40}]}, "ab"), ({"NOT": [{"city": "Rome"}, {"city": "Oslo"}]}, "c"),
        ({"AND": [{"city": "Rome"}, {"age": 40}]}, ""),
        ({"OR": [{"AND": [{"city": "Rome"}, {"age": 30}]}, {"city": "Oslo"}]}, "ab"),
        ({"vip": True}, "a"), ({"vip": 1}, ""), ({"data": {"contains": "Memory c"}}, "c"),
    ],
)  # fmt: skip
def test_filters_select_by_metadata(memory, filters, wanted):
    memory.add(
        "Memory a",
        user_id="u",
        metadata={"city": "Rome", "age": 30, "tags": ["x", "yy", "y"], "vip": True, "since": "2026-01-05"},
    )
    memory.add("Memory b", user_id="u", metadata={"city": "Oslo", "age": 40, "since": "2026-03-01T10:00:00Z"})
    memory.add("Memory c", user_id="u")
    for answer in (
        memory.get_all(filters={"user_id": "u", **filters}),
        memory.search("memory", filters={"user_id": "u", **filters}),
    ):
        assert "".join(sorted(one["memory"][-1] for one in answer["results"])) == wanted


def test_the_number_of_results_is_limited_after_the_filters(memory):
    for number in range(30):
        memory.add(f"Apple number {number}", user_id="u", metadata={"even": number % 2 == 0})
    assert len(memory.get_all(filters={"user_id": "u"})["results"]) == 20
    assert len(memory.search("apple", filters={"user_id": "u", "even": True}, top_k=15)["results"]) == 15
    assert len(memory.search("apple", filters={"user_id": "u"}, limit=4)["results"]) == 4
    assert memory.search("apple", filters={"user_id": "u"}, top_k=0) == {"results": []}


def test_an_expired_memory_is_hidden_unless_it_is_asked_for(memory, home):
    today = datetime.now(UTC).date()
    memory.add("Old apple", user_id="u", expiration_date=today - timedelta(days=1))
    current = memory.add("New apple", user_id="u", expiration_date=today.isoformat())["results"][0]["id"]
    for show, wanted in ((False, ["New apple"]), (True, ["New apple", "Old apple"])):
        for answer in (
            memory.search("apple", filters={"user_id": "u"}, show_expired=show),
            memory.get_all(filters={"user_id": "u"}, show_expired=show),
        ):
            assert sorted(one["memory"] for one in answer["results"]) == wanted
    with Store(home, project="mem0.user.u") as store:
        assert store.get(current).valid_to.startswith((today + timedelta(days=1)).isoformat())
    memory.update(current, expiration_date=None)
    assert "expiration_date" not in memory.get(current)


def test_the_history_is_made_of_the_versions_and_the_deletion(memory):
    one = memory.add("First", user_id="u", infer=False)["results"][0]["id"]
    memory.update(one, data="Second")
    assert [(event["event"], event["old_memory"], event["new_memory"]) for event in memory.history(one)] == [
        ("ADD", None, "First"), ("UPDATE", "First", "Second"),
    ]  # fmt: skip
    assert memory.history(one) == memory.history(one)
    memory.delete(one)
    assert [(event["event"], event["is_deleted"]) for event in memory.history(one)] == [("DELETE", True)]
    assert memory.history(str(uuid.uuid4())) == memory.history("no id") == []


def test_a_deleted_memory_can_be_restored_with_holdfast(memory, home):
    one = memory.add("Keep me", user_id="Ann")["results"][0]["id"]
    memory.delete(one)
    with Store(home, project="mem0.user._41nn") as store:
        store.restore(one)
    assert memory.get(one)["memory"] == "Keep me"


def test_a_secret_is_masked_or_with_redact_off_rejected(memory, home):
    text = "My key is " + "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    assert "[REDACTED:" in memory.add(text, user_id="u")["results"][0]["memory"]
    with Memory({"holdfast": {"home": str(home), "redact": False}}) as strict, pytest.raises(SecretFound):
        strict.add(text, user_id="v")


JWT = (
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6y"
)
SECRETS_BESIDE_QUOTES = [
    (f'{{"token": "{JWT}"}}', '{"token": "[REDACTED:jwt]"}'),
    ('password = Hunter2!x"quoted"', 'password = [REDACTED:password-assignment]"quoted"'),
    ('export API_KEY="q9Zx8Yw7Vu6Ts5Rq4Po3Nm2"', 'export API_KEY="[REDACTED:generic-api-key]"'),
]


@pytest.mark.parametrize(("value", "masked"), SECRETS_BESIDE_QUOTES)
def test_a_secret_beside_a_quote_in_metadata_is_masked_and_the_metadata_is_kept(memory, home, value, masked):
    one = memory.add("Deploy with this", user_id="u", metadata={"env": value, "step": 1})["results"][0]["id"]
    found = memory.get(one)
    assert (found["memory"], found["metadata"]) == ("Deploy with this", {"env": masked, "step": 1})
    memory.update(one, metadata={"more": [value]})
    found = memory.get(one)
    assert (found["memory"], found["metadata"]) == ("Deploy with this", {"env": masked, "step": 1, "more": [masked]})
    with Memory({"holdfast": {"home": str(home), "redact": False}}) as strict:
        with pytest.raises(SecretFound):
            strict.add("Deploy with this", user_id="v", metadata={"env": value})
        with pytest.raises(SecretFound):
            strict.update(one, metadata={"env": value})
        assert strict.get_all(filters={"user_id": "v"}) == {"results": []}


def test_metadata_that_would_be_unreadable_when_masked_is_rejected(memory):
    one = memory.add("Deploy with this", user_id="u", metadata={"step": 1})["results"][0]["id"]
    with pytest.raises(SecretFound, match="cannot be masked"):
        memory.add("Another text", user_id="u", metadata={"password": 'Hunter2!x"9'})
    with pytest.raises(SecretFound, match="cannot be masked"):
        memory.update(one, metadata={"password": 'Hunter2!x"9'})
    assert [(found["memory"], found["metadata"]) for found in memory.get_all(filters={"user_id": "u"})["results"]] == [
        ("Deploy with this", {"step": 1})
    ]


def test_metadata_without_an_end_is_rejected(memory):
    endless = {}
    endless["again"] = endless
    with pytest.raises(UsageError, match="not JSON"):
        memory.add("Deploy with this", user_id="u", metadata=endless)


def test_concurrent_updates_of_different_fields_all_succeed(memory):
    one = memory.add("Counter", user_id="u")["results"][0]["id"]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: memory.update(one, metadata={f"n{number}": number}), range(8)))
    assert memory.get(one)["metadata"] == {f"n{number}": number for number in range(8)}


def test_messages_in_parts_and_instructions(memory):
    parts = [
        {"type": "text", "text": "I have a"},
        {"type": "image_url", "image_url": {"url": "x"}},
        {"type": "text", "text": "dog."},
    ]
    added = memory.add([{"role": "system", "content": "Be kind."}, {"role": "user", "content": parts}], user_id="u")
    assert [one["memory"] for one in added["results"]] == ["I have a dog."]
    steps = memory.add(MESSAGES[:2], agent_id="a", memory_type="procedural_memory")["results"]
    assert len(steps) == 1 and memory.get(steps[0]["id"])["metadata"] == {"memory_type": "procedural_memory"}


def test_errors_say_what_to_do_and_are_also_those_of_mem0(memory):
    with pytest.raises(ValidationError) as raised:
        memory.add("Hello")
    assert (raised.value.error_code, raised.value.suggestion) == ("VALIDATION_001", "Pass the id of the user")
    assert isinstance(raised.value, UsageError) and isinstance(raised.value, ValueError)
    with pytest.raises(MemoryNotFound, match="not found"):
        memory.delete("no id")
    for wrong in ("text", {"holdfast": {"hom": "x"}}, {"holdfast": {"project": "../x"}}, {"holdfast": 1}):
        with pytest.raises(InvalidArgument):
            Memory(wrong)
    with pytest.raises(UsageError):
        memory.add("Hello", user_id="u", metadata={"when": datetime.now(UTC)})


def test_the_async_class_has_the_same_answers(config):
    async def run():
        async with AsyncMemory.from_config(config) as memory:
            added = await memory.add(MESSAGES, user_id="alice", infer=False)
            one = added["results"][0]["id"]
            await memory.update(one, "I love jazz.", metadata={"a": 1})
            found, everything, events = await asyncio.gather(
                memory.search("jazz", filters={"user_id": "alice"}, top_k=1), memory.get_all(filters={"user_id": "alice"}),
                memory.history(one),
            )  # fmt: skip
            assert found["results"][0]["memory"] == (await memory.get(one))["memory"] == "I love jazz."
            assert (len(everything["results"]), len(events)) == (4, 2)
            await memory.delete(one)
            await memory.delete_all(user_id="alice")
            await memory.reset()
            return await memory.get_all(filters={"user_id": "alice"})

    assert asyncio.run(run()) == {"results": []}


def remote_config(gateway):
    """Return the configuration of an application with a token of its own."""
    gateway.add_role("app", ("agent.memory.read", "agent.memory.write"), ("project",))
    return {"holdfast": {"home": f"http://127.0.0.1:{gateway.port}", "token": gateway.agent("app", "app").token}}


def check_program(memory):
    answers = quickstart(memory)
    assert [len(answer["results"]) for answer in (answers[0], answers[4], answers[9], answers[19])] == [4, 3, 8, 0]
    assert [event["event"] for event in answers[15]] == ["ADD", "UPDATE", "UPDATE"]
    test_no_user_finds_what_another_user_stored(memory)


def test_the_program_runs_on_postgresql(postgres_url):
    with Memory({"holdfast": {"home": postgres_url}}) as memory:
        check_program(memory)


def test_the_program_runs_over_http(any_gateway):
    with Memory.from_config(remote_config(any_gateway)) as memory:
        check_program(memory)


def test_deleting_more_memories_than_a_gateway_accepts_at_once_waits(gateway):
    with Memory.from_config(remote_config(gateway)) as memory:
        messages = [{"role": "user", "content": f"Fact {number}"} for number in range(130)]
        assert len(memory.add(messages, user_id="u", infer=False)["results"]) == 130
        memory.delete_all(user_id="u")
        assert memory.get_all(filters={"user_id": "u"}) == {"results": []}


def test_the_code_of_the_page_prints_what_the_page_shows(home, monkeypatch, capsys):
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    names = {}
    for block in blocks(PAGE, "python"):
        exec(compile(block, PAGE.name, "exec"), names)  # noqa: S102  # our own page
        check_comments(block, capsys.readouterr().out)
    assert names["added"]["results"]


def test_the_example_runs(run_example):
    assert run_example("mem0_quickstart.py").splitlines() == [
        "added: 3", "added again: 0", "found: I don't like thrillers, but I love sci-fi movies.", "found for bob: 0",
        "history: ['ADD', 'UPDATE']", "left: 0",
    ]  # fmt: skip


def test_an_archived_memory_is_still_a_memory(memory, home, clock):
    ids = [memory.add(f"{name} likes tea", user_id="u")["results"][0]["id"] for name in ("Ann", "Bob", "Cy")]
    clock.forward(days=1000)
    with Store(home, project="mem0.user.u") as store:
        store.retain()
        assert len(store.list(archived=True)) == 3
    assert len(memory.get_all(filters={"user_id": "u"})["results"]) == 3
    assert memory.add("Cy likes tea", user_id="u") == {"results": []}
    memory.delete(ids[0])
    memory.update(ids[1], "Bob likes soup")
    found = memory.search("likes", filters={"user_id": "u"})["results"]
    assert sorted(one["memory"] for one in found) == ["Bob likes soup", "Cy likes tea"]
    memory.delete_all(user_id="u")
    assert memory.get_all(filters={"user_id": "u"}) == {"results": []}


ADD_TEN = """
import sys
from holdfast.adapters.mem0 import Memory
with Memory({"holdfast": {"home": sys.argv[1]}}) as memory:
    for number in range(10):
        memory.add(f"{sys.argv[2]} {number}", user_id="shared", infer=False)
"""


def test_no_memory_of_concurrent_processes_is_lost(memory, home):
    writers = [subprocess.Popen([sys.executable, "-c", ADD_TEN, home, f"w{number}"]) for number in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    found = memory.get_all(filters={"user_id": "shared"}, top_k=100)["results"]
    assert {one["memory"] for one in found} == {f"w{writer} {number}" for writer in range(3) for number in range(10)}
    assert all(memory.get(one["id"]) for one in found)


def test_reset_leaves_other_notes_of_the_home(memory, home):
    memory.add("Hello", user_id="u")
    with Store(home, project="mem0") as store:
        store.store("A note of another program.", key="other")
        memory.reset()
        assert store.get("other").text == "A note of another program."
    assert memory.get_all(filters={"user_id": "u"}) == {"results": []}


@given(st.lists(st.text(st.characters(exclude_categories=("Cs",)), min_size=1), min_size=1, max_size=3))
def test_names_of_projects_are_reversible(parts):
    name = project_name("mem0.user", *parts)
    assert len(name) <= 128 and set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
    assert name_parts("mem0.user", name) in (None, parts)
    assert name_parts("mem0.user", name) or len(name) > 70


def test_a_pool_closes_the_memories_that_were_not_used_for_longest(home):
    pool = MemoryPool(lambda project: Store(home, project=project), size=2)
    with pool.use("a") as first:
        for name in "bcd":
            with pool.use(name) as memory:
                memory.store("Hello", key="k")
        with pool.use("a") as again:
            assert again is first
    with pool.use("b") as memory:
        assert memory.get("k").text == "Hello"
    pool.close()
