"""What a client can attach or pick by hand: notes and the briefing as resources, and two prompts."""

from __future__ import annotations

from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from holdfast.api.memory import Memory
from holdfast.base.ids import KEY_PATTERN
from holdfast.errors import HoldfastError
from holdfast.mcp import guidance
from holdfast.mcp.handlers import sound
from holdfast.mcp.project_resolution import Caller
from holdfast.mcp.prompts import BOOT, BRIEFING, MARKDOWN, NOTES, SAVE
from holdfast.models import SCOPES, Note
from holdfast.safety.validate import without_secrets
from holdfast.verbs.brief import render

_RECENT = 50
_NOT_FOUND = -32002  # what the protocol says for a resource that is not there, up to 2025-11-25


def listed(memory: Memory) -> list[dict[str, Any]]:
    """The briefing, and the notes that changed last."""
    start = {
        "uri": BRIEFING,
        "name": "briefing",
        "title": "Briefing",
        "description": "What an agent is told when it starts.",
        "mimeType": "text/plain",
    }
    return [start, *[_shown(note) for note in memory.list(limit=_RECENT) if KEY_PATTERN.match(note.key)]]


def read(memory: Memory, uri: str, version: str) -> dict[str, Any]:
    """The text of a resource."""
    if uri == BRIEFING:
        return _contents(uri, memory.brief(remember=False).text, "text/plain")
    scope, slash, key = uri.removeprefix(NOTES).partition("/")
    if not uri.startswith(NOTES) or not slash or scope not in SCOPES:
        raise _missing(uri, version)
    try:
        return _contents(uri, _block(memory.get(key, scope=scope)), MARKDOWN)
    except HoldfastError as error:
        raise _missing(uri, version, str(error)) from None


def prompt(memory: Memory, caller: Caller, name: str, given: dict[str, str]) -> dict[str, Any]:
    """The words of a prompt."""
    if name == SAVE["name"]:
        focus = " ".join(given.get("focus", "").split())[:500]
        return _said(SAVE, guidance.SAVE.replace("{focus}", f", above all at: {focus}," if focus else ""))
    if name == BOOT["name"]:
        text = _boot(memory, caller) or memory.brief(remember=False).text
        return _said(BOOT, text or "Memory is empty so far: nothing to start up from.")
    raise MCPError(code=INVALID_PARAMS, message=f"Unknown prompt: {render.safe(name[:80])}")


def _boot(memory: Memory, caller: Caller) -> str:
    """The continuity start-up, of the agent or else of the project."""
    if caller.is_lost and not caller.agent:
        return ""
    known = caller.program()
    return memory.boot(scaffolds=known.scaffolds if known else ()).text


def _shown(note: Note) -> dict[str, Any]:
    first = "In quarantine: no person approved it yet."
    if not note.quarantined:
        first = render.safe(sound(without_secrets(note.text).split("\n", 1)[0]))
    return {
        "uri": f"{NOTES}{note.scope.kind}/{note.key}",
        "name": f"{note.scope.kind}/{note.key}",
        "title": note.key,
        "description": first if len(first) <= 120 else first[:119] + "…",
        "mimeType": MARKDOWN,
        "annotations": {"lastModified": note.updated},
    }


def _block(note: Note) -> str:
    """A note as a client puts it into a context: data between marks, like a briefing (B3). It is cleaned before its lines are
    moved in, which could keep a secret from being recognised."""
    told = render.Told(note.scope.kind, note.key, note.updated[:10], note.source.origin, without_secrets(note.text))
    return render.whole(told, ", in quarantine" if note.quarantined else "")


def _contents(uri: str, text: str, kind: str) -> dict[str, Any]:
    return {"contents": [{"uri": uri, "mimeType": kind, "text": sound(text)}]}


def _said(prompt: dict[str, Any], text: str) -> dict[str, Any]:
    message = {"role": "user", "content": {"type": "text", "text": sound(text)}}
    return {"description": prompt["description"], "messages": [message]}


def _missing(uri: str, version: str, why: str = "") -> MCPError:
    code = _NOT_FOUND if version <= "2025-11-25" else INVALID_PARAMS
    return MCPError(code=code, message=render.safe(why) or "No such resource", data={"uri": sound(uri[:500])})
