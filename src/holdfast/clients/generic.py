"""Any other agent: a block in the project's AGENTS.md on how to use the memory, and a server entry to paste."""

from __future__ import annotations

import os

from holdfast.clients.base import Change, Client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.clients.base import InstallTarget


class Generic(Client):
    name = "generic"
    title = "any other agent"
    events = {"start": "start", "prompt": "prompt", "compact": "compact", "stop": "stop", "end": "end"}
    plain_text = True  # what any program can use
    per_project = True
    note = "Paste the server into your agent's MCP settings: `holdfast install generic --print` shows it."

    def changes(self, target: InstallTarget) -> list[Change]:
        from holdfast.clients import usage_guide

        return [Change(os.path.join(target.project, "AGENTS.md"), "block", usage_guide())]

    def to_paste(self, target: InstallTarget) -> dict[str, str]:
        from holdfast.clients.parts import hook_command, server_entry, to_json

        hooks = "\n".join([hook_command(self, target, event) for event in self.injects]) + "\n"
        return {
            "your agent's MCP settings": to_json({"mcpServers": {"holdfast": server_entry(self, target)}}),
            "hooks at the start of a session and at a prompt, if your agent has such; what they print is for the model": hooks,
        }

    def plugin(self, target: InstallTarget) -> dict[str, str]:
        """Return a bundle in the format of Agent Plugins 1.0."""
        from holdfast.clients.parts import manifest, server_entry, skill_files, to_json

        schema = "https://agent-plugins.org/schemas/1.0.0"
        return {
            "plugin.json": to_json(manifest(**{"$schema": f"{schema}/plugin.schema.json"})),
            "mcp.json": to_json(
                {"$schema": f"{schema}/mcp.schema.json", "mcpServers": {"holdfast": server_entry(self, target)}}
            ),
            **skill_files(target),
        }


CLIENT = Generic()
