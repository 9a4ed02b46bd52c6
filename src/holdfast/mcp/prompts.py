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
    "description": "Look back over the session and keep what a later one needs.",
    "arguments": [{"name": "focus", "description": "What to look at above all.", "required": False}],
}
BOOT: dict[str, Any] = {
    "name": "boot",
    "title": "Boot",
    "description": "Start up from memory: heartbeat, inbox, live state, open loops, identity and goals.",
}
PROMPTS = [SAVE, BOOT]
