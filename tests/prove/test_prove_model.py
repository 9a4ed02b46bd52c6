"""The model server on loopback: it parses requests of every API, calls one tool, and refuses connections to other hosts."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast_prove.model_server import FINAL_TEXT, ModelServer

TOOL = "memory_recall"
QUERY = {"query": "cats"}


@pytest.fixture
def model():
    with ModelServer("cats") as model:
        yield model


def send(model, path, body, *, method="POST", headers=None, encode=True):
    connection = http.client.HTTPConnection("127.0.0.1", int(model.url.rpartition(":")[2]), timeout=30)
    data = json.dumps(body).encode() if encode and body is not None else body
    connection.request(method, path, data, headers or {})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    assert answer.status == 200
    return answer.getheader("Content-Type"), content


def parse_events(content):
    """Return the data of server-sent events."""
    data = [line.removeprefix("data: ") for line in content.decode().split("\n") if line.startswith("data: ")]
    return [json.loads(one) for one in data if one != "[DONE]"]


# For each API: the path and a request that offers a tool, with the result of the tool if it is given.


def messages(tool, result=None, stream=False, **more):
    parts = [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]
    if result is not None:
        part = {"type": "tool_result", "tool_use_id": f"call_{TOOL}", "content": [{"type": "text", "text": result}]}
        parts += [{"role": "user", "content": [part]}]
    system = [{"type": "text", "text": "be kind"}]
    return "/v1/messages?beta=true", {"system": system, "messages": parts, "tools": [{"name": tool}], "stream": stream}


def responses(tool, result=None, stream=False, namespace=""):
    items = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}]
    if result is not None:
        items += [{"type": "function_call_output", "call_id": f"call_{TOOL}", "output": result}]
    function = {"type": "function", "name": tool}
    group = {"type": "namespace", "name": namespace, "tools": [function]}
    tools = [group] if namespace else [function, {"type": "web_search"}]
    return "/v1/responses", {"instructions": "be kind", "input": items, "tools": tools, "stream": stream}


def completions(tool, result=None, stream=False, **more):
    parts = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hello"}]
    if result is not None:
        parts += [{"role": "tool", "tool_call_id": f"call_{TOOL}", "content": result}]
    tools = [{"type": "function", "function": {"name": tool}}]
    return "/v1/chat/completions", {"messages": parts, "tools": tools, "stream": stream}


def contents(tool, result=None, stream=False, **more):
    parts = [{"role": "user", "parts": [{"text": "hello"}]}]
    if result is not None:
        parts += [{"role": "user", "parts": [{"functionResponse": {"name": tool, "response": {"output": result}}}]}]
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    body = {"systemInstruction": {"parts": [{"text": "be kind"}]}, "contents": parts}
    return f"/v1beta/models/any:{verb}", {**body, "tools": [{"functionDeclarations": [{"name": tool}]}]}


def parse_reply(api, content, stream):
    """Return the tool that a reply calls and its arguments, or its text."""
    found = parse_events(content) if stream else [json.loads(content)]
    if api is messages and stream:
        block, delta = found[1]["content_block"], found[2]["delta"]
        return (block["name"], json.loads(delta["partial_json"])) if block["type"] == "tool_use" else delta["text"]
    if api is messages:
        block = found[0]["content"][0]
        return (block["name"], block["input"]) if block["type"] == "tool_use" else block["text"]
    if api is responses:
        item = (found[-1]["response"] if stream else found[0])["output"][0]
        return (item["name"], json.loads(item["arguments"])) if item["type"] == "function_call" else item["content"][0]["text"]
    if api is completions:
        message = found[0]["choices"][0]["delta" if stream else "message"]
        calls = [call["function"] for call in message.get("tool_calls", [])]
        return (calls[0]["name"], json.loads(calls[0]["arguments"])) if calls else message["content"]
    part = found[0]["candidates"][0]["content"]["parts"][0]
    return (part["functionCall"]["name"], part["functionCall"]["args"]) if "functionCall" in part else part["text"]


APIS = [messages, responses, completions, contents]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("api", APIS)
def test_the_tool_is_called_once_and_its_result_ends_the_conversation(model, api, stream):
    own = "mcp__plugin_holdfast_holdfast__memory_recall"
    kind, content = send(model, *api(own, stream=stream))
    assert kind == ("text/event-stream" if stream else "application/json")
    assert parse_reply(api, content, stream) == (own, QUERY)
    _, content = send(model, *api(own, result="Tom", stream=stream))
    assert parse_reply(api, content, stream) == FINAL_TEXT
    first, second = model.model_requests
    assert {(message.role, message.text) for message in first.messages} >= {("system", "be kind"), ("user", "hello")}
    assert (first.tool_result(TOOL), second.tool_result(TOOL)) == (None, "Tom")


@pytest.mark.parametrize("own", [TOOL, "mcp_holdfast_memory_recall", "holdfast-memory_recall", "holdfast_memory_recall"])
def test_the_tool_is_recognised_with_any_prefix(model, own):
    _, content = send(model, *completions(own))
    assert parse_reply(completions, content, False)[0] == own


def test_a_name_with_the_same_ending_is_another_tool(model):
    _, content = send(model, *completions("notmemory_recall"))
    assert parse_reply(completions, content, False) == FINAL_TEXT


def test_a_tool_in_a_namespace_is_called_in_its_namespace(model):
    _, content = send(model, *responses(TOOL, namespace="mcp__holdfast"))
    item = json.loads(content)["output"][0]
    assert (item["namespace"], item["name"]) == ("mcp__holdfast", TOOL)


def test_a_deferred_tool_is_searched_for_and_then_called_through_tool_call(model):
    path, body = completions("tool_search")
    body["tools"].append({"type": "function", "function": {"name": "tool_call"}})
    _, content = send(model, path, body)
    assert parse_reply(completions, content, False)[0] == "tool_search"
    found = {"role": "tool", "tool_call_id": "call_tool_search", "content": '{"name":"mcp__holdfast__memory_recall"}'}
    body["messages"].append(found)
    _, content = send(model, path, body)
    assert parse_reply(completions, content, False) == (
        "tool_call", {"name": "mcp__holdfast__memory_recall", "arguments": QUERY},
    )  # fmt: skip
    body["messages"].append({"role": "tool", "tool_call_id": f"call_{TOOL}", "content": "Tom"})
    assert parse_reply(completions, send(model, path, body)[1], False) == FINAL_TEXT


def test_a_search_that_finds_nothing_ends_the_conversation(model):
    path, body = completions("ToolSearch")
    body["messages"].append({"role": "tool", "tool_call_id": "call_ToolSearch", "content": "nothing"})
    assert parse_reply(completions, send(model, path, body)[1], False) == FINAL_TEXT


def test_a_request_without_tools_ends_the_conversation(model):
    path, body = completions("x")
    del body["tools"]
    assert parse_reply(completions, send(model, path, body)[1], False) == FINAL_TEXT


def test_requests_for_models_and_token_counts_are_answered(model):
    assert json.loads(send(model, "/v1/models", None, method="GET")[1])["data"]
    assert json.loads(send(model, "/v1/messages/count_tokens", {})[1])["input_tokens"]
    assert json.loads(send(model, "/v1beta/models/any:countTokens", {})[1])["totalTokens"]
    assert json.loads(send(model, "/anything/else", {})[1]) == {}
    assert model.model_requests == []


def test_every_request_is_kept_byte_for_byte_also_if_chunked_or_compressed(model):
    path, body = completions(TOOL)
    raw = json.dumps(body).encode()
    send(model, path, raw, encode=False)
    send(model, path, iter([raw[:7], raw[7:]]), encode=False)
    send(model, path, gzip.compress(raw), encode=False, headers={"Content-Encoding": "gzip"})
    assert [one.body for one in model.requests] == [raw, raw, raw]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"messages": 3, "tools": {"a": 1}}', b'{"messages": [1, null]}', b"\xff"])
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses", "/v1/chat/completions", "/m:generateContent"])
def test_any_request_gets_a_response(model, path, body):
    send(model, path, body, encode=False)
    assert model.requests[0].body == body


def test_concurrent_requests_are_answered(model):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: send(model, *completions(TOOL)), range(24)))
    assert len({content for _, content in answers}) == 1
    assert len(model.requests) == 24


@pytest.mark.promise("promise-6")
def test_it_listens_on_loopback_only_and_refuses_proxy_connections(model):
    host, _, port = model.url.removeprefix("http://").partition(":")
    assert (host, model._server.server_address[0]) == ("127.0.0.1", "127.0.0.1")
    with socket.create_connection((host, int(port)), timeout=30) as wire:
        wire.sendall(b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n")
        assert wire.recv(100).startswith(b"HTTP/1.1 403")
    assert model.refused_hosts == ["example.com:443"]
