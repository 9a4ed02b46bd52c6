"""The model on loopback: every dialect is read into the same words, one call is made, and nobody gets out through it."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast_prove.model_server import GOODBYE, Model

TOOL = "memory_recall"
QUERY = {"query": "cats"}


@pytest.fixture
def model():
    with Model("cats") as model:
        yield model


def ask(model, path, body, *, method="POST", headers=None, encode=True):
    connection = http.client.HTTPConnection("127.0.0.1", int(model.url.rpartition(":")[2]), timeout=30)
    data = json.dumps(body).encode() if encode and body is not None else body
    connection.request(method, path, data, headers or {})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    assert answer.status == 200
    return answer.getheader("Content-Type"), content


def events(content):
    """The data of server-sent events."""
    data = [line.removeprefix("data: ") for line in content.decode().split("\n") if line.startswith("data: ")]
    return [json.loads(one) for one in data if one != "[DONE]"]


# Each dialect: where it is asked, a first request with a tool in it, the same with the tool's answer, and how to read answers.


def messages(tool, answer=None, stream=False, **more):
    said = [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]
    if answer is not None:
        result = {"type": "tool_result", "tool_use_id": f"call_{TOOL}", "content": [{"type": "text", "text": answer}]}
        said += [{"role": "user", "content": [result]}]
    system = [{"type": "text", "text": "be kind"}]
    return "/v1/messages?beta=true", {"system": system, "messages": said, "tools": [{"name": tool}], "stream": stream}


def responses(tool, answer=None, stream=False, space=""):
    said = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}]
    if answer is not None:
        said += [{"type": "function_call_output", "call_id": f"call_{TOOL}", "output": answer}]
    one = {"type": "function", "name": tool}
    tools = [{"type": "namespace", "name": space, "tools": [one]}] if space else [one, {"type": "web_search"}]
    return "/v1/responses", {"instructions": "be kind", "input": said, "tools": tools, "stream": stream}


def completions(tool, answer=None, stream=False, **more):
    said = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hello"}]
    if answer is not None:
        said += [{"role": "tool", "tool_call_id": f"call_{TOOL}", "content": answer}]
    tools = [{"type": "function", "function": {"name": tool}}]
    return "/v1/chat/completions", {"messages": said, "tools": tools, "stream": stream}


def contents(tool, answer=None, stream=False, **more):
    said = [{"role": "user", "parts": [{"text": "hello"}]}]
    if answer is not None:
        said += [{"role": "user", "parts": [{"functionResponse": {"name": tool, "response": {"output": answer}}}]}]
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    body = {"systemInstruction": {"parts": [{"text": "be kind"}]}, "contents": said}
    return f"/v1beta/models/any:{verb}", {**body, "tools": [{"functionDeclarations": [{"name": tool}]}]}


def called(dialect, content, stream):
    """The tool that an answer calls and with what, or the text that it says."""
    found = events(content) if stream else [json.loads(content)]
    if dialect is messages and stream:
        block, delta = found[1]["content_block"], found[2]["delta"]
        return (block["name"], json.loads(delta["partial_json"])) if block["type"] == "tool_use" else delta["text"]
    if dialect is messages:
        block = found[0]["content"][0]
        return (block["name"], block["input"]) if block["type"] == "tool_use" else block["text"]
    if dialect is responses:
        item = (found[-1]["response"] if stream else found[0])["output"][0]
        return (item["name"], json.loads(item["arguments"])) if item["type"] == "function_call" else item["content"][0]["text"]
    if dialect is completions:
        said = found[0]["choices"][0]["delta" if stream else "message"]
        calls = [one["function"] for one in said.get("tool_calls", [])]
        return (calls[0]["name"], json.loads(calls[0]["arguments"])) if calls else said["content"]
    part = found[0]["candidates"][0]["content"]["parts"][0]
    return (part["functionCall"]["name"], part["functionCall"]["args"]) if "functionCall" in part else part["text"]


DIALECTS = [messages, responses, completions, contents]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_tool_is_called_once_and_its_answer_ends_the_conversation(model, dialect, stream):
    own = "mcp__plugin_holdfast_holdfast__memory_recall"
    kind, content = ask(model, *dialect(own, stream=stream))
    assert kind == ("text/event-stream" if stream else "application/json")
    assert called(dialect, content, stream) == (own, QUERY)
    _, content = ask(model, *dialect(own, answer="Tom", stream=stream))
    assert called(dialect, content, stream) == GOODBYE
    first, second = model.asks
    assert {(one.role, one.text) for one in first.said} >= {("system", "be kind"), ("user", "hello")}
    assert (first.answer_of(TOOL), second.answer_of(TOOL)) == (None, "Tom")


@pytest.mark.parametrize("own", [TOOL, "mcp_holdfast_memory_recall", "holdfast-memory_recall", "holdfast_memory_recall"])
def test_the_tool_is_known_whatever_a_client_puts_before_its_name(model, own):
    _, content = ask(model, *completions(own))
    assert called(completions, content, False)[0] == own


def test_a_name_that_only_ends_alike_is_another_tool(model):
    _, content = ask(model, *completions("notmemory_recall"))
    assert called(completions, content, False) == GOODBYE


def test_a_tool_in_a_group_is_called_in_its_group(model):
    _, content = ask(model, *responses(TOOL, space="mcp__holdfast"))
    item = json.loads(content)["output"][0]
    assert (item["namespace"], item["name"]) == ("mcp__holdfast", TOOL)


def test_a_tool_that_is_held_back_is_searched_for_and_then_called_through_the_bridge(model):
    path, body = completions("tool_search")
    body["tools"].append({"type": "function", "function": {"name": "tool_call"}})
    _, content = ask(model, path, body)
    assert called(completions, content, False)[0] == "tool_search"
    found = {"role": "tool", "tool_call_id": "call_tool_search", "content": '{"name":"mcp__holdfast__memory_recall"}'}
    body["messages"].append(found)
    _, content = ask(model, path, body)
    assert called(completions, content, False) == (
        "tool_call", {"name": "mcp__holdfast__memory_recall", "arguments": QUERY},
    )  # fmt: skip
    body["messages"].append({"role": "tool", "tool_call_id": f"call_{TOOL}", "content": "Tom"})
    assert called(completions, ask(model, path, body)[1], False) == GOODBYE


def test_a_search_that_finds_nothing_ends_the_conversation(model):
    path, body = completions("ToolSearch")
    body["messages"].append({"role": "tool", "tool_call_id": "call_ToolSearch", "content": "nothing"})
    assert called(completions, ask(model, path, body)[1], False) == GOODBYE


def test_a_request_without_tools_is_only_answered(model):
    path, body = completions("x")
    del body["tools"]
    assert called(completions, ask(model, path, body)[1], False) == GOODBYE


def test_what_is_asked_beside_the_conversation_has_an_answer(model):
    assert json.loads(ask(model, "/v1/models", None, method="GET")[1])["data"]
    assert json.loads(ask(model, "/v1/messages/count_tokens", {})[1])["input_tokens"]
    assert json.loads(ask(model, "/v1beta/models/any:countTokens", {})[1])["totalTokens"]
    assert json.loads(ask(model, "/anything/else", {})[1]) == {}
    assert model.asks == []


def test_every_request_is_kept_byte_for_byte_also_one_that_comes_in_chunks_or_packed(model):
    path, body = completions(TOOL)
    raw = json.dumps(body).encode()
    ask(model, path, raw, encode=False)
    ask(model, path, iter([raw[:7], raw[7:]]), encode=False)
    ask(model, path, gzip.compress(raw), encode=False, headers={"Content-Encoding": "gzip"})
    assert [one.body for one in model.requests] == [raw, raw, raw]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"messages": 3, "tools": {"a": 1}}', b'{"messages": [1, null]}', b"\xff"])
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses", "/v1/chat/completions", "/m:generateContent"])
def test_whatever_comes_has_an_answer(model, path, body):
    ask(model, path, body, encode=False)
    assert model.requests[0].body == body


def test_many_may_ask_at_once(model):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: ask(model, *completions(TOOL)), range(24)))
    assert len({content for _, content in answers}) == 1
    assert len(model.requests) == 24


@pytest.mark.promise("promise-6")
def test_it_listens_on_loopback_only_and_lets_nobody_out(model):
    host, _, port = model.url.removeprefix("http://").partition(":")
    assert (host, model._server.server_address[0]) == ("127.0.0.1", "127.0.0.1")
    with socket.create_connection((host, int(port)), timeout=30) as wire:
        wire.sendall(b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n")
        assert wire.recv(100).startswith(b"HTTP/1.1 403")
    assert model.refused == ["example.com:443"]
