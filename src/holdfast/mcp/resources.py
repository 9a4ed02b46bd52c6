"""Notes and the briefing as resources, and the two prompts."""

from __future__ import annotations

from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from holdfast.api.memory import Memory
from holdfast.base.ids import KEY_PATTERN
from holdfast.errors import HoldfastError
from holdfast.mcp import guidance
from holdfast.mcp.project_resolution import Caller
from holdfast.mcp.prompts import BOOT, BRIEFING, MARKDOWN, NOTES, SAVE
from holdfast.models import SCOPES, Note
from holdfast.safety.escape import escape_text
from holdfast.safety.model_text import show_hidden
from holdfast.safety.validate import hide_secrets
from holdfast.verbs.brief import render

_RECENT = 50  # notes in the list of resources
_RESOURCE_NOT_FOUND = -32002  # the protocol's code for a missing resource, up to 2025-11-25


def list_resources(memory: Memory) -> list[dict[str, Any]]:
    """Return the briefing and the notes that changed last."""
    start = {
        "uri": BRIEFING,
        "name": "briefing",
        "title": "Briefing",
        "description": "What an agent is shown when it starts.",
        "mimeType": "text/plain",
    }
    return [start, *[_describe_note(note) for note in memory.list(limit=_RECENT) if KEY_PATTERN.match(note.key)]]


def read_resource(memory: Memory, uri: str, version: str) -> dict[str, Any]:
    """Return the text of a resource; raise `MCPError` if there is none."""
    if uri == BRIEFING:
        return _contents(uri, memory.brief(remember=False).text, "text/plain")
    scope, slash, key = uri.removeprefix(NOTES).partition("/")
    if not uri.startswith(NOTES) or not slash or scope not in SCOPES:
        raise _not_found(uri, version)
    try:
        return _contents(uri, _note_block(memory.get(key, scope=scope)), MARKDOWN)
    except HoldfastError as error:
        raise _not_found(uri, version, str(error)) from None


def get_prompt(memory: Memory, caller: Caller, name: str, given: dict[str, str]) -> dict[str, Any]:
    """Return the text of a prompt; raise `MCPError` for an unknown one."""
    if name == SAVE["name"]:
        focus = " ".join(given.get("focus", "").split())[:500]
        return _prompt_result(SAVE, guidance.SAVE.replace("{focus}", f" with a focus on {focus}" if focus else ""))
    if name == BOOT["name"]:
        text = _boot(memory, caller) or memory.brief(remember=False).text
        return _prompt_result(BOOT, text or "Memory is empty: nothing to start from.")
    raise MCPError(code=INVALID_PARAMS, message=f"Unknown prompt: {escape_text(name[:80])}")


def _boot(memory: Memory, caller: Caller) -> str:
    """Return the boot text of the agent, or of the project."""
    if caller.has_no_project and not caller.agent:
        return ""
    known = caller.known_client()
    return memory.boot(scaffolds=known.scaffolds if known else ()).text


def _describe_note(note: Note) -> dict[str, Any]:
    first = "In quarantine: not approved by a person."
    if not note.quarantined:
        first = escape_text(show_hidden(hide_secrets(note.text).split("\n", 1)[0]))
    return {
        "uri": f"{NOTES}{note.scope.kind}/{note.key}",
        "name": f"{note.scope.kind}/{note.key}",
        "title": note.key,
        "description": first if len(first) <= 120 else first[:119] + "…",
        "mimeType": MARKDOWN,
        "annotations": {"lastModified": note.updated},
    }


def _note_block(note: Note) -> str:
    """Return a note for a context: data between marks, like a briefing. Secrets are redacted before the lines are indented,
    because an indented secret may not be recognised."""
    view = render.NoteView(note.scope.kind, note.key, note.updated[:10], note.source.origin, hide_secrets(note.text))
    return render.compose_note(view, ", in quarantine" if note.quarantined else "")


def _contents(uri: str, text: str, kind: str) -> dict[str, Any]:
    return {"contents": [{"uri": uri, "mimeType": kind, "text": show_hidden(text)}]}


def _prompt_result(prompt: dict[str, Any], text: str) -> dict[str, Any]:
    message = {"role": "user", "content": {"type": "text", "text": show_hidden(text)}}
    return {"description": prompt["description"], "messages": [message]}


def _not_found(uri: str, version: str, why: str = "") -> MCPError:
    code = _RESOURCE_NOT_FOUND if version <= "2025-11-25" else INVALID_PARAMS
    return MCPError(code=code, message=escape_text(why) or "No such resource", data={"uri": show_hidden(uri[:500])})
