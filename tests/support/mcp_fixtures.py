"""Tools, prompts and resources that the MCP conformance suite expects on a server.

Most scenarios of the suite call a tool with a fixed name. These are added to Holdfast's server, so that the suite tests its
protocol implementation; all other requests are handled as usual.
"""

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
ELICITATION_SCHEMAS = {
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
    "test_simple_prompt": lambda arguments: [_text("This is a simple prompt for testing.")],
    "test_prompt_with_arguments": lambda arguments: [
        _text(f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'")
    ],
    "test_prompt_with_embedded_resource": lambda arguments: [
        _resource(arguments["resourceUri"], "text/plain", "Embedded resource content for testing."),
        _text("Please process the embedded resource above."),
    ],
    "test_prompt_with_image": lambda arguments: [IMAGE, _text("Please analyze the image above.")],
}


def add_conformance_fixtures(server):
    """Add the tools, prompts and resources of the suite to a server and return it."""
    _handle_first(server, "tools/call", types.CallToolRequestParams, _call_tool)
    _handle_first(server, "prompts/get", types.GetPromptRequestParams, _get_prompt)
    _handle_first(server, "resources/read", types.ReadResourceRequestParams, _read_resource)
    for method, params in [
        ("logging/setLevel", types.SetLevelRequestParams), ("resources/subscribe", types.SubscribeRequestParams),
        ("resources/unsubscribe", types.UnsubscribeRequestParams),
    ]:  # fmt: skip
        server.add_request_handler(method, params, _return_empty)
    server.add_request_handler("completion/complete", types.CompleteRequestParams, _complete)
    return server


def _handle_first(server, method, params_type, handle_fixture):
    """Handle a method with this function, and with the server's own handler if it returns None."""
    handle_own = server.get_request_handler(method).handler

    async def handle(ctx, params):
        result = await handle_fixture(ctx, params)
        return await handle_own(ctx, params) if result is None else result

    server.add_request_handler(method, params_type, handle)


async def _return_empty(ctx, params):
    return types.EmptyResult()


async def _complete(ctx, params):
    return types.CompleteResult(completion=types.Completion(values=[], total=0, has_more=False))


async def _call_tool(ctx, params):
    name = params.name
    metadata = ServerMessageMetadata(related_request_id=ctx.request_id)
    if name in CONTENT:
        content = CONTENT[name]
    elif name == "test_error_handling":
        error = [_text("This tool intentionally returns an error for testing")]
        return types.CallToolResult.model_validate({"content": error, "isError": True})
    elif name == "test_tool_with_logging":
        for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            message = types.LoggingMessageNotificationParams(level="info", data=text)
            await ctx.session.send_notification(types.LoggingMessageNotification(params=message), ctx.request_id)
        content = [_text("done")]
    elif name == "test_tool_with_progress":
        for progress in (0, 50, 100):
            await ctx.session.report_progress(progress, 100)
        content = [_text("done")]
    elif name == "test_sampling":
        message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=params.arguments["prompt"]))
        request = types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=100))
        answer = await ctx.session.send_request(request, types.CreateMessageResult, metadata=metadata)
        content = [_text(f"LLM response: {answer.content.text}")]
    elif name in ELICITATION_SCHEMAS:
        message = (params.arguments or {}).get("message", "Please tell.")
        answer = await ctx.session.elicit_form(message, ELICITATION_SCHEMAS[name], ctx.request_id)
        content = [_text(f"Elicitation completed: action={answer.action}, content={json.dumps(answer.content)}")]
    else:
        return None
    return types.CallToolResult.model_validate({"content": content})


async def _get_prompt(ctx, params):
    if params.name not in PROMPTS:
        return None
    messages = [{"role": "user", "content": content} for content in PROMPTS[params.name](params.arguments or {})]
    return types.GetPromptResult.model_validate({"messages": messages})


async def _read_resource(ctx, params):
    uri = str(params.uri)
    if uri == "test://static-text":
        content = {"mimeType": "text/plain", "text": "This is the content of the static text resource."}
    elif uri == "test://static-binary":
        content = {"mimeType": "image/png", "blob": PNG}
    elif uri.startswith("test://template/"):
        id = uri.split("/")[3]
        text = json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})
        content = {"mimeType": "application/json", "text": text}
    else:
        return None
    return types.ReadResourceResult.model_validate({"contents": [{"uri": uri, **content}]})
