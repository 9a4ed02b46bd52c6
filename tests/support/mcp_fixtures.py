"""What the MCP conformance suite asks a server to have besides its own: tools, prompts and resources of fixed names.

The suite tests a protocol's implementation, and most of its scenarios call a tool of a name of theirs. They are put on our own
server, so that the suite walks through our own door; whatever is not theirs is answered as ever."""

from __future__ import annotations

import json

import mcp_types as types
from mcp.shared.message import ServerMessageMetadata

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}


def _text(text):
    return {"type": "text", "text": text}


def _resource(uri, kind, text):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}}


CONTENT = {
    "test_simple_text": [_text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}],
    "test_embedded_resource": [
        _resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        _text("Multiple content types test:"), IMAGE,
        _resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
}  # fmt: skip
_STATUS = {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"}
_OPTIONS = ["option1", "option2", "option3"]
_TITLED = [{"const": value, "title": f"Option {value}"} for value in ("value1", "value2", "value3")]
ELICITED = {
    "test_elicitation": {
        "type": "object",
        "properties": {"username": {"type": "string"}, "email": {"type": "string"}},
        "required": ["username", "email"],
    },
    "test_elicitation_sep1034_defaults": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"}, "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5}, "status": _STATUS, "verified": {"type": "boolean", "default": True},
        },
    },
    "test_elicitation_sep1330_enums": {
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": _OPTIONS}, "titledSingle": {"type": "string", "oneOf": _TITLED},
            "legacyEnum": {
                "type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _OPTIONS}},
            "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
        },
    },
}  # fmt: skip
PROMPTS = {
    "test_simple_prompt": lambda given: [_text("This is a simple prompt for testing.")],
    "test_prompt_with_arguments": lambda given: [
        _text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")
    ],
    "test_prompt_with_embedded_resource": lambda given: [
        _resource(given["resourceUri"], "text/plain", "Embedded resource content for testing."),
        _text("Please process the embedded resource above."),
    ],
    "test_prompt_with_image": lambda given: [IMAGE, _text("Please analyze the image above.")],
}


def dressed(server):
    """The server, with the suite's own things on it."""
    _instead(server, "tools/call", types.CallToolRequestParams, _tool)
    _instead(server, "prompts/get", types.GetPromptRequestParams, _prompt)
    _instead(server, "resources/read", types.ReadResourceRequestParams, _read)
    for method, params in [
        ("logging/setLevel", types.SetLevelRequestParams), ("resources/subscribe", types.SubscribeRequestParams),
        ("resources/unsubscribe", types.UnsubscribeRequestParams),
    ]:  # fmt: skip
        server.add_request_handler(method, params, _nothing)
    server.add_request_handler("completion/complete", types.CompleteRequestParams, _complete)
    return server


def _instead(server, method, params, theirs):
    ours = server.get_request_handler(method).handler

    async def either(ctx, given):
        answer = await theirs(ctx, given)
        return await ours(ctx, given) if answer is None else answer

    server.add_request_handler(method, params, either)


async def _nothing(ctx, given):
    return types.EmptyResult()


async def _complete(ctx, given):
    return types.CompleteResult(completion=types.Completion(values=[], total=0, has_more=False))


async def _tool(ctx, given):
    name = given.name
    beside = ServerMessageMetadata(related_request_id=ctx.request_id)
    if name in CONTENT:
        content = CONTENT[name]
    elif name == "test_error_handling":
        said = [_text("This tool intentionally returns an error for testing")]
        return types.CallToolResult.model_validate({"content": said, "isError": True})
    elif name == "test_tool_with_logging":
        for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            told = types.LoggingMessageNotificationParams(level="info", data=said)
            await ctx.session.send_notification(types.LoggingMessageNotification(params=told), ctx.request_id)
        content = [_text("done")]
    elif name == "test_tool_with_progress":
        for done in (0, 50, 100):
            await ctx.session.report_progress(done, 100)
        content = [_text("done")]
    elif name == "test_sampling":
        asked = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=given.arguments["prompt"]))
        wanted = types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[asked], max_tokens=100))
        answer = await ctx.session.send_request(wanted, types.CreateMessageResult, metadata=beside)
        content = [_text(f"LLM response: {answer.content.text}")]
    elif name in ELICITED:
        message = (given.arguments or {}).get("message", "Please tell.")
        answer = await ctx.session.elicit_form(message, ELICITED[name], ctx.request_id)
        content = [_text(f"Elicitation completed: action={answer.action}, content={json.dumps(answer.content)}")]
    else:
        return None
    return types.CallToolResult.model_validate({"content": content})


async def _prompt(ctx, given):
    if given.name not in PROMPTS:
        return None
    messages = [{"role": "user", "content": content} for content in PROMPTS[given.name](given.arguments or {})]
    return types.GetPromptResult.model_validate({"messages": messages})


async def _read(ctx, given):
    uri = str(given.uri)
    if uri == "test://static-text":
        said = {"mimeType": "text/plain", "text": "This is the content of the static text resource."}
    elif uri == "test://static-binary":
        said = {"mimeType": "image/png", "blob": PNG}
    elif uri.startswith("test://template/"):
        id = uri.split("/")[3]
        text = json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})
        said = {"mimeType": "application/json", "text": text}
    else:
        return None
    return types.ReadResourceResult.model_validate({"contents": [{"uri": uri, **said}]})
