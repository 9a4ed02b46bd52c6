"""The checks of a run: whether each holds, what was observed, and how to fix it if it fails."""

from __future__ import annotations

import json
import re
import tempfile
from typing import Any

from holdfast.base.record import Record
from holdfast.clients.base import Client, InstallTarget
from holdfast_prove.model_apis import Message, ModelRequest
from holdfast_prove.model_server import TOOL, ReceivedRequest
from holdfast_prove.run import DEFAULT_SECONDS, Run, read_version, run_client
from holdfast_prove.sandbox import FACT, FACT_VALUES, HoldfastCall

_INSTRUCTIONS_CHARS = 60  # of the start of the server's instructions, to find them in a request
_READ = "see docs/clients.md for what this client needs"
_ALLOW = "Allow the tools of the server holdfast in the client's settings"


class Check(Record):
    """The result of one check; the field names of this and the next classes are the keys of the JSON report."""

    name: str
    ok: bool
    seen: str
    fix: str = ""  # only if it fails


class RequestSummary(Record):
    """One request that reached the model."""

    path: str
    bytes: int
    pieces: tuple[str, ...]  # of each message: its role, its characters, and which texts of Holdfast it contains


class Proof(Record):
    """All checks of one run."""

    client: str
    program: str
    version: str
    ok: bool
    seconds: float
    checks: tuple[Check, ...]
    requests: tuple[RequestSummary, ...]
    refused: tuple[str, ...]  # hosts that the program tried to reach
    printed: str = ""  # the end of the program's output if a check fails


def prove(client: Client, program: str, place: InstallTarget, seconds: float = DEFAULT_SECONDS) -> tuple[Proof, Run]:
    """Run the client's program in a temporary private home and check the run."""
    with tempfile.TemporaryDirectory(prefix="holdfast-proof-", ignore_cleanup_errors=True) as root:
        run = run_client(client, program, command=place.command, environ=place.environ, root=root, seconds=seconds)
        version = read_version(program, place.environ, root)
    return check_run(client, run, version), run


def check_run(client: Client, run: Run, version: str = "") -> Proof:
    """Run every check, in the order in which things happen."""
    checks = [
        _check_program(run), _check_requests(run), _check_hooks(client, run), _check_briefing(run),
        _check_briefing_complete(run), _check_handshake(run), _check_tools(run), _check_recall(run), _check_fact(run),
    ]  # fmt: skip
    if client.reads_server_instructions:
        checks.append(_check_instructions(run))
    ok = all(check.ok for check in checks)
    return Proof(
        client=run.client, program=run.program, version=version, ok=ok, seconds=run.seconds, checks=tuple(checks),
        requests=tuple(_summarize(run, request, request.parsed) for request in run.requests if request.parsed),
        refused=run.refused_hosts, printed="" if ok else run.output,
    )  # fmt: skip


def _summarize(run: Run, request: ReceivedRequest, parsed: ModelRequest) -> RequestSummary:
    labels = {run.briefing_word: " with the briefing", run.recall_word: " with the recalled note"}
    pieces = [
        f"{message.role} {len(message.text):,}" + "".join(label for word, label in labels.items() if word in message.text)
        for message in parsed.messages
        if message.text
    ]
    return RequestSummary(request.path, len(request.body), tuple(pieces))


# --- checks -----------------------------------------------------------------------------------------------------------


def _check_program(run: Run) -> Check:
    name = "the program ran"
    if run.exit_code is None:
        fix = "Allow more time with --seconds. If the program waits for input, its version may need other arguments"
        return Check(name, False, f"stopped after {run.seconds} s", fix)
    if run.exit_code:
        return Check(name, False, f"exit code {run.exit_code} after {run.seconds} s", "Its output is shown below")
    return Check(name, True, f"{run.seconds} s")


def _check_requests(run: Run) -> Check:
    name, requests = "it asked the model", _model_requests(run)
    if not requests:
        return Check(name, False, "no request arrived", "Its version may need another model setting. Its output is shown below")
    return Check(name, True, f"{len(requests)} requests, {sum(len(request.body) for request in run.requests):,} bytes")


def _check_hooks(client: Client, run: Run) -> Check:
    """Check that the first hook that can add text for the model was called and no hook failed."""
    name, calls = "our hooks were called", _hook_calls(run)
    needed = [own for own, ours in client.events.items() if ours in client.injects[:1]]
    if not set(needed) & set(calls):
        seen = f"never {' or '.join(needed)}"
        return Check(name, False, seen, f"The client does not load our hooks, or does not trust them: {_READ}")
    failed = [event for event, call in calls.items() if call.exit_code]
    if failed:
        return Check(name, False, f"{', '.join(failed)} failed", "`holdfast doctor` shows the log of hooks")
    return Check(name, True, ", ".join(calls))


def _check_briefing(run: Run) -> Check:
    name, messages = "the briefing reached the model", find_messages(run, run.briefing_word)
    if messages:
        return Check(name, True, "in " + " and ".join(dict.fromkeys(f"a {message.role} message" for message in messages)))
    events = [event for event, call in _hook_calls(run).items() if run.briefing_word in call.stdout]
    if events:
        seen = f"{', '.join(events)} printed it, and the client dropped it"
        return Check(name, False, seen, "This version needs another format. Please report it with the folder of --keep")
    return Check(name, False, "no hook printed it", "`holdfast doctor` shows the log of hooks")


def _check_briefing_complete(run: Run) -> Check:
    """Check that the request contains the briefing exactly as the hook printed it."""
    name, briefing = "nothing of it was cut", _find_printed_text(run, run.briefing_word)
    if not briefing:
        return Check(name, False, "no briefing was printed", "Fix the red checks above")
    arrived = _count_arrived(run, run.briefing_word, briefing)
    seen = f"{arrived:,} of {len(briefing):,} characters"
    if not arrived:
        return Check(name, False, seen, "Fix the red checks above, or allow more time with `--seconds 120`")
    if arrived < len(briefing):
        return Check(name, False, seen, f"Make briefings shorter: `holdfast config brief.total_chars {max(arrived // 2, 750)}`")
    return Check(name, True, seen)


def _check_handshake(run: Run) -> Check:
    name, result, client = "MCP handshake", _find_initialize_result(run), _find_client_info(run)
    if result:
        return Check(name, True, f"protocol {result['protocolVersion']} with {client.get('name', 'an unnamed client')}")
    if not _server_calls(run):
        return Check(name, False, "the client did not start the server", f"It may read servers from another file: {_READ}")
    return Check(name, False, "the server did not answer", "Run `holdfast doctor`, then `holdfast mcp` in a terminal")


def _check_tools(run: Run) -> Check:
    name = "our tools are offered"
    offered = [tool for request in _model_requests(run) if (tool := request.find_tool(TOOL))]
    if offered:
        return Check(name, True, ".".join(filter(None, offered[0])))
    tool_results = [message.text for request in _model_requests(run) for message in request.messages if message.role == "tool"]
    if any(TOOL in text for text in tool_results):
        return Check(name, True, "held back, and found by the client's own search for tools")
    return Check(name, False, f"{TOOL} is not in any request", _ALLOW)


def _check_recall(run: Run) -> Check:
    name = "a recall came back to the model"
    results = [text for request in _model_requests(run) if (text := request.tool_result(TOOL)) is not None]
    if any(run.recall_word in text for text in results):
        return Check(name, True, f"{len(results[-1]):,} characters, with the note that is in no briefing")
    if results:
        seen = f"without the note: {results[-1][:200]!r}"
        return Check(name, False, seen, f"The result names the project, or says what was rejected: {_READ}")
    return Check(name, False, "the tool was not called, or its answer was lost", _ALLOW)


def _check_fact(run: Run) -> Check:
    """Check that the current value of the fact reached the model and the old one did not."""
    name, shown = "a changed fact has its new value only", _find_fact_values(run)
    *old, current = FACT_VALUES.values()
    stale = [value for value in old if value in shown]
    if current in shown and not stale:
        return Check(name, True, f"{' '.join(FACT)}: {current}")
    if stale:
        seen = f"the old value {' and '.join(stale)} reached the model"
        return Check(name, False, seen, "Please report it with the folder of --keep")
    return Check(name, False, f"{current} did not reach the model", "`holdfast doctor` shows the log of hooks")


def _check_instructions(run: Run) -> Check:
    name, instructions = (
        "the server's instructions reached the model",
        str(_find_initialize_result(run).get("instructions", "")),
    )
    start = instructions[:_INSTRUCTIONS_CHARS]
    encoded = [json.dumps(start, ensure_ascii=ascii_only)[1:-1].encode() for ascii_only in (True, False)]
    bodies = [request.body for request in run.requests if request.parsed]
    if instructions and any(text in body for body in bodies for text in encoded):
        return Check(name, True, f"{len(instructions):,} characters")
    return Check(
        name, False, "not seen", "This version does not pass them on. The skill holdfast-memory has the same instructions"
    )


# --- observations of a run --------------------------------------------------------------------------------------------


def find_messages(run: Run, word: str) -> list[Message]:
    """Return the messages that contain a word in the first request with any, without results of tools."""
    for request in _model_requests(run):
        if found := [message for message in request.messages if word in message.text and message.role != "tool"]:
            return found
    return []


def _model_requests(run: Run) -> list[ModelRequest]:
    """Return the requests for the model."""
    return [request.parsed for request in run.requests if request.parsed]


def _hook_calls(run: Run) -> dict[str, HoldfastCall]:
    """Return the last call of each hook by the client's name of its event."""
    return {call.command[-1]: call for call in run.calls if "hook" in call.command}


def _server_calls(run: Run) -> list[HoldfastCall]:
    """Return the runs of the MCP server."""
    return [call for call in run.calls if "mcp" in call.command]


def _find_fact_values(run: Run) -> set[str]:
    """Return the values of the fact that reached the model, without results of tools."""
    texts = [
        message.text
        for request in _model_requests(run)
        for message in request.messages
        if message.role not in ("tool", "assistant")
    ]
    label = re.escape(FACT[1])
    patterns = {value: rf"{label}[^\n]{{0,60}}?(?<![\d.,]){re.escape(value)}" for value in FACT_VALUES.values()}
    return {value for value, pattern in patterns.items() if any(re.search(pattern, text) for text in texts)}


def _find_client_info(run: Run) -> dict[str, Any]:
    """Return the name and version that the client sends in the MCP handshake."""
    for call in _server_calls(run):
        for message in call.received_messages:
            if message.get("method") == "initialize":
                return _as_object(_as_object(message.get("params")).get("clientInfo"))
    return {}


def _find_initialize_result(run: Run) -> dict[str, Any]:
    """Return the server's result of the MCP handshake."""
    for call in _server_calls(run):
        for message in call.sent_messages:
            if "protocolVersion" in (result := _as_object(message.get("result"))):
                return result
    return {}


def _find_printed_text(run: Run, word: str) -> str:
    """Return the first text with this word that a hook printed, without the JSON around it."""
    for call in run.calls:
        if "hook" in call.command and word in call.stdout:
            return next(text for text in _list_texts(call.stdout) if word in text).strip()
    return ""


def _count_arrived(run: Run, word: str, text: str) -> int:
    """Return how many characters of a text, from its start, are in the messages with the word."""
    return max([_count_common(text, _unescape(message.text)) for message in find_messages(run, word)], default=0)


def _count_common(text: str, message: str) -> int:
    """Return the length of the longest start of the text that the message contains."""
    if text in message:
        return len(text)
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if text[:middle] in message else (low, middle - 1)
    return low


def _unescape(text: str) -> str:
    """Return the text without the escapes that some clients add to angle brackets, quotes and ampersands."""
    if "&lt;" not in text:
        return text
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&")


def _list_texts(output: str) -> list[str]:
    """Return the strings in a JSON document, or the whole output if it is not JSON."""
    try:
        value = json.loads(output)
    except ValueError:
        return [output]
    return _list_strings(value)


def _list_strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in _list_strings(item)]
    return [value] if isinstance(value, str) else []


def _as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
