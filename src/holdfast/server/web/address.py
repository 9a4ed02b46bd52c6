"""Addresses of notes in the console, and the fields by which the API names the same note."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

_GLOBAL = "-"  # in place of the id, which the scope `global` does not have
_NOTE_PATH = re.compile(r"(?:^|/)notes/([a-z0-9][a-z0-9-]{0,59})\.md(?::|$)")
_TURN_PATH = re.compile(r"(.+)/transcripts/([^/]+)/([^/]+)\.jsonl:(\d{1,12})(?:-\d+)?\Z")
TURNS = 50  # on one page of a transcript
_FOLDERS = {"projects": "project", "agents": "agent", "sessions": "session"}


def note_url(scope: dict[str, Any], key: str, action: str = "") -> str:
    """Return the address of a note's page, or of one of its actions."""
    return f"/ui/notes/{scope['kind']}/{scope.get('id') or _GLOBAL}/{key}" + (f"/{action}" if action else "")


def file_url(hit: dict[str, Any]) -> str | None:
    """Return the address of the file that a hit is in, from the line it cites; None if it is not in a file."""
    path, _, lines = hit["citation"].rpartition(":")
    return f"/ui/file?path={quote(path)}&from={lines.partition('-')[0]}" if hit["kind"] == "file" and path else None


def session_url(path: str, action: str = "") -> str:
    """Return the address of the page of a transcript, given its path on the shelf, or of one of its actions."""
    folder, _, name = path.partition("/transcripts/")
    scope = scope_of_folder(folder)
    parts = (scope["kind"], scope["id"] or _GLOBAL, *name.removesuffix(".jsonl").split("/"))
    return "/".join(["/ui/sessions", *[quote(part, safe="") for part in parts]]) + (f"/{action}" if action else "")


def turn_url(citation: str) -> str | None:
    """Return the address of a turn in its transcript; None if a citation is not of a turn."""
    match = _TURN_PATH.match(citation)
    if match is None:
        return None
    number = int(match[4]) - 2  # the first line is the header
    url = session_url(f"{match[1]}/transcripts/{match[2]}/{match[3]}.jsonl")
    return f"{url}?page={number // TURNS + 1}&turn={number}#turn-{number}"


def turn_label(hit: dict[str, Any]) -> str | None:
    """Return how people name a turn that was found, such as `session 7f3a, turn 3`; None if the hit is not a turn."""
    match = _TURN_PATH.match(hit["citation"])
    return f"session {hit['session'] or match[3]}, turn {int(match[4]) - 1}" if match else None


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


def fact_url(fact: dict[str, Any]) -> str | None:
    """Return the address of the note that states a fact; None if a file does."""
    key = find_key_in_path(fact["path"])
    return note_url(fact["scope"], key) if key else None


def find_key_in_path(path: str) -> str | None:
    """Return the key of the note whose path, or whose place in a file, this is; None if it is not a note's."""
    match = _NOTE_PATH.search(path)
    return match[1] if match else None


def find_note_key(hit: dict[str, Any]) -> str | None:
    """Return the key of the note that a hit is in; None if it is in a file or a transcript."""
    return find_key_in_path(hit["citation"]) or (hit["key"] if hit["kind"] in ("note", "past") else None)
