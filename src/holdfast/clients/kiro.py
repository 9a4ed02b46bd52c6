"""Kiro CLI: an agent file with hooks for version 2, separate hooks for version 3, the server for both."""

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
    plain_text = True  # what is printed is added to the context as it is
    note = "Kiro 2 runs hooks only for the selected agent: `kiro-cli --agent holdfast`. Kiro 3 always runs them."

    def changes(self, target: InstallTarget) -> list[Change]:
        from holdfast.clients.parts import agent_entry, server_entry, to_json

        folder = self.folder(target)
        return [
            Change(
                os.path.join(folder, "settings", "mcp.json"), "entry", server_entry(self, target), ("mcpServers", "holdfast")
            ),
            Change(os.path.join(folder, "agents", "holdfast.json"), "file", to_json(agent_entry(self, target, V2))),
            Change(os.path.join(folder, "hooks", "holdfast.json"), "file", to_json(self._hooks(target))),
        ]

    def plugin(self, target: InstallTarget) -> dict[str, str]:
        from holdfast.clients.parts import agent_entry, to_json

        return {
            "agents/holdfast.json": to_json(agent_entry(self, target, V2)),
            "hooks/holdfast.json": to_json(self._hooks(target)),
        }

    def _hooks(self, target: InstallTarget) -> dict[str, Any]:
        from holdfast.clients.parts import SECONDS, hook_command

        hooks = [
            {
                "name": f"holdfast-{event}", "trigger": client_event, "timeout": SECONDS[event], "enabled": True,
                "action": {"type": "command", "command": hook_command(self, target, client_event)},
            }
            for client_event, event in V3.items()
        ]  # fmt: skip
        return {"version": "v1", "hooks": hooks}

    def folder(self, target: InstallTarget) -> str:
        return target.folder(".kiro")


CLIENT = Kiro()
