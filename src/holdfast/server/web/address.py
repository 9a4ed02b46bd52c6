"""Addresses of notes in the console, and the fields by which the API names the same note."""

from __future__ import annotations

import re
from typing import Any

_GLOBAL = "-"  # in place of the id, which the scope `global` does not have
_NOTE_PATH = re.compile(r"(?:^|/)notes/([a-z0-9][a-z0-9-]{0,59})\.md(?::|$)")
_FOLDERS = {"projects": "project", "agents": "agent", "sessions": "session"}


def note_url(scope: dict[str, Any], key: str, action: str = "") -> str:
    """Return the address of a note's page, or of one of its actions."""
    return f"/ui/notes/{scope['kind']}/{scope.get('id') or _GLOBAL}/{key}" + (f"/{action}" if action else "")


def scope_of(kind: str, id: str) -> dict[str, str]:
    """Return the scope that an address names."""
    return {"kind": kind, "id": "" if kind == "global" else id}


def scope_of_folder(folder: str) -> dict[str, str]:
    """Return the scope of a folder such as `projects/demo`."""
    kind, _, id = folder.partition("/")
    return {"kind": _FOLDERS.get(kind, "global"), "id": id}


def scope_fields(scope: dict[str, Any], own_agent: str) -> dict[str, str]:
    """Return the fields of an API request for this scope; another agent than the caller's must be named."""
    kind, id = scope["kind"], scope.get("id") or ""
    if kind == "global" or (kind == "agent" and id == own_agent):
        return {}
    return {kind: id}


def scope_label(scope: dict[str, Any]) -> str:
    """Return the name of a scope for people."""
    return f"{scope['kind']} {scope['id']}" if scope.get("id") else str(scope["kind"])


def find_note_key(hit: dict[str, Any]) -> str | None:
    """Return the key of the note that a hit is in; None if it is in a file or a transcript."""
    match = _NOTE_PATH.search(hit["citation"])
    return match[1] if match else hit["key"] if hit["kind"] in ("note", "past") else None
