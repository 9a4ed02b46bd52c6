"""Kiro CLI: an agent of ours with hooks in it for version 2, standalone hooks for version 3, the server for both."""

from __future__ import annotations

import os

from holdfast.clients.base import Change, Client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.clients.base import InstallTarget

V2 = {"agentSpawn": "start", "userPromptSubmit": "prompt", "stop": "stop"}
V3 = {"SessionStart": "start", "UserPromptSubmit": "prompt", "Stop": "stop"}


class Kiro(Client):
    name = "kiro"
    title = "Kiro CLI"
    programs = ("kiro-cli", "kiro")
    events = {**V2, **V3}
    plain = True  # what is printed is added to the context as it is
    note = "Version 2 runs the hooks of the agent that is chosen: `kiro-cli --agent holdfast`. Version 3 runs them always."

    def changes(self, place: InstallTarget) -> list[Change]:
        from holdfast.clients.parts import agent_entry, server_entry, to_json

        folder = self.folder(place)
        return [
            Change(
                os.path.join(folder, "settings", "mcp.json"), "entry", server_entry(self, place), ("mcpServers", "holdfast")
            ),
            Change(os.path.join(folder, "agents", "holdfast.json"), "file", to_json(agent_entry(self, place, V2))),
            Change(os.path.join(folder, "hooks", "holdfast.json"), "file", to_json(self._hooks(place))),
        ]

    def plugin(self, place: InstallTarget) -> dict[str, str]:
        from holdfast.clients.parts import agent_entry, to_json

        return {
            "agents/holdfast.json": to_json(agent_entry(self, place, V2)),
            "hooks/holdfast.json": to_json(self._hooks(place)),
        }

    def _hooks(self, place: InstallTarget) -> dict[str, Any]:
        from holdfast.clients.parts import SECONDS, hook_command

        hooks = [
            {
                "name": f"holdfast-{ours}", "trigger": own, "timeout": SECONDS[ours], "enabled": True,
                "action": {"type": "command", "command": hook_command(self, place, own)},
            }
            for own, ours in V3.items()
        ]  # fmt: skip
        return {"version": "v1", "hooks": hooks}

    def folder(self, place: InstallTarget) -> str:
        return place.folder(".kiro")


CLIENT = Kiro()
