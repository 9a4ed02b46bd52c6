"""Cursor: hooks and server in the user's folder."""

from __future__ import annotations

import os

from holdfast.clients.base import Change, Client, format_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.clients.base import InstallTarget


class Cursor(Client):
    name = "cursor"
    title = "Cursor"
    programs = ("cursor-agent", "cursor")
    events = {
        "sessionStart": "start", "beforeSubmitPrompt": "prompt", "preCompact": "compact", "stop": "stop", "sessionEnd": "end",
    }  # fmt: skip
    injects = ("start",)
    note = "The Cursor CLI shows the briefing to the model. The editor, version 3.12.17, was seen to ignore it."

    def format_output(self, event: str, text: str) -> str:
        return format_field("additional_context", text) if text and self.events.get(event, event) in self.injects else "{}"

    def changes(self, target: InstallTarget) -> list[Change]:
        from holdfast.clients.parts import SECONDS, hook_command, server_entry

        folder = self.folder(target)
        hooks = os.path.join(folder, "hooks.json")
        return [
            Change(os.path.join(folder, "mcp.json"), "entry", server_entry(self, target), ("mcpServers", "holdfast")),
            Change(hooks, "default", 1, ("version",)),
            *[
                Change(
                    hooks,
                    "item",
                    {"command": hook_command(self, target, client_event), "timeout": SECONDS[event]},
                    ("hooks", client_event),
                )
                for client_event, event in self.events.items()
            ],
        ]

    def folder(self, target: InstallTarget) -> str:
        return target.folder(".cursor")


CLIENT = Cursor()
