"""The prompts and resource templates that a client lists; no SDK import, because the early handshake needs them."""

from __future__ import annotations

from typing import Any

BRIEFING = "holdfast://briefing"
NOTES = "holdfast://notes/"
MARKDOWN = "text/markdown"

TEMPLATES: list[dict[str, Any]] = [
    {
        "uriTemplate": f"{NOTES}{{scope}}/{{key}}",
        "name": "note",
        "title": "A note",
        "description": "The current text of a note; scope is session, project, agent or global.",
        "mimeType": MARKDOWN,
    }
]
SAVE: dict[str, Any] = {
    "name": "save-what-matters",
    "title": "Save what matters",
    "description": "Review the session and store what a later session needs.",
    "arguments": [{"name": "focus", "description": "What to focus on.", "required": False}],
}
BOOT: dict[str, Any] = {
    "name": "boot",
    "title": "Boot",
    "description": "Load an agent's memory: heartbeat, inbox, live state, open loops, identity and goals.",
}
PROMPTS = [SAVE, BOOT]
